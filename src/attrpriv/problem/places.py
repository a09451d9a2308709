"""Places of ledgers and tables: a path, the URL of a PostgreSQL database, or a table that Spark knows.

    postgresql://[user@]host[:port]/database[?option=value...][#name]            a ledger
    postgresql://[user@]host[:port]/database?table=name[&schema=name][&...]      a table
    spark:[[catalog.]database.]name                                              a table

What must never change: a policy is read by people who must not connect, so a URL in one holds no password, and no message ever
quotes a URL.
"""

from __future__ import annotations

import glob
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

from attrpriv.errors import UsageError
from attrpriv.frozen.requirements import shown

T = TypeVar("T")
# What file systems take, less the endings of a ledger and of the journal beside it.
_LONGEST, _LONGEST_PART = 4_000, 240
WILD = "*?["
_SECRETS = ("password", "passfile", "sslpassword", "sslkey")


def is_url(place: str | Path) -> bool:
    """Whether this is a database's URL and not a path.

    >>> is_url("postgresql://db.example/releases"), is_url("students.ledger")
    (True, False)
    """
    return isinstance(place, str) and place.startswith(("postgresql:", "postgres:"))


def has_password(url: str) -> bool:
    """Whether a URL says how to log in; also where it cannot be read.

    >>> has_password("postgresql://ann@db.example/releases"), has_password("postgresql://ann:pw@db.example/releases")
    (False, True)
    """
    try:
        parts = urlsplit(url)
        return parts.password is not None or any(key in _SECRETS for key, _ in parse_qsl(parts.query, keep_blank_values=True))
    except ValueError:
        return True


def is_remote(place: str | Path) -> bool:
    """Whether a table is in a database or a cluster and not in a file.

    >>> is_remote("postgresql://db.example/school?table=students"), is_remote("spark:school.students"), is_remote("a.parquet")
    (True, True, False)
    """
    return is_url(place) or (isinstance(place, str) and place.startswith("spark:"))


def is_pattern(place: str | Path) -> bool:
    """Whether this means all files that match it. A path that exists is a path, whatever characters it has.

    >>> is_pattern("visits-*.parquet"), is_pattern("visits.parquet"), is_pattern("spark:school.visits")
    (True, False, False)
    """
    wild = any(letter in str(place) for letter in WILD)
    return wild and not is_remote(place) and not os.path.isfile(place)


def files_of(place: str | Path) -> tuple[Path, ...]:
    """The files of a table, in the order of their names; none where there are none."""
    if not is_pattern(place):  # os.path, unlike Path, answers False to a name that no file system would take
        return (Path(place),) if not is_remote(place) and os.path.isfile(place) else ()
    if "\0" in str(place):
        return ()
    return tuple(Path(found) for found in sorted(glob.glob(str(place), recursive=True)) if os.path.isfile(found))


def identities(place: str | Path) -> frozenset[object]:
    """What the files of a table are, whatever they are called: device and inode; a file that is not there is its path."""
    return frozenset(map(_identity, files_of(place) or (place,)))


def _identity(path: str | Path) -> object:
    with suppress(OSError, ValueError):
        found = os.stat(path)
        if found.st_ino:  # some file systems number no file
            return found.st_dev, found.st_ino
    return os.path.realpath(path)


def usable(key: str, place: T) -> T:
    """The place as it is, if a file or a table can be there; what is no place, such as a table in memory, as it is.

    >>> usable("data", "students.csv")
    'students.csv'
    """
    if not isinstance(place, str | Path):
        return place
    parts = [table_name(place)] if is_remote(place) else str(place).split(os.sep)
    try:
        longest = max(len(part.encode("utf-8", "surrogateescape")) for part in parts)
    except UnicodeEncodeError:  # half of a surrogate pair
        longest = _LONGEST
    if longest > _LONGEST_PART or len(str(place)) > _LONGEST or "\0" in str(place):
        # A URL is never quoted.
        got = "" if is_remote(place) else f" Got {shown(str(place), 200)}."
        raise UsageError(f"{key}: must be a path of at most 4,000 bytes, 240 in each of its parts, without NUL.{got}")
    return place


def resolved(place: str | Path) -> str | Path:
    """The file that a link leads to, or that a pattern alone matches, so that a table has one ledger under all its names.

    Other places are as they are.
    """
    if is_remote(place):
        return place
    found = files_of(place)
    one = found[0] if len(found) == 1 else place
    return one if os.path.realpath(one) == os.path.abspath(one) else Path(os.path.realpath(one))


def table_name(place: str | Path) -> str:
    """The name of a table, without its place: what its ledger in a database is called.

    >>> table_name("postgresql://db.example/school?table=students"), table_name("spark:school.students"), table_name("a/b.csv")
    ('students', 'students', 'b')
    """
    if is_url(place):
        try:
            return dict(parse_qsl(urlsplit(str(place)).query)).get("table", "")
        except ValueError:
            return ""
    return str(place).rpartition(".")[2].removeprefix("spark:") if is_remote(place) else Path(place).name.partition(".")[0]


def declared_name(place: str | Path, ledger: str | Path | None = None) -> str:
    """The table as its ledger knows it: a file's path from the ledger's folder on; elsewhere the whole place, without any user.

    Two files of one name in different folders are two tables; a link is the file that it leads to, and so is a pattern of one
    file. Of a ledger in a database a file has its name alone.

    >>> declared_name("a/2024/visits.csv", "a/x.ledger"), declared_name("postgresql://ann@db/school?table=students")
    ('2024/visits.csv', 'postgresql://db/school?table=students')
    """
    if not is_remote(place):
        if ledger is None or is_url(ledger):
            return Path(os.path.realpath(resolved(place))).name
        return Path(os.path.relpath(os.path.realpath(resolved(place)), Path(os.path.realpath(ledger)).parent)).as_posix()
    scheme, found, rest = str(place).partition("://")
    return str(place) if not found else f"{scheme}://{rest.rpartition('@')[2]}"


def ledger_beside(place: str | Path, folder: Path | None = None) -> Path:
    """The ledger of a table: named after it, so that every policy finds the same one; in this folder, or beside the table.

    >>> ledger_beside("a/students.parquet").as_posix(), ledger_beside("spark:school.students", Path("b")).as_posix()
    ('a/students.ledger', 'b/students.ledger')
    >>> ledger_beside("a/visits-*.parquet").as_posix(), ledger_beside("visits/*.csv", Path("b")).as_posix()
    ('a/visits-all.ledger', 'b/visits-all.ledger')
    """
    name = (table_name(place) if is_remote(place) else _of_files(Path(place))) or "table"
    beside = Path() if is_remote(place) else Path(place).parent
    return ((beside if folder is None else folder) / re.sub(r"[*?\[\]/\\\0]", "_", name)).with_suffix(".ledger")


def default_ledger(place: str | Path, folder: Path | None = None) -> Path:
    """The same by the file that a link or a pattern leads to; where there is a ledger of the pattern as written, that one."""
    written = ledger_beside(place, folder)
    return written if is_pattern(place) and os.path.lexists(written) else ledger_beside(resolved(place), folder)


def _of_files(path: Path) -> str:
    """A file's name; of a pattern, `all` where its stars are, after the folder's name if there is nothing else in it.

    >>> [_of_files(Path(text)) for text in ("a/x.csv", "*.parquet", "a/**/*.parquet", "../*.csv", "visits*2024.csv")]
    ['x.csv', 'all.parquet', 'a-all.parquet', 'all.csv', 'visits-all-2024.csv']
    """
    if "*" not in path.name:
        return path.name
    stem = re.sub(r"[-_. ]*\*+[-_. ]*", "-all-", path.stem).strip("-")
    folders = [part for part in path.parts[:-1] if re.search(r"\w", part) and "*" not in part] if stem == "all" else []
    return "-".join([*folders[-1:], stem]) + path.suffix


def file_state(data: object) -> tuple[int, int, int] | None:
    """What changes when a file is replaced or written: which file it is, when it changed and its size; None: no single file."""
    if not isinstance(data, str | Path) or is_remote(data):
        return None
    with suppress(OSError, ValueError):
        found = os.stat(data)
        return found.st_ino, found.st_mtime_ns, found.st_size
    return None
