"""Calibration for set-valued secrets: the least Gaussian noise that hides which of several sets g lies in.

    W = rho g + sqrt(v) N,   v = 1 - rho^2 + sigma^2        (g standardised, units V_jj/n)

Only lam = |rho|/sqrt(v) matters, and H grows with it. So there is one number lam*(cases, eps, delta), the largest lam at which
every ordered pair of cases has H <= delta, and

    v needed = rho^2 / lam*^2,      sigma^2 = max(0, rho^2 / lam*^2 - (1 - rho^2)),
    no noise is needed  iff  |rho| <= lam*/sqrt(1 + lam*^2).

For cases of a g with standard deviation tau, lam* acts like mu* for a pair of values at the distance tau mu*/lam*: a vector
query with slopes Gamma and covariance S given g is private iff tau^2 Gamma' S^-1 Gamma <= lam*^2 (project on S^-1 Gamma).
What must never change: the lam returned was itself shown to have H <= delta, rounded up, for all pairs both ways.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.moving_sets import moving_upper
from attrpriv.numerics.divergences.set_valued import lam_of, mixture_hockey_stick
from attrpriv.numerics.laws.intervals import IntervalUnion, require_disjoint
from attrpriv.numerics.laws.law_box import Cell, MovingCases
from attrpriv.numerics.rounding import ROUNDED_UP, SOLVED_DOWN, SOLVED_UP

# lam* is found to this relative accuracy, on the private side.
_ACCURACY = 1e-10
_LEAST, _MOST = 1e-60, 1e9
# Below this the mass that integration leaves out would count.
_LEAST_DELTA = 1e-27


@dataclass(frozen=True)
class SetValuedNoise:
    """The least noise variance in units of V_jj/n, with its evidence: at it, the worst ordered pair has H <= `upper` <= delta.

    `variance` is the noise, `pair` that pair. Made by `set_valued_variance`.

    `total` is v = 1 - rho^2 + variance, `lam` the lam* that was found.
    """

    variance: float
    total: float
    lam: float
    pair: tuple[int, int]
    upper: float

    @property
    def no_noise(self) -> bool:
        """Whether the average may be released as it is."""
        return self.variance == 0.0


def set_valued_variance(cases: Sequence[IntervalUnion], rho: float, epsilon: float, delta: float) -> SetValuedNoise:
    """The least sigma^2 that hides which of the standardised `cases` holds g, at correlation `rho`.

    `epsilon` and `delta` are the promise.

    >>> from attrpriv.numerics.laws import parse_cases
    >>> noise = set_valued_variance(parse_cases(["< 0", ">= 0"]), 0.5, 1.0, 1e-5)
    >>> round(noise.total / 0.5**2, 2), noise.no_noise
    (36.22, False)
    """
    require_disjoint(cases)
    lam_of(rho, 0.0)  # validates rho
    lam, pair = set_valued_lam(tuple(cases), epsilon, delta)
    rest = (1 - rho) * (1 + rho)
    variance = max(0.0, (rho / lam) ** 2 - rest)
    while lam_of(rho, variance) > lam:  # rounding only: a step or two
        variance = max(variance * ROUNDED_UP, math.nextafter(variance, math.inf), (rho / lam) ** 2 * (1 + 4e-15) - rest)
    upper, pair = set_valued_upper(cases, lam_of(rho, variance), epsilon)
    return SetValuedNoise(variance, rest + variance, lam, pair, upper)


def set_valued_lam(cases: tuple[IntervalUnion, ...], epsilon: float, delta: float) -> tuple[float, tuple[int, int]]:
    """lam*, from below, and the ordered pair that sets it.

    `cases` are the sets of values, `epsilon` and `delta` the promise.

    >>> from attrpriv.numerics.laws import parse_cases
    >>> round(set_valued_lam(parse_cases(["< 0", ">= 0"]), 1.0, 1e-5)[0], 6)
    0.166158
    """
    require_budget(epsilon, delta)
    if len(cases) < 2:
        raise UsageError(f"cases: needs at least two sets. Got {len(cases)}.")
    lam, worst = _MOST, (0, 1)
    for i, j in itertools.permutations(range(len(cases)), 2):
        # A pair that is private at the lam of those before it needs no search of its own.
        if lam < _MOST and mixture_hockey_stick(cases[i], cases[j], lam, epsilon).upper <= delta:
            continue
        lam, worst = largest_lam(_upper_of(cases[i], cases[j], epsilon), delta, lam), (i, j)
    return lam, worst


def _upper_of(a: IntervalUnion, b: IntervalUnion, epsilon: float) -> Callable[[float], float]:
    return lambda lam: mixture_hockey_stick(a, b, lam, epsilon).upper


def set_valued_upper(
    cases: Sequence[IntervalUnion], lam: float, epsilon: float, target: float | None = None
) -> tuple[float, tuple[int, int]]:
    """The largest H over all ordered pairs of standardised cases, rounded up, and its pair.

    With a `target`, stops at the first pair above it.
    """
    worst, pair = 0.0, (0, 1)
    for i, j in itertools.permutations(range(len(cases)), 2):
        upper = mixture_hockey_stick(cases[i], cases[j], lam, epsilon).upper
        if upper > worst:
            worst, pair = upper, (i, j)
        if target is not None and worst > target:
            break
    return worst, pair


def largest_lam(upper: Callable[[float], float], delta: float, most: float = _MOST, accuracy: float = _ACCURACY) -> float:
    """The largest lam found below `most` with upper(lam) <= delta, for an increasing `upper`.

    Halving from 1, then interpolation between a private and a non-private lam: log upper is nearly linear in 1/lam^2.
    """
    low, high = min(1.0, most), most
    at_low, at_high = upper(low), math.inf
    while at_low > delta:
        high, at_high, low = low, at_low, low / 2
        if low < _LEAST:
            raise UsageError(f"calibration: no lam above {_LEAST:g} is private; epsilon and delta are out of reach.")
        at_low = upper(low)
    for step in range(200):
        if high <= low * (1 + accuracy):
            break
        middle = _between(low, at_low, high, at_high, delta, step, accuracy)
        at_middle = upper(middle)
        if at_middle <= delta:
            low, at_low = middle, at_middle
        else:
            high, at_high = middle, at_middle
    return low


def _between(low: float, at_low: float, high: float, at_high: float, delta: float, step: int, accuracy: float) -> float:
    """A point strictly inside (low, high): interpolated, or in every fourth step the middle."""
    share = 0.5
    a, b = (high / low) ** 2, 1.0  # 1/lam^2 in units of 1/high^2
    if step % 4 != 3 and 0 < at_low < delta < at_high < math.inf:
        share = math.log(delta / at_low) / math.log(at_high / at_low)
        # Alternately a hair beyond the interpolated point on either side, so that both ends close in.
        nudge = 0.5 * accuracy / (a - b) + 1e-3 * min(share, 1 - share)
        share += nudge if step % 2 else -nudge
    point = high / math.sqrt(a + min(max(share, 1e-9), SOLVED_DOWN) * (b - a))
    return point if low < point < high else low + (high - low) / 2


def require_budget(epsilon: float, delta: float) -> None:
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise UsageError(f"epsilon: must be finite and at least 0. Got {epsilon}.")
    if not _LEAST_DELTA <= delta < 1:
        raise UsageError(f"delta: must be at least {_LEAST_DELTA:g} and below 1. Got {delta}.")


# ----------------------------------------------------------------------------------------------------------------------------
# The least noise that hides which case holds a secret, for *every* distribution of a box.
#
# The mean of the sensitive column moves the standardised thresholds by whole units, its sd scales them, and both change how
# much of the released average it explains. The box is covered by cells; on each one `divergences.moving_upper` bounds H for
# all its members at once. A cell that cannot be settled is cut in two; a member that is seen to need more noise raises the
# noise. What remains is a proof for the whole box: no sampling, and no belief that the worst case lies at a corner.
#
# What must never change: the cells of a result cover the box, and each one's bound, rounded up, was found to be at most delta
# at the variance returned. `attained` is what some member needs (0 where that was not asked, because `least` is enough), so
# variance - max(attained, least) is all that the covering can cost.


# How much more than some member needs may be added, relative to all of the output's variance given g: from coarse to fine.
_SLACKS = (0.5, 0.1, 0.02, 0.003)
# Cells looked at altogether; when they are used up the best proof so far stands.
_CELLS = 240


@dataclass(frozen=True)
class CheckedCell:
    """A cell, the largest lam in it at the noise chosen, the bound on H there, and the ordered pair of cases it comes from.

    They are `cell`, `lam`, `upper` and `pair`. Made by `moving_variance`.
    """

    cell: Cell
    lam: float
    upper: float
    pair: tuple[int, int]


@dataclass(frozen=True)
class MovingNoise:
    """The noise variance in the query's own unit squared, with its evidence.

    `variance` is the noise, `attained` the least one that a single law needs, `cells` the evidence. Made by `moving_variance`.
    """

    variance: float
    attained: float
    cells: tuple[CheckedCell, ...]

    @property
    def upper(self) -> float:
        """The largest bound on H over the cells: at most delta."""
        return max(checked.upper for checked in self.cells)

    @property
    def no_noise(self) -> bool:
        return self.variance == 0.0


def moving_variance(secret: MovingCases, epsilon: float, delta: float, least: float = 0.0) -> MovingNoise:
    """The least noise variance found that is proved for the whole box; never below `least` (a mask that is added anyway).

    `secret` is the sets of values and the box of laws, `epsilon` and `delta` are the promise.

    A threshold at the mean, known to a tenth of a standard deviation of g:

    >>> from attrpriv.numerics.laws import Cell, parse_cases
    >>> box = Cell(means=(-0.1, 0.1), sds=(1.0, 1.0))
    >>> noise = moving_variance(MovingCases(parse_cases(["< 0", ">= 0"]), box, "correlation", 0.5, (1.0, 1.0)), 1.0, 1e-5)
    >>> round(noise.attained, 2), noise.variance <= 1.01 * noise.attained
    (8.47, True)
    """
    require_budget(epsilon, delta)
    require_disjoint(secret.cases)
    if not (math.isfinite(least) and least >= 0):
        raise UsageError(f"least: must be finite and at least 0. Got {least}.")
    search = _Search(secret, epsilon, delta, least)
    at_least = search.checked(secret.box, least)
    if at_least.upper <= delta:
        return MovingNoise(least, 0.0, (at_least,))
    best = search.in_one_cell()
    for mean, sd in dict.fromkeys((*secret.box.corners, secret.box.middle)):
        search.see(mean, sd)
    for slack in _SLACKS:
        best = search.improved(best, slack)
    return MovingNoise(best.variance, min(search.attained, best.variance), best.cells)


class _Search:
    """One search: the problem, what some member has been seen to need, and how many cells may still be looked at."""

    def __init__(self, secret: MovingCases, epsilon: float, delta: float, least: float) -> None:
        self.secret, self.epsilon, self.delta, self.least = secret, epsilon, delta, least
        self.attained = 0.0
        self.left = _CELLS

    def in_one_cell(self) -> MovingNoise:
        """The noise that the bound over the whole box asks for: exact for a box of one member, and where every search ends."""
        box, cases = self.secret.box, self.secret.cases
        least, most = self.secret.thresholds()
        moving = max(box.means[1] - box.means[0], (box.sds[1] - box.sds[0]) * (1 + max(abs(least), abs(most)))) / box.sds[0]
        accuracy = 1e-10 if moving < 1e-9 else 1e-4
        lam = largest_lam(lambda x: moving_upper(cases, box, x, self.epsilon)[0], self.delta, accuracy=accuracy)
        variance = max(self.least, self.secret.spread(box.sds[1]).need(lam))
        return MovingNoise(variance, 0.0, (self.checked(box, variance),))

    def checked(self, cell: Cell, variance: float) -> CheckedCell:
        lam = self.secret.spread(cell.sds[1]).lam(variance)
        return CheckedCell(cell, lam, *moving_upper(self.secret.cases, cell, lam, self.epsilon, self.delta))

    def see(self, mean: float, sd: float) -> None:
        """Note what a member needs, if it is more than was seen before."""
        cases, spread = self.secret.at(mean, sd), self.secret.spread(sd)
        lam = spread.lam(self.attained)
        if lam < math.inf and set_valued_upper(cases, lam, self.epsilon, self.delta)[0] <= self.delta:
            return
        self.attained = max(self.attained * SOLVED_UP, spread.need(set_valued_lam(cases, self.epsilon, self.delta)[0]))

    def improved(self, best: MovingNoise, slack: float) -> MovingNoise:
        """A proof with a variance that is at most this much too large, if there are cells enough to find one."""
        while self.left > 0:
            residual = self.secret.spread(self.secret.box.sds[1]).residual
            variance = max(self.least, self.attained + slack * (self.attained + residual) if self.attained > 0 else 0.0)
            if variance >= best.variance:
                break
            seen = self.attained
            cells = self.proof(variance, [checked.cell for checked in best.cells])
            if cells is not None:
                return MovingNoise(variance, 0.0, cells)
            if self.attained == seen:
                break
        return best

    def proof(self, variance: float, waiting: list[Cell]) -> tuple[CheckedCell, ...] | None:
        """Cells that prove this variance; None when a member needs more (which is noted) or there are no cells left."""
        settled: list[CheckedCell] = []
        while waiting:
            cell, self.left = waiting.pop(), self.left - 1
            checked = self.checked(cell, variance)
            if checked.upper <= self.delta:
                settled.append(checked)
                continue
            if self.left <= 0 or self._refuted(cell, variance, checked.pair):
                return None
            halves = cell.halves(max(map(abs, self.secret.thresholds(cell))))
            if halves is None:
                return None
            waiting.extend(halves)
        return tuple(settled)

    def _refuted(self, cell: Cell, variance: float, pair: tuple[int, int]) -> bool:
        """Whether the member in the middle of the cell needs more, by the pair that could not be settled."""
        mean, sd = cell.middle
        cases = self.secret.at(mean, sd)
        lam = self.secret.spread(sd).lam(variance)
        if lam < math.inf and mixture_hockey_stick(cases[pair[0]], cases[pair[1]], lam, self.epsilon).upper <= self.delta:
            return False
        self.see(mean, sd)
        return True
