"""What installed packages bring along: methods and assumptions of others, by entry points of the group `attrpriv.methods`.

An entry point is a `Method`, the class of an assumption (which registers itself when it is loaded), or a function that
registers some. They are loaded once, and only where a method or a kind is looked for that is not ours.
What must never change: one that cannot be loaded is an error that names it. A plan that silently lacks a method is not chosen
from all of them.
"""

from __future__ import annotations

from functools import cache

from attrpriv.errors import UsageError

ENTRY_POINTS = "attrpriv.methods"


@cache
def installed() -> tuple[object, ...]:
    """What the entry points are; functions among them have been called."""
    from importlib.metadata import entry_points

    found = []
    for point in entry_points(group=ENTRY_POINTS):
        reason = None
        try:
            found.append(point.load())
            if callable(found[-1]) and not isinstance(found[-1], type):
                found[-1]()
        except Exception as error:  # whatever a foreign module does
            reason = f"{type(error).__name__}: {error}"
        if reason is not None:
            raise UsageError(
                f"entry point {point.name} = {point.value}: must be loaded for methods of other packages. Got {reason}. "
                "Repair or uninstall its package."
            )
    return tuple(found)


def require_free(what: str, kind: str, cls: type, owner: type | None) -> None:
    """A kind is one class's; the same one may be defined again, as where its module is loaded again."""
    if owner is not None and (owner.__module__, owner.__qualname__) != (cls.__module__, cls.__qualname__):
        raise UsageError(
            f"{what} {cls.__qualname__}: must have a kind of its own. Got {kind}, which is {owner.__qualname__}'s."
        )
