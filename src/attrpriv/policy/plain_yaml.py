"""Long policy files of plain lines, read by libyaml.

PyYAML's own reader takes about 60 microseconds a value, which is long for the correlations of a wide table. libyaml takes a
tenth, but the two differ in corners (tabs, colons without a space, escapes, words over several lines), and a text must have one
meaning. So only a text whose every line has one of these forms goes to libyaml; on these the two agree, and a test compares.

    # a comment                     key:                   - value                with an indentation of at most 16 spaces
                                    key: value             - key: value           and a comment behind

    key, value      a word or a sentence without colons and #; 'quoted' or "quoted" without escapes
    value, too      [value, value], {key: value, key: value}, each in one line, of words without spaces or quoted

Most lines of a wide policy are entries `word: number` of one mapping, one under the other. Of such a run libyaml reads the
first and the last line; those between, with the same indentation, are entries of the same mapping, whatever stands around.

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


# Some of these lines: nothing of them can be part of what stands before or behind.
_ENTRY = re.compile(r"( {0,16})([^\W\d][\w.()~]{0,200}): ([+-]?[0-9][0-9.eE+-]{0,200})")
_NO_KEY = object()

Meaning = Callable[[str, bool], object]
Entry = tuple[str, str]


class _UnplainError(Exception):
    """Something to be read the other way."""


def plain_value(text: str, meaning: Meaning, most: int) -> dict[object, object] | None:
    """The mapping that a text of plain lines spells, of at most so many values; None: read it the other way.

    `meaning` says what a scalar means, from its text and whether it stands without quotes.
    """
    if not yaml.__with_libyaml__ or "\r" in text:
        return None
    with suppress(yaml.YAMLError, PolicyError, _UnplainError):
        kept, runs = _without_runs(text)
        found = _built(iter(yaml.CSafeLoader(kept).get_event, None), runs, meaning, most)
        return found if isinstance(found, dict) else None
    return None


def _without_runs(text: str) -> tuple[str, dict[int, list[Entry]]]:
    """The text without the lines between the ends of runs, and what those say, by the place of the line before them."""
    kept: list[str] = []
    runs: dict[int, list[Entry]] = {}
    indent, inner, last = "", list[Entry](), ""
    for line in [*text.split("\n"), ""]:
        entry = _ENTRY.fullmatch(line)
        if entry is not None and inner and entry[1] == indent:
            inner.append((entry[2], entry[3]))
            last = line
            continue
        if len(inner) > 1:  # the first one of them is kept, and so is the last
            runs[len(kept) - 1] = inner[1:-1]
            kept.append(last)
        if entry is None and not _LINE.fullmatch(line):
            raise _UnplainError
        indent, inner = ("", []) if entry is None else (entry[1], [(entry[2], entry[3])])
        kept.append(line)
    return "\n".join(kept), {place: inside for place, inside in runs.items() if inside}


def _built(events: Iterable[yaml.Event], runs: dict[int, list[Entry]], meaning: Meaning, left: int) -> object:
    """The value that libyaml's events put together, with the runs that were left out."""
    into: dict[object, object] | list[object] = []
    key, outer = _NO_KEY, []
    value: object
    for event in events:
        place = -1
        if isinstance(event, yaml.ScalarEvent):
            value, place = meaning(event.value, event.implicit[0]), event.start_mark.line if event.start_mark else -1
        elif isinstance(event, yaml.CollectionStartEvent):
            outer.append((into, key))
            into, key = {} if isinstance(event, yaml.MappingStartEvent) else [], _NO_KEY
            continue
        elif isinstance(event, yaml.CollectionEndEvent):
            value = into
            into, key = outer.pop()
        else:
            continue
        left -= 1
        if isinstance(into, list):
            into.append(value)
        elif key is _NO_KEY:
            key = _new_key(value, into)
        else:
            into[key], key = value, _NO_KEY
            for word, number in runs.pop(place, ()):
                into[_new_key(meaning(word, True), into)] = meaning(number, True)
                left -= 2
    return next(iter(into), None) if left >= 0 and not runs else None


def _new_key(value: object, into: dict[object, object]) -> object:
    if value is None or isinstance(value, dict | list) or value in into:
        raise _UnplainError
    return value
