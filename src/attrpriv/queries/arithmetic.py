"""Arithmetic on columns: what a statistic is taken of, as a polynomial with exact coefficients.

    avg(2*x + y)      sum((x - 1) * y / 3)      mean(0.5*a + 0.5*b)

What must never change: two expressions that are equal as polynomials are equal here and have one `text`, which is read back as
itself, and every row's value is what SQL says it is. So a column that cancels out (x - x + y) is refused: SQL would leave out
its missing entries. Coefficients are fractions: 0.1 is one tenth, and x / 3 is a third of x whatever type x has.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from attrpriv.errors import QueryError
from attrpriv.queries.query import quoted

if TYPE_CHECKING:
    from sqlglot import expressions as exp

# The columns that are multiplied, sorted; of a constant, none.
Monomial = tuple[str, ...]
Terms = dict[Monomial, Fraction]

MOST_FACTORS = 4
_MOST_TERMS = 200
# Every float and its decimal text is within these; a text such as 1e999999999 would fill the memory.
_MOST = 10**330
_LARGEST = Fraction(sys.float_info.max)
_LONGEST_NUMBER = 1200
_ALLOWED = "columns and numbers with +, -, *, parentheses, and / by a number"


@dataclass(frozen=True)
class LinearForm:
    """A constant plus numbers times columns, so that its mean is the same combination of the columns' means."""

    coefficients: Mapping[str, Fraction]
    constant: Fraction

    def of(self, means: Mapping[str, Fraction]) -> Fraction:
        """The form's own mean, from those of its columns."""
        return self.constant + sum((weight * means[column] for column, weight in self.coefficients.items()), Fraction(0))


@dataclass(frozen=True)
class Arithmetic:
    """A sum of numbers times products of columns.

    >>> parse_arithmetic("y + x*2 - (1 - y*x) / 4").text
    '2 * x + y + 0.25 * x * y - 0.25'
    """

    terms: tuple[tuple[Monomial, Fraction], ...]

    @classmethod
    def of(cls, found: Mapping[Monomial, Fraction]) -> Arithmetic:
        """Shorter products first, the constant last."""
        kept = [(monomial, weight) for monomial, weight in found.items() if weight]
        return cls(tuple(sorted(kept, key=lambda term: (not term[0], len(term[0]), term[0]))))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, each once."""
        return tuple(dict.fromkeys(column for monomial, _ in self.terms for column in monomial))

    @property
    def column(self) -> str | None:
        """The column, where the expression is one as it is."""
        ((monomial, weight), *others) = self.terms
        return monomial[0] if len(monomial) == 1 and weight == 1 and not others else None

    @property
    def linear(self) -> LinearForm | None:
        """Its coefficients, where columns are not multiplied with each other."""
        if any(len(monomial) > 1 for monomial, _ in self.terms):
            return None
        found = {monomial[0]: weight for monomial, weight in self.terms if monomial}
        return LinearForm(MappingProxyType(found), dict(self.terms).get((), Fraction(0)))

    @property
    def text(self) -> str:
        """Canonical: read back to an equal value."""
        text = ""
        for monomial, weight in self.terms:
            sign = ("-" if weight < 0 else "") if not text else (" - " if weight < 0 else " + ")
            text += sign + _term(monomial, abs(weight))
        return text


def _term(monomial: Monomial, weight: Fraction) -> str:
    columns = " * ".join(map(quoted, monomial))
    number, divisor = number_text(weight)
    times = number if not columns else columns if number == "1" else f"{number} * {columns}"
    return times if divisor == 1 else f"{times} / {divisor}"


def number_text(weight: Fraction) -> tuple[str, int]:
    """A positive number as a decimal; where its digits do not end, as a whole number and a divisor."""
    left, places = weight.denominator, 0
    for prime in (2, 5):
        power = 0
        while left % prime == 0:
            left, power = left // prime, power + 1
        places = max(places, power)
    if left > 1:
        return str(weight.numerator), weight.denominator
    digits = str(int(weight * 10**places)).rjust(places + 1, "0")
    return (f"{digits[:-places]}.{digits[-places:]}" if places else digits), 1


@lru_cache(maxsize=512)
def parse_arithmetic(text: str) -> Arithmetic:
    """Read an expression of columns and numbers."""
    from attrpriv.queries.sql import parse_expression

    return arithmetic_of(parse_expression(text))


def arithmetic_of(node: exp.Expression) -> Arithmetic:
    """The polynomial that a parsed expression states, or a refusal that names what is not supported."""
    found = collect(node)
    used = Arithmetic.of(found)
    lost = [column for monomial in found for column in monomial if column not in used.columns]
    if lost:
        raise QueryError(f"query: {quoted(lost[0])} cancels out; leave it out. Got {_shown(node)}.")
    if not used.columns:
        raise QueryError(f"query: must name a column, in double quotes if needed. Got {_shown(node)}.")
    return used


def collect(node: exp.Expression) -> Terms:
    """The coefficients, in the order in which the products first appear; those that cancel out are zero."""
    from sqlglot import expressions as exp

    if isinstance(node, exp.Paren):
        return collect(node.this)
    if isinstance(node, exp.Neg):
        return _times(collect(node.this), {(): Fraction(-1)}, node)
    if isinstance(node, exp.Add | exp.Sub):
        return _plus(collect(node.this), collect(node.expression), 1 if isinstance(node, exp.Add) else -1, node)
    if isinstance(node, exp.Mul):
        return _times(collect(node.this), collect(node.expression), node)
    if isinstance(node, exp.Div):
        return _times(collect(node.this), {(): 1 / _divisor(node.expression)}, node)
    if isinstance(node, exp.Literal) and not node.is_string:
        return {(): _number(node)}
    if isinstance(node, exp.Column):
        return {(_column(node),): Fraction(1)}
    if isinstance(node, exp.Literal):
        raise QueryError(f"query: a column's name goes in double quotes, a text is not a number. Got {_shown(node)}.")
    raise QueryError(f"query: arithmetic must be of {_ALLOWED}. Got {_shown(node)}.")


def _plus(left: Terms, right: Terms, sign: int, node: exp.Expression) -> Terms:
    total = dict(left)
    for monomial, weight in right.items():
        total[monomial] = total.get(monomial, Fraction(0)) + sign * weight
    return _within_limits(total, node)


def _times(left: Terms, right: Terms, node: exp.Expression) -> Terms:
    if len(left) * len(right) > _MOST_TERMS:
        raise QueryError(f"query: must have at most {_MOST_TERMS} terms. Got {_shown(node)}.")
    total: Terms = {}
    for first, a in left.items():
        for second, b in right.items():
            monomial = tuple(sorted(first + second))
            total[monomial] = total.get(monomial, Fraction(0)) + a * b
    return _within_limits(total, node)


def _within_limits(terms: Terms, node: exp.Expression) -> Terms:
    if len(terms) > _MOST_TERMS or any(len(monomial) > MOST_FACTORS for monomial in terms):
        raise QueryError(
            f"query: must have at most {_MOST_TERMS} terms, each of at most {MOST_FACTORS} columns. Got {_shown(node)}."
        )
    for weight in terms.values():
        require_ordinary(weight, node)
    return terms


def _divisor(node: exp.Expression) -> Fraction:
    terms = collect(node)
    if set(terms) != {()} or not terms[()]:
        raise QueryError(f"query: must divide by a number other than 0, not by a column. Got {_shown(node)}.")
    return terms[()]


def _number(node: exp.Expression) -> Fraction:
    """The very number that is written. How large it is, is looked at before its digits are."""
    text = str(node.this)
    try:
        size = abs(float(text))
    except ValueError:
        size = math.inf
    if not text.lower().partition("e")[0].strip("0._"):
        return Fraction(0)
    if len(text) > _LONGEST_NUMBER or not 0 < size < math.inf:
        raise QueryError(f"query: numbers must have fewer digits. Got {_shown(node)}.")
    return require_ordinary(Fraction(text), node)


def require_ordinary(number: Fraction, node: exp.Expression) -> Fraction:
    if max(abs(number.numerator), number.denominator) >= _MOST or abs(number) > _LARGEST:
        raise QueryError(f"query: numbers must have fewer digits. Got {_shown(node)}.")
    return number


def _column(node: exp.Expression) -> str:
    from sqlglot import expressions as exp

    extras = any(value for name, value in node.args.items() if name not in ("this", "join_mark"))
    if extras or not isinstance(node.this, exp.Identifier) or not node.name:
        raise QueryError(f"query: a column goes by its name alone, in double quotes if needed. Got {_shown(node)}.")
    return str(node.name)


def _shown(node: exp.Expression) -> str:
    from attrpriv.queries.conditions import as_sql

    shown = repr(as_sql(node))
    return shown if len(shown) <= 120 else shown[:117] + "..."


# ----------------------------------------------------------------------------------------------------------------------------
# What a secret may name: the mean or the sum of a linear combination of columns, the entries of a column, a column alone.
#
#     mean(income)      mean(0.5*a + 0.5*b)      sum(in - out)      entries(state)


# Statistics that are no means, as sqlglot calls them or as people write them. What hides them hides everything about a column.
_NO_MEANS = frozenset(
    "approxquantile corr covarpop covarsamp iqr kurtosis max median min mode percentile percentilecont percentiledisc quantile "
    "regrintercept regrslope sd skewness std stddev stddevpop stddevsamp var variance variancepop".split()
)


@dataclass(frozen=True)
class Linear:
    """The mean (or sum) over all rows of a linear combination of columns."""

    kind: Literal["mean", "sum"]
    coefficients: tuple[tuple[str, float], ...]

    @property
    def text(self) -> str:
        """Canonical: read back by the same parser to an equal value."""
        terms = ""
        for column, weight in self.coefficients:
            sign = ("-" if weight < 0 else "") if not terms else (" - " if weight < 0 else " + ")
            times = "" if abs(weight) == 1 else f"{repr(abs(weight)).removesuffix('.0')} * "
            terms += f"{sign}{times}{quoted(column)}"
        return f"{self.kind}({terms})"

    def weight(self, n: int) -> int:
        """The factor by which the statistic exceeds the combination's mean."""
        return n if self.kind == "sum" else 1


@lru_cache(maxsize=256)  # a secret is asked for its columns a hundred times while a plan is made
def parse_linear(text: str) -> Linear:
    """Read `mean(...)` or `sum(...)` of a linear combination of columns.

    >>> parse_linear("avg(0.5*a - b/4 + 0.5*a)").text
    'mean(a - 0.25 * b)'
    """
    from sqlglot import expressions as exp

    from attrpriv.queries.sql import not_too_deep, parse_expression, unquoted_name

    found: dict[Monomial, Fraction] = {}
    kind: Literal["mean", "sum"] | None = None
    inside: Any = None
    try:
        node = parse_expression(text)
        inside = node.this
        if isinstance(node, exp.Anonymous) and node.name.lower() == "mean" and len(node.expressions) == 1:
            kind, inside = "mean", node.expressions[0]
        elif isinstance(node, exp.Avg | exp.Sum) and not any(v for name, v in node.args.items() if name != "this"):
            kind = "sum" if isinstance(node, exp.Sum) else "mean"
        found = {} if kind is None else not_too_deep(lambda: collect(inside), text)
    except QueryError:
        kind = None
    kept = {monomial: float(weight) for monomial, weight in found.items() if float(weight)}
    if kind is None or not kept or any(len(monomial) != 1 for monomial in kept):
        told = f"must be mean(...) or sum(...) of one column or of numbers times columns. Got {text[:100]!r}."
        raise QueryError((unquoted_name(text) if isinstance(inside, exp.Literal) else None) or told)
    return Linear(kind, tuple((column, weight) for (column,), weight in kept.items()))


def whole_of(text: str) -> str | None:
    """What hides a variance, a quantile, an extreme or the like, which are no means; None of any other text.

    >>> whole_of("max(income) - min(income)"), whole_of("mean(income)")
    ('columns(income)', None)
    """
    from sqlglot import expressions as exp

    from attrpriv.queries.sql import parse_expression

    try:
        node = parse_expression(text)
    except QueryError:
        return None
    named = {str(one.name).lower() if isinstance(one, exp.Anonymous) else str(one.key) for one in node.find_all(exp.Func)}
    columns = sorted({quoted(str(one.name)) for one in node.find_all(exp.Column)})
    return f"columns({', '.join(columns)})" if named & _NO_MEANS and columns else None


@lru_cache(maxsize=256)
def parse_entries(text: str) -> str | None:
    """The column of `entries(column)`, each entry of which is a secret; None where the text is anything else.

    >>> parse_entries('entries("heart rate")')
    'heart rate'
    """
    from sqlglot import expressions as exp

    from attrpriv.queries.sql import parse_expression

    node = parse_expression(text)
    if not isinstance(node, exp.Anonymous) or node.name.lower() != "entries":
        return None
    inside = list(node.expressions)
    if len(inside) != 1 or not isinstance(inside[0], exp.Column) or inside[0].args.get("table"):
        raise QueryError(f"entries takes one column, as in entries(state). Got {text!r}.")
    return str(inside[0].name)


@lru_cache(maxsize=256)
def parse_column(text: str) -> str | None:
    """The column that a text names, in double quotes if needed; None where it is anything else.

    >>> parse_column('"body weight"'), parse_column("mean(weight)")
    ('body weight', None)
    """
    from sqlglot import expressions as exp

    from attrpriv.queries.sql import parse_expression

    try:
        node = parse_expression(text)
    except QueryError:
        return None
    plain = isinstance(node, exp.Column) and not any(v for name, v in node.args.items() if name != "this")
    return node.name if plain and isinstance(node.this, exp.Identifier) and node.name else None
