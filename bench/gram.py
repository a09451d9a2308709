"""The Gram matrix of many columns: aggregates in SQL against batches and BLAS, and how much memory the batches need.

    python bench/gram.py [--rows 5000000] [--columns 200]

The table is made in a temporary directory and removed. ATTRPRIV_BENCH_ROWS is the default of --rows, for a quick run.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from attrpriv.engines import gram as module
from attrpriv.engines.gram import GramRead, gram
from attrpriv.engines.tables import open_table

BATCH = 100_000


def write_table(path: Path, rows: int, columns: int) -> None:
    generator = np.random.default_rng(1)
    schema = pa.schema([(f"c{k}", pa.float64()) for k in range(columns)])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, rows, BATCH):
            values = generator.normal(size=(columns, min(BATCH, rows - start)))
            writer.write_table(pa.table(list(values), schema=schema))


def taken(path: Path, columns: int) -> float:
    start = time.perf_counter()
    gram(open_table(path), [GramRead(f"c{k}", 0.0, 2.0**-32) for k in range(columns)])
    return time.perf_counter() - start


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
        batches = taken(path, given.columns)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{given.rows:,} rows, {given.columns} columns: {batches:.1f} s in batches, peak memory {peak:.0f} MiB")
        few = min(given.columns, 40)
        sql = taken(path, few)
        module._WIDE = few - 1
        print(f"{few} columns: {sql:.1f} s as aggregates in SQL, {taken(path, few):.1f} s in batches")


if __name__ == "__main__":
    main()
