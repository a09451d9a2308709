"""`--csv`: one table on stdout for a spreadsheet, with the numbers of `--json`."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attrpriv.cli.app import app
from attrpriv.demo import run_demo


def test_a_shell_completes_the_commands() -> None:
    words = {"_ATTRPRIV_COMPLETE": "complete_bash", "COMP_WORDS": "attrpriv le", "COMP_CWORD": "1"}
    done = CliRunner().invoke(app, [], prog_name="attrpriv", env=words)
    assert (done.exit_code, done.output.split()) == (0, ["leaks", "ledger"])


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("demo") / "school"
    run_demo(place)
    return place / "students.yaml"


def table(*words: str) -> list[dict[str, str]]:
    done = CliRunner().invoke(app, [*words, "--csv"])
    assert done.exit_code == 0, done.output
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_a_plan(policy: Path) -> None:
    rows = table("plan", str(policy))
    told = json.loads(CliRunner().invoke(app, ["plan", str(policy), "--json"]).stdout)
    assert [row["mechanism"] for row in rows] == [entry["mechanism"] for entry in told]
    for row, entry in zip(rows, told, strict=True):
        assert row["refused"] == entry.get("refused", "")
        assert row["error.rmse"] == ("" if "error" not in entry else str(entry["error"]["rmse"]))


def test_a_release(policy: Path) -> None:
    (row,) = table("release", str(policy))
    told = json.loads(CliRunner().invoke(app, ["release", str(policy), "--json"]).stdout)
    assert row["query"] == told["answers"][0]["query"]
    assert float(row["low"]) < float(row["value"]) < float(row["high"])


def test_a_shell_completes_commands() -> None:
    asked = {"_ATTRPRIV_COMPLETE": "complete_bash", "COMP_WORDS": "attrpriv pl", "COMP_CWORD": "1"}
    program = Path(sys.executable).with_name("attrpriv")
    if not program.exists():
        pytest.skip("needs the installed command")
    done = subprocess.run([program], env={**os.environ, **asked}, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["plan"]
