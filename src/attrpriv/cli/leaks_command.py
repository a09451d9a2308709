"""`attrpriv leaks`, as the command line takes it: a table, a heat map, JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attrpriv.cli.guard import console, guarded, number, print_json, working
from attrpriv.cli.lines import hang
from attrpriv.cli.options import AsJson

if TYPE_CHECKING:
    from attrpriv.audit.leaks import LeakageMap

_SHOWN = 20


def leaks(
    policy: Annotated[
        Path | None,
        typer.Argument(metavar="[POLICY]", help="The policy file (YAML); without one, give --public.", show_default=False),
    ] = None,
    public: Annotated[Path | None, typer.Option("--public", help="Public records: a Parquet or CSV file.")] = None,
    rows: Annotated[int | None, typer.Option("--rows", help="Rows of the table to be protected.")] = None,
    distance: Annotated[
        float,
        typer.Option(
            "--distance",
            parser=number("distance"),
            metavar="SHARE",
            help="How far apart two values are, in standard deviations of a row.",
        ),
    ] = 0.1,
    plot: Annotated[Path | None, typer.Option("--plot", help="A heat map: .svg, .png or .pdf.")] = None,
    as_json: AsJson = False,
) -> None:
    """Which statistics give away which properties, from public records or the assumption. Reads no row of the table."""
    with guarded(as_json):
        from attrpriv.audit.leaks import leaks as find
        from attrpriv.pictures.figures import require_ending, save
        from attrpriv.policy import Policy

        if plot is not None:
            require_ending(plot)
        with working("comparing every statistic with every property"):
            found = find(public, None if policy is None else Policy.load(policy), rows=rows, distance=distance)
        if plot is not None:
            save(found.picture, plot)
        if as_json:
            print_json(found.to_json())
        else:
            show(found)


def show(found: LeakageMap) -> None:
    """The largest leaks, what the number means, and columns that are functions of others."""
    from rich.markup import escape
    from rich.table import Table

    from attrpriv.formatting import number as shown_number
    from attrpriv.formatting import percent

    shown = console()
    table = Table(box=None, pad_edge=False)
    for header in ("statistic", "gives away", "values apart by", "right guesses"):
        table.add_column(header, justify="left" if header in ("statistic", "gives away") else "right")
    for one in found.largest[:_SHOWN]:
        table.add_row(escape(one.statistic), escape(one.property), shown_number(one.apart, 3), percent(one.right))
    shown.print(table)
    left = len(found.largest) - _SHOWN
    if left > 0:
        shown.print(f"and {left:,} more; --json has all.")
    hang(shown, escape(f"{found.meaning} From {found.source}; no row of a private table was read."))
    for line in found.flags:
        hang(shown, f"[yellow]note[/yellow] {escape(line)}")
