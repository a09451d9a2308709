"""Limits for a share that is estimated from few rows of many cells, rare events included.

A view keeps m_c rows of cell c, each of which stands for a_c = w_c / m_c of all rows; X_c of them have the event. The share is
estimated by p = sum a_c X_c. Its upper limit is a quantile of the beta law with

    mean      p + a              a = the largest a_c: one row more, of those that count most, may have had the event
    variance  v + a^2            v = sum a_c^2 m_c q_c (1 - q_c),    q_c = (X_c + p) / (m_c + 1)

and its lower limit is the same of those without the event. With one cell this is about Clopper and Pearson's; for rare events
it is about Fay and Feuer's gamma limit of a weighted sum of Poisson counts (Statistics in Medicine 16, 1997). It is a choice
that covers more than it says, not a theorem: tests/statistical/test_share_limits.py measures it. q_c pools, because the spread
of a cell of two rows says little.
"""

from __future__ import annotations

from dataclasses import dataclass

from attrpriv.errors import UsageError


@dataclass(frozen=True)
class ShareLimits:
    """A share, the variance of its estimate and the most that one row counts; `factor` turns it into a count."""

    share: float
    variance: float
    step: float
    factor: float = 1.0

    def ends(self, level: float) -> tuple[float, float]:
        """Where the share, or the count, lies with this confidence; within 0 and 1."""
        if not 0 < level < 1:
            raise UsageError(f"level: must be above 0 and below 1. Got {level}.")
        low = 1 - self._upper(1 - self.share, level)
        high = self._upper(self.share, level)
        return min(low, self.share) * self.factor, max(high, self.share) * self.factor

    def reach(self, level: float) -> float:
        """How far the further of both ends is."""
        low, high = self.ends(level)
        return max(high - self.share * self.factor, self.share * self.factor - low)

    def _upper(self, share: float, level: float) -> float:
        from scipy.special import betaincinv

        mean, variance = share + self.step, self.variance + self.step**2
        size = mean * (1 - mean) / variance - 1 if mean < 1 else 0.0
        if size <= 0:  # so few rows that nothing is known
            return 1.0
        return float(betaincinv(mean * size, (1 - mean) * size, (1 + level) / 2))
