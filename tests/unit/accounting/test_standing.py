"""What may follow what, decided on what a ledger holds: every refusal, and the same again from the record alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import attrpriv as ap
from attrpriv.accounting import hash_chain as chain
from attrpriv.accounting.hash_chain import Entry, History, Replayed
from attrpriv.accounting.ledger import Ledger
from attrpriv.accounting.standing import Candidate, LedgerState, StaleError, Standing, decide_again
from attrpriv.errors import CertificateError, RefusedError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.evidence import ConstantEvidence
from attrpriv.queries.sql import parse_queries
from attrpriv.session.record import details_of, recheck
from tests.end_to_end.race import question, town
from tests.unit.session.sequences import ROWS, made

POLICY = made()


def planned(column: str, spend: float, earlier: Certificate | None = None, policy: ap.Policy = POLICY) -> ap.Plan:
    problem = policy.problem((ap.mean(column),), ROWS, {})
    evidence = None if earlier is None else earlier.evidence
    return ap.plan(problem.model_copy(update={"spend": spend, "earlier": evidence}), "gaussian")


FIRST = planned("weight", 0.3)
SECOND = planned("height", 0.5, FIRST.certificate)


def candidate(plan: ap.Plan = FIRST, on: int | None = None, policy: ap.Policy = POLICY, **changes: Any) -> Candidate:
    one = Candidate("release", policy.digest, policy.stated, "people", plan.n, plan.certificate, on)
    return replace(one, **changes)


def committed(ledger: Ledger, plan: ap.Plan, one: Candidate) -> Entry:
    answers = [{"query": query.text, "value": 1.0, "interval": None} for query in plan.queries]
    return ledger.commit(
        kind=one.kind,
        time="now",
        policy_digest=one.policy_digest,
        plan=plan.entries(chosen=True),
        answers=answers,
        details=details_of(plan),
        allowed=one.rule(ledger.name),
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """One release is in it."""
    made = Ledger(tmp_path / "x.ledger")
    committed(made, FIRST, candidate())
    return made


def test_what_the_account_says(ledger: Ledger) -> None:
    (first,) = ledger.entries()
    standing = {"joint": 1, "policy": 1, "n": ROWS, "table": "people", "individuals": 0.0}
    assert first.account == {**standing, "stated": POLICY.stated}
    second = committed(ledger, SECOND, candidate(SECOND, on=1))
    assert second.account == {**standing, "joint": 2}
    assert ledger.look(Standing.of) == Standing(2, 1, ROWS, "people", 0.0)
    known = ledger.look(LedgerState.of)
    assert (known.certificate, known.stated) == (SECOND.certificate, POLICY.stated)
    assert known.left(1.0, 1e-6) == SECOND.certificate.left(1.0, 1e-6)
    assert recheck("record", ledger.entries()).certificates == 2


def test_an_empty_ledger(tmp_path: Path) -> None:
    known = Ledger(tmp_path / "none.ledger").look(LedgerState.of)
    assert known == LedgerState(Standing())
    assert known.left(1.0, 1e-6) == 1


# ---------------------------------------------------------------------------------------------------------- refusals


def more(plan: ap.Plan, **changes: Any) -> Certificate:
    """A certificate that promises something else."""
    return plan.certificate.model_copy(update=changes)


def forged(**changes: Any) -> Certificate:
    """The second certificate, with another past."""
    return more(SECOND, evidence=SECOND.certificate.evidence.model_copy(update=changes))


LOOSE = made(epsilon=2.0)
FRESH = planned("height", 0.5)
REFUSED: dict[str, tuple[Candidate, type[Exception], str]] = {
    "another number of rows": (candidate(SECOND, on=1, n=ROWS + 1), RefusedError, r"its rows must stay as it was \(500\)"),
    "another table": (candidate(SECOND, on=1, table="dogs"), RefusedError, r"its table must stay as it was \(people\)"),
    "planned on nothing": (candidate(SECOND, on=None), StaleError, "something was released since"),
    "planned on something else": (candidate(SECOND, on=2), StaleError, "something was released since"),
    "without the past": (candidate(FRESH, on=1), RefusedError, "no rule covers this release together"),
    "the first again": (candidate(FIRST, on=1), RefusedError, "no rule covers this release together"),
    "a past of no columns": (candidate(SECOND, on=1, certificate=forged(before=0)), RefusedError, "no rule covers"),
    "a past of other columns": (
        candidate(SECOND, on=1, certificate=forged(columns=("sat", "height"))),
        RefusedError,
        "no rule covers",
    ),
    "a past of more noise": (
        candidate(SECOND, on=1, certificate=forged(independent=(9.0, 9.0))),
        RefusedError,
        "no rule covers",
    ),
    "a past of common noise": (
        candidate(SECOND, on=1, certificate=forged(factor=((1.0,), (0.0,)), common_before=1)),
        RefusedError,
        "no rule covers",
    ),
    "epsilon above the policy's": (
        candidate(SECOND, on=1, certificate=more(SECOND, epsilon=1.5)),
        CertificateError,
        "must promise what the policy asks for",
    ),
    "delta above the policy's": (
        candidate(SECOND, on=1, certificate=more(SECOND, delta=1e-3)),
        CertificateError,
        "must promise what the policy asks for",
    ),
    "less than a tighter policy asks for": (
        candidate(SECOND, on=1, policy=made(epsilon=0.9)),
        CertificateError,
        "must promise what the policy asks for",
    ),
    "a loosened policy": (candidate(SECOND, on=1, policy=LOOSE), RefusedError, "epsilon: must not become larger"),
    "a policy that is not the one of its digest": (
        candidate(SECOND, on=1, policy_digest=made(epsilon=0.5).digest),
        CertificateError,
        "must state the policy of its digest",
    ),
    "a policy without text": (
        candidate(SECOND, on=1, policy_digest=made(epsilon=0.5).digest, stated=None),
        CertificateError,
        "must state the policy of its digest",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, ledger: Ledger) -> None:
    one, kind, text = REFUSED[name]
    before = ledger.entries()
    with pytest.raises(kind, match=text) as caught:
        committed(ledger, SECOND, one)
    assert type(caught.value) is kind  # a stale plan is made again; anything else is not
    assert ledger.entries() == before


def test_what_nothing_can_follow(tmp_path: Path) -> None:
    """A first entry that states another policy than its own, or continues what is not there."""
    ledger = Ledger(tmp_path / "x.ledger")
    with pytest.raises(CertificateError, match="must state the policy of its digest"):
        committed(ledger, FIRST, candidate(stated=LOOSE.stated))
    with pytest.raises(RefusedError, match="no rule covers"):
        committed(ledger, SECOND, candidate(SECOND))
    assert ledger.entries() == ()


def test_views_and_noise_do_not_mix(tmp_path: Path, ledger: Ledger) -> None:
    other = Ledger(tmp_path / "view.ledger")
    other.commit(kind="view", time="now", policy_digest="ab", plan={}, answers=[], state={"key": 1})
    with pytest.raises(RefusedError, match="holds a view, and must not be mixed with a release with noise"):
        committed(other, FIRST, candidate())
    with pytest.raises(RefusedError, match="holds a release with noise, and must not be mixed with a view"):
        ledger.commit(kind="view", time="now", policy_digest="ab", plan={}, answers=[], state={"key": 1})
    assert other.look(LedgerState.of).left(1.0, 1e-6) == 0


def test_what_tells_nothing_needs_no_rule(ledger: Ledger) -> None:
    constant = more(FIRST, epsilon=0.0, delta=0.0, evidence=ConstantEvidence(), individuals=None)
    plan = planned("age", 0.5).model_copy(update={"certificate": constant})
    entry = committed(ledger, plan, candidate(plan, on=17))
    assert entry.account["joint"] == 1
    committed(ledger, SECOND, candidate(SECOND, on=1))


def rows_too(folder: Path) -> ap.Policy:
    """A policy that protects single persons as well, under which releases share a budget."""
    path = town(folder)
    path.write_text(path.read_text() + "individuals: {epsilon: 1.0}\n")
    return ap.Policy.load(path)


def test_row_level_epsilons_add_up(tmp_path: Path) -> None:
    policy = rows_too(tmp_path)

    def rows(number: int, own: float | None, earlier: Certificate | None = None) -> ap.Plan:
        problem = policy.problem(parse_queries(question(number)), 100, {})
        evidence = None if earlier is None else earlier.evidence
        return ap.plan(problem.model_copy(update={"spend": 0.3, "earlier": evidence, "individuals": own}), "markov_quilt")

    ledger = Ledger(tmp_path / "x.ledger")
    plan = rows(1, 1.1)
    with pytest.raises(RefusedError, match="individuals: single persons were promised more"):
        committed(ledger, plan, candidate(plan, policy=policy))
    first = rows(1, 0.6)
    committed(ledger, first, candidate(first, policy=policy))
    for own in (0.6, None):
        plan = rows(2, own, first.certificate)
        with pytest.raises(RefusedError, match="individuals: single persons were promised more"):
            committed(ledger, plan, candidate(plan, on=1, policy=policy))
    second = rows(2, 0.4, first.certificate)
    assert committed(ledger, second, candidate(second, on=1, policy=policy)).account["individuals"] == pytest.approx(1.0)
    recheck("record", ledger.entries())


def test_a_tightened_policy(ledger: Ledger) -> None:
    """Is stated by the first release under it, whose certificate covers everything so far; the looser one is gone then."""
    tight = made(epsilon=0.9)
    plan = planned("height", 0.5, FIRST.certificate, tight)
    entry = committed(ledger, plan, candidate(plan, on=1, policy=tight))
    assert entry.account == {**Standing(2, 2, ROWS, "people").to_json(), "stated": tight.stated}
    third = planned("sat", 0.5, plan.certificate, tight)
    with pytest.raises(RefusedError, match="epsilon: must not become larger"):
        committed(ledger, third, candidate(third, on=2))
    assert committed(ledger, third, candidate(third, on=2, policy=tight)).account["policy"] == 2
    recheck("record", ledger.entries())


# ------------------------------------------------------------------------------------------------- from the record alone


def entries_of(ledger: Ledger) -> list[Entry]:
    committed(ledger, SECOND, candidate(SECOND, on=1))
    return list(ledger.entries())


def rewritten(entries: list[Entry], changes: dict[int, Callable[[dict[str, Any]], object]]) -> list[Entry]:
    """By somebody who can hash: the chain holds."""
    found: list[Entry] = []
    for number, entry in enumerate(entries, 1):
        told = entry.to_json()
        if number in changes:
            changes[number](told)
        said = {key: told[key] for key in ("kind", "time", "policy_digest", "plan", "answers", "details")}
        found.append(chain.next_entry(chain.contents(**said), told["account"], found[-1] if found else None))
    return found


def evidence(told: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = told["plan"][0]["certificate"]["evidence"]
    return found


def halved(values: list[float]) -> list[float]:
    return [value / 2 for value in values]


TAMPERED: dict[str, tuple[int, dict[int, Callable[[dict[str, Any]], object]]]] = {
    "the first one's noise": (1, {1: lambda told: evidence(told).update(independent=halved(evidence(told)["independent"]))}),
    "what the second says of the first": (
        2,
        {2: lambda told: evidence(told)["independent"].__setitem__(0, evidence(told)["independent"][0] * 2)},
    ),
    "the second's noise": (
        2,
        {2: lambda told: evidence(told)["independent"].__setitem__(1, evidence(told)["independent"][1] / 2)},
    ),
    "no past": (2, {2: lambda told: evidence(told).update(before=0)}),
    "an account of another joint proof": (2, {2: lambda told: told["account"].update(joint=1)}),
    "an account of another length": (2, {2: lambda told: told["account"].update(n=ROWS + 1)}),
    "an account of less for rows": (2, {2: lambda told: told["account"].update(individuals=-1.0)}),
    "an account of another table": (2, {2: lambda told: told["account"].update(table="dogs")}),
    "an account with another policy": (1, {1: lambda told: told["account"]["stated"].update(epsilon=9.0)}),
    "no account": (2, {2: lambda told: told.update(account=None)}),
    "no account at all": (1, {1: lambda told: told.update(account=None), 2: lambda told: told.update(account=None)}),
    "another policy's digest": (2, {2: lambda told: told.update(policy_digest="ab" * 32)}),
    "a larger promise": (2, {2: lambda told: told["plan"][0]["certificate"].update(epsilon=2.0)}),
    "another kind": (2, {2: lambda told: told.update(kind="answer")}),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_recheck_finds_what_was_rewritten(name: str, ledger: Ledger) -> None:
    number, changes = TAMPERED[name]
    entries = entries_of(ledger)
    assert recheck("record", rewritten(entries, {})).certificates == 2
    with pytest.raises(CertificateError, match=rf"^record: entry {number}: "):
        recheck("record", rewritten(entries, changes))


def test_recheck_finds_a_dropped_and_a_swapped_entry(ledger: Ledger) -> None:
    first, second = entries_of(ledger)
    for wrong in ([second], [second, first], [first, first], [first, second, second]):
        with pytest.raises(CertificateError, match="record: entry"):
            recheck("record", rewritten(wrong, {}))


def test_deciding_again_is_deciding(ledger: Ledger) -> None:
    """The one function that allowed each entry gives its account again."""
    entries = entries_of(ledger)
    for k, entry in enumerate(entries):
        assert decide_again("x", entry, Replayed(entries, k)) == entry.account


def test_history_of_nothing() -> None:
    assert Standing.of(History(None)) == Standing()
