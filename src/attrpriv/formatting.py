"""Numbers and names as people read them, in a terminal and in a notebook alike.

What must never change: a released value is shown to the digits that its noise leaves meaningful, and nothing that is printed is
obeyed by what shows it.
"""

from __future__ import annotations

import math


def printable(text: str) -> str:
    """The text without anything that a terminal would obey: a column may be called `\\x1b[2J`."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def number(value: float, digits: int = 4) -> str:
    """A number as people read it, to so many significant digits.

    >>> number(1.08567), number(480.833), number(12345678.0), number(0.0)
    ('1.086', '480.8', '12,345,678', '0')
    """
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    if decimals > 8:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{decimals}f}"


def percent(share: float) -> str:
    """A share of right guesses, which is certainty only where it is.

    >>> percent(0.5467), percent(0.99996), percent(1.0)
    ('54.7%', 'more than 99.9%', '100.0%')
    """
    return "more than 99.9%" if 0.9995 < share < 1 else f"{share:.1%}"


def answer(value: float, scale: float) -> str:
    """A released value to the digits that its noise leaves meaningful: two more than the noise's first."""
    if isinstance(value, int):
        return f"{value:,d}"
    if scale == 0:
        return f"{value:,.10g}"
    decimals = max(0, 2 - math.floor(math.log10(scale)))
    return f"{value:,.{min(decimals, 12)}f}"


def some(names: list[str], most: int = 8) -> str:
    """A list of names; of a long one its start and how many follow.

    >>> some(["a", "b"]), some(list("abcdefghij"), 3)
    ('a, b', 'a, b, c and 7 more')
    """
    rest = len(names) - most
    return ", ".join(names) if rest <= 0 else f"{', '.join(names[:most])} and {rest:,} more"
