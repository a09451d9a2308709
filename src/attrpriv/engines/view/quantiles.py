"""Quantiles of a view at a public composition: the least value at or below which the wanted share of the weighted rows lies.

    W_c   =  the public weight of a row of cell c as a whole multiple of one power of two
    F(t)  =  sum of W over kept rows, of the filter and the group, with value <= t
    Q(p)  =  the least value t of a kept row with  F(t) >= p F(infinity)

What must never change: the result is a function of the kept rows. Whole numbers are summed, which fit in 63 bits, so neither
the order of the rows nor threads show. A row's weight is looked up, whatever the number of cells; a median from a thousand
cells takes about twice as long as from two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from attrpriv.engines.tables import careful, quietly
from attrpriv.engines.view.answers import Viewed
from attrpriv.engines.view.cells import CELL, POSITION, registered
from attrpriv.engines.view.draw import ENGINE_FAILED
from attrpriv.engines.view.values import row_table
from attrpriv.errors import DataError
from attrpriv.queries.query import Query

# All kept rows together weigh about 2 to this power: their number, which is what rounding may add, is far smaller.
_BITS = 60


def whole_weights(weights: Sequence[float], keep: Sequence[int]) -> tuple[int, ...]:
    """Public weights of the rows of each cell as whole multiples of a power of two; in proportion but for rounding."""
    total = sum((Fraction(weight) * kept for weight, kept in zip(weights, keep, strict=True)), Fraction(0))
    power = _BITS - math.frexp(float(total))[1]
    return tuple(max(1, round(Fraction(weight) * Fraction(2) ** power)) if weight else 0 for weight in weights)


def weighted_hits(weights: Sequence[int], hits: Sequence[int]) -> int:
    """The weight of some rows, exactly."""
    return sum(weight * count for weight, count in zip(weights, hits, strict=True))


def view_quantiles(
    view: Viewed, query: Query, weights: Sequence[int], wanted: Sequence[Sequence[int]]
) -> list[list[float] | None]:
    """For each group, the least value that reaches each of the wanted weights; None for a group without rows.

    The values must have been read before (`view_sums`), which says where they are missing or not finite.
    """
    found = quietly(lambda: _rows(view, query, weights, wanted))
    if found is None:
        raise DataError(ENGINE_FAILED)
    return [found.get(group) for group in range(len(wanted))]


def _rows(view: Viewed, query: Query, weights: Sequence[int], wanted: Sequence[Sequence[int]]) -> dict[int, list[float]]:
    import ibis

    rows = row_table(view.table(), query, view.groups, view.missing, view.bounds)
    rows = rows.select("cell", "group", "hit", value=rows.u0)
    rows = rows.filter(rows.hit)
    known = registered(view.source, {CELL: range(len(weights)), POSITION: weights})  # a weight each, whole numbers both
    weighed = rows.join(known, rows.cell == known[CELL]).select("group", "value", weight=known[POSITION])
    counted = weighed.group_by("group", "value").aggregate(weight=weighed.weight.sum())
    upwards = ibis.window(group_by="group", order_by="value", preceding=None, following=0)
    reached = counted.select("group", "value", reached=counted.weight.sum().over(upwards))
    levels = len(wanted[0])
    least = {f"q{j}": reached.value.min(where=reached.reached >= _of_group(reached, wanted, j)) for j in range(levels)}
    found = reached.group_by("group").aggregate(**least)
    with careful(view.source.engine):
        listed: list[dict[str, Any]] = view.source.engine.to_pyarrow(found).to_pylist()
    return {int(row["group"]): [float(row[f"q{j}"]) for j in range(levels)] for row in listed}


def _of_group(rows: Any, wanted: Sequence[Sequence[int]], level: int) -> Any:
    import ibis

    branches = ((rows.group == k, ibis.literal(one[level], "int64")) for k, one in enumerate(wanted))
    return ibis.cases(*branches, else_=ibis.literal(0, "int64"))
