"""What is told, shown, audited and reported needs no row of the private table.

Everything is done twice: where there is no table, and where one has its names and types, and its pages of rows are destroyed.
Both times it says the same; whatever reads a row fails, as `release` does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import attrpriv as ap
from attrpriv.audit.leaks import leaks
from attrpriv.audit.release import run as audit_run
from attrpriv.cli.app import app
from tests.end_to_end.material import policy, write_policy

ROWS = 400
SMALL: dict[str, Any] = {"draws": 100, "tables": 100, "released": 100, "recorded": 100}


def broken(path: Path) -> None:
    """A table with its names and types, and nothing but noughts where its rows were."""
    table = {"weight": list(range(ROWS)), "income": list(range(ROWS)), "smoker": ["yes", "no"] * (ROWS // 2)}
    pq.write_table(pa.table(table), path, write_statistics=False)
    whole = path.read_bytes()
    foot = 8 + int.from_bytes(whole[-8:-4], "little")
    path.write_bytes(whole[:4] + bytes(len(whole) - 4 - foot) + whole[-foot:])


@pytest.fixture(params=["absent", "broken"])
def school(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "broken":
        broken(tmp_path / "students.parquet")
    return write_policy(tmp_path, policy(rows=ROWS))


def census(folder: Path) -> Path:
    generator = np.random.default_rng(1)
    income = 5_000 * np.rint(12 + 6 * generator.normal(size=2_000))
    weight = np.rint(150 + 25 * (0.3 * (income - 60_000) / 30_000 + 0.95 * generator.normal(size=2_000)))
    place = folder / "census.parquet"
    pd.DataFrame({"weight": weight, "income": income, "smoker": generator.choice(["yes", "no"], 2_000)}).to_parquet(place)
    return place


def told(path: Path) -> None:
    with ap.Session(policy=path) as session:
        plan = session.plan(mechanism="gaussian")
        assert plan.tells(1_000).before.right > 0.5
        assert plan.belief(at=60_000).worst
        ranking = session.rank()
    ranking.to_frame()
    assert ranking._repr_html_()


def audited(path: Path) -> None:
    with ap.Session(policy=path) as session:
        plan = session.plan(mechanism="gaussian")
        audit = ap.audit_release(plan, session, records=census(path.parent), pairs=[(60_000, 61_000)], **SMALL)
    assert len(audit.tried) == 5


def mapped(path: Path) -> None:
    assert leaks(policy=ap.Policy.load(path)).leaks
    assert leaks(census(path.parent), ap.Policy.load(path)).leaks


def a_model(path: Path) -> None:
    stated = policy(rows=ROWS) | {"protect": [{"secret": "share(smoker = 'yes')", "between": [0.3, 0.7]}], "release": []}
    for key in ("assume", "bounds", "resolution"):
        stated.pop(key, None)
    with ap.Session(policy=write_policy(path.parent, stated)) as session:
        view = session.view_plan()
        assert view.tells().after.right < 0.51
        view.to_frame()
        audit = ap.audit_model(
            lambda table: {"a": float(table.weight.mean())},
            census(path.parent),
            "share(smoker = 'yes')",
            (0.4, 0.6),
            rows=200,
            shadows=20,
            targets=20,
            defences={"view": session},
        )
    assert audit.warning == ""


@pytest.mark.parametrize("work", [told, audited, mapped, a_model], ids=lambda one: one.__name__)
def test_no_row_is_needed(school: Path, work: Callable[[Path], None]) -> None:
    work(school)


@pytest.mark.parametrize("command", ["plan", "check", "explain", "leaks", "audit", "report", "ledger"])
def test_no_command_that_shows_needs_a_row(school: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Any = audit_run.audit_release
    monkeypatch.setattr("attrpriv.cli.audit.audit_release", lambda *given, **named: real(*given, **named, **SMALL))
    more = {"report": ["--out", str(school.with_suffix(".html"))], "audit": ["--mechanism", "gaussian"]}.get(command, [])
    done = CliRunner().invoke(app, [command, str(school), "--json", *more])
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)


def test_a_row_that_is_read_is_an_error(tmp_path: Path) -> None:
    broken(tmp_path / "students.parquet")
    path = write_policy(tmp_path, policy(rows=ROWS))
    with ap.Session(policy=path) as session, pytest.raises(ap.AttrprivError):
        session.release(mechanism="gaussian")
