"""What a reference view shows of the public population, and what it would show under another reference. Public facts only."""

from __future__ import annotations

from pydantic import Field

from attrpriv.frozen import FrozenModel

# Of many values, how many are named; `--json` has all.
FIRST = 5


class Outlook(FrozenModel):
    """How much a view shows under a least density, or of one of the hidden columns alone."""

    columns: tuple[str, ...]
    least_density: float
    rows: int = Field(ge=0)
    kept: float = Field(ge=0, le=1, description="share of the table's rows that the view has")
    public: float = Field(ge=0, description="share of the public whose values the view shows")
    stated: bool = Field(description="whether it is the policy's own")

    @property
    def name(self) -> str:
        """What is different, in words."""
        return f"least density {self.least_density:g}{', as stated' if self.stated else ''}"


class Coverage(FrozenModel):
    """What a reference view shows: known before anything is drawn."""

    n: int
    values: int = Field(description="how many values, or combinations, the reference has")
    shown: int = Field(description="of how many of them the view has rows")
    rows: int
    public: float = Field(ge=0, description="share of the public whose values the view shows")
    never_shown: tuple[str, ...] = ()
    failure: float = Field(ge=0, description="chance that some value has too few rows, so that no view is drawn")
    rarest_event: float
    delta: float = Field(ge=0, description="that chance for events as improbable as the rarest that must look alike")
    outlook: tuple[Outlook, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """What is shown, what never is, and what the failure costs, in words."""
        first = (
            f"the view shows {self.rows:,} of {self.n:,} rows ({self.rows / self.n:.1%}), of {self.shown:,} of {self.values:,} "
            f"public values, which {self.public:.2%} of the public have."
        )
        return (first, *self._never, self._cost)

    @property
    def _never(self) -> tuple[str, ...]:
        if not self.never_shown:
            return ()
        more = len(self.never_shown) - FIRST
        named = ", ".join(self.never_shown[:FIRST]) + (f" and {more:,} more" if more > 0 else "")
        return (f"never shown, because too few of the public have them: {named}.",)

    @property
    def _cost(self) -> str:
        return (
            f"some value has too few rows, so that nothing can be shown, with a chance of at most {self.failure:.2g}; that is "
            f"{self.delta:.2g} of delta for events as rare as {self.rarest_event:g}."
        )

    def table(self) -> tuple[tuple[str, ...], ...]:
        """The outlook as rows of text, after a header."""
        whole = self.outlook[0].columns if self.outlook else ()
        named = [row.name if row.columns == whole else f"only {', '.join(row.columns)} hidden" for row in self.outlook]
        rows = (
            (name, f"{row.rows:,}", f"{row.kept:.1%}", f"{row.public:.1%}")
            for name, row in zip(named, self.outlook, strict=True)
        )
        return (("what if", "rows", "of the table", "of the public"), *rows)
