"""What a starter policy hides and publishes: what its owner says, else what column names suggest, else nothing.

A column is proposed as sensitive only where its name says so: income, gender, diagnosis. What must never change: names and
types decide, never a value; and where they do not, the word TODO stands in the place of a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from attrpriv.engines.conditions import check_condition
from attrpriv.engines.scan import UNKNOWN_COLUMN, closest
from attrpriv.engines.tables import NOT_NUMBERS, shown_name
from attrpriv.errors import DataError, UsageError
from attrpriv.problem.composition import Composition, parse_composition
from attrpriv.problem.secret import canonical_text
from attrpriv.queries.arithmetic import parse_entries, parse_linear
from attrpriv.queries.conditions import columns_of, parse_condition
from attrpriv.queries.derived import Question, parse_questions, parts_of
from attrpriv.queries.query import Query, quoted
from attrpriv.session.named_columns import named_values, require_number

OPEN = "TODO"
Kind = Literal["mean", "share", "distribution", "columns"]
_NUMBERS = ("integer", "boolean", "decimal", "float")
MEASURES = ("integer", "decimal", "float")
_WORDS = ("text", "boolean")
# What hardly anybody would publish of a group of persons: money, health, and who they are.
_SENSITIVE = frozenset(
    "income incomes salary salaries wage wages earnings wealth debt revenue profit sales "
    "gender sex race ethnicity ethnic religion nationality citizenship party orientation "
    "diagnosis diagnoses disease smoker smoking smokes hiv pregnant disability disabled depression alcohol drug drugs".split()
)


@dataclass(frozen=True)
class Proposal:
    """The secret, and what is published of which columns."""

    secret: str
    kind: Kind
    hidden: tuple[str, ...]
    category: str | None
    releases: tuple[str, ...]
    averaged: tuple[str, ...]
    events: tuple[str, ...]


def propose(
    columns: Mapping[str, str], kind: Kind, counted: bool, secret: str | None = None, releases: Sequence[str] = ()
) -> Proposal:
    """What the owner said, completed by what names and types suggest."""
    hidden, text, category = _hidden(columns, kind) if secret is None else _said(columns, secret)
    asked = tuple(one for text in releases for one in asked_for(columns, text))
    if not asked:
        published = _published(columns, hidden)
        where = f"{quoted(published)} > {OPEN}"
        said = f"count(*) filter (where {where})" if counted else f"avg({quoted(published)})"
        return Proposal(text, kind, hidden, category, (said,), (published,), (where,))
    parts = known(columns, asked)
    averaged = dict.fromkeys(column for part in parts for column in part.columns if column not in hidden)
    events = dict.fromkeys(part.where for part in parts if part.where is not None and not {*hidden} & {*_read(part.where)})
    return Proposal(text, kind, hidden, category, tuple(releases), tuple(averaged), tuple(events))


def kind_of(secret: str) -> Kind:
    """What kind of secret a text states."""
    problem = None
    try:
        canonical_text(secret)
    except ValueError as error:
        problem = str(error)
    if problem is not None:
        raise UsageError(f"secret: {problem}")
    if parse_entries(secret) is not None:
        raise UsageError(f"secret: a starter policy hides a mean, sum, count, share or distribution. Got {secret!r}.")
    composition = parse_composition(secret)
    if composition is None:
        return "mean"
    return "columns" if composition.kind == "columns" else "distribution" if composition.condition is None else "share"


def one_column(secret: str) -> bool:
    """Whether a count or share is of one column alone, as counts and groups need it."""
    composition = parse_composition(secret)
    return composition is not None and len(composition.reads) == 1


def only_counts(releases: Sequence[str]) -> bool:
    """Whether nothing but counts is published."""
    asked = [part for text in releases for part in parts_of(parse_questions(text))]
    return bool(asked) and all(part.kind == "count" for part in asked)


def only_averages(releases: Sequence[str]) -> bool:
    """Whether nothing is published but averages and sums over all rows."""
    return all(part.plain and part.simple and part.column for text in releases for part in parts_of(parse_questions(text)))


def _said(columns: Mapping[str, str], secret: str) -> tuple[tuple[str, ...], str, str | None]:
    """The columns that a stated secret reads, its own text, and the category that it names."""
    stated = parse_composition(secret) or parse_linear(secret)
    read = stated.reads if isinstance(stated, Composition) else tuple(column for column, _ in stated.coefficients)
    for column in read:
        _require(columns, "secret", column)
        if not isinstance(stated, Composition):
            require_number("secret", column, columns[column])
    condition = stated.condition if isinstance(stated, Composition) else None
    values = [] if condition is None else [value for _, value in named_values(condition) if isinstance(value, str)]
    return read, stated.text, values[0] if len(values) == 1 else None


def _hidden(columns: Mapping[str, str], kind: Kind) -> tuple[tuple[str, ...], str, str | None]:
    types = _NUMBERS if kind == "mean" else _WORDS
    able = [name for name, found in columns.items() if found in types]
    measured = [name for name, found in columns.items() if found in MEASURES]
    if kind == "mean" and len(able) < 2:
        raise DataError(f"data: this template needs two numeric columns, one to hide and one to publish. Got {len(able)}.")
    if kind != "mean" and not (able and measured):
        raise DataError("data: this template needs a text or boolean column to hide and a numeric one to publish. Got none.")
    column = next((name for name in able if is_sensitive(name)), OPEN)
    inside = {"mean": "mean({})", "share": "share({} = 'TODO')", "distribution": "distribution({})", "columns": "columns({})"}[
        kind
    ]
    return (column,), inside.format(quoted(column)), None


def is_sensitive(name: str) -> bool:
    """Whether a column's name says that it is sensitive.

    >>> is_sensitive("family_income"), is_sensitive("Gender"), is_sensitive("height"), is_sensitive("sextant")
    (True, True, False, False)
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return bool({*re.findall(r"[a-z]+", spaced.lower())} & _SENSITIVE)


def _published(columns: Mapping[str, str], hidden: Sequence[str]) -> str:
    """The first measure that is not sensitive itself."""
    able = [name for name, found in columns.items() if found in MEASURES and name not in hidden]
    return next((name for name in able if not is_sensitive(name)), able[0] if able else OPEN)


def known(columns: Mapping[str, str], asked: Sequence[Question]) -> tuple[Query, ...]:
    """The statistics that are asked for; an error where the table has no such column, or one of another type."""
    parts = parts_of(asked)
    for part in parts:
        for column in (*part.columns, *_read(part.where), *([part.group_by] if part.group_by is not None else [])):
            _require(columns, "release", column)
        for column in part.columns:
            require_number("release", column, columns[column])
        if part.where is not None:
            check_condition(columns, parse_condition(part.where), "release")
    return parts


def asked_for(columns: Mapping[str, str], text: str) -> tuple[Question, ...]:
    """What a text asks for; of a column alone, how it is asked for."""
    name = text.strip().strip('"')
    if name in columns:
        measure = columns[name] not in NOT_NUMBERS
        way = f"avg({quoted(name)})" if measure else f"count(*) filter (where {quoted(name)} = 'a value')"
        raise UsageError(f"release: must say what is asked of a column. Got {shown_name(name)} alone. Write {way}.")
    return parse_questions(text)


def _read(where: str | None) -> tuple[str, ...]:
    return () if where is None else columns_of(parse_condition(where))


def _require(columns: Mapping[str, str], key: str, column: str) -> None:
    if column not in columns:
        text = UNKNOWN_COLUMN.format(column=shown_name(column), hint=closest(columns, column))
        raise DataError(text.replace("data:", f"{key}:", 1))
