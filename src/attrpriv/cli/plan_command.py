"""`attrpriv plan`, as the command line takes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from attrpriv.cli.guard import PLAN_COLUMNS, flat, guarded, print_csv, print_json, working
from attrpriv.cli.options import AsCsv, AsJson, By, Mechanism, Plot, PolicyFile, QueryTexts, Spend, WantedError
from attrpriv.cli.picture import picture, require_picture
from attrpriv.errors import UsageError

if TYPE_CHECKING:
    from attrpriv.methods.base.accuracy import Measure


def plan(
    policy: PolicyFile,
    queries: QueryTexts = None,
    mechanism: Mechanism = "auto",
    by: By = "rmse",
    error: WantedError = None,
    spend: Spend = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against", metavar="FILE", help="Try each plan on public rows: the epsilon that holds on rows like them."
        ),
    ] = None,
    plot: Plot = None,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """Mechanisms side by side, with their expected error. Reads no row."""
    from attrpriv.cli import render
    from attrpriv.cli.checks import missing_table
    from attrpriv.session.session import Session

    with guarded(as_json):
        require_picture(plot)
        session = Session(policy=policy)
        if not queries and not session.policy.release and session.policy.whole_columns:
            if against is not None:
                raise UsageError("against: tries noise on averages, and this policy hides columns by a view, on any rows.")
            shown = session.view_plan()
            picture(plot, lambda subjects: subjects.kept(shown))
            if as_json:
                print_json({"schema_version": 1, "rows": shown.rows, "plan": shown.to_json()})
            else:
                render.note(missing_table(session.policy))
                render.show_view_plan(shown)
            return
        trials = None
        if against is None:
            ranked = session.ranked(queries or None, cast("Measure", by), mechanism=mechanism, error=error, spend=spend)
        else:
            from attrpriv.cli.against import show_trials
            from attrpriv.session.against import try_on

            with working("trying the plans on public rows"):
                trials = try_on(session, against, queries or None, mechanism, by=cast("Measure", by), error=error, spend=spend)
            ranked = trials.ranked
        if ranked.refused is None:
            picture(plot, lambda subjects: subjects.mechanisms(ranked.rankings[0]))
        if as_json:
            print_json(ranked.entries() if trials is None else trials.entries())
        elif as_csv:
            print_csv(PLAN_COLUMNS, map(flat, ranked.entries()))
        else:
            render.note(missing_table(session.policy))
            render.show_ranked(ranked, session.ledger_note(queries or None, ranked.plan, spend), error)
            if trials is not None:
                show_trials(trials)
        if ranked.refused is not None:
            refusal = ranked.refused.error()
            render.complain(str(refusal), refusal.ways, told=not (as_json or as_csv))
            raise typer.Exit(refusal.exit_code)
