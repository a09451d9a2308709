"""`attrpriv audit`: the experiments on a release, as a table and in words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from attrpriv.audit.release.result import ReleaseAudit, Tried
from attrpriv.audit.release.run import audit_release
from attrpriv.cli.guard import console
from attrpriv.cli.lines import hang
from attrpriv.errors import UsageError
from attrpriv.session.session import Session

BROKEN = 1
"""The exit code where an experiment found a promise broken."""


def audit_policy(
    path: Path, queries: Sequence[str] | None, mechanism: str, against: Path | None, pairs: Sequence[str]
) -> ReleaseAudit:
    """Plan what the policy releases, and audit it. Reads no row of its table."""
    with Session(policy=path) as session:
        plan = session.plan(queries, mechanism)
        return audit_release(plan, session, records=against, pairs=[read_pair(text) for text in pairs] or None)


def read_pair(text: str) -> tuple[float, float]:
    """Two values of the secret, as in 36:37.4.

    >>> read_pair("36:37.4")
    (36.0, 37.4)
    """
    low, _, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        pass
    raise UsageError(f"pair: must be two values of the secret, as in 36:37.4. Got {text!r}.")


def _where(one: Tried) -> str:
    return "one table" if one.experiment == "noise" else "records" if "records" in one.on else "stated law"


def show(audit: ReleaseAudit) -> None:
    """A line for each experiment, what it means, and what would not have been seen."""
    shown = console()
    table = Table(box=None, pad_edge=False)
    for header in ("experiment", "on", "draws", "right at least", "promised at most", "seen from", "found"):
        left = header in ("experiment", "on", "found")
        table.add_column(header, justify="left" if left else "right", no_wrap=header == "experiment")
    for one in audit.tried:
        shares = ["" if x is None else f"{x:.1%}" for x in (one.right, one.allowed, one.seen)]
        colour = "red" if one.broken else "green"
        table.add_row(
            one.experiment,
            _where(one),
            f"{one.draws:,}",
            *shares,
            f"[{colour}]{'broken' if one.broken else 'nothing'}[/{colour}]",
        )
    if audit.tried:
        shown.print(table)
    for one in audit.tried:
        hang(shown, f"{one.experiment}, {escape(one.on)}: {escape(one.told)}")
    hang(shown, f"[bold]{escape(audit.summary)}[/bold]")
    alarm = f"A correct release is called broken in at most one of {1 / audit.error:,.0f} audits. " if audit.tried else ""
    hang(shown, f"{alarm}No row of the table was read.")
    shown.print("What it would not have seen:")
    for line in audit.would_not_show:
        hang(shown, f"- {escape(line)}")
