"""The laws of a count at some values of the secret, on a lattice of outputs, and how far a transport moves the count.

    mean_absolute = sum_a pi_a W1(mu_a, R_a),   rmse^2 = sum_a pi_a E (O - F)^2,   tail[k] = P(|O - F| > k step)

| symbol | here |
|---|---|
| pi | `CountPrior`: the counts that are looked at, and their chances |
| mu_a | `Lattice.laws`: F clipped to the window of outputs, summed over blocks of `block` outputs, in units of 1/N |
| R_a | what `count_transport` makes of it |
| tail | under the prior where one is stated, else the largest over the counts that are looked at: for intervals |
| averaged | under the prior, or over all counts alike, as the two means are: what plans are compared by |

For expected errors only: the laws are floats turned into whole numbers, and nothing that is promised rests on them. Where there
are more outputs than `MEASURED` allows, an error below a block is counted as a block with the chance that W1 gives it, so that
the mean is right and the root mean square a little high.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.methods.count_transport.target import TOTAL, CountTransport, target_of, transport_bounds
from attrpriv.numerics.laws.float_law import float_law
from attrpriv.numerics.laws.lattice import LatticeLaw

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.numerics.laws.count_cases import CountPrior
    from attrpriv.numerics.laws.records import RecordLaws

    Array = NDArray[np.float64]

# Counts and blocks of outputs that are looked at to state an error.
MEASURED = (65, 2**14)
_ROUNDING = 1e-15
_TAIL_LENGTH = 1024


@dataclass(frozen=True, eq=False)
class Lattice:
    """mu_a at some counts: slices of TOTAL for blocks of outputs from `start` on."""

    start: int
    block: int
    chances: tuple[float, ...]
    laws: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Moved:
    """How far the output is from the count, in steps of the statistic."""

    mean_absolute: float
    rmse: float
    tail: tuple[float, ...]
    step: int
    averaged: tuple[float, ...] = ()

    def half_width(self, beta: float) -> int:
        """The least listed distance that is exceeded with a chance of at most beta.

        >>> Moved(0.1, 0.3, (0.08, 0.01, 0.0), 1).half_width(0.05)
        1
        """
        return self.step * _first(self.tail, beta)

    def average_width(self, beta: float) -> int:
        """The same on average over the prior, or over all counts alike."""
        return self.step * _first(self.averaged or self.tail, beta)


def _first(chances: Sequence[float], beta: float) -> int:
    if not 0 < beta < 1:
        raise UsageError(f"beta: must be between 0 and 1. Got {beta}.")
    return next((k for k, chance in enumerate(chances) if chance <= beta), len(chances))


def largest(errors: Sequence[Moved]) -> Moved:
    """Under several priors: the largest of each number, on the coarsest of their steps."""
    step = max(error.step for error in errors)
    same = [error for error in errors if error.step == step]
    size = max(len(error.tail) for error in same)
    tails, averaged = ([_padded(row, size) for row in rows] for rows in zip(*((e.tail, e.averaged) for e in same), strict=True))
    mean, rmse = max(error.mean_absolute for error in errors), max(error.rmse for error in errors)
    return Moved(mean, rmse, tuple(map(max, zip(*tails, strict=True))), step, tuple(map(max, zip(*averaged, strict=True))))


def _padded(row: Sequence[float], size: int) -> tuple[float, ...]:
    return (*row, *(0.0,) * (size - len(row)))


def lattice_of(records: RecordLaws, prior: CountPrior, start: int, size: int, limits: tuple[int, int]) -> Lattice:
    """The laws at up to limits[0] counts, on up to limits[1] blocks of the outputs start..start + size - 1."""
    import numpy as np

    counts, chances = prior.nodes(limits[0])
    if not prior.stated:  # the largest error is that of an end
        ends = [end for end in (prior.low, prior.high) if end not in counts]
        counts, chances = np.append(counts, np.array(ends, dtype=np.int64)), np.append(chances, np.zeros(len(ends)))
    block = -(-size // limits[1])
    cells = -(-size // block)
    laws = tuple(_clipped(float_law(records, prior.n, int(a)), start, block, size, cells) for a in counts)
    return Lattice(start, block, tuple(chances.tolist()), laws)


def _clipped(law: LatticeLaw, start: int, block: int, size: int, cells: int) -> tuple[int, ...]:
    import numpy as np

    places = np.clip(np.arange(law.start, law.end + 1) - start, 0, size - 1) // block
    masses = np.bincount(places, weights=law.masses, minlength=cells)
    slices = [int(mass * TOTAL) for mass in (masses / masses.sum()).tolist()]
    slices[slices.index(max(slices))] += TOTAL - sum(slices)
    return tuple(slices)


def distance(source: Sequence[int], target: Sequence[int]) -> float:
    """W1 in blocks."""
    apart = itertools.accumulate(x - y for x, y in zip(source, target, strict=True))
    return float(sum(map(abs, apart)) / TOTAL)


def moved(transport: CountTransport, prior: CountPrior) -> Moved:
    """The error of a transport under the prior."""
    bounds = transport_bounds(transport)
    lattice = lattice_of(transport.records, prior, bounds.start, len(bounds.low), MEASURED)
    low, high = (_blocks(row, lattice.block) for row in (bounds.low, bounds.high))
    targets = [target_of(source, low, high, bounds.excess, monotone=transport.monotone) for source in lattice.laws]
    mean = math.fsum(w * distance(s, t) for w, s, t in zip(lattice.chances, lattice.laws, targets, strict=True))
    rows = [_distances(source, target) for source, target in zip(lattice.laws, targets, strict=True)]
    return _summary(mean * lattice.block, rows, lattice, averaged=prior.stated)


def _blocks(row: Sequence[int], block: int) -> tuple[int, ...]:
    return tuple(sum(row[k : k + block]) for k in range(0, len(row), block)) if block > 1 else tuple(row)


def _distances(source: Sequence[int], target: Sequence[int]) -> Array:
    """P(|o - f| = 0, 1, ... blocks) of the monotone coupling: between any two cuts of either law, both are constant."""
    import numpy as np

    if tuple(source) == tuple(target):
        return np.ones(1)
    cuts = [np.array([x / TOTAL for x in itertools.accumulate(row)]) for row in (source, target)]
    points = np.unique(np.concatenate([[0.0], *cuts]))
    widths = np.diff(points)
    middles = points[:-1] + widths / 2
    held = [np.minimum(np.searchsorted(cut, middles, side="right"), len(cut) - 1) for cut in cuts]
    chances = np.bincount(np.abs(held[0] - held[1]), weights=np.where(widths > _ROUNDING, widths, 0.0))
    return np.asarray(chances, dtype=np.float64)


def _summary(mean: float, rows: Sequence[Array], lattice: Lattice, *, averaged: bool) -> Moved:
    import numpy as np

    size = max(map(len, rows))
    table = np.array([np.pad(row, (0, size - len(row))) for row in rows])
    steps = np.arange(size) * lattice.block
    weights = np.array(lattice.chances)
    rmse = math.sqrt(float(weights @ table @ (steps**2.0)))
    further = np.maximum(0.0, np.cumsum(table[:, ::-1], axis=1)[:, ::-1] - table)
    average, skip = weights @ further, -(-size // _TAIL_LENGTH)
    kept, own = (
        tuple(min(1.0, float(x)) for x in row[::skip]) for row in (average if averaged else further.max(axis=0), average)
    )
    # Rounding must not make the root mean square the smaller one.
    return Moved(mean, max(mean, rmse), (*kept, 0.0), skip * lattice.block, (*own, 0.0))
