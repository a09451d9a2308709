"""How many rows of each cell a view keeps: what a plan for a view holds, and what its proof is about. Public facts only."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from attrpriv.frozen import FrozenModel
from attrpriv.methods.base.accuracy import is_warning
from attrpriv.methods.base.certificate import Certificate, Guarantee
from attrpriv.problem.secret import Secret

REAL_RECORDS = "The view holds real records: a table to compute on, not one to publish."


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


class ViewPlan(FrozenModel):
    """How many rows of each cell are kept; a function of public facts only."""

    schema_version: Literal[1] = 1
    secret: Secret
    n: int
    cells: tuple[ViewCell, ...] = Field(min_length=1)
    guarantee: Guarantee
    certificate: Certificate
    policy_digest: str = ""
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """The number of rows of the view."""
        return sum(cell.keep for cell in self.cells)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What an approver must not miss."""
        return tuple(note for note in self.notes if is_warning(note))

    def __str__(self) -> str:
        lines = [f"view of {self.rows} of {self.n} rows; {REAL_RECORDS}"]
        lines += [f"{cell.name}: keep {cell.keep} of {cell.low} to {cell.high}" for cell in self.cells]
        return "\n".join([*lines, str(self.guarantee), str(self.certificate), *(f"warning: {line}" for line in self.warnings)])
