"""A view of a table whose rows have positions: their ranks are a stream that the engine reads beside the rows.

    thresholds   one pass that counts the cells, one that fetches the few ranks near where the threshold must lie
    fingerprint  in the second pass: of each row's cell and values, in order

What must never change: row j of the table meets rank j. The engine pairs them by position; where the rows come to this process,
their positions are compared.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attrpriv.engines.tables import Source, arrow_batches
from attrpriv.engines.view_cells import CELL, POSITION, Cells, bind, by_cell, near_share, text, with_cells

Window = tuple[int, int]


@dataclass(frozen=True)
class _Pass:
    """What one pass found: rows by cell, those with ranks below their cell's window, cells and ranks of those inside."""

    counts: list[int]
    below: list[int]
    near: list[tuple[int, int]]
    fingerprint: str


def cell_counts(source: Source, cells: Cells) -> dict[int, int]:
    """How many rows each cell has, from the columns alone that decide it."""
    table = with_cells(source, cells, source.table)
    found = source.engine.to_pyarrow(table.group_by(CELL).aggregate(rows=table.count())).to_pylist()
    return {int(row[CELL]): int(row["rows"]) for row in found}


def drawn_in_order(source: Source, cells: Cells, counts: Sequence[int], key: str) -> tuple[tuple[str, ...], str] | None:
    """The keep-th smallest rank of each cell, and the fingerprint; None where two rows share such a rank (n / 2^63)."""
    from attrpriv.engines.view_ranks import RANKS

    found = _read(source, cells, key, sum(counts), [_window(*one) for one in zip(cells.keep, counts, strict=True)])
    if not _reached(found, cells, counts):  # once in 10^18: look at all of them
        found = _read(source, cells, key, sum(counts), [(0, RANKS)] * len(counts))
    chosen = [_threshold(found, k, keep, count) for k, (keep, count) in enumerate(zip(cells.keep, counts, strict=True))]
    return None if None in chosen else (tuple(map(str, chosen)), found.fingerprint)


def fingerprint_in_order(source: Source, cells: Cells, key: str, rows: int) -> str:
    return _read(source, cells, key, rows, [(0, 0)] * len(cells.keep)).fingerprint


def kept_in_order(source: Source, cells: Cells, key: str, thresholds: Sequence[str], rows: int) -> Any:
    """The kept rows, with their cells, ranks and places."""
    from attrpriv.engines.view_ranks import RANK, Ranks

    table = with_cells(source, cells, _beside(source, Ranks(key, rows)))
    limits = [bind(source, "limit", threshold).cast("int64") for threshold in thresholds]
    return table.filter(table[RANK] <= by_cell(table, limits, -1))


def _beside(source: Source, ranks: object) -> Any:
    """The source's table with a stream beside it, row by row, as a view in an engine of our own."""
    connection, suffix = source.engine.con, secrets.token_hex(8)
    connection.register(f"attrpriv_ranks_{suffix}", ranks)
    rows = _name_of(source, f"attrpriv_rows_{suffix}")
    connection.execute(
        f'CREATE TEMP VIEW attrpriv_ranked_{suffix} AS SELECT * FROM "{rows}" POSITIONAL JOIN attrpriv_ranks_{suffix}'
    )
    return source.engine.table(f"attrpriv_ranked_{suffix}")


def _name_of(source: Source, name: str) -> str:
    """The table's name in its engine; a table in memory is given this one."""
    held = source.table.op()
    if not hasattr(held, "data"):
        return str(source.table.get_name())
    source.engine.con.register(name, held.data.to_pyarrow(held.schema))
    return name


# ------------------------------------------------------------------------------------------------------------- one pass


def _read(source: Source, cells: Cells, key: str, rows: int, windows: Sequence[Window]) -> _Pass:
    import numpy as np

    from attrpriv.engines.view_ranks import BLOCK, Fingerprint, Ranks

    ranks, mark = Ranks(key, rows).in_turn(), Fingerprint(key, 1 + len(source.columns))
    low, high = (np.array([window[end] for window in windows], np.uint64) for end in (0, 1))
    counts, below = np.zeros((2, len(windows)), np.int64)
    near: list[tuple[int, int]] = []
    start = len(next(ranks))
    for batch in arrow_batches(source.engine, _columns(source, cells), BLOCK):
        stop = start + len(batch)
        position, cell = (batch.column(k).to_numpy() for k in (0, 1))
        if not np.array_equal(position, np.arange(start, stop)):
            raise ValueError("rows out of order")
        rank = ranks.send(stop - start).astype(np.uint64)
        inside = (rank >= low[cell]) & (rank < high[cell])
        counts += np.bincount(cell, minlength=len(windows))
        below += np.bincount(cell[rank < low[cell]], minlength=len(windows))
        near += zip(cell[inside].tolist(), rank[inside].tolist(), strict=True)
        mark.add(batch.select(range(1, batch.num_columns)))
        start = stop
    return _Pass(counts.tolist(), below.tolist(), near, mark.hexdigest())


def _columns(source: Source, cells: Cells) -> Any:
    """Position, cell and every column as a whole number, a float or text, whatever form the table has."""
    assert source.positioned is not None
    table = with_cells(source, cells, source.positioned(POSITION))
    names = {f"c{k}": _plain(table[name]) for k, name in enumerate(source.columns)}
    return table.select(position=table[POSITION].cast("int64"), cell=table[CELL], **names)


def _plain(column: Any) -> Any:
    kind = column.type()
    if kind.is_floating():
        return column.cast("float64")
    fits = kind.is_boolean() or (kind.is_integer() and not (kind.is_unsigned_integer() and kind.nbytes == 8))
    return column.cast("int64") if fits else text(column)


# ----------------------------------------------------------------------------------------------------------- thresholds


def _window(keep: int, count: int) -> Window:
    """Where to look for the keep-th smallest rank; nowhere, if none or all are kept."""
    from attrpriv.engines.view_ranks import RANKS

    if keep in (0, count):
        return 0, 0
    low, high = (min(max(share, 0.0), 1.0) for share in near_share(keep, count))
    return int(low * RANKS), int(high * RANKS)


def _reached(found: _Pass, cells: Cells, counts: Sequence[int]) -> bool:
    inside = [0] * len(counts)
    for k, _ in found.near:
        inside[k] += 1
    cases = zip(cells.keep, counts, found.below, inside, strict=True)
    return all(keep in (0, count) or below < keep <= below + there for keep, count, below, there in cases)


def _threshold(found: _Pass, k: int, keep: int, count: int) -> int | None:
    """The largest rank kept of a cell; -1 where none is; None where the next one is equal."""
    from attrpriv.engines.view_ranks import RANKS

    if found.counts[k] != count:
        raise ValueError("another table")
    if keep in (0, count):
        return -1 if keep == 0 else RANKS - 1
    near = sorted(rank for cell, rank in found.near if cell == k)[keep - found.below[k] - 1 :]
    return near[0] if near[1:2] != near[:1] else None
