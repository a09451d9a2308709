"""The reference law of a transported count, chosen by the expected error; floats throughout, and nothing here is a proof.

    nu_s ~ (prior mixture of the mu_a)^(1/s),      the s and e1 with the least  sum_a pi_a W1(mu_a, R_a)

| candidate | how |
|---|---|
| mixture, s = 1 | the law that F has under the prior |
| mixture, s > 1 or s < 1 | the same, wider or narrower: what the bounds cut off at the ends and in the middle is balanced |
| the law of one count | the prior's median a0; of an event, and the only one that can use delta |

The reference decides the error and never the promise (`count_transport.target`), so its logarithms may be rounded, and for
many outputs they are kept at some hundred places only. While s and e1 are searched, tables of many rows are looked at on a
coarser lattice and at some of the counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from attrpriv.errors import Cause, RefusedError
from attrpriv.methods.count_transport.lattice import Lattice, Moved, distance, lattice_of, moved
from attrpriv.methods.count_transport.target import (
    LARGEST_FIRST,
    MOST_OUTPUTS,
    MOST_ROWS,
    TOTAL,
    CountTransport,
    Reference,
    target_of,
)
from attrpriv.numerics.laws.count_cases import CountPrior
from attrpriv.numerics.laws.float_law import float_law

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.numerics.laws.records import RecordLaws

    Array = NDArray[np.float64]

# Supports up to this size are looked at value by value and count by count.
_FEW = 160
# Counts and blocks of outputs while searching.
_SEARCHED = (33, 192)
_PLACES = 768
_NODES = 2049
# Outputs further than this many standard deviations from every likely mean are left out; so deep may a logarithm be.
_REACH = 8.5
_DEEP = 47.0
_SPREADS = (0.6, 1.0, 1.41)
_PARTS = (0.35, 0.5, 0.65)
_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class _Search:
    """What every candidate is tried on."""

    lattice: Lattice
    epsilon: float
    delta: float

    def error(self, weights: Array, part: float, *, monotone: bool = False, delta: float = 0.0) -> float:
        """The expected |error|, in blocks, of bounds made of these weights."""
        first = part * self.epsilon
        if not (0.02 <= part <= 0.98 and first <= LARGEST_FIRST):
            return math.inf
        growth = math.exp(min(self.epsilon, 40.0))
        low = [int(x) for x in (weights / weights.sum() * (math.exp(-first) * TOTAL)).tolist()]
        high = [int(x * growth) for x in low]
        if not sum(low) <= TOTAL <= sum(high):
            return math.inf
        rows = zip(self.lattice.chances, self.lattice.laws, strict=True)
        excess = int(delta * TOTAL)
        return math.fsum(w * distance(s, target_of(s, low, high, excess, monotone=monotone)) for w, s in rows)


@lru_cache(maxsize=32)
def tuned_transport(records: RecordLaws, prior: CountPrior, epsilon: float, delta: float = 0.0) -> tuple[CountTransport, Moved]:
    """The transport with the least expected |error| among the candidates, and its error.

    >>> from attrpriv.numerics.laws.records import RecordLaws
    >>> found, error = tuned_transport(RecordLaws.event(0.4, 0.6), CountPrior(20, 0, 20, share=0.5), 1.0)
    >>> found.reference.outputs, 0.0163 <= round(error.mean_absolute, 4) <= 0.0173
    (21, True)
    """
    if prior.n > MOST_ROWS:
        raise RefusedError(f"transport: covers tables of up to {MOST_ROWS:,} rows. Got {prior.n:,}.").because(
            Cause.SIZE, "fewer rows"
        )
    start, size = _window(records, prior)
    few = prior.n * records.width < _FEW
    limits = (_SEARCHED[0], _FEW) if few else _SEARCHED
    search = _Search(lattice_of(records, prior, start, size, limits), epsilon, delta)
    found = [_mixture(records, prior, search, (start, size))]
    if records.binary:
        found += [_of_count(records, prior, search, part) for part in dict.fromkeys((0.0, delta))]
    best = min(found, key=lambda one: one[0])[1]
    return best, moved(best, prior)


def _mixture(records: RecordLaws, prior: CountPrior, search: _Search, window: tuple[int, int]) -> tuple[float, CountTransport]:
    """The best of the mixtures of all spreads."""
    import numpy as np

    start, size = window
    step = max(1, -(-(size - 1) // _PLACES))
    places = -(-(size - 1) // step) + 1
    logs = _mixture_logs(records, prior, start, step, places)
    centres = (np.arange(len(search.lattice.laws[0])) + 0.5) * search.lattice.block - 0.5
    at = np.interp(centres / step, np.arange(places), logs)

    def error(spread: float, part: float) -> float:
        return search.error(_weights(at, spread), part)

    least, spread, part = _searched(error)
    reference = Reference(start=start, step=step, logs=tuple(np.maximum(logs / spread, -_DEEP).tolist()), size=size)
    return least, CountTransport(records, prior.n, reference, search.epsilon, part * search.epsilon)


def _weights(logs: Array, spread: float) -> Array:
    import numpy as np

    return np.asarray(np.exp(np.maximum(logs / spread, -_DEEP)), dtype=np.float64)


def _of_count(records: RecordLaws, prior: CountPrior, search: _Search, delta: float) -> tuple[float, CountTransport]:
    """The best e1 where the reference is the law of the prior's median count."""
    import numpy as np

    counts, chances = prior.nodes(_NODES)
    count = int(counts[int(np.searchsorted(np.cumsum(chances), 0.5))])
    one = CountPrior(prior.n, count, count)
    size = len(search.lattice.laws[0]) * search.lattice.block
    law = lattice_of(records, one, search.lattice.start, size, (1, len(search.lattice.laws[0]))).laws[0]
    weights = np.maximum(np.array([x / TOTAL for x in law]), 2.0**-64)

    def error(_: float, part: float) -> float:
        return search.error(weights, part, monotone=True, delta=delta)

    least, _, part = _searched(error, spreads=(1.0,))
    return least, CountTransport(records, prior.n, Reference(count=count), search.epsilon, part * search.epsilon, delta)


def _searched(error: Callable[[float, float], float], spreads: tuple[float, ...] = _SPREADS) -> tuple[float, float, float]:
    """The least error, its spread and its part e1/eps: a grid, then ever smaller steps from its best point."""
    best = min((error(s, part), s, part) for s in spreads for part in _PARTS)
    turn, move = (2.0**0.25 if len(spreads) > 1 else 1.0), 0.075
    for _ in range(_ROUNDS):
        _, spread, part = best
        around = [(spread * x, part + y) for x in {1 / turn, 1.0, turn} for y in (-move, 0.0, move)]
        best = min([best, *((error(s, p), s, p) for s, p in around if (s, p) != (spread, part))])
        turn, move = math.sqrt(turn), move / 2
    return best


def _window(records: RecordLaws, prior: CountPrior) -> tuple[int, int]:
    """Where outputs may lie: start and size. The whole support where it is small."""
    import numpy as np

    lowest, highest = prior.n * records.values[0], prior.n * records.values[-1]
    if prior.n * records.width < _FEW:
        return lowest, highest - lowest + 1
    means, sds = _moments(records, prior, prior.nodes(_NODES)[0])
    first = max(lowest, math.floor(float(np.min(means - _REACH * sds))) - 8)
    last = min(highest, math.ceil(float(np.max(means + _REACH * sds))) + 8)
    size = last - first + 1
    if size > MOST_OUTPUTS:
        raise RefusedError(
            f"transport: covers up to {MOST_OUTPUTS:,} likely answers. Got {size:,}; state a prior, or a narrower range."
        ).because(Cause.SIZE, "a prior, or a narrower range")
    return first, size


def _moments(records: RecordLaws, prior: CountPrior, counts: NDArray[np.int64]) -> tuple[Array, Array]:
    """Mean and standard deviation of F at these counts."""
    import numpy as np

    values = np.array(records.values, dtype=np.float64)
    laws = [np.array([low for low, _ in law], dtype=np.float64) for law in (records.member, records.rest)]
    means = [float(law @ values / law.sum()) for law in laws]
    variances = [max(0.0, float(law @ values**2 / law.sum()) - mean**2) for law, mean in zip(laws, means, strict=True)]
    others = prior.n - counts
    return counts * means[0] + others * means[1], np.sqrt(counts * variances[0] + others * variances[1])


def _mixture_logs(records: RecordLaws, prior: CountPrior, start: int, step: int, places: int) -> Array:
    """The logarithms of the prior's mixture at start, start + step, ..., the largest of them 0."""
    import numpy as np

    if prior.n * records.width < _FEW:
        masses = np.zeros(places)
        for a, chance in zip(*prior.nodes(_NODES), strict=True):
            law = float_law(records, prior.n, int(a))
            masses[law.start - start : law.end - start + 1] += chance * law.masses
        logs = np.log(np.maximum(masses, 1e-300))
    else:
        logs = _normal_logs(records, prior, start + step * np.arange(places, dtype=np.float64))
    return np.asarray(np.maximum(logs - logs.max(), -2 * _DEEP), dtype=np.float64)


def _normal_logs(records: RecordLaws, prior: CountPrior, outputs: Array) -> Array:
    """The same of many rows, each mu_a as a normal law; the gaps between the counts that are looked at are smoothed over."""
    import numpy as np

    counts, chances = prior.nodes(_NODES)
    means, sds = _moments(records, prior, counts)
    gap = float(np.max(np.abs(np.diff(means)))) if len(means) > 1 else 0.0
    variances = sds**2 + 0.25 + gap**2
    exponents = np.log(chances / np.sqrt(variances)) - (outputs[:, None] - means) ** 2 / (2 * variances)
    return np.asarray(np.logaddexp.reduce(exponents, axis=1), dtype=np.float64)
