"""What a policy file may write that its model does not know: percentages, and the word TODO.

A share may be given in percent, a mean, a sum or a count may not. A starter policy leaves decisions to its owner: a policy that
still says TODO anywhere is refused, also within a condition, because `share(smoker = 'TODO')` is a well-formed secret of which
no table has anything: without this it would hide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from attrpriv.errors import PolicyError

_SHARES = ("share(", "distribution(")


class Percent(float):
    """A number that was written with a percent sign."""


def without_percent(value: Any) -> Any:
    """The policy with plain numbers; `PolicyError` where a secret that is no share is given in percent."""
    if isinstance(value, dict) and isinstance(value.get("protect"), list):
        for place, secret in enumerate(value["protect"]):
            _require_share(place, secret)
    return _plain(value)


def _require_share(place: int, secret: Any) -> None:
    text = secret.get("secret", secret.get("parameter")) if isinstance(secret, dict) else None
    if text is None or str(text).strip().lower().startswith(_SHARES):
        return
    for key, given in secret.items():
        if _has_percent(given):
            raise PolicyError(
                f"protect[{place}].{key}: only a share may be given in percent. Got a percentage for {text}. "
                f"Write a number in the unit of {text}."
            )


def _has_percent(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_percent, value.values()))
    return any(map(_has_percent, value)) if isinstance(value, list) else isinstance(value, Percent)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        # Most of a long policy are mappings of plain numbers.
        kinds = {*map(type, value), *map(type, value.values())}
        return {_plain(key): _plain(item) for key, item in value.items()} if kinds & {Percent, dict, list} else value
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, Percent) else value


_WORD = re.compile(r"(?<!\w)TODO(?!\w)")


def require_decided(value: object) -> None:
    """Refuse a policy in which the word TODO stands where the starter wrote it.

    >>> list(_undecided({"rows": "TODO", "protect": [{"secret": "share(a = 'TODO')"}], "data": "TODO.csv"}))
    ['rows', 'protect[0].secret']
    """
    found = list(_undecided(value))
    if found:
        more = f" ({len(found) - 1} more after this one.)" if len(found) > 1 else ""
        raise PolicyError(f"{found[0]}: must be decided by you. Got TODO. Write your decision instead of the word.{more}")


def _undecided(value: object, path: str = "") -> Iterator[str]:
    """Where the word stands, as a key or as a value; the places of the data and the ledger may be called anything."""
    if isinstance(value, Mapping) and not _of_numbers(value):
        for key, part in value.items():
            inner = f"{path}.{key}" if path else str(key)
            if _says(key):
                yield inner
            elif inner not in ("data", "ledger"):
                yield from _undecided(part, inner)
    elif isinstance(value, list):
        for k, part in enumerate(value):
            yield from _undecided(part, f"{path}[{k}]")
    elif _says(value):
        yield path


def _of_numbers(value: Mapping[object, object]) -> bool:
    """Whether it says nothing but numbers, under keys without the word: most of a long policy are such mappings."""
    return {*map(type, value.values())} <= {int, float} and "TODO" not in " ".join(map(str, value))


def _says(value: object) -> bool:
    return isinstance(value, str) and _WORD.search(value) is not None
