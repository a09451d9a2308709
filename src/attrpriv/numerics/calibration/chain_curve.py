"""How much may be told about single entries so that no entry of a Markov chain loses more than epsilon, and back.

    chain_epsilon(chains, length, b)           what every entry loses if all releases together are b-private for one entry
    chain_budget(chains, length, epsilon)      the largest such b

b may be a table r(x, x') of what is lost where one entry changes from x to x' (`divergences.chain_ratio`). `largest_rate` is
the one search. What must never change: what it returns was itself shown to be private.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.chain_ratio import LARGEST_COST, ChainRatio
from attrpriv.numerics.laws.chain_family import ChainFamily
from attrpriv.numerics.laws.markov import MarkovChain
from attrpriv.numerics.rounding import SOLVED_DOWN

if TYPE_CHECKING:
    from attrpriv.numerics.divergences.ratio_step import Array

_MOST_GUESSES = 200


def chain_epsilon(chains: Sequence[MarkovChain | ChainFamily], length: int, b: float | Array) -> float:
    """The epsilon of every entry under each of these chains, from above, if all releases together are b-private for one entry.

    `chains` are all that may be true, each with `length` entries; `b` is what all releases together give away of one entry
    alone.

    >>> stays = MarkovChain((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9)))
    >>> round(chain_epsilon([stays], 100, 1 / 8.65), 4)
    0.999
    """
    return max(bound.epsilon(b) for bound in ratios_of(chains, length))


def chain_budget(chains: Sequence[MarkovChain | ChainFamily], length: int, epsilon: float) -> float:
    """The largest b, from below, with which every entry is epsilon-private: `chain_epsilon` confirms it.

    `chains` are all that may be true, each with `length` entries; `epsilon` is the promise.

    >>> stays = MarkovChain((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9)))
    >>> round(1 / chain_budget([stays], 100, 1.0), 3)
    8.64
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise UsageError(f"epsilon: must be positive and finite. Got {epsilon}.")
    bounds = [bound for bound in ratios_of(chains, length) if not bound.nothing]
    if not bounds:
        raise UsageError("chains: every entry has a single possible state; there is nothing to hide.")
    found = min(epsilon, LARGEST_COST)
    for bound in bounds:
        found = largest_rate(bound.epsilon, epsilon, epsilon / length * SOLVED_DOWN, found, bound.near)
    return found


def ratios_of(chains: Sequence[MarkovChain | ChainFamily], length: int) -> list[ChainRatio]:
    """The recursion of each chain of a list."""
    if not chains:
        raise UsageError("chains: must be at least one.")
    return [ChainRatio(chain, length) for chain in dict.fromkeys(chains)]


def largest_rate(loss: Callable[[float], float], most: float, low: float, high: float, near: float) -> float:
    """The largest rate up to `high`, from below and within a share `near`, at which the loss is at most `most`.

    The loss grows with the rate, nearly as a power of it: a line through logarithms finds it in a few steps. `low` is where to
    begin; the loss there should be at most `most`.
    """
    at_high, at_low = loss(high), math.nan
    if at_high <= most:
        return high
    last, guess, widths = (high, at_high), high * most / at_high, [high / low]
    while not (at_low >= most * (1 - near) or high <= low * (1 + near)) and len(widths) < _MOST_GUESSES:
        slow = len(widths) % 8 == 0 and high / low > widths[-6] ** 0.5
        guess = math.sqrt(low * high) if slow or not low < guess < high else guess
        found = loss(guess)
        if found <= most:
            low, at_low = guess, found
        else:
            high = guess
        widths.append(high / low)
        slope = math.log(guess / last[0]) / math.log(found / last[1]) if found > 0 and found != last[1] else 1.0
        last = (guess, found)
        # A little below the guess of the line, so that it is private if the line is right.
        guess *= (most * (1 - near / 4) / found) ** slope if found > 0 and 0.01 < slope < 100 else 1.0
    if not (at_low <= most or loss(low) <= most):
        raise UsageError("calibration: no positive rate is private; the promise is out of reach of floats.")
    return low
