"""Views as a user meets them: the commands and the session, drawn once, recorded first, refused where they would not hide."""

from __future__ import annotations

import gc
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import attrpriv as ap
from attrpriv.accounting.ledger import Ledger
from attrpriv.cli.app import app
from attrpriv.engines.view.draw import CHANGED, NO_CELL, NOT_UNIQUE, OUT_OF_RANGE, require_same_table
from attrpriv.engines.view.file import NOT_WRITTEN
from attrpriv.errors import AttrprivError, CertificateError, DataError, RefusedError, UsageError
from attrpriv.methods.base.view_plan import REAL_RECORDS
from attrpriv.policy.strict_yaml import dump_strict
from attrpriv.session import view_rows
from attrpriv.session.view_estimates import NO_HITS
from attrpriv.session.view_rows import ViewRows

N = 500
POLICY: Mapping[str, Any] = {
    "attrpriv": 1,
    "data": "people.parquet",
    "ledger": "people.ledger",
    "epsilon": 1.0,
    "protect": [{"secret": "share(sex = 'F')", "between": [0.25, 0.4]}],
}


def people(n: int = N, seed: int = 1) -> pa.Table:
    generator = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.arange(n),
            "sex": np.where(generator.random(n) < 0.32, "F", "M"),
            "x": generator.normal(50, 10, n),
            "age": generator.integers(20, 60, n),
            "city": pa.array([None if k == 4 else f"city {k}" for k in generator.integers(0, 5, n)], pa.string()),
        }
    )


def place(folder: Path, table: pa.Table | None = None, **changes: Any) -> Path:
    """A table and its policy; the path of the policy."""
    pq.write_table(people() if table is None else table, folder / "people.parquet")
    return policy(folder, **changes)


def policy(folder: Path, **changes: Any) -> Path:
    path = folder / "people.yaml"
    path.write_text(dump_strict({**POLICY, **changes}), encoding="utf-8")
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return found.exit_code, found.stdout, found.stderr


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def kinds(folder: Path) -> list[str]:
    return [entry.kind for entry in Ledger(folder / "people.ledger").entries()]


# The command.


def test_a_view_is_written_and_says_what_it_is(tmp_path: Path) -> None:
    path = place(tmp_path)
    code, out, err = run("view", path, "--out", tmp_path / "rows.parquet")
    assert (code, err) == (0, "")
    assert f"wrote 425 of 500 rows to rows.parquet. {REAL_RECORDS}" in out
    assert "reveal nothing about it (epsilon 0, delta 0)" in out
    assert "the adversary recognises no row" in out
    found = pq.read_table(tmp_path / "rows.parquet")
    assert found.num_rows == 425
    assert found["sex"].to_pylist().count("F") == 125
    assert names(tmp_path) == ["people.ledger", "people.parquet", "people.yaml", "rows.parquet"]
    assert kinds(tmp_path) == ["view"]


def test_json_prints_one_document(tmp_path: Path) -> None:
    code, out, err = run("view", place(tmp_path), "--out", tmp_path / "rows.parquet", "--json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert document["rows"] == 425
    assert [cell["keep"] for cell in document["plan"]["cells"]] == [125, 300]
    assert document["plan"]["notes"][0] == REAL_RECORDS


def test_low_memory_writes_the_same_rows(tmp_path: Path) -> None:
    path = place(tmp_path)
    assert run("view", path, "--out", tmp_path / "a.parquet")[0] == 0
    assert run("view", path, "--out", tmp_path / "b.parquet", "--low-memory")[0] == 0
    assert pq.read_table(tmp_path / "a.parquet").equals(pq.read_table(tmp_path / "b.parquet"))


def test_the_place_is_checked_before_anything_is_drawn(tmp_path: Path) -> None:
    path = place(tmp_path)
    (tmp_path / "old.parquet").write_bytes(b"old")
    before = names(tmp_path)
    for arguments, message in (
        (["--out", tmp_path / "old.parquet"], "old.parquet exists already. Use force to overwrite it"),
        (["--out", tmp_path / "rows.csv"], "out: must end in .parquet"),
        (["--out", tmp_path / "none" / "rows.parquet"], "must be a file in a directory that exists"),
        (["--out", tmp_path / "people.parquet", "--force"], "people.parquet is the table itself"),
        ([], "out: must name the Parquet file to write"),
    ):
        code, out, err = run("view", path, *arguments)
        assert (code, out) == (2, "")
        assert message in err
    assert names(tmp_path) == before
    assert (tmp_path / "old.parquet").read_bytes() == b"old"
    assert run("view", path, "--out", tmp_path / "old.parquet", "--force")[0] == 0
    assert pq.read_table(tmp_path / "old.parquet").num_rows == 425


# Drawn once.


def test_every_session_gets_the_same_rows(tmp_path: Path) -> None:
    path = place(tmp_path)
    assert run("view", path, "--out", tmp_path / "a.parquet")[0] == 0
    first = pq.read_table(tmp_path / "a.parquet")
    for _ in range(2):
        with ap.Session(policy=path) as session:
            assert session.view().to_pyarrow().equals(first)
            assert session.view().to_pyarrow().equals(first)
            session.view(tmp_path / "b.parquet", force=True)
            assert (tmp_path / "b.parquet").read_bytes() == (tmp_path / "a.parquet").read_bytes()
    assert kinds(tmp_path) == ["view"]


def test_another_ledger_is_another_draw(tmp_path: Path) -> None:
    """So it must not happen: who has both estimates the count by capture and recapture."""
    path = place(tmp_path)
    views = []
    for name in ("a.ledger", "b.ledger"):
        with ap.Session(policy=path, ledger=tmp_path / name) as session:
            views.append(set(session.view().to_pandas()["id"]))
    assert views[0] != views[1]


def append(folder: Path, table: pa.Table) -> None:
    pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), folder / "people.parquet")


def change_a_value(folder: Path, table: pa.Table) -> None:
    ages = table["age"].to_pylist()
    ages[0] += 1
    pq.write_table(table.set_column(3, "age", pa.array(ages)), folder / "people.parquet")


def change_a_category(folder: Path, table: pa.Table) -> None:
    sexes = table["sex"].to_pylist()
    sexes[sexes.index("M")] = "F"
    pq.write_table(table.set_column(1, "sex", pa.array(sexes)), folder / "people.parquet")


def sort(folder: Path, table: pa.Table) -> None:
    pq.write_table(table.sort_by("x"), folder / "people.parquet")


def replace(folder: Path, table: pa.Table) -> None:
    pq.write_table(people(seed=2), folder / "people.parquet")


CHANGES: dict[str, tuple[Callable[[Path, pa.Table], None], type[AttrprivError], str]] = {
    "a row appended": (append, RefusedError, "the ledger holds a view drawn for other ranges, cells or row_id"),
    "a value": (change_a_value, DataError, re.escape(CHANGED)),
    "a category": (change_a_category, DataError, re.escape(CHANGED)),
    "the order": (sort, DataError, re.escape(CHANGED)),
    "another table": (replace, DataError, re.escape(CHANGED)),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_changed_table_is_refused(kind: str, tmp_path: Path) -> None:
    path = place(tmp_path)
    with ap.Session(policy=path) as session:
        session.view()
    change, error, message = CHANGES[kind]
    change(tmp_path, people())
    uses: list[Callable[[ap.Session], object]] = [
        lambda session: session.view(),
        lambda session: session.view(tmp_path / "rows.parquet"),
        lambda session: session.release("avg(x)"),
    ]
    for use in uses:
        with ap.Session(policy=path) as session, pytest.raises(error, match=message):
            use(session)
    assert kinds(tmp_path) == ["view"]
    assert "rows.parquet" not in names(tmp_path)


def test_a_csv_file_that_grew_is_refused(tmp_path: Path) -> None:
    """Its number of rows is what the policy says, so only the comparison of the tables notices."""
    path = policy(tmp_path, data="people.csv", rows=N)
    pyarrow.csv.write_csv(people(), tmp_path / "people.csv")
    with ap.Session(policy=path) as session:
        assert session.view().count().to_pyarrow().as_py() == 425
    with (tmp_path / "people.csv").open("a") as file:
        file.write('7777,"F",1.5,30,"city 1"\n')
    with ap.Session(policy=path) as session, pytest.raises(DataError, match=re.escape(CHANGED)):
        session.view()


@pytest.mark.parametrize(
    "changes",
    [
        {"protect": [{"secret": "share(sex = 'F')", "between": [0.2, 0.4]}]},
        {"protect": [{"secret": "share(sex = 'M')", "between": [0.6, 0.75]}]},
        {"protect": [{"secret": "count(sex = 'F')", "between": [125, 200]}]},
        {"row_id": "id"},
    ],
    ids=["range", "condition", "kind", "row_id"],
)
def test_another_view_on_the_same_ledger_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    with ap.Session(policy=place(tmp_path)) as session:
        session.view()
    with ap.Session(policy=policy(tmp_path, **changes)) as session:
        with pytest.raises(RefusedError, match="drawn for other ranges, cells or row_id"):
            session.view()
        with pytest.raises(RefusedError, match="drawn for other ranges"):
            session.release("avg(x)", "subsample")


def test_other_bins_of_the_same_name_are_refused(tmp_path: Path) -> None:
    protect = [{"secret": "distribution(age)", "between": {"[20, 40)": [0.3, 0.7], "[40, 60]": [0.3, 0.7]}}]
    with ap.Session(policy=place(tmp_path, protect=protect, bins={"age": [20, 40, 60]})) as session:
        session.view()
    changed = [{"secret": "distribution(age)", "between": {"[20, 41)": [0.3, 0.7], "[41, 60]": [0.3, 0.7]}}]
    with (
        ap.Session(policy=policy(tmp_path, protect=changed, bins={"age": [20, 41, 60]})) as session,
        pytest.raises(RefusedError, match="drawn for other ranges"),
    ):
        session.view()


LEFT_OUT = "without id, and what was left out must stay out"


def test_a_column_that_was_left_out_stays_out(tmp_path: Path) -> None:
    """Alone or among others; more may be left out, and shown again once nothing forbids it."""
    with ap.Session(policy=place(tmp_path, identifiers=["id"])) as session:
        first = session.view().to_pyarrow()
    for identifiers in ([], ["city"]):
        with ap.Session(policy=policy(tmp_path, identifiers=identifiers)) as session:
            for use in (session.view, lambda s=session: s.view(tmp_path / "r.parquet"), lambda s=session: s.release("avg(id)")):
                with pytest.raises(RefusedError, match=LEFT_OUT):
                    use()
    assert names(tmp_path) == ["people.ledger", "people.parquet", "people.yaml"]
    with ap.Session(policy=policy(tmp_path, identifiers=["city", "id"])) as session:
        assert session.view().to_pyarrow().equals(first.drop_columns(["city"]))
    with ap.Session(policy=policy(tmp_path, identifiers=["id"])) as session:
        assert session.view().to_pyarrow().equals(first)


def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views are recorded as attrpriv 0.1.0 did."""
    now = view_rows._public

    def then(*arguments: Any) -> dict[str, Any]:
        return {key: value for key, value in now(*arguments).items() if key != "identifiers"}

    monkeypatch.setattr(view_rows, "_public", then)


@pytest.mark.parametrize(
    ("before", "now", "may"),
    [
        (["id"], ["id"], True),
        ([], [], True),
        ([], ["id"], True),
        (["id"], [], False),
        (["id"], ["city"], False),
        (["id"], ["id", "city"], False),
    ],
)
def test_a_view_without_recorded_identifiers_goes_on_where_they_are_known(
    before: list[str], now: list[str], may: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        as_before(patch)
        with ap.Session(policy=place(tmp_path, identifiers=before)) as session:
            first = session.view().to_pyarrow()
    with ap.Session(policy=policy(tmp_path, identifiers=now)) as session:
        if may:
            assert session.view().to_pyarrow().equals(first.drop_columns([name for name in now if name not in before]))
            return
        with pytest.raises(RefusedError, match="which does not record the identifiers that it leaves out"):
            session.view()


def test_what_does_not_matter_may_change(tmp_path: Path) -> None:
    """Further identifiers, the public composition, bounds: functions of the same rows."""
    with ap.Session(policy=place(tmp_path)) as session:
        first = session.view().to_pyarrow()
    changes = {"identifiers": ["id"], "composition": {"sex = 'F'": 0.3}, "bounds": {"x": [0, 100]}, "delta": 1e-6}
    with ap.Session(policy=policy(tmp_path, **changes)) as session:
        assert session.view().to_pyarrow().equals(first.drop_columns(["id"]))


def test_a_lost_or_edited_state_is_refused(tmp_path: Path) -> None:
    import sqlite3

    path = place(tmp_path)
    for statement in (
        "DELETE FROM secret_state",
        "UPDATE secret_state SET value = '{}'",
        "UPDATE secret_state SET value = replace(value, 'thresholds', 'limits')",
        'UPDATE secret_state SET value = \'{"key": "ab", "thresholds": ["8", "8"], "fingerprint": "x"}\'',
    ):
        with ap.Session(policy=path) as session:
            session.view()
        with sqlite3.connect(tmp_path / "people.ledger") as connection:
            connection.execute(statement)
        connection.close()
        with ap.Session(policy=path) as session, pytest.raises((RefusedError, DataError), match=r"must be (as|the)"):
            session.view()
        (tmp_path / "people.ledger").unlink()


# Not mixed with noise.


def test_a_view_then_noise_is_refused(tmp_path: Path) -> None:
    path = place(tmp_path, bounds={"x": [0, 100]})
    with ap.Session(policy=path) as session:
        session.view()
        for mechanism in ("group_dp", "gaussian", "constant"):
            with pytest.raises(RefusedError, match="holds a view, and must not be mixed with a release with noise"):
                session.release("avg(x)", mechanism)
        assert session.release("avg(x)").plan.mechanism == "subsample"
    code, _, err = run("release", path, "avg(x)", "--mechanism", "group_dp")
    assert code == 3
    assert "must not be mixed" in err


def test_noise_then_a_view_is_refused(tmp_path: Path) -> None:
    path = place(tmp_path, bounds={"x": [0, 100]})
    with ap.Session(policy=path) as session:
        session.release("avg(x)", "group_dp")
        for use in (session.view, lambda: session.view(tmp_path / "r.parquet"), lambda: session.release("sum(y)", "subsample")):
            with pytest.raises(RefusedError, match="holds a release with noise, and must not be mixed with a view"):
                use()
    assert kinds(tmp_path) == ["release"]
    assert "r.parquet" not in names(tmp_path)


# Answers.


def test_answers_are_those_of_the_written_rows(tmp_path: Path) -> None:
    listed = {"sex": ["F", "M"], "city": ["other", "city 0", "city 1", "city 2", "city 3"]}
    path = place(tmp_path, composition={"sex = 'F'": 0.3}, categories=listed)
    with ap.Session(policy=path) as session:
        session.view(tmp_path / "rows.parquet")
        frame = pq.read_table(tmp_path / "rows.parquet").to_pandas()
        women, men = frame[frame["sex"] == "F"], frame[frame["sex"] == "M"]

        def mixed(statistic: Callable[[pd.DataFrame], float]) -> float:
            return 0.3 * statistic(women) + 0.7 * statistic(men)

        assert session.release("avg(x)").value == pytest.approx(mixed(lambda part: part["x"].mean()), rel=1e-12)
        assert session.release("sum(age)").value == pytest.approx(N * mixed(lambda part: part["age"].mean()), rel=1e-12)
        assert session.release("count(*)").value == pytest.approx(N)
        old = session.release("count(*) filter (where age >= 40)").value
        assert old == pytest.approx(N * mixed(lambda part: (part["age"] >= 40).mean()), rel=1e-12)
        ratio = mixed(lambda part: (part["x"] * (part["age"] >= 40)).mean()) / mixed(lambda part: (part["age"] >= 40).mean())
        assert session.release("avg(x) filter (where age >= 40)").value == pytest.approx(ratio, rel=1e-12)
        groups = session.release("SELECT city, count(*) FROM data GROUP BY city").answers[0].values
        cities = [part["city"].fillna("other").value_counts(normalize=True) for part in (women, men)]
        expected = {name: N * (0.3 * cities[0].get(name, 0) + 0.7 * cities[1].get(name, 0)) for name in cities[1].index}
        assert {value.group: value.value for value in groups} == pytest.approx(expected)
        shares = {
            value.group: value.value
            for value in session.release("SELECT sex, count(*) FROM data GROUP BY sex").answers[0].values
        }
        assert shares == pytest.approx({"F": 150, "M": 350}), "the public composition, not the table's"


def test_any_number_of_answers_each_recorded(tmp_path: Path) -> None:
    path = place(tmp_path)
    with ap.Session(policy=path) as session:
        first = session.release("avg(x)", "subsample")
        again = session.release("avg(x)")
        assert again.value == first.value
        assert again.interval() == first.interval()
        for k in range(6):
            session.release(f"count(*) filter (where age > {20 + k})")
    with ap.Session(policy=path) as session:
        assert session.release("avg(x)").value == first.value
    assert kinds(tmp_path) == ["view", *["answer"] * 9]
    assert first.entry.number == 2
    assert first.plan.epsilon == 0.0


def test_an_interval_is_about_the_public_composition(tmp_path: Path) -> None:
    path = place(tmp_path)
    code, out, _ = run("release", path, "avg(x)", "count(*) filter (where age > 30)", "--mechanism", "subsample")
    assert code == 0
    assert "95% interval for the whole table at that composition" in out
    assert "answers are scaled to the public composition (sex = 'F' 0.325, other 0.675)" in out


def test_the_table_is_compared_once_for_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = place(tmp_path)
    with ap.Session(policy=path) as session:
        session.view()
    compared: list[int] = []

    def counted(*arguments: Any) -> None:
        compared.append(1)
        require_same_table(*arguments)

    monkeypatch.setattr("attrpriv.engines.view.fetched.require_same_table", counted)
    with ap.Session(policy=path) as session:
        for text in ("avg(x)", "avg(age)", "count(*)"):
            session.release(text)
        assert len(compared) == 1
        session.close()
        session.release("avg(x)")
    assert len(compared) == 2


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "avg(x) filter (where height > 3)",
            "query: the column must be one of the table's. Got height. It has: id,",
        ),
        (
            "SELECT height, avg(x) FROM data GROUP BY height",
            "query: the column must be one of the table's. Got height. It has: id,",
        ),
        ("avg(x) filter (where city > 3)", "must compare a text column"),
        ("count(*) filter (where id = 3)", "query: must not read an identifier, which the view leaves out. Got id."),
        ("SELECT id, count(*) FROM data GROUP BY id", "must not read an identifier"),
        ("avg(id)", "must not read an identifier"),
    ],
)
def test_a_query_that_cannot_be_answered_draws_nothing(query: str, message: str, tmp_path: Path) -> None:
    path = place(tmp_path, identifiers=["id"], categories={"id": [1, 2, "other"]})
    with ap.Session(policy=path) as session, pytest.raises(AttrprivError, match=re.escape(message)):
        session.release(query, "subsample")
    assert "people.ledger" not in names(tmp_path)


def test_an_average_of_no_row(tmp_path: Path) -> None:
    with ap.Session(policy=place(tmp_path, categories={"sex": ["F", "M"]})) as session:
        with pytest.raises(DataError) as caught:
            session.release("avg(x) filter (where age > 99)", "subsample")
        assert str(caught.value) == NO_HITS
        assert session.release("count(*) filter (where age > 99)").value == 0
        groups = session.release("SELECT sex, avg(x) FROM data WHERE sex = 'F' GROUP BY sex").answers[0].values
        assert [value.group for value in groups] == ["F"]


# Refusals and announced failures.


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"known_rows": 0.01}, 3, "known_rows: must be 0 for a view"),
        (
            {"protect": [*POLICY["protect"], {"secret": "share(age >= 40)", "between": [0.3, 0.6]}]},
            3,
            "sex = 'F' and age >= 40; sex = 'F' and not (age >= 40); not (sex = 'F') and age >= 40;",
        ),
        ({"protect": [{"secret": "mean(x)", "within": 1}]}, 3, "a view hides how rows fall into categories, not mean(x)"),
        ({"protect": [{"secret": "share(sex = 'F')", "between": [0, 1]}]}, 3, "the range keeps no row of any cell"),
        ({"protect": [{"secret": "distribution(sex)", "between": {"F ~ x": [0.2, 0.4], "M": [0.6, 0.8]}}]}, 2, "no spaces"),
        ({"protect": [{"secret": "distribution(sex, city)", "between": {"F~a": [0.2, 0.4], "M~b": [0.6, 0.8]}}]}, 2, "F~b"),
        ({"protect": [{"secret": "share(sex = 'F')", "between": [0.1, 0.2]}]}, 2, OUT_OF_RANGE),
        ({"protect": [{"secret": "share(sex = 'F')", "between": [0.5, 0.6]}]}, 2, OUT_OF_RANGE),
        ({"protect": [{"secret": "distribution(city)", "between": {f"city {k}": [0.1, 0.4] for k in range(4)}}]}, 2, NO_CELL),
        ({"protect": [{"secret": "distribution(city)", "between": {"city 1": [0.1, 0.9], "city 2": [0.1, 0.9]}}]}, 2, NO_CELL),
        ({"row_id": "city"}, 2, NOT_UNIQUE),
        ({"row_id": "nothing"}, 2, "row_id: must be one of the table's columns"),
        ({"identifiers": ["id", "sex", "x", "age", "city"]}, 2, "identifiers: must leave some column"),
        ({"identifiers": ["name"]}, 2, "the column must be one of"),
        ({"protect": [{"secret": "share(gender = 'F')", "between": [0.2, 0.4]}]}, 2, "the column must be one of"),
        ({"protect": [{"secret": "share(sex = 1)", "between": [0.2, 0.4]}]}, 2, "must compare a text column"),
        ({"protect": [{"secret": "distribution(x)", "between": {"1": [0.2, 0.4], "other": [0.1, 0.9]}}]}, 2, "declare bins"),
    ],
)  # fmt: skip
def test_what_is_refused_leaves_nothing(changes: dict[str, Any], code: int, message: str, tmp_path: Path) -> None:
    path = place(tmp_path, **changes)
    before = names(tmp_path)
    found, out, err = run("view", path, "--out", tmp_path / "rows.parquet")
    assert (found, out) == (code, "")
    assert message in err
    assert names(tmp_path) == before
    with ap.Session(policy=path) as session, pytest.raises(AttrprivError, match=re.escape(message)) as caught:
        session.view()
    assert caught.value.__cause__ is None
    assert names(tmp_path) == before


def test_a_plan_that_keeps_too_much_draws_nothing(tmp_path: Path) -> None:
    with ap.Session(policy=place(tmp_path)) as session:
        plan = session.view_plan()
        cell = plan.cells[0].model_copy(update={"keep": plan.cells[0].keep + 1})
        wrong = plan.model_copy(update={"cells": (cell, *plan.cells[1:])})
        ledger = Ledger(tmp_path / "people.ledger")
        with pytest.raises(CertificateError, match="must keep what its certificate counted on"):
            ViewRows.recorded_or_drawn(wrong, session.policy, session._open(), ledger, lambda: "now")
    assert "people.ledger" not in names(tmp_path)


# Other secrets.


def test_bins_other_and_crossed_cells(tmp_path: Path) -> None:
    between = {"F~[20, 40)": [0.1, 0.25], "F~[40, 60]": [0.1, 0.25], "M~[20, 40)": [0.2, 0.5], "M~[40, 60]": [0.2, 0.5]}
    secret = {"secret": "distribution(sex, age)", "between": {**between, "other": [0, 0.1]}}
    path = place(tmp_path, protect=[secret], bins={"age": [20, 40, 60]})
    with ap.Session(policy=path) as session:
        frame = session.view().to_pandas()
        assert frame.groupby(["sex", frame["age"] >= 40]).size().tolist() == [50, 50, 100, 100]
        plan = session.view_plan()
    assert plan.cells[-1].keep == 0
    assert "no row of other is kept, because its range allows tables without one." in plan.notes


def test_a_share_of_the_population(tmp_path: Path) -> None:
    protect = [{"parameter": "share(sex = 'F')", "between": [0.25, 0.4]}]
    path = place(tmp_path, protect=protect, delta=1e-6)
    code, out, _ = run("view", path, "--out", tmp_path / "rows.parquet")
    assert code == 0
    assert "for every population in the range" in out
    assert "the law of a row, given its cell, does not depend on the hidden share" in out
    plan = ap.Session(policy=path).view_plan()
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == plan.rows < 425
    assert plan.certificate.delta == 1e-6


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "ibis"])
def test_tables_in_memory(kind: str, tmp_path: Path) -> None:
    table = people()
    policy_of = ap.Policy(epsilon=1.0, protect=[ap.Secret("share(sex = 'F')", between=(0.25, 0.4))], row_id="id", rows=N)
    connection = ibis.duckdb.connect()
    connection.con.register("people", table)
    makers: dict[str, Callable[[], object]] = {
        "pandas": lambda: table.to_pandas(),
        "polars": lambda: pl.DataFrame(table.to_pydict()),
        "arrow": lambda: table,
        "ibis": lambda: connection.table("people"),
    }
    given = makers[kind]()
    with ap.Session(given, policy_of, ledger=tmp_path / "x.ledger") as session:
        view = session.view()
        session.view(tmp_path / "rows.parquet")
        value = session.release("avg(x)").value
    assert view.to_pyarrow().equals(pq.read_table(tmp_path / "rows.parquet")), "the lazy table outlives its session"
    assert view.columns == ("sex", "x", "age", "city")
    with ap.Session(given, policy_of, ledger=tmp_path / "x.ledger") as session:
        assert session.release("avg(x)").value == value


def test_a_table_in_memory_needs_a_ledger() -> None:
    policy_of = ap.Policy(epsilon=1.0, protect=[ap.Secret("share(sex = 'F')", between=(0.25, 0.4))])
    with ap.Session(people(), policy_of) as session, pytest.raises(UsageError, match="ledger: must be a path"):
        session.view()


# Nothing secret is shown.


def test_key_thresholds_and_counts_are_shown_nowhere(tmp_path: Path) -> None:
    path = place(tmp_path)
    shown = [
        run("view", path, "--out", tmp_path / "rows.parquet"),
        run("view", path, "--out", tmp_path / "b.parquet", "--json"),
    ]
    shown += [run("release", path, "avg(x)", "--json"), run("explain", path), run("plan", path, "avg(x)")]
    shown += [run("view", policy(tmp_path, known_rows=0.5), "--out", tmp_path / "c.parquet")]
    with ap.Session(policy=policy(tmp_path)) as session:
        shown.append((0, repr(session.view()) + ibis.to_sql(session.view()), repr(session.release("avg(x)"))))
    state: Any = Ledger(tmp_path / "people.ledger").view_state()
    entries = json.dumps([entry.to_json() for entry in Ledger(tmp_path / "people.ledger").entries()])
    text = "\n".join([*(out + err for _, out, err in shown), entries, *names(tmp_path)])
    secrets = [state["key"], state["fingerprint"], *state["thresholds"]]
    assert [len(secret) for secret in secrets[:2]] == [64, 64]
    assert all(len(secret) > 15 for secret in secrets)
    for secret in secrets:
        assert secret not in text
        assert secret[:12] not in text
        assert secret.encode() not in (tmp_path / "rows.parquet").read_bytes()
    women = people()["sex"].to_pylist().count("F")
    assert not re.search(
        rf"(?<![\d.]){women}(?![\d.])", re.sub(r'"(time|digest|previous|policy_digest)": "[^"]*"', "", entries)
    )


def test_explain_says_what_is_hidden_and_what_is_not(tmp_path: Path) -> None:
    code, out, _ = run("explain", place(tmp_path))
    assert code == 0
    for line in (
        "share(sex = 'F') of this table: every composition in the stated range looks the same in the view.",
        "They know no single row of the table.",
        "It keeps 125 rows of sex = 'F'; 300 rows of other: numbers fixed by the policy, not by the table.",
        "Any number of queries on it, and any model trained on it, reveal nothing about the composition.",
        REAL_RECORDS,
        "Somebody who recognises some persons in the view can estimate the composition from how many of them are in it.",
        "Means of numeric columns are not hidden by a view, only how rows fall into cells.",
        "Single persons are not protected",
    ):
        assert line in out
    assert "No view can be drawn: view: known_rows" in run("explain", policy(tmp_path, known_rows=0.1))[1]
    assert names(tmp_path) == ["people.parquet", "people.yaml"]


# A disk that fills.

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
sys.argv = ["attrpriv", *sys.argv[2:]]
from attrpriv.cli import main
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on the size of files")
def test_a_disk_that_fills_leaves_nothing_half_written(tmp_path: Path) -> None:
    """No file may grow beyond 200 kB: room for the ledger, not for the view."""
    path = place(tmp_path, people(40_000))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", LIMITED, "200000", "view", str(path), "--out", str(tmp_path / "rows.parquet")]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (found.returncode, found.stdout) == (2, "")
    assert NOT_WRITTEN in found.stderr
    assert "Traceback" not in found.stderr
    assert names(tmp_path) == ["people.ledger", "people.parquet", "people.yaml"]
    assert kinds(tmp_path) == ["view"], "drawn, and never again"
    assert run("view", path, "--out", tmp_path / "rows.parquet")[0] == 0
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == 34_000


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on the size of files")
def test_a_disk_without_room_for_the_ledger_hands_out_nothing(tmp_path: Path) -> None:
    path = place(tmp_path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", LIMITED, "5000", "view", str(path), "--out", str(tmp_path / "rows.parquet")]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 2
    assert "ledger" in found.stderr
    assert names(tmp_path) == ["people.parquet", "people.yaml"]


def test_a_copy_of_the_policy_elsewhere_keeps_the_ledger_it_names(tmp_path: Path) -> None:
    path = place(tmp_path)
    with ap.Session(policy=path) as session:
        first = session.view().to_pyarrow()
    (tmp_path / "sub").mkdir()
    shutil.copy(path, tmp_path / "sub" / "people.yaml")
    with ap.Session(
        tmp_path / "people.parquet", tmp_path / "sub" / "people.yaml", ledger=tmp_path / "people.ledger"
    ) as session:
        assert session.view().to_pyarrow().equals(first)


@pytest.mark.parametrize("count", [280, 300])
def test_nan_is_missing_in_cells_and_in_filters(count: int, tmp_path: Path) -> None:
    """DuckDB takes NaN for the largest number: 50 such rows would belong to `x > 3`, and be told apart from the others."""
    column = [5.0] * count + [math.nan] * 50 + [1.0] * (650 - count)
    pq.write_table(pa.table({"x": pa.array(column, from_pandas=False)}), tmp_path / "x.parquet")
    policy = ap.Policy(protect=[ap.Secret("count(x > 3)", between=(300, 500))], epsilon=1.0)
    with ap.Session(tmp_path / "x.parquet", policy) as session:
        if count < 300:
            with pytest.raises(DataError, match="the composition of the table must lie in the range"):
                session.release("count(*)", mechanism="subsample")
            return
        found = session.release("count(*) filter (where x > 3), count(*) filter (where x > 1e300)", mechanism="subsample")
    assert found.values == (400, 0)  # the middle of the range; no NaN


# Whole columns, from a public reference.


def reference_policy(folder: Path, n: int = 4_000, values: int = 40, **changes: Any) -> Path:
    """A table and public records of one law, of which `code` has many values; and a policy that hides it."""
    generator = np.random.default_rng(7)
    for name, rows in (("people", n), ("public", 5 * n)):
        code = generator.integers(0, values, rows)
        table = pa.table({"id": np.arange(rows), "code": code, "x": code + generator.normal(0, 5, rows)})
        pq.write_table(table, folder / f"{name}.parquet")
    policy = {
        **POLICY,
        "delta": 1e-6,
        "protect": [{"secret": "columns(code)"}],
        "reference": {"file": "public.parquet", "least_density": 0.8},
        "identifiers": ["id"],
        **changes,
    }
    (folder / "policy.yaml").write_text(dump_strict(policy))
    return folder / "policy.yaml"


def test_planning_a_reference_view_reads_no_row_of_the_table(tmp_path: Path) -> None:
    """Every byte but the footer of the table is destroyed: the plan is the same."""
    path = reference_policy(tmp_path)
    with ap.Session(policy=path) as session:
        expected = session.view_plan().to_json()
        plan = session.plan(["avg(x)", "median(x)"]).to_json()
    data = tmp_path / "people.parquet"
    raw = bytearray(data.read_bytes())
    footer = int.from_bytes(raw[-8:-4], "little") + 8
    raw[4:-footer] = b"\xff" * (len(raw) - 4 - footer)
    data.write_bytes(bytes(raw))
    with ap.Session(policy=path) as session:
        assert session.view_plan().to_json() == expected
        assert session.plan(["avg(x)", "median(x)"]).to_json() == plan
        with pytest.raises(DataError):
            session.view()


@pytest.mark.parametrize("values", [2, 400])
def test_answers_at_the_public_composition_with_many_cells(values: int, tmp_path: Path) -> None:
    """Means and quantiles are those of the view's rows, weighted by the public shares."""
    n = 4_000 if values == 2 else 80_000
    path = reference_policy(tmp_path, n=n, values=values, row_id="id", identifiers=[])
    with ap.Session(policy=path) as session:
        answers = session.release(["avg(x)", "median(x)", "var_pop(x)", "approx_quantile(x, 0.9)"]).answers
        frame = session.view().to_pandas()
        cells = {int(str(cell.values[0])): cell for cell in session.view_plan().cells if cell.values}
    assert len(cells) == values
    total = sum(cell.share or 0 for cell in cells.values())
    weight = frame["code"].map(lambda code: (cells[code].share or 0) / total / cells[code].keep).to_numpy()
    x = frame["x"].to_numpy()
    mean = float(np.sum(weight * x))
    order = np.argsort(x)
    reached = np.cumsum(weight[order])
    found = [answer.values[0].value for answer in answers]
    assert found[0] == pytest.approx(mean, rel=1e-9)
    assert found[2] == pytest.approx(float(np.sum(weight * (x - mean) ** 2)), rel=1e-9)
    for one, level in ((found[1], 0.5), (found[3], 0.9)):
        assert one == pytest.approx(x[order][np.searchsorted(reached, level)], abs=1e-2)


@pytest.mark.parametrize("kind", ["lazy", "table"])
def test_a_lazy_frame_gives_the_same_answers_as_its_rows(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The view is fetched once, answers and files come from it, and nothing is left behind."""
    path = reference_policy(tmp_path, row_id="id", identifiers=[], rows=4_000)
    table = pq.read_table(tmp_path / "people.parquet")
    frame: Any = pl.from_arrow(table)
    data: Any = frame.lazy() if kind == "lazy" else table
    policy = ap.Policy.load(path)
    (tmp_path / "fetched").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "fetched"))
    with ap.Session(data, policy, ledger=tmp_path / "lazy.ledger") as session:
        first = [answer.values[0].value for answer in session.release(["avg(x)", "median(x)"]).answers]
        assert session.view().count().execute() == session.view_plan().rows
    with ap.Session(data, policy, ledger=tmp_path / "lazy.ledger") as session:
        plan = session.view(tmp_path / "view.parquet")
        again = [answer.values[0].value for answer in session.release(["avg(x)", "median(x)"]).answers]
    assert again == first
    assert pq.read_table(tmp_path / "view.parquet").num_rows == plan.rows
    del session
    gc.collect()
    assert list((tmp_path / "fetched").iterdir()) == []
