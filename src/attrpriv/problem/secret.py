"""A secret and the pairs of its values that must be indistinguishable.

    secret      a statistic of this table: mean(x) or sum(x) of a sensitive column or of a linear combination of some; or how
                many of its rows fall where: count(condition), share(condition), distribution(column, ...); or a list of means
                and sums that are hidden jointly; or entries(column): each entry of a column whose entries are correlated; or
                columns(a, b): everything about these columns, together, from a public `reference`
    parameter   the same, of the population the table was drawn from (compositions only); or a column's name alone: the
                parameter that the assumption gives that column, such as its mean in the population
    between     [low, high]: every two values in the range must be indistinguishable; for a distribution, a range for each cell
    cases       sets of values, as in ["< 50000", ">= 50000"]: which of them holds the mean, sum, count or share must not show
    within      w: only values at most w apart must be indistinguishable (not for distributions; jointly: in Euclidean distance)

Without a range the values of a mean are unbounded, so at least one of `between` and `within` is needed. A column's parameter
may go without: the assumption says which values it has, and refuses where it does not.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, model_validator

from attrpriv.errors import QueryError, UsageError
from attrpriv.frozen import FrozenMap, FrozenModel, Positive, Range
from attrpriv.frozen.requirements import shown
from attrpriv.numerics.laws.intervals import IntervalUnion, parse_cases, require_disjoint
from attrpriv.problem.composition import Cell, Composition, cells_of, is_whole, parse_composition
from attrpriv.queries.arithmetic import Linear, parse_column, parse_entries, parse_linear, whole_of
from attrpriv.queries.query import quoted
from attrpriv.queries.sql import parse_expression, unquoted_name


def _between_form(value: object) -> str:
    return "<cells>" if isinstance(value, Mapping) else "<range>"


# Tags in angle brackets are left out of error paths.
Between = Annotated[
    Annotated[Range, Tag("<range>")] | Annotated[FrozenMap[Range], Tag("<cells>")], Discriminator(_between_form)
]


class Secret(FrozenModel):
    """`Secret("mean(income)", between=(20_000, 200_000), within=1_000)`.

    Examples:
        >>> Secret("mean(income)", between=(20_000, 200_000), within=1_000).gap
        1000.0
        >>> [cell.low for cell in Secret("share(gender = 'F')", between=(0.25, 0.4)).cells(100, {})]
        [25, 60]
    """

    secret: str | tuple[str, ...] | None = Field(
        default=None,
        description="a statistic of this table, or a list of means and sums hidden jointly",
        examples=["mean(income)", "share(smoker = 'yes')"],
    )
    parameter: str | None = Field(
        default=None, description="instead of secret: a share or distribution of the population; or a column, for its parameter"
    )
    between: Between | None = Field(
        default=None,
        description="[low, high]: all values in this range must be indistinguishable; a distribution: a range a cell",
    )
    cases: tuple[str, ...] | None = Field(
        default=None,
        min_length=2,
        description='sets that must be indistinguishable, such as "< 5", ">= 5", "[0, 5)", "abs < 5"',
    )
    within: Positive | None = Field(default=None, description="only values at most this far apart must be indistinguishable")

    def __init__(self, secret: Any = None, **data: Any) -> None:
        super().__init__(**({} if secret is None else {"secret": secret}), **data)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @model_validator(mode="before")
    @classmethod
    def _canonical(cls, value: Any) -> Any:
        """Read the statistic once and keep its canonical text."""
        if isinstance(value, str):
            text = shown(value)
            raise ValueError(f"must begin with its key. Got {text}. Write `secret: {text[1:-1]}`.")
        if not isinstance(value, Mapping):
            return value
        _require_no_named_ends(value.get("between"))
        found = {k: _canonical_value(v) if k == "secret" else v for k, v in value.items()}
        return {k: _canonical_parameter(v) if k == "parameter" else v for k, v in found.items()}

    @model_validator(mode="after")
    def _bounded(self) -> Secret:
        if (self.secret is None) == (self.parameter is None):
            raise ValueError("needs secret (of this table) or parameter (of the population), one of them.")
        if self.attribute is not None:
            self._require_attribute()
        elif self.entries is not None:
            self._require_alone()
        elif self.composition is None:
            self._require_linear()
        elif self.composition.kind == "columns":
            self._require_whole()
        elif self.parameter is not None and self.composition.kind == "count":
            raise ValueError(f"parameter: a population has a share or a distribution, not a count. Got {self.text}.")
        else:
            self._require_counted(self.composition)
        self._told()
        return self

    def _told(self) -> tuple[object, ...]:
        """What everybody asks of a secret follows from its text, and is worked out where that is read."""
        linear = self.composition is None and self.attribute is None and self.entries is None
        return self.columns, self.gap, self.whole_columns, self.single if linear else None

    def _require_counted(self, composition: Composition) -> None:
        pairs = (self.between is not None or self.within is not None, self.cases is not None)
        if composition.kind == "distribution" and (self.between is None or self.within is not None or self.cases is not None):
            raise ValueError(f"{self.text} needs between, and takes neither within nor cases.")
        if pairs not in ((True, False), (False, True)):
            raise ValueError(f"{self.text} needs between: [low, high], within: distance, or both; or cases alone.")
        if self.parameter is not None and self.within is not None:
            raise ValueError("within: is for a property of this table; a parameter takes between or cases.")
        if self.cases is not None:
            self._require_disjoint()

    def _require_alone(self) -> None:
        if self.between is not None or self.within is not None or self.cases is not None:
            raise ValueError(
                f"{self.text} takes no between, within or cases: every two states of an entry must be indistinguishable."
            )

    def _require_whole(self) -> None:
        if self.parameter is not None:
            raise ValueError(f"parameter: everything about columns is a secret of this table. Write secret: {self.text}.")
        if self.between is not None or self.within is not None or self.cases is not None:
            raise ValueError(f"{self.text} takes no between, within or cases: everything about these columns is hidden.")

    def _require_attribute(self) -> None:
        if isinstance(self.between, Mapping) or self.cases is not None:
            raise ValueError(f"parameter: {self.text} takes between: [low, high], within: distance, both or neither.")

    def _require_linear(self) -> None:
        if self.parameter is not None:
            raise ValueError(
                f"parameter: must be a share, a distribution, or a column alone, for its own parameter. Got {self.parameter}."
            )
        texts = {form.text for form in self.forms}
        if isinstance(self.between, Mapping) and (len(self.forms) == 1 or set(self.between) != texts):
            raise ValueError(f"between: {self.text} takes one range [low, high] for each statistic, by its name.")
        if len(self.forms) > 1 and self.ends is not None:
            raise ValueError(
                f"between: statistics hidden jointly take a range each, as in {{{self.forms[0].text}: [low, high]}}."
            )
        if len(texts) != len(self.forms):
            raise ValueError(f"secret: must name different statistics. Got {self.text}.")
        if self.cases is not None:
            self._require_cases()
        elif self.between is None and self.within is None:
            raise ValueError("needs between: [low, high] or within: distance, or both. Got neither.")

    def _require_cases(self) -> None:
        if self.between is not None or self.within is not None or self.single is None:
            raise ValueError("cases: stand alone (no between, no within), for the mean or sum of one column.")
        self._require_disjoint()

    def _require_disjoint(self) -> None:
        problem = None
        try:
            require_disjoint(self.case_sets)
        except UsageError as error:
            problem = str(error)
        if problem is not None:
            raise ValueError(problem)

    @cached_property
    def case_sets(self) -> tuple[IntervalUnion, ...]:
        """The sets that `cases` names."""
        return parse_cases(self.cases or ())

    @cached_property
    def text(self) -> str:
        if isinstance(self.secret, tuple):
            return ", ".join(self.secret)
        return self.secret or self.parameter or ""

    @cached_property
    def attribute(self) -> str | None:
        """The column whose parameter of the population is hidden, where the policy names a column alone."""
        return None if self.parameter is None else parse_column(self.parameter)

    @cached_property
    def entries(self) -> str | None:
        """The column each of whose entries is a secret, one by one."""
        return parse_entries(self.secret) if isinstance(self.secret, str) and not is_whole(self.secret) else None

    @cached_property
    def composition(self) -> Composition | None:
        """What is counted, if the secret is a composition."""
        return None if isinstance(self.secret, tuple) else parse_composition(self.text)

    @cached_property
    def whole_columns(self) -> tuple[str, ...]:
        """The columns about which everything is hidden, together; none for any other secret."""
        composition = self.composition
        return composition.columns if composition is not None and composition.kind == "columns" else ()

    @cached_property
    def forms(self) -> tuple[Linear, ...]:
        """The means and sums that are hidden; several where they are hidden jointly."""
        return _forms(self.secret, self.parameter)

    @property
    def coefficients(self) -> dict[str, float]:
        """The combination of columns whose mean or sum is hidden."""
        return dict(self.forms[0].coefficients)

    @cached_property
    def single(self) -> str | None:
        """The column, where the secret is the mean or sum of one column as it is."""
        if len(self.forms) != 1 or len(self.coefficients) > 1 or next(iter(self.coefficients.values())) != 1:
            return None
        return next(iter(self.coefficients))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The sensitive columns, whatever the kind of secret."""
        composition = self.composition
        if composition is not None:
            return composition.reads
        if self.attribute is not None or self.entries is not None:
            return (self.attribute or self.entries or "",)
        return tuple(dict.fromkeys(column for form in self.forms for column, _ in form.coefficients))

    @cached_property
    def ends(self) -> tuple[float, float] | None:
        """The range of a mean, sum, count or share."""
        return None if isinstance(self.between, Mapping) else self.between

    @cached_property
    def gap(self) -> float:
        """The largest distance of two values that must be indistinguishable, in the secret's own unit."""
        if self.cases is not None:
            ends = [end for case in self.case_sets for end in case.ends]
            return max(ends) - min(ends) if all(case.bounded for case in self.case_sets) else float("inf")
        widest = float("inf") if self.ends is None else self.ends[1] - self.ends[0]
        return min(widest, float("inf") if self.within is None else self.within)

    def gap_of_mean(self, n: int) -> float:
        """The same distance in the unit of the mean."""
        return self.gap / self.forms[0].weight(n)

    def joint_steps(self, n: int) -> list[list[list[float]]]:
        """Statistics hidden jointly: matrices S such that two values to be hidden differ by S u, |u| <= 1, in means.

        A ball of differences is one diagonal matrix; a box of values has one column for each corner of its differences.
        """
        weights = [form.weight(n) for form in self.forms]
        if self.within is not None:
            return [[[self.within / w if k == m else 0.0 for m in range(len(weights))] for k, w in enumerate(weights)]]
        ranges = self.between if isinstance(self.between, Mapping) else {}
        widths = [(ranges[form.text][1] - ranges[form.text][0]) / w for form, w in zip(self.forms, weights, strict=True)]
        signs = itertools.product((1.0,), *([(1.0, -1.0)] * (len(widths) - 1)))  # a difference and its negative are alike
        return [[[sign * width] for sign, width in zip(corner, widths, strict=True)] for corner in signs]

    def cells(self, n: int, bins: Mapping[str, Sequence[float]]) -> tuple[Cell, ...]:
        """The cells of a composition, with the ranges of their counts in a table of n rows."""
        composition = self.composition
        if composition is None or self.between is None:
            raise QueryError(f"{self.text} has no range of values; a view needs between: [low, high].")
        return cells_of(composition, self.between, bins, n, population=self.parameter is not None)

    def __str__(self) -> str:
        pairs = [] if self.ends is None else [f"between {self.ends[0]:g} and {self.ends[1]:g}"]
        if isinstance(self.between, Mapping):
            pairs += [f"{name} between {low:g} and {high:g}" for name, (low, high) in self.between.items()]
        if self.cases is not None:
            pairs.append(f"which of {' | '.join(self.cases)} holds it")
        if self.within is not None:
            pairs.append(f"values at most {self.within:g} apart")
        if self.entries is not None:
            pairs.append("each entry on its own, every two of its states")
        if self.whole_columns:
            pairs.append("everything about them")
        return f"{self.text}{' of the population' if self.parameter else ''}, {', '.join(pairs) or 'every two values'}"


def Parameter(parameter: str, **data: Any) -> Secret:  # noqa: N802 - reads like the class it makes
    """A property of the population behind the table.

    Args:
        parameter: a share, a mean, or the name of a column or a node of a network.
        data: `between`, `within` and `cases`, as of a `Secret`.

    Examples:
        >>> Parameter("share(gender = 'F')", between=(0.25, 0.4)).text
        "share(gender = 'F')"
    """
    return Secret(parameter=parameter, **data)


@lru_cache(maxsize=256)  # a plan asks for them again and again
def _forms(secret: str | tuple[str, ...] | None, parameter: str | None) -> tuple[Linear, ...]:
    alone = parameter is not None and parse_column(parameter) is not None
    if alone or (isinstance(secret, str) and (is_whole(secret) or parse_entries(secret) is not None)):
        return ()
    return tuple(map(parse_linear, secret if isinstance(secret, tuple) else (secret or parameter or "",)))


_ENDS = ({"low", "high"}, {"min", "max"}, {"from", "to"}, {"lower", "upper"})


def _require_no_named_ends(between: object) -> None:
    """A range is a list; a mapping gives each value of a distribution one."""
    if isinstance(between, Mapping) and {*between} in _ENDS and all(type(end) in (int, float) for end in between.values()):
        ends = ", ".join(f"{end:g}" for end in sorted(between.values()))
        raise ValueError(f"between: must be a list. Got {shown(dict(between))}. Put the two ends in brackets: [{ends}].")


def _canonical_value(value: object) -> object:
    if isinstance(value, str):
        return canonical_text(value)
    if isinstance(value, list | tuple) and value and all(isinstance(text, str) for text in value):
        return tuple(_linear_text(text) for text in value)
    if value is None:
        return None
    raise ValueError(f"must be a statistic, such as mean(income), or a list of means and sums. Got {shown(value)}.")


def _canonical_parameter(value: object) -> object:
    column = parse_column(value) if isinstance(value, str) else None
    if isinstance(value, str) and whole_of(value) is not None:  # what hides it is a secret of this table
        raise ValueError(f"must be a share, a distribution, or a column alone, for its own parameter. Got {shown(value)}.")
    return _canonical_value(value) if column is None else quoted(column)


def canonical_text(text: str) -> str:
    problem = None
    try:
        entries = None if is_whole(text) else parse_entries(text)
        if entries is not None:
            return f"entries({quoted(entries)})"
        composition = parse_composition(text)
        return _linear_text(text) if composition is None else composition.text
    except QueryError as error:
        problem = str(error)
    if is_whole(text) or _parses(text):
        raise ValueError(problem)
    raise ValueError(unquoted_name(text) or f"must be a statistic, such as mean(income). Got {shown(text)}.")


def _parses(text: str) -> bool:
    """Whether it is an expression at all: what is not is told as a query would be."""
    try:
        parse_expression(text)
    except QueryError:
        return False
    return True


def _linear_text(text: str) -> str:
    problem = None
    try:
        return parse_linear(text).text
    except QueryError as error:
        problem, whole = str(error), whole_of(text)
    if whole is not None:
        problem = (
            f"must be a mean, a sum, a count or a share; {whole} hides everything about a column, this too. Got {shown(text)}."
        )
    raise ValueError(problem if whole is not None else _misnamed(text) or problem)


_STATISTICS = ("mean", "avg", "sum", "count", "share", "distribution", "columns", "entries")


def _misnamed(text: str) -> str | None:
    """What to say of a column alone, or of a function that no secret has; None of anything else."""
    found = re.match(r'\s*([A-Za-z_]\w*|"[^"]+")\s*(\(|\Z)', text)
    if found is None or (found[2] and found[1].lower() in _STATISTICS):
        return None
    if not found[2]:
        name = found[1]
        return (
            f"must be a statistic of a column. Got {shown(text)}. Write mean({name}), share({name} = 'a value'), or "
            f"columns({name}) for everything about it."
        )
    near = get_close_matches(found[1].lower(), _STATISTICS, n=1)
    meant = text.replace(found[1], near[0], 1) if near else ""
    return f"must be a statistic that can be hidden. Got {shown(text)}. Did you mean {meant}?" if near else None
