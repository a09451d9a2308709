"""The evidence of a Gaussian mechanism: how far apart the outputs' laws are, and every other charge.

What must never change: everything is recomputed from the stored numbers, rounded up; a NaN fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from attrpriv.errors import CertificateError
from attrpriv.frozen import Finite, FrozenModel, NonNegative
from attrpriv.methods.base.accuracy import EXACT_FORMULA, Profile
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import Charged, Told
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.numerics.divergences.gaussian import gaussian_delta_upper, gaussian_epsilon
from attrpriv.numerics.divergences.moving_sets import moving_upper
from attrpriv.numerics.laws.intervals import parse_cases
from attrpriv.numerics.laws.law_box import Cell, MovingCases
from attrpriv.numerics.rounding import COMPUTED_UP, LEFT_DOWN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Vector = tuple[Finite, ...]
Rows = tuple[Vector, ...]


class GaussianCheck(FrozenModel):
    """The worst distribution for one secret: how the averages move with it, and the spread they surely have by themselves.

    Two values of the secret that must look alike move the averages by `shifts` times a vector of length at most 1; `credited`
    is a covariance matrix that the averages given the secret have at least.
    """

    secret: str
    theta: int
    shifts: Rows
    credited: Rows


class CasesCheck(FrozenModel):
    """A set-valued secret under one box of laws, covered by cells on each of which one bound holds for every member."""

    secret: str
    theta: int
    cases: tuple[str, ...]
    means: tuple[Finite, Finite]
    sds: tuple[Finite, Finite]
    form: Literal["slope", "correlation", "itself"]
    strength: NonNegative
    query_sds: tuple[Finite, Finite]
    cells: tuple[tuple[Finite, Finite, Finite, Finite], ...] = Field(min_length=1)

    def delta(self, epsilon: float, variance: float) -> float:
        """The largest bound on the hockey-stick divergence over the box, at this noise variance; 1 where cells leave a gap."""
        cells = [Cell(means=cell[:2], sds=cell[2:]) for cell in self.cells]
        box = Cell(means=self.means, sds=self.sds)
        moving = MovingCases(parse_cases(self.cases), box, self.form, self.strength, self.query_sds)
        if not _covered(box, cells):
            return 1.0
        uppers = []
        for cell in cells:
            lam = moving.spread(cell.sds[1]).lam(variance)
            uppers.append(moving_upper(moving.cases, cell, lam, epsilon)[0])
        return max(uppers)


def _covered(box: Cell, cells: Sequence[Cell]) -> bool:
    """Whether cells made by halving a box again and again make up the whole box."""
    inside = [cell for cell in cells if _within(cell, box)]
    if any(cell == box for cell in inside):
        return True
    if not inside:
        return False
    mean, sd = box.middle
    cuts = [
        (Cell((box.means[0], mean), box.sds), Cell((mean, box.means[1]), box.sds)),
        (Cell(box.means, (box.sds[0], sd)), Cell(box.means, (sd, box.sds[1]))),
    ]
    return any(
        halves[0] != box
        and halves[1] != box
        and all(any(_within(cell, half) for cell in inside) for half in halves)
        and all(any(_within(cell, half) for half in halves) for cell in inside)
        and all(_covered(half, inside) for half in halves)
        for halves in cuts
    )


def _within(cell: Cell, box: Cell) -> bool:
    return (
        box.means[0] <= cell.means[0]
        and cell.means[1] <= box.means[1]
        and box.sds[0] <= cell.sds[0]
        and cell.sds[1] <= box.sds[1]
    )


class GaussianEvidence(Charged):
    """Equal-variance Gaussian outputs, plus every charge that is not the calibration itself."""

    words: ClassVar[str] = "averages with Gaussian noise"
    goes_on: ClassVar[bool] = True
    told_by: ClassVar[Profile] = EXACT_FORMULA
    by_secret: ClassVar[tuple[str, ...]] = ("checks", "set_checks")
    kind: Literal["gaussian"] = "gaussian"
    columns: tuple[str, ...]
    independent: tuple[NonNegative, ...] = Field(description="standard deviation of each average's own noise")
    factor: Rows = Field(default=(), description="further noise, common to the averages: this matrix times standard normals")
    before: int = Field(default=0, ge=0, description="so many of the columns, the first ones, were released earlier")
    common_before: int = Field(default=0, ge=0, description="so many columns of the factor were drawn then")
    checks: tuple[GaussianCheck, ...]
    set_checks: tuple[CasesCheck, ...] = Field(default=(), description="set-valued secrets, for one average")

    def delta(self, epsilon: float) -> float:
        """The delta reached at `epsilon`, from above."""
        inner = self.inner(epsilon)
        if inner is None or not self._consistent():
            return 1.0
        return self.charged(max(gaussian_delta_upper(inner, self.distance()), self._sets(inner)), epsilon)

    def stretched(self, times: float) -> GaussianEvidence | None:
        """The averages move in proportion, however far apart the values are; sets of values have no distance."""
        if self.set_checks:
            return self if times <= 1 else None
        wide = [tuple(tuple(x * times for x in row) for row in check.shifts) for check in self.checks]
        checks = [check.model_copy(update={"shifts": shifts}) for check, shifts in zip(self.checks, wide, strict=True)]
        return self.model_copy(update={"checks": tuple(checks)})

    def describe(self) -> tuple[str, ...]:
        apart = [
            f"worst for {check.secret}: outputs {self.distance_of(check):.6g} standard deviations apart"
            for check in self.checks
        ]
        sets = [
            f"worst for {one.secret}: the mixture's exact law, over {len(one.cells)} cells of the box"
            for one in self.set_checks
        ]
        return (*apart, *sets)

    def suits(self, columns: tuple[str, ...], n: int, *, clipped: bool) -> bool:
        """Rows of the factor belong to columns by their order."""
        return not self.own_factor or columns == self.own_columns

    def common_noise(self) -> Rows:
        return self.own_factor

    def given(self, part: ColumnPlan, place: int, told: Told) -> tuple[Fraction, float] | None:
        return None if self.before else (Fraction(0), part.noise.scale)

    def _consistent(self) -> bool:
        """Whether everything speaks of the same averages: matrices of other shapes would be stretched where they are added."""
        size = len(self.columns)
        fits = [len(self.independent) == size, not self.factor or shaped(self.factor, size)]
        for check in self.checks:
            fits.append(shaped(check.shifts, size) and bool(check.shifts[0]))
            fits.append(shaped(check.credited, size, size))
        return all(fits)

    def _sets(self, epsilon: float) -> float:
        if not self.set_checks:
            return 0.0
        if len(self.independent) != 1 or self.factor:
            return 1.0
        return max(check.delta(epsilon, self.independent[0] ** 2) for check in self.set_checks)

    def distance(self) -> float:
        """The largest distance of two output laws, in standard deviations, rounded up."""
        return max((self.distance_of(check) for check in self.checks), default=0.0)

    def distance_of(self, check: GaussianCheck) -> float:
        """sqrt of the largest eigenvalue of shifts' (credited + noise)^-1 shifts, rounded up."""
        if len(self.columns) == 1 and len(check.shifts[0]) == 1:
            return self._scalar_distance(check)
        return matrix_distance(check.shifts, self._spread(check)) * COMPUTED_UP

    def epsilon_of(self, checks: Iterable[GaussianCheck], delta: float) -> float:
        """The epsilon that holds at this delta, before charges, where these are the cases."""
        return gaussian_epsilon(max(map(self.distance_of, checks), default=0.0), delta)

    def _scalar_distance(self, check: GaussianCheck) -> float:
        shift, credited = abs(check.shifts[0][0]), check.credited[0][0]
        if not credited >= 0:
            raise CertificateError("certificate: a credited variance must not be negative.")
        common = math.hypot(*self.factor[0]) if self.factor else 0.0
        spread = math.hypot(math.sqrt(credited), self.independent[0], common)
        if shift and not spread > 0:
            raise CertificateError(f"certificate: {self.columns[0]} moves with {check.secret} and has no noise.")
        return shift / spread * COMPUTED_UP if shift else 0.0

    def _spread(self, check: GaussianCheck) -> NDArray[np.float64]:
        """The covariance of the released averages given the secret, from below."""
        import numpy as np

        credited = np.array(check.credited, dtype=np.float64)
        require_covariance(credited)
        spread = credited + np.diag(np.array(self.independent) ** 2)
        if self.factor:
            factor = np.array(self.factor, dtype=np.float64)
            spread = spread + factor @ factor.T
        return np.asarray(spread, dtype=np.float64)

    def spent(self, epsilon: float, delta: float) -> float:
        """The share of the budget that everything released so far uses: squares of distances add up. From above."""
        inner = self.inner(epsilon)
        if inner is None or self.final or not self.delta(epsilon) <= delta:
            return math.inf
        left = (delta - self.charged(0.0, epsilon)) * math.exp(-self.lam) * LEFT_DOWN
        if not left > 0:
            return math.inf
        return (self.distance() / gaussian_mu(inner, left)) ** 2 * COMPUTED_UP

    @property
    def final(self) -> bool:
        """Sets of values and clipped rows are covered for a release that is alone."""
        return bool(self.set_checks or self.clip_delta)

    def follows(self, earlier: object | None) -> bool:
        """Whether the columns that it says were released earlier are those of this evidence, with the same noise."""
        if earlier is None:
            return self.before == 0 and self.common_before == 0
        past = GaussianEvidence.read(earlier)
        if past is None or past.final:
            return False
        wide = len(past.factor[0]) if past.factor else 0
        rows = self.factor or ((),) * len(self.columns)
        old = past.factor or ((),) * len(past.columns)
        same = (self.columns[: self.before], self.independent[: self.before]) == (past.columns, past.independent)
        kept = all(row[:wide] == was and not any(row[wide:]) for row, was in zip(rows[: self.before], old, strict=False))
        return same and self.common_before == wide and kept and not any(x for row in rows[self.before :] for x in row[:wide])

    @property
    def own_columns(self) -> tuple[str, ...]:
        """What this release adds to the earlier ones."""
        return self.columns[self.before :]

    @property
    def own_factor(self) -> Rows:
        """The common noise that this release draws."""
        rows = tuple(row[self.common_before :] for row in self.factor[self.before :])
        return rows if any(rows) else ()

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column alone is what was counted on."""
        own = dict(zip(self.own_columns, self.independent[self.before :], strict=True))
        return kind == "gaussian" and bool(self.checks or self.set_checks) and own.get(column) == scale


def shaped(rows: Sequence[Sequence[float]], height: int, width: int | None = None) -> bool:
    """Whether a matrix has so many rows, one or more, all of the same length, or of this one."""
    lengths = {len(row) for row in rows}
    return len(rows) == height and len(lengths) == 1 and (width is None or lengths == {width})


def require_covariance(credited: NDArray[np.float64]) -> None:
    """Symmetric, of which eigenvalues are computed from one half only, and semidefinite."""
    import numpy as np

    if credited.shape == (1, 1) and credited[0, 0] >= 0:
        return
    scale = np.sqrt(np.maximum(np.diag(credited), 1e-300))
    unit = credited / np.outer(scale, scale)
    if not (np.abs(unit - unit.T).max() <= 1e-12 and np.linalg.eigvalsh(unit)[0] >= -1e-9):
        raise CertificateError("certificate: a credited covariance must be symmetric and semidefinite.")


def matrix_distance(shifts: Sequence[Sequence[float]], spread: NDArray[np.float64]) -> float:
    """sqrt(lambda_max(B' S^-1 B)), with the rounding of the solution added: S is first scaled to a unit diagonal."""
    import numpy as np

    moved = np.array(shifts, dtype=np.float64)
    if not moved.any():
        return 0.0
    scale = np.sqrt(np.diag(spread))
    if not (np.isfinite(spread).all() and np.isfinite(moved).all() and (scale > 0).all()):
        raise CertificateError("certificate: an average that moves with a secret has no spread.")
    unit, b = spread / np.outer(scale, scale), moved / scale[:, None]
    least = float(np.linalg.eigvalsh(unit)[0]) - 1e-13 * len(scale)
    if not least > 0:
        raise CertificateError("certificate: the spread of the averages is singular in some direction.")
    solved = np.linalg.solve(unit, b)
    residue = float(np.linalg.norm(b - unit @ solved) * np.linalg.norm(b)) / least
    gram = b.T @ solved
    largest = float(np.linalg.eigvalsh((gram + gram.T) / 2)[-1])
    return math.sqrt(max(0.0, largest) * COMPUTED_UP + residue)
