r"""The loss of several noisy statistics of one row whose joint law is known: the row is in one of some atoms.

    loss = max over outputs of |log (E_member w / E_rest w)|,     log w(atom) = sum over k of -r_k |o_k - y_k(atom)|

For each statistic alone, others fixed, the ratio is largest where the output is one of the values that a row can add (of a
histogram: where the outputs of a set of cells are large and the others small), so finitely many outputs are enough. Beyond all
possible answers the law is a product over rows, so for events the loss is attained. Over a box the largest mean puts as much
mass as it can on the atoms of largest w, the least on those of smallest.

What must never change: what cannot be computed safely is infinite, never less.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrpriv.numerics.laws.records import Interval01, RecordLaws
from attrpriv.numerics.rounding import ULP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_MOST_OUTPUTS = 1024
_MOST_CELLS = 10
# e^-600 is a float with all its digits.
_FAR = 600.0


def joint_row_loss(
    atoms: RecordLaws, added: Sequence[Sequence[int]], histogram: Sequence[bool], rates: Sequence[float]
) -> float:
    """From above; `added` says for each statistic what a row of each atom adds (of a histogram: the number of its cell).

    >>> half, none = (0.5, 0.5), (0.0, 0.0)
    >>> xor = RecordLaws((0, 1, 2, 3), (half, none, none, half), (none, half, half, none))
    >>> round(joint_row_loss(xor, [(0, 0, 1, 1), (0, 1, 0, 1)], [False, False], [2.0, 2.0]), 6)
    1.325003
    """
    import numpy as np

    lines = [_lines(one, cells) for one, cells in zip(added, histogram, strict=True)]
    if math.prod(map(len, lines)) > _MOST_OUTPUTS:
        return math.inf
    logs = np.zeros((1, len(atoms.values)))
    for line, rate in zip(lines, rates, strict=True):
        logs = (logs[:, None, :] + rate * np.array(line)[None, :, :]).reshape(-1, len(atoms.values))
    logs = logs - logs.max(axis=1, keepdims=True)
    far = -float(logs.min())
    if not far <= _FAR:
        return math.inf
    weights = np.exp(logs)
    both = [_ratio(weights, top, bottom) for top, bottom in ((atoms.member, atoms.rest), (atoms.rest, atoms.member))]
    error = ULP * (64 + 8 * len(atoms.values) + 8 * (len(rates) + 1) * far)
    return max(0.0, *both) + error


def _lines(added: Sequence[int], histogram: bool) -> list[Floats]:
    """log w of each atom at rate 1, for every output that can be worst."""
    import numpy as np

    values, row = sorted(set(added)), np.array(added, dtype=np.float64)
    if not histogram:
        return [-np.abs(row - value) for value in values]
    if len(values) > _MOST_CELLS:
        return [row] * (_MOST_OUTPUTS + 1)  # too many sets to look at
    sets = itertools.chain.from_iterable(itertools.combinations(values, size) for size in range(len(values)))
    return [2.0 * np.isin(row, chosen).astype(np.float64) for chosen in sets]


def _ratio(weights: Floats, top: Sequence[Interval01], bottom: Sequence[Interval01]) -> float:
    """The largest log of (largest mean under `top` / least mean under `bottom`)."""
    import numpy as np

    most, least = _mean(weights, top, +1), _mean(weights, bottom, -1)
    if not (least > 0).all():
        return math.inf
    found = float(np.max(np.log(most) - np.log(least)))
    return math.inf if math.isnan(found) else found


def _mean(weights: Floats, law: Sequence[Interval01], sign: int) -> Floats:
    """Of every line of weights: the largest mean over the box (+1), or the least (-1)."""
    import numpy as np

    low, high = (np.array([ends[k] for ends in law], dtype=np.float64) for k in (0, 1))
    if (low == high).all():
        return np.asarray(weights @ (low / math.fsum(low)))
    low, high = low * (1 - 2 * ULP) / max(1.0, math.fsum(low)), high * (1 + 2 * ULP) / min(1.0, math.fsum(high))
    order = np.argsort(-sign * weights, axis=1)
    room = (high - low)[order]
    before = np.cumsum(room, axis=1) - room
    masses = low[order] + np.clip(1 - math.fsum(low) - before, 0.0, room)
    # The masses are off by some units of rounding, absolutely; no weight is above 1.
    return np.asarray((np.take_along_axis(weights, order, axis=1) * masses).sum(axis=1) + sign * 16 * len(law) * ULP)
