"""What an audit found: numbers, and what they mean in words.

What must never change: every interval and every bound of an audit holds at once with its confidence (each has the part of the
error that is its own), and the attack in the foreground is the one that cross-validation on shadows chose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from attrpriv.audit.bounds import least_seen
from attrpriv.frozen import Finite, FrozenModel, NonNegative

if TYPE_CHECKING:
    from attrpriv.pictures.marks import Picture

Share = Annotated[Finite, Field(ge=0, le=1)]
Source = Literal["records", "own"]


class Attacked(FrozenModel):
    """One attack on one kind of model: how often it was right, and what that proves."""

    model: str
    trained_on: str
    attack: str
    chosen: bool = Field(description="whether cross-validation on shadows put this attack in the foreground")
    validated: Share = Field(description="share of right guesses in cross-validation on shadows")
    right: int = Field(ge=0)
    targets: int = Field(ge=1)
    low: Share
    high: Share
    epsilon: NonNegative = Field(description="at least this much, with the audit's delta and confidence")
    epsilon_cap: NonNegative = Field(description="more than this is never shown by so many targets")
    rows: int = Field(ge=0, description="so many rows' values tell as much, by the best test")
    rows_low: int = Field(ge=0)
    rows_high: int = Field(ge=0)
    n_leaked: NonNegative | None = Field(default=None, description="so many at least if rows are independent; shares only")
    promise: str = Field(default="", description="what is proved of its training rows, in tables of these records at least")
    every_table: bool = Field(default=False, description="whether that is proved for every table")
    caution: str = ""

    @property
    def share(self) -> float:
        """Of right guesses."""
        return self.right / self.targets

    @property
    def leaks(self) -> bool:
        """Whether a coin would not have guessed so well."""
        return self.low > 0.5

    @property
    def name(self) -> str:
        return f"{self.model}, {self.trained_on}"


class ModelAudit(FrozenModel):
    """What `audit_model` found. `print` it for words, `to_frame()` for numbers, `plot()` for a picture."""

    secret: str
    values: tuple[Finite, Finite]
    table_rows: int = Field(ge=1)
    records: int = Field(ge=1)
    shadows: int
    targets: int
    tables_asked: int
    seed: int
    delta: Annotated[Finite, Field(ge=0, lt=1)]
    confidence: Annotated[Finite, Field(gt=0, lt=1)]
    source: Source
    seconds: NonNegative
    results: tuple[Attacked, ...] = Field(min_length=1)
    notes: tuple[str, ...] = ()

    @property
    def chosen(self) -> tuple[Attacked, ...]:
        """Of each kind of model, the attack that cross-validation chose."""
        return tuple(one for one in self.results if one.chosen)

    @property
    def best(self) -> Attacked:
        """The most successful of them."""
        return max(self.chosen, key=lambda one: one.right)

    @property
    def error_each(self) -> float:
        """The part of the error that each interval and each bound has, so that all hold at once."""
        return (1 - self.confidence) / len(self.results)

    @property
    def least_seen(self) -> float:
        """Leaks by which guesses are right less often may not have been seen."""
        return least_seen(self.targets, self.error_each)

    def result(self, model: str, trained_on: str = "all rows", attack: str | None = None) -> Attacked:
        """One of the results; of several attacks the chosen one."""
        for one in self.results:
            if (one.model, one.trained_on) == (model, trained_on) and (one.chosen if attack is None else one.attack == attack):
                return one
        raise KeyError(f"no such result: {model}, {trained_on}, {attack or 'chosen'}")

    @property
    def warning(self) -> str:
        """What nobody must miss; nothing for an audit on public records."""
        if self.source == "records":
            return ""
        return (
            "Do not publish. This audit was made of the owner's own table, outside the ledger: its numbers are a function of "
            "that table, and no promise covers them."
        )

    @property
    def shows(self) -> tuple[str, ...]:
        """What was found, a sentence or two for each kind of model."""
        from attrpriv.audit.words import shows

        return shows(self)

    @property
    def would_not_show(self) -> tuple[str, ...]:
        """What an audit like this one cannot see."""
        from attrpriv.audit.words import would_not_show

        return would_not_show(self)

    def to_frame(self, kind: str = "pandas") -> Any:
        """A row for each attack, as a pandas, polars or arrow table."""
        from attrpriv.notebook.frames import audit_frame

        return audit_frame(self, kind)

    def to_html(self) -> str:
        """The whole of it, to be put into a page."""
        from attrpriv.notebook.html import audit_html

        return audit_html(self)

    def _repr_html_(self) -> str:
        return self.to_html()

    @property
    def picture(self) -> Picture:
        """Right guesses with their intervals, beside a coin's."""
        from attrpriv.audit.picture import picture

        return picture(self)

    def plot(self, ax: Any = None) -> Any:
        """The picture by matplotlib; gives back the axes. Needs the extra `plots`."""
        from attrpriv.pictures.figures import draw

        return draw(self.picture, ax)

    def __str__(self) -> str:
        from attrpriv.audit.words import question

        lines = [self.warning, question(self), *self.shows, "What it would not have seen:"]
        return "\n".join([line for line in lines if line] + [f"- {line}" for line in self.would_not_show])
