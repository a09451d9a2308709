"""What a value of a policy must be, in words: "must be a number. Got 'x'." A check of pydantic is told by its kind alone.

What must never change: the words are a function of the check and of the stated value, both public; no phrase of a library is
passed on, so that its next version changes nothing that people read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# By the kind of the check that failed; in braces, what the check was told.
_WORDS: Mapping[str, str] = {
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a smaller whole number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be a mapping, such as {{name: value}}",
    "mapping_type": "must be a mapping, such as {{name: value}}",
    "model_type": "must be a mapping, such as {{name: value}}",
    "model_attributes_type": "must be a mapping, such as {{name: value}}",
    "invalid_key": "its keys must be text",
    "literal_error": "must be {expected}",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "too_short": "must have at least {min_length} {entries}",
    "too_long": "must have at most {max_length} {entries}",
    "string_too_short": "must not be empty",
}
_NUMBERS = ("float_type", "float_parsing", "int_type", "int_parsing")
_TRUTHS = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
_QUOTES = "'\""
_NUMERIC = re.compile(r"[-+]?[0-9][0-9_.]*(?:[eE][-+]?[0-9]+)?%?\Z")


def requirement(detail: Any) -> str:
    """What one failed check asks for, what it got, and what to do about it where that is plain."""
    kind = str(detail["type"])
    if kind == "missing":
        return "is required and has no default. Add it."
    if kind == "value_error":
        return str(detail["msg"]).removeprefix("Value error, ")
    told = {name: f"{given:g}" if isinstance(given, float) else given for name, given in detail.get("ctx", {}).items()}
    told["entries"] = "entry" if told.get("min_length", told.get("max_length")) == 1 else "entries"
    is_key = kind == "string_type" and detail["loc"][-1:] == ("[key]",)
    words = _WORDS["invalid_key" if is_key else kind] if kind in _WORDS else "must be of another kind"
    limit = detail.get("ctx", {}).get("lt", detail.get("ctx", {}).get("le"))
    return f"{words.format_map(told)}. Got {shown(detail['input'])}.{_advice(kind, detail['input'], limit)}"


def _advice(kind: str, value: object, limit: object) -> str:
    if value is None and kind.endswith("_type"):
        return " Write it, or remove the line."
    if kind in ("string_type", "invalid_key"):
        return _text_advice(value)
    if kind in _NUMBERS:
        return _number_advice(value) if isinstance(value, str) else _single_advice(value)
    if kind in ("tuple_type", "list_type"):
        return _list_advice(value)
    if kind.startswith(("dict", "mapping", "model")) and isinstance(value, list | tuple):
        return " Write its entries without brackets and dashes."
    if kind.startswith("bool") and isinstance(value, str) and value.strip().lower() in _TRUTHS:
        return f" Write {_TRUTHS[value.strip().lower()]}."
    return percent_advice(value) if limit == 1 else ""


def _text_advice(value: object) -> str:
    """What to do about something else that was meant to be a text."""
    return " Put it in quotes." if isinstance(value, bool | int | float) else _single_advice(value)


def _single_advice(value: object) -> str:
    """What to do about several values where one is meant."""
    if isinstance(value, list | tuple):
        return " Write one alone, without brackets and dashes."
    return " Write it alone, without a name before it." if isinstance(value, Mapping) else ""


def _list_advice(value: object) -> str:
    """What to do about one value where a list is meant: words go with dashes, numbers in brackets."""
    if isinstance(value, Mapping) and value:
        return f" Begin each entry with a dash: `- {shown(next(iter(value))).strip(_QUOTES)}: ...`."
    if isinstance(value, str) and value[:1].isalpha():
        return f" Begin each entry with a dash: `- {shown(value).strip(_QUOTES)}`."
    return " Put it in brackets, with commas: [1, 2]."


def _number_advice(text: str) -> str:
    """What to do about a text that was meant to be a number."""
    if (share := re.fullmatch(r"\s*([0-9.]+)\s*%\s*", text)) and _NUMERIC.match(share[1]):
        return f" In a policy file write {share[1]}% without spaces and quotes, in Python {float(share[1]) / 100:g}."
    if _NUMERIC.match(text):
        return " Write it without quotes."
    if re.fullmatch(r"[-+.0-9]+%?(\s*(-|to|\.\.)\s*|\s+(?![0-9]{3}\Z))[-+.0-9]+%?", text):
        return " Put a comma between the two numbers."
    if re.fullmatch(r"[-+]?[0-9]+([.,' ][0-9]+)+", text):
        return " Write its digits without separators, and a point before decimals, as in 60000.5."
    return " Write a number in digits alone, as in 0.5." if re.search("[0-9]", text) else ""


def percent_advice(value: object) -> str:
    """What to do where a share has to be and a number from 1 to 100 is; empty for other values.

    >>> percent_advice(30), percent_advice(-0.1)
    (' If it is in percent, write 30%.', '')
    """
    return f" If it is in percent, write {value:g}%." if isinstance(value, int | float) and 1 < value <= 100 else ""


def shown(value: object, most: int = 80) -> str:
    """A stated value, short enough to be quoted; of an object, which may be a table, its type alone."""
    if value is None:
        return "nothing"
    if not _plain(value):
        return f"an object of type {type(value).__name__}"
    try:
        text = repr(value)
    except ValueError:  # of thousands of digits, which Python does not write out
        return "a number of thousands of digits"
    return text if len(text) <= most else text[: most - 3] + "..."


def _plain(value: object) -> bool:
    """Whether a file could say this: no object, nor anything that holds one."""
    if isinstance(value, Mapping):
        return all(_plain(part) for part in (*value, *value.values()))
    if isinstance(value, list | tuple):
        return all(map(_plain, value))
    return value is None or isinstance(value, bool | int | float | str | bytes)
