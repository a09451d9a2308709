"""How long the score of a chain of 100,000 entries takes, against one pass of matrix powers.

    python bench/chain_quilt.py [--length 100000] [--runs 5]

A pass computes the law of every entry and as many powers of the matrix, by doubling. Ends with an error if the search over all
nodes and quilts, or the check of its certificate, takes more than five times as long.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from attrpriv.numerics.calibration.chain_quilt import chain_loss, chain_score
from attrpriv.numerics.laws.markov import MarkovChain, Powers

LIMIT = 5.0
CHAINS = {
    "start in one state": MarkovChain((1.0, 0.0), ((0.9, 0.1), (0.4, 0.6))),
    "stays with .9, uniform": MarkovChain((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9))),
    "stays with .999": MarkovChain((0.7, 0.3), ((0.999, 0.001), (0.001, 0.999))),
}


def median(work: Callable[[], object], runs: int) -> float:
    work()  # the first run loads what is loaded late
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def one_pass(chain: MarkovChain, length: int) -> object:
    powers = Powers(chain)
    powers.reach(length)
    return np.log(chain.start() @ powers.values)


def measure(name: str, chain: MarkovChain, length: int, runs: int) -> float:
    """The larger of the two ratios for one chain."""
    base = median(lambda: one_pass(chain, length), runs)
    found = chain_score(chain, length, 1.0)
    search = median(lambda: chain_score(chain, length, 1.0), runs)
    check = median(lambda: chain_loss(chain, length, 1 / (found.sigma * (1 + 1e-9)), found.shapes), runs)
    print(
        f"{name}: sigma {found.sigma:.4f}; one pass {base:.4f} s, search {search:.4f} s ({search / base:.2f}), "
        f"check {check:.4f} s ({check / base:.2f})"
    )
    return max(search, check) / base


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    worst = max(measure(name, chain, given.length, given.runs) for name, chain in CHAINS.items())
    print(f"worst ratio {worst:.2f} (limit {LIMIT:g})")
    sys.exit(worst > LIMIT)


if __name__ == "__main__":
    main()
