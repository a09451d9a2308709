"""The shape of public records on every engine, against definitions evaluated row by row; nothing overflows or cancels."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import stats

from attrpriv.engines import shape as module
from attrpriv.engines.moments import PublicTable
from attrpriv.errors import DataError
from attrpriv.problem.row_shape import HISTOGRAM, STEPS, ColumnShape, PairShape
from tests.engines.test_moments import ENGINES

Numbers = NDArray[np.float64]
CLOSE = 1e-9


def rows(count: int = 700) -> Any:
    """A skewed sensitive column, and a released one that bends and fans out along it."""
    rng = np.random.default_rng(8)
    g = rng.gamma(4.0, size=count)
    q = 3 * g + 0.4 * (g - 4) ** 2 + g * rng.standard_t(8, size=count)
    kind = np.where(rng.random(count) < 0.3, "a", "b b")
    return pa.table({"g": g, "q": np.rint(100 * q).astype(np.int64), "kind": kind, "flag": g > 3})


def of(table: Any, column: str) -> Numbers:
    return np.asarray(table[column].to_numpy(), dtype=np.float64)


def is_that_of(found: ColumnShape, values: Numbers) -> None:
    assert found.skewness == pytest.approx(stats.skew(values), rel=CLOSE, abs=CLOSE)
    assert found.kurtosis == pytest.approx(stats.kurtosis(values), rel=CLOSE, abs=CLOSE)
    z = (values - values.mean()) / values.std(ddof=1)
    expected = np.histogram(z, [-math.inf, *HISTOGRAM, math.inf])[0]
    assert list(found.histogram) == expected.tolist()


def pair_twin(q: Numbers, g: Numbers) -> PairShape:
    """By the textbook: residuals of a fitted line, and regressions of these and of their squares."""
    line = stats.linregress(g, q)
    e = q - line.intercept - line.slope * g
    u = (g - g.mean()) / g.std()
    e = e / math.sqrt(float(np.mean(e * e)))
    leaning, bulging = float(np.mean(e**2 * u)), (float(np.mean(e**2 * u**2)) - 1) / math.sqrt(2)
    return PairShape(
        curvature=float(np.mean(e * u**2)),
        spread=leaning if abs(leaning) >= abs(bulging) else bulging,
        residual_kurtosis=float(stats.kurtosis(e)),
        score_variance=float(np.mean((e * u) ** 2)),
        score_skewness=float(np.mean((e * u) ** 3) / np.mean((e * u) ** 2) ** 1.5),
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same_shape(engine: str, tmp_path: Path) -> None:
    table = rows()
    public = PublicTable(ENGINES[engine](table, tmp_path))
    found = public.shape(public.moments(["q", "g", "flag"]), [("q", "g"), ("flag", "q")])
    for column, one in found.columns.items():
        is_that_of(one, of(table, column))
    for (q, g), pair in found.pairs.items():
        twin = pair_twin(of(table, q), of(table, g))
        for name in ("curvature", "spread", "residual_kurtosis", "score_variance", "score_skewness"):
            assert getattr(pair, name) == pytest.approx(getattr(twin, name), rel=1e-7, abs=1e-7), name
    assert found.pairs["q", "g"].curvature > 0.1
    assert abs(found.pairs["q", "g"].spread) > 0.1


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_same_shape_by_category(engine: str, tmp_path: Path) -> None:
    table = rows()
    public = PublicTable(ENGINES[engine](table, tmp_path))
    kind = np.asarray(table["kind"].to_pylist())
    found = public.group_shape(public.group_moments("kind", ["q", "g"]))
    assert set(found.cells) == {("a", "q"), ("a", "g"), ("b b", "q"), ("b b", "g")}
    for (category, column), one in found.cells.items():
        is_that_of(one, of(table, column)[kind == category])
    flags = public.group_shape(public.group_moments("flag", ["q"]))
    assert sum(sum(one.histogram) for one in flags.cells.values()) == table.num_rows


def test_the_steps_are_means_and_sds_along_the_sensitive_column() -> None:
    table = rows()
    public = PublicTable(table)
    steps = public.shape(public.moments(["q", "g"]), [("q", "g")]).pairs["q", "g"].steps
    v, u = ((x - x.mean()) / x.std(ddof=1) for x in (of(table, "q"), of(table, "g")))
    cell = np.digitize(u, STEPS)
    for k, step in enumerate(steps):
        inside = v[cell == k]
        assert step.rows == len(inside)
        if len(inside):
            assert (step.mean, step.sd) == pytest.approx((inside.mean(), inside.std()), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("scale", [1e-140, 1e100, 1e140])
def test_huge_and_tiny_values_do_not_overflow(scale: float) -> None:
    table = pa.table({"q": of(rows(), "q") * scale, "g": of(rows(), "g") / scale})
    public = PublicTable(table)
    found = public.shape(public.moments(["q", "g"]), [("q", "g")])
    assert found.columns["q"].kurtosis == pytest.approx(stats.kurtosis(of(rows(), "q")), rel=1e-6)
    assert found.pairs["q", "g"].curvature == pytest.approx(pair_twin(of(rows(), "q"), of(rows(), "g")).curvature, rel=1e-6)


def test_a_failure_has_a_fixed_text(monkeypatch: pytest.MonkeyPatch) -> None:
    public = PublicTable(rows())
    moments, by_category = public.moments(["q", "g"]), public.group_moments("kind", ["q"])

    def broken(*_: Any) -> Any:
        raise ValueError("PLANTED-4711")

    monkeypatch.setattr(module, "_batches", broken)
    for read in (lambda: public.shape(moments, []), lambda: public.group_shape(by_category)):
        with pytest.raises(DataError) as caught:
            read()
        assert str(caught.value) == module.NOT_READ
