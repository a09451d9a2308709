"""`attrpriv init` as a conversation: what to hide, what to publish, what everybody may know, a question at a time.

What must never change: column names and types are all that is shown of the table.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import typer
from rich.markup import escape

from attrpriv.cli.decisions import QUESTIONS, Decisions, number, pair, shares
from attrpriv.cli.guard import console
from attrpriv.cli.proposal import MEASURES, only_averages, only_counts
from attrpriv.engines.tables import Source, open_table
from attrpriv.errors import AttrprivError, UsageError
from attrpriv.problem.places import is_remote
from attrpriv.queries.derived import parse_questions
from attrpriv.queries.query import quoted

KINDS = (
    "an average of a column, such as the mean income",
    "a share, such as how many of them smoke",
    "everything about columns",
)
_WITHIN = "How far apart may two values be that nobody can tell apart? Enter for the whole range"

T = TypeVar("T")


class Ask(Protocol):
    """Ask a person: the question, and the answer that Enter stands for."""

    def __call__(self, question: str, default: str | None = None) -> str: ...


@dataclass(frozen=True)
class Told:
    """What the conversation found out: as options would say it."""

    secret: str
    releases: tuple[str, ...]
    template: str | None
    decisions: Decisions


def asks() -> bool:
    """Whether there is somebody to ask: both ends are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def in_terminal(data: str) -> Told:
    """The conversation about a table, in this terminal."""

    def ask(question: str, default: str | None = None) -> str:
        suffix = " " if question.endswith(("?", ".")) and not default else ": "
        return str(typer.prompt(question, default=default, show_default=bool(default), prompt_suffix=suffix))

    return converse(open_table(data if is_remote(data) else Path(data)), ask, lambda line: console().print(escape(line)))


def converse(source: Source, ask: Ask, say: Callable[[str], None]) -> Told:
    """Ask until a starter policy can be written. An answer that cannot be is asked for again, with the reason."""
    say("Columns: " + ", ".join(f"{quoted(name)} ({kind})" for name, kind in source.columns.items()))
    for place, words in enumerate(KINDS, 1):
        say(f"  {place}  {words}")
    kind = _until(ask, say, "What must stay hidden? 1, 2 or 3", _kind)
    secret = (_mean, _share, _columns)[kind - 1](source.columns, ask, say)
    rows = None if source.rows is not None else _until(ask, say, QUESTIONS["rows"], _whole)
    if kind == 3:
        return _whole_columns(secret, rows, ask, say)
    releases = _until(ask, say, "What will be published? Queries such as avg(hours), or the word rows", _published)
    public = _until(
        ask, say, "A file of public records of the same kind, never made from this table; Enter for none", _file, ""
    )
    template = _template(kind, releases, public)

    def read(key: str, one: Callable[[str], str]) -> Callable[[str], str]:
        return lambda text: shares(key, one(text)) if kind == 2 else one(text)

    between = _until(ask, say, QUESTIONS["between"], read("between", _range))
    if template == "hospital":  # a view hides the whole range
        return Told(secret, releases, template, Decisions(rows, between, None, None, public))
    within = _until(ask, say, _WITHIN, read("within", _distance), "all")
    return Told(secret, releases, template, Decisions(rows, between, within, None, public))


def _whole_columns(secret: str, rows: int | None, ask: Ask, say: Callable[[str], None]) -> Told:
    public = _until(ask, say, QUESTIONS["file"], _file)
    density = _until(ask, say, QUESTIONS["least_density"], _share_of_one, "0.8")
    return Told(secret, (), "columns", Decisions(rows, None, None, density, public))


def _template(kind: int, releases: Sequence[str], public: Path | None) -> str | None:
    """The kind of policy; a view where rows are wanted, or where a share is hidden and nothing is known."""
    if kind == 1:
        return "school"
    if not releases or (public is None and not (only_counts(releases) or only_averages(releases))):
        return "hospital"
    return None


def _mean(columns: Mapping[str, str], ask: Ask, say: Callable[[str], None]) -> str:
    able = [name for name, kind in columns.items() if kind in MEASURES]
    return f"mean({quoted(_until(ask, say, 'Which column?', lambda text: _one_of(text, able)))})"


def _share(columns: Mapping[str, str], ask: Ask, say: Callable[[str], None]) -> str:
    column = _until(ask, say, "Which column?", lambda text: _one_of(text, list(columns)))
    value = _until(ask, say, f"Which value of {column}? As it is written in the table, such as yes", _stated)
    literal = value if columns[column] in MEASURES else "'" + value.replace("'", "''") + "'"
    return f"share({quoted(column)} = {literal})"


def _columns(columns: Mapping[str, str], ask: Ask, say: Callable[[str], None]) -> str:
    def several(text: str) -> list[str]:
        return [_one_of(name, list(columns)) for name in text.split(",")]

    return f"columns({', '.join(map(quoted, _until(ask, say, 'Which columns? Several with commas between', several)))})"


# ----------------------------------------------------------------------------------------------------------- single answers


def _until(ask: Ask, say: Callable[[str], None], question: str, read: Callable[[str], T], default: str | None = None) -> T:
    while True:
        try:
            return read(ask(question, default).strip())
        except AttrprivError as error:
            say(str(error))


def _kind(text: str) -> int:
    if text not in ("1", "2", "3"):
        raise UsageError(f"hide: must be 1, 2 or 3. Got {text!r}.")
    return int(text)


def _one_of(text: str, names: Sequence[str]) -> str:
    name = text.strip().strip('"')
    if name not in names:
        raise UsageError(f"column: must be one of {', '.join(names)}. Got {name!r}.")
    return name


def _stated(text: str) -> str:
    if not text:
        raise UsageError("value: must not be empty.")
    return text


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"rows: must be a whole number above 0, such as 10000. Got {text!r}.")
    return int(text)


def _share_of_one(text: str) -> str:
    if not 0 < number(text) <= 1:
        raise UsageError(f"least density: must be above 0 and at most 1, such as 0.8. Got {text!r}.")
    return text


def _range(text: str) -> str:
    said = pair(text)
    low, high = map(number, said.split(", "))
    if not 0 < high - low < math.inf:
        raise UsageError(f"between: must be two numbers, the smaller one first. Got {text!r}.")
    return said


def _distance(text: str) -> str:
    if text != "all" and not 0 < number(text) < math.inf:
        raise UsageError(f"within: must be one number above 0, or the word all. Got {text!r}.")
    return text


def _published(text: str) -> tuple[str, ...]:
    if text == "rows":
        return ()
    if not parse_questions(text):
        raise UsageError("release: must name a query such as avg(hours), or be the word rows. Got none.")
    return (text,)


def _file(text: str) -> Path | None:
    if not text:
        return None
    if not Path(text).is_file():
        raise UsageError(f"public: must be a file that is there. Got {text!r}.")
    return Path(text)
