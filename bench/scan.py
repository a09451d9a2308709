"""How long `Session.release` takes on a Parquet file, against the bare DuckDB aggregate of the same columns.

    python bench/scan.py [--rows 10000000] [--runs 5]

The table is made in a temporary directory and removed. ATTRPRIV_BENCH_ROWS is the default of --rows, for a quick run. Then the
pass alone, by processor time, for averages under a groups assumption, averages by group and a histogram, against DuckDB's own
aggregate of the same columns. The least of three runs, 10,000,000 rows, two busy cores:

| pass | a filter for each count | rows grouped once |
|---|---|---|
| groups | 0.315 s, 2.2 times | 0.171 s, 1.2 times |
| by group | 1.129 s, 6.1 times | 0.190 s, 1.1 times |
| histogram | 0.658 s, 5.6 times | 0.146 s, 1.2 times |
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import attrpriv as ap
from attrpriv.engines.grid import Grid
from attrpriv.engines.scan import ColumnRead, scan
from attrpriv.engines.tables import open_table
from attrpriv.engines.tally import TallyRead
from attrpriv.queries.conditions import Condition, Written, joined, parse_condition

QUERIES = "avg(weight), sum(income), count(*)"
WARDS = tuple(range(6))
BATCH = 1_000_000


def write_table(path: Path, rows: int) -> None:
    """Weights as whole numbers, incomes as floats, and two columns of few values, in row groups of a million."""
    generator = np.random.default_rng(1)
    schema = pa.schema([("weight", pa.int64()), ("income", pa.float64()), ("sex", pa.string()), ("ward", pa.int64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, BATCH):
            size = min(BATCH, rows - start)
            weight = np.rint(generator.normal(150, 25, size)).astype(np.int64)
            income = generator.normal(60_000, 30_000, size)
            sex = np.where(generator.random(size) < 0.3, "F", "M")
            writer.write_table(pa.table([weight, income, sex, generator.integers(0, len(WARDS), size)], schema=schema))


def policy() -> ap.Policy:
    return ap.Policy(
        epsilon=1.0,
        delta=1e-6,
        protect=[ap.Secret("mean(income)", between=(20_000, 200_000), within=1_000)],
        assume=ap.Gaussian(
            mean={"income": 60_000},
            sd={"weight": 25, "income": 30_000},
            correlation={("weight", "income"): 0.3},
            tolerance={"mean": 0.01, "sd": 0.02, "slope": 0.05},
        ),
        resolution={"weight": 1},
    )


def release(path: Path, ledger: Path) -> None:
    with ap.Session(path, policy(), ledger=ledger) as session:
        session.release(QUERIES)


def bare(path: Path) -> None:
    connection = duckdb.connect()
    connection.execute("SELECT avg(weight), sum(income), count(*) FROM read_parquet(?)", [str(path)]).fetchall()
    connection.close()


def median(work: Callable[[int], None], runs: int) -> float:
    work(-1)  # the first run loads what is loaded late
    taken = []
    for run in range(runs):
        start = time.perf_counter()
        work(run)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


@dataclass(frozen=True)
class Pass:
    """What a release reads, and DuckDB's own aggregate of the same columns."""

    reads: tuple[ColumnRead, ...]
    tally: TallyRead
    full: tuple[Condition, ...]
    bare: str


def passes() -> dict[str, Pass]:
    sexes = (Written("sex", "F"), Written("sex", "M"))
    wards = tuple(parse_condition(f"ward = {ward}") for ward in WARDS)
    everywhere = joined("or", *wards)
    grid = Grid.around(60_000.0, 30_000.0)
    averages = (*(ColumnRead("income", grid=grid, where=ward) for ward in wards), ColumnRead("weight"))
    return {
        "groups": Pass((ColumnRead("income"),), TallyRead((), False, sexes), (), "SELECT sex, avg(income) FROM t GROUP BY 1"),
        "by group": Pass(
            averages,
            TallyRead((everywhere,), False, ()),
            (everywhere,),
            "SELECT ward, avg(income), avg(weight) FROM t GROUP BY 1",
        ),
        "histogram": Pass((), TallyRead(wards, True, sexes), (), "SELECT ward, sex, count(*) FROM t GROUP BY ALL"),
    }


def least(runs: int, *works: Callable[[], object]) -> list[float]:
    """Of some works that take turns, the least processor time."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(runs + 1):
        for kept, work in zip(taken, works, strict=True):
            start = time.process_time()
            work()
            kept.append(time.process_time() - start)
    return [min(one[1:]) for one in taken]


def one_pass(path: Path, name: str, found: Pass, runs: int) -> None:
    source = open_table(path)
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW t AS FROM read_parquet('{path}')")
    whole, alone = least(
        runs,
        lambda: scan(source, found.reads, found.tally, found.full),
        lambda: connection.execute(found.bare).fetchall(),
    )
    print(f"pass, {name:<15} {whole:.3f} s of processors, {whole / alone:.2f} times {found.bare}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=int(os.environ.get("ATTRPRIV_BENCH_ROWS", "10000000")))
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="attrpriv-bench-") as place:
        path = Path(place) / "table.parquet"
        write_table(path, given.rows)
        print(f"{given.rows:,} rows, {path.stat().st_size / 1e6:.0f} MB of Parquet, {QUERIES}")
        whole = median(lambda run: release(path, Path(place) / f"{run}.ledger"), given.runs)
        alone = median(lambda run: bare(path), given.runs)
        for name, found in passes().items():
            one_pass(path, name, found, given.runs)
    print(f"Session.release       {whole:.3f} s (plan, scan, noise, ledger; median of {given.runs})")
    print(f"bare DuckDB aggregate {alone:.3f} s")
    print(f"ratio                 {whole / alone:.2f}, difference {whole - alone:+.3f} s")


if __name__ == "__main__":
    main()
