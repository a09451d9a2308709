"""From the numbers of many models to one table of features, a row a model.

A number is compared where every shadow model has as many of its name; where some have others, their summary is. What must never
change: which features there are, and how they are filled in, is decided by the shadows alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from attrpriv.audit.artefact import Numbers, summary
from attrpriv.audit.tables import Floats

# A number that fewer shadows have is no feature.
_LEAST_SHARE = 0.5


@dataclass(frozen=True)
class Features:
    """Which numbers are compared, as they are or in summary, and what stands for one that a model lacks."""

    sizes: dict[str, int | None]
    """How many of each name; None: a summary of them."""
    filled: Floats

    @classmethod
    def of(cls, shadows: Sequence[Numbers]) -> Self:
        had = Counter(name for one in shadows for name in one)
        often = [name for name, times in had.items() if times >= _LEAST_SHARE * len(shadows)]
        sizes = {name: _size({one[name].size for one in shadows if name in one}) for name in often}
        made = cls(sizes, np.empty(0))
        table = np.array([made._row(one) for one in shadows])
        known = np.isfinite(table)
        totals = np.where(known, table, 0).sum(axis=0)
        return cls(sizes, totals / np.maximum(known.sum(axis=0), 1))

    def table(self, models: Sequence[Numbers]) -> Floats:
        """A row for each model; what it lacks, or what is no number, as the shadows have it on average."""
        found = np.array([self._row(one) for one in models]).reshape(len(models), -1)
        return np.where(np.isfinite(found), found, self.filled)

    def _row(self, numbers: Numbers) -> Floats:
        parts = [_part(numbers.get(name), size) for name, size in self.sizes.items()]
        return np.concatenate(parts) if parts else np.empty(0)


_SUMMARY = len(summary(np.zeros(1)))


def _size(sizes: set[int]) -> int | None:
    return next(iter(sizes)) if len(sizes) == 1 else None


def _part(values: Floats | None, size: int | None) -> Floats:
    wanted = _SUMMARY if size is None else size
    if values is None:
        return np.full(wanted, np.nan)
    found = summary(values) if size is None else values.ravel()
    return found if found.size == wanted else np.full(wanted, np.nan)
