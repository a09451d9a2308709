"""How far a density is from a Gaussian law, up to a little mass; and what that costs (Algorithm 2, corrected).

    P is within (lam, eta) of Q   iff   P(T) <= e^lam Q(T) + eta  and  Q(T) <= e^lam P(T) + eta  for every event T
                                  iff   H_lam(P || Q) <= eta  and  H_lam(Q || P) <= eta

If the true laws of two outputs are within (lam, eta) of Gaussians that are (eps, delta)-close, then for every event T
    P_a(T) <= e^lam Q_a(T) + eta <= e^lam (e^eps Q_b(T) + delta) + eta
           <= e^(eps + 2 lam) P_b(T) + e^(eps + lam) eta + e^lam delta + eta,
so they are (eps + 2 lam, e^lam delta + eta (1 + e^(eps + lam)))-close. The paper leaves out e^(eps + lam) eta, which is wrong:
`corrected_guarantee` has the counterexample.

What must never change: `corrected_guarantee` rounds up. `approximate_max_divergence` is *numerical*: it integrates a function
it can only evaluate, so its error is an estimate (two grids compared), stated in the result and charged, but not a proof.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import SUMMED_UP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.numerics.laws.gaussian import GaussianLaw

    Array = NDArray[np.float64]

_NODES = 16
_PANELS = 1024
_LARGEST_LAMBDA = 600.0


@dataclass(frozen=True)
class MaxDivergence:
    """The smallest lambda found; `error` is the estimated error of each H, already charged in it.

    `lambda_` and `eta` are the distance. Made by `approximate_max_divergence`.

    `density_over_gaussian` and `gaussian_over_density` are the two H at lambda, without the error; `mass` is the density's
    integral over the support.
    """

    lambda_: float
    eta: float
    density_over_gaussian: float
    gaussian_over_density: float
    mass: float
    error: float

    def __str__(self) -> str:
        return (
            f"within a factor e^{self.lambda_:.6g} of the Gaussian both ways, up to mass {self.eta:g} "
            f"(numerically: each integral to about {self.error:.1g}, estimated by halving the grid)"
        )


def corrected_guarantee(epsilon: float, delta: float, lambda_: float, eta: float) -> tuple[float, float]:
    """(epsilon, delta) that really hold when laws within (lambda_, eta) of Gaussians are calibrated at (epsilon, delta).

    `epsilon` and `delta` are what was calibrated, `lambda_` and `eta` how far the true laws are from Gaussian ones.

    The counterexample to e^lambda delta + eta, at epsilon 1 and delta 0.001: N(0.264797, 1) and N(0, 1) are as far apart as the
    classical constant allows. Truncate the second above its 99% quantile, which stays within (0, 0.01) of it. The truth is
    0.0196; the paper's formula says 0.011.

    >>> from attrpriv.numerics.divergences.gaussian import gaussian_delta
    >>> from scipy.special import ndtr
    >>> cut, shift = 2.326348, 0.264797
    >>> gaussian_delta(1.0, shift) <= 0.001
    True
    >>> (1 - math.log(ndtr(cut))) / shift + shift / 2 > cut     # below the cut the ratio of the densities stays below e,
    True
    >>> round(float(ndtr(shift - cut)), 4)                      # so the truth is the first law's mass above it
    0.0196
    >>> round(corrected_guarantee(1.0, 0.001, 0.0, 0.01)[1], 4), round(0.001 + 0.01, 4)
    (0.0382, 0.011)
    """
    for name, value in (("epsilon", epsilon), ("delta", delta), ("lambda", lambda_), ("eta", eta)):
        if not (math.isfinite(value) and value >= 0):
            raise UsageError(f"{name}: must be finite and at least 0. Got {value}.")
    if epsilon + 2 * lambda_ > _LARGEST_LAMBDA:
        raise UsageError(f"epsilon + 2 lambda: must be at most {_LARGEST_LAMBDA:g}. Got {epsilon + 2 * lambda_:g}.")
    total = math.exp(lambda_) * delta + eta * (1 + math.exp(epsilon + lambda_))
    return (epsilon + 2 * lambda_) * (SUMMED_UP if lambda_ > 0 else 1.0), min(1.0, total * SUMMED_UP)


def approximate_max_divergence(
    density: Callable[[float], float],
    law: GaussianLaw,
    eta: float,
    *,
    support: tuple[float, float],
    log: bool = False,
    kinks: Sequence[float] = (),
) -> MaxDivergence:
    """The smallest lambda with which a density is within (lambda, eta) of a Gaussian law, both ways.

    `density` is that of the other law on the line, `law` the Gaussian one, `eta` the mass that may be ignored.

    `support` is finite and holds all of the density (its mass is checked); `log` says that `density` returns a logarithm;
    `kinks` are points where it jumps or bends. A density that is 0 on more than eta of the Gaussian has no lambda: refused.

    The truncated law above, whose mass 0.01 is missing:

    >>> from attrpriv.numerics.laws import GaussianLaw
    >>> from scipy.special import ndtr
    >>> truncated = lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi) / ndtr(2.326348)
    >>> approximate_max_divergence(truncated, GaussianLaw(0.0, 1.0), 0.0101, support=(-12.0, 2.326348)).lambda_
    0.0
    """
    if not 0 <= eta < 1:
        raise UsageError(f"eta: must be at least 0 and below 1. Got {eta}.")
    edges = _edges(support, kinks)
    coarse, fine = _Sampled.of(density, law, edges, log, 1), _Sampled.of(density, law, edges, log, 2)
    error = max(abs(fine.mass - coarse.mass), abs(fine.mass - 1)) + 1e-13
    if not error <= 1e-3:
        raise UsageError(f"density: must have mass 1 on the support {support}. Got {fine.mass:.6g}.")

    def close(lambda_: float) -> bool:
        forward, backward = fine.both(lambda_)
        first, second = coarse.both(lambda_)
        slack = error + max(abs(forward - first), abs(backward - second))
        return max(forward, backward) + slack <= eta

    lambda_ = _least(close)
    if lambda_ is None:
        raise UsageError(
            f"density: no lambda makes it this close to the Gaussian at eta {eta:g}; {fine.outside:.3g} of the Gaussian lies "
            f"outside the support, and the integrals are good to about {error:.1g}. Use a larger eta."
        )
    forward, backward = fine.both(lambda_)
    first, second = coarse.both(lambda_)
    error += max(abs(forward - first), abs(backward - second))
    return MaxDivergence(lambda_, eta, forward, backward, fine.mass, error)


@dataclass(frozen=True)
class _Sampled:
    """Both densities at the nodes of a rule; and the Gaussian's mass outside the support."""

    p: Array
    q: Array
    weights: Array
    outside: float

    @classmethod
    def of(cls, density: Callable[[float], float], law: GaussianLaw, edges: Array, log: bool, parts: int) -> _Sampled:
        import numpy as np
        from scipy.special import ndtr

        cuts = [np.linspace(a, b, parts + 1)[:-1] for a, b in itertools.pairwise(edges)]
        fine = np.append(np.concatenate(cuts), edges[-1])
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        half = np.diff(fine) / 2
        points = ((fine[:-1] + half)[:, None] + half[:, None] * nodes).ravel()
        z = (points - law.mean) / math.sqrt(law.variance)
        q = np.exp(-z * z / 2) / math.sqrt(2 * math.pi * law.variance)
        ends = (np.array([edges[0], -edges[-1]]) - np.array([law.mean, -law.mean])) / math.sqrt(law.variance)
        return cls(_values(density, points, log), q, (half[:, None] * weights).ravel(), float(ndtr(ends).sum()))

    @property
    def mass(self) -> float:
        return float(self.p @ self.weights)

    def both(self, lambda_: float) -> tuple[float, float]:
        """H_lambda of the density over the Gaussian, and of the Gaussian over the density."""
        import numpy as np

        factor = math.exp(lambda_)
        forward = float(np.maximum(0.0, self.p - factor * self.q) @ self.weights)
        return forward, float(np.maximum(0.0, self.q - factor * self.p) @ self.weights) + self.outside


def _values(density: Callable[[float], float], points: Array, log: bool) -> Array:
    import numpy as np

    values = np.array([float(density(float(x))) for x in points])
    if np.isnan(values).any() or (values == np.inf).any() or (not log and (values < 0).any()):
        raise UsageError("density: must be finite and at least 0 (or, as a logarithm, below infinity) on the whole support.")
    return np.exp(values) if log else values


def _edges(support: tuple[float, float], kinks: Sequence[float]) -> Array:
    import numpy as np

    low, high = support
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UsageError(f"support: must be two finite numbers, the first below the second. Got {support}.")
    if not all(low <= kink <= high for kink in kinks):
        raise UsageError(f"kinks: must lie in the support {support}. Got {list(kinks)}.")
    return np.unique(np.concatenate([np.linspace(low, high, _PANELS + 1), np.asarray(kinks, dtype=np.float64)]))


def _least(close: Callable[[float], bool]) -> float | None:
    """The smallest lambda found for which `close` holds, from above; None if there is none."""
    if close(0.0):
        return 0.0
    low, high = 0.0, 1e-6
    while not close(high):
        low, high = high, 2 * high
        if high > _LARGEST_LAMBDA:
            return None
    while high - low > 1e-9 * high and low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if close(middle) else (middle, high)
    return high
