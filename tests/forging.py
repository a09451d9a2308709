"""A record as JSON, with one place of it changed: what tests of forged plans, proofs and entries share."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """The places of single values, of long lists the first and the last."""
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from leaves(one, (*path, key))
    elif isinstance(value, list) and value:
        for k in sorted({0, len(value) - 1}):
            yield from leaves(value[k], (*path, k))
    else:
        yield path


def changed(value: Any) -> list[Any]:
    """Other values of the same type, and none at all."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value * 1.001 if value else 1e-3, 0 if value else 2]
    if isinstance(value, str):
        return [value + "x", ""]
    return [1.0, [0.0, 1.0], "x"] if value is None else [None]


def with_value(told: Any, path: Path, value: Any) -> Any:
    forged = copy.deepcopy(told)
    inner = forged
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return forged


def place(path: Path) -> str:
    return ".".join(step for step in path if isinstance(step, str))
