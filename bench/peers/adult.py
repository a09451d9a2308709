"""The UCI Adult data, from ../shared/data or from the directory that ATTRPRIV_ADULT names."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.peers.budget import Unavailable

ROOT = Path(__file__).resolve().parents[2]
ORDER = 7


@cache
def adult() -> Any:
    """All 48,842 rows of both files as one pandas table, in an order that is fixed and says nothing."""
    import pandas as pd

    from examples.adult.load import load

    place = Path(os.environ.get("ATTRPRIV_ADULT", ROOT.parent / "shared" / "data"))
    try:
        both = load(place)
    except (FileNotFoundError, ValueError):
        raise Unavailable(
            "needs adult.data and adult.test of the UCI Adult data, in ../shared/data or where ATTRPRIV_ADULT says"
        ) from None
    rows = pd.concat([both.train.to_pandas(), both.test.to_pandas()], ignore_index=True)
    return rows.iloc[np.random.default_rng(ORDER).permutation(len(rows))].reset_index(drop=True)
