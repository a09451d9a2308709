"""What the audit of a release found: a line for each experiment, with what it would not have seen.

What must never change: "broken" is said where fresh draws prove it, at the stated error of the whole audit; where nothing is
found, it says which leaks would not have been found either.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from attrpriv.frozen import Finite, FrozenModel, NonNegative

Share = Annotated[Finite, Field(ge=0, le=1)]
Experiment = Literal["noise", "before the noise", "as released"]


class Tried(FrozenModel):
    """One experiment, and what it proves."""

    experiment: Experiment
    on: str = Field(description="on which tables")
    draws: int = Field(ge=1, description="tables of each value; of the noise, draws for one table")
    broken: bool
    right: Share | None = Field(default=None, description="a guess between two values is right at least this often")
    allowed: Share | None = Field(default=None, description="and by the promise at most this often")
    seen: Share | None = Field(default=None, description="a guess that is right this often would have been seen, about")
    mu: NonNegative | None = Field(default=None, description="the two laws are at least this many standard deviations apart")
    epsilon: NonNegative | None = Field(default=None, description="which normal laws reach at this epsilon, with the delta")
    told: str

    @property
    def verdict(self) -> str:
        return "broken" if self.broken else "nothing found"


class ReleaseAudit(FrozenModel):
    """What `audit_release` found. `print` it for words, `to_frame()` for numbers; `holds`: whether nothing is broken."""

    mechanism: str
    queries: tuple[str, ...]
    epsilon: NonNegative
    delta: NonNegative
    error: Share = Field(description="the chance, at most, that a right release is called broken")
    seed: int
    tried: tuple[Tried, ...]
    not_tried: tuple[str, ...] = ()
    seconds: NonNegative

    @property
    def holds(self) -> bool:
        """Whether no experiment found the promise broken."""
        return not any(one.broken for one in self.tried)

    @property
    def summary(self) -> str:
        asked = ", ".join(self.queries)
        broken = [one for one in self.tried if one.broken]
        if not self.tried:
            return f"{asked} by {self.mechanism}: nothing could be tried."
        if not broken:
            return (
                f"{asked} by {self.mechanism}: {len(self.tried)} experiments found nothing beyond the promise "
                f"(epsilon {self.epsilon:g}, delta {self.delta:g})."
            )
        worst = max(broken, key=lambda one: one.right or 0.0)
        return f"{asked} by {self.mechanism}: broken: {worst.told}"

    @property
    def would_not_show(self) -> tuple[str, ...]:
        """What such an audit cannot see."""
        return (
            *self.not_tried,
            "Leaks smaller than an experiment's resolution, and events that no threshold on a combination of answers tells.",
            "Laws, values and pairs other than those that were tried; what an adversary knows besides.",
            "The owner's table. No row of it was read: a promise is about all tables, and this one proves nothing.",
        )

    def to_frame(self, kind: str = "pandas") -> Any:
        """A row for each experiment, as a pandas, polars or arrow table."""
        from attrpriv.notebook.frames import listed_frame

        return listed_frame([one.to_json() for one in self.tried], kind)

    def _repr_html_(self) -> str:
        from attrpriv.notebook.html import tried_html

        return tried_html(self)

    def to_html(self) -> str:
        """The whole of it, to be put into a page."""
        return self._repr_html_()

    def __str__(self) -> str:
        lines = [self.summary]
        lines += [f"{one.experiment} ({one.on}): {one.told}" for one in self.tried]
        lines.append(f"A right release is called broken once in {1 / self.error:,.0f} audits at most.")
        return "\n".join([*lines, "What it would not have seen:", *(f"- {line}" for line in self.would_not_show)])
