"""The quantile clip: one number moved so little that every value of the secret gives it nearly the same law (pure epsilon).

Given the sensitive statistics G = gamma, a released number F is N(m, v) with m = m(gamma). In units of its own spread, z =
(F - m)/sqrt(v) and x = (F - m0)/sqrt(v) for a public centre m0. Released is m0 + sqrt(v) clip(x, C-(z), C+(z)), where

    C+(z) = min{ Phi^-1(e^below Phi(z)),  -Phi^-1(e^-above Phi(-z)) },    C-(z) = -C+(-z)

(the first infinite where its argument reaches 1).

| symbol | here |
|---|---|
| e1, e2 | `below`, `above`: the released density lies between e^-below and e^above times that of N(0, 1) |
| t | (m - m0)/sqrt(v), so that x = z + t |
| R_t | the law of clip(z + t, C-(z), C+(z)), z standard normal |

Its distribution function is that of N(t, 1), kept between two bounds that do not depend on t:

    R_t(y) = min( U(y), max( L(y), Phi(y - t) ) ),   L = max(e^-below Phi(y), 1 - e^above Phi(-y)),   U(y) = 1 - L(-y)

so that e^-below <= density of R_t / density of N(0, 1) <= e^above for every t (docs/theory/quantile-clip.md has the proof), and
any two R_t are (below + above)-close, with delta = 0.

These are floats, for expected errors and for looking at the laws. What is released goes through `methods.quantile_clip.draw`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.search import least_at

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_REACH, _POINTS = 8.5, 681
_BINS = 160


@dataclass(frozen=True)
class QuantileClip:
    """Both bounds of the clip, e1 and e2.

    `below` and `above` are e1 and e2, which sum to epsilon.

    >>> clip = QuantileClip(0.5, 0.5)
    >>> [round(float(clip.upper(z)), 4) for z in (-2.0, 0.0, 2.0)]
    [-1.7804, 0.515, 2.203]
    """

    below: float
    above: float

    def __post_init__(self) -> None:
        if not (0 < self.below < math.inf and 0 < self.above < math.inf):
            raise UsageError(f"quantile clip: needs two positive bounds. Got {self.below}, {self.above}.")

    def upper(self, z: Array | float) -> Array:
        """C+."""
        import numpy as np
        from scipy.special import log_ndtr, ndtri_exp

        first = self.below + log_ndtr(z)
        inside = np.where(first < 0, ndtri_exp(np.minimum(first, -1e-300)), np.inf)
        return np.asarray(np.minimum(inside, -ndtri_exp(log_ndtr(-np.asarray(z)) - self.above)))

    def lower(self, z: Array | float) -> Array:
        """C-."""
        import numpy as np

        return -self.upper(-np.asarray(z))

    def moved(self, x: Array, z: Array) -> Array:
        """What is released in the place of x."""
        import numpy as np

        return np.asarray(np.clip(x, self.lower(z), self.upper(z)))

    def quantiles(self, t: float | Array, y: Array) -> tuple[Array, Array]:
        """Phi^-1(R_t(y)), and the logarithm of the density of R_t over that of N(0, 1)."""
        import numpy as np

        (first, second), (mirrored_first, mirrored_second) = self._bounds(y), self._bounds(-y)
        low, high = np.maximum(first, second), -np.maximum(mirrored_first, mirrored_second)
        free = y - t
        inside = (low < free) & (free < high)
        # On the bounds of the distribution function the density has the bound that belongs to them.
        on_low = np.where(first >= second, -self.below, self.above)
        on_high = np.where(mirrored_first >= mirrored_second, -self.below, self.above)
        ratio = np.where(inside, t * y - t * t / 2, np.where(free <= low, on_low, on_high))
        return np.clip(free, low, high), ratio

    def _bounds(self, y: Array) -> tuple[Array, Array]:
        """Phi^-1 of both parts of L(y)."""
        import numpy as np
        from scipy.special import log_ndtr, ndtri_exp

        above = self.above + log_ndtr(-y)
        second = np.where(above < 0, -ndtri_exp(np.minimum(above, -1e-300)), -np.inf)
        return ndtri_exp(log_ndtr(y) - self.below), second


def halves(epsilon: float) -> QuantileClip:
    """The same loss to both sides: within 3% of the least error up to epsilon 2, and simple."""
    return QuantileClip(epsilon / 2, epsilon / 2)


def least_error_split(epsilon: float, wander: float, steps: int = 40) -> QuantileClip:
    """The split of epsilon with the least mean square where t is N(0, wander^2), by golden section.

    `epsilon` is the promise, `wander` the standard deviation of what must be taken out, `steps` how often the search narrows.

    >>> clip = least_error_split(5.0, 0.3145)
    >>> round(clip.below, 1), round(clip_rmse(clip, 0.3145) / clip_rmse(halves(5.0), 0.3145), 2)
    (2.2, 0.79)
    """

    def at(share: float) -> float:
        return clip_rmse(QuantileClip(epsilon * share, epsilon * (1 - share)), wander)

    share = least_at(at, 0.05, 0.95, steps)
    return QuantileClip(epsilon * share, epsilon * (1 - share))


# ------------------------------------------------------------------------------------------------------- expected errors


def clip_rmse(clip: QuantileClip, wander: float) -> float:
    """The root mean square of what the clip takes away, in units of sqrt(v), where t is N(0, wander^2).

    `clip` has both bounds, `wander` is the standard deviation of what must be taken out.

    Given z, x - C+(z) is normal, and E (N(0, w^2) - h)_+^2 = (w^2 + h^2) Phi(-h/w) - w h phi(h/w); both sides are alike.

    >>> spread = 0.25 * math.sqrt(1 - 0.3**2)              # weights: sd 25, 10,000 rows, correlation 0.3 with income
    >>> [round(spread * clip_rmse(halves(e), 0.3 / math.sqrt(1 - 0.3**2)), 5) for e in (0.1, 0.5, 1.0, 2.0, 5.0)]
    [0.06768, 0.04393, 0.02523, 0.00899, 0.00065]
    """
    import numpy as np
    from scipy.special import ndtr

    if not wander > 0:
        return 0.0
    z, weights = _normal()
    h = (clip.upper(z) - z) / wander
    beyond = (1 + h * h) * ndtr(-h) - h * np.exp(-h * h / 2) / math.sqrt(2 * math.pi)
    return wander * math.sqrt(2 * max(0.0, float(weights @ beyond)))


def clip_residuals(clip: QuantileClip, wander: float) -> tuple[Array, Array]:
    """The law of what the clip takes away, in units of sqrt(v): points and weights, symmetric around 0."""
    import numpy as np
    from scipy.special import ndtr

    if not wander > 0:
        return np.zeros(1), np.ones(1)
    z, weights = _normal(_POINTS // 2 + 1)
    h = (clip.upper(z) - z) / wander
    edges = np.linspace(0.0, _REACH, _BINS + 1)
    tails = weights @ ndtr(-(h[:, None] + edges))
    mass = np.append(tails[:-1] - tails[1:], tails[-1])
    points = np.append((edges[:-1] + edges[1:]) / 2, _REACH) * wander
    return np.concatenate([-points, [0.0], points]), np.concatenate([mass, [1 - 2 * mass.sum()], mass])


def _normal(points: int = _POINTS) -> tuple[Array, Array]:
    import numpy as np

    z = np.linspace(-_REACH, _REACH, points)
    weights = np.exp(-z * z / 2)
    return z, weights / weights.sum()
