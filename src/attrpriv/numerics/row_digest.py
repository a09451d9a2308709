"""A digest of rows as a multiset: the same whatever their order, so that a table is recognised in another form.

    hash of a row = splitmix64 over the bits of its numbers, one column after the other; of a text, 52 bits of its SHA-256

It protects from mistakes, not from malice. What must never change: the constants, which recorded digests rest on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Odd constants of splitmix64, and two arbitrary starts: one hash of 64 bits for each.
_GAMMA, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
STARTS = (0x243F6A8885A308D3, 0x13198A2E03707344)
# How a digest of rows of any entries begins.
FORMAT = "attrpriv rows 2"


def row_hashes(columns: Sequence[NDArray[np.float64]], start: int) -> NDArray[np.uint64]:
    """A 64-bit hash of each row: the numbers' bits, one column after the other, through splitmix64."""
    import numpy as np

    state = np.full(len(columns[0]), start, dtype=np.uint64)
    for column in columns:
        plain = np.where(np.isnan(column), np.nan, column + 0.0)  # one NaN, and no negative zero
        state = (state ^ plain.view(np.uint64)) + np.uint64(_GAMMA)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(_FIRST)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(_SECOND)
        state ^= state >> np.uint64(31)
    return state


def number_of(text: str) -> float:
    """The number that stands for a text: 52 bits of its SHA-256."""
    return float(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 12)
