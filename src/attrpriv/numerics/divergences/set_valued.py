"""The hockey-stick divergence of set-valued secrets: what an output tells about "g is in U_a" against "g is in U_b".

    g ~ N(0, 1),   W = rho g + sqrt(v) N,   v = 1 - rho^2 + sigma^2,   lam = |rho| / sqrt(v)
    H_eps(a || b) = integral of (f_a - e^eps f_b)_+,    f_U the exact law of W/sqrt(v) given g in U (`mixture`)

Never by a difference of means: |g| < 1 and |g| >= 1 have equal means and H_1 = 0.43 at rho = 0.9. Only lam matters, and H
increases with it (more noise is post-processing).

How the upper bound is proved. On the ranges that hold all but 1e-29 of f_a, the integrand is integrated between the points
where f_a = e^eps f_b, by Gauss-Legendre panels whose error has the classical bound for analytic integrands on an ellipse.
Added upwards: that bound, the mass left out, the rounding of every density, the width to which each crossing is known, and
what an unseen pair of crossings could contribute. None can be unseen when as many sign changes are seen as the sets alternate
along the line, because the normal kernel is totally positive (variation diminishing, Karlin 1968, key `karlin1968total`).
Otherwise the grid is refined until the convexity of log f + w^2/2 rules them out, or bounds what they add.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.gaussian import gaussian_delta_upper
from attrpriv.numerics.divergences.mixture import SetLaw, anchor_of, gauss_legendre, log_size, set_law
from attrpriv.numerics.rounding import ULP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.numerics.laws.intervals import IntervalUnion

    Array = NDArray[np.float64]

_MASS_LEFT_OUT = 1e-29
# Panels of half-width at most 1/2 and the ellipse with parameter 4: half-axes 2.125 and 1.875 half-widths.
_PANEL, _NODES, _ELLIPSE = 1.0, 24, 4.0
_LARGEST_LAM, _LARGEST_EPSILON = 1e3, 600.0
# Refining ends here, with what is then still open added: laws that are nearly equal at epsilon 0 would go on for ever.
_ROUNDS, _MOST_PANELS = 60, 4000


@dataclass(frozen=True)
class SetDivergence:
    """H of two sets: the best float, an upper bound that is never below the truth, and where the likelihood ratio crosses.

    `value` is the float, `upper` the bound. Made by `set_valued_hockey_stick`.

    `crossings` are outputs in units of sqrt(v); `counted` says that they are all there can be (else what unseen ones could add
    is in `upper`). Above lam = 1000 both numbers are the pointwise rule's bound.
    """

    value: float
    upper: float
    crossings: tuple[float, ...]
    counted: bool


def set_valued_hockey_stick(a: IntervalUnion, b: IntervalUnion, rho: float, variance: float, epsilon: float) -> SetDivergence:
    """H_epsilon(W given g in a || W given g in b) for standardised sets; `variance` is sigma^2 in units of V_jj/n.

    `a` and `b` are the sets, `rho` is the correlation of the answer with g, `epsilon` the promise.

    >>> from attrpriv.numerics.laws import parse_case
    >>> round(set_valued_hockey_stick(parse_case("abs >= 1"), parse_case("abs < 1"), 0.9, 0.0, 1.0).upper, 6)
    0.428261
    """
    return mixture_hockey_stick(a, b, lam_of(rho, variance), epsilon)


def lam_of(rho: float, variance: float) -> float:
    """|rho|/sqrt(1 - rho^2 + variance), rounded up; infinite where nothing but g is released.

    `rho` is the correlation of the answer with g, `variance` the noise in units of V_jj/n.

    >>> round(lam_of(0.6, 0.0), 6), lam_of(1.0, 0.0)
    (0.75, inf)
    """
    if not (math.isfinite(rho) and abs(rho) <= 1):
        raise UsageError(f"rho: must be between -1 and 1. Got {rho}.")
    if not (math.isfinite(variance) and variance >= 0):
        raise UsageError(f"variance: must be finite and at least 0. Got {variance}.")
    rest = (1 - rho) * (1 + rho) + variance
    if rho == 0:
        return 0.0
    return abs(rho) / math.sqrt(rest) * (1 + 8 * ULP) if rest > 0 else math.inf


def pointwise_hockey_stick(gap: float, lam: float, epsilon: float) -> float:
    """The pointwise rule, rounded up: the sup of H over points of two sets that are at most `gap` apart.

    `epsilon` is the promise.

    By joint convexity it bounds H whatever the law of g is; `gap` and `lam` must be in the same unit of g.

    >>> round(pointwise_hockey_stick(2.0, 0.25, 1.0), 6)
    0.00683
    """
    if not gap >= 0 or not (math.isfinite(lam) and lam >= 0):
        raise UsageError(f"gap and lam: must be at least 0, lam finite. Got {gap}, {lam}.")
    if lam == 0:
        return 0.0
    return gaussian_delta_upper(epsilon, lam * gap * (1 + 4 * ULP)) if math.isfinite(lam * gap) else 1.0


def mixture_hockey_stick(a: IntervalUnion, b: IntervalUnion, lam: float, epsilon: float) -> SetDivergence:
    """The same for a given lam. `epsilon` may be negative (a covering argument needs it): the integral of the positive part.

    `a` and `b` are sets of standardised values of g; `lam` is how far one of g moves the answer, in its standard deviations.

    >>> from attrpriv.numerics.laws import parse_case
    >>> round(mixture_hockey_stick(parse_case("abs >= 1"), parse_case("abs < 1"), lam_of(0.9, 0.0), 1.0).upper, 6)
    0.428261
    """
    if not abs(epsilon) <= _LARGEST_EPSILON:
        raise UsageError(f"epsilon: must be finite and at most {_LARGEST_EPSILON:g}. Got {epsilon}.")
    if not lam >= 0:
        raise UsageError(f"lam: must be at least 0. Got {lam}.")
    if lam > _LARGEST_LAM:
        # More panels than are worth it: the two laws overlap at most where the sets nearly touch.
        bound = pointwise_hockey_stick(a.gap(b), lam, epsilon) if epsilon >= 0 and math.isfinite(lam) else 1.0
        return SetDivergence(bound, bound, (), False)
    reference = anchor_of(max(a.parts, key=lambda part: -(anchor_of(part) ** 2) / 2 + log_size(part)))
    pair = _Pair(set_law(a, lam, reference), set_law(b, lam, reference), epsilon)
    grid, counted = _settled(pair, _first_grid(pair.a), _alternations(a, b))
    value, upper = _integrated(pair, grid)
    upper += _MASS_LEFT_OUT + (0.0 if counted else float(_unseen(pair, grid).sum()))
    crossings = tuple(float(x) + lam * reference for x in grid.roots)
    return SetDivergence(min(1.0, max(0.0, value)), min(1.0, upper * (1 + 64 * ULP)), crossings, counted)


@dataclass(frozen=True)
class _Pair:
    """The two laws and epsilon."""

    a: SetLaw
    b: SetLaw
    epsilon: float

    def excess(self, y: Array) -> tuple[Array, Array]:
        """log f_a - log f_b - epsilon, and a bound on its error."""
        (log_a, error_a), (log_b, error_b) = self.a.log_density(y), self.b.log_density(y)
        return log_a - log_b - self.epsilon, error_a + error_b + 2 * ULP * abs(self.epsilon)


@dataclass(frozen=True)
class _Panels:
    """Intervals of outputs on each of which f_a - e^eps f_b is taken to have one sign."""

    left: Array
    right: Array
    positive: NDArray[np.bool_]


@dataclass(frozen=True)
class _Grid(_Panels):
    """Panels cut at the crossings seen. The narrow brackets around these count as negative, with what that may miss added."""

    bracketed: _Panels
    changes: int  # sign changes between the edges
    known: bool  # whether the signs at all edges are beyond rounding

    @property
    def roots(self) -> Array:
        middles: Array = (self.bracketed.left + self.bracketed.right) / 2
        return middles


def _first_grid(law: SetLaw) -> list[Array]:
    """Edges of panels of width at most 1 on every range that matters."""
    import numpy as np

    return [np.linspace(low, high, max(2, math.ceil((high - low) / _PANEL) + 1)) for low, high in law.ranges()]


def _settled(pair: _Pair, edges: list[Array], alternations: int) -> tuple[_Grid, bool]:
    """Refine the grid until no crossing can be unseen, or until what could be is negligible."""
    import numpy as np

    grid, negligible = _cut(pair, edges), 0.0
    for _ in range(_ROUNDS):
        # Between points of known sign unseen crossings come in pairs.
        if grid.known and alternations - grid.changes <= 1:
            return grid, True
        negligible = negligible or 1e-13 * max(1e-17, _integrated(pair, grid)[0])
        doubtful = _unseen(pair, grid, by_curvature=True) > negligible / len(grid.left)
        if not doubtful.any() or len(grid.left) > _MOST_PANELS:
            break
        middles = (grid.left[doubtful] + grid.right[doubtful]) / 2
        edges = [np.union1d(e, middles[(middles > e[0]) & (middles < e[-1])]) for e in edges]
        grid = _cut(pair, edges)
    return grid, False


def _alternations(a: IntervalUnion, b: IntervalUnion) -> int:
    """How often one meets the other set when walking along the line; for sets that overlap, a number never reached."""
    if a.overlaps(b):
        return 10**9
    labels = [label for _, label in sorted([(part.low, 0) for part in a.parts] + [(part.low, 1) for part in b.parts])]
    return sum(first != second for first, second in itertools.pairwise(labels))


def _cut(pair: _Pair, edges: list[Array]) -> _Grid:
    """The panels between the edges, those with a sign change cut at the crossing."""
    import numpy as np

    excess = [pair.excess(e) for e in edges]
    signs = np.concatenate([np.sign(np.where(np.abs(d) > error, d, 0.0)) for d, error in excess])
    left, right = (np.concatenate(ends) for ends in ([e[:-1] for e in edges], [e[1:] for e in edges]))
    at_left, at_right = (np.concatenate(ends) for ends in ([d[:-1] for d, _ in excess], [d[1:] for d, _ in excess]))
    crossed = (at_left > 0) != (at_right > 0)
    low, high = _brackets(pair, left[crossed], right[crossed], at_left[crossed] > 0)
    return _Grid(
        np.concatenate([left[~crossed], left[crossed], high]),
        np.concatenate([right[~crossed], low, right[crossed]]),
        np.concatenate([at_left[~crossed] > 0, at_left[crossed] > 0, at_right[crossed] > 0]),
        _Panels(low, high, np.zeros(len(low), dtype=np.bool_)),
        int(np.count_nonzero(signs[1:] != signs[:-1])),
        bool((signs != 0).all()),
    )


def _brackets(pair: _Pair, low: Array, high: Array, falling: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Brackets of one crossing each, of width about 1e-6, by a search on many points at once."""
    import numpy as np

    share = np.linspace(0.0, 1.0, 129)
    rows = np.arange(len(low))
    for _ in range(3 if len(low) else 0):
        points = low[:, None] + (high - low)[:, None] * share
        points[:, -1] = high
        excess, _ = pair.excess(points)
        # The first point that has the sign of the right end; the point before it has the other.
        after = np.argmax((excess[:, 1:] > 0) != falling[:, None], axis=1) + 1
        after[((excess[:, 1:] > 0) == falling[:, None]).all(axis=1)] = len(share) - 1
        low, high = points[rows, after - 1], points[rows, after]
    return low, high


def _integrated(pair: _Pair, grid: _Grid) -> tuple[float, float]:
    """The integral of f_a - e^eps f_b over the panels taken as positive, and the same with every error added."""
    import numpy as np

    left, right = grid.left[grid.positive], grid.right[grid.positive]
    half, middle = (right - left) / 2, (left + right) / 2
    nodes, weights = gauss_legendre(_NODES)
    points = middle[:, None] + half[:, None] * nodes
    (log_a, error_a), (log_b, error_b) = pair.a.log_density(points), pair.b.log_density(points)
    density = np.exp(log_a)
    gain = -np.expm1(-np.maximum(log_a - log_b - pair.epsilon, -700.0)) * density
    doubt = 4 * (2 * error_a + error_b) + 8 * ULP * (8 + abs(pair.epsilon))
    value = float(half @ (gain @ weights))
    if doubt.max(initial=0.0) > 1:  # thresholds beyond what floats resolve: nothing is known but H <= 1
        return value, math.inf
    slack = density * np.expm1(doubt)
    upper = float(half @ ((gain + slack) @ weights)) + float((half * _ellipse_bound(pair, middle, half)).sum())
    if len(grid.bracketed.left):
        upper += float(_unseen(pair, grid.bracketed).sum())
    return value, upper


def _ellipse_bound(pair: _Pair, middle: Array, half: Array) -> Array:
    """The error of the Gauss-Legendre rule on [-1, 1]: 64/15 M r^(-2n)/(1 - r^-2), M the largest modulus on the ellipse."""
    import numpy as np

    across, up = (_ELLIPSE + 1 / _ELLIPSE) / 2, (_ELLIPSE - 1 / _ELLIPSE) / 2
    ends = middle - across * half, middle + across * half
    factor = 64 / 15 * _ELLIPSE ** (-2 * _NODES) / (1 - _ELLIPSE**-2)
    largest = _largest_density(pair.a, *ends) + math.exp(pair.epsilon) * _largest_density(pair.b, *ends)
    bound: Array = factor * np.exp((up * half) ** 2 / 2) * largest
    return bound


def _largest_density(law: SetLaw, left: Array, right: Array) -> Array:
    """An upper bound on f between two points: log f + (w - middle)^2/2 is convex, so it is largest at an end."""
    import numpy as np

    at_ends, error = law.log_density(np.stack([left, right]))
    bound: Array = np.exp((at_ends + error).max(axis=0) + ((right - left) / 2) ** 2 / 2)
    return bound


def _unseen(pair: _Pair, panels: _Panels, *, by_curvature: bool = False) -> Array:
    """For each panel, at most how much a pair of crossings inside it could add to the integral of the positive part.

    `by_curvature`: without what rounding alone leaves open, which no finer grid can settle.
    """
    import numpy as np

    mass = (panels.right - panels.left) * _largest_density(pair.a, panels.left, panels.right)
    highest, rounding = _highest(pair, panels)
    wrong = np.where(highest > rounding, highest, 0.0) if by_curvature else np.maximum(0.0, highest + rounding)
    wrong = np.minimum(wrong, 700.0)
    return mass * np.where(panels.positive, np.expm1(wrong), -np.expm1(-wrong))


def _highest(pair: _Pair, panels: _Panels) -> tuple[Array, Array]:
    """An upper bound on the excess of the wrong sign inside each panel, and what its rounding can have taken away.

    With F = log f + w^2/2 convex: below its chord on the panel, above the chords of the two neighbouring intervals continued
    into it. So F_a - F_b (or F_b - F_a where the panel is positive) is below the least of two linear functions.
    """
    import numpy as np

    width = panels.right - panels.left
    points = np.stack([panels.left - width, panels.left, panels.right, panels.right + width])
    (log_a, error_a), (log_b, error_b) = pair.a.log_density(points), pair.b.log_density(points)
    # w^2/2 seen from the middle, which changes F by something linear only.
    bowl = np.array([9.0, 1.0, 1.0, 9.0])[:, None] * width**2 / 8
    above, below = np.where(panels.positive, log_b, log_a) + bowl, np.where(panels.positive, log_a, log_b) + bowl
    over = np.where(panels.positive, -pair.epsilon, pair.epsilon)
    first = np.stack([above[1] - below[1], above[2] - (2 * below[1] - below[0])]) - over
    second = np.stack([above[1] - (2 * below[2] - below[3]), above[2] - below[2]]) - over
    return _highest_of_least(first, second), 8 * ((error_a + error_b).max(axis=0) + ULP * abs(pair.epsilon))


def _highest_of_least(first: Array, second: Array) -> Array:
    """max over t in [0, 1] of the lesser of two linear functions, given by their values at 0 and 1."""
    import numpy as np

    at_ends = np.maximum(np.minimum(first[0], second[0]), np.minimum(first[1], second[1]))
    start, end = first[0] - second[0], first[1] - second[1]
    meet = start * end < 0
    t = np.where(meet, start / np.where(meet, start - end, 1.0), 0.0)
    highest: Array = np.where(meet, np.maximum(at_ends, first[0] + t * (first[1] - first[0])), at_ends)
    return highest
