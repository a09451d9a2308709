"""Releases as the ledger holds them: told again, bit by bit, and proved again without any data.

What must never change: what is told again is what was recorded. The values are the ledger's own numbers, the plan is the plan
that was recorded, and nothing is drawn.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from attrpriv.accounting.chain import SPENDS, ChainError, Entry, canonical_json, entry_of, require_chain, row_of
from attrpriv.accounting.history import Replayed
from attrpriv.accounting.standing import Known, decide_again
from attrpriv.errors import AttrprivError, CertificateError, RefusedError, UsageError
from attrpriv.guarantee import Certificate, ViewEvidence
from attrpriv.mechanisms.plan import Plan
from attrpriv.policy import Policy
from attrpriv.replanned import require_asked_for

# Said whenever calibrated weights fail, and nothing else is: whatever more it said would tell about the table.
FAILED = (
    "calibrated_weights: no weights of the planned length give the sensitive columns their target. Nothing is answered, and "
    "that is recorded: a second release of this table will be refused. By the assumption this happens with a probability of at "
    "most delta; where the assumption is wrong, it may be likely."
)

# What the entries of a plan hold once for all queries.
_SHARED = ("guarantee", "certificate", "model_error")


def details_of(plan: Plan, types: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What a plan's entries leave out, so that the release can be rebuilt, and planned again, from the ledger alone."""
    details = {key: value for key, value in plan.to_json().items() if key not in _SHARED}
    return {**details, "types": dict(types or {})}


def recorded_plan(entry: Entry) -> Plan:
    """The plan of a recorded release, as it was."""
    with suppress(AttrprivError, KeyError, IndexError, TypeError):
        kept = {key: value for key, value in entry.details.items() if key != "types"}
    return Plan.from_json({**kept, **{key: entry.plan[0][key] for key in _SHARED}})
    raise RefusedError(f"entry {entry.number} holds the answer, by a plan of another version. See attrpriv ledger.")


# The record: everything the ledger holds, and its proofs once more.


def document(entries: Sequence[Entry]) -> dict[str, Any]:
    """The complete public record, as `attrpriv ledger --json` prints it."""
    head = entries[-1].digest if entries else None
    told = [entry.to_json() for entry in entries]
    return {"schema_version": 1, "head": head, "budget": budget(entries), "entries": told}


def budget(entries: Sequence[Entry]) -> dict[str, Any] | None:
    """The table's budget under the policy in force, and the share that is left; None where there is none to share."""
    with suppress(AttrprivError, ChainError, KeyError, IndexError, TypeError, AttributeError):  # `recheck` names what is wrong
        known = Known.of(Replayed(entries, len(entries)))
        if known.stated is not None:
            epsilon, delta = known.stated["epsilon"], known.stated["delta"]
            return {"epsilon": epsilon, "delta": delta, "left": known.left(epsilon, delta)}
    return None


def read_document(path: Path) -> tuple[Entry, ...]:
    """The entries of such a document, every digest checked."""
    name = f"record {str(path)!r}"
    told = None
    with suppress(OSError, ValueError, RecursionError):
        told = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(told, dict) or told.get("schema_version") != 1 or not isinstance(told.get("entries"), list):
        raise UsageError(f"{name}: must be what attrpriv ledger --json prints. Got something else.")
    with suppress(ChainError, TypeError, ValueError, RecursionError):
        entries = tuple(entry_of(row_of(Entry(**one))) for one in told["entries"])
        require_chain(entries)
        if document(entries) == {"budget": budget(entries), **told}:  # earlier versions printed no budget
            return entries
    raise RefusedError(f"{name}: must be as attrpriv printed it. Got one that was changed. Print it again from the ledger.")


def recheck(name: str, entries: Sequence[Entry]) -> int:
    """Prove everything recorded once more, with no data: each certificate, what it covers, and the rule for all entries.

    Returns the number of certificates; `CertificateError` names the first entry that is not proved.
    """
    proved: set[str] = set()
    answered: set[str | None] = set()
    types: dict[str, str] = {}
    for number, entry in enumerate(entries):
        failure: AttrprivError
        try:
            account = decide_again(name, entry, Replayed(entries, number))
            _require(account == entry.account and (entry.question is None or entry.question not in answered))
            answered.add(entry.question)
            _prove(entry, proved)
            _plan_again(entry, Known.of(Replayed(entries, number)), types)
            continue
        except AttrprivError as error:
            failure = error
        except (KeyError, IndexError, TypeError, AttributeError):
            failure = CertificateError("must hold its plan and certificate. Got something else.")
        raise CertificateError(f"{name}: entry {entry.number}: {failure}")
    return len(proved)


def _plan_again(entry: Entry, before: Known, types: dict[str, str]) -> None:
    """A release must have what the policy in force asks for, planned again on top of everything before it."""
    told = entry.details.get("types") if isinstance(entry.details, Mapping) else None
    stated = entry.account.get("stated", before.stated) if isinstance(entry.account, Mapping) else None
    if entry.kind != "release" or told is None or stated is None:
        return  # a view, or a version that did not keep what this needs
    types.update(told)
    earlier = None if before.certificate is None else before.certificate.evidence
    require_asked_for(recorded_plan(entry), _policy(canonical_json(stated)), types, earlier)


@lru_cache(maxsize=4)
def _policy(stated: str) -> Policy:
    return Policy.from_json(stated)


def _prove(entry: Entry, proved: set[str]) -> None:
    stated = [entry.details["certificate"]] if entry.kind == "view" else [one["certificate"] for one in entry.plan]
    for told in stated:
        if (text := canonical_json(told)) not in proved:
            Certificate.from_json(told).verify()
            proved.add(text)
    if entry.kind == "view":
        _require(_covers_view(entry))
        return
    promised = [(one["epsilon"], one["delta"], one["policy_digest"]) for one in entry.plan]
    _require(promised == [(told["epsilon"], told["delta"], entry.policy_digest) for told in stated])
    _require(entry.kind == "failure" or [one["query"] for one in entry.plan] == [one["query"] for one in entry.answers])
    if entry.kind in SPENDS and entry.details is not None:
        plan = recorded_plan(entry)
        plan.verify()
        noise = [(query.text, plan.n, plan.noise_of(query).to_json()) for query in plan.queries]
        _require(noise == [(one["query"], one["n"], one["noise"]) for one in entry.plan])


def _covers_view(entry: Entry) -> bool:
    """Whether the rows kept are those that the certificate counted on."""
    evidence = Certificate.from_json(entry.details["certificate"]).evidence
    if not isinstance(evidence, ViewEvidence):
        return False
    return (evidence.n, [cell.to_json() for cell in evidence.cells]) == (entry.plan["n"], entry.plan["cells"])


def _require(same: bool) -> None:
    if not same:
        raise CertificateError("must promise what its certificate proves. Got something else.")
