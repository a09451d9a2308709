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

from attrpriv.errors import AttrprivError, CertificateError
from attrpriv.framework.model import FrozenModel
from attrpriv.guarantee import ChainEvidence, CountSequenceEvidence, GaussianEvidence, QuiltEvidence, SequenceEvidence
from attrpriv.mechanisms import Plan
from attrpriv.mechanisms import plan as plan_problem
from attrpriv.mechanisms.registry import CONTINUES
from attrpriv.policy import Policy

# Two machines may differ in the last digits of a plan.
_CLOSE = 1e-6


def require_asked_for(recorded: Plan, policy: Policy, types: Mapping[str, str], earlier: FrozenModel | None) -> bool:
    """Whether the release was compared; `CertificateError` where its policy asks for more than was drawn."""
    if recorded.mechanism not in CONTINUES or recorded.subset is not None:
        return False
    again = _planned_again(recorded, policy, types, earlier)
    if again is None:
        raise CertificateError("must be what its policy plans for these queries. Got something else.")
    drawn = _drawn(again.certificate.evidence, recorded.certificate.evidence)
    if drawn is None:
        return False
    enough = drawn.delta(recorded.epsilon) <= recorded.delta * (1 + _CLOSE)
    scales = [(recorded.noise_of(query).scale, again.noise_of(query).scale) for query in recorded.queries]
    # The worst case that a certificate names was found for its own noise; with hardly less it is no other.
    if not enough or (isinstance(drawn, GaussianEvidence) and any(mine < asked * (1 - _CLOSE) for mine, asked in scales)):
        raise CertificateError("must have the noise that its policy asks for. Got less.")
    return True


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
    """The new evidence with what was drawn in its place; None for a kind that is not compared."""
    if type(again) is not type(recorded):
        raise CertificateError("must be proved as its policy is. Got a proof of another kind.")
    if isinstance(recorded, GaussianEvidence):
        return again.model_copy(update={"independent": recorded.independent, "factor": recorded.factor})
    if isinstance(recorded, SequenceEvidence):
        return again.model_copy(update={"steps": recorded.steps})
    if isinstance(recorded, QuiltEvidence):
        return again.model_copy(update={"terms": _scaled(again.terms, recorded.terms)})
    if isinstance(recorded, ChainEvidence):
        return again.model_copy(update={"scale": recorded.scale})
    if isinstance(recorded, CountSequenceEvidence):
        now = again.now if recorded.now is None else again.now and again.now.model_copy(update={"rate": recorded.now.rate})
        return again.model_copy(update={"now": now, "terms": _scaled(again.terms, recorded.terms)})
    return None


def _scaled(again: Any, recorded: Any) -> Any:
    if len(again) != len(recorded):
        raise CertificateError("must be about what its policy plans. Got something else.")
    return tuple(new.model_copy(update={"scale": old.scale}) for new, old in zip(again, recorded, strict=True))
