"""`attrpriv plan POLICY --against public.parquet`, for people: every plan, and what it keeps of its promise on public rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrpriv.cli.guard import console
from attrpriv.cli.lines import fit, hang
from attrpriv.formatting import number, printable

if TYPE_CHECKING:
    from rich.table import Table

    from attrpriv.assumptions.shape import Tried
    from attrpriv.session.against import Trials

_COLOURS = {"held": "green", "broken": "red", "open": "yellow", "nothing found": "yellow"}
_HEADERS = ("promised epsilon", "on these rows", "worst between", "verdict")


def show_trials(trials: Trials) -> None:
    """One table, and a line for what was not tried."""
    show_tried(trials.tried, f"tried on {printable(trials.name)}, {trials.rows:,} rows")


def show_tried(tried: Sequence[Tried], head: str) -> None:
    """The same for trials that are on record."""
    from rich.markup import escape

    shown = console()
    shown.print(f"\n[bold]{escape(head)}[/bold]")
    secrets = list(dict.fromkeys(one.secret for one in tried))
    for query in dict.fromkeys(one.query for one in tried):
        for secret in secrets:
            some = [one for one in tried if (one.query, one.secret) == (query, secret)]
            shown.print(_table(query if len(secrets) == 1 else f"{query}, {secret}", some, shown.width))
    for line in notes_of(tried):
        hang(shown, f"[dim]-[/dim] {escape(printable(line))}")
    shown.print(
        "[dim]if rows are independent draws like those of the public file; the least epsilon at the promised delta.[/dim]"
    )


def notes_of(tried: Sequence[Tried]) -> list[str]:
    """Why plans were not tried, and what to know of those that were; each once, with the mechanisms that it is about."""
    found: dict[str, list[str]] = {}
    for one in tried:
        said = [one.reason] if one.reason and one.verdict != "any rows" else []
        if one.looked is not None and one.values is not None and one.looked < one.values:
            said.append(f"{one.looked:,} of {one.values:,} values of {one.secret} were compared.")
        for line in said:
            names = found.setdefault(line, [])
            names += [] if one.mechanism in names else [one.mechanism]
    return [f"{', '.join(names)}: {line}" for line, names in found.items()]


def _table(head: str, tried: Sequence[Tried], width: int) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    rows = [(one.mechanism, number(one.epsilon), one.shown, one.where, one.verdict) for one in tried]
    for k, header in enumerate((printable(head), *_HEADERS)):
        table.add_column(escape(header), justify="right" if k else "left", overflow="fold")
    for row in rows:
        table.add_row(*row[:-1], f"[{_COLOURS.get(row[-1], 'dim')}]{row[-1]}[/]")
    fit(table, [printable(head), *_HEADERS], rows, width)
    return table
