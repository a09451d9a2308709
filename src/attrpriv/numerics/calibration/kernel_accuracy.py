"""How far the output of a certified kernel is from the count: on average under a prior, and at most, for intervals.

    mean_absolute = E |o - f|,   rmse = sqrt E (o - f)^2        under the prior over the secrets
    averaged[t] = P(|o - f| > t)                                under the same prior
    tail[t] = max over secrets of P(|o - f| > t | a)            whatever the secret is

| symbol | here |
|---|---|
| f, o | the count and the output |
| averaged | `KernelError.averaged`: what plans are compared by; of a box, at its worst law, as the other averages |
| tail | `KernelError.tail`, for t = 0, 1, ...: what intervals are made of; over all laws of the box where there is one |

P(|o - f| > t | a) of a kernel that sees F alone is an average over F, so over a box its maximum is at the corner laws, as the
loss is (`numerics.calibration.secret_laws`).

What must never change: `tail` is at least the truth. It is summed in whole numbers and rounded up once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration.box_loss import box_laws
from attrpriv.numerics.calibration.coupling import CertifiedCoupling, overlaps
from attrpriv.numerics.calibration.kernel import WEIGHT_BITS, CertifiedKernel, objective, require_prior
from attrpriv.numerics.calibration.secret_laws import BITS, Family, SecretLaws, secret_laws
from attrpriv.numerics.laws.fixed_point import SHORT
from attrpriv.numerics.laws.records import CountPairs, RecordLaws

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class KernelError:
    """The expected errors under the prior, and the worst and the average probability of an error above t = 0, 1, ...

    `mean_absolute` and `rmse` are the expected errors, `tail[t]` and `averaged[t]` the probabilities. Made by `kernel_error`.
    """

    mean_absolute: float
    rmse: float
    tail: tuple[float, ...]
    averaged: tuple[float, ...] = ()

    def half_width(self, beta: float) -> int:
        """The least t with an error above t in at most the share beta of releases, whatever the secret.

        >>> KernelError(0.1, 0.2, (0.3, 0.04, 0.0)).half_width(0.05)
        1
        """
        return _first(self.tail, beta)

    def average_width(self, beta: float) -> int:
        """The same on average over the prior.

        >>> KernelError(0.1, 0.2, (0.3, 0.06, 0.0), (0.1, 0.03, 0.0)).average_width(0.05)
        1
        """
        return _first(self.averaged or self.tail, beta)


def _first(chances: Sequence[float], beta: float) -> int:
    if not 0 < beta < 1:
        raise UsageError(f"beta: must be between 0 and 1. Got {beta}.")
    return next((t for t, chance in enumerate(chances) if chance <= beta), len(chances))


def largest(errors: Sequence[KernelError]) -> KernelError:
    """Under several priors: the largest of each number; the tails are those of any of them, whatever the secret is."""
    return KernelError(
        max(error.mean_absolute for error in errors),
        max(error.rmse for error in errors),
        tuple(map(max, zip(*(error.tail for error in errors), strict=True))),
        tuple(map(max, zip(*(error.averaged for error in errors), strict=True))),
    )


def kernel_error(
    kernel: CertifiedKernel, records: RecordLaws, pairs: CountPairs, prior: Sequence[float], family: Family = "counts"
) -> KernelError:
    """The error of a kernel that sees F alone; the averages are those at the worst law of a box.

    `kernel` is what `certified_kernel` found for `records`, `pairs` and `family`; `prior` has a probability for each count.

    >>> from attrpriv.numerics.calibration.kernel import certified_kernel
    >>> records, pairs, prior = RecordLaws.event(0.4, 0.6), CountPairs.all_of(4), [0.2] * 5
    >>> round(kernel_error(certified_kernel(records, pairs, 0.5, prior), records, pairs, prior).mean_absolute, 4)
    0.2984
    """
    return error_for(kernel, secret_laws(records, pairs, family), _targets(records, pairs, prior))


def _targets(records: RecordLaws, pairs: CountPairs, prior: Sequence[float]) -> NDArray[np.float64]:
    """The laws of F that errors are averaged over: of a box, at each theta of its grid."""
    import numpy as np

    if records.exact:
        return objective(records, pairs, prior)
    require_prior(prior, pairs)
    return np.array([prior @ law for law in box_laws(records, pairs.n, range(pairs.low, pairs.high + 1))])


def error_for(kernel: CertifiedKernel, laws: SecretLaws, target: NDArray[np.float64]) -> KernelError:
    """The same for laws in whole numbers; averages are over the law `target` of F, the largest of several."""
    import numpy as np

    size = len(kernel.weights)
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    weights = np.array(kernel.weights, dtype=object)
    by_distance = np.zeros((size, size), dtype=object)  # [f, t]: the weight of outputs at distance t from f
    np.add.at(by_distance, (np.repeat(np.arange(size), size), distance.ravel()), weights.ravel())
    chances = target @ (by_distance / 2**WEIGHT_BITS).astype(np.float64)
    # The weight of outputs further than t: what the row's sums up to t leave.
    further = 2**WEIGHT_BITS - np.cumsum(by_distance, axis=1)
    masses = np.array(laws.masses, dtype=object) + SHORT
    return _summary(np.atleast_2d(chances), (masses @ further).max(axis=0).tolist(), 2 ** (BITS + WEIGHT_BITS))


def coupling_error(coupling: CertifiedCoupling, records: RecordLaws, pairs: CountPairs, prior: Sequence[float]) -> KernelError:
    """The error of a mechanism that reads the secret.

    `coupling` is what `certified_coupling` found for `records` and `pairs`; `prior` has a probability for each count.

    >>> from attrpriv.numerics.calibration.coupling import certified_coupling
    >>> records, pairs, prior = RecordLaws.event(0.4, 0.6), CountPairs.all_of(4), [0.2] * 5
    >>> round(coupling_error(certified_coupling(records, pairs, 0.5, prior), records, pairs, prior).mean_absolute, 4)
    0.0906
    """
    require_prior(prior, pairs)
    return slices_error(coupling, secret_laws(records, pairs, "counts"), prior)


def slices_error(coupling: CertifiedCoupling, laws: SecretLaws, prior: Sequence[float]) -> KernelError:
    """The same for laws in whole numbers."""
    import numpy as np

    chances, worst = [0.0] * laws.values, [0] * laws.values
    for share, masses, source, target in zip(prior, laws.masses, coupling.sources, coupling.targets, strict=True):
        by_distance = [0] * laws.values
        for f, o, part, whole in overlaps(source, target):
            by_distance[abs(f - o)] -= -(masses[f] + SHORT) * part // whole
        chances = [chance + share * mass / 2**BITS for chance, mass in zip(chances, by_distance, strict=True)]
        further = list(itertools.accumulate(reversed(by_distance)))[-2::-1]
        worst = list(map(max, worst, [*further, 0]))
    return _summary(np.array([chances]), worst, 2**BITS)


def _summary(chances: NDArray[np.float64], worst: Sequence[int], unit: int) -> KernelError:
    """From P(|o - f| = t) under the prior, a line for each law, and the worst P(|o - f| > t) times `unit`."""
    tail = tuple(min(1.0, math.nextafter(mass / unit, math.inf)) if mass else 0.0 for mass in worst)
    mean, rmse, averaged = averages(chances)
    return KernelError(mean, rmse, tail, averaged)


def averages(chances: NDArray[np.float64]) -> tuple[float, float, tuple[float, ...]]:
    """Mean |error|, root mean square and P(|error| > t), each the largest over the lines of P(|error| = t)."""
    import numpy as np

    steps = np.arange(chances.shape[1], dtype=np.float64)
    further = np.maximum(0.0, np.cumsum(chances[:, ::-1], axis=1)[:, ::-1] - chances).max(axis=0)
    mean, square = (float((chances @ steps**power).max()) for power in (1, 2))
    return mean, math.sqrt(square), tuple(np.minimum(further, 1.0).tolist())
