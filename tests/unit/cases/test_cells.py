"""An engine is given the values that a plan counted on, never the text of an event on listed values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ibis
import pytest

import attrpriv as ap
from attrpriv.assumptions.counts import Counts
from attrpriv.cases.tally_layout import in_cells, union_of
from attrpriv.methods.base.tally import Tally
from attrpriv.methods.choice.choose import plan
from attrpriv.queries.conditions import Condition, parse_condition
from attrpriv.queries.query import Query
from attrpriv.session import named_columns
from tests.unit.methods.counts import column, problem

SIZES: list[tuple[Any, Condition]] = [(one, parse_condition(f"size is '{one}'")) for one in ("S", "M", "L")]
AGES: list[tuple[Any, Condition]] = [(k, parse_condition(f"age = {k}")) for k in range(4)]


@pytest.mark.parametrize(
    ("event", "counted"),
    [
        ("size = 'M'", "size is 'M'"),
        ("size in ('S', 's')", "size is 'S'"),
        ("not size = 'M'", "size is 'S' or size is 'L'"),
        ("size is null", "size is 'S' and not (size is 'S')"),
        ("age >= 2 and age < 9", "age = 2 or age = 3"),
        ("age > 2 and size != 'M'", "age = 3 and (size is 'S' or size is 'L')"),
        ("not (age > 2 or size = 'M')", "not (age = 3 or size is 'M')"),
        ("age > 2 or ward = 'x'", "age = 3 or ward = 'x'"),
    ],
)
def test_each_part_about_listed_values_becomes_these_values(event: str, counted: str) -> None:
    assert str(in_cells(parse_condition(event), {"size": SIZES, "age": AGES})) == counted
    assert str(parse_condition(counted)) == counted


def test_hundreds_of_values_are_one_event() -> None:
    many: list[tuple[Any, Condition]] = [(k, parse_condition(f"age = {k}")) for k in range(300)]
    text = str(union_of(parse_condition("age >= 0"), many))
    assert str(parse_condition(text)) == text


def counted(theta: Counts, event: str) -> Tally:
    found = plan(problem(theta, queries=(Query("count", where=event),)), "laplace").tally
    assert found is not None
    return found


def test_the_tally_counts_values_and_every_row_must_have_one() -> None:
    stays = column("stay", [3, 9, 20], [0.4, 0.3, 0.3], [0.6, 0.2, 0.2])
    tally = counted(stays, "stay > 7")
    assert [(cell.name, cell.where) for cell in tally.cells] == [("stay > 7", "stay = 9 or stay = 20")]
    assert tally.covering == (("stay = 3", "stay = 9", "stay = 20"),)


def test_an_event_of_the_sensitive_column_counts_its_categories() -> None:
    stays = column("stay", [3, 9], [0.4, 0.6], [0.6, 0.4])
    assert counted(stays, "smoker != 'no'").cells[0].where == "smoker is 'yes'"


def test_rows_of_no_named_category_are_left_to_the_text() -> None:
    laws = {name: {"values": [3, 9], "probabilities": [0.5, 0.5]} for name in ("yes", "no", "others")}
    theta = Counts(sensitive="smoker", given={"stay": laws}, other="others")
    assert counted(theta, "smoker = 'no'").cells[0].where == "smoker is 'no'"
    assert (
        counted(theta, "smoker != 'no'").cells[0].where
        == "smoker is 'yes' or (smoker != 'no' and not (smoker is 'yes') and not (smoker is 'no'))"
    )


def test_a_collation_does_not_change_what_was_counted_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the engine 'LOW' equals 'low', which 99 of 100 smokers have; for the plan the event holds for 'mid' alone. Counted by
    its text it would have been the number of smokers, hardly noised. That 'LOW' is not listed is found before, but for this."""
    monkeypatch.setattr(named_columns, "require_listed", lambda queries, policy: None)
    engine = ibis.duckdb.connect(str(tmp_path / "x.db"))
    engine.raw_sql("create table visits (smoker varchar, visit varchar collate nocase)")
    engine.raw_sql("insert into visits select if(i < 1000, 'yes', 'no'), if(i < 1000, 'low', 'high') from range(3000) as r(i)")
    assert engine.con.execute("select count(*) from visits where visit = 'LOW'").fetchall() == [(1000,)]
    law = {"values": ["low", "mid", "high"]}
    given = {
        "visit": {"yes": {**law, "probabilities": [0.99, 0.005, 0.005]}, "no": {**law, "probabilities": [0.005, 0.005, 0.99]}}
    }
    policy = ap.Policy(
        protect=[ap.Secret("count(smoker = 'yes')", between=(600, 1400), within=400)],
        epsilon=1.0,
        assume=ap.Counts(sensitive="smoker", given=given),
        rows=3000,
    )
    with ap.Session(engine.table("visits"), policy, ledger=tmp_path / "x.ledger") as session:
        released = session.release("count(*) filter (where visit in ('LOW', 'mid'))")
    assert released.value < 500  # 0 rows with noise of scale 1 or so, not 1000
    assert released.plan.tally is not None
    assert released.plan.tally.cells[0].where == "visit is 'mid'"
