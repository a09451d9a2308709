"""An audit as a picture: right guesses with their intervals, a line for each attack, and where a coin is. Needs matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrpriv.errors import UsageError
from attrpriv.formatting import printable

if TYPE_CHECKING:
    from attrpriv.audit.result import ModelAudit

# Colours that remain distinct in every common form of colour blindness, and in grey (Okabe and Ito).
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")


def picture(audit: ModelAudit, ax: Any) -> Any:
    """Draw on these axes, or on new ones; the axes."""
    axes = _new_axes(len(audit.results)) if ax is None else ax
    kinds = list(dict.fromkeys(one.trained_on for one in audit.results))
    for line, one in enumerate(audit.results):
        colour = _COLOURS[kinds.index(one.trained_on) % len(_COLOURS)]
        reach = [[one.share - one.low], [one.high - one.share]]
        style = {"fmt": "o", "color": colour, "capsize": 3, "mfc": colour if one.chosen else "none"}
        axes.errorbar([one.share], [line], xerr=reach, **style)
    axes.axvline(0.5, color="0.5", linewidth=1, linestyle="--")
    axes.set_yticks(range(len(audit.results)), [printable(f"{one.name}: {one.attack}") for one in audit.results])
    axes.invert_yaxis()
    axes.set_xlim(min(0.35, *(one.low for one in audit.results)) - 0.02, 1.02)
    axes.set_xlabel("share of right guesses (dashed: a coin; filled: chosen on shadows)")
    low, high = (f"{value:g}" for value in audit.values)
    axes.set_title(printable(f"{audit.secret}: {low} or {high}?"))
    return axes


def _new_axes(lines: int) -> Any:
    figure = None
    try:
        from matplotlib import pyplot

        figure = pyplot.figure(figsize=(8, 1.2 + 0.4 * lines), layout="constrained")
    except ImportError:
        pass
    if figure is None:
        raise UsageError("plot: needs the package matplotlib. Install it with pip install 'attrpriv[plots]'.")
    return figure.add_subplot()
