"""Guarantee and Certificate: what a plan promises, and the numbers that prove it.

A certificate is self-contained: `verify` recomputes the promise from the numbers stored in it, rounding up, and raises
`CertificateError` if it does not hold. What must never change: a NaN or an infinity anywhere fails the check, and nothing in a
certificate depends on the table's values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, ValidationError

from attrpriv.divergences import gaussian_delta_upper, moving_upper
from attrpriv.errors import CertificateError, UsageError
from attrpriv.framework.model import Finite, FrozenModel, NonNegative
from attrpriv.laws import Cell, MovingCases, parse_cases

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Everything below is recomputed in floats from stored floats; this covers their rounding, on the private side.
_ROUND_UP = 1 + 1e-12


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


class GaussianEvidence(FrozenModel):
    """Equal-variance Gaussian outputs, plus every charge that is not the calibration itself."""

    kind: Literal["gaussian"] = "gaussian"
    columns: tuple[str, ...]
    independent: tuple[NonNegative, ...] = Field(description="standard deviation of each average's own noise")
    factor: Rows = Field(default=(), description="further noise, common to the averages: this matrix times standard normals")
    checks: tuple[GaussianCheck, ...]
    set_checks: tuple[CasesCheck, ...] = Field(default=(), description="set-valued secrets, for one average")
    grid_lambda: float = Field(ge=0)
    lattice_lambda: float = Field(ge=0)
    grid_eta: float = Field(ge=0)
    shape_lambda: float = Field(default=0.0, ge=0)
    shape_eta: float = Field(default=0.0, ge=0)
    clip_delta: float = Field(ge=0)
    fit_delta: float = Field(default=0.0, ge=0)
    reserve: float = Field(ge=0)

    def delta(self, epsilon: float) -> float:
        """The delta reached at `epsilon`, from above."""
        lam = self.grid_lambda + self.lattice_lambda + self.shape_lambda
        inner = epsilon - 2 * lam
        if not inner >= 0:
            return 1.0
        # Rounded down, because a smaller epsilon inside can only raise delta.
        inner = max(0.0, inner * (1 - 1e-15) - 1e-300)
        worst = max(gaussian_delta_upper(inner, self.distance()), self._sets(inner))
        close = math.exp(lam) * worst + (self.grid_eta + self.shape_eta) * (1 + math.exp(epsilon))
        return (close + self.clip_delta + self.fit_delta + self.reserve) * _ROUND_UP

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
        return matrix_distance(check.shifts, self._spread(check)) * _ROUND_UP

    def _scalar_distance(self, check: GaussianCheck) -> float:
        shift, credited = abs(check.shifts[0][0]), check.credited[0][0]
        if not credited >= 0:
            raise CertificateError("certificate: a credited variance must not be negative.")
        common = math.hypot(*self.factor[0]) if self.factor else 0.0
        spread = math.hypot(math.sqrt(credited), self.independent[0], common)
        if shift and not spread > 0:
            raise CertificateError(f"certificate: {self.columns[0]} moves with {check.secret} and has no noise.")
        return shift / spread * _ROUND_UP if shift else 0.0

    def _spread(self, check: GaussianCheck) -> NDArray[np.float64]:
        """The covariance of the released averages given the secret, from below."""
        import numpy as np

        credited = np.array(check.credited, dtype=np.float64)
        scale = np.sqrt(np.maximum(np.diag(credited), 1e-300))
        if np.linalg.eigvalsh(credited / np.outer(scale, scale))[0] < -1e-9:
            raise CertificateError("certificate: a credited covariance must be semidefinite.")
        spread = credited + np.diag(np.array(self.independent) ** 2)
        if self.factor:
            factor = np.array(self.factor, dtype=np.float64)
            spread = spread + factor @ factor.T
        return np.asarray(spread, dtype=np.float64)

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column alone is what was counted on."""
        own = dict(zip(self.columns, self.independent, strict=True))
        return kind == "gaussian" and bool(self.checks or self.set_checks) and own.get(column) == scale


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
    return math.sqrt(max(0.0, largest) * (1 + 1e-12) + residue)


class LaplaceTerm(FrozenModel):
    """One average, kept in its bounds, with Laplace noise."""

    column: str
    sensitivity: float = Field(gt=0)
    scale: float = Field(gt=0)
    granularity: float = Field(gt=0)


class LaplaceEvidence(FrozenModel):
    """Pure epsilon by sensitivity: any table against any other."""

    kind: Literal["laplace"] = "laplace"
    epsilon: float | None = Field(default=None, description="the budget, where it is not the certificate's own")
    terms: tuple[LaplaceTerm, ...]

    def delta(self, epsilon: float) -> float:
        spent = sum((term.sensitivity + term.granularity) / term.scale for term in self.terms) * _ROUND_UP
        return 0.0 if spent <= epsilon else 1.0

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column is what was counted on."""
        return kind == "laplace" and any(term.column == column and term.scale == scale for term in self.terms)


class ConstantEvidence(FrozenModel):
    """The answer is a public number; no row is read."""

    kind: Literal["constant"] = "constant"

    def delta(self, epsilon: float) -> float:
        return 0.0


class ViewCell(FrozenModel):
    """One cell of a view: how many rows are kept, and the public range of its count.

    For a property of the population: the least share the cell may have, and the chance that fewer rows than `keep` are in it.
    """

    name: str
    keep: int = Field(ge=0)
    low: int = Field(ge=0)
    high: int = Field(ge=0)
    share: float | None = Field(default=None, ge=0, le=1)
    tail: float = Field(default=0.0, ge=0)


class ViewEvidence(FrozenModel):
    """Fixed numbers of rows of each cell: the law of the view does not depend on the counts, where each is large enough."""

    kind: Literal["view"] = "view"
    n: int = Field(ge=2)
    cells: tuple[ViewCell, ...] = Field(min_length=1)
    population: bool = False

    def delta(self, epsilon: float) -> float:
        possible = sum(cell.low for cell in self.cells) <= self.n <= sum(cell.high for cell in self.cells)
        if not possible or any(cell.keep > cell.low or cell.low > cell.high for cell in self.cells):
            return 1.0
        if not self.population:
            return 0.0
        shares = [cell.share for cell in self.cells]
        if any(share is None for share in shares):
            return 1.0
        return math.fsum(binomial_below(self.n, share or 0.0, c.keep) for share, c in zip(shares, self.cells, strict=True))


def binomial_below(n: int, share: float, k: int) -> float:
    """P(Bin(n, share) < k), rounded up."""
    from scipy.special import betainc

    if k <= 0:
        return 0.0
    if k > n:
        return 1.0
    # P(Bin(n, p) <= k - 1) = I_{1-p}(n - k + 1, k); 1 - p is rounded up, and the rest covers the library's accuracy.
    above = min(1.0, math.nextafter(1 - share, 2.0))
    return min(1.0, float(betainc(n - k + 1, k, above)) * (1 + 1e-9) + 1e-300)


Evidence = Annotated[GaussianEvidence | LaplaceEvidence | ConstantEvidence | ViewEvidence, Field(discriminator="kind")]


class Certificate(FrozenModel):
    """The proof of one plan, in numbers."""

    schema_version: Literal[1] = 1
    epsilon: float = Field(ge=0)
    delta: float = Field(ge=0, lt=1)
    evidence: Evidence
    individuals: LaplaceEvidence | None = Field(default=None, description="row-level differential privacy on top")
    assumes: tuple[str, ...]
    exact: bool = Field(default=True, description="no smaller noise of this kind would do over the whole class")
    gap: float = Field(default=0.0, ge=0, description="at most this much of the noise's scale is due to a bound, not to need")

    def verify(self) -> None:
        """Recompute the promise from the stored numbers; `CertificateError` if it does not hold."""
        reached = self._reached()
        if not (math.isfinite(reached) and reached <= self.delta):
            raise CertificateError(
                f"certificate: epsilon {self.epsilon:g} needs delta {reached:g}, above the promised {self.delta:g}. "
                "Nothing was released. Please report this (SECURITY.md)."
            )

    def _reached(self) -> float:
        """The delta that the stored numbers give; NaN where one of them is not what its field allows."""
        try:
            # A copy made with changed numbers has not been validated.
            stored = type(self).model_validate(self.model_dump(warnings=False))
            rows = stored.individuals
            if rows is not None and (rows.epsilon is None or rows.delta(rows.epsilon) > 0):
                return math.nan
            return stored.evidence.delta(stored.epsilon)
        except (ValidationError, UsageError, ArithmeticError):
            return math.nan

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column's average is what the evidence counted on."""
        evidence = self.evidence
        return isinstance(evidence, GaussianEvidence | LaplaceEvidence) and evidence.covers(column, kind, scale)

    def __str__(self) -> str:
        lines = [f"checked: delta {self.evidence.delta(self.epsilon):.6g} <= {self.delta:g} at epsilon {self.epsilon:g}"]
        if isinstance(self.evidence, GaussianEvidence):
            for check in self.evidence.checks:
                apart = self.evidence.distance_of(check)
                lines.append(f"worst for {check.secret}: outputs {apart:.6g} standard deviations apart")
        if isinstance(self.evidence, GaussianEvidence):
            lines += [
                f"worst for {sets.secret}: the mixture's exact law, over {len(sets.cells)} cells of the box"
                for sets in self.evidence.set_checks
            ]
        if self.individuals is not None:
            lines.append(f"single rows: {self.individuals.epsilon:g}-differential privacy, by Laplace noise on top")
        if not self.exact:
            lines.append(f"bound: up to {self.gap:.3g} of the noise's scale comes from a bound over the class")
        return "\n".join([*lines, *(f"assumes: {line}" for line in self.assumes)])


class Guarantee(FrozenModel):
    """What is promised, in words."""

    schema_version: Literal[1] = 1
    kind: Literal["proved", "approximate", "sampled"]
    statement: str
    reference: str

    def __str__(self) -> str:
        return f"{self.statement} ({self.kind}; {self.reference})"
