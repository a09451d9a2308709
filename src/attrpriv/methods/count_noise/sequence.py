"""`laplace` with other releases before or after: the least noise on a count that everything drawn so far allows.

    loss of everything drawn <= (s + spend (1 - s)) epsilon,     s = the share that was spent before, under this policy

The loss is that of `laplace_sequence.proof`; what was drawn before, with its laws, is `laplace_sequence.standing`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from attrpriv.cases.lattice import Counted, counted
from attrpriv.errors import UsageError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.tally_plan import row_scale
from attrpriv.methods.count_noise.plan import count_plan
from attrpriv.methods.laplace_sequence.proof import CountDraw, CountSequenceEvidence, rate_of
from attrpriv.methods.laplace_sequence.standing import Standing, sequence_checks
from attrpriv.numerics.calibration.direct import least_scale
from attrpriv.numerics.rounding import SUMMED_DOWN
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal

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
    reason = None
    try:
        return least_scale(keeps, start)
    except UsageError as error:
        reason = str(error)
    raise Refusal(Cause.BUDGET, reason)


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
