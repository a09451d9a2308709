"""Sets of parameters that may show: which of them are tried, and what earlier releases cost beside each.

The subset rule (`markov_quilt`) holds for every set, so that what is tried decides about the noise only, not about the promise.
What must never change: a release costs nothing beside a set only if *all* columns that it reads are in the set, and an exact
one that reads anything else costs infinitely much.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from attrpriv.numerics.networks.network import Network

# Up to this many columns all subsets are tried, above only small and large ones.
_MOST_COLUMNS = 10


@dataclass(frozen=True)
class Before:
    """Earlier releases: for each set of columns that they read the sum of Delta/b, infinite where one of them is exact.

    >>> before = Before(((frozenset({"height"}), 0.25), (frozenset({"height", "sat"}), 0.5)))
    >>> [before.beside(known) for known in ((), ("height",), ("height", "sat"))]
    [0.75, 0.5, 0.0]
    """

    rates: tuple[tuple[frozenset[str], float], ...] = ()
    tried: tuple[tuple[str, ...], ...] = ()  # sets that were of use before

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(sorted(frozenset().union(*(read for read, _ in self.rates))))

    @property
    def exact(self) -> frozenset[str]:
        """What is known exactly: no set that lacks any of it is of use."""
        return frozenset().union(*(read for read, rate in self.rates if not math.isfinite(rate)))

    def beside(self, known: Iterable[str]) -> float:
        """What these releases cost where the parameters of these columns may show."""
        shown = frozenset(known)
        return math.fsum(rate for read, rate in self.rates if not read <= shown)


NOTHING = Before()


def candidates(network: Network, on: str, columns: Sequence[str], before: Before = NOTHING) -> Iterator[tuple[str, ...]]:
    """The sets S that are tried: all, or of many columns those of up to two columns and those that lack up to two.

    What is known exactly is in all of them. Sets that were of use before are tried again, with and without the new columns.
    """
    inside = [name for name in dict.fromkeys((*columns, *before.columns)) if name in network.nodes and name != on]
    exact = before.exact
    for shown in before.tried:  # first: with a good set at hand others are dropped early
        yield tuple(name for name in inside if name in shown)
        yield tuple(name for name in inside if name in shown or name in columns)
    free = [name for name in inside if name not in exact]
    sizes: Iterable[int] = range(len(free) + 1)
    if len(free) > _MOST_COLUMNS:
        sizes = (0, 1, 2, len(free) - 2, len(free) - 1, len(free))
    for size in sizes:
        for some in itertools.combinations(free, size):
            yield some if not exact else tuple(name for name in inside if name in some or name in exact)
