"""What to publish: numbers, each a query, or no numbers and rows for a model; and public facts of the columns they read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrpriv.cli.proposal import MEASURES
from attrpriv.errors import QueryError, UsageError
from attrpriv.policy.edit import append, remove, set_value
from attrpriv.queries.derived import parse_questions, parts_of
from attrpriv.queries.query import quoted
from attrpriv.studio.asked import Asked, releases, secrets
from attrpriv.studio.html import Html, checks, choice, field, h, heading, listed, paragraph, together
from attrpriv.studio.layout import further, state_of
from attrpriv.studio.numbers import amount_in, count_in, in_order
from attrpriv.studio.sources import with_source

TITLE = "What to publish"
_STATISTICS = {"avg": "average", "sum": "sum", "count": "number of rows"}


def show(asked: Asked) -> Html:
    stated, columns = asked.draft.stated, asked.columns()
    return together(
        state_of(asked),
        _released(asked, stated),
        heading("Publish a number"),
        _number(asked, columns),
        heading("Or any query"),
        asked.send(
            "Publish this query",
            field("Query", "query", asked.one("query"), hint="SQL, such as avg(hours) or sum(x) / sum(y)", wide=True),
            do="query",
        ),
        heading("Or rows, for a model"),
        _rows(asked, stated, columns),
        _facts(asked, stated, columns),
        further(asked, "compare"),
    )


def _released(asked: Asked, stated: Mapping[str, Any]) -> Html:
    found = stated.get("release")
    named = found if isinstance(found, list) else []
    if not named:
        return paragraph("No number is published yet: as it stands, the policy is for a view of rows.")
    remove_each = [
        asked.send(f"Do not publish {text}", do="remove", place=str(place), kind="plain") for place, text in enumerate(named)
    ]
    return together(heading("Published now"), listed(map(str, named)), remove_each)


def _number(asked: Asked, columns: Mapping[str, str]) -> Html:
    able = [name for name, kind in columns.items() if kind in (*MEASURES, "boolean")]
    return asked.send(
        "Publish this number",
        choice("Statistic", "statistic", _STATISTICS.items(), asked.one("statistic", "avg")),
        choice("Column", "column", [(name, name) for name in able], asked.one("column"), hint="a number of rows needs none"),
        field("Only rows where", "where", asked.one("where"), hint="a condition, such as stay > 7; empty: all rows", wide=True),
        do="number",
    )


def _rows(asked: Asked, stated: Mapping[str, Any], columns: Mapping[str, str]) -> Html:
    named = stated.get("identifiers")
    known = [str(one) for one in named] if isinstance(named, list) else []
    return together(
        paragraph(
            "A view holds real records whose composition says nothing about the secret: to train on, not to publish. It needs "
            "a share, a count or whole columns to hide. Columns that name persons are left out of it."
        ),
        asked.send(
            "Publish rows, no numbers",
            checks("Leave out of the view", "identifiers", [(name, name) for name in columns], known, of="identifiers"),
            do="rows",
        ),
    )


def _facts(asked: Asked, stated: Mapping[str, Any], columns: Mapping[str, str]) -> Html | None:
    """Bounds and spacing of the columns that are read: public facts that some mechanisms need."""
    read = [name for name in _columns_read(stated) if columns.get(name) in MEASURES]
    if not read:
        return None
    lines = []
    for name in read:
        low, high = (
            asked.one(f"{end}:{name}", known) for end, known in zip(("low", "high"), _bounds(stated, name), strict=True)
        )
        lines.append(
            h(
                "fieldset",
                h("legend", name),
                field("At least", f"low:{name}", low, hint="the lowest that the column can hold"),
                field("At most", f"high:{name}", high, hint="the highest"),
                field("Spacing", f"step:{name}", asked.one(f"step:{name}", _step(stated, name)), hint="1 for whole numbers"),
                field(
                    "Source", f"source:{name}", asked.one(f"source:{name}", _source(stated, name)), hint="where these come from"
                ),
                class_="number",
            )
        )
    return together(
        heading("Public facts of these columns"),
        paragraph(
            "From their definition, never looked up in the table. Values outside of the bounds are clipped. May be left empty."
        ),
        asked.send("Save the public facts", lines, do="facts"),
    )


def _mapping(stated: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = stated.get(key)
    return found if isinstance(found, dict) else {}


def _bounds(stated: Mapping[str, Any], name: str) -> tuple[str, str]:
    found = _mapping(stated, "bounds").get(name)
    return (str(found[0]), str(found[1])) if isinstance(found, list) and len(found) == 2 else ("", "")


def _step(stated: Mapping[str, Any], name: str) -> str:
    return str(_mapping(stated, "resolution").get(name, ""))


def _source(stated: Mapping[str, Any], name: str) -> str:
    known = _mapping(stated, "source")
    return str(known.get(f"bounds.{name}", known.get(f"resolution.{name}", "")))


def _columns_read(stated: Mapping[str, Any]) -> list[str]:
    found: dict[str, None] = {}
    for text in releases(stated):
        try:
            parts = parts_of(parse_questions(text))
        except QueryError:
            continue
        found |= {column: None for part in parts for column in part.columns}
    for one in secrets(stated):
        name = str(one.get("secret", ""))
        if name.startswith("mean("):
            found[name.removeprefix("mean(").removesuffix(")").strip('"')] = None
    return list(found)


# ------------------------------------------------------------------------------------------------------------------- changes


def act(asked: Asked) -> str:
    made = {"number": _new_number, "query": _new_query, "remove": _removed, "rows": _for_rows, "facts": _new_facts}.get(
        asked.one("do")
    )
    if made is None:
        raise UsageError("do: must be a form of this page. Got another.")
    asked.draft.change(asked.seen, made(asked))
    return asked.address(done="saved")


def _new_number(asked: Asked) -> str:
    statistic, column, where = asked.one("statistic"), asked.one("column"), asked.one("where")
    if statistic not in _STATISTICS or (statistic != "count" and column not in asked.columns()):
        raise UsageError("column: must be a column of numbers. Got none.")
    inside = "*" if statistic == "count" else quoted(column)
    return _with(asked, f"{statistic}({inside})" + (f" filter (where {where})" if where else ""))


def _new_query(asked: Asked) -> str:
    text = asked.one("query")
    if not text:
        raise UsageError("query: must be a query such as avg(hours). Got none.")
    return _with(asked, text)


def _with(asked: Asked, text: str) -> str:
    parse_questions(text)
    if text in releases(asked.draft.stated):
        raise UsageError(f"release: must name a query once. Got {text} twice.")
    return append(asked.draft.text, ("release",), text)


def _removed(asked: Asked) -> str:
    place, known = count_in("place", asked.one("place")), asked.draft.stated.get("release")
    if not isinstance(known, list) or not place < len(known):
        raise UsageError("place: must be one of the queries. Got another.")
    return remove(asked.draft.text, ("release", place) if len(known) > 1 else ("release",))


def _for_rows(asked: Asked) -> str:
    text, stated = asked.draft.text, asked.draft.stated
    chosen = [name for name in asked.several("identifiers") if name in asked.columns()]
    if stated.get("release"):
        text = remove(text, ("release",))
    if chosen or "identifiers" in stated:
        text = set_value(text, ("identifiers",), chosen)
    return text


def _new_facts(asked: Asked) -> str:
    """What was left as it is written in the file stays as it is."""
    text, stated = asked.draft.text, asked.draft.stated
    for name in _columns_read(stated):
        low, high, step = (asked.one(f"{key}:{name}") for key in ("low", "high", "step"))
        if (low, high) != _bounds(stated, name):
            what = f"bounds.{name}"
            ends = in_order(what, amount_in(what, low), amount_in(what, high)) if low or high else None
            text = _set(text, ("bounds", name), ends)
        if step != _step(stated, name):
            text = _set(text, ("resolution", name), amount_in(f"resolution.{name}", step) if step else None)
        text = _sourced(asked, text, name, {"bounds": bool(low or high), "resolution": bool(step)})
    return text


def _sourced(asked: Asked, text: str, name: str, there: Mapping[str, bool]) -> str:
    """The one source of a column's facts stands for each of them that is there; a fact that goes takes its own along."""
    said, known = asked.one(f"source:{name}"), _mapping(asked.draft.stated, "source")
    if said and not any(there.values()):
        raise UsageError(f"source:{name}: must be that of a number. Got no number of {name}.")
    for key, fact in there.items():
        place = f"{key}.{name}"
        if not fact or said != _source(asked.draft.stated, name) or place not in known:
            text = with_source(text, place, said if fact else "")
    return text


def _set(text: str, place: tuple[str, str], value: object) -> str:
    """Removed where it is none now."""
    return remove(text, place) if value is None else set_value(text, place, value)
