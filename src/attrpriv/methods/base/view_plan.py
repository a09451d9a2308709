"""How many rows of each cell a view keeps: what a plan for a view holds, and what its proof is about. Public facts only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from attrpriv.frozen import Finite, FrozenModel
from attrpriv.methods.base.accuracy import is_warning
from attrpriv.methods.base.certificate import Certificate, Guarantee
from attrpriv.methods.base.view_coverage import FIRST, Coverage
from attrpriv.methods.base.view_persons import NoisyAnswer, ViewPersons
from attrpriv.problem.reference import Combination
from attrpriv.problem.secret import Secret
from attrpriv.queries.conditions import columns_of, parse_condition
from attrpriv.queries.query import Query

if TYPE_CHECKING:
    from attrpriv.methods.base.tells import Tells

REAL_RECORDS = "The view holds real records: a table to compute on, not one to publish."


def _absent(value: object) -> bool:
    """Other views have no such field: what ledgers recorded of them stays as it was."""
    return value is None


def columns_read(query: Query) -> frozenset[str]:
    """Every column that a query reads: what it is of, its filter and its groups."""
    filtered = () if query.where is None else columns_of(parse_condition(query.where))
    return frozenset((*query.columns, *filtered, *(() if query.group_by is None else (query.group_by,))))


class ViewCell(FrozenModel):
    """One cell of a view: how many rows are kept, and the public range of its count.

    For a property of the population: the least share the cell may have, and the chance that fewer rows than `keep` are in it.
    Of a reference view: the values that its rows have, how many public records have them, and their public share.
    """

    name: str
    keep: int = Field(ge=0)
    low: int = Field(ge=0)
    high: int = Field(ge=0)
    share: float | None = Field(default=None, ge=0, le=1)
    tail: float = Field(default=0.0, ge=0)
    values: Combination | None = Field(default=None, exclude_if=_absent)
    count: int | None = Field(default=None, ge=0, exclude_if=_absent)


class Moved(FrozenModel):
    """The number of which rows show a public value near their own, its intervals, and how far all of them may have moved."""

    column: str
    edges: tuple[Finite, ...] = Field(min_length=2)
    most: Finite | None = Field(description="of the sum of weighted squared distances; None: it can never be more")
    order: Finite
    slope: Finite | None


class ViewPlan(FrozenModel):
    """How many rows of each cell are kept; a function of public facts only."""

    schema_version: Literal[1] = 1
    secret: Secret
    n: int
    cells: tuple[ViewCell, ...] = Field(min_length=1)
    guarantee: Guarantee
    certificate: Certificate
    policy_digest: str = ""
    persons: ViewPersons | None = Field(default=None, exclude_if=_absent, description="noise of answers, for single persons")
    notes: tuple[str, ...] = ()
    coverage: Coverage | None = Field(default=None, exclude_if=_absent)

    @property
    def rows(self) -> int:
        """The number of rows of the view."""
        return sum(cell.keep for cell in self.cells)

    def noisy(self, query: Query) -> NoisyAnswer | None:
        """How a query is answered with noise for single persons; None where it is answered without."""
        found = () if self.persons is None else self.persons.answers
        return next((answer for answer in found if answer.query == query), None)

    @property
    def first_cells(self) -> tuple[ViewCell, ...]:
        """The cells that are shown to people: of a reference with many values, the first few."""
        return self.cells if self.coverage is None or len(self.cells) <= 2 * FIRST else self.cells[:FIRST]

    @property
    def more_cells(self) -> int:
        """How many cells are not among them."""
        return len(self.cells) - len(self.first_cells)

    def is_public(self, query: Query) -> bool:
        """Whether a query reads nothing but columns that the view has as the public has them; not of the number of rows."""
        read = columns_read(query)
        return bool(read) and read <= {*self.secret.whole_columns}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What an approver must not miss."""
        return tuple(note for note in self.notes if is_warning(note))

    def __str__(self) -> str:
        lines = [f"view of {self.rows} of {self.n} rows; {REAL_RECORDS}"]
        lines += [f"{cell.name}: keep {cell.keep} of {cell.low} to {cell.high}" for cell in self.first_cells]
        lines += [f"and {self.more_cells} more"] if self.more_cells else []
        lines += [] if self.coverage is None else self.coverage.lines
        return "\n".join([*lines, str(self.guarantee), str(self.certificate), *(f"warning: {line}" for line in self.warnings)])

    def tells(self) -> Tells:
        """How well the best test tells two compositions that must look alike, from the view. Reads no row."""
        from attrpriv.methods.base.tells import tells_of_view

        return tells_of_view(self)

    @property
    def written(self) -> str | None:
        """The file that it was written to, by its name; None: it is a plan."""
        return self.__dict__.get("_written")

    def written_to(self, name: str) -> ViewPlan:
        """The same, of a view that was drawn; no part of the plan, and not recorded with it."""
        made = self.model_copy()
        made.__dict__["_written"] = name
        return made

    def to_frame(self, kind: str = "pandas") -> Any:
        """A row for each cell, with what is kept of it and its public range: pandas, polars or arrow."""
        from attrpriv.notebook.frames import view_frame

        return view_frame(self, kind)

    def plot(self, ax: Any = None) -> Any:
        """The share of each cell's rows that is kept, on these axes or new ones. Needs the extra `plots`."""
        from attrpriv.pictures.figures import draw
        from attrpriv.pictures.subjects import kept

        return draw(kept(self), ax)

    def _repr_html_(self) -> str:
        from attrpriv.notebook.html import view_html

        return view_html(self)
