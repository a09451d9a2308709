"""The Gram matrix of many columns: aggregates in SQL against batches and BLAS, and how much memory the batches need.

    python bench/gram.py [--rows 5000000] [--columns 200]

Seconds by the clock, and of all processors.

The table is made in a temporary directory and removed. ATTRPRIV_BENCH_ROWS is the default of --rows, for a quick run.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from attrpriv.engines.gram import GramRead, _gram_of_aggregates, _steps, gram
from attrpriv.engines.tables import Source, open_table

BATCH = 100_000


def write_table(path: Path, rows: int, columns: int) -> None:
    generator = np.random.default_rng(1)
    schema = pa.schema([(f"c{k}", pa.float64()) for k in range(columns)])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, rows, BATCH):
            values = generator.normal(size=(columns, min(BATCH, rows - start)))
            writer.write_table(pa.table(list(values), schema=schema))


def batches(source: Source, reads: list[GramRead]) -> None:
    gram(source, reads)


def aggregates(source: Source, reads: list[GramRead]) -> None:
    """As on the other engines."""
    _gram_of_aggregates(source, [_steps(source, read) for read in reads])


def taken(work: Callable[[Source, list[GramRead]], None], path: Path, columns: int) -> str:
    start, used = time.perf_counter(), time.process_time()
    work(open_table(path), [GramRead(f"c{k}", 0.0, 2.0**-32) for k in range(columns)])
    return f"{time.perf_counter() - start:.1f} s ({time.process_time() - used:.1f} s)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=int(os.environ.get("ATTRPRIV_BENCH_ROWS", "5000000")))
    parser.add_argument("--columns", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="attrpriv-bench-") as place:
        path = Path(place) / "table.parquet"
        needed = 9 * given.rows * given.columns
        if shutil.disk_usage(place).free < 2 * needed:
            print(f"skipped: needs {needed / 1e9:.0f} GB of disk")
            return
        write_table(path, given.rows, given.columns)
        all_of_them = taken(batches, path, given.columns)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{given.rows:,} rows, {given.columns} columns: {all_of_them} in batches, peak memory {peak:.0f} MiB")
        for few in (2, 4, 10):
            in_sql, here = taken(aggregates, path, few), taken(batches, path, few)
            print(f"{few} columns: {in_sql} as aggregates in SQL, {here} in batches")


if __name__ == "__main__":
    main()
