"""Releases as the ledger holds them: told again, bit by bit, and proved again without any data.

What must never change: what is told again is what was recorded. The values are the ledger's own numbers, the plan is the plan
that was recorded, and nothing is drawn.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from attrpriv.accounting.hash_chain import SPENDS, ChainError, Entry, Replayed, canonical_json, entry_of, require_chain, row_of
from attrpriv.accounting.standing import PERSONS, LedgerState, decide_again, protects_persons
from attrpriv.errors import AttrprivError, CertificateError, RefusedError, UsageError
from attrpriv.frozen import FrozenModel
from attrpriv.methods.base.certificate import Certificate, what_is_bound
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan as plan_problem
from attrpriv.policy import Policy
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries
from attrpriv.session.table_reads import public_cells

# Said whenever calibrated weights fail, and nothing else is: whatever more it said would tell about the table.
FAILED = (
    "calibrated_weights: no weights of the planned length give the sensitive columns their target. Nothing is answered, and "
    "that is recorded: a second release of this table will be refused. By the assumption this happens with a probability of at "
    "most delta; where the assumption is wrong, it may be likely."
)

# What the entries of a plan hold once for all queries.
_SHARED = ("guarantee", "certificate", "model_error")
# What details hold beside the plan.
_ASIDE = ("types", "policy")
# What an answer may say, and nothing else; and what it may say of each group.
_ANSWERS = ({"query", "value", "interval"}, {"query", "groups"})
_GROUP, _INTERVAL = {"group", "value", "interval"}, {"level", "low", "high"}


def named_types(types: Mapping[str, str], texts: Sequence[str]) -> dict[str, str]:
    """The types of the columns that these texts name: public, and needed to plan a release again."""
    return {name: kind for name, kind in types.items() if any(name in text for text in texts)}


def details_of(plan: Plan, types: Mapping[str, str] | None = None, policy: Policy | None = None) -> dict[str, Any]:
    """What a plan's entries leave out, so that the release can be rebuilt, and planned again, from the ledger alone.

    A ledger sorts the keys of the policy that it states; `policy` is its text in the order in which it was planned.
    """
    details = {key: value for key, value in plan.to_json().items() if key not in _SHARED}
    if policy is None:
        return {**details, "types": dict(types or {}), "policy": None}
    texts = [*(query.text for query in plan.queries), *(secret.text for secret in policy.protect)]
    return {**details, "types": named_types(types or {}, texts), "policy": json.dumps(policy.stated)}


def recorded_plan(entry: Entry) -> Plan:
    """The plan of a recorded release, as it was."""
    with suppress(AttrprivError, KeyError, IndexError, TypeError):
        kept = {key: value for key, value in entry.details.items() if key not in _ASIDE}
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
        known = LedgerState.of(Replayed(entries, len(entries)))
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
        if document(entries) == told:
            return entries
    raise RefusedError(f"{name}: must be as attrpriv printed it. Got one that was changed. Print it again from the ledger.")


@dataclass(frozen=True)
class Rechecked:
    """How many different certificates hold, of how many releases, and how many were planned again from their policy."""

    certificates: int
    releases: int
    planned_again: int

    def to_json(self) -> dict[str, int]:
        return asdict(self)


def recheck(name: str, entries: Sequence[Entry]) -> Rechecked:
    """Prove everything recorded once more, with no data: each certificate, what it covers, and the rule for all entries.

    Each release is also planned again from the policy that the record states. `CertificateError` names the first entry that is
    not proved.
    """
    proved: set[str] = set()
    answered: set[str] = set()
    types: dict[str, str] = {}
    compared = 0
    for number, entry in enumerate(entries):
        failure: AttrprivError
        try:
            account = decide_again(name, entry, Replayed(entries, number))
            asking = {min(query.alike) for text in _asked(entry) for query in parse_queries(text)}
            _require(account == entry.account and not asking & answered)
            answered |= asking
            _prove(entry, proved)
            _prove_persons(entries[0], entry)
            compared += _plan_again(entry, LedgerState.of(Replayed(entries, number)), types)
            continue
        except AttrprivError as error:
            failure = error
        except (KeyError, IndexError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError):
            failure = CertificateError("must hold its plan and certificate. Got something else.")
        raise CertificateError(f"{name}: entry {entry.number}: {failure}")
    return Rechecked(len(proved), sum(entry.kind == "release" for entry in entries), compared)


def _asked(entry: Entry) -> list[str]:
    return [one["query"] for one in entry.plan] if entry.kind in SPENDS else []


def _public_answers(plan: Plan) -> list[float]:
    """What a plan tells that reads no row."""
    if plan.tally is not None:
        found: Any = [0] * len(plan.tally.cells), [0] * len(plan.tally.categories)
    else:
        found = [Fraction(0)] * len(plan.columns), (0,) * len(plan.categories)
    return [value for values in plan.answered(found) or () for value in values]


def _plan_again(entry: Entry, before: LedgerState, types: dict[str, str]) -> bool:
    """A release must have what the policy in force asks for, planned again on top of everything before it."""
    stated = entry.account.get("stated", before.stated) if isinstance(entry.account, Mapping) else None
    if entry.kind in ("view", "answer"):
        return False
    told = entry.details["types"]
    if any(types.get(name, kind) != kind for name, kind in told.items()):
        raise CertificateError("types: must be those of the entries before. Got another type of a column.")
    types.update(told)
    earlier = None if before.certificate is None else before.certificate.evidence
    text = entry.details["policy"] or canonical_json(stated)
    _require(json.loads(text) == stated)
    if entry.kind == "outside":
        from attrpriv.session.outside import outside_again

        _require_same(*outside_again(entry, _policy(text), types, earlier), _WORDS)
        return False
    plan = recorded_plan(entry)
    require_asked_for(plan, _policy(text), types, earlier, by_0_1_0="bound" not in entry.details)
    if entry.kind == "release":
        _require_public(entry, plan)
    return entry.kind == "release"


def _require_public(entry: Entry, plan: Plan) -> None:
    """What is public must be as it is: the number of rows, and answers for which no row is read."""
    told = {answer["query"]: answer for answer in entry.answers}
    for query in plan.queries:
        _require(not query.whole_table or told[query.text]["value"] == plan.n)
    if not plan.certificate.evidence.reads_rows:
        _require([value for one in entry.answers for value in _values(one)] == _public_answers(plan))


def _values(answer: Mapping[str, Any]) -> list[float]:
    return [one["value"] for one in answer.get("groups", [answer])]


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
    if entry.kind == "outside":
        _require(entry.answers == [])
        return
    _require(entry.kind == "failure" or [one["query"] for one in entry.plan] == [one["query"] for one in entry.answers])
    if entry.kind in SPENDS:
        plan = recorded_plan(entry)
        plan.verify()
        made = json.loads(canonical_json(plan.entries(chosen=True)))
        _require(made == entry.plan)
        for query, told in zip(plan.queries, entry.answers, strict=False):  # a failure has none
            _require(_is_answer(plan, query, told))


def _prove_persons(first: Entry, entry: Entry) -> None:
    """An answer from a view that protects single persons must have the noise that its certificate counted on."""
    if entry.kind != "answer" or not protects_persons(first):
        return
    plan = recorded_plan(entry)
    plan.verify()
    test, view = plan.certificate.evidence.row_test(), plan.view
    if test is None or view is None:
        raise CertificateError("must have the test of its view. Got another.")
    asked = (first.plan["n"], first.plan["cells"], first.plan[PERSONS])
    _require((view.n, [cell.to_json() for cell in view.cells], test.to_json()) == asked)
    _require(json.loads(canonical_json(plan.entries(chosen=True))) == entry.plan)
    _require(all(_is_answer(plan, query, told) for query, told in zip(plan.queries, entry.answers, strict=True)))


def _is_answer(plan: Plan, query: Query, told: Mapping[str, Any]) -> bool:
    """Whether an answer holds the numbers that it must, and nothing that nobody asked for."""
    grouped = query.group_by is not None
    if set(told) != _ANSWERS[grouped]:
        return False
    each = told["groups"] if grouped else [told]
    names = [one.get("group") for one in each]
    expected = plan.group_names(query)
    known = not grouped or all(set(one) == _GROUP for one in each)
    return (
        known and tuple(names) == expected and all(_is_number(one["value"]) and _is_interval(one["interval"]) for one in each)
    )


def _is_interval(told: object) -> bool:
    return told is None or (isinstance(told, Mapping) and set(told) == _INTERVAL and all(map(_is_number, told.values())))


def _is_number(told: object) -> bool:
    return type(told) in (int, float) and math.isfinite(told)  # type: ignore[arg-type]


def _covers_view(entry: Entry) -> bool:
    """Whether the rows kept are those that the certificate counted on."""
    evidence = Certificate.from_json(entry.details["certificate"]).evidence
    counted = evidence.view_of()
    if counted is None or evidence.whole_columns() != Secret.from_json(entry.plan["secret"]).whole_columns:
        return False
    moved = evidence.sorted_by()
    if (None if moved is None else moved.to_json()) != entry.plan.get("sorted"):
        return False
    n, cells = counted
    test = evidence.row_test()
    if (None if test is None else test.to_json()) != entry.plan.get(PERSONS):
        return False
    return (n, [cell.to_json() for cell in cells]) == (entry.plan["n"], entry.plan["cells"])


def _require(same: bool) -> None:
    if not same:
        raise CertificateError("must promise what its certificate proves. Got something else.")


# ----------------------------------------------------------------------------------------------------------------------------
# Whether a recorded release is what its stated policy asks for: it is planned once more, from public facts alone.
#
# A certificate proves what follows from its own numbers. That these are the policy's (its secrets, pairs and laws) shows only
# when the policy is planned again: for the recorded queries and number of rows, on top of the recorded past, with the
# recorded share. The two plans must then be one, in everything but `_WORDS`, and the numbers that programs find
# (`found_by_program` of their evidence): a program may end elsewhere on another machine, and its solution is proved by the
# certificate itself, against laws that are compared.
#
# What must never change: everything is compared that is not named below, so that what a plan gains is compared too.


_RATIO = re.compile(r"[0-9]+/[0-9]+")
# Two machines may differ in the last digits of a plan.
_CLOSE = 1e-9
# Probabilities: what they leave of 1 is compared too, for it is all that tells 0.9999999999 from 0.9999999994.
_PROBABILITY = re.compile(r"\.(member|rest|probabilities)\[[0-9]+\]\[[01]\]$")
# Sentences, which another version may put otherwise, and the digest of a plan whose last digits are its own.
_WORDS = frozenset({"bound", "notes", "guarantee.statement", "guarantee.reference", "certificate.assumes"})
# What programs find, and what follows from it. The certificate proves these weights against laws that are compared. What holds
# where laws are off follows from the recorded weights, and is compared with what they say.
_FOUND = frozenset({"certificate.gap", "errors"})
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
    if found:
        off = recorded.certificate.evidence.model_error(recorded.epsilon, recorded.delta)
        again = again.model_copy(update={"model_error": off})
    made, told = again.to_json(), recorded.to_json()
    if by_0_1_0:
        made, told = what_is_bound(made), what_is_bound(told)
    _require_same(made, told, free, searched)


def _require_same(made: Any, told: Any, free: frozenset[str], searched: tuple[str, ...] = ()) -> None:
    for different in _different(made, told, free, searched):
        raise CertificateError(different)


def _planned_again(recorded: Plan, policy: Policy, types: Mapping[str, str], earlier: FrozenModel | None) -> Plan:
    problem = policy.problem(recorded.queries, recorded.n, types, public_cells(policy, recorded.n, types))
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
