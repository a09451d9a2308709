r"""Hiding a parameter of the population in a count: the least noise, the distance of the laws, and the best kernel.

    F given phi_i = a  ~  sum over k of w_ak Bin(n, p_k)             (`numerics.laws.parameter_counts`);   output = F + Z

| what | bound |
|---|---|
| loss of Laplace noise | the smaller of `numerics.calibration.count_cases.case_loss` and of the influence |
| influence | max over k and over pairs of log w_ak/w_bk: the count tells no more than the column's own parameter does |
| W | the largest W_inf, or (W, delta)-distance, of two of the laws |
| kernel | the linear program over all kernels that see F alone, certified in whole numbers |

States with the same p_k are one state: the count cannot tell them apart.

What must never change: everything is at least the truth over every pair, both ways, and over everything that the stated numbers
leave open (`ParameterCounts.spread`).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrpriv.errors import Cause, RefusedError, UsageError
from attrpriv.numerics.calibration.count_cases import case_delta, case_loss, case_loss_lower, least_case_scale
from attrpriv.numerics.calibration.direct import Noise
from attrpriv.numerics.calibration.half_lines import TAIL
from attrpriv.numerics.calibration.kernel import CertifiedKernel, kernel_for, weights_loss
from attrpriv.numerics.calibration.kernel_accuracy import KernelError, error_for
from attrpriv.numerics.calibration.linear_program import MOST_SECRETS, MOST_VALUES
from attrpriv.numerics.calibration.secret_laws import BITS, SecretLaws, float_laws
from attrpriv.numerics.divergences.wasserstein import close_distance, wasserstein_inf
from attrpriv.numerics.laws.parameter_counts import ParameterCounts
from attrpriv.numerics.laws.records import Interval01
from attrpriv.numerics.rounding import SOLVED_UP, UNIT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ParameterCounts",
    "least_parameter_scale",
    "parameter_delta",
    "parameter_distance",
    "parameter_influence",
    "parameter_kernel",
    "parameter_kernel_loss",
    "parameter_loss",
]


def parameter_influence(counts: ParameterCounts) -> float:
    """How much the column's own parameter tells about the hidden one, from above; infinite where it can exclude a value.

    >>> round(parameter_influence(ParameterCounts(4, ((0.3, 0.3), (0.5, 0.5)), ((0.7, 0.3), (0.3, 0.7)))), 6)
    0.847298
    """
    rows = [_merged(counts, row) for row in counts.weights]
    worst = 0.0
    for one, other in itertools.permutations(rows, 2):
        for p, q in zip(one, other, strict=True):
            if p > 0:
                worst = max(worst, math.log(p) - math.log(q)) if q > 0 else math.inf
    # Relative errors of both weights, of their sums, and of two logarithms of at most 750.
    return worst + _slack(counts.error + len(counts.probabilities) * 4 * UNIT) + 4000 * UNIT


def _merged(counts: ParameterCounts, row: Sequence[float]) -> list[float]:
    """The weights of the different probabilities."""
    sums: dict[Interval01, list[float]] = {pair: [] for pair in counts.probabilities}
    for pair, weight in zip(counts.probabilities, row, strict=True):
        sums[pair].append(weight)
    return [math.fsum(weights) for weights in sums.values()]


def _slack(error: float) -> float:
    """log (1 + error)/(1 - error), from above."""
    return (math.log1p(error) - math.log1p(-error)) * SOLVED_UP


def parameter_loss(counts: ParameterCounts, scale: float) -> float:
    """The pure loss, from above, with discrete Laplace noise (scale 0: none).

    >>> flip = ParameterCounts(20, ((0.3, 0.3), (0.5, 0.5)), ((0.7, 0.3), (0.3, 0.7)))
    >>> [round(parameter_loss(flip, scale), 4) for scale in (0.0, 2.0, 8.0)]
    [0.8472, 0.6405, 0.1987]
    """
    return min(parameter_influence(counts), case_loss(counts, scale))


def parameter_delta(counts: ParameterCounts, noise: Noise, scale: float, epsilon: float) -> float:
    """The delta, from above, at this epsilon; 0 where every output is within e^epsilon."""
    if parameter_influence(counts) <= epsilon:
        return 0.0
    if (noise == "laplace" or not scale) and case_loss(counts, scale) <= epsilon:
        return 0.0
    return case_delta(counts, noise, scale, epsilon)


def least_parameter_scale(counts: ParameterCounts, noise: Noise, epsilon: float, delta: float) -> float:
    """The least scale, from above, that keeps (epsilon, delta); 0.0 where none is needed.

    >>> flip = ParameterCounts(20, ((0.3, 0.3), (0.5, 0.5)), ((0.7, 0.3), (0.3, 0.7)))
    >>> [round(least_parameter_scale(flip, "laplace", epsilon, 0.0), 4) for epsilon in (0.85, 0.5, 0.1)]
    [0.0, 2.879, 16.0247]
    """
    return 0.0 if parameter_influence(counts) <= epsilon else least_case_scale(counts, noise, epsilon, delta)


def is_least_scale(counts: ParameterCounts, scale: float, epsilon: float) -> bool:
    """Whether Laplace noise of a thousandth less would break pure epsilon."""
    return case_loss_lower(counts, scale * (1 - 1e-3)) > epsilon


def parameter_distance(counts: ParameterCounts, ignored: float = 0.0) -> int:
    """The largest distance by which two of the laws must be moved, mass `ignored` of them left aside.

    >>> parameter_distance(ParameterCounts(4, ((0.44, 0.44), (0.56, 0.56)), ((1.0, 0.0), (0.0, 1.0))))
    1
    """
    # Equal rows are compared too: their floats may agree where the truth does not.
    if ignored == 0:
        return int(max(wasserstein_inf(p, q).distance for p, q in itertools.combinations(counts.tails(), 2)))
    laws = counts.laws(TAIL)
    return int(max(close_distance(p, q, ignored).distance for p, q in itertools.combinations(laws, 2)))


def parameter_kernel(counts: ParameterCounts, prior: Sequence[float], epsilon: float) -> tuple[CertifiedKernel, KernelError]:
    """The kernel that sees F alone with the least expected |error| under the prior over the hidden values, and its error.

    >>> school = ParameterCounts(4, ((0.44, 0.44), (0.56, 0.56)), ((1.0, 0.0), (0.0, 1.0)))
    >>> kernel, error = parameter_kernel(school, (0.5, 0.5), 0.5)
    >>> round(error.mean_absolute, 4), kernel.loss <= 0.5
    (0.1232, True)
    """
    if len(counts.weights) > MOST_SECRETS or counts.n + 1 > MOST_VALUES:
        limits = f"at most {MOST_SECRETS} values of the secret and {MOST_VALUES - 1} rows"
        raise RefusedError(f"optimal: solves problems of {limits}. Got {len(counts.weights)} and {counts.n:,}.").because(
            Cause.SIZE
        )
    laws, left = _secret_laws(counts), (epsilon - _slack(counts.spread)) * (1 - 16 * UNIT)
    if not left > 0:
        raise UsageError(f"epsilon: {epsilon:g} is out of reach of the accuracy of the stated numbers.")
    target = _target(laws, prior)
    kernel = kernel_for(laws, target, left)
    error = error_for(kernel, laws, target)
    # Chances are sums of masses, and as open as they are.
    open_tail = tuple(min(1.0, chance * (1 + counts.spread) * (1 + 4 * UNIT)) for chance in error.tail)
    return kernel, dataclasses.replace(error, tail=open_tail)


def parameter_kernel_loss(weights: Sequence[Sequence[int]], counts: ParameterCounts) -> float:
    """An upper bound on the loss of these weights, over all pairs and everything that the stated numbers leave open."""
    return (weights_loss(weights, _secret_laws(counts)) + _slack(counts.spread)) * (1 + 4 * UNIT)


def _secret_laws(counts: ParameterCounts) -> SecretLaws:
    return SecretLaws(0, counts.fixed(BITS), len(counts.weights) - 1)


def _target(laws: SecretLaws, prior: Sequence[float]) -> NDArray[np.float64]:
    import numpy as np

    if len(prior) != len(laws.masses) or not all(p >= 0 for p in prior) or not abs(math.fsum(prior) - 1) <= 1e-9:
        raise UsageError("prior: must be probabilities of the values of the secret that sum to 1.")
    return np.asarray(np.array(prior, dtype=np.float64) @ np.array(float_laws(laws)), dtype=np.float64)
