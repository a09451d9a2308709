"""The commands. Each one is a few lines over `Session`; `guarded` turns errors into one line and an exit code.

What must never change: with `--json` stdout holds one JSON document and nothing else; an unexpected error prints its type and
no message, because an engine's message can quote a value of the table.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from attrpriv import __version__
from attrpriv.errors import AttrprivError

app = typer.Typer(
    name="attrpriv",
    help="Release statistics of a table while hiding properties of its sensitive columns.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

PolicyFile = Annotated[Path, typer.Argument(metavar="POLICY", help="The policy file (YAML).", show_default=False)]
QueryTexts = Annotated[
    list[str] | None,
    typer.Argument(metavar="QUERY", help="avg(column), sum(x) / sum(y), count(*) ...; default: the policy's release."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Mechanism = Annotated[str, typer.Option("--mechanism", help="auto, or the name of a mechanism.")]
By = Annotated[str, typer.Option("--by", help="What auto compares: rmse, mean_absolute or alpha95 (the 95% bound).")]
Spend = Annotated[
    float | None,
    typer.Option("--spend", help="Share of what is left of the budget; default: fair to what the policy lists under release."),
]
WantedError = Annotated[
    float | None, typer.Option("--error", help="The least epsilon, up to the policy's, that reaches this error.")
]

# What a shell says of a command that Ctrl-C ended.
STOPPED = 130


def clock() -> datetime:
    """The time that goes into the ledger; replaced in tests."""
    return datetime.now(UTC)


@contextmanager
def guarded(as_json: bool) -> Iterator[None]:
    """One line on stderr (and a JSON document on stdout if asked) for whatever goes wrong, and its exit code."""
    try:
        yield
        sys.stdout.flush()
        return
    except AttrprivError as error:
        kind, message, code = error.kind, str(error), error.exit_code
    except (BrokenPipeError, typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt:
        kind, code = "stopped", STOPPED
        message = "stopped. What was released before that, if anything, is in the ledger."
    except Exception as error:  # its message may quote the table
        kind, code = "unexpected", 1
        message = f"unexpected {type(error).__name__}; nothing was released. Please report it with the command you used."
    try:
        if as_json:
            _print_json({"schema_version": 1, "error": {"kind": kind, "message": message, "exit_code": code}})
        sys.stdout.flush()
    except OSError:
        _give_up_stdout()
    from attrpriv.cli import render

    render.complain(message)
    raise typer.Exit(code)


class _NotShownError(AttrprivError):
    """The answer exists and the ledger holds it, but it could not be printed."""

    kind = "not_shown"


@contextmanager
def showing(number: int) -> Iterator[None]:
    """From here on the answer is released: what fails now must not be reported as if nothing had been."""
    try:
        yield
        sys.stdout.flush()
        return
    except Exception as error:
        problem = type(error).__name__
    raise _NotShownError(
        f"the answer was released but could not be printed ({problem}). Entry {number} of the ledger holds it."
    )


def _give_up_stdout() -> None:
    """A full disk or a closed pipe: Python would try again when it ends, and complain in its own words."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends


def _print_json(document: Any) -> None:
    readable = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False, ensure_ascii=not readable) + "\n")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"attrpriv {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Release statistics of a table while hiding properties of its sensitive columns."""


@app.command()
def init(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A Parquet or CSV file, a pattern of files, postgresql://.../...?table=name or spark:name.",
            show_default=False,
        ),
    ],
    template: Annotated[
        str, typer.Option("--template", help="school (hide a mean), counts, groups or hospital (a share), survey (a mix).")
    ] = "school",
    out: Annotated[Path | None, typer.Option("--out", help="Where to write; default: DATA with the ending .yaml.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a starter policy: column names and types, no statistic."""
    from attrpriv.cli import render
    from attrpriv.cli.starter import write_starter

    with guarded(as_json):
        written = write_starter(data, out, force, template)
        if as_json:
            _print_json(written.to_json())
        else:
            render.show_starter(written)


@app.command()
def fit(
    policy: PolicyFile,
    public: Annotated[Path | None, typer.Option("--public", help="Public records: a Parquet or CSV file.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The assumption file to write (YAML).")] = None,
    confidence: Annotated[float | None, typer.Option("--confidence", help="Of the whole box; default: 1 - delta/2.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write an assumption from public records, with its confidence. Never from the private table."""
    from attrpriv.cli import fit as fitting
    from attrpriv.cli import render
    from attrpriv.errors import UsageError

    with guarded(as_json):
        if public is None or out is None:
            raise UsageError("public, out: both are needed, as in --public census.parquet --out census.assumption.yaml.")
        with render.working("reading the public records"):
            written = fitting.fit_policy(policy, public, out, confidence, force=force)
        if as_json:
            _print_json(written.to_json())
        else:
            fitting.show(written)


@app.command()
def check(policy: PolicyFile, queries: QueryTexts = None, as_json: AsJson = False) -> None:
    """Is the policy complete, consistent and provable? Reads no row."""
    from attrpriv.cli import render
    from attrpriv.cli.checks import check_policy

    with guarded(as_json):
        found = check_policy(policy, queries or None)
        if as_json:
            _print_json(found.to_json())
        else:
            render.show_check(found)
        if found.refusal is not None:
            render.complain(str(found.refusal))
            raise typer.Exit(found.refusal.exit_code)


@app.command()
def plan(
    policy: PolicyFile,
    queries: QueryTexts = None,
    mechanism: Mechanism = "auto",
    by: By = "rmse",
    error: WantedError = None,
    spend: Spend = None,
    as_json: AsJson = False,
) -> None:
    """Mechanisms side by side, with their expected error. Reads no row."""
    from attrpriv.cli import render
    from attrpriv.cli.checks import missing_table
    from attrpriv.mechanisms.registry import measure
    from attrpriv.session import Session

    with guarded(as_json):
        session = Session(policy=policy)
        ranked = session.ranked(queries or None, measure(by), mechanism=mechanism, error=error, spend=spend)
        if as_json:
            _print_json(ranked.entries())
        else:
            render.note(missing_table(session.policy))
            render.show_ranked(ranked, session.ledger_note(queries or None, ranked.plan, spend), error)
        if ranked.refused is not None:
            refusal = ranked.refused.error()
            render.complain(str(refusal))
            raise typer.Exit(refusal.exit_code)


@app.command()
def release(
    policy: PolicyFile,
    queries: QueryTexts = None,
    mechanism: Mechanism = "auto",
    by: By = "rmse",
    error: WantedError = None,
    spend: Spend = None,
    as_json: AsJson = False,
) -> None:
    """Answer the queries together, on top of everything released so far, and record it in the ledger."""
    from attrpriv.cli import render
    from attrpriv.mechanisms.registry import measure
    from attrpriv.session import Session

    with guarded(as_json), Session(policy=policy, clock=lambda: clock()) as session:
        with render.working("planning, then reading the table once"):
            released = session.release(queries or None, mechanism, by=measure(by), error=error, spend=spend)
        with showing(released.entry.number):
            if as_json:
                _print_json(released.to_json())
            else:
                render.show_release(released)


@app.command()
def view(
    policy: PolicyFile,
    out: Annotated[Path | None, typer.Option("--out", help="The Parquet file to write.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    low_memory: Annotated[bool, typer.Option("--low-memory", help="Slower, in less than half the memory.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write rows to compute on whose composition says nothing about the secret (real records: not to publish)."""
    from attrpriv.cli import render
    from attrpriv.errors import UsageError
    from attrpriv.session import Session

    with guarded(as_json), Session(policy=policy, clock=lambda: clock()) as session:
        if out is None:
            raise UsageError("out: must name the Parquet file to write, as in --out rows.parquet. Got none.")
        with render.working("drawing the view"):
            plan = session.view(out, force=force, low_memory=low_memory)
        if as_json:
            _print_json({"schema_version": 1, "out": str(out), "rows": plan.rows, "plan": plan.to_json()})
        else:
            render.show_view(plan, out)


@app.command()
def explain(policy: PolicyFile, queries: QueryTexts = None, as_json: AsJson = False) -> None:
    """Each line of the policy as a sentence: what is hidden, from whom, who could still learn what. Reads no row."""
    from attrpriv.cli import render
    from attrpriv.cli.explain import explain_policy

    with guarded(as_json):
        told = explain_policy(policy, queries or None)
        if as_json:
            _print_json(told.to_json())
        else:
            render.show_explanation(told)


@app.command()
def ledger(
    policy: Annotated[
        Path, typer.Argument(metavar="POLICY", help="The policy file, or a record that --json printed.", show_default=False)
    ],
    verify: Annotated[bool, typer.Option("--verify", help="Check every entry and every link.")] = False,
    head: Annotated[
        str | None, typer.Option("--head", help="With --verify: a head digest you kept, to find a cut end.")
    ] = None,
    recheck: Annotated[bool, typer.Option("--recheck", help="Recompute every certificate, with no data.")] = False,
    as_json: AsJson = False,
) -> None:
    """What was released about this table so far, and what is left of its budget."""
    from attrpriv.cli.recorded import Recorded, show

    with guarded(as_json):
        found = Recorded.read(policy, verify=verify, head=head, recheck=recheck)
        if as_json:
            _print_json(found.to_json())
        else:
            show(found)


@app.command()
def schema(as_json: AsJson = False) -> None:
    """The JSON Schema of a policy file, for editors (JSON in any case)."""
    from attrpriv.policy import Policy

    with guarded(as_json=True):
        _print_json(Policy.schema_document())


@app.command()
def demo(
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Keep the demo's table, policy and ledger in this new directory.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """A school publishes an average weight and hides its families' mean income."""
    from attrpriv.cli import render
    from attrpriv.demo import run_demo

    with guarded(as_json):
        with render.working("making a table of 10,000 students"):
            shown = run_demo(directory)
        if as_json:
            _print_json(shown.to_json())
        else:
            render.show_demo(shown)


def main() -> None:
    """The entry point of the `attrpriv` command."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that the terminal cannot show must not cost the answer
        sys.stdout.reconfigure(errors="backslashreplace")
    app()
