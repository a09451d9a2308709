"""Evidence: the proof of a release, in numbers. The base of every kind; what a kind does not prove is refused here.

| what a kind says | here |
|---|---|
| `delta(epsilon)` | nothing: every kind computes its own |
| `describe()` | no line |
| `model_error(epsilon, delta)` | nothing is known of what wrong numbers do |
| `follows(earlier)`, `spent(epsilon, delta)` | it stands alone: nothing before it, and no rule leads on from it |
| `covers`, `covers_statistic`, `covers_tally`, `view_of` | no average, no statistic, no count, no view |
| `suits(columns, ...)` | any columns, each of which `covers` is asked about |
| `drawn`, `error_law` | averages get the noise of their columns, and err by it |
| `kernel_draw`, `weighted` | nothing is drawn |

A kind is known by its name: `Evidence.of_kind` finds the class of a recorded one by the table of methods (`methods.table`).
What must never change: a kind that says nothing about a question has not proved it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field

from attrpriv.errors import CertificateError
from attrpriv.frozen import Finite, FrozenModel
from attrpriv.methods.base.accuracy import BY_LAWS, NOTHING, PURE_ANYWHERE, ROOM, ErrorLaw, ModelError, Profile, unaffected
from attrpriv.methods.base.clamp import Clamp, Read, clamp_bits, clamp_law, clamped, statistic
from attrpriv.methods.base.column_plan import ColumnPlan, Design, common_bits, noisy
from attrpriv.methods.base.laplace_terms import covers_range, covers_statistic, least_width
from attrpriv.methods.table import home_of_evidence
from attrpriv.noise import correlated_noise
from attrpriv.numerics.rounding import COMPUTED_UP, ROUNDED_DOWN
from attrpriv.problem.assumption import require_free

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from attrpriv.methods.base.count_test import CountTest
    from attrpriv.methods.base.view_plan import Moved, ViewCell
    from attrpriv.problem.problem import Problem

Matrix = tuple[tuple[Finite, ...], ...]


@dataclass(frozen=True)
class Counted:
    """What is counted and drawn, as a proof sees it."""

    n: int
    width: int
    """How far one row can move the sum of absolute changes of everything released."""
    steps: tuple[int, ...]
    """What one row can add; of a histogram, the cell that it can be in."""
    histogram: bool
    reads: frozenset[str]
    identity: str
    """A digest of what is counted."""
    event: str
    """The condition, where the rows of one event are counted; else empty."""
    noise: str
    scale: float


@dataclass(frozen=True)
class Told:
    """What a plan reads besides the columns that it releases: secret, used for one draw and forgotten."""

    read: Mapping[str, Fraction] = field(default_factory=dict)
    """The averages of sensitive columns."""
    inside: tuple[int, ...] = ()
    """How many rows each category within the secret's set has, in the order of the assumption."""
    outside: tuple[int, ...] = ()


class Evidence(FrozenModel):
    """The numbers from which a promise is computed again."""

    kinds: ClassVar[dict[str, type[Evidence]]] = {}
    kind: str
    words: ClassVar[str] = "a release of another kind"
    """What was released, for messages about what may follow it."""
    room: ClassVar[str] = ROOM
    """What an owner can state instead of exact numbers."""
    reads_rows: ClassVar[bool] = True
    reads_categories: ClassVar[bool] = False  # whether the sensitive column's categories are counted beside the averages
    goes_on: ClassVar[bool] = False  # whether a rule leads on from it: `spent` and `follows` are its own
    as_it_is: ClassVar[bool] = False  # whether it can cover an average without any noise; `covers` says whether it does
    weighs: ClassVar[bool] = False  # whether answers are weighted averages, from the products of columns
    noise_last: ClassVar[bool] = True
    """Whether an average is what `moved` gives plus the noise of `noised`; else all is decided at once, in `drawn`."""
    errs_along: ClassVar[bool] = False
    """Whether an answer's error goes along with the table's own value; `along` says how much."""
    told_by: ClassVar[Profile] = BY_LAWS
    """At which epsilons its delta is worth asking for, and whether a law of the assumption reaches it."""
    by_secret: ClassVar[tuple[str, ...]] = ()
    """Fields with checks of one secret each, of which delta takes the largest."""
    rounds_rows: ClassVar[bool] = False  # before they are added; `spacing_of` says to what
    found_by_program: ClassVar[frozenset[str]] = frozenset()
    """Fields that a program found and that the rest proves: another machine may find others."""
    found_by_search: ClassVar[bool] = False
    """Whether a search found the noise's scale, which the rest proves: another version may find a little less."""

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        kind = cls.model_fields["kind"].default
        if isinstance(kind, str):
            require_free("evidence", kind, cls, Evidence.kinds.get(kind))
            Evidence.kinds[kind] = cls

    @classmethod
    def of_kind(cls, value: object) -> object:
        """The evidence that JSON holds; its class is loaded where nothing has used it yet."""
        kind = value.get("kind") if isinstance(value, Mapping) else None
        if kind is None:
            return value
        if not isinstance(kind, str) or kind not in Evidence.kinds:
            home_of_evidence(str(kind))
        if not isinstance(kind, str) or kind not in Evidence.kinds:
            known = f"of kind {kind}: no installed method knows it"
            raise ValueError(f"{known}. Install the package, or the version of attrpriv, that brought it.")
        return Evidence.kinds[kind].model_validate(value)

    @classmethod
    def read(cls, earlier: object) -> Self | None:
        """What was released before, where it is of this kind; None elsewhere."""
        return earlier if isinstance(earlier, cls) else None

    def delta(self, epsilon: float) -> float:
        """The delta reached at `epsilon`, from above."""
        raise NotImplementedError

    def describe(self) -> tuple[str, ...]:
        """What the numbers say, a line each."""
        return ()

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        """What really holds, of a promise at (epsilon, delta), where stated numbers are off; nothing: no bound is known."""
        return ()

    def stretched(self, times: float) -> Evidence | None:
        """The same proof for pairs of values so many times as far apart as the promised ones; None: it says nothing of them."""
        return self if times <= 1 or self.told_by.anywhere else None

    def leads_on(self) -> bool:
        """Whether, under each law, two values further apart have others between them, each as near to the next as promised."""
        return True

    def spent(self, epsilon: float, delta: float) -> float:
        """The share of the budget that everything it covers uses, from above; infinite where no rule leads on."""
        return math.inf

    def follows(self, earlier: object | None) -> bool:
        """Whether it covers what `earlier` covers, and nothing else that was released before."""
        return earlier is None

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column's average is what was counted on."""
        return False

    def covers_statistic(self, name: str, read: frozenset[str], width: Fraction, kind: str, scale: float) -> bool:
        """Whether this noise on a statistic of these columns, kept in a range of this width, is what was counted on."""
        return False

    def covers_tally(self, told: Counted) -> bool:
        """Whether this noise on what is counted is what was counted on."""
        return False

    def support(self) -> tuple[int, ...]:
        """The values that what is counted can have, in steps, where a proof rests on these; none: on any."""
        return ()

    def view_of(self) -> tuple[int, tuple[ViewCell, ...]] | None:
        """The number of rows, and how many of each cell a view keeps of them; None: it is about no view."""
        return None

    def whole_columns(self) -> tuple[str, ...]:
        """The columns about which a view hides everything; none: it hides how many rows each cell has."""
        return ()

    def row_test(self) -> CountTest | None:
        """The noisy test that stands before a view where single persons are protected."""
        return None

    def sorted_by(self) -> Moved | None:
        """The number that a view shows with public values in place of its own; None: it shows rows as they are."""
        return None

    def suits(self, columns: tuple[str, ...], n: int, *, clipped: bool) -> bool:
        """Whether averages of these columns, in this order, are what it speaks of."""
        return True

    def width_of(self, column: str) -> float | None:
        """How wide the rows of a column may lie, once clipped; None: nothing rests on it."""
        return None

    def spacing_of(self, column: str) -> float | None:
        """The spacing to which the rows of a column are rounded before they are added; None: they are added as they are."""
        return None

    def common_noise(self) -> Matrix:
        """The factor of the noise that the averages of this release have in common."""
        return ()

    def taken_back(self) -> Clamp | None:
        """What is taken back of sensitive statistics."""
        return None

    def statistics_read(self) -> tuple[Read, ...]:
        """The sensitive statistics that are read besides the columns."""
        clamp = self.taken_back()
        return () if clamp is None else clamp.reads

    # Drawing. What is read of the table goes in, what may be shown comes out.
    def drawn(self, columns: Sequence[ColumnPlan], averages: Sequence[Fraction], told: Told) -> list[Fraction]:
        """One noisy average for each column; what is to be taken back of a secret is, before the noise."""
        return self.noised(columns, self.moved(columns, averages, told), self.table_noise(told))

    def moved(self, columns: Sequence[ColumnPlan], averages: Sequence[Fraction], told: Told) -> list[Fraction]:
        """The averages without what is taken back of a secret; `noised` comes after, and nothing else."""
        clamp = self.taken_back()
        if clamp is None:
            return list(averages)
        hidden = [statistic(one, told.read) for one in clamp.reads]
        return clamped(clamp, averages, hidden, self.common_bits(columns))

    def table_noise(self, told: Told) -> tuple[float, float] | None:
        """A scale of the noise that depends on the table, and the public grid that it is drawn on; None: it is public."""
        return None

    def noised(
        self, columns: Sequence[ColumnPlan], averages: Sequence[Fraction], hidden: tuple[float, float] | None = None
    ) -> list[Fraction]:
        """The averages with the noise that they have in common, and each with its own."""
        factor = self.common_noise()
        common = correlated_noise(factor, self.common_bits(columns)) if factor else [Fraction(0)] * len(averages)
        moved = [average + noise for average, noise in zip(averages, common, strict=True)]
        return [
            noisy(part, average, as_it_is=self.as_it_is, hidden=hidden) for part, average in zip(columns, moved, strict=True)
        ]

    def given(self, part: ColumnPlan, place: int, told: Told) -> tuple[Fraction, float] | None:
        """By how much the average at this place is moved, and the sd of its noise, given what is read; None: another law."""
        return None

    def common_bits(self, columns: Sequence[ColumnPlan]) -> int:
        """How fine the grid of masks and of the common noise is."""
        own, clamp, factor = tuple(part.independent for part in columns), self.taken_back(), self.common_noise()
        return common_bits(Design(own, factor)) if clamp is None else clamp_bits(clamp, own, factor)

    def error_law(self, columns: Sequence[ColumnPlan], place: int) -> ErrorLaw | None:
        """How far the average at this place will be from the table's own; None: by its noise alone."""
        clamp = self.taken_back()
        return None if clamp is None else clamp_law(clamp, columns, place)

    def along(self, problem: Problem, place: int, answer: float) -> float | None:
        """E of what is taken back of the average at this place times its distance from `answer`; None where it is not known."""
        return 0.0

    def kernel_draw(self, total: int, members: int, scale: float) -> int:
        """What a kernel answers for a count, where so many rows are of the secret's categories."""
        raise CertificateError("tally: a kernel draws from the weights of its certificate. Nothing was released.")

    def kernel_law(self, total: int, members: int) -> tuple[int, Sequence[int]]:
        """The law that `kernel_draw` draws from, before noise: its least answer, and the weights of it and the next ones."""
        raise CertificateError("tally: a kernel draws from the weights of its certificate. Nothing was released.")

    def gram_columns(self) -> tuple[tuple[str, float, float, float | None], ...]:
        """Of each column whose products are read: its name, centre, step, and the value for missing entries."""
        return ()

    def weighted(
        self, columns: Sequence[ColumnPlan], rows: int, sums: Sequence[int], products: Sequence[Sequence[int]]
    ) -> dict[str, Fraction] | None:
        """The weighted averages, from sums over the sensitive columns and then the released ones; None: the weights failed."""
        raise CertificateError("plan: must weight the columns that its certificate counted on. Nothing was released.")

    def picture(self, epsilon: float, secret: str | None) -> Figure | None:
        """A picture of what is near the secret; None where there is none to draw."""
        return None


INTERVALS = "State intervals under given (of a network, a tolerance)."


class CountEvidence(Evidence):
    """The proof of one count, sum or histogram that stands alone."""

    words: ClassVar[str] = "a count that stands alone"
    room: ClassVar[str] = INTERVALS


def kind_of(earlier: object) -> str:
    """The kind of what was released; empty where it is no evidence."""
    return earlier.kind if isinstance(earlier, Evidence) else ""


def words_of(earlier: object) -> str:
    """What was released, of evidence of any kind."""
    return earlier.words if isinstance(earlier, Evidence) else Evidence.words


# ----------------------------------------------------------------------------------------------------------------------------
# What a promise pays besides its calibration: grids, recorded values, shape, clipping, fits, and a reserve.
# With lambda and eta the sums of their kinds, laws that are (eps', delta')-close become
# (eps' + 2 lambda, e^lambda delta' + eta (1 + e^(eps' + lambda)))-close; the rest is added to delta.


class Charged(Evidence):
    """Evidence that carries these charges. None has a default: what is left out by mistake must not count as free."""

    grid_lambda: float = Field(ge=0)
    lattice_lambda: float = Field(ge=0)
    grid_eta: float = Field(ge=0)
    shape_lambda: float = Field(ge=0)
    shape_eta: float = Field(ge=0)
    clip_delta: float = Field(ge=0)
    fit_delta: float = Field(ge=0)
    reserve: float = Field(ge=0)

    @property
    def lam(self) -> float:
        return self.grid_lambda + self.lattice_lambda + self.shape_lambda

    def inner(self, epsilon: float) -> float | None:
        """The epsilon that is left for the calibration, rounded down; None where nothing is."""
        inner = epsilon - 2 * self.lam
        return max(0.0, inner * ROUNDED_DOWN - 1e-300) if inner >= 0 else None

    def charged(self, worst: float, epsilon: float) -> float:
        """The delta of the whole promise, where the calibration alone reaches `worst` at the inner epsilon."""
        close = math.exp(self.lam) * worst + (self.grid_eta + self.shape_eta) * (1 + math.exp(epsilon))
        return (close + self.clip_delta + self.fit_delta + self.reserve) * COMPUTED_UP


CHARGES: tuple[str, ...] = tuple(name for name in Charged.model_fields if name not in Evidence.model_fields)


# ----------------------------------------------------------------------------------------------------------------------------
# The evidence of mechanisms that assume nothing of the rows' law: Laplace noise by sensitivity, and a public constant.


class LaplaceTerm(FrozenModel):
    """One average, kept in its bounds, with Laplace noise."""

    column: str
    sensitivity: float = Field(gt=0)
    scale: float = Field(gt=0)
    granularity: float = Field(gt=0)


class LaplaceEvidence(Evidence):
    """Pure epsilon by sensitivity: any table against any other."""

    words: ClassVar[str] = "a release with Laplace noise for its whole range"
    told_by: ClassVar[Profile] = PURE_ANYWHERE
    kind: Literal["laplace"] = "laplace"
    epsilon: float | None = Field(default=None, description="the budget, where it is not the certificate's own")
    terms: tuple[LaplaceTerm, ...]

    def delta(self, epsilon: float) -> float:
        spent = sum((term.sensitivity + term.granularity) / term.scale for term in self.terms) * COMPUTED_UP
        return 0.0 if spent <= epsilon else 1.0

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column is what was counted on."""
        return kind == "laplace" and any(term.column == column and term.scale == scale for term in self.terms)

    def covers_statistic(self, name: str, read: frozenset[str], width: Fraction, kind: str, scale: float) -> bool:
        """Whatever columns it reads: all of them may change."""
        return covers_statistic(self.terms, name, width, kind, scale)

    def covers_tally(self, told: Counted) -> bool:
        """Of the terms, so that the noise is for the whole range of what is counted."""
        return covers_range(self.terms, told)

    def width_of(self, column: str) -> float | None:
        return least_width(self.terms, column)

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        return unaffected(epsilon)


class ConstantEvidence(Evidence):
    """The answer is a public number; no row is read."""

    words: ClassVar[str] = "a public constant"
    reads_rows: ClassVar[bool] = False
    told_by: ClassVar[Profile] = NOTHING
    kind: Literal["constant"] = "constant"

    def delta(self, epsilon: float) -> float:
        return 0.0

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        return unaffected(epsilon)
