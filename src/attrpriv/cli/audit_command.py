"""`attrpriv audit`, as the command line takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attrpriv.cli.guard import guarded, print_json, working
from attrpriv.cli.options import AsJson, Mechanism, PolicyFile, QueryTexts


def audit(
    policy: PolicyFile,
    queries: QueryTexts = None,
    against: Annotated[
        Path | None, typer.Option("--against", help="Public records, of which tables are made as well (Parquet or CSV).")
    ] = None,
    pair: Annotated[
        list[str] | None,
        typer.Option(
            "--pair", metavar="A:B", help="Two values of the secret to compare; default: the worst pair that is found."
        ),
    ] = None,
    mechanism: Mechanism = "auto",
    as_json: AsJson = False,
) -> None:
    """Try to break the promise of a release, on made-up tables and on public records. Reads no row of the table."""
    from attrpriv.cli import audit as auditing

    with guarded(as_json):
        with working("drawing tables, and trying to tell them apart"):
            found = auditing.audit_policy(policy, queries or None, mechanism, against, pair or ())
        if as_json:
            print_json(found.to_json())
        else:
            auditing.show(found)
        if not found.holds:
            raise typer.Exit(auditing.BROKEN)
