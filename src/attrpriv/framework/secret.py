"""A secret and the pairs of its values that must look alike.

    secret    a statistic g of one sensitive column of this table: mean(x) or sum(x)
    between   [low, high]: every two values in the range must look alike
    within    w: only values at most w apart must look alike (alone, or inside the range)

Without a range the values of a mean are unbounded, so at least one of the two is needed.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator, model_validator

from attrpriv.errors import QueryError
from attrpriv.framework.model import FrozenModel, Positive, Range
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_statistic


class Secret(FrozenModel):
    """`Secret("mean(income)", between=(20_000, 200_000), within=1_000)`.

    >>> Secret("mean(income)", between=(20_000, 200_000), within=1_000).gap
    1000.0
    """

    secret: str = Field(description="mean(column) or sum(column) of a sensitive column", examples=["mean(income)"])
    between: Range | None = Field(
        default=None, description="[low, high]: all values of the secret in this range must look alike"
    )
    within: Positive | None = Field(default=None, description="only values at most this far apart must look alike")

    def __init__(self, secret: Any = None, **data: Any) -> None:
        super().__init__(**({} if secret is None else {"secret": secret}), **data)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @field_validator("secret")
    @classmethod
    def _parses(cls, text: str) -> str:
        problem = None
        try:
            statistic = parse_statistic(text)
        except QueryError as error:
            problem = str(error)
        if problem is not None:
            raise ValueError(problem)
        return f"{'mean' if statistic.kind == 'avg' else 'sum'}{statistic.text[3:]}"

    @model_validator(mode="after")
    def _bounded(self) -> Secret:
        if self.between is None and self.within is None:
            raise ValueError("needs between: [low, high] or within: distance, or both. Got neither.")
        return self

    @property
    def statistic(self) -> Query:
        """The secret as a statistic of a column."""
        return parse_statistic(self.secret)

    @property
    def column(self) -> str:
        column = self.statistic.column
        assert column is not None  # parse_statistic returns an average or a sum
        return column

    @property
    def gap(self) -> float:
        """The largest distance of two values that must look alike, in the secret's own unit."""
        widest = float("inf") if self.between is None else self.between[1] - self.between[0]
        return min(widest, float("inf") if self.within is None else self.within)

    def gap_of_mean(self, n: int) -> float:
        """The same distance in the unit of the column's mean."""
        return self.gap / self.statistic.weight(n)

    def __str__(self) -> str:
        pairs = [] if self.between is None else [f"between {self.between[0]:g} and {self.between[1]:g}"]
        if self.within is not None:
            pairs.append(f"values at most {self.within:g} apart")
        return f"{self.secret}, {', '.join(pairs)}"
