"""A text file as a table that a policy can name: column names, cells without spaces around them, types, missing values.

Files from statistical offices often have no line of names, a space after each comma, and a mark for what is missing. What must
never change: every row is kept, in its order; a column is a number only where every cell is one; no error quotes a cell.
"""

from __future__ import annotations

import codecs
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrpriv.engines.files import literal_path
from attrpriv.engines.tables import check_names, new_duckdb, quietly
from attrpriv.errors import DataError, UsageError

UNREADABLE = (
    "data: must be a text file in which every line has as many cells as the first one. Got {shown}, which has not. "
    "If there is a line before the table, leave it out: --skip 1."
)
NUMBERS = (
    "data: the first line must be the column names. Got {shown}, in which it has a number. Name the columns: "
    "--names first,second. If that line holds names and no values, leave it out as well: --skip {past}."
)
_HEAD = 1 << 20
# How zip archives, among them .xlsx and .ods, and the older .xls begin.
_ARCHIVES = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
# What may stand between cells; a file of one column that has such a mark was not cut by it, because its rows differ.
_MARKS = frozenset(",;|\t")
# The first type as which every cell of a column is written; 007 is a word.
_TYPES = {
    "BIGINT": r"[-+]?(0|[1-9][0-9]{0,17})",
    "DOUBLE": r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,2})?",
}


def tidy(
    data: Path, out: Path, names: Sequence[str] | None = None, missing: Sequence[str] = (), *, skip: int = 0, decimal: str = "."
) -> dict[str, str]:
    """Write the file as Parquet, and return the names and types of its columns.

    With `names` the first line after `skip` lines is a row like all others; without, it has the names, and none is a number:
    names are public, so a first row of values must not become names. A cell that is empty or one of `missing` is missing.
    """
    if decimal not in (".", ","):
        raise UsageError(f"decimal: must be a point or a comma, as in --decimal ','. Got {decimal!r}.")
    if out.suffix.lower() != ".parquet":
        raise UsageError(f"out: must end in .parquet. Got {out.name!r}.")
    if not data.is_file():
        what = ", which is a directory. Name a file in it." if data.is_dir() else ", which is not there. Check the path."
        raise DataError(f"data: must be a text file. Got {str(data)!r}{what}")
    if (said := _no_text(data)) is not None:
        raise DataError(f"data: must be a text file in UTF-8. Got {data.name}, {said}")
    engine = new_duckdb()
    lines = quietly(lambda: _lines(engine, data, skip, header=names is None))
    if lines is None or _uncut(lines):
        raise DataError(UNREADABLE.format(shown=data.name))
    found = [str(column).strip() for column in lines.columns]
    if names is None and any(re.fullmatch(_TYPES["DOUBLE"], name) for name in found):
        raise DataError(NUMBERS.format(shown=data.name, past=skip + 1))
    called = found if names is None else [name.strip() for name in names]
    if len(called) != len(found):
        raise UsageError(f"names: must be as many as the columns of the file, {len(found)}. Got {len(called)}.")
    check_names(called)
    types = quietly(lambda: _write(engine, lines, called, missing, out, decimal))
    if types is None:
        out.unlink(missing_ok=True)
        raise DataError(UNREADABLE.format(shown=data.name))
    return types


def _no_text(data: Path) -> str | None:
    """What a file is that is no text in UTF-8, as far as its beginning tells, and the way out; None of any other."""
    with data.open("rb") as file:
        head = file.read(_HEAD)
    if data.suffix.lower() == ".gz":
        return None
    if not head:
        return "which is empty. Write it anew."
    if head.startswith(b"PAR1"):
        return f"which is a Parquet file. Go on with: attrpriv init {shlex.quote(str(data))}"
    if head.startswith(_ARCHIVES):
        return "which is a spreadsheet or an archive. Save the sheet as CSV in UTF-8."
    problem = b"\0" in head
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        problem = True
    return "which is in another encoding. Save it in UTF-8." if problem else None


def _lines(engine: Any, data: Path, skip: int, *, header: bool) -> Any:
    """All cells as text. DuckDB may guess the delimiter and nothing else: it would skip lines, and lose rows."""
    read = engine.con.read_csv(
        literal_path(data),
        **{"header": header, "skiprows": skip, "all_varchar": True, "quotechar": '"', "comment": "", "strict_mode": True},
        **{"ignore_errors": False, "null_padding": False, "hive_partitioning": False},
    )
    read.limit(1).fetchall()
    return read


def _uncut(lines: Any) -> bool:
    """Whether no mark cuts every row into as many cells, though there is one."""
    first = lines.limit(1).fetchall()
    return len(lines.columns) == 1 and bool(_MARKS & {*lines.columns[0], *(str(first[0][0]) if first else "")})


def _write(engine: Any, lines: Any, names: Sequence[str], missing: Sequence[str], out: Path, decimal: str) -> dict[str, str]:
    marks = ", ".join(_text(mark) for mark in ("", *missing))
    cells = [f"CASE WHEN trim({_name(old)}) NOT IN ({marks}) THEN trim({_name(old)}) END" for old in lines.columns]
    trimmed = lines.project(", ".join(f"{cell} AS {_name(new)}" for cell, new in zip(cells, names, strict=True)))
    tests = [
        f"bool_and({_name(name)} IS NULL OR regexp_full_match({_name(name)}, {_text(form)})) AND count({_name(name)}) > 0"
        for name in names
        for form in (one.replace(r"\.", decimal) if decimal == "," else one for one in _TYPES.values())
    ]
    (fits,) = trimmed.aggregate(", ".join(tests)).fetchall()
    kinds = {name: _kind(fits[len(_TYPES) * k : len(_TYPES) * (k + 1)]) for k, name in enumerate(names)}
    typed = trimmed.project(", ".join(f"{_cast(name, kind, decimal)} AS {_name(name)}" for name, kind in kinds.items()))
    typed.write_parquet(str(out))
    words = {"BIGINT": "integer", "DOUBLE": "float", "VARCHAR": "text"}
    return {name: words[kind] for name, kind in kinds.items()}


def _cast(name: str, kind: str, decimal: str) -> str:
    cell = f"replace({_name(name)}, ',', '.')" if kind == "DOUBLE" and decimal == "," else _name(name)
    return f"CAST({cell} AS {kind})"


def with_commas(made: Path, types: Mapping[str, str]) -> list[str]:
    """Of what `tidy` wrote, the columns of text in which every cell is a number, some of them with a comma in it."""
    words = [name for name, kind in types.items() if kind == "text"]
    tests = [
        f"bool_and({_name(name)} IS NULL OR regexp_full_match({_name(name)}, '[-+]?[0-9]+(,[0-9]+)?')) "
        f"AND bool_or(contains({_name(name)}, ','))"
        for name in words
    ]
    if not tests:
        return []
    (found,) = new_duckdb().con.read_parquet(literal_path(made)).aggregate(", ".join(tests)).fetchall()
    return [name for name, fits in zip(words, found, strict=True) if fits]


def _kind(fits: Sequence[bool | None]) -> str:
    """An empty column is text: nothing says what it is."""
    return next((kind for kind, fit in zip(_TYPES, fits, strict=True) if fit), "VARCHAR")


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
