"""HTML as values: every text is escaped, unless it is `Html` already, so that a column called `<script>` is a name.

What must never change: nothing becomes `Html` but what this module, the report or a picture has made. There is no inline style,
no inline script and no address of another place: the content policy of the studio allows none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias
from urllib.parse import quote

from attrpriv.pictures.marks import Picture
from attrpriv.report import page as parts

_ALONE = frozenset({"input", "meta", "link", "br", "hr"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Inside: TypeAlias = "str | int | Iterable[Inside] | None"


def h(tag: str, *inside: Inside, **attributes: str | int | bool | None) -> Html:
    """An element. `class_` and `for_` lose their underscore, others become dashes; True is an attribute without a value.

    >>> h("p", "a < b", h("b", "!"), class_="dim", hidden=True, id=None)
    '<p class="dim" hidden>a &lt; b<b>!</b></p>'
    """
    named = "".join(_attribute(name, value) for name, value in attributes.items() if value is not None and value is not False)
    return Html(f"<{tag}{named}>" if tag in _ALONE else f"<{tag}{named}>{together(inside)}</{tag}>")


def together(*inside: Inside) -> Html:
    """One after the other."""
    return Html("".join(map(_written, inside)))


def _written(one: Inside) -> str:
    if one is None:
        return ""
    if isinstance(one, Html):
        return one
    if isinstance(one, str | int):
        return parts.safe(str(one))
    return together(*one)


def _attribute(name: str, value: str | int | bool) -> str:
    plain = name.removesuffix("_").replace("_", "-")
    return f" {plain}" if value is True else f' {plain}="{parts.safe(str(value))}"'


# ---------------------------------------------------------------------------------------------- what the report has, too


def heading(text: str, level: int = 2) -> Html:
    return Html(parts.heading(text, level))


def paragraph(text: str, kind: str = "") -> Html:
    return Html(parts.paragraph(text, kind))


def listed(lines: Iterable[str]) -> Html:
    return Html(parts.listed(lines))


def figure(picture: Picture, name: str) -> Html:
    return Html(parts.figure(picture, name))


def verbatim(text: str) -> Html:
    """A file's text; it can be scrolled with the keyboard."""
    return Html(parts.verbatim(text).replace("<pre>", '<pre tabindex="0">', 1))


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()) -> Html:
    return Html(parts.table(caption, header, rows, numbers=numbers))


# ------------------------------------------------------------------------------------------------------------- form fields


def id_of(name: str, of: str = "") -> str:
    """The id of a field; `of` keeps equal names of several forms apart. No space is in it, as `aria-describedby` lists ids."""
    return quote(f"{of}-{name}" if of else name, safe=":~")


def field(
    label: str, name: str, value: str = "", *, of: str = "", hint: str = "", wide: bool = False, **more: str | bool
) -> Html:
    """A line of text with its label; `of`: the form, where several have such a name."""
    known = id_of(name, of)
    said = f"{known}-hint" if hint else None
    return h(
        "div",
        h("label", label, for_=known),
        h("input", type="text", id=known, name=name, value=value, aria_describedby=said, autocomplete="off", **more),
        h("span", hint, id=said, class_="hint") if hint else None,
        class_="field wide" if wide else "field",
    )


def choice(
    label: str, name: str, options: Iterable[tuple[str, str]], chosen: str = "", *, of: str = "", hint: str = ""
) -> Html:
    """One of several: (value, words)."""
    known = id_of(name, of)
    said = f"{known}-hint" if hint else None
    listed = [h("option", words, value=value, selected=value == chosen) for value, words in options]
    return h(
        "div",
        h("label", label, for_=known),
        h("select", listed, id=known, name=name, aria_describedby=said),
        h("span", hint, id=said, class_="hint") if hint else None,
        class_="field",
    )


def checks(legend: str, name: str, options: Iterable[tuple[str, str]], chosen: Iterable[str] = (), *, of: str = "") -> Html:
    """Any of several: (value, words)."""
    kept = set(chosen)
    boxes = [
        h("label", h("input", type="checkbox", name=name, value=value, checked=value in kept), " ", words, class_="check")
        for value, words in options
    ]
    return h("fieldset", h("legend", legend), boxes, id=of or None, class_="checks-list")
