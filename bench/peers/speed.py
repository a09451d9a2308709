"""From a Parquet file to one number: processor time and memory of other libraries, of attrpriv, and of the bare aggregate.

Each measurement is a process of its own, imports included. They take turns, so that what else the machine does falls on all of
them; processor time is that of the process and of what it started. What takes long is left out at the larger size.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.peers.budget import Budget, Unavailable
from bench.peers.environment import in_environment
from bench.peers.here import INSIDE, in_this_environment
from bench.peers.libraries import LIBRARIES, version
from bench.peers.results import Cell, Form, Result, Table, machine, measured

NAME = "speed"
TITLE = "Speed: from a file to a number"
NEEDS: tuple[str, ...] = ("duckdb", "pyarrow")
SECONDS = 900.0
SEED = 5

SIZES = (1_000_000, 10_000_000)
BATCH = 1_000_000
ROUNDS, SLOW_ROUNDS = 3, 2
SLOW = ("pipelinedp", "tumult")
# At the smaller size; above these the larger one is not tried. Spark takes long to start, and little longer for more rows.
LONG, STARTING = 10.0, 60.0  # processor seconds
LARGE = 0.5  # of this machine's memory, for as many times what the smaller size takes as it is smaller
ONCE = 300.0

FLOOR = "duckdb"
OURS = {
    "average": {
        "duckdb": "DuckDB, no promise",
        "attrpriv gaussian": "attrpriv `gaussian`",
        "attrpriv transport": "attrpriv `transport`",
    },
    "count": {"duckdb": "DuckDB, no promise", "attrpriv laplace": "attrpriv `laplace`"},
}
PERSON = "one person's row, whatever the other rows are: pure differential privacy, ε = 1"
PROMISES = {
    "DuckDB, no promise": "nothing: this is the floor",
    "attrpriv `gaussian`": "which of two mean incomes 1,000 apart: ε = 1, δ = 1e-6, under an assumption",
    "attrpriv `transport`": "the same",
    "attrpriv `laplace`": "which of two shares of smokers .001 apart: ε = 1, under an assumption",
    "OpenDP (Polars)": PERSON,
    "diffprivlib": PERSON,
    "SmartNoise SQL": "one person's row: differential privacy, ε = 1, δ = 1e-6 in all, by its own account",
    "PipelineDP (local)": PERSON,
    "Tumult Analytics (Spark)": PERSON,
}
Key = tuple[int, str, str]


def run(budget: Budget) -> Result:
    found: dict[Key, list[dict[str, float]]] = {}
    reasons: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="attrpriv-peers-") as folder:
        paths = {rows: written(Path(folder) / f"{rows}.parquet", rows) for rows in SIZES}
        versions = available(budget, reasons)
        there = [each for each in LIBRARIES if each.words in versions]
        for turn, rows, what, who in turns(there):
            budget.say(f"round {turn + 1}: {rows:,} rows, {what}, {who}")
            name = f"{who}, {rows:,} rows, {what}"
            if budget.left <= 0:
                if not turn:
                    reasons[name] = "no time was left"
                continue
            if rows > SIZES[0] and (reason := _too_much(who, found.get((SIZES[0], what, who), []))):
                reasons[name] = reason
                continue
            try:
                most = min(max(ONCE, budget.seconds / 3), 60 + budget.left)
                found.setdefault((rows, what, who), []).append(one(paths[rows], rows, what, who, most))
                reasons.pop(name, None)
            except Unavailable as reason:
                if not found[rows, what, who]:
                    reasons[name] = str(reason)
    tables = [table(found, rows, what, there) for what in OURS for rows in SIZES]
    kept = [[name, text] for name, text in PROMISES.items()]
    tables.append(Table.of("promises", "What is hidden", {"of": "text", "what": "text"}, kept))
    notes = [
        "processor seconds of a process that does nothing else, with its imports and what it starts; the median of runs that "
        "took turns, in brackets the least and the largest; memory is that of the largest process",
        *(f"not measured: {what}: {reason}" for what, reason in sorted(reasons.items())),
    ]
    packages = ("duckdb", "pyarrow")
    return Result.of(
        NAME, TITLE, seconds=budget.spent, seed=SEED, tables=tables, notes=notes, packages=packages, versions=versions
    )


def available(budget: Budget, reasons: dict[str, str]) -> dict[str, str]:
    """The libraries that are installed or can be, with their versions: those that have none to tell are not measured."""
    versions = {}
    for each in LIBRARIES:
        budget.say(f"an environment for {each.words}")
        try:
            versions[each.words] = version(each)
        except Unavailable as reason:
            reasons[each.words] = str(reason)
    return versions


def turns(there: list[Any]) -> Iterator[tuple[int, int, str, str]]:
    """Round by round, those that take long after the others and less often: each is measured once before any is again."""
    for turn in range(ROUNDS):
        for slow, rounds in ((False, ROUNDS), (True, SLOW_ROUNDS)):
            others = [each.name for each in there if (each.name in SLOW) == slow]
            for rows, (what, ours) in itertools.product(SIZES if turn < rounds else (), OURS.items()):
                yield from ((turn, rows, what, who) for who in [*([] if slow else ours), *others])


def one(path: Path, rows: int, what: str, who: str, most: float) -> dict[str, float]:
    payload = {"library": who, "path": str(path), "rows": rows, "what": what}
    other = next((each for each in LIBRARIES if each.name == who), None)
    if other is None:
        found: dict[str, float] = in_this_environment("speed.py", payload, most)
    else:
        found = in_environment(who, other.requirements, INSIDE / "speed.py", payload, most)
    return found


def _too_much(who: str, before: list[dict[str, float]]) -> str:
    """Why the larger size is not tried, if so, after what the smaller one took."""
    if not before:
        return f"not tried where {SIZES[0]:,} rows could not be measured"
    most = STARTING if who == "tumult" else LONG
    if statistics.median(one["seconds"] for one in before) > most:
        return f"not tried where {SIZES[0]:,} rows take more than {most:.0f} processor seconds"
    share = statistics.median(one["bytes"] for one in before) * SIZES[1] / SIZES[0] / (machine().memory_gb * 2**30)
    return f"not tried where {share:.0%} of the memory might be needed, by what {SIZES[0]:,} rows take" if share > LARGE else ""


def written(path: Path, rows: int) -> Path:
    """Made-up people: a weight that goes with an income, and who smokes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    random, writer = np.random.default_rng(SEED), None
    for start in range(0, rows, BATCH):
        n = min(BATCH, rows - start)
        income = random.normal(60_000, 30_000, n)
        weight = 80 + 7.5 * (income - 60_000) / 30_000 + 25 * np.sqrt(1 - 0.09) * random.normal(size=n)
        smoker = np.where(random.random(n) < 0.3, "yes", "no")
        batch = pa.table({"weight": np.clip(weight, 0, 200), "income": income, "smoker": smoker})
        writer = writer or pq.ParquetWriter(path, batch.schema)
        writer.write_table(batch)
    if writer is not None:
        writer.close()
    return path


# ------------------------------------------------------------------------------------------------------------------- tables


def table(found: dict[Key, list[dict[str, float]]], rows: int, what: str, there: list[Any]) -> Table:
    names = {**OURS[what], **{each.name: each.words for each in LIBRARIES}}
    floor = found.get((rows, what, FLOOR), [])
    lines = [_line(words, found.get((rows, what, who), []), floor) for who, words in names.items()]
    columns: dict[str, Form] = {
        "who": "text",
        "runs": "whole",
        "processor time": "seconds",
        "of the bare aggregate": "times",
        "peak memory": "bytes",
    }
    title = {"average": "An average", "count": "A count with a filter"}[what]
    return Table.of(f"{what}-{rows}", f"{title} of {rows:,} rows", columns, lines)


def _line(words: str, runs: list[dict[str, float]], floor: list[dict[str, float]]) -> list[Cell | str | float | None]:
    if not runs:
        return [words, None, None, None, None]
    seconds = [one["seconds"] for one in runs]
    ratios = [one / statistics.median(each["seconds"] for each in floor) for one in seconds] if floor else []
    memory = statistics.median(one["bytes"] for one in runs)
    return [words, float(len(runs)), _spread(seconds), _spread(ratios) if ratios else None, memory]


def _spread(values: list[float]) -> Cell:
    middle = statistics.median(values)
    return measured(middle, min(values), max(values)) if len(values) > 1 else measured(middle)
