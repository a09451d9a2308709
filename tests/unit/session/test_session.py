"""A session: every kind of table, the order plan -> scan -> noise -> record -> release, and what happens when a step fails."""

from __future__ import annotations

import importlib
import math
import os
import select
import signal
import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import ibis
import pandas
import polars
import pyarrow as pa
import pytest

import attrpriv as ap
from attrpriv.accounting.ledger import Ledger
from attrpriv.errors import AttrprivError, DataError, PolicyError, QueryError, RefusedError, UsageError
from attrpriv.methods.base.plan import Plan
from attrpriv.session import record
from tests.end_to_end.material import NOON, ROWS, assume, contents, policy, students, write_policy, write_table

exact_module = importlib.import_module("attrpriv.noise.exact")
reading_module = importlib.import_module("attrpriv.session.table_reads")
session_module = importlib.import_module("attrpriv.session.session")


def exact(table: Any, column: str) -> Fraction:
    values = table.column(column).to_pylist()
    return sum(map(Fraction, values), Fraction(0)) / len(values)


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The samplers draw 0: the average comes out as it is, but for the grid of the noise, 2^-32 of its scale."""
    monkeypatch.setattr(exact_module, "_gaussian", lambda steps: lambda _: 0)
    monkeypatch.setattr(exact_module, "_laplace", lambda steps: lambda _: 0)


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns of each pass over the table."""
    passes: list[list[str]] = []
    real = reading_module.scan

    def counting(source: Any, reads: Any, *more: Any) -> Any:
        passes.append([read.column for read in reads])
        return real(source, reads, *more)

    monkeypatch.setattr(reading_module, "scan", counting)
    return passes


def made(**changes: Any) -> ap.Policy:
    return ap.Policy(**policy("data", **changes))


def needing(**changes: Any) -> ap.Policy:
    """A policy under which a first release takes all there is: its secret is not hidden by the average's own spread."""
    return made(protect=[{"secret": "mean(income)", "between": [20_000, 200_000], "within": 5000}], **changes)


# ------------------------------------------------------------------------------------------------------ kinds of tables


def in_a_database(table: pa.Table, _: Path) -> Any:
    connection = ibis.duckdb.connect()
    connection.con.register("given", table)
    connection.raw_sql("CREATE TABLE people AS FROM given")
    return connection.table("people")


TABLES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "parquet": lambda table, folder: write_table(folder, table),
    "parquet as text": lambda table, folder: str(write_table(folder, table)),
    "csv": lambda table, folder: write_table(folder, table, "students.csv"),
    "arrow": lambda table, _: table,
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: polars.from_arrow(table),
    "polars, lazy": lambda table, _: polars.from_arrow(table).lazy(),  # type: ignore[union-attr]
    "ibis": in_a_database,
    "ibis, in memory": lambda table, _: ibis.memtable(table),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.usefixtures("no_noise")
def test_every_kind_of_table_gives_the_same_answer(kind: str, tmp_path: Path) -> None:
    table = students()
    with ap.Session(TABLES[kind](table, tmp_path), made(rows=ROWS), ledger=tmp_path / "x.ledger") as session:
        released = session.release("avg(weight), sum(weight), count(*)")
    average = exact(table, "weight")
    assert released.values == pytest.approx((average, average * ROWS, ROWS), rel=1e-9)


@pytest.mark.parametrize("kind", ["csv", "polars, lazy", "ibis", "ibis, in memory"])
def test_a_table_that_does_not_know_its_rows_needs_them_declared(kind: str, tmp_path: Path) -> None:
    with (
        ap.Session(TABLES[kind](students(), tmp_path), made(), ledger=tmp_path / "x.ledger") as session,
        pytest.raises(
            PolicyError, match=r"^rows: must be declared, because \S+ does not say how many rows it has\. Add rows\.$"
        ),
    ):
        session.plan()
    assert not (tmp_path / "x.ledger").exists()


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("queries", ["avg(weight)", "count(*)"])
def test_declared_rows_must_be_true(kind: str, queries: str, tmp_path: Path) -> None:
    with (
        ap.Session(TABLES[kind](students(), tmp_path), made(rows=ROWS + 1), ledger=tmp_path / "x.ledger") as session,
        pytest.raises(DataError, match=rf"^rows: must be the number of rows of the table, {ROWS}\. Got {ROWS + 1}\.$"),
    ):
        session.release(queries)
    assert not (tmp_path / "x.ledger").exists()


def test_what_is_no_table(tmp_path: Path) -> None:
    for given in (5, ["weight"], {"weight": [1, 2]}):
        with pytest.raises(DataError, match=r"^data: it must be the path of .*Got a (int|list|dict)\.$"):
            ap.Session(given, made(), ledger=tmp_path / "x.ledger").plan()


# --------------------------------------------------------------------------------------------------------- several asked


@pytest.mark.usefixtures("no_noise")
def test_one_pass_answers_everything(tmp_path: Path, scans: list[list[str]]) -> None:
    table = students()
    with ap.Session(table, made(), ledger=tmp_path / "x.ledger") as session:
        asked: list[str | ap.Query] = ["SELECT sum(income), avg(weight), count(*) FROM data", ap.mean("income"), "avg(weight)"]
        released = session.release(asked, "gaussian", spend=1)
    weight, income = exact(table, "weight"), exact(table, "income")
    assert [query.text for query in released.plan.queries] == ["sum(income)", "avg(weight)", "count(*)", "avg(income)"]
    assert released.values == pytest.approx((income * ROWS, weight, ROWS, income), rel=1e-9)
    assert len(scans) == 1
    assert sorted(scans[0]) == ["income", "weight"]


def test_a_sum_is_n_times_the_average_of_the_same_release(tmp_path: Path) -> None:
    with ap.Session(students(), made(), ledger=tmp_path / "x.ledger") as session:
        total, average = session.release("sum(weight), avg(weight)").values
    assert total == pytest.approx(ROWS * average, rel=1e-15)
    assert average != float(exact(students(), "weight"))


def test_the_number_of_rows_is_exact(tmp_path: Path) -> None:
    with ap.Session(students(), made(), ledger=tmp_path / "x.ledger") as session:
        plan = session.plan("count(*), avg(weight)")
        released = session.release("count(*), avg(weight)")
    assert released.values[0] == ROWS
    assert plan.noise_of(ap.count()).kind == "none"
    assert plan.noise_of(ap.mean("weight")) == session.plan("avg(weight)").noise_of(ap.mean("weight"))
    assert released.to_json()["answers"][0]["interval"] == {"level": 0.95, "low": ROWS, "high": ROWS}


def test_nothing_asked() -> None:
    with ap.Session(students(), made(release=[])) as session:
        nothing: tuple[Any, ...] = (None, [], ())
        for queries in nothing:
            with pytest.raises(QueryError, match=r"^query: there must be one, .* Got none\.$"):
                session.plan(queries)


def test_what_is_no_query() -> None:
    with ap.Session(students(), made()) as session:
        for queries in (5, [5], [["avg(weight)"]]):
            with pytest.raises((QueryError, UsageError)):
                session.plan(queries)  # type: ignore[arg-type]


def test_several_values_have_no_single_one(tmp_path: Path) -> None:
    with ap.Session(students(), made(), ledger=tmp_path / "x.ledger") as session:
        released = session.release("avg(weight), count(*)")
    with pytest.raises(UsageError, match=r"^release: has 2 "):
        _ = released.value


def test_a_release_and_its_interval(tmp_path: Path) -> None:
    with ap.Session(students(), made(), ledger=tmp_path / "x.ledger", clock=lambda: NOON) as session:
        released = session.release()
    scale = released.plan.noise.scale
    low, high = released.interval(0.95)
    assert (low + high) / 2 == pytest.approx(released.value)
    assert high - low == pytest.approx(2 * 1.959963984540054 * scale)
    assert released.interval(0.99)[0] < low
    written = released.to_json()
    assert written["answers"] == [
        {"query": "avg(weight)", "value": released.value, "interval": {"level": 0.95, "low": low, "high": high}}
    ]
    digest = released.entry.digest
    place = {"entry": 1, "time": "2024-05-06T12:00:00+00:00", "digest": digest, "head": digest, "recorded": False}
    assert written["ledger"] == place
    (entry,) = Ledger(tmp_path / "x.ledger").entries()
    assert entry == released.entry
    assert entry.answers == written["answers"]
    assert entry.plan == written["plan"]
    assert entry.policy_digest == made().digest
    for level in (0, 1, -1, math.nan):
        with pytest.raises(UsageError, match=r"^level: must be above 0 and below 1\. Got "):
            released.interval(level)


# ------------------------------------------------------------------------------------------------------ reading the rows


HOLES = {
    "missing": [100.0, 110.0, None, None] * 100,
    "not a number": [100.0, 110.0, math.nan, math.nan] * 100,
    "both": [100.0, 110.0, math.nan, None] * 100,
}
# DuckDB 2.0 trusts a Parquet file's statistics, which leave NaN out; in a column without NULL it then finds each NaN also
# above the greatest bound.
# `SET disabled_optimizers = 'statistics_propagation'` is a way round it.


@pytest.mark.parametrize("bounds", [{}, {"weight": [60, 400]}])
@pytest.mark.parametrize(
    ("holes", "kind"),
    [
        *[(holes, "arrow") for holes in HOLES],
        ("missing", "parquet"),
        ("both", "parquet"),
        ("not a number", "parquet"),
    ],
)
@pytest.mark.usefixtures("no_noise")
def test_missing_values_are_filled_and_never_dropped(holes: str, kind: str, bounds: Any, tmp_path: Path) -> None:
    table = pa.table({"weight": pa.array(HOLES[holes], pa.float64()), "income": [60_000.0] * 400})
    chosen = made(missing={"weight": 150}, bounds=bounds, resolution={})
    with ap.Session(TABLES[kind](table, tmp_path), chosen, ledger=tmp_path / "x.ledger") as session:
        mechanism = "group_dp" if bounds else "gaussian"
        released = session.release("avg(weight), count(*)", mechanism=mechanism)
    assert released.values == pytest.approx((127.5, 400), rel=1e-9)


def test_a_missing_value_without_a_substitute_is_announced(tmp_path: Path) -> None:
    said = set()
    for column, value in [("weight", None), ("income", None), ("weight", math.nan), ("income", math.inf)]:
        for row in (0, 3):
            columns: dict[str, list[float | None]] = {"weight": [100.0, 120.0, 140.0, 200.0], "income": [1.0, 2.0, 3.0, 4.0]}
            columns[column][row] = value
            with (
                ap.Session(pa.table(columns), made(resolution={}), ledger=tmp_path / "x.ledger") as session,
                pytest.raises(DataError) as caught,
            ):
                session.release("avg(weight), avg(income)", spend=1)
            said.add(str(caught.value))
    assert len(said) == 1
    assert not (tmp_path / "x.ledger").exists()


@pytest.mark.usefixtures("no_noise")
def test_values_outside_the_bounds_are_clipped_where_the_plan_says_so(tmp_path: Path) -> None:
    table = pa.table({"weight": [0, 100, 200, 9000], "income": [1, 2, 3, 4]})
    with ap.Session(table, made(bounds={"weight": [60, 400]}), ledger=tmp_path / "x.ledger") as session:
        released = session.release("avg(weight)", mechanism="group_dp")
    assert released.value == pytest.approx((60 + 100 + 200 + 400) / 4, rel=1e-9)


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ("avg(wieght)", "query: the column must be one of the table's. Got wieght. Close: weight."),
        ("sum(WEIGHT)", "query: the column must be one of the table's. Got WEIGHT. Close: weight."),
        (
            "avg(gender)",
            "query: avg and sum need a numeric column. Got gender, which is text. "
            "Write count(*) filter (where gender = 'a value').",
        ),
    ],
)
def test_a_column_that_cannot_be_averaged(queries: str, message: str, scans: list[list[str]], tmp_path: Path) -> None:
    with ap.Session(students(), made(), ledger=tmp_path / "x.ledger") as session:
        for call in (session.plan, session.rank, session.release):
            with pytest.raises(DataError) as caught:
                call(queries)
            assert str(caught.value) == message
    assert scans == []


@pytest.mark.parametrize(
    "changes",
    [
        {"protect": [{"secret": "mean(age)", "within": 1}]},
        {"bounds": {"age": [0, 1]}},
        {"resolution": {"age": 1}},
        {"missing": {"age": 1}},
    ],
)
def test_the_policy_s_columns_must_be_there(changes: dict[str, Any]) -> None:
    with (
        ap.Session(students(), made(**changes)) as session,
        pytest.raises(DataError, match=rf"^{next(iter(changes))}: the column must be .* Got age\. It has: weight, income,"),
    ):
        session.plan()


@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_needs_two_rows(rows: int) -> None:
    with (
        ap.Session(students().slice(0, rows), made()) as session,
        pytest.raises(DataError, match=rf"^data: the table must have at least 2 rows\. Got {rows}\.$"),
    ):
        session.plan()


def test_a_filter_is_never_dropped(tmp_path: Path) -> None:
    with ap.Session(students(), made(bounds={"weight": [60, 400]}), ledger=tmp_path / "x.ledger") as session:
        for text in ("avg(weight) filter (where income > 50000)", "SELECT avg(weight) FROM data WHERE income > 50000"):
            for mechanism in ("gaussian", "group_dp"):
                with pytest.raises(AttrprivError):
                    session.release(text, mechanism=mechanism)
    assert not (tmp_path / "x.ledger").exists()


# ------------------------------------------------------------------------------------------------------------- planning


def test_planning_reads_no_row(tmp_path: Path, scans: list[list[str]]) -> None:
    path = write_table(tmp_path)
    content = bytearray(path.read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    content[4:footer] = bytes(footer - 4)  # every page of data is now zeros
    path.write_bytes(content)
    with ap.Session(path, made(), ledger=tmp_path / "x.ledger") as session:
        assert session.plan().mechanism == "gaussian"
        assert session.rank().chosen == session.plan()
        assert session.problem().n == ROWS
        assert scans == []
        with pytest.raises(DataError, match=r"^data: the engine could not read the table\."):
            session.release()
    assert scans == [["weight"]]
    assert not (tmp_path / "x.ledger").exists()


def test_planning_before_the_table_is_there(tmp_path: Path) -> None:
    with ap.Session(tmp_path / "later.parquet", made(rows=ROWS), ledger=tmp_path / "x.ledger") as session:
        assert session.plan().n == ROWS
        for queries in ("avg(weight)", "count(*)"):
            with pytest.raises(DataError, match=r"^data: the file must exist\. Got "):
                session.release(queries)
    assert contents(tmp_path) == {}


def test_a_plan_is_a_function_of_public_facts() -> None:
    poor, rich = students(seed=1), students(seed=2, income=900_000.0, weight=90.0)
    plans = [ap.Session(table, made()).plan("avg(weight), count(*)").to_json() for table in (poor, rich)]
    assert plans[0] == plans[1]


def test_mechanisms_by_name(tmp_path: Path) -> None:
    with ap.Session(students(), made(bounds={"weight": [60, 400]}), ledger=tmp_path / "x.ledger") as session:
        assert session.plan(mechanism="group_dp").mechanism == "group_dp"
        with pytest.raises(UsageError, match=r"^mechanism: must be auto or one of .*group_dp, .*gaussian.* Got 'magic'\.$"):
            session.plan(mechanism="magic")


def test_the_constant_answer_reads_no_row(tmp_path: Path, scans: list[list[str]]) -> None:
    known = made(assume=assume(mean={"income": 60_000, "weight": 150}))
    with ap.Session(students(), known, ledger=tmp_path / "x.ledger") as session:
        assert session.release("avg(weight)", mechanism="constant").value == 150
    assert scans == []


def test_the_interval_of_the_constant_answer_allows_for_its_error(tmp_path: Path) -> None:
    known = made(assume=assume(mean={"income": 60_000, "weight": 150}))
    with ap.Session(students(), known, ledger=tmp_path / "x.ledger") as session:
        released = session.release("avg(weight)", mechanism="constant")
    low, high = released.interval(0.95)
    assert high - low == pytest.approx(2 * (released.plan.error.alpha95 or 0))
    assert high > low


# ------------------------------------------------------------------------------------------------------- once, in order


def test_a_release_with_nothing_left_is_refused_before_any_row_is_read(tmp_path: Path, scans: list[list[str]]) -> None:
    """The first one spent everything: neither another statistic nor a tighter or looser policy gets anything more."""
    ledger = tmp_path / "x.ledger"
    with ap.Session(students(), needing(), ledger=ledger) as session:
        session.release(mechanism="gaussian")
        first = ledger.read_bytes()
        with pytest.raises(RefusedError, match="must have something left of the table's budget"):
            session.release("avg(income)", spend=0.1)
    for changed, text in [
        (needing(epsilon=0.5), "must have something left"),
        (needing(epsilon=2.0), "epsilon: must not become larger"),
    ]:
        with (
            ap.Session(students(seed=2), changed, ledger=ledger) as session,
            pytest.raises(RefusedError, match=text),
        ):
            session.release("avg(income)", spend=0.1)
    assert len(scans) == 1
    assert ledger.read_bytes() == first


def test_the_same_question_gets_the_recorded_answer(tmp_path: Path, scans: list[list[str]]) -> None:
    """Bit by bit, at no cost, in another session, from other rows, with another mechanism or error named."""
    ledger = tmp_path / "x.ledger"
    policy = made(bounds={"weight": [60, 400]})
    with ap.Session(students(), policy, ledger=ledger) as session:
        first = session.release(["avg(weight)", "sum(weight)"])
        again = [session.release(["avg(weight)", "sum(weight)"])]
    before = ledger.read_bytes()
    with ap.Session(students(seed=2), policy, ledger=ledger, clock=lambda: NOON) as session:
        again.append(session.release(["AVG( weight )", "sum(weight)"], by="alpha95"))
        again.append(session.release(["avg(weight), sum(weight)"], mechanism="group_dp"))
        again.append(session.release(["avg(weight), sum(weight)"], error=1e-9))
        turned = session.release(["sum(weight)", "avg(weight)"])
    assert not first.recorded
    for told in (*again, turned):
        assert told.recorded
        assert told.entry == first.entry
        assert told.head == first.head == first.entry.digest
        assert told.plan == first.plan
    for told in again:
        assert told.values == first.values
        assert {**told.to_json()["ledger"], "recorded": False} == first.to_json()["ledger"]
        assert told.to_json(0.99)["answers"] == first.to_json(0.99)["answers"]
        assert told.to_json()["plan"] == first.to_json()["plan"]
    assert turned.values == first.values[::-1]
    assert [answer.query.text for answer in turned.answers] == ["sum(weight)", "avg(weight)"]
    assert len(scans) == 1
    assert ledger.read_bytes() == before


@pytest.mark.parametrize(
    ("policy", "table", "queries", "mechanism", "text"),
    [
        (needing(), students(), "avg(weight), avg(income)", "auto", "must have something left"),
        (needing(), students(), "avg(income)", "auto", "must have something left"),
        (needing(epsilon=0.5), students(), "avg(income)", "auto", "must have something left"),
        (needing(epsilon=2.0), students(), "avg(income)", "auto", "epsilon: must not become larger"),
        (needing(), students(rows=ROWS + 1), "avg(weight)", "auto", r"its rows must stay as it was \(400\)"),
        (needing(), students(), "avg(weight)", "magic", "mechanism: must be auto or one of"),
        (needing(), students(), "avg(income)", "subsample", "must not be mixed"),
    ],
    ids=["one more", "another", "a tighter policy", "a looser policy", "another number of rows", "no mechanism", "a view"],
)
def test_another_question_is_refused(policy: Any, table: Any, queries: str, mechanism: str, text: str, tmp_path: Path) -> None:
    with ap.Session(students(), needing(), ledger=tmp_path / "x.ledger") as session:
        session.release("avg(weight)", "gaussian")
    with ap.Session(table, policy, ledger=tmp_path / "x.ledger") as session:
        with pytest.raises(ap.AttrprivError, match=text):
            session.release(queries, mechanism, spend=0.5)
        assert len(session.recorded()) == 1


def test_of_two_processes_with_one_question_the_slower_one_tells_the_faster_ones_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both looked before either had written; one value is recorded, and both show it."""
    real = Plan.answered
    faster: list[Any] = []

    def answered(plan: Plan, *found: Any) -> Any:
        drawn = real(plan, *found)
        if not faster:
            faster.append(None)
            with ap.Session(students(), made(), ledger=tmp_path / "x.ledger") as rival:
                faster[0] = rival.release()
        return drawn

    monkeypatch.setattr(Plan, "answered", answered)
    with ap.Session(students(), made(), ledger=tmp_path / "x.ledger") as session:
        slower = session.release()
        assert slower.recorded
        assert slower.values == faster[0].values
        assert len(session.recorded()) == 1


def test_a_recorded_plan_of_another_version_is_pointed_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ap.Session(students(), made(), ledger=tmp_path / "x.ledger") as session:
        session.release()
        monkeypatch.setattr(record, "_SHARED", ("guarantee",))
        with pytest.raises(RefusedError, match=r"^entry 1 holds the answer, by a plan of another version") as caught:
            session.release()
    assert caught.value.__context__ is None


def test_no_value_exists_before_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    real_answered, real_commit = Plan.answered, Ledger.commit

    def answered(plan: Any, found: Any) -> Any:
        order.append("noise")
        return real_answered(plan, found)

    def commit(ledger: Ledger, **contents: Any) -> Any:
        order.append("commit")
        assert not Path(ledger.place).exists()
        return real_commit(ledger, **contents)

    monkeypatch.setattr(Plan, "answered", answered)
    monkeypatch.setattr(Ledger, "commit", commit)
    with ap.Session(students(), made(), ledger=tmp_path / "x.ledger") as session:
        session.release()
    assert order == ["noise", "commit"]


@pytest.mark.parametrize("raised", [UsageError("no room"), OSError("no room"), KeyboardInterrupt()])
def test_a_commit_that_fails_lets_no_value_escape(
    raised: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[float] = []

    def commit(ledger: Ledger, **contents: Any) -> Any:
        drawn.extend(answer["value"] for answer in contents["answers"])
        raise raised

    monkeypatch.setattr(Ledger, "commit", commit)
    session = ap.Session(students(), made(), ledger=tmp_path / "x.ledger")
    with pytest.raises(type(raised)) as caught:
        session.release()
    assert len(drawn) == 1
    assert caught.value is raised
    frames = [frame.f_locals for frame in _attrpriv_frames(caught.value)]
    assert frames
    assert str(drawn[0]) not in repr(frames)
    assert str(drawn[0]) not in repr(vars(session))
    assert not (tmp_path / "x.ledger").exists()


def _attrpriv_frames(error: BaseException) -> list[Any]:
    frames, trace = [], error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals["__name__"].startswith("attrpriv"):
            frames.append(trace.tb_frame)
        trace = trace.tb_next
    return frames


# --------------------------------------------------------------------------------------------------------------- places


def test_data_and_ledger_by_default(tmp_path: Path) -> None:
    place = write_policy(tmp_path, policy(data="t.parquet"), "rules.yaml")
    write_table(tmp_path, name="t.parquet")
    with ap.Session(policy=place) as session:
        session.release()
    assert (tmp_path / "t.ledger").exists()  # beside the policy, by the table's name
    another = write_policy(tmp_path, policy(data="t.parquet", epsilon=2.0), "others.yaml")
    with ap.Session(policy=another) as session:
        assert session.release().recorded  # another policy on the same table finds the same ledger
        with pytest.raises(ap.RefusedError, match="epsilon: must not become larger"):
            session.release("avg(income)", spend=0.5)
    (tmp_path / "later").mkdir()
    write_table(tmp_path / "later", name="t.parquet")
    third = write_policy(tmp_path, policy(data="later/t.parquet"), "later.yaml")
    with ap.Session(policy=third) as session, pytest.raises(ap.RefusedError, match=r"\(t.parquet\). Got later/t.parquet"):
        session.release()  # a file of the same name in another folder is another table
    write_table(tmp_path, name="u.parquet")
    with ap.Session(tmp_path / "u.parquet", made()) as session:
        session.release()
    assert (tmp_path / "u.ledger").exists()  # a policy made in Python has no place: beside the table, by its name


def test_a_table_given_to_the_session_wins_over_the_policy_s(tmp_path: Path) -> None:
    place = write_policy(tmp_path, policy(data="gone.parquet"))
    assert ap.Session(students(), place).plan().n == ROWS
    assert ap.Session(students(), str(place)).plan().n == ROWS


def test_what_a_session_needs(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"^policy: must be a Policy or a policy file, as in Session\(table, policy\)\. Got nothing\.$"
    ):
        ap.Session(students())
    with pytest.raises(PolicyError, match=r"^data: must be given in the policy or to Session\. Got neither\.$"):
        ap.Session(policy=made())
    with (
        ap.Session(students(), made()) as session,
        pytest.raises(UsageError, match=r"^ledger: must be a path when the table is in memory"),
    ):
        session.release()
    for place, message in [("none/x.ledger", "a directory that exists"), (".", "must be a file")]:
        with ap.Session(students(), made(), ledger=tmp_path / place) as session, pytest.raises(UsageError, match=message):
            session.release()
    assert contents(tmp_path) == {}


def test_a_file_that_is_no_ledger_is_left_alone(tmp_path: Path) -> None:
    path = write_table(tmp_path)
    before = contents(tmp_path)
    with ap.Session(path, made(), ledger=path) as session, pytest.raises(UsageError, match="must be a ledger of attrpriv"):
        session.release()
    assert contents(tmp_path) == before


# ---------------------------------------------------------------------------------------------------------------- forks


def in_a_fork(work: Callable[[], str]) -> str:
    """What `work` says in a forked process, which is given 30 seconds."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads, and rightly so
        child = os.fork()
    if child == 0:
        try:
            os.write(writer, work().encode())
        finally:
            os._exit(0)
    os.close(writer)
    try:
        ready, _, _ = select.select([reader], [], [], 30)
        return os.read(reader, 10_000).decode() if ready else "no answer"
    finally:
        os.close(reader)
        for _ in range(100):
            if os.waitpid(child, os.WNOHANG)[0]:
                break
            time.sleep(0.05)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("call", ["release", "plan", "rank"])
def test_a_forked_session_is_refused(call: str, tmp_path: Path) -> None:
    with ap.Session(write_table(tmp_path), made(), ledger=tmp_path / "x.ledger") as session:
        session.plan()

        def work() -> str:
            try:
                getattr(session, call)()
            except UsageError as error:
                return str(error)
            return "was answered"

        said = in_a_fork(work)
        assert said == "session: must not be used in a forked process. Open a new Session there."
        assert not (tmp_path / "x.ledger").exists()
        session.release()  # the parent's still works


def test_a_pandas_table_is_not_changed(tmp_path: Path) -> None:
    frame: pandas.DataFrame = students().to_pandas()
    before = frame.copy(deep=True)
    with ap.Session(frame, made(), ledger=tmp_path / "x.ledger") as session:
        session.release()
    pandas.testing.assert_frame_equal(frame, before)


def test_the_number_of_rows_is_public_under_counts_too(tmp_path: Path) -> None:
    """It draws no view, and leaves the whole budget to what follows."""
    counts = ap.Counts(sensitive="gender", given={"weight > 150": {"F": 0.4, "M": 0.6}}, prior={"F": 0.5})
    told = ap.Policy(epsilon=1.0, protect=[ap.Secret("count(gender = 'F')", between=(100, 300))], assume=counts)
    with ap.Session(write_table(tmp_path), told, ledger=tmp_path / "x.ledger") as session:
        assert session.release("count(*)").value == session.plan("count(*)").n
        assert [entry.kind for entry in session.recorded()] == ["release"]
        assert session.plan("count(*) filter (where weight > 150)").view is None
