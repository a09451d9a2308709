"""What every page has around its screen: the way through the screens, undo, and the files at the side."""

from __future__ import annotations

from attrpriv.errors import AttrprivError
from attrpriv.formatting import printable
from attrpriv.studio.asked import Asked
from attrpriv.studio.draft import TODO
from attrpriv.studio.html import Html, Inside, h, heading, paragraph, together, verbatim
from attrpriv.studio.notebook import commands, notebook

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
    main = h(
        "main",
        h("h1", title),
        h("div", paragraph(told) if told else None, role="status", class_="status"),
        alert(problem) if problem is not None else None,
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


def alert(problem: AttrprivError | str) -> Html:
    """What is wrong, as the command line words it, with the ways out that it knows."""
    ways = getattr(problem, "causes", ())
    return h(
        "div",
        _said(problem),
        h("p", "What helps:") if ways else None,
        h("ul", [h("li", one.line) for one in ways]) if ways else None,
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
    if wrong is None:
        return together()
    if TODO in str(wrong):
        return h("p", "Still to decide: ", str(wrong), class_="note")
    return alert(wrong)


def further(asked: Asked, screen: str) -> Html:
    """The way to the next screen."""
    return h("p", h("a", f"Next: {SCREENS[screen]}", href=asked.address(screen), class_="next"))
