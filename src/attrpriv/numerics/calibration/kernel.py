"""A kernel that sees F alone, in whole numbers, with its certificate.

    output o with probability  weights[f][o] / 2^WEIGHT_BITS  where the count is start + f
    Q_a(o) = sum_f P(F = f | a) weights[f][o],      loss = max over pairs and o of log Q_a(o)/Q_b(o)

| symbol | here |
|---|---|
| weights | `CertifiedKernel.weights`, each row sums to 2^WEIGHT_BITS exactly |
| eta | `CertifiedKernel.mixed`, the share of the uniform law in every row |
| loss | `kernel_loss_upper`, from the weights and the stated laws of the rows alone |

`certified_kernel` takes the solver's optimum at a slightly smaller epsilon, removes what is negative, and mixes every row with
the same uniform law: (1 - eta) M + eta u. A constant row costs no privacy, and it lifts all Q_b(o) by eta u(o), so an excess x
over e^eps Q_b(o) that the solver left is repaired where eta u(o) (e^eps - 1) >= x. The share grows from nothing over what this
asks for until the certificate holds; at 1 the output is independent of the table.

What must never change: what is sampled are these weights, and what is certified are these weights. The solver is not trusted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from attrpriv.errors import Cause, RefusedError, UsageError
from attrpriv.numerics.calibration.linear_program import (
    MOST_SECRETS,
    MOST_VALUES,
    KernelProgram,
    largest_excess,
    optimal_kernel,
)
from attrpriv.numerics.calibration.secret_laws import (
    Family,
    Rows,
    SecretLaws,
    float_laws,
    loss_upper,
    require_rows,
    secret_laws,
)
from attrpriv.numerics.laws.fixed_point import SHORT
from attrpriv.numerics.laws.records import CountPairs, RecordLaws

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WEIGHT_BITS = 62
# The solver works at this share of epsilon.
SOLVED_SHARE = 1 - 2.0**-30
# Entries of the solver's kernel below this are its noise.
_NOISE = 1e-12
_LEAST_MIXED = 2.0**-36


@dataclass(frozen=True)
class CertifiedKernel:
    """Whole-number weights whose pure loss is at most `loss`; `optimum` is the solver's least expected |error|.

    `start` is the least answer, `weights` has a row for each count, `mixed` is the share of the uniform law that rounding
    needed. Made by `certified_kernel`.
    """

    start: int
    weights: Rows
    loss: float
    optimum: float
    mixed: float


def certified_kernel(
    records: RecordLaws, pairs: CountPairs, epsilon: float, prior: Sequence[float], family: Family = "counts"
) -> CertifiedKernel:
    """The kernel with the least expected |error| under the prior over the counts low..high, with loss at most epsilon.

    `records` is the law of a row, `pairs` the counts that must be indistinguishable, `epsilon` the promise, `prior` a
    probability for each count; `family` is "counts" (each law alone) or "corner" (the worst corner of a box).

    Of a box the error is that of its middle; the loss is that of all of it.

    >>> found = certified_kernel(RecordLaws.event(0.4, 0.6), CountPairs.all_of(4), 0.5, [0.2] * 5)
    >>> round(found.optimum, 6), 0.499 < found.loss <= 0.5
    (0.298445, True)
    """
    require_size(records, pairs)
    return kernel_for(secret_laws(records, pairs, family), objective(records, pairs, prior), epsilon)


def kernel_for(laws: SecretLaws, target: Sequence[float] | NDArray[np.float64], epsilon: float) -> CertifiedKernel:
    """The same for laws in whole numbers; `target` is the law of F that the error is averaged over."""
    solved = optimal_kernel(float_laws(laws), target, epsilon * SOLVED_SHARE, laws.apart)
    for mixed in _shares(solved, laws, epsilon):
        weights = _weights(solved.kernel, mixed)
        loss = weights_loss(weights, laws)
        if loss <= epsilon:
            return CertifiedKernel(laws.start, weights, loss, solved.error, mixed)
    raise RefusedError("optimal: no kernel could be certified. Use another mechanism.")


def kernel_loss_upper(
    weights: Sequence[Sequence[int]], records: RecordLaws, pairs: CountPairs, family: Family = "counts"
) -> float:
    """An upper bound on the loss of these weights over every pair, for every law of the family.

    `weights` are whole numbers, a row for each count; `records` is the law of a row, `pairs` the counts that must be
    indistinguishable, `family` as for `certified_kernel`.

    >>> kernel_loss_upper(((2**62, 0), (0, 2**62)), RecordLaws.event(0.4, 0.6), CountPairs.all_of(1)) - math.log(1.5) < 1e-15
    True
    """
    laws = secret_laws(records, pairs, family)
    return weights_loss(weights, laws)


def objective(records: RecordLaws, pairs: CountPairs, prior: Sequence[float]) -> NDArray[np.float64]:
    """The law of F that the error is averaged over: the prior's mixture, at the middle of the box."""
    import numpy as np

    require_prior(prior, pairs)
    laws = secret_laws(middle(records), pairs, "counts")
    return np.asarray(np.array(prior, dtype=np.float64) @ np.array(float_laws(laws)), dtype=np.float64)


def middle(records: RecordLaws) -> RecordLaws:
    """The record laws at the middle of their intervals."""
    if records.exact:
        return records
    if not records.binary:
        raise RefusedError("optimal: only an event may have intervals; other values need exact probabilities.").because(
            Cause.NUMBERS, "exact probabilities"
        )
    return RecordLaws.event(sum(records.member[1]) / 2, sum(records.rest[1]) / 2)


def require_prior(prior: Sequence[float], pairs: CountPairs) -> None:
    """The prior must have one probability for each count from low to high."""
    if len(prior) != pairs.high - pairs.low + 1 or not all(p >= 0 for p in prior) or not abs(math.fsum(prior) - 1) <= 1e-9:
        raise UsageError(f"prior: must be probabilities of the counts {pairs.low}..{pairs.high} that sum to 1.")


def require_size(records: RecordLaws, pairs: CountPairs) -> None:
    """Whether the linear programs can be solved in about a minute."""
    secrets, values = pairs.high - pairs.low + 1, pairs.n * records.width + 1
    if secrets > MOST_SECRETS or values > MOST_VALUES:
        limits = f"at most {MOST_SECRETS} counts and {MOST_VALUES} values of the statistic"
        raise RefusedError(f"optimal: solves problems of {limits}. Got {secrets} and {values}. Use another mechanism.").because(
            Cause.SIZE
        )


def weights_loss(weights: Sequence[Sequence[int]], laws: SecretLaws) -> float:
    """An upper bound on the loss of these weights over every pair of the laws."""
    import numpy as np

    require_rows("weights", weights, laws.values, laws.values, 2**WEIGHT_BITS)
    matrix = np.array(weights, dtype=object)
    lowers = np.array(laws.masses, dtype=object) @ matrix
    uppers = lowers + SHORT * matrix.sum(axis=0)[None, :]
    return loss_upper(uppers.tolist(), lowers.tolist(), laws.apart)


def _shares(solved: KernelProgram, laws: SecretLaws, epsilon: float) -> Iterator[float]:
    """None at first, then what the solver's excess asks for, then more, and everything at last."""
    import numpy as np

    yield 0.0
    excess = largest_excess(np.array(float_laws(laws)) @ solved.kernel, epsilon, laws.apart)
    share = max(_LEAST_MIXED, 2 * excess * laws.values / math.expm1(epsilon))
    while share < 1:
        yield share
        share *= 4
    yield 1.0


def _weights(kernel: NDArray[np.float64], mixed: float) -> Rows:
    """Rows of whole numbers: noise removed, mixed with the uniform law, what rounding leaves given to the largest weight."""
    import numpy as np

    clean = np.where(kernel > _NOISE, kernel, 0.0)
    rows = (1 - mixed) * clean / clean.sum(axis=1, keepdims=True) + mixed / len(clean)
    return tuple(whole_row(row, 2**WEIGHT_BITS) for row in rows.tolist())


def whole_row(row: Sequence[float], total: int) -> tuple[int, ...]:
    """Whole numbers in proportion to the row that sum to `total` exactly.

    >>> whole_row([0.1, 0.2, 0.7], 10)
    (1, 2, 7)
    """
    exact = [Fraction(x) for x in row]
    scale = total / sum(exact)
    weights = [int(x * scale) for x in exact]
    weights[weights.index(max(weights))] += total - sum(weights)
    return tuple(weights)
