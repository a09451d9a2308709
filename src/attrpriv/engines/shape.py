"""The shape of public records, in one pass over standardised rows: `problem.row_shape` says which numbers.

Means and covariances come from `engines.moments`, so that powers are of numbers near one: nothing cancels, nothing overflows.

What must never change: these are *public* records, and a failure that depends on rows has a fixed text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from attrpriv.engines.progress import waited
from attrpriv.engines.tables import Source, quietly
from attrpriv.errors import DataError
from attrpriv.problem.row_shape import HISTOGRAM, STEPS, ColumnShape, GroupShape, Pair, PairShape, RowShape, Step

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.engines.moments import GroupMoments, Moments

    Numbers = NDArray[np.float64]

NOT_READ = "public: the shape of the rows could not be read. Check that the file is complete, and that nobody changes it."


def row_shape(source: Source, moments: Moments, pairs: Sequence[Pair], values: Sequence[Any]) -> RowShape:
    """Of these columns (`values`, as expressions, in the order of the moments) and pairs of them."""
    named = {f"c{i}": value for i, value in enumerate(values)}
    found = quietly(lambda: _row_shape(source, moments, pairs, named))
    if found is None:
        raise DataError(NOT_READ)
    return found


def group_shape(source: Source, moments: GroupMoments, category: Any, values: Sequence[Any]) -> GroupShape:
    """Of these columns within each category."""
    named = {f"c{i}": value for i, value in enumerate(values)}
    found = quietly(lambda: _group_shape(source, moments, {"category": category, **named}))
    if found is None:
        raise DataError(NOT_READ)
    return found


def _batches(source: Source, named: Mapping[str, Any]) -> Iterator[Any]:
    yield from waited(source.engine, lambda: source.engine.to_pyarrow(source.table.select(**named))).to_batches()


def _standardised(values: Any, mean: float, variance: float) -> Numbers:
    import numpy as np

    numbers: Numbers = (np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64) - mean) / math.sqrt(variance)
    return numbers


# --------------------------------------------------------------------------------------------------------------- columns


@dataclass
class _ColumnSums:
    rows: int = 0
    powers: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    cells: list[int] = field(default_factory=lambda: [0] * (len(HISTOGRAM) + 1))

    def add(self, z: Numbers) -> None:
        import numpy as np

        square = z * z
        sums = (square.sum(), (square * z).sum(), (square * square).sum())
        self.powers = [a + float(b) for a, b in zip(self.powers, sums, strict=True)]
        counts = np.bincount(np.searchsorted(HISTOGRAM, z, side="right"), minlength=len(self.cells))
        self.cells = [a + int(b) for a, b in zip(self.cells, counts, strict=True)]
        self.rows += len(z)

    def shape(self) -> ColumnShape:
        second, third, fourth = (power / self.rows for power in self.powers)
        return ColumnShape(_skewness(second, third), fourth / second**2 - 3, tuple(self.cells))


def _skewness(second: float, third: float) -> float:
    return third / second**1.5 if second > 0 else 0.0


# ----------------------------------------------------------------------------------------------------------------- pairs


@dataclass
class _PairSums:
    correlation: float
    rows: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0] * 7)
    steps: list[tuple[float, float, float]] = field(default_factory=lambda: [(0.0, 0.0, 0.0)] * (len(STEPS) + 1))

    def add(self, v: Numbers, u: Numbers, cell: NDArray[np.intp]) -> None:
        import numpy as np

        e = v - self.correlation * u
        e2, score = e * e, e * u
        score2 = score * score
        terms = (e2, e2 * e2, score * u, e2 * u, score2, score2 * score, u * u)
        self.sums = [a + float(term.sum()) for a, term in zip(self.sums, terms, strict=True)]
        found = zip(*(np.bincount(cell, weights=w, minlength=len(self.steps)) for w in (None, v, v * v)), strict=True)
        self.steps = [
            (a + float(x), b + float(y), c + float(z)) for (a, b, c), (x, y, z) in zip(self.steps, found, strict=True)
        ]
        self.rows += len(v)

    def shape(self) -> PairShape:
        e2, e4, curve, tilt, score2, score3, u2 = (total / self.rows for total in self.sums)
        leaning, bulging = tilt / e2 / math.sqrt(u2), (score2 / e2 / u2 - 1) / math.sqrt(2)
        return PairShape(
            curvature=curve / math.sqrt(e2) / u2,
            spread=leaning if abs(leaning) >= abs(bulging) else bulging,
            residual_kurtosis=e4 / e2**2 - 3,
            score_variance=score2 / e2 / u2,
            score_skewness=_skewness(score2, score3),
            steps=tuple(_step(*sums) for sums in self.steps),
        )


def _step(rows: float, total: float, squares: float) -> Step:
    mean = total / rows if rows else 0.0
    return Step(int(rows), mean, math.sqrt(max(0.0, squares / rows - mean**2)) if rows else 0.0)


def _row_shape(source: Source, moments: Moments, pairs: Sequence[Pair], named: Mapping[str, Any]) -> RowShape:
    import numpy as np

    places = {column: k for k, column in enumerate(moments.columns)}
    variances = [moments.covariance[k][k] for k in places.values()]
    columns = [_ColumnSums() for _ in places]
    sums = {(q, g): _PairSums(_correlation(moments, places[q], places[g])) for q, g in pairs}
    for batch in _batches(source, named):
        z = [_standardised(batch.column(k), moments.means[k], variances[k]) for k in range(len(columns))]
        cells = {g: np.searchsorted(STEPS, z[places[g]], side="right") for g in {on for _, on in pairs}}
        for one, numbers in zip(columns, z, strict=True):
            one.add(numbers)
        for (q, g), pair in sums.items():
            pair.add(z[places[q]], z[places[g]], cells[g])
    return RowShape(
        {column: columns[k].shape() for column, k in places.items()}, {pair: one.shape() for pair, one in sums.items()}
    )


def _correlation(moments: Moments, j: int, k: int) -> float:
    return moments.covariance[j][k] / math.sqrt(moments.covariance[j][j]) / math.sqrt(moments.covariance[k][k])


# ------------------------------------------------------------------------------------------------------------ categories


def _group_shape(source: Source, moments: GroupMoments, named: Mapping[str, Any]) -> GroupShape:
    cells = {(category, column): _ColumnSums() for category in moments.categories for column in moments.columns}
    for batch in _batches(source, named):
        codes = batch.column(0).dictionary_encode()
        rows = codes.indices.to_numpy(zero_copy_only=False)
        for code, category in enumerate(codes.dictionary.to_pylist()):
            of = moments.categories.index(str(category))
            for k, column in enumerate(moments.columns):
                values = batch.column(k + 1).filter(_mask(rows == code))
                z = _standardised(values, moments.means[of][k], moments.variances[of][k])
                cells[str(category), column].add(z)
    return GroupShape({cell: sums.shape() for cell, sums in cells.items()})


def _mask(chosen: NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    return pa.array(chosen)
