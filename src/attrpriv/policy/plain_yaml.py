"""Long policy files of plain lines, read by libyaml.

PyYAML's own reader takes about 60 microseconds a value, which is long for the correlations of a wide table. libyaml takes a
tenth, but the two differ in corners (tabs, colons without a space, escapes, words over several lines), and a text must have one
meaning. So only a text whose every line has one of these forms goes to libyaml; on these the two agree, and a test compares.

    # a comment                     key:                   - value                with an indentation of at most 16 spaces
                                    key: value             - key: value           and a comment behind

    key, value      a word or a sentence without colons and #; 'quoted' or "quoted" without escapes
    value, too      [value, value], {key: value, key: value}, each in one line, of words without spaces or quoted

What must never change: None means that the text must be read the other way, whatever is the matter with it. Errors are found
there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress

import yaml

from attrpriv.errors import PolicyError

# A first letter that starts a plain word and nothing else; `.` and `-` also start markers of documents and items.
_FIRST = r"(?:[^\W\d]|[0-9(<+~]|[.-][0-9])"
_WORD = rf"{_FIRST}[\w.()+%~*/<>='-]{{0,200}}"
_WORDS = rf"{_FIRST}[\w .,()+%~*/<>='-]{{0,200}}"
_QUOTED = r"'[^'\t]{0,200}'" + r'|"[^"\\\t]{0,200}"'
_SMALL = rf"(?:{_WORD}|{_QUOTED})"
_LIST = rf"\[(?:{_SMALL}(?:, {_SMALL})*)?\]"
_MAP = rf"\{{(?:{_SMALL}: {_SMALL}(?:, {_SMALL}: {_SMALL})*)?\}}"
_KEY = rf"(?:{_WORDS}|{_QUOTED})"
_VALUE = rf"(?:{_WORDS}|{_QUOTED}|{_LIST}|{_MAP})"
_COMMENT = r"#[^\t]*"
# A comment right behind a word would be part of it.
_LINE = re.compile(rf" {{0,16}}(?:(?:(?:- )?{_KEY}:(?: +{_VALUE})?|- {_VALUE})(?: +{_COMMENT})?|{_COMMENT})? *")


_NO_KEY = object()


class _UnplainError(Exception):
    """Something to be read the other way."""


def plain_value(text: str, meaning: Callable[[str, bool, int], object], most: int) -> dict[object, object] | None:
    """The mapping that a text of plain lines spells, of at most so many values; None: read it the other way.

    `meaning` says what a scalar means, from its text, whether it stands without quotes, and its line.
    """
    if not yaml.__with_libyaml__ or "\r" in text or not all(map(_LINE.fullmatch, text.split("\n"))):
        return None
    with suppress(yaml.YAMLError, PolicyError, _UnplainError):
        found = _Building(meaning, most).value(yaml.parse(text, Loader=yaml.CSafeLoader))
        return found if isinstance(found, dict) else None
    return None


class _Building:
    """A value being put together from libyaml's events."""

    def __init__(self, meaning: Callable[[str, bool, int], object], left: int) -> None:
        self.meaning = meaning
        self.left = left
        self.open: list[tuple[dict[object, object] | list[object], object]] = [([], _NO_KEY)]

    def value(self, events: Iterable[yaml.Event]) -> object:
        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                line = event.start_mark.line + 1 if event.start_mark else 0
                self._add(self.meaning(event.value, event.implicit[0], line))
            elif isinstance(event, yaml.CollectionStartEvent):
                self.open.append(({} if isinstance(event, yaml.MappingStartEvent) else [], _NO_KEY))
            elif isinstance(event, yaml.CollectionEndEvent):
                self._add(self.open.pop()[0])
        return next(iter(self.open[0][0]), None)

    def _add(self, value: object) -> None:
        self.left -= 1
        into, key = self.open[-1]
        if isinstance(into, list):
            into.append(value)
        elif key is not _NO_KEY:
            into[key] = value
            self.open[-1] = (into, _NO_KEY)
        else:
            if self.left < 0 or value is None or isinstance(value, dict | list) or value in into:
                raise _UnplainError
            self.open[-1] = (into, value)
