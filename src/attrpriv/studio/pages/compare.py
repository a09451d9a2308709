"""Compare: mechanisms side by side, error against epsilon, what could be believed, what a view keeps; and ways out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from attrpriv.errors import AttrprivError, Cause, UsageError
from attrpriv.formatting import number
from attrpriv.methods.base.belief import prior_near
from attrpriv.pictures import subjects
from attrpriv.policy.edit import set_value
from attrpriv.report.content import is_quick
from attrpriv.session.derived import computed_line
from attrpriv.studio.asked import Asked
from attrpriv.studio.html import Html, field, figure, h, heading, id_of, listed, paragraph, table, together
from attrpriv.studio.layout import SCREENS, alert, further, left_to_decide
from attrpriv.studio.numbers import number_in, read_number
from attrpriv.studio.slider import slider

if TYPE_CHECKING:
    from attrpriv.methods.base.plan import Plan
    from attrpriv.methods.base.view_plan import ViewPlan
    from attrpriv.methods.choice.ranking import Ranking
    from attrpriv.problem.refusal import Refusal
    from attrpriv.studio.plans import Planned

TITLE = "Compare"
ANSWERS = ("Mechanism", "query", "noise", "expected error", "95 times of 100 within")
_BUDGET = ("epsilon", "delta")
_CHANGE = "Change it at: {}"
_WRITE = "No form asks for it: write it in the policy file, and load this page again."
# Where a cause is dealt with.
_SCREEN = {
    Cause.PROMISE: "hide",
    Cause.SECRET: "hide",
    Cause.STATISTIC: "publish",
    Cause.TOGETHER: "publish",
    Cause.PRECISION: "publish",
    Cause.NUMBERS: "know",
    Cause.ASSUMPTION: "know",
    Cause.SHAPE: "know",
    Cause.BUDGET: "compare",
    Cause.EARLIER: "record",
}


# Where a public fact has a field; any other one is written in the policy file.
_FACT = {"bounds": "publish", "resolution": "publish", "left out": "publish", "reference": "know", "public records": "know"}
_OF_COLUMN = re.compile(r"\b(bounds|resolution) of ([^,]+)")
_END = {"bounds": "low", "resolution": "step"}


def show(asked: Asked) -> Html:
    try:
        planned = asked.studio.plans.of(asked.draft)
    except AttrprivError as error:
        return together(paragraph("Nothing can be compared with the policy as it is."), left_to_decide(asked, error))
    return together(
        _refused(asked, planned),
        None if planned.held is None else paragraph(f"Of the ledger: {planned.held}", "note"),
        _budget(asked, planned),
        [
            _ranking(asked, place, one)
            for place, one in enumerate(planned.ranked.rankings if planned.ranked is not None else ())
        ],
        [paragraph(f"Warning: {line}", "warn") for line in planned.advice],
        listed(map(computed_line, planned.ranked.computed)) if planned.ranked is not None else None,
        None if planned.view is None else _view(planned.view, "view"),
        further(asked, "files") if planned.refusal is None else None,
    )


def _refused(asked: Asked, planned: Planned) -> Html | None:
    """Why nothing can be released, and where that is changed."""
    if planned.refusal is None:
        return None
    places = dict.fromkeys((place, field_of(one)) for one in planned.refusal.causes if (place := place_of(one)) is not None)
    ways = [
        h("li", h("a", _CHANGE.format(SCREENS[place]), href=asked.address(place) + field))
        for place, field in places
        if place != "files"
    ]
    ways += [h("li", _WRITE, " ", h("a", "See the file", href=asked.address("files")))] if ("files", "") in places else []
    return together(heading("Nothing can be released as it stands"), alert(planned.refusal), h("ul", ways) if ways else None)


def place_of(refusal: Refusal) -> str | None:
    """The screen that can change what stands in the way; `files`: what has no field."""
    if refusal.cause is not Cause.PUBLIC_FACT:
        return _SCREEN.get(refusal.cause)
    return next((screen for words, screen in _FACT.items() if words in refusal.way_out), "files")


def field_of(refusal: Refusal) -> str:
    """The field of that screen, where it is a single one."""
    if refusal.cause is Cause.BUDGET:
        return "#delta" if "delta" in refusal.way_out and "epsilon" not in refusal.way_out else "#epsilon"
    fact = _OF_COLUMN.search(refusal.way_out)
    return "" if fact is None else f"#{id_of(f'{_END[fact[1]]}:{fact[2]}')}"


def _budget(asked: Asked, planned: Planned) -> Html:
    stated = asked.draft.stated
    epsilon, delta = (asked.one(name, str(stated.get(name, 0))) for name in _BUDGET)
    form = asked.send(
        "Use this budget",
        field("Epsilon", "epsilon", epsilon, hint="smaller hides more and costs more noise", inputmode="decimal"),
        field(
            "Delta",
            "delta",
            delta,
            hint="the chance that the promise fails; 0, or such as 1e-6",
            inputmode="decimal",
        ),
        do="budget",
    )
    return together(heading("The budget"), slider(asked, planned), form)


def _ranking(asked: Asked, place: int, ranking: Ranking) -> Html:
    chosen = ranking.chosen
    rows = [row for plan in ranking.plans for row in answer_rows(plan, " (chosen)" if plan is chosen else "")]
    parts = [heading(f"Mechanisms: {', '.join(query.text for query in ranking.problem.queries)}")]
    if ranking.plans:
        try:
            parts.append(figure(subjects.mechanisms(ranking), f"mechanisms-{place}"))
        except UsageError:  # no error is known before a row is read
            parts.append(paragraph("The error is known once the view is read.", "dim"))
        parts.append(table("Side by side, best first; no row was read", ANSWERS, rows, numbers=(3, 4)))
    reasons = [f"{', '.join(names)}: {reason}" for reason, names in ranking.reasons.items()]
    parts.append(h("details", h("summary", f"Refused: {len(ranking.refused):,}"), listed(reasons)) if reasons else together())
    return together(parts, *(() if chosen is None else (_remarks(ranking, chosen), _outsider(asked, place, chosen))))


def _remarks(ranking: Ranking, chosen: Plan) -> Html:
    """What is to be known of the choice."""
    lines = [line for line in (ranking.order, *chosen.remarks) if line is not None]
    return together(
        None if ranking.beside is None else paragraph(ranking.beside),
        h("details", h("summary", f"Notes: {len(lines):,}"), listed(lines)) if lines else None,
    )


def answer_rows(plan: Plan, said: str = "") -> list[tuple[str, ...]]:
    """Each answer of a plan: how, with which noise, and how far off it may be."""
    found: list[tuple[str, ...]] = []
    for query in plan.queries:
        noise, error = plan.noise_of(query), plan.error_of(query)
        kind = noise.kind if noise.kind in ("none", "kernel") else f"{noise.kind} {number(noise.scale)}"
        errors = ["known once read" if one is None else number(one) for one in (error.rmse, error.alpha95)]
        found.append((f"{plan.mechanism}{said}", query.text, kind, *errors))
    return found


def _outsider(asked: Asked, place: int, plan: Plan) -> Html | None:
    """What somebody could believe after the release: of the chosen plan, by public facts."""
    if plan.problem is None or plan.problem.public:
        return None
    parts: list[Html] = [heading("What an outsider could learn", 3)]
    for k, secret in enumerate(plan.problem.secrets):
        parts += _learnt(asked, plan, secret.text, f"learn-{place}-{k}")
    warnings = [paragraph(f"Warning: {line}", "warn") for line in plan.warnings]
    view = None if plan.view is None else _view(plan.view, f"view-{place}")
    return together(parts, warnings, view)


def _learnt(asked: Asked, plan: Plan, secret: str, name: str) -> Iterator[Html]:
    try:
        told = plan.tells(secret=secret)
        yield figure(subjects.trade_off(told), f"{name}-tells")
        if told.promised is None:
            return
        if plan.certificate.evidence.told_by.searched or asked.query.get("belief"):
            yield figure(subjects.believed(plan.belief(prior_near(plan, secret), secret=secret)), f"{name}-belief")
        elif is_quick(plan):
            words = "Draw what somebody may believe before and after (may take a minute)"
            yield h("p", h("a", words, href=asked.address("compare", belief="1")))
    except AttrprivError as error:
        yield paragraph(str(error), "dim")


def _view(view: ViewPlan, name: str) -> Html:
    """What it keeps, and what it would keep otherwise."""
    rows = () if view.coverage is None else view.coverage.table()
    lines = view.notes if view.coverage is None else view.coverage.lines
    return together(
        heading(f"The view: {view.rows:,} of {view.n:,} rows"),
        figure(subjects.kept(view), f"{name}-kept"),
        figure(subjects.trade_off(view.tells()), f"{name}-tells"),
        listed(dict.fromkeys(lines)),
        table("What it would keep otherwise", rows[0], rows[1:], numbers=(1, 2, 3)) if len(rows) > 1 else None,
        [paragraph(f"Warning: {line}", "warn") for line in view.warnings],
    )


def act(asked: Asked) -> str:
    """Another budget."""
    if asked.one("do") != "budget":
        raise UsageError("do: must be a form of this page. Got another.")
    text, stated = asked.draft.text, asked.draft.stated
    for name in _BUDGET:
        typed, known = asked.one(name), stated.get(name, 0)
        if typed != known and (value := number_in(name, typed)) != read_number(str(known)):
            text = set_value(text, (name,), value)
    asked.draft.change(asked.seen, text)
    return asked.address(done="saved")
