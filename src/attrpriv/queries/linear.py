"""Linear combinations of columns: what a mean or a sum may be taken of, in a secret.

mean(income)      mean(0.5*a + 0.5*b)      sum(in - out)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from attrpriv.errors import QueryError
from attrpriv.queries.arithmetic import Monomial, collect
from attrpriv.queries.query import quoted
from attrpriv.queries.sql import not_too_deep, parse_expression

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

    found: dict[Monomial, Fraction] = {}
    kind: Literal["mean", "sum"] | None = None
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
        raise QueryError(f"must be mean(...) or sum(...) of one column or of numbers times columns. Got {text[:100]!r}.")
    return Linear(kind, tuple((column, weight) for (column,), weight in kept.items()))


def whole_of(text: str) -> str | None:
    """What hides a variance, a quantile, an extreme or the like, which are no means; None of any other text.

    >>> whole_of("max(income) - min(income)"), whole_of("mean(income)")
    ('columns(income)', None)
    """
    from sqlglot import expressions as exp

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

    try:
        node = parse_expression(text)
    except QueryError:
        return None
    plain = isinstance(node, exp.Column) and not any(v for name, v in node.args.items() if name != "this")
    return node.name if plain and isinstance(node.this, exp.Identifier) and node.name else None
