"""Whether a recorded release is what its stated policy asks for: it is planned once more, from public facts alone.

A certificate proves what follows from its own numbers. That these are the policy's (its secrets, pairs and laws) shows only
when the policy is planned again, for the recorded queries, on top of the recorded past, with the recorded share. Then what was
really drawn is put into the new certificate, and that must hold. Releases that may follow one another are compared; others are
found by searches and programs, which need not end alike elsewhere.

What must never change: less noise than the policy asks for is an error. More is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrpriv.assumptions.fit_risk import fit_charge
from attrpriv.errors import AttrprivError, CertificateError
from attrpriv.framework.model import FrozenModel
from attrpriv.guarantee import (
    ChainEvidence,
    CountSequenceEvidence,
    GaussianEvidence,
    QuiltEvidence,
    SampledEvidence,
    SequenceEvidence,
)
from attrpriv.mechanisms import Plan
from attrpriv.mechanisms import plan as plan_problem
from attrpriv.policy import Policy

_COMPARED = (GaussianEvidence, SequenceEvidence, QuiltEvidence, ChainEvidence, CountSequenceEvidence, SampledEvidence)
# Two machines may differ in the last digits of a plan.
_CLOSE = 1e-6


def require_asked_for(recorded: Plan, policy: Policy, types: Mapping[str, str], earlier: FrozenModel | None) -> bool:
    """Whether the release was compared; `CertificateError` where its policy asks for more than was drawn."""
    if not recorded.delta <= fit_charge(policy.assume, policy.delta).promised * (1 + _CLOSE):
        raise CertificateError("must promise what its policy asks for. Got less.")
    if not isinstance(recorded.certificate.evidence, _COMPARED):
        return False
    again = _planned_again(recorded, policy, types, earlier)
    if again is None:
        raise CertificateError("must be what its policy plans for these queries. Got something else.")
    if _which_rows(recorded) != _which_rows(again):
        raise CertificateError("must be over the rows that its policy says, as many as it says. Got others.")
    if _kind(recorded) != _kind(again) or _simulated(recorded) != _simulated(again):
        raise CertificateError("must be the kind of promise that its policy plans. Got another.")
    drawn = _drawn(again.certificate.evidence, recorded.certificate.evidence)
    budget = (recorded.epsilon, recorded.delta)
    enough = drawn.delta(recorded.epsilon) <= recorded.delta * (1 + _CLOSE)
    told = recorded.certificate.left(*budget) <= again.certificate.model_copy(update={"evidence": drawn}).left(*budget) + _CLOSE
    asked = [(query, group) for query in recorded.queries for group in recorded.group_names(query)]
    scales = [(recorded.noise_of(*one).scale, again.noise_of(*one).scale) for one in asked]
    # The worst case that a certificate names was found for its own noise; with hardly less it is no other.
    less = isinstance(drawn, GaussianEvidence) and any(mine < asked * (1 - _CLOSE) for mine, asked in scales)
    if less or not (enough and told):
        raise CertificateError("must have the noise that its policy asks for, and say what it costs. Got less.")
    return True


def _kind(plan: Plan) -> tuple[Any, ...]:
    return plan.mechanism, plan.guarantee.kind, plan.guarantee.confidence


def _simulated(plan: Plan) -> Any:
    """What was simulated, and how often; what came out may differ a little with another version of NumPy."""
    told = plan.certificate.evidence
    if not isinstance(told, SampledEvidence):
        return None
    cases = [(check.secret, check.theta, check.laws, len(check.values)) for check in told.checks]
    return told.columns, told.runs, told.confidence, told.seed, set(told.spacing), cases


def _which_rows(plan: Plan) -> tuple[Any, ...]:
    parts = [(part.column, part.where, part.rows, part.fill, part.clip, dict(part.terms)) for part in plan.columns]
    return dict(plan.groups), plan.unions, plan.statistic, parts


def _planned_again(recorded: Plan, policy: Policy, types: Mapping[str, str], earlier: FrozenModel | None) -> Plan | None:
    told = recorded.certificate.individuals
    changes: dict[str, Any] = {"epsilon": recorded.epsilon, "spend": recorded.spend, "earlier": earlier}
    changes["individuals"] = None if told is None else told.epsilon
    problem = policy.problem(recorded.queries, recorded.n, types).model_copy(update=changes)
    try:
        return plan_problem(problem, recorded.mechanism)
    except AttrprivError:
        return None


def _drawn(again: Any, recorded: Any) -> Any:
    """The new evidence with what was drawn in its place."""
    if type(again) is not type(recorded):
        raise CertificateError("must be proved as its policy is. Got a proof of another kind.")
    if isinstance(recorded, GaussianEvidence):
        return again.model_copy(update={"independent": recorded.independent, "factor": recorded.factor})
    if isinstance(recorded, SequenceEvidence):  # what was taken back follows the recorded slopes, and may not suffice
        return again.model_copy(update={"steps": _steps(again.steps, recorded.steps), "slopes": recorded.slopes})
    if isinstance(recorded, QuiltEvidence):
        return again.model_copy(update={"terms": _scaled(again.terms, recorded.terms)})
    if isinstance(recorded, ChainEvidence | SampledEvidence):  # of a simulation, made again with its public seed
        return again.model_copy(update={"scale": recorded.scale})
    now = again.now if recorded.now is None else again.now and again.now.model_copy(update={"rate": recorded.now.rate})
    return again.model_copy(update={"now": now, "terms": _scaled(again.terms, recorded.terms)})


def _steps(again: Any, recorded: Any) -> Any:
    if [step.column for step in again] != [step.column for step in recorded]:
        raise CertificateError("must be about what its policy plans. Got something else.")
    drawn = [{"noise": old.noise, "reach": old.reach} for old in recorded]
    return tuple(new.model_copy(update=one) for new, one in zip(again, drawn, strict=True))


def _scaled(again: Any, recorded: Any) -> Any:
    if len(again) != len(recorded):
        raise CertificateError("must be about what its policy plans. Got something else.")
    return tuple(new.model_copy(update={"scale": old.scale}) for new, old in zip(again, recorded, strict=True))
