"""A mechanism that reads the secret, where the probability of an event is only known up to a box: a bound on its loss.

    Q_a(o; p) = E[K_a(F, o)],     F ~ Bin(a, p1) + Bin(n - a, p0),      p = (p1, p0) in a box, the same for both of a pair

| symbol | here |
|---|---|
| K_a(f, o) | the coupling of sources[a] and targets[a] (`coupling.overlaps`) |
| c, h | middle and half the width of a cell of the box, in each of the two probabilities |

The corners of the box do not cover such a mechanism, so the box is cut into cells. At the middle of each the loss is computed.
A mass of Bin(a, p1) + Bin(n - a, p0) is a sum of products of n factors p or 1 - p, so within the cell its logarithm moves by
at most a t1 + (n - a) t0, t = -log(1 - h/min(c, 1 - c)), and so does that of Q_a(o); a ratio of two moves by twice that.

The bound is computed in floats, by sums of positive terms, and rounded up. It is for what a plan says of model errors, and no
certificate rests on it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from attrpriv.errors import Cause, RefusedError, UsageError
from attrpriv.numerics.calibration.coupling import overlaps
from attrpriv.numerics.laws.records import CountPairs, Interval01, RecordLaws
from attrpriv.numerics.rounding import SOLVED_UP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

# Cells along each side of the box.
_CELLS = 16
# Outputs of all cells and secrets together: 200 MB.
_MOST_OUTPUTS = 2.5e7
# The least value of which a float still has all digits, with room for products.
_LEAST = 1e-250
# Far above what sums of positive terms round; below anything a reader would see.
_ROUNDING = 1e-9


def box_loss(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], records: RecordLaws, pairs: CountPairs
) -> float:
    """An upper bound on the loss over the box of an event's probabilities; infinite where floats cannot bound it."""
    _require_few(records, pairs, len(targets[0]))
    return kernels_box_loss([_kernel(*rows) for rows in zip(sources, targets, strict=True)], records, pairs)


def kernels_box_loss(kernels: Sequence[Matrix], records: RecordLaws, pairs: CountPairs) -> float:
    """The same for any kernels K_a, a = low..high: a line for each value of F, a column for each output."""
    import numpy as np

    _require_few(records, pairs, kernels[0].shape[1])
    counts, n = range(pairs.low, pairs.high + 1), pairs.n
    member, rest = _middles(records.member[1]), _middles(records.rest[1])
    outputs = np.array(
        [_outputs(kernel, _laws(member, a), _laws(rest, n - a)) for kernel, a in zip(kernels, counts, strict=True)]
    )
    if bool(((outputs > 0) & (outputs < _LEAST)).any()):
        return math.inf
    worst = max(_log_ratio(outputs[k : k + pairs.apart + 1]) for k in range(len(counts) - pairs.apart))
    steps = _step(records.member[1]), _step(records.rest[1])
    return worst + 2 * max(a * steps[0] + (n - a) * steps[1] for a in (pairs.low, pairs.high)) + _ROUNDING


def _require_few(records: RecordLaws, pairs: CountPairs, outputs: int) -> None:
    if not records.binary:
        raise UsageError("records: only an event has a box of two probabilities.")
    counts = pairs.high - pairs.low + 1
    if counts * outputs * _CELLS**2 > _MOST_OUTPUTS:
        raise RefusedError(f"box: {counts} counts of {pairs.n} rows are too many to be looked at cell by cell.").because(
            Cause.SIZE
        )


def _log_ratio(outputs: Matrix) -> float:
    """The largest log Q_a(o)/Q_b(o) of any two of these counts; what none of them can give is no output."""
    import numpy as np

    most, least = outputs.max(axis=0), outputs.min(axis=0)
    given = most > 0
    with np.errstate(divide="ignore"):
        return float(np.log(most[given] / least[given]).max(initial=0.0))


def _middles(interval: Interval01) -> list[float]:
    low, high = interval
    cells = _CELLS if high > low else 1
    return [float(low + (high - low) * (2 * k + 1) / (2 * _CELLS)) for k in range(cells)]


def _step(interval: Interval01) -> float:
    """How far the logarithm of p or of 1 - p can be from that at the middle of its cell, over all cells."""
    low, high = interval
    if low == high:
        return 0.0
    half = float(high - low) / (2 * _CELLS) * SOLVED_UP
    least = min(float(low) + half, float(1 - high) + half)
    return -math.log1p(-half / least) * SOLVED_UP if half < least else math.inf


def _kernel(source: Sequence[int], target: Sequence[int]) -> Matrix:
    import numpy as np

    kernel = np.zeros((len(source), len(target)))
    for f, o, part, whole in overlaps(source, target):
        kernel[f, o] = part / whole
    return kernel


def _laws(probabilities: Sequence[float], rows: int) -> Matrix:
    """Bin(rows, p), a line for each p, by adding one row after the other: sums of positive terms."""
    import numpy as np

    laws = np.zeros((len(probabilities), rows + 1))
    laws[:, 0] = 1.0
    p = np.array(probabilities)[:, None]
    for _ in range(rows):
        laws[:, 1:] = laws[:, 1:] * (1 - p) + laws[:, :-1] * p
        laws[:, :1] *= 1 - p
    return laws


def _outputs(kernel: Matrix, member: Matrix, rest: Matrix) -> Matrix:
    """Q(o) at every pair of middles: outputs x middles of p1 x middles of p0."""
    import numpy as np

    places = np.arange(member.shape[1])[:, None] + np.arange(rest.shape[1])
    found: Matrix = member @ kernel.T[:, places] @ rest.T
    return found


# ----------------------------------------------------------------------------------------------------------------------------
# Average errors of what moves a count, at the worst law of a box: what plans are compared by.
#
#     mean_absolute = max over theta of E_theta |o - f|,   rmse and averaged[t] = P_theta(|o - f| > t) likewise
#
# | symbol | here |
# |---|---|
# | theta | the probabilities of an event among members and others: one law for all rows of a category, on a grid over the box |
# | E_theta | over all tables of that law: the secret by its prior, the count by theta, the output by what is drawn |
#
# An average over the box itself would need a law over it, and an interval states none. For expected errors only: nothing that
# is promised rests on it, so that floats and a grid will do. Averages are polynomials in theta, smooth over an interval.


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
