"""`help` of each public name of the mathematics is enough to use it: every parameter is named, and there is an example."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from operator import attrgetter
from types import ModuleType
from typing import Any

import pytest

import attrpriv as ap

MODULES: Sequence[ModuleType] = (ap.laws, ap.divergences, ap.calibration)
NAMES = [(module, name) for module in MODULES for name in module.__all__ if callable(getattr(module, name))]


def parameters(value: Any) -> list[str]:
    named = inspect.signature(value).parameters
    return [name for name in named if not name.startswith("_") and name not in ("args", "kwargs")]


def unnamed(value: Any) -> list[str]:
    """The parameters that the documentation does not name; a single letter elsewhere in a sentence is no name."""
    told = inspect.getdoc(value) or ""
    return [name for name in parameters(value) if f"`{name}`" not in told and f"`{name}[" not in told]


def shown(value: Any, module: ModuleType) -> bool:
    """Whether there is an example; of what a function gives back, that function has it."""
    told = " ".join((inspect.getdoc(value) or "").split())
    maker = told.partition("Made by `")[2].partition("`")[0]
    return ">>> " in told or (bool(maker) and ">>> " in (inspect.getdoc(attrgetter(maker)(module)) or ""))


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[name for _, name in NAMES])
def test_parameters_and_an_example(module: ModuleType, name: str) -> None:
    value = getattr(module, name)
    assert unnamed(value) == []
    assert shown(value, module)


def test_what_is_missing_is_noticed() -> None:
    def lacking(a: int, b: int) -> int:
        """A sum of a thing and `b`."""
        return a + b

    assert unnamed(lacking) == ["a"]
    assert not shown(lacking, ap.laws)
