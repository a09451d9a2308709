"""Starter policies for counts and groups, and what `plan` says where the table is not there yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from attrpriv.policy import Policy
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
    assert said.complaint == "template: must be one of school, hospital, survey, counts, groups. Got 'school2'."


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
