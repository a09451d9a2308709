"""What Laplace noise by sensitivity covers: a statistic in its range, a count, rows that are clipped."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attrpriv.methods.base.evidence import Counted, LaplaceTerm


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
