"""The problem a mechanism solves: secrets, pairs, assumption, queries, budget, n. It contains no data.

What must never change: a problem is a function of public inputs only (policy, query, schema, number of rows). A plan is a
function of the problem, so nothing in a plan depends on the table's values.
"""

from __future__ import annotations

import itertools
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SerializeAsAny

from attrpriv.framework.assumption import Assumption
from attrpriv.framework.model import Finite, FrozenMap, FrozenModel, Positive, Range
from attrpriv.framework.secret import Secret
from attrpriv.queries.query import Query

# Above 100 a promise says nothing: e^100 is beyond any prior.
Epsilon = Annotated[Finite, Field(gt=0, le=100)]
Delta = Annotated[Finite, Field(ge=0, lt=1)]
Share = Annotated[Finite, Field(ge=0, le=1)]


def _increasing(edges: tuple[float, ...]) -> tuple[float, ...]:
    if len(edges) < 2 or any(a >= b for a, b in itertools.pairwise(edges)):
        raise ValueError(f"must be two or more edges, each above the one before. Got {list(edges)}.")
    return edges


Edges = Annotated[tuple[Finite, ...], AfterValidator(_increasing)]


class Problem(FrozenModel):
    """Everything a mechanism may look at."""

    schema_version: Literal[1] = 1
    queries: tuple[Query, ...] = Field(min_length=1)
    secrets: tuple[Secret, ...] = Field(min_length=1)
    epsilon: Epsilon
    delta: Delta = 0.0
    n: Annotated[int, Field(strict=True, ge=2)]
    theta: tuple[SerializeAsAny[Annotated[Assumption, BeforeValidator(Assumption.of_kind)]], ...] = ()
    calibration: Literal["analytic", "classical"] = "analytic"
    bounds: FrozenMap[Range] = Field(default_factory=dict)
    resolution: FrozenMap[Positive] = Field(default_factory=dict)
    missing: FrozenMap[Finite] = Field(default_factory=dict)
    bins: FrozenMap[Edges] = Field(default_factory=dict)
    composition: FrozenMap[Share] = Field(default_factory=dict)
    known_rows: Annotated[Share, Field(lt=1)] = 0.0
    types: FrozenMap[str] = Field(default_factory=dict)
    individuals: Positive | None = Field(default=None, description="epsilon of row-level differential privacy on top")
    accept_fit_risk: bool = False
    policy_digest: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The distinct columns the queries read, in order."""
        return tuple(dict.fromkeys(query.column for query in self.queries if query.column is not None))

    def spacing(self, column: str) -> tuple[float | None, bool]:
        """The spacing of the column's values, if anything is known of it, and whether the policy declared it.

        Whole numbers and booleans have at least 1 from the schema, whatever was declared.
        """
        whole = 1.0 if self.types.get(column) in ("integer", "boolean") else None
        declared = self.resolution.get(column)
        if declared is None:
            return whole, False
        return max(declared, whole or 0.0), True

    def __str__(self) -> str:
        lines = [f"release {', '.join(q.text for q in self.queries)} of n = {self.n} rows"]
        lines += [f"hide    {secret}" for secret in self.secrets]
        lines += [f"budget  epsilon {self.epsilon:g}, delta {self.delta:g}"]
        lines += [f"assume  {theta}" for theta in self.theta] or ["assume  nothing"]
        return "\n".join(lines)


__all__ = ["Delta", "Edges", "Epsilon", "Problem", "Share"]
