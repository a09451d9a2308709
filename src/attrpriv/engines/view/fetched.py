"""A view of a table that another engine reads: its rows come here, and the key stays.

    first pass    the columns that decide a row's cell: how many rows each cell has
    second pass   all columns: into the fingerprint, and those rows that may be kept into a file of our own

Whatever is asked of the view afterwards is asked of that file, which goes when the engine that reads it does.

What must never change: no key, rank, threshold or count reaches the other engine, whose statements and logs others may read. It
is asked for columns, and for the number of different ids. The rows of a view are those of one second pass, whose fingerprint or
counts were compared: a table that changed in between is refused.
"""

from __future__ import annotations

import secrets
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from attrpriv.engines.progress import tidied
from attrpriv.engines.tables import Source, arrow_batches, quietly
from attrpriv.engines.view.cells import CELL, DIGEST, bind, by_cell, cell_columns, with_cells
from attrpriv.engines.view.draw import (
    CHANGED,
    ENGINE_FAILED,
    Cells,
    Drawn,
    announced,
    check_schema,
    checked,
    digest_window,
    digested,
    draw,
    has_unique_ids,
    require_same_table,
    row_mark,
    sealed,
)
from attrpriv.errors import DataError

Window = tuple[str, str]
_BELOW_ALL, _ABOVE_ALL = "", "g"


def drawn_rows(source: Source, cells: Cells, n: int, row_id: str | None, key: str | None = None) -> tuple[Drawn, Source]:
    """Choose the rows of a new view; with them, where they can be read: the table itself, or our own file."""
    if _here(source):
        return draw(source, cells, n, row_id, key), source
    check_schema(source, cells, row_id)
    assert row_id is not None  # check_schema: such a table has no positions
    found = quietly(lambda: _drawn(source, cells, n, row_id, secrets.token_hex(32) if key is None else key))
    if isinstance(found, tuple):
        return found
    raise announced(cells, n, found)


def same_rows(source: Source, cells: Cells, drawn: Drawn, row_id: str | None) -> Source:
    """Where the rows of a recorded view can be read; DataError if it was drawn from another table."""
    if _here(source):
        require_same_table(source, cells, drawn, row_id)
        return source
    check_schema(source, cells, row_id)
    assert row_id is not None
    limits = [(_ABOVE_ALL, threshold and threshold + _ABOVE_ALL) for threshold in drawn.thresholds]
    found = quietly(lambda: _fetched(source, cells, row_id, drawn.key, limits))
    if found is None:
        raise DataError(ENGINE_FAILED)
    if sealed(found.fingerprint, drawn.thresholds) != drawn.fingerprint:
        raise DataError(CHANGED)
    return found.source


def _here(source: Source) -> bool:
    return bool(source.engine.name == "duckdb")


@dataclass(frozen=True)
class _Fetched:
    """What a second pass found: rows by cell, those below their cell's window, the digests inside; and the rows themselves."""

    counts: list[int]
    below: list[int]
    near: list[list[str]]
    fingerprint: str
    source: Source


def _drawn(
    source: Source, cells: Cells, n: int, row_id: str, key: str
) -> tuple[Drawn, Source] | Literal["range", "cell", "row_id", "changed"] | int:
    counts = _counts(source, cells, row_id)
    if sum(counts.values()) == n and not has_unique_ids(source, row_id, n):
        return "row_id"
    found = checked(cells, n, counts)
    if not isinstance(found, list):
        return found
    windows = [_window(keep, count) for keep, count in zip(cells.keep, found, strict=True)]
    fetched = _fetched(source, cells, row_id, key, windows)
    if fetched.counts == found and not _reached(fetched, cells.keep, found):  # once in 10^18: look at all of them
        fetched = _fetched(source, cells, row_id, key, [(_BELOW_ALL, _ABOVE_ALL)] * len(windows))
    if fetched.counts != found:
        return "changed"
    thresholds = tuple(_threshold(fetched, k, *one) for k, one in enumerate(zip(cells.keep, found, strict=True)))
    return Drawn(key, thresholds, sealed(fetched.fingerprint, thresholds)), fetched.source


def _window(keep: int, count: int) -> Window:
    """Between which digests the keep-th smallest of a cell lies; what is above is never kept."""
    if keep in (0, count):
        return _ABOVE_ALL, _ABOVE_ALL if keep else _BELOW_ALL
    return digest_window(keep, count)


def _reached(fetched: _Fetched, keep: Sequence[int], counts: Sequence[int]) -> bool:
    cases = zip(keep, counts, fetched.below, fetched.near, strict=True)
    return all(kept in (0, count) or below < kept <= below + len(near) for kept, count, below, near in cases)


def _threshold(fetched: _Fetched, k: int, keep: int, count: int) -> str:
    if keep in (0, count):
        return "f" * 64 if keep else ""
    return sorted(fetched.near[k])[keep - fetched.below[k] - 1]


def _counts(source: Source, cells: Cells, row_id: str) -> dict[int, int]:
    from attrpriv.engines.streams import streamed

    stream = streamed(source, cell_columns(cells) or (row_id,))
    table = with_cells(stream, cells, stream.table)
    found = stream.engine.to_pyarrow(table.group_by(CELL).aggregate(rows=table.count())).to_pylist()
    return {int(row[CELL]): int(row["rows"]) for row in found}


# ----------------------------------------------------------------------------------------------------------- second pass


def _fetched(source: Source, cells: Cells, row_id: str, key: str, windows: Sequence[Window]) -> _Fetched:
    """Of each cell, the rows whose digest is below the end of its window, in a file; what begins it tells which are near."""
    from attrpriv.engines.streams import streamed

    stream = streamed(source, tuple(source.columns))
    rows = _marked(stream, cells, row_id, key, windows)
    folder = tempfile.TemporaryDirectory(prefix="attrpriv-")
    kept = Path(folder.name) / f"{source.name}.parquet" if source.name.isidentifier() else Path(folder.name) / "rows.parquet"
    with tidied():
        try:
            counts, below, near, total = _spooled(stream, rows, kept, len(windows))
            here = _opened(kept, source.name)
        except BaseException:
            folder.cleanup()
            raise
    weakref.finalize(here.engine, folder.cleanup)
    return _Fetched(counts, below, near, f"{total:016x}", here)


def _marked(stream: Source, cells: Cells, row_id: str, key: str, windows: Sequence[Window]) -> Any:
    """Each row with its cell, its mark, whether it may be kept, and its digest where that must be looked at."""
    import ibis

    bound = bind(stream, "key", key)
    table = digested(stream, cells, row_id, bound)
    digest = table[DIGEST]
    low, high = (by_cell(stream, table, "window", [window[end] for window in windows], "") for end in (0, 1))
    named = table.select(
        *stream.columns,
        **{CELL: table[CELL], "attrpriv mark": row_mark(stream, table, bound), "attrpriv kept": digest < high},
        **{DIGEST: ibis.cases((digest >= low, digest), else_=None)},
    )
    return named.select("attrpriv mark", CELL, "attrpriv kept", DIGEST, *stream.columns)


def _spooled(stream: Source, rows: Any, kept: Path, cells: int) -> tuple[list[int], list[int], list[list[str]], int]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from attrpriv.engines.streams import BATCH

    counts, below = np.zeros((2, cells), np.int64)
    near: list[list[str]] = [[] for _ in range(cells)]
    total, writer = 0, None
    try:
        for batch in arrow_batches(stream.engine, rows, BATCH):
            cell = batch.column(1).to_numpy()
            total ^= int(np.bitwise_xor.reduce(batch.column(0).to_numpy(), initial=np.uint64(0)))
            counts += np.bincount(cell, minlength=cells)
            taken = batch.filter(batch.column(2))
            below += np.bincount(taken.column(1).filter(taken.column(3).is_null()).to_numpy(), minlength=cells)
            inside = taken.filter(taken.column(3).is_valid())
            for k, digest in zip(inside.column(1).to_pylist(), inside.column(3).to_pylist(), strict=True):
                near[k].append(digest)
            shown = pa.RecordBatch.from_arrays(taken.columns[4:], names=list(stream.columns))
            writer = writer or pq.ParquetWriter(kept, shown.schema)
            writer.write_batch(shown)
    finally:
        if writer is not None:
            writer.close()
    return counts.tolist(), below.tolist(), near, total


def _opened(kept: Path, name: str) -> Source:
    from dataclasses import replace

    from attrpriv.engines.files import open_path

    return replace(open_path(kept, name), name=name)
