"""Promises that hide little: a matter of degree, so that a plan carries a warning, and is made.

| what is weak | told where |
|---|---|
| epsilon | it is above 10: likelihoods may differ by a factor of 20,000 |
| delta | it is above 1/n |
| a range, or sets of values | the assumption gives the range, or all sets but one, a chance below 1% |
| the widest pair (`within`, a narrow range) | it is below a hundredth of what the secret varies by under the assumption |

Chances are the largest that a member of Theta gives, so that a wide tolerance never leads to a warning. What hides nothing at
all is refused: here where it is the assumption that leaves a secret one value, else in `problem.hidden`. What must never
change: these are functions of the problem alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.groups import Groups
from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.assumptions.probabilities import Pair as Stated
from attrpriv.cases.tally_layout import members_of as counted_members
from attrpriv.cases.unequal import members_of as group_members
from attrpriv.errors import AttrprivError
from attrpriv.methods.base.accuracy import WEAK
from attrpriv.numerics.laws.binomial import binomial_above, binomial_below
from attrpriv.numerics.networks.inference import joint_law
from attrpriv.problem.assumption import Assumption
from attrpriv.problem.counted import case_runs, count_pairs, share_range
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.linear import Linear

Pair = tuple[float, float]

_MOST_EPSILON = 10.0
_RARE, _NONE = 0.01, 1e-99
_SMALL = 0.01


def weak_lines(problem: Problem, epsilon: float, delta: float) -> tuple[str, ...]:
    """What somebody who approves a release under (epsilon, delta) must not miss."""
    lines = []
    if epsilon > _MOST_EPSILON:
        lines.append(f"epsilon {epsilon:g} lets likelihoods differ by a factor of {math.exp(epsilon):.1e}. Take one near 1.")
    if delta > 1 / problem.n:
        often = f"in up to one of {1 / delta:,.0f} tables anything may show"
        lines.append(f"delta {delta:g} is above 1/n, {1 / problem.n:.2g}: {often}. Take one far below 1/n.")
    for secret in problem.secrets:
        lines += [line for line in (_improbable(problem, secret), _narrow(problem, secret)) if line is not None]
    return tuple(f"{WEAK} {line}" for line in lines)


def require_open(problem: Problem) -> None:
    """A refusal where the assumption itself leaves a secret one value: then there is nothing to hide."""
    for secret in problem.secrets:
        if problem.theta and all(_closed(problem, member, secret) for member in problem.theta):
            reason = f"{secret.text}: has a single possible value under the assumption; there is nothing to hide."
            raise Refusal(Cause.PROMISE, reason)


def _closed(problem: Problem, member: Assumption, secret: Secret) -> bool:
    if isinstance(member, ParameterNetwork) and not member.tolerance:
        chances = _state_chances(member, secret)
        return chances is not None and sum(chance > 0 for chance in chances) < 2
    if isinstance(member, Groups) and secret.parameter is None:
        return _share(problem, member, secret) in ((0.0, 0.0), (1.0, 1.0))
    return False  # counts and chains look for themselves


def _improbable(problem: Problem, secret: Secret) -> str | None:
    chances = [_chances(problem, member, secret) for member in problem.theta]
    known = [each for each in chances if each is not None]
    if not known or len(known) < len(chances) or len({len(each) for each in known}) > 1:
        return None
    most = sorted(max(each) for each in zip(*known, strict=True))
    chance = most[0] if len(most) == 1 else most[-2]
    if chance >= _RARE:
        return None
    told = "its range" if len(most) == 1 else "all but one of the values that must look alike"
    likely = "no chance" if chance < _NONE else f"a chance of {chance:.1g} at most"
    return f"{secret.text}: the assumption gives {told} {likely}; there is hardly anything to hide. Correct one of the two."


def _narrow(problem: Problem, secret: Secret) -> str | None:
    """Under every member, pairs are close against what the secret varies by; of a population, what its tables vary by."""
    if secret.parameter is not None and secret.composition is not None:
        spreads = [_table_spread(problem, secret)]
    else:
        spreads = [_spread(problem, member, secret) for member in problem.theta]
    known = [spread for spread in spreads if spread is not None]
    if secret.cases is not None or not known or len(known) < len(spreads) or not secret.gap < _SMALL * min(known):
        return None
    return (
        f"{secret.text}: only values at most {secret.gap:g} apart must look alike, below a hundredth of what it varies by, "
        f"{min(known):.3g}. Of others nothing is promised."
    )


def _chances(problem: Problem, member: Assumption, secret: Secret) -> list[float] | None:
    """Of the range, or of each set or value; None where the assumption does not say."""
    with suppress(AttrprivError, Refusal):
        if isinstance(member, ParameterNetwork):
            return _state_chances(member, secret)
        if isinstance(member, Gaussian | Hierarchy):
            return _normal_chances(problem, member, secret)
        share = _share(problem, member, secret)
        if share is None or secret.entries is not None:
            return None
        if secret.parameter is not None:
            low, high = share_range(secret)
            return [float(share[0] <= high and low <= share[1])]
        if secret.cases is not None:
            return [sum(_count_chance(problem.n, share, *run) for run in runs) for runs in case_runs(secret, problem.n)]
        pairs = count_pairs(secret, problem.n)
        return [_count_chance(problem.n, share, pairs.low, pairs.high)]
    return None


def _spread(problem: Problem, member: Assumption, secret: Secret) -> float | None:
    """A standard deviation, in the secret's own unit; from below."""
    with suppress(AttrprivError, Refusal):
        if isinstance(member, Gaussian | Hierarchy):
            laws = _laws(problem, member, secret)
            return None if laws is None else min((law.sds[0] for law in laws), default=None)
        share = _share(problem, member, secret)
        if share is None or secret.composition is None:
            return None
        rows = min(math.sqrt(problem.n * p * (1 - p)) for p in share)
        return rows if secret.composition.kind == "count" else rows / problem.n
    return None


def _table_spread(problem: Problem, secret: Secret) -> float | None:
    """How far a table's share is from the population's."""
    if isinstance(secret.between, Mapping):
        return None
    with suppress(AttrprivError):
        return min(math.sqrt(p * (1 - p) / problem.n) for p in share_range(secret))
    return None


# ------------------------------------------------------------------------------------------------------------- normal laws


@dataclass(frozen=True)
class _Normal:
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


def _laws(problem: Problem, member: Gaussian | Hierarchy, secret: Secret) -> list[_Normal] | None:
    """Of each mean or sum, or of a population's mean; None where the secret is of another kind."""
    if isinstance(member, Hierarchy):
        column = secret.attribute
        if column is None or column not in member.between_sd:
            return None
        centre = (member.mean[column],) * 2 if column in member.mean else None
        sd = max(member.between_sd[column], member.within_sd[column] / math.sqrt(problem.n))
        return [_Normal(centre, (sd, sd))]
    if secret.composition is not None or secret.parameter is not None or secret.entries is not None:
        return None
    if not set(secret.columns) <= set(member.columns):
        return None
    return [_of_form(problem, member, form) for form in secret.forms]


def _of_form(problem: Problem, member: Gaussian, form: Linear) -> _Normal:
    """Of a combination the standard deviation is anything up to the sum of its parts."""
    rows, weights = form.weight(problem.n), dict(form.coefficients)
    most = rows * math.fsum(abs(weight) * member.sd_range(column)[1] for column, weight in weights.items())
    (only, *others) = weights
    least = 0.0 if others else rows * abs(weights[only]) * member.sd_range(only)[0]
    sds = least / math.sqrt(problem.n), most / math.sqrt(problem.n)
    if not set(weights) <= set(member.mean):
        return _Normal(None, sds)
    centre = rows * math.fsum(weight * member.mean[column] for column, weight in weights.items())
    return _Normal((centre - member.tolerance.mean * most, centre + member.tolerance.mean * most), sds)


def _normal_chances(problem: Problem, member: Gaussian | Hierarchy, secret: Secret) -> list[float] | None:
    laws = _laws(problem, member, secret)
    if laws is None:
        return None
    if secret.cases is not None:
        return [sum(laws[0].chance(part.low, part.high) for part in case.parts) for case in secret.case_sets]
    if isinstance(secret.between, Mapping):  # hidden jointly: all of the ranges hold at once
        ranges = [secret.between[form.text] for form in secret.forms]
        return [min(law.chance(*ends) for law, ends in zip(laws, ranges, strict=True))]
    return None if secret.ends is None else [laws[0].chance(*secret.ends)]


# ------------------------------------------------------------------------------------------------------ shares and states


def _share(problem: Problem, member: Assumption, secret: Secret) -> Pair | None:
    """The prior share of the rows that a secret counts; None where none is stated."""
    with suppress(AttrprivError, Refusal):
        if isinstance(member, Counts):
            return _added(member.shares(), counted_members(problem, member, secret), member.categories)
        if isinstance(member, Groups):
            return _added(member.prior or {}, group_members(member, secret), member.categories)
    return None


def _added(prior: Mapping[str, Stated], members: Iterable[str], categories: Sequence[str]) -> Pair | None:
    inside = set(members)
    outside = set(categories) - inside
    if inside <= set(prior):
        low, high = (math.fsum(prior[name][k] for name in inside) for k in (0, 1))
        return min(1.0, low), min(1.0, high)
    if not outside <= set(prior):
        return None
    low, high = (1 - math.fsum(prior[name][k] for name in outside) for k in (1, 0))
    return max(0.0, low), max(0.0, high)


def _count_chance(n: int, share: Pair, low: int, high: int) -> float:
    """P(low <= Bin(n, p) <= high) at the share nearest to the middle, where it is largest or nearly so."""
    p = min(max((low + high) / 2 / n, share[0]), share[1])
    inside = 1 - binomial_below(n, p, low) - binomial_above(n, p, high) + 1e-9  # which rounds tails up
    return min(inside, binomial_above(n, p, low - 1), binomial_below(n, p, high + 1))


def _state_chances(member: ParameterNetwork, secret: Secret) -> list[float] | None:
    """Of each value of a network's parameter."""
    if secret.attribute is None or secret.attribute not in member.network.nodes:
        return None
    with suppress(AttrprivError):  # the network may be too large for it
        weights = joint_law(member.network, (secret.attribute,)).values
        return [float(weight) for weight in weights / weights.sum()]
    return None
