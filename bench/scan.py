"""How long `Session.release` takes on a Parquet file, against the bare DuckDB aggregate of the same columns.

    python bench/scan.py [--rows 10000000] [--runs 5]

The table is made in a temporary directory and removed. ATTRPRIV_BENCH_ROWS is the default of --rows, for a quick run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import attrpriv as ap

QUERIES = "avg(weight), sum(income), count(*)"
BATCH = 1_000_000


def write_table(path: Path, rows: int) -> None:
    """Weights as whole numbers, incomes as floats, in row groups of a million."""
    generator = np.random.default_rng(1)
    schema = pa.schema([("weight", pa.int64()), ("income", pa.float64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, BATCH):
            size = min(BATCH, rows - start)
            weight = np.rint(generator.normal(150, 25, size)).astype(np.int64)
            income = generator.normal(60_000, 30_000, size)
            writer.write_table(pa.table([weight, income], schema=schema))


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
    print(f"Session.release       {whole:.3f} s (plan, scan, noise, ledger; median of {given.runs})")
    print(f"bare DuckDB aggregate {alone:.3f} s")
    print(f"ratio                 {whole / alone:.2f}, difference {whole - alone:+.3f} s")


if __name__ == "__main__":
    main()
