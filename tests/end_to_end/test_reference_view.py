"""The reference view as a user meets it: from public records or stated shares to rows, answers and refusals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import attrpriv as ap
from attrpriv.cli.app import app
from attrpriv.engines.public_cells import SAME_TABLE
from attrpriv.policy.strict_yaml import dump_strict

N, PUBLIC = 3000, 6000
POLICY: Mapping[str, Any] = {
    "attrpriv": 1,
    "data": "people.parquet",
    "epsilon": 1.0,
    "delta": 1e-6,
    "protect": [{"secret": "columns(age, sex)"}],
    "reference": {"file": "census.parquet", "least_density": 0.8},
}


def people(n: int, seed: int) -> pa.Table:
    """Ages 20 to 29, the last one rare; hours depend on both hidden columns."""
    generator = np.random.default_rng(seed)
    age = np.where(generator.random(n) < 0.002, 29, generator.integers(20, 29, n))
    sex = np.where(generator.random(n) < 0.4, "F", "M")
    hours = 30 + (age - 20) + 3 * (sex == "M") + generator.normal(0, 5, n)
    return pa.table({"age": age, "sex": sex, "hours": hours, "smokes": generator.random(n) < 0.3, "code": np.arange(n)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(people(N, 1), tmp_path / "people.parquet")
    pq.write_table(people(PUBLIC, 2), tmp_path / "census.parquet")
    return tmp_path


def policy(folder: Path, **changes: Any) -> Path:
    path = folder / "people.yaml"
    stated = {**POLICY, **changes}
    path.write_text(dump_strict({key: value for key, value in stated.items() if value is not None}), encoding="utf-8")
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return found.exit_code, found.stdout, found.stderr


def told(*arguments: object) -> Any:
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, ""), out + err
    return json.loads(out)


# The reference is not the table.


@pytest.mark.parametrize("command", ["plan", "release", "view", "explain"])
def test_the_tables_own_file_is_no_reference(folder: Path, command: str) -> None:
    path = policy(folder, reference={"file": "people.parquet", "least_density": 0.8}, release=["avg(hours)"])
    arguments = ["--out", folder / "rows.parquet"] if command == "view" else []
    code, out, err = run(command, path, *arguments)
    if command == "explain":
        assert SAME_TABLE in out + err
    else:
        assert (code, err) == (2, f"attrpriv: {SAME_TABLE}\n")
    assert not (folder / "people.ledger").exists()
    assert not (folder / "rows.parquet").exists()


def test_one_of_the_tables_files_is_no_reference(folder: Path) -> None:
    pq.write_table(people(N, 3), folder / "people2.parquet")
    path = policy(folder, data="people*.parquet", rows=2 * N, reference={"file": "people2.parquet", "least_density": 0.8})
    with pytest.raises(ap.DataError) as caught:
        ap.Session(policy=path).view_plan()
    assert str(caught.value) == SAME_TABLE


@pytest.mark.parametrize("form", ["reordered", "csv", "fewer columns"])
def test_the_tables_rows_under_another_name_are_no_reference(folder: Path, form: str) -> None:
    """A view and a release refuse alike, before anything is drawn; a plan, which reads no row, cannot know."""
    table = people(N, 1)
    name = "copy.csv" if form == "csv" else "copy.parquet"
    if form == "csv":
        pyarrow.csv.write_csv(table.drop_columns(["hours"]), folder / name)
    elif form == "fewer columns":
        pq.write_table(table.select(["sex", "age"]), folder / name)
    else:
        pq.write_table(table.take(np.random.default_rng(5).permutation(N)), folder / name)
    path = policy(folder, reference={"file": name, "least_density": 0.8})
    with ap.Session(policy=path) as session:
        assert session.view_plan().rows > 0
        for ask in (session.view, lambda: session.release("avg(hours)")):
            with pytest.raises(ap.DataError) as caught:
                ask()
            assert str(caught.value) == SAME_TABLE
    assert not (folder / "people.ledger").exists()


def test_other_records_of_as_many_rows_are_a_reference(folder: Path) -> None:
    pq.write_table(people(N, 7), folder / "census.parquet")
    with ap.Session(policy=policy(folder)) as session:
        plan = session.view_plan()
        assert session.view().count().execute() == plan.rows


# Stated shares and laws.


AGES = {"values": list(range(20, 29)), "shares": [0.11] * 9}


@pytest.mark.parametrize("law", [AGES, {"law": "uniform", "low": 20, "high": 28}], ids=["shares", "law"])
def test_a_view_from_stated_shares(folder: Path, law: Mapping[str, Any]) -> None:
    path = policy(folder, protect=[{"secret": "columns(age)"}], reference={"age": law, "least_density": 0.8})
    with ap.Session(policy=path) as session:
        plan = session.view_plan()
        kept = {(cell.values or ())[0]: cell.keep for cell in plan.cells}
        assert set(kept) == set(range(20, 29))
        rows = session.view().execute()
    assert rows["age"].value_counts().to_dict() == kept


def test_stated_shares_of_two_columns(folder: Path) -> None:
    pairs = [[age, sex] for age in range(20, 29) for sex in ("F", "M")]
    law = {"values": pairs, "shares": [0.04, 0.06] * 9}
    path = policy(folder, reference={"age, sex": law, "least_density": 0.8})
    with ap.Session(policy=path) as session:
        rows = session.view().execute()
        assert len(rows) == session.view_plan().rows
        assert len(rows[["age", "sex"]].drop_duplicates()) == 18


# What is refused, and where it says to look.


@pytest.mark.parametrize(
    ("changes", "code", "says"),
    [
        ({"reference": {"file": "absent.parquet", "least_density": 0.8}}, 2, ("reference: must be a file", "absent.parquet")),
        ({"protect": [{"secret": "columns(ages)"}]}, 2, ("ages", "age")),
        ({"protect": [{"secret": "columns(code)"}], "data": "more.parquet"}, 2, ("reference: the hidden columns", "code")),
        ({"reference": {"age": AGES, "least_density": 0.8}}, 2, ("reference: must be of the hidden columns", "'age, sex'")),
        ({"delta": 1e-7}, 2, ("delta: must be at least 1e-06", "1e-09", "0.001", "Got 1e-07")),
        ({"reference": None}, 2, ("reference:", "Name a file")),
        ({"protect": [{"secret": "columns(age)"}, {"secret": "columns(sex)"}]}, 3, ("columns(age, sex)",)),
        ({"protect": [{"secret": "columns(hours)"}]}, 3, ("no value is frequent enough",)),
        (
            {
                "protect": [{"secret": "columns(age)"}],
                "reference": {"age": {"values": ["20"], "shares": [1]}, "least_density": 1},
            },
            2,
            ("age must have one type", "integer and text"),
        ),
        (
            {
                "protect": [{"secret": "columns(age)"}],
                "reference": {"age": {"values": [20.5], "shares": [1]}, "least_density": 1},
            },
            2,
            ("age must have one type", "not whole"),
        ),
        ({"protect": [{"secret": "mean(age)", "within": 1}], "reference": None}, 3, ("columns(age) with a reference",)),
    ],
)
def test_mistakes_say_what_is_wrong_and_where(folder: Path, changes: dict[str, Any], code: int, says: tuple[str, ...]) -> None:
    pq.write_table(people(N, 1).append_column("more", pa.array(range(N))), folder / "more.parquet")
    pq.write_table(people(PUBLIC, 2).drop_columns(["code"]), folder / "census.parquet")
    found, out, err = run("view", policy(folder, **changes), "--out", folder / "rows.parquet")
    assert all(words in err for words in says), err
    assert (found, out) == (code, "")
    assert not (folder / "people.ledger").exists()


def test_public_records_may_be_a_csv_file(folder: Path) -> None:
    pyarrow.csv.write_csv(people(PUBLIC, 2), folder / "census.csv")
    plans = [ap.Session(policy=policy(folder)).view_plan()]
    path = policy(folder, reference={"file": "census.csv", "least_density": 0.8})
    plans.append(ap.Session(policy=path).view_plan())
    assert plans[0].cells == plans[1].cells


# What is said before anything is drawn.


@pytest.mark.parametrize("release", [None, ["avg(hours)", "avg(age)"]], ids=["no query", "queries"])
@pytest.mark.parametrize("command", ["plan", "check", "explain"])
def test_commands_say_what_the_view_shows(folder: Path, command: str, release: list[str] | None) -> None:
    path = policy(folder, release=release)
    with ap.Session(policy=path) as session:
        coverage = session.view_plan().coverage
    assert coverage is not None
    code, out, err = run(command, path)
    assert (code, err) == (0, "")
    flat = " ".join(out.split())
    assert all(" ".join(line.split()) in flat for line in coverage.lines)
    assert "29~F" in coverage.never_shown
    if command != "check":
        assert all(f"{row.rows:,}" in out for row in coverage.outlook)
    assert not (folder / "people.ledger").exists()


def test_json_has_everything(folder: Path) -> None:
    path = policy(folder, release=["avg(hours)"])
    with ap.Session(policy=path) as session:
        coverage = session.view_plan().coverage
    assert coverage is not None
    assert told("plan", path)[0]["view"] == told("check", path)["view"] == coverage.to_json()
    path = policy(folder)
    assert told("plan", path)["plan"]["coverage"] == told("check", path)["view"] == coverage.to_json()
    written = told("view", path, "--out", folder / "rows.parquet")
    assert written["plan"]["coverage"] == coverage.to_json()
    assert len(written["plan"]["cells"]) == coverage.shown


def test_a_notebook_shows_the_same(folder: Path) -> None:
    with ap.Session(policy=policy(folder, release=["avg(hours)"])) as session:
        for shown in (session.view_plan(), session.plan()):
            page = shown._repr_html_()
            assert "least density 0.8, as stated" in page
            assert "only age hidden" in page


def test_the_view_command_names_the_first_cells(folder: Path) -> None:
    code, out, err = run("view", policy(folder), "--out", folder / "rows.parquet")
    assert (code, err) == (0, "")
    assert "20~F" in out
    assert "13 more" in out
    assert "28~M" not in out


def test_an_average_of_hidden_columns_is_a_public_number(folder: Path) -> None:
    path = policy(folder, release=["avg(age)", "avg(hours)"])
    code, out, err = run("release", path)
    assert (code, err) == (0, "")
    (row,) = [line for line in out.splitlines() if line.startswith("avg(age)")]
    assert "a public number" in row
    with ap.Session(policy=path) as session:
        plan, released = session.view_plan(), session.release()
    shares = np.array([cell.share or 0.0 for cell in plan.cells])
    expected = shares @ np.array([(cell.values or ())[0] for cell in plan.cells], dtype=float) / shares.sum()
    assert released.answers[0].values[0].value == pytest.approx(expected)
    assert session.plan().error_of(session.plan().queries[0]).rmse == 0


# Stand-ins: hidden columns appear with the public's values, or not at all.


def test_groups_of_a_hidden_column_are_its_public_values(folder: Path) -> None:
    """One of several hidden columns, and no categories are declared: counts are public, averages are of the view's rows."""
    path = policy(folder)
    with ap.Session(policy=path) as session:
        counts, averages = session.release(
            ["SELECT sex, count(*) FROM data GROUP BY sex", "SELECT age, avg(hours) FROM data GROUP BY age"]
        ).answers
        plan, rows = session.view_plan(), session.view().execute()
    assert [value.group for value in counts.values] == ["F", "M"]
    total = sum(cell.share or 0.0 for cell in plan.cells)
    for value in counts.values:
        share = sum(cell.share or 0.0 for cell in plan.cells if (cell.values or ())[1] == value.group)
        assert value.value == pytest.approx(N * share / total)
        assert value.interval(0.95) == (value.value, value.value)
    assert [value.group for value in averages.values] == [str(age) for age in range(20, 29)]
    weights = {cell.values: (cell.share or 0.0) / cell.keep for cell in plan.cells}
    rows["weight"] = [weights[age, sex] for age, sex in zip(rows["age"], rows["sex"], strict=True)]
    for value in averages.values:
        group = rows[rows["age"] == int(value.group or "")]
        assert value.value == pytest.approx(float(np.average(group["hours"], weights=group["weight"])))
        low, high = value.interval(0.95)
        assert low < value.value < high


def test_missing_values_and_booleans_are_groups_too(folder: Path) -> None:
    def with_gaps(n: int, seed: int) -> pa.Table:
        table = people(n, seed)
        place = np.random.default_rng(seed).random(n)
        flag = pa.array([None if u < 0.2 else bool(u < 0.6) for u in place])
        return table.set_column(table.schema.get_field_index("smokes"), "smokes", flag)

    pq.write_table(with_gaps(N, 1), folder / "people.parquet")
    pq.write_table(with_gaps(PUBLIC, 2), folder / "census.parquet")
    with ap.Session(policy=policy(folder, protect=[{"secret": "columns(smokes)"}])) as session:
        (answer,) = session.release("SELECT smokes, avg(hours) FROM data GROUP BY smokes").answers
    assert [value.group for value in answer.values] == ["missing", "False", "True"]


def test_declared_categories_go_before_public_values(folder: Path) -> None:
    path = policy(folder, bins={"age": [20, 25, 30]})
    with ap.Session(policy=path) as session:
        (answer,) = session.release("SELECT age, avg(hours) FROM data GROUP BY age").answers
    assert [value.group for value in answer.values] == ["[20, 25)", "[25, 30]"]


NOTHING = {"file": "census.parquet", "least_density": 0.8, "show": "nothing"}


def test_a_view_may_show_nothing_of_the_hidden_columns(folder: Path) -> None:
    with ap.Session(policy=policy(folder, reference=NOTHING)) as session:
        plan = session.view()
        assert list(plan.columns) == ["hours", "smokes", "code"]
        assert plan.count().execute() == session.view_plan().rows
        assert session.release("avg(hours)").value > 0


@pytest.mark.parametrize(
    "query",
    [
        "avg(age)",
        "count(*) filter (where sex = 'F')",
        "SELECT sex, avg(hours) FROM data GROUP BY sex",
        "avg(hours) filter (where smokes = true and age > 3)",
    ],
)
@pytest.mark.parametrize("command", ["plan", "check", "release"])
def test_queries_on_columns_that_are_not_shown_are_refused(folder: Path, query: str, command: str) -> None:
    path = policy(folder, reference=NOTHING)
    code, _, err = run(command, path, query)
    assert code == 2
    assert "show: values" in err
    with ap.Session(policy=path) as session, pytest.raises(ap.UsageError) as caught:
        session.plan(query)
    assert {refusal.cause for refusal in caught.value.causes} == {ap.Cause.MISTAKE}
    assert "reference: show: values" in caught.value.causes[0].needs
    assert not (folder / "people.ledger").exists()


def test_hidden_columns_that_were_left_out_stay_out(folder: Path) -> None:
    path = policy(folder, reference=NOTHING)
    with ap.Session(policy=path) as session:
        session.view()
    with ap.Session(policy=policy(folder)) as session, pytest.raises(ap.RefusedError, match="what was left out must stay out"):
        session.view()


# Intervals of rare events.


@pytest.mark.parametrize("rare", ["code = -1", "code >= 0"], ids=["never", "always"])
def test_the_interval_of_a_rare_event_is_no_point(folder: Path, rare: str) -> None:
    with ap.Session(policy=policy(folder)) as session:
        (value,) = session.release(f"count(*) filter (where {rare})").answers[0].values
        step = max((cell.share or 0.0) / cell.keep for cell in session.view_plan().cells)
    low, high = value.interval(0.95)
    assert 0 <= low <= value.value <= high <= N * (1 + 1e-12)
    assert high - low > N * step  # one row more, or less, cannot be told


def test_a_share_of_a_boolean_column_stays_within_0_and_1(folder: Path) -> None:
    for name, seed in (("people", 1), ("census", 2)):
        table = people(N if seed == 1 else PUBLIC, seed)
        never = pa.array([False] * table.num_rows)
        pq.write_table(table.append_column("never", never), folder / f"{name}.parquet")
    with ap.Session(policy=policy(folder)) as session:
        for query in ("avg(never)", "sum(never)"):
            (value,) = session.release(query).answers[0].values
            low, high = value.interval(0.95)
            assert low == value.value == 0 < high


def test_a_number_that_no_kept_row_varies_in_has_no_interval(folder: Path) -> None:
    with ap.Session(policy=policy(folder)) as session:
        (value,) = session.release("sum(hours) filter (where code = -1)").answers[0].values
    assert value.value == 0
    assert value.to_json(0.95)["interval"] is None


# Columns by which a row may be recognised.


@pytest.mark.parametrize("changes", [{}, {"release": ["avg(hours)"]}], ids=["no query", "query"])
def test_a_column_that_is_nearly_unique_in_the_public_records_is_warned_of(folder: Path, changes: dict[str, Any]) -> None:
    """From the public records alone: the private table's own values decide nothing."""
    for command in ("plan", "check"):
        assert "identifier: nearly every public record has its own code" in " ".join(
            run(command, policy(folder, **changes))[1].split()
        )
    with ap.Session(policy=policy(folder, identifiers=["code"], **changes)) as session:
        assert session.view_plan().warnings == ()
    same = people(PUBLIC, 2)
    pq.write_table(same.set_column(4, "code", pa.array([1] * PUBLIC)), folder / "census.parquet")
    with ap.Session(policy=policy(folder, **changes)) as session:
        assert session.view_plan().warnings == ()


def test_a_starter_for_columns_lacks_only_what_the_owner_decides(folder: Path) -> None:
    path = folder / "people.yaml"
    assert run("init", folder / "people.parquet", "--secret", "columns(age, sex)", "--out", path)[0] == 0
    text = path.read_text(encoding="utf-8")
    assert text.count("TODO") == 3  # the first is in the head, which says what to do with the others
    assert run("check", path)[0] == 2
    path.write_text(text.replace("file: TODO", "file: census.parquet").replace("least_density: TODO", "least_density: 0.8"))
    assert run("check", path)[0] == 0
