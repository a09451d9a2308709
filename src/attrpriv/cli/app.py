"""The commands. Each one is a few lines over `Session`; `guarded` turns errors into one line and an exit code.

What must never change: with `--json` stdout holds one JSON document and nothing else.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from attrpriv import __version__
from attrpriv.cli.audit_command import audit
from attrpriv.cli.guard import Commands, guarded, number, print_csv, print_json, showing, working
from attrpriv.cli.leaks_command import leaks
from attrpriv.cli.options import AsCsv, AsJson, By, Mechanism, Plot, PolicyFile, QueryTexts, Spend, WantedError
from attrpriv.cli.picture import picture, require_picture
from attrpriv.cli.plan_command import plan
from attrpriv.cli.studio_command import studio
from attrpriv.cli.tidy_command import tidy
from attrpriv.errors import UsageError

if TYPE_CHECKING:
    from attrpriv.methods.base.accuracy import Measure

app = typer.Typer(
    name="attrpriv",
    cls=Commands,
    help="Release statistics of a table while hiding properties of its sensitive columns.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def clock() -> datetime:
    """The time that goes into the ledger; replaced in tests."""
    return datetime.now(UTC)


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
        str | None,
        typer.Option(
            "--template", help="school (hide a mean), counts, groups or hospital (a share), survey (a mix), columns (all)."
        ),
    ] = None,
    secret: Annotated[
        list[str] | None, typer.Option("--secret", metavar="TEXT", help="What to hide: mean(income), share(smoker = 'yes') ...")
    ] = None,
    release: Annotated[list[str] | None, typer.Option("--release", help="What to publish; may be given several times.")] = None,
    public: Annotated[
        Path | None, typer.Option("--public", help="Public records, never made from this table: a Parquet or CSV file.")
    ] = None,
    between: Annotated[str | None, typer.Option("--between", metavar="LOW,HIGH", help="The range of the secret.")] = None,
    within: Annotated[
        str | None, typer.Option("--within", help="How far apart indistinguishable values may be; all: the whole range.")
    ] = None,
    least_density: Annotated[
        str | None,
        typer.Option(
            "--least-density", metavar="R", help="For columns(...): the least ratio of a value's share here to its public one."
        ),
    ] = None,
    rows: Annotated[int | None, typer.Option("--rows", help="The number of rows, where the file does not state it.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Where to write; default: DATA with the ending .yaml.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a policy for a table, by asking in a terminal or from options. Reads column names and types, no row."""
    from attrpriv.cli import render
    from attrpriv.cli.checks import check_policy
    from attrpriv.cli.conversation import asks, in_terminal
    from attrpriv.cli.decisions import Decisions, only_one
    from attrpriv.cli.starter import place_for, write_starter

    with guarded(as_json):
        decisions = Decisions(rows, between, within, least_density, public)
        releases: tuple[str, ...] = tuple(release or ())
        hidden = only_one(secret or ())
        if not (as_json or template or secret or releases or decisions != Decisions()) and asks():
            place_for(data, out, force)  # said before the first question rather than after the last
            told = in_terminal(data)
            template, hidden, releases, decisions = told.template, told.secret, told.releases, told.decisions
        written = write_starter(data, out, force, template, hidden, releases, decisions)
        if as_json:
            print_json(written.to_json())
        else:
            render.show_starter(written, None if written.fitted is None else check_policy(written.path, None))


app.command()(tidy)


@app.command()
def fit(
    policy: PolicyFile,
    public: Annotated[Path | None, typer.Option("--public", help="Public records: a Parquet or CSV file.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The assumption file to write (YAML); required.")] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            "--confidence", parser=number("confidence"), metavar="C", help="Of all intervals together; default: 1 - delta/2."
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="A picture of the records' shape: .svg, .png or .pdf.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write an assumption from public records, with its confidence. Never from the private table."""
    from attrpriv.cli import fit as fitting

    with guarded(as_json):
        if public is None or out is None:
            raise UsageError("public, out: both are needed, as in --public census.parquet --out census.assumption.yaml.")
        with working("reading the public records, and trying plans on them"):
            written = fitting.fit_policy(policy, public, out, confidence, force=force, plot=plot)
        if as_json:
            print_json(written.to_json())
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
            print_json(found.to_json())
        else:
            render.show_check(found)
        if found.refusal is not None:
            render.complain(str(found.refusal), found.refusal.ways)
            raise typer.Exit(found.refusal.exit_code)


app.command()(plan)


@app.command()
def release(
    policy: PolicyFile,
    queries: QueryTexts = None,
    mechanism: Mechanism = "auto",
    by: By = "rmse",
    error: WantedError = None,
    spend: Spend = None,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """Answer the queries together, on top of everything released so far, and record it in the ledger."""
    from attrpriv.cli import render
    from attrpriv.session.session import Session

    with guarded(as_json), Session(policy=policy, clock=lambda: clock()) as session:
        with working("planning, then reading the table once"):
            released = session.release(queries or None, mechanism, by=cast("Measure", by), error=error, spend=spend)
        with showing(released.entry.number):
            if as_json:
                print_json(released.to_json())
            elif as_csv:
                answers = released.to_frame("arrow")
                print_csv(answers.column_names, answers.to_pylist())
            else:
                render.show_release(released)


@app.command()
def view(
    policy: PolicyFile,
    out: Annotated[Path | None, typer.Option("--out", help="The Parquet file to write; required.")] = None,
    split: Annotated[
        str | None,
        typer.Option("--split", metavar="PARTS", help="Disjoint parts, a file each, as in train=80%,test=20%."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    low_memory: Annotated[bool, typer.Option("--low-memory", help="Slower, in less than half the memory.")] = False,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Write rows to compute on whose composition says nothing about the secret (real records: not to publish)."""
    from attrpriv.cli import render
    from attrpriv.cli.view_parts import read_parts, written_view
    from attrpriv.session.session import Session

    with guarded(as_json), Session(policy=policy, clock=lambda: clock()) as session:
        if out is None:
            raise UsageError("out: must name the Parquet file to write, as in --out rows.parquet. Got none.")
        require_picture(plot, other=out)
        with working("drawing the view"):
            shares = None if split is None else read_parts(split)
            plan = session.view(out, split=shares, force=force, low_memory=low_memory)
        written = written_view(plan, out, shares)
        picture(plot, lambda subjects: subjects.kept(plan))
        if as_json:
            print_json(written.to_json())
        else:
            render.show_view(plan, written)


@app.command()
def explain(policy: PolicyFile, queries: QueryTexts = None, as_json: AsJson = False) -> None:
    """Each line of the policy as a sentence: what is hidden, from whom, who could still learn what. Reads no row."""
    from attrpriv.cli import render
    from attrpriv.cli.explain import explain_policy

    with guarded(as_json):
        told = explain_policy(policy, queries or None)
        if as_json:
            print_json(told.to_json())
        else:
            render.show_explanation(told)


app.command()(audit)
app.command()(leaks)
app.command()(studio)


@app.command()
def report(
    policy: PolicyFile,
    out: Annotated[Path | None, typer.Option("--out", help="The HTML file to write; required.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write one page for the person who must approve the release: what could be learnt, what it rests on. Reads no row."""
    from attrpriv.cli.report import show, write_report

    with guarded(as_json):
        if out is None:
            raise UsageError("out: must name the file to write, as in --out report.html. Got none.")
        with working("planning and drawing"):
            written = write_report(policy, out, force=force)
        if as_json:
            print_json(written.to_json())
        else:
            show(written)


@app.command()
def ledger(
    policy: Annotated[
        Path, typer.Argument(metavar="POLICY", help="The policy file, or a record that --json printed.", show_default=False)
    ],
    verify: Annotated[bool, typer.Option("--verify", help="Check every entry and every link.")] = False,
    head: Annotated[
        str | None, typer.Option("--head", help="With --verify: a head digest you kept, to notice that the end is missing.")
    ] = None,
    recheck: Annotated[bool, typer.Option("--recheck", help="Recompute every certificate, with no data.")] = False,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """What was released about this table so far, and what is left of its budget."""
    from attrpriv.cli.recorded import Recorded, show

    with guarded(as_json):
        require_picture(plot)
        found = Recorded.read(policy, verify=verify, head=head, recheck=recheck)
        picture(plot, lambda subjects: subjects.budget(found.left()))
        if as_json:
            print_json(found.to_json())
        else:
            show(found)


@app.command()
def schema(as_json: AsJson = False) -> None:
    """The JSON Schema of a policy file, for editors. Always JSON."""
    from attrpriv.policy import Policy

    with guarded(as_json=True):
        print_json(Policy.schema_document())


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
        with working("making a table of 10,000 students"):
            shown = run_demo(directory)
        if as_json:
            print_json(shown.to_json())
        else:
            render.show_demo(shown)


def main() -> None:
    """The entry point of the `attrpriv` command."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that the terminal cannot show must not cost the answer
        sys.stdout.reconfigure(errors="backslashreplace")
    # To look for plugins, pydantic would read what every installed package says of itself. None may change what a policy means.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # A command is short: cycles are looked for seldom, and not at its end, where that takes a sixth of a wide policy's time.
    gc.set_threshold(1_000_000)
    try:
        app()
    finally:
        if "duckdb" not in sys.modules:  # it would report what it keeps, on stderr
            gc.freeze()
