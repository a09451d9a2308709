"""Values as people write them in a policy file: what `load_strict` reads back.

| value | written |
|---|---|
| 20000, 20000.0 | `20000` |
| 0.05, 1e-06, 2.5e+30 | `0.05`, `1e-6`, `2.5e30` |
| `Percent(0.1)` | `10%` |
| text | plain where that is one thing only, else in quotes |
| a list of numbers | `[20000, 200000]` |
| other lists, mappings | block style, two spaces a step; in brackets where brackets are around |
"""

from __future__ import annotations

import re
from decimal import Decimal

from attrpriv.policy.strict_yaml import dump_strict
from attrpriv.policy.written import Percent

# From here on neighbouring floats are more than one apart, or nearly so: digits would pretend to more than is known.
_WHOLE = 1e15
# What can stand in brackets without quotes, unless it is a number or another word with a meaning.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def block_lines(value: object) -> list[str]:
    """The lines of a mapping or a list that is not empty; of anything else its only line."""
    if isinstance(value, dict) and value:
        return [line for key, item in value.items() for line in _entry(key, item)]
    line = None if isinstance(value, list | tuple) and value else inline_text(value)
    if line is not None:
        return [line]
    assert isinstance(value, list | tuple)
    return [
        ("  " if k else "- ") + line
        for item in value
        for k, line in enumerate(block_lines(item) if inline_text(item) is None else [inline_text(item) or ""])
    ]


def _entry(key: object, item: object) -> list[str]:
    line = inline_text(item)
    if line is not None:
        return [f"{key_text(key)}: {line}"]
    return [f"{key_text(key)}:", *("  " + inner for inner in block_lines(item))]


def inline_text(value: object) -> str | None:
    """A value that stands beside its key, or None: it has lines of its own."""
    if isinstance(value, dict):
        return None if value else "{}"
    if isinstance(value, list | tuple):
        return flow_text(value) if all(_is_number(item) for item in value) else None
    return _scalar(value)


def flow_text(value: object) -> str:
    """A value in one line, as it stands in brackets.

    >>> flow_text({"between": [Percent(0.25), 0.4], "cases": ["a, b", "c"]})
    '{between: [25%, 0.4], cases: ["a, b", c]}'
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow_scalar(key)}: {flow_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow_text, value)) + "]"
    return _flow_scalar(value)


def key_text(key: object) -> str:
    return _scalar(key)


def _flow_scalar(value: object) -> str:
    text = _scalar(value)
    if not isinstance(value, str) or text[:1] in ("'", '"') or _NAME.fullmatch(text):
        return text
    return "'" + text.replace("'", "''") + "'" if '"' in text or "\\" in text else f'"{text}"'


def _scalar(value: object) -> str:
    if _is_number(value):
        return _number(value)
    return dump_strict([value]).removeprefix("- ").removesuffix("\n")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: object) -> str:
    """The shortest digits that are read back as this number."""
    assert isinstance(value, int | float)
    if isinstance(value, Percent):
        return _digits(format((Decimal(repr(float(value))) * 100).normalize(), "f")) + "%"
    if isinstance(value, float) and not (value.is_integer() and abs(value) < _WHOLE):
        return _digits(repr(float(value)))
    return str(int(value))


def _digits(text: str) -> str:
    digits, _, power = text.partition("e")
    return f"{digits}e{int(power)}" if power else digits
