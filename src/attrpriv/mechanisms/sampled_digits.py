"""What recorded values ask of a statistic of squares or of a quantile: a floor for its noise.

Whole numbers x_r = h, 2h, ... make n^2 var_pop = n sum x^2 - (sum x)^2 a multiple of h^2, and *given the sum* var_pop lies on a
lattice of spacing 2 h^2/n (sums of squares have the parity of the sum) whose offset is -mean^2: its digits tell a secret mean,
whatever the normal law says. Spacings of the digits given the secret, at most:

| statistic | spacing |
|---|---|
| var_pop | 2 h^2/n |
| covar_pop | 2 h_y h_x/n |
| regr_slope | 4 h_y h_x/(n s^2): the covariance's, over half the least variance of x |
| regr_intercept | h_y/n + m times the slope's, m the largest average of x |
| quantile | h: it is a row's own value |

The noise is at least that spacing (1.5 times it where only the column's type tells h) and a fiftieth of the statistic's own
spread, so that it always is positive; what is left of the lattice is charged as for averages (`calibration.lattice`). Where h
is not known, the certificate says up to which h the floor covers it. The statistic's own spread must be at least the spacing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from attrpriv.calibration.lattice import lattice_lambda
from attrpriv.framework import Problem
from attrpriv.mechanisms.refusal import Refusal
from attrpriv.queries.query import Query

LEAST_ROWS = 100
_SHARE = 50
_UNDECLARED = 1.5


@dataclass(frozen=True)
class Digits:
    """The least noise, the charge for the lattice, and the spacing of each column that is covered."""

    floor: float
    charge: float
    spacing: Mapping[str, float]


def digits(problem: Problem, query: Query, sds: Mapping[str, float], farthest: float, least: float) -> Digits:
    """The floor for a statistic of variance `least`, of columns with these least sds; `farthest`: the largest average of x."""
    found = {column: problem.spacing(column) for column in query.columns}
    for column, (h, _) in found.items():
        if h is not None and sds[column] < 2 * h:
            raise Refusal(
                f"{column}: its standard deviation must be at least twice the spacing of its values ({h:g}), or they are not "
                f"nearly normal. Got {sds[column]:g}."
            )
    base = math.sqrt(least) / _SHARE
    unknown = [column for column, (h, _) in found.items() if h is None]
    spacing = {column: sds[column] / 2 if h is None else h for column, (h, _) in found.items()}
    while unknown and lattice_of(query, problem.n, spacing, sds, farthest) > base / _UNDECLARED:
        if min(spacing[column] / sds[column] for column in unknown) < 1e-9:
            raise Refusal("the digits of its values are too coarse to be covered. Declare resolution, or use more rows.")
        spacing = {column: h / 2 if column in unknown else h for column, h in spacing.items()}
    step = lattice_of(query, problem.n, spacing, sds, farthest)
    if least < step**2:
        raise Refusal(
            f"{query.text}: its own spread ({math.sqrt(least):.3g}) must be at least the spacing of its digits ({step:.3g}). "
            "Use finer values, or ask for a view."
        )
    declared = all(known for _, known in found.values())
    floor = max(base, step if declared or unknown else _UNDECLARED * step)
    data, mask = least / step**2, (floor / step) ** 2
    return Digits(floor, lattice_lambda(data * mask / (data + mask), 1), spacing)


def lattice_of(query: Query, n: int, spacing: Mapping[str, float], sds: Mapping[str, float], farthest: float) -> float:
    """The spacing of the statistic's digits, given the secret."""
    columns = [one.column or "" for one in query.arguments]
    first, last = spacing[columns[0]], spacing[columns[-1]]
    if query.kind == "quantile":
        return first
    if query.kind in ("var_pop", "covar_pop"):
        return 2 * first * last / n
    slope = 4 * first * last / (n * sds[columns[-1]] ** 2)
    return slope if query.kind == "regr_slope" else first / n + farthest * slope
