"""How alike the outputs of two tables look when what their counts tell of several averages is taken back beyond a ball.

    F' = F - Y + h(Y) + noise,     Y = sum over c of n_c m_c/n - centre,     h(Y) the point of |y| <= reach nearest to Y

in the norm |y|^2 = y' metric^-1 y, so that h moves no further than Y does, and by 2 reach at most. Two ways to bound H:

*Equalised* (`ball_delta`): the noise brings every table to one covariance T. Distance, in the norm of T, at most
stretch min(2 reach, |told|) + |untold|, stretch^2 = largest eigenvalue of metric against T.

*Direct* (`path_delta`): one category on each side, means exact. A table with a = low + x (high - low) rows inside has
covariance V(x) = E + x N, E that of the low end with all noise, N = N+ - N- whatever the noise left of the difference. For
x < x' = x + y put C = E - N-:

    V(x)  = (C + y N-) + R,      V(x') = (C + y N+) + R,      R = x N+ + (1 - x') N-  semidefinite,

so the pair (C + y N-, C + y N+) is at least as easy to tell apart. With d = y (high - low) rows between them the means differ
by at most min(t, d) times b = (m_1 - m_0)/n, t = 2 reach/|b|. Only d = 1, 2, .. is left to try, and many at once:

    (s b; C + y N-, C + y N+)   dominates   (sqrt(q) s b; C + q y N-, C + q y N+)   for 0 < q <= 1

(shrink both by sqrt(q), add N(0, (1 - q) C)), and H grows with s (`divergences.vector_loss`). So d <= t is covered by the
largest such d, and a run of d from lo to hi by the pair of hi at the distance min(t, hi) sqrt(hi/lo).

What must never change: both directions; every d up to `apart` is in a run; what rounding leaves of N+ - N- is charged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.numerics.divergences.gaussian import gaussian_delta_upper
from attrpriv.numerics.divergences.groups import Between, coupled_upper
from attrpriv.numerics.divergences.vector_loss import LossLaw, loss_law
from attrpriv.numerics.laws.groups import Vector, VectorCase
from attrpriv.numerics.rounding import COMPUTED_UP, ULP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

# Rows that are tried one by one, and how long a run of others may be.
_SINGLE = 48
_RUN = 1.06


@dataclass(frozen=True, eq=False)
class Ball:
    """What may still show: the radius, and the matrix of the norm it is measured in."""

    reach: float
    metric: Matrix

    def norm(self, vectors: Matrix) -> Matrix:
        """The length of each row, to a relative 1e-9 where the metric can be inverted at all."""
        import numpy as np

        unit = np.sqrt(np.diag(self.metric))
        root = np.linalg.cholesky(self.metric / np.outer(unit, unit))
        return np.asarray(np.linalg.norm(np.linalg.solve(root, (vectors / unit).T), axis=0))


Delta = Callable[[float], float]


def told_apart(epsilon: float) -> float:
    """What holds where nothing can be proved."""
    return 1.0


def ball_delta(
    case: VectorCase, total: Matrix, off: float, ball: Ball, between: Between | None = None, beyond: float = 0.0
) -> Delta:
    """Every table has covariance `total`, up to `off` in Frobenius norm once whitened: H of all pairs by epsilon, from above.

    `beyond`: by which share the true differences of means exceed the stated ones, outside of the promise.
    """
    import numpy as np

    found = whitened(total)
    if found is None or not off + found[1] <= 0.5:
        return told_apart
    whiten, rounding = found
    stretch = math.sqrt(float(np.linalg.eigvalsh(whiten @ ball.metric @ whiten.T)[-1]) + rounding)
    shifts = np.array(case.told())
    told = float(ball.norm(shifts).max())
    untold = max(float(np.linalg.norm(whiten @ np.array(corner))) for corner in case.untold())
    untold += beyond * float(np.linalg.norm(whiten @ shifts.T, axis=0).max())

    def distance(rows: int) -> float:
        share = rows / case.apart
        return (stretch * min(2 * ball.reach, told * share) + untold * share) * (1 + 2e-9 + rounding)

    distances = (case.apart,) if between is None else between.marks(case.apart)

    def upper(epsilon: float) -> float:
        close = coupled_upper(between, ((rows, gaussian_delta_upper(epsilon, distance(rows))) for rows in distances))
        return min(1.0, (close + (1 + math.exp(epsilon)) * (off + rounding) / 2) * COMPUTED_UP)

    return upper


def path_delta(
    case: VectorCase,
    low: Matrix,
    high: Matrix,
    ball: Ball,
    between: Between | None = None,
    beyond: float = 0.0,
    aside: Vector | None = None,
    runs: Sequence[tuple[int, int]] | None = None,
) -> Delta:
    """Tables at the two ends of the range have covariances `low` and `high`, others in between: H by epsilon, from above.

    `aside`: what the centre has besides the line of the two means; it is charged, or nothing is proved where it is more than
    rounding. `runs`: only these distances, for a search; then it is no bound.
    """
    import numpy as np

    if len(case.members) != 1 or len(case.rest) != 1 or case.mean_tolerance:
        return told_apart
    unit = np.sqrt(np.diag(low))
    step = high - low
    values, vectors = np.linalg.eigh(step / np.outer(unit, unit))
    up, down = ((vectors * np.maximum(0.0, sign * values)) @ vectors.T * np.outer(unit, unit) for sign in (1, -1))
    base = low - down
    found = whitened(base)
    if found is None:
        return told_apart
    whiten, rounding = found
    off = 0.0 if aside is None else float(np.linalg.norm(whiten @ np.array(aside))) * (1 + rounding)
    error = float(np.linalg.norm(whiten @ (step - up + down) @ whiten.T)) + 2 * rounding + off
    if not error <= 0.25:
        return told_apart
    row = np.array(case.told()[0]) / case.apart
    length = float(ball.norm(row[None, :])[0])
    most = 2 * (ball.reach + off) / length * (1 + 2e-9) if length > 0 else math.inf
    more = 2 * off / length if length > 0 else 0.0

    def laws(first: int, last: int) -> tuple[LossLaw, LossLaw]:
        share = last / (case.high - case.low)
        moved = row * ((min(most, last) + more + beyond * last) * math.sqrt(last / first) * COMPUTED_UP)
        pair = base + share * down, base + share * up
        return loss_law(moved, *pair), loss_law(moved, *pair[::-1])

    tried = [(last, laws(first, last)) for first, last in runs or runs_of(most, case.apart, between)]

    def upper(epsilon: float) -> float:
        close = coupled_upper(between, ((last, max(law.upper(epsilon) for law in both)) for last, both in tried))
        return min(1.0, (close + (1 + math.exp(epsilon)) * error / 2) * COMPUTED_UP)

    return upper


def runs_of(most: float, apart: int, between: Between | None = None) -> Iterator[tuple[int, int]]:
    """First and last d of each run. The largest d within the clamp stands for all smaller ones, unless their chances count.

    >>> list(runs_of(3.5, 6))
    [(3, 3), (4, 4), (5, 5), (6, 6)]
    >>> list(runs_of(0.5, 1000))[-1][1]
    1000
    """
    first = max(1, min(apart, math.floor(min(most, apart))))
    if between is not None:
        first = min(first, between.marks(apart)[0])
    single = first + _SINGLE
    while first <= apart:
        last = first if first < single else min(apart, max(first, math.floor(first * _RUN)))
        yield first, last
        first = last + 1


def whitened(total: Matrix) -> tuple[Matrix, float] | None:
    """W with W total W' = 1, and how far rounding may have moved what it is applied to; None where there is no inverse."""
    import numpy as np

    diagonal = np.diag(total)
    if not (np.isfinite(total).all() and (diagonal > 0).all()):
        return None
    unit = np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(total / np.outer(unit, unit))
    if not values[0] > 1e-12 * len(unit):
        return None
    return (vectors / np.sqrt(values)).T / unit, 64 * len(unit) ** 2 * ULP / float(values[0])
