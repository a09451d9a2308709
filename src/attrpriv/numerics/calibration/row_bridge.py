r"""From privacy of single rows to the privacy of a count of rows, and back: for *every* mechanism that is b-private.

    P(M(x) in T) <= e^b P(M(x') in T)      for tables x, x' that differ in one row, whatever M is and however often it answers
    epsilon(b) = apart * max over sets A of values, both directions, of  log (1 + (e^b - 1) P(A))/(1 + (e^b - 1) Q(A))

| symbol | here |
|---|---|
| apart | how many rows change their category between two values of the secret, at most |
| P, Q | the law of what M reads of a row, in the secret's category and outside of it (`RecordLaws`), anywhere in its box |
| whole rows | `records` is None: M may read everything, the category too, and epsilon(b) = apart * b |

For an event, of probabilities p1 and p2, that is log (1 - p1 + p1 t)/(1 - p2 + p2 t) at t = e^b or e^-b, the larger one. A set
of cells under a histogram with noise of scale 2/b has the same ratio, so `laplace.row_terms` has it (docs/theory/bridge.md).

What must never change: epsilon is rounded up and b down, and epsilon(b) is never above apart * b by more than rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration.laplace import row_terms
from attrpriv.numerics.laws.records import RecordLaws
from attrpriv.numerics.rounding import ROUNDED_UP
from attrpriv.numerics.search import largest_private

# A larger b says nothing: where it would do, any algorithm would.
MOST_B = 100.0


@dataclass(frozen=True)
class RowCase:
    """One secret under one member of Theta: how many rows change at most, and the law of what is read of a row.

    `apart` is how many rows change, `records` the law; without it anything of a row may be read.

    >>> RowCase(50).apart
    50
    """

    apart: int
    records: RecordLaws | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.apart, int) and self.apart >= 1):
            raise UsageError(f"apart: must be a whole number of at least 1. Got {self.apart}.")


def row_epsilon(case: RowCase, b: float) -> float:
    """What every b-private mechanism together loses at most, from above.

    `case` is what is read of a row, and how many rows change; `b` is what the mechanisms give away of one row.

    >>> round(row_epsilon(RowCase(50), 0.02), 6)
    1.0
    >>> round(row_epsilon(RowCase(50, RecordLaws.event(0.4, 0.2)), 0.02), 6)
    0.200797
    """
    require_b(b)
    if b == 0:
        return 0.0
    row = b
    if case.records is not None:
        # Less noise loses more: 2/b is rounded down.
        row = min(b, row_terms(case.records, histogram=True).largest(math.nextafter(2 / b, 0.0), +1))
    return case.apart * row * ROUNDED_UP


def row_budget(cases: Sequence[RowCase], epsilon: float) -> float:
    """The largest b, from below and at most 100, with which all cases lose at most epsilon.

    `cases` are all that may be true, `epsilon` is the promise.

    >>> b = row_budget([RowCase(50, RecordLaws.event(0.4, 0.2))], 1.0)
    >>> round(b, 6), row_epsilon(RowCase(50, RecordLaws.event(0.4, 0.2)), b) <= 1.0
    (0.098115, True)
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise UsageError(f"epsilon: must be positive and finite. Got {epsilon}.")
    if not cases:
        raise UsageError("cases: needs at least one. Got none.")
    start = min(MOST_B / 2, epsilon / max(case.apart for case in cases))
    return largest_private(lambda b: b <= MOST_B and all(row_epsilon(case, b) <= epsilon for case in cases), start)


def require_b(b: float) -> None:
    """`UsageError` unless b is what a mechanism can promise for one row."""
    if isinstance(b, bool) or not (isinstance(b, int | float) and math.isfinite(b) and 0 <= b <= MOST_B):
        raise UsageError(f"b: must be the epsilon of one row, from 0 to {MOST_B:g}. Got {b!r}.")
