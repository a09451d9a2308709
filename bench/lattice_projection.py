"""How long one projection of a count's law takes for a million rows, against computing the law itself.

    python bench/lattice_projection.py [--rows 1000000] [--runs 5]

The projection is the one that a release makes: on the window of likely outputs. The last line is one over every value from 0 to
the number of rows, in whole numbers too. Ends with an error if the projection of a release takes more than a second.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from attrpriv.methods.count_transport.target import CountTransport, Reference, projected_law, transport_bounds, transport_row
from attrpriv.numerics.calibration.coupling import nearest_law
from attrpriv.numerics.laws.fixed_window import window_law
from attrpriv.numerics.laws.records import RecordLaws

LIMIT = 1.0
EVENT = RecordLaws.event(0.4, 0.6)


def median(work: Callable[[], object], runs: int) -> float:
    work()  # the first run loads what is loaded late
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def whole_support(rows: int) -> tuple[list[int], list[int], list[int]]:
    """A law over every value and bounds around another one, with a monotone ratio and no value left out."""
    values = np.arange(rows + 1)
    shapes = [np.exp(-0.5 * ((values - centre * rows) / (0.08 * rows)) ** 2) for centre in (0.45, 0.5)]
    source, nu = ([int(x) for x in (shape / shape.sum() * 2.0**120).tolist()] for shape in shapes)
    return source, [x * 6 // 10 + 1 for x in nu], [x * 16 // 10 + 2 for x in nu]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    n, runs = given.rows, given.runs
    transport = CountTransport(EVENT, n, Reference(count=n // 2), 1.0, 0.5)
    bounds, a = transport_bounds(transport), n // 2 + round(n**0.5)
    row = list(window_law(EVENT, n, a).clipped(bounds.start, len(bounds.low)))
    source = [x >> 64 for x in row]
    source[len(source) // 2] += 2**128 - sum(source)
    law = median(lambda: window_law.__wrapped__(EVENT, n, a), runs)
    window = median(lambda: projected_law(source, bounds.low, bounds.high), runs)
    slope = median(lambda: nearest_law(source, bounds.low, bounds.high), runs)
    every = whole_support(n)
    whole = median(lambda: projected_law(*every), runs)
    complete = median(lambda: transport_row(transport, a), runs)
    print(f"{n:,} rows (medians of {runs})")
    print(f"the law of the count, whole numbers         {law:.3f} s, {len(bounds.low):,} outputs of interest")
    print(
        f"its projection                              {window:.3f} s, ratio to the law {window / law:.2f} (limit {LIMIT:g} s)"
    )
    print(f"the same by the slope trick                 {slope:.3f} s, ratio to the law {slope / law:.2f}")
    print(f"all of a release: law, projection, checks   {complete:.3f} s, ratio to the law {complete / law:.2f}")
    print(f"a projection over all {n + 1:,} values     {whole:.3f} s")
    sys.exit(window > LIMIT)


if __name__ == "__main__":
    main()
