"""Disjoint parts of one view, such as training and test rows: how many rows of each cell each part has. Public numbers only.

What is promised: the parts are a function of the view, of its rows' cells and of their places, whose law does not depend on
what is hidden. So all parts together tell what the view tells, and its failure is the only one (docs/theory/view.md).

    of cell j     floor(share_p keep_j) rows to each part p, and the few that are left to the parts that are furthest behind

Shares are met in the whole view, not only in cells that are large enough: what rounding keeps from a part in one cell it gets
in another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from attrpriv.errors import UsageError
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.numerics.rounding import SUM_SLACK

_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class ViewSplit:
    """The parts of a view by name, and how many rows each has of each cell, in the order of the plan."""

    names: tuple[str, ...]
    numbers: tuple[tuple[int, ...], ...]

    @property
    def rows(self) -> dict[str, int]:
        """The number of rows of each part."""
        return {name: sum(numbers) for name, numbers in zip(self.names, self.numbers, strict=True)}


def read_split(split: Mapping[str, float | Fraction]) -> dict[str, Fraction]:
    """The share of each part, exactly; UsageError unless they are shares of one whole, under names that files can have."""
    if not isinstance(split, Mapping) or len(split) < 2:
        raise UsageError('split: must name two parts or more with their shares, as in {"train": 0.8, "test": 0.2}.')
    for name in split:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise UsageError(f"split: the name of a part must be of letters, digits, - and _. Got {name!r}.")
    if len({name.lower() for name in split}) < len(split):  # some file systems take them for one
        raise UsageError("split: the names of parts must differ in more than capital letters. Got two that do not.")
    shares = {name: _share(share) for name, share in split.items()}
    total = sum(shares.values(), Fraction(0))
    if abs(total - 1) > Fraction(SUM_SLACK):
        raise UsageError(f"split: shares must add up to 1. Got {float(total):g}.")
    return {name: share / total for name, share in shares.items()}


def _share(share: object) -> Fraction:
    if isinstance(share, float) and 0 < share < 1:
        return Fraction(repr(share))
    if isinstance(share, Fraction) and 0 < share < 1:
        return share
    raise UsageError(f"split: a share must be a number above 0 and below 1. Got {share!s}.")


def split_view(plan: ViewPlan, split: Mapping[str, float | Fraction]) -> ViewSplit:
    """How many rows of each cell go to each part."""
    shares = read_split(split)
    by_cell = _numbers([cell.keep for cell in plan.cells], list(shares.values()))
    found = ViewSplit(tuple(shares), tuple(zip(*by_cell, strict=True)))
    empty = [name for name, rows in found.rows.items() if not rows]
    if empty:
        raise UsageError(f"split: every part must have a row. Got none for {empty[0]}, of {plan.rows}. Raise its share.")
    return found


def _numbers(keeps: Sequence[int], shares: Sequence[Fraction]) -> list[tuple[int, ...]]:
    behind = [Fraction(0)] * len(shares)
    found = []
    for keep in keeps:
        numbers = [int(share * keep) for share in shares]
        behind = [b + share * keep - number for b, share, number in zip(behind, shares, numbers, strict=True)]
        for _ in range(keep - sum(numbers)):
            first = max(range(len(shares)), key=lambda p: (behind[p], -p))
            numbers[first] += 1
            behind[first] -= 1
        found.append(tuple(numbers))
    return found
