"""How public rows lie against normal ones, as pictures. Of the private table there is none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attrpriv.pictures.marks import Axis, Dot, Line, Picture
from attrpriv.problem.row_shape import HISTOGRAM, STEPS, ColumnShape, PairShape

if TYPE_CHECKING:
    from attrpriv.assumptions.fit import Fit
    from attrpriv.assumptions.fit_counts import CountFit
    from attrpriv.assumptions.fit_groups import GroupFit

MOST = 12
_FEWEST_ROWS = 5


def shape_pictures(fit: Fit | GroupFit | CountFit) -> tuple[Picture, ...]:
    """A picture of each column, in each category, and of each regression; none of counts, which rest on no shape."""
    from attrpriv.assumptions.fit import Fit
    from attrpriv.assumptions.fit_groups import GroupFit

    if isinstance(fit, GroupFit) and fit.shape is not None:
        cells = fit.shape.cells.items()
        return tuple(histogram(f"{column} in {category}", cell) for (category, column), cell in cells)[:MOST]
    if isinstance(fit, Fit) and fit.shape is not None:
        columns = [histogram(name, column) for name, column in fit.shape.columns.items()]
        pairs = [regression(of, on, pair, fit.gaussian.correlation_of(of, on)) for (of, on), pair in fit.shape.pairs.items()]
        return (*columns, *pairs)[:MOST]
    return ()


def histogram(name: str, column: ColumnShape) -> Picture:
    """The share of rows in each quarter of a standard deviation, beside that of a normal column."""
    rows = sum(column.histogram) or 1
    step = HISTOGRAM[1] - HISTOGRAM[0]
    places = [HISTOGRAM[0] - step, *HISTOGRAM]
    shares = [count / rows for count in column.histogram]
    ends = list(zip((-math.inf, *HISTOGRAM), (*HISTOGRAM, math.inf), strict=True))
    normal = [_below(high) - _below(low) for low, high in ends]
    top = max(*shares, *normal) * 1.1
    return Picture(
        f"{name} in the public rows, and a normal column",
        f"Two outlines of shares of rows. Skewness {column.skewness:.3g}, kurtosis {column.kurtosis:.3g}; 0 of normal rows.",
        Axis("standard deviations from the mean", places[0], places[-1] + step),
        Axis("rows", 0.0, top, form="percent"),
        (
            Line(tuple(zip(places, normal, strict=True)), "normal", 4, stepped=True, label_at=(1.4, top * 0.75)),
            Line(
                tuple(zip(places, shares, strict=True)), "public rows", 0, stepped=True, filled=True, label_at=(1.4, top * 0.9)
            ),
        ),
    )


def regression(of: str, on: str, pair: PairShape, correlation: float) -> Picture:
    """Means of the released column along the hidden one, beside the fitted line."""
    step = STEPS[1] - STEPS[0]
    middles = [STEPS[0] - step / 2, *(edge + step / 2 for edge in STEPS)]
    known = [(x, one.mean) for x, one in zip(middles, pair.steps, strict=False) if one.rows >= _FEWEST_ROWS]
    low, high = middles[0], middles[-1]
    reach = 1.2 * max([1.0, abs(correlation) * high, *(abs(mean) for _, mean in known)])
    line = Line(((low, correlation * low), (high, correlation * high)), "fitted", 4, label_at=(low + 0.3, reach * 0.85))
    return Picture(
        f"{of} along {on}, in the public rows",
        f"Dots along a straight line. Curvature {pair.curvature:.3g}, unequal spread {pair.spread:.3g}; 0 of normal rows.",
        Axis(f"{on}, in standard deviations", low, high),
        Axis(f"{of}, in standard deviations", -reach, reach),
        (line, *(Dot(x, mean) for x, mean in known)),
    )


def _below(z: float) -> float:
    return (1 + math.erf(z / math.sqrt(2))) / 2
