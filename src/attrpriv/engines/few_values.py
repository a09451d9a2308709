"""A pass over rows of few kinds: the engine groups them by the columns that conditions read, and sums are put together here.

    for each combination of values:  how many rows, the sums and counts of each column read, which conditions hold

That costs about what a bare GROUP BY does, where a count for each condition costs a comparison of every row with every value.

What must never change: it is one query, and the numbers are those of the plain pass (`scan`). Public facts decide whether it is
taken: a column is grouped by only if every row must have one of its listed values, for any other row an announced failure, so
that there are few combinations; a table that has more is read again, row by row. No value comes back, only whether conditions
hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from attrpriv.engines.tables import Source
from attrpriv.engines.tally import TallyRead, tally_conditions
from attrpriv.queries.conditions import Compare, Condition, In, Join, Written

# Beyond so many combinations of values, grouping is not worth its memory.
MOST = 4096
_KEYS = frozenset({"integer", "text", "boolean", "date"})
# What the engine computes beside the columns grouped by must not have one of their names.
_OWN = "attrpriv "
_ROWS = _OWN + "rows"

Parts = Mapping[str, Any]


def listed(condition: Condition | None) -> tuple[str, int] | None:
    """The one column of which a condition lists values, and how many; None: it does something else."""
    if isinstance(condition, Written) or (isinstance(condition, Compare) and condition.operator == "="):
        return condition.column, 1
    if isinstance(condition, In):
        return condition.column, len(condition.values)
    if not isinstance(condition, Join) or condition.word != "or":
        return None
    found = [listed(part) for part in condition.parts]
    names = {one[0] for one in found if one is not None}
    return (names.pop(), sum(one[1] for one in found if one)) if None not in found and len(names) == 1 else None


def grouped_by(source: Source, asked: Sequence[str], tally: TallyRead | None, full: Sequence[Condition]) -> tuple[str, ...]:
    """The columns to group by, all that conditions read; none where some of them may have many values.

    `full`: conditions that every row must satisfy.
    """
    named = tuple(dict.fromkeys((*asked, *(() if tally is None else tally.columns))))
    values = {name: 2 for name in named if source.columns[name] == "boolean"}
    for one in (*full, *(() if tally is None else tally.full)):
        found = listed(one)
        if found is not None and (tally is None or found[0] not in tally.clip):
            values.setdefault(*found)
    fits = all(name in values and source.columns[name] in _KEYS and not name.lower().startswith(_OWN) for name in named)
    few = fits and math.prod(values[name] + 1 for name in named) <= MOST  # and a missing one
    return named if few and source.engine.name == "duckdb" else ()


def grouped_row(
    source: Source,
    keys: Sequence[str],
    tally: TallyRead | None,
    sums: Sequence[Mapping[str, Any]],
    which: Sequence[int],
    conditions: Callable[[Source], Sequence[Any]],
) -> dict[str, Any] | None:
    """What the plain pass finds, from groups; None where there are too many of them.

    `sums` are aggregates of columns over all rows, `which` of them each read needs, and `conditions` make the conditions of
    the reads, None: all rows.
    """
    inner = {f"{_OWN}{name}_{k}": part for k, parts in enumerate(sums) for name, part in parts.items()}
    groups = source.table.group_by(list(keys)).aggregate(**{_ROWS: source.table.count()}, **inner)
    small = replace(source, connect=lambda: (groups, source.engine))
    wheres = {f"where_{k}": one for k, one in enumerate(conditions(small)) if one is not None}
    flags = wheres | ({} if tally is None else tally_conditions(small, tally))
    found = source.run_many(groups.select(_ROWS, *inner, **flags).limit(MOST + 1))
    if len(found) > MOST:
        return None
    row: dict[str, Any] = {name: sum(one[_ROWS] for one in found if one[name]) for name in flags}
    for k, read in enumerate(which):
        chosen = [one for one in found if one.get(f"where_{k}", True)]
        row |= {f"{name}_{k}": _added(chosen, name, read) for name in sums[read]}
        row[f"hits_{k}"] = sum(one[_ROWS] for one in chosen)
    return row | {"rows": sum(one[_ROWS] for one in found)}


def _added(groups: Sequence[Parts], name: str, k: int) -> Fraction | float | int | None:
    """A count, or an exact sum of sums; NaN where one is not finite, None where an engine could not tell one."""
    values = [one[f"{_OWN}{name}_{k}"] for one in groups if name != "kept" or one[f"{_OWN}used_{k}"]]
    if name != "kept":
        return sum(map(int, values))
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        return math.nan
    return None if None in values else sum(map(Fraction, values), Fraction(0))
