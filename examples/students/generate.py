"""Write the synthetic students of the demonstration: `python generate.py [--rows N] [--out FILE]`.

The rows are those of `attrpriv demo`: drawn from the law that students.yaml assumes, recorded as whole numbers, with a fixed
seed, so that everyone has the same students. No real person is in them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from attrpriv.demo import write_students

ROWS = 10_000


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write a table of synthetic students as Parquet.")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"number of students; default {ROWS}, as students.yaml says")
    parser.add_argument("--out", type=Path, default=Path("students.parquet"), help="default students.parquet")
    options = parser.parse_args(arguments)
    if options.rows < 2:
        parser.error(f"argument --rows: must be at least 2. Got {options.rows}.")
    write_students(options.out, n=options.rows)
    print(f"wrote {options.out.name}: {options.rows:,} synthetic students")


if __name__ == "__main__":
    main()
