"""Write the two synthetic tables of the hospital: `python generate.py [--rows N] [--out DIRECTORY]`.

    patients.parquet   smoker, stay (days), ward, visits     given smoker, every other column has the law of hospital.yaml
    staff.parquet      gender, hours (a week), age           given gender, hours and age are normal as staff.yaml says, rounded

The seed is fixed, so that everyone has the same tables. No real person is in them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

ROWS = 1_000
SMOKERS, WOMEN = 0.3, 0.35
WARDS = ("medicine", "surgery", "other")
LONG_STAY = {"yes": 0.40, "no": 0.20}
WARD = {"yes": (0.5, 0.3, 0.2), "no": (0.3, 0.4, 0.3)}
VISITS = {"yes": (0.2, 0.5, 0.3), "no": (0.5, 0.3, 0.2)}
HOURS_AND_AGE = {"F": ((36.0, 40.0), (11.0, 9.0), 0.2), "M": ((42.0, 38.0), (12.0, 10.0), 0.1)}

Words = NDArray[np.str_]


def patients(rows: int, generator: np.random.Generator) -> pa.Table:
    """Patients, independent of each other; given smoker, the other columns are independent too."""
    smoker = np.where(generator.random(rows) < SMOKERS, "yes", "no")
    long_stay = generator.random(rows) < np.where(smoker == "yes", LONG_STAY["yes"], LONG_STAY["no"])
    stay = np.where(long_stay, generator.integers(8, 30, rows), generator.integers(1, 8, rows))
    ward = np.array(WARDS)[_by_category(smoker, WARD, generator)]
    return pa.table({"smoker": smoker, "stay": stay, "ward": ward, "visits": _by_category(smoker, VISITS, generator)})


def _by_category(category: Words, laws: Mapping[str, tuple[float, ...]], generator: np.random.Generator) -> NDArray[np.int64]:
    """Of each row, which value it draws from the law of its category."""
    drawn = {name: generator.choice(len(law), size=len(category), p=law) for name, law in laws.items()}
    return np.where(category == "yes", drawn["yes"], drawn["no"]).astype(np.int64)


def staff(rows: int, generator: np.random.Generator) -> pa.Table:
    """Members of the staff; hours and age are jointly normal within a gender, recorded as whole numbers."""
    gender = np.where(generator.random(rows) < WOMEN, "F", "M")
    values = np.empty((rows, 2))
    for name, (means, sds, correlation) in HOURS_AND_AGE.items():
        covariance = np.outer(sds, sds) * np.array([[1.0, correlation], [correlation, 1.0]])
        inside = gender == name
        values[inside] = generator.multivariate_normal(np.array(means), covariance, size=int(inside.sum()))
    hours, age = np.rint(values).astype(np.int64).T
    return pa.table({"gender": gender, "hours": hours, "age": age})


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write two tables of a synthetic hospital as Parquet.")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"rows of each table; default {ROWS}, as the policies say")
    parser.add_argument("--out", type=Path, default=Path(), help="directory; default the current one")
    options = parser.parse_args(arguments)
    if options.rows < 2:
        parser.error(f"argument --rows: must be at least 2. Got {options.rows}.")
    generator = np.random.default_rng(2022)
    for name, table in (("patients", patients(options.rows, generator)), ("staff", staff(options.rows, generator))):
        pq.write_table(table, options.out / f"{name}.parquet")
        print(f"wrote {name}.parquet: {options.rows:,} synthetic rows")


if __name__ == "__main__":
    main()
