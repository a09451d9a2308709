"""Changes of one place in a policy file's text: comments, order and everything that is not touched stay byte for byte.

A path leads to a place by the keys of mappings and the numbers of list items: `("protect", 0, "between")`. What is written is
written as people write policies: block style, lists of numbers in brackets, `1e-6` and `20000`; inside of brackets that are
already there, in brackets. Comments inside a value go with it when it is replaced or removed; those around it stay.

What must never change: the text that is returned loads to the old document with that one change, and to nothing else. This is
checked each time, and a text that does not is never returned (`PolicyError`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import yaml

from attrpriv.errors import PolicyError
from attrpriv.policy.spelling import block_lines, flow_text, inline_text, key_text
from attrpriv.policy.strict_yaml import composed, dump_strict, load_strict

Path = tuple[str | int, ...]

_BOM = "\ufeff"
_STEP = 2


def set_value(text: str, path: Path, value: object) -> str:
    """The text with this value in this place; mappings on the way that are not there yet are written too.

    >>> print(set_value("epsilon: 1  # each year\\n", ("bounds", "weight"), [40, 120]), end="")
    epsilon: 1  # each year
    bounds:
      weight: [40, 120]
    """
    return _edited(text, path, lambda old: _put(old, path, _plain(value)), lambda file: file.set(path, value))


def append(text: str, path: Path, value: object) -> str:
    """The text with one more item at the end of this list; of a list that is not there or empty, with its first one.

    >>> print(append("release:\\n  - avg(x)  # first\\n", ("release",), "avg(y)"), end="")
    release:
      - avg(x)  # first
      - avg(y)
    """
    return _edited(text, path, lambda old: _put(old, path, _plain(value), more=True), lambda file: file.append(path, value))


def remove(text: str, path: Path) -> str:
    """The text without this entry or item; a mapping or list that loses its last one stays, empty.

    >>> remove("epsilon: 1\\ndelta: 1e-6\\n", ("delta",))
    'epsilon: 1\\n'
    """
    return _edited(text, path, lambda old: _taken(old, path), lambda file: file.remove(path))


def _edited(text: str, path: Path, change: Callable[[Any], Any], edit: Callable[[_File], str]) -> str:
    if not path:
        raise PolicyError("path: must name a place in the policy. Got none.")
    bom = _BOM if text.startswith(_BOM) else ""
    file = _File(text.removeprefix(_BOM))
    wanted = change(deepcopy(file.content))
    made = edit(file)
    try:
        good = _same(load_strict(made), wanted)
    except PolicyError:
        good = False
    if not good:
        raise PolicyError(f"{_shown(path)}: cannot be changed alone, as this file is written. Change it in the file itself.")
    return bom + made


@dataclass(frozen=True)
class _Spot:
    """A value in the text: the whole document, an entry of a mapping or an item of a list.

    `start`: where the key, the dash or the item begins, `behind`: right behind the colon or the dash, `column`: of the key or
    the dash, `listed`: whether it is an item, `flow`: whether it stands in brackets.
    """

    content: Any
    node: yaml.Node
    start: int
    behind: int
    column: int
    listed: bool
    flow: bool

    @property
    def in_lines(self) -> bool:
        """Whether it is a mapping or a list without brackets."""
        return isinstance(self.node, yaml.CollectionNode) and not self.node.flow_style


class _File:
    """A policy's text, what it says, and where."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.root: _Spot | None = None
        self.content: Any = {}
        if any(line.strip() and not line.lstrip().startswith("#") for line in text.split("\n")):
            self.content = load_strict(text)
            if not isinstance(self.content, dict):
                raise PolicyError(f"policy: must be a mapping. Got {type(self.content).__name__}.")
            node = composed(text)
            assert node is not None
            self.root = _Spot(self.content, node, _start(node), _start(node), node.start_mark.column - _STEP, True, False)

    def set(self, path: Path, value: object) -> str:
        spot, rest = self._nearest(path)
        for key in reversed(rest[1:]):
            value = {key: value}
        if spot is None:
            return self._started(rest[0], value)
        if not rest:
            return self._replaced(spot, value)
        if not spot.content:
            return self._replaced(spot, {rest[0]: value})
        last = self._children(spot)[-1][1]
        if _is_flow(spot):
            return self._spliced(self._end(last), self._end(last), f", {key_text(rest[0])}: {flow_text(value)}")
        return self._below(last, block_lines({rest[0]: value}))

    def append(self, path: Path, value: object) -> str:
        spot, rest = self._nearest(path)
        if spot is None or rest or not spot.content:
            return self.set(path, [value])
        last = self._children(spot)[-1][1]
        if _is_flow(spot):
            return self._spliced(self._end(last), self._end(last), f", {flow_text(value)}")
        return self._below(last, block_lines([value]))

    def remove(self, path: Path) -> str:
        above, _ = self._nearest(path[:-1])
        assert above is not None
        children = self._children(above)
        spots = [spot for _, spot in children]
        place = next(k for k, (key, _) in enumerate(children) if _is(key, path[-1]))
        if len(spots) == 1:
            return self._replaced(above, type(above.content)())
        if not _is_flow(above):
            return self._without(spots[place], spots[place + 1 :])
        if place == len(spots) - 1:
            return self._spliced(self._end(spots[place - 1]), self._end(spots[place]))
        return self._spliced(spots[place].start, spots[place + 1].start)

    def _without(self, spot: _Spot, after: list[_Spot]) -> str:
        """Without the lines of this entry, which others follow."""
        line, end = self._line_start(spot.start), self._line_end(self._end(spot))
        if not self.text[line : spot.start].strip():
            return self._spliced(line, self._past(end))
        if "#" in self.text[end : after[0].start]:  # it shares its line with the dash of an item
            return self._spliced(len(self.text[: spot.start].rstrip()), end)
        return self._spliced(spot.start, after[0].start)

    def _nearest(self, path: Path) -> tuple[_Spot | None, Path]:
        """The last place on the way that is there, and what of the path is not."""
        spot = self.root
        for depth, key in enumerate(path):
            found = None if spot is None else next((one for name, one in self._children(spot) if _is(name, key)), None)
            if found is None:
                return spot, path[depth:]
            spot = found
        return spot, ()

    def _children(self, spot: _Spot) -> list[tuple[object, _Spot]]:
        if isinstance(spot.node, yaml.MappingNode):
            return list(self._entries(spot, spot.node))
        return list(self._items(spot, spot.node)) if isinstance(spot.node, yaml.SequenceNode) else []

    def _entries(self, spot: _Spot, node: yaml.MappingNode) -> Iterator[tuple[object, _Spot]]:
        for (name, content), (key, value) in zip(spot.content.items(), node.value, strict=True):
            colon = self.text.find(":", key.end_mark.index)
            behind = colon + 1 if 0 <= colon <= value.start_mark.index else key.end_mark.index
            yield name, _Spot(content, value, _start(key), behind, key.start_mark.column, False, _is_flow(spot))

    def _items(self, spot: _Spot, node: yaml.SequenceNode) -> Iterator[tuple[object, _Spot]]:
        dash, column = _start(node), node.start_mark.column
        for place, (content, value) in enumerate(zip(spot.content, node.value, strict=True)):
            if _is_flow(spot):
                yield place, _Spot(content, value, _start(value), _start(value), column, True, True)
                continue
            if place:
                dash = self._dash(self._line_end(dash), column)
            found = _Spot(content, value, dash, dash + 1, column, True, False)
            dash = self._end(found)
            yield place, found

    def _dash(self, at: int, column: int) -> int:
        found = re.compile(rf"\n {{{column}}}-").search(self.text, at)
        assert found is not None
        return found.end() - 1

    def _end(self, spot: _Spot) -> int:
        """Where the value ends; PyYAML ends what has no brackets where the next token begins, behind comments."""
        if spot.in_lines:
            return self._end(self._children(spot)[-1][1])
        end = max(spot.node.end_mark.index, spot.behind)
        if isinstance(spot.node, yaml.ScalarNode) and spot.node.style in ("|", ">"):
            head = self.text[_start(spot.node) :].split("\n", 1)[0]
            kept = self.text[:end].removesuffix("\n").removesuffix("\r") if "+" in head else self.text[:end].rstrip()
            return len(kept)
        return end

    def _replaced(self, spot: _Spot, value: object) -> str:
        if spot.flow:
            return self._in_place(spot, flow_text(value))
        in_brackets = isinstance(spot.node, yaml.CollectionNode) and not spot.in_lines and spot.content
        line = flow_text(value) if in_brackets and isinstance(value, dict | list | tuple) else inline_text(value)
        if spot.in_lines or line is None:
            return self._in_lines(spot, [line] if line is not None else block_lines(value), below=line is None)
        return self._in_place(spot, line)

    def _in_place(self, spot: _Spot, new: str) -> str:
        """For a value between others in its line, whose comments stay."""
        start, end = max(_start(spot.node), spot.behind), self._end(spot)
        colon = "" if spot.listed or self.text[spot.behind - 1] == ":" else ":"
        return self._spliced(start, end, f"{colon} {new}" if start == end else new)

    def _in_lines(self, spot: _Spot, lines: list[str], *, below: bool) -> str:
        """For a value of lines of its own, the old one or the new one; a comment beside the key, or a short value, stays."""
        start, end = max(_start(spot.node), spot.behind), self._end(spot)
        stop, first = self._line_end(end), self._line_end(spot.behind)
        beside = "" if spot.in_lines else self.text[end:stop].rstrip()
        if first < start:
            beside = self.text[spot.behind : first].rstrip()
        inner = self.newline + " " * (spot.column + _STEP)
        if below and not spot.listed:
            return self._spliced(spot.behind, stop, beside + "".join(inner + line for line in lines))
        space = "" if spot.behind == spot.start else " "
        return self._spliced(spot.behind, stop, space + lines[0] + beside + "".join(inner + line for line in lines[1:]))

    def _below(self, last: _Spot, lines: list[str]) -> str:
        """New lines behind an entry or item, and behind the comments that are indented below it."""
        end = self._line_end(self._end(last))
        comments = re.compile(rf"(?:\r?\n {{{last.column + 1},}}#[^\r\n]*)*").match(self.text, end)
        end = comments.end() if comments else end
        return self._spliced(end, end, "".join(self.newline + " " * last.column + line for line in lines))

    def _started(self, key: str | int, value: object) -> str:
        """The first entry of a file that has none."""
        gap = self.newline if self.text and not self.text.endswith("\n") else ""
        return self.text + gap + "".join(line + self.newline for line in block_lines({key: value}))

    def _spliced(self, start: int, end: int, new: str = "") -> str:
        return self.text[:start] + new + self.text[end:]

    def _line_start(self, at: int) -> int:
        return self.text.rfind("\n", 0, at) + 1

    def _line_end(self, at: int) -> int:
        """Where the line ends, before its line break."""
        end = self.text.find("\n", at)
        end = len(self.text) if end < 0 else end
        return end - 1 if end > at and self.text[end - 1 : end] == "\r" else end

    def _past(self, end: int) -> int:
        found = re.compile(r"\r?\n").match(self.text, end)
        return found.end() if found else end


def _start(node: yaml.Node) -> int:
    return int(node.start_mark.index)


def _is_flow(spot: _Spot) -> bool:
    """Whether what it holds stands in brackets."""
    return spot.flow or (isinstance(spot.node, yaml.CollectionNode) and bool(spot.node.flow_style))


def _plain(value: object) -> Any:
    """What the value is once it was written and read."""
    read = load_strict(dump_strict([value]))
    assert isinstance(read, list)
    return read[0]


def _is(key: object, step: object) -> bool:
    """True is no 1: a key is found by its type, too."""
    return type(key) is type(step) and key == step


def _put(content: Any, path: Path, value: Any, *, more: bool = False, at: int = 0) -> Any:
    """The same change of the document itself."""
    if at == len(path):
        if not more:
            return value
        if content is not None and not isinstance(content, list):
            raise PolicyError(f"{_shown(path)}: must be a list, to get one more item. Got another value.")
        return [*(content or []), value]
    key, content = path[at], {} if content is None else content
    if isinstance(content, dict) and not isinstance(key, bool) and (isinstance(key, str) or _has(content, key)):
        content[key] = _put(content.get(key), path, value, more=more, at=at + 1)
    elif isinstance(content, list) and _has(content, key):
        content[int(key)] = _put(content[int(key)], path, value, more=more, at=at + 1)
    else:
        raise _nowhere(path, at)
    return content


def _taken(content: Any, path: Path) -> Any:
    inner = content
    for at, key in enumerate(path):
        if not _has(inner, key):
            raise _nowhere(path, at)
        if at < len(path) - 1:
            inner = inner[key]
    del inner[path[-1]]
    return content


def _has(content: Any, key: object) -> bool:
    if isinstance(content, dict):
        return any(_is(name, key) for name in content)
    return isinstance(content, list) and isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(content)


def _nowhere(path: Path, at: int) -> PolicyError:
    return PolicyError(f"{_shown(path)}: must be a place in this policy. Got {path[at]!r}, which is not there.")


def _same(one: Any, other: Any) -> bool:
    """Equal, also in the order of keys; whole numbers are one number whether they are read as floats or not."""
    if isinstance(one, dict) and isinstance(other, dict):
        return _same(list(one), list(other)) and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    numbers = {type(one), type(other)} <= {int, float}
    return (numbers or type(one) is type(other)) and bool(one == other)


def _shown(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
