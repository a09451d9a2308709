"""Which counts of a category are likely, for expected errors only: nothing that is promised rests on it.

    binomial   rows are members independently, with a stated share, given that the count is in the secret's range
    shares     the population's share is uniform between two ends, and the count binomial given the share
    flat       every count of the range alike

`nodes` gives all counts where there are few, else equally spaced ones with their chances: averages of functions that change
slowly from count to count are accurate to many digits, because the chances fall off smoothly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Counts further out than this many standard deviations are left out, and those of less than this share of the likeliest.
_REACH = 7.5
_NEGLIGIBLE = 1e-13


@dataclass(frozen=True)
class CountPrior:
    """A law over the counts low..high of n rows."""

    n: int
    low: int
    high: int
    share: float | None = None
    shares: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        ends = self.shares or (self.share if self.share is not None else 0.5,) * 2
        if not (0 <= self.low <= self.high <= self.n and 0 <= ends[0] <= ends[1] <= 1):
            raise UsageError("prior: needs counts in order from 0 to n, and shares in order from 0 to 1.")

    @property
    def stated(self) -> bool:
        """Whether it is more than all values alike."""
        return self.share is not None or self.shares is not None

    def nodes(self, most: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """At most `most` counts and their chances, which sum to 1.

        >>> counts, chances = CountPrior(2, 0, 2, share=0.5).nodes(10)
        >>> counts.tolist(), chances.round(12).tolist()
        ([0, 1, 2], [0.25, 0.5, 0.25])
        """
        import numpy as np

        first, last = self._ends()
        stride = -(-(last - first + 1) // most)
        # What a whole stride leaves over is shared between both ends.
        counts = np.arange(first + (last - first) % stride // 2, last + 1, stride)
        logs = self._logs(counts)
        chances = np.exp(logs - logs.max())
        kept = chances >= _NEGLIGIBLE
        return counts[kept], chances[kept] / chances[kept].sum()

    def _ends(self) -> tuple[int, int]:
        """The counts between which all of it lies, up to what is negligible."""
        if self.share is None and self.shares is None:
            return self.low, self.high
        low, high = self.shares or (self.share or 0.0, self.share or 0.0)
        reach = [_REACH * math.sqrt(self.n * p * (1 - p)) + 10 for p in (low, high)]
        first, last = math.floor(self.n * low - reach[0]), math.ceil(self.n * high + reach[1])
        # A range that the prior hardly reaches: its nearest counts are all there is.
        first, last = min(first, self.high - 10), max(last, self.low + 10)
        return max(self.low, first), min(self.high, last)

    def _logs(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The logarithms of the chances, up to a constant."""
        import numpy as np
        from scipy.special import betainc, gammaln, xlog1py, xlogy

        if self.shares is not None and self.shares[0] < self.shares[1]:
            ends = [betainc(counts + 1, self.n - counts + 1, end) for end in self.shares]
            return np.asarray(np.log(np.maximum(ends[1] - ends[0], 1e-300)), dtype=np.float64)
        share = self.share if self.shares is None else self.shares[0]
        if share is None:
            return np.zeros(len(counts))
        logs = xlogy(counts, share) + xlog1py(self.n - counts, -share) - gammaln(counts + 1) - gammaln(self.n - counts + 1)
        return np.asarray(logs, dtype=np.float64)
