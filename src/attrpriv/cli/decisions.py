"""What an owner decided for a starter policy, written into it; and the one question that is left.

What must never change: a decision is taken over as it was given, never completed by a guess; and nothing here reads a row.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attrpriv.engines.files import near_name
from attrpriv.engines.scan import closest
from attrpriv.engines.tables import open_table, shown_name
from attrpriv.errors import UsageError
from attrpriv.policy.strict_yaml import dump_strict

# What is asked for a TODO, by the key that it stands for.
QUESTIONS = {
    "secret": "What must stay hidden? A statistic such as mean(income), share(smoker = 'yes') or columns(age, sex).",
    "rows": "How many rows does the table have? The number becomes public.",
    "between": "Between which two values does the secret lie for sure? All between them are hidden, as in 20, 60 or 20%, 40%.",
    "within": "How far apart may two values be that nobody can tell apart? Remove the line to hide the whole range.",
    "file": "Which file has public records with the hidden columns? It must not be made from this table.",
    "least_density": "How many times as common as in public is each value at least, in this table? A number such as 0.8.",
    "release": "What will be published? A query such as avg(hours), or count(*) filter (where hours > 40).",
    "tolerance": "How far may the truth be from these numbers? In standard deviations (mean), or relative (sd, slope).",
    "assume": "What may an adversary know? Public records answer all of it: attrpriv init DATA --public FILE ...",
}
_ASSUMED = re.compile(r"^assume:.*?(?=^release:)", flags=re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Decisions:
    """Numbers and places that the owner gave; None where one is still to be decided."""

    rows: int | None = None
    between: str | None = None
    within: str | None = None
    least_density: str | None = None
    public: Path | None = None

    def fill(self, text: str, path: Path, secret: str) -> str:
        """The starter policy at this path, with each decision in its place; an error where it has no such place."""
        of_shares = secret.startswith(("share(", "distribution("))
        if self.between is not None:
            read_range(self.between, of_shares)
        if self.within is not None:
            read_distance(self.within, of_shares)
        if self.least_density is not None:
            read_density(self.least_density)
        text = _put(text, "rows", "rows: TODO", None if self.rows is None else f"rows: {self.rows}")
        text = _put(
            text, "between", "between: [TODO, TODO]", None if self.between is None else f"between: [{pair(self.between)}]"
        )
        if self.within == "all":
            text = re.sub(r"^    within: TODO.*\n", "", text, flags=re.MULTILINE)
        else:
            text = _put(text, "within", "within: TODO", None if self.within is None else f"within: {self.within.strip()}")
        text = _put(
            text,
            "least-density",
            "least_density: TODO",
            None if self.least_density is None else f"least_density: {self.least_density.strip()}",
        )
        return text if self.public is None else self._with_public(text, path)

    def _with_public(self, text: str, path: Path) -> str:
        assert self.public is not None
        place = dump_strict([os.path.relpath(self.public.resolve(), path.resolve().parent)]).strip().removeprefix("- ")
        if "  file: TODO" in text:
            return text.replace("  file: TODO", f"  file: {place}", 1)
        if not _ASSUMED.search(text):
            raise UsageError("public: this starter policy draws a view of declared ranges, which needs no public records.")
        fitted = dump_strict([self.assumption(path).name]).strip().removeprefix("- ")
        said = "which `attrpriv fit` writes from public records"
        return _ASSUMED.sub(f"assume:\n  file: {fitted}     # {said}\n", text, count=1)

    def assumption(self, path: Path) -> Path:
        """Where the assumption that is fitted for a policy at this path is written."""
        return path.with_name(f"{path.stem}.assumption.yaml")

    def fits(self, text: str) -> bool:
        """Whether the public records are to be fitted: the policy refers to an assumption that they make."""
        return self.public is not None and re.search(r"^assume:\n  file: ", text, flags=re.MULTILINE) is not None


def only_one(secrets: Sequence[str]) -> str | None:
    """The secret that was named, if any. The last of several would be hidden, and the others not."""
    if len(secrets) < 2:
        return secrets[0] if secrets else None
    raise UsageError(
        f"secret: a starter policy hides one. Got {len(secrets)}. Name one, and add the others to the policy as entries of "
        "their own under protect."
    )


def pair(text: str) -> str:
    """Two values, as a policy lists them.

    >>> pair("20%, 40%"), pair("[20000 200000]")
    ('20%, 40%', '20000, 200000')
    """
    values = [value for value in re.split(r"[,\s]+", text.strip().strip("[]()")) if value]
    if len(values) != 2:
        raise UsageError(f"between: must be two values, as in 20%,40%. Got {text!r}.")
    return ", ".join(values)


def number(text: str) -> float:
    """A number, or a share in percent; NaN where it is neither."""
    try:
        return float(text.strip().removesuffix("%")) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        return math.nan


def read_range(text: str, of_shares: bool) -> str:
    """The range of a secret, as a policy lists it.

    >>> read_range("20% 0.4", of_shares=True)
    '20%, 0.4'
    """
    said = pair(text)
    low, high = map(number, said.split(", "))
    if not 0 < high - low < math.inf:
        raise UsageError(f"between: must be two numbers, the smaller one first. Got {text!r}.")
    return _in_its_unit("between", said, of_shares)


def read_distance(text: str, of_shares: bool) -> str:
    """How far apart two values may be that nobody can tell apart."""
    if text != "all" and not 0 < number(text) < math.inf:
        raise UsageError(f"within: must be one number above 0, or the word all. Got {text!r}.")
    return _in_its_unit("within", text, of_shares)


def read_density(text: str) -> str:
    if not 0 < number(text) <= 1:
        raise UsageError(f"least density: must be above 0 and at most 1, such as 0.8. Got {text!r}.")
    return text


def _in_its_unit(key: str, text: str, of_shares: bool) -> str:
    """30 is not taken for 30%, and only a share has percent."""
    if of_shares and any(number(value) > 1 for value in text.split(",")):
        raise UsageError(f"{key}: shares must be from 0 to 1. Got {text}. Write a percent sign, as in 25% instead of 25.")
    if not of_shares and "%" in text:
        raise UsageError(f"{key}: only a share may be given in percent. Got {text}. Write a number in the unit of the column.")
    return text


def public_records(path: Path, private: Path | None, columns: Sequence[str]) -> Path:
    """A file of public records that has these columns, and is not the table's own."""
    if not path.is_file():
        raise UsageError(f"public: must be a file that is there. Got {str(path)!r}.{near_name(path)}")
    if private is not None and private.is_file() and path.samefile(private):
        raise UsageError("public: must be other records than the private table. Got its own file.")
    there = open_table(path).columns
    for column in columns:
        if column not in there:
            name = shown_name(column)
            raise UsageError(f"public: the file must have the column {name}. Got none of this name. {closest(there, column)}")
    return path


def _put(text: str, option: str, place: str, value: str | None) -> str:
    if value is None:
        return text
    if place not in text:
        raise UsageError(
            f"{option}: this starter policy has no place for it. Leave it out, or name another secret or template."
        )
    return text.replace(place, value, 1)


@dataclass(frozen=True)
class Left:
    """The first decision that is left, and how many there are."""

    key: str
    line: int
    question: str
    count: int

    def to_json(self) -> dict[str, Any]:
        return {"key": self.key, "line": self.line, "question": self.question, "count": self.count}


def first_left(text: str) -> Left | None:
    """The first TODO of a policy's text, as a question; None where nothing is left to decide.

    >>> first_left("epsilon: 1\\nprotect:\\n  - secret: mean(income)\\n    between: [TODO, TODO]  # TODO\\n")
    Left(key='between', line=4, question='Between which two values ...', count=1)
    """
    lines = [line.partition(" #")[0] for line in text.splitlines()]
    open_lines = [number for number, line in enumerate(lines, 1) if "TODO" in line and not line.startswith("#")]
    if not open_lines:
        return None
    number = open_lines[0]
    return Left(*_asked(lines, number), count=len(open_lines))


def _asked(lines: list[str], number: int) -> tuple[str, int, str]:
    """The key that a line belongs to: its own, or the nearest one above it that has a question."""
    for above in range(number, 0, -1):
        key = re.match(r"\s*(?:- )?([a-z_]+):", lines[above - 1])
        if key and key[1] in QUESTIONS:
            return key[1], number, QUESTIONS[key[1]]
    return "", number, "Replace the word TODO in this line."
