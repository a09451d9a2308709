"""`attrpriv init` as a conversation: what to hide, what to publish, what everybody may know, a question at a time.

What must never change: column names and types are all that is shown of the table.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import typer
from rich.markup import escape

from attrpriv.cli.decisions import QUESTIONS, Decisions, public_records, read_density, read_distance, read_range
from attrpriv.cli.guard import console
from attrpriv.cli.proposal import MEASURES, asked_for, known, only_averages, only_counts
from attrpriv.engines.moments import PublicTable
from attrpriv.engines.tables import Source, open_table
from attrpriv.errors import AttrprivError, UsageError
from attrpriv.problem.composition import parse_composition
from attrpriv.problem.places import is_remote
from attrpriv.queries.conditions import columns_of, parse_condition
from attrpriv.queries.derived import parse_questions, parts_of
from attrpriv.queries.query import quoted
from attrpriv.session.named_columns import is_listed, named_values, unlisted

KINDS = (
    "an average of a column, such as the mean income",
    "a share, such as how many of them smoke",
    "everything about columns",
)
_WITHIN = "How far apart may two values be that nobody can tell apart? Enter for the whole range"
_BETWEEN = {
    1: "Between which two values does the secret lie for sure? All between them are hidden, as in 20, 60.",
    2: "Between which two shares does the secret lie for sure? All between them are hidden, as in 20%, 40%.",
}
_PUBLIC = "A file of public records of the same kind, never made from this table; Enter for none"
_EXAMPLES = {"boolean": "true", "date": "2024-05-01"} | dict.fromkeys(MEASURES, "1")

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

    path = None if is_remote(data) else Path(data)
    return converse(open_table(path or data), ask, lambda line: console().print(escape(line)), path)


def converse(source: Source, ask: Ask, say: Callable[[str], None], path: Path | None = None) -> Told:
    """Ask until a starter policy can be written. An answer that cannot be is asked for again, with the reason.

    `path` is the table's file, which is not taken for public records.
    """
    say("Columns: " + ", ".join(f"{quoted(name)} ({kind})" for name, kind in source.columns.items()))
    for place, words in enumerate(KINDS, 1):
        say(f"  {place}  {words}")
    kind = _until(ask, say, "What must stay hidden? 1, 2 or 3", _kind)
    columns = source.columns
    hidden = _hidden(kind, columns, ask, say)
    rows = None if source.rows is not None else _until(ask, say, QUESTIONS["rows"], _whole)
    if kind == 3:
        records = _until(ask, say, QUESTIONS["file"], lambda text: public_records(Path(text), path, hidden))
        density = _until(ask, say, QUESTIONS["least_density"], read_density, "0.8")
        return Told(f"columns({', '.join(map(quoted, hidden))})", (), "columns", Decisions(rows, None, None, density, records))
    secret = f"mean({quoted(hidden[0])})" if kind == 1 else _share(hidden[0], columns, ask, say)
    asked = "What will be published? Queries such as avg(hours)" + (", or the word rows" if kind == 2 else "")
    releases = _until(ask, say, asked, lambda text: _published(text, columns, kind == 2))
    public: Path | None = None
    if kind == 1 or (releases and (only_counts(releases) or only_averages(releases))):
        read = (*hidden, *_read(releases))
        public = _until(ask, say, _PUBLIC, lambda text: public_records(Path(text), path, read) if text else None, "")
    while kind == 2 and public is not None and (reason := _not_in(public, secret)):
        say(reason)
        secret = _share(hidden[0], columns, ask, say)
    template = _template(kind, releases, public)
    return Told(secret, releases, template, _range_of(kind, template, rows, public, ask, say))


def _hidden(kind: int, columns: Mapping[str, str], ask: Ask, say: Callable[[str], None]) -> list[str]:
    able = [name for name, type_ in columns.items() if kind != 1 or type_ in MEASURES]
    if kind == 3:
        question = "Which columns? Several with commas between"
        return _until(ask, say, question, lambda text: [_one_of(name, able) for name in text.split(",")])
    return [_until(ask, say, "Which column?", lambda text: _one_of(text, able))]


def _share(column: str, columns: Mapping[str, str], ask: Ask, say: Callable[[str], None]) -> str:
    question = f"Which value of {column}? As it is written in the table, such as {_EXAMPLES.get(columns[column], 'yes')}"
    return f"share({quoted(column)} = {_until(ask, say, question, lambda text: _stated(text, columns[column]))})"


def _not_in(public: Path, secret: str) -> str | None:
    """Why public records say nothing of a share: they have no such value. None where they have it."""
    composition = parse_composition(secret)
    for column, value in () if composition is None or composition.condition is None else named_values(composition.condition):
        values = PublicTable(public).group_counts(column, (), ()).categories
        if not is_listed(value, values):
            return f"value: {unlisted(column, value, values, 'the public records have')}"
    return None


def _range_of(
    kind: int, template: str | None, rows: int | None, public: Path | None, ask: Ask, say: Callable[[str], None]
) -> Decisions:
    """What is left of the numbers: the range of the secret, and how exactly it may be known anyway."""

    of_shares = kind == 2
    between = _until(ask, say, _BETWEEN[kind], lambda text: read_range(text, of_shares))
    if template == "hospital":  # a view hides the whole range
        return Decisions(rows, between, None, None, public)
    return Decisions(rows, between, _until(ask, say, _WITHIN, lambda text: read_distance(text, of_shares), "all"), None, public)


def _template(kind: int, releases: Sequence[str], public: Path | None) -> str | None:
    """The kind of policy; a view where rows are wanted, or where a share is hidden and nothing is known."""
    if kind == 1:
        return "school"
    if not releases or (public is None and not (only_counts(releases) or only_averages(releases))):
        return "hospital"
    return None


def _read(releases: Sequence[str]) -> list[str]:
    """The columns that the queries read."""
    parts = [part for text in releases for part in parts_of(parse_questions(text))]
    grouped = [part.group_by for part in parts if part.group_by is not None]
    wheres = [columns_of(parse_condition(part.where)) for part in parts if part.where is not None]
    return [*(name for part in parts for name in part.columns), *grouped, *(name for names in wheres for name in names)]


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


def _stated(text: str, kind: str) -> str:
    """A value as a condition writes it: text in single quotes, a number or a truth without."""
    if not text:
        raise UsageError("value: must not be empty.")
    if kind in MEASURES and not re.fullmatch(r"[+-]?\d+(\.\d+)?", text):
        raise UsageError(f"value: must be a number, as the column holds numbers. Got {text!r}.")
    if kind == "boolean" and text not in ("true", "false"):
        raise UsageError(f"value: must be true or false, as the column holds nothing else. Got {text!r}.")
    return text if kind in MEASURES or kind == "boolean" else "'" + text.strip("'").replace("'", "''") + "'"


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"rows: must be a whole number above 0, such as 10000. Got {text!r}.")
    return int(text)


def _published(text: str, columns: Mapping[str, str], may_be_rows: bool) -> tuple[str, ...]:
    if text == "rows" and may_be_rows:
        return ()
    asked = asked_for(columns, text)
    if not asked:
        raise UsageError("release: must name a query such as avg(hours). Got none.")
    known(columns, asked)
    return (text,)
