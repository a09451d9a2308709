"""Memory and time of writing a view of a large Parquet file, in the default and in the low-memory path.

    python bench/view.py [--rows 20000000] [--dir DIRECTORY]

Each path runs in a process of its own, whose peak memory and processor time are what the operating system counted. The limits
are 1.2 GB and 400 MB; exit code 1 if one is exceeded. For comparison, DuckDB alone copies as many rows to a file.
ATTRPRIV_BENCH_ROWS is the default of --rows, for a quick run.

By processor time, whole process, 10,000,000 rows of seven columns, on two busy cores:

| | seconds | times the bare copy beside it |
|---|---|---|
| a SHA-256 digest for each row, a fingerprint of each row's text | 34.0 | 12.6 (of 2.7 s) |
| a stream of ranks, a fingerprint of columns | 12.9 | 3.5 (of 3.7 s; 4.8 times 2.7 s) |
| the same with low memory | 15.1 | 4.1 (of 3.7 s) |
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LIMITS = {"default": 1.2e9, "low-memory": 400e6}
KEPT = (0.25, 0.6)
BATCH = 1_000_000


def write_table(path: Path, rows: int) -> None:
    """Seven columns of an ordinary survey, with 30 percent women, in row groups of a million."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(1)
    cities = np.array([f"city {k}" for k in range(500)])
    numbers = {"age": pa.int64(), "income": pa.float64(), "hours": pa.int64(), "weight": pa.float64(), "children": pa.int64()}
    schema = pa.schema({"sex": pa.string(), "city": pa.string(), **numbers})
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, BATCH):
            size = min(BATCH, rows - start)
            columns = [
                np.where(generator.random(size) < 0.3, "F", "M"),
                cities[generator.integers(0, 500, size)],
                generator.integers(18, 95, size),
                np.round(generator.lognormal(10.5, 0.6, size), 2),
                generator.integers(0, 100, size),
                generator.normal(150, 25, size),
                generator.integers(0, 6, size),
            ]
            writer.write_table(pa.table(columns, schema=schema))


def measured(*arguments: str) -> dict[str, Any]:
    """What a child process says about itself."""
    done = subprocess.run([sys.executable, __file__, "--child", *arguments], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def child(kind: str, data: str, out: str, rows: int) -> None:
    """Write one file and print how long it took and how much memory it needed."""
    import resource

    start = time.perf_counter()
    if kind == "copy":
        import duckdb

        kept = int(rows * sum(KEPT))
        connection = duckdb.connect()
        connection.execute(f"COPY (SELECT * FROM read_parquet('{data}') LIMIT {kept}) TO '{out}'")
        connection.close()
    else:
        import attrpriv as ap

        secret = ap.Secret("share(sex = 'F')", between=(KEPT[0], 1 - KEPT[1]))
        with ap.Session(data, ap.Policy(epsilon=1.0, protect=[secret]), ledger=f"{out}.ledger") as session:
            session.view(out, low_memory=kind == "low-memory")
    seconds = time.perf_counter() - start
    unit = 1 if sys.platform == "darwin" else 1024
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"seconds": seconds, "processors": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss * unit}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=int(os.environ.get("ATTRPRIV_BENCH_ROWS", "20000000")))
    parser.add_argument("--dir", help="where to make the table and the views; default: a temporary directory")
    parser.add_argument("--child", nargs=4, metavar=("KIND", "DATA", "OUT", "ROWS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        kind, table, out, rows = given.child
        child(kind, table, out, int(rows))
        return 0
    too_much = False
    with tempfile.TemporaryDirectory(prefix="attrpriv-bench-", dir=given.dir) as place:
        data = Path(place) / "table.parquet"
        write_table(data, given.rows)
        print(f"{given.rows:,} rows, {data.stat().st_size / 1e6:.0f} MB of Parquet, {sum(KEPT):.0%} of them kept", flush=True)
        alone = measured("copy", str(data), str(Path(place) / "copy.parquet"), str(given.rows))
        print(
            f"bare COPY   {alone['seconds']:6.1f} s, {alone['processors']:.1f} s of processors, {alone['peak'] / 1e6:5.0f} MB"
        )
        for kind, limit in LIMITS.items():
            found = measured(kind, str(data), str(Path(place) / f"{kind}.parquet"), str(given.rows))
            within = found["peak"] <= limit
            too_much |= not within
            print(
                f"{kind:<11} {found['seconds']:6.1f} s, {found['peak'] / 1e6:5.0f} MB of {limit / 1e6:.0f}"
                f"{'' if within else ' EXCEEDED'}, {found['seconds'] / alone['seconds']:.1f} times the bare copy, "
                f"by processor time ({found['processors']:.1f} s) {found['processors'] / alone['processors']:.1f}",
                flush=True,
            )
        left = sorted(path.name for path in Path(place).iterdir() if path.suffix not in (".parquet", ".ledger"))
        if left:
            print(f"left behind: {', '.join(left)}")
    return 1 if too_much or left else 0


if __name__ == "__main__":
    sys.exit(main())
