"""Releases of other libraries in a ledger: what is recorded, what is refused, and forged entries that the recheck finds."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import attrpriv as ap
from attrpriv.accounting import hash_chain as chain
from attrpriv.accounting.hash_chain import Entry
from attrpriv.errors import CertificateError, RefusedError, UsageError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.laplace_sequence.outside import OutsideEvidence
from attrpriv.methods.laplace_sequence.proof import CountDraw, SequenceEvidence
from attrpriv.session.record import recheck
from tests.forging import changed, leaves, place, with_value
from tests.unit.session.sequences import made, people

STAY, WEEK = "stay > 7", "count(*) filter (where stay > 7)"
OLD = "count(*) filter (where age > 60)"
TABLE = pa.table({"smoker": ["yes", "no"] * 500, "stay": list(range(10)) * 100, "age": list(range(50, 70)) * 50})


def smokers(**changes: Any) -> ap.Policy:
    given = {STAY: {"yes": 0.4, "no": 0.2}, "age > 60": {"yes": 0.3, "no": 0.5}}
    stated: dict[str, Any] = {
        "rows": 1000,
        "epsilon": 1.0,
        "protect": [ap.Secret("share(smoker = 'yes')", within=0.05)],
        "assume": ap.Counts(sensitive="smoker", given=given),
    }
    return ap.Policy(**{**stated, **changes})


def opened(place: Path, **changes: Any) -> ap.Session:
    return ap.Session(TABLE, smokers(**changes), ledger=place / "x.ledger")


# --------------------------------------------------------------------------------------------------------- what is recorded


def test_it_is_recorded_and_counted(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        assert session.bridge().b == pytest.approx(0.02, rel=1e-9)
        entry = session.record_outside(b=0.01, what=" histogram, some library ")
        assert (entry.kind, entry.answers, entry.plan[0]["what"]) == ("outside", [], "histogram, some library")
        assert session.left == pytest.approx(0.5, rel=1e-9)
        assert session.bridge().b == pytest.approx(0.01, rel=1e-9)
        assert "assumed" in entry.plan[0]["certificate"]["assumes"][0]
        session.release(WEEK, "laplace", spend=0.5)
        session.record_outside(b=session.bridge().b, what="all the rest")
        assert session.left <= 1e-9
        assert [entry.kind for entry in session.recorded()] == ["outside", "release", "outside"]
        assert recheck("record", session.recorded()).certificates == 3
        assert "outside: all the rest" in str(session.ledger)
        session.verify(session.recorded()[-1].digest)
        with pytest.raises(RefusedError):
            session.record_outside(b=1e-6, what="one more")
        with pytest.raises(RefusedError):
            session.release(OLD, "laplace", spend=1.0)


def test_the_same_twice_counts_twice(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        for left in (0.013, 0.006):
            session.record_outside(b=0.007, what="the same")
            assert session.bridge().b == pytest.approx(left, rel=1e-9)
        with pytest.raises(RefusedError, match=r"At most 0\.0059+ is left"):
            session.record_outside(b=0.007, what="the same")
        assert len(session.recorded()) == 2


def test_what_reads_one_event_may_spend_more_and_is_counted_with_it(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        b = session.bridge(reads=STAY).b
        assert b == pytest.approx(0.098115, rel=1e-5)
        session.record_outside(b=b / 2, what="one event", reads=STAY)
        assert session.bridge(reads=STAY).b == pytest.approx(b / 2, rel=1e-6)
        assert session.bridge(reads=STAY).b > session.bridge().b
        session.record_outside(b=session.bridge().b, what="whole rows")
        assert session.left <= 1e-9
        recheck("record", session.recorded())


def test_a_later_session_goes_on_from_it(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        session.record_outside(b=0.01, what="first")
    with opened(tmp_path) as session:
        assert session.bridge().b == pytest.approx(0.01, rel=1e-9)


# ----------------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("b", [math.nan, math.inf, -math.inf, -0.01, 101.0, True, "0.01", None])
def test_a_b_that_is_none(b: Any, tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        with pytest.raises(UsageError, match=r"^b: must be the epsilon of one row"):
            session.record_outside(b=b, what="x")
        with pytest.raises(UsageError, match=r"^b: must be the epsilon of one row"):
            session.bridge().epsilon(b)
        assert session.recorded() == ()


def test_a_b_of_nothing_and_one_of_too_much(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        for b, says in ((0.0, "above 0"), (0.0200001, "above epsilon 1")):
            with pytest.raises((RefusedError, UsageError), match=says):
                session.record_outside(b=b, what="x")
        assert session.recorded() == ()


@pytest.mark.parametrize("what", ["", "  ", "two\nlines", "x" * 201, None, 5])
def test_a_release_must_be_named(what: Any, tmp_path: Path) -> None:
    with opened(tmp_path) as session, pytest.raises(UsageError, match=r"^what: must be a line"):
        session.record_outside(b=0.01, what=what)


@pytest.mark.parametrize("reads", ["weight > 3", "stay", "stay > 7 and age > 60", "stay >", ""])
def test_what_is_read_must_have_a_stated_law(reads: str, tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        with pytest.raises((RefusedError, UsageError, ap.QueryError)):
            session.record_outside(b=0.01, what="x", reads=reads)
        assert session.recorded() == ()


def test_who_reads_the_hidden_column_reads_whole_rows(tmp_path: Path) -> None:
    with (
        opened(tmp_path) as session,
        pytest.raises((RefusedError, UsageError), match="smoker is what is hidden"),
    ):
        session.bridge(reads="smoker")


def test_a_column_in_bins_is_not_read_alone(tmp_path: Path) -> None:
    """Who reads the column sees more than the bin, and the law within a bin is not stated."""
    law = {name: {"values": ["short", "long"], "probabilities": [p, 1 - p]} for name, p in (("yes", 0.6), ("no", 0.8))}
    changes = {"assume": ap.Counts(sensitive="smoker", given={"stay": law}), "bins": {"stay": [0, 8, 100]}}
    with opened(tmp_path, **changes) as session:
        assert session.bridge(reads="stay >= 8").b > session.bridge().b
        with pytest.raises((RefusedError, UsageError), match="a column that has no bins"):
            session.bridge(reads="stay")


def test_under_another_assumption(tmp_path: Path) -> None:
    with (
        ap.Session(people(), made(), ledger=tmp_path / "x.ledger") as session,
        pytest.raises(RefusedError, match="needs a counts assumption"),
    ):
        session.record_outside(b=0.001, what="x")
    with pytest.raises(RefusedError) as caught:
        ap.bridge(made(), n=500)
    assert "or a chain, under which entries are" in str(caught.value)


def test_after_averages_with_gaussian_noise(tmp_path: Path) -> None:
    with ap.Session(people(), made(), ledger=tmp_path / "x.ledger") as session:
        session.release("avg(weight)", "gaussian", spend=0.5)
        with pytest.raises(RefusedError):
            session.record_outside(b=0.001, what="x")
        assert len(session.recorded()) == 1


def test_a_view_and_it_never_share_a_ledger(tmp_path: Path) -> None:
    secret = ap.Secret("share(smoker = 'yes')", between=(0.4, 0.6))
    with opened(tmp_path, protect=[secret]) as session:
        session.view()
        for asked in (session.bridge, lambda: session.record_outside(b=0.001, what="x")):
            with pytest.raises(RefusedError, match="a view"):
                asked()
    with ap.Session(TABLE, smokers(protect=[secret]), ledger=tmp_path / "y.ledger") as session:
        session.record_outside(b=0.001, what="x")
        for ask in (session.view, lambda: session.release(WEEK, "subsample")):
            with pytest.raises(RefusedError, match="a view of the same table"):
                ask()


def test_a_count_without_a_rule_does_not_follow_it(tmp_path: Path) -> None:
    """Transport of counts has no proof beside anything else, before or after."""
    with opened(tmp_path) as session:
        session.record_outside(b=0.001, what="x")
        with pytest.raises((RefusedError, UsageError)):
            session.release(WEEK, "transport", spend=1.0)


def test_single_persons_lose_b(tmp_path: Path) -> None:
    with opened(tmp_path, individuals={"epsilon": 0.01}) as session:
        assert session.bridge().b == pytest.approx(0.01, rel=1e-6)
        session.record_outside(b=0.006, what="x")
        assert session.recorded()[-1].account["individuals"] == pytest.approx(0.006, rel=1e-9)
        assert session.recorded()[-1].account["individuals"] >= 0.006
        with pytest.raises(RefusedError, match="individuals"):
            session.record_outside(b=0.0041, what="x")
        session.record_outside(b=0.0039, what="x")
        recheck("record", session.recorded())


# ---------------------------------------------------------------------------------------------------------- forged entries


def ledger(place: Path) -> tuple[Entry, ...]:
    with opened(place) as session:
        session.record_outside(b=0.02, what="an event", reads=STAY)
        session.record_outside(b=0.005, what="whole rows")
        session.release(WEEK, "laplace", spend=0.5)
        return session.recorded()


def chained(entries: Sequence[dict[str, Any]]) -> tuple[Entry, ...]:
    """These entries with digests that fit."""
    found: list[Entry] = []
    for told in entries:
        kept = {key: told[key] for key in ("kind", "time", "policy_digest", "plan", "answers", "details")}
        found.append(chain.next_entry(chain.contents(**kept), told["account"], found[-1] if found else None))
    return tuple(found)


def proof(told: Any) -> Any:
    return told["plan"][0]["certificate"]["evidence"]


def b_lowered(all_told: Any) -> None:
    all_told[1]["plan"][0]["b"] = 0.001


def b_lowered_in_the_proof(all_told: Any) -> None:
    proof(all_told[1])["b"] = 0.001


def b_lowered_everywhere(all_told: Any) -> None:
    b_lowered(all_told)
    b_lowered_in_the_proof(all_told)


def another_name(all_told: Any) -> None:
    all_told[1]["plan"][0]["what"] = "nothing"


def reads_narrowed(all_told: Any) -> None:
    all_told[1]["plan"][0]["reads"] = STAY


def reads_narrowed_everywhere(all_told: Any) -> None:
    reads_narrowed(all_told)
    proof(all_told[1])["reads"] = STAY


def reads_another_event(all_told: Any) -> None:
    all_told[0]["plan"][0]["reads"] = proof(all_told[0])["reads"] = "age > 60"


def rate_lowered(all_told: Any) -> None:
    proof(all_told[0])["now"]["rate"] /= 2


def law_made_harmless(all_told: Any) -> None:
    proof(all_told[0])["checks"][0]["laws"][0]["member"] = proof(all_told[0])["checks"][0]["laws"][0]["rest"]


def fewer_rows_apart(all_told: Any) -> None:
    proof(all_told[1])["checks"][0]["apart"] = 1


def another_past(all_told: Any) -> None:
    proof(all_told[1])["past"] = {"draws": [], "free": 0.0, "ranged": 0.0}


def no_proof(all_told: Any) -> None:
    del all_told[1]["plan"][0]["certificate"]["evidence"]


def no_certificate(all_told: Any) -> None:
    del all_told[1]["plan"][0]["certificate"]


def left_out(all_told: Any) -> None:
    del all_told[1]


def more_told(all_told: Any) -> None:
    all_told[1]["answers"] = [{"query": WEEK, "value": 3, "interval": None}]


def fewer_rows(all_told: Any) -> None:
    for told in all_told:
        told["account"]["n"] = 500
        told["plan"][0]["n"] = 500


FORGED: list[Callable[[Any], None]] = [
    b_lowered,
    b_lowered_in_the_proof,
    b_lowered_everywhere,
    another_name,
    reads_narrowed,
    reads_narrowed_everywhere,
    reads_another_event,
    rate_lowered,
    law_made_harmless,
    fewer_rows_apart,
    another_past,
    no_proof,
    no_certificate,
    left_out,
    more_told,
    fewer_rows,
]


@pytest.mark.parametrize("forge", FORGED)
def test_a_forged_entry_is_found(forge: Callable[[Any], None], tmp_path: Path) -> None:
    entries = ledger(tmp_path)
    honest = [entry.to_json() for entry in entries]
    assert recheck("record", chained(honest)).releases == 1
    forged = copy.deepcopy(honest)
    forge(forged)
    with pytest.raises(CertificateError, match=r"^record: entry [123]: "):
        recheck("record", chained(forged))


def a_chain(place: Path) -> ap.Session:
    diary = ap.Chain(column="state", states=[0, 1], initial=[0.5, 0.5], transition=[[0.9, 0.1], [0.1, 0.9]], tolerance=0)
    policy = ap.Policy(rows=100, epsilon=1.0, assume=diary, protect=[ap.Secret("entries(state)")])
    return ap.Session(pa.table({"state": [0, 1] * 50}), policy, ledger=place / "x.ledger")


# Of an entry whose numbers are not compared, each with the reason.
NOT_COMPARED = {"certificate.assumes": "are words"}


@pytest.mark.parametrize(("session", "reads"), [(opened, STAY), (opened, None), (a_chain, "state = 1"), (a_chain, None)])
def test_every_field_of_an_entry_is_compared(session: Callable[[Path], ap.Session], reads: str | None, tmp_path: Path) -> None:
    """One place changed at a time, with digests that fit: nobody plans such a release, or it is planned otherwise."""
    with session(tmp_path) as there:
        there.record_outside(b=0.01, what="an event", reads=reads)
        (entry,) = there.recorded()
    honest = entry.to_json()
    assert recheck("record", chained([honest])).certificates == 1
    (plan,) = honest["plan"]
    bound = [path for path in leaves(plan) if place(path) not in NOT_COMPARED]
    assert len(bound) > 20
    for path in bound:
        value = plan
        for step in path:
            value = value[step]
        for other in changed(value):
            if other != value:
                with pytest.raises(CertificateError):
                    recheck("record", chained([{**honest, "plan": [with_value(plan, path, other)]}]))


def test_the_last_entry_has_nothing_after_it_but_the_head(tmp_path: Path) -> None:
    """A smaller b in the last entry, all of it made to fit, is another honest ledger: only its head tells."""
    with opened(tmp_path) as session:
        session.record_outside(b=0.01, what="x")
        head = session.recorded()[-1].digest
    with ap.Session(TABLE, smokers(), ledger=tmp_path / "y.ledger") as other:
        other.record_outside(b=0.001, what="x")
        with pytest.raises(RefusedError):
            other.verify(head)


# ------------------------------------------------------------------------------------------------------------ the evidence


def certificate(place: Path, number: int) -> Certificate:
    return Certificate.from_json(ledger(place)[number].plan[0]["certificate"])


@pytest.mark.parametrize(
    "changes",
    [
        {"b": 1.0},
        {"reads": None},
        {"now": None},
        {"checks": ()},
        {"now": CountDraw(statistic=WEEK, identity="i", width=1, rate=0.001)},
    ],
)
def test_what_stands_for_it_must_span_b(changes: dict[str, Any], tmp_path: Path) -> None:
    proved = certificate(tmp_path, 0)
    proved.verify()
    assert isinstance(proved.evidence, OutsideEvidence)
    forged = proved.model_copy(update={"evidence": proved.evidence.model_copy(update=changes)})
    with pytest.raises(CertificateError):
        forged.verify()


def test_nothing_of_ours_is_covered_by_it(tmp_path: Path) -> None:
    evidence = certificate(tmp_path, 0).evidence
    assert isinstance(evidence, SequenceEvidence)
    assert not evidence.covers("stay", "laplace", 1.0)
    assert not evidence.covers_statistic("stay", frozenset({"stay"}), 1, "laplace", 1.0)  # type: ignore[arg-type]
    assert evidence.width_of("stay") is None
