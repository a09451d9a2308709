"""`python -m bench.peers [NAME ...] [--again] [--page]`: run the comparison, and write docs/guide/compared.md.

Results are kept in bench/results/peers, one file an experiment; those that are there are replaced. A run that was ended resumes
where it was. What cannot run here is skipped, and the page tells the reason.
"""

from __future__ import annotations

import argparse

from bench.peers.page import PAGE, written
from bench.peers.running import EXPERIMENTS, RESULTS, experiments, run_all


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join(EXPERIMENTS)}")
    parser.add_argument("--again", action="store_true", help="from the beginning, not where a run was ended")
    parser.add_argument("--page", action="store_true", help="only write the page from the results that are there")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in EXPERIMENTS]:
        parser.error(f"unknown experiment: {', '.join(unknown)}. There are: {', '.join(EXPERIMENTS)}.")
    chosen = [one for one in experiments() if one.NAME in given.names or not given.names]
    failed = [] if given.page else run_all(chosen, again=given.again)
    PAGE.write_text(written(RESULTS), encoding="utf-8")
    print(f"wrote {PAGE.name}")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
