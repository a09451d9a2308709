"""How long a wide policy takes: 1,000 columns, 50 secrets, 48,725 correlations.

    python bench/wide.py [--columns 1000] [--secrets 50] [--runs 3]

Each line says seconds, and how many times as long as libyaml alone takes to read the file (`yaml.CSafeLoader`, which resolves
no limit, no repeated key and no number as we do). The policy and the ledger are made in a temporary directory; no table is
there. `attrpriv check` and `attrpriv plan` are whole processes; under 2 s each is what a machine that is not busy should do.
"""

from __future__ import annotations

import argparse
import random
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


def median(work: Callable[[], object], runs: int) -> float:
    work()
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def command(name: str, path: Path) -> None:
    subprocess.run([sys.executable, "-m", "attrpriv", name, str(path)], check=True, capture_output=True)


def session(policy: ap.Policy) -> ap.Session:
    return ap.Session(policy=policy)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--secrets", type=int, default=50)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="attrpriv-bench-") as place:
        path = Path(place) / "wide.yaml"
        text = wide_policy(given.columns, given.secrets)
        path.write_text(text, encoding="utf-8")
        print(f"{given.columns:,} columns, {given.secrets:,} secrets, {len(text) / 1e6:.1f} MB of YAML")
        policy = ap.Policy.load(path)
        bare = median(lambda: yaml.load(text, Loader=yaml.CSafeLoader), given.runs)
        work: dict[str, Callable[[], object]] = {
            "libyaml alone": lambda: yaml.load(text, Loader=yaml.CSafeLoader),
            "python -c 'import attrpriv'": lambda: subprocess.run([sys.executable, "-c", "import attrpriv"], check=True),
            "Policy.load": lambda: ap.Policy.load(path),
            "Session.plan": lambda: session(policy).plan(),
            "attrpriv check": lambda: command("check", path),
            "attrpriv plan": lambda: command("plan", path),
        }
        for name, one in work.items():
            taken = median(one, given.runs)
            print(f"{name:28} {taken:6.2f} s {taken / bare:6.1f}")


if __name__ == "__main__":
    main()
