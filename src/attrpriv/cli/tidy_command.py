"""`attrpriv tidy`, as the command line takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attrpriv.cli.guard import guarded, print_json, working
from attrpriv.cli.options import AsJson
from attrpriv.errors import UsageError


def tidy(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="A text file: cells between commas, semicolons or tabs.", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="The Parquet file to write; default: DATA with the ending .parquet.")
    ] = None,
    names: Annotated[
        str | None, typer.Option("--names", help="Column names, separated by commas, for a file whose first line is data.")
    ] = None,
    skip: Annotated[int, typer.Option("--skip", min=0, help="Lines to leave out before the table begins.")] = 0,
    missing: Annotated[
        list[str] | None,
        typer.Option("--missing", help="How a missing cell is written, such as ?; can be repeated."),
    ] = None,
    decimal: Annotated[
        str, typer.Option("--decimal", metavar="MARK", help="What stands before decimals: a point or a comma.")
    ] = ".",
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Turn a text file into a Parquet file: names, no spaces around cells, types, missing values. Every row is kept."""
    with guarded(as_json):
        from attrpriv.cli import render
        from attrpriv.engines.tidy import tidy as tidied
        from attrpriv.engines.tidy import with_commas

        target = data.with_suffix(".parquet") if out is None else out
        if target.exists() and not force:
            raise UsageError(f"out: {target.name} exists already. Use --force to overwrite it, or --out to write elsewhere.")
        with working("reading the file"):
            types = tidied(data, target, None if names is None else names.split(","), missing or (), skip=skip, decimal=decimal)
        if as_json:
            print_json({"schema_version": 1, "out": str(target), "columns": types})
        else:
            render.show_tidied(target, types, with_commas(target, types))
