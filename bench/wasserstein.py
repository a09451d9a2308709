"""How long W_inf of two binomial laws takes, against computing the two laws over their whole support.

    python bench/wasserstein.py [--rows 1000000] [--runs 5]

Ends with an error if the distance costs more than five times as much as the laws.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

from attrpriv.numerics.divergences.wasserstein import wasserstein_inf
from attrpriv.numerics.laws.binomial import binomial_tails

LIMIT = 5.0
PROBABILITIES = (0.1, 0.3)


def median(work: Callable[[], object], runs: int) -> float:
    work()  # the first run loads what is loaded late
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    laws = [binomial_tails(given.rows, p) for p in PROBABILITIES]
    print(f"{given.rows:,} rows, W_inf {wasserstein_inf(*laws).distance:,.0f}")
    making = median(lambda: [binomial_tails(given.rows, p) for p in PROBABILITIES], given.runs)
    comparing = median(lambda: wasserstein_inf(*laws), given.runs)
    print(f"the two laws {making:.3f} s (median of {given.runs})")
    print(f"W_inf        {comparing:.3f} s")
    print(f"ratio        {comparing / making:.2f} (limit {LIMIT:g})")
    sys.exit(comparing > LIMIT * making)


if __name__ == "__main__":
    main()
