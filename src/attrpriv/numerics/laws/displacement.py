"""How far the rows of sorted cells move when public references take their place, with a probability that is proved.

The m rows kept in a cell from a to b = a + h are sorted, s_1 <= ... <= s_m, and paired with its references t_1 <= ... <= t_m:

    D = sum over cells and k of w(|s_k - t_k|) (s_k - t_k)^2          (w increases; 1, or `Channel.weight`)

1. *Certain.* s_k is between a and b, so that |s_k - t_k| <= max(t_k - a, b - t_k) <= h: `never_exceeded`.

2. *Likely.* The owner states that, given the cells of all rows, the rows in a cell are independent draws of one law, whose
distribution function F is nowhere further than `shift` from G: that of the cell's public values, or the even one. Keyed ranks
choose among them without looking, so that the rows kept are independent draws of F as well, and cells are independent.

*Quantiles.* Let F^-1(u) be the least x with F(x) >= u. If |F - G| <= s everywhere, then G^-1(u - s) <= F^-1(u) <= G^-1(u + s),
where G^-1 is a up to 0 and b above 1. For x = F^-1(u): F(x) >= u, so G(x) >= u - s. And every y < x has F(y) < u, so
G(y) < u + s and y < G^-1(u + s). Atoms of F or G change nothing.

*One cell.* Draws of F are F^-1 of uniform draws, in their order: s_k = F^-1(U_k) with U_1 <= ... <= U_m the sorted uniform
draws. So D of the cell is at most sum psi_k(U_k), psi_k(u) = w(d) d^2 at the larger d of G^-1(u + s) - t_k and
t_k - G^-1(u - s). Cut [0, 1] into g equal parts and let psi_k be its largest value on each part. How many draws fall into the
parts is a multinomial law, so that

    E e^(theta D) <= m! sum over (c_1..c_g) with sum m of prod over i of g^-c_i / c_i! prod over k in part i of e^(theta psi_ki)

where part i holds the k from c_1 + .. + c_(i-1) + 1 on: a product of g steps over the number of draws so far. All terms are
positive. No limit law is used, and it is right for every m, every G, every s and every set of references.

*All cells.* P(D > x) <= exp(sum over cells of log E e^(theta D) - theta x) for every theta > 0; the best theta is searched, and
a poor one costs accuracy only.

3. *Large cells* (above 1,024 rows): Massart's inequality (key `massart1990tight`), P(sup |F_m - F| > y) <= 2 exp(-2 m y^2) for
the distribution function F_m of the m rows. By the lemma, with F_m for F and s + y for s, s_k is between G^-1(k/m - s - y) and
G^-1 just above (k-1)/m + s + y. That is a bound B(y) of D which increases in y, and E e^(theta B) is at most the integral
against that tail. It costs a factor of about five against 2; narrower cells cost less and hide more.

What must never change: `never_exceeded`, `likely` and `failure_of` are at least the truth under what the owner states. An even
law is a statement about the column, as the shift is: G is never fitted to private rows.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import ROUNDED_UP, SOLVED_UP, SOME_ULPS, SUMMED_UP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.numerics.laws.breaks import SortedCell

    Array = NDArray[np.float64]
    Weight = Callable[[Array], Array]

# Larger cells are bounded by Massart's inequality: e^(-rows/2) must stay far inside of the floats.
_LARGEST = 1024
# Parts of [0, 1] for each root of a cell's rows: while theta is searched, and for the number that is used.
_COARSE, _FINE = 16, 48
# Steps of sqrt(rows) times the distance of distribution functions, for large cells.
_STEP = 1 / 64
# theta times the largest price of a row: beyond the second nothing is gained if a cell has more than a few rows, because
# the limit of E e^(theta D) for many rows is infinite from pi^2/2 on.
_LEAST_TILT, _LARGEST_TILT, _LARGEST_TILT_FEW, _FEW = 1e-4, 5.0, 16.0, 16
# Weights are read from a table of so many distances, at the next larger one.
_PLACES = 1024
# Draws in one part that are summed exactly; there are mostly 0 or 1, and more are summed by a series that is larger.
_TERMS = 4


@dataclass(frozen=True)
class Displacement:
    """D is at most `most` except with probability `failure`; `theta` proves it (0: D can never be larger)."""

    most: float
    failure: float
    theta: float
    shift: float | None


def never_exceeded(cells: Sequence[SortedCell], weight: Weight | None = None) -> float:
    """The largest D there can be, rounded up: at most sum m h^2 w(h).

    >>> import numpy as np
    >>> from attrpriv.numerics.laws.breaks import SortedCell
    >>> round(never_exceeded([SortedCell(0.0, 1.0, np.array([0.25, 0.75]))]), 6)
    1.125
    """
    price = _Price.of(cells, weight)
    return _finite(math.fsum(_furthest(cell, price) for cell in cells) * SUMMED_UP)


def likely(cells: Sequence[SortedCell], failure: float, shift: float, weight: Weight | None = None) -> Displacement:
    """A D_max that is exceeded with probability at most `failure`, if no F is further than `shift` from its G.

    >>> import numpy as np
    >>> from attrpriv.numerics.laws.breaks import SortedCell, even_references
    >>> cells = [SortedCell(0.0, 1.0, even_references(0.0, 1.0, 10))] * 50
    >>> found = likely(cells, 1e-6, 0.0)
    >>> 50 / 6 < found.most < 2.1 * 50 / 6                                        # the mean is below 50/6
    True
    """
    _require(failure, shift)
    price, certain = _Price.of(cells, weight), never_exceeded(cells, weight)
    if certain == 0.0:
        return Displacement(0.0, 0.0, 0.0, shift)
    theta = _best_theta(cells, failure, shift, price)
    most = (_log_moment(cells, theta, shift, price, _FINE) - math.log(failure)) / theta * SOLVED_UP
    if most >= certain:
        return Displacement(certain, 0.0, 0.0, shift)
    return Displacement(_finite(most), failure, theta, shift)


def failure_of(cells: Sequence[SortedCell], most: float, theta: float, shift: float, weight: Weight | None = None) -> float:
    """P(D > most) at most, rounded up, by the proof with this theta: what a certificate is checked by."""
    _require(0.5, shift)
    if theta == 0.0:
        return 0.0 if most >= never_exceeded(cells, weight) else 1.0
    if not (math.isfinite(theta) and theta > 0 and math.isfinite(most) and most >= 0):
        raise UsageError(f"displacement: needs finite numbers, theta and most at least 0. Got {theta} and {most}.")
    exponent = _log_moment(cells, theta, shift, _Price.of(cells, weight), _FINE) - theta * most
    return min(1.0, math.exp(min(0.0, exponent + SOME_ULPS * theta * most)) * SUMMED_UP)


def _best_theta(cells: Sequence[SortedCell], failure: float, shift: float, price: _Price) -> float:
    """Where the bound is nearly least, by a coarse computation: any theta is right."""
    from scipy.optimize import minimize_scalar

    scale = max(float(price.of_distance(_array([cell.width]), cell.width)[0]) for cell in cells if cell.rows)

    def bound(log_tilt: float) -> float:
        theta = math.exp(log_tilt) / scale
        return math.log((_log_moment(cells, theta, shift, price, _COARSE) - math.log(failure)) / theta)

    few = max(cell.rows for cell in cells) <= _FEW
    ends = (math.log(_LEAST_TILT), math.log(_LARGEST_TILT_FEW if few else _LARGEST_TILT))
    found = minimize_scalar(bound, bounds=ends, method="bounded", options={"xatol": 0.1})
    return math.exp(float(found.x)) / scale


# ----------------------------------------------------------------------------------------------------------------------------
# Prices: w(d) d^2, never too small.


@dataclass(frozen=True, eq=False)
class _Price:
    """w at distances step, 2 step, ...; a distance in between is taken as the next one."""

    step: float
    table: Array | None

    @staticmethod
    def of(cells: Sequence[SortedCell], weight: Weight | None) -> _Price:
        import numpy as np

        widest = max((cell.width for cell in cells), default=0.0)
        if weight is None or widest == 0.0:
            return _Price(1.0, None)
        step = widest * SUMMED_UP / _PLACES
        table = np.asarray(weight(np.asarray(step * np.arange(_PLACES + 2), dtype=np.float64)), dtype=np.float64)
        if not (np.all(np.isfinite(table)) and table[0] >= 1 and np.all(np.diff(table) >= -SOME_ULPS * table[1:])):
            raise UsageError("weight: must be finite, at least 1 and increasing with the distance.")
        return _Price(step, np.maximum.accumulate(table))

    def of_distance(self, moved: Array, width: float | Array) -> Array:
        """w(d) d^2, with d moved up by what the subtraction of places in a cell of this width may have lost."""
        import numpy as np

        d = np.maximum(moved, 0.0) + SOME_ULPS * width
        squared = d * d * SUMMED_UP
        if self.table is None:
            return np.asarray(squared, dtype=np.float64)
        places = np.minimum(np.ceil(d / self.step * ROUNDED_UP), _PLACES + 1).astype(np.int64)
        return np.asarray(squared * self.table[places], dtype=np.float64)


def _furthest(cell: SortedCell, price: _Price) -> float:
    import numpy as np

    if cell.width == 0.0:
        return 0.0
    moved = np.maximum(cell.references - cell.low, cell.high - cell.references)
    return float(math.fsum(price.of_distance(moved, cell.width)))


def _places(cell: SortedCell, shares: Array, upper: bool) -> Array:
    """G^-1 at these shares (`upper`: just above them) less the cell's low end; the ends outside of 0 and 1."""
    import numpy as np

    if cell.values is None:
        return np.asarray(np.clip(shares, 0.0, 1.0) * cell.width, dtype=np.float64)
    size = cell.values.size
    ranks = shares * size
    slack = SOME_ULPS * (1 + size)
    if upper:
        padded = np.append(cell.values - cell.low, cell.width)
        return np.asarray(padded[np.clip(np.floor(ranks + slack), 0, size).astype(np.int64)], dtype=np.float64)
    padded = np.insert(cell.values - cell.low, 0, 0.0)
    return np.asarray(padded[np.clip(np.ceil(ranks - slack), 0, size).astype(np.int64)], dtype=np.float64)


# ----------------------------------------------------------------------------------------------------------------------------
# The logarithm of E e^(theta D), summed over cells, rounded up.


def _log_moment(cells: Sequence[SortedCell], theta: float, shift: float, price: _Price, parts: int) -> float:
    import numpy as np

    groups: dict[int, list[SortedCell]] = defaultdict(list)
    times = Counter(_shape(cell) for cell in cells)
    for cell in {_shape(cell): cell for cell in cells if cell.rows and cell.width > 0}.values():
        groups[1 << (cell.rows - 1).bit_length()].append(cell)
    total = 0.0
    for size, group in groups.items():
        certain = theta * _array([_furthest(cell, price) for cell in group])
        if size <= _LARGEST:
            found = _by_order(group, theta, shift, price, parts)
        else:
            found = _array([_by_massart(cell, theta, shift, price) for cell in group])
        # Where the sum leaves the floats, the certain bound holds.
        least = np.minimum(np.where(np.isfinite(found), found, math.inf), certain)
        total += math.fsum(times[_shape(cell)] * float(x) for cell, x in zip(group, least, strict=True))
    return total * SOLVED_UP


def _shape(cell: SortedCell) -> tuple[float, bytes, bytes | None]:
    """All that the law of D depends on: cells of one shape are computed once."""
    values = None if cell.values is None else (cell.values - cell.low).tobytes()
    return cell.width, (cell.references - cell.low).tobytes(), values


def _by_order(group: Sequence[SortedCell], theta: float, shift: float, price: _Price, parts: int) -> Array:
    """Cells of similar numbers of rows at once: the lower half of [0, 1], the upper half mirrored, and both together.

    The number of draws in a part is taken as a Poisson law of mean m/g, and the result is divided by P(Poisson(m) = m): the
    same multinomial law, with no number that is too small for floats.
    """
    import numpy as np
    from scipy.special import gammaln

    rows = np.array([cell.rows for cell in group])
    half = math.ceil(parts * math.sqrt(int(rows.max())))
    ends = np.arange(2 * half + 1) / (2 * half)
    low = np.array([_places(cell, ends[:-1] - shift, upper=False) for cell in group])
    high = np.array([_places(cell, ends[1:] + shift, upper=True) for cell in group])
    widths = _array([cell.width for cell in group])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        first = _half(_padded(group, mirrored=False), rows, low[:, :half], high[:, :half], theta, price, widths)
        mirror = widths[:, None]
        second = _half(
            _padded(group, mirrored=True),
            rows,
            mirror - high[:, : half - 1 : -1],
            mirror - low[:, : half - 1 : -1],
            theta,
            price,
            widths,
        )
        joined = [float(np.dot(a[: m + 1], b[m::-1])) for a, b, m in zip(first, second, rows, strict=True)]
        log_poisson = rows * np.log(rows) - rows - gammaln(rows + 1)
        return np.asarray(np.log(_array(joined) * SOLVED_UP) - log_poisson, dtype=np.float64)


def _padded(group: Sequence[SortedCell], mirrored: bool) -> Array:
    """References as distances from the low end (mirrored: from the high end), one line a cell."""
    import numpy as np

    found = np.zeros((len(group), max(cell.rows for cell in group)))
    for line, cell in zip(found, group, strict=True):
        line[: cell.rows] = (cell.high - cell.references)[::-1] if mirrored else cell.references - cell.low
    return found


def _half(
    references: Array, rows: NDArray[np.int64], low: Array, high: Array, theta: float, price: _Price, widths: Array
) -> Array:
    """For each cell and N: the sum over all ways in which N draws fall into these parts, each with its e^(theta psi)."""
    import numpy as np

    cells, most = references.shape
    alive = np.arange(1, most + 1)[None, :] <= rows[:, None]
    mean = (rows / (2 * low.shape[1]))[:, None]
    none = np.exp(-mean)
    now = np.zeros((cells, most + 1))
    now[:, 0] = 1.0
    for part in range(low.shape[1]):
        moved = np.maximum(high[:, part, None] - references, references - low[:, part, None])
        tilt = np.where(alive, np.exp(theta * price.of_distance(moved, widths[:, None])) * mean, 0.0)
        now = _one_part(now, tilt) * none
    return now


def _one_part(now: Array, tilt: Array) -> Array:
    """sum over c of A^c/c! on `now`, A one more draw: the first terms as they are, all later ones by A^i/(c+1)^i."""
    import numpy as np

    total, term = np.zeros_like(now), now
    # From there on the geometric series has ratios of at most 1 and stays within the floats.
    first = min(tilt.shape[1], max(_TERMS, math.ceil(min(float(np.max(tilt)), tilt.shape[1]))))
    for c in range(1, first + 1):
        total += term
        moved = np.zeros_like(term)
        np.multiply(term[:, :-1], tilt, out=moved[:, 1:])
        term = moved / c
    return total + _geometric(term, tilt / (first + 1))


def _geometric(term: Array, ratio: Array) -> Array:
    """sum over i of (one more draw)^i: x(N) = term(N) + ratio(N) x(N-1), by twice as many draws at each step."""
    import numpy as np

    x, product, step = term.copy(), np.zeros_like(term), 1
    product[:, 1:] = ratio
    while step < term.shape[1]:
        x[:, step:] += product[:, step:] * x[:, :-step]
        product[:, step:] *= product[:, :-step].copy()
        step *= 2
    return x


def _by_massart(cell: SortedCell, theta: float, shift: float, price: _Price) -> float:
    """log E e^(theta B(y)) against the tail of y, in logarithms: y is never above 1."""
    import numpy as np
    from scipy.special import logsumexp

    far = _far(cell.rows)
    tail = massart_log_tail(far[:-1], cell.rows)
    # Mass between two places; all that is left at the last one. B is taken at the upper place.
    mass = tail + np.log(-np.expm1(np.append(tail[1:], -math.inf) - tail))
    return float(logsumexp(theta * SUMMED_UP * _array(_massart_bounds(cell, shift, price)) + mass)) + math.log(SOLVED_UP)


def _far(m: int) -> Array:
    """Places of y, from where the tail is 1."""
    import numpy as np

    return np.append(np.arange(math.sqrt(math.log(2) / 2), math.sqrt(m), _STEP) / math.sqrt(m), 1.0)


@lru_cache(maxsize=256)
def _massart_bounds(cell: SortedCell, shift: float, price: _Price) -> tuple[float, ...]:
    """B at the upper end of each step of y; it does not depend on theta."""
    import numpy as np

    m, references = cell.rows, cell.references - cell.low
    k = np.arange(1, m + 1, dtype=np.float64)
    found = []
    for y in (float(y) + shift for y in _far(m)[1:]):
        low, high = _places(cell, k / m - y, upper=False), _places(cell, (k - 1) / m + y, upper=True)
        moved = np.maximum(high - references, references - low)
        found.append(math.fsum(price.of_distance(moved, cell.width)))
    return tuple(found)


def massart_log_tail(distance: Array, m: int) -> Array:
    """log of Massart's bound on P(sup |F_m - F| > distance).

    >>> import numpy as np
    >>> round(float(massart_log_tail(np.array([0.5]), 10)[0]), 6) == round(math.log(2) - 5, 6)
    True
    """
    import numpy as np

    return np.minimum(0.0, math.log(2) - 2 * m * distance * distance)


def _array(values: Sequence[float]) -> Array:
    import numpy as np

    return np.asarray(values, dtype=np.float64)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise UsageError("displacement: the cells are so wide that it leaves the range of floats.")
    return value


def _require(failure: float, shift: float) -> None:
    if not 0 < failure < 1:
        raise UsageError(f"failure: must be above 0 and below 1. Got {failure}.")
    if not 0 <= shift <= 1:
        raise UsageError(f"shift: must be from 0 to 1. Got {shift}.")
