"""The last check before noise is drawn: the certificate holds, and what will be drawn is what it counted on.

What must never change: everything that decides what is read, what is drawn and what the proof says is in `binding_of`. It is
computed where a mechanism makes a plan, and again here. `FREE` lists what may vary, with the reason.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from attrpriv.errors import CertificateError

if TYPE_CHECKING:
    from attrpriv.methods.base.plan import Plan

NOT_COVERED = "plan: must promise and draw what its certificate counted on. Nothing was released."

# What no row and no noise depends on: words, expected errors, and the numbers that intervals are made of.
FREE: Mapping[str, str] = MappingProxyType(
    {
        "bound": "is the digest itself",
        "spend": "says which share of the budget was asked for; the certificate says what is used",
        "notes": "are words",
        "guarantee": "is the promise in words; the certificate has its numbers",
        "errors": "are what to expect of the answer",
        "model_error": "says what would hold were the assumption wrong",
        "columns.error": "is what to expect of the answer",
        "columns.parameters": "are shown, and used for intervals",
        "tally.parameters": "are shown, and used for intervals",
        "tally.tails": "are used for intervals",
        "tally.tail_step": "is used for intervals",
        "certificate.assumes": "are words",
        "certificate.exact": "says whether less noise would do",
        "certificate.gap": "says how much less noise might do",
    }
)


def binding_of(plan: Plan) -> str:
    """A digest of all of a plan that is read or drawn from, and of its proof."""
    told = what_is_bound(plan.model_dump(mode="json", warnings=False))
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def what_is_bound(value: Any, place: str = "") -> Any:
    """A plan as JSON without what may vary."""
    if isinstance(value, dict):
        inner = {key: f"{place}.{key}" if place else key for key in value}
        return {key: what_is_bound(one, inner[key]) for key, one in value.items() if inner[key] not in FREE}
    return [what_is_bound(one, place) for one in value] if isinstance(value, list) else value


def require_certified(plan: Plan) -> None:
    """`CertificateError` unless the promise holds and is for what is read and drawn by this plan."""
    if plan.bound != binding_of(plan):
        raise CertificateError(NOT_COVERED)
    plan.certificate.verify()
    same = (plan.epsilon, plan.delta) == (plan.certificate.epsilon, plan.certificate.delta)
    if not (same and plan.part.covered(plan)):
        raise CertificateError(NOT_COVERED)
