"""What an adversary may already believe: the base of every assumption.

An assumption is a class Theta of distributions. Each kind registers itself by name, so that a problem read from JSON finds
its class again; ours load when one is first read (`OURS` says where they are), so that a plan loads the kind that it uses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

from attrpriv.errors import UsageError
from attrpriv.frozen import FrozenModel
from attrpriv.numerics.laws.binomial import binomial_above, binomial_below
from attrpriv.problem.counted import case_runs, count_pairs, share_range
from attrpriv.problem.secret import Secret
from attrpriv.problem.shapes import LATTICE, MIXED, NOTHING, STATED

if TYPE_CHECKING:
    from attrpriv.assumptions.gaussian import FittedRecord
    from attrpriv.problem.secret import Secret
    from attrpriv.queries.evaluate import Category

_ROOM = "attrpriv.assumptions"
OURS: Mapping[str, str] = MappingProxyType(
    {
        kind: f"{_ROOM}.{kind}"
        for kind in ("chain", "channel", "counts", "gaussian", "groups", "hierarchy", "laws", "parameter_network", "records")
    }
)
"""The kinds of this package, each with its module."""
ENTRY_POINTS = "attrpriv.methods"


@dataclass(frozen=True)
class NamedCategories:
    """The categories of a column that an assumption is about, and the one of them that all other rows count as."""

    column: str
    names: tuple[str, ...]
    other: str | None = None


@dataclass(frozen=True)
class ExpectedEntry:
    """An entry of a column in a row of which nothing else is known: its mean, how far that may be off, its largest sd."""

    mean: float
    off: float
    sd: float


@dataclass(frozen=True)
class PublicRecords:
    """The public table behind an assumption, by its digest: of numbers (`engines.moments`), or of any entries."""

    rows: int
    columns: tuple[str, ...]
    digest: str
    numbers: bool = True


class Assumption(FrozenModel):
    """A class of distributions, with an explicit tolerance."""

    kinds: ClassVar[dict[str, type[Assumption]]] = {}
    shape: ClassVar[str] = MIXED
    """What it makes of a statistic (`problem.shapes`): methods know shapes, not assumptions."""
    normal_rows: ClassVar[bool] = False
    """Whether it rests on rows being normal, so that the shape of public records matters."""
    lists_tables: ClassVar[bool] = False
    """Whether it rests on several public tables, which `public_tables` names."""
    kind: str

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        kind = cls.model_fields["kind"].default
        if isinstance(kind, str):
            if OURS.get(kind, cls.__module__) != cls.__module__:
                import_module(OURS[kind])  # another class asks for a kind of ours
            require_free("assumption", kind, cls, Assumption.kinds.get(kind))
            Assumption.kinds[kind] = cls

    @classmethod
    def knows(cls, kind: object) -> TypeGuard[str]:
        """Whether there is such a kind; installed packages are asked where it is not ours."""
        if not isinstance(kind, str):  # a file may say anything
            return False
        if kind not in cls.known():
            installed()
        return kind in cls.known()

    @classmethod
    def of_kind(cls, value: object) -> Assumption:
        """Read an assumption of any registered kind."""
        if isinstance(value, Assumption):
            return value
        kind = value.get("kind") if isinstance(value, dict) else None
        if not cls.knows(kind):
            raise ValueError(f"kind must be one of {', '.join(cls.known())}. Got {kind!r}.")
        return cls.class_of(kind).model_validate(value)

    @classmethod
    def known(cls) -> tuple[str, ...]:
        """All kinds by name, loaded or not."""
        return tuple(sorted({*OURS, *cls.kinds}))

    @classmethod
    def class_of(cls, kind: str) -> type[Assumption]:
        """The class of a known kind."""
        if kind not in cls.kinds:
            import_module(OURS[kind])
        return cls.kinds[kind]

    # What follows is asked of every assumption. One of your own overrides what it can say; as it stands here, it says nothing.

    def belief(self, secret: Secret, n: int, bins: Mapping[str, Sequence[float]]) -> Belief | None:
        """How likely the values of a secret are, to warn of promises that hide little; None: not known."""
        return None

    def named_categories(self) -> NamedCategories | None:
        """The sensitive column, where rows are told apart by its categories; None: they are not."""
        return None

    def listed_values(self) -> Mapping[str, Sequence[Category]]:
        """Of other columns: all values that they can have. Queries that compare with another one are refused."""
        return {}

    def named_events(self) -> tuple[str, ...]:
        """The conditions that it names; the values that they compare with must be listed ones, too."""
        return ()

    def public_records(self) -> PublicRecords | None:
        """What it was fitted on, so that a release can tell that this is another table; None: it is stated."""
        return None

    def public_tables(self) -> Mapping[str, PublicRecords]:
        """Where it `lists_tables`: the public tables that it rests on, by the key of each; none may be the private one."""
        return {}

    def public_centres(self) -> Mapping[str, tuple[float, float]]:
        """Mean and standard deviation of columns, both public: floats near them are added without rounding."""
        return {}

    def expected_rows(self, columns: Sequence[str], n: int) -> list[dict[str, ExpectedEntry]]:
        """Of the columns that it knows the mean of: entries with which an average over n rows has mean and sd/sqrt(n).

        One mapping for each law that has to be looked at, the one to be answered by first; none: it expects nothing.
        """
        return []

    def fit_record(self) -> FittedRecord | None:
        """The fit whose confidence is paid for, and what it found of the rows' shape; None: there is no such risk."""
        return None

    def nearly(self) -> tuple[float, float]:
        """How far the laws of averages may be from the stated ones: within a factor e^lambda, up to probability eta."""
        return 0.0, 0.0

    def slope_tolerance(self) -> float | None:
        """How far regression slopes may be off, relative; None: it states no such tolerance."""
        return None

    def information_per_unit(self, variance: float) -> float | None:
        """How much the rest of a row tells of one number of this variance, per squared unit; None: it does not say."""
        return None

    def surer(self, share: float) -> Assumption | None:
        """The same with this share of its slope tolerance, to say what more knowledge would gain; None: it has none."""
        return None

    def explained(self) -> tuple[str, ...]:
        """Whose belief it is, and what they may know, in sentences for `attrpriv explain`."""
        return (f"Whoever believes: {self}.",)


ONE_ROW = "of a single row stated laws speak (kind: laws), and counts where its entries are hidden"


def shape_of(theta: Sequence[Assumption], secrets: Sequence[Secret]) -> str:
    """What the assumption makes of a statistic (`problem.shapes`).

    Of an entry that is hidden behind counts only the law of what its own row adds is used: other rows are independent of it.
    """
    shapes = {member.shape for member in theta}
    if shapes == {LATTICE} and any(secret.entries is not None for secret in secrets):
        return STATED
    return NOTHING if not shapes else shapes.pop() if len(shapes) == 1 else MIXED


# ----------------------------------------------------------------------------------------------------------------------------
# What an assumption says of a secret itself, before anything is released: how likely its values are, and how much it varies.
#
# | belief | of |
# |---|---|
# | `NormalBelief` | a mean or a sum of normal rows, or the mean of a population |
# | `ShareBelief` | a count or a share of rows, by the prior share of the rows that it counts |
# | `StatesBelief` | a parameter with finitely many values |
#
# What must never change: chances are the largest and spreads the least that a member of Theta gives, so that a wide tolerance
# never leads to a warning.


Pair = tuple[float, float]


class Belief:
    """Says nothing; each kind overrides what it knows."""

    def chances(self, secret: Secret, n: int) -> list[float] | None:
        """Of the secret's range, or of each of its sets or values; None where that is not known."""
        return None

    def spread(self, secret: Secret, n: int) -> float | None:
        """A standard deviation, in the secret's own unit; from below. None where none is known."""
        return None

    def single(self, secret: Secret) -> bool:
        """Whether the secret surely has one value, so that there is nothing to hide."""
        return False


@dataclass(frozen=True)
class NormalBox:
    """A box of normal laws; no centre where no mean is stated."""

    centres: Pair | None
    sds: Pair

    def chance(self, low: float, high: float) -> float:
        """The largest of [low, high], which has one infinite end at most."""
        if self.centres is None:
            return 1.0
        centre = min(max((low + high) / 2, self.centres[0]), self.centres[1])
        near, far = sorted((low - centre, high - centre), key=abs)
        if near * far <= 0:
            return 1.0 if not self.sds[0] else _below(high - centre, self.sds[0]) - _below(low - centre, self.sds[0])
        near, far = abs(near), abs(far)
        return max(_below(-near, sd) - _below(-far, sd) for sd in self._worst(near, far))

    def _worst(self, near: float, far: float) -> list[float]:
        """At which standard deviations the chance of a range beside the centre can be largest."""
        inner = math.sqrt((far - near) * (far + near) / (2 * math.log(far / near))) if math.isfinite(far) else math.inf
        return [sd for sd in (self.sds[0], self.sds[1], min(max(inner, self.sds[0]), self.sds[1])) if sd > 0]


def _below(x: float, sd: float) -> float:
    return math.erfc(-x / sd / math.sqrt(2)) / 2


@dataclass(frozen=True)
class NormalBelief(Belief):
    """A box for each mean or sum of the secret."""

    laws: tuple[NormalBox, ...]

    def chances(self, secret: Secret, n: int) -> list[float] | None:
        if secret.cases is not None:
            return [sum(self.laws[0].chance(part.low, part.high) for part in case.parts) for case in secret.case_sets]
        if isinstance(secret.between, Mapping):  # hidden jointly: all of the ranges hold at once
            ranges = [secret.between[form.text] for form in secret.forms]
            return [min(law.chance(*ends) for law, ends in zip(self.laws, ranges, strict=True))]
        return None if secret.ends is None else [self.laws[0].chance(*secret.ends)]

    def spread(self, secret: Secret, n: int) -> float | None:
        return min((law.sds[0] for law in self.laws), default=None)


@dataclass(frozen=True)
class ShareBelief(Belief):
    """The prior share of the rows that a secret counts: anything from `low` to `high`."""

    low: float
    high: float
    closes: bool = True
    """Whether a share of 0 or 1 leaves one value; not where cases of the assumption look at that for themselves."""

    def chances(self, secret: Secret, n: int) -> list[float] | None:
        if secret.entries is not None:
            return None
        if secret.parameter is not None:
            low, high = share_range(secret)
            return [float(self.low <= high and low <= self.high)]
        if secret.cases is not None:
            return [sum(self._chance(n, *run) for run in runs) for runs in case_runs(secret, n)]
        pairs = count_pairs(secret, n)
        return [self._chance(n, pairs.low, pairs.high)]

    def _chance(self, n: int, low: int, high: int) -> float:
        """P(low <= Bin(n, p) <= high) at the share nearest to the middle, where it is largest or nearly so."""
        p = min(max((low + high) / 2 / n, self.low), self.high)
        inside = 1 - binomial_below(n, p, low) - binomial_above(n, p, high) + 1e-9  # which rounds tails up
        return min(inside, binomial_above(n, p, low - 1), binomial_below(n, p, high + 1))

    def spread(self, secret: Secret, n: int) -> float | None:
        if secret.composition is None:
            return None
        rows = min(math.sqrt(n * p * (1 - p)) for p in (self.low, self.high))
        return rows if secret.composition.kind == "count" else rows / n

    def single(self, secret: Secret) -> bool:
        return self.closes and secret.parameter is None and (self.low, self.high) in ((0.0, 0.0), (1.0, 1.0))


@dataclass(frozen=True)
class StatesBelief(Belief):
    """The chance of each value."""

    weights: tuple[float, ...]
    exact: bool
    """Whether a chance of 0 means that the value cannot be."""

    def chances(self, secret: Secret, n: int) -> list[float] | None:
        return list(self.weights)

    def single(self, secret: Secret) -> bool:
        return self.exact and sum(weight > 0 for weight in self.weights) < 2


# ----------------------------------------------------------------------------------------------------------------------------
# What installed packages bring along: methods and assumptions of others, by entry points of the group `attrpriv.methods`.
#
# An entry point is a `Method`, the class of an assumption (which registers itself when it is loaded), or a function that
# registers some. They are loaded once, and only where a method or a kind is looked for that is not ours.
# What must never change: one that cannot be loaded is an error that names it. A plan that silently lacks a method is not
# chosen from all of them.


@cache
def installed() -> tuple[object, ...]:
    """What the entry points are; functions among them have been called."""
    from importlib.metadata import entry_points

    found = []
    for point in entry_points(group=ENTRY_POINTS):
        reason = None
        try:
            found.append(point.load())
            if callable(found[-1]) and not isinstance(found[-1], type):
                found[-1]()
        except Exception as error:  # whatever a foreign module does
            reason = f"{type(error).__name__}: {error}"
        if reason is not None:
            raise UsageError(
                f"entry point {point.name} = {point.value}: must be loaded for methods of other packages. Got {reason}. "
                "Repair or uninstall its package."
            )
    return tuple(found)


def require_free(what: str, kind: str, cls: type, owner: type | None) -> None:
    """A kind is one class's; the same one may be defined again, as where its module is loaded again."""
    if owner is not None and (owner.__module__, owner.__qualname__) != (cls.__module__, cls.__qualname__):
        raise UsageError(
            f"{what} {cls.__qualname__}: must have a kind of its own. Got {kind}, which is {owner.__qualname__}'s."
        )
