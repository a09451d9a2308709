"""Verdicts on the shape of rows: what is called bad, how seldom normal rows are, and that a file keeps what was found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import attrpriv as ap
from attrpriv.assumptions import shape as widening
from attrpriv.assumptions.fit import fit_moments
from attrpriv.assumptions.gaussian import FittedRecord, Gaussian
from attrpriv.assumptions.groups import Groups
from attrpriv.assumptions.shape import (
    LEAST_CARRYING,
    LIMITS,
    ShapeFinding,
    carrying,
    faults,
    findings_of,
    freedom,
    least_carrying,
    shortened,
    skewed,
    summary,
    verdict,
)
from attrpriv.engines.moments import PublicTable
from attrpriv.errors import DataError, PolicyError
from attrpriv.problem.row_shape import ColumnShape, PairShape, RowShape
from tests.unit.assumptions.test_fit import DIGEST, SCHOOL, by_key

FALSE_ALARM = 1e-6
# From so many rows on, a verdict is good or bad, not unknown.
LEAST_ROWS = 1250


def shape_of(**columns: Any) -> RowShape:
    table = PublicTable(pa.table(columns))
    names = list(columns)
    return table.shape(table.moments(names), [(names[0], names[1])])


def normal(rows: int, seed: int) -> RowShape:
    rng = np.random.default_rng(seed)
    g = rng.normal(60_000, 30_000, size=rows)
    return shape_of(q=150 + 0.00025 * g + rng.normal(0, 23.85, size=rows), g=g)


# -------------------------------------------------------------------------------------------------------------- verdicts


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("sign", [-1, 1])
def test_beyond_a_limit_is_bad_and_within_is_good(name: str, sign: int) -> None:
    limit = sign * LIMITS[name]
    assert verdict({name: limit * 1.01}, 10**6).startswith("bad: ")
    assert verdict({name: limit * 0.99}, 10**6) == "good"
    assert verdict({name: limit * 1.01}, 2000) == "good"  # two thousand rows do not show so little
    assert verdict({name: limit * 3}, 2000).startswith("bad: ")
    assert verdict({name: 0.0}, 1000 if name != "skewness" else 500) == "unknown: too few rows"
    assert verdict({name: sign * 50.0}, 20).startswith("bad: ")  # but what they show, they show


def test_what_is_no_number_is_bad() -> None:
    assert verdict({"kurtosis": math.nan}, 10**6) == "bad: heavy tails"


def test_each_fault_has_its_word() -> None:
    found = {name: verdict({name: -3.0}, 10**4) for name in LIMITS}
    assert found == {
        "skewness": "bad: skewed",
        "kurtosis": "bad: light tails",
        "curvature": "bad: curved",
        "spread": "bad: unequal spread",
    }
    assert verdict({"skewness": 1.0, "kurtosis": 2.0}, 10**4) == "bad: skewed, heavy tails"


@pytest.mark.parametrize("rows", [LEAST_ROWS, 20_000])
def test_normal_rows_are_good(rows: int) -> None:
    """A false alarm has a probability below 2e-6 for each of seven numbers. The seeds are fixed."""
    for seed in range(8):
        assert all(one.good for one in findings_of(normal(rows, seed), rows)), seed


def test_the_false_alarm_rate_of_the_limits() -> None:
    """The spread of each number over normal tables is what its limit counts on, and the skewed law of the kurtosis is known."""
    rows, count = LEAST_ROWS, 4000
    rng = np.random.default_rng(3)
    u, e = (rng.normal(size=(count, rows)) for _ in range(2))
    found = {
        "skewness": stats.skew(u, axis=1),
        "kurtosis": stats.kurtosis(u, axis=1),
        "curvature": (e * (u * u - 1)).mean(axis=1),  # a residual is free of u itself
        "spread": ((e * e - 1) * u).mean(axis=1),
    }
    tails = {"skewness": 6, "kurtosis": 24, "curvature": 2, "spread": 2}
    for name, values in found.items():
        assert np.std(values) == pytest.approx(math.sqrt(tails[name] / rows), rel=0.08), name
        reached = 5 * math.sqrt(tails[name] / rows)
        assert name == "kurtosis" or verdict({name: reached * 1.001}, rows).startswith("bad")
        assert name == "kurtosis" or verdict({name: reached * 0.999}, rows) == "good"
    # Anscombe and Glynn's law of the kurtosis, which is skewed: 5 standard errors alone would be exceeded far more often.
    reach = math.sqrt(24 / rows) * (5 + math.sqrt(216 / rows) * 24 / 6)
    assert verdict({"kurtosis": reach * 0.999}, rows) == "good"
    assert verdict({"kurtosis": reach * 1.001}, rows) == "bad: heavy tails"
    assert _kurtosis_tail(reach, rows) < 2 * FALSE_ALARM < _kurtosis_tail(5 * math.sqrt(24 / rows), rows)


def _kurtosis_tail(excess: float, n: int) -> float:
    """P(the excess kurtosis of n normal rows is above this), by Anscombe and Glynn (1983)."""
    mean = 3 * (n - 1) / (n + 1)
    variance = 24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    x = (excess + 3 - mean) / math.sqrt(variance)
    root = 6 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9)) * math.sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    a = 6 + 8 / root * (2 / root + math.sqrt(1 + 4 / root**2))
    z = (1 - 2 / (9 * a) - ((1 - 2 / a) / (1 + x * math.sqrt(2 / (a - 4)))) ** (1 / 3)) / math.sqrt(2 / (9 * a))
    return float(stats.norm.sf(z))


def curved(rows: int, rng: np.random.Generator) -> RowShape:
    g = rng.normal(size=rows)
    return shape_of(q=g + 0.15 * g**2 + rng.normal(size=rows), g=g)


def fanned(rows: int, rng: np.random.Generator) -> RowShape:
    g = rng.normal(size=rows)
    return shape_of(q=g + rng.normal(size=rows) * np.exp(0.2 * g), g=g)


def heavy(rows: int, rng: np.random.Generator) -> RowShape:
    return shape_of(q=rng.standard_t(5, size=rows), g=rng.normal(size=rows))


def rich(rows: int, rng: np.random.Generator) -> RowShape:
    return shape_of(q=rng.lognormal(0, 0.4, size=rows), g=rng.normal(size=rows))


@pytest.mark.parametrize(
    ("make", "name", "told"),
    [(curved, "q on g", "curved"), (fanned, "q on g", "unequal spread"), (heavy, "q", "heavy tails"), (rich, "q", "skewed")],
)
def test_what_departs_by_more_than_twice_the_limit_is_found(make: Any, name: str, told: str) -> None:
    """At 5,000 rows a departure of twice its limit is about 4 standard errors beyond what is allowed: all of 3 tables."""
    for seed in range(3):
        found = {one.name: one.verdict for one in findings_of(make(5000, np.random.default_rng(seed)), 5000)}
        assert told in found[name], (seed, found)


# ---------------------------------------------------------------------------------------------- what a release rests on


def finding(
    of: str, on: str | None = None, category: str | None = None, verdict: str = "good", **numbers: float
) -> ShapeFinding:
    return ShapeFinding(of=of, on=on, category=category, verdict=verdict, **numbers)


BAD = "bad: curved"


def test_only_what_a_release_rests_on_counts() -> None:
    found = (finding("q"), finding("g"), finding("other", verdict="bad: heavy tails", kurtosis=9.0), finding("q", "g"))
    assert faults(found, ["q"], ["g"]) == ()
    assert faults(found, ["other"], ["g"]) == ("other: heavy tails (kurtosis 9)", "other on g: not examined")
    assert faults((*found[:3], finding("q", "g", verdict=BAD, curvature=0.2)), ["q"], ["g"]) == (
        "q on g: curved (curvature 0.2)",
    )
    assert faults(found, ["g"], ["q"]) == ("g on q: not examined",)
    assert faults(found, ["q"], ["q"]) == ()


def test_of_groups_every_category_counts() -> None:
    found = (finding("q", category="F"), finding("q", category="M", verdict="unknown: too few rows", skewness=0.0))
    assert faults(found, ["q"], ["gender"]) == ("q in M: too few rows (skewness 0)",)


def test_in_a_few_words() -> None:
    assert summary(None) == "shape: not examined"
    assert summary((finding("q"), finding("g"))) == "shape: good"
    assert summary((finding("q", verdict="unknown: too few rows"),)).startswith("shape: unknown: q: too few rows")
    many = tuple(finding(f"c{k}", verdict=BAD) for k in range(5))
    assert summary(many) == "shape: bad: c0: curved (); c1: curved (); c2: curved (); and 2 more"
    assert shortened(["a", "b"]) == "a; b"


# --------------------------------------------------------------------------------------------------------------- records


def test_an_assumption_keeps_what_was_found_and_old_ones_still_load() -> None:
    table = PublicTable(
        pa.table({"q": np.random.default_rng(1).normal(size=5000), "g": np.random.default_rng(2).gamma(2, size=5000)})
    )
    box = Gaussian.fit(table, sensitive=["g"], queries=["q"], confidence=0.999)
    assert box.fitted is not None
    assert [one.name for one in box.fitted.shape or ()] == ["q", "g", "q on g"]
    assert Gaussian.from_json(box.to_json()) == box
    assert "; shape: bad: g: skewed, heavy tails (skewness " in str(box)
    old = box.to_json()
    old["fitted"].pop("shape")
    before = Gaussian.from_json(old)
    assert before.fitted is not None
    assert before.fitted.shape is None
    assert before.to_json() == old
    assert str(before).endswith("; shape: not examined")


def test_the_digest_of_a_policy_with_an_older_file_is_what_it_was() -> None:
    """The number was computed before assumptions had a shape: ledgers of such policies must go on."""
    fitted = {"rows": 5000, "digest": DIGEST, "confidence": 0.9999995}
    assumed = {"kind": "gaussian", "mean": {"weight": 150, "income": 60000}, "sd": {"weight": 25, "income": 30000}}
    assumed |= {"correlation": {"weight~income": 0.3}, "tolerance": {"mean": 0.01, "sd": 0.02, "slope": 0.05}, "fitted": fitted}
    protect = [{"secret": "mean(income)", "between": [20000, 200000], "within": 1000}]
    policy = ap.Policy.checked({"epsilon": 1.0, "delta": 1e-6, "rows": 1000, "protect": protect, "assume": assumed})
    assert policy.digest == OLD_DIGEST


OLD_DIGEST = "b24e30bbb02c32db29dde2328dfff04fd8c9be794c11245cfc6dd16394dd008f"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"verdict": "fine"}, "verdict: must be good, or bad or unknown with the reason after a colon. Got 'fine'."),
        ({"verdict": "bad"}, "verdict: must be good, or bad or unknown"),
        ({"kurtosis": math.inf}, "kurtosis: "),
        ({"colour": 1.0}, "colour: unknown key"),
    ],
)
def test_findings_that_cannot_be(changed: Mapping[str, Any], message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        ShapeFinding(**{"of": "q", "kurtosis": 0.0, "verdict": "good", **changed})
    assert message in str(caught.value)


# ------------------------------------------------------------------------------------------------------ wider intervals

NORMAL = RowShape({"weight": ColumnShape(0, 0), "income": ColumnShape(0, 0)}, {("weight", "income"): PairShape(0, 0, 0, 1, 0)})


def examined(shape: RowShape | None, confidence: float = 0.99) -> Any:
    return fit_moments(SCHOOL, sensitive=["income"], queries=["weight"], confidence=confidence, shape=shape)


@pytest.mark.parametrize("confidence", [0.5, 0.99, 1 - 5e-7])
def test_no_interval_is_narrower_than_for_normal_rows(confidence: float) -> None:
    light = RowShape(
        {c: ColumnShape(0, -1.9) for c in ("weight", "income")}, {("weight", "income"): PairShape(0, 0, -1.9, 0.1, 0)}
    )
    exact = by_key(examined(None, confidence))
    for shape in (NORMAL, light):
        for key, one in by_key(examined(shape, confidence)).items():
            assert one.low <= exact[key].low <= exact[key].high <= one.high, key


def test_each_departure_widens_its_own_intervals() -> None:
    usual = by_key(examined(NORMAL))

    def wider(**changes: Any) -> set[tuple[str, str]]:
        column = ColumnShape(changes.get("skewness", 0.0), changes.get("kurtosis", 0.0))
        pair = PairShape(
            0, 0, changes.get("residual_kurtosis", 0.0), changes.get("score_variance", 1.0), changes.get("score_skewness", 0.0)
        )
        found = by_key(examined(RowShape({"weight": column, "income": ColumnShape(0, 0)}, {("weight", "income"): pair})))
        return {
            (kind, of)
            for (kind, of, on), one in found.items()
            if one.high - one.low > usual[kind, of, on].high - usual[kind, of, on].low
        }

    assert wider(kurtosis=5.0) == {("sd", "weight")}
    assert wider(skewness=-2.0) == {("mean", "weight")}
    assert wider(residual_kurtosis=5.0) == {("residual sd", "weight")}
    assert wider(score_variance=2.0) == wider(score_skewness=-2.0) == {("slope", "weight")}


def test_the_interval_of_spikes_is_that_of_a_count() -> None:
    """k equal spikes among n zeros: the sd goes with the root of their number, a Poisson one, and its limits are inside."""
    n, tail = 100_000, 1e-3
    for k in (200, 1000):
        excess = n / k - 3
        half = freedom(n, excess, tail, n - 1) / 2
        ratio = half / stats.gamma.ppf(tail, half)
        assert stats.gamma.ppf(tail, k) / k >= 1 / ratio  # the exact lower limit of the count
        assert stats.gamma.isf(tail, k + 1) / k <= ratio  # and the upper one
        assert carrying(n, excess) == pytest.approx(k / (2 - 3 * k / n))


def test_too_few_rows_that_carry_a_variance_are_refused() -> None:
    needed = least_carrying(0.01 / 12)
    assert needed == LEAST_CARRYING
    excess = (5000 / needed - 3) / 2  # what is seen is doubled
    few = RowShape({**NORMAL.columns, "weight": ColumnShape(0, excess * 1.01)}, NORMAL.pairs)
    with pytest.raises(DataError) as caught:
        examined(few)
    assert str(caught.value).startswith(
        "public: 25 or more rows must carry the variance of a column for it to be known at this"
    )
    assert f"Got about 24.8 of 5000 for weight (excess kurtosis {excess * 1.01:.3g}). Find about 1.0 times as many" in str(
        caught.value
    )
    examined(RowShape({**NORMAL.columns, "weight": ColumnShape(0, excess * 0.99)}, NORMAL.pairs))
    given = RowShape(NORMAL.columns, {("weight", "income"): PairShape(0, 0, excess * 1.01, 1, 0)})
    with pytest.raises(DataError, match="for weight given income"):
        examined(given)


@pytest.mark.parametrize("tail", [0.1, 1e-3, 4e-8, 1e-16])
def test_the_fewest_rows_that_carry_are_enough(tail: float) -> None:
    n, k = 10**6, least_carrying(tail)
    half = freedom(n, (n / k - 3) / 2, tail, n - 1) / 2
    assert math.sqrt(half / stats.gamma.ppf(tail, half)) < 1.99
    if k > LEAST_CARRYING:
        less = widening.freedom(n, (n / (k * 0.97) - 3) / 2, tail, n - 1) / 2
        assert math.sqrt(less / stats.gamma.ppf(tail, less)) > 1.98


def test_skewness_of_either_sign_costs_the_same() -> None:
    assert skewed(3.0, -1.0, 100) == skewed(3.0, 1.0, 100) == pytest.approx(3 + 19 / 60)


def test_groups_are_examined_category_by_category() -> None:
    rng = np.random.default_rng(4)
    gender = np.where(rng.random(20_000) < 0.3, "F", "M")
    pay = np.where(gender == "F", rng.normal(30, 5, 20_000), rng.lognormal(3, 0.6, 20_000))
    table = PublicTable(pa.table({"gender": gender, "pay": pay, "hours": rng.normal(40, 5, 20_000)}))
    made = Groups.fit(table, sensitive="gender", columns=["pay", "hours"], confidence=0.9999995)
    assert made.fitted is not None
    told = {one.name: one.verdict for one in made.fitted.shape or ()}
    assert told == {
        "pay in F": "good",
        "hours in F": "good",
        "pay in M": "bad: skewed, heavy tails",
        "hours in M": "good",
    }
    assert Groups.from_json(made.to_json()) == made
    few = PublicTable(pa.table({"gender": gender[:400], "pay": pay[:400]}))
    with pytest.raises(DataError, match=r"rows must carry the variance of .* in [FM] \("):
        Groups.fit(few, sensitive="gender", columns=["pay"], confidence=0.9999995)


def test_a_record_of_moments_alone_says_that_nothing_was_examined() -> None:
    assert examined(None).gaussian.fitted == FittedRecord(rows=5000, digest=DIGEST, confidence=0.99)
    assert examined(NORMAL).gaussian.fitted.shape == findings_of(NORMAL, 5000)
