"""Draws from laws of whole-number weights, without rounding: one uniform whole number and a look-up.

    draw          o with probability weights[o] / sum(weights)
    coupled_draw  u uniform in the slice of f among the source's; the o whose slice among the target's holds u

| symbol | here |
|---|---|
| f, o | positions in the lists, from 0 |
| slice of f | [sum source[:f], sum source[:f + 1]); both lists have the same sum N |

Drawn with f from source/N, the coupled output has the law target/N, and of all couplings of the two the least E |f - o|.
An empty slice stands for the point where it would be: the whole number at the end of the slices before it, N - 1 at most.

What must never change: randomness is the operating system's, through `secrets`; there is no seed, no float, and no rejection.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from secrets import randbelow

from attrpriv.errors import UsageError


def draw(weights: Sequence[int]) -> int:
    """A position with probability in proportion to its weight.

    >>> draw([0, 0, 5, 0])
    2
    """
    total = _total("weights", weights)
    return _holder(weights, randbelow(total))


def coupled_draw(source: Sequence[int], target: Sequence[int], position: int) -> int:
    """The position in the target that the monotone coupling gives to a position in the source.

    >>> [coupled_draw([2, 0, 2], [1, 0, 3], 1), coupled_draw([2, 0, 2], [1, 0, 3], 2)]
    [2, 2]
    """
    total = _total("source", source)
    if _total("target", target) != total:
        raise UsageError("target: must have the same sum as the source.")
    if not 0 <= position < len(source):
        # The position is the count of a table, so it is not named.
        raise UsageError("count: must be a value that the assumption allows.")
    begin, width = sum(source[:position]), source[position]
    return _holder(target, begin + randbelow(width) if width else min(begin, total - 1))


def _holder(slices: Sequence[int], point: int) -> int:
    """The position whose slice holds the point."""
    return bisect_right(list(accumulate(slices)), point)


def _total(name: str, weights: Sequence[int]) -> int:
    if not all(type(weight) is int and weight >= 0 for weight in weights) or not sum(weights) > 0:
        raise UsageError(f"{name}: must be whole numbers at least 0, not all of them 0.")
    return sum(weights)
