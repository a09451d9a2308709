"""How much processor time whole commands take, against a process that runs one aggregate with DuckDB alone. Medians.

    python bench/command_time.py [--runs 9]

User and system time of the whole process, from its start to its end: the interpreter, imports, the plan, the table of 10,000
rows. Two small policies: an average under a gaussian assumption, a count under conditional probabilities.

Times the bare process (0.18 to 0.21 s on two busy cores), median of 3:

|         | engine, pandas and plugins always loaded | loaded when needed | goal |
|---|---|---|---|
| check   | 8.6 to 8.7 | 4.8 | 4.2 |
| release | 10.5 to 10.6 | 8.7 to 9.1 | 6.3 |

With idle threads of linear algebra asleep and SciPy loaded for Gaussian certificates alone, against the version before, taking
turns on two cores with a dozen processes waiting (bare 0.19 s), median of 4 in seconds:

|                   | before | after |
|---|---|---|
| check, gaussian   | 1.10 | 0.80 |
| release, gaussian | 1.90 | 1.62 |
| check, counts     | 1.21 | 0.80 |
| release, counts   | 2.03 | 1.45 |

What is left of `check` is our own modules (a third), sqlglot, NumPy and pydantic, and scipy.special where a certificate is
Gaussian; of `release` besides that Ibis, which loads the dialects of every database.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SCHOOL = """attrpriv: 1
data: students.parquet
rows: 10000
epsilon: 1.0
delta: 1e-6
protect:
  - secret: mean(income)
    between: [20000, 200000]
    within: 1000
assume:
  kind: gaussian
  mean: {income: 60000}
  sd: {weight: 25, income: 30000}
  correlation: {weight~income: 0.3}
  tolerance: {mean: 0.01, sd: 0.02, slope: 0.05}
bounds: {weight: [60, 400]}
resolution: {weight: 1, income: 1}
release: ["avg(weight)"]
"""
WARD = """attrpriv: 1
data: students.parquet
rows: 10000
epsilon: 1.0
protect:
  - secret: count(smoker = 'yes')
    between: [2500, 4000]
assume:
  kind: counts
  sensitive: smoker
  given:
    weight > 150: {'yes': [0.48, 0.52], 'no': [0.48, 0.52]}
release: ["count(*) filter (where weight > 150)"]
"""
BARE = "import duckdb; duckdb.sql(\"select avg(weight) from 'students.parquet'\").fetchall()"
COMMAND = "from attrpriv.cli import main; main()"  # as the installed script does
CASES: dict[str, Sequence[str]] = {
    "bare DuckDB aggregate": (BARE,),
    "attrpriv --version": (COMMAND, "--version"),
    "check, gaussian": (COMMAND, "check", "school.yaml"),
    "plan, gaussian": (COMMAND, "plan", "school.yaml"),
    "release, gaussian": (COMMAND, "release", "school.yaml"),
    "check, counts": (COMMAND, "check", "ward.yaml"),
    "release, counts": (COMMAND, "release", "ward.yaml"),
}
BASE = next(iter(CASES))


def arrange(folder: Path) -> None:
    """The table and the policies."""
    rng = np.random.default_rng(1)
    columns = {
        "weight": rng.normal(150, 25, 10_000).round().astype(np.int64),
        "income": rng.normal(60_000, 30_000, 10_000).round().astype(np.int64),
        "smoker": np.where(rng.random(10_000) < 0.3, "yes", "no"),
    }
    pq.write_table(pa.table(columns), folder / "students.parquet")
    (folder / "school.yaml").write_text(SCHOOL, encoding="utf-8")
    (folder / "ward.yaml").write_text(WARD, encoding="utf-8")


def environment(folder: Path) -> dict[str, str]:
    """As after an installation: byte code is kept, here in a folder of its own."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder / "cache")}


def seconds(arguments: Sequence[str], folder: Path) -> float:
    """Processor time of one process, which must succeed; a ledger that it leaves is removed."""
    command = [sys.executable, "-c", *arguments]
    process = subprocess.Popen(command, cwd=folder, env=environment(folder), stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(arguments[1:])} ended with {process.returncode}")
    (folder / "students.ledger").unlink(missing_ok=True)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9, help="processes for each case (default: 9)")
    runs = max(1, parser.parse_args().runs)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arrange(folder)
        for arguments in CASES.values():
            seconds(arguments, folder)  # the first one writes byte code and fills the page cache
        times: dict[str, list[float]] = {case: [] for case in CASES}
        for _ in range(runs):  # taking turns, so that a busy machine is busy for all of them
            for case, arguments in CASES.items():
                times[case].append(seconds(arguments, folder))
    medians = {case: statistics.median(taken) for case, taken in times.items()}
    for case, median in medians.items():
        print(f"{case:24} {median:.2f} s   {median / medians[BASE]:.2f} times {BASE}")


if __name__ == "__main__":
    main()
