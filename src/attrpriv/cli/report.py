"""`attrpriv report`: the page for whoever must approve a release, written to one file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.markup import escape

from attrpriv.cli.explain import explain_policy
from attrpriv.cli.guard import console
from attrpriv.errors import UsageError
from attrpriv.report.content import Facts, gather, report_html
from attrpriv.session.session import Session


@dataclass(frozen=True)
class WrittenReport:
    """Where the page is, and what it says first."""

    out: Path
    facts: Facts

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": 1,
            "written": str(self.out),
            "ok": self.facts.refusal is None,
            "policy_digest": self.facts.policy.digest,
            "numbers": len(self.facts.numbers),
            "without_source": self.facts.missing,
            "warnings": list(self.facts.warnings),
        }


def write_report(path: Path, out: Path, *, force: bool = False) -> WrittenReport:
    """Plan, and write the page; a policy that nothing can be released under has one, too."""
    require_place(out, path, force=force)
    with Session(policy=path) as session:
        facts = gather(session, explain_policy(path, None).sections)
        text = report_html(facts, path.read_text(encoding="utf-8"), path.name)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError:
        raise UsageError(f"out: must be a place that can be written. Got {str(out)!r}.") from None
    return WrittenReport(out, facts)


def require_place(out: Path, policy: Path, *, force: bool) -> None:
    """Before anything is planned: a page, and no file that somebody needs."""
    if out.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"out: must end in .html. Got {out.name}.")
    if out.exists() and not force:
        raise UsageError(f"out: {out.name} is there already. Use --force to overwrite it, or another name.")
    if not out.absolute().parent.is_dir():
        raise UsageError(f"out: the folder {out.parent} is not there. Make it first.")


def show(written: WrittenReport) -> None:
    shown = console()
    facts = written.facts
    state = "[green]ok[/green]" if facts.refusal is None else "[red]refused[/red]"
    shown.print(
        f"{state} {escape(str(written.out))}: one page, to be read, printed and signed. No row was read.", highlight=False
    )
    if facts.missing:
        shown.print(f"{facts.missing:,} of {len(facts.numbers):,} numbers name no source: add them under source in the policy.")
