"""How many small mistakes in the code that guarantees rest on the tests would find: `make mutants`.

    python -m scripts.mutants [--count 200] [--seed 1 | --fresh] [--only methods/base noise/exact.py ...] [--named]

A mutant is the source with one expression changed: a comparison, a sign, a factor, a number, `and` for `or`, `max` for `min`, a
term left out. The slack for rounding (`numerics.rounding`) is left alone: its size is argued there, and no test could see it.
So is what no promise rests on: words, expected errors, searches whose finds are proved again (`LEFT_OUT`, `SEARCHES`), unless
`--all` is given. Printed are the share that was found, with its 95% interval (Clopper and Pearson), and the
survivors. One that changes nothing anybody could see is listed with its reason in tests/equivalent_mutants, and does not
count.

`--named` tries the mistakes of `NAMED` instead, every one of which must be found, and every `or` for `and` in a proof.

Tried are the tests that run the mutant's line, and those of its room, quick ones first, until one fails, for `--seconds` of a
processor. Which tests run which lines is measured once (coverage.py, a context a test) and kept in .mutants/, for changed files
of tests again; `--measure` does it all again, as a changed source asks for. `--quick` asks loaded modules alone, in which
nothing is computed again that was computed when they were loaded: a quarter of the time, for those who write tests.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import time
from collections.abc import Sequence

from scripts.mutants.covering import KEPT, measure, measure_verified, new_files
from scripts.mutants.named import named
from scripts.mutants.planting import ROOT, Mutant
from scripts.mutants.sampling import chosen, is_equivalent
from scripts.mutants.trying import Outcome, try_all


def interval(found: int, of: int) -> tuple[float, float]:
    """Clopper and Pearson's, at 95%."""
    from scipy.stats import beta

    low = float(beta.ppf(0.025, found, of - found + 1)) if found else 0.0
    high = float(beta.ppf(0.975, found + 1, of - found)) if found < of else 1.0
    return low, high


def main() -> int:
    ask = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    ask.add_argument("--count", type=int, default=200)
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--fresh", action="store_true", help="another sample each time")
    ask.add_argument("--only", nargs="*", default=(), help="modules or folders below src/attrpriv")
    ask.add_argument("--all", action="store_true", help="searches, expected errors and words too, on which no promise rests")
    ask.add_argument("--named", action="store_true", help="the named ones, and every guard of a proof")
    ask.add_argument("--jobs", type=int, default=2)
    ask.add_argument("--seconds", type=float, default=60.0, help="of tests for each mutant, at most")
    ask.add_argument("--quick", action="store_true", help="in loaded modules alone")
    ask.add_argument("--measure", action="store_true", help="measure again which tests run which lines")
    told = ask.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "HYPOTHESIS_PROFILE": "planted"}
    os.chdir(ROOT)
    if told.measure or not list(KEPT.glob("seconds*.xml")):
        shutil.rmtree(KEPT, ignore_errors=True)
        measure()
    elif new_files():
        measure(new_files())
    if told.measure or not (KEPT / "verified.json").exists():
        measure_verified()
    seed = random.randrange(2**32) if told.fresh else told.seed
    mutants = named() if told.named else chosen(told.count, seed, told.only, everything=told.all)
    start = time.monotonic()
    outcomes = list(zip(mutants, try_all(mutants, told.jobs, told.seconds, again=not told.quick), strict=True))
    print("named" if told.named else f"seed {seed}")
    return report(outcomes, time.monotonic() - start, all_of_them=told.named)


def report(outcomes: Sequence[tuple[Mutant, Outcome]], seconds: float, *, all_of_them: bool) -> int:
    """Exit code 1 where fewer than 95% of those that change something are found; of the named ones, all must be."""
    counted = [(mutant, outcome) for mutant, outcome in outcomes if not is_equivalent(mutant) or outcome.said == "found"]
    missed = [(mutant, outcome) for mutant, outcome in counted if outcome.said != "found"]
    found = len(counted) - len(missed)
    low, high = interval(found, len(counted))
    print(f"{found} of {len(counted)} mutants found: {found / len(counted):.1%} ({low:.1%} to {high:.1%}), {seconds:.0f} s")
    print(f"{len(outcomes) - len(counted)} more change nothing (tests/equivalent_mutants)")
    for mutant, outcome in missed:
        print(f"  {outcome.said}: line {mutant.line} of {mutant.exact}")
    return 0 if found >= (1.0 if all_of_them else 0.95) * len(counted) else 1


if __name__ == "__main__":
    sys.exit(main())
