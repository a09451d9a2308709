r"""Mixtures of count laws: the loss between any two of them, and the least whole-number noise that hides which one holds.

    F given "count in U" is a mixture over the counts of U (`numerics.laws.count_cases`);   output = F + Z
    F given phi_i = a is a mixture over another parameter (`numerics.laws.parameter_counts`)
    delta = max over ordered pairs of cases of H_eps;     loss = max over them and over outputs of the log ratio

*Laplace noise, pure epsilon.* P(F + Z = o) is proportional to sum_f P(f) u^|o - f|, u = e^(-1/scale). Beyond the least and the
largest answer the ratio of two such sums is constant (it is that of the means of u^F or u^-F), so the answers themselves are
all the outputs to look at. The sums are of positive terms: y_o + u^1 y_(o-1) covers two distances, with u^2 and the sums so
found four, and so on. A mass that underflows is an absolute error; the noise makes it small against every output, unless scale
is far below the largest answer.

What must never change: loss and delta are at least the truth over all ordered pairs of cases; the scale returned has itself
been shown to keep the promise. The share is part of the promise: the numbers hold for this prior, and for an adversary who
knows no row. H is jointly convex, so no more noise is needed than to hide the counts point by point.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Protocol

from attrpriv.errors import RefusedError, UsageError
from attrpriv.numerics.calibration.direct import Noise, least_scale, noise_law
from attrpriv.numerics.calibration.half_lines import TAIL
from attrpriv.numerics.calibration.pair_families import noisy_delta
from attrpriv.numerics.divergences.lattice import lattice_max_divergence
from attrpriv.numerics.laws.count_cases import UNDERFLOW, CountCases, MixedMasses, case_laws
from attrpriv.numerics.laws.lattice_law import LatticeLaw
from attrpriv.numerics.rounding import SOLVED_UP, UNIT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["CountCases", "HiddenLaws", "case_delta", "case_laws", "case_loss", "case_loss_lower", "least_case_scale"]

# Up to so many answers the laws are exact in every mass; beyond, the windows leave out less than any delta.
_FEW = 256


class HiddenLaws(Protocol):
    """Laws of a whole number of which any two must be indistinguishable."""

    @property
    def reach(self) -> int:
        """How far two answers can be apart."""

    def laws(self, tail: float) -> tuple[LatticeLaw, ...]:
        """Each law. tail 0: every mass; else a window that leaves out at most about `tail`."""

    def whole(self) -> tuple[MixedMasses, ...] | None:
        """The masses of all answers, from the same one on for each law; None where they are out of reach."""


def case_delta(cases: HiddenLaws, noise: Noise, scale: float, epsilon: float) -> float:
    """The delta, from above, that holds at this epsilon between any two cases, both ways.

    `cases` are the sets of counts and the law of a row, `noise` is "laplace", "gaussian" or "none", `scale` its scale,
    `epsilon` the promise.

    >>> from attrpriv.numerics.laws.records import RecordLaws
    >>> four = CountCases(4, (((0, 1),), ((2, 4),)), 0.5, RecordLaws.event(0.9, 0.2))
    >>> round(case_delta(four, "none", 0.0, 1.0), 4)
    0.3959
    """
    laws = cases.laws(0.0 if cases.reach <= _FEW else TAIL)
    added = noise_law(noise, scale)
    return max(noisy_delta(pair, added, epsilon) for pair in itertools.combinations(laws, 2))


def case_loss(cases: HiddenLaws, scale: float) -> float:
    """The loss, from above, with discrete Laplace noise (scale 0: none); infinite where floats cannot bound it.

    `cases` are the sets of counts and the law of a row, `scale` is that of the noise.

    >>> from attrpriv.numerics.laws.records import RecordLaws
    >>> four = CountCases(4, (((0, 1),), ((2, 4),)), 0.5, RecordLaws.event(0.9, 0.2))
    >>> [round(case_loss(four, scale), 4) for scale in (0.0, 1.0, 4.0)]
    [3.4786, 1.1846, 0.3052]
    """
    if not (math.isfinite(scale) and scale >= 0):
        raise UsageError(f"scale: must be finite and at least 0. Got {scale}.")
    masses = cases.whole()
    if masses is None:
        return math.inf
    if scale == 0:
        return max(lattice_max_divergence(p, q) for p, q in itertools.permutations(cases.laws(0.0), 2))
    bounds = [_log_outputs(mixed, scale) for mixed in masses]
    losses = [float((most - least).max()) for (_, most), (least, _) in itertools.permutations(bounds, 2)]
    # Two logarithms of at most 750 and their difference.
    return math.inf if any(math.isnan(loss) for loss in losses) else max(0.0, max(losses) + 4000 * UNIT)


def case_loss_lower(cases: HiddenLaws, scale: float) -> float:
    """The loss with noise of a positive scale, from below: how sharp `case_loss` is."""
    masses = cases.whole()
    if masses is None:
        return 0.0
    bounds = [_log_outputs(mixed, scale) for mixed in masses]
    losses = [float((least - most).max()) for (least, _), (_, most) in itertools.permutations(bounds, 2)]
    return max(0.0, max(losses) - 4000 * UNIT)


def least_case_scale(cases: HiddenLaws, noise: Noise, epsilon: float, delta: float) -> float:
    """The least scale, from above, that keeps (epsilon, delta); 0.0 where none is needed. delta 0 is for Laplace noise.

    `cases` are the sets of counts and the law of a row, `noise` is "laplace" or "gaussian"; `epsilon` and `delta` are the
    promise.

    >>> from attrpriv.numerics.laws.records import RecordLaws
    >>> four = CountCases(4, (((0, 1),), ((2, 4),)), 0.5, RecordLaws.event(0.9, 0.2))
    >>> round(least_case_scale(four, "laplace", 1.0, 0.0), 4), round(least_case_scale(four, "gaussian", 1.0, 1e-3), 4)
    (1.1966, 2.9766)
    """
    if not (math.isfinite(epsilon) and epsilon > 0 and 0 <= delta < 1):
        raise UsageError(f"budget: needs epsilon above 0 and delta in [0, 1). Got {epsilon} and {delta}.")
    if delta == 0 and noise == "gaussian":
        raise UsageError("delta: Gaussian noise needs delta above 0. Got 0.")
    holds = _holds(cases, noise, epsilon, delta)
    if holds(0.0):
        return 0.0
    if noise == "none":
        raise RefusedError(f"noise: the exact release does not keep epsilon {epsilon:g} at delta {delta:g}. Add noise.")
    laws = cases.laws(TAIL)
    if 0 < delta <= max(law.lost for law in laws) * (1 + math.exp(epsilon)):
        raise UsageError(f"delta: {delta:g} is out of reach of the accuracy of floats here. Use a larger delta, or delta 0.")
    means = [law.mean for law in laws]
    return least_scale(holds, max(means) - min(means) + 1.0)


def _holds(cases: HiddenLaws, noise: Noise, epsilon: float, delta: float) -> Callable[[float], bool]:
    """Whether a scale keeps the promise; beyond one that would do for any laws, rounding is what fails it."""
    most = 4 * cases.reach / min(1.0, epsilon) * (1.0 if delta == 0 else 1 + math.log(2 / delta))

    @cache
    def holds(scale: float) -> bool:
        if scale > most:
            raise UsageError(
                f"cases: epsilon {epsilon:g}, delta {delta:g} are out of reach of floats. Hide them point by point."
            )
        if delta == 0:
            return case_loss(cases, scale) <= epsilon
        return case_delta(cases, noise if scale > 0 else "none", scale, epsilon) <= delta

    return holds


def _log_outputs(mixed: MixedMasses, scale: float) -> tuple[Array, Array]:
    """Bounds on the logarithm of sum_f P(f) u^|o - f| at each answer o."""
    import numpy as np

    size = len(mixed.masses)
    upwards, downwards = _decayed(mixed.masses, scale), _decayed(mixed.masses[::-1], scale)[::-1]
    outputs = upwards + math.exp(-1 / scale) * np.concatenate([downwards[1:], [0.0]])
    # The exponents of one product add up to at most size/scale, each rounded; and there are bit_length factors and sums.
    rounding = math.expm1(min(1.0, (4 * size / scale + 16 * size.bit_length() + 16) * UNIT))
    error = (mixed.error + rounding * (1 + mixed.error)) * SOLVED_UP + 8 * UNIT
    floor = mixed.floor + 8.0 * size * size * UNDERFLOW
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(0.0, outputs * (1 - error) - floor)), np.log(outputs * (1 + error) + floor)


def _decayed(masses: Array, scale: float) -> Array:
    """sum over d >= 0 of u^d masses[o - d], for each o."""
    sums, step = masses.copy(), 1
    while step < len(sums):
        sums[step:] += math.exp(-step / scale) * sums[:-step]
        step *= 2
    return sums
