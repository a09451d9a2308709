"""Two sessions on one ledger, one of which releases while the other reads the table: one question has one answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import attrpriv as ap
import attrpriv.session.session as at_work
from attrpriv.accounting.ledger import Ledger
from attrpriv.session import table_reads as reading
from attrpriv.session.record import recheck
from tests.unit.session.sequences import made, session

POLICY = made(assume={**made().assume[0].to_json(), "mean": {"income": 60_000, "weight": 150, "height": 66}, "tolerance": 0})


def overtake(monkeypatch: pytest.MonkeyPatch, place: Path, other: tuple[Any, ...], policy: ap.Policy = POLICY) -> None:
    """While the next release reads its table, another session releases."""
    read = reading.read

    def late(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(at_work, "read", read)
        with session(place, policy) as second:
            second.release(*other, spend=0.5)
        return read(*arguments, **named)

    monkeypatch.setattr(at_work, "read", late)


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ((["avg(weight)", "avg(height)"], "gaussian"), ("avg(weight)", "constant")),
        ((["avg(weight)", "avg(height)"], "constant"), ("avg(weight)", "gaussian")),
        (("sum(weight)", "gaussian"), ("avg(weight)", "constant")),
        (("sum(weight)", "gaussian"), ("avg(weight)", "gaussian")),
    ],
    ids=["a constant meanwhile", "noise meanwhile", "the average as a constant", "the average with noise"],
)
def test_what_was_answered_meanwhile_is_told(
    first: tuple[Any, ...], other: tuple[Any, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "x.ledger"
    overtake(monkeypatch, place, other)
    with session(place, POLICY) as opened:
        released = opened.release(*first, spend=0.5)
        weight = opened.release("avg(weight)").value
        share = 500 if first[0] == "sum(weight)" else 1
        assert released.answers[0].values[0].value == pytest.approx(share * weight, rel=1e-15)
        told = [one["query"] for entry in opened.recorded() for one in entry.answers]
        assert sorted(told) == sorted(set(told))
        assert {"avg(weight)", "sum(weight)"} - set(told)  # only one of them was ever drawn
        recheck("record", opened.recorded())


def test_a_policy_is_never_in_force_without_its_proof(tmp_path: Path) -> None:
    """Earlier answers exceed the tighter policy: neither noise nor a constant states it."""
    place = tmp_path / "x.ledger"
    with session(place, POLICY) as opened:
        opened.release("avg(weight)", "gaussian", spend=0.9)
    tighter = POLICY.model_copy(update={"epsilon": 0.01, "delta": 1e-12})
    with session(place, tighter) as opened:
        with pytest.raises(ap.RefusedError):
            opened.release("avg(height)", "gaussian", spend=0.5)
        opened.release("avg(height)", "constant", spend=0.5)
        opened.release("count(*)")
    with session(place, POLICY) as opened:
        assert [entry.account["policy"] for entry in opened.recorded()] == [1, 1, 1]
        opened.release("avg(sat)", "gaussian", spend=0.5)  # under the policy that is still in force
        recheck("record", opened.recorded())


def test_an_index_that_lost_an_answer_is_noticed(tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    place = tmp_path / "x.ledger"
    with session(place, POLICY) as opened:
        opened.release("avg(weight)", "gaussian", spend=0.5)
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("DELETE FROM answered")
    with session(place, POLICY) as opened, pytest.raises(ap.RefusedError):
        opened.release("avg(weight)", "gaussian", spend=0.5)
    assert len(Ledger(place).entries()) == 1


def test_the_number_of_rows_beside_a_recorded_answer_is_no_release(tmp_path: Path) -> None:
    with session(tmp_path / "x.ledger", POLICY) as opened:
        first = opened.release("avg(weight)", "gaussian", spend=0.5)
        again = opened.release(["sum(weight)", "count(*)", "avg(weight)"])
        assert again.recorded
        assert [answer.values[0].value for answer in again.answers][1:] == [500, first.value]
        assert again.plans == (first.plan,)
        assert len(opened.recorded()) == 1


def test_a_file_of_another_kind_is_another_table(tmp_path: Path) -> None:
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    from tests.unit.session.sequences import people

    pq.write_table(people(), tmp_path / "people.parquet")
    pc.write_csv(people(seed=2), tmp_path / "people.csv")
    policy = POLICY.model_copy(update={"rows": 500})
    with ap.Session(tmp_path / "people.parquet", policy, ledger=tmp_path / "x.ledger") as opened:
        opened.release("avg(weight)", "gaussian", spend=0.5)
    with (
        ap.Session(tmp_path / "people.csv", policy, ledger=tmp_path / "x.ledger") as opened,
        pytest.raises(ap.RefusedError, match="its table must stay as it was"),
    ):
        opened.release("avg(weight)")


def test_averages_and_their_combinations_follow_one_another(tmp_path: Path) -> None:
    fine = POLICY.model_copy(update={"resolution": dict.fromkeys(("weight", "height", "sat", "income"), 0.5)})
    with session(tmp_path / "x.ledger", fine) as opened:
        for query in ("avg(2*weight + height)", "avg(weight)", "avg(height + sat)"):
            assert opened.release(query, "gaussian", spend=0.3).plan.left == pytest.approx(opened.left)
        assert 0.3 < opened.left < 0.4
        recheck("record", opened.recorded())


def test_what_a_release_of_everything_leaves_can_be_used(tmp_path: Path) -> None:
    """Where the mask alone hides enough, spending all of it leaves something, and what is left is what may follow."""
    hardly = POLICY.model_copy(update={"protect": (ap.Secret("mean(income)", within=1.0),), "resolution": {"weight": 1.0}})
    with session(tmp_path / "x.ledger", hardly) as opened:
        assert opened.release("avg(weight)", "gaussian", spend=1).plan.left > 0.5
        left = opened.left
        assert 0 < opened.release("avg(height)", "gaussian", spend=0.5).plan.left < left
        recheck("record", opened.recorded())
