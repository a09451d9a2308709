"""`laplace`: exactly calibrated whole-number Laplace noise on counts, sums and histograms; no noise where none is needed.

Pure epsilon: the least scale whose exact loss is at most epsilon, in closed form (docs/theory/exact-calibration.md). With
delta above 0, for a count or a sum, the least scale at which the laws of the noisy answers are (epsilon, delta)-close, which is
never more. Scale 0 is the exact answer. Secrets that are sets of counts are hidden by the law of their mixture, where the prior
is stated and that needs less noise (`count_cases`).
"""

from __future__ import annotations

from attrpriv.cases.lattice import Counted, counted
from attrpriv.errors import UsageError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.tally_plan import row_scale
from attrpriv.methods.count_noise.plan import checks, count_plan, is_least, plan_count, set_evidence, why_pointwise
from attrpriv.methods.count_noise.proof import CountCasesEvidence, CountDirectEvidence, CountLaplaceEvidence
from attrpriv.methods.count_noise.row_average import averages_an_unnamed_column, plan_row_average
from attrpriv.numerics.calibration.direct import least_direct_scale
from attrpriv.numerics.calibration.laplace import laplace_loss, least_histogram_scale, least_laplace_scale
from attrpriv.numerics.rounding import SOLVED_DOWN
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, refusing

_REFERENCE = "docs/theory/exact-calibration.md"


def plan(problem: Problem) -> Plan:
    """The least Laplace noise on whole numbers; after other releases, or before more of them, for all of them together.

    Of a bounded column that the assumption does not name: an average with noise for one row.
    """
    try:
        found = counted(problem)
    except Refusal:
        if averages_an_unnamed_column(problem):
            return plan_row_average(problem)
        raise
    if not problem.alone:
        return plan_count(problem)
    scale = max(row_scale(found), _pure_scale(found))
    evidence: CountLaplaceEvidence | CountDirectEvidence | CountCasesEvidence = CountLaplaceEvidence(
        checks=checks(found), scale=scale, histogram=found.tally.histogram
    )
    sets = set_evidence(found, "laplace", row_scale(found), scale)
    if sets is not None:
        scale, evidence = sets.scale, sets
    elif problem.delta > 0 and not found.tally.histogram and scale > row_scale(found):
        less = _direct_scale(found, scale)
        if less is not None and max(less, row_scale(found)) < scale:
            scale = max(less, row_scale(found))
            evidence = CountDirectEvidence(
                checks=checks(found), noise="laplace" if scale else "none", scale=scale, known=found.known
            )
    return count_plan(
        found,
        "laplace",
        "laplace" if scale else "none",
        scale,
        evidence,
        _REFERENCE,
        exact=_exact(found, evidence),
        notes=why_pointwise(found),
    )


def _pure_scale(found: Counted) -> float:
    with refusing(UsageError, to=lambda error: Refusal(Cause.NUMBERS, str(error))):
        if found.tally.histogram:
            return max(
                least_histogram_scale([(c.records.member, c.records.rest)], c.pairs.apart, found.problem.epsilon)
                for c in found.cases
            )
        return max(least_laplace_scale([c.records], c.pairs.apart, found.problem.epsilon) for c in found.cases)


def _direct_scale(found: Counted, most: float) -> float | None:
    """The least scale with delta; None where the laws are not covered (then the pure one stands)."""
    scale = 0.0
    for case in found.cases:
        try:
            scale = max(
                scale,
                least_direct_scale(
                    [case.records], case.pairs, "laplace", found.problem.epsilon, found.problem.delta, known=found.known
                ),
            )
        except UsageError:
            return None
        if scale >= most:
            return None
    return scale


def _exact(found: Counted, evidence: CountLaplaceEvidence | CountDirectEvidence | CountCasesEvidence) -> bool:
    """Whether no smaller Laplace noise would do, as far as it is known."""
    if isinstance(evidence, CountCasesEvidence):
        return is_least(evidence, found.problem.epsilon, found.problem.delta)
    if isinstance(evidence, CountDirectEvidence) or found.tally.histogram or not evidence.scale:
        return True
    losses = [laplace_loss(case.records, case.pairs.apart, evidence.scale) for case in found.cases]
    return max(loss.lower for loss in losses) >= max(loss.upper for loss in losses) * SOLVED_DOWN
