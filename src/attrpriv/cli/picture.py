"""`--plot FILE`: whether the picture can be written, before anything is done, and the picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrpriv.errors import UsageError

if TYPE_CHECKING:
    from attrpriv.pictures.marks import Picture


def require_picture(path: Path | None, *, other: Path | None = None) -> None:
    """Before anything is read or written; `other` is a file that the command writes as well."""
    if path is None:
        return
    from attrpriv.pictures.figures import require_ending

    require_ending(path)
    if other is not None and path.resolve() == other.resolve():
        raise UsageError(f"plot: must be a file of its own. Got {path.name}, which is also --out.")


def picture(path: Path | None, made: Callable[[Any], Picture]) -> None:
    """Write what is made of `attrpriv.pictures.subjects`, where a picture is asked for."""
    if path is None:
        return
    from attrpriv.pictures import subjects
    from attrpriv.pictures.figures import save

    save(made(subjects), path)
