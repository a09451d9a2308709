"""A mechanism that reads the secret, where only near values of it have to look alike: `within`.

    minimise  sum_a pi_a W1(mu_a, R_a)    subject to  R_a(o) <= e^eps R_b(o)   for |a - b| <= apart and all o

| symbol | here |
|---|---|
| mu_a, R_a, pi | as in `numerics.calibration.coupling`: the law of F given a, the law meant for the output, the prior |
| apart | `CountPairs.apart`: how many rows two values that must look alike differ by at most |

With all pairs there is one envelope m for all R_a, and the program of `calibration.linear_program` is the same as this. With
fewer pairs this one asks for less. It starts with some pairs and adds those that its solution breaks until none is left.

What must never change: the loss is recomputed in whole numbers from the slices that are drawn from, over the stated pairs
(`coupling_loss_upper`). The solver is not trusted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attrpriv.errors import Cause, RefusedError
from attrpriv.methods.optimal.population_coupling import mixed_targets, mixing_shares
from attrpriv.numerics.calibration.coupling import CertifiedCoupling, coupling_loss_upper, require_exact, whole_slices
from attrpriv.numerics.calibration.kernel import SOLVED_SHARE, require_prior
from attrpriv.numerics.calibration.linear_program import broken_conditions, solve_program
from attrpriv.numerics.calibration.secret_laws import float_laws, secret_laws
from attrpriv.numerics.laws.records import CountPairs, RecordLaws

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]
    Condition = tuple[int, int, int]

# Secrets times values of the statistic, up to which the program is solved within seconds: 40 rows of an event.
MOST_ENTRIES = 1_681
_BROKEN = 1e-8
_ROUNDS = 300
# Secrets that the prior leaves out need a law too: with a little weight it is one near their own.
_LEAST_WEIGHT = 1e-7


def near_solvable(records: RecordLaws, pairs: CountPairs) -> bool:
    """Whether the linear program is small enough, and the laws of the rows are exact."""
    return records.exact and (pairs.high - pairs.low + 1) * (pairs.n * records.width + 1) <= MOST_ENTRIES


def certified_near_coupling(
    records: RecordLaws, pairs: CountPairs, epsilon: float, prior: Sequence[float]
) -> CertifiedCoupling:
    """The slices with the least expected |error| under the prior over low..high that hide the stated pairs.

    >>> found = certified_near_coupling(RecordLaws.event(0.4, 0.6), CountPairs(8, 0, 8, 1), 0.2, [1 / 9] * 9)
    >>> round(found.optimum, 4), found.loss <= 0.2
    (0.0334, True)
    """
    require_exact(records)
    require_prior(prior, pairs)
    if not near_solvable(records, pairs):
        raise RefusedError(
            f"optimal: near pairs are solved for up to {MOST_ENTRIES} counts times values of the statistic."
        ).because(Cause.SIZE)
    laws = secret_laws(records, pairs, "counts")
    solved, error = near_laws(float_laws(laws), prior, epsilon * SOLVED_SHARE, pairs.apart)
    sources = tuple(whole_slices(masses) for masses in laws.masses)
    for mixed in mixing_shares():
        targets = mixed_targets(solved, mixed)
        loss = coupling_loss_upper(sources, targets, records, pairs)
        if loss <= epsilon:
            return CertifiedCoupling(laws.start, pairs.low, sources, targets, loss, error)
    raise RefusedError("optimal: no mechanism could be certified. Use another one.")


def near_laws(laws: Sequence[Sequence[float]], prior: Sequence[float], epsilon: float, apart: int) -> tuple[Matrix, float]:
    """The laws R_a as the solver left them, and the expected |error|."""
    import numpy as np

    family, chances = np.array(laws, dtype=np.float64), np.array(prior, dtype=np.float64)
    weights = np.maximum(chances / chances.max(), _LEAST_WEIGHT)
    conditions = _furthest(len(family), family.shape[1], apart)
    for _ in range(_ROUNDS):
        moved = _solved(family, weights, conditions, epsilon)
        broken = broken_conditions(moved, epsilon, apart, _BROKEN) - conditions
        if not broken:
            distances = np.abs(np.cumsum(moved - family, axis=1)).sum(axis=1)
            return moved, float(chances @ distances)
        conditions |= broken
    raise RefusedError(f"optimal: the linear program did not settle within {_ROUNDS} rounds. Use another mechanism.")


def _furthest(secrets: int, values: int, apart: int) -> set[Condition]:
    """The pairs that are as far apart as pairs are; what else matters is found by solving."""
    ends = [(a, a + apart) for a in range(secrets - apart)]
    return {(*pair, o) for a, b in ends for pair in ((a, b), (b, a)) for o in range(values)}


def _solved(family: Matrix, weights: Matrix, conditions: set[Condition], epsilon: float) -> Matrix:
    """The best laws under some of the conditions."""
    import numpy as np
    from scipy import sparse

    secrets, values = family.shape
    cuts, own = values - 1, family.ravel()
    # R_a = mu_a + D (up - down): what flows over the cut between two neighbouring values, either way, is what W1 counts.
    flow: Any = sparse.diags_array((1.0, -1.0), offsets=(0, -1), shape=(values, cuts))
    flows = sparse.kron(sparse.eye(secrets), flow).tocsr()
    a, b, o = np.array(sorted(conditions)).T
    more, less, growth = a * values + o, b * values + o, math.exp(epsilon)
    rows = sparse.vstack([flows[more] - growth * flows[less], -flows])
    limits = np.concatenate([growth * own[less] - own[more], own])
    cost = np.tile(np.repeat(weights, cuts), 2)
    found = solve_program(cost, sparse.hstack([rows, -rows]).tocsr(), limits, None, None, interior=False)
    net = found[: secrets * cuts] - found[secrets * cuts :]
    return np.asarray(family + (flows @ net).reshape(secrets, values), dtype=np.float64)
