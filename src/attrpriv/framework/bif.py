"""Reading a Bayesian network from a BIF file, with every probability as the decimal fraction it is written as.

    network NAME { ... }
    variable X { type discrete [ 2 ] { s, t }; }
    probability ( X ) { table 0.3, 0.7; }
    probability ( Y | X ) { (s) 0.1, 0.9; (t) 0.6, 0.4; default 0.5, 0.5; }

What must never change: a file that is not understood completely is refused. A `table` of a variable with parents has no order
that all programs agree on, so that form is refused too.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from attrpriv.errors import PolicyError

_TOKEN = re.compile(r'"([^"]*)"|([\w.+\-/<>=%&:\']+)|([{}()\[\];,|])')
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass
class _Variable:
    states: list[str]
    parents: list[str] = field(default_factory=list)
    rows: dict[tuple[str, ...], list[float]] = field(default_factory=dict)
    default: list[float] | None = None


class _Tokens:
    """The words and signs of a file, one after the other."""

    def __init__(self, text: str) -> None:
        plain = _COMMENT.sub(" ", text)
        self._tokens: Iterator[str] = iter([quoted or word or sign for quoted, word, sign in _TOKEN.findall(plain)])
        self.next = next(self._tokens, "")

    def take(self, *wanted: str) -> str:
        found = self.next
        if not found or (wanted and found not in wanted):
            raise ValueError(f"expected {' or '.join(wanted) or 'more'}, got {found or 'the end'}")
        self.next = next(self._tokens, "")
        return found

    def listed(self, end: str) -> list[str]:
        """Words up to a sign, with commas or without."""
        words = []
        while self.next != end:
            word = self.take()
            if word != ",":
                words.append(word)
        self.take(end)
        return words

    def skip_block(self) -> None:
        depth = 0
        while True:
            sign = self.take()
            depth += (sign == "{") - (sign == "}")
            if depth == 0 and sign == "}":
                return


def read_bif(text: str, name: str) -> dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[float, ...], ...]]]:
    """For each variable, parents before children: its states, its parents, and a row for each combination of theirs."""
    problem = None
    try:
        found = _variables(_Tokens(text))
        order = TopologicalSorter({key: variable.parents for key, variable in found.items()}).static_order()
        return {key: _finished(key, found) for key in order}
    except CycleError:
        problem = "it has a cycle"
    except (ValueError, KeyError) as error:
        problem = str(error)
    raise PolicyError(f"network: must be a network without cycles in BIF. Got {name}, which cannot be read: {problem}.")


def _variables(tokens: _Tokens) -> dict[str, _Variable]:
    found: dict[str, _Variable] = {}
    while tokens.next:
        word = tokens.take("network", "variable", "probability")
        if word == "network":
            while tokens.next != "{":
                tokens.take()
            tokens.skip_block()
        elif word == "variable":
            key = tokens.take()
            if key in found:
                raise ValueError(f"{key} is declared twice")
            found[key] = _Variable(_states(tokens))
        else:
            _probability(tokens, found)
    if not found:
        raise ValueError("no variable is declared")
    return found


def _states(tokens: _Tokens) -> list[str]:
    tokens.take("{")
    states: list[str] = []
    while tokens.next != "}":
        if tokens.take() != "type":
            tokens.listed(";")  # a property
            continue
        tokens.take("discrete")
        tokens.take("[")
        tokens.listed("]")
        tokens.take("{")
        states = tokens.listed("}")
        tokens.take(";")
    tokens.take("}")
    return states


def _probability(tokens: _Tokens, found: dict[str, _Variable]) -> None:
    tokens.take("(")
    names = tokens.listed(")")
    variable = found[names[0]]
    variable.parents = [word for word in names[1:] if word != "|"]
    if any(parent not in found for parent in variable.parents):
        raise ValueError(f"{names[0]} has a parent that is not declared")
    tokens.take("{")
    while tokens.next != "}":
        word = tokens.take()
        if word == "(":
            given = tuple(tokens.listed(")"))
            variable.rows[given] = _numbers(tokens)
        elif word == "default":
            variable.default = _numbers(tokens)
        elif word == "table":
            if variable.parents:
                raise ValueError(f"{names[0]} has a table; write a row for each combination of its parents' states")
            variable.rows[()] = _numbers(tokens)
        else:
            tokens.listed(";")  # a property
    tokens.take("}")


def _numbers(tokens: _Tokens) -> list[float]:
    return [float(word) for word in tokens.listed(";")]


def _finished(key: str, found: dict[str, _Variable]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[float, ...], ...]]:
    variable = found[key]
    combinations = list(itertools.product(*(found[parent].states for parent in variable.parents)))
    unknown = [given for given in variable.rows if given not in set(combinations)]
    if unknown:
        raise ValueError(f"{key} has a row for {', '.join(unknown[0])}, which its parents do not have")
    rows = [variable.rows.get(given, variable.default) for given in combinations]
    complete = [row for row in rows if row is not None]
    if len(complete) != len(rows):
        raise ValueError(f"{key} lacks a row")
    return tuple(variable.states), tuple(variable.parents), tuple(tuple(row) for row in complete)
