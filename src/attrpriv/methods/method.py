"""What a method is: a frozen description of a mechanism, and where its code is. Nothing is loaded before it is used.

A *method* goes by its public name. A *form* of it plans for some shapes of cases (`problem.shapes`) and one kind of statistic;
its `home` is the module and the function that makes the plan. What must never change: a problem that no form takes is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal

ROOM = "attrpriv.methods"
# What a form answers: averages and sums (also over subsets of public size), counts and what is made of them, statistics that
# are no averages, or whatever is asked.
Statistics = Literal["averages", "subsets", "counts", "non_linear", "any"]


def load(home: str) -> Any:
    """What is called `name` in the module, of a home `module:name`; one that begins with a dot is below methods/."""
    module, _, name = home.partition(":")
    return getattr(import_module(module, ROOM), name)


@dataclass(frozen=True)
class Form:
    """One way of a method: for which shapes, for which statistics, and where the function is that plans it."""

    shapes: tuple[str, ...]
    """Empty: for every shape."""
    home: str
    statistics: Statistics = "any"
    alone: bool = False
    """Whether it shares no budget with other releases."""
    too_slow: str = ""
    """Home of a function that says in words for what size `auto` tries it, where a problem is larger; none: it is fast."""


@dataclass(frozen=True)
class Method:
    """A mechanism: what it takes, what may follow what, where it is proved."""

    name: str
    forms: tuple[Form, ...]
    page: str
    """The page that proves it, below docs/theory/."""
    proofs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Kinds of evidence that it makes, each with the module that is its home."""
    asks: tuple[str, ...] = ()
    """The kinds of assumption to name where another one is made; none: it needs no assumption."""
    follows: tuple[str, ...] = ()
    """The kinds of evidence that it may follow, and that leave room for more of it; none: it stands alone."""
    reads_secret: bool = False
    """Whether the sensitive column of the table at hand is read to make the answer."""
    needs_delta: bool = False
    """Whether it is refused where delta is 0."""
    covers: frozenset[str] = frozenset()
    """Statistics beyond averages, sums and counts of single columns: combinations, subsets, non_linear, any."""
    hides_entries: bool = False
    """Whether it hides each entry of a column, not only properties of columns."""
    on_exact_laws: bool = False
    """Whether it credits the rows' own variation, so that `auto` keeps off it where public rows are not normal."""
    errs_by_table: bool = False
    """Whether its error depends on the table, and is known for tables as the assumption describes them."""
    instead_of: tuple[str, ...] = ()
    """Methods that `auto` does not take where this one is planned: it never errs more, and leaves more room."""
    chosen: bool = True
    """Whether `auto` may choose it; a yardstick is for comparison."""

    @property
    def without_assumption(self) -> bool:
        """Whether its promise rests on no assumption."""
        return not self.asks

    @property
    def views(self) -> bool:
        """Whether it answers whatever is asked, from a view."""
        return "any" in self.covers

    def shapes(self) -> tuple[str, ...]:
        """All shapes that a form takes, in order; empty: every one."""
        found = [shape for form in self.forms for shape in form.shapes]
        return () if any(not form.shapes for form in self.forms) else tuple(dict.fromkeys(found))
