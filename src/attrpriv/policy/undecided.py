"""What a starter policy left to its owner: a policy that still says TODO anywhere is refused, also within a condition.

`share(smoker = 'TODO')` is a well-formed secret, of which no table has anything: without this it would hide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attrpriv.errors import PolicyError

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
