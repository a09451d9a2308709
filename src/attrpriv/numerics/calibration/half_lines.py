"""H of two ordered laws with whole-number noise, by one half-line: for laws so wide that a convolution takes long.

    P, Q with P(k)/Q(k) increasing, Z log-concave:      p(t) = P(X + Z = t),   A(t) = P(X + Z >= t),   b, B the same of Q
    r(t) = p(t)/b(t) is increasing, so that H_eps(P * Z || Q * Z) = sup over t of A(t) - e^eps B(t), and

    r(s) <= e^eps <= r(u)   gives   H <= A(s) - e^eps B(s) + (e^eps - r(s)) (B(s) - B(u))        for every s < u

Going down from s, no p - e^eps b that is added is positive; going up from s, no e^eps b - p that is added is larger than
(e^eps - r(s)) b, and from u on none is positive. Any s and u will do, also u = infinity; near the crossing of r and e^eps the
last term is small. The other direction is the same for -X and -Y.

| symbol | here |
|---|---|
| P, Q | `larger`, `smaller`, each known up to its `error` and `lost` (`numerics.laws.lattice_law`) |
| Z | `WholeNoise`: closed forms of P(Z = k) and P(Z >= k), true up to a share `error` |

Discrete Gaussian noise of sigma >= 1000, g its density up to a factor: the sum of g over all whole numbers is sigma sqrt(2 pi),
up to a share below e^-1e6, and that over k >= x, at x = z sigma >= 0, is by Euler and Maclaurin

    int_x^inf g + g(x)/2 - g'(x)/12 + g'''(x)/720 + R,
    |R| <= 1/720 int_x^inf |g''''| <= ((z + 2)^4 + 6 (z + 2)^2 + 3)/(720 sigma^4) int_x^inf g,

because |g''''| <= (y^4 + 6 y^2 + 3) g/sigma^4 at y sigma, and the mean of y^4 given y >= z is at most (z + 2)^4.

What must never change: the value is an upper bound, wherever s is; what the laws and the closed forms may be off is charged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.lattice import LatticeLaw, discrete_gaussian, discrete_laplace
from attrpriv.numerics.rounding import COMPUTED_UP, SOLVED_UP, UNIT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# What the window of each law leaves out: far below any delta, and charged all the same.
TAIL = 1e-20
# From this sigma on the closed form of a Gaussian tail has ten digits or more.
_LEAST_SIGMA = 1000.0
# What masses so many scales from 0 add up to, at most.
_NOTHING = 1e-290
_FAR = {"laplace": 700.0, "gaussian": 40.0}
_STEPS = 60


@dataclass(frozen=True)
class WholeNoise:
    """Discrete Laplace or Gaussian noise of this scale."""

    kind: Literal["laplace", "gaussian"]
    scale: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise UsageError(f"scale: must be positive and finite; use noise 'none' for an exact release. Got {self.scale}.")

    @property
    def closed(self) -> bool:
        """Whether the closed forms are accurate enough."""
        return self.kind == "laplace" or self.scale >= _LEAST_SIGMA

    @property
    def reach(self) -> int:
        """What lies beyond it is less than TAIL."""
        wide = math.log(2 / TAIL) if self.kind == "laplace" else math.sqrt(2 * math.log(4 / TAIL))
        return math.ceil(self.scale * wide * COMPUTED_UP) + 1

    @property
    def most(self) -> float:
        """A bound on the largest mass."""
        most = math.tanh(0.5 / self.scale) if self.kind == "laplace" else 1 / (self.scale * math.sqrt(2 * math.pi))
        return most * SOLVED_UP

    def lattice(self) -> LatticeLaw:
        """Its masses."""
        return _lattice(self)

    def masses(self, at: Array) -> Array:
        """P(Z = k)."""
        import numpy as np

        z = np.abs(at) / self.scale
        if self.kind == "laplace":
            return np.asarray(math.tanh(0.5 / self.scale) * np.exp(-z), dtype=np.float64)
        return np.asarray(np.exp(-z * z / 2) / (self.scale * math.sqrt(2 * math.pi)), dtype=np.float64)

    def above(self, at: Array) -> Array:
        """P(Z >= k); Z is symmetric, so that those of k <= 0 are 1 - P(Z >= 1 - k)."""
        import numpy as np

        beyond = self._tail(np.where(at > 0, at, 1 - at))
        return np.where(at > 0, beyond, 1 - beyond)

    def _tail(self, at: Array) -> Array:
        import numpy as np
        from scipy.special import erfc

        z = at / self.scale
        if self.kind == "laplace":
            return np.asarray(np.exp(-z) / (1 + math.exp(-1 / self.scale)), dtype=np.float64)
        step = 1 / self.scale
        terms = step / 2 + step**2 * z / 12 + step**4 * z * (3 - z * z) / 720
        return np.asarray(erfc(z / math.sqrt(2)) / 2 + np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * terms, dtype=np.float64)

    def error(self, furthest: float) -> float:
        """How far masses and tails are off, as a share of themselves, up to this distance; beyond `_FAR` they are nothing."""
        z = min(furthest / self.scale, _FAR[self.kind])
        if self.kind == "laplace":
            return (64 + 8 * z) * UNIT
        remainder = ((z + 2) ** 4 + 6 * (z + 2) ** 2 + 3) / (720 * self.scale**4)
        return 2 * remainder + (256 + 16 * z * z) * UNIT


@lru_cache(maxsize=8)
def _lattice(noise: WholeNoise) -> LatticeLaw:
    make = discrete_laplace if noise.kind == "laplace" else discrete_gaussian
    return make(noise.scale, tail=TAIL)


def half_line_delta(larger: LatticeLaw, smaller: LatticeLaw, noise: WholeNoise, epsilon: float) -> float | None:
    """An upper bound on H with the noise added, the larger of both directions; None where no half-line is found.

    >>> from attrpriv.numerics.laws import binomial_sum
    >>> laws = binomial_sum(400, 0.5, 600, 0.25, tail=TAIL), binomial_sum(200, 0.5, 800, 0.25, tail=TAIL)
    >>> round(half_line_delta(*laws, WholeNoise("laplace", 40.0), 1.0) or 1.0, 6)
    0.086693
    """
    up = _one_way(larger, smaller, noise, epsilon)
    down = None if up is None else _one_way(smaller.mirrored(), larger.mirrored(), noise, epsilon)
    return None if up is None or down is None else max(up, down)


def _one_way(p: LatticeLaw, q: LatticeLaw, noise: WholeNoise, epsilon: float) -> float | None:
    pair = _Pair(p, q, noise, math.exp(min(epsilon, 700.0)))
    first = math.floor(q.mean)
    return pair.bound(pair.crossing(first)) if pair.ratio(first) <= 0 else None


@dataclass(frozen=True, eq=False)
class _Pair:
    """P and Q with the noise, at one place at a time; `grown` is e^eps."""

    p: LatticeLaw
    q: LatticeLaw
    noise: WholeNoise
    grown: float

    def ratio(self, t: int) -> float:
        """log r(t) - eps, from above: at most 0 where surely r(t) <= e^eps."""
        (_, top), (bottom, _) = self._masses(t)
        if not bottom > 0:
            return math.inf
        surely = top <= self.grown * (1 - 8 * UNIT) * bottom
        found = math.log(top / bottom) - math.log(self.grown)  # one quotient of all three could be 0
        return min(found, 0.0) if surely else max(found, UNIT)

    def crossing(self, low: int) -> int:
        """The last place, nearly, that is surely below; `low` is. log r is nearly a line, or an S (the Illinois rule)."""
        high = max(self.p.end, self.q.end) + self.noise.reach
        at_low, at_high, moved = self.ratio(low), self.ratio(high), 0
        if at_high <= 0:
            return high
        for _ in range(_STEPS):
            if high - low <= 1:
                break
            share = at_low / (at_low - at_high) if at_high < math.inf else 0.5
            middle = min(max(low + round((high - low) * share), low + 1), high - 1)
            found = self.ratio(middle)
            if found <= 0:
                low, at_low, at_high, moved = middle, found, at_high / (2 if moved > 0 else 1), 1
            else:
                high, at_high, at_low, moved = middle, found, at_low / (2 if moved < 0 else 1), -1
        return low

    def bound(self, s: int) -> float:
        """A(s) - e^eps B(s) + (e^eps - r(s)) (B(s) - B(u)), from above, for a place that is surely below."""
        (least, _), (_, most) = self._masses(s)
        (_, more), (fewer, all_of) = self._tails(s)
        left = max(0.0, all_of - self._beyond(s))
        ratio = max(0.0, least) / most * (1 - 4 * UNIT)
        total = more - self.grown * max(0.0, fewer) + max(0.0, self.grown * (1 + 8 * UNIT) - ratio) * left
        return min(1.0, max(0.0, total) + 32 * UNIT * (more + self.grown * all_of))

    def _beyond(self, s: int) -> float:
        """B(u), from below, for some u after s with surely r(u) >= e^eps; 0 where none is found."""
        end, step = max(self.p.end, self.q.end) + self.noise.reach, 1
        while s + step <= end:
            (bottom, _), (_, top) = self._masses(s + step)
            if bottom >= self.grown * (1 + 8 * UNIT) * top:
                return max(0.0, self._tails(s + step)[1][0])
            step *= 2
        return 0.0

    def _masses(self, t: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """p(t) and b(t), each from below and from above."""
        of, most = self.noise.masses, self.noise.most
        return self._mean(self.p, t, of, most), self._mean(self.q, t, of, most)

    def _tails(self, t: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """A(t) and B(t)."""
        return self._mean(self.p, t, self.noise.above, 1.0), self._mean(self.q, t, self.noise.above, 1.0)

    def _mean(self, law: LatticeLaw, t: int, of: Callable[[Array], Array], most: float) -> tuple[float, float]:
        """The sum over k of law(k) of(t - k), from below and from above, where no value of `of` is above `most`."""
        import numpy as np

        at = np.arange(t - law.start, t - law.end - 1, -1, dtype=np.float64)
        found = float((law.masses * of(at)).sum())  # of positive terms, in pairs: within a few units
        share = self.noise.error(float(max(abs(at[0]), abs(at[-1])))) + 128 * UNIT
        known = math.isfinite(law.error)
        share, lost = (share + law.error * (1 + share), 0.0) if known else (share, law.lost * most)
        return found * (1 - share) - lost - _NOTHING, found * (1 + share) + law.lost * most + _NOTHING
