"""Made-up people for the notebook: `python generate.py`, or `people(...)`. No person is real.

    census.parquet   60,000 public records
    staff.parquet    40,000 rows of a company's table, from the same law
    later.parquet    20,000 more rows, to measure accuracy on

Ages are whole years from 18 to 67. Education, hours and job go with age and sex, and a high income with all of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

AGES = np.arange(18, 68)
FILES = {"census": 60_000, "staff": 40_000, "later": 20_000}
JOBS = ("office", "shop", "trade", "care")


def people(n: int, generator: np.random.Generator, *, tilt: float = 0.0) -> pd.DataFrame:
    """n rows; a positive tilt makes the table older, and changes nothing else."""
    share = np.exp(-(((AGES - 38) / 17) ** 2) + tilt * (AGES - 40))
    age = generator.choice(AGES, n, p=share / share.sum())
    woman = generator.random(n) < 0.42 + 0.002 * (45 - age)
    education = np.clip(np.rint(13.2 - 0.03 * (age - 40) - 4 * (age < 22) + generator.normal(0, 2.4, n)), 6, 20)
    hours = np.clip(np.rint(40 - 5 * woman - 9 * (age < 23) + generator.normal(0, 8, n)), 4, 80)
    leaning = np.column_stack([0.10 * education, np.full(n, 1.0), 1.4 - 0.9 * woman, 0.4 + 1.1 * woman])
    job = np.argmax(leaning + generator.gumbel(size=(n, 4)), axis=1)
    married = generator.random(n) < 1 / (1 + np.exp(-(age - 31) / 6))
    score = (
        0.33 * (education - 13) + 0.05 * (hours - 40) + 0.9 * married + 0.035 * (np.minimum(age, 55) - 40) - 0.4 * woman - 1.2
    )
    rich = generator.random(n) < 1 / (1 + np.exp(1.2 - score))
    return pd.DataFrame(
        {
            "age": age,
            "sex": np.where(woman, "Female", "Male"),
            "education": education.astype(np.int64),
            "hours": hours.astype(np.int64),
            "job": np.array(JOBS)[job],
            "married": married,
            "high_income": rich,
        }
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write three files of made-up people.")
    parser.add_argument("--out", type=Path, default=Path(), help="directory; default: this one")
    options = parser.parse_args(arguments)
    generator = np.random.default_rng(7)
    for name, n in FILES.items():
        people(n, generator).to_parquet(options.out / f"{name}.parquet", index=False)
        print(f"wrote {name}.parquet: {n:,} made-up people")


if __name__ == "__main__":
    main()
