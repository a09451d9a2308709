"""Where the numbers of a policy come from: the places that state one, and the source that `source:` names for each.

A key of `source` is a place as error messages write it, `assume.sd.income` or `bounds.weight`; one that stands above others,
`assume.sd`, is for all below it that have none of their own. What must never change: no promise depends on a source, so it is
no part of a policy's digest; a key that names no number is refused, because its number would go without a source unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from attrpriv.errors import PolicyError

if TYPE_CHECKING:
    from attrpriv.policy.models import Policy
    from attrpriv.problem.assumption import Assumption

# Facts from outside of the table. What is protected, and at what budget, is a decision.
_FACTS = ("bounds", "resolution", "ranges", "sizes", "composition", "missing", "known_rows")
# Of a reference the rest is a decision, or counted from its file.
_REFERENCE_FACTS = ("least_density", "shares")
# Of an assumption: what names it, what `attrpriv fit` says of itself, and which further laws are drawn from a public file.
_NO_FACTS = ("kind", "schema_version", "fitted", "resamples")


@dataclass(frozen=True)
class StatedNumber:
    """One number, or one interval, that a policy states, and where it comes from; None: nobody says."""

    place: str
    value: str
    source: str | None


def stated_numbers(policy: Policy) -> tuple[StatedNumber, ...]:
    """Every number that the promise or the errors rest on, in the order of the policy."""
    found: list[tuple[str, str, str | None]] = [(place, value, None) for place, value in _facts(policy)]
    for place, member in _members(policy):
        files = member.public_tables() if member.lists_tables else {}
        named = [(f"{place}.{key}", f"{one.rows:,} public rows", f"digest {one.digest[:16]}") for key, one in files.items()]
        fitted = None if files else _fitted(member)
        left_out = {*_NO_FACTS, *(key.partition("[")[0] for key in files)}
        told = member.model_dump(mode="json", exclude_unset=True, exclude=left_out)
        found += [*named, *((where, value, fitted) for where, value in _leaves(told, place))]
    return tuple(StatedNumber(place, value, source_of(policy.source, place) or fit) for place, value, fit in found)


def source_of(sources: Mapping[str, str], place: str) -> str | None:
    """The source that is named for a place, or for the nearest one above it."""
    named = [key for key in sources if _holds(key, place)]
    return sources[max(named, key=len)] if named else None


def require_sourced(policy: Policy) -> None:
    """An error where a key of `source` names no number that is stated, or says nothing."""
    problem = _wrong(policy)
    if problem is not None:
        raise PolicyError(problem)


def _wrong(policy: Policy) -> str | None:
    places = [one.place for one in stated_numbers(policy)]
    for key, text in policy.source.items():
        if not any(_holds(key, place) for place in places):
            near = next(iter(get_close_matches(key, places, n=1)), None)
            such = f"such as {near}" if near else f"one of {', '.join(places[:3])}" if places else "of which there is none"
            return f"source: must name a number that this policy states, {such}. Got {key}."
        if not text.strip():
            return f"source: must say where {key} comes from. Got nothing. Leave it out to have it shown as missing."
    return None


def _holds(key: str, place: str) -> bool:
    return place == key or place.startswith((f"{key}.", f"{key}["))


def _facts(policy: Policy) -> Iterator[tuple[str, str]]:
    told = policy.to_json()
    for name in _FACTS:
        if name in policy.model_fields_set and told[name]:
            yield from _leaves(told[name], name)
    for name in () if policy.reference is None else _REFERENCE_FACTS:
        yield from _leaves(told["reference"][name], f"reference.{name}")


def _members(policy: Policy) -> list[tuple[str, Assumption]]:
    several = len(policy.assume) > 1
    return [(f"assume[{place}]" if several else "assume", member) for place, member in enumerate(policy.assume)]


def _fitted(member: Assumption) -> str | None:
    records = member.public_records()
    return None if records is None else f"fitted on {records.rows:,} public records, digest {records.digest[:16]}"


def _leaves(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Numbers, and lists of numbers as one; words are no numbers."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{place}.{key}")
    elif isinstance(value, list | tuple):
        if value and all(_number(item) for item in value):
            yield place, f"[{', '.join(map(_written, value))}]"
        else:
            for k, item in enumerate(value):
                yield from _leaves(item, f"{place}[{k}]")
    elif _number(value):
        yield place, _written(value)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _written(value: float) -> str:
    return f"{value:,.10g}"
