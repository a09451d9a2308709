"""Groups: within each category of a sensitive column the query columns are normal, known up to a tolerance.

| tolerance | what may vary |
|---|---|
| mean | each mean of each category, by this many standard deviations of that category (whichever sd of the box it has) |
| sd | each standard deviation of each category, by this share of itself |

Rows are independent; how many rows a category has is not assumed (`prior` is for mechanisms that need it, and for readers).
`tolerance` has no default: zero is allowed, and said. What must never change: `Groups` is only moments and their box, and turns
them into the plain numbers of a `GroupCase` or `VectorCase`; what noise they need is in `numerics.calibration.groups`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from attrpriv.assumptions.gaussian import FittedRecord, Pairs
from attrpriv.assumptions.probabilities import Probability, filled, share_of
from attrpriv.assumptions.shape import summary
from attrpriv.errors import Cause, QueryError, RefusedError
from attrpriv.frozen import Finite, FrozenMap, FrozenModel, NonNegative, Positive
from attrpriv.frozen.requirements import shown
from attrpriv.numerics.laws.groups import GroupCase, VectorCase
from attrpriv.numerics.laws.records import CountPairs
from attrpriv.numerics.rounding import PSD_SLACK, SUM_SLACK
from attrpriv.problem.assumption import Assumption, ExpectedEntry, NamedCategories, PublicRecords, ShareBelief
from attrpriv.problem.shapes import UNEQUAL
from attrpriv.queries.conditions import Condition, columns_of
from attrpriv.queries.evaluate import holds_for, names_only

if TYPE_CHECKING:
    from attrpriv.assumptions.fit_groups import PublicGroupTable
    from attrpriv.problem.secret import Secret


Rows = tuple[tuple[float, ...], ...]


class GroupTolerance(FrozenModel):
    """How far the truth may be from the stated moments.

    Examples:
        >>> GroupTolerance(mean=0.02, sd=0.05).sd
        0.05
    """

    mean: NonNegative = Field(default=0.0, description="of each mean, in standard deviations of its category")
    sd: Annotated[Finite, Field(ge=0, lt=1)] = Field(default=0.0, description="of each standard deviation, relative")

    def __str__(self) -> str:
        if not (self.mean or self.sd):
            return "tolerance 0: every stated moment is taken as exact"
        return f"tolerance mean {self.mean:g} sd, sd {self.sd:g}"


def _read_tolerance(value: object) -> object:
    if isinstance(value, GroupTolerance | Mapping):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and value == 0:
        return GroupTolerance()
    raise ValueError(f"must be a mapping such as {{mean: 0.02, sd: 0.02}}, or 0. Got {shown(value)}.")


class Groups(Assumption):
    """Rows are independent, and normal within each category of one column.

    >>> hours = Groups(sensitive="gender", mean={"F": {"hours": 36}, "M": {"hours": 42}},
    ...                sd={"F": {"hours": 11}, "M": {"hours": 12}}, tolerance=0)
    >>> hours.mean_of("F", "hours"), hours.sd_range("M", "hours"), hours.categories
    (36.0, (12.0, 12.0), ('F', 'M'))
    """

    shape: ClassVar[str] = UNEQUAL
    normal_rows: ClassVar[bool] = True
    kind: Literal["groups"] = "groups"
    sensitive: Annotated[str, Field(min_length=1)] = Field(description="the categorical column")
    mean: FrozenMap[FrozenMap[Finite]] = Field(description="of each category: the mean of each query column")
    sd: FrozenMap[FrozenMap[Positive]] = Field(description="of each category: the standard deviation of each query column")
    correlation: FrozenMap[Pairs] | None = Field(
        default=None,
        description="of each category: correlation of each pair of columns, as a~b; only for several averages together",
    )
    tolerance: Annotated[
        GroupTolerance, BeforeValidator(_read_tolerance, json_schema_input_type=GroupTolerance | Literal[0])
    ] = Field(description="how far the truth may be from these moments; a mapping, or 0")
    prior: FrozenMap[Probability] | None = Field(default=None, description="share of each category: a number or [low, high]")
    other: str | None = Field(default=None, description="the category that rows of categories not named here count as")
    fitted: FittedRecord | None = Field(default=None, description="written by `attrpriv fit`: the public records behind it")

    @classmethod
    def fit(
        cls, table: PublicGroupTable, *, confidence: float, sensitive: str, columns: Sequence[str], other: str | None = None
    ) -> Groups:
        """The assumption that *public* records support: `Groups.fit(PublicTable("public.parquet"), ...)`."""
        from attrpriv.assumptions.fit_groups import fit_group_table

        return fit_group_table(table, confidence=confidence, sensitive=sensitive, columns=columns, other=other).groups

    @field_validator("correlation")
    @classmethod
    def _correlations(cls, given: Mapping[str, Mapping[str, float]] | None) -> Mapping[str, Mapping[str, float]] | None:
        for category, pairs in (given or {}).items():
            for pair, value in pairs.items():
                if not -1 <= value <= 1:
                    raise ValueError(f"{category}: {pair}: must be between -1 and 1. Got {value:g}.")
        return given

    @model_validator(mode="after")
    def _complete(self) -> Groups:
        if len(self.mean) < 2:
            raise ValueError(f"mean: needs two or more categories. Got {', '.join(self.mean) or 'none'}.")
        _require_same("sd", "categories", self.sd, self.mean)
        for name, given in (("mean", self.mean), ("sd", self.sd)):
            for category in self.categories:
                _require_same(f"{name}: {category}", "columns", given[category], self.mean[self.categories[0]])
        if not self.columns:
            raise ValueError("mean: needs one or more columns in each category. Got none.")
        if self.sensitive in self.columns:
            raise ValueError(f"mean: must not name the sensitive column itself. Got {self.sensitive}.")
        if self.other is not None and self.other not in self.mean:
            raise ValueError(f"other: must be one of the categories {', '.join(self.categories)}. Got {self.other}.")
        self._require_prior()
        self._require_correlations()
        return self

    def _require_prior(self) -> None:
        given = self.prior or {}
        for category in given:
            if category not in self.mean:
                raise ValueError(f"prior: {category} is not a category. Known are {', '.join(self.categories)}.")
        low, high = (math.fsum(ends[k] for ends in given.values()) for k in (0, 1))
        if low > 1 + SUM_SLACK or (len(given) == len(self.mean) and high < 1 - SUM_SLACK):
            off = low - 1 if low > 1 else high - 1
            raise ValueError(f"prior: shares must be able to sum to 1. Got a sum that is off by {off:.3g}.")

    def _require_correlations(self) -> None:
        if self.correlation is None:
            return
        _require_same("correlation", "categories", self.correlation, self.mean)
        wanted = {frozenset(pair) for pair in itertools.combinations(self.columns, 2)}
        for category, pairs in self.correlation.items():
            named = {frozenset(pair.split("~")) for pair in pairs}
            lacking = sorted("~".join(sorted(pair)) for pair in wanted - named)
            if lacking:
                raise ValueError(
                    f"correlation: {category}: needs every pair of columns (0 is allowed). Missing: {', '.join(lacking)}."
                )
            if named - wanted:
                unknown = sorted("~".join(sorted(pair)) for pair in named - wanted)
                raise ValueError(f"correlation: {category}: must name two different query columns. Got {', '.join(unknown)}.")
            self._require_semidefinite(category)

    def _require_semidefinite(self, category: str) -> None:
        import numpy as np

        matrix = [[self._correlation(category, a, b) for b in self.columns] for a in self.columns]
        smallest = float(np.linalg.eigvalsh(np.array(matrix))[0])
        if not smallest >= -PSD_SLACK:
            raise ValueError(
                f"correlation: {category}: the matrix must be positive semidefinite, so that some table can have it. "
                f"Got a smallest eigenvalue of {smallest:.4g}; make some correlation weaker."
            )

    @property
    def categories(self) -> tuple[str, ...]:
        return tuple(self.mean)

    @property
    def columns(self) -> tuple[str, ...]:
        """The query columns; the sensitive column is not one of them."""
        return tuple(self.mean[self.categories[0]])

    def mean_of(self, category: str, column: str) -> float:
        return self.mean[category][column]

    def sd_of(self, category: str, column: str) -> float:
        return self.sd[category][column]

    def sd_range(self, category: str, column: str) -> tuple[float, float]:
        """The least and the largest standard deviation in Theta."""
        sd = self.sd_of(category, column)
        return sd * (1 - self.tolerance.sd), sd * (1 + self.tolerance.sd)

    def covariance(self, category: str, columns: Sequence[str]) -> Rows:
        """The stated covariance matrix of some columns in a category; a refusal where a correlation is not stated."""
        if len(columns) > 1 and self.correlation is None:
            raise RefusedError(
                f"assume.correlation: several averages together need those of {', '.join(columns)} in each category. "
                "State them, or ask for one average."
            )
        sds = {column: self.sd_of(category, column) for column in columns}
        # the product of the two sds first, so that the matrix is symmetric to the last digit
        return tuple(tuple(self._correlation(category, a, b) * (sds[a] * sds[b]) for b in columns) for a in columns)

    def _correlation(self, category: str, first: str, second: str) -> float:
        if first == second:
            return 1.0
        pairs = (self.correlation or {})[category]
        return pairs[f"{first}~{second}"] if f"{first}~{second}" in pairs else pairs[f"{second}~{first}"]

    # ------------------------------------------------------------------------------------------------ for calibration

    def split(self, condition: Condition) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The categories that satisfy a condition on the sensitive column, and the others; both must be some.

        >>> from attrpriv.queries.conditions import parse_condition
        >>> one = {"hours": 1}
        >>> Groups(sensitive="g", mean={"F": one, "M": one, "X": one}, sd={"F": one, "M": one, "X": one}, tolerance=0).split(
        ...     parse_condition("g in ('F', 'X')"))
        (('F', 'X'), ('M',))
        """
        if columns_of(condition) != (self.sensitive,):
            raise QueryError(
                f"condition: must be about {self.sensitive} alone, which the assumption describes. Got {condition}."
            )
        named = [category for category in self.categories if category != self.other]
        if self.other is not None and not names_only(condition, named):
            raise QueryError(
                f"condition: with other: {self.other} it must name categories by = or in, of {', '.join(named)}, because rows "
                f"that count as {self.other} may have any value. Got {condition}."
            )
        members = tuple(category for category in named if holds_for(condition, category))
        rest = tuple(category for category in self.categories if category not in members)
        if not (members and rest):
            raise QueryError(f"condition: must hold for some of {', '.join(self.categories)} and not for all. Got {condition}.")
        return members, rest

    def members_of(self, secret: Secret) -> tuple[str, ...]:
        """The categories that a secret counts."""
        composition = secret.composition
        if composition is None or composition.condition is None:
            raise QueryError(f"{secret.text}: must be the count or the share of some categories of {self.sensitive}.").because(
                Cause.SECRET, f"a count or share of {self.sensitive}"
            )
        if composition.reads != (self.sensitive,):
            raise QueryError(f"{secret.text}: must be about {self.sensitive}, the sensitive column of the assumption.").because(
                Cause.SECRET, f"a count or share of {self.sensitive}"
            )
        return self.split(composition.condition)[0]

    def belief(self, secret: Secret, n: int, bins: Mapping[str, Sequence[float]]) -> ShareBelief | None:
        """By the prior of the categories that a secret counts."""
        share = share_of(self.prior or {}, self.members_of(secret), self.categories)
        return None if share is None else ShareBelief(*share)

    def expected_rows(self, columns: Sequence[str], n: int) -> list[dict[str, ExpectedEntry]]:
        """A row of any category, by their prior."""
        if set(self.prior or {}) != set(self.categories) or any(column not in self.columns for column in columns):
            return []
        return [{column: self._entry(column, shares) for column in columns} for shares in self._shares(columns)]

    def _shares(self, columns: Sequence[str]) -> list[dict[str, float]]:
        """The middle of the prior's intervals; and those shares within them for which some column has its extreme means."""
        prior = dict(self.prior or {})
        found = [{name: float((low + high) / 2) for name, (low, high) in prior.items()}]
        if all(low == high for low, high in prior.values()):
            return found
        names = list(prior)
        for column in columns:
            order = sorted(range(len(names)), key=lambda k: self.mean_of(names[k], column))
            laws = (filled([prior[name] for name in names], places) for places in (order, order[::-1]))
            found += [dict(zip(names, law, strict=True)) for law in laws]
        return found

    def _entry(self, column: str, shares: Mapping[str, float]) -> ExpectedEntry:
        """A row of any category, where these are their shares."""
        mean = sum(share * self.mean_of(name, column) for name, share in shares.items())
        spread = {name: self.sd_range(name, column)[1] ** 2 for name in shares}
        between = {name: (self.mean_of(name, column) - mean) ** 2 for name in shares}
        sd = math.sqrt(sum(share * (spread[name] + between[name]) for name, share in shares.items()))
        return ExpectedEntry(mean, self.tolerance.mean * sd, sd)

    def case(self, column: str, members: Sequence[str], pairs: CountPairs, known: int = 0) -> GroupCase:
        """One average, and the counts of these categories that must look alike."""
        inside, outside = (
            tuple((self.mean_of(c, column), self.sd_of(c, column)) for c in side) for side in self._sides(members)
        )
        return GroupCase(
            pairs.n, pairs.low, pairs.high, pairs.apart, inside, outside, self.tolerance.mean, self.tolerance.sd, known
        )

    def vector_case(self, columns: Sequence[str], members: Sequence[str], pairs: CountPairs, known: int = 0) -> VectorCase:
        """Several averages; a refusal where standard deviations are uncertain or rows are known."""
        if self.tolerance.sd > 0:
            raise RefusedError(
                f"assume.tolerance.sd: several averages together need exact standard deviations, 0. Got {self.tolerance.sd:g}. "
                "Ask for one average."
            )
        if known > 0:
            raise RefusedError("known_rows: several averages together need 0 with groups. Ask for one average.")
        inside, outside = (
            tuple((tuple(self.mean_of(c, column) for column in columns), self.covariance(c, columns)) for c in side)
            for side in self._sides(members)
        )
        return VectorCase(pairs.n, pairs.low, pairs.high, pairs.apart, inside, outside, self.tolerance.mean)

    def _sides(self, members: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return tuple(c for c in self.categories if c in members), tuple(c for c in self.categories if c not in members)

    def named_categories(self) -> NamedCategories:
        return NamedCategories(self.sensitive, self.categories, self.other)

    def fit_record(self) -> FittedRecord | None:
        return self.fitted

    def public_records(self) -> PublicRecords | None:
        if self.fitted is None:
            return None
        return PublicRecords(self.fitted.rows, self.columns, self.fitted.digest)

    def __str__(self) -> str:
        origin = f"; {summary(None)}" if self.fitted is None else f"; {self.fitted}; {summary(self.fitted.shape)}"
        rows = f"independent rows, normal within each of {len(self.categories)} categories of {self.sensitive}"
        return f"{rows} ({', '.join(self.columns)}); {self.tolerance}{origin}"


def _require_same(name: str, what: str, given: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    lacking, extra = [key for key in wanted if key not in given], [key for key in given if key not in wanted]
    if lacking or extra:
        told = [f"missing {', '.join(lacking)}"] * bool(lacking) + [f"unknown {', '.join(extra)}"] * bool(extra)
        raise ValueError(f"{name}: needs the same {what} as mean: {', '.join(wanted)}. Got {'; '.join(told)}.")
