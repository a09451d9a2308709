"""A mechanism that sees the count and reads the table's secret, where only the *population's* share has to be hidden.

    minimise  sum_a pi_a W1(mu_a, R_a)    subject to  m(o) <= sum_a beta_k(a) R_a(o) <= e^eps m(o)   for k = 0..n and all o

| symbol | here |
|---|---|
| a | how many of the table's n rows are members: read by the mechanism, and not hidden for itself |
| mu_a, R_a | the law of F given a, and the law meant for the output, as in `numerics.calibration.coupling` |
| phi | the population's share, in [low, high]: the secret |
| beta_k | the law of a with k rows drawn at the high end of the range, the rest at the low one: Bin(k, high) + Bin(n-k, low) |
| pi | the law of a that the error is averaged over |

A row of a population with the share phi is a member with a chance between both ends, so the law of a given phi is a mixture
over k of the beta_k, and so is the law of the output of the mixtures above. A ratio of mixtures is at most the largest ratio
of their parts: the conditions hide phi. They ask for no more than that each beta_k looks like any other, which is less than
every count looking like any other (`calibration.coupling`, where beta_k would be the point k) and allows more than seeing F
alone (where R_a would be made by the same kernel for all a). So neither of the two errs less.

What must never change: the loss is recomputed in whole numbers from the slices that are drawn from, with the true mu_a and
beta_k between their whole-number bounds. The solver is not trusted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from attrpriv.errors import Cause, RefusedError, UsageError
from attrpriv.numerics.calibration.coupling import CertifiedCoupling, output_bounds, require_exact, whole_slices
from attrpriv.numerics.calibration.kernel import SOLVED_SHARE, require_prior, whole_row
from attrpriv.numerics.calibration.linear_program import solve_program
from attrpriv.numerics.calibration.secret_laws import BITS, Rows, float_laws, loss_upper, require_rows, secret_laws
from attrpriv.numerics.laws.fixed_point import SHORT, fixed_binomial_sum
from attrpriv.numerics.laws.records import CountPairs, RecordLaws

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

MOST_ROWS = 24
MOST_OUTPUTS = 60
_TOTAL = 2**BITS
# Entries of the solver's laws below this are its noise; the least share of the uniform law that repairs what it left.
_NOISE = 1e-12
_LEAST_MIXED = 2.0**-40

Shares = tuple[float, float]


def certified_population_coupling(
    records: RecordLaws, n: int, shares: Shares, epsilon: float, prior: Sequence[float]
) -> CertifiedCoupling:
    """The slices with the least expected |error| under the prior over a = 0..n that hide every share of the range.

    >>> found = certified_population_coupling(RecordLaws.event(0.4, 0.6), 4, (0.2, 0.8), 0.2, [0.2] * 5)
    >>> round(found.optimum, 4), found.loss <= 0.2
    (0.1501, True)
    """
    require_exact(records)
    if not population_solvable(records, n):
        limits = f"{MOST_ROWS} rows and {MOST_OUTPUTS} values of the statistic"
        raise RefusedError(f"optimal: reading the secret for a population's share is solved for up to {limits}.").because(
            Cause.SIZE
        )
    pairs = CountPairs.all_of(n)
    require_prior(prior, pairs)
    laws = secret_laws(records, pairs, "counts")
    solved, error = _solved(float_laws(laws), prior, _weights(n, shares), epsilon * SOLVED_SHARE)
    sources = tuple(whole_slices(masses) for masses in laws.masses)
    for mixed in mixing_shares():
        targets = mixed_targets(solved, mixed)
        loss = population_loss_upper(sources, targets, records, n, shares)
        if loss <= epsilon:
            return CertifiedCoupling(laws.start, 0, sources, targets, loss, error)
    raise RefusedError("optimal: no mechanism could be certified. Use another one.")


def population_solvable(records: RecordLaws, n: int) -> bool:
    """Whether the linear program is small enough, and the laws of the rows are exact."""
    return records.exact and n <= MOST_ROWS and n * records.width + 1 <= MOST_OUTPUTS


def population_loss_upper(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], records: RecordLaws, n: int, shares: Shares
) -> float:
    """An upper bound on the loss of what is drawn from these slices, over any two shares of the range."""
    require_exact(records)
    laws = secret_laws(records, CountPairs.all_of(n), "counts")
    for name, rows in (("sources", sources), ("targets", targets)):
        require_rows(name, rows, n + 1, laws.values, _TOTAL)
    bounds = [output_bounds(*rows) for rows in zip(laws.masses, sources, targets, strict=True)]
    lowers, uppers = [], []
    for beta in beta_laws(n, shares):
        lowers.append([sum(b * low[o] for b, (low, _) in zip(beta, bounds, strict=True)) for o in range(laws.values)])
        uppers.append([sum((b + SHORT) * up[o] for b, (_, up) in zip(beta, bounds, strict=True)) for o in range(laws.values)])
    return loss_upper(uppers, lowers, n)


def beta_laws(n: int, shares: Shares) -> Rows:
    """beta_k, k = 0..n, in units of 2^-BITS, entries short by less than SHORT; shares are the decimals they are written as."""
    low, high = (Fraction(repr(end)) for end in shares)
    if not 0 <= low < high <= 1:
        raise UsageError(f"shares: must be two shares in order from 0 to 1. Got {shares}.")
    return tuple(fixed_binomial_sum(k, high, n - k, low, BITS) for k in range(n + 1))


def _weights(n: int, shares: Shares) -> Matrix:
    import numpy as np

    return np.array([[mass / _TOTAL for mass in row] for row in beta_laws(n, shares)])


def _solved(laws: Sequence[Sequence[float]], prior: Sequence[float], beta: Matrix, epsilon: float) -> tuple[Matrix, float]:
    """The laws R_a as the solver left them, and the expected |error|."""
    import numpy as np
    from scipy import sparse

    family, chances = np.array(laws), np.array(prior)
    counts, values = family.shape
    cuts = values - 1
    # R_a = mu_a + D (up - down): what flows over the cut between two neighbouring values, either way, is what W1 counts.
    flow: Any = sparse.diags_array((1.0, -1.0), offsets=(0, -1), shape=(values, cuts))
    flows = sparse.kron(sparse.eye(counts), flow)
    mixed = sparse.kron(sparse.csr_matrix(beta), sparse.eye(values)) @ flows
    envelope = sparse.kron(np.ones((len(beta), 1)), sparse.eye(values))
    above = sparse.hstack([mixed, -mixed, -math.exp(epsilon) * envelope])
    below = sparse.hstack([-mixed, mixed, envelope])
    positive = sparse.hstack([-flows, flows, sparse.csr_matrix((counts * values, values))])
    outputs = beta @ family
    limits = np.concatenate([-outputs.ravel(), outputs.ravel(), family.ravel()])
    scaled = chances / chances.max()
    cost = np.concatenate([np.repeat(scaled, cuts), np.repeat(scaled, cuts), np.zeros(values)])
    rows = sparse.vstack([above, below, positive]).tocsr()
    found = solve_program(cost, rows, limits, None, None, interior=False)
    net = found[: counts * cuts] - found[counts * cuts : 2 * counts * cuts]
    moved = np.asarray(family + (flows @ net).reshape(counts, values), dtype=np.float64)
    return moved, float(cost @ found / scaled.sum())


def mixing_shares() -> Iterator[float]:
    """How much of the uniform law is mixed in: ever more, and everything at last."""
    share = _LEAST_MIXED
    while share < 1:
        yield share
        share *= 8
    yield 1.0


def mixed_targets(solved: Matrix, mixed: float) -> Rows:
    """Rows of whole numbers: noise removed, and mixed with the same uniform law, which costs no privacy."""
    import numpy as np

    clean = np.where(solved > _NOISE, solved, 0.0)
    rows = (1 - mixed) * clean / clean.sum(axis=1, keepdims=True) + mixed / clean.shape[1]
    return tuple(whole_row(row, _TOTAL) for row in rows.tolist())
