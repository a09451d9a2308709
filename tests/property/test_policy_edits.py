"""Edits of a policy's text, against the same edit of a dictionary: files as different people write them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attrpriv.policy.edit import append, remove, set_value
from attrpriv.policy.strict_yaml import dump_strict, load_strict

Place = tuple[str | int, ...]

WORDS = [
    "avg(x)",
    "mean(income)",
    "share(smoker = 'yes')",
    "a: b",
    "# no",
    "10%",
    "1e-6",
    "true",
    "",
    " x ",
    "- y",
    "é, ü",
    "[0]",
]
TEXT = st.sampled_from(WORDS) | st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=6)
KEYS = st.sampled_from(["epsilon", "delta", "protect", "release", "weight~income", "a b", "2020", "true", "x:y", "#"])
FLOATS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda value: not value.is_integer())
SCALARS = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | FLOATS | TEXT | st.just("two\nlines\n")
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=5)


@dataclass
class Author:
    """Writes a document in a style of its own, and remembers which lines each place takes."""

    random: Random
    lines: list[str] = field(default_factory=list)
    ranges: dict[Place, tuple[int, int]] = field(default_factory=dict)
    kinds: dict[Place, str] = field(default_factory=dict)

    def text(self, content: dict[str, Any]) -> str:
        self.noise(0)
        if content and self.random.random() < 0.1:
            self.lines.append(self.flow(content, (), 0) + self.comment())
        elif content:
            self.mapping(content, (), 0, "")
        self.noise(0)
        ends = self.random.choice(["\n", "\n", "\r\n"])
        last = [ends] if "two" in "".join(self.lines) else [ends, ends, ""]  # its last line break is part of such a text
        text = ends.join(self.lines) + self.random.choice(last)
        return self.random.choice(["", "", "\ufeff"]) + text

    def noise(self, indent: int) -> None:
        for _ in range(self.random.choice([0, 0, 0, 1, 2])):
            blank = "" if self.lines[-1:] and self.lines[-1].endswith("  lines") else "   "  # spaces would be part of it
            self.lines.append(self.random.choice(["", " " * indent + f"# note {len(self.lines)}", blank]))

    def comment(self) -> str:
        return self.random.choice(["", "", "   # why", " # it's [so: 'odd"])

    def mapping(self, content: dict[Any, Any], path: Place, indent: int, head: str) -> None:
        """`head`: what stands before the first key in its line, as a dash does."""
        for k, (key, value) in enumerate(content.items()):
            if k or not head:
                self.noise(indent)
            start = len(self.lines)
            self.value(value, (*path, key), indent, (head if not k and head else " " * indent) + self.scalar(key) + ":")
            self.ranges[(*path, key)] = (start, len(self.lines))

    def sequence(self, content: list[Any], path: Place, indent: int, head: str) -> None:
        for k, value in enumerate(content):
            if k or not head:
                self.noise(indent)
            start = len(self.lines)
            self.value(value, (*path, k), indent, (head if not k and head else " " * indent) + "-", listed=True)
            self.ranges[(*path, k)] = (start, len(self.lines))

    def collection(self, value: Any, path: Place, indent: int, head: str) -> None:
        if isinstance(value, dict):
            self.mapping(value, path, indent, head)
        else:
            self.sequence(value, path, indent, head)

    def value(self, value: Any, path: Place, indent: int, head: str, *, listed: bool = False) -> None:
        self.kinds[path] = "lines"
        if isinstance(value, dict | list) and value and self.random.random() < 0.7:
            if listed and self.random.random() < 0.8:
                self.collection(value, path, indent + 2, head + " ")
                return
            self.lines.append(head + self.comment())
            inner = indent if isinstance(value, list) and not listed and self.random.random() < 0.3 else indent + 2
            self.collection(value, path, inner, "")
        elif isinstance(value, dict | list):
            self.kinds[path] = "line"
            self.lines.append(f"{head} {self.flow(value, path, indent)}{self.comment()}")
        elif value == "two\nlines\n" and self.random.random() < 0.7:
            self.lines.extend([f"{head} |", " " * (indent + 2) + "two", " " * (indent + 2) + "lines"])
        elif value is None and self.random.random() < 0.5:
            self.kinds[path] = "line"
            self.lines.append(head + self.comment())
        elif self.random.random() < 0.1:
            self.lines.extend([head + self.comment(), " " * (indent + 2) + self.scalar(value) + self.comment()])
        else:
            self.kinds[path] = "line"
            self.lines.append(f"{head} {self.scalar(value)}{self.comment()}")

    def scalar(self, value: Any) -> str:
        return dump_strict([value]).removeprefix("- ").removesuffix("\n")

    def flow(self, value: Any, path: Place, indent: int) -> str:
        gap = self.random.choice([" ", " ", "", "  "])
        if isinstance(value, dict):
            inner = [f"{self.quoted(key)}: {self.flow(item, (*path, key), indent)}" for key, item in value.items()]
            return "{" + gap + f",{gap}".join(inner) + "}"
        if isinstance(value, list):
            inner = [self.flow(item, (*path, k), indent) for k, item in enumerate(value)]
            comma = "," if value and self.random.random() < 0.2 else ""
            return "[" + f",{gap}".join(inner) + comma + gap + "]"
        return self.quoted(value)

    def quoted(self, value: Any) -> str:
        text = self.scalar(value)
        return text if not isinstance(value, str) or text[:1] in ("'", '"') else "'" + text.replace("'", "''") + "'"


def places(content: Any, path: Place = ()) -> list[tuple[Place, Any]]:
    inner = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [(path, content), *(found for key, value in inner for found in places(value, (*path, key)))]


def at(content: Any, path: Place) -> Any:
    for step in path:
        content = content[step]
    return content


def read(text: str) -> object:
    return load_strict(text) if any(line.strip() and line.strip()[0] != "#" for line in bare(text)) else {}


def bare(text: str) -> list[str]:
    return text.removeprefix("\ufeff").split("\n")


def told(value: object) -> str:
    """With types and order; whole numbers that the edit writes are no floats here."""
    return repr(value)


def untouched(text: str, new: str, lines: tuple[int, int]) -> None:
    """Every line but these stays as it was, where it was."""
    old, now = bare(text), bare(new)
    assert now[: lines[0]] == old[: lines[0]]
    behind = old[lines[1] :]
    assert behind == ([] if not behind else now[-len(behind) :])


def around(author: Author, path: Place) -> tuple[int, int]:
    """The lines of the place, or of the nearest one above it that has lines."""
    while path and path not in author.ranges:
        path = path[:-1]
    return author.ranges.get(path, (0, len(author.lines)))


MANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


@MANY
@given(st.data(), DOCUMENTS.filter(bool), VALUES, st.randoms(use_true_random=False))
def test_a_value_is_replaced(data: st.DataObject, content: dict[str, Any], value: Any, random: Random) -> None:
    author = Author(random)
    text = author.text(content)
    assert told(read(text)) == told(content)
    path = data.draw(st.sampled_from([found for found, _ in places(content) if found]))
    wanted = deepcopy(content)
    at(wanted, path[:-1])[path[-1]] = value
    new = set_value(text, path, value)
    assert told(load_strict(new)) == told(wanted)
    untouched(text, new, around(author, path))
    if author.kinds.get(path) == "line":  # what stands beside a value in one line is no part of it
        before = text.count("# why") + text.count("'odd")
        assert new.count("# why") + new.count("'odd") == before + repr(value).count("# why")


@MANY
@given(st.data(), DOCUMENTS, KEYS, VALUES, st.randoms(use_true_random=False))
def test_an_entry_is_added(data: st.DataObject, content: dict[str, Any], key: str, value: Any, random: Random) -> None:
    author = Author(random)
    text = author.text(content)
    assert told(read(text)) == told(content)
    holders = [found for found, inner in places(content) if isinstance(inner, dict) and key not in inner]
    if not holders:
        return
    path = data.draw(st.sampled_from(holders))
    further = data.draw(st.sampled_from([(), ("deep",), ("deep", "deeper")]))
    wanted, inner = deepcopy(content), value
    for step in reversed(further):
        inner = {step: inner}
    at(wanted, path)[key] = inner
    new = set_value(text, (*path, key, *further), value)
    assert told(load_strict(new)) == told(wanted)
    if not path and content and author.ranges:
        missing = [line for line in bare(text) if line not in bare(new) and f"{line}\r" not in bare(new)]
        assert missing == []


@MANY
@given(st.data(), DOCUMENTS, VALUES, st.randoms(use_true_random=False))
def test_an_item_is_appended(data: st.DataObject, content: dict[str, Any], value: Any, random: Random) -> None:
    content["list"] = data.draw(st.lists(SCALARS | VALUES, max_size=3))
    author = Author(random)
    text = author.text(content)
    assert told(read(text)) == told(content)
    path = data.draw(st.sampled_from([found for found, inner in places(content) if isinstance(inner, list)]))
    wanted = deepcopy(content)
    at(wanted, path).append(value)
    new = append(text, path, value)
    assert told(load_strict(new)) == told(wanted)
    untouched(text, new, around(author, path))


@MANY
@given(st.data(), DOCUMENTS.filter(bool), st.randoms(use_true_random=False))
def test_an_entry_is_removed(data: st.DataObject, content: dict[str, Any], random: Random) -> None:
    author = Author(random)
    text = author.text(content)
    assert told(read(text)) == told(content)
    path = data.draw(st.sampled_from([found for found, _ in places(content) if found]))
    wanted = deepcopy(content)
    del at(wanted, path[:-1])[path[-1]]
    new = remove(text, path)
    assert told(read(new)) == told(wanted)
    alone = not at(wanted, path[:-1])
    start, end = around(author, path[:-1] if alone else path)
    if not alone and path in author.ranges and around(author, path[:-1])[0] == start and len(path) > 1:
        end = next(lines for place, lines in author.ranges.items() if place[:-1] == path[:-1] and lines[0] >= end)[0] + 1
    untouched(text, new, (start, end))  # what comes next moves up, to the dash in whose line the first entry was
