"""Guarantee and Certificate: what a plan promises, and the numbers that prove it.

A certificate is self-contained: `verify` recomputes the promise from the numbers stored in it, rounding up, and raises
`CertificateError` if it does not hold. What must never change: a NaN or an infinity anywhere fails the check, and nothing in a
certificate depends on the table's values.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from attrpriv.divergences import gaussian_delta_upper
from attrpriv.errors import CertificateError, UsageError
from attrpriv.framework.model import FrozenModel, NonNegative

# Everything below is recomputed in floats from stored floats; this covers their rounding, on the private side.
_ROUND_UP = 1 + 1e-12


class GaussianTerm(FrozenModel):
    """One column's average as seen from one secret: shift of its mean, credited variance of the data, noise."""

    column: str
    slope: NonNegative
    shift: NonNegative
    credited_variance: NonNegative
    noise_scale: NonNegative


class GaussianCheck(FrozenModel):
    """The worst distribution for one secret: all averages released together."""

    secret: str
    theta: int
    gap: NonNegative
    terms: tuple[GaussianTerm, ...]

    def distance(self) -> float:
        """The distance of the two output laws in standard deviations, rounded up."""
        if len(self.terms) > 1 and any(term.credited_variance > 0 for term in self.terms):
            raise CertificateError("certificate: the data's own variance may be credited to a single average only.")
        distances = []
        for term in self.terms:
            shift = max(term.shift, term.slope * self.gap)
            if shift == 0:
                continue
            spread = math.hypot(math.sqrt(term.credited_variance), term.noise_scale)
            if not spread > 0:
                raise CertificateError(f"certificate: {term.column} moves with {self.secret} and has no noise.")
            distances.append(shift / spread)
        return math.hypot(*distances) * _ROUND_UP


class GaussianEvidence(FrozenModel):
    """Equal-variance Gaussian outputs, plus every charge that is not the calibration itself."""

    kind: Literal["gaussian"] = "gaussian"
    checks: tuple[GaussianCheck, ...]
    grid_lambda: float = Field(ge=0)
    lattice_lambda: float = Field(ge=0)
    grid_eta: float = Field(ge=0)
    clip_delta: float = Field(ge=0)
    reserve: float = Field(ge=0)

    def delta(self, epsilon: float) -> float:
        """The delta reached at `epsilon`, from above."""
        lam = self.grid_lambda + self.lattice_lambda
        inner = epsilon - 2 * lam
        if not inner >= 0:
            return 1.0
        # Rounded down, because a smaller epsilon inside can only raise delta.
        inner = max(0.0, inner * (1 - 1e-15) - 1e-300)
        worst = max((gaussian_delta_upper(inner, check.distance()) for check in self.checks), default=0.0)
        lattice = math.exp(lam) * worst + self.grid_eta * (1 + math.exp(epsilon))
        return (lattice + self.clip_delta + self.reserve) * _ROUND_UP

    def distance(self) -> float:
        return max((check.distance() for check in self.checks), default=0.0)

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column is what every check counted on."""
        noises = [{term.column: term.noise_scale for term in check.terms} for check in self.checks]
        return kind == "gaussian" and bool(noises) and all(noise.get(column) == scale for noise in noises)


class LaplaceTerm(FrozenModel):
    """One average, kept in its bounds, with Laplace noise."""

    column: str
    sensitivity: float = Field(gt=0)
    scale: float = Field(gt=0)
    granularity: float = Field(gt=0)


class LaplaceEvidence(FrozenModel):
    """Pure epsilon by sensitivity: any table against any other."""

    kind: Literal["laplace"] = "laplace"
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
            lines += [
                f"worst for {c.secret}: outputs {c.distance():.6g} standard deviations apart" for c in self.evidence.checks
            ]
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
