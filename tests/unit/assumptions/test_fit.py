"""A box from public moments: its intervals are the textbook's, it contains them all, and what cannot be fitted is refused."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from attrpriv.assumptions import fit as module
from attrpriv.assumptions.fit import Fit, Interval, fit_moments, least_rows, slope_pairs
from attrpriv.assumptions.gaussian import FittedRecord, Gaussian
from attrpriv.cases.budget import FitCharge, fit_charge, fit_refusal
from attrpriv.errors import DataError, PolicyError, UsageError

DIGEST = "0123456789abcdef" * 4


@dataclass(frozen=True)
class Given:
    """Moments as an engine would give them."""

    rows: int
    columns: tuple[str, ...]
    means: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    digest: str = DIGEST


def of_rows(rows: NDArray[np.float64], *columns: str) -> Given:
    covariance = np.cov(rows, rowvar=False)
    return Given(len(rows), columns, tuple(rows.mean(axis=0)), tuple(map(tuple, covariance)))


def drawn(seed: int, size: int, count: int = 2) -> Given:
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(count, count)) + 2 * np.eye(count)
    return of_rows(rng.normal(size=(size, count)) @ mix + 10, *"abcdefgh"[:count])


SCHOOL = Given(5000, ("weight", "income"), (150.0, 60_000.0), ((625.0, 225_000.0), (225_000.0, 9e8)))


def fitted(given: Given = SCHOOL, confidence: float = 0.99, sensitive: Sequence[str] = (), queries: Sequence[str] = ()) -> Fit:
    return fit_moments(
        given, sensitive=sensitive or given.columns[-1:], queries=queries or given.columns[:1], confidence=confidence
    )


def by_key(fit: Fit) -> dict[tuple[str, str, str | None], Interval]:
    return {(interval.kind, interval.of, interval.on): interval for interval in fit.intervals}


# ------------------------------------------------------------------------------------------------------------- intervals


@pytest.mark.parametrize("freedom", [3, 30, 999])
@pytest.mark.parametrize("tail", [0.05, 1e-4, 4e-8, 1e-16])
def test_quantiles_are_on_the_private_side_and_near_it(freedom: int, tail: float) -> None:
    with mpmath.workdps(40):
        half, t = mpmath.mpf(freedom) / 2, mpmath.mpf(module._student(tail, freedom))
        beyond = mpmath.betainc(half, 0.5, 0, freedom / (freedom + t * t), regularized=True) / 2
        low, high = (mpmath.mpf(ratio) for ratio in module._sd_ratios(tail, freedom))
        # The estimate is low times the truth, or less, exactly where chi-square is at most df / high^2.
        below = mpmath.gammainc(half, 0, half / high**2, regularized=True)
        above = mpmath.gammainc(half, half / low**2, mpmath.inf, regularized=True)
    for reached in (beyond, below, above):
        assert tail * 0.99 < reached < tail


def test_the_intervals_are_the_textbooks() -> None:
    from scipy import stats

    rng = np.random.default_rng(5)
    g = rng.normal(3, 2, size=80)
    q = 1 - 0.7 * g + rng.normal(size=80)
    found = by_key(fitted(of_rows(np.column_stack([q, g]), "q", "g"), confidence=0.94))
    level = 1 - 0.06 / 6  # two means, two sds, a slope and a residual sd
    line = stats.linregress(g, q)
    residuals = q - line.intercept - line.slope * g
    reach = stats.t.ppf((1 + level) / 2, 78) * line.stderr
    expected = {
        ("mean", "q", None): stats.t.interval(level, 79, q.mean(), q.std(ddof=1) / math.sqrt(80)),
        ("sd", "g", None): _chi_square_interval(g - g.mean(), 79, level),
        ("slope", "q", "g"): (line.slope - reach, line.slope + reach),
        ("residual sd", "q", "g"): _chi_square_interval(residuals, 78, level),
    }
    for key, ends in expected.items():
        assert (found[key].low, found[key].high) == pytest.approx(ends, rel=1e-5)
        assert found[key].low < ends[0] < ends[1] < found[key].high  # outward
    assert len(found) == 6


def _chi_square_interval(values: NDArray[np.float64], freedom: int, level: float) -> tuple[float, float]:
    from scipy import stats

    total = float(values @ values)
    return tuple(math.sqrt(total / stats.chi2.ppf(p, freedom)) for p in ((1 + level) / 2, (1 - level) / 2))  # type: ignore[return-value]


@given(seed=st.integers(0, 10_000), size=st.integers(40, 400))
def test_a_correlation_is_where_slope_and_sds_put_it(seed: int, size: int) -> None:
    """Any slope, sd and residual sd from their intervals that fit together give a correlation inside."""
    rng = np.random.default_rng(seed)
    found = by_key(fitted(drawn(seed, size), 0.9))
    low, high = module._correlations(found, ("a", "b"))  # type: ignore[arg-type]
    slope, own, residual, of = (
        found[key] for key in (("slope", "a", "b"), ("sd", "b", None), ("residual sd", "a", "b"), ("sd", "a", None))
    )
    tried = 0
    for _ in range(200):
        b, s, e = (rng.choice([x.low, x.high, rng.uniform(x.low, x.high)]) for x in (slope, own, residual))
        total = math.hypot(b * s, e)
        if of.low <= total <= of.high:
            tried += 1
            assert low - 1e-12 <= b * s / total <= high + 1e-12
    assert tried > 0


# --------------------------------------------------------------------------------------------------------------- the box


def contains(box: Gaussian, intervals: Sequence[Interval]) -> bool:
    """Whether every end of every interval of means, sds and slopes (or the correlations from them) is in the box."""
    t = box.tolerance
    found = {(i.kind, i.of, i.on): i for i in intervals}
    inside = []
    for interval in intervals:
        for end in (interval.low, interval.high):
            if interval.kind == "mean":
                reaches = [t.mean * sd for sd in (*box.sd_range(interval.of), box.sd_of(interval.of))]
                inside.append(abs(end - box.mean[interval.of]) <= min(reaches))
            if interval.kind == "sd":
                low, high = box.sd_range(interval.of)
                inside.append(low <= end <= high)
            if interval.kind == "slope" and t.slope is not None:
                stated = box.slope(interval.of, str(interval.on))
                inside.append(abs(end - stated) <= t.slope * abs(stated))
        if interval.kind == "slope" and t.correlation is not None:
            stated = box.correlation_of(interval.of, str(interval.on))
            ends = module._correlations(found, (interval.of, str(interval.on)))
            inside.append(max(abs(end - stated) for end in ends) <= t.correlation)
    return all(inside)


@given(seed=st.integers(0, 10_000), size=st.integers(80, 5000), count=st.integers(2, 4), confidence=st.floats(0.5, 1 - 1e-9))
def test_the_box_contains_every_interval(seed: int, size: int, count: int, confidence: float) -> None:
    given = drawn(seed, size, count)
    fit = fitted(given, confidence, sensitive=given.columns[:2], queries=given.columns[1:])
    assert contains(fit.gaussian, fit.intervals)
    shrunk = fit.gaussian.tolerance.model_copy(update={"sd": fit.gaussian.tolerance.sd * 0.99})
    assert not contains(fit.gaussian.model_copy(update={"tolerance": shrunk}), fit.intervals)


def test_the_centre_is_the_estimate_and_the_record_is_kept() -> None:
    box = fitted(confidence=1 - 5e-7).gaussian
    assert dict(box.mean) == {"weight": 150, "income": 60_000}
    assert dict(box.sd or {}) == {"weight": 25, "income": 30_000}
    assert dict(box.correlation or {}) == {"weight~income": 0.3}
    assert box.fitted == FittedRecord(rows=5000, digest=DIGEST, confidence=1 - 5e-7)
    record = "fitted on 5000 public rows (digest 0123456789abcdef), confidence 0.9999995"
    assert str(box).endswith(f"; {record}; shape: not examined")
    assert Gaussian.from_json(box.to_json()) == box


def test_tolerances_shrink_with_the_rows_and_grow_with_the_confidence() -> None:
    def tolerances(rows: int, confidence: float) -> tuple[float, ...]:
        t = fitted(replace(SCHOOL, rows=rows), confidence).gaussian.tolerance
        assert t.slope is not None
        return t.mean, t.sd, t.slope

    few, many, sure = tolerances(10_000, 0.99), tolerances(40_000, 0.99), tolerances(10_000, 1 - 5e-7)
    assert [a / b for a, b in zip(few, many, strict=True)] == pytest.approx([2, 2, 2], rel=0.05)
    assert all(a > b for a, b in zip(sure, few, strict=True))
    assert tolerances(10_000, 0.99) == pytest.approx((0.0321, 0.0225, 0.0998), rel=0.01)


def test_roles_decide_which_slopes_are_bounded() -> None:
    assert slope_pairs(["a", "b"], ["b"], ["a"]) == (("a", "b"),)
    assert slope_pairs(["a", "b"], ["a"], ["b"]) == (("b", "a"),)
    assert slope_pairs(["a", "b"], ["a", "b"], ["a", "b"]) == (("a", "b"), ("b", "a"))
    assert slope_pairs(["a", "b", "c"], ["c"], ["a"]) == (("a", "b"), ("a", "c"), ("b", "c"))  # every pair is in the box
    assert slope_pairs(["a"], ["a"], ["a"]) == ()


def test_one_column_alone() -> None:
    box = fitted(Given(500, ("a",), (0.0,), ((4.0,),)), sensitive=["a"], queries=["a"]).gaussian
    assert box.tolerance.slope is not None
    assert box.columns == ("a",)


# ---------------------------------------------------------------------------------------------------- slope or correlation


def correlated(rows: int, *correlations: float) -> Given:
    """A query column q whose correlation with sensitive columns, otherwise uncorrelated, is given."""
    size = len(correlations) + 1
    matrix = np.eye(size)
    matrix[0, 1:] = matrix[1:, 0] = correlations
    return Given(rows, ("q", *"abc"[: size - 1]), (0.0,) * size, tuple(map(tuple, matrix.tolist())))


def test_a_slope_of_zero_needs_correlations() -> None:
    fit = fitted(correlated(1000, 0.0))
    assert fit.gaussian.tolerance.slope is None
    assert fit.gaussian.tolerance.correlation == pytest.approx(0.11, abs=0.01)
    assert fit.notes == (
        "the records do not settle the sign of the slope of q on a.",
        "the box is told by correlations: some slope is too near 0 to be known to a share of itself.",
    )
    assert contains(fit.gaussian, fit.intervals)


def test_a_slope_that_is_nearly_zero_stays_a_slope_and_says_so() -> None:
    fit = fitted(correlated(1000, 0.05))
    assert fit.gaussian.tolerance.slope == pytest.approx(2, abs=0.3)
    assert fit.notes == (
        "the records do not settle the sign of the slope of q on a.",
        "the slope tolerance is above 1: a slope may be more than twice the stated one, or of the other sign.",
    )


def test_one_weak_slope_does_not_spoil_the_others() -> None:
    weak, strong = correlated(4000, 0.6, 0.03), correlated(4000, 0.6, 0.5)
    assert fitted(weak, sensitive=["a", "b"]).gaussian.tolerance.correlation is not None
    # Sensitive columns that are uncorrelated with each other have a slope of zero, too.
    assert fitted(strong, sensitive=["a", "b"]).gaussian.tolerance.correlation is not None
    full = ((1.0, 0.6, 0.5), (0.6, 1.0, 0.4), (0.5, 0.4, 1.0))
    assert fitted(replace(strong, covariance=full), sensitive=["a", "b"]).gaussian.tolerance.slope is not None


def test_the_choice_is_the_less_steep_box() -> None:
    """By hand: the steepest slopes that each of the two boxes allows."""
    given = correlated(4000, 0.6, 0.2)
    covariance = [list(row) for row in given.covariance]
    covariance[1][2] = covariance[2][1] = 0.3
    fit = fitted(replace(given, covariance=tuple(map(tuple, covariance))), sensitive=["a", "b"])
    found, t = by_key(fit), fit.gaussian.tolerance
    relative = max((i.high - i.estimate) / abs(i.estimate) for i in fit.intervals if i.kind == "slope")
    reach = max(
        abs(end - fit.gaussian.correlation_of(q, g))
        for q, g in itertools.combinations(("q", "a", "b"), 2)
        for end in module._correlations(found, (q, g))  # type: ignore[arg-type]
    )
    by_slope = math.prod(rho * (1 + relative) for rho in (0.6, 0.2))
    by_correlation = math.prod((rho + reach) * (1 + t.sd) / (1 - t.sd) for rho in (0.6, 0.2))
    assert (t.slope is not None) == (by_slope < by_correlation)


# -------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("confidence", [0.0, 0.49, 1.0, 1.5, math.nan])
def test_a_confidence_out_of_range(confidence: float) -> None:
    with pytest.raises(UsageError, match=r"^confidence: must be at least 0\.5 and below 1\. Got "):
        fitted(confidence=confidence)


def test_too_few_rows() -> None:
    needed = least_rows(2, module._tail(2, 1, 0.99))
    assert fitted(replace(SCHOOL, rows=needed)).gaussian.tolerance.sd < 1
    with pytest.raises(DataError, match=rf"^public: needs at least {needed} rows for 2 columns .* Got {needed - 1}\."):
        fitted(replace(SCHOOL, rows=needed - 1))
    assert 10 < needed < 40
    assert least_rows(100, 0.4) == 102  # more rows than columns in any case
    for rows in (0, 1, 2):
        with pytest.raises(DataError, match=r"^public: needs at least"):
            fitted(replace(SCHOOL, rows=rows))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_moment_that_is_not_finite(bad: float) -> None:
    for changed in ({"means": (bad, 1.0)}, {"covariance": ((1.0, bad), (bad, 1.0))}):
        with pytest.raises(DataError, match=r"^public: means and covariances must be finite\. Got one that is not\.$"):
            fitted(replace(SCHOOL, **changed))


@pytest.mark.parametrize("variance", [0.0, -1.0, 1e-23])
def test_a_constant_column(variance: float) -> None:
    with pytest.raises(DataError, match=r"^public: every column must vary\. Got weight, which is constant\."):
        fitted(replace(SCHOOL, covariance=((variance, 0.0), (0.0, 1.0))))


@pytest.mark.parametrize("correlation", [1.0, -1.0, 1.0000001, 0.99999999])
def test_a_column_that_determines_another(correlation: float) -> None:
    with pytest.raises(DataError, match=r"^public: no column may determine another\. Got weight and income, which do\."):
        fitted(replace(SCHOOL, covariance=((1.0, correlation), (correlation, 1.0))))


def test_columns_that_are_not_there_or_twice() -> None:
    with pytest.raises(UsageError, match=r"^columns: must hold every sensitive and every query column\. Got none called age\."):
        fitted(queries=["age"])
    twice = Given(500, ("a", "a"), (0.0, 0.0), ((1.0, 0.2), (0.2, 1.0)))
    with pytest.raises(UsageError, match=r"^columns: must be one or more different names\. Got a, a\."):
        fitted(twice)
    with pytest.raises(UsageError, match=r"^columns: must be one or more different names\. Got none\."):
        fit_moments(Given(500, (), (), ()), sensitive=(), queries=(), confidence=0.9)


# --------------------------------------------------------------------------------------------------------- from a table


class Table:
    """A table that remembers which columns it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def moments(self, columns: Sequence[str]) -> Given:
        self.asked.append(tuple(columns))
        order = [SCHOOL.columns.index(column) for column in columns]
        covariance = tuple(tuple(SCHOOL.covariance[i][j] for j in order) for i in order)
        return replace(SCHOOL, columns=tuple(columns), means=tuple(SCHOOL.means[i] for i in order), covariance=covariance)


def test_gaussian_fit_reads_what_it_needs() -> None:
    table = Table()
    by_roles = Gaussian.fit(table, sensitive=["income"], queries=["weight"], confidence=0.99)
    assert by_roles == fitted().gaussian
    by_columns = Gaussian.fit(table, columns=["weight", "income"], confidence=0.99)
    assert table.asked == [("weight", "income")] * 2
    assert (by_columns.tolerance.slope or 0) > (by_roles.tolerance.slope or 0)  # two slopes instead of one


def test_gaussian_fit_refuses_before_it_reads() -> None:
    table = Table()
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        ("public.parquet", {"columns": ["a"]}, "table: must be public records"),
        (table, {"columns": ["a"], "sensitive": ["b"]}, "columns: must hold every sensitive"),
        (table, {"columns": ["a"], "confidence": 1.0}, "confidence: must be"),
    ]
    for not_a_table, options, message in wrong:
        with pytest.raises(UsageError, match=f"^{message}"):
            Gaussian.fit(not_a_table, **{"confidence": 0.9, **options})
    assert table.asked == []


@pytest.mark.parametrize(
    "changed", [{"rows": 2}, {"rows": 5.0}, {"digest": "abc"}, {"digest": "G" * 64}, {"confidence": 1.0}, {"confidence": 0.4}]
)
def test_a_record_that_cannot_be(changed: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        FittedRecord(**{"rows": 5000, "digest": DIGEST, "confidence": 0.99, **changed})


# -------------------------------------------------------------------------------------------------------------- the risk


def at(*confidences: float | None) -> list[Gaussian]:
    boxes = [fitted(confidence=confidence or 0.99).gaussian for confidence in confidences]
    return [
        box if confidence else box.model_copy(update={"fitted": None})
        for box, confidence in zip(boxes, confidences, strict=True)
    ]


def test_without_a_fit_nothing_is_charged() -> None:
    assert fit_charge(at(None), 1e-6) == FitCharge(0.0, 1e-6, 1e-6, ())
    assert fit_charge((), 1e-6).calibration == 1e-6
    assert fit_refusal(at(None), 0.0) is None


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 3e-9, 1e-12, 1e-15])
def test_the_default_risk_is_paid_out_of_delta(delta: float) -> None:
    charge = fit_charge(at(1 - delta / 2), delta)
    assert fit_refusal(at(1 - delta / 2), delta) is None
    assert charge.promised == delta
    assert charge.risk + charge.calibration <= delta
    assert charge.calibration == pytest.approx(delta / 2, rel=1e-9 if delta > 1e-7 else 0.2)
    assert len(charge.lines) == 2


def test_more_risk_must_be_accepted_and_is_added() -> None:
    said = fit_refusal(at(0.99), 1e-6)
    assert said is not None
    assert "at least 1 - delta/2 = 0.9999995. Got 0.99." in said
    assert "accept_fit_risk: true to promise delta + 0.01 instead of delta" in said
    charge = fit_charge(at(0.99), 1e-6)
    assert charge.calibration == 1e-6
    assert charge.promised >= 0.010001
    assert "a miss adds 0.01 to delta 1e-06" in charge.lines[0]


def test_of_several_assumptions_the_largest_risk_counts() -> None:
    charge = fit_charge(at(1 - 4e-7, None, 1 - 1e-7), 1e-6)
    assert charge.risk == pytest.approx(4e-7)
    assert fit_refusal(at(1 - 4e-7, 0.9), 1e-6) is not None
