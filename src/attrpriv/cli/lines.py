"""Long lines in a terminal: broken between words, with what follows set in; several reasons become a list.

What must never change: a pipe gets every line whole, so that a program finds it; nothing is left out but what was just shown.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from attrpriv.formatting import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from attrpriv.errors import Way

_SET_IN = "  "
_OPENING = "attrpriv:"
# Of a bar; where there is less room, the numbers of rows go first.
_SHORTEST = 8
# Between two columns of a table.
_GAP = 3


def hang(shown: Console, markup: str) -> None:
    """Print a line; in a terminal, the lines that it is broken into begin further in than the first."""
    if not shown.is_terminal:
        shown.print(markup)
        return
    from rich.text import Text

    for k, line in enumerate(Text.from_markup(markup, emoji=False).wrap(shown, max(20, shown.width - len(_SET_IN)))):
        line.rstrip()
        shown.print(Text(_SET_IN if k else "") + line)


def fit(table: Table, headers: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> None:
    """Give a table's columns their widths: first headers are broken, then the query, cells last, and words never.

    Left to itself, Rich takes the room from all of them, and then cuts off what does not fit.
    """
    cells = [max(map(len, column)) for column in zip(*rows, strict=True)]
    words = [max(len(word) for text in column for word in text.split()) for column in zip(*rows, headers, strict=True)]
    words[0] = max(len(word) for row in rows for word in row[0].split())  # a query may be broken anywhere
    halves = [max(cell, word, len(header) // 2 + 2) for cell, word, header in zip(cells, words, headers, strict=True)]
    whole = [max(cell, len(header)) for cell, header in zip(cells, headers, strict=True)]
    found = list(whole)
    for least in (
        [whole[0], *halves[1:]],
        [words[0], *halves[1:]],
        [words[0], *map(max, cells[1:], words[1:])],
        words,
    ):
        _narrow(found, least, width - _GAP * (len(found) - 1))
    for column, own in zip(table.columns, found, strict=True):
        column.width = own


def _narrow(found: list[int], least: Sequence[int], room: int) -> None:
    """Take from each width in turn, as far as is needed and as `least` allows."""
    for k in range(len(found) - 1, -1, -1):
        found[k] -= max(0, min(sum(found) - room, found[k] - least[k]))


def complaint(message: str, width: int, ways: Sequence[Way] = (), *, told: bool = False) -> str:
    """An error for a terminal of this width; reasons as a list, which is left out where they were told already.

    >>> from attrpriv.errors import Way
    >>> from attrpriv.problem.refusal import Cause, Refusal
    >>> refusal = Refusal(Cause.PUBLIC_FACT, "need bounds for x.")
    >>> way = Way("no mechanism fits.", (("group_dp, optimal", refusal),), "for other assumptions: laplace (counts).")
    >>> print(complaint("", 40, [way]))
    attrpriv: no mechanism fits.
      - group_dp, optimal: need bounds for
        x.
      - for other assumptions: laplace
        (counts).
    """
    if not ways:
        return _filled(f"{_OPENING} {message}", width)
    openings = (_OPENING, *("" for _ in ways[1:]))
    return "\n".join(_with_reasons(opening, way, width, told) for opening, way in zip(openings, ways, strict=True))


def _with_reasons(opening: str, way: Way, width: int, told: bool) -> str:
    head, items = f"{opening} {_line(way.head)}".strip(), tuple(map(_line, way.items))
    if not way.head or len(items) < 2:
        return _filled(f"{opening} {_line(str(way))}".strip(), width)
    if told:
        return _filled(f"{head} The reasons are above.", width)
    listed = (_filled(item, width, f"{_SET_IN}- ", f"{_SET_IN}  ") for item in items)
    return "\n".join([_filled(head, width), *listed])


def _line(text: str) -> str:
    """Without what would break the line, or the terminal."""
    return printable(" ".join(text.split()))


def _filled(text: str, width: int, first: str = "", later: str = "") -> str:
    """Broken between words and not within them."""
    return textwrap.fill(
        text, width, initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )


def bar(what: str, share: float, rows: int | None, width: int = 120) -> str:
    """How far the engine is, in one line of a terminal of this width.

    >>> bar("reading", 0.25, 4_000_000)
    'reading ━━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ 25 %, 1,000,000 of 4,000,000 rows'
    >>> len(bar("reading", 1.0, 4_000_000, 60)) + 2  # the spinner
    60
    """
    told = f"{share:.0%}".replace("%", " %")
    read = "" if rows is None else f", {round(share * rows):,} of {rows:,} rows"
    room = width - len(what) - 4  # a spinner and two spaces
    told += read if room - len(told + read) >= _SHORTEST else ""
    whole = max(_SHORTEST, min(28, room - len(told)))
    done = round(share * whole)
    return f"{what} {'━' * done}{'╌' * (whole - done)} {told}"
