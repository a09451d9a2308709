"""Every text becomes text, whatever it holds."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attrpriv.studio.html import Html, checks, choice, field, h, heading, listed, paragraph, table, together, verbatim

SCRIPT = "<script>alert('x')</script>\"'><img src=x onerror=alert(1)>"


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names += [name for name, _ in attrs]


def parsed(html: str) -> _Tags:
    found = _Tags()
    found.feed(html)
    return found


@pytest.mark.parametrize(
    ("made", "tags"),
    [
        (h("p", SCRIPT), ["p"]),
        (h("p", [SCRIPT, None, 3, [h("b", SCRIPT)]], title=SCRIPT), ["p", "b"]),
        (together(SCRIPT), []),
        (heading(SCRIPT), ["h2"]),
        (paragraph(SCRIPT), ["p"]),
        (listed([SCRIPT]), ["ul", "li"]),
        (verbatim(SCRIPT), ["pre"]),
        (table(SCRIPT, (SCRIPT,), [(SCRIPT,)]), ["table", "caption", "thead", "tr", "th", "tbody", "tr", "th"]),
        (field(SCRIPT, SCRIPT, SCRIPT, of=SCRIPT, hint=SCRIPT), ["div", "label", "input", "span"]),
        (choice(SCRIPT, SCRIPT, [(SCRIPT, SCRIPT)], SCRIPT), ["div", "label", "select", "option"]),
        (checks(SCRIPT, SCRIPT, [(SCRIPT, SCRIPT)], [SCRIPT]), ["fieldset", "legend", "label", "input"]),
    ],
)
def test_a_name_that_is_a_script_is_a_name(made: Html, tags: list[str]) -> None:
    assert parsed(made).tags == tags
    assert "onerror" not in parsed(made).names


@given(st.text(), st.text())
def test_no_text_opens_an_element_or_an_attribute(inside: str, value: str) -> None:
    found = parsed(h("p", inside, title=value))
    assert (found.tags, found.names) == (["p"], ["title"])


def test_what_is_html_stays_html_once() -> None:
    assert h("p", Html("<b>x</b>"), "<i>") == "<p><b>x</b>&lt;i&gt;</p>"


def test_a_field_is_described_by_its_hint_and_named_by_its_label() -> None:
    made = field("Low", "low", "3", of="mean", hint="a number")
    assert 'for="mean-low"' in made
    assert 'id="mean-low" name="low" value="3" aria-describedby="mean-low-hint"' in made
    assert '<span id="mean-low-hint" class="hint">a number</span>' in made
