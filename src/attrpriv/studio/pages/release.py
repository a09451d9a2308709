"""The release: the plan restated, confirmed by typing, and refused if anything changed since it was shown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from attrpriv.errors import AttrprivError, UsageError
from attrpriv.methods.base.view_plan import REAL_RECORDS
from attrpriv.studio.asked import Asked
from attrpriv.studio.html import Html, field, heading, listed, paragraph, table, together
from attrpriv.studio.layout import alert, further, left_to_decide
from attrpriv.studio.notebook import view_name
from attrpriv.studio.pages.compare import ANSWERS, answer_rows
from attrpriv.studio.restated import RestatedSession, bound, changed, require_same

if TYPE_CHECKING:
    from attrpriv.methods.base.plan import Plan
    from attrpriv.studio.plans import Planned

TITLE = "Release"


def show(asked: Asked) -> Html:
    try:
        planned = asked.studio.plans.of(asked.draft)
    except AttrprivError as error:
        return together(paragraph("Nothing can be released with the policy as it is."), left_to_decide(asked, error))
    if planned.refusal is not None:
        return together(alert(planned.refusal), further(asked, "compare"))
    told = _restated(planned)
    return together(told, _form(asked, planned, told))


def _restated(planned: Planned) -> Html:
    """What will be told, what stays hidden, from whom, and at what cost."""
    policy = planned.policy
    rows = [row for plan in _plans(planned) for row in answer_rows(plan)]
    assumes = [line for plan in _plans(planned) for line in plan.certificate.assumes]
    assumes += [] if planned.view is None else planned.view.certificate.assumes
    statements = [f"{plan.guarantee.kind}: {plan.guarantee.statement}." for plan in _plans(planned)]
    statements += [] if planned.view is None else [f"{planned.view.guarantee.kind}: {planned.view.guarantee.statement}."]
    warnings = [line for plan in _plans(planned) for line in plan.warnings]
    warnings += [] if planned.view is None else planned.view.warnings
    return together(
        None if planned.held is None else paragraph(f"Of the ledger: {planned.held}", "note"),
        heading("What stays hidden"),
        listed(map(str, policy.protect)),
        heading("What is released"),
        table("Each answer and its expected error", ANSWERS, rows, numbers=(3, 4)) if rows else None,
        None
        if planned.view is None
        else paragraph(f"A view of {planned.view.rows:,} of {planned.view.n:,} rows. {REAL_RECORDS}"),
        heading("What is promised"),
        listed(dict.fromkeys(statements)),
        paragraph(f"Epsilon {policy.epsilon:g}, delta {policy.delta:g}, for everything together."),
        heading("What it rests on") if assumes else None,
        listed(dict.fromkeys(assumes)),
        [paragraph(f"Warning: {line}", "warn") for line in dict.fromkeys([*warnings, *planned.advice])],
        paragraph(f"Policy digest {policy.digest}", "dim"),
        paragraph(f"Head of the ledger: {planned.head or 'nothing was released yet'}", "dim"),
    )


def _plans(planned: Planned) -> list[Plan]:
    rankings = () if planned.ranked is None else planned.ranked.rankings
    return [one.chosen for one in rankings if one.chosen is not None]


def phrase(asked: Asked) -> str:
    """What must be typed."""
    return f"release {asked.draft.path.stem}"


def _form(asked: Asked, planned: Planned, told: Html) -> Html:
    drawn = planned.view is not None
    words = "Draw the view" if drawn else "Release"
    return together(
        heading("Confirm"),
        paragraph("What is released stays released: the ledger keeps it, and what it told cannot be taken back."),
        asked.send(
            words,
            field("File for the view", "out", asked.one("out", _new_file(asked)), hint="a new Parquet file of this folder")
            if drawn
            else None,
            field(f"Type: {phrase(asked)}", "typed", "", autocapitalize="none", spellcheck="false"),
            do="release",
            **bound(planned, told),
        ),
    )


def act(asked: Asked) -> str:
    """Release, or draw; the address of the ledger's page."""
    if asked.one("typed") != phrase(asked):
        raise UsageError(f"confirmation: must be the words {phrase(asked)!r}. Nothing was released.")
    if asked.seen != asked.draft.digest:
        raise changed("policy")
    planned = asked.studio.plans.of(asked.draft)
    require_same({name: asked.one(name) for name in asked.form}, bound(planned, _restated(planned)))
    if planned.refusal is not None:
        raise planned.refusal
    with RestatedSession(planned, asked.draft, asked.seen) as session:
        if planned.policy.release:
            session.release()
            return asked.address("record", done="released")
        session.view(_out(asked))
        return asked.address("record", done="drawn")


def _new_file(asked: Asked) -> str:
    return asked.studio.folder.new_name(view_name(asked.draft).removesuffix(".parquet"), ".parquet")


def _out(asked: Asked) -> Path:
    name = asked.one("out")
    if not name.endswith(".parquet") or set("/\\") & set(name) or name.startswith(".") or not name.isprintable():
        raise UsageError("out: must be the name of a Parquet file of this folder, such as rows.parquet. Got another.")
    place = asked.studio.folder.inside(name, "out")
    if os.path.lexists(place):
        raise UsageError(f"out: must be the name of a new file. Got {name}, which is there. Nothing was drawn; choose another.")
    return place
