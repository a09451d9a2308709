"""Write the two synthetic tables: `python generate.py`.

    clinic.parquet   40 patients: smoker, readmitted; readmission as clinic.yaml states it
    wages.parquet    400 employees: wage, hours; hours a line in the wage, with Laplace residuals, as wages.yaml states it

The seed is fixed, so that everyone has the same tables. No real person is in them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PATIENTS, EMPLOYEES = 40, 400


def clinic(rows: int = PATIENTS) -> pa.Table:
    generator = np.random.default_rng(2022)
    smoker = generator.random(rows) < 0.3
    readmitted = generator.random(rows) < np.where(smoker, 0.5, 0.2)
    return pa.table({"smoker": np.where(smoker, "yes", "no"), "readmitted": readmitted.astype(np.int64)})


def wages(rows: int = EMPLOYEES) -> pa.Table:
    generator = np.random.default_rng(1774)
    wage = np.round(generator.gamma(6.0, 5.0, rows), 2)
    hours = np.round(31 + 0.1 * wage + generator.laplace(0.0, 6.0, rows), 2)
    return pa.table({"wage": wage, "hours": hours})


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write the tables of clinic.yaml and wages.yaml as Parquet.")
    parser.add_argument("--out", type=Path, default=Path(), help="the folder; default: this one")
    folder = parser.parse_args(arguments).out
    pq.write_table(clinic(), folder / "clinic.parquet")
    pq.write_table(wages(), folder / "wages.parquet")
    print(f"wrote clinic.parquet and wages.parquet: {PATIENTS} synthetic patients, {EMPLOYEES} synthetic employees")


if __name__ == "__main__":
    main()
