"""The base of every public value: frozen, strict, and with errors of one line.

What must never change: a value that exists is valid. Numbers are finite; unknown keys are errors; nothing is coerced (`"5"`
is not 5, `true` is not 1); mappings cannot be changed afterwards. `to_json` and `from_json` are inverse.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any, NoReturn, Self, TypeVar
from weakref import ref

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError

from attrpriv.errors import PolicyError
from attrpriv.frozen.known_keys import nearest_key
from attrpriv.frozen.requirements import requirement, shown

V = TypeVar("V")
# What stands before the list of fields in a model's documentation.
FIELDS = "\n\nFields:\n"


class FrozenDict(dict[str, V]):
    """A mapping that stays as it was made, and that can be copied and pickled; read as a dict is, without a call of ours."""

    __slots__ = ("__weakref__", "_equal", "_hash")

    def __init__(self, items: Mapping[str, V]) -> None:
        super().__init__(items)
        self._hash: int | None = None
        self._equal: ref[FrozenDict[V]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)  # a hash is of this process alone

    def _stays(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(f"{type(self).__name__}: stays as it was made.")

    __setitem__ = __delitem__ = __ior__ = _stays
    clear = pop = popitem = setdefault = update = _stays

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FrozenDict):
            return super().__eq__(other)
        if self is other or (self._equal is not None and self._equal() is other):
            return True
        if not super().__eq__(other):
            return False
        self._equal = ref(other)  # a plan looks up the same wide assumption, read twice, hundreds of times
        return True

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:  # type: ignore[override]
        if self._hash is None:  # of the pairs of a wide table it takes a while
            self._hash = hash(frozenset(self.items()))
        return self._hash


Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Positive = Annotated[Finite, Field(gt=0)]
NonNegative = Annotated[Finite, Field(ge=0)]


def _ordered(ends: tuple[float, float]) -> tuple[float, float]:
    if not ends[0] < ends[1]:
        raise ValueError(f"the low end must be below the high end. Got [{ends[0]:g}, {ends[1]:g}].")
    return ends


Range = Annotated[tuple[Finite, Finite], AfterValidator(_ordered)]


def _single(value: object) -> object:
    number = isinstance(value, int | float) and abs(value) <= sys.float_info.max
    if not number and not isinstance(value, str):
        raise ValueError(f"must be text, a finite number, true or false. Got {shown(value)}.")
    return value


# What stands before the types that a value of a column may have, so that an error is about the value and not about one of them.
Single = BeforeValidator(_single)


_SCALARS = frozenset({float, int, bool, str, type(None)})


def _plain(value: Any) -> Any:
    """What a frozen mapping holds, as plain values all the way down."""
    if isinstance(value, Mapping):
        return {key: item if type(item) in _SCALARS else _plain(item) for key, item in value.items()}
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


FrozenMap = Annotated[Mapping[str, V], AfterValidator(FrozenDict), PlainSerializer(_plain, return_type=dict[str, Any])]


class FrozenModel(BaseModel):
    """A frozen value. Constructing one directly from bad input raises `PolicyError`."""

    # Built at first use: a command uses few of the many kinds of evidence and assumption.
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False, defer_build=True)

    def __init__(self, **data: Any) -> None:
        problem = None
        try:
            super().__init__(**data)
        except ValidationError as error:
            problem = one_line(error, type(self))
        if problem is not None:
            raise PolicyError(problem)

    # Tells pydantic that nested values are validated as usual, so that an error inside them keeps its full path.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy, with some values changed and not checked. What follows from values is not copied, and computed anew."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Its documentation lists what is said of its fields, so that `help` tells what an editor's schema tells."""
        told = [f"    {name}: {one.description}." for name, one in cls.__pydantic_fields__.items() if one.description]
        if told and "__doc__" in vars(cls) and cls.__doc__:
            cls.__doc__ = f"{inspect.cleandoc(cls.__doc__)}{FIELDS}" + "\n".join(told)

    def to_json(self) -> dict[str, Any]:
        """JSON-able form; `from_json` reads it back to an equal value."""
        dumped: dict[str, Any] = self.model_dump(mode="json")
        return dumped

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | str) -> Self:
        """Read what `to_json` wrote, given as a mapping or as text."""
        return cls.checked(json.loads(value) if isinstance(value, str) else dict(value))

    @classmethod
    def checked(cls, value: object) -> Self:
        """Validate, with one line of `PolicyError` instead of pydantic's several."""
        problem = None
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            problem = one_line(error, cls)
        raise PolicyError(problem)


def one_line(error: ValidationError, model: type[BaseModel]) -> str:
    """Parameter, requirement and what was received, for the first thing that is wrong; an unknown key comes first."""
    found = error.errors(include_url=False)
    # A list whose entries are wrong is also "too short": that says nothing more.
    details = [d for d in found if d["type"] != "too_short" or not any(_inside(other["loc"], d["loc"]) for other in found)]
    # A key that is missing may be there, misspelt.
    first = min(details, key=lambda detail: detail["type"] != "extra_forbidden")
    near = nearest_key(model, first["loc"]) if first["type"] == "extra_forbidden" else None
    details = [d for d in details if near is None or (d["type"], d["loc"]) != ("missing", (*first["loc"][:-1], near))]
    where = _path(first["loc"][:-1] if first["type"] == "invalid_key" else first["loc"]) or error.title.lower()
    more = f" ({len(details) - 1} more after this one.)" if len(details) > 1 else ""
    return f"{where}: {_unknown(near) if first['type'] == 'extra_forbidden' else requirement(first)}{more}"


def _unknown(near: str | None) -> str:
    if near is None:
        return "unknown key. Remove it; `attrpriv schema` lists the keys."
    return f"unknown key. Did you mean {near}? `attrpriv schema` lists the keys."


def _inside(location: tuple[int | str, ...], outer: tuple[int | str, ...]) -> bool:
    return len(location) > len(outer) and location[: len(outer)] == outer


def _path(location: tuple[int | str, ...]) -> str:
    """Where it is, as one would write it; of a key that is no text, the mapping that it is in."""
    path = ""
    for part in location[:-2] if location[-1:] == ("[key]",) else location:
        if isinstance(part, str) and part.startswith("<") and part.endswith(">"):
            continue  # the tag of a union's branch, not a key
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path
