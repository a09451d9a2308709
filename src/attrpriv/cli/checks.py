"""What `attrpriv check` finds: public facts about a policy, no row read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attrpriv.errors import RefusedError, UsageError
from attrpriv.mechanisms import Plan
from attrpriv.mechanisms.advice import advice
from attrpriv.policy import Policy
from attrpriv.session import Session


@dataclass(frozen=True)
class Check:
    """A policy that can be read, with what it can and cannot prove."""

    policy: Policy
    plan: Plan | None
    refusal: RefusedError | UsageError | None
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        queries = [] if self.plan is None else self.plan.entries(chosen=True)
        return {
            "schema_version": 1,
            "ok": self.refusal is None,
            "policy_digest": self.policy.digest,
            "protect": [str(secret) for secret in self.policy.protect],
            "queries": [{key: row[key] for key in ("query", "mechanism", "noise", "error")} for row in queries],
            "refused": None if self.refusal is None else str(self.refusal),
            "notes": list(self.notes),
        }


def check_policy(path: Path, queries: Sequence[str] | None) -> Check:
    """Read the policy, compare it with the table's schema, and plan its queries together."""
    policy = Policy.load(path)
    if not queries and not policy.release:
        return Check(policy, None, None, ("no query is named: add release to the policy, or give a query.",))
    with Session(policy=policy) as session:
        ranking = session.rank(queries)
        held = session.ledger_note()
    if ranking.chosen is None:
        return Check(policy, None, ranking.error(), ())
    extra = [*ranking.chosen.warnings, *(line for line in (advice(ranking), held) if line is not None)]
    return Check(policy, ranking.chosen, None, (*ranking.chosen.remarks, *extra))
