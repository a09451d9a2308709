"""How far the output of a certified kernel is from the count: on average under a prior, and at most, for intervals.

    mean_absolute = E |o - f|,   rmse = sqrt E (o - f)^2        under the prior over the secrets
    tail[t] = max over secrets of P(|o - f| > t | a)            whatever the secret is

| symbol | here |
|---|---|
| f, o | the count and the output |
| tail | `KernelError.tail`, for t = 0, 1, ...; over all laws of the box where there is one |

P(|o - f| > t | a) of a kernel that sees F alone is an average over F, so over a box its maximum is at the corner laws, as the
loss is (`calibration.secret_laws`).

What must never change: `tail` is at least the truth. It is summed in whole numbers and rounded up once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.calibration.coupling import CertifiedCoupling, overlaps
from attrpriv.calibration.kernel import WEIGHT_BITS, CertifiedKernel, objective, require_prior
from attrpriv.calibration.secret_laws import BITS, Family, SecretLaws, secret_laws
from attrpriv.errors import UsageError
from attrpriv.laws.fixed_point import SHORT
from attrpriv.laws.records import CountPairs, RecordLaws

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class KernelError:
    """The expected errors under the prior, and the worst probability of an error above t = 0, 1, ..."""

    mean_absolute: float
    rmse: float
    tail: tuple[float, ...]

    def half_width(self, beta: float) -> int:
        """The least t with an error above t in at most the share beta of releases, whatever the secret.

        >>> KernelError(0.1, 0.2, (0.3, 0.04, 0.0)).half_width(0.05)
        1
        """
        if not 0 < beta < 1:
            raise UsageError(f"beta: must be between 0 and 1. Got {beta}.")
        return next(t for t, chance in enumerate(self.tail) if chance <= beta)


def kernel_error(
    kernel: CertifiedKernel, records: RecordLaws, pairs: CountPairs, prior: Sequence[float], family: Family = "counts"
) -> KernelError:
    """The error of a kernel that sees F alone; the averages are those at the middle of a box."""
    return error_for(kernel, secret_laws(records, pairs, family), objective(records, pairs, prior))


def error_for(kernel: CertifiedKernel, laws: SecretLaws, target: NDArray[np.float64]) -> KernelError:
    """The same for laws in whole numbers; averages are over the law `target` of F."""
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
    return _summary(chances.tolist(), (masses @ further).max(axis=0).tolist(), 2 ** (BITS + WEIGHT_BITS))


def coupling_error(coupling: CertifiedCoupling, records: RecordLaws, pairs: CountPairs, prior: Sequence[float]) -> KernelError:
    """The error of a mechanism that reads the secret."""
    require_prior(prior, pairs)
    laws = secret_laws(records, pairs, "counts")
    chances, worst = [0.0] * laws.values, [0] * laws.values
    for share, masses, source, target in zip(prior, laws.masses, coupling.sources, coupling.targets, strict=True):
        by_distance = [0] * laws.values
        for f, o, part, whole in overlaps(source, target):
            by_distance[abs(f - o)] -= -(masses[f] + SHORT) * part // whole
        chances = [chance + share * mass / 2**BITS for chance, mass in zip(chances, by_distance, strict=True)]
        further = list(itertools.accumulate(reversed(by_distance)))[-2::-1]
        worst = list(map(max, worst, [*further, 0]))
    return _summary(chances, worst, 2**BITS)


def _summary(chances: Sequence[float], worst: Sequence[int], unit: int) -> KernelError:
    """From P(|o - f| = t) under the prior, and the worst P(|o - f| > t) times `unit`."""
    mean = math.fsum(t * chance for t, chance in enumerate(chances))
    square = math.fsum(t * t * chance for t, chance in enumerate(chances))
    tail = tuple(min(1.0, math.nextafter(mass / unit, math.inf)) if mass else 0.0 for mass in worst)
    return KernelError(mean, math.sqrt(square), tail)
