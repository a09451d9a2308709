"""How long a wide policy takes: 1,000 columns, 50 secrets, 48,725 correlations.

    python bench/wide.py [--columns 1000] [--secrets 50] [--runs 3]

Each line says seconds, how many times as long as libyaml alone takes to read the file (`yaml.CSafeLoader`, which resolves
no limit, no repeated key and no number as we do), and seconds of the processors. The policy and the ledger are made in a
temporary directory; no table is there. `attrpriv check` and `attrpriv plan` are whole processes, with byte code that an
earlier one compiled, as an installed package has it; under 2 s each is what a machine that is not busy should do. "Read again"
is a second policy, equal to one that was planned before: it must not cost more than reading and planning. The last lines are
plans of several averages at once, of 100 columns; few are calibrated over all corners of the tolerance, more by one bound.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import yaml

import attrpriv as ap


def wide_policy(columns: int, secrets: int, asked: int = 1) -> str:
    """A policy that states what plans need: each column's mean and sd, and its correlation with each sensitive column."""
    generator = random.Random(1)
    names = [f"c{k:04d}" for k in range(columns)]
    hidden, queries = names[-secrets:], names[:asked]
    lines = ["attrpriv: 1", "data: wide.parquet", "rows: 100000", "epsilon: 1.0", "delta: 1e-6", "protect:"]
    for name in hidden:
        lines += [f"  - secret: mean({name})", "    between: [0, 100]", "    within: 0.5"]
    lines += ["assume:", "  kind: gaussian", "  mean:", *(f"    {name}: {generator.uniform(40, 60):.2f}" for name in names)]
    lines += ["  sd:", *(f"    {name}: {generator.uniform(5, 15):.2f}" for name in names), "  correlation:"]
    pairs = [(name, other) for name in names for other in hidden if name < other]
    pairs += [(name, other) for name in queries for other in queries if name < other]
    lines += [f"    {a}~{b}: {generator.uniform(0.02, 0.03):.4f}" for a, b in pairs]
    lines += ["  tolerance: {mean: 0.01, sd: 0.02, slope: 0.05}", "bounds:", *(f"  {name}: [0, 100]" for name in names)]
    lines += ["resolution:", *(f"  {name}: 0.001" for name in names), "release:", *(f"  - avg({name})" for name in queries)]
    return "\n".join(lines) + "\n"


def processors() -> float:
    """Seconds of the processors so far, of this process and of those it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def medians(work: Callable[[], object], runs: int) -> tuple[float, float]:
    """Seconds by the clock, and of the processors; the first run, which loads what is loaded late, does not count."""
    work()
    clock, used = [], []
    for _ in range(runs):
        start, before = time.perf_counter(), processors()
        work()
        clock.append(time.perf_counter() - start)
        used.append(processors() - before)
    return statistics.median(clock), statistics.median(used)


def process(arguments: list[str], compiled: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    own = kept | {"PYTHONPYCACHEPREFIX": str(compiled)}
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=own)


def session(policy: ap.Policy) -> ap.Session:
    return ap.Session(policy=policy)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--secrets", type=int, default=50)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--together", type=int, nargs="*", default=[2, 8, 50])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="attrpriv-bench-") as place:
        path = Path(place) / "wide.yaml"
        text = wide_policy(given.columns, given.secrets)
        path.write_text(text, encoding="utf-8")
        print(f"{given.columns:,} columns, {given.secrets:,} secrets, {len(text) / 1e6:.1f} MB of YAML")
        policy, compiled = ap.Policy.load(path), Path(place) / "compiled"
        bare, _ = medians(lambda: yaml.load(text, Loader=yaml.CSafeLoader), given.runs)
        work: dict[str, Callable[[], object]] = {
            "libyaml alone": lambda: yaml.load(text, Loader=yaml.CSafeLoader),
            "python -c 'import attrpriv'": lambda: process(["-c", "import attrpriv"], compiled),
            "attrpriv --version": lambda: process(["-m", "attrpriv", "--version"], compiled),
            "Policy.load": lambda: ap.Policy.load(path),
            "Session.plan": lambda: session(policy).plan(),
            "Session.plan, read again": lambda: session(ap.Policy.load(path)).plan(),
            "attrpriv check": lambda: process(["-m", "attrpriv", "check", str(path)], compiled),
            "attrpriv plan": lambda: process(["-m", "attrpriv", "plan", str(path)], compiled),
        }
        for name, one in work.items():
            taken, used = medians(one, given.runs)
            print(f"{name:28} {taken:6.2f} s {taken / bare:6.1f} {used:6.2f} s of processors")
        for asked in given.together:
            path.write_text(wide_policy(100, given.secrets, asked), encoding="utf-8")
            several = ap.Policy.load(path)
            start, before = time.perf_counter(), processors()
            session(several).plan()
            taken, used = time.perf_counter() - start, processors() - before
            print(f"{f'{asked} averages at once':28} {taken:6.2f} s {taken / bare:6.1f} {used:6.2f} s of processors")


if __name__ == "__main__":
    main()
