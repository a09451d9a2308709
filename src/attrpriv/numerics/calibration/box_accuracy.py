"""Average errors of what moves a count, at the worst law of a box: what plans are compared by.

    mean_absolute = max over theta of E_theta |o - f|,   rmse and averaged[t] = P_theta(|o - f| > t) likewise

| symbol | here |
|---|---|
| theta | the probabilities of an event among members and others: one law for all rows of a category, on a grid over the box |
| E_theta | over all tables of that law: the secret by its prior, the count by theta, the output by what is drawn |

An average over the box itself would need a law over it, and an interval states none. For expected errors only: nothing that is
promised rests on it, so that floats and a grid will do. Averages are polynomials in theta, smooth over an interval.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.numerics.laws.records import Interval01, RecordLaws

    Matrix = NDArray[np.float64]

_GRID = 9


def box_laws(box: RecordLaws, n: int, counts: Sequence[int]) -> Iterator[Matrix]:
    """For each theta of the grid: the laws of F over 0..n, a line for each count."""
    import numpy as np

    size = 2 * n + 2
    members, others = np.array(counts), n - np.array(counts)
    sides = [
        [np.fft.rfft(_binomials(rows, p, n), size, axis=1) for p in _nodes(interval)]
        for rows, interval in ((members, box.member[1]), (others, box.rest[1]))
    ]
    for one, other in itertools.product(*sides):
        yield np.maximum(np.fft.irfft(one * other, size, axis=1)[:, : n + 1], 0.0)


def _nodes(interval: Interval01) -> list[float]:
    import numpy as np

    low, high = map(float, interval)
    return [low] if low == high else np.linspace(low, high, _GRID).tolist()


def _binomials(rows: NDArray[np.int64], p: float, n: int) -> Matrix:
    """Bin(rows, p) over 0..n, a line for each."""
    import numpy as np
    from scipy.special import gammaln, xlog1py, xlogy

    k, m = np.arange(n + 1)[None, :], rows[:, None]
    inside = np.maximum(m - k, 0)
    logs = gammaln(m + 1) - gammaln(k + 1) - gammaln(inside + 1) + xlogy(k, p) + xlog1py(inside, -p)
    return np.asarray(np.where(k <= m, np.exp(logs), 0.0), dtype=np.float64)
