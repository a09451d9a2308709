"""The exact law of an output when all that is known of the secret is that it lies in a set.

    g ~ N(0, 1),    W = lam g + N(0, 1),    U a union of intervals

    f_U(w) = integral over U of phi(g) phi(w - lam g) dg  /  integral over U of phi(g) dg

| symbol | here |
|---|---|
| lam | `lam`, at least 0: the output's units are such that its variance given g is 1 |
| U | `intervals.IntervalUnion`, standardised |
| a_k | `anchor` of a part: its point nearest to 0, where phi is largest on it |

Every part is integrated relative to its anchor: with g = a + u the exponent is -(w - lam a)^2/2 + b u - kappa u^2/2,
b = lam (w - lam a) - a, kappa = 1 + lam^2, and the factors phi(a) of numerator and denominator cancel. So a part 25 or 25000
standard deviations out, of probability 1e-137 or far below every float, is no harder than one at the mean. What must never
change: `log_density` comes with a bound on its own rounding error.

Two facts that `set_valued` uses. log f_U(w) + w^2/2 is convex in w: it is the logarithm of a mixture of e^(lam g w). And
|f_U(x + iy)| <= e^(y^2/2) f_U(x), because it holds for every g.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import ULP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.numerics.laws.intervals import Interval, IntervalUnion

    Array = NDArray[np.float64]

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_ROOT_HALF_PI = math.sqrt(math.pi / 2)
_ROOT_2 = math.sqrt(2)
# Mass that integration ranges may leave out, as -log: e^-69 is about 1e-30.
_LOG_TAIL = 69.0


@cache
def gauss_legendre(count: int) -> tuple[Array, Array]:
    """Nodes and weights on [-1, 1]."""
    import numpy as np

    nodes, weights = np.polynomial.legendre.leggauss(count)
    return np.asarray(nodes, dtype=np.float64), np.asarray(weights, dtype=np.float64)


def log_tilted(beta: Array, low: float, high: float) -> tuple[Array, Array]:
    """log of the integral of exp(beta x - x^2/2) over [low, high], and a bound on the error of this logarithm.

    The exponent is largest at p = beta clipped to the interval. Inside, the rest is a sum of two error functions; outside, a
    difference of Mills ratios or, where these would cancel, a Gauss-Legendre rule.
    """
    import numpy as np
    from scipy.special import erf

    peak = np.clip(beta, low, high)
    steep = np.abs(beta - peak)
    inside = _ROOT_HALF_PI * (erf((high - beta) / _ROOT_2) + erf((beta - low) / _ROOT_2))
    rest = np.log(np.where(steep == 0, inside, _one_sided(steep, high - low)))
    slack = 4 + 4 * np.abs(peak * beta) + (np.abs(beta) + np.abs(peak)) / (1 + steep) + np.abs(rest)
    return peak * (beta - peak / 2) + rest, ULP * slack


def _one_sided(steep: Array, width: float) -> Array:
    """The integral of exp(-steep t - t^2/2) over [0, width]."""
    import numpy as np
    from scipy.special import erfcx

    near = _ROOT_HALF_PI * erfcx(steep / _ROOT_2)
    if math.isinf(width):
        return np.asarray(near, dtype=np.float64)
    fall = steep * width + width * width / 2
    far = np.exp(-fall) * _ROOT_HALF_PI * erfcx((steep + width) / _ROOT_2)
    if width > 1.5:  # the exponent falls by more than 1
        return np.asarray(near - far, dtype=np.float64)
    nodes, weights = gauss_legendre(16)
    t = width * (nodes + 1) / 2
    # Where the rule is used the exponent falls by at most 1, so the rule is exact to rounding.
    gentle = np.minimum(steep, 1 / width)
    rule = width / 2 * (np.exp(-gentle[..., None] * t - t * t / 2) @ weights)
    return np.where(fall >= 1, near - far, rule)


@dataclass(frozen=True)
class _Part:
    """One interval: its anchor, its ends seen from there, log of its share of the set's probability, log of its own size."""

    anchor: float
    low: float
    high: float
    log_share: float
    log_size: float


@dataclass(frozen=True)
class SetLaw:
    """The law of W - lam * reference given that g lies in a set."""

    parts: tuple[_Part, ...]
    lam: float
    reference: float
    share_error: float

    def log_density(self, y: Array) -> tuple[Array, Array]:
        """log f at w = y + lam * reference, and a bound on its error."""
        import numpy as np

        kappa = math.sqrt(1 + self.lam**2)
        terms, errors = [], []
        for part in self.parts:
            centre = self.lam * (part.anchor - self.reference)
            offset = y - centre
            beta = (self.lam * offset - part.anchor) / kappa
            inner, error = log_tilted(beta, part.low * kappa, part.high * kappa)
            terms.append(part.log_share - part.log_size - math.log(kappa) - offset * offset / 2 + inner)
            errors.append(error + ULP * (4 * np.abs(offset) * (np.abs(y) + abs(centre)) + abs(part.log_size)))
        joined = np.logaddexp.reduce(terms, axis=0)
        # An error of a part counts as much as the part does.
        error = sum(np.exp(term - joined) * error for term, error in zip(terms, errors, strict=True))
        return joined - _HALF_LOG_2PI, 8 * (error + self.share_error + ULP * (4 + np.abs(joined)))

    def ranges(self) -> list[tuple[float, float]]:
        """Disjoint increasing ranges that hold all of W - lam * reference but a mass of 3e-30 (Chernoff, part by part)."""
        spans = sorted(
            (-self._reach(part, -1.0), self._reach(part, 1.0)) for part in self.parts if part.log_share > -_LOG_TAIL - 10
        )
        merged = [spans[0]]
        for low, high in spans[1:]:
            if low <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        return merged

    def _reach(self, part: _Part, sign: float) -> float:
        """How far sign * (W - lam * reference) goes on this part: P(beyond) <= exp(log E e^(s W) - s reach), for any s > 0."""
        import numpy as np

        best = math.inf
        for scale in (1.0, 1 / math.sqrt(1 + self.lam**2)):
            s = sign * math.sqrt(2 * _LOG_TAIL) * scale
            tilted, _ = log_tilted(np.array([s * self.lam - part.anchor]), part.low, part.high)
            log_mgf = s * s / 2 + float(tilted[0]) - part.log_size
            best = min(best, (log_mgf + _LOG_TAIL) / abs(s))
        centre = sign * self.lam * (part.anchor - self.reference)
        return best + centre + 1e-6 * (1 + abs(best) + abs(centre))


def set_law(union: IntervalUnion, lam: float, reference: float) -> SetLaw:
    """The law of the output given that g lies in `union`, seen from lam * reference."""
    if not (math.isfinite(lam) and lam >= 0 and math.isfinite(reference)):
        raise UsageError(f"lam: must be finite and at least 0. Got {lam} (reference {reference}).")
    nearest = min((anchor_of(part) for part in union.parts), key=abs)
    sizes = [log_size(part) for part in union.parts]
    # phi(a_k)/phi(nearest), as a product of differences so that nothing cancels far out.
    anchors = [anchor_of(part) for part in union.parts]
    logs = [-(a - nearest) * (a + nearest) / 2 + size for a, size in zip(anchors, sizes, strict=True)]
    total = _log_sum(logs)
    parts = tuple(
        _Part(anchor, part.low - anchor, part.high - anchor, value - total, size)
        for part, anchor, size, value in zip(union.parts, anchors, sizes, logs, strict=True)
    )
    # A part whose share is below e^-80 counts for nothing, however inaccurate that share is.
    error = max(16 * ULP * (2 + min(80.0, total - value) + abs(size)) for value, size in zip(logs, sizes, strict=True))
    return SetLaw(parts, lam, reference, error)


def anchor_of(part: Interval) -> float:
    """The point of the closed interval nearest to 0."""
    return min(max(0.0, part.low), part.high)


def log_size(part: Interval) -> float:
    """log of the integral of phi(g)/phi(anchor) over the interval, up to the constant of phi."""
    import numpy as np

    anchor = anchor_of(part)
    value, _ = log_tilted(np.array([-anchor]), part.low - anchor, part.high - anchor)
    return float(value[0])


def log_probability_ratio(wide: IntervalUnion, narrow: IntervalUnion) -> float:
    """log P(g in wide) - log P(g in narrow), rounded up."""
    nearest = min((anchor_of(part) for part in wide.parts), key=abs)
    totals = []
    for union in (wide, narrow):
        anchors = [anchor_of(part) for part in union.parts]
        totals.append(
            _log_sum([-(a - nearest) * (a + nearest) / 2 + log_size(p) for a, p in zip(anchors, union.parts, strict=True)])
        )
    return totals[0] - totals[1] + 64 * ULP * (4 + abs(totals[0]) + abs(totals[1]))


def _log_sum(logs: list[float]) -> float:
    top = max(logs)
    return top + math.log(math.fsum(math.exp(value - top) for value in logs))
