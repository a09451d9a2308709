"""Everything about columns hidden by a view, as a user would: a policy, public records, a table, a ledger."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import attrpriv as ap
from attrpriv.cli.app import app
from attrpriv.engines.view.draw import TooFewRowsError
from attrpriv.errors import RefusedError
from attrpriv.session.record import recheck

N = 3_000
POLICY: dict[str, Any] = {
    "attrpriv": 1,
    "data": "table.parquet",
    "epsilon": 1.0,
    "delta": 1e-6,
    "protect": [{"secret": "columns(age, sex)"}],
    "reference": {"file": "census.parquet", "least_density": 0.8},
    "release": ["avg(weight)", "count(*) filter (where weight > 80)"],
}


def people(rows: int, seed: int) -> pa.Table:
    drawn = np.random.default_rng(seed)
    age = drawn.integers(20, 26, rows)
    sex = drawn.choice(["F", "M"], rows)
    missing = drawn.random(rows) < 0.1
    return pa.table(
        {
            "age": pa.array([None if gone else int(one) for one, gone in zip(age, missing, strict=True)], pa.int64()),
            "sex": sex,
            "weight": 50 + age + 5.0 * (sex == "M") + drawn.normal(0, 8, rows),
        }
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    pq.write_table(people(9_000, 1), tmp_path / "census.parquet")
    pq.write_table(people(N, 2), tmp_path / "table.parquet")
    write(tmp_path)
    return tmp_path


def write(place: Path, **changes: Any) -> Path:
    path = place / "policy.yaml"
    path.write_text(json.dumps(POLICY | changes))
    return path


def kept(plan: Any) -> dict[tuple[Any, ...], int]:
    return {cell.values: cell.keep for cell in plan.cells}


def counted(table: pa.Table) -> dict[tuple[Any, ...], int]:
    found: dict[tuple[Any, ...], int] = {}
    for age, sex in zip(table["age"].to_pylist(), table["sex"].to_pylist(), strict=True):
        found[age, sex] = found.get((age, sex), 0) + 1
    return found


def test_the_file_has_the_planned_rows_of_each_value_and_all_are_the_tables(place: Path) -> None:
    with ap.Session(policy=place / "policy.yaml") as session:
        plan = session.view_plan()
        session.view(place / "view.parquet")
    view = pq.read_table(place / "view.parquet")
    assert counted(view) == kept(plan)
    assert (None, "F") in kept(plan)
    own = {tuple(row.values()) for row in pq.read_table(place / "table.parquet").to_pylist()}
    shown = [tuple(row.values()) for row in view.to_pylist()]
    assert len(set(shown)) == len(shown) == plan.rows
    assert set(shown) <= own


def test_the_rows_are_in_no_order_of_the_cells(place: Path) -> None:
    with ap.Session(policy=place / "policy.yaml") as session:
        session.view(place / "view.parquet")
    ages = pq.read_table(place / "view.parquet")["age"].to_pylist()
    changes = sum(one != other for one, other in itertools.pairwise(ages))
    # Of a random order about 6 in 7 neighbours differ; sorted by cell 14 in all. A chance below 1e-6 by far.
    assert changes > len(ages) / 2


def test_the_same_view_comes_again_and_another_table_is_refused(place: Path) -> None:
    with ap.Session(policy=place / "policy.yaml") as session:
        session.view(place / "first.parquet")
        session.view(place / "second.parquet")
    assert (place / "first.parquet").read_bytes() == (place / "second.parquet").read_bytes()
    pq.write_table(people(N, 3), place / "table.parquet")
    with ap.Session(policy=place / "policy.yaml") as session, pytest.raises(ap.DataError, match="drawn from"):
        session.view(place / "third.parquet")


def test_a_hidden_column_that_is_not_shown(place: Path) -> None:
    write(place, reference={**POLICY["reference"], "show": "nothing"})
    with ap.Session(policy=place / "policy.yaml") as session:
        session.view(place / "view.parquet")
        with pytest.raises(ap.UsageError, match="show: values"):
            session.release("avg(age)")
    assert pq.read_table(place / "view.parquet").column_names == ["weight"]


def test_answers_are_those_of_the_public_composition(place: Path) -> None:
    with ap.Session(policy=place / "policy.yaml") as session:
        told = session.release()
        shares: dict[tuple[Any, ...], float] = {cell.values or (): cell.share or 0.0 for cell in session.view_plan().cells}
        view = session.view().to_pyarrow()
    found: dict[tuple[Any, ...], list[float]] = {}
    for row in view.to_pylist():
        found.setdefault((row["age"], row["sex"]), []).append(row["weight"])
    total = sum(shares.values())
    expected = sum(share / total * float(np.mean(found[values])) for values, share in shares.items())
    assert told.answers[0].values[0].value == pytest.approx(expected)


def test_a_second_process_and_a_recheck_find_the_same(place: Path) -> None:
    with ap.Session(policy=place / "policy.yaml") as session:
        session.release()
        entries = session.recorded()
    assert [entry.kind for entry in entries] == ["view", "answer"]
    assert recheck("record", entries).releases == 0
    with ap.Session(policy=place / "policy.yaml") as session:
        again = session.release()
    assert [answer.to_json() for answer in again.answers] == entries[1].answers


def test_other_public_records_mean_another_view(place: Path) -> None:
    with ap.Session(policy=place / "policy.yaml") as session:
        session.view()
    pq.write_table(people(9_000, 4), place / "census.parquet")
    with ap.Session(policy=place / "policy.yaml") as session, pytest.raises(RefusedError, match="other ranges, cells"):
        session.view()


def test_too_few_rows_are_recorded_and_not_tried_again(place: Path) -> None:
    table = people(N, 2)
    pq.write_table(table.set_column(1, "sex", pa.array(["F"] * N)), place / "table.parquet")
    with ap.Session(policy=place / "policy.yaml") as session:
        with pytest.raises(TooFewRowsError):
            session.view()
        assert "could not be drawn" in str(session.ledger)
    write(place, reference={**POLICY["reference"], "least_density": 0.6})
    with ap.Session(policy=place / "policy.yaml") as session:
        with pytest.raises(RefusedError, match="could not be drawn"):
            session.view()
        with pytest.raises(RefusedError, match=r"could not be drawn.* Another reference needs a new ledger"):
            session.plan("count(*)")  # `check` and `plan` promised answers from this view


def test_a_plan_reads_no_private_row(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The private file is replaced by its footer alone: what a plan needs of it."""
    whole = (place / "table.parquet").read_bytes()
    size = int.from_bytes(whole[-8:-4], "little") + 8
    (place / "table.parquet").write_bytes(b"PAR1" + b"\0" * (len(whole) - 4 - size) + whole[-size:])
    with ap.Session(policy=place / "policy.yaml") as session:
        assert session.view_plan().rows > N / 3
        assert session.plan().mechanism == "subsample"


@pytest.mark.parametrize("command", ["check", "plan", "explain", "release", "ledger"])
def test_the_commands(place: Path, command: str) -> None:
    done = CliRunner().invoke(app, [command, str(place / "policy.yaml")])
    assert done.exit_code == 0, done.output
    told = {"explain": "everything about age and sex", "release": "avg(weight)", "ledger": ""}
    assert told.get(command, "columns(age, sex)") in done.output
    document = CliRunner().invoke(app, [command, str(place / "policy.yaml"), "--json"])
    assert document.exit_code == 0
    json.loads(document.stdout)
