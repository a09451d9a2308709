"""What `attrpriv check` finds: public facts about a policy, no row read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attrpriv.errors import RefusedError, UsageError
from attrpriv.framework.places import is_remote
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


def missing_table(policy: Policy) -> str | None:
    """One line where the table is not there and the policy's own number of rows is planned for."""
    place = policy.data_path()
    if policy.rows is None or place is None or is_remote(place) or set("*?[") & set(str(place)) or Path(place).exists():
        return None
    return (
        f"{Path(place).name} is not there: this is for the {policy.rows:,} rows that the policy declares. "
        "Names and types of columns were not checked."
    )


def check_policy(path: Path, queries: Sequence[str] | None) -> Check:
    """Read the policy, compare it with the table's schema, and plan its queries together."""
    policy = Policy.load(path)
    if not queries and not policy.release:
        return Check(policy, None, None, ("no query is named: add release to the policy, or give a query.",))
    with Session(policy=policy) as session:
        try:
            ranking = session.rank(queries)
        except RefusedError as refused:  # the ledger leaves nothing for it
            return Check(policy, None, refused, ())
        held = session.ledger_note(queries, ranking.chosen)
    if ranking.chosen is None:
        return Check(policy, None, ranking.error(), ())
    extra = [*ranking.chosen.warnings, *(line for line in (advice(ranking), held, missing_table(policy)) if line)]
    return Check(policy, ranking.chosen, None, (*ranking.chosen.remarks, *extra))
