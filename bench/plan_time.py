"""How long a plan takes, in milliseconds and against one bare calibration of mu*(epsilon, delta).

    python bench/plan_time.py [--runs 9]

The first plan of each kind is left out: it loads what is loaded late. Gaussian plans of one average should take less than 10 ms
on a machine that is not busy. The benchmark ends with an error where one takes more than `LIMIT` calibrations.

All mechanisms for fifty exactly stated secrets: 4.43 s of processor time before, most of it for what holds where slopes are
off, of each secret; 0.46 s where that is computed for secrets that no other one covers.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

from attrpriv import Counts, Gaussian, Secret
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.problem.problem import Problem
from attrpriv.queries.query import Query

LIMIT = 30.0


def median(work: Callable[[], object], runs: int) -> float:
    work()
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def school(tolerance: dict[str, float] | int, *columns: str) -> Problem:
    """Averages that hide a mean income."""
    return Problem(
        queries=tuple(Query("avg", column) for column in columns),
        secrets=(Secret("mean(income)", between=(20_000.0, 200_000.0)),),
        epsilon=1.0,
        delta=1e-6,
        n=10_000,
        theta=(
            Gaussian(
                mean={"weight": 150.0, "height": 67.0, "income": 60_000.0},
                sd={"weight": 25.0, "height": 4.0, "income": 30_000.0},
                correlation={("weight", "income"): 0.3, ("weight", "height"): 0.5, ("height", "income"): 0.2},
                tolerance=tolerance,
            ),
        ),
        resolution={"weight": 0.001, "height": 0.001, "income": 1.0},
    )


def many(secrets: int) -> Problem:
    """An average that hides many exactly stated means."""
    names = [f"s{k}" for k in range(secrets)]
    pairs = {("weight", name): 0.1 + 0.002 * k for k, name in enumerate(names)}
    pairs |= {(a, b): 0.05 for k, a in enumerate(names) for b in names[:k]}
    member = Gaussian(
        mean={"weight": 150.0, **dict.fromkeys(names, 5.0)},
        sd={"weight": 25.0, **dict.fromkeys(names, 3.0)},
        correlation=pairs,
        tolerance=0,
    )
    hidden = tuple(Secret(f"mean({name})", between=(0.0, 10.0), within=0.1) for name in names)
    return Problem(queries=(Query("avg", "weight"),), secrets=hidden, epsilon=1.0, delta=1e-6, n=10_000, theta=(member,))


def hospital(n: int) -> Problem:
    """A count that hides how many patients smoke."""
    return Problem(
        queries=(Query("count", where="stay > 7"),),
        secrets=(Secret("count(smoker = 'yes')", between=(0.25 * n, 0.4 * n)),),
        epsilon=1.0,
        delta=1e-6,
        n=n,
        theta=(Counts(sensitive="smoker", given={"stay > 7": {"yes": (0.38, 0.42), "no": (0.18, 0.22)}}, prior={"yes": 0.3}),),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    runs = parser.parse_args().runs
    bare = median(lambda: gaussian_mu.__wrapped__(1.0, 1e-6), runs)
    print(f"{'bare calibration':34} {bare * 1e3:8.2f} ms")
    loose = {"mean": 0.01, "sd": 0.02, "slope": 0.05}
    limited = {"gaussian, exact": school(0, "weight"), "gaussian, tolerance": school(loose, "weight")}
    worst = 0.0
    for name, problem in limited.items():
        taken = median(partial(plan, problem, "gaussian"), runs)
        worst = max(worst, taken / bare)
        print(f"{name:34} {taken * 1e3:8.2f} ms {taken / bare:8.1f}")
    others: dict[str, Callable[[], object]] = {
        "gaussian, two averages": lambda: plan(school(loose, "weight", "height"), "gaussian"),
        "transport, tolerance": lambda: plan(school(loose, "weight"), "transport"),
        "all mechanisms": lambda: rank(school(loose, "weight")),
        "all mechanisms, 50 secrets": lambda: rank(many(50)),
        "all mechanisms, counts, n = 1,000": lambda: rank(hospital(1_000)),
        "all mechanisms, counts, n = 10,000": lambda: rank(hospital(10_000)),
    }
    for name, work in others.items():
        taken = median(work, max(1, runs // 3))
        print(f"{name:34} {taken * 1e3:8.2f} ms {taken / bare:8.1f}")
    if worst > LIMIT:
        sys.exit(f"a Gaussian plan takes {worst:.0f} calibrations; the limit is {LIMIT:.0f}.")


if __name__ == "__main__":
    main()
