"""Two tables of equal size with different secrets: everything but value, interval and entry digest is the same, byte for byte.

The clock stands still, so the time stamp is the same too. Each comparison is also made with a planted leak, which it must see.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attrpriv as ap
from attrpriv.accounting.ledger import Ledger
from attrpriv.cli import app as app_module
from attrpriv.cli import render
from attrpriv.cli.guard import console
from attrpriv.engines import scan as scan_module
from attrpriv.formatting import answer as answer_text
from attrpriv.methods.base.plan import Plan
from tests.end_to_end.material import NOON, ROWS, Said, assume, attrpriv, policy, students, write_policy, write_table

reading_module = importlib.import_module("attrpriv.session.table_reads")
steps_module = importlib.import_module("attrpriv.session.split")

POOR = students(seed=1, weight=120.0, income=25_000.0)
RICH = students(seed=2, weight=190.0, income=190_000.0)


def as_floats(table: pa.Table) -> pa.Table:
    columns = [table.column(name).cast(pa.float64()) for name in ("weight", "income")]
    return pa.table({"weight": columns[0], "income": columns[1], "gender": table.column("gender")})


def holes(table: pa.Table, share: float, *, hole: float | None) -> pa.Table:
    """The same table, of floats, with this share of its weights missing or infinite."""
    weights: list[float | None] = as_floats(table).column("weight").to_pylist()
    for row in np.random.default_rng(7).permutation(ROWS)[: round(share * ROWS)]:
        weights[row] = hole
    return as_floats(table).set_column(0, "weight", pa.array(weights, pa.float64()))


@dataclasses.dataclass(frozen=True)
class World:
    """A policy, and two tables that differ in everything the policy hides."""

    policy: dict[str, Any]
    one: pa.Table
    other: pa.Table
    arguments: tuple[str, ...] = ()
    answered: bool = True
    commands: tuple[tuple[str, ...], ...] = ()


def late_text(row: int, column: int) -> str:
    """A CSV file that has a word in one numeric column, below the sample from which its types are guessed."""
    lines = ["150,60000"] * 30_000
    fields = lines[row].split(",")
    fields[column] = "PLANTED"
    lines[row] = ",".join(fields)
    return "weight,income\n" + "\n".join(lines) + "\n"


BOTH = ["avg(weight)", "sum(income)"]
BOUNDS = {"weight": [100, 180], "income": [0, 100_000]}
WORLDS: dict[str, World] = {
    "parquet": World(policy(), POOR, RICH, commands=(("check",), ("plan",), ("explain",))),
    "several queries": World(
        policy(release=["SELECT avg(weight), sum(weight), count(*) FROM data", "avg(income)"]), POOR, RICH
    ),
    "csv": World(policy(data="students.csv", rows=ROWS), POOR, RICH, commands=(("check",), ("plan",))),
    "floats": World(policy("resolution"), as_floats(POOR), as_floats(RICH)),
    "missing": World(policy("resolution", missing={"weight": 150}), holes(POOR, 0.01, hole=None), holes(RICH, 0.9, hole=None)),
    "not a number": World(
        policy("resolution", missing={"weight": 150}), holes(POOR, 0.01, hole=math.nan), holes(RICH, 0.9, hole=math.nan)
    ),
    "missing, csv": World(
        policy("resolution", data="students.csv", rows=ROWS, missing={"weight": 150}),
        holes(POOR, 0.01, hole=None),
        holes(RICH, 0.5, hole=None),
    ),
    "clipped": World(policy(bounds=BOUNDS, release=BOTH), POOR, RICH, ("--mechanism", "group_dp")),
    "infinite, clipped": World(
        policy("resolution", bounds=BOUNDS),
        holes(POOR, 0.01, hole=math.inf),
        holes(RICH, 0.6, hole=-math.inf),
        ("--mechanism", "group_dp"),
    ),
    "constant": World(policy(assume=assume(mean={"income": 60_000, "weight": 150})), POOR, RICH, ("--mechanism", "constant")),
    "missing, announced": World(
        policy("resolution", release=BOTH),
        holes(POOR, 0.01, hole=None),
        as_floats(RICH).set_column(1, "income", pa.array([math.inf] * ROWS)),
        answered=False,
    ),
    "missing, announced, csv": World(
        policy("resolution", data="students.csv", rows=ROWS, release=BOTH),
        holes(POOR, 0.01, hole=None),
        as_floats(RICH).set_column(1, "income", pa.array([None, *[1.0] * (ROWS - 1)], pa.float64())),
        answered=False,
    ),
    "text, announced, csv": World(
        policy("resolution", data="students.csv", rows=30_000, release=BOTH),
        late_text(25_000, 0),
        late_text(29_999, 1),
        answered=False,
    ),
}


def ledger_rows(path: Path) -> str:
    """Every row of every table of the ledger."""
    if not path.exists():
        return "no ledger"
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        listed = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        names = [name for (name,) in connection.execute(listed).fetchall()]
        return "\n".join(f"{name}: {row}" for name in names for row in connection.execute(f'SELECT * FROM "{name}"'))
    finally:
        connection.close()


def written(entry: Any) -> list[str]:
    """What may differ: values and intervals as JSON and as people read them, and the digest."""
    found = []
    for answer, planned in zip(entry.answers, entry.plan, strict=True):
        numbers = [answer["value"], answer["interval"]["low"], answer["interval"]["high"]]
        found += [repr(float(number)) for number in numbers]
        # Digits follow the noise, or the interval's width where that says more; neither depends on the table.
        scale = max(planned["noise"]["scale"], (numbers[2] - numbers[1]) / 2 / 1.96)
        found += [answer_text(number, scale) for number in numbers]
    return [*found, entry.digest, entry.digest[:16]]


def masked(text: str, allowed: list[str]) -> str:
    """The text without what may differ, and without the padding of tables, which follows the width of the values."""
    for word in sorted(set(allowed), key=len, reverse=True):
        text = re.sub(rf"(?<![\w.]){re.escape(word)}(?![\w.]*\w)", "<may differ>", text)
    return re.sub(r"─+", "─", re.sub(r" +", " ", text))


def observed(world: World, table: pa.Table | str, folder: Path) -> dict[str, tuple[str, list[str]]]:
    """Everything that anyone can see of one world while its owner works in `folder`, each with what of it may differ."""
    if isinstance(table, str):
        (folder / world.policy["data"]).write_text(table, encoding="utf-8")
    else:
        write_table(folder, table, world.policy["data"])
    write_policy(folder, world.policy)
    ledger = folder / "students.ledger"
    commands = [(*command, *flags) for command in world.commands for flags in ((), ("--json",))] or [("plan", "--json")]
    commands += [("release", *world.arguments, *flags) for flags in ((), ("--json",))]
    seen: dict[str, tuple[str, list[str]]] = {}
    for command, *flags in commands:
        said = Said(command, "students.yaml", *flags)
        entries = Ledger(ledger).entries()
        assert bool(entries) == (command == "release" and world.answered)
        allowed = [word for entry in entries for word in written(entry)]
        name = " ".join((command, *flags))
        seen[f"{name}: stdout"] = said.out, allowed
        seen[f"{name}: stderr"] = said.err, []
        seen[f"{name}: exit code"] = str(said.code), []
        seen[f"{name}: ledger"] = ledger_rows(ledger), allowed
        seen[f"{name}: files"] = " ".join(sorted(path.name for path in folder.iterdir())), []
        if entries:
            ledger.unlink()
    return seen


def differences(world: World, folder: Path) -> list[str]:
    """The names of what differs between the two tables of a world."""
    seen = []
    for table in (world.one, world.other):
        for path in folder.iterdir():
            path.unlink()
        seen.append(observed(world, table, folder))
    assert seen[0].keys() == seen[1].keys()
    return [name for name in seen[0] if not _alike(seen[0][name], seen[1][name])]


def _alike(one: tuple[str, list[str]], other: tuple[str, list[str]]) -> bool:
    """Without the values of both: a value of one run may by chance be a public number that both texts hold."""
    allowed = [*one[1], *other[1]]
    return masked(one[0], allowed) == masked(other[0], allowed)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(app_module, "clock", lambda: NOON)
    return tmp_path


@pytest.mark.parametrize("name", list(WORLDS))
def test_nothing_but_the_value_differs(name: str, here: Path) -> None:
    assert differences(WORLDS[name], here) == []


def test_the_values_do_differ(here: Path) -> None:
    """The comparison is between tables that are really different, and what it masks is really there."""
    shown = []
    for table in (POOR, RICH):
        write_table(here, table)
        write_policy(here)
        shown.append(Said("release", "students.yaml").out)
        (here / "students.ledger").unlink()
    assert shown[0] != shown[1]
    assert len(masked(shown[0], [])) > 500


# --------------------------------------------------------------------------------------------------------- planted leaks


def average() -> float:
    return float(np.mean(pq.read_table("students.parquet").column("weight").to_numpy()))


def scale_from_the_data(patch: pytest.MonkeyPatch) -> None:
    """A little less epsilon, and so a little more noise, for a heavier school."""
    for name in ("rank", "plan_problem"):
        real = getattr(steps_module, name)

        def planted(problem: Any, *rest: Any, real: Any = real) -> Any:
            return real(problem.model_copy(update={"epsilon": 1 - average() * 1e-9}), *rest)

        patch.setattr(steps_module, name, planted)


def note_from_the_data(patch: pytest.MonkeyPatch) -> None:
    real = Plan.entries
    patch.setattr(
        Plan, "entries", lambda plan, chosen: [{**row, "clipped_rows": round(average())} for row in real(plan, chosen)]
    )


def spoken(patch: pytest.MonkeyPatch) -> None:
    real = render.show_release

    def show(released: Any) -> None:
        real(released)
        console(stderr=True).print(f"{average():.0f} rows were clipped")

    patch.setattr(render, "show_release", show)


def extra_file(patch: pytest.MonkeyPatch) -> None:
    real = reading_module.scan

    def scan(*arguments: Any) -> Any:
        Path(f"scan-{average():.0f}.log").touch()
        return real(*arguments)

    patch.setattr(reading_module, "scan", scan)


LEAKS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], set[str]]] = {
    "the scale": (scale_from_the_data, {"plan --json: stdout", "release --json: stdout", "release: ledger"}),
    "a note": (note_from_the_data, {"plan --json: stdout", "release --json: stdout", "release: ledger"}),
    "a message": (spoken, {"release: stderr"}),
    "a file": (extra_file, {"release: files"}),
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_planted_leak_is_seen(name: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, where = LEAKS[name]
    plant(monkeypatch)
    assert where <= set(differences(World(policy(), POOR, RICH), here))


def test_a_failure_that_names_its_column_is_seen(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = scan_module._total

    def total(read: Any, *rest: Any) -> Any:
        found = real(read, *rest)
        if found is None:
            monkeypatch.setattr(scan_module, "NOT_FINITE", scan_module.NOT_FINITE + f" It is in {read.column}.")
        return found

    monkeypatch.setattr(scan_module, "_total", total)
    assert "release: stderr" in differences(WORLDS["missing, announced"], here)


# --------------------------------------------------------------------------------------------------- outside this process


def test_a_real_process_prints_the_same(here: Path) -> None:
    seen = []
    for table in (POOR, RICH):
        write_table(here, table)
        write_policy(here)
        still = "from datetime import UTC, datetime; app.clock = lambda: datetime(2024, 5, 6, 12, tzinfo=UTC)"
        done = attrpriv("release", "students.yaml", folder=here, first=still)
        assert done.returncode == 0
        (entry,) = Ledger(here / "students.ledger").entries()
        (here / "students.ledger").unlink()
        seen.append((masked(done.stdout.decode(), written(entry)), done.stderr, entry.time))
    assert seen[0] == seen[1]
    assert seen[0][1:] == (b"", "2024-05-06T12:00:00+00:00")
    assert seen[0][0].count("<may differ>") == 4


# ---------------------------------------------------------------------------------------------------------------- Python


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_a_session_says_the_same(kind: str, tmp_path: Path) -> None:
    seen = []
    for number, table in enumerate((POOR, RICH)):
        path = tmp_path / f"{number}" / "x.ledger"
        path.parent.mkdir()
        data = table.to_pandas() if kind == "pandas" else table
        with ap.Session(data, ap.Policy(**policy("data")), ledger=path, clock=lambda: NOON) as session:
            plan, ranking = session.plan(), session.rank()
            released = session.release()
        texts = [str(plan), repr(plan), repr(ranking), str(released.plan), repr(released.entry), str(released.to_json())]
        texts += [ledger_rows(path), str(session.problem())]
        seen.append([masked(text, written(released.entry)) for text in texts])
    assert seen[0] == seen[1]
