"""An audit of models as a picture: right guesses with their intervals, a line for each attack, and where a coin is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrpriv.pictures.marks import Axis, Dot, Picture, Rule

if TYPE_CHECKING:
    from attrpriv.audit.result import ModelAudit


def picture(audit: ModelAudit) -> Picture:
    """Of all results, in their order; what a model was trained on has a colour, and the chosen attacks are filled."""
    kinds = list(dict.fromkeys(one.trained_on for one in audit.results))
    dots = [
        Dot(one.share, float(line), "", kinds.index(one.trained_on), one.low, one.high, hollow=not one.chosen)
        for line, one in enumerate(audit.results)
    ]
    low, high = (f"{value:g}" for value in audit.values)
    told = "; ".join(f"{one.name}, {one.attack} {one.share:.1%} ({one.low:.1%} to {one.high:.1%})" for one in audit.results)
    return Picture(
        f"{audit.secret}: {low} or {high}? How often guesses were right",
        f"A line for each attack on each kind of model, with its interval; filled: chosen on shadows. {told}.",
        Axis("right guesses", min(0.4, *(one.low for one in audit.results)) - 0.02, 1.02, form="percent"),
        Axis("", names=tuple(f"{one.name}: {one.attack}" for one in audit.results)),
        (Rule(0.5, "a coin", "x"), *dots),
    )
