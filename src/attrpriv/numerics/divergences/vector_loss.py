"""The hockey-stick divergence of two normal laws of several values whose covariances differ, from above.

    H_eps(P || Q) = E_P (1 - e^(eps - l))_+,      l = log p/q,      P = N(d, A),  Q = N(0, B)

Coordinates are chosen in which B is the identity and A is diagonal, r_1 .. r_k. They are independent under P and under Q, so l
is a sum of independent parts

    l_i(z) = z^2/2 - (z - d_i)^2/(2 r_i) - log(r_i)/2,      z ~ N(d_i, r_i) under P and N(0, 1) under Q,

and its law is a convolution. Each part is moved to a grid of step h on the private side: a cell between two grid points, of
mass p under P and q under Q, gives its mass to the two points such that E e^-l stays q. As (1 - e^eps u u')_+ is convex in u =
e^-l_i, this can only raise H, by a term of second order in h. Mass below the grid is moved up to its first point; mass above it
counts as told apart.

*Monotone.* H = 1 - integral of min(p, e^eps q), and that is the integral over t of the volume that two ellipsoids, {p > t} and
{e^eps q > t}, share. The volume that a symmetric convex body shares with another one, moved by s, is log-concave and even in s
(Brunn-Minkowski; Anderson's argument). So H grows along every ray d, 2d, ..., and with every |d_i| in these coordinates.

What must never change: p is rounded up and q down, cell by cell; what the change of coordinates is off by is measured and
charged as total variation; the convolution adds positive numbers only, so that its error is relative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import AIMED_UP, COMPUTED_UP, ULP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# Mass beyond this many standard deviations is below 1e-21 and is counted as told apart, or moved up.
_TAIL = 9.6
# Losses below this are moved up to it.
_LEAST_LOSS = -60.0
_MOST_CELLS = 6000
# The step, in standard deviations of the loss, and how far the ends of a cell may be off by rounding.
_STEP = 1 / 32
_MOST_STEP = 0.5
_END = 1e-10


@dataclass(frozen=True, eq=False)
class LossLaw:
    """An upper law of the privacy loss: masses on the grid start, start + 1, .. of this step, and what comes on top."""

    start: int
    masses: Array
    step: float
    parts: int
    lost: float
    off: float

    def upper(self, epsilon: float) -> float:
        """H_epsilon, from above."""
        import numpy as np

        if not (math.isfinite(epsilon) and 0 <= epsilon <= 600):
            raise UsageError(f"epsilon: must be from 0 to 600. Got {epsilon}.")
        losses = (self.start + np.arange(len(self.masses))) * self.step
        kept = -np.expm1(np.minimum(0.0, epsilon - 2 * self.parts * _END - losses))
        total = float((self.masses * kept).sum()) * AIMED_UP + self.lost
        return min(1.0, total + self.off / 2 * (1 + math.exp(epsilon)) + 1e-18)


def loss_law(shift: Array, first: Array, second: Array) -> LossLaw:
    """The loss of N(shift, first) against N(0, second); told apart where rounding is too much for a proof."""
    import numpy as np

    if not (np.isfinite(shift).all() and np.isfinite(first).all() and np.isfinite(second).all()):
        raise UsageError("laws: needs finite means and covariances.")
    found = _coordinates(shift, first, second)
    if found is None:
        return LossLaw(0, np.zeros(1), 1.0, 0, 1.0, 0.0)
    moves, ratios, off = found
    told = [(d, r) for d, r in zip(moves.tolist(), ratios.tolist(), strict=True) if d or r != 1.0]
    if not told:
        return LossLaw(0, np.ones(1), 1.0, 0, 0.0, off)
    step = _step(told)
    if step is None:
        return LossLaw(0, np.zeros(1), 1.0, 0, 1.0, off)
    start, masses, lost = _convolved(told, step)
    return LossLaw(start, masses, step, len(told), lost, off)


def vector_hockey_upper(shift: Array, first: Array, second: Array, epsilon: float) -> float:
    """H_epsilon(N(shift, first) || N(0, second)), from above.

    >>> import numpy as np
    >>> from attrpriv.numerics.divergences import hockey_stick
    >>> from attrpriv.numerics.laws import GaussianLaw
    >>> exact = hockey_stick(GaussianLaw(1.0, 2.0), GaussianLaw(0.0, 1.0), 1.0)
    >>> found = vector_hockey_upper(np.array([1.0]), np.array([[2.0]]), np.array([[1.0]]), 1.0)
    >>> exact <= found <= exact * 1.001
    True
    """
    return loss_law(shift, first, second).upper(epsilon)


def _coordinates(shift: Array, first: Array, second: Array) -> tuple[Array, Array, float] | None:
    """d_i and r_i, and how far off they may be, in Frobenius norm; None where that is too much to be charged."""
    import numpy as np

    unit = np.sqrt(np.diag(second))
    if not (unit > 0).all():
        return None
    values, vectors = np.linalg.eigh(second / np.outer(unit, unit))
    if not values[0] > 1e-12 * len(unit):
        return None
    whiten = (vectors / np.sqrt(values)).T / unit
    made = whiten @ first @ whiten.T
    ratios, turn = np.linalg.eigh((made + made.T) / 2)
    if not ratios[0] > 1e-9:
        return None
    to = turn.T @ whiten
    scale = np.sqrt(ratios)
    own = float(np.linalg.norm(to @ second @ to.T - np.eye(len(unit))))
    other = float(np.linalg.norm((to @ first @ to.T - np.diag(ratios)) / np.outer(scale, scale)))
    rounding = 64 * len(unit) ** 2 * ULP / float(values[0]) * max(1.0, 1 / float(ratios[0])) * (1 + float(ratios[-1]))
    off = own + other + rounding
    if not off <= 0.25:
        return None
    moves = np.abs(to @ shift) + 1e-12 * (np.abs(to) @ np.abs(shift))
    # A ratio this near to one is one, and so small a move is none, up to what is charged.
    near, still = np.abs(ratios - 1) < 1e-13, moves < 1e-13
    off += float(near.sum() + still.sum() * max(1.0, 1 / float(scale[0]))) * 1e-13
    return np.where(still, 0.0, moves), np.where(near, 1.0, ratios), off


def _step(told: list[tuple[float, float]]) -> float | None:
    """A power of two: a small part of the loss's standard deviation, not so small that there are too many cells."""
    step = math.sqrt(sum((r - 1) ** 2 / 2 + r * d * d for d, r in told)) * _STEP
    widest = max(high - low for low, high in (_ends(d, r) for d, r in told))
    if not (math.isfinite(step) and step > 0 and math.isfinite(widest)):
        return None
    step = max(step, widest / _MOST_CELLS)
    return math.ldexp(1.0, math.ceil(math.log2(step))) if step <= _MOST_STEP else None


def _loss(z: float, d: float, r: float) -> float:
    """l_i, with the squares multiplied out so that nothing cancels near r = 1."""
    return (z * z * (r - 1) + 2 * z * d - d * d) / (2 * r) - math.log1p(r - 1) / 2


def _ends(d: float, r: float) -> tuple[float, float]:
    """The least and the largest loss within `_TAIL` standard deviations of P."""
    sd = math.sqrt(r)
    at = [d - _TAIL * sd, d + _TAIL * sd]
    if r != 1.0 and at[0] < -d / (r - 1) < at[1]:
        at.append(-d / (r - 1))
    losses = [_loss(z, d, r) for z in at]
    return max(_LEAST_LOSS, min(losses)), max(losses)


def _convolved(told: list[tuple[float, float]], step: float) -> tuple[int, Array, float]:
    """The law of the sum: its first grid point, its masses, and the mass that counts as told apart."""
    import numpy as np

    start, masses, lost = 0, np.ones(1), 0.0
    for d, r in told:
        first, part, gone = _moved(d, r, step)
        start += first
        masses = np.convolve(masses, part)
        lost += gone
    return start, masses, lost * COMPUTED_UP


def _moved(d: float, r: float, step: float) -> tuple[int, Array, float]:
    """One part's law on the grid: mass p of each cell shared by its two ends such that E e^-l is not above q."""
    import numpy as np

    low, high = _ends(d, r)
    first, last = math.floor(low / step), math.ceil(high / step)
    points = np.arange(first, last + 1, dtype=np.float64) * step
    inside, ends = _roots(points, d, r)
    p = _cells([(end - d) / math.sqrt(r) for end in ends], inside, [_fuzz(end, d, r) for end in ends], 1)
    q = _cells(list(ends), inside, [np.zeros(len(points))] * 2, -1)
    # Cells: below the first point, between two points, above the last one.
    inner, weight = p[1:-1], q[1:-1] * np.exp(np.minimum(700.0, points[:-1]))
    upper = np.clip((inner - weight + 4e-12 * inner) / -math.expm1(-step), 0.0, inner)
    masses = np.zeros(len(points))
    masses[1:] += upper
    masses[:-1] += inner - upper
    masses[0] += p[0]
    return first, masses, float(p[-1])


def _fuzz(end: Array, d: float, r: float) -> Array:
    """By how much (end - d)/sqrt(r) may be off."""
    import numpy as np

    finite = np.where(np.isfinite(end), np.abs(end), 0.0)
    return 4 * ULP * (finite + d) / math.sqrt(r)


def _roots(points: Array, d: float, r: float) -> tuple[bool, tuple[Array, Array]]:
    """Where l = t for each t, lower end first; and whether l <= t between the two (else outside of them).

    With a = (r - 1)/r and c = t + log(r)/2 + d^2/(2 r) they are the roots of a z^2/2 + (d/r) z - c. Where there are none,
    nothing or everything is that small: both ends are where l turns.
    """
    import numpy as np

    a, b = (r - 1) / r, d / r
    c = points + math.log1p(r - 1) / 2 + d * d / (2 * r)
    disc = b * b + 2 * a * c
    big = b + np.sqrt(np.maximum(0.0, disc))
    near = 2 * c / np.where(disc > 0, big, 1.0)
    if a == 0:
        return True, (np.full_like(near, -np.inf), near)
    none, turn = disc <= 0, -b / a
    near, far = np.where(none, turn, near), np.where(none, turn, -big / a)
    return (True, (far, near)) if a > 0 else (False, (near, far))


def _cells(ends: list[Array], inside: bool, fuzz: list[Array], side: int) -> Array:
    """The normal mass of {l <= first}, of each cell between two points and of {l > last}, from above (side 1) or below (-1)."""
    import numpy as np

    # {l <= t} is [left, right] and grows with t, or {l > t} is (left, right) and shrinks with t.
    falling, rising = (0, 1) if inside else (1, 0)
    steps = _between(ends[falling][1:], ends[falling][:-1], fuzz[falling], side)
    steps = steps + _between(ends[rising][:-1], ends[rising][1:], fuzz[rising], side)
    slack = [max(float(f[0]), float(f[-1])) for f in fuzz]
    wide = np.array([max(slack)] * 2)
    first, last = ((ends[0][k : k + 1 or None], ends[1][k : k + 1 or None]) for k in (0, -1))
    infinity = np.array([np.inf])

    def within(pair: tuple[Array, Array]) -> Array:
        return _between(pair[0], pair[1], wide, side)

    def beyond(pair: tuple[Array, Array]) -> Array:
        return _between(-infinity, pair[0], wide, side) + _between(pair[1], infinity, wide, side)

    ordered = (within(first), beyond(last)) if inside else (beyond(first), within(last))
    return np.concatenate([ordered[0], steps, ordered[1]])


def _between(low: Array, high: Array, fuzz: Array, side: int) -> Array:
    """P(low < Z < high), from the tail where it is smaller, moved by all rounding to the given side; 0 where low >= high."""
    import numpy as np
    from scipy.special import ndtr

    mirrored = low + high > 0
    near, far = np.where(mirrored, -low, high), np.where(mirrored, -high, low)
    outer, inner = ndtr(near), ndtr(far)
    # The rounding of an end moves its mass by the density there, which is below (1 + |z|) times the tail.
    size = np.where(np.isfinite(near), np.abs(near), 0.0)
    ends = np.maximum(fuzz[:-1], fuzz[1:]) + 4 * ULP * size
    slack = outer * (64 * ULP + 4 * ends * (1 + size))
    return np.asarray(np.where(high > low, np.maximum(0.0, outer - inner + side * slack), 0.0), dtype=np.float64)
