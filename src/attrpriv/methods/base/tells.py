"""What an outsider can tell from a release: how well the best test tells two values of the secret that are so far apart.

    right guesses        of somebody who knows that a fair coin chose one of the two values, and sees all answers
    trade-off curve      for each share of false alarms, the least share of misses that any test can reach
    epsilon              that holds for this pair, at the delta of the promise

| distance | after the release | before: the exact answers |
|---|---|---|
| within the promised pairs | from the certificate: delta at many epsilons | from the assumption's law (`cases.exact_answer`) |
| beyond, in the range | the same proof for such pairs (`Evidence.stretched`), else steps of the promised size | the same |
| outside of the range | not known: the promise and the proof speak of values in the range | not known |

`methods.base.trade_off` makes the three of promises. What must never change: what is said of the release is never below the
truth under the assumption, and nothing here reads a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import Field

from attrpriv.errors import UsageError
from attrpriv.formatting import number, percent
from attrpriv.frozen import FrozenModel, NonNegative
from attrpriv.methods.base.accuracy import Profile
from attrpriv.methods.base.trade_off import TradeOff, trade_off
from attrpriv.methods.table import EXACT_ANSWER, load
from attrpriv.numerics.rounding import COMPUTED_DOWN, COMPUTED_UP
from attrpriv.problem.counted import count_pairs
from attrpriv.problem.problem import spacing_of
from attrpriv.problem.secret import Secret

if TYPE_CHECKING:
    from attrpriv.methods.base.evidence import Evidence
    from attrpriv.methods.base.plan import Plan
    from attrpriv.methods.base.view_plan import ViewPlan
    from attrpriv.problem.problem import Problem

How = Literal["exact", "bound", "unknown"]
# Sums and quotients of floats, in units of the values themselves.
_ROUNDED = 1e-12


class BestTest(FrozenModel):
    """How well the best test does. `how`: reached by a law of the assumption, a bound that is not exceeded, or not known."""

    how: How
    right: float = Field(default=1.0, ge=0.5, le=1)
    epsilon: NonNegative | None = Field(default=None, description="at the promised delta; null: none is known")
    loss: NonNegative | None = Field(
        default=None, description="odds change by more than a factor e^loss with probability 2 delta at most; null: not known"
    )
    curve: tuple[tuple[float, float], ...] = Field(default=(), description="shares of false alarms and of misses")

    @classmethod
    def of(cls, found: TradeOff | None, how: How, delta: float) -> BestTest:
        if found is None:
            return cls(how="unknown")
        right, loss = max(0.5, found.right), found.loss(delta)
        return cls(how=how, right=right, epsilon=found.epsilon(delta), loss=loss, curve=found.curve)

    def __str__(self) -> str:
        if self.how == "unknown":
            return "not known"
        most = "" if self.how == "exact" else "at most "
        loss = "epsilon not known" if self.epsilon is None else f"epsilon {most}{number(self.epsilon, 3)}"
        return f"{most}{percent(self.right)} right ({loss})"


_COIN = BestTest.of(TradeOff(promises=((0.0, 0.0),)), "exact", 0.0)


class Tells(FrozenModel):
    """How well two values of a secret can be told apart, before a release and after it."""

    schema_version: Literal[1] = 1
    secret: str
    distance: float | None = Field(description="of the two values; null: any two that must be indistinguishable")
    promised: float | None = Field(description="the largest distance that the promise is about; null: it is about no distance")
    delta: float
    before: BestTest = Field(description="from the exact answers, under the assumption")
    after: BestTest = Field(description="from what is released, under the same assumption; with all released before")

    @property
    def inside(self) -> bool:
        """Whether the promise is about such pairs."""
        return self.distance is None or (self.promised is not None and self.distance <= self.promised)

    def __str__(self) -> str:
        pair = "that must be indistinguishable" if self.distance is None else f"{self.distance:,.10g} apart"
        beyond = "" if self.inside else " (beyond what is promised)"
        told = f"values of {self.secret} {pair}{beyond}"
        return f"{told}: from the exact answers {self.before}; from this release {self.after}."


def tells(plan: Plan, distance: float | None, secret: str | None) -> Tells:
    """What is told of two values of a secret (the first one, unless named), so far apart or as far as promised."""
    outlook = Outlook.of(plan, secret)
    if distance is not None:
        outlook.scale.require(distance)
    return Tells(
        secret=outlook.secret.text,
        distance=distance,
        promised=outlook.scale.promised,
        delta=plan.delta,
        before=outlook.before(distance),
        after=outlook.after(distance),
    )


def tells_of_view(view: ViewPlan) -> Tells:
    """Of any two compositions that must be indistinguishable; what the exact rows would tell is not asked."""
    certificate = view.certificate
    found = trade_off(certificate.evidence.delta, certificate.epsilon, certificate.delta, certificate.evidence.told_by)
    after = BestTest.of(found, "bound", certificate.delta)
    unknown = BestTest(how="unknown")
    return Tells(secret=view.secret.text, distance=None, promised=None, delta=certificate.delta, before=unknown, after=after)


def _chosen(problem: Problem, secret: str | None) -> Secret:
    named = [one for one in problem.secrets if secret in (None, one.text)]
    if not named:
        texts = ", ".join(one.text for one in problem.secrets)
        raise UsageError(f"secret: must be one of {texts}. Got {secret}.")
    return named[0]


class Scale(FrozenModel):
    """How far apart two values of a secret can be, and how far apart those are that must be indistinguishable."""

    secret: str
    promised: float | None
    ends: tuple[float, float] | None = Field(description="of the range that the promise is about; null: any value")
    whole: int | None = Field(default=None, description="the values are whole numbers over this one; null: all numbers")
    step: float | None = Field(description="how far one promised pair surely leads; null: a distance says nothing")

    @classmethod
    def of(cls, problem: Problem, secret: Secret) -> Scale:
        nothing = cls(secret=secret.text, promised=None, ends=None, step=None)
        if secret.cases is not None or isinstance(secret.between, Mapping) or isinstance(secret.secret, tuple):
            return nothing
        if secret.entries is not None or secret.whole_columns:
            return nothing
        composition = secret.composition
        if composition is not None and secret.parameter is None:
            if composition.kind == "distribution":
                return nothing
            pairs = count_pairs(secret, problem.n)
            unit = problem.n if composition.kind == "share" else 1
            apart = pairs.apart / unit
            ends = pairs.low / unit, pairs.high / unit
            return cls(secret=secret.text, promised=apart, ends=ends, whole=unit, step=apart)
        if not math.isfinite(secret.gap):
            return nothing
        return cls(secret=secret.text, promised=secret.gap, ends=secret.ends, step=_whole_step(problem, secret))

    def require(self, distance: float) -> None:
        if self.promised is None:
            raise UsageError(f"distance: {self.secret} is hidden as a whole, not by distance. Ask tells() without one.")
        if not (math.isfinite(distance) and distance >= 0):
            raise UsageError(f"distance: must be a finite number, at least 0. Got {distance:g}.")

    def inside(self, distance: float) -> bool:
        """Whether two values of the range can be so far apart, up to the rounding of the distance itself."""
        return self.ends is None or distance <= (self.ends[1] - self.ends[0]) * COMPUTED_UP

    def holds(self, value: float) -> bool:
        """Whether the promise is about this value: one that the secret can have, in its range."""
        near = self.nearest(value)
        slack = _ROUNDED * max(abs(value), *map(abs, self.ends or (0.0,)))
        inside = self.ends is None or self.ends[0] - slack <= value <= self.ends[1] + slack
        return inside and abs(value - near) <= slack

    def promises(self, low: float, high: float) -> bool:
        """Whether these two values must be indistinguishable."""
        apart = 0.0 if self.promised is None else self.promised * (1 + _ROUNDED) + _ROUNDED * max(abs(low), abs(high))
        return self.holds(low) and self.holds(high) and 0 < high - low <= apart

    def nearest(self, value: float) -> float:
        """The value that the secret can have."""
        return value if self.whole is None else round(value * self.whole) / self.whole

    def times(self, distance: float | None) -> float:
        return 1.0 if distance is None or self.promised is None else distance / self.promised

    def steps(self, distance: float | None) -> int:
        """How many promised pairs lead from one value to the other."""
        if distance is None or self.step is None or self.promised is None or distance <= self.promised:
            return 1
        return math.ceil(distance / self.step * COMPUTED_DOWN)


def _whole_step(problem: Problem, secret: Secret) -> float:
    """The values between two others lie on the secret's spacing, so one step may be a little shorter than what is promised."""
    spacing = spacing_of(problem, secret)
    if not spacing:
        return secret.gap
    return math.floor(secret.gap / spacing * COMPUTED_UP) * spacing or secret.gap


@dataclass(frozen=True)
class Outlook:
    """A plan as seen by somebody who wants to know one secret."""

    plan: Plan
    problem: Problem
    secret: Secret
    scale: Scale

    @classmethod
    def of(cls, plan: Plan, secret: str | None) -> Outlook:
        if plan.problem is None:
            raise UsageError("tells: a plan that was read from a record does not hold its problem. Plan again with the policy.")
        chosen = _chosen(plan.problem, secret)
        return cls(plan, plan.problem, chosen, Scale.of(plan.problem, chosen))

    def before(self, distance: float | None) -> BestTest:
        """From the exact answers."""
        if distance == 0:
            return _COIN
        if distance is not None and not self.scale.inside(distance):
            return BestTest(how="unknown")
        found: Any = load(EXACT_ANSWER)(self.problem, self.secret, self.scale.times(distance))
        if found is None:
            return BestTest(how="unknown")
        return BestTest.of(self._trade_off(found.delta, found.profile), _how(found.profile), self.plan.delta)

    def after(self, distance: float | None) -> BestTest:
        """From what is released."""
        if distance == 0:
            return _COIN
        if distance is not None and not self.scale.inside(distance):
            return BestTest(how="unknown")
        times, how = self.scale.times(distance), self._how_after
        stretched = self._evidence.stretched(times)
        found = TradeOff() if stretched is None else self._profile(stretched)
        if stretched is None or (times > 1 and how == "bound"):  # both hold
            found, how = found.also(self._promised.in_steps(self.scale.steps(distance))), "bound"
        known = found.promises or how == "exact"  # that nothing is hidden is known, too
        return BestTest.of(found if known else None, how, self.plan.delta)

    @cached_property
    def _joint(self) -> Evidence:
        """The proof for everything released; that of an answer for which no row is read says nothing of what came before."""
        own, earlier = self.plan.certificate.evidence, self.problem.earlier
        return own if own.reads_rows or earlier is None else cast("Evidence", earlier)

    @cached_property
    def _about(self) -> Evidence | None:
        """The proof for this secret alone; None where it does not tell several apart."""
        evidence = self._joint
        if len(self.problem.secrets) == 1:
            return evidence
        own = {
            name: tuple(check for check in getattr(evidence, name) if check.secret == self.secret.text)
            for name in evidence.by_secret
        }
        return evidence.model_copy(update=own) if any(own.values()) else None

    @property
    def _evidence(self) -> Evidence:
        return self._joint if self._about is None else self._about

    @property
    def _how_after(self) -> How:
        """A proof for the worst of several secrets, and one without the noise for single rows, only bound what is told."""
        certificate = self.plan.certificate
        less = certificate.individuals is not None or (self._about is None and self._evidence.reads_rows)
        less = less or self._joint is not certificate.evidence
        return _how(self._evidence.told_by) if certificate.exact and not less else "bound"

    @cached_property
    def _promised(self) -> TradeOff:
        return self._profile(self._evidence)

    def _profile(self, evidence: Evidence) -> TradeOff:
        """Of everything released, with the risk of a fit; what cannot be computed proves nothing."""

        def deltas(epsilon: float) -> float:
            try:
                return evidence.delta(epsilon) + self.plan.certificate.fit_delta
            except (UsageError, ArithmeticError):
                return 1.0

        return self._trade_off(deltas, evidence.told_by)

    def _trade_off(self, deltas: Callable[[float], float], profile: Profile) -> TradeOff:
        return trade_off(deltas, self.plan.epsilon, self.plan.delta, profile)


def _how(profile: Profile) -> How:
    return "exact" if profile.attained else "bound"
