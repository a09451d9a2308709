"""Quantiles of a view at a public composition: the least value at or below which the wanted share of the weighted rows lies.

    F(t)  =  sum over cells of  weight_c * (kept rows of the cell, of the filter and the group, with value <= t)
    Q(p)  =  the least value t of a kept row with  F(t) >= p F(infinity)

What must never change: the result is a function of the kept rows. Counts are whole numbers, and the weights that multiply them
are public, so neither the order of the rows nor threads show.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

from attrpriv.engines.grid import very_float
from attrpriv.engines.tables import careful, quietly
from attrpriv.engines.view import ENGINE_FAILED
from attrpriv.engines.view_answers import Viewed
from attrpriv.engines.view_values import row_table
from attrpriv.errors import DataError
from attrpriv.queries.query import Query


def weighted_hits(weights: Sequence[float], hits: Sequence[int]) -> float:
    """The weight of some rows, by the very operations that the engine does."""
    return reduce(operator.add, [weight * float(count) for weight, count in zip(weights, hits, strict=True)])


def view_quantiles(
    view: Viewed, query: Query, weights: Sequence[float], wanted: Sequence[Sequence[float]]
) -> list[list[float] | None]:
    """For each group, the least value that reaches each of the wanted weights; None for a group without rows.

    The values must have been read before (`view_sums`), which says where they are missing or not finite.
    """
    found = quietly(lambda: _rows(view, query, weights, wanted))
    if found is None:
        raise DataError(ENGINE_FAILED)
    return [found.get(group) for group in range(len(wanted))]


def _rows(view: Viewed, query: Query, weights: Sequence[float], wanted: Sequence[Sequence[float]]) -> dict[int, list[float]]:
    import ibis

    rows = row_table(view.table(), query, view.groups, view.missing, view.bounds)
    rows = rows.select("cell", "group", "hit", value=rows.u0)
    rows = rows.filter(rows.hit)
    counted = rows.group_by("group", "value").aggregate(
        **{f"n{k}": (rows.cell == k).cast("int64").sum() for k in range(len(weights))}
    )
    upwards = ibis.window(group_by="group", order_by="value", preceding=None, following=0)
    parts = [very_float(w) * counted[f"n{k}"].sum().over(upwards).cast("float64") for k, w in enumerate(weights)]
    reached = counted.select("group", "value", reached=reduce(operator.add, parts))
    levels = len(wanted[0])
    least = {f"q{j}": reached.value.min(where=reached.reached >= _of_group(reached, wanted, j)) for j in range(levels)}
    found = reached.group_by("group").aggregate(**least)
    with careful(view.source.engine):
        listed: list[dict[str, Any]] = view.source.engine.to_pyarrow(found).to_pylist()
    return {int(row["group"]): [float(row[f"q{j}"]) for j in range(levels)] for row in listed}


def _of_group(rows: Any, wanted: Sequence[Sequence[float]], level: int) -> Any:
    import ibis

    return ibis.cases(*((rows.group == k, very_float(one[level])) for k, one in enumerate(wanted)), else_=very_float(0.0))
