"""A view as a Parquet file: streamed by the engine, in a bounded amount of memory.

What must never change: a file appears complete under its name, or not at all, and is its owner's alone from the first byte on;
what the engine spilled is removed, also where the process is told to end; an engine that belongs to the caller keeps its
settings.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attrpriv.engines.progress import tidied, waited
from attrpriv.engines.tables import Source, quietly
from attrpriv.engines.view.draw import CHANGED
from attrpriv.errors import DataError, UsageError

NOT_WRITTEN = (
    "out: must be a file that can be written, with room for the view, on the disk and in memory. Got one that cannot. "
    "Nothing was left behind."
)

# In megabytes, for what is sorted and for the buffers of each column; the process needs about 200 more (bench/view.py).
_SORTING = {True: 95, False: 700}
_EACH_COLUMN = 1.7
_THREADS = {True: 1, False: 2}
# A row group is held in memory until it is complete.
_GROUP_ROWS = 122_880
_GROUP_VALUES = {True: 300_000, False: 1_500_000}


def check_out(out: Path, data: object, *, force: bool) -> None:
    """Refuse a place that cannot take the view, before anything is drawn."""
    if not out.name.lower().endswith(".parquet"):
        raise UsageError(f"out: must end in .parquet. Got {out.name!r}.")
    if out.is_dir() or not out.parent.is_dir():
        raise UsageError(f"out: must be a file in a directory that exists. Got {str(out)!r}.")
    if isinstance(data, (str, os.PathLike)) and out.exists() and os.path.exists(data) and os.path.samefile(out, data):
        raise UsageError(f"out: {out.name} is the table itself. Choose another name.")
    if os.path.lexists(out) and not force:
        raise UsageError(f"out: {out.name} exists already. Use force to overwrite it, or choose another name.")


def part_files(out: Path, names: Sequence[str]) -> dict[str, Path]:
    """The file of each part of a view: `rows.train.parquet` beside `rows.parquet`."""
    return {name: out.with_name(f"{out.stem}.{name}{out.suffix}") for name in names}


def limit_memory(source: Source, *, low_memory: bool) -> None:
    """Bound what an engine of our own may use. One that belongs to the caller stays as it is."""
    if _owned(source):
        source.engine.con.execute(f"SET threads = {_THREADS[low_memory]}")
        megabytes = _SORTING[low_memory] + _EACH_COLUMN * len(source.columns)
        source.engine.con.execute(f"SET memory_limit = '{megabytes:.0f}MB'")


def _owned(source: Source) -> bool:
    return source.positioned is not None


@dataclass(frozen=True)
class ViewFile:
    """A view, or a part of one, the file that it goes to, and how many rows it must have."""

    view: Any
    out: Path
    rows: int


def write_view(source: Source, view: Any, out: Path, rows: int, *, low_memory: bool = False) -> None:
    """Write the view to a new Parquet file. The engine, if it is our own, cannot be used afterwards."""
    write_views(source, [ViewFile(view, out, rows)], low_memory=low_memory)


def write_views(source: Source, files: Sequence[ViewFile], *, low_memory: bool = False) -> None:
    """The same for parts of a view, in one directory: all are complete before the first gets its name."""
    done = quietly(lambda: _write(source, files, low_memory))
    if done is None:
        raise UsageError(NOT_WRITTEN)
    if not done:
        raise DataError(CHANGED)


def _write(source: Source, files: Sequence[ViewFile], low_memory: bool) -> bool:
    with tidied(), tempfile.TemporaryDirectory(prefix=".attrpriv-", dir=files[0].out.parent) as place:
        halves = [Path(place) / f"view{k}.parquet" for k in range(len(files))]
        try:
            if _owned(source):  # DuckDB cannot leave a directory for temporary files once it has used it
                source.engine.con.execute("SET temp_directory = " + _quoted(place))
            for half, file in zip(halves, files, strict=True):
                os.close(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
                _copy(source, file.view, half, _group_rows(len(file.view.columns), low_memory))
        finally:
            if _owned(source):
                source.engine.disconnect()
        if [_written_rows(half) for half in halves] != [file.rows for file in files]:
            return False
        for half in halves:
            with half.open("rb+") as written:  # Windows syncs only what may be written
                os.fsync(written.fileno())
        for half, file in zip(halves, files, strict=True):
            half.replace(file.out)
    return True


def _copy(source: Source, view: Any, half: Path, group_rows: int) -> None:
    """Into this very file: DuckDB would else write another one, which everybody may read, and give it this name."""
    options = {"row_group_size": group_rows, "use_tmp_file": False}
    waited(source.engine, lambda: source.engine.to_parquet(view, half, **options), source.rows)


def _group_rows(columns: int, low_memory: bool) -> int:
    return max(2_048, min(_GROUP_ROWS, _GROUP_VALUES[low_memory] // columns))


def _written_rows(path: Path) -> int:
    import pyarrow.parquet

    return int(pyarrow.parquet.read_metadata(path).num_rows)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
