"""Public rows and a private table for the example: hours of work, years of school and sex, whole numbers and no normal law.

    python examples/records/generate.py        # writes public.csv, older.csv and workers.csv beside this file

All of it is made up, with fixed seeds. Hours have an atom at 40 and a long tail, as in real records.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
ROWS = {"public.csv": (3, 3000), "older.csv": (4, 1500), "workers.csv": (5, 400)}


def rows(seed: int, n: int) -> list[tuple[int, int, str]]:
    """So many rows of one population."""
    rng = np.random.default_rng(seed)
    school = np.clip(np.rint(rng.normal(10, 2.5, n)), 1, 16).astype(int)
    part = np.clip(np.rint(26 + school / 2 + rng.normal(0, 9, n)), 1, 99).astype(int)
    full = np.where(rng.random(n) < 0.7, 40, 40 + rng.geometric(0.1, n))
    hours = np.where(rng.random(n) < 0.45 + 0.02 * (school - 10), np.minimum(full, 99), part)
    sex = np.where(rng.random(n) < 0.45, "F", "M")
    return list(zip(school.tolist(), hours.tolist(), sex.tolist(), strict=True))


def main() -> None:
    for name, (seed, n) in ROWS.items():
        with (HERE / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["school", "hours", "sex"])
            writer.writerows(rows(seed, n))


if __name__ == "__main__":
    main()
