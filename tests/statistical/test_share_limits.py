"""Limits of shares from views with many small cells hold at least as often as they say, also for rare events.

Cells as a reference view has them: 77, of 2 to 113 rows, so that rows count very differently. Each test fails by chance less
than once in a million, and finds the normal interval that was there before with near certainty where that covers too little.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from attrpriv.methods.base.accuracy import Spread
from attrpriv.methods.base.share_limits import ShareLimits
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.choice.choose import plan_view_of
from attrpriv.problem.problem import Problem
from attrpriv.problem.reference import PublicCell, PublicCells, Reference
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from attrpriv.session.view_shares import share_limits

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-7  # of each of ten tests
LEVEL = 0.95
DRAWS = 3000
ROWS = 16_000


def reference_view() -> ViewPlan:
    """Public counts that fall off as ages and sexes do, down to cells of which two rows are kept."""
    counts = [int(420 * np.exp(-((k / 60) ** 3))) + 25 for k in range(100)]
    cells = tuple(PublicCell(values=(k,), count=count) for k, count in enumerate(counts))
    public = PublicCells(columns=("age",), records=sum(counts), cells=cells)
    asked = Problem(queries=(Query("count"),), secrets=(Secret("columns(age)"),), epsilon=1.0, delta=1e-6, n=ROWS)
    reference = Reference(file="census.parquet", least_density=0.8)
    return plan_view_of(asked.model_copy(update={"reference": reference, "public_cells": public}))


PLAN = reference_view()
KEEP = np.array([cell.keep for cell in PLAN.cells])
SHARE = np.array([cell.share or 0.0 for cell in PLAN.cells])
WEIGHT = SHARE / SHARE.sum()
SMALL = KEEP <= 5
LAWS: dict[str, NDArray[np.float64]] = {
    "a quarter": np.full(KEEP.size, 0.25),
    "a half": np.full(KEEP.size, 0.5),
    "one in a thousand": np.full(KEEP.size, 0.001),
    "one in 5,000": np.full(KEEP.size, 0.0002),
    "nearly all": np.full(KEEP.size, 0.99),
    "in small cells alone": np.where(SMALL, 0.5, 0.0),
    "often in small cells": np.where(SMALL, 0.2, 0.01),
    "seldom in small cells": np.where(SMALL, 0.05, 0.0001),
    "in one cell alone": np.where(np.arange(KEEP.size) == np.argmax(WEIGHT / KEEP), 0.5, 0.0),
    "from cell to cell": np.linspace(0, 0.6, KEEP.size),
}
# Where few rows have the event, the normal interval missed the truth far more often than it said.
RARE = ("one in a thousand", "one in 5,000", "in one cell alone", "seldom in small cells")


def drawn(law: str) -> tuple[NDArray[np.int64], float]:
    """Events among the kept rows of each cell, and the truth. Draws with replacement: without, they vary less."""
    generator = np.random.default_rng(sorted(LAWS).index(law))
    return generator.binomial(KEEP, LAWS[law], (DRAWS, KEEP.size)), float(WEIGHT @ LAWS[law])


def limits(events: NDArray[np.int64]) -> ShareLimits:
    shares = dict(zip((cell.name for cell in PLAN.cells), map(float, WEIGHT), strict=True))
    found = share_limits(PLAN, [int(count) for count in events], shares, [True] * KEEP.size, 1)
    assert found is not None
    return found


def normal(events: NDArray[np.int64]) -> tuple[float, float]:
    """What was there before."""
    variance = WEIGHT**2 @ (events * (KEEP - events) / (KEEP * (KEEP - 1.0)) / KEEP)
    reach = Spread("gaussian", float(np.sqrt(variance))).reach(LEVEL)
    centre = float(WEIGHT @ (events / KEEP))
    return centre - reach, centre + reach


def test_the_cells_are_as_small_as_they_get() -> None:
    assert KEEP.min() == 2
    assert SMALL.sum() >= 5
    assert KEEP.max() > 100


@pytest.mark.parametrize("law", LAWS)
def test_limits_hold_at_least_as_often_as_they_say(law: str) -> None:
    """Whatever the events' law over the cells is; the normal interval of rare events fails this surely."""
    counts, truth = drawn(law)
    least = binom.ppf(FALSE_ALARM, DRAWS, LEVEL)
    ends = [limits(events).ends(LEVEL) for events in counts]
    assert sum(low <= truth <= high for low, high in ends) >= least
    if law in RARE:
        assert sum(low <= truth <= high for low, high in map(normal, counts)) < least
        assert binom.cdf(least - 1, DRAWS, 0.9) > 1 - 1e-6  # the power against limits that hold nine times in ten


@pytest.mark.parametrize("law", ["a quarter", "a half", "from cell to cell"])
def test_limits_of_common_events_are_little_wider_than_the_normal_ones(law: str) -> None:
    counts, _ = drawn(law)
    ours = np.array([limits(events).ends(LEVEL) for events in counts[:300]])
    theirs = np.array([normal(events) for events in counts[:300]])
    assert np.diff(ours).mean() < 1.25 * np.diff(theirs).mean()


def test_one_cell_is_about_clopper_and_pearson() -> None:
    from scipy.stats import beta

    for hits in (0, 1, 3, 50, 99, 100):
        size = 100
        near = (hits + hits / size) / (size + 1)
        found = ShareLimits(hits / size, near * (1 - near) / size, 1 / size).ends(LEVEL)
        exact = (
            float(beta.ppf(0.025, hits, size - hits + 1)) if hits else 0.0,
            float(beta.ppf(0.975, hits + 1, size - hits)) if hits < size else 1.0,
        )
        assert found[0] <= exact[0] + 1e-3
        assert found[1] >= exact[1] - 1e-3
        assert found == pytest.approx(exact, abs=0.012)
