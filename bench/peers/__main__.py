"""`python -m bench.peers [NAME ...] [--again] [--page] [--patience N]`: run the comparison, write docs/guide/compared.md.

Results are kept in bench/results/peers, one file an experiment; those that are there are replaced. A run that was ended resumes
where it was. What cannot run here is skipped, and the page tells the reason. Experiments have as much time as they need on
two idle cores; --patience 3 gives them three times that, on a machine that is busy.
"""

from __future__ import annotations

import argparse
import math

from bench.peers.page import PAGE, written
from bench.peers.running import EXPERIMENTS, RESULTS, experiments, run_all


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join(EXPERIMENTS)}")
    parser.add_argument("--again", action="store_true", help="from the beginning, not where a run was ended")
    parser.add_argument("--page", action="store_true", help="only write the page from the results that are there")
    parser.add_argument("--patience", type=float, default=1.0, metavar="N", help="so many times the time (default: once)")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in EXPERIMENTS]:
        parser.error(f"unknown experiment: {', '.join(unknown)}. There are: {', '.join(EXPERIMENTS)}.")
    chosen = [one for one in experiments() if one.NAME in given.names or not given.names]
    if not 0 < given.patience < math.inf:
        parser.error("--patience must be a positive number")
    failed = [] if given.page else run_all(chosen, again=given.again, patience=given.patience)
    PAGE.write_text(written(RESULTS), encoding="utf-8")
    print(f"wrote {PAGE.name}")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
