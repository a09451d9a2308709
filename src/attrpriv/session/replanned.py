"""Whether a recorded release is what its stated policy asks for: it is planned once more, from public facts alone.

A certificate proves what follows from its own numbers. That these are the policy's (its secrets, pairs and laws) shows only
when the policy is planned again: for the recorded queries and number of rows, on top of the recorded past, with the recorded
share. The two plans must then be one, in everything but `_WORDS`, and the numbers that programs find (`found_by_program` of
their evidence): a program may end elsewhere on another machine, and its solution is proved by the certificate itself, against
laws that are compared.

What must never change: everything is compared that is not named below, so that what a plan gains is compared too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from attrpriv.errors import AttrprivError, CertificateError
from attrpriv.frozen import FrozenModel
from attrpriv.methods.base.binding import what_is_bound
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan as plan_problem
from attrpriv.policy import Policy

_RATIO = re.compile(r"[0-9]+/[0-9]+")
# Two machines may differ in the last digits of a plan.
_CLOSE = 1e-9
# Probabilities: what they leave of 1 is compared too, for it is all that tells 0.9999999999 from 0.9999999994.
_PROBABILITY = re.compile(r"\.(member|rest|probabilities)\[[0-9]+\]\[[01]\]$")
# Sentences, which another version may put otherwise, and the digest of a plan whose last digits are its own.
_WORDS = frozenset({"bound", "notes", "guarantee.statement", "guarantee.reference", "certificate.assumes"})
# What programs find, and what follows from it. The certificate proves these weights against laws that are compared.
_FOUND = frozenset({"certificate.gap", "errors", "model_error"})
# Noise that a search found, and what follows from it: another version may find a little less. What it hides is proved by the
# certificate, against laws that are compared.
_SEARCHED = ("tally.scale", "certificate.evidence.scale", "errors[", "model_error[")
_NEAR = 1e-2


def require_asked_for(
    recorded: Plan, policy: Policy, types: Mapping[str, str], earlier: FrozenModel | None, *, by_0_1_0: bool = False
) -> None:
    """`CertificateError` names what is not as the policy plans it.

    What 0.1.0 expected of an answer was computed by other definitions: of its plans all that is read or drawn is compared, and
    all that is proved.
    """
    if policy.rows not in (None, recorded.n):
        raise CertificateError(f"n: must be the policy's rows, {policy.rows}. Got {recorded.n}.")
    again = _planned_again(recorded, policy, types, earlier)
    evidence = again.certificate.evidence
    found = {f"certificate.evidence.{name}" for name in evidence.found_by_program}
    free = _WORDS | (_FOUND | found if found else frozenset())
    searched = _SEARCHED if evidence.found_by_search else ()
    made, told = again.to_json(), recorded.to_json()
    if by_0_1_0:
        made, told = what_is_bound(made), what_is_bound(told)
    for different in _different(made, told, free, searched):
        raise CertificateError(different)


def _planned_again(recorded: Plan, policy: Policy, types: Mapping[str, str], earlier: FrozenModel | None) -> Plan:
    problem = policy.problem(recorded.queries, recorded.n, types)
    told = recorded.certificate.individuals
    # How much of the epsilon for single persons a release takes is its own choice, within what is left; not whether.
    rows = problem.individuals if problem.individuals is None or told is None else told.epsilon
    changes = {"epsilon": recorded.epsilon, "spend": recorded.spend, "earlier": earlier, "individuals": rows}
    try:
        return plan_problem(problem.model_copy(update=changes), recorded.mechanism)
    except AttrprivError as error:
        reason = str(error)
    raise CertificateError(f"must be what its policy plans for these queries. Got something else: {reason}")


def _different(made: Any, told: Any, free: frozenset[str], searched: tuple[str, ...] = (), place: str = "") -> Iterator[str]:
    """What of two JSON values is not the same, each with its place."""
    if place in free:
        return
    if isinstance(made, dict) and isinstance(told, dict):
        for key in dict.fromkeys((*made, *told)):
            inner = f"{place}.{key}" if place else str(key)
            if (key in made) != (key in told):
                yield f"{inner}: must be there where the policy plans it, and only there."
            else:
                yield from _different(made[key], told[key], free, searched, inner)
    elif isinstance(made, list) and isinstance(told, list) and len(made) == len(told):
        for k, (one, other) in enumerate(zip(made, told, strict=True)):
            yield from _different(one, other, free, searched, f"{place}[{k}]")
    elif not _same(made, told, _NEAR if place.startswith(searched) else _CLOSE) or (
        _PROBABILITY.search(place) and not _same(_complement(made), _complement(told))
    ):
        yield f"{place}: must be {_shown(made)}, as the policy plans it. Got {_shown(told)}."


def _same(made: Any, told: Any, close: float = _CLOSE) -> bool:
    made, told = _as_number(made), _as_number(told)
    if type(made) is float or type(told) is float:
        numbers = type(made) in (int, float) and type(told) in (int, float)
        return numbers and abs(told - made) <= close * abs(made)
    return type(made) is type(told) and bool(made == told)


def _as_number(value: Any) -> Any:
    """A fraction such as 5/13 as the float nearest to it: 0.1.0 recorded two floats around it."""
    return float(Fraction(value)) if isinstance(value, str) and _RATIO.fullmatch(value) else value


def _complement(value: Any) -> float:
    exact = Fraction(value) if isinstance(value, str) else Fraction(repr(value))
    return float(1 - exact)


def _shown(value: Any) -> str:
    return "something else" if isinstance(value, dict | list) else repr(value)
