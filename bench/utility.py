"""What every mechanism errs by on a fixed suite of problems: predicted, simulated, and against what else could be published.

    python bench/utility.py [--full] [--only TEXT] [--write] [--png FILE]

Without --full a quick run: 200 tables a mechanism. With --write the results go into docs/guide/accuracy.md,
docs/images/utility.svg and bench/results/utility.json. The exit code is 1 where `auto` is worse than a single mechanism by more
than 1%, or where a simulation and its prediction do not agree (docs/guide/accuracy.md). ATTRPRIV_BENCH_DRAWS is the number of
tables of a full run.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE, FIGURE, JSON = (
    ROOT / name for name in ("docs/guide/accuracy.md", "docs/images/utility.svg", "bench/results/utility.json")
)
MOST = 1.01


def measured(name: str, draws: int, seconds: float) -> object:
    """One problem, by name: what another process can be asked for."""
    sys.path[:0] = [] if str(ROOT) in sys.path else [str(ROOT)]
    from bench.utility_suite.measuring import measure
    from bench.utility_suite.problems import suite

    return measure(next(entry for entry in suite() if entry.name == name), draws, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="2,000 tables a mechanism instead of 200")
    parser.add_argument("--only", default="", help="problems whose name contains this")
    parser.add_argument("--write", action="store_true", help="put the results into the documentation")
    parser.add_argument("--png", type=Path, help="the figure as a picture to look at")
    given = parser.parse_args()
    sys.path[:0] = [] if str(ROOT) in sys.path else [str(ROOT)]
    from bench.utility_suite.measuring import Measured
    from bench.utility_suite.problems import suite
    from bench.utility_suite.reporting import draw, markdown, put_into, to_json

    names = [entry.name for entry in suite() if given.only in entry.name]
    draws = int(os.environ.get("ATTRPRIV_BENCH_DRAWS", "2000")) if given.full else 200
    results: list[Measured] = []
    with ProcessPoolExecutor(max_workers=2) as pool:
        for one in pool.map(partial(measured, draws=draws, seconds=3.0 if given.full else 0.5), names):
            assert isinstance(one, Measured)
            results.append(one)
            print(f"{len(results):3} of {len(names)}  {one.name}: {one.chosen} {one.auto.predicted:.4g}", file=sys.stderr)
    print(markdown(results))
    if given.png:
        draw(results, [given.png])
    if given.write:
        JSON.parent.mkdir(exist_ok=True)
        JSON.write_text(to_json(results), encoding="utf-8")
        put_into(PAGE, markdown(results))
        draw(results, [FIGURE])
    wrong = [text for one in results for text in (*one.worse(MOST), *one.disagreements)]
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
