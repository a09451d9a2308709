"""Names of a package that load their module when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def attribute(package: str, home: Mapping[str, str], name: str) -> Any:
    """The object that `package` has under this name, from the module that is its home; found once, and kept."""
    if name not in home:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    value = getattr(import_module(home[name]), name)
    setattr(sys.modules[package], name, value)
    return value
