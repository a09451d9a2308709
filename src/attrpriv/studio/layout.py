"""What every page has around its screen: the way through the screens, undo, and the files at the side."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrpriv.errors import AttrprivError
from attrpriv.formatting import printable
from attrpriv.policy.written import DECIDE
from attrpriv.studio.asked import Asked
from attrpriv.studio.html import Html, Inside, h, heading, id_of, paragraph, together, verbatim
from attrpriv.studio.notebook import commands, notebook
from attrpriv.studio.numbers import HIGHER, LOWER

SCREENS = {
    "table": "Table",
    "hide": "What to hide",
    "know": "What everybody may know",
    "publish": "What to publish",
    "compare": "Compare",
    "files": "Files",
    "release": "Release",
    "record": "Report and ledger",
}
# What messages call a field that its form calls otherwise.
_CALLED = {
    "between": ("low",),
    LOWER: ("low",),
    HIGHER: ("high",),
    "query": ("release", "where"),
    "condition": ("where", "query", "release"),
    "confirmation": ("typed",),
}
# What a policy may still lack: where it is decided, and what it is.
_OPEN = {
    "rows": ("table", "the number of rows"),
    "protect": ("hide", "what to hide"),
    "release": ("publish", "what to publish"),
    "assume": ("know", "numbers that everybody may know"),
    "reference": ("know", "numbers that everybody may know"),
}
DONE = {
    "saved": "Saved in the policy file.",
    "undone": "The last change was taken back.",
    "made": "A policy file was made. Every choice is written into it.",
    "fitted": "An assumption was fitted on the public records and is in the policy now.",
    "released": "Released. The ledger has the entry.",
    "drawn": "The view was drawn and written. The ledger has the entry.",
}


def page(asked: Asked, title: str, inside: Inside, problem: AttrprivError | str | None = None) -> Html:
    """The whole page."""
    told = DONE.get(asked.query.get("done", ""), "")
    inside = together(inside)
    field = next((one for one in _fields_of(asked, problem) if f' id="{one}"' in inside), None)
    if field is not None:
        inside = Html(inside.replace(f' id="{field}"', f' id="{field}" aria-invalid="true"', 1))
    main = h(
        "main",
        h("h1", title),
        h("div", paragraph(told) if told else None, role="status", class_="status"),
        None if problem is None else _problem(asked, problem, field),
        inside,
        id="main",
        tabindex="-1",
    )
    named = asked.named
    name = f"{title}: {named.name}" if named is not None else title
    name = name if problem is None else f"Problem: {name}"  # the first thing that is read out
    return Html(
        "<!DOCTYPE html>\n"
        + h(
            "html",
            h("head", _head(f"{name} - attrpriv studio")),
            h(
                "body",
                h("a", "To the page's content", href="#main", class_="skip"),
                h("header", h("p", h("a", "attrpriv studio", href="/"), class_="brand"), _way(asked)),
                h("div", main, _side(asked), class_="beside" if named is not None else "alone"),
                h("footer", paragraph("This page comes from this machine, and shows no row of the table.", "dim")),
            ),
            lang="en",
        )
    )


def _head(title: str) -> Html:
    return together(
        h("meta", charset="utf-8"),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("title", title),
        h("link", rel="stylesheet", href="/static/pictures.css"),
        h("link", rel="stylesheet", href="/static/style.css"),
        h("link", rel="icon", href="data:,"),
        h("script", src="/static/studio.js", defer=True),
    )


def _way(asked: Asked) -> Html | None:
    if asked.named is None:
        return None
    steps = [
        h("li", h("a", words, href=asked.address(screen), aria_current="page" if screen == asked.screen else None))
        for screen, words in SCREENS.items()
    ]
    return h("nav", h("ol", steps), aria_label="Screens")


def _side(asked: Asked) -> Html | None:
    if asked.named is None:
        return None
    draft, steps = asked.named, asked.named.steps
    undo = asked.send(f"Undo the last change ({steps})", do="undo", screen="undo", kind="plain", back=asked.screen)
    return h(
        "aside",
        heading(draft.name),
        undo if steps else paragraph("No change to undo.", "dim"),
        verbatim(draft.text),
        h("details", h("summary", "Commands"), verbatim(commands(draft))),
        h("details", h("summary", "For a notebook"), verbatim(notebook(draft))),
        aria_label="The policy file",
    )


def _fields_of(asked: Asked, problem: AttrprivError | str | None) -> Iterator[str]:
    """The ids that the field may have that a form was refused for: a message begins with its name, or with its place."""
    named, must, _ = str(problem).partition(": must ")
    if not must or not asked.form:
        return
    do, key = asked.one("do"), named.rpartition(".")[2]
    fact = (f"low:{named.removeprefix('bounds.')}", f"step:{named.removeprefix('resolution.')}")
    for name in (f"value:{named}", key, *_CALLED.get(key, ()), *fact):
        if name in asked.form:
            yield from (id_of(name, do), id_of(name, do.partition(":")[0]), id_of(name))


def _problem(asked: Asked, problem: AttrprivError | str, field: str | None) -> Html:
    if isinstance(problem, AttrprivError) and asked.named is not None and DECIDE in str(problem):
        return h("div", left_to_decide(asked, problem), role="alert")
    return alert(problem, field)


def alert(problem: AttrprivError | str, field: str | None = None) -> Html:
    """What is wrong, as the command line words it, with the ways out that it knows, and the way to the field."""
    ways = getattr(problem, "causes", ())
    return h(
        "div",
        _said(problem),
        h("p", "What helps:") if ways else None,
        h("ul", [h("li", one.line) for one in ways]) if ways else None,
        h("p", h("a", "Go to the field", href=f"#{field}")) if field is not None else None,
        role="alert",
        class_="alert",
    )


def _said(problem: AttrprivError | str) -> Html:
    """The message; its reasons, where it has several, as the list that a terminal shows."""
    ways = getattr(problem, "ways", ())
    if not any(len(way.items) > 1 for way in ways):
        return h("p", str(problem))
    heads = [printable(way.head) for way in ways]
    lists = [h("ul", [h("li", printable(one)) for one in way.items]) for way in ways]
    return together([(h("p", head) if head else None, listed) for head, listed in zip(heads, lists, strict=True)])


def state_of(asked: Asked) -> Html:
    """What is left to decide, where something is."""
    wrong = asked.draft.problem()
    return together() if wrong is None else left_to_decide(asked, wrong)


def left_to_decide(asked: Asked, wrong: AttrprivError) -> Html:
    """What a policy lacks, in words, and where it is decided; another error as it is."""
    place, todo, _ = str(wrong).partition(DECIDE)
    if not todo:
        file = None if asked.screen == "files" else h("p", h("a", "See the file", href=asked.address("files")))
        return together(alert(wrong), file)
    key = re.split(r"[.\[]", place)[0]
    screen, what = _OPEN.get(key, ("files", place))
    field = f"#{id_of(f'value:{place}', 'numbers')}" if screen == "know" else ""
    here = screen == asked.screen
    words = "Go to the field" if here else f"Decide it at: {SCREENS[screen]}"
    way = h("a", words, href=field if here else asked.address(screen) + field)
    return h("p", f"Still to decide: {what}. ", way if field or not here else "It is asked for below.", class_="note")


def further(asked: Asked, screen: str) -> Html:
    """The way to the next screen."""
    return h("p", h("a", f"Next: {SCREENS[screen]}", href=asked.address(screen), class_="next"))
