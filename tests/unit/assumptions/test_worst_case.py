"""The closed form of the worst distribution against brute force over the whole box."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from attrpriv.assumptions import worst_case
from attrpriv.assumptions.gaussian import Gaussian, Tolerance
from attrpriv.assumptions.worst_case import (
    Extreme,
    candidates,
    least_joint_residual,
    least_residual,
    steepest_slope,
    witness,
    worst,
)
from attrpriv.methods.gaussian import plan as mechanism
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.property.twin import Moments, inside, members, stated

Worst = Callable[[Gaussian, float, float], float]


def two_columns(rho: float, sd_q: float, sd_g: float, tolerance: Tolerance) -> Gaussian:
    return Gaussian(sd={"y": sd_q, "x": sd_g}, correlation={("y", "x"): rho}, tolerance=tolerance)


def box(gaussian: Gaussian, steps: int = 13) -> Iterator[tuple[float, float, float]]:
    """(slope, sd_q, sd_g) over the whole class: a grid with its corners, and the surface where the correlation is 1."""
    t, centre = gaussian.tolerance, stated(gaussian)
    rho, (sd_q, sd_g) = float(centre.correlation[0, 1]), map(float, centre.sd)
    sds_q = np.linspace(sd_q * (1 - t.sd), sd_q * (1 + t.sd), steps)
    sds_g = np.linspace(sd_g * (1 - t.sd), sd_g * (1 + t.sd), steps)
    if t.correlation is not None:
        for r in np.linspace(max(-1.0, rho - t.correlation), min(1.0, rho + t.correlation), steps):
            for a, b in itertools.product(sds_q, sds_g):
                yield float(r * a / b), float(a), float(b)
        return
    slopes = np.linspace(rho * sd_q / sd_g * (1 - (t.slope or 0)), rho * sd_q / sd_g * (1 + (t.slope or 0)), steps)
    for slope, a, b in itertools.product(slopes, sds_q, sds_g):
        if abs(slope) * b <= a:
            yield float(slope), float(a), float(b)
    low, high = sorted((float(slopes[0]), float(slopes[-1])))
    for a, b in itertools.product(sds_q, sds_g):
        for slope in (a / b, -a / b):
            if low <= slope <= high:
                yield float(slope), float(a), float(b)
    for slope, b in itertools.product(slopes, sds_g):
        if sds_q[0] <= abs(slope) * b <= sds_q[-1]:
            yield float(slope), float(abs(slope) * b), float(b)


def brute_force(gaussian: Gaussian, stretch: float, credit: float) -> float:
    return max(s * s * stretch - credit * max(0.0, a * a - (s * b) ** 2) for s, a, b in box(gaussian))


def size(gaussian: Gaussian, stretch: float, credit: float) -> float:
    """What rounding and a coarse grid are measured against."""
    return max(s * s * stretch + credit * a * a for s, a, _ in box(gaussian))


def closed_form(gaussian: Gaussian, stretch: float, credit: float) -> float:
    return worst(gaussian, "y", "x", stretch, credit).need(stretch, credit)


def check(found: Worst, gaussian: Gaussian, stretch: float, credit: float) -> None:
    """The check that mutants must fail: never below brute force, and not above what is attained."""
    value, brute, unit = (
        found(gaussian, stretch, credit),
        brute_force(gaussian, stretch, credit),
        size(gaussian, stretch, credit),
    )
    assert value >= brute - 1e-12 * unit, "a distribution of the box needs more"
    assert value <= brute + 1e-9 * unit, "no distribution of the box needs so much"


tolerances = st.one_of(
    st.builds(Tolerance, sd=st.floats(0, 0.6), slope=st.floats(0, 1.5)),
    st.builds(Tolerance, sd=st.floats(0, 0.6), correlation=st.floats(0, 1.2)),
)


@given(
    rho=st.floats(-1, 1),
    sd_q=st.floats(0.1, 10),
    sd_g=st.floats(0.1, 10),
    tolerance=tolerances,
    stretch=st.floats(1e-3, 1e3),
    credit=st.floats(0, 1),
)
@settings(max_examples=150)
@example(rho=0.9, sd_q=1.0, sd_g=1.0, tolerance=Tolerance(sd=0.2, slope=0.5), stretch=1.0, credit=0.5)  # corner above 1
@example(rho=-0.9, sd_q=1.0, sd_g=1.0, tolerance=Tolerance(sd=0.0, slope=0.5), stretch=0.01, credit=0.9)
@example(rho=1.0, sd_q=1.0, sd_g=1.0, tolerance=Tolerance(sd=0.3, slope=1.0), stretch=1.0, credit=1.0)
@example(rho=0.0, sd_q=1.0, sd_g=1.0, tolerance=Tolerance(sd=0.3, slope=1.0), stretch=1.0, credit=1.0)
@example(rho=0.1, sd_q=1.0, sd_g=1.0, tolerance=Tolerance(sd=0.3, correlation=0.3), stretch=0.01, credit=1.0)  # bracket < 0
def test_worst_is_the_maximum_over_the_box(
    rho: float, sd_q: float, sd_g: float, tolerance: Tolerance, stretch: float, credit: float
) -> None:
    check(closed_form, two_columns(rho, sd_q, sd_g, tolerance), stretch, credit)


@given(rho=st.floats(-1, 1), tolerance=tolerances, stretch=st.floats(1e-3, 1e3), credit=st.floats(0, 1), sd=st.floats(0.1, 10))
def test_the_sign_of_the_correlation_does_not_matter(
    rho: float, tolerance: Tolerance, stretch: float, credit: float, sd: float
) -> None:
    there, back = (two_columns(r, 2.0, sd, tolerance) for r in (rho, -rho))
    assert worst(there, "y", "x", stretch, credit) == worst(back, "y", "x", stretch, credit)


def test_the_corner_that_would_need_a_correlation_above_one() -> None:
    """rho = .9, slope up to 1.35, sds up to 20% off: the corner (1.35, .8, 1.2) has correlation 2.03 and does not exist."""
    gaussian = two_columns(0.9, 1.0, 1.0, Tolerance(sd=0.2, slope=0.5))
    found = worst(gaussian, "y", "x", 1.0, 0.5)
    assert found.slope == pytest.approx(1.35)
    assert found.residual == 0.0
    assert found.slope * found.sd_secret == pytest.approx(found.sd_query)
    assert 0.8 <= found.sd_query <= 1.2
    assert 0.8 <= found.sd_secret <= 1.2
    # Steeper than any distribution of the box allows: cut to what does exist.
    steep = worst(two_columns(0.9, 1.0, 1.0, Tolerance(sd=0.1, slope=5.0)), "y", "x", 1.0, 0.5)
    assert steep.slope == pytest.approx(1.1 / 0.9)
    assert (steep.sd_query, steep.sd_secret) == pytest.approx((1.1, 0.9))


@given(rho=st.floats(-1, 1), sd_q=st.floats(0.1, 10), sd_g=st.floats(0.1, 10), tolerance=tolerances)
def test_every_candidate_lies_in_the_box(rho: float, sd_q: float, sd_g: float, tolerance: Tolerance) -> None:
    gaussian = two_columns(rho, sd_q, sd_g, tolerance)
    for found in candidates(gaussian, "y", "x"):
        r = found.slope * found.sd_secret / found.sd_query
        assert found.residual == pytest.approx(found.sd_query**2 * (1 - r * r), abs=1e-9 * found.sd_query**2)
        sign = -1.0 if rho < 0 else 1.0
        moments = Moments(("y", "x"), np.array([found.sd_query, found.sd_secret]), np.array([[1.0, sign * r], [sign * r, 1.0]]))
        assert inside(gaussian, moments, ["y"], ["x"], slack=1e-9)


def test_a_column_given_itself() -> None:
    gaussian = two_columns(0.3, 2.0, 5.0, Tolerance(sd=0.3, slope=0.9))
    own = worst(gaussian, "x", "x", 4.0, 0.7)
    assert (own.slope, own.residual, own.need(4.0, 0.7)) == (1.0, 0.0, 4.0)
    assert steepest_slope(gaussian, "x", "x") == 1.0


@given(rho=st.floats(-1, 1), sd_q=st.floats(0.1, 10), sd_g=st.floats(0.1, 10), tolerance=tolerances)
def test_steepest_slope_and_least_residual_are_bounds(rho: float, sd_q: float, sd_g: float, tolerance: Tolerance) -> None:
    gaussian = two_columns(rho, sd_q, sd_g, tolerance)
    steepest = max(abs(s) for s, _, _ in box(gaussian))
    least = min(max(0.0, a * a - (s * b) ** 2) for s, a, b in box(gaussian))
    assert steepest_slope(gaussian, "y", "x") >= steepest * (1 - 1e-12)
    assert least_residual(gaussian, "y", "x") <= least + 1e-12 * sd_q**2


# --------------------------------------------------------------------------------------------------------------- mutants


def signed(gaussian: Gaussian, stretch: float, credit: float) -> float:
    """The paper's V_ij without absolute value: the slope nearest to plus infinity counts."""
    s, a, b = max(box(gaussian), key=lambda point: point[0])
    return max(s, 0.0) ** 2 * stretch - credit * max(0.0, a * a - (s * b) ** 2)


def centre_only(gaussian: Gaussian, stretch: float, credit: float) -> float:
    """The tolerance forgotten."""
    c = stated(gaussian)
    slope = c.slope("y", "x")
    return slope**2 * stretch - credit * float(c.sd[0] ** 2 - (slope * c.sd[1]) ** 2)


def credit_at_the_centre(gaussian: Gaussian, stretch: float, credit: float) -> float:
    """The steepest slope, but the credit of the stated moments."""
    c = stated(gaussian)
    slope = c.slope("y", "x")
    return steepest_slope(gaussian, "y", "x") ** 2 * stretch - credit * float(c.sd[0] ** 2 - (slope * c.sd[1]) ** 2)


def wrong_end(gaussian: Gaussian, stretch: float, credit: float) -> float:
    """The correlation box with s_q always at its low end."""
    found = min(candidates(gaussian, "y", "x"), key=lambda extreme: extreme.sd_query)
    return found.need(stretch, credit)


def apart(gaussian: Gaussian, stretch: float, credit: float) -> float:
    """Largest slope and least residual, each on its own: sound, but looser than the joint maximum."""
    return steepest_slope(gaussian, "y", "x") ** 2 * stretch - credit * least_residual(gaussian, "y", "x")


@pytest.mark.parametrize(
    ("mutant", "gaussian", "stretch", "credit"),
    [
        (signed, two_columns(-0.6, 1.0, 1.0, Tolerance(slope=0.1)), 1.0, 0.1),
        (centre_only, two_columns(0.6, 1.0, 1.0, Tolerance(slope=0.1)), 1.0, 0.1),
        (centre_only, two_columns(0.6, 1.0, 1.0, Tolerance(sd=0.1, slope=0.0)), 1.0, 0.1),
        (credit_at_the_centre, two_columns(0.6, 1.0, 1.0, Tolerance(sd=0.1, slope=0.1)), 1.0, 1.0),
        (wrong_end, two_columns(0.6, 1.0, 1.0, Tolerance(sd=0.1, correlation=0.1)), 10.0, 0.1),
    ],
)
def test_mutants_that_ask_for_too_little_are_caught(mutant: Worst, gaussian: Gaussian, stretch: float, credit: float) -> None:
    check(closed_form, gaussian, stretch, credit)
    with pytest.raises(AssertionError, match="a distribution of the box needs more"):
        check(mutant, gaussian, stretch, credit)


def test_separate_maxima_are_sound_but_looser() -> None:
    """Steepest where s_q is high, least residual where it is low: no distribution has both."""
    gaussian = two_columns(0.6, 1.0, 1.0, Tolerance(sd=0.3, correlation=0.1))
    assert apart(gaussian, 1.0, 1.0) > closed_form(gaussian, 1.0, 1.0) + 0.1
    with pytest.raises(AssertionError, match="no distribution of the box needs so much"):
        check(apart, gaussian, 1.0, 1.0)


@given(rho=st.floats(-1, 1), tolerance=tolerances, stretch=st.floats(1e-3, 1e3), credit=st.floats(0, 1))
def test_separate_maxima_never_ask_for_less(rho: float, tolerance: Tolerance, stretch: float, credit: float) -> None:
    gaussian = two_columns(rho, 1.0, 2.0, tolerance)
    joint = closed_form(gaussian, stretch, credit)
    assert apart(gaussian, stretch, credit) >= joint - 1e-12 * (stretch + credit)


# --------------------------------------------------------------------------------------------------- next to a correlation of 1

NEAR = [(1 - 10**-k, y, x) for k in (12.0, 13.0, 14.0, 14.5, 15.0, 15.3) for y in (0.7, 1.1, 1.3, 1.9) for x in (0.6, 1.1, 1.3)]


def next_to_1() -> Iterator[tuple[Gaussian, Fraction]]:
    """Classes, and what the worst member leaves of y once x is known: in fractions of the stated numbers."""
    for rho, y, x in NEAR:
        for tolerance in (Tolerance(slope=0.0), Tolerance(correlation=0.0)):
            yield two_columns(rho, y, x, tolerance), Fraction(y) ** 2 * (1 - Fraction(rho) ** 2)
        below, wide = rho * 0.9 / (1.05 * 1.1), Tolerance(slope=0.05, sd=0.1)
        low, high = 1 - Fraction(0.1), Fraction(below) * (1 + Fraction(0.05)) * (1 + Fraction(0.1))
        yield two_columns(below, y, x, wide), Fraction(y) ** 2 * (low**2 - high**2)
        stated = {("y", "y"): y * y, ("x", "x"): x * x, ("y", "x"): rho * y * x}
        with suppress(ValueError):  # rounded to more than 1
            law = Gaussian(covariance=stated, tolerance=0)
            yield law, Fraction(y * y) - Fraction(rho * y * x) ** 2 / Fraction(x * x)


def overstated() -> int:
    return sum(Fraction(least_residual(law, "y", "x")) > max(Fraction(0), exact) for law, exact in next_to_1())


def test_next_to_a_correlation_of_1_no_more_is_left_than_is() -> None:
    assert overstated() == 0


def test_a_difference_of_squares_that_is_not_rounded_down_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worst_case, "_left", lambda sd, explained: sd**2 - explained**2)
    assert overstated() > 20


@pytest.mark.parametrize(("near", "y", "x"), [(1e-14, 1.3, 1.1), (10**-14.5, 1.9, 1.1), (1e-15, 1.9, 1.3)])
def test_next_to_a_correlation_of_1_delta_is_as_promised(
    near: float, y: float, x: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The delta of the exact normal laws, to fifty digits; with the difference as floats have it the promise is broken."""

    def times() -> float:
        rho, n = 1 - near, 100_000
        left = (1 - Fraction(rho) ** 2) * Fraction(y) ** 2
        gap, step = math.sqrt(left / n) * 0.25 * x / y, math.sqrt(left) * 1e-3
        made = mechanism.plan(
            Problem(
                queries=(Query("avg", "y"),),
                secrets=(Secret("mean(x)", within=gap),),
                epsilon=1.0,
                delta=1e-6,
                n=n,
                theta=(two_columns(rho, y, x, Tolerance(slope=0.0)),),
                resolution={"y": step, "x": step / 10},
            )
        )
        with mpmath.workdps(50):
            moved = Fraction(rho) * Fraction(y) / Fraction(x) * Fraction(gap)
            squared = moved**2 / (left / n + Fraction(made.columns[0].noise.scale) ** 2)
            mu = mpmath.sqrt(mpmath.mpf(squared.numerator) / squared.denominator)
            return float(1e6 * (mpmath.ncdf(mu / 2 - 1 / mu) - mpmath.e * mpmath.ncdf(-mu / 2 - 1 / mu)))

    with suppress(Refusal):  # where all that is left may be rounding
        assert times() <= 1
    monkeypatch.setattr(worst_case, "_left", lambda sd, explained: sd**2 - explained**2)
    assert times() > 1.09


# ------------------------------------------------------------------------------------------------- three columns and more


def many_columns(seed: int, count: int, tolerance: Tolerance, tightness: float) -> Gaussian:
    """Random moments; a high `tightness` makes the correlation matrix nearly singular."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(count, 2))
    v = loadings @ loadings.T * tightness + np.eye(count) * (1 - tightness)
    names = ["y", "x", "w", "z"][:count]
    sd = np.exp(rng.uniform(-2, 2, size=count))
    r = v / np.sqrt(np.outer(np.diag(v), np.diag(v)))
    pairs = {(a, b): float(r[i, j]) for i, a in enumerate(names) for j, b in enumerate(names) if i < j}
    return Gaussian(sd=dict(zip(names, map(float, sd), strict=True)), correlation=pairs, tolerance=tolerance)


def full_moments(gaussian: Gaussian, query: str, secret: str, found: Extreme) -> Moments:
    """The whole distribution that a witness stands for: its own pair as found, everything else as stated."""
    centre = stated(gaussian)
    q, g = centre.columns.index(query), centre.columns.index(secret)
    sd, r = centre.sd.copy(), centre.correlation.copy()
    sd[q], sd[g] = found.sd_query, found.sd_secret
    if gaussian.tolerance.slope is not None:
        for k, other in enumerate(centre.columns):
            if k != q:
                r[q, k] = r[k, q] = centre.slope(query, other) * sd[k] / sd[q]
    r[q, g] = r[g, q] = math.copysign(found.slope, centre.slope(query, secret)) * sd[g] / sd[q]
    return Moments(centre.columns, sd, r)


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(2, 4),
    tolerance=tolerances,
    tightness=st.floats(0, 0.999, allow_subnormal=False),
    stretch=st.floats(1e-2, 1e2),
    credit=st.floats(0, 1),
)
@settings(max_examples=150)
def test_a_witness_exists(seed: int, count: int, tolerance: Tolerance, tightness: float, stretch: float, credit: float) -> None:
    """It lies in the class, as a whole distribution, and asks for no more than the corner."""
    gaussian = many_columns(seed, count, tolerance, tightness)
    others = [column for column in gaussian.columns if column != "y"]
    for corner in candidates(gaussian, "y", "x"):
        found = witness(gaussian, "y", "x", corner)
        assert inside(gaussian, full_moments(gaussian, "y", "x", found), ["y"], others, slack=1e-9)
        assert found.residual == pytest.approx(
            found.sd_query**2 - (found.slope * found.sd_secret) ** 2, abs=1e-9 * found.sd_query**2
        )
    reached = max(witness(gaussian, "y", "x", c).need(stretch, credit) for c in candidates(gaussian, "y", "x"))
    top = worst(gaussian, "y", "x", stretch, credit).need(stretch, credit)
    assert reached <= top + 1e-9 * abs(top) + 1e-12
    if count == 2:
        assert reached == top


def test_a_witness_short_of_a_corner_that_does_not_exist() -> None:
    """y and w nearly tied, x tied to neither: raising the correlation of y and x alone leaves the semidefinite matrices."""
    gaussian = Gaussian(
        sd={"y": 1.0, "x": 1.0, "w": 1.0},
        correlation={("y", "x"): 0.1, ("y", "w"): 0.99, ("x", "w"): 0.1},
        tolerance={"correlation": 0.5},
    )
    (corner,) = candidates(gaussian, "y", "x")
    found = witness(gaussian, "y", "x", corner)
    assert corner.slope == pytest.approx(0.6)
    assert 0.1 < found.slope < 0.3
    assert not inside(gaussian, full_moments(gaussian, "y", "x", corner), ["y"], ["x", "w"])


@given(
    seed=st.integers(0, 2**32 - 1),
    queries=st.sampled_from([("y",), ("y", "w"), ("y", "w", "z"), ("y", "x")]),
    tolerance=tolerances,
    tightness=st.floats(0, 0.95),
)
@settings(max_examples=100)
def test_least_joint_residual_is_a_lower_bound(
    seed: int, queries: tuple[str, ...], tolerance: Tolerance, tightness: float
) -> None:
    gaussian = many_columns(seed, 4, tolerance, tightness)
    bound = least_joint_residual(gaussian, queries, "x")
    assume(bound > -2)
    problem = Problem(
        queries=tuple(Query("avg", q) for q in queries), secrets=(Secret("mean(x)", within=1.0),), epsilon=1.0, n=2
    )
    others = [gaussian.columns.index(q) for q in queries if q != "x"]
    g = gaussian.columns.index("x")
    for moments in members(problem, gaussian, np.random.default_rng(seed), 30):
        r = moments.correlation
        partial = r[np.ix_(others, others)] - np.outer(r[others, g], r[g, others])
        assert bound <= np.linalg.eigvalsh(partial)[0] + 1e-9


def test_least_joint_residual_without_tolerance_is_exact() -> None:
    gaussian = many_columns(3, 4, Tolerance(correlation=0.0), 0.5)
    r = stated(gaussian).correlation
    others, g = [0, 2, 3], 1
    partial = r[np.ix_(others, others)] - np.outer(r[others, g], r[g, others])
    assert least_joint_residual(gaussian, ("y", "w", "z"), "x") == pytest.approx(
        float(np.linalg.eigvalsh(partial)[0]), abs=1e-12
    )
    assert least_joint_residual(gaussian, ("x",), "x") == math.inf
