"""`gaussian` for counts: the least discrete Gaussian noise that makes the laws of the noisy answers (epsilon, delta)-close."""

from __future__ import annotations

from typing import Literal

from attrpriv.calibration.direct import least_direct_scale
from attrpriv.errors import UsageError
from attrpriv.framework import Problem
from attrpriv.guarantee import CountDirectEvidence
from attrpriv.mechanisms.count_plan import checks, count_plan
from attrpriv.mechanisms.counted import Counted, counted
from attrpriv.mechanisms.plan import Plan
from attrpriv.mechanisms.refusal import Refusal


def plan(problem: Problem) -> Plan:
    """Direct calibration of whole-number Gaussian noise."""
    found = counted(problem)
    if found.tally.histogram:
        raise Refusal("is for one number; a histogram is covered by laplace.")
    if problem.delta == 0:
        raise Refusal("delta: a Gaussian mechanism needs delta above 0. Got 0. Set delta, say to 1e-6.", usage=True)
    scale = _scale(found)
    noise: Literal["gaussian", "none"] = "gaussian" if scale else "none"
    evidence = CountDirectEvidence(checks=checks(found), noise=noise, scale=scale, known=found.known)
    return count_plan(found, "gaussian", noise, scale, evidence, "docs/theory/exact-calibration.md")


def _scale(found: Counted) -> float:
    problem, reason = found.problem, None
    try:
        return max(
            least_direct_scale([c.records], c.pairs, "gaussian", problem.epsilon, problem.delta, known=found.known)
            for c in found.cases
        )
    except UsageError as error:
        reason = str(error)
    raise Refusal(reason)
