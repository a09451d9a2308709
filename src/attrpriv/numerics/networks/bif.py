"""Reading a Bayesian network from a BIF file, with every probability as the decimal fraction it is written as.

    network NAME { ... }
    variable X { type discrete [ 2 ] { s, t }; }
    probability ( X ) { table 0.3, 0.7; }
    probability ( Y | X ) { (s) 0.1, 0.9; (t) 0.6, 0.4; default 0.5, 0.5; }

What must never change:

* A file that is not understood completely is refused: unknown characters outside of properties, and whatever is said twice. A
  `table` of a variable with parents has no order that all programs agree on, so that form is refused too.
* The size of a table is known before any of its rows is kept: a few parents more, and a short file would fill the memory.
* A path may lead to any file: a message quotes the names of a network, and nothing of what is not understood.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from attrpriv.errors import PolicyError

# What one network may hold. The largest that are passed around have a thousand variables and half a million probabilities.
MOST_PROBABILITIES = 1 << 19
MOST_VARIABLES = 5_000
_MOST_STATES = 10_000
_LONGEST_NAME = 200

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f\v]+|//[^\n]*|/\*.*?\*/)
    |   "(?P<quoted>[^"\n]*)"
    |   (?P<word>(?:[\w.+\-<>=%&:']|/(?![/*]))+)
    |   (?P<sign>[{}()\[\];,|])
    |   (?P<endless>/\*)
    |   (?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z")

Row = tuple[float, ...]


class _UnreadableError(Exception):
    """What is wrong with the file, in words that quote nothing but its names."""


@dataclass
class _Variable:
    states: list[str]
    parents: list[str] = field(default_factory=list)
    rows: dict[tuple[str, ...], Row] = field(default_factory=dict)
    default: Row | None = None
    stated: bool = False


class _Tokens:
    """The words and signs of a file, one after the other; the next one is known by its kind and its text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: Iterator[re.Match[str]] = _TOKEN.finditer(text)
        self.advance()

    def advance(self) -> None:
        match = next((match for match in self._found if match.lastgroup != "space"), None)
        self._at = len(self._text) if match is None else match.start()
        self.kind = "end" if match is None else str(match.lastgroup)
        self.text = "" if match is None else match[self.kind]
        if self.kind == "endless":
            raise self.wrong("a comment has no end")

    def wrong(self, problem: str) -> _UnreadableError:
        line = self._text.count("\n", 0, self._at) + 1
        return _UnreadableError(f"line {line}: {problem}")

    def expected(self, what: str) -> _UnreadableError:
        return self.wrong(f"expected {what}, got {'the end' if self.kind == 'end' else 'something else'}")

    def at(self, *wanted: str) -> bool:
        """Whether the next one is one of these signs, or of these words without quotes."""
        return self.kind in ("sign", "word") and self.text in wanted

    def take(self, *wanted: str) -> str:
        if not self.at(*wanted):
            raise self.expected(" or ".join(wanted))
        found = self.text
        self.advance()
        return found

    def name(self) -> str:
        """Any word; other characters, and words that are signs or empty, need quotes."""
        if self.kind not in ("quoted", "word") or not 0 < len(self.text) <= _LONGEST_NAME:
            raise self.expected(f"a name of at most {_LONGEST_NAME} characters, in quotes if it has unusual ones")
        found = self.text
        self.advance()
        return found

    def names(self, end: str) -> list[str]:
        """Names up to a sign, with commas or without."""
        found: list[str] = []
        while not self.at(end):
            if self.at(","):
                self.advance()
            elif len(found) == _MOST_STATES:
                raise self.wrong(f"more than {_MOST_STATES:,} names in a list")
            else:
                found.append(self.name())
        self.take(end)
        return found

    def row(self, size: int) -> Row:
        """So many numbers, and a semicolon."""
        found: list[float] = []
        while len(found) < size:
            if self.at(","):
                self.advance()
            elif self.kind == "word" and len(self.text) <= _LONGEST_NAME and _NUMBER.match(self.text):
                found.append(float(self.text))
                self.advance()
            else:
                raise self.expected(f"{size} numbers")
        self.take(";")
        return tuple(found)

    def skip(self, end: str) -> None:
        """Everything up to a sign, as long as no block begins or ends."""
        while not self.at(end):
            if self.kind == "end" or self.at("{", "}"):
                raise self.expected(end)
            self.advance()
        self.advance()


def read_bif(text: str, name: str) -> dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[Row, ...]]]:
    """For each variable, parents before children: its states, its parents, and a row for each combination of theirs."""
    problem = None
    try:
        found = _variables(_Tokens(text))
        order = TopologicalSorter({key: variable.parents for key, variable in found.items()}).static_order()
        return {key: _finished(key, found) for key in order}
    except CycleError:
        problem = "it has a cycle"
    except _UnreadableError as error:
        problem = str(error)
    raise PolicyError(f"network: must be a network without cycles in BIF. Got {name}, which cannot be read: {problem}.")


def _variables(tokens: _Tokens) -> dict[str, _Variable]:
    found: dict[str, _Variable] = {}
    left = MOST_PROBABILITIES
    while tokens.kind != "end":
        word = tokens.take("network", "variable", "probability")
        if word == "network":
            tokens.skip("{")
            tokens.skip("}")
        elif word == "variable":
            _declare(tokens, found)
        else:
            left -= _probability(tokens, found, left)
    if not found:
        raise _UnreadableError("no variable is declared")
    return found


def _declare(tokens: _Tokens, found: dict[str, _Variable]) -> None:
    key = tokens.name()
    states = _states(tokens)
    if key in found:
        raise _UnreadableError(f"{key} is declared twice")
    if len(found) == MOST_VARIABLES:
        raise _UnreadableError(f"it has more than {MOST_VARIABLES:,} variables")
    if len(states) < 2 or len(set(states)) != len(states):
        raise _UnreadableError(f"{key} must have two states or more, each of them once")
    found[key] = _Variable(states)


def _states(tokens: _Tokens) -> list[str]:
    tokens.take("{")
    states: list[str] | None = None
    while not tokens.at("}"):
        if tokens.take("type", "property") == "property":
            tokens.skip(";")
            continue
        if states is not None:
            raise tokens.wrong("a variable has two types")
        states = _typed(tokens)
    tokens.take("}")
    return states or []


def _typed(tokens: _Tokens) -> list[str]:
    """`discrete [ 2 ] { s, t };`"""
    tokens.take("discrete")
    tokens.take("[")
    size = tokens.name()
    tokens.take("]")
    tokens.take("{")
    states = tokens.names("}")
    if size != str(len(states)):
        raise tokens.wrong("the number in brackets is not the number of states")
    tokens.take(";")
    return states


def _probability(tokens: _Tokens, found: Mapping[str, _Variable], left: int) -> int:
    """Read the table of one variable; how many probabilities it has, of those that are left."""
    key, variable = _head(tokens, found)
    size = math.prod(len(found[one].states) for one in (*variable.parents, key))
    if size > left:
        raise _UnreadableError(
            f"with the table of {key}, one row for each combination of its parents' states, it has more than "
            f"{MOST_PROBABILITIES:,} probabilities; use fewer parents or states"
        )
    tokens.take("{")
    of_parents = [set(found[parent].states) for parent in variable.parents]
    while not tokens.at("}"):
        _entry(tokens, key, variable, of_parents)
    tokens.take("}")
    return size


def _head(tokens: _Tokens, found: Mapping[str, _Variable]) -> tuple[str, _Variable]:
    """`( Y | X, Z )`"""
    tokens.take("(")
    key = tokens.name()
    if tokens.at("|"):
        tokens.advance()
    parents = tokens.names(")")
    if key not in found:
        raise tokens.wrong("a probability of a variable that is not declared before")
    if any(parent not in found for parent in parents):
        raise _UnreadableError(f"{key} has a parent that is not declared before")
    if found[key].stated or len(set(parents)) != len(parents):
        raise _UnreadableError(f"{key} has a parent or a probability twice")
    found[key].parents, found[key].stated = parents, True
    return key, found[key]


def _entry(tokens: _Tokens, key: str, variable: _Variable, of_parents: list[set[str]]) -> None:
    word, size = tokens.take("(", "default", "table", "property"), len(variable.states)
    if word == "property":
        tokens.skip(";")
    elif word == "default":
        if variable.default is not None:
            raise _UnreadableError(f"{key} has a default twice")
        variable.default = tokens.row(size)
    else:
        if word == "table" and variable.parents:
            raise _UnreadableError(f"{key} has a table; write a row for each combination of its parents' states")
        given = tuple(tokens.names(")")) if word == "(" else ()
        if len(given) != len(of_parents) or any(state not in known for state, known in zip(given, of_parents, strict=True)):
            raise _UnreadableError(f"{key} has a row for {', '.join(given[:9])}, which its parents do not have")
        if given in variable.rows:
            raise _UnreadableError(f"{key} has a row twice")
        variable.rows[given] = tokens.row(size)


def _finished(key: str, found: Mapping[str, _Variable]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Row, ...]]:
    variable = found[key]
    combinations = itertools.product(*(found[parent].states for parent in variable.parents))
    rows = [variable.rows.get(given, variable.default) for given in combinations]
    complete = [row for row in rows if row is not None]
    if len(complete) != len(rows):
        raise _UnreadableError(f"{key} lacks a row")
    return tuple(variable.states), tuple(variable.parents), tuple(complete)
