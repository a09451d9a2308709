"""The numbers of a policy file and their sources, as fields of a form: read from its text and written into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrpriv.policy.edit import remove, set_value
from attrpriv.problem.reference import Reference
from attrpriv.studio.draft import TODO, Place, leaves, stated, written
from attrpriv.studio.numbers import amount_in, number_in, read_number, several_in

if TYPE_CHECKING:
    from attrpriv.studio.asked import Asked

# Of an assumption or a reference: what is no number, and what a fit says of itself.
_WORDS = frozenset({"kind", "sensitive", "file", "network", "fitted"})
# And what is a part of 1 and not in the unit of a column.
_PARTS = frozenset({"given", "prior", "correlation", "between_correlation", "tolerance", "transition", "start"})

_UNIT = "in the unit of the column"
_SHARE = "such as 40%, or the lowest and the highest that it may be, such as 38%, 42%"
_TOLERANCE = {
    "mean": ("How far averages may be off", "in standard deviations, such as 0.05; 0: they are exact"),
    "sd": ("How far standard deviations may be off", "a share of each, such as 5%; 0: they are exact"),
    "slope": (
        "How far slopes may be off",
        "by how much the published column changes with the hidden one; a share of each, such as 10%; 0: they are exact",
    ),
    "correlation": ("How far correlations may be off", "such as 0.05; 0: they are exact"),
}
LEAST_DENSITY = "each public value is at least so many times as common in this table as in public; above 0, at most 1"


def numbers_in(said: Mapping[str, Any], key: str) -> list[tuple[Place, str, str]]:
    """Every number under a key, its place, what it is and the source that is named for it; TODO is one to be decided."""
    sources = said.get("source")
    known = sources if isinstance(sources, dict) else {}
    found = [(place, value) for place, value in leaves(said.get(key, {}), (key,)) if _is_number(place, value)]
    return [(place, value, str(known.get(source_key(place), ""))) for place, value in found]


def source_key(place: Place) -> str:
    """By which name `source` knows a number; empty: it names none for it."""
    if place[0] != "reference" or place[1] in ("least_density", "shares"):
        return written(place)
    return "" if place[1] in Reference.model_fields else written(("reference", "shares", *place[1:]))


def _is_number(place: Place, value: str) -> bool:
    names = [one for one in place[1:] if isinstance(one, str)]
    if not value or not _WORDS.isdisjoint(names[:1]) or names[-1:] == ["law"]:
        return False
    return all(part == TODO or read_number(part) is not None for part in value.split(", "))


def _is_part(place: Place) -> bool:
    names = [one for one in place[1:] if isinstance(one, str)]
    return names == ["least_density"] if place[0] == "reference" else not _PARTS.isdisjoint(names[:1])


def words_of(place: Place, said: Mapping[str, Any]) -> tuple[str, str]:
    """What a number is and what to put, for who never saw the file; elsewhere its place there."""
    block = said.get(str(place[0]))
    block = block if isinstance(block, dict) else {}
    within, kind = block.get("sensitive", ""), block.get("kind", "gaussian")
    match (place[0] if place[0] == "reference" else kind, *place[1:]):
        case ("gaussian", "mean", column):
            return f"Average of {column}", _UNIT
        case ("gaussian", "sd", column):
            return f"Standard deviation of {column}", f"how far values typically are from their average; {_UNIT}"
        case ("gaussian", "correlation", str(pair)):
            return f"Correlation of {pair.replace('~', ' and ')}", "from -1 to 1; 0: they do not go together"
        case ("groups", "mean", category, column):
            return f"Average of {column} where {within} is {category}", _UNIT
        case ("groups", "sd", category, column):
            return f"Standard deviation of {column} where {within} is {category}", f"within these rows; {_UNIT}"
        case ("counts", "given", event, category):
            return f"Share of rows with {event}, where {within} is {category}", _SHARE
        case ("counts", "prior", category):
            return f"Share of rows where {within} is {category}", _SHARE
        case ("gaussian" | "groups", "tolerance", str(name)) if name in _TOLERANCE:
            return _TOLERANCE[name]
        case ("gaussian" | "groups", "tolerance"):
            return "How far all of these may be off", "0: all are exact"
        case ("reference", "least_density"):
            return "Least density", LEAST_DENSITY
        case ("reference", column, "low" | "high" as end):
            return f"{'Lowest' if end == 'low' else 'Highest'} value of {column}", "a whole number, by the column's definition"
    return written(place), ""


def sourced(asked: Asked, key: str) -> str:
    """The policy's text with the numbers of the form, and their sources."""
    text = asked.draft.text
    for place, value, source in numbers_in(asked.draft.stated, key):
        name = written(place)
        given, said = asked.one(f"value:{name}", value), asked.one(f"source:{name}", source)
        if given and given != value:
            text = set_value(text, place, several_in(name, given, number_in if _is_part(place) else amount_in))
        if said != source:
            text = with_source(text, source_key(place), said)
    return _tidy(text)


def with_source(text: str, key: str, said: str) -> str:
    """The text that names this source for a number, or none."""
    known = stated(text).get("source")
    if said:
        return set_value(text, ("source", key), said)
    return _tidy(remove(text, ("source", key))) if isinstance(known, dict) and key in known else text


def without(text: str, key: str) -> str:
    """The text without a block, and without the sources of its numbers."""
    if key in stated(text):
        text = remove(text, (key,))
    for name in stated(text).get("source") or {}:
        if name == key or name.startswith((f"{key}.", f"{key}[")):
            text = remove(text, ("source", name))
    return _tidy(text)


def _tidy(text: str) -> str:
    said = stated(text)
    return remove(text, ("source",)) if "source" in said and not said["source"] else text
