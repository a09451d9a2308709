"""Write one synthetic day of activity: `python generate.py [--rows N] [--out FILE]`.

    activity.parquet   state (0 at rest, 1 active), a row a minute: a Markov chain as activity.yaml says

The seed is fixed, so that everyone has the same table. No real person is in it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 1_440
ACTIVE_NEXT = (0.1, 0.6)


def day(rows: int) -> list[int]:
    """The states, minute by minute, from rest."""
    states = [0]
    for draw in np.random.default_rng(2017).random(rows - 1):
        states.append(int(draw < ACTIVE_NEXT[states[-1]]))
    return states


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write a synthetic day of activity as Parquet.")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"minutes; default {ROWS}, as the policy says")
    parser.add_argument("--out", type=Path, default=Path("activity.parquet"))
    given = parser.parse_args(arguments)
    if given.rows < 2:
        parser.error(f"--rows: must be at least 2. Got {given.rows}.")
    pq.write_table(pa.table({"state": day(given.rows)}), given.out)
    print(f"wrote {given.out.name}: {given.rows:,} synthetic minutes")


if __name__ == "__main__":
    main()
