"""What an outsider may believe of a secret: a prior over its values, and the posteriors after the exact answers and a release.

By Bayes, the odds of a value v against the true one change by a likelihood ratio, which the distance of the two bounds:

| posterior | odds of v against the true value, times |
|---|---|
| `exact`, `typical` | e^(-mu^2/2), mu = 2 Phi^-1(right guesses): normal answers with as many right guesses, at their centre |
| `worst` | e^(-loss) of that distance: a release says more with probability `risk` = 2 delta at most |

`typical` is exact for normal answers and an illustration elsewhere; `worst` is a bound for all. Nothing here reads a row.

**All values at once.** Let w be the prior, s the true value, e_v the loss of s and v, and B the answers after which the odds of
a set of other values against s are below sum w_v e^(-e_v) / w_s. Each e_v comes from a promise (eps, d) with
d = 2 delta (1 - e^(eps - e_v)) at most, so that Q_v(B) >= e^(-eps) (P_s(B) - d). Together, on B:
(P_s(B) - 2 delta) sum w_v e^(-e_v) >= (P_s(B) - 2 delta) sum w_v e^(-eps). So P_s(B) <= 2 delta, however many values there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from statistics import NormalDist
from typing import TYPE_CHECKING

from pydantic import Field

from attrpriv.errors import UsageError
from attrpriv.frozen import Finite, FrozenModel, NonNegative
from attrpriv.methods.base.tells import BestTest, Outlook

if TYPE_CHECKING:
    from attrpriv.methods.base.plan import Plan

# Values of the range that a prior without numbers weighs alike.
_VALUES = 41
# Where no range is promised: so many promised distances to each side of 0.
_REACH = 10


class Belief(FrozenModel):
    """Weights of values of the secret, which sum to 1; none where nothing is known."""

    secret: str
    at: Finite = Field(description="the value that is true in this illustration")
    values: tuple[Finite, ...]
    prior: tuple[NonNegative, ...]
    exact: tuple[NonNegative, ...] = Field(description="after the exact answers")
    typical: tuple[NonNegative, ...] = Field(description="after a typical release")
    worst: tuple[NonNegative, ...] = Field(description="after the release that says most of the true value, but for `risk`")
    risk: NonNegative = Field(description="the probability, at most, that a release says more of the true value than `worst`")

    def likely(self, weights: Sequence[float], level: float = 0.95) -> tuple[float, float]:
        """The ends of the values that have this weight together, the likeliest first."""
        order = sorted(range(len(weights)), key=lambda place: (-weights[place], abs(self.values[place] - self.at)))
        held, total = [], 0.0
        for place in order:
            held.append(self.values[place])
            total += weights[place]
            if total >= level - 1e-12:
                break
        return min(held), max(held)

    def __str__(self) -> str:
        named = {"before": self.prior, "after the exact answers": self.exact, "after a release": self.typical}
        rarely = f" (but with probability {self.risk:.3g})" if self.risk else ""
        named |= {f"after the worst release{rarely}": self.worst}
        told = [f"{name} {_ends(self.likely(weights))}" for name, weights in named.items() if weights]
        return f"95% of the belief about {self.secret}, where it is {self.at:,.10g}: {'; '.join(told)}."


def _ends(ends: tuple[float, float]) -> str:
    return f"{ends[0]:,.10g} to {ends[1]:,.10g}"


def belief(plan: Plan, prior: Mapping[float, float] | None, at: float | None, secret: str | None) -> Belief:
    """From the plan and a prior; see `Plan.belief`."""
    outlook = Outlook.of(plan, secret)
    if outlook.scale.promised is None:
        raise UsageError(f"belief: {outlook.secret.text} is hidden as a whole, not by distance. Ask tells() instead.")
    weights = _weights(_uniform(outlook, at) if prior is None else prior)
    values, share = tuple(weights), tuple(weights.values())
    true = _true(outlook, weights, at)
    promised = {value: outlook.scale.holds(value) for value in values}
    distances = sorted({abs(value - true) for value in values if promised[value]})
    before = {one: outlook.before(one) for one in distances}
    after = {one: outlook.after(one) for one in distances}

    def posterior(found: Mapping[float, BestTest], odds: Callable[[BestTest], float]) -> tuple[float, ...]:
        if all(one.how == "unknown" for distance, one in found.items() if distance):
            return ()
        told = [odds(found[abs(v - true)]) if promised[v] else 0.0 for v in values]  # what is not hidden may be excluded
        return _normalised([w * one for w, one in zip(share, told, strict=True)])

    return Belief(
        secret=outlook.secret.text,
        at=true,
        values=values,
        prior=_normalised(share),
        exact=posterior(before, _typical),
        typical=posterior(after, _typical),
        worst=posterior(after, _worst),
        risk=min(1.0, 2 * plan.delta),
    )


def _typical(found: BestTest) -> float:
    if found.how == "unknown" or found.right >= 1:  # what is not known to be hidden may be excluded
        return 0.0
    return math.exp(-2 * NormalDist().inv_cdf(max(0.5, found.right)) ** 2)


def _worst(found: BestTest) -> float:
    return 0.0 if found.loss is None else math.exp(-found.loss)


def prior_near(plan: Plan, secret: str | None = None) -> dict[float, float]:
    """All values alike that are within ten promised distances of the middle of the range: further ones would not be seen."""
    scale = Outlook.of(plan, secret).scale
    unit = scale.promised or 1.0
    low, high = scale.ends or (-_REACH * unit, _REACH * unit)
    middle, reach = (low + high) / 2, min(_REACH * unit, (high - low) / 2)
    found = [middle + reach * (2 * place / (_VALUES - 1) - 1) for place in range(_VALUES)]
    return dict.fromkeys((scale.nearest(float(f"{value:.10g}")) for value in found), 1.0)


def _uniform(outlook: Outlook, at: float | None) -> dict[float, float]:
    ends = outlook.secret.ends
    if ends is None:
        middle, reach = 0.0 if at is None else at, _REACH * (outlook.scale.promised or 0.0)
        ends = middle - reach, middle + reach
    found = [ends[0] + (ends[1] - ends[0]) * place / (_VALUES - 1) for place in range(_VALUES)]
    return dict.fromkeys((*map(outlook.scale.nearest, found), *([] if at is None else [at])), 1.0)


def _weights(prior: Mapping[float, float]) -> dict[float, float]:
    """The values in order, with weights of at most 1, so that no sum of them overflows."""
    numbers = [one for pair in prior.items() for one in pair]
    fine = all(isinstance(one, Real) and not isinstance(one, bool) and math.isfinite(one) for one in numbers)
    if len(prior) < 2 or not fine or min(prior.values()) < 0 or not max(prior.values()) > 0:
        raise UsageError("prior: must have two or more values, each with a weight of at least 0, and one above 0.")
    most = float(max(prior.values()))
    return {float(value): float(prior[value]) / most for value in sorted(prior)}


def _true(outlook: Outlook, weights: Mapping[float, float], at: float | None) -> float:
    """The value that is true: one that is held possible, and that the promise is about."""
    possible = [value for value, weight in weights.items() if weight > 0 and outlook.scale.holds(value)]
    ends = outlook.scale.ends
    where = "that the secret can have" if ends is None else f"that the secret can have, from {_ends(ends)}"
    if not possible:
        raise UsageError(f"prior: must weigh a value {where}.")
    if at is None:
        return min(possible, key=lambda value: abs(value - (possible[0] + possible[-1]) / 2))
    if float(at) not in possible:
        raise UsageError(f"at: must be a value {where}, and that the prior weighs. Got {at:g}.")
    return float(at)


def _normalised(weights: Sequence[float]) -> tuple[float, ...]:
    total = math.fsum(weights)
    return tuple(weight / total for weight in weights) if total > 0 else ()
