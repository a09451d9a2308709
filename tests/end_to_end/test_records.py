"""`kind: records` from the command line to the ledger: plan, release, told again, rechecked without the table."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from attrpriv.cli.app import app
from attrpriv.errors import DataError, RefusedError
from attrpriv.policy import Policy
from attrpriv.session.session import Session
from examples.records.generate import rows

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "records"
POLICY = """
attrpriv: 1
data: workers.csv
rows: 60
epsilon: 1
delta: 1e-4
resolution: {pay: 0.25}
protect:
  - {secret: mean(school), between: [9.8, 10.2], within: 0.1}
assume:
  kind: records
  file: public.parquet
  columns: [school, hours, sex, pay]
  resamples: {number: 1, size: 200}
release: [avg(hours)]
"""


def frame(seed: int, n: int) -> pd.DataFrame:
    made = pd.DataFrame(rows(seed, n), columns=["school", "hours", "sex"])
    return made.assign(pay=made["hours"] * 0.75)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    frame(3, 400).to_parquet(tmp_path / "public.parquet")
    frame(5, 60).to_csv(tmp_path / "workers.csv", index=False)
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


def test_plans_are_not_tried_on_another_file_but_told_how_to_be_proved_for_it(place: Path) -> None:
    frame(7, 300).to_parquet(place / "later.parquet")
    found = run("plan", str(place / "policy.yaml"), "--mechanism", "gaussian", "--against", str(place / "later.parquet"))
    assert "list their file under further" in " ".join(found.split())
    assert "not tried" in found


def test_the_example_is_what_its_script_makes() -> None:
    for name, (seed, n) in {"public.csv": (3, 3000), "older.csv": (4, 1500), "workers.csv": (5, 400)}.items():
        written = pd.read_csv(EXAMPLE / name)
        assert list(written.itertuples(index=False, name=None)) == rows(seed, n)
    assert len(Policy.load(EXAMPLE / "records.yaml").assume) == 1


def test_a_release_is_told_again_and_rechecked_without_the_table(place: Path) -> None:
    policy = str(place / "policy.yaml")
    first = json.loads(run("release", policy, "--mechanism", "gaussian", "--json"))
    again = json.loads(run("release", policy, "--json"))
    assert [one["value"] for one in first["answers"]] == [one["value"] for one in again["answers"]]
    (place / "workers.csv").unlink()
    told = run("ledger", policy, "--recheck")
    assert "found to have the noise it asks for: 1 of 1 releases" in " ".join(told.split())


def test_another_question_is_refused(place: Path) -> None:
    with Session(place / "workers.csv", place / "policy.yaml") as session:
        session.release("avg(hours)", "gaussian")
        with pytest.raises(RefusedError):
            session.release("avg(pay)", "gaussian", spend=1)


def test_floats_are_rounded_to_the_spacing_row_by_row(place: Path) -> None:
    """Rows a little off the spacing add up as if they were on it: the same whole sum is noised."""
    from attrpriv.session.table_reads import averages, opened_table

    policy = Policy.load(place / "policy.yaml")
    table = frame(5, 60)
    with Session(table.assign(pay=table["pay"] + 0.11), policy, ledger=place / "off.ledger") as session:
        made = session.plan("sum(pay)", "gaussian")
    sources = [opened_table(one) for one in (table, table.assign(pay=table["pay"] + 0.11))]
    found = [averages(source, made)[0][0] for source in sources]
    assert found[0] == found[1]
    assert float(found[0] * 60) == float(table["pay"].sum())


def test_the_private_table_is_no_public_one(place: Path) -> None:
    shutil.copy(place / "public.parquet", place / "same.parquet")
    text = POLICY.replace("workers.csv", "same.parquet").replace("rows: 60", "rows: 400")
    (place / "same.yaml").write_text(text)
    with Session(place / "same.parquet", place / "same.yaml") as session, pytest.raises(DataError, match="other records"):
        session.release("avg(hours)", "gaussian")


def test_nothing_says_that_it_is_for_your_data(place: Path) -> None:
    told = run("plan", str(place / "policy.yaml"), "--mechanism", "gaussian")
    assert "for the 2 laws listed" in told
    assert "your data" not in told
    explained = run("explain", str(place / "policy.yaml"))
    assert "the promise is for the laws listed" in " ".join(explained.split())
