"""A composition: how the rows of a table fall into cells.

    count(condition), share(condition)      two cells: the rows that satisfy the condition, and all others
    distribution(column, ...)               one cell for each value of a column, or for each combination of several;
                                            numeric columns through declared bins; `other` for values not named
    columns(column, ...)                    everything about some columns, together: cells and their numbers come from a
                                            public reference (`problem.reference`), not from ranges

Every row is in exactly one cell. A secret of this kind is the vector of cell counts, known to lie in public ranges. What must
never change: cells are disjoint, cover the table, and are functions of one row alone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from attrpriv.errors import QueryError
from attrpriv.numerics.laws.records import whole_between
from attrpriv.queries.conditions import Compare, Condition, Join, Written, columns_of, condition_of, literal
from attrpriv.queries.query import quoted
from attrpriv.queries.sql import parse_expression

Kind = Literal["count", "share", "distribution", "columns"]
OTHER = "other"
_COLUMNS = re.compile(r"^\s*columns\s*\(", re.IGNORECASE)


@dataclass(frozen=True)
class Composition:
    """What a composition secret counts: a condition, or the values of some columns."""

    kind: Kind
    condition: Condition | None = None
    columns: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        inside = ", ".join(quoted(column) for column in self.columns) if self.condition is None else str(self.condition)
        return f"{self.kind}({inside})"

    @property
    def reads(self) -> tuple[str, ...]:
        """The sensitive columns."""
        return self.columns if self.condition is None else columns_of(self.condition)


@dataclass(frozen=True)
class Cell:
    """One cell: its name, which rows are in it (None: those in no other cell), and the range of its count."""

    name: str
    condition: Condition | None
    low: int
    high: int


@lru_cache(maxsize=256)  # a secret is asked for its kind a hundred times while a plan is made
def parse_composition(text: str) -> Composition | None:
    """Read `count(...)`, `share(...)`, `distribution(...)` or `columns(...)`; None if it is some other secret.

    >>> parse_composition("share(gender='F')").text
    "share(gender = 'F')"
    """
    from sqlglot import expressions as exp

    whole = is_whole(text)
    node = parse_expression(_COLUMNS.sub("distribution(", text))
    if isinstance(node, exp.Count):
        name, arguments = "count", [node.this, *node.expressions]
    elif isinstance(node, exp.Anonymous):
        name, arguments = node.name.lower(), list(node.expressions)
    else:
        return None
    if name in ("count", "share"):
        if len(arguments) != 1:
            raise QueryError(f"{name} takes one condition, as in {name}(gender = 'F'). Got {text!r}.")
        return Composition("count" if name == "count" else "share", condition=condition_of(arguments[0]))
    if name != "distribution":
        return None
    name = "columns" if whole else name
    names = tuple(str(node.name) for node in arguments if isinstance(node, exp.Column) and not node.args.get("table"))
    if not names or len(names) != len(arguments) or len(set(names)) != len(names):
        raise QueryError(f"{name} takes different columns, as in {name}(gender). Got {text!r}.")
    return Composition("columns" if whole else "distribution", columns=names)


def is_whole(text: str) -> bool:
    """Whether this is `columns(...)`, which to sqlglot is a star with a filter, of two arguments at most."""
    return _COLUMNS.match(text) is not None


def cells_of(
    composition: Composition,
    between: tuple[float, float] | Mapping[str, tuple[float, float]],
    bins: Mapping[str, Sequence[float]],
    n: int,
    *,
    population: bool = False,
) -> tuple[Cell, ...]:
    """The cells of a composition with the ranges of their counts, made as narrow as the total n allows.

    Of a population the ranges are shares, and a table's counts can be anything: from 0 to n.
    """
    cells = _ranged_cells(composition, between, bins, n)
    if population:
        return tuple(Cell(cell.name, cell.condition, 0, n) for cell in cells)
    return _narrowed(cells, n)


def _ranged_cells(
    composition: Composition,
    between: tuple[float, float] | Mapping[str, tuple[float, float]],
    bins: Mapping[str, Sequence[float]],
    n: int,
) -> Sequence[Cell]:
    if composition.condition is not None:
        if isinstance(between, Mapping):
            raise QueryError(f"between: {composition.kind} takes one range [low, high]. Got ranges for cells.")
        low, high = _counts(composition.kind, between, n)
        named = str(composition.condition)
        return (Cell(named, composition.condition, low, high), Cell(OTHER, None, n - high, n - low))
    if not isinstance(between, Mapping):
        raise QueryError(f"between: {composition.text} takes a range for each cell, as in {{F: [25%, 40%], M: [60%, 75%]}}.")
    cells = []
    if len({cell_parts(composition, name, bins) for name in between}) != len(between):
        raise QueryError(f"between: cells must not overlap. Got {', '.join(map(repr, between))}.")
    for name, ends in between.items():
        low, high = _counts("share", ends, n)
        cells.append(Cell(name, None if name == OTHER else _cell_condition(composition, name, bins), low, high))
    _require_crossed(composition, tuple(between), bins)
    return sorted(cells, key=lambda cell: cell.condition is None)


def _counts(kind: Kind, ends: tuple[float, float], n: int) -> tuple[int, int]:
    """The whole numbers in a range of shares or counts."""
    top = n if kind == "count" else 1
    if not (0 <= ends[0] <= ends[1] <= top):
        what = "counts from 0 to the number of rows" if kind == "count" else "shares from 0 to 1"
        raise QueryError(f"between: must be {what}. Got [{ends[0]:g}, {ends[1]:g}].")
    return whole_between(*ends, 1 if kind == "count" else n)


def _narrowed(cells: Sequence[Cell], n: int) -> tuple[Cell, ...]:
    """The same cells, each range cut to what the others leave possible."""
    lows, highs = sum(cell.low for cell in cells), sum(cell.high for cell in cells)
    if any(cell.low > cell.high for cell in cells) or not lows <= n <= highs:
        raise QueryError(f"between: no table of {n} rows has counts in these ranges; their ends add up to {lows} and {highs}.")
    return tuple(
        Cell(cell.name, cell.condition, max(cell.low, n - highs + cell.high), min(cell.high, n - lows + cell.low))
        for cell in cells
    )


def _cell_condition(composition: Composition, name: str, bins: Mapping[str, Sequence[float]]) -> Condition:
    """A cell's name is its values joined by `~`: a value as written, or one of a column's bins."""
    parts = cell_parts(composition, name, bins)
    if len(parts) != len(composition.columns):
        raise QueryError(f"between: {composition.text} needs {len(composition.columns)} values in a cell. Got {name!r}.")
    tests = [_value_condition(column, part, bins) for column, part in zip(composition.columns, parts, strict=True)]
    return tests[0] if len(tests) == 1 else Join("and", tuple(tests))


def cell_parts(composition: Composition, name: str, bins: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    """The values that a cell's name joins. A space belongs to a value, as wherever rows are compared with text; a bin has none.

    >>> cell_parts(parse_composition("distribution(sex, age)"), " Female~ [17, 38)", {"age": (17, 38)})
    (' Female', '[17, 38)')
    """
    if " ~ " in name:
        plain = "~".join(part.strip() for part in name.split("~"))
        raise QueryError(
            f"between: ~ must have no spaces around it, because they belong to the values. Got {name!r}. Write {plain!r}."
        )
    parts = name.split("~")
    columns = composition.columns if len(parts) == len(composition.columns) else ("",) * len(parts)
    return tuple(part.strip() if column in bins else part for column, part in zip(columns, parts, strict=True))


def _value_condition(column: str, value: str, bins: Mapping[str, Sequence[float]]) -> Condition:
    if column not in bins:
        return Written(column, value)
    names = bin_names(bins[column])
    if value not in names:
        raise QueryError(f"between: {column} has the bins {', '.join(names)}. Got {value!r}.")
    k = names.index(value)
    last = k == len(names) - 1
    ends = (Compare(column, ">=", bins[column][k]), Compare(column, "<=" if last else "<", bins[column][k + 1]))
    return Join("and", ends)


def bin_names(edges: Sequence[float]) -> list[str]:
    """How the bins between these edges are called, in full; the last one includes its upper edge.

    >>> bin_names([0, 18, 65.5])
    ['[0, 18)', '[18, 65.5]']
    """
    ends = [repr(float(edge)).removesuffix(".0") for edge in edges]
    names = [f"[{a}, {b})" for a, b in itertools.pairwise(ends)]
    return [*names[:-1], names[-1][:-1] + "]"]


def _require_crossed(composition: Composition, given: tuple[str, ...], bins: Mapping[str, Sequence[float]]) -> None:
    """Crossed columns need every combination of the values that occur in the names: margins do not bound cells."""
    names = [name for name in given if name != OTHER]
    if not names:
        raise QueryError(f"between: {composition.text} needs a range for each cell. Got none.")
    named = [cell_parts(composition, name, bins) for name in names]
    values = [dict.fromkeys(parts[k] for parts in named) for k in range(len(composition.columns))]
    for k, column in enumerate(composition.columns):
        if column in bins:
            values[k] = dict.fromkeys(bin_names(bins[column]))
    lacking = ["~".join(parts) for parts in itertools.product(*values) if parts not in {*named}]
    if lacking and OTHER not in given:
        raise QueryError(f"between: every cell needs a range. Missing: {', '.join(lacking)}. Add them, or {OTHER}.")


def crossed_cells(compositions: Sequence[Composition]) -> list[str]:
    """The cells that several conditions or columns cross into, for a message that says which ranges are needed."""
    sides = []
    for composition in compositions:
        if composition.condition is None:
            sides.append([f"each {' and '.join(composition.columns)}"])
        else:
            sides.append([str(composition.condition), f"not ({composition.condition})"])
    return [" and ".join(combination) for combination in itertools.product(*sides)]


def crossed_form(compositions: Sequence[Composition]) -> str:
    """How the one distribution is written that hides several of them.

    >>> crossed_form([parse_composition("share(sex = 'F')"), parse_composition("share(age >= 65)")])
    'Write distribution(sex, age) with cells such as "F~[low, high)" and bins for age.'
    """
    columns = tuple(dict.fromkeys(column for composition in compositions for column in composition.reads))
    named = {column: _named(compositions, column) for column in columns}
    cell = "~".join("[low, high)" if name is None else name for name in named.values())
    binned = [column for column, name in named.items() if name is None]
    bins = f" and bins for {', '.join(binned)}" if binned else ""
    return f'Write {Composition("distribution", columns=columns).text} with cells such as "{cell}"{bins}.'


def _named(compositions: Sequence[Composition], column: str) -> str | None:
    """A value of the column, where some condition names one; None where it is cut into ranges."""
    for composition in compositions:
        one = composition.condition
        if composition.condition is None and column in composition.columns:
            return f"a {column}"
        if isinstance(one, Compare) and one.column == column and one.operator in ("=", "!="):
            return one.value if isinstance(one.value, str) else literal(one.value)
    return None
