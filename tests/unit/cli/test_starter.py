"""Starter policies for counts and groups, and what `plan` says where the table is not there yet."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attrpriv.demo import write_students
from attrpriv.policy import Policy
from attrpriv.policy.strict_yaml import load_strict
from attrpriv.queries.arithmetic import parse_linear
from tests.end_to_end.material import ROWS, Said, policy, students, write_policy, write_table
from tests.engines.backends import NO_POSTGRES, postgres

ANSWERS = {
    "counts": {
        "gender = 'TODO'": "gender = 'F'",
        "between: [TODO, TODO]": "between: [25%, 60%]",
        "within: TODO": "within: 2%",
        "weight > TODO": "weight > 160",
        "TODO-first: TODO           #": "F: [0.4, 0.5] #",
        "TODO-first: TODO": "F: [0.3, 0.35]",
        "TODO-second: TODO": "M: [0.4, 0.45]",
    },
    "groups": {
        "gender = 'TODO'": "gender = 'F'",
        "between: [TODO, TODO]": "between: [25%, 60%]",
        "within: TODO": "within: 2%",
        "TODO-first": "F",
        "TODO-second": "M",
        "weight: TODO": "weight: 140",
        "mean: TODO": "mean: 0.02",
        "sd: TODO": "sd: 0.02",
    },
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("template", ANSWERS)
def test_a_starter_policy_works_once_decided(template: str, here: Path) -> None:
    write_table(here, students(rows=120))
    said = Said("init", "students.parquet", "--template", template, "--out", "new.yaml")
    assert said.code == 0
    path = here / "new.yaml"
    text = path.read_text(encoding="utf-8")
    assert Said("check", "new.yaml").code == 2
    for open_, decided in ANSWERS[template].items():
        assert open_ in text
        text = text.replace(open_, decided)
    assert "TODO" not in "".join(line.partition("#")[0] for line in text.splitlines())
    path.write_text(text, encoding="utf-8")
    assert [assumed.kind for assumed in Policy.load(path).assume] == [template]
    assert Said("release", "new.yaml", "--mechanism", "group_dp" if template == "counts" else "auto").code == 0


def test_a_template_that_is_not_there_names_the_others(here: Path) -> None:
    write_table(here)
    said = Said("init", "students.parquet", "--template", "school2")
    assert said.code == 2
    assert said.complaint == "template: must be one of school, hospital, survey, columns, counts, groups. Got 'school2'."


def test_plan_and_check_say_that_the_table_is_not_there(here: Path) -> None:
    write_policy(here, policy(rows=ROWS))
    note = "students.parquet is not there: this is for the 400 rows that the policy declares. Names and types of columns "
    planned = Said("plan", "students.yaml")
    assert planned.code == 0
    assert planned.out.startswith(f"note {note}")
    assert note in Said("check", "students.yaml").out
    assert any(line.startswith(note) for line in Said("check", "students.yaml", "--json").json["notes"])
    assert isinstance(Said("plan", "students.yaml", "--json").json, list)
    write_table(here)
    assert "is not there" not in Said("plan", "students.yaml").out + Said("check", "students.yaml").out


# ---------------------------------------------------------------------------------------------- tables that are no file


def test_a_starter_policy_for_a_pattern_of_files(here: Path) -> None:
    for k in range(2):
        write_table(here, students(rows=60), f"part-{k}.parquet")
    said = Said("init", "part-*.parquet")
    assert (said.code, said.err) == (0, "")
    text = (here / "part-all.yaml").read_text(encoding="utf-8")
    assert "data: part-*.parquet" in text
    assert "from its schema" in text


@pytest.mark.skipif(NO_POSTGRES is not None, reason=str(NO_POSTGRES))
def test_a_starter_policy_for_a_table_in_a_database(here: Path) -> None:
    url = str(postgres(students(rows=60), here))
    said = Said("init", url, "--out", "new.yaml")
    assert (said.code, said.err) == (0, "")
    assert "guessed" not in said.out
    text = (here / "new.yaml").read_text(encoding="utf-8")
    assert f"data: {url}" in text.replace("'", "")
    assert "rows: TODO" in text
    assert Said("init", url).code == 0
    assert len(list(here.glob("suite*.yaml"))) == 1


@pytest.mark.parametrize("url", ["postgresql://ann:4711@db/x?table=t", "postgres://db/x?table=t&password=4711"])
def test_a_starter_policy_holds_no_password(url: str, here: Path) -> None:
    said = Said("init", url)
    assert said.code == 2
    assert "hold no password" in said.err
    assert "4711" not in said.err
    assert list(here.iterdir()) == []


# ---------------------------------------------------------------------------------------------- what is proposed, and said


def starter_of(here: Path, *arguments: str) -> str:
    said = Said("init", *arguments, "--out", "new.yaml", "--force")
    assert (said.code, said.err) == (0, "")
    return (here / "new.yaml").read_text(encoding="utf-8")


def test_what_a_name_says_is_sensitive_is_proposed_and_nothing_else(here: Path) -> None:
    write_students(here / "students.parquet", n=50)
    assert "secret: mean(income) " in starter_of(here, "students.parquet")
    (here / "people.csv").write_text("height,weight,ward\n" + "170,60,a\n180,70,b\n" * 10, encoding="utf-8")
    assert "secret: mean(TODO) " in starter_of(here, "people.csv")
    assert "No column's name says that it is sensitive" in Said("init", "people.csv", "--out", "other.yaml").out
    assert "share(TODO = 'TODO')" in starter_of(here, "people.csv", "--template", "hospital")


STATED: dict[str, tuple[tuple[str, ...], dict[str, str], str]] = {
    "a mean": (
        ("--secret", "mean(income)", "--release", "avg(weight)", "--release", "avg(height)"),
        {"between: [TODO, TODO]": "between: [20000, 200000]", "within: TODO": "within: 1000", "mean: TODO": "mean: 0.01"}
        | {"slope: TODO": "slope: 0.05", "    sd: TODO": "    sd: 0.02", "~height: TODO": "~height: 0.1"}
        | {"~income: TODO": "~income: 0.3", "income: TODO": "income: 30000", "height: TODO": "height: 4"}
        | {"weight: TODO": "weight: 25"},
        "gaussian",
    ),
    "a combination": (
        ("--secret", "mean(income + 10 * sat)", "--release", "avg(weight)"),
        {"between: [TODO, TODO]": "between: [20000, 200000]", "within: TODO": "within: 1000", "mean: TODO": "mean: 0.01"}
        | {
            "slope: TODO": "slope: 0.05",
            "    sd: TODO": "    sd: 0.02",
            "~income: TODO": "~income: 0.3",
            "~sat: TODO": "~sat: 0.1",
        }
        | {"income: TODO": "income: 30000", "sat: TODO": "sat: 200", "weight: TODO": "weight: 25"},
        "gaussian",
    ),
    "a share of two columns": (
        ("--secret", "share(gender = 'F' and sat >= 1050)", "--release", "avg(weight)"),
        {"between: [TODO, TODO]": "between: [10%, 60%]"},
        "",
    ),
    "a share behind counts": (
        ("--secret", "share(gender = 'F')", "--release", "count(*) filter (where weight > 160)"),
        {"between: [TODO, TODO]": "between: [25%, 60%]", "within: TODO": "within: 2%", "F: TODO  ": "F: [0.4, 0.5]  "}
        | {"F: TODO": "F: [0.3, 0.35]", "TODO-second: TODO": "M: [0.4, 0.45]"},
        "counts",
    ),
    "a share behind averages": (
        ("--secret", "share(gender = 'F')", "--release", "avg(weight)"),
        {"between: [TODO, TODO]": "between: [25%, 60%]", "within: TODO": "within: 2%", "TODO-second": "M"}
        | {"weight: TODO": "weight: 140", "mean: TODO": "mean: 0.02", "sd: TODO": "sd: 0.02"},
        "groups",
    ),
    "a share behind a view": (
        ("--secret", "share(gender = 'F')", "--release", "avg(weight) filter (where height > 60)"),
        {"between: [TODO, TODO]": "between: [25%, 60%]"},
        "",
    ),
}


@pytest.mark.parametrize("name", STATED)
def test_a_starter_policy_for_a_stated_secret_works_once_decided(name: str, here: Path) -> None:
    arguments, decisions, kind = STATED[name]
    write_students(here / "students.parquet", n=400)
    text = starter_of(here, "students.parquet", *arguments)
    assert Said("check", "new.yaml").code == 2
    for open_, decided in decisions.items():
        assert open_ in text
        text = text.replace(open_, decided)
    assert "TODO" not in "".join(line.partition("#")[0] for line in text.splitlines())
    (here / "new.yaml").write_text(text, encoding="utf-8")
    loaded = Policy.load(here / "new.yaml")
    assert [assumed.kind for assumed in loaded.assume] == ([kind] if kind else [])
    assert loaded.protect[0].text == arguments[1]
    assert loaded.release == tuple(arguments[3::2])
    assert Said("check", "new.yaml").code == 0


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no such column": (
        ("--secret", "mean(wieght)"),
        "secret: the column must be one of the table's. Got wieght. Close: weight",
    ),
    "no such query": (("--release", "avg(wieght)"), "release: the column must be one of the table's. Got wieght."),
    "another template": (("--secret", "mean(income)", "--template", "counts"), "template: must be school for mean(income)"),
    "no statistic": (("--secret", "income"), "income"),
    "entries": (("--secret", "entries(gender)"), "secret: a starter policy hides a mean, sum, count, share or distribution."),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_secret_that_cannot_be_proposed(name: str, here: Path) -> None:
    arguments, told = WRONG[name]
    write_table(here, students(rows=20))
    said = Said("init", "students.parquet", *arguments, "--out", "new.yaml")
    assert said.code == 2
    assert told in said.complaint
    assert not (here / "new.yaml").exists()


def test_hints_are_in_the_quotes_that_a_policy_needs(here: Path) -> None:
    """Each hint is what a secret takes, and the key that an assumption takes."""
    names = ["hours-per-week", 'a"b', "order", "true", "sex", "back\\slash", "x: y"]
    pq.write_table(pa.table({name: [1.0, 2.0, 3.0] for name in names}), here / "odd.parquet")
    text = starter_of(here, "odd.parquet")
    hints = [line.removeprefix("#   ").removesuffix(": float") for line in text.splitlines() if line.startswith("#   ")]
    for name, hint in zip(names, hints, strict=True):
        sql, _, key = hint.partition(", as a key ")
        assert parse_linear(f"mean({sql})").coefficients == ((name, 1.0),)
        assert load_strict(f"{key or sql}: 1", where="hint") == {name: 1}


def test_a_csv_file_with_text_says_how_text_is_compared(here: Path) -> None:
    (here / "people.csv").write_text("income,weight,ward\n" + "170,60, a\n180,70, b\n" * 10, encoding="utf-8")
    text = starter_of(here, "people.csv")
    assert "# Text is compared as it is written" in text
    (here / "people.csv").write_text("income,weight,ward\n" + "170,60,a\n180,70,b\n" * 10, encoding="utf-8")
    assert starter_of(here, "people.csv") == text  # whatever the rows hold
