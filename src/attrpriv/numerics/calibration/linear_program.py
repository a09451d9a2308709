"""The least expected error of any pure-epsilon mechanism: two linear programs, solved in floats.

    sees F            min over M >= 0    sum_f w(f) sum_o M[f, o] |f - o|
                      with  sum_o M[f, o] = 1  and  (L_a M)(o) <= e^eps (L_b M)(o)  for every pair (a, b) and every o

    reads the secret  min over m, R      sum_a pi_a W1(mu_a, R_a),    W1 = sum_o |CDF of mu_a - CDF of R_a|(o)
                      with  m(o) <= R_a(o) <= e^eps m(o)  for every a and o

| symbol | here |
|---|---|
| L_a, mu_a | `laws[a]`, the law of F given the secret a, over the values of F in order |
| w | `weights`, the law of F that the error is averaged over |
| pi | `prior` over the secrets |
| M | `KernelProgram.kernel` |
| m | `EnvelopeProgram.envelope`: the best R_a for a given m follows without a solver (`numerics.calibration.coupling`) |
| pairs | \\|a - b\\| <= `apart`; the second program is for all pairs |

Outputs are the values of F. The first program starts with the furthest pairs and adds those that its solution breaks until none
is left, which is why it is fast: few of the n^3 conditions are ever active. The second one keeps the conditions of all secrets
that the prior gives any weight.

What must never change: nothing here is a proof. A solver's solution obeys the conditions up to its tolerance; what may be
released is made and certified from it, in whole numbers, by `numerics.calibration.kernel` and `numerics.calibration.coupling`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attrpriv.errors import Cause, RefusedError, UsageError
from attrpriv.numerics.rounding import SUM_SLACK

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

# n = 150 rows of an event: 151 secrets and as many values, about half a minute.
MOST_SECRETS = 151
MOST_VALUES = 151
# How far the solver may break a condition. The certificate's mixing repairs ten times this at no visible cost.
_FEASIBLE = 1e-9
_BROKEN = 1e-8
_ROUNDS = 300
_FIRST_RUNS = 12
# Secrets of less than this share of the likeliest one's probability cannot move the optimum by more than the tolerance.
_NEGLIGIBLE = 1e-10
# From here on the interior point method is the faster one.
_MANY_SECRETS = 100


@dataclass(frozen=True, eq=False)
class KernelProgram:
    """The optimum over kernels that see F alone, as the solver left it: `error` is its expected |error|.

    `kernel` is M, `rounds` how often the solver was called. Made by `optimal_kernel`.
    """

    kernel: Matrix
    error: float
    rounds: int


@dataclass(frozen=True, eq=False)
class EnvelopeProgram:
    """The optimum over all mechanisms, as the solver left it: the envelope m, and the expected |error|.

    They are `envelope` and `error`. Made by `optimal_envelope`.
    """

    envelope: Matrix
    error: float


def optimal_kernel(
    laws: Sequence[Sequence[float]] | Matrix, weights: Sequence[float] | Matrix, epsilon: float, apart: int | None = None
) -> KernelProgram:
    """The kernel M[f, o] with the least expected |error| under `weights` that hides every pair at most `apart` apart.

    `laws` has the law of the answer for each secret, `weights` how often each answer counts, `epsilon` is the promise.

    >>> round(optimal_kernel([[0.6, 0.4], [0.4, 0.6]], [0.5, 0.5], 0.2).error, 6)
    0.25083
    """
    import numpy as np

    family, target = _checked(laws, weights, epsilon, size=1)
    reach = len(family) - 1 if apart is None else apart
    if not 1 <= reach <= len(family) - 1:
        raise UsageError(f"apart: must be from 1 to {len(family) - 1}. Got {apart}.")
    values = family.shape[1]
    distance = np.abs(np.subtract.outer(np.arange(values), np.arange(values)))
    cost = distance * (target / target.max())[:, None]
    rows = _first_conditions(len(family), values, reach)
    for rounds in range(1, _ROUNDS + 1):
        kernel = _solve_kernel(family, cost, rows, epsilon)
        broken = broken_conditions(family @ kernel, epsilon, reach, _BROKEN) - rows
        if not broken:
            return KernelProgram(kernel, float((distance * kernel * target[:, None]).sum()), rounds)
        rows |= broken
    raise RefusedError(f"optimal: the linear program did not settle within {_ROUNDS} rounds. Use another mechanism.")


def optimal_envelope(
    laws: Sequence[Sequence[float]] | Matrix, prior: Sequence[float] | Matrix, epsilon: float
) -> EnvelopeProgram:
    """The envelope m of target laws m <= R_a <= e^epsilon m with the least expected distance from the laws.

    `laws` has the law of the answer for each secret, `prior` the secrets' probabilities, `epsilon` is the promise.

    >>> found = optimal_envelope([[0.6, 0.4], [0.4, 0.6]], [0.5, 0.5], 0.2)
    >>> round(found.error, 6)
    0.050166
    """
    import numpy as np
    from scipy import sparse

    family, chances = _checked(laws, prior, epsilon, size=0)
    kept = chances > _NEGLIGIBLE * chances.max()
    family, chances = family[kept], chances[kept] / chances.max()
    secrets, values = family.shape
    # R_a = mu_a + D (up - down): what flows over the cut between two neighbouring values, either way, is what W1 counts.
    cuts = values - 1
    flow: Any = sparse.diags_array((1.0, -1.0), offsets=(0, -1), shape=(values, cuts))
    flows = sparse.kron(sparse.eye(secrets), flow)
    envelope = sparse.kron(np.ones((secrets, 1)), sparse.eye(values))
    above = sparse.hstack([flows, -flows, -math.exp(epsilon) * envelope])
    below = sparse.hstack([-flows, flows, envelope])
    cost = np.concatenate([np.repeat(chances, cuts), np.repeat(chances, cuts), np.zeros(values)])
    limits = np.concatenate([-family.ravel(), family.ravel()])
    solution = solve_program(cost, sparse.vstack([above, below]).tocsr(), limits, None, None, interior=secrets > _MANY_SECRETS)
    return EnvelopeProgram(np.maximum(solution[-values:], 0.0), float(cost @ solution / chances.sum()))


def broken_conditions(outputs: Matrix, epsilon: float, apart: int, tolerance: float) -> set[tuple[int, int, int]]:
    """(a, b, o) with outputs[a, o] > e^epsilon outputs[b, o] + tolerance, the worst of every window of secrets."""
    excess, most, least = _windows(outputs, epsilon, apart)
    starts, values = (excess > tolerance).nonzero()
    found = zip(starts + most[starts, values], starts + least[starts, values], values, strict=True)
    return {(int(a), int(b), int(o)) for a, b, o in found}


def largest_excess(outputs: Matrix, epsilon: float, apart: int) -> float:
    """The largest outputs[a, o] - e^epsilon outputs[b, o] over the pairs at most `apart` apart."""
    return float(_windows(outputs, epsilon, apart)[0].max())


def _windows(outputs: Matrix, epsilon: float, apart: int) -> tuple[Matrix, Any, Any]:
    """For each run of apart + 1 secrets and each output: the largest excess, and which of the run attain it.

    Two secrets at most `apart` apart are in one run, and no pair of a run is further apart.
    """
    import numpy as np

    runs = np.lib.stride_tricks.sliding_window_view(outputs, apart + 1, axis=0)
    return runs.max(axis=2) - math.exp(epsilon) * runs.min(axis=2), runs.argmax(axis=2), runs.argmin(axis=2)


def _first_conditions(secrets: int, values: int, apart: int) -> set[tuple[int, int, int]]:
    """The ends of a few runs of secrets; the pairs that matter are found by solving."""
    step = max(apart, -(-secrets // _FIRST_RUNS))
    ends = [(a, min(a + apart, secrets - 1)) for a in range(0, secrets - 1, step)]
    return {(*pair, o) for a, b in ends for pair in ((a, b), (b, a)) for o in range(values)}


def _solve_kernel(laws: Matrix, cost: Matrix, rows: set[tuple[int, int, int]], epsilon: float) -> Matrix:
    import numpy as np
    from scipy import sparse

    values = laws.shape[1]
    chosen = np.array(sorted(rows))
    entries = laws[chosen[:, 0]] - math.exp(epsilon) * laws[chosen[:, 1]]
    columns = np.arange(values)[None, :] * values + chosen[:, 2][:, None]
    ends = np.arange(0, entries.size + 1, values)
    pairs = sparse.csr_matrix((entries.ravel(), columns.ravel(), ends), shape=(len(chosen), values * values))
    totals = sparse.kron(sparse.eye(values), np.ones((1, values))).tocsr()
    solution = solve_program(cost.ravel(), pairs, np.zeros(len(chosen)), totals, np.ones(values), interior=False)
    return solution.reshape(values, values)


def solve_program(cost: Matrix, a_ub: Any, b_ub: Matrix, a_eq: Any, b_eq: Matrix | None, *, interior: bool) -> Matrix:
    """The solution by the method that is usually faster, else by the other one."""
    import numpy as np
    from scipy import optimize

    linprog: Any = optimize.linprog  # its stubs know no sparse matrices
    options = {"primal_feasibility_tolerance": _FEASIBLE}
    for method in ("highs-ipm", "highs-ds") if interior else ("highs-ds", "highs-ipm"):
        found = linprog(cost, a_ub, b_ub, a_eq, b_eq, bounds=(0, None), method=method, options=options)
        if found.status == 0 and np.isfinite(found.x).all():
            return np.asarray(found.x, dtype=np.float64)
    raise RefusedError("optimal: the solver found no solution of the linear program. Use another mechanism.")


def _checked(laws: Any, weights: Any, epsilon: float, *, size: int) -> tuple[Matrix, Matrix]:
    """The laws and the weights as arrays; there must be as many weights as the laws have entries along axis `size`."""
    import numpy as np

    if not (math.isfinite(epsilon) and epsilon > 0):
        raise UsageError(f"epsilon: must be finite and positive. Got {epsilon}.")
    family, chances = np.array(laws, dtype=np.float64), np.array(weights, dtype=np.float64)
    if family.ndim != 2 or min(family.shape) < 2 or chances.shape != (family.shape[size],):
        raise UsageError(f"laws: needs two or more over two or more values. Got {family.shape} and {chances.shape} weights.")
    if family.shape[0] > MOST_SECRETS or family.shape[1] > MOST_VALUES:
        limits = f"at most {MOST_SECRETS} counts and {MOST_VALUES} values"
        raise RefusedError(f"optimal: solves problems of {limits}. Got {family.shape[0]} and {family.shape[1]}.").because(
            Cause.SIZE
        )
    for name, law in (("laws", family), ("weights", chances[None, :])):
        # NaN fails both comparisons.
        if not ((law >= 0).all() and (abs(law.sum(axis=1) - 1) <= SUM_SLACK).all()):
            raise UsageError(f"{name}: each must be probabilities that sum to 1.")
    return family, chances
