"""How many rows of a cell a table surely has, from how many of some public records have it: tails rounded up.

N public records and n table rows from one law, whatever it is. c of the records are in a cell, x of the table's rows. Given all
N + n values and not which of them are public, the public ones are any N of them, each choice as likely as any other. So with
the cell's t = c + x rows in a random order, as if drawn without replacement,

    too_few(x) = P(at most x of the first c + x drawn are the table's)          a hypergeometric lower tail
    m(c)       = the largest m with too_few(m - 1) <= level c / (N + n)

The tail grows in x, because it says that the c-th public row is among the first c + x drawn. For a fixed t the pairs with
x < m(c) are a lower tail of x, of probability at most level t / (N + n); these add up to `level` over all cells, because every
row is in one of them. Cells need not be listed beforehand (docs/theory/reference-view.md).

What must never change: a tail is at least the truth, and m(c) depends on c alone.
"""

from __future__ import annotations

import math

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.binomial import binomial_below
from attrpriv.numerics.rounding import COMPUTED_UP, ULP

# Terms below this share of the first are left out, and what they could add is added in one piece.
_SMALL = 1e-20
# Added to every tail: floats far out lose digits and then vanish, where no promise needs them.
_LEAST = 1e-100


def too_few(records: int, rows: int, found: int, x: int) -> float:
    """P(at most x of the first found + x drawn are the table's), of `records` public and `rows` table rows; rounded up.

    >>> too_few(2, 2, 1, 0) >= 1 / 2
    True
    """
    if not (0 <= found <= records and 0 <= x <= rows):
        raise UsageError(f"prediction: needs 0 <= found <= records, 0 <= x <= rows. Got {found} of {records}, {x} of {rows}.")
    if x * (records + rows) >= (found + x) * rows:  # at or above the mean: no small tail
        return 1.0
    log, error = _log_mass(records, rows, found, x)
    total = term = 1.0
    for i in range(x, 0, -1):
        term *= i * (records - found - x + i) / ((rows - i + 1) * (found + x - i + 1))
        total += term
        if term < _SMALL:  # terms below the mode shrink ever faster
            total += i * term
            break
    return min(1.0, math.exp(min(0.0, log + error)) * total * COMPUTED_UP + _LEAST)


def _log_mass(records: int, rows: int, found: int, x: int) -> tuple[float, float]:
    """log P(exactly x of the first found + x drawn are the table's), and a bound on its error."""
    parts = [*_log_choose(rows, x), *_log_choose(records, found), *(-part for part in _log_choose(records + rows, found + x))]
    return math.fsum(parts), 8 * ULP * math.fsum(map(abs, parts)) + ULP


def _log_choose(n: int, k: int) -> tuple[float, float, float]:
    return math.lgamma(n + 1), -math.lgamma(k + 1), -math.lgamma(n - k + 1)


def surely(records: int, rows: int, found: int, level: float) -> int:
    """m(c): how many rows of a cell the table has, but for `level`, shared by all cells in proportion to their rows.

    >>> surely(24_421, 16_000, 500, 1e-6)
    210
    """
    allowed = _share(records, rows, found, level)
    low, high = 0, rows
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if too_few(records, rows, found, middle - 1) <= allowed else (low, middle - 1)
    return low


def is_sure(records: int, rows: int, found: int, keep: int, level: float) -> bool:
    """Whether `keep` is at most m(c)."""
    return keep <= 0 or (keep <= rows and too_few(records, rows, found, keep - 1) <= _share(records, rows, found, level))


def _share(records: int, rows: int, found: int, level: float) -> float:
    return level * found / (records + rows)


def at_least(n: int, share: float, allowed: float) -> int:
    """The largest k with P(Bin(n, share) < k) <= allowed, by bisection on a monotone tail."""
    low, high = 0, n
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if binomial_below(n, share, middle) <= allowed else (low, middle - 1)
    return low
