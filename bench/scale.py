"""Scale: `Session.release` on a large Parquet file against the bare DuckDB aggregate, and its peak memory.

    python bench/scale.py [--rows 100000000] [--columns 2] [--runs 3]

Also: the variance of a column of mean 1e9 and standard deviation 1, from one pass, against whole-number arithmetic. Tables are
made in a temporary directory and removed; what does not fit on the disk is skipped. ATTRPRIV_BENCH_ROWS is the default of
--rows, for a quick run. Each measurement is the least of some runs, which take turns, of the time by the clock and of the
processors' time. Believe a ratio only from a machine left alone: at a load of 9 on two processors the bare aggregate itself
varied by half.

By name `gaussian` and `transport` read sums, and stand against `SELECT avg(...)` of the columns they read. `auto` takes
`calibrated_weights` here, which needs sums of products, too: it stands against that and against what DuckDB itself takes for
such moments, `var_pop` of each column and `covar_pop` of each pair (for few columns, of many it takes minutes).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import attrpriv as ap
from attrpriv.engines.gram import GramRead, gram
from attrpriv.engines.scan import ColumnRead, scan
from attrpriv.engines.tables import open_table
from attrpriv.session.table_reads import public_grids

BATCH = 1_000_000
# Of more columns DuckDB's own covariances take too long to wait for.
FEW = 4
BYTES = 10
STEPS = 32


def write_table(path: Path, rows: int, columns: int) -> None:
    """Every other column floats, which do not compress, beginning with the second; the rest whole numbers."""
    generator = np.random.default_rng(1)
    kinds = [pa.float64() if k % 2 == 1 else pa.int64() for k in range(columns)]
    schema = pa.schema([(f"c{k}", kind) for k, kind in enumerate(kinds)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, BATCH):
            drawn = generator.normal(60_000, 30_000, (columns, min(BATCH, rows - start)))
            writer.write_table(
                pa.table([pa.array(x).cast(k, safe=False) for x, k in zip(drawn, kinds, strict=True)], schema=schema)
            )


def policy(columns: int) -> ap.Policy:
    """Each column is asked, the first one's mean is hidden, and all are as good as independent."""
    names = [f"c{k}" for k in range(columns)]
    pairs = {(a, b): 0.1 for k, a in enumerate(names) for b in names[k + 1 :]}
    return ap.Policy(
        epsilon=1.0,
        delta=1e-6,
        protect=[ap.Secret("mean(c0)", between=(20_000, 200_000), within=1_000)],
        assume=ap.Gaussian(
            mean=dict.fromkeys(names, 60_000.0),
            sd=dict.fromkeys(names, 30_000.0),
            correlation=pairs,
            tolerance={"mean": 0.01, "sd": 0.02, "slope": 0.05},
        ),
        release=[", ".join(f"avg({name})" for name in names[1:])],
    )


def release(path: Path, columns: int, ledger: Path, mechanism: str = "auto") -> None:
    """As a user calls it: every mechanism is compared, which takes a time that does not depend on the number of rows."""
    with ap.Session(path, policy(columns), ledger=ledger) as session:
        session.release(mechanism=mechanism)


def plan(path: Path, columns: int) -> None:
    """The part of a release that reads no row."""
    with ap.Session(path, policy(columns), ledger=path.with_suffix(".unused")) as session:
        session.plan()


def one_pass(path: Path, columns: int) -> None:
    """The pass alone, of all columns."""
    names = [f"c{k}" for k in range(columns)]
    grids = public_grids(policy(columns).assume, names)
    scan(open_table(path), [ColumnRead(name, grid=grids.get(name)) for name in names])


def products(path: Path, columns: int) -> None:
    """The pass of all columns that takes sums of products, too."""
    gram(open_table(path), [GramRead(f"c{k}", 60_000.0, 2.0**-16) for k in range(columns)])


def bare(path: Path, columns: int, first: int = 0, *, ahead: bool = True, moments: bool = False) -> None:
    """As DuckDB is, or without fetching ahead, as here."""
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    if not ahead:
        connection.execute("SET disable_parquet_prefetching = true")
    names = [f"c{k}" for k in range(first, columns)]
    wanted = [f"avg({name})" for name in names]
    if moments:
        wanted += [f"var_pop({name})" for name in names] + [f"covar_pop({a}, {b})" for a, b in combinations(names, 2)]
    connection.execute(f"SELECT count(*), {', '.join(wanted)} FROM read_parquet(?)", [str(path)]).fetchall()
    connection.close()


@dataclass(frozen=True)
class Taken:
    """Seconds by the clock, and of all processors."""

    clock: float
    processors: float

    def against(self, bare: Taken, what: str = "averages") -> str:
        ratios = f"{self.clock / bare.clock:.2f} of the bare aggregate, {what} of the same columns ({bare.clock:.3f} s)"
        return f"{self.clock:.3f} s, {ratios}; by processor time {self.processors / bare.processors:.2f}"


def least(runs: int, *works: Callable[[int], None]) -> list[Taken]:
    """The least time of each of these, which take turns; the first turn, which loads what is loaded late, does not count."""
    clock: list[list[float]] = [[] for _ in works]
    processors: list[list[float]] = [[] for _ in works]
    for run in range(runs + 1):
        for position, work in enumerate(works):
            start, used = time.perf_counter(), time.process_time()
            work(run)
            clock[position].append(time.perf_counter() - start)
            processors[position].append(time.process_time() - used)
    return [Taken(min(a[1:]), min(b[1:])) for a, b in zip(clock, processors, strict=True)]


def peak_memory(path: Path, columns: int, ledger: Path) -> float:
    """MiB, of a process that does nothing else."""
    code = (
        "import resource, sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import scale; "
        "scale.release(Path(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(path), str(columns), str(ledger)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def compare(place: Path, rows: int, columns: int, runs: int) -> None:
    needed = BYTES * rows * columns
    if shutil.disk_usage(place).free < 2 * needed:
        print(f"{columns} columns: skipped, needs {needed / 1e9:.0f} GB of disk")
        return
    path = place / "table.parquet"
    write_table(path, rows, columns)
    print(f"{rows:,} rows, {columns} columns, {path.stat().st_size / 1e6:.0f} MB of Parquet")
    alone, all_alone, not_ahead, whole, gaussian, transport, planned, scanned, multiplied, moments = least(
        runs,
        lambda run: bare(path, columns, 1),
        lambda run: bare(path, columns),
        lambda run: bare(path, columns, ahead=False),
        lambda run: release(path, columns, place / f"{columns}-{run}.ledger"),
        lambda run: release(path, columns, place / f"{columns}-{run}-gaussian.ledger", "gaussian"),
        lambda run: release(path, columns, place / f"{columns}-{run}-transport.ledger", "transport"),
        lambda run: plan(path, columns),
        lambda run: one_pass(path, columns),
        lambda run: products(path, columns),
        lambda run: bare(path, columns, moments=True) if columns <= FEW else None,
    )
    print(f"  one pass        {scanned.against(all_alone)}")
    print(f"    fetching ahead in neither: by processor time {scanned.processors / not_ahead.processors:.2f}")
    print(f"  gaussian        {gaussian.against(alone)}; {planned.clock:.3f} s of it is the plan")
    print(f"  transport       {transport.against(all_alone)}")
    print(f"  with products   {multiplied.against(all_alone)}")
    print(f"  auto            {whole.against(all_alone)}")
    if columns <= FEW:
        print(f"  auto            {whole.against(moments, 'variances and covariances')}")
    print(f"  peak memory     {peak_memory(path, columns, place / f'{columns}-memory.ledger'):.0f} MiB")
    path.unlink()


def variance_far_from_zero(place: Path, rows: int) -> None:
    """Mean 1e9, standard deviation 1: the centred sums against whole-number arithmetic on the very same floats."""
    drawn = np.random.default_rng(2).normal(1e9, 1.0, rows)
    path = place / "far.parquet"
    pq.write_table(pa.table({"x": drawn}), path)
    found = gram(open_table(path), [GramRead("x", 1e9, 2.0**-STEPS)])
    variance = Fraction(found.products[0][0] * rows - found.sums[0] ** 2, rows * rows) * Fraction(2) ** (-2 * STEPS)
    # A float near 1e9 is a whole multiple of 2^-23, so these are whole numbers, and below 2^31.
    whole = ((drawn - 1e9) * 2.0**23).astype(np.int64)
    squares = sum(int((part.astype(object) ** 2).sum()) for part in np.array_split(whole, max(1, rows // BATCH)))
    exact = Fraction(squares * rows - int(whole.sum()) ** 2, rows * rows) * Fraction(2) ** -46
    naive = float((drawn * drawn).sum() / rows - (drawn.sum() / rows) ** 2)
    print(f"variance of {rows:,} values, mean 1e9, sd 1: relative error {abs(float(variance / exact - 1)):.1e}")
    print(f"  without a centre: {abs(naive / float(exact) - 1):.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=int(os.environ.get("ATTRPRIV_BENCH_ROWS", "100000000")))
    parser.add_argument("--columns", type=int, nargs="*", default=[2, 10])
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="attrpriv-bench-") as folder:
        for columns in given.columns:
            compare(Path(folder), given.rows, columns, given.runs)
        variance_far_from_zero(Path(folder), min(given.rows, 10_000_000))


if __name__ == "__main__":
    main()
