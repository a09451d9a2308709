"""Queries from SQL to the answer: combinations with noise, every statistic on a view, groups that are public."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import attrpriv as ap
from attrpriv.cli.app import app
from attrpriv.engines.view.values import NO_GROUP
from attrpriv.errors import AttrprivError, DataError, PolicyError, UsageError
from attrpriv.policy.strict_yaml import dump_strict
from attrpriv.session.table_reads import OTHER_SIZE
from attrpriv.session.view_estimates import NO_ANSWER

N = 2_000
GAUSSIAN: Mapping[str, Any] = {
    "attrpriv": 1,
    "data": "t.parquet",
    "epsilon": 1.0,
    "delta": 1e-6,
    "protect": [{"secret": "mean(income)", "between": [20, 200], "within": 1}],
    "assume": {
        "kind": "gaussian",
        "mean": {"income": 60},
        "sd": {"weight": 25, "height": 4, "income": 30},
        "correlation": {"weight~income": 0.3, "height~income": 0.2, "weight~height": 0.1},
        "tolerance": {"mean": 0.01, "sd": 0.02, "slope": 0.05},
    },
}
VIEW: Mapping[str, Any] = {
    "attrpriv": 1,
    "data": "t.parquet",
    "epsilon": 1.0,
    "protect": [{"secret": "share(gender = 'F')", "between": [0.25, 0.4]}],
    "composition": {"gender = 'F'": 0.3},
    "categories": {"ward": ["a", "b", "c", "nowhere"]},
    "bins": {"height": [0, 66, 300]},
}


def people(seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    income = rng.normal(60, 30, N)
    weight = 150 + 0.25 * (income - 60) + rng.normal(0, 23.8, N)
    return pa.table(
        {
            "income": np.rint(income).astype(int),
            "weight": np.rint(weight).astype(int),
            "height": np.rint(66 + 0.027 * (income - 60) + rng.normal(0, 3.9, N)).astype(int),
            "ward": np.array(list("abc"))[rng.integers(0, 3, N)],
            "gender": np.where(rng.random(N) < 0.32, "F", "M"),
            "ill": rng.random(N) < 0.2,
        }
    )


def place(folder: Path, policy: Mapping[str, Any], **changes: Any) -> Path:
    pq.write_table(people(), folder / "t.parquet")
    path = folder / "p.yaml"
    path.write_text(dump_strict({**policy, **changes}), encoding="utf-8")
    return path


# Combinations with noise.


def test_a_combination_is_released_and_told_again_in_any_spelling(tmp_path: Path) -> None:
    frame = people().to_pandas()
    truth = (2 * frame["weight"] + frame["height"] / 3 - 5).mean()
    with ap.Session(policy=place(tmp_path, GAUSSIAN)) as session:
        plan = session.plan("avg(2*weight + height/3 - 5)")
        released = session.release("avg(2*weight + height/3 - 5)")
        assert abs(released.value - truth) < 6.5 * plan.error.rmse  # type: ignore[operator] # false alarm below 1e-10
        assert released.answers[0].query.text == "avg(height / 3 + 2 * weight - 5)"
        again = session.release("mean((6*weight + height)/3 - 5)")
        assert again.recorded
        assert again.value == released.value
        total = session.release("sum(2*weight + height/3 - 5)")
        assert total.recorded
        assert total.value == pytest.approx(N * released.value)


def kept(seen: list[Fraction], average: Fraction, scale: float) -> Fraction:
    """No noise, to see what it would be added to."""
    seen.append(average)
    return average


def test_the_average_that_noise_is_added_to_is_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Fraction] = []
    monkeypatch.setattr("attrpriv.methods.base.column_plan.add_gaussian", partial(kept, seen))
    with ap.Session(policy=place(tmp_path, GAUSSIAN)) as session:
        session.release("avg(weight/3 - height/7 + 0.1)")
    rows = people().to_pylist()
    exact = sum(Fraction(row["weight"], 3) - Fraction(row["height"], 7) + Fraction(1, 10) for row in rows) / N
    assert seen == [exact]


def test_missing_entries_of_a_combination_take_the_public_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Fraction] = []
    monkeypatch.setattr("attrpriv.methods.base.column_plan.add_gaussian", partial(kept, seen))
    path = place(tmp_path, GAUSSIAN, missing={"height": 66})
    heights = [None if k % 5 == 0 else h for k, h in enumerate(people()["height"].to_pylist())]
    pq.write_table(people().set_column(2, "height", pa.array(heights, pa.int64())), tmp_path / "t.parquet")
    with ap.Session(policy=path) as session:
        session.release("avg(weight - height)")
    weights = people()["weight"].to_pylist()
    assert seen == [Fraction(sum(w - (66 if h is None else h) for w, h in zip(weights, heights, strict=True)), N)]


def test_combinations_in_a_sequence(tmp_path: Path) -> None:
    with ap.Session(policy=place(tmp_path, GAUSSIAN)) as session:
        first = session.release("avg(weight)", "gaussian", spend=0.3)
        second = session.release("avg(2*weight + height)", spend=0.5)
        assert second.plan.certificate.evidence.columns == ("weight", "height + 2 * weight")  # type: ignore[attr-defined]
        assert session.release("avg(weight)").value == first.value


# Averages over a subset of public size.


def test_an_average_over_a_subset_of_declared_size(tmp_path: Path) -> None:
    frame = people().to_pandas()
    inside = frame[frame["ward"] == "a"]
    path = place(tmp_path, GAUSSIAN, sizes={"ward='a'": len(inside)})
    with ap.Session(policy=path) as session:
        plan = session.plan("avg(weight) filter (where ward = 'a')")
        released = session.release("avg(weight) filter (where ward = 'a')")
        assert abs(released.value - inside["weight"].mean()) < 6.5 * plan.error.rmse  # type: ignore[operator]
        assert session.release("SELECT avg(weight) FROM data WHERE 'a' = ward").value == released.value
        assert "independent of the columns of the assumption" in str(released.plan.certificate)
        with pytest.raises(AttrprivError):
            session.release("avg(height)", "gaussian")


def test_the_average_over_a_subset_is_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Fraction] = []
    monkeypatch.setattr("attrpriv.methods.base.column_plan.add_gaussian", partial(kept, seen))
    frame = people().to_pandas()
    inside = frame[frame["ward"] != "b"]
    path = place(tmp_path, GAUSSIAN, sizes={"ward in ('a', 'c')": len(inside)})
    with ap.Session(policy=path) as session:
        session.release("avg(weight - height/3) filter (where ward in ('a', 'c'))")
    assert seen == [(Fraction(int(inside["weight"].sum())) - Fraction(int(inside["height"].sum()), 3)) / len(inside)]


def test_a_subset_of_another_size_is_an_announced_failure(tmp_path: Path) -> None:
    path = place(tmp_path, GAUSSIAN, sizes={"ward = 'a'": 600})
    with ap.Session(policy=path) as session:
        with pytest.raises(DataError) as caught:
            session.release("avg(weight) filter (where ward = 'a')")
        assert str(caught.value) == OTHER_SIZE
        assert caught.value.__context__ is None
        assert session.recorded() == ()


# Every statistic on a view.


def weighted(frame: pd.DataFrame) -> Any:
    """The weight of each row at the public composition."""
    women = frame["gender"] == "F"
    return np.where(women, 0.3 / women.sum(), 0.7 / (~women).sum())


def slow(text: str, frame: pd.DataFrame) -> float:
    w = weighted(frame)
    x, y = frame["height"].to_numpy(float), frame["weight"].to_numpy(float)
    hit = (frame["income"] > 40).to_numpy() if "income" in text else np.ones(len(frame), dtype=bool)
    w = w * hit / (w * hit).sum()
    mx, my = (w * x).sum(), (w * y).sum()
    cov, var = (w * (x - mx) * (y - my)).sum(), (w * (x - mx) ** 2).sum()
    order = np.argsort(y, kind="stable")
    reached = np.cumsum(w[order])
    found = {
        "avg(weight - height)": my - mx,
        "avg(weight * height)": (w * x * y).sum(),
        "var_pop(weight)": (w * (y - my) ** 2).sum(),
        "covar_pop(weight, height)": cov,
        "regr_slope(weight, height)": cov / var,
        "regr_intercept(weight, height)": my - cov / var * mx,
        "approx_quantile(weight, 0.9)": y[order][np.searchsorted(reached, 0.9 - 1e-12)],
        "median(weight)": y[order][np.searchsorted(reached, 0.5 - 1e-12)],
    }
    return float(found[text.partition(" filter")[0]])


STATISTICS = (
    "avg(weight - height)",
    "avg(weight * height)",
    "var_pop(weight)",
    "covar_pop(weight, height)",
    "regr_slope(weight, height)",
    "regr_intercept(weight, height)",
    "approx_quantile(weight, 0.9)",
    "median(weight)",
)


def test_statistics_of_a_view_are_those_of_its_rows(tmp_path: Path) -> None:
    with ap.Session(policy=place(tmp_path, VIEW)) as session:
        session.view(tmp_path / "rows.parquet")
        frame = pq.read_table(tmp_path / "rows.parquet").to_pandas()
        asked = [*STATISTICS, *(f"{one} filter (where income > 40)" for one in STATISTICS[2::2])]
        for answer, text in zip(session.release(asked).answers, asked, strict=True):
            low, high = answer.values[0].interval(0.95)
            assert answer.values[0].value == pytest.approx(slow(text, frame), rel=1e-9), text
            assert low < answer.values[0].value < high


def test_groups_are_those_that_are_declared(tmp_path: Path) -> None:
    with ap.Session(policy=place(tmp_path, VIEW)) as session:
        session.view(tmp_path / "rows.parquet")
        frame = pq.read_table(tmp_path / "rows.parquet").to_pandas()
        w = weighted(frame)
        counts = session.release("SELECT ward, count(*) FROM data GROUP BY ward").answers[0].values
        assert [value.group for value in counts] == ["a", "b", "c", "nowhere"]
        assert counts[3].value == 0
        assert counts[0].value == pytest.approx(N * w[frame["ward"] == "a"].sum())
        slopes = session.release("SELECT ward, regr_slope(weight, height) FROM data GROUP BY ward").answers[0].values
        assert [value.group for value in slopes] == ["a", "b", "c"]
        assert slopes[1].value == pytest.approx(slow_slope(frame[frame["ward"] == "b"], w[frame["ward"] == "b"]))
        tall = session.release("SELECT height, median(weight) FROM data GROUP BY height").answers[0].values
        assert [value.group for value in tall] == ["[0, 66)", "[66, 300]"]
        ill = session.release("SELECT ill, avg(weight) FROM data GROUP BY ill").answers[0].values
        assert [value.group for value in ill] == ["true", "false"]


def slow_slope(frame: pd.DataFrame, w: Any) -> float:
    x, y, w = frame["height"].to_numpy(float), frame["weight"].to_numpy(float), w / w.sum()
    mx, my = (w * x).sum(), (w * y).sum()
    return float((w * (x - mx) * (y - my)).sum() / (w * (x - mx) ** 2).sum())


def test_groups_that_are_not_declared(tmp_path: Path) -> None:
    with ap.Session(policy=place(tmp_path, VIEW)) as session:
        with pytest.raises(UsageError, match="group by: income needs public categories"):
            session.plan("SELECT income, count(*) FROM data GROUP BY income")
        with pytest.raises(UsageError, match="needs public categories"):
            session.release("SELECT income, count(*) FROM data GROUP BY income", "subsample")
    path = place(tmp_path, VIEW, categories={"ward": ["a", "b"]})
    with ap.Session(policy=path) as session, pytest.raises(DataError) as caught:
        session.release("SELECT ward, count(*) FROM data GROUP BY ward", "subsample")
    assert str(caught.value) == NO_GROUP
    assert caught.value.__context__ is None


def test_a_regression_on_a_column_that_does_not_vary(tmp_path: Path) -> None:
    with ap.Session(policy=place(tmp_path, VIEW)) as session, pytest.raises(DataError) as caught:
        session.release("regr_slope(weight, height) filter (where height = 66)", "subsample")
    assert str(caught.value) == NO_ANSWER


def test_an_interval_that_nobody_knows(tmp_path: Path) -> None:
    path = place(tmp_path, VIEW)
    # Of 8 rows: too few for an interval, and the view keeps none of them once in four million times.
    asked = "approx_quantile(weight, 0.5) filter (where income > 140)"
    found = CliRunner().invoke(app, ["release", str(path), asked, "--json"])
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["answers"][0]["interval"] is None
    shown = CliRunner().invoke(app, ["release", str(path), asked])
    assert "none is known" in shown.stdout
    assert CliRunner().invoke(app, ["ledger", str(path)]).exit_code == 0


# The policy's keys.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"categories": {"ward": []}}, "categories.ward"),
        ({"categories": {"ward": ["a", "a"]}}, "must name each category once"),
        ({"categories": {"nobody": ["a"]}}, "Got nobody"),
        ({"sizes": {"ward = ": 5}}, "must be a condition, such as ward = 'b'"),
        ({"sizes": {"ward = 'a'": 0}}, "sizes.ward = 'a'"),
        ({"sizes": {"ward = 'a'": 5, "'a' = ward": 6}}, "must name each subset once"),
        ({"sizes": {"nobody = 'a'": 5}}, "Got nobody"),
    ],
)
def test_keys_that_are_wrong(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises((PolicyError, AttrprivError)) as caught:
        ap.Session(policy=place(tmp_path, VIEW, **changes)).plan("avg(weight)")
    assert message in str(caught.value)


def test_sizes_are_kept_by_their_canonical_condition(tmp_path: Path) -> None:
    policy = ap.Policy.load(place(tmp_path, VIEW, sizes={"ward='a' AND income>40": 300}))
    assert dict(policy.sizes) == {"ward = 'a' and income > 40": 300}
