"""Releases one after the other: what each may spend, what is told again, what a changed policy may do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import attrpriv as ap
from attrpriv.accounting.ledger import Ledger
from attrpriv.errors import CertificateError
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.session.record import document, read_document, recheck
from tests.end_to_end.race import question, town
from tests.unit.session.sequences import ROWS, made, people, reached, session

MU = gaussian_mu(1.0, 1e-6)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "x.ledger"


def proved(place: Path, policy: ap.Policy | None = None) -> float:
    """Every proof once more, the twin's distance within the budget; gives the share that the twin says is spent."""
    entries = Ledger(place).entries()
    recheck("record", entries)
    found = reached(policy or made(), entries, members=20)
    allowed = gaussian_mu((policy or made()).epsilon, (policy or made()).delta)
    assert found <= allowed
    return (found / allowed) ** 2


# -------------------------------------------------------------------------------------------------------------- spending


def test_what_the_policy_lists_gets_equal_shares(place: Path) -> None:
    with session(place) as opened:
        assert opened.left == 1.0
        for k, query in enumerate(("avg(weight)", "avg(height)", "avg(sat)"), 1):
            before = opened.left
            plan = opened.plan(query, "gaussian")
            assert plan.spend == pytest.approx(1 / (4 - k))
            left = plan.certificate.left(1.0, 1e-6)
            released = opened.release(query, "gaussian")
            assert released.plan.columns == plan.columns
            assert opened.left == left  # as the plan said
            assert opened.left == pytest.approx(before * (1 - plan.spend), abs=2e-3)
            assert proved(place) == pytest.approx(k / 3, rel=0.2)  # of a sample of the class
        assert opened.left == 0
        with pytest.raises(ap.RefusedError, match="must have something left of the table's budget"):
            opened.release("avg(age)", spend=0.5)


def test_all_of_it_at_once_is_the_old_way(place: Path) -> None:
    with session(place) as opened:
        together = opened.release(mechanism="gaussian")
        assert together.plan.spend == 1
        assert len(together.answers) == 3
        assert opened.left == 0
    proved(place)


def test_a_query_that_is_not_listed_must_say(place: Path) -> None:
    with session(place) as opened:
        with pytest.raises(ap.UsageError, match=r"^spend: must be said for a query that the policy does not list"):
            opened.release("avg(age)")
        assert opened.plan("avg(age)").spend == 1  # a plan may be looked at
        assert not place.exists()
        for wrong in (0, -0.1, 1.01, float("nan"), True, "0.1"):
            with pytest.raises(ap.UsageError, match=r"^spend: must be a share of what is left"):
                opened.release("avg(age)", spend=wrong)  # type: ignore[arg-type]
        released = opened.release("avg(age)", "gaussian", spend=0.25)
        assert released.plan.spend == 0.25
        assert opened.left == pytest.approx(0.75, abs=2e-3)
    proved(place)


def test_without_a_list_everything_is_spent_unless_it_is_said(place: Path) -> None:
    with session(place, made("release")) as opened:
        opened.release("avg(age)", "gaussian", spend=0.5)
        opened.release("avg(weight)", "gaussian")
        assert opened.left == 0
    proved(place)


def test_the_number_of_rows_costs_nothing(place: Path) -> None:
    with session(place) as opened:
        assert opened.release("count(*)").value == ROWS
        assert opened.left == 1
        assert opened.plan("count(*)").mechanism == "constant"
        opened.release("avg(weight), count(*)", "gaussian")
        assert opened.left == pytest.approx(2 / 3, abs=2e-3)
        opened.release("avg(height)", "gaussian", spend=1)
        assert opened.left == 0
    with session(place, made(epsilon=0.5)) as opened:  # and is there when nothing else is
        assert opened.release("count(*)").value == ROWS
    proved(place)


def test_a_plan_changes_nothing_and_reads_no_row(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with session(place) as opened:
        opened.release("avg(weight)")
        before = place.read_bytes()
        monkeypatch.setattr("attrpriv.session.table_reads.scan", None)
        assert opened.plan("avg(height)").certificate.left(1.0, 1e-6) == pytest.approx(1 / 3, abs=2e-3)
        note = str(opened.ledger_note("avg(height)", opened.plan("avg(height)")))
        left, may, uses, leaves = (float(number) for number in re.findall(r"([0-9.]+)%", note))
        assert (left, may) == pytest.approx((100 * opened.left, 50 * opened.left), abs=0.1)
        assert left == pytest.approx(uses + leaves, abs=1e-9), note  # all of them are shares of the whole
        assert leaves == pytest.approx(100 / 3, abs=0.2)
        assert place.read_bytes() == before


# ------------------------------------------------------------------------------------------------------------ told again


def test_a_sum_is_told_from_its_average_and_back(place: Path) -> None:
    with session(place) as opened:
        average = opened.release("avg(weight)")
        total = opened.release("sum(weight)")
        assert total.recorded
        assert total.value == pytest.approx(average.value * ROWS, rel=1e-15)
        assert len(opened.recorded()) == 1
        total = opened.release("sum(age)", spend=0.2)
        average = opened.release("avg(age)")
        assert (average.recorded, average.entry.number) == (True, 2)
        assert average.value == pytest.approx(total.value / ROWS, rel=1e-15)
        low, high = average.interval(0.95)
        assert high - low == pytest.approx((total.interval(0.95)[1] - total.interval(0.95)[0]) / ROWS, rel=1e-9)


def test_what_is_known_is_told_beside_what_is_new(place: Path) -> None:
    """In the order asked; only what is new is planned, paid and recorded."""
    with session(place) as opened:
        first = opened.release("avg(weight)", "gaussian")
        both = opened.release("avg(height), avg(weight), sum(weight)", "gaussian")
        assert not both.recorded
        assert [answer.query.text for answer in both.answers] == ["avg(height)", "avg(weight)", "sum(weight)"]
        assert both.values[1] == first.value
        assert [query.text for query in both.plan.queries] == ["avg(height)"]
        assert [one["query"] for one in both.entry.answers] == ["avg(height)"]
        assert both.plan_of(ap.mean("weight")) == first.plan
        assert both.plan_of(ap.mean("height")) == both.plan
        again = opened.release("avg(weight), avg(height)")
        assert again.recorded
        assert again.values == (first.value, both.values[0])
        assert len(opened.recorded()) == 2
        assert opened.left == pytest.approx(1 / 3, abs=2e-3)
    proved(place)


def test_repeating_tells_identical_bits(place: Path) -> None:
    with session(place) as opened:
        values = {query: opened.release(query).value for query in ("avg(weight)", "avg(height)")}
    before = place.read_bytes()
    for _ in range(3):
        with session(place, table=people(seed=2)) as opened:
            for query, value in values.items():
                assert opened.release(query, spend=1).value.hex() == value.hex()
    assert place.read_bytes() == before


# --------------------------------------------------------------------------------------------------------------- policies


def test_a_tightened_policy_is_stated_with_its_first_release(place: Path) -> None:
    tighter = made(epsilon=0.8, protect=[{"secret": "mean(income)", "within": 3500, "between": [10_000, 300_000]}])
    with session(place) as opened:
        opened.release("avg(weight)", "gaussian", spend=0.1)
    with session(place, tighter) as opened:
        opened.plan("avg(height)", spend=0.5)
        assert len(opened.recorded()) == 1  # a plan states nothing
        opened.release("avg(height)", "gaussian", spend=0.5)
        opened.release("avg(sat)", "gaussian", spend=0.5)
        first, second, third = opened.recorded()
        assert {entry.kind for entry in (first, second, third)} == {"release"}
        assert [entry.account["policy"] for entry in (first, second, third)] == [1, 2, 2]
        assert (second.policy_digest, second.account["stated"]) == (tighter.digest, tighter.stated)
        assert "stated" not in third.account
    proved(place, tighter)
    with session(place) as opened:  # the first policy is the looser one now
        with pytest.raises(ap.RefusedError, match="epsilon: must not become larger"):
            opened.release("avg(age)", spend=0.5)
        assert opened.release("avg(weight)").recorded
        assert len(opened.recorded()) == 3


LOOSER: dict[str, dict[str, Any]] = {
    "epsilon": {"epsilon": 2.0},
    "protect": {"protect": [{"secret": "mean(income)", "between": [20_000, 200_000], "within": 2000}]},
    "assume": {"assume": {**made().to_json()["assume"][0], "tolerance": {"sd": 0.02, "slope": 0.02}}},
    "resolution": {"resolution": {"weight": 1}},
}


@pytest.mark.parametrize("name", LOOSER)
def test_a_loosened_policy_is_refused_and_recorded_answers_are_still_told(name: str, place: Path) -> None:
    with session(place) as opened:
        first = opened.release("avg(weight)")
    before = place.read_bytes()
    with session(place, made(**LOOSER[name])) as opened:
        for act in (opened.plan, opened.release):
            with pytest.raises(ap.RefusedError, match=rf"belongs to its table.* {name}: must"):
                act("avg(height)", spend=0.5)
        assert opened.release("avg(weight)").value == first.value
    assert place.read_bytes() == before


def test_a_policy_too_tight_for_what_is_out_is_not_stated(place: Path) -> None:
    with session(place) as opened:
        opened.release("avg(weight)", "gaussian", spend=0.9)
    with session(place, made(epsilon=0.1)) as opened:
        for mechanism in ("auto", "gaussian"):
            with pytest.raises(ap.RefusedError, match=r"nothing is left of the budget|must have something left"):
                opened.release("avg(height)", mechanism)
        assert len(opened.recorded()) == 1


def test_another_table_of_other_length_is_refused(place: Path) -> None:
    with session(place) as opened:
        opened.release("avg(weight)")
    with (
        session(place, table=people(rows=ROWS + 1)) as opened,
        pytest.raises(ap.RefusedError, match=r"must stay as it was \(500\)\. Got 501"),
    ):
        opened.release("avg(height)")


def test_a_release_that_another_process_overtook_is_planned_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Ledger.commit
    rival = session(place)
    done: list[ap.Release] = []

    def commit(ledger: Ledger, **contents: Any) -> Any:
        if not done:
            monkeypatch.setattr(Ledger, "commit", real)
            done.append(rival.release("avg(sat)", "gaussian", spend=0.5))
        return real(ledger, **contents)

    monkeypatch.setattr(Ledger, "commit", commit)
    with session(place) as opened:
        slower = opened.release("avg(weight)", "gaussian", spend=0.5)
        assert [entry.number for entry in opened.recorded()] == [1, 2]
        assert slower.entry.number == 2
        assert opened.left == pytest.approx(0.25, abs=2e-3)
    proved(place)


def test_individuals_add_up(tmp_path: Path) -> None:
    """Row-level epsilons of all releases stay within the policy's, and each release gets its share of what is left."""
    path = town(tmp_path)
    path.write_text(path.read_text() + "individuals: {epsilon: 2.0}\n")
    with ap.Session(policy=path) as opened:
        opened.release(question(1), spend=0.25)
        opened.release(question(2), spend=0.5)
        first, second = opened.recorded()
        assert first.account["individuals"] == pytest.approx(0.5)
        assert second.account["individuals"] == pytest.approx(0.5 + 0.75)
        rows = [entry.plan[0]["certificate"]["individuals"]["epsilon"] for entry in (first, second)]
        assert sum(rows) == second.account["individuals"] <= 2.0
        recheck("record", opened.recorded())


# ------------------------------------------------------------------------------------------------------------- the record


def test_the_record_of_a_sequence_is_complete(place: Path, tmp_path: Path) -> None:
    with session(place) as opened:
        opened.release("avg(weight)")
        opened.release("avg(height)")
        entries = opened.recorded()
    told = document(entries)
    assert told["budget"] == {"epsilon": 1.0, "delta": 1e-6, "left": pytest.approx(1 / 3, abs=2e-3)}
    (tmp_path / "r.json").write_text(json.dumps(told))
    assert recheck("record", read_document(tmp_path / "r.json")).certificates == 2
    assert read_document(tmp_path / "r.json") == entries
    without = {key: value for key, value in told.items() if key != "budget"}
    for changed in (without, {**told, "budget": {**told["budget"], "left": 0.9}}):
        (tmp_path / "r.json").write_text(json.dumps(changed))
        with pytest.raises(ap.RefusedError, match="must be as attrpriv printed it"):
            read_document(tmp_path / "r.json")
    with pytest.raises(CertificateError, match=r"entry 1: .*no rule covers this release together"):
        recheck("record", (entries[0], entries[0]))
    with pytest.raises(CertificateError, match="entry 2: "):
        recheck("record", (entries[1],))
