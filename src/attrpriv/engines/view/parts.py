"""Disjoint parts of a view: of each cell the rows with the smallest places go to the first part, the next ones to the second.

    cut_pj   =  the place of the last of the rows of cell j that parts 1 to p have together, in the order of places
    part p   =  rows with places above cut_(p-1)j and at most cut_pj, in the order of the second half of their places

A place is drawn by key, and independent of a row's contents and of whether it is kept: of the kept rows of a cell each choice
is as likely as any other. The first half decides the part, so the order by the second half is a new one. What must never
change: the same key and numbers give the same parts; a cut, as all that comes from the key, is a bound parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

from attrpriv.engines.tables import Source, quietly
from attrpriv.engines.view.cells import by_cell, near_share
from attrpriv.engines.view.draw import CHANGED, ENGINE_FAILED, Cells, Drawn, cell_number, kept_rows, places_of, view_table
from attrpriv.errors import DataError

# No first or second half of a place is above it.
_TOP = (1 << 64) - 1
_NOTHING = ("", "")
_ALL = (str(_TOP), str(_TOP))
Place = tuple[str, str]
Near = tuple[int, list[tuple[int, int]]]


def part_tables(
    source: Source,
    cells: Cells,
    drawn: Drawn,
    row_id: str | None,
    identifiers: Sequence[str],
    numbers: Sequence[Sequence[int]],
) -> list[Any]:
    """The parts as lazy Ibis tables; `numbers` has, for each part, how many rows of each planned cell it has."""
    kept = kept_rows(source, cells, drawn, row_id)
    ends = [list(sums) for sums in zip(*(accumulate(of_cell) for of_cell in zip(*numbers, strict=True)), strict=True)]
    cuts = quietly(lambda: _cuts(source, kept, cells, ends[:-1]))
    if cuts is None:
        raise DataError(ENGINE_FAILED)
    if not cuts:
        raise DataError(CHANGED)
    bounds = [None, *cuts, None]
    between = [_between(source, low, high) for low, high in pairwise(bounds)]
    return [view_table(source, cells, drawn, row_id, identifiers, only) for only in between]


def _between(source: Source, low: Sequence[Place] | None, high: Sequence[Place] | None) -> Callable[[Any], Any]:
    """Which rows have places above one cut and at most at the other one; without a cut, all."""

    def only(table: Any) -> Any:
        inside = cell_number(table).notnull()
        above = inside if low is None else ~_at_most(source, table, low)
        return above if high is None else above & _at_most(source, table, high)

    return only


def _at_most(source: Source, table: Any, cut: Sequence[Place]) -> Any:
    first, second = places_of(table)
    one, other = (by_cell(source, table, "cut", [place[k] for place in cut], "").nullif("").cast("uint64") for k in (0, 1))
    # Where no row of the cell is below the cut, nothing is compared with it.
    return ((first < one) | ((first == one) & (second <= other))).fill_null(False)


def _cuts(source: Source, kept: Any, cells: Cells, ends: Sequence[Sequence[int]]) -> list[list[Place]]:
    """For each cut the place of each cell's last row below it; nothing where the cells have other rows than were kept."""
    every = len(cells.keep)
    wanted = [[*end, *(0 for _ in range(every - len(end)))] for end in ends]
    windows = [[_window(*one) for one in zip(end, cells.keep, strict=True)] for end in wanted]
    near = _near(source, kept, windows)
    if not _reached(near, wanted, cells):  # once in 10^18: look at all of them
        near = _near(source, kept, [[(0, _TOP)] * every] * len(ends))
        if not _reached(near, wanted, cells):
            return []
    return [
        [_cut(near.get((k, j), (0, [])), end, keep) for j, (end, keep) in enumerate(zip(of_cut, cells.keep, strict=True))]
        for k, of_cut in enumerate(wanted)
    ]


def _window(end: int, keep: int) -> tuple[int, int]:
    """Between which first halves the end-th smallest place lies; nowhere, where none or all are below the cut."""
    if end in (0, keep):
        return _TOP, 0
    low, high = (min(max(share, 0.0), 1.0) for share in near_share(end, keep))
    return int(low * 2.0**64), min(int(high * 2.0**64), _TOP)


def _near(source: Source, kept: Any, windows: Sequence[Sequence[tuple[int, int]]]) -> dict[tuple[int, int], Near]:
    """For each cut and cell, how many places lie below its window, and those inside."""
    first, second = places_of(kept)
    place = first.cast("string") + " " + second.cast("string")
    found: dict[str, Any] = {}
    for k, of_cut in enumerate(windows):
        low, high = (by_cell(source, kept, "window", [str(one[end]) for one in of_cut], "0").cast("uint64") for end in (0, 1))
        found |= {f"below{k}": (first < low).sum(), f"near{k}": place.collect(where=(first >= low) & (first <= high))}
    grouped = kept.group_by(cell=cell_number(kept)).aggregate(**found)
    rows = source.engine.to_pyarrow(grouped).to_pylist()
    return {(k, int(row["cell"])): (int(row[f"below{k}"]), _read(row[f"near{k}"])) for row in rows for k in range(len(windows))}


def _read(places: Sequence[str] | None) -> list[tuple[int, int]]:
    pairs = (place.split(" ") for place in places or ())
    return sorted((int(first), int(second)) for first, second in pairs)


def _reached(near: dict[tuple[int, int], Near], ends: Sequence[Sequence[int]], cells: Cells) -> bool:
    for k, of_cut in enumerate(ends):
        for j, (end, keep) in enumerate(zip(of_cut, cells.keep, strict=True)):
            below, places = near.get((k, j), (0, []))
            if end not in (0, keep) and not below < end <= below + len(places):
                return False
    return True


def _cut(near: Near, end: int, keep: int) -> Place:
    if end in (0, keep):
        return _ALL if end else _NOTHING
    below, places = near
    first, second = places[end - below - 1]
    return str(first), str(second)
