"""Means and sums as secrets: which pairs must look alike. (Compositions, combinations and cases have their own tests.)"""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attrpriv.errors import PolicyError
from attrpriv.problem.secret import Secret


def test_canonical_text() -> None:
    for text in ("mean(income)", "avg(income)", " MEAN( income ) ", 'avg("income")'):
        assert Secret(text, within=1.0).text == "mean(income)"
    assert Secret("sum(income)", within=1.0).text == "sum(income)"
    assert Secret('mean("body weight")', within=1.0).columns == ("body weight",)


@pytest.mark.parametrize(
    ("stated", "gap"),
    [
        ({"between": (20_000.0, 200_000.0)}, 180_000.0),
        ({"within": 1_000.0}, 1_000.0),
        ({"between": (20_000.0, 200_000.0), "within": 1_000.0}, 1_000.0),
        ({"between": (0.0, 10.0), "within": 1_000.0}, 10.0),
        ({"between": (-3, 4)}, 7.0),
    ],
)
def test_the_widest_pair(stated: dict[str, Any], gap: float) -> None:
    assert Secret("mean(x)", **stated).gap == gap
    assert Secret("mean(x)", **stated).gap_of_mean(50) == gap
    assert Secret("sum(x)", **stated).gap_of_mean(50) == gap / 50


@given(low=st.floats(-1e9, 1e9), width=st.floats(1e-3, 1e9), within=st.one_of(st.none(), st.floats(1e-3, 1e9)))
def test_no_pair_is_wider_than_the_gap(low: float, width: float, within: float | None) -> None:
    high = low + width
    if not low < high:
        return
    secret = Secret("mean(x)", between=(low, high), within=within)
    assert secret.gap <= high - low
    assert secret.gap == min(high - low, within or math.inf)
    assert Secret.from_json(secret.to_json()) == secret
    assert str(secret).startswith("mean(x), between")


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ({"secret": "mean(x)"}, "needs between"),
        ({"secret": "mean(x)", "within": 0.0}, "within"),
        ({"secret": "mean(x)", "within": -1.0}, "within"),
        ({"secret": "mean(x)", "within": math.inf}, "within"),
        ({"secret": "mean(x)", "within": math.nan}, "within"),
        ({"secret": "mean(x)", "between": (2.0, 1.0)}, "low end must be below the high end"),
        ({"secret": "mean(x)", "between": (1.0, 1.0)}, "low end must be below the high end"),
        ({"secret": "mean(x)", "between": (1.0, math.inf)}, "between"),
        ({"secret": "median(x)", "within": 1.0}, "median"),
        ({"secret": "mean(x), mean(y)", "within": 1.0}, "secret|mean"),
        ({"secret": "x", "within": 1.0}, "mean"),
        ({"secret": "", "within": 1.0}, "secret"),
        ({"secret": "mean(x) filter (where y > 1)", "within": 1.0}, "mean"),
        ({"within": 1.0}, "secret"),
        ({"secret": "mean(x)", "within": 1.0, "hide": True}, "unknown key"),
    ],
)
def test_bad_secrets(stated: dict[str, Any], says: str) -> None:
    with pytest.raises(PolicyError, match=says) as caught:
        Secret(**stated)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("stated", "way_out"),
    [
        ("var(x)", "columns(x)"),
        ("var_pop(x)", "columns(x)"),
        ("quantile(x, .5)", "columns(x)"),
        ("median(x)", "columns(x)"),
        ("min(x)", "columns(x)"),
        ("max(x)", "columns(x)"),
        ("std(x)", "columns(x)"),
        ("sd(x)", "columns(x)"),
        ("stddev(x)", "columns(x)"),
        ("percentile_cont(0.5) within group (order by x)", "columns(x)"),
        ("max(x) - min(x)", "columns(x)"),
        ('corr("body weight", y)', 'columns("body weight", y)'),
    ],
)
def test_what_is_no_mean_is_hidden_as_a_whole(stated: str, way_out: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(f"; {way_out} hides everything about a column, this too. Got ")):
        Secret(stated, within=1.0)
    with pytest.raises(PolicyError, match=re.escape(way_out)):
        Secret([stated, "mean(y)"], within=1.0)
    assert Secret(way_out).whole_columns  # the way out is one
    with pytest.raises(PolicyError, match="a column alone, for its own parameter") as caught:
        Secret(parameter=stated, between=(0, 1))
    assert "columns(" not in str(caught.value)


@pytest.mark.parametrize("stated", ["meen(x)", "mean(x * y)", "max()"])
def test_other_mistakes_name_no_way_out_that_was_not_asked_for(stated: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Secret(stated, within=1.0)
    assert "columns(" not in str(caught.value)
