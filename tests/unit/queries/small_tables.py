"""Every small table, and what a statistic is of it by its definition: the slow twin of engines and of ranges."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from attrpriv.queries.query import Query

Rows = dict[str, tuple[Fraction, ...]]


def tables(values: Mapping[str, Sequence[float]], n: int) -> Iterator[Rows]:
    """Every way to fill n rows."""
    columns = [list(itertools.product(map(Fraction, listed), repeat=n)) for listed in values.values()]
    for chosen in itertools.product(*columns):
        yield dict(zip(values, chosen, strict=True))


def value_of(query: Query, rows: Mapping[str, Sequence[Fraction]]) -> Fraction | None:
    """By the definition; None: a regression on a constant."""
    n = len(next(iter(rows.values())))
    first, *others = [[_arithmetic(one.terms, rows, j) for j in range(n)] for one in query.arguments]
    second = others[0] if others else first
    if query.kind == "quantile":
        return sorted(first)[math.ceil(Fraction(repr(query.level)) * n) - 1]
    u, v = sum(first, Fraction(0)) / n, sum(second, Fraction(0)) / n
    shared = sum(((a - u) * (b - v) for a, b in zip(first, second, strict=True)), Fraction(0)) / n
    if query.kind in ("var_pop", "covar_pop"):
        return shared
    spread = sum(((b - v) ** 2 for b in second), Fraction(0)) / n
    if not spread:
        return None
    return shared / spread if query.kind == "regr_slope" else u - shared / spread * v


def _arithmetic(terms: Sequence[tuple[tuple[str, ...], Fraction]], rows: Mapping[str, Sequence[Fraction]], j: int) -> Fraction:
    total = Fraction(0)
    for monomial, weight in terms:
        for name in monomial:
            weight *= rows[name][j]
        total += weight
    return total


def answers(query: Query, values: Mapping[str, Sequence[float]], n: int) -> list[tuple[Rows, Fraction | None]]:
    """Every small table with its answer."""
    return [(rows, value_of(query, rows)) for rows in tables(values, n)]
