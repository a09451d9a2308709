"""The exact law of a count or a sum over a Markov chain, given one entry: what the other entries tell of it by that sum alone.

    past[s, c]   = P(X_1 + ... + X_i add c, X_i = s)          future[s, c] = P(X_{i+1} + ... + X_T add c | X_i = s)
    P(sum = c | X_i = s) = sum over d of  past[s, d] future[s, c - d] / P(X_i = s)

`values[s]` is what an entry of state s adds. All terms are positive, so that their relative error is counted: each step
multiplies by an entry of the matrix and adds k of them (`MarkovChain.error`), and what underflows on the way is far below any
mass that is claimed. What must never change: which sums are possible is decided in whole numbers, apart from their size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.lattice_law import LatticeLaw, accurate, up
from attrpriv.numerics.laws.markov import LEAST, MarkovChain
from attrpriv.numerics.rounding import UNIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    # Chances; or truth values, whose products and sums are "and" and "or".
    Array = NDArray[Any]

# Products in all.
_MOST_WORK = 2**33


def chain_sum(chain: MarkovChain, length: int, node: int, state: int, values: Sequence[int]) -> LatticeLaw:
    """The law of the sum of `values` over a chain of `length` entries, given that entry `node` (from 1) has `state` (from 0).

    `values[s]` is what an entry of state s adds, a whole number: (0, 1) counts the second of two states. `chain` has the law.

    >>> first, second = (chain_sum(MarkovChain((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9))), 3, 1, s, (0, 1)) for s in (0, 1))
    >>> first.masses.round(2).tolist(), second.masses.round(2).tolist()
    ([0.81, 0.1, 0.09], [0.09, 0.1, 0.81])
    """
    import numpy as np

    k = chain.states
    _require(k, length, node, state, values)
    least = min(values)
    adds = [value - least for value in values]
    width = length * max(adds) + 1
    if length * width * k * k + width * width > _MOST_WORK:
        raise UsageError("length: the sum takes too many values to be computed. Take fewer entries.")
    step = chain.matrix()
    past, future = _past(chain.start(), step, adds, node, width)[state], _future(step, adds, length - node, width)[state]
    before = _past(chain.start() > 0, step > 0, adds, node, width)[state]
    after = _future(step > 0, adds, length - node, width)[state]
    chance = float(past.sum())
    if not before.any():
        raise UsageError(f"state: entry {node} cannot have state {state}.")
    if not chance >= LEAST:
        raise UsageError(f"state: that entry {node} has state {state} is too improbable for floats.")
    masses = np.convolve(past / chance, future)[:width]
    there = np.convolve(before.astype(np.float64), after.astype(np.float64))[:width] > 0
    products = chain.error(node) + chain.error(length - node) + (2 * width + 16) * UNIT
    # Each product may underflow by 2^-1074; claimed are masses of 2^-1000 and more.
    under = 4.0 * width * k * (k + 1) * length * 2.0**-74 / chance
    error = up((1 + products) * (1 + products) - 1 + under)
    seen = np.flatnonzero(there)
    inside = slice(int(seen[0]), int(seen[-1]) + 1)
    return accurate(length * least + inside.start, masses[inside], there[inside], error=error, lost=0.0)


def _require(k: int, length: int, node: int, state: int, values: Sequence[int]) -> None:
    if not 1 <= node <= length:
        raise UsageError(f"node: must be from 1 to length, {length}. Got {node}.")
    if not 0 <= state < k:
        raise UsageError(f"state: must be from 0 to {k - 1}. Got {state}.")
    if len(values) != k or any(not isinstance(value, int) for value in values):
        raise UsageError(f"values: must be one whole number for each of {k} states.")


def _past(start: Array, step: Array, adds: Sequence[int], node: int, width: int) -> Array:
    """For each state of the entry and each sum so far, the chance of both; of truth values, whether it is possible."""
    import numpy as np

    found = np.zeros((len(adds), width), dtype=start.dtype)
    for s, value in enumerate(adds):
        found[s, value] = start[s]
    for _ in range(node - 1):
        moved = step.T @ found
        for s, value in enumerate(adds):
            found[s] = _later(moved[s], value)
    return found


def _future(step: Array, adds: Sequence[int], steps: int, width: int) -> Array:
    """For each state of the entry, the chance of each sum of the entries after it."""
    import numpy as np

    found = np.zeros((len(adds), width), dtype=step.dtype)
    found[:, 0] = 1
    for _ in range(steps):
        found = step @ np.stack([_later(line, value) for line, value in zip(found, adds, strict=True)])
    return found


def _later(line: Array, value: int) -> Array:
    """The same with so much added; nothing that is possible is beyond the last place."""
    import numpy as np

    return line if value == 0 else np.concatenate([np.zeros(value, dtype=line.dtype), line[:-value]])
