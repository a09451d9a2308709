"""Transport of a count under intervals: transport at the middle of the box, then whole-number Laplace noise for the rest.

    Q_{a,v}(z) = sum_f v(f) sum_o K_a[f, o] t^|o - z|,   t = e^(-1/scale),      loss = max log Q_{a,v}(z)/Q_{b,w}(z)

| symbol | here |
|---|---|
| K_a | what `count_transport` draws where the secret is a, made for the middle of the box |
| v | vertex laws Bin(j1, l1) + Bin(a - j1, h1) + Bin(j2, l2) + Bin(n - a - j2, h2) with j1 = 0..a and j2 = 0..n - a |
| w | the same with b for a |
| l, h | the ends of the interval of an event's probability, among members (1) and others (2) |

A mechanism that reads the secret is not covered by the corner of the box. But it is by these vertices: a draw of Bin(a, p1)
with p1 in [l1, h1] is a mixture over j1 of Bin(j1, l1) + Bin(a - j1, h1), since each row counts with l1 or with h1, and K_a
depends on a alone. So the law of the output given a is a mixture of the Q_{a,v}, that given b of the Q_{b,w}, and a ratio of
mixtures is at most the largest ratio of their parts, taken *independently* on both sides. Outputs beyond the window have the
ratio of its ends.

The numbers are floats; every one of them is a sum of products of positive floats, of fewer than 2000 roundings, so that a
ratio is known to 1e-12, and `_ROUNDING` is above that. Values below `_LEAST` are not trusted and make the loss infinite.

What must never change: both sides run over all vertices of their own count.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from attrpriv.errors import Cause, RefusedError
from attrpriv.methods.count_transport.lattice import Moved
from attrpriv.methods.count_transport.target import CountTransport, transport_row
from attrpriv.numerics.calibration.box_loss import box_laws, kernels_box_loss
from attrpriv.numerics.calibration.coupling import overlaps
from attrpriv.numerics.laws.records import CountPairs, Interval01, RecordLaws
from attrpriv.numerics.laws.shifted_laplace import beyond, mean_size
from attrpriv.numerics.rounding import ROUNDED_UP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.numerics.laws.count_cases import CountPrior

    Matrix = NDArray[np.float64]

MOST_ROWS = 40
_MOST_BOX_ROWS = 60
_ROUNDING = 1e-11
_LEAST = 1e-250
_LARGEST = 1e6
_HALVINGS = 24
_TAIL_LENGTH = 4096


@lru_cache(maxsize=16)
def hybrid_loss(transport: CountTransport, box: RecordLaws, pairs: CountPairs, scale: float) -> float:
    """An upper bound on the loss over the box and all pairs; infinite where it cannot be bounded."""
    most, least = _Extremes(transport, box, pairs).at(scale)
    return _loss(most, least, pairs.apart)


@lru_cache(maxsize=16)
def least_hybrid_scale(transport: CountTransport, box: RecordLaws, pairs: CountPairs, epsilon: float) -> float:
    """The least scale of the noise whose loss is at most epsilon, from the private side; 0 where none is needed."""
    extremes = _Extremes(transport, box, pairs)

    def private(scale: float) -> bool:
        return _loss(*extremes.at(scale), pairs.apart) <= epsilon

    if private(0.0):
        return 0.0
    high = 1.0
    while not private(high):
        high *= 2
        if high > _LARGEST:
            raise RefusedError("transport: no noise makes up for the width of the intervals. Use another mechanism.")
    low = 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if private(middle) else (middle, high)
    return high


def transport_box_loss(transport: CountTransport, box: RecordLaws, pairs: CountPairs) -> float:
    """A bound on the loss of a transport by itself over a box around its law, for few rows (`calibration.box_loss`)."""
    if pairs.n > _MOST_BOX_ROWS:
        raise RefusedError(
            f"transport: a box is looked at cell by cell for up to {_MOST_BOX_ROWS} rows. Got {pairs.n:,}."
        ).because(Cause.SIZE, "fewer rows")
    kernels = [_kernel(transport, a, pairs.n) for a in range(pairs.low, pairs.high + 1)]
    return kernels_box_loss(kernels, box, pairs)


def hybrid_moved(transport: CountTransport, box: RecordLaws, prior: CountPrior, scale: float) -> Moved:
    """How far the answer is from the count, with the noise: at the worst law of the box, on average over the prior.

    The tail is the same average where the prior is stated, else that of the worst count too.
    """
    import numpy as np

    counts, chances = prior.nodes(prior.n + 1)
    moved = np.array([_by_distance(transport, int(a), prior.n) for a in counts])
    each = np.array([np.einsum("af,aft->at", law, moved) for law in box_laws(box, prior.n, counts.tolist())])
    lines, steps = np.einsum("a,gat->gt", chances, each), np.arange(moved.shape[2], dtype=np.float64)
    shown = lines if prior.stated else each.reshape(-1, len(steps))
    reach = len(steps) + math.ceil(40 * scale)
    skip = -(-reach // _TAIL_LENGTH)
    ends = np.arange(0, reach, skip, dtype=np.float64)
    if not scale:
        mean, further = lines @ steps, (steps[:, None] > ends).astype(np.float64)
    else:
        mean, further = lines @ mean_size(scale, steps), beyond(scale, steps[:, None], ends)
    q = math.exp(-1 / scale) if scale else 0.0
    square = float((lines @ steps**2).max()) + 2 * q / (1 - q) ** 2
    tail, averaged = ((*np.minimum((rows @ further).max(axis=0), 1.0).tolist(), 0.0) for rows in (shown, lines))
    return Moved(float(mean.max()), math.sqrt(square), tail, skip, averaged)


def _by_distance(transport: CountTransport, a: int, n: int) -> Matrix:
    """[f, t]: the chance to move the count f by t where the secret is a."""
    import numpy as np

    kernel, start = _kernel(transport, a, n), transport_row(transport, a).start
    apart = np.abs(start + np.arange(kernel.shape[1])[None, :] - np.arange(n + 1)[:, None])
    found = np.zeros((n + 1, max(n, start + kernel.shape[1]) + 1))
    np.add.at(found, (np.arange(n + 1)[:, None], apart), kernel)
    return found


def require_feasible(box: RecordLaws, n: int) -> None:
    """Intervals are covered for events of few rows: all vertices are looked at."""
    if not box.binary:
        raise RefusedError("transport: intervals are covered for events only; other values need exact probabilities.").because(
            Cause.NUMBERS, "exact probabilities"
        )
    if n > MOST_ROWS:
        raise RefusedError(
            f"transport: reads the secret, and then intervals are covered for up to {MOST_ROWS} rows. Got {n:,}."
        ).because(Cause.SIZE, "fewer rows")


class _Extremes:
    """The largest and the least Q_{a,v}(z) over the vertices v, a line for each count of the range, for any scale."""

    def __init__(self, transport: CountTransport, box: RecordLaws, pairs: CountPairs) -> None:
        require_feasible(box, pairs.n)
        laws = _vertex_laws(box, pairs)
        self._moved = [law @ _kernel(transport, a, pairs.n) for a, law in enumerate(laws, pairs.low)]

    def at(self, scale: float) -> tuple[Matrix, Matrix]:
        import numpy as np

        outputs = self._moved
        if scale > 0:
            size = outputs[0].shape[1]
            noise = np.exp(-np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / scale)
            outputs = [rows @ noise for rows in outputs]
        return np.array([rows.max(axis=0) for rows in outputs]), np.array([rows.min(axis=0) for rows in outputs])


def _loss(most: Matrix, least: Matrix, apart: int) -> float:
    import numpy as np

    if not bool((least >= _LEAST).all()):  # NaN fails it too
        return math.inf
    worst = 0.0
    for b in range(len(least)):
        near = most[max(0, b - apart) : b + apart + 1].max(axis=0)
        worst = max(worst, float(np.log(near / least[b]).max()))
    return worst * ROUNDED_UP + _ROUNDING


def _kernel(transport: CountTransport, a: int, n: int) -> Matrix:
    """K_a: a line for each value of F, a column for each output of the window."""
    import numpy as np

    row = transport_row(transport, a)
    cells = np.zeros((len(row.sources), len(row.targets)))
    for cell, o, part, whole in overlaps(row.sources, row.targets):
        cells[cell, o] = part / whole
    return np.array([cells[row.cell(f)] for f in range(n + 1)])


@lru_cache(maxsize=4)
def _vertex_laws(box: RecordLaws, pairs: CountPairs) -> tuple[Matrix, ...]:
    """Of each count of the range: every vertex law, a line for each."""
    import numpy as np

    found = []
    sides = [_binomials(interval, pairs.n) for interval in (box.member[1], box.rest[1])]
    for a in range(pairs.low, pairs.high + 1):
        first, second = (_side(*side, rows) for side, rows in zip(sides, (a, pairs.n - a), strict=True))
        found.append(np.array([np.convolve(x, y) for x in first for y in second]))
    return tuple(found)


def _side(low: list[Matrix], high: list[Matrix], rows: int) -> list[Matrix]:
    """Bin(j, low) + Bin(rows - j, high) for j = 0..rows; one of them where the interval is a number."""
    import numpy as np

    if low is high:
        return [low[rows]]
    return [np.convolve(low[j], high[rows - j]) for j in range(rows + 1)]


def _binomials(interval: Interval01, rows: int) -> tuple[list[Matrix], list[Matrix]]:
    """Bin(0, p), ..., Bin(rows, p) at both ends, row by row: sums of products of positive numbers, without cancellation."""
    import numpy as np

    found = []
    for p in dict.fromkeys(interval):
        laws = [np.ones(1)]
        for _ in range(rows):
            laws.append(np.convolve(laws[-1], [float(1 - p), float(p)]))
        found.append(laws)
    return found[0], found[-1]
