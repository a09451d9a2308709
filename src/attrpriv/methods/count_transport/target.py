"""Transport of a count: the secret is read, and the count is moved into a law close to a public one, by construction.

    low = e^-e1 nu,  high = e^eps low (rounded down),  low <= R_a <= high,  output by the monotone coupling of mu_a and R_a

| symbol | here |
|---|---|
| N | `TOTAL`, the length of every row of slices |
| nu | `Reference`, a public law on a window of outputs: that of one count, or any other one, given by its logarithms |
| e1, eps | `CountTransport.first` and `.epsilon` |
| mu_a | the true law of F given the count a = 0..n, clipped to the window of outputs |
| R_a | `Row.targets`: mu_a projected, by `projection` for an event whose nu is the law of a count, else `nearest_law` |
| cells | runs of values that together have a mass of at least 2^-64; `Row.sources` are their slices of N |
| rho | 2^-40: a slice is its cell's true mass times N, up to a factor 1 +- rho |

Given a and F in a cell c, a point of the slice of c is drawn, and the output is the o whose target slice holds it. So

    Q_a(o) = sum over cells of  mu_a(c) part(c, o)/slice(c)   lies within  R_a(o)/N (1 +- rho),

because the parts of one o add up to R_a(o): this holds for every a, whatever R_a is. Hence for every two counts a and b, within
the stated range or not,

    Q_a(T) <= (1 + rho) (high(T) + X)/N <= e^eps Q_b(T) + (1 + rho) X/N,        high <= e^eps (1 - rho)/(1 + rho) low.

The right-hand sides are public: `holds` checks them without any row. That a row obeys low <= R_a <= high (X: the part above
high) follows from how it is made; that its slices are within rho follows from `laws.fixed_window`, whose deficit is below
2^-110, and from the size of a cell. Both are checked again for the row that is used, in whole numbers, where the check cannot
fail.

What must never change: low, high and the window are functions of public numbers alone, the same for every a.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from attrpriv.errors import Cause, CertificateError, RefusedError, UsageError
from attrpriv.numerics.calibration.coupling import nearest_law
from attrpriv.numerics.calibration.secret_laws import exp_lower
from attrpriv.numerics.laws.fixed_window import BITS, WindowLaw, window_law
from attrpriv.numerics.laws.records import RecordLaws
from attrpriv.numerics.rounding import COMPUTED_UP

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOTAL_BITS = 128
TOTAL = 2**TOTAL_BITS
# rho = 1/SHARE.
_SHARE = 2**40
# A cell of values has at least this much of N.
_CELL = TOTAL >> 64
_EXP_BITS = 256
# No output has less than e^-48 of the likeliest one's weight in nu, and e1 is at most this.
_DEEPEST = 48.0
LARGEST_FIRST = 20.0
MOST_OUTPUTS = 2**18
MOST_ROWS = 1_000_000
# Up to so many counts times outputs, a certificate looks at every row.
_EVERY_ROW = 30_000


@dataclass(frozen=True)
class Reference:
    """A public law of outputs: that of F given `count` members, or the one with these logarithms.

    The logarithms, up to a constant, are those of start, start + step, ...; between them they are straight lines. There are
    `size` outputs, or (0) as many as the logarithms reach.
    """

    count: int | None = None
    start: int = 0
    step: int = 1
    logs: tuple[float, ...] = ()
    size: int = 0

    def __post_init__(self) -> None:
        if (self.count is None) == (not self.logs) or self.step < 1 or not all(map(math.isfinite, self.logs)):
            raise UsageError("reference: must be a count, or finite logarithms at equal steps, one of them.")
        if not 0 <= self.size <= self._reached:
            raise UsageError("reference: its size must be from 0 to what its logarithms reach.")
        if self.outputs > MOST_OUTPUTS:
            raise RefusedError(f"transport: covers up to {MOST_OUTPUTS:,} outputs. Got {self.outputs:,}.").because(Cause.SIZE)

    @property
    def outputs(self) -> int:
        """How many outputs the logarithms are for; 0 where they come from a count."""
        return self.size or self._reached

    @property
    def _reached(self) -> int:
        return (len(self.logs) - 1) * self.step + 1 if self.logs else 0


@dataclass(frozen=True)
class CountTransport:
    """The mechanism: exact laws of a row, n rows, the reference law, epsilon and its part below nu, and delta."""

    records: RecordLaws
    n: int
    reference: Reference
    epsilon: float
    first: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not self.records.exact:
            raise RefusedError(
                "transport: a mechanism that reads the secret needs exact probabilities, not intervals."
            ).because(Cause.NUMBERS, "exact probabilities")
        if not (0 < self.first < self.epsilon and self.first <= LARGEST_FIRST and 0 <= self.delta < 1):
            raise UsageError("transport: first must be above 0 and below epsilon, and delta from 0 to below 1.")
        if not 1 <= self.n <= MOST_ROWS:
            raise RefusedError(f"transport: covers tables of up to {MOST_ROWS:,} rows. Got {self.n:,}.").because(
                Cause.SIZE, "fewer rows"
            )
        if self.delta and not self.monotone:
            raise UsageError("transport: delta above 0 is covered where the reference is the law of a count of an event.")
        if self.reference.count is not None and not 0 <= self.reference.count <= self.n:
            raise UsageError("reference: its count must be from 0 to the number of rows.")

    @property
    def monotone(self) -> bool:
        """Whether mu_a/nu is monotone for every a."""
        return self.records.binary and self.reference.count is not None


@dataclass(frozen=True)
class Bounds:
    """What every target obeys: low <= R, and the sum of (R - high)_+ at most `excess`; outputs start, start + 1, ..."""

    start: int
    low: tuple[int, ...]
    high: tuple[int, ...]
    excess: int

    def holds(self, epsilon: float) -> bool:
        """Whether the bounds, with slices within rho, are worth epsilon."""
        growth = exp_lower(min(epsilon, 500.0)) * (_SHARE - 1)
        return all(x > 0 and (y * (_SHARE + 1) << _EXP_BITS) <= growth * x for x, y in zip(self.low, self.high, strict=True))

    @property
    def loss(self) -> float:
        """An upper bound on the pure loss: log Q_a(o)/Q_b(o), what is above `high` included."""
        ratios = ((y + self.excess) / x for x, y in zip(self.low, self.high, strict=True))
        return math.log(max(ratios)) * COMPUTED_UP + 4 / _SHARE

    @property
    def delta(self) -> float:
        """What the excess adds, from above."""
        if not self.excess:
            return 0.0
        return math.nextafter(self.excess * (_SHARE + 1) / (TOTAL * _SHARE), 1.0)


@dataclass(frozen=True)
class Row:
    """What is drawn from where the secret is one count: slices of cells, and slices of outputs start, start + 1, ..."""

    start: int
    begins: tuple[int, ...]
    sources: tuple[int, ...]
    targets: tuple[int, ...]

    def cell(self, total: int) -> int:
        """The cell of a value of F; values outside of the window belong to its ends."""
        return max(0, bisect_right(self.begins, total - self.start) - 1)


@lru_cache(maxsize=8)
def transport_bounds(transport: CountTransport) -> Bounds:
    """low and high, from public numbers alone.

    >>> bounds = transport_bounds(CountTransport(RecordLaws.event(0.4, 0.6), 4, Reference(count=2), 1.0, 0.5))
    >>> bounds.start, len(bounds.low), bounds.holds(1.0), bounds.holds(0.999)
    (0, 5, True, False)
    """
    start, weights = _weights(transport)
    whole, least = sum(weights), int(TOTAL * math.exp(-transport.first))
    low = tuple(weight * least // whole for weight in weights)
    growth = exp_lower(transport.epsilon) * (_SHARE - 1) // (_SHARE + 1)
    high = tuple(entry * growth >> _EXP_BITS for entry in low)
    if not (min(low) > 0 and sum(low) <= TOTAL <= sum(high)):
        raise RefusedError("transport: no law lies within the bounds. Use another mechanism.")
    return Bounds(start, low, high, int(TOTAL * transport.delta * (1 - 2.0**-30)))


def transport_row(transport: CountTransport, a: int) -> Row:
    """The slices for the count a, checked.

    >>> one = CountTransport(RecordLaws.event(0.4, 0.6), 4, Reference(count=2), 1.0, 0.5)
    >>> [round(x / TOTAL, 3) for x in transport_row(one, 0).targets]
    [0.035, 0.151, 0.338, 0.38, 0.095]
    """
    bounds = transport_bounds(transport)
    law = window_law.__wrapped__(transport.records, transport.n, a)  # not kept: which count was asked for is secret
    entries = law.clipped(bounds.start, len(bounds.low))
    slices = _slices(entries)
    targets = target_of(slices, bounds.low, bounds.high, bounds.excess, monotone=transport.monotone)
    begins = _cells(slices)
    row = Row(bounds.start, begins, _merged(slices, begins), targets)
    require_row(row, bounds, _merged(entries, begins), law.deficit)
    return row


def target_of(
    slices: Sequence[int], low: Sequence[int], high: Sequence[int], excess: int, *, monotone: bool
) -> tuple[int, ...]:
    """The law within the bounds that is nearest to the slices, by the way that is sound for them."""
    return projected_law(slices, low, high, excess) if monotone else nearest_law(slices, low, high)


def require_row(row: Row, bounds: Bounds, entries: Sequence[int], deficit: int) -> None:
    """Everything that the proof says of a row, in whole numbers; `entries` are the cells' masses from below."""
    inside = (
        sum(row.targets) == sum(row.sources) == TOTAL
        and all(x >= least for x, least in zip(row.targets, bounds.low, strict=True))
        and sum(max(0, x - most) for x, most in zip(row.targets, bounds.high, strict=True)) <= bounds.excess
    )
    near = all(
        mass * _SHARE << TOTAL_BITS >= (_SHARE - 1) * piece << BITS
        and (mass + deficit) * _SHARE << TOTAL_BITS <= (_SHARE + 1) * piece << BITS
        for mass, piece in zip(entries, row.sources, strict=True)
    )
    if not (inside and near):
        raise CertificateError("transport: the slices are not what the certificate counted on. Nothing was released.")


@lru_cache(maxsize=8)
def transport_holds(transport: CountTransport, epsilon: float) -> bool:
    """Whether the mechanism keeps (epsilon, delta) for all counts, by its bounds; of a small table every row is looked at."""
    bounds = transport_bounds(transport)
    if (transport.n + 1) * len(bounds.low) <= _EVERY_ROW:
        for a in range(transport.n + 1):
            transport_row(transport, a)
    return bounds.holds(epsilon)


def _weights(transport: CountTransport) -> tuple[int, list[int]]:
    """nu in whole numbers, up to a factor, none of them 0."""
    reference = transport.reference
    if reference.count is not None:
        law = window_law(transport.records, transport.n, reference.count)
        return _heart(law)
    import numpy as np

    at = np.arange(reference.outputs) / reference.step
    logs = np.interp(at, np.arange(len(reference.logs)), np.array(reference.logs))
    scaled = np.exp(np.maximum(logs - logs.max(), -_DEEPEST)) * 2.0**100
    return reference.start, [int(x) for x in scaled.tolist()]


def _heart(law: WindowLaw) -> tuple[int, list[int]]:
    """The window's part that has all but about 2^-60, what lies outside given to its ends."""
    kept = [k for k, mass in enumerate(law.masses) if mass >= 1 << (BITS - 64)]
    size = kept[-1] - kept[0] + 1
    # A value that cannot occur (only a law of several values has any) still needs a weight.
    return law.start + kept[0], [max(mass, 1 << (BITS - 69)) for mass in law.clipped(law.start + kept[0], size)]


def _slices(entries: Sequence[int]) -> list[int]:
    """N cut in proportion to the entries; what rounding leaves goes to the largest."""
    slices = [entry >> (BITS - TOTAL_BITS) for entry in entries]
    slices[slices.index(max(slices))] += TOTAL - sum(slices)
    return slices


def _cells(slices: Sequence[int]) -> tuple[int, ...]:
    """Where each cell begins: values are taken together until they have enough, and the last ones join the last cell."""
    begins, mass = [0], 0
    for k, piece in enumerate(slices):
        if mass >= _CELL:
            begins.append(k)
            mass = 0
        mass += piece
    if mass < _CELL and len(begins) > 1:
        begins.pop()
    return tuple(begins)


def _merged(pieces: Sequence[int], begins: Sequence[int]) -> tuple[int, ...]:
    ends = [*begins[1:], len(pieces)]
    return tuple(sum(pieces[begin:end]) for begin, end in zip(begins, ends, strict=True))


# ----------------------------------------------------------------------------------------------------------------------------
# The nearest law between two bounds where the likelihood ratio is monotone: one clip of a distribution function, in O(k).
#
#     F_R = min(max(F_a, LB), UB),    LB = max(A, N - X - (B_end - B)),    UB = min(B + X, N - (A_end - A))
#
# | symbol | here |
# |---|---|
# | N | the sum of `source`; all laws are whole numbers in units of 1/N |
# | F_a | the distribution function of the source, a law mu_a |
# | A, B | those of `low` = e^-e1 nu and `high` = e^e2 nu; A_end <= N <= B_end |
# | X | `excess`: what the result may have above `high` in total, delta N; 0 for pure epsilon |
# | R | the result: low <= R, and the sum of (R - high)_+ is at most X |
#
# Why it is the projection. Let mu_a/nu increase. As a function of F_nu the distribution function F_a is then convex, at 0
# where F_nu is and at its end where F_nu is, and so are the lines e^-e1 F_nu and 1 - delta - e^e2 (1 - F_nu). F_a is below
# F_nu, so UB never binds, and F_R is the largest of three convex functions: convex, with slopes from e^-e1 upwards, which is
# R >= e^-e1 nu. H_e2(R || nu) is attained on a set {o > t}, because R/nu increases too, and there it is 1 - F_R - e^e2 (1 -
# F_nu) <= delta, from the last line. Every law within the bounds has its distribution function between LB and UB, so that
# none is nearer in W1. A decreasing ratio is the same from the other end.
#
# Where the ratio is *not* monotone the clip breaks the bounds by far: mixtures, widened laws and columns of several values
# need `coupling.nearest_law`. Of an event with nu = mu_(a0), a count a0, the ratio is monotone for every a: mu_a comes from
# nu by replacing factors 1 - p + p t of its generating function by others with a larger p, or all by others with a smaller
# one, and each of these is a step up or down in the likelihood ratio order, which sums of log-concave laws keep. Clipping
# both to a window keeps it too.
#
# What must never change: the result obeys the bounds exactly, whatever the source is. Where rounding (or a source that is not
# of this kind) breaks them, `_within` walks back through the values and clips each step; the result is then within the bounds
# and may not be the nearest.


def projected_law(source: Sequence[int], low: Sequence[int], high: Sequence[int], excess: int = 0) -> tuple[int, ...]:
    """The law within the bounds that is nearest to the source in W1, where source/low is monotone.

    >>> projected_law([8, 1, 1], [2, 2, 2], [5, 5, 5])
    (5, 3, 2)
    >>> projected_law([8, 1, 1], [2, 2, 2], [5, 5, 5], excess=1)
    (6, 2, 2)
    """
    import numpy as np

    here, least, most = (np.array(row, dtype=object) for row in (source, low, high))
    path = clipped_path(here, least, most, excess)
    steps = np.diff(path, prepend=0)
    over = steps - most
    if (steps >= least).all() and sum(x for x in over[over > 0]) <= excess:
        return tuple(steps.tolist())
    return _within(path.tolist(), low, high, excess)


def clipped_path(source: NDArray[Any], low: NDArray[Any], high: NDArray[Any], excess: int) -> NDArray[Any]:
    """F_R by the formula alone, of rows of whole numbers. Its steps obey the bounds only where the ratio is monotone."""
    import numpy as np

    path, least, most = (np.add.accumulate(row) for row in (source, low, high))
    total = path[-1]
    if not (least[-1] <= total <= most[-1] + excess and excess >= 0):
        raise RefusedError("transport: no law lies within the bounds.")
    lowest = np.maximum(least, most + (total - excess - most[-1]))
    highest = np.minimum(most + excess if excess else most, least + (total - least[-1]))
    clipped: NDArray[Any] = np.minimum(np.maximum(path, lowest), highest)
    return clipped


def _within(path: Sequence[int], low: Sequence[int], high: Sequence[int], excess: int) -> tuple[int, ...]:
    """Steps within the bounds, close to those of the path, from its end backwards.

    Before each step it must be possible to get to 0: the path is at least what `low` adds up to so far, and at most what `high`
    does, together with the excess that is left.
    """
    at, left = path[-1], excess
    least, most = [0, *itertools.accumulate(low)], [0, *itertools.accumulate(high)]
    steps = []
    for k in range(len(low) - 1, -1, -1):
        wanted = path[k - 1] if k else 0
        before = min(max(wanted, at - high[k] - left, least[k]), at - low[k])
        left -= max(0, at - before - high[k])
        # Excess that was spent at this end is not there for the other one.
        before = min(before, max(most[k] + left, at - high[k]))
        steps.append(at - before)
        at = before
    return tuple(reversed(steps))
