"""The least noise that hides which case holds a secret, for *every* distribution of a box.

The mean of the sensitive column moves the standardised thresholds by whole units, its sd scales them, and both change how
much of the released average it explains. The box is covered by cells; on each one `divergences.moving_upper` bounds H for all
its members at once. A cell that cannot be settled is cut in two; a member that is seen to need more noise raises the noise.
What remains is a proof for the whole box: no sampling, and no belief that the worst case lies at a corner.

What must never change: the cells of a result cover the box, and each one's bound, rounded up, was found to be at most delta at
the variance returned. `attained` is what some member needs (0 where that was not asked, because `least` is enough), so
variance - max(attained, least) is all that the covering can cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration.set_valued import largest_lam, require_budget, set_valued_lam, set_valued_upper
from attrpriv.numerics.divergences.moving_sets import moving_upper
from attrpriv.numerics.divergences.set_valued import mixture_hockey_stick
from attrpriv.numerics.laws.intervals import require_disjoint
from attrpriv.numerics.laws.law_box import Cell, MovingCases
from attrpriv.numerics.rounding import SOLVED_UP

# How much more than some member needs may be added, relative to all of the output's variance given g: from coarse to fine.
_SLACKS = (0.5, 0.1, 0.02, 0.003)
# Cells looked at altogether; when they are used up the best proof so far stands.
_CELLS = 240


@dataclass(frozen=True)
class CheckedCell:
    """A cell, the largest lam in it at the noise chosen, the bound on H there, and the ordered pair of cases it comes from."""

    cell: Cell
    lam: float
    upper: float
    pair: tuple[int, int]


@dataclass(frozen=True)
class MovingNoise:
    """The noise variance in the query's own unit squared, with its evidence."""

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
