"""A mechanism that reads the secret: the count is moved to a target law along the monotone coupling, in whole numbers.

    count start + f, secret a:   u uniform in the slice of f,   output start + o for the o whose target slice holds u

| symbol | here |
|---|---|
| N | 2^BITS, the length that every row of slices has |
| mu_a | the true law of F given a; `CertifiedCoupling.sources[i]` are its slices, near N mu_a, for a = low + i |
| R_a | the law meant for the output; `CertifiedCoupling.targets[i]` are its slices |
| m | the envelope, m(o) <= R_a(o) <= e^eps m(o) |
| K_a[f, o] | the part of the slice of f inside the target slice of o; a point where the slice of f is empty |
| Q_a(o) | sum_f mu_a(f) K_a[f, o]: the law of the output, which is R_a up to the rounding of the slices |

Given the envelope, the R_a nearest to mu_a minimises sum_o |G(o) - CDF(o)| over paths G from 0 to N whose steps are in
[m, e^eps m]: one secret at a time, without a solver, exactly. Let f_o(x) be the least cost of a path that is at x after o, a
convex, piecewise linear function. A step moves its decreasing part by m(o) and its increasing part by e^eps m(o): two heaps of
breakpoints hold it. Going back, each G(o - 1) is the point of its interval nearest to where f_(o-1) is least. A start away from
0 is priced at values + 1 a unit, more than it can save, as clipping a path to those that start at 0 moves no point by more.

What must never change: `coupling_loss_upper` bounds the loss of Q_a, what is really drawn, with the true mu_a between its
whole-number bounds; nothing is assumed of the slices. Only one law of the rows is covered: a box is refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappush, heappushpop
from typing import TYPE_CHECKING

from attrpriv.errors import Cause, CertificateError, RefusedError
from attrpriv.numerics.calibration.kernel import SOLVED_SHARE, require_prior, require_size, whole_row
from attrpriv.numerics.calibration.linear_program import optimal_envelope
from attrpriv.numerics.calibration.secret_laws import (
    BITS,
    Rows,
    SecretLaws,
    exp_lower,
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

_TOTAL = 2**BITS
# Targets are made for this share of epsilon: the slices' rounding takes up the rest, and far less.
_TARGET_SHARE = 1 - 2.0**-31
# The share of the uniform law in the envelope: no output is impossible.
_MIXED = 2.0**-40


@dataclass(frozen=True)
class CertifiedCoupling:
    """Slices whose drawn law has a loss of at most `loss`; row i is that of the count low + i.

    `start` is the least answer, `low` the first count; `sources` and `targets` are whole-number weights. Made by
    `certified_coupling`.

    `optimum` is the solver's least expected |error| of any mechanism.
    """

    start: int
    low: int
    sources: Rows
    targets: Rows
    loss: float
    optimum: float


def certified_coupling(records: RecordLaws, pairs: CountPairs, epsilon: float, prior: Sequence[float]) -> CertifiedCoupling:
    """The coupling with the least expected |error| under the prior over the counts low..high: all pairs, one law of the rows.

    `records` is the law of a row, `pairs` the counts that must be indistinguishable, `epsilon` the promise, `prior` a
    probability for each count.

    >>> found = certified_coupling(RecordLaws.event(0.4, 0.6), CountPairs.all_of(4), 0.5, [0.2] * 5)
    >>> round(found.optimum, 6), found.loss <= 0.5
    (0.090557, True)
    """
    require_exact(records)
    require_size(records, pairs)
    require_prior(prior, pairs)
    laws = secret_laws(records, pairs, "counts")
    solved = optimal_envelope(float_laws(laws), prior, epsilon * SOLVED_SHARE)
    return coupling_within(laws, solved.envelope, epsilon, low=pairs.low, optimum=solved.error)


def coupling_within(
    laws: SecretLaws, envelope: NDArray[np.float64], epsilon: float, *, low: int = 0, optimum: float = math.nan
) -> CertifiedCoupling:
    """The coupling whose targets lie within e^epsilon of this envelope, each as near to its law as that allows."""
    least, most = _bounds(envelope, epsilon * _TARGET_SHARE)
    sources = tuple(whole_slices(masses) for masses in laws.masses)
    targets = tuple(nearest_law(source, least, most) for source in sources)
    loss = slices_loss(sources, targets, laws)
    if not loss <= epsilon:
        raise CertificateError("optimal: the coupling loses more than it was made for. Nothing was released.")
    return CertifiedCoupling(laws.start, low, sources, targets, loss, optimum)


def coupling_loss_upper(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], records: RecordLaws, pairs: CountPairs
) -> float:
    """An upper bound on the loss of what is drawn from these slices, over every pair.

    `sources` and `targets` are the slices of a `CertifiedCoupling`, `records` is the law of a row, `pairs` the counts that
    must be indistinguishable.

    >>> records, pairs = RecordLaws.event(0.4, 0.6), CountPairs.all_of(4)
    >>> found = certified_coupling(records, pairs, 0.5, [0.2] * 5)
    >>> coupling_loss_upper(found.sources, found.targets, records, pairs) <= 0.5
    True
    """
    require_exact(records)
    return slices_loss(sources, targets, secret_laws(records, pairs, "counts"))


def slices_loss(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], laws: SecretLaws) -> float:
    """The same for laws in whole numbers."""
    for name, rows in (("sources", sources), ("targets", targets)):
        require_rows(name, rows, len(laws.masses), laws.values, _TOTAL)
    bounds = [output_bounds(*rows) for rows in zip(laws.masses, sources, targets, strict=True)]
    return loss_upper([upper for _, upper in bounds], [lower for lower, _ in bounds], laws.apart)


def require_exact(records: RecordLaws) -> None:
    """A mechanism that reads the secret needs the one law of the rows."""
    if not records.exact:
        raise RefusedError("optimal: a mechanism that reads the secret needs exact probabilities, not intervals.").because(
            Cause.NUMBERS, "exact probabilities"
        )


def overlaps(source: Sequence[int], target: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """(f, o, part, whole): K[f, o] = part/whole > 0. An empty slice of f is a point, at the end of the one before it.

    >>> list(overlaps([3, 0, 1], [2, 2, 0]))
    [(0, 0, 2, 3), (0, 1, 1, 3), (1, 1, 1, 1), (2, 1, 1, 1)]
    """
    ends = list(itertools.accumulate(target))
    begin = o = 0
    for f, width in enumerate(source):
        begin = min(begin, ends[-1] - 1)
        while ends[o] <= begin:
            o += 1
        if width == 0:
            yield f, o, 1, 1
        stop, here = begin + width, begin
        while here < stop:
            if ends[o] > here:
                yield f, o, min(stop, ends[o]) - here, width
                here = min(stop, ends[o])
            o += ends[o] <= here < stop
        begin = stop


def nearest_law(source: Sequence[int], low: Sequence[int], high: Sequence[int]) -> tuple[int, ...]:
    """The law between `low` and `high` that is nearest to the source in W1, all of them in units of 1/sum(source).

    >>> nearest_law([8, 1, 1], [2, 2, 2], [5, 5, 5])
    (5, 3, 2)
    """
    total, size = sum(source), len(source)
    if not sum(low) <= total <= sum(high):
        raise RefusedError("optimal: no law lies within the envelope.")
    left, right = [0] * (size + 1), [0] * (size + 1)  # breakpoints: -(x - moved_left) and x - moved_right
    moved_left = moved_right = 0
    least: list[int] = []
    for cut, step_low, step_high in zip(itertools.accumulate(source), low, high, strict=True):
        least.append(moved_left - left[0])
        moved_left, moved_right = moved_left + step_low, moved_right + step_high
        # |x - cut| is a rising ramp and a falling one: each pushes a breakpoint through one heap into the other.
        heappush(right, moved_left - heappushpop(left, moved_left - cut) - moved_right)
        heappush(left, moved_left - (moved_right + heappushpop(right, cut - moved_right)))
    return _backwards(total, least, low, high)


def _backwards(total: int, least: Sequence[int], low: Sequence[int], high: Sequence[int]) -> tuple[int, ...]:
    """The steps of the best path that ends at `total`; before each step it is best to be near `least`."""
    at, steps = total, []
    for best, step_low, step_high in zip(reversed(least), reversed(low), reversed(high), strict=True):
        before = min(max(best, at - step_high), at - step_low)
        steps.append(at - before)
        at = before
    return tuple(reversed(steps))


def _bounds(envelope: NDArray[np.float64], epsilon: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The envelope in whole numbers, no entry of it 0, and e^epsilon times it rounded down; a law lies between them."""
    total = min(max(Fraction(float(envelope.sum())), 1 / _growth(epsilon * (1 - 1e-6))), 1 / _growth(epsilon * 1e-6))
    mixed = (1 - _MIXED) * envelope / envelope.sum() + _MIXED / len(envelope)
    low = whole_row(mixed.tolist(), int(total * _TOTAL))
    growth = _growth(epsilon)
    return low, tuple(int(growth * entry) for entry in low)


def _growth(epsilon: float) -> Fraction:
    return Fraction(exp_lower(epsilon), exp_lower(0.0))


def whole_slices(masses: Sequence[int]) -> tuple[int, ...]:
    """The masses, with what they lack of N given to the largest of them."""
    slices = list(masses)
    slices[slices.index(max(slices))] += _TOTAL - sum(slices)
    return tuple(slices)


def output_bounds(masses: Sequence[int], source: Sequence[int], target: Sequence[int]) -> tuple[list[int], list[int]]:
    """Q(o) = sum_f mu(f) K[f, o] from below and from above, in units of 2^-BITS."""
    lower, upper = [0] * len(target), [0] * len(target)
    for f, o, part, whole in overlaps(source, target):
        lower[o] += masses[f] * part // whole
        upper[o] -= -(masses[f] + SHORT) * part // whole
    return lower, upper
