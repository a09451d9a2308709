"""The best test of which column a view was drawn from is no better than its certificate says; and would be, without its rules.

z given s is normal with a known slope, for which the stated information is exact. Of two columns whose means are nearly an
interval apart, one was drawn from: the test by the likelihood ratio is the optimal one. Each row has a list of independent z,
so that many tests come from few draws.

All tests here are right by chance less often than `FALSE_ALARM`: by Hoeffding's inequality for two shares of so many tests.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from attrpriv.assumptions.channel import Channel
from attrpriv.engines.tables import open_table
from attrpriv.engines.view.draw import Cells, draw, view_table
from attrpriv.engines.view.sorted_cells import SortedColumn
from attrpriv.errors import RefusedError
from attrpriv.methods.choice.choose import plan_view_of
from attrpriv.methods.view.sorted import SortedEvidence
from attrpriv.problem.intervals import PublicIntervals
from attrpriv.problem.problem import Problem
from attrpriv.problem.reference import PublicCell, PublicCells, Reference
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

FALSE_ALARM = 1e-7
EPSILON, DELTA = 0.5, 0.1
EDGES = (0.0, 1.0, 2.0, 3.0, 4.0)
N, VIEWS, LISTED = 1200, 3, 1000
TESTS = VIEWS * LISTED
# Each of two shares is off by more than this with half of the chance, and one of them counts e^epsilon times.
MARGIN = (1 + math.exp(EPSILON)) * math.sqrt(math.log(2 / FALSE_ALARM) / (2 * TESTS))
Array = NDArray[np.float64]


def planned(iota: float) -> SortedEvidence:
    cells = tuple(PublicCell(values=(low,), count=600) for low in EDGES[:-1])
    intervals = PublicIntervals(column="s", edges=EDGES, variance=1.0, repeated=0.0)
    public = PublicCells(columns=("s",), kinds={"s": "float"}, records=2400, cells=cells, intervals=intervals)
    told = {"file": "a.parquet", "least_density": 1.0, "sorted": {"s": {"breaks": list(EDGES)}}}
    asked = Problem(
        queries=(Query("avg", "z"),), secrets=(Secret("columns(s)"),), epsilon=EPSILON, delta=DELTA, n=N,
        theta=(Channel(information={"iota": iota}),), reference=Reference.checked(told), public_cells=public,
    )  # fmt: skip
    found = plan_view_of(asked).certificate.evidence
    assert isinstance(found, SortedEvidence)
    return found


@cache
def evidence() -> SortedEvidence:
    """At nearly the largest information that the promise covers."""
    low, high = 1e-9, 1.0
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        try:
            planned(middle)
            low = middle
        except RefusedError:
            high = middle
    return planned(low)


def column(place: float) -> Array:
    """As many rows in each interval, all of them at this place in it."""
    return np.repeat(np.array(EDGES[:-1]), N // 4) + place


def statistics(own: Array, means: Array, seed: int) -> Array:
    """For each test the sum of z over the rows of a view, which says all that it tells of these two columns."""
    told = evidence()
    keep = tuple(cell.keep for cell in told.counts.cells)
    sort = SortedColumn("s", EDGES, told.sorted_by().most, told.order, told.slope)
    rule = Cells((), (*keep, 0), (*keep, 0), (N,) * 5, ("s",), tuple(cell.values or () for cell in told.counts.cells), sort)
    found = []
    for view in range(VIEWS):
        g = np.random.default_rng([seed, view])
        z = means[:, None] + g.normal(size=(N, LISTED))
        source = open_table(pa.table({"s": own, "z": pa.array(list(z))}))
        shown = source.engine.to_pyarrow(view_table(source, rule, draw(source, rule, N, None), None, ()))
        found.append(np.sum(np.stack(shown["z"].to_pylist()), axis=0))
    return np.concatenate(found)


def advantage(slope: float, step: float = 0.0) -> float:
    """P(test | A) - e^epsilon P(test | B) for the likelihood ratio above e^epsilon; `step`: z jumps within intervals."""
    a, b = column(0.999), column(0.001)
    rows = sum(cell.keep for cell in evidence().counts.cells)
    jumps = [slope * own + step * (own % 1 > 0.5) for own in (a, b)]
    apart = float(np.mean(jumps[0] - jumps[1]))
    centre = rows * float(np.mean(jumps[0] + jumps[1])) / 2
    log_ratios = [apart * (statistics(own, mean, k) - centre) for k, (own, mean) in enumerate(zip((a, b), jumps, strict=True))]
    first, second = (float(np.mean(ratio > EPSILON)) for ratio in log_ratios)
    return first - math.exp(EPSILON) * second


def exact(mu: float) -> float:
    """What the best test reaches between normal laws that are mu apart."""
    from scipy.special import ndtr

    return float(ndtr(mu / 2 - EPSILON / mu) - math.exp(EPSILON) * ndtr(-mu / 2 - EPSILON / mu))


def test_the_best_test_keeps_to_the_certificate() -> None:
    told = evidence()
    rows = sum(cell.keep for cell in told.counts.cells)
    reached = advantage(math.sqrt(told.information))
    really = exact(0.998 * math.sqrt(told.information * rows))
    assert really <= told.delta(EPSILON) <= DELTA
    assert abs(reached - really) <= MARGIN
    assert reached <= told.delta(EPSILON) + MARGIN


@pytest.mark.slow
@pytest.mark.parametrize(("slope", "step"), [(8.0, 0.0), (1.0, 1.0)], ids=["more information", "a break point inside"])
def test_what_the_owner_must_not_be_wrong_about(slope: float, step: float) -> None:
    """Eight times the slope, or a step of z within intervals, and the same view tells which column it was."""
    assert advantage(slope * math.sqrt(evidence().information), step) > DELTA + MARGIN
