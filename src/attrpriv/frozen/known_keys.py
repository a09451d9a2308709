"""Which keys a model knows at some place in it, so that a misspelt one can be told apart from a missing one.

What must never change: only what is asked is a function of the models; nothing of the value is looked at but the key itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel


def nearest_key(model: type[BaseModel], location: tuple[int | str, ...]) -> str | None:
    """The known key that is spelt most like the last part of a location; None where none is near."""
    *outer, key = location
    models = [model]
    for part in outer:
        if isinstance(part, str) and not _is_tag(part):
            models = [inner for one in models for inner in _inner(one, part)] or models
        elif isinstance(part, str) and part != "<>":
            models = [one for one in models if _kind(one) in (None, part[1:-1])]
    keys = dict.fromkeys(name for one in models for name in _keys(one))
    return next(iter(get_close_matches(str(key), list(keys), n=1, cutoff=0.6)), None)


def _is_tag(part: str) -> bool:
    """The branch of a union, not a key."""
    return part.startswith("<") and part.endswith(">")


def _keys(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield field.alias or name


def _kind(model: type[BaseModel]) -> Any:
    field = model.model_fields.get("kind")
    return None if field is None else field.default


def _inner(model: type[BaseModel], key: str) -> list[type[BaseModel]]:
    """The models that may stand under a key."""
    field = next((field for name, field in model.model_fields.items() if key in (name, field.alias)), None)
    return [] if field is None else list(_models(field.annotation))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        yield from vars(annotation).get("kinds", {}).values()  # of a base that classes register with, all of them
    for part in get_args(annotation):
        yield from _models(part)
