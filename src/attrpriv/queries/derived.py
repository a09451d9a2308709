"""Statistics that are computed from the released numbers of others: a quotient, a multiple, a difference.

    sum(x) / count(*) filter (where c)      100 * sum(x) / sum(y)      avg(2*x + 1), which is 2 * avg(x) + 1

A `Derived` names its parts, which are ordinary queries, and a function of their values: one linear combination of them divided
by another. So `avg(x)` and `avg(2*x + 1)` are one question, and are never drawn apart.

What must never change: the function looks at the values of its parts and the public number of rows, and at nothing else. Values
are exact fractions. An interval holds the function's value wherever the parts lie in theirs: such a function takes its extremes
over a box at corners, because it is monotone along every line on which its denominator keeps its sign.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from attrpriv.errors import QueryError
from attrpriv.queries.arithmetic import collect, number_text, require_ordinary
from attrpriv.queries.query import Query, quoted
from attrpriv.queries.sql import read_items, refused, shown_text, statistic

if TYPE_CHECKING:
    from sqlglot import expressions as exp

    from attrpriv.queries.conditions import Condition

Interval = tuple[Fraction, Fraction]
# All corners of a box are looked at.
_MOST_PARTS = 8


@dataclass(frozen=True)
class Combination:
    """A number plus numbers times statistics."""

    terms: tuple[tuple[Query, Fraction], ...]
    constant: Fraction = Fraction(0)

    def of(self, values: Mapping[Query, Fraction]) -> Fraction:
        return self.constant + sum((weight * values[query] for query, weight in self.terms), Fraction(0))

    def plus(self, other: Combination, times: Fraction = Fraction(1)) -> Combination:
        total = dict(self.terms)
        for query, weight in other.terms:
            total[query] = total.get(query, Fraction(0)) + times * weight
        return Combination(
            tuple((query, weight) for query, weight in total.items() if weight), self.constant + times * other.constant
        )

    def scaled(self, times: Fraction) -> Combination:
        return Combination(()).plus(self, times)

    @property
    def text(self) -> str:
        """Canonical, without the groups, which all statistics share."""
        text = ""
        for query, weight in (*self.terms, *([(None, self.constant)] if self.constant or not self.terms else [])):
            sign = ("-" if weight < 0 else "") if not text else (" - " if weight < 0 else " + ")
            text += sign + _term(query, abs(weight))
        return text


_ONE = Combination((), Fraction(1))


def _term(query: Query | None, weight: Fraction) -> str:
    name = "" if query is None else replace(query, group_by=None).text
    number, divisor = number_text(weight)
    times = number if not name else name if number == "1" else f"{number} * {name}"
    return times if divisor == 1 else f"{times} / {divisor}"


@dataclass(frozen=True)
class Derived:
    """What is computed from the released answers to `parts`.

    >>> (ratio,) = parse_questions("sum(x) / count(*) filter (where x > 3)")
    >>> [part.text for part in ratio.parts], ratio.value({part: Fraction(6 - k) for k, part in enumerate(ratio.parts)}, rows=9)
    (['sum(x)', 'count(*) filter (where x > 3)'], Fraction(6, 5))
    """

    top: Combination
    bottom: Combination = _ONE
    wanted: Query | None = None

    @property
    def text(self) -> str:
        """As it was asked: a statistic by its own text, a computation by its formula."""
        if self.wanted is not None:
            return self.wanted.text
        if self.group_by is None:
            return self.formula
        return f"SELECT {quoted(self.group_by)}, {self.formula} FROM data GROUP BY {quoted(self.group_by)}"

    @property
    def formula(self) -> str:
        """How it is computed from the statistics."""
        top, bottom = self.top.text, self.bottom.text
        if self.bottom == _ONE:
            return top
        return f"{_bracketed(self.top, top)} / {_bracketed(self.bottom, bottom, whole=True)}"

    @property
    def statistics(self) -> tuple[Query, ...]:
        """The statistics in it, each once."""
        return tuple(dict.fromkeys(query for query, _ in (*self.top.terms, *self.bottom.terms)))

    @property
    def parts(self) -> tuple[Query, ...]:
        """Those that have to be released; the number of rows, which is public, only where there is nothing else."""
        return tuple(query for query in self.statistics if not query.whole_table) or self.statistics

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, each once."""
        return tuple(dict.fromkeys(column for query in self.statistics for column in query.columns))

    @property
    def group_by(self) -> str | None:
        return self.statistics[0].group_by

    @property
    def factor(self) -> Fraction | None:
        """What one answer is multiplied by, where it is that and a shift; None of any other function."""
        weights = [weight for query, weight in self.top.terms if not query.whole_table]
        return weights[0] if self.bottom == _ONE and len(weights) == 1 else None

    def value(self, values: Mapping[Query, Fraction], rows: int) -> Fraction | None:
        """From the values of the parts; None where it would be divided by 0."""
        known = self._known(values, rows)
        below = self.bottom.of(known)
        return self.top.of(known) / below if below else None

    def interval(self, boxes: Mapping[Query, Interval], rows: int) -> Interval | None:
        """All its values while each part is in its interval; None where its denominator may be 0 then."""
        corners = [dict(zip(boxes, ends, strict=True)) for ends in itertools.product(*boxes.values())]
        known = [self._known(corner, rows) for corner in corners]
        below = [self.bottom.of(one) for one in known]
        if not (all(one > 0 for one in below) or all(one < 0 for one in below)):
            return None
        found = [self.top.of(one) / divisor for one, divisor in zip(known, below, strict=True)]
        return min(found), max(found)

    def _known(self, values: Mapping[Query, Fraction], rows: int) -> dict[Query, Fraction]:
        return {query: Fraction(rows) if query.whole_table else values[query] for query in self.statistics}

    def __str__(self) -> str:
        return self.text


# What may be asked.
Question = Query | Derived


def parts_of(questions: Iterable[Question]) -> tuple[Query, ...]:
    """The queries that have to be released, each once."""
    return tuple(dict.fromkeys(part for one in questions for part in ((one,) if isinstance(one, Query) else one.parts)))


def _bracketed(of: Combination, text: str, *, whole: bool = False) -> str:
    """In brackets where it is more than one term; a divisor also where it has a factor of its own."""
    single = len(of.terms) + bool(of.constant) == 1 and not (whole and of.terms and of.terms[0][1] != 1)
    return text if single and not text.startswith("-") else f"({text})"


def parse_questions(text: str) -> tuple[Question, ...]:
    """What a text asks for, in order: statistics, and what is computed from statistics.

    >>> [one.text for one in parse_questions("avg(x), avg(x/2 + 1), sum(x) * 2 / sum(y)")]
    ['avg(x)', 'avg(0.5 * x + 1)', '2 * sum(x) / sum(y)']
    """
    if not isinstance(text, str):
        raise QueryError(f"query: must be text. Got {shown_text(text)}.")
    return _questions(text)


@lru_cache(maxsize=256)
def _questions(text: str) -> tuple[Question, ...]:
    return read_items(text, _item)


def computed(query: Query) -> Question:
    """A query as it is, or what it is computed from: of one column, a linear expression is that column's own statistic."""
    top = _reduced(query)
    return query if top == Combination(((query, Fraction(1)),)) else Derived(top, wanted=query)


def as_ratio(asked: Question) -> Question:
    """An average over a subset, or a number times one plus a number, as a sum divided by a count; anything else as it is."""
    if isinstance(asked, Derived) and asked.bottom != _ONE:
        return asked
    top = asked.top if isinstance(asked, Derived) else Combination(((asked, Fraction(1)),))
    if len(top.terms) != 1 or not _over_subset(top.terms[0][0]):
        return asked
    ((average, weight),) = top.terms
    total, rows = replace(average, kind="sum"), Combination(((Query("count", where=average.where), Fraction(1)),))
    above = Combination(((total, weight),)).plus(rows, top.constant)
    return Derived(above, rows, asked.wanted if isinstance(asked, Derived) else asked)


def _over_subset(query: Query) -> bool:
    return query.kind == "avg" and query.column is not None and query.where is not None and query.group_by is None


def _reduced(query: Query) -> Combination:
    form = query.linear if query.of else None
    if form is None or len(form.coefficients) != 1:
        return Combination(((query, Fraction(1)),))
    ((column, weight),) = form.coefficients.items()
    own = Combination(((Query(query.kind, column, query.where, query.group_by), weight),))
    if query.kind == "avg":
        return own.plus(_ONE, form.constant)
    rows = Combination(((Query("count", where=query.where, group_by=query.group_by), Fraction(1)),))
    return own.plus(rows, form.constant)


def _item(node: exp.Expression, text: str, where: Condition | None, group: str | None) -> Question:
    if not _is_computation(node):
        return computed(statistic(node, text, where, group))
    top, bottom = _quotient(node, text, partial(statistic, text=text, where=where, group=group))
    if not (bottom.terms and (top.terms or top.constant)) and not (bottom == _ONE and top.terms):
        raise QueryError(f"query: its statistics cancel out; leave them out. Got {shown_text(text)}.")
    found = Derived(top, bottom)
    if len(found.statistics) > _MOST_PARTS:
        raise QueryError(f"query: must be computed from at most {_MOST_PARTS} statistics. Got {shown_text(text)}.")
    return top.terms[0][0] if found == Derived(Combination(((found.statistics[0], Fraction(1)),))) else found


def _is_computation(node: exp.Expression) -> bool:
    from sqlglot import expressions as exp

    return isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Neg | exp.Paren) and _asks(node)


def _asks(node: exp.Expression) -> bool:
    """Whether there is a statistic in it."""
    from sqlglot import expressions as exp

    named = (isinstance(one, exp.Anonymous) and one.name.lower() == "mean" for one in node.walk())
    return node.find(exp.AggFunc) is not None or any(named)


def _quotient(node: exp.Expression, text: str, read: partial[Query]) -> tuple[Combination, Combination]:
    from sqlglot import expressions as exp

    if not _asks(node):
        return Combination((), _number(node, text)), _ONE
    if isinstance(node, exp.Paren):
        return _quotient(node.this, text, read)
    if isinstance(node, exp.Neg):
        top, bottom = _quotient(node.this, text, read)
        return top.scaled(Fraction(-1)), bottom
    if not _is_computation(node):
        return _reduced(read(node)), _ONE
    left, right = _quotient(node.this, text, read), _quotient(node.expression, text, read)
    top, bottom = _joined(node, left, right, text)
    for number in (*(weight for _, weight in (*top.terms, *bottom.terms)), top.constant, bottom.constant):
        require_ordinary(number, node)
    return top, bottom


def _joined(
    node: exp.Expression, left: tuple[Combination, Combination], right: tuple[Combination, Combination], text: str
) -> tuple[Combination, Combination]:
    from sqlglot import expressions as exp

    (top, bottom), (other, below) = left, right
    if isinstance(node, exp.Mul):
        if below == _ONE and not other.terms:
            return top.scaled(other.constant), bottom
        if bottom == _ONE and not top.terms:
            return other.scaled(top.constant), below
        raise refused("a product of statistics", "ask for each and multiply the answers", text)
    if isinstance(node, exp.Div):
        return _divided(left, right, text)
    sign = Fraction(1 if isinstance(node, exp.Add) else -1)
    if bottom == below:
        return top.plus(other, sign), bottom
    if below == _ONE and not other.terms:
        return top.plus(bottom, sign * other.constant), bottom
    if bottom == _ONE and not top.terms:
        return other.scaled(sign).plus(below, top.constant), below
    raise refused("a sum of two quotients", "ask for each and add the answers", text)


def _divided(
    left: tuple[Combination, Combination], right: tuple[Combination, Combination], text: str
) -> tuple[Combination, Combination]:
    (top, bottom), (other, below) = left, right
    if not other.terms and not other.constant:
        raise QueryError(f"query: must not divide by 0. Got {shown_text(text)}.")
    if below == _ONE and not other.terms:
        return top.scaled(1 / other.constant), bottom
    if bottom != _ONE or below != _ONE:
        raise refused("a quotient of quotients", "ask for each and divide the answers", text)
    return top, other


def _number(node: exp.Expression, text: str) -> Fraction:
    terms = collect(node)
    if set(terms) != {()}:
        raise QueryError(f"query: must be computed from statistics such as sum(x), and numbers. Got {shown_text(text)}.")
    return terms[()]
