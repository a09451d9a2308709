"""Releases of other libraries: which rule covers them, what b they may spend, and the certificate of one that is recorded.

The rule is that of the assumption's shape (`methods.table.OUTSIDE`). What must never change: what no rule covers is refused,
and a certificate is made for what was released so far and this release together.
"""

from __future__ import annotations

from attrpriv.cases.budget import fit_charge, fit_refusal
from attrpriv.errors import AttrprivError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.evidence import LaplaceEvidence, LaplaceTerm
from attrpriv.methods.base.outside import OutsideRelease, RowCurve, require_what, shown_b
from attrpriv.methods.choice.ranking import refused_by
from attrpriv.methods.choice.warnings import require_open
from attrpriv.methods.table import OUTSIDE, load
from attrpriv.numerics.calibration.row_bridge import MOST_B, require_b
from attrpriv.numerics.rounding import COMPUTED_UP, SUMMED_DOWN
from attrpriv.numerics.search import largest_private
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, refusal_of

_NAME = "bridge"


def curve_of(problem: Problem, reads: str | None = None) -> RowCurve:
    """What everything released loses, once an algorithm has spent b for one row on top; an error where no rule says it."""
    refusal = None
    try:
        require_open(problem)
        return _curve(problem, reads)
    except Refusal as caught:
        refusal = caught
    except AttrprivError as error:
        refusal = refusal_of(error, usage=True)
    raise refused_by(_NAME, refusal)


def _curve(problem: Problem, reads: str | None) -> RowCurve:
    if problem.shape not in OUTSIDE:
        raise Refusal(
            Cause.ASSUMPTION,
            "needs a counts assumption, under which a count or a share is hidden, or a chain, under which entries are: under "
            "others, no rule says what an algorithm that is private for one row tells about the secret.",
            needs=("counts", "chain"),
        )
    made: RowCurve = load(OUTSIDE[problem.shape])(problem, reads)
    return made


def largest_b(problem: Problem, curve: RowCurve) -> float:
    """The most that an algorithm may spend for one row, from below; an error where nothing is left."""
    used = curve.loss(0.0)
    most = min(problem.epsilon, used + problem.spend * (problem.epsilon - used)) * SUMMED_DOWN
    persons = MOST_B if problem.individuals is None else problem.individuals * SUMMED_DOWN
    if not used < most:
        raise refused_by(_NAME, Refusal(Cause.EARLIER, "nothing is left of the budget."))
    return largest_private(lambda b: b <= min(MOST_B, persons) and curve.loss(b) <= most)


def plan_outside(problem: Problem, b: float, what: str, reads: str | None = None) -> OutsideRelease:
    """The record of a release that another library makes, proved together with everything so far."""
    require_b(b)
    said, curve = require_what(what), curve_of(problem, reads)
    refusal = None
    try:
        return _planned(problem, float(b), said, reads, curve)
    except Refusal as caught:
        refusal = caught
    raise refused_by(_NAME, refusal)


def _planned(problem: Problem, b: float, what: str, reads: str | None, curve: RowCurve) -> OutsideRelease:
    if not b > 0:
        raise Refusal(Cause.MISTAKE, "b: must be above 0; what reads no row needs no record.", needs="a b above 0")
    loss = curve.loss(b)
    if not loss <= problem.epsilon:
        raise Refusal(
            Cause.BUDGET,
            f"b {b:.6g} for one row would make everything released lose {loss:.6g}, above epsilon {problem.epsilon:g}. At most "
            f"{shown_b(largest_b(problem, curve))} is left.",
            needs="a smaller b",
        )
    charge = fit_charge(problem.theta, problem.delta)
    reason = fit_refusal(problem.theta, problem.delta)
    if reason is not None and not problem.accept_fit_risk:
        raise Refusal(Cause.BUDGET, reason, needs=("a fit with that confidence", "accept_fit_risk"), usage=True)
    certificate = Certificate(
        epsilon=problem.epsilon,
        delta=charge.promised,
        fit_delta=charge.risk,
        evidence=curve.proof(b, what),
        individuals=_persons(problem, b, what),
        assumes=(
            f"what is released ({what}) is {b:.6g}-differentially private where one row is replaced, with delta 0: assumed",
            f"it reads {curve.whole}",
            *curve.assumes,
            *charge.lines,
        ),
    )
    certificate.verify()
    return OutsideRelease(
        what=what,
        b=b,
        reads=reads,
        n=problem.n,
        epsilon=certificate.epsilon,
        delta=certificate.delta,
        policy_digest=problem.policy_digest,
        certificate=certificate,
    )


def _persons(problem: Problem, b: float, what: str) -> LaplaceEvidence | None:
    """Single persons lose b by it; they may lose no more than is left for them."""
    if problem.individuals is None:
        return None
    spent = b * COMPUTED_UP * COMPUTED_UP
    if spent > problem.individuals:
        raise Refusal(
            Cause.BUDGET,
            f"individuals: single persons were promised more than b {b:.6g}; {shown_b(problem.individuals)} is left for them.",
            needs="a smaller b",
        )
    term = LaplaceTerm(column=what, sensitivity=b, scale=1.0, granularity=5e-324)
    return LaplaceEvidence(epsilon=spent, terms=(term,))
