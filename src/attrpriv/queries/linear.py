"""Linear combinations of columns: what a mean or a sum may be taken of, in a secret.

mean(income)      mean(0.5*a + 0.5*b)      sum(in - out)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from attrpriv.errors import QueryError
from attrpriv.queries.query import quoted
from attrpriv.queries.sql import parse_expression

if TYPE_CHECKING:
    from sqlglot import expressions as exp


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

    found: dict[str, float] = {}
    kind: Literal["mean", "sum"] | None = None
    try:
        node = parse_expression(text)
        inside = node.this
        if isinstance(node, exp.Anonymous) and node.name.lower() == "mean" and len(node.expressions) == 1:
            kind, inside = "mean", node.expressions[0]
        elif isinstance(node, exp.Avg | exp.Sum) and not any(v for name, v in node.args.items() if name != "this"):
            kind = "sum" if isinstance(node, exp.Sum) else "mean"
        if kind is not None:
            _collect(inside, 1.0, found)
    except (QueryError, _NotLinearError):
        kind = None
    kept = {column: weight for column, weight in found.items() if weight != 0}
    if kind is None or not kept or not all(math.isfinite(weight) for weight in kept.values()):
        raise QueryError(f"must be mean(...) or sum(...) of one column or of numbers times columns. Got {text[:100]!r}.")
    return Linear(kind, tuple(kept.items()))


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


class _NotLinearError(Exception):
    """The expression is not a linear combination of columns."""


def _collect(node: exp.Expression, factor: float, found: dict[str, float]) -> None:
    """Add factor * node to the coefficients."""
    from sqlglot import expressions as exp

    if isinstance(node, exp.Paren):
        _collect(node.this, factor, found)
    elif isinstance(node, exp.Neg):
        _collect(node.this, -factor, found)
    elif isinstance(node, exp.Add | exp.Sub):
        _collect(node.this, factor, found)
        _collect(node.expression, factor if isinstance(node, exp.Add) else -factor, found)
    elif isinstance(node, exp.Mul):
        number, other = (node.this, node.expression) if _is_number(node.this) else (node.expression, node.this)
        _collect(other, factor * _number(number), found)
    elif isinstance(node, exp.Div) and _is_number(node.expression) and _number(node.expression) != 0:
        _collect(node.this, factor / _number(node.expression), found)
    elif isinstance(node, exp.Column) and not any(v for name, v in node.args.items() if name != "this") and node.name:
        found[node.name] = found.get(node.name, 0.0) + factor
    else:
        raise _NotLinearError


def _is_number(node: exp.Expression) -> bool:
    from sqlglot import expressions as exp

    inner = node.this if isinstance(node, exp.Neg | exp.Paren) else node
    return isinstance(inner, exp.Literal) and not inner.is_string


def _number(node: exp.Expression) -> float:
    from sqlglot import expressions as exp

    if not _is_number(node):
        raise _NotLinearError
    if isinstance(node, exp.Neg):
        return -_number(node.this)
    return _number(node.this) if isinstance(node, exp.Paren) else float(node.this)
