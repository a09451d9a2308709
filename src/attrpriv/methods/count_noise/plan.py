"""A plan of noise on a tally under a counts assumption: what laplace, gaussian and wasserstein have in common."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Literal

from attrpriv.assumptions.probabilities import Pair, kept
from attrpriv.cases.lattice import Counted, count_assumptions, counted
from attrpriv.cases.tally_layout import members_of
from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.base.certificate import AnyEvidence
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.tally import TallyNoise
from attrpriv.methods.base.tally_plan import row_scale, tally_plan
from attrpriv.methods.count_noise.proof import CountCasesCheck, CountCasesEvidence, CountCheck
from attrpriv.methods.laplace_sequence.proof import CountDraw, CountSequenceEvidence, rate_of
from attrpriv.methods.laplace_sequence.standing import Standing, sequence_checks
from attrpriv.numerics.calibration.count_cases import CountCases, case_loss_lower, least_case_scale
from attrpriv.numerics.calibration.direct import Noise, direct_delta, least_scale
from attrpriv.numerics.laws.records import Number, exactly
from attrpriv.numerics.rounding import SUMMED_DOWN
from attrpriv.problem.counted import case_runs
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, refusing


def checks(found: Counted) -> tuple[CountCheck, ...]:
    """The cases as a certificate stores them."""
    return tuple(
        CountCheck(secret=case.secret, theta=case.theta, records=case.records, pairs=case.pairs) for case in found.cases
    )


def count_plan(
    found: Counted,
    mechanism: str,
    noise: TallyNoise,
    scale: float,
    evidence: AnyEvidence,
    reference: str,
    *,
    exact: bool = True,
    gap: float = 0.0,
    notes: Sequence[str] = (),
) -> Plan:
    """The plan of additive noise on a tally under a counts assumption, certified."""
    assumes = (*count_assumptions(found), *set_assumptions(evidence))
    said = (*_notes(found, evidence), *notes)
    return tally_plan(found, mechanism, noise, scale, evidence, reference, assumes=assumes, notes=said, exact=exact, gap=gap)


def _notes(found: Counted, evidence: AnyEvidence) -> tuple[str, ...]:
    notes = []
    column = found.query.column
    if column is not None and column in found.problem.bins:
        notes.append(f"{column}: each entry counts as the value of its bin; the answer is about these, not about the entries.")
    if any(case.population for case in found.cases):
        notes.append("a share of the population is hidden whatever share this table has.")
    if isinstance(evidence, CountCasesEvidence):
        notes.append("sets of values are hidden by the exact law of the mixture, under the stated prior.")
    elif any(secret.cases is not None for secret in found.problem.secrets):
        notes.append("sets of values are hidden point by point.")
    return tuple(notes)


# ----------------------------------------------------------------------------------------------------------------------------
# `laplace` with other releases before or after: the least noise on a count that everything drawn so far allows.
#
#     loss of everything drawn <= (s + spend (1 - s)) epsilon,     s = the share that was spent before, under this policy
#
# The loss is that of `laplace_sequence.proof`; what was drawn before, with its laws, is `laplace_sequence.standing`.


_REFERENCE = "docs/theory/count-sequences.md"
# Noise of a smaller scale is 0 in all but one of e^1000000 draws.
_LEAST_SCALE = 1e-6


def plan_count(problem: Problem) -> Plan:
    """The least Laplace noise on a tally that the whole sequence allows."""
    found, standing = counted(problem), Standing.of(problem)
    unit = _draw(found)
    laws = {**standing.laws, unit.identity: found}
    checks = sequence_checks(problem, standing.past.counted(unit), laws)
    evidence = CountSequenceEvidence(past=standing.past, now=unit, checks=checks)
    most, room = standing.most * problem.epsilon * SUMMED_DOWN, standing.room(problem)

    def at(scale: float) -> CountSequenceEvidence:
        return evidence.model_copy(update={"now": unit.model_copy(update={"rate": rate_of(scale)})})

    @cache
    def keeps(scale: float) -> bool:
        made = at(scale)
        wide = most if room is None else made.loss(going_on=True)  # a bound that holds anyway: mostly it is enough
        if not (scale >= _LEAST_SCALE and (room is None or wide <= room)):
            return False
        return (room is not None and wide <= most) or made.loss() <= most

    # Where nothing is known of a row, it pays the width over the scale.
    left = (standing.most - standing.spent) * problem.epsilon
    start = max(check.apart for check in checks) * found.tally.width / left
    scale = max(row_scale(found), _least(keeps, start))
    return _planned(found, at(scale), scale)


def _least(keeps: Callable[[float], bool], start: float) -> float:
    with refusing(UsageError, to=lambda error: Refusal(Cause.BUDGET, str(error))):
        return least_scale(keeps, start)


def _planned(found: Counted, evidence: CountSequenceEvidence, scale: float) -> Plan:
    drawn = evidence.after()
    alone = len(drawn.draws) == 1 and not drawn.free and found.problem.spend == 1
    note = f"all answers so far together lose {evidence.loss():.4g} of epsilon {found.problem.epsilon:g}."
    gap = 0.0 if alone else scale
    return count_plan(found, "laplace", "laplace", scale, evidence, _REFERENCE, exact=alone, gap=gap, notes=(note,))


def _draw(found: Counted) -> CountDraw:
    """The statistic with noise of scale 1."""
    tally = found.tally
    return CountDraw(
        statistic=found.query.text, identity=tally.identity, histogram=tally.histogram, width=tally.width, rate=rate_of(1.0)
    )


# ----------------------------------------------------------------------------------------------------------------------------
# Sets of counts, hidden by the exact law of the mixture where the policy states enough, else point by point.
#
# Given that the count lies in a set, the answer is a mixture over the set's counts, weighted by the prior. That usually needs
# much less noise than hiding every two counts, but then the prior is part of the promise. It is used only where it saves noise,
# and only if every secret is of this kind: a secret with `between` is hidden point by point, and its noise is there anyway.


# The prior is not put into the promise to save less of the noise than this.
_WORTH = 1e-3


def set_evidence(found: Counted, noise: Literal["laplace", "gaussian"], least: float, most: float) -> CountCasesEvidence | None:
    """The evidence of noise of scale `least` or more that hides the sets; None where it takes less than `most` for nothing.

    That is so where the same noise hides the counts point by point, whatever the prior.
    """
    try:
        checks = _checks(found)
        scale = max(least, *(_scale(check.sets, noise, found) for check in checks))
    except (Refusal, UsageError, RefusedError):
        return None
    if not scale < most * (1 - _WORTH) or _hides_points(found, noise, scale * (1 + _WORTH)):
        return None
    return CountCasesEvidence(checks=checks, noise=noise if scale else "none", scale=scale)


def _hides_points(found: Counted, noise: Literal["laplace", "gaussian"], scale: float) -> bool:
    """Whether this noise makes every two counts look alike, at the problem's delta."""
    epsilon, delta = found.problem.epsilon, found.problem.delta
    drawn: Noise = noise if scale else "none"
    try:
        return delta > 0 and all(
            direct_delta(case.records, case.pairs, drawn, scale, epsilon, enough=delta).upper <= delta for case in found.cases
        )
    except UsageError:
        return False


def why_pointwise(found: Counted) -> tuple[str, ...]:
    """Why sets are hidden point by point, where something about the policy is the reason."""
    if all(secret.cases is None for secret in found.problem.secrets):
        return ()
    try:
        _checks(found)
    except Refusal as refusal:
        return (f"the exact law of sets is not used: {refusal.reason}",)
    return ()


def set_assumptions(evidence: object) -> tuple[str, ...]:
    """What the law of the mixture rests on, beyond what every count does."""
    if not isinstance(evidence, CountCasesEvidence):
        return ()
    shares = dict.fromkeys(f"{check.sets.share:.6g} for {check.secret}" for check in evidence.checks)
    return (f"each row is in the secret's category independently, with exactly the prior share ({', '.join(shares)}): assumed",)


def is_least(evidence: CountCasesEvidence, epsilon: float, delta: float) -> bool:
    """Whether no smaller noise would do, rather than floats being too coarse for less."""
    if delta > 0 or not evidence.scale:
        return True
    return any(case_loss_lower(check.sets, evidence.scale * (1 - _WORTH)) > epsilon for check in evidence.checks)


def _scale(sets: CountCases, noise: Literal["laplace", "gaussian"], found: Counted) -> float:
    """With delta where floats are accurate enough for it; Laplace noise can do without."""
    epsilon, delta = found.problem.epsilon, found.problem.delta
    try:
        return least_case_scale(sets, noise, epsilon, delta)
    except UsageError:
        if noise == "gaussian" or delta == 0:
            raise
    return least_case_scale(sets, noise, epsilon, 0.0)


def _checks(found: Counted) -> tuple[CountCasesCheck, ...]:
    """The sets of every secret under every member of Theta, with the prior share; a refusal where one is not stated."""
    problem = found.problem
    if any(secret.cases is None for secret in problem.secrets):
        raise Refusal(Cause.SECRET, "it is for problems whose secrets all have cases.")
    if any(case.population for case in found.cases) or found.tally.histogram:
        raise Refusal(Cause.STATISTIC, "it is for the count or share of this table, and for answers of one number.")
    if found.known:
        raise Refusal(Cause.PERSONS, "known rows move the law of the count.", needs="known_rows 0")
    checks = []
    for case, (counts, secret) in zip(found.cases, itertools.product(found.theta, problem.secrets), strict=True):
        if not case.records.exact:
            raise Refusal(Cause.NUMBERS, "it needs probabilities that are numbers, not intervals.", needs="exact probabilities")
        share = _share(counts.shares(), members_of(problem, counts, secret), counts.categories)
        sets = CountCases(problem.n, case_runs(secret, problem.n), share, case.records)
        checks.append(CountCasesCheck(secret=case.secret, theta=case.theta, sets=sets))
    return tuple(checks)


def _share(shares: Mapping[str, Pair], members: frozenset[str], categories: tuple[str, ...]) -> Number:
    """The prior share of the secret's categories, where it is a single number."""
    known = {name: exactly(pair[0]) for name, pair in shares.items() if pair[0] == pair[1]}
    if not all(name in known for name in members):
        raise Refusal(
            Cause.NUMBERS,
            "it needs a prior share of the secret's categories that is a number.",
            needs="a prior that is a number",
        )
    inside = sum((known[name] for name in members), Fraction(0))
    # Shares may miss the sum 1 by the slack that decimal fractions have.
    share = kept(inside / sum(known.values()) if len(known) == len(categories) and any(known.values()) else inside)
    if share is None or not 1e-290 <= share < 1:
        raise Refusal(Cause.NUMBERS, "it needs a prior share above 0 and below 1.", needs="a prior above 0 and below 1")
    return share
