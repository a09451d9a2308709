"""Variances, regressions and quantiles released through a session: read once, recorded, told again, and proved again."""

from __future__ import annotations

import importlib
import math
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import attrpriv as ap
from attrpriv.errors import DataError, PolicyError, RefusedError
from attrpriv.methods.markov_quilt.proof import QuiltEvidence
from attrpriv.policy.strict_yaml import read_strict
from attrpriv.queries.query import quoted
from attrpriv.session.record import Rechecked, recheck, recorded_plan

engine = importlib.import_module("attrpriv.engines.statistics")
exact_module = importlib.import_module("attrpriv.noise.exact")

FLIP = [[0.7, 0.3], [0.3, 0.7]]
STATED: dict[str, Any] = {
    "epsilon": 1.0,
    "protect": [{"parameter": "income"}],
    "assume": {
        "kind": "parameter_network",
        "tolerance": 0,
        "network": {
            "nodes": {
                "gender": {"states": ["f", "m"], "table": [[0.5, 0.5]]},
                "income": {"states": ["low", "high"], "parents": ["gender"], "table": FLIP},
                "sat": {"states": ["low", "high"], "parents": ["income"], "table": FLIP},
                "height": {"states": ["low", "high"], "parents": ["gender"], "table": FLIP},
                "weight": {"states": ["low", "high"], "parents": ["height"], "table": FLIP},
            }
        },
    },
    "bounds": {"height": [50.0, 80.0], "weight": [60.0, 400.0], "sat": [400.0, 1600.0]},
    "ranges": {"regr_slope( sat,height )": [-20.0, 30.0]},
}
HEIGHTS = [60.0, 62.0, 64.0, 66.0, 68.0, 70.0, 72.0, 90.0]
TABLE = pa.table(
    {"height": HEIGHTS, "weight": [2.0 * h for h in HEIGHTS], "sat": [900, 1000, 950, 1100, 1200, 1150, 1300, 2000]}
)


def made(**changes: Any) -> ap.Policy:
    return ap.Policy(**(STATED | changes))


def session(place: Path, table: Any = TABLE, **changes: Any) -> ap.Session:
    return ap.Session(table, made(**changes), ledger=place / "x.ledger")


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The samplers draw 0: the answer comes out as it is, but for the grid of the noise, 2^-32 of its scale."""
    monkeypatch.setattr(exact_module, "_laplace", lambda steps: lambda _: 0)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which statistics were read."""
    found: list[str] = []
    real = engine.statistic

    def counting(source: Any, read: Any) -> Any:
        found.append(read.query.text)
        return real(source, read)

    monkeypatch.setattr(engine, "statistic", counting)
    return found


def clipped(name: str) -> list[float]:
    low, high = STATED["bounds"][name]
    return [min(max(float(x), low), high) for x in TABLE[name].to_pylist()]


@pytest.mark.usefixtures("no_noise")
def test_the_answers_are_the_table_s_own_within_their_ranges(tmp_path: Path, passes: list[str]) -> None:
    x, y = clipped("height"), clipped("sat")
    mx, my = sum(x) / 8, sum(y) / 8
    covariance = sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True)) / 8
    spread = sum((a - mx) ** 2 for a in x) / 8
    wanted = {
        "var_pop(height)": spread,
        "covar_pop(height, sat)": covariance,
        "median(height)": 66.0,
        "regr_slope(sat, height)": min(covariance / spread, 30.0),
    }
    with session(tmp_path) as opened:
        for text, value in wanted.items():
            found = opened.release(text, mechanism="markov_quilt", spend=0.2)
            assert found.value == pytest.approx(value, rel=1e-6, abs=1e-4)
            low, high = found.interval()
            assert low <= found.value <= high
    assert passes == list(wanted)


def test_an_exact_answer_at_the_end_of_its_range_is_said_to_be_clipped(tmp_path: Path) -> None:
    """The table's own median is 132: the interval of width 0 at 100 is for the clipped one, and the release says so."""
    with session(tmp_path, ranges={"median(weight)": [60.0, 100.0]}) as opened:
        found = opened.release("median(weight)", spend=0.2)
        assert (found.value, found.interval(), found.plan.noise.kind) == (100.0, (100.0, 100.0), "none")
        assert found.interval_for == "the table's value, clipped"
        assert any("the interval is for this clipped statistic" in line for line in found.plan.remarks)
        assert "95% interval for the table&#x27;s value, clipped" in found._repr_html_()
        assert opened.release("avg(weight)", spend=0.2).interval_for == "the table's value, clipped"  # rows are clipped
    normal = ap.Gaussian(
        mean={"weight": 150, "height": 66}, sd={"weight": 25, "height": 3}, correlation={"weight~height": 0.3}, tolerance=0
    )
    plain = made(bounds={}, ranges={}, assume=normal, delta=1e-6, protect=[{"secret": "mean(height)", "within": 1}])
    with ap.Session(TABLE, plain, ledger=tmp_path / "y.ledger") as opened:
        assert opened.plan("avg(weight)", "gaussian").clips is False
        moved = opened.release("avg(weight)", "transport")
        assert moved.interval_for == "a table as assumed"
        assert "95% interval for a table as assumed" in moved._repr_html_()
    with ap.Session(TABLE, plain, ledger=tmp_path / "z.ledger") as opened:
        assert opened.release("avg(weight)", "gaussian").interval_for == "the table's own value"


def test_an_average_a_variance_and_a_slope_share_one_budget(tmp_path: Path, passes: list[str]) -> None:
    texts = ("avg(sat)", "var_pop(sat)", "regr_slope(sat, height)", "median(weight)")
    with session(tmp_path) as opened:
        found = [opened.release(text, spend=share) for text, share in zip(texts, (0.25, 0.25, 0.5, 1.0), strict=True)]
        assert [release.plan.mechanism for release in found] == ["markov_quilt"] * 4
        told = opened.release("var_pop(sat)")
        assert told.recorded
        assert told.values == found[1].values
        assert told.interval() == found[1].interval()
        entries = opened.recorded()
        assert recheck("x", entries) == Rechecked(certificates=4, releases=4, planned_again=4)
    assert passes == list(texts[1:])
    evidence = recorded_plan(entries[-1]).certificate.evidence
    assert isinstance(evidence, QuiltEvidence)
    assert [terms.columns for terms in evidence.earlier] == [("height", "sat"), ("sat",)]
    assert evidence.loss() <= 1.0


def test_a_list_is_released_one_after_the_other(tmp_path: Path, passes: list[str]) -> None:
    """A policy may list averages and others beside each other; a recheck plans every entry again."""
    listed = ["avg(sat)", "var_pop(sat), regr_slope(sat, height)", "median(weight)"]
    with session(tmp_path, release=listed) as opened:
        planned = opened.plan()
        noise = [planned.noise_of(query).kind for query in opened.policy.queries() if isinstance(query, ap.Query)]
        assert noise == ["laplace", "laplace", "laplace", "none"]
        found = opened.release()
        assert len(found.values) == 4
        assert len(opened.recorded()) == 4
        assert recheck("x", opened.recorded()).planned_again == 4
        assert opened.release().values == found.values
        assert opened.left > 0
    assert passes == ["var_pop(sat)", "regr_slope(sat, height)", "median(weight)"]


def test_the_number_of_rows_may_stand_beside_it(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        found = opened.release("SELECT count(*), median(weight) FROM data")
        assert found.values == (8, 132.0)
        assert recheck("x", opened.recorded()).planned_again == 1


def test_the_least_epsilon_that_reaches_an_error(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        planned = opened.plan("var_pop(sat)", mechanism="group_dp", error=1e6, spend=1)
        assert planned.error.rmse == pytest.approx(1e6, rel=1e-3)
        assert planned.epsilon == pytest.approx(math.sqrt(2) * 0.36, rel=1e-3)


NAMES = ("body weight", 'a "quoted" name', "it's", "back\\slash", "x: y", "\u00e9t\u00e9", "select", "#5")


@pytest.mark.parametrize("name", NAMES)
def test_a_refusal_has_the_line_to_write_into_the_policy(name: str, tmp_path: Path) -> None:
    """What it says is copied, with numbers for low and high, and is then enough."""
    policy = {**STATED, "ranges": {}, "bounds": {}, "rows": 8}
    text = f"regr_slope(sat, {quoted(name)})"
    table = TABLE.append_column(name, pa.array(range(8)))
    for _ in range(3):
        with ap.Session(table, ap.Policy(**policy), ledger=tmp_path / "x.ledger") as opened:
            try:
                assert opened.plan(text, mechanism="group_dp").statistic is not None
                return
            except RefusedError as refused:
                line = re.search(r"[Dd]eclare ((?:bounds|ranges): \{.*\})\.$", str(refused))
        assert line is not None
        (tmp_path / "line.yaml").write_text(line[1].replace("low", "-5.0").replace("high", "5.0"), encoding="utf-8")
        found = read_strict(tmp_path / "line.yaml")
        assert isinstance(found, dict)
        for key, value in found.items():
            policy[key] = {**policy[key], **value}
    pytest.fail("the lines were not enough")


def test_group_dp_without_an_assumption_goes_on_too(tmp_path: Path) -> None:
    policy = made(assume=(), protect=[{"secret": "avg(sat)", "within": 10.0}])
    with ap.Session(TABLE, policy, ledger=tmp_path / "x.ledger") as opened:
        first = opened.release("var_pop(sat)", spend=0.5)
        second = opened.release("regr_slope(sat, height)")
        assert [first.plan.mechanism, second.plan.mechanism] == ["group_dp", "group_dp"]
        assert first.plan.noise.scale == pytest.approx(600.0**2 / 0.5)
        assert second.plan.noise.scale == pytest.approx(50 / 0.5, rel=1e-6)
        assert recheck("x", opened.recorded()).planned_again == 2


@pytest.mark.usefixtures("no_noise")
def test_a_constant_column_answers_the_middle_and_says_nothing(tmp_path: Path) -> None:
    table = pa.table({"height": [70.0] * 4, "sat": [900, 1000, 950, 1100], "weight": [100.0] * 4})
    with session(tmp_path, table) as opened:
        found = opened.release("regr_slope(sat, height)")
        assert found.value == pytest.approx(5.0, abs=1e-6)
        plan = opened.plan("regr_slope(sat, height)").to_json()
    (tmp_path / "other").mkdir()
    with session(tmp_path / "other", TABLE.slice(0, 4)) as opened:
        assert opened.plan("regr_slope(sat, height)").to_json() == plan, "a plan depends on the rows"


def test_a_missing_entry_is_an_announced_failure_that_spends_nothing(tmp_path: Path) -> None:
    table = TABLE.set_column(0, "height", pa.array([None, *HEIGHTS[1:]]))
    with session(tmp_path, table) as opened:
        with pytest.raises(DataError, match="every value of a column read must be present"):
            opened.release("median(height)")
        assert opened.left == 1.0
        assert opened.recorded() == ()
    (tmp_path / "filled").mkdir()
    with session(tmp_path / "filled", table, missing={"height": 65.0}) as opened:
        assert math.isfinite(opened.release("median(height)").value)


def test_another_range_is_another_policy(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        opened.release("regr_slope(sat, height)", spend=0.5)
    with (
        session(tmp_path, ranges={"regr_slope(sat, height)": [-1.0, 1.0]}) as opened,
        pytest.raises(RefusedError, match="ranges"),
    ):
        opened.release("var_pop(sat)")


RANGES = {
    "an average": {"avg(sat)": [0.0, 1.0]},
    "a filter": {"median(sat) filter (where height > 3)": [0.0, 1.0]},
    "two": {"median(sat), median(height)": [0.0, 1.0]},
    "no query": {"nonsense(": [0.0, 1.0]},
    "one twice": {"median(sat)": [0.0, 1.0], "approx_quantile(sat, 0.5)": [0.0, 2.0]},
    "the wrong way round": {"median(sat)": [1.0, 0.0]},
}


@pytest.mark.parametrize("name", RANGES)
def test_a_range_must_be_of_one_such_statistic(name: str) -> None:
    with pytest.raises(PolicyError, match="ranges"):
        made(ranges=RANGES[name])


def test_a_range_of_a_column_that_is_not_there(tmp_path: Path) -> None:
    with session(tmp_path, ranges={"median(age)": [0.0, 1.0]}) as opened, pytest.raises(DataError, match="Got age"):
        opened.plan("avg(sat)")
