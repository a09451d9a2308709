"""The evidence of mechanisms that assume nothing of the rows' law: Laplace noise by sensitivity, and a public constant."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field

from attrpriv.frozen import FrozenModel
from attrpriv.methods.base.accuracy import ModelError, unaffected
from attrpriv.methods.base.evidence import Counted, Evidence
from attrpriv.numerics.rounding import COMPUTED_UP


class LaplaceTerm(FrozenModel):
    """One average, kept in its bounds, with Laplace noise."""

    column: str
    sensitivity: float = Field(gt=0)
    scale: float = Field(gt=0)
    granularity: float = Field(gt=0)


class LaplaceEvidence(Evidence):
    """Pure epsilon by sensitivity: any table against any other."""

    words: ClassVar[str] = "a release with Laplace noise for its whole range"
    kind: Literal["laplace"] = "laplace"
    epsilon: float | None = Field(default=None, description="the budget, where it is not the certificate's own")
    terms: tuple[LaplaceTerm, ...]

    def delta(self, epsilon: float) -> float:
        spent = sum((term.sensitivity + term.granularity) / term.scale for term in self.terms) * COMPUTED_UP
        return 0.0 if spent <= epsilon else 1.0

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column is what was counted on."""
        return kind == "laplace" and any(term.column == column and term.scale == scale for term in self.terms)

    def covers_statistic(self, name: str, read: frozenset[str], width: Fraction, kind: str, scale: float) -> bool:
        """Whatever columns it reads: all of them may change."""
        return covers_statistic(self.terms, name, width, kind, scale)

    def covers_tally(self, told: Counted) -> bool:
        """Of the terms, so that the noise is for the whole range of what is counted."""
        return covers_range(self.terms, told)

    def width_of(self, column: str) -> float | None:
        return least_width(self.terms, column)

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        return unaffected(epsilon)


def covers_statistic(terms: Sequence[LaplaceTerm], name: str, width: Fraction, kind: str, scale: float) -> bool:
    """Whether Laplace noise of this scale on a statistic kept in a range of this width is what was counted on."""
    return kind == "laplace" and any(
        (term.column, term.scale) == (name, scale) and width <= Fraction(term.sensitivity) for term in terms
    )


def covers_range(terms: Sequence[LaplaceTerm], told: Counted) -> bool:
    """Whether the only noise is for the whole range of what is counted."""
    wanted = (told.n * told.width, told.scale)
    return told.noise == "laplace" and [(term.sensitivity, term.scale) for term in terms] == [wanted]


def least_width(terms: Sequence[LaplaceTerm], column: str) -> float | None:
    """Within which width the rows of a column must be clipped."""
    return min((term.sensitivity for term in terms if term.column == column), default=None)


class ConstantEvidence(Evidence):
    """The answer is a public number; no row is read."""

    words: ClassVar[str] = "a public constant"
    reads_rows: ClassVar[bool] = False
    kind: Literal["constant"] = "constant"

    def delta(self, epsilon: float) -> float:
        return 0.0

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        return unaffected(epsilon)
