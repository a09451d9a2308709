"""How long the ratio recursion takes for a chain of a million entries with 51 states, and for slow ones with two.

    python bench/chain_ratio.py [--length 1000000]

Ends with an error if one of them takes more than ten seconds of processor time. A plan takes one more look at the curve than
the search does.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from attrpriv.numerics.calibration.chain_curve import chain_budget, chain_epsilon
from attrpriv.numerics.laws.markov import MarkovChain

LIMIT = 10.0


def many_states(k: int = 51, seed: int = 1) -> MarkovChain:
    rows = np.random.default_rng(seed).dirichlet(np.ones(k), size=k + 1)
    return MarkovChain(tuple(rows[0]), tuple(map(tuple, rows[1:])))


CHAINS = {
    "51 states": many_states(),
    "stays with .9": MarkovChain((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9))),
    "stays with .999, known start": MarkovChain((1.0, 0.0), ((0.999, 0.001), (0.001, 0.999))),
    "goes round": MarkovChain((1.0, 0.0, 0.0), ((0.0, 0.5, 0.5), (1.0, 0.0, 0.0), (1.0, 0.0, 0.0))),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=1_000_000)
    length, worst = parser.parse_args().length, 0.0
    for name, chain in CHAINS.items():
        start = time.process_time()
        b = chain_budget([chain], length, 1.0)
        found = time.process_time() - start
        chain_epsilon([chain], length, b)
        checked = time.process_time() - start - found
        print(f"{name}: scale {1 / b:.4f}; search {found:.2f} s, one check {checked:.2f} s")
        worst = max(worst, found + checked)
    print(f"slowest {worst:.2f} s (limit {LIMIT:g})")
    sys.exit(worst > LIMIT)


if __name__ == "__main__":
    main()
