"""The evidence that a parameter of a network is hidden: which parameters may show, their influence, and the noise for the rest.

    loss_i = e(phi_S | phi_i) + sum over terms k of Delta_{A_k minus S} F_k / b_k,   0/0 = 0, x/0 = infinity

The terms are those of this release and of all earlier ones. Of these `earlier` keeps the sum of Delta/b for each set of columns
that was read: all that the rule needs, so that ten thousand answers take no more room than the sets that they read.
What must never change: the influence is computed again from the stored networks, over the whole tolerance; every protected
parameter has *one* set S under every network, for everything released (adding up what each release loses with a set of its own
is not sound); a term counts as known only if *all* columns that it reads are in S.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from attrpriv.frozen import Finite, FrozenModel, NonNegative, Positive
from attrpriv.methods.base.accuracy import PURE, ModelError, Profile
from attrpriv.methods.base.evidence import Counted, Evidence
from attrpriv.methods.markov_quilt.model_error import quilt_model_error
from attrpriv.methods.markov_quilt.score import quilt_loss
from attrpriv.numerics.divergences.influence import max_influence
from attrpriv.numerics.networks.network import Network

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class QuiltTerm(FrozenModel):
    """One statistic: what it reads, how far it moves when that changes (none: unbounded), and its noise (scale 0: exact)."""

    name: str
    columns: tuple[str, ...] = Field(min_length=1)
    sensitivity: Positive | None
    granularity: NonNegative = Field(default=0.0, description="the step of the noise's grid, in the statistic's unit")
    scale: NonNegative

    def part(self, known: frozenset[str]) -> tuple[float, float]:
        """Delta and b of what is left once the parameters in S are known."""
        if known.issuperset(self.columns):
            return 0.0, self.scale
        size = math.inf if self.sensitivity is None else self.sensitivity
        return size + self.granularity, self.scale

    def rate(self) -> float:
        """Delta/b where nothing is known, from above."""
        size, scale = self.part(frozenset())
        return _up(_up(size) / scale) if scale else math.inf


class EarlierTerms(FrozenModel):
    """All earlier statistics that read exactly these columns."""

    columns: tuple[str, ...] = Field(min_length=1)
    rate: NonNegative | None = Field(description="the sum of their Delta/b, rounded up; none: one of them is exact")

    @property
    def size(self) -> float:
        return math.inf if self.rate is None else self.rate


class QuiltCheck(FrozenModel):
    """The set S that hides one protected parameter under one network."""

    secret: str
    theta: int = Field(ge=0)
    known: tuple[str, ...]


class QuiltEvidence(Evidence):
    """Laplace noise, or none, on statistics of a table whose columns depend on a network of parameters."""

    words: ClassVar[str] = "a release under a parameter network"
    goes_on: ClassVar[bool] = True
    as_it_is: ClassVar[bool] = True
    told_by: ClassVar[Profile] = PURE
    kind: Literal["quilts"] = "quilts"
    networks: tuple[Network, ...] = Field(min_length=1)
    tolerances: tuple[Annotated[Finite, Field(ge=0, lt=1)], ...]
    protected: tuple[str, ...] = Field(min_length=1)
    terms: tuple[QuiltTerm, ...] = Field(min_length=1)
    checks: tuple[QuiltCheck, ...]
    earlier: tuple[EarlierTerms, ...] = Field(default=(), description="what was released before this")

    def delta(self, epsilon: float) -> float:
        return 0.0 if self.loss() <= epsilon else 1.0

    def loss(self) -> float:
        """The largest loss over all protected parameters and networks, from above."""
        wanted = {(secret, theta) for secret in self.protected for theta in range(len(self.networks))}
        complete = {(check.secret, check.theta) for check in self.checks} == wanted
        if not complete or len(self.tolerances) != len(self.networks):
            return math.inf
        return max(self.loss_of(check) for check in self.checks)

    def loss_of(self, check: QuiltCheck) -> float:
        return quilt_loss(self.influence_of(check), self.parts(check))

    def parts(self, check: QuiltCheck) -> list[tuple[float, float]]:
        """Delta and b of everything released, this time and before."""
        known = frozenset(check.known)
        before = [(0.0 if known.issuperset(terms.columns) else terms.size, 1.0) for terms in self.earlier]
        return [*before, *(term.part(known) for term in self.terms)]

    def influence_of(self, check: QuiltCheck) -> float:
        network, tolerance = self.networks[check.theta], self.tolerances[check.theta]
        return max_influence(network, of=check.known, on=check.secret, tolerance=tolerance).value

    def describe(self) -> tuple[str, ...]:
        return tuple(
            f"{check.secret}: loses {self.loss_of(check):.6g}, influence {self.influence_of(check):.6g}"
            for check in self.checks
        )

    def picture(self, epsilon: float, secret: str | None) -> Figure:
        from attrpriv.methods.markov_quilt.picture import draw_plan

        return draw_plan(self, epsilon, secret)

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        return quilt_model_error(self)

    def spent(self, epsilon: float, delta: float) -> float:
        """The share of the budget that everything released so far uses: the loss over epsilon, from above."""
        loss = self.loss()
        share = math.nextafter(loss / epsilon, math.inf)
        return min(1.0, share) if loss <= epsilon else share

    def follows(self, earlier: object | None) -> bool:
        """Whether what it counts as released before is what this evidence is about, and all that came before that."""
        if earlier is None:
            return not self.earlier
        past = QuiltEvidence.read(earlier)
        return past is not None and self.earlier == past.together()

    def together(self) -> tuple[EarlierTerms, ...]:
        """Everything released, for the next release to count: each set of columns once, its rates added up and rounded up."""
        rates = {terms.columns: terms.size for terms in self.earlier}
        for term in self.terms:
            columns = tuple(sorted(set(term.columns)))
            rates[columns] = _up(rates.get(columns, 0.0) + term.rate())
        return tuple(
            EarlierTerms(columns=columns, rate=rate if math.isfinite(rate) else None) for columns, rate in sorted(rates.items())
        )

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether this noise on a column's average is what was counted on."""
        return any(
            (term.name, term.columns, term.scale) == (column, (column,), scale) and kind == _kind(term) for term in self.terms
        )

    def covers_statistic(self, name: str, read: frozenset[str], width: Fraction, kind: str, scale: float) -> bool:
        """Whether this noise on a statistic of these columns, kept in a range of this width, is what was counted on."""
        return any(
            (term.name, frozenset(term.columns), term.scale) == (name, read, scale)
            and kind == _kind(term)
            and (term.sensitivity is not None and width <= Fraction(term.sensitivity))
            for term in self.terms
        )

    def covers_tally(self, told: Counted) -> bool:
        if len(self.terms) != 1:
            return False
        term, moves = self.terms[0], float(told.n * told.width)
        drawn = (moves, told.scale, told.noise) == (term.sensitivity, term.scale, _kind(term))
        return told.reads == frozenset(term.columns) and drawn

    def width_of(self, column: str) -> float | None:
        widths = [term.sensitivity for term in self.terms if term.name == column and term.sensitivity is not None]
        return min(widths, default=None)


def _up(x: float) -> float:
    return math.nextafter(x, math.inf)


def _kind(term: QuiltTerm) -> str:
    return "laplace" if term.scale else "none"
