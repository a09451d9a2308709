"""The policy file's YAML: a small, strict part of YAML, read and written.

What must never change: a text has one meaning, the one a reader of the file sees. Whatever YAML would read in two ways
(aliases, tags, octal numbers, repeated keys, several documents, invisible characters) is refused with its line.

    written plainly                         read as
    true, false                             booleans; yes, no, on, True and every other word stay words
    7, -3, 20_000                           integers; 010 is refused (8 or 10?), 0x1F and 1:30 are words
    1.5, .5, 2E3, 1e-6, 1_000.5             the nearest float; refused if that is infinite, or 0 for another number
    10%, 2.5%                               the nearest float of 0.10, 0.025
    null, ~, nothing at all                 None
    .inf, .nan                              refused; inf and nan are words
    2024-01-31, anything else, "quoted"     a word

`dump_strict` writes what `load_strict` reads back to an equal value. Neither executes or constructs anything.
"""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import yaml

from attrpriv.errors import PolicyError
from attrpriv.policy.plain_yaml import plain_value

MAX_BYTES = 4 << 20
MAX_DEPTH = 40
MAX_NODES = 400_000
# Above this, plain lines are worth a faster reader.
_LONG = 1 << 15

_TAG = "tag:yaml.org,2002:"
_DIGITS = r"[0-9](?:_?[0-9])*"
_DECIMAL = rf"(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})"
_PATTERNS = (
    ("bool", r"true|false"),
    ("null", r"~|null|"),
    ("merge", r"<<"),
    ("int", rf"[-+]?{_DIGITS}"),
    ("float", rf"[-+]?(?:{_DECIMAL}(?:[eE][-+]?[0-9]+)?%?|\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))"),
)
# The loader and the dumper share these, so a string that would be read as something else is always written in quotes.
_KINDS = [(name, re.compile(rf"(?:{pattern})\Z")) for name, pattern in _PATTERNS]
_RESOLVERS = {None: [(_TAG + name, pattern) for name, pattern in _KINDS]}
# What the first letter of anything but a word can be.
_NO_WORD = frozenset("tfn~<+-.0123456789")
_NUMBER = re.compile(rf"([-+]?)({_DECIMAL})(?:[eE]([-+]?[0-9]+))?(%?)\Z")

# Characters that hide what a file says: controls, lone surrogates, byte order marks inside the text, line breaks that
# editors do not show (a bare CR, NEL, LS, PS) and marks that reorder what is displayed. Escapes in "..." may name them.
_HIDDEN = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|\r(?!\n)|[\u2028-\u202e\u2066-\u2069\ufeff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def load_strict(text: str, *, where: str = "policy", percent: type[float] = float) -> object:
    """The value that `text` spells; `where` opens every error message, `percent` is what 10% becomes.

    >>> load_strict("delta: 1e-6\\nbetween: [25%, 40%]\\nsmoker: yes")
    {'delta': 1e-06, 'between': [0.25, 0.4], 'smoker': 'yes'}
    """
    if len(text) > MAX_BYTES:
        raise PolicyError(f"{where}: must be at most {MAX_BYTES} characters. Got {len(text)}. Split or shorten it.")
    text = text.removeprefix("\ufeff")
    hidden = _HIDDEN.search(text)
    if hidden is not None:
        line = text.count("\n", 0, hidden.start()) + 1
        raise _error(where, line, "control characters are not allowed", f"U+{ord(hidden.group()):04X}", "Remove it.")
    return _Reading(text, where, percent).value()


_ABSENT = "no such file."


def composed(text: str) -> yaml.Node | None:
    """The nodes of a text that `load_strict` reads, in the same order, each with its place in it; None of an empty one."""
    return _Reading(text, "policy").get_single_node()


def read_strict(path: Path, *, percent: type[float] = float, absent: str = "Check the path.") -> object:
    """The value that the file spells; `absent` is what to do where there is no such file."""
    content, problem = _content(path)
    if problem is not None:
        problem += f" {absent}" if problem == _ABSENT else ""
        raise PolicyError(f"{_shown(str(path), 200)}: must be a text file of at most 4 MiB. Got {problem}")
    return load_strict(content, where=_shown(path.name, 200), percent=percent)


def dump_strict(value: object) -> str:
    """Block style YAML of None, booleans, finite numbers, text, lists (tuples become lists) and mappings of these.

    >>> print(dump_strict({"epsilon": 1.0, "between": [20_000, "10%"], "yes": "1e-6"}), end="")
    epsilon: 1.0
    between:
    - 20000
    - '10%'
    yes: '1e-6'
    """
    clean = _clean(value, 1)
    text = _dumped(clean, readable=True)
    # Escape everything beyond ASCII only when something in it may not stand in the file as it is.
    return text if _HIDDEN.search(text) is None else _dumped(clean, readable=False)


def _content(path: Path) -> tuple[str, str | None]:
    """The text, or what is wrong with the file in fixed words."""
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
        if content.startswith(b"SQLite format 3"):
            return "", "a database. If it is a ledger, name the policy that it belongs to."
        if len(content) > MAX_BYTES:
            return "", "a larger file. Is it the policy, or the table?"
        return content.decode("utf-8"), None
    except (FileNotFoundError, NotADirectoryError):
        return "", _ABSENT
    except IsADirectoryError:
        return "", "a directory. Name the file in it."
    except UnicodeDecodeError:
        return "", "bytes that are not UTF-8. Save the file as UTF-8."
    except (OSError, ValueError):
        return "", "a file that cannot be read. Check its name and permissions."


class _Reading(yaml.SafeLoader):
    """One text being read. Limits hold while nodes are composed, so a bomb is refused before it grows."""

    yaml_implicit_resolvers = _RESOLVERS

    def __init__(self, text: str, where: str, percent: type[float] = float) -> None:
        super().__init__(text)
        self.percent = percent
        self.text = text
        self.numbers: dict[str, int | float] = {}
        self.where = where
        self.nodes = 0
        self.depth = 0

    def _error(self, line: int, requirement: str, received: str, advice: str) -> PolicyError:
        return _error(self.where, line, requirement, received, advice)

    def value(self) -> object:
        problem = "a number that is too large"
        try:
            return self._single_document()
        except yaml.MarkedYAMLError as error:
            parts = [part for part in (error.context, error.problem) if part]
            problem = _shown(", ".join(parts), 160)
            if error.problem_mark is not None:
                self.line = error.problem_mark.line
        except (ValueError, OverflowError):
            pass  # PyYAML hands escapes such as "\UFFFFFFFF" to chr() unchecked
        tab = "\\t" in problem
        advice = "Indent with spaces, not with tabs." if tab else "Check the indentation, colons, brackets and quotes."
        if "escape sequence" in problem:  # as of "C:\\Users", the path of a file on Windows
            advice = "A backslash is itself in single quotes alone: write paths in those, or with / instead."
        raise self._error(self.line + 1, "must be valid YAML", problem, advice)

    def _single_document(self) -> object:
        plain = plain_value(self.text, self._meaning, MAX_NODES) if len(self.text) > _LONG else None
        if plain is not None:
            return plain
        node = self.get_node() if self.check_node() else None
        if node is None or (isinstance(node, yaml.ScalarNode) and node.value == "" and node.style is None):
            raise PolicyError(f"{self.where}: must be a mapping. Got an empty file.")
        if self.check_node():
            _, line = self._next()
            raise self._error(line, "must be one document", "a second one", "Remove the --- line and what follows.")
        return self._value_of(node)

    def _next(self) -> tuple[yaml.Event, int]:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        return event, event.start_mark.line + 1 if event.start_mark else self.line + 1

    def process_directives(self) -> object:
        if self.check_token(yaml.DirectiveToken):
            line = self.peek_token().start_mark.line + 1  # type: ignore[no-untyped-call]
            raise self._error(line, "directives are not allowed", "a line that starts with %", "Remove it.")
        return super().process_directives()  # type: ignore[no-untyped-call]

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
        event, line = self._next()
        self._refuse_properties(event, line)
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self._error(line, f"must have at most {MAX_NODES} values", "more", "Shorten it.")
        nested = isinstance(event, yaml.CollectionStartEvent)
        self.depth += nested
        if self.depth > MAX_DEPTH:
            raise self._error(line, f"must be nested at most {MAX_DEPTH} deep", "more", "Flatten it.")
        node = super().compose_node(parent, index)  # type: ignore[arg-type]
        self.depth -= nested
        return node

    def _refuse_properties(self, event: yaml.Event, line: int) -> None:
        if isinstance(event, yaml.AliasEvent):
            raise self._error(line, "aliases are not allowed", f"*{event.anchor}", "Write the value out.")
        if not isinstance(event, yaml.NodeEvent):
            return
        if event.anchor is not None:
            raise self._error(line, "anchors are not allowed", f"&{event.anchor}", "Remove it.")
        tag = getattr(event, "tag", None)
        if tag is not None:
            shown = tag.replace(_TAG, "!!", 1)
            raise self._error(line, "tags are not allowed", shown, "Remove it; quote a word that starts with !.")

    def _value_of(self, node: yaml.Node) -> object:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            return [self._value_of(item) for item in node.value]
        assert isinstance(node, yaml.ScalarNode)
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode) -> dict[object, object]:
        result: dict[object, object] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = self._key(key_node, line)
            if key in result:
                raise self._error(line, "keys must be unique", f"{key_node.value} again", "Remove one of the two.")
            result[key] = self._value_of(value_node)
        return result

    def _key(self, node: yaml.Node, line: int) -> object:
        if not isinstance(node, yaml.ScalarNode):
            raise self._error(line, "a key must be a word or a number", "a list or a mapping", "Quote it.")
        key = self._scalar(node)
        if key is None:
            raise self._error(line, "a key must be a word or a number", "an empty key", "Name it, or quote the word.")
        return key

    def _meaning(self, text: str, plain: bool) -> object:
        """The same of a scalar without a node, in a text without escapes; where it is wrong is found with one."""
        if not plain or (text != "" and text[0] not in _NO_WORD):
            return text
        if text in self.numbers:
            return self.numbers[text]
        return self._worth(text, next((kind for kind, pattern in _KINDS if pattern.match(text)), "str"), 0)

    def _scalar(self, node: yaml.ScalarNode) -> object:
        return self._worth(node.value, node.tag.removeprefix(_TAG), node.start_mark.line + 1)

    def _worth(self, text: str, kind: str, line: int) -> object:
        if kind == "merge":
            raise self._error(line, "merge keys are not allowed", "<<", "Write the entries out.")
        if kind == "bool":
            return text == "true"
        if kind == "null":
            return None
        if kind in ("int", "float"):
            if text not in self.numbers:
                self.numbers[text] = self._number(text, line)
            return self.numbers[text]
        if _SURROGATE.search(text):
            raise self._error(line, "must be Unicode text", "half of a surrogate pair", "Use \\U and 8 hex digits.")
        return text

    def _number(self, text: str, line: int) -> int | float:
        parts = _NUMBER.match(text)
        value = _parsed(parts) if parts else math.inf
        if math.isinf(value):
            advice = "Write a smaller number." if parts else "Write a number, or quote the word."
            raise self._error(line, "a number must be finite", text, advice)
        assert parts is not None
        digits = parts[2].replace("_", "")
        if re.match("0[0-9]", digits):
            advice = "Drop the leading zeros, or quote the word."
            raise self._error(line, "a number must not start with 0, which is octal to some", text, advice)
        if value == 0 and digits.strip("0.") != "":
            raise self._error(line, "a number must not be so small that it reads as 0", text, "Write 0 if meant.")
        return self.percent(value) if parts[4] else value


def _parsed(parts: re.Match[str]) -> int | float:
    """The nearest number to the text; infinite when it is beyond the floats, also for integers."""
    sign, digits, exponent, percent = parts[1], parts[2].replace("_", ""), parts[3], parts[4]
    # float() rounds the whole decimal once, so 10% is exactly the float 0.10; dividing by 100 would round twice.
    value = float(f"{sign}{digits}e{_power(exponent or '0') - (2 if percent else 0)}")
    if exponent or percent or "." in digits or math.isinf(value):
        return value
    return int(sign + digits)


def _power(exponent: str) -> int:
    digits = exponent.lstrip("+-").lstrip("0")
    # Beyond 9 digits the number is 0 or infinite, whatever stands before the e in a file of at most 4 MiB; and int()
    # refuses very long texts.
    size = int(digits or "0") if len(digits) <= 9 else 10**9
    return -size if exponent.startswith("-") else size


def _clean(value: object, depth: int) -> object:
    """A copy made of plain built-in types only, or an error: what PyYAML gets to see."""
    if depth > MAX_DEPTH and isinstance(value, dict | list | tuple):
        raise PolicyError(f"value: must be nested at most {MAX_DEPTH} deep. Got more. Flatten it.")
    if isinstance(value, dict):
        return {_clean_key(key): _clean(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item, depth + 1) for item in value]
    return _clean_scalar(value)


def _clean_key(key: object) -> object:
    if key is None or isinstance(key, tuple | list | dict):
        raise PolicyError(f"value: keys must be words or numbers. Got a key of type {type(key).__name__}.")
    return _clean_scalar(key)


def _clean_scalar(value: object) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if _SURROGATE.search(value):
            raise PolicyError("value: must be Unicode text. Got half of a surrogate pair. Remove it.")
        return str.__str__(value)  # the text itself, also of an enumeration's member
    if isinstance(value, int | float):
        if not abs(value) <= sys.float_info.max:
            raise PolicyError("value: numbers must be finite floats or integers in their range. Got another number.")
        return int(value) if isinstance(value, int) else float(value)
    raise PolicyError(f"value: must be text, numbers, booleans, None, lists and mappings. Got {type(value).__name__}.")


class _Writing(yaml.SafeDumper):
    yaml_implicit_resolvers = _RESOLVERS

    def ignore_aliases(self, data: object) -> bool:
        return True  # a value used twice is written twice: the reader refuses aliases


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # One-line printable text may be plain or in single quotes, as PyYAML sees fit. Anything else needs escapes.
    return dumper.represent_scalar(_TAG + "str", text, style=None if text.isprintable() else '"')


_Writing.add_representer(str, _represent_text)


def _dumped(clean: object, *, readable: bool) -> str:
    text: str = yaml.dump(
        clean, Dumper=_Writing, default_flow_style=False, sort_keys=False, allow_unicode=readable, width=sys.maxsize
    )
    return text


def _error(where: str, line: int, requirement: str, received: str, advice: str) -> PolicyError:
    return PolicyError(f"{where}, line {line}: {requirement}. Got {_shown(received, 160)}. {advice}")


def _shown(text: str, limit: int) -> str:
    """`text` on one line, printable and short, to be quoted in a message."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: limit + 1])
    return safe if len(text) <= limit else safe[:limit] + "..."
