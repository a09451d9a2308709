"""How often a plan for recorded laws holds under the law of other rows of the same population.

    python -m bench.recorded_splits [DATA] [--splits 2] [--parts 4] [--asked hours_per_week] [--mechanism gaussian] [--write]

DATA is the folder of adult.data and adult.test, ../shared/data if it is left out; where there is none, nothing is measured.
The rows of Adult are cut in two halves at random. Noise is calibrated on the law of the first half and resamples of it, of the
size of the half divided by each of `--parts`. Then delta is computed, at the same epsilon, under the law of the second half.
Printed is in how many splits it stays within the promise; `transport`: of what the kernels of the first half draw. Pairs are
looked at for some seventy secrets, not for all of them, in calibration and check alike. `--write` puts what was measured into
results/recorded_splits.json; what is there is of `--splits 20`, and of `--splits 10 --mechanism transport`: half an hour.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from attrpriv.assumptions.recorded_table import RecordedTable
from attrpriv.assumptions.records import Resamples
from attrpriv.numerics.calibration.recorded_kernel import drawn_delta, kernel_for
from attrpriv.numerics.calibration.recorded_members import RecordedLaw, SecretRange, raised, searched, some_delta
from examples.adult import load

EPSILON, DELTA, N = 1.0, 1e-6, 1000
SECRETS = SecretRange(kind="sum", low=9500, high=10_700, apart=300)
SHARE = 0.05  # the least noise before kernels
RESULT = Path(__file__).parent / "results" / "recorded_splits.json"
SHARED = Path(__file__).parents[2] / "shared" / "data"


def law_of(table: RecordedTable, counts: np.ndarray) -> RecordedLaw:
    there = counts > 0
    columns = [np.array(table.values[c], dtype=np.int64)[table.codes(c)][there].tolist() for c in table.columns]
    return RecordedLaw(s=tuple(columns[0]), q=tuple(columns[1]), counts=tuple(counts[there].tolist()))


def table_of(rows: pd.DataFrame, asked: str) -> RecordedTable:
    return RecordedTable.of({name: rows[name].tolist() for name in ("education_num", asked)})


def moved(laws: list[RecordedLaw], second: RecordedLaw) -> tuple[float, float]:
    """The least noise before the kernels of the first law, and delta under the second half."""
    values, least = SECRETS.some(), SHARE * max(law.moments()[1] for law in laws) * math.sqrt(N)

    def delta_of(law: RecordedLaw, sigma: float) -> float:
        kernel = kernel_for(laws[0], N, values, SECRETS, sigma, 0.0)
        return drawn_delta(kernel, law, N, values, SECRETS, sigma, 0.0, EPSILON)[0]

    sigma = least
    for law in laws:
        sigma = searched(partial(delta_of, law), DELTA, sigma, sigma)
    return delta_of(second, sigma), sigma


def holds(rows: pd.DataFrame, asked: str, seed: int, parts: int, mechanism: str) -> tuple[bool, float]:
    order = np.random.default_rng(seed).permutation(len(rows))
    first, second = (table_of(rows.iloc[half], asked) for half in np.array_split(order, 2))
    again = Resamples(number=20, size=first.total // parts, seed=1).drawn(first)
    laws = [law_of(first, counts) for counts in (first.counts(), *again)]
    last = law_of(second, second.counts())
    if mechanism == "transport":
        reached, sigma = moved(laws, last)
        return reached <= DELTA, sigma
    sigma = 1.0
    for law in sorted(laws, key=lambda one: -one.need(N, SECRETS)):
        sigma = raised(law, N, SECRETS, sigma, max(law.need(N, SECRETS), sigma), EPSILON, DELTA, lambda s: 0.0)
    reached = some_delta(last, N, SECRETS.some(), SECRETS, sigma, 0.0, EPSILON)[0]
    return reached <= DELTA, sigma


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?", default=SHARED)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--parts", type=int, nargs="+", default=[4])
    parser.add_argument("--asked", nargs="+", default=["hours_per_week"])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--mechanism", choices=["gaussian", "transport"], default="gaussian")
    told = parser.parse_args()
    if not all((told.data / name).is_file() for name in load.FILES):
        print(f"skipped: needs adult.data and adult.test in {told.data}")
        return
    both = load.load(told.data)
    rows = pd.concat([both.train.to_pandas(), both.test.to_pandas()], ignore_index=True)
    found: list[dict[str, object]] = []
    for parts in told.parts:
        for asked in told.asked:
            start = time.time()
            results = [holds(rows, asked, 100 + k, parts, told.mechanism) for k in range(told.splits)]
            line = {
                "asked": asked,
                "mechanism": told.mechanism,
                "resamples": f"20 of N/{parts}",
                "held": sum(held for held, _ in results),
                "splits": told.splits,
                "mean noise on the average": float(np.mean([sigma for _, sigma in results]) / N),
            }
            found.append(line)
            print(line, f"{time.time() - start:.0f} s", flush=True)
    if told.write:
        kept = [old for old in json.loads(RESULT.read_text()) if not any(_same(old, new) for new in found)]
        RESULT.write_text(json.dumps([*kept, *found], indent=1) + "\n")


def _same(old: dict[str, object], new: dict[str, object]) -> bool:
    return all(old[key] == new[key] for key in ("asked", "mechanism", "resamples"))


if __name__ == "__main__":
    main()
