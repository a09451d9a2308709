"""The problem a mechanism solves: secrets, pairs, assumption, queries, budget, n. It contains no data.

What must never change: a problem is a function of public inputs only (policy, query, schema, number of rows, what was released
before). A plan is a function of the problem, so nothing in a plan depends on the table's values.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, SerializeAsAny, model_validator

from attrpriv.errors import PolicyError, QueryError
from attrpriv.frozen import Finite, FrozenMap, FrozenModel, Positive, Range
from attrpriv.frozen.requirements import shown
from attrpriv.numerics.laws.intervals import Interval
from attrpriv.problem.assumption import ONE_ROW, Assumption, shape_of
from attrpriv.problem.counted import count_pairs
from attrpriv.problem.public_groups import Categories
from attrpriv.problem.reference import PublicCells, Reference
from attrpriv.problem.secret import Secret
from attrpriv.problem.shapes import LATTICE, RECORDED, STATED, TALLIED
from attrpriv.queries.arithmetic import Linear
from attrpriv.queries.conditions import parse_condition
from attrpriv.queries.intervals import NON_LINEAR
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries

# Above 100 a promise says nothing: e^100 is beyond any prior.
Epsilon = Annotated[Finite, Field(gt=0, le=100)]
Delta = Annotated[Finite, Field(ge=0, lt=1)]
Share = Annotated[Finite, Field(ge=0, le=1)]
A = TypeVar("A", bound=Assumption)
_FILTER = " filter (where "


def _increasing(edges: tuple[float, ...]) -> tuple[float, ...]:
    if len(edges) < 2 or any(a >= b for a, b in itertools.pairwise(edges)):
        raise ValueError(f"must be two or more edges, each above the one before. Got {list(edges)}.")
    return edges


Edges = Annotated[tuple[Finite, ...], AfterValidator(_increasing)]


def _canonical_conditions(value: object) -> object:
    """Subsets under the text that queries have too."""
    if not isinstance(value, Mapping):
        return value
    found: dict[object, object] = {}
    for key, size in value.items():
        if not isinstance(key, str):
            raise ValueError(f"must name subsets by their condition, such as ward = 'b'. Got {shown(key)}.")
        problem = None
        try:
            text = str(parse_condition(key))
        except QueryError as error:
            problem = str(error)
        if problem is not None:
            raise ValueError(f"{key}: must be a condition, such as ward = 'b'. {problem}")
        if text in found:
            raise ValueError(f"must name each subset once. Got {text} twice.")
        found[text] = size
    return found


Sizes = Annotated[FrozenMap[Annotated[int, Field(strict=True, ge=1)]], BeforeValidator(_canonical_conditions)]


def _canonical_statistics(value: object) -> object:
    """Statistics under the text that queries have too."""
    if not isinstance(value, Mapping):
        return value
    found: dict[object, object] = {}
    for key, ends in value.items():
        asked: tuple[Query, ...] = ()
        with suppress(QueryError):
            asked = parse_queries(key)
        if len(asked) != 1 or asked[0].kind not in NON_LINEAR or not asked[0].plain:
            raise ValueError(f"{key}: must be a variance, covariance, regression or quantile of all rows: regr_slope(y, x).")
        if asked[0].text in found:
            raise ValueError(f"must name each statistic once. Got {asked[0].text} twice.")
        found[asked[0].text] = ends
    return found


Ranges = Annotated[FrozenMap[Range], BeforeValidator(_canonical_statistics)]


def _named(key: str) -> Query | None:
    """The average that has this name, of a combination of columns or over a subset; None where it is no such name."""
    cuts = [found.start() for found in re.finditer(re.escape(_FILTER), key)]
    texts = [f"avg({key})", *(f"avg({key[:cut]}){key[cut:]}" for cut in cuts)]
    asked: list[Query] = []
    for text in texts:
        with suppress(QueryError):
            asked += parse_queries(text)
    found = {query for query in asked if query.key == key and (query.of or query.where is not None)}
    return found.pop() if len(found) == 1 else None


class Problem(FrozenModel):
    """Everything a mechanism may look at: public facts, no row. Fields are a policy's keys; `theta` are its assumptions."""

    schema_version: Literal[1] = 1
    queries: tuple[Query, ...] = Field(min_length=1)
    secrets: tuple[Secret, ...] = Field(min_length=1)
    epsilon: Epsilon
    delta: Delta = 0.0
    n: Annotated[int, Field(strict=True, ge=1)]
    theta: tuple[SerializeAsAny[Annotated[Assumption, BeforeValidator(Assumption.of_kind)]], ...] = ()
    calibration: Literal["analytic", "classical"] = "analytic"
    bounds: FrozenMap[Range] = Field(default_factory=dict)
    resolution: FrozenMap[Positive] = Field(default_factory=dict)
    missing: FrozenMap[Finite] = Field(default_factory=dict)
    bins: FrozenMap[Edges] = Field(default_factory=dict)
    categories: FrozenMap[Categories] = Field(default_factory=dict)
    sizes: Sizes = Field(default_factory=dict)
    ranges: Ranges = Field(default_factory=dict)
    composition: FrozenMap[Share] = Field(default_factory=dict)
    reference: Reference | None = Field(default=None, exclude_if=lambda value: value is None)
    public_cells: PublicCells | None = Field(default=None, exclude_if=lambda value: value is None)
    known_rows: Annotated[Share, Field(lt=1)] = 0.0
    types: FrozenMap[str] = Field(default_factory=dict)
    individuals: Positive | None = Field(default=None, description="epsilon of row-level differential privacy on top")
    individuals_delta: Annotated[Finite, Field(gt=0, lt=1)] | None = Field(
        default=None, exclude_if=lambda value: value is None, description="delta of the test of counts before a view"
    )
    accept_fit_risk: bool = False
    policy_digest: str = ""
    spend: Annotated[Finite, Field(gt=0, le=1)] = Field(default=1.0, description="share of what is left that may be used")
    earlier: SerializeAsAny[FrozenModel] | None = Field(
        default=None, exclude=True, description="evidence of what was released before: a proof for all of it together"
    )

    @model_validator(mode="after")
    def _enough_rows(self) -> Problem:
        if self.n < 2 and self.shape != STATED:
            raise PolicyError(f"n: must be at least 2; {ONE_ROW}. Got 1.")
        return self

    @model_validator(mode="after")
    def _hides_something(self) -> Problem:
        reason = nothing_hidden(self)
        if reason is not None:
            raise PolicyError(reason)
        return self

    @cached_property
    def public(self) -> bool:
        """Whether only the number of rows is asked for, which everybody knows."""
        return all(query.whole_table for query in self.queries)

    @cached_property
    def alone(self) -> bool:
        """Whether this is the only release there may be: nothing before it, and nothing kept for after it."""
        return self.earlier is None and self.spend == 1

    @cached_property
    def shape(self) -> str:
        """What the assumption makes of a statistic (`problem.shapes`)."""
        single = len(self.theta) == 1 and self.theta[0].shape != LATTICE
        return self.theta[0].shape if single else shape_of(self.theta, self.secrets)

    @cached_property
    def tallied(self) -> bool:
        """Whether it is about counts: by its assumption, or because it asks for a count with a filter."""
        if self.theta and self.shape != RECORDED:
            return self.shape in TALLIED
        asked = [query for query in self.queries if not query.whole_table]
        return bool(asked) and all(query.kind == "count" and query.group_by is None for query in asked)

    @cached_property
    def non_linear(self) -> bool:
        """Whether a statistic is asked for that is no average, sum or count."""
        return any(query.kind in NON_LINEAR for query in self.queries)

    def assumed(self, kind: type[A]) -> tuple[A, ...]:
        """The members of the assumption, where all of them are of this class; else none."""
        found = tuple(member for member in self.theta if isinstance(member, kind))
        return found if len(found) == len(self.theta) else ()

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """What the queries average, distinct and in order: columns, and linear combinations by their text."""
        return tuple(dict.fromkeys(query.key for query in self.queries if query.key is not None))

    @cached_property
    def combined(self) -> bool:
        """Whether an average of a linear combination is asked for."""
        return any(not query.simple for query in self.queries)

    @cached_property
    def wheres(self) -> tuple[str | None, ...]:
        """Which rows each of `columns` is over; None: all."""
        found = {query.key: query.where for query in self.queries}
        return tuple(found[key] for key in self.columns)

    @cached_property
    def forms(self) -> tuple[Mapping[str, float], ...]:
        """The coefficients of each of `columns`; of a column as it is, itself once."""
        found = {query.key: {} if query.linear is None else query.linear.coefficients for query in self.queries}
        stated = [found[key] for key in self.columns]
        return tuple(MappingProxyType({column: float(weight) for column, weight in one.items()}) for one in stated)

    @cached_property
    def read_columns(self) -> tuple[str, ...]:
        """The columns of the table that `columns` are made of."""
        if not self.combined and not any(self.wheres):
            return self.columns
        return tuple(dict.fromkeys(column for form in self.forms for column in form))

    def average(self, key: str) -> Query:
        """The query behind one of `columns`, also of an earlier release: a column that the assumption names, else a form."""
        asked = next((query for query in self.queries if query.key == key), None)
        if asked is not None:
            return Query("avg", asked.column, asked.where, of=asked.of)
        column = any(key in getattr(member, "columns", ()) for member in self.theta)
        named = _named(key)
        if column and named is not None:
            raise QueryError(f"{key}: was released before, and may be a column or a combination of columns. Rename the column.")
        if not column and named is None:
            raise QueryError(f"{key}: was released before, and is neither an assumed column nor a combination of some.")
        return Query("avg", key) if named is None else named

    def spacing(self, column: str) -> tuple[float | None, bool]:
        """The spacing of the column's values, if anything is known of it, and whether the policy declared it.

        Whole numbers and booleans have at least 1 from the schema, whatever was declared.
        """
        whole = 1.0 if self.types.get(column) in ("integer", "boolean") else None
        declared = self.resolution.get(column)
        return (whole, False) if declared is None else (max(declared, whole or 0.0), True)

    def __str__(self) -> str:
        lines = [f"release {', '.join(q.text for q in self.queries)} of n = {self.n} rows"]
        lines += [f"hide    {secret}" for secret in self.secrets]
        lines += [f"budget  epsilon {self.epsilon:g}, delta {self.delta:g}"]
        lines += [f"assume  {theta}" for theta in self.theta] or ["assume  nothing"]
        return "\n".join(lines)


# ----------------------------------------------------------------------------------------------------------------------------
# Whether a problem leaves anything to hide: of each secret, two values that must look alike and that some table of n rows has.
#
# | secret | the values that a table can have |
# |---|---|
# | count, share, distribution | whole rows in each cell |
# | mean, sum | multiples of the spacing of its columns over n, where that is known; between the bounds of the columns |
# | of the population | any number |
#
# A promise about no such pair is kept by publishing everything. What must never change: what hides nothing is refused here,
# whatever the mechanism. What hides little is a matter of degree, and of the assumption (`methods.choice.warnings`).


# From here on it is no worse to publish the secret itself, in one of two tables.
MOST_DELTA = 0.5


def nothing_hidden(problem: Problem) -> str | None:
    """Why the promise is empty, with what to change; None where it is not."""
    if problem.delta >= MOST_DELTA:
        return (
            f"delta: must be below {MOST_DELTA:g}: publishing the secret itself in every other table would keep the promise. "
            f"Got {problem.delta:g}. Take one far below 1/n."
        )
    reasons = (_of_secret(problem, secret) for secret in problem.secrets)
    return next((f"protect: {reason}" for reason in reasons if reason is not None), None)


def _of_secret(problem: Problem, secret: Secret) -> str | None:
    if secret.parameter is not None or secret.entries is not None or secret.whole_columns:
        return None
    if secret.composition is None:
        return _of_forms(problem, secret)
    if secret.composition.kind == "distribution":
        return _of_cells(problem, secret)
    try:
        count_pairs(secret, problem.n)
    except QueryError as error:
        return str(error)
    return None


def _of_cells(problem: Problem, secret: Secret) -> str | None:
    try:
        cells = secret.cells(problem.n, problem.bins)
    except QueryError:  # ranges that no table has, or cells that are none: a view says so
        return None
    if any(cell.low < cell.high for cell in cells):
        return None
    return f"{secret.text}: its ranges hold a single composition of {problem.n} rows; there is nothing to hide. Widen them."


def _of_forms(problem: Problem, secret: Secret) -> str | None:
    forms = [_Values(problem, form) for form in secret.forms]
    if secret.cases is not None:
        return _of_cases(problem, secret, forms[0])
    spacings = [form.spacing for form in forms if form.spacing is not None]
    if secret.within is not None and len(spacings) == len(forms) and _exact(secret.within) < min(spacings):
        least = f"{float(min(spacings)):g}"
        return (
            f"within: no two values of {secret.text} are this close; by the spacing of its columns they are {least} apart in a "
            f"table of {problem.n} rows. Got {secret.within:g}; take at least {least}."
        )
    ranges = secret.between if isinstance(secret.between, Mapping) else {form.text: secret.between for form in secret.forms}
    held = [one.most(*ends) for one in forms if (ends := ranges[one.form.text]) is not None]
    if held and (min(held) < 1 or max(held) < 2):
        what = "no value" if min(held) < 1 else "a single value"
        return (
            f"{secret.text}: between holds {what} that a table of {problem.n} rows can have, by the spacing and the bounds of "
            "its columns; there is nothing to hide. Widen it."
        )
    return None


def _of_cases(problem: Problem, secret: Secret, values: _Values) -> str | None:
    for case in secret.case_sets:
        if not any(values.any_in(part) for part in case.parts):
            return f'{secret.text}: "{case}" holds no value that a table of {problem.n} rows can have. Correct cases.'
    return None


def spacing_of(problem: Problem, secret: Secret) -> float | None:
    """Of a mean or a sum of the table: what every value is a multiple of; None where that is not known."""
    if secret.parameter is not None or secret.composition is not None or isinstance(secret.secret, tuple):
        return None
    spacing = _Values(problem, secret.forms[0]).spacing
    return None if spacing is None else float(spacing)


class _Values:
    """Which values a mean or a sum can have, as far as the spacing and the bounds of its columns tell."""

    def __init__(self, problem: Problem, form: Linear) -> None:
        self.problem, self.form = problem, form
        unit = Fraction(form.weight(problem.n), problem.n)
        known = [problem.spacing(column)[0] for column, _ in form.coefficients]
        self.spacing = None if None in known else unit * self._common(known)  # of which every value is a multiple
        self.low, self.high = self._ends()

    def most(self, low: float, high: float) -> float:
        """How many values a range can hold, from above; infinite where that is not known."""
        if self.spacing is None and max(low, self.low) < min(high, self.high):
            return math.inf
        return self._held(Interval(low, high, low_closed=True, high_closed=True))

    def any_in(self, part: Interval) -> bool:
        return self._held(part) >= 1

    def _held(self, part: Interval) -> float:
        low, high = max(part.low, self.low), min(part.high, self.high)
        if not (low < high or (low == high and low in part)):
            return 0.0
        if low == high:
            return 1.0
        if self.spacing is None or not math.isfinite(high - low):
            return math.inf
        ends = _exact(low) / self.spacing, _exact(high) / self.spacing
        first, last = math.ceil(ends[0]), math.floor(ends[1])
        first += first == ends[0] and low not in part
        last -= last == ends[1] and high not in part
        return float(max(0, last - first + 1))

    def _common(self, spacings: list[float | None]) -> Fraction:
        """The largest step of which every row's combination is a multiple, once missing entries have their value."""
        steps = []
        for (column, weight), spacing in zip(self.form.coefficients, spacings, strict=True):
            numbers = [spacing or 0.0, abs(self.problem.missing.get(column, 0.0))]
            steps += [abs(_exact(weight)) * _exact(number) for number in numbers if number]
        bottom = math.lcm(*(step.denominator for step in steps))
        return Fraction(math.gcd(*(int(step * bottom) for step in steps)), bottom)

    def _ends(self) -> tuple[float, float]:
        low, high, rows = 0.0, 0.0, self.form.weight(self.problem.n)
        for column, weight in self.form.coefficients:
            ends = self.problem.bounds.get(column, (-math.inf, math.inf))
            if self.problem.types.get(column) == "boolean":
                ends = max(ends[0], 0.0), min(ends[1], 1.0)
            fill = self.problem.missing.get(column)
            ends = ends if fill is None else (min(ends[0], fill), max(ends[1], fill))
            moved = sorted(rows * weight * end for end in ends)
            low, high = low + moved[0], high + moved[1]
        return low, high


def _exact(number: float) -> Fraction:
    """The decimal fraction that it is written as."""
    return Fraction(repr(number))


__all__ = ["Delta", "Edges", "Epsilon", "Problem", "Ranges", "Share", "Sizes", "nothing_hidden", "spacing_of"]
