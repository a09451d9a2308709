"""The exact loss of discrete Laplace noise on counted statistics, and the least noise for an epsilon.

    output = F + Z,   P(Z = k) = (1 - u)/(1 + u) u^|k|,   u = e^(-1/scale);   scale 0 is the exact release, u = 0

Whoever knows all rows but one sees a shift of  y + Z,  y the last row's value. So the loss of one row that changes category is

    loss_1 = max over outputs o of |log (E_member u^|o - y| / E_rest u^|o - y|)|,

and |a - b| <= N rows change one after the other: loss <= N loss_1.

| symbol | here |
|---|---|
| N | `apart`, the largest \\|a - b\\| over the pairs |
| member, rest | the law of one row in the secret's category and outside of it (`RecordLaws`), each anywhere in its box |
| o | may be any whole number; only the values themselves matter |

- *Only the values.* Between two neighbouring values both means are A u^-o + B u^o, so their ratio is monotone in u^(2 o).
- *Over the box.* member and rest vary independently: the largest mean fills the nearest values first, the least the furthest.
- *Attained in the tails.* Beyond all values the output law is a product over rows, so o -> +-infinity gives N times the term of
  the largest or least value. For events there are no other terms: `lower` and `upper` differ by rounding.
- *Histograms.* A row moves one of K counts, each with its own noise. With A the cells whose output is 1 or more, the factor
  of a row is 1 on A and u^2 elsewhere, up to a constant, and o_c -> +-infinity reaches every A. So the loss is exactly N max
  over A of that of the event "the row is in A" at u^2. For exact laws the best A holds the cells of largest q1/q0.
- *More scale is more private.* The generating functions of scales s < s' divide to p + (1 - p) times that of s', where
  p = (u/u') ((1 - u')/(1 - u))^2 <= 1: noise of scale s' is that of scale s with further independent noise.

What must never change: `upper` is rounded up, `lower` down; the scale returned has itself been shown to keep the promise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.records import Interval01, RecordLaws
from attrpriv.numerics.rounding import ULP
from attrpriv.numerics.search import largest_private

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Law = Sequence[Interval01]
# Bounds such as 1 - p are rounded; widening them by this covers the true ones.
_WIDEN = Fraction(1, 2**51)
_MOST_VALUES = 1000
_MOST_CELLS = 14
# 1/scale beyond this is not searched: the noise is then 0 in all but one of e^1000000 draws.
_LARGEST_RATE = 1e6


@dataclass(frozen=True)
class LaplaceLoss:
    """Bounds on the largest loss over Theta and all pairs; infinite where an output gives the secret away.

    They are `upper` and `lower`. Made by `laplace_loss`.
    """

    upper: float
    lower: float


def laplace_loss(records: RecordLaws, apart: int, scale: float) -> LaplaceLoss:
    """The loss of F plus discrete Laplace noise of this scale.

    `records` is the law of a row, or a box of laws; at most `apart` rows change; `scale` is that of the noise.

    >>> round(laplace_loss(RecordLaws.event((0.4, 0.6), (0.4, 0.6)), 4, 0.0).upper, 6)
    1.62186
    >>> laplace_loss(RecordLaws.event(0.0, 0.5), 4, 0.0).upper
    inf
    """
    _require(apart, scale)
    return _loss(_upper_terms(records), _lower_terms(records), apart, scale)


def least_laplace_scale(records_list: Sequence[RecordLaws], apart: int, epsilon: float) -> float:
    """The least scale, from above, that keeps epsilon for every one of several boxes; 0.0 where the exact release does.

    `records_list` has the boxes; at most `apart` rows change; `epsilon` is the promise.

    >>> round(least_laplace_scale([RecordLaws.event(0.4, 0.6)], 4, 0.5), 6)
    1.548642
    """
    _require(apart, 0.0)
    if not records_list:
        raise UsageError("records_list: needs at least one. Got none.")
    widest = max(records.width for records in records_list)
    return _least_scale([_upper_terms(records) for records in records_list], apart, epsilon, widest)


def histogram_loss(member: Law, rest: Law, apart: int, scale: float) -> LaplaceLoss:
    """The loss of K counts, each with its own discrete Laplace noise; a row is in cell c with a probability in `member[c]`.

    `rest` is the same for other rows; at most `apart` rows change; `scale` is that of the noise.

    >>> histogram_loss([(0.2, 0.2), (0.8, 0.8)], [(0.4, 0.4), (0.6, 0.6)], 1, 0.0).upper > math.log(2)
    True
    """
    _require(apart, scale)
    return _loss(_cell_terms(member, rest, +1), _cell_terms(member, rest, -1), apart, scale)


def least_histogram_scale(laws: Sequence[tuple[Law, Law]], apart: int, epsilon: float) -> float:
    """The least scale for (member, rest) laws of the cells, for every one of several boxes; 0.0 where none is needed.

    `laws` has a pair for each box, as `histogram_loss` takes them; at most `apart` rows change; `epsilon` is the promise.

    >>> cells = [(0.2, 0.2), (0.8, 0.8)], [(0.4, 0.4), (0.6, 0.6)]
    >>> scale = least_histogram_scale([cells], 1, 0.5)
    >>> round(scale, 4), histogram_loss(*cells, 1, scale).upper <= 0.5
    (0.86, True)
    """
    _require(apart, 0.0)
    if not laws:
        raise UsageError("laws: needs at least one. Got none.")
    return _least_scale([_cell_terms(member, rest, +1) for member, rest in laws], apart, epsilon, 2)


def row_terms(records: RecordLaws, histogram: bool) -> RowTerms:
    """What one row can do to the output of a count or a sum, or to the cells of a histogram, rounded up."""
    return _cell_terms(records.member, records.rest, +1) if histogram else _upper_terms(records)


@dataclass(frozen=True, eq=False)
class RowTerms:
    """One line for each output and direction: log of (sum top_k u^distance_k) / (sum bottom_k u^distance_k).

    In the first half of the lines `top` is a law of members and `bottom` one of the rest, in the second half the reverse.
    """

    distance: Floats
    top: Floats
    bottom: Floats
    # How many units of rounding the masses may be off, relatively, beyond what `_log_mean` counts.
    rounding: int

    def largest(self, scale: float, sign: int) -> float:
        """The largest line, moved by its rounding: up for sign +1, down for -1. 0/0 is no loss, x/0 is infinite."""
        import numpy as np

        (top, top_error), (bottom, bottom_error) = (_log_mean(q, self.distance, scale) for q in (self.top, self.bottom))
        with np.errstate(invalid="ignore"):
            lines = top - bottom + sign * (top_error + bottom_error + 2 * self.rounding * ULP)
        same = np.isneginf(top) | (self.top == self.bottom).all(axis=1)
        lines = np.where(same, 0.0, np.where(np.isneginf(bottom), np.inf, lines))
        found = float(lines.max())
        if math.isnan(found):
            raise UsageError(f"scale: the loss is out of reach of floats. Got {scale}.")
        return max(0.0, found)


def _log_mean(masses: Floats, distance: Floats, scale: float) -> tuple[Floats, Floats]:
    """log(sum of masses u^distance) of each line, with a bound on its rounding."""
    import numpy as np

    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        far = np.where(distance > 0, distance / scale if scale > 0 else np.inf, 0.0)
        logs = np.log(masses)
        peak = (logs - far).max(axis=1, keepdims=True)
        terms = np.where(np.isneginf(logs - far), 0.0, np.exp(logs - far - peak))
        total = terms.sum(axis=1)
        # A term is off by the rounding of its exponent, whose size is weighed with the term's own share.
        sizes = np.where(terms > 0, terms * (np.abs(logs) + far), 0.0).sum(axis=1) / total
        error = ULP * (16 + masses.shape[1] + 4 * sizes + np.abs(np.log(total)) + np.abs(peak[:, 0]))
        return peak[:, 0] + np.log(total), error


def _loss(upper: RowTerms, lower: RowTerms, apart: int, scale: float) -> LaplaceLoss:
    return LaplaceLoss(
        apart * upper.largest(scale, +1) * (1 + 2 * ULP), max(0.0, apart * lower.largest(scale, -1) * (1 - 2 * ULP))
    )


def _least_scale(terms: Sequence[RowTerms], apart: int, epsilon: float, width: int) -> float:
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise UsageError(f"epsilon: must be positive and finite. Got {epsilon}.")

    def keeps(scale: float) -> bool:
        return all(apart * one.largest(scale, +1) * (1 + 2 * ULP) <= epsilon for one in terms)

    if keeps(0.0):
        return 0.0
    # Scale N width/epsilon is private for any laws: the search starts there.
    return 1 / largest_private(lambda rate: rate <= _LARGEST_RATE and keeps(1 / rate), start=epsilon / (apart * width))


def _upper_terms(records: RecordLaws) -> RowTerms:
    """Every value as the output, both directions, over the box widened by its rounding."""
    if len(records.values) > _MOST_VALUES:
        raise UsageError(f"values: at most {_MOST_VALUES} can be handled. Got {len(records.values)}; use wider bins.")
    return _value_terms(records, records.values, _WIDEN)


def _lower_terms(records: RecordLaws) -> RowTerms:
    """The two tails, over the box as it stands."""
    return _value_terms(records, (records.values[0], records.values[-1]), Fraction(0))


def _value_terms(records: RecordLaws, outputs: Sequence[int], widen: Fraction) -> RowTerms:
    import numpy as np

    lines = [
        (distance, _filled(top, nearest, widen), _filled(bottom, nearest[::-1], widen))
        for top, bottom in ((records.member, records.rest), (records.rest, records.member))
        for distance, nearest in (_from(records.values, o) for o in outputs)
    ]
    distance, top, bottom = (np.array([line[k] for line in lines], dtype=np.float64) for k in range(3))
    return RowTerms(distance, top, bottom, rounding=4)


def _from(values: Sequence[int], output: int) -> tuple[list[int], list[int]]:
    """The distance of every value, and the positions of the values, the nearest first."""
    distance = [abs(output - value) for value in values]
    return distance, sorted(range(len(values)), key=distance.__getitem__)


def _filled(law: Law, order: Sequence[int], widen: Fraction) -> list[float]:
    """The law of the box that puts as much mass as it can on the first positions of `order`."""
    # Two fractions may be one float; widened, they are not taken for the same law.
    if all(low == high and not isinstance(low, Fraction) for low, high in law):
        total = math.fsum(low for low, _ in law)
        return [float(low) / total for low, _ in law]
    masses = [Fraction(low) * (1 - widen) for low, _ in law]
    left = 1 - sum(masses)
    for k in order:
        more = max(Fraction(0), min(left, Fraction(law[k][1]) * (1 + widen) - masses[k]))
        masses[k], left = masses[k] + more, left - more
    total_mass = sum(masses)  # 1, unless the box misses it by the slack that decimal fractions have
    return [float(mass / total_mass) for mass in masses]


def _cell_terms(member: Law, rest: Law, sign: int) -> RowTerms:
    """Every set of cells that matters, both directions; rounded outward (+1) or inward (-1)."""
    import numpy as np

    checked = RecordLaws(tuple(range(len(member))), tuple(member), tuple(rest))
    pairs = [line for laws in ((member, rest), (rest, member)) for line in _set_masses(*laws, checked.exact, sign)]
    top, bottom = (np.array([[pair[k], max(0.0, 1.0 - pair[k])] for pair in pairs]) for k in range(2))
    return RowTerms(np.tile([0.0, 2.0], (len(pairs), 1)), top, bottom, rounding=4 * len(member) + 4)


def _set_masses(top: Law, bottom: Law, exact: bool, sign: int) -> Iterator[tuple[float, float]]:
    """(the largest q_top(A), the least q_bottom(A)) for the sets A of cells that can be worst."""
    if not exact:
        yield from _all_sets(top, bottom, sign)
        return
    if any(isinstance(low, Fraction) for low, _ in (*top, *bottom)):
        yield from _fraction_sets([Fraction(low) for low, _ in top], [Fraction(low) for low, _ in bottom])
        return
    sums = [math.fsum(low for low, _ in law) for law in (top, bottom)]
    cells = [(float(p) / sums[0], float(q) / sums[1]) for (p, _), (q, _) in zip(top, bottom, strict=True)]
    cells.sort(key=lambda pq: -pq[0] / pq[1] if pq[1] > 0 else (-math.inf if pq[0] > 0 else math.inf))
    for size in range(1, len(cells) + 1):
        yield math.fsum(p for p, _ in cells[:size]), math.fsum(q for _, q in cells[:size])


def _fraction_sets(top: Sequence[Fraction], bottom: Sequence[Fraction]) -> Iterator[tuple[float, float]]:
    """The same in fractions; what differs is kept apart, though it be one float."""
    cells = [(p / sum(top), q / sum(bottom)) for p, q in zip(top, bottom, strict=True)]
    cells.sort(key=lambda pq: -pq[0] / pq[1] if pq[1] else (-math.inf if pq[0] else math.inf))
    p = q = Fraction(0)
    for more in cells:
        p, q = p + more[0], q + more[1]
        near = float(p), float(q)
        yield near if p == q or near[0] != near[1] else (near[0], math.nextafter(near[1], 0.0))


def _all_sets(top: Law, bottom: Law, sign: int) -> Iterator[tuple[float, float]]:
    import numpy as np

    if len(top) > _MOST_CELLS:
        raise UsageError(f"cells: at most {_MOST_CELLS} with uncertain probabilities. Got {len(top)}; merge some.")
    inside = ((np.arange(2 ** len(top))[:, None] >> np.arange(len(top))) & 1).astype(np.float64)
    out = sign * 4 * (len(top) + 1) * ULP
    (low1, high1), (low0, high0) = _ends(top), _ends(bottom)
    most = np.minimum(inside @ high1 * (1 + out), 1 - (1 - inside) @ low1 + out)
    least = np.maximum(inside @ low0 * (1 - out), 1 - (1 - inside) @ high0 - out)
    yield from zip(np.clip(most, 0, 1).tolist(), np.clip(least, 0, 1).tolist(), strict=True)


def _ends(law: Law) -> tuple[Any, Any]:
    """Both ends of every interval, rescaled where the sums miss 1 by the slack that decimal fractions have."""
    import numpy as np

    low, high = (np.array([ends[k] for ends in law], dtype=np.float64) for k in range(2))
    return low / max(1.0, low.sum()), high / min(1.0, high.sum())


def _require(apart: int, scale: float) -> None:
    if not (isinstance(apart, int) and apart >= 1):
        raise UsageError(f"apart: must be a whole number of at least 1. Got {apart}.")
    if not (math.isfinite(scale) and scale >= 0):
        raise UsageError(f"scale: must be finite and at least 0. Got {scale}.")
