"""How long it takes to compare all counts of n rows with each other, against one pass of numpy over as many numbers.

    python bench/all_pairs.py [--rows 1000] [--runs 3]

Exits with 1 if all pairs of 1,000 rows take more than 5 seconds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from attrpriv.numerics.divergences.all_pairs import all_pairs_delta, all_pairs_loss
from attrpriv.numerics.laws.lattice import LatticeLaw, binomial_sum

ROWS = 1000
MOST_SECONDS = 5.0


def counts(n: int) -> list[LatticeLaw]:
    """The law of a count with probability .45 a row of the category and .55 any other, for every number of such rows."""
    return [binomial_sum(a, 0.45, n - a, 0.55) for a in range(n + 1)]


def one_pass(n: int) -> None:
    """n^2/2 pairs of n masses each, one maximum and one sum."""
    masses = np.random.default_rng(1).random((n + 1, n + 1))
    for a in range(n // 2):
        np.maximum(masses[a], masses).sum()


def median(work: Callable[[], object], runs: int) -> float:
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    making = median(lambda: counts(given.rows), 1)
    laws = counts(given.rows)
    delta = median(lambda: all_pairs_delta(laws, 1.0), given.runs)
    bare = median(lambda: one_pass(given.rows), given.runs)
    print(f"n = {given.rows:,}: the laws {making:.2f} s")
    print(f"all pairs, delta    {delta:.2f} s, {delta / bare:.2f} times one pass ({bare:.2f} s)")
    if all(law.pointwise for law in laws):  # in the tails of many rows masses underflow
        pure = median(lambda: all_pairs_loss(laws), given.runs)
        print(f"all pairs, epsilon  {pure:.2f} s, {pure / bare:.2f} times one pass")
    too_slow = given.rows <= ROWS and making + delta > MOST_SECONDS
    if too_slow:
        print(f"all pairs took {making + delta:.2f} s, more than {MOST_SECONDS:g}", file=sys.stderr)
    return int(too_slow)


if __name__ == "__main__":
    sys.exit(main())
