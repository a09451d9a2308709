"""The epsilon slider: error against epsilon, read off a curve that is computed in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrpriv.studio.asked import Asked
from attrpriv.studio.html import Html

if TYPE_CHECKING:
    from attrpriv.studio.plans import Planned


def slider(asked: Asked, planned: Planned) -> Html | None:
    return None


def at_epsilon(asked: Asked) -> dict[str, Any]:
    return {}
