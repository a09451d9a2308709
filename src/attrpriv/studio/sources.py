"""The numbers of a policy file and their sources, as fields of a form: read from its text and written into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrpriv.policy.edit import remove, set_value
from attrpriv.studio.draft import TODO, Place, leaves, stated, written
from attrpriv.studio.numbers import amount_in, number_in, read_number, several_in

if TYPE_CHECKING:
    from attrpriv.studio.asked import Asked

# Of an assumption or a reference: what is no number, and what a fit says of itself.
_WORDS = frozenset({"kind", "sensitive", "file", "network", "fitted"})
# And what is a part of 1 and not in the unit of a column.
_PARTS = frozenset({"given", "prior", "correlation", "between_correlation", "tolerance", "transition", "start"})


def numbers_in(said: Mapping[str, Any], key: str) -> list[tuple[Place, str, str]]:
    """Every number under a key, its place, what it is and the source that is named for it; TODO is one to be decided."""
    sources = said.get("source")
    known = sources if isinstance(sources, dict) else {}
    found = [(place, value) for place, value in leaves(said.get(key, {}), (key,)) if _is_number(place, value)]
    return [(place, value, str(known.get(written(place), ""))) for place, value in found]


def _is_number(place: Place, value: str) -> bool:
    names = [one for one in place[1:] if isinstance(one, str)]
    if not value or not _WORDS.isdisjoint(names[:1]) or names[-1:] == ["law"]:
        return False
    return all(part == TODO or read_number(part) is not None for part in value.split(", "))


def _is_part(place: Place) -> bool:
    names = [one for one in place[1:] if isinstance(one, str)]
    return names == ["least_density"] if place[0] == "reference" else not _PARTS.isdisjoint(names[:1])


def sourced(asked: Asked, key: str) -> str:
    """The policy's text with the numbers of the form, and their sources."""
    text = asked.draft.text
    for place, value, source in numbers_in(asked.draft.stated, key):
        name = written(place)
        given, said = asked.one(f"value:{name}", value), asked.one(f"source:{name}", source)
        if given and given != value:
            text = set_value(text, place, several_in(name, given, number_in if _is_part(place) else amount_in))
        if said != source:
            text = set_value(text, ("source", name), said) if said else remove(text, ("source", name))
    return _tidy(text)


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
