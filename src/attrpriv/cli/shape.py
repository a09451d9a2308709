"""What `attrpriv fit` says about the shape of public records: a table for people, JSON for programs, comments for the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrpriv.assumptions.shape import LIMITS, Findings, summary, worst
from attrpriv.problem.assumption import Assumption

if TYPE_CHECKING:
    from rich.console import Console

_AVOIDED = "auto takes neither transport nor calibrated_weights nor the equalised form of groups on such rows"
_WARNED = "where one of them is asked for by name, and for gaussian, plans carry a warning"


def findings(assumption: Assumption) -> Findings:
    record = assumption.fit_record()
    return () if record is None or record.shape is None else record.shape


def verdict(assumption: Assumption) -> str:
    """Of all of them together: good, bad, unknown or not examined."""
    return worst(findings(assumption))


def shape_json(assumption: Assumption) -> dict[str, Any] | None:
    """None of an assumption that rests on no shape, such as counts."""
    if not assumption.normal_rows:
        return None
    return {
        "verdict": verdict(assumption),
        "limits": dict(LIMITS),
        "findings": [one.to_json() for one in findings(assumption)],
    }


def shape_lines(assumption: Assumption) -> tuple[str, ...]:
    """For the file's comments."""
    if not assumption.normal_rows:
        return ()
    found = findings(assumption)
    return (f"{summary(found or None)}.", *((f"{_AVOIDED};", f"{_WARNED}.") if verdict(assumption) != "good" else ()))


def show_shape(shown: Console, assumption: Assumption) -> None:
    """Each column and pair with its numbers and its verdict."""
    if not assumption.normal_rows:
        return
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    statistics = [name for name in LIMITS if any(name in one.numbers for one in findings(assumption))]
    for column in ("shape", *statistics, "verdict"):
        table.add_column(column, justify="right" if column in LIMITS else "left", overflow="fold")
    for one in findings(assumption):
        numbers = (f"{one.numbers[name]:.3g}" if name in one.numbers else "" for name in statistics)
        table.add_row(escape(one.name), *numbers, escape(one.verdict), style="" if one.good else "yellow")
    shown.print()
    shown.print(table)
    if verdict(assumption) != "good":
        shown.print(f"[yellow]warning[/yellow] {_AVOIDED}; {_WARNED}.")
