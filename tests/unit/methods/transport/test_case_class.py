"""What a clamp is made from where there are several secrets, members, units or tolerances: against numpy and random members."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.vector_box import covariance_floor
from attrpriv.methods.transport.case import Told, told
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.refusing import refuses

N = 400
NAMES = ("q", "r", "a", "b", "c")
SD = np.array([2.0, 5.0, 3.0, 0.5, 7.0])
MEAN = np.array([1.0, 2.0, 10.0, -4.0, 30.0])
RHO = np.array(
    [
        [1.0, 0.4, 0.3, -0.25, 0.2],
        [0.4, 1.0, 0.1, 0.35, -0.15],
        [0.3, 0.1, 1.0, 0.2, 0.45],
        [-0.25, 0.35, 0.2, 1.0, -0.3],
        [0.2, -0.15, 0.45, -0.3, 1.0],
    ]
)
V = RHO * np.outer(SD, SD)


def people(tolerance: Any = 0, rho: Any = RHO, sd: Any = SD, mean: Any = MEAN) -> Gaussian:
    return Gaussian(
        mean=dict(zip(NAMES, map(float, mean), strict=True)),
        sd=dict(zip(NAMES, map(float, sd), strict=True)),
        correlation={(NAMES[i], NAMES[j]): float(rho[i][j]) for i in range(5) for j in range(i)},
        tolerance=tolerance,
    )


def made(
    *secrets: Secret, asked: str = "q", theta: tuple[Gaussian, ...] = (people(),), off: float = 0.0, **changes: Any
) -> Told:
    problem = Problem(
        queries=tuple(Query("avg", name) for name in asked),
        secrets=secrets,
        epsilon=1.0,
        delta=1e-6,
        n=N,
        theta=theta,
        **changes,
    )
    return told(problem, theta, dict.fromkeys(NAMES, 0.01), off)


def places(names: str) -> list[int]:
    return [NAMES.index(name) for name in names]


def slopes_on(of: str, given: str, v: Any = V) -> Any:
    """Of the regression of some columns on others."""
    one, other = places(of), places(given)
    return np.linalg.solve(v[np.ix_(other, other)], v[np.ix_(other, one)]).T


def left_of(of: str, given: str, v: Any = V) -> Any:
    one, other = places(of), places(given)
    return v[np.ix_(one, one)] - slopes_on(of, given, v) @ v[np.ix_(other, one)]


A, B = Secret("mean(a)", within=0.7), Secret("sum(b)", between=(-5.0 * N, -3.5 * N))


@pytest.mark.parametrize("off", [0.0, 0.3])
@pytest.mark.parametrize("known", [0.0, 0.2])
def test_two_averages_and_two_statistics(off: float, known: float) -> None:
    """Each secret moves the other statistic; what is left of a row is a share of it where slopes are off or rows are known."""
    found = made(A, B, asked="qr", off=off, known_rows=known)
    assert [dict(one) for one in found.statistics] == [{"a": 1.0}, {"b": 1.0}]
    assert found.slopes == pytest.approx(slopes_on("qr", "ab"), rel=1e-9)
    assert [(check.secret, check.theta) for check in found.checks] == [(A.text, 0), (B.text, 0)]
    on = places("ab")
    shown = found.slopes @ V[np.ix_(on, on)] @ found.slopes.T
    left = (1 - known) * (left_of("qr", "ab") - (2 * off + off**2) * shown) / N
    for check, name, gap in zip(found.checks, "ab", (0.7, 1.5), strict=True):
        assert [read.by for read in check.reads] == pytest.approx(slopes_on("ab", name)[:, 0] * gap, rel=1e-9)
        assert max(read.off for read in check.reads) <= 1e-13
        own = slopes_on("qr", name)[:, 0] * gap
        assert check.own == pytest.approx(own, rel=1e-9)
        assert check.own_off == pytest.approx((off + known) * np.abs(own), rel=1e-6, abs=1e-12)
        assert np.array(check.credited) == pytest.approx(left, rel=1e-6, abs=1e-12)


def test_a_hidden_multiple_moves_what_is_read_by_its_share() -> None:
    """2 a at most .9 apart is a at most .45 apart, and c and q move with a."""
    half = Secret("mean(2 * a)", within=0.9)
    found = made(A, Secret("mean(c)", within=1.0), half)
    check = found.checks[2]
    assert [dict(one) for one in found.statistics] == [{"a": 1.0}, {"c": 1.0}]
    assert [read.by for read in check.reads] == pytest.approx([0.45, slopes_on("c", "a")[0, 0] * 0.45], rel=1e-9)
    assert check.own == pytest.approx(slopes_on("q", "a")[0] * 0.45, rel=1e-9)
    whole = Secret("mean(a + 2 * b)", within=1.0)
    found = made(whole, Secret("mean(3 * a + 6 * b)", within=2.4))
    assert [one.reads[0].by for one in found.checks] == pytest.approx([1.0, 0.8], rel=1e-9)
    assert [one.reads[0].off for one in found.checks] == [0.0, 0.0]


@pytest.mark.parametrize("off", [0.0, 0.3])
def test_one_combination_of_columns(off: float) -> None:
    c = np.array([1.0, -2.0])
    found = made(Secret("mean(a - 2 * b)", within=0.7), off=off)
    on = places("ab")
    spread, shared = c @ V[np.ix_(on, on)] @ c, V[0, on] @ c
    slope = shared / spread
    assert found.slopes == pytest.approx(np.array([[slope]]), rel=1e-9)
    (check,) = found.checks
    left = (V[0, 0] - slope * shared - (2 * off + off**2) * slope**2 * spread) / N
    assert check.credited[0][0] == pytest.approx(left, rel=1e-6)
    assert check.own[0] == pytest.approx(slope * 0.7, rel=1e-9)
    assert check.own_off[0] == pytest.approx(off * abs(slope) * 0.7, rel=1e-6, abs=1e-12)


def test_of_several_members_the_slope_in_the_middle_of_all_is_taken_back() -> None:
    """Neither that of the first member nor the mean of three."""
    rho = [RHO.copy() for _ in range(3)]
    for one, r in zip(rho, (0.3, 0.5, -0.1), strict=True):
        one[0, 2] = one[2, 0] = r
    theta = tuple(people(rho=one) for one in rho)
    found = made(A, theta=theta)
    assert found.slopes[0, 0] == pytest.approx((0.5 - 0.1) / 2 * 2.0 / 3.0, rel=1e-9)
    assert [check.theta for check in found.checks] == [0, 1, 2]
    assert [check.own[0] for check in found.checks] == pytest.approx([r * 2.0 / 3.0 * 0.7 for r in (0.3, 0.5, -0.1)], rel=1e-9)
    left = [(1 - r * r) * 4.0 / N for r in (0.3, 0.5, -0.1)]
    assert [check.credited[0][0] for check in found.checks] == pytest.approx(left, rel=1e-9)


# ------------------------------------------------------------------------------------------------------- hidden jointly


RANGES = {"mean(c)": (28.0, 31.0), "sum(a)": (9.5 * N, 10.5 * N)}


@pytest.mark.parametrize("off", [0.0, 0.3])
@pytest.mark.parametrize(
    ("pairs", "widths"),
    [({"between": RANGES}, (3.0, 1.0)), ({"within": 0.8}, (0.8, 0.8 / N))],
)
def test_statistics_hidden_jointly_move_the_others_as_far_as_they_may(
    pairs: dict[str, Any], widths: tuple[float, float], off: float
) -> None:
    """c and a are hidden jointly, in this order; a and b are read first."""
    joint = Secret(("mean(c)", "sum(a)"), **pairs)
    found = made(A, B, joint, asked="qr", off=off)
    assert [next(iter(one)) for one in found.statistics] == ["a", "b", "c"]
    check = found.checks[2]
    whole = slopes_on("qr", "abc")
    assert found.slopes == pytest.approx(whole, rel=1e-9)
    assert np.array(check.regression) == pytest.approx(whole, rel=1e-9)
    moved = np.abs(slopes_on("abc", "ca")) @ np.array(widths)
    assert [read.off for read in check.reads] == pytest.approx(moved, rel=1e-9)
    assert moved[0] == pytest.approx(widths[1])
    assert check.own_off == pytest.approx(off * np.abs(whole) @ moved, rel=1e-6, abs=1e-10)
    assert all(x > 0 for x in check.own_off)  # solving rounds
    assert check.own == (0.0, 0.0)
    assert all(read.by == 0 for read in check.reads)


def test_joint_moments_are_exact_and_no_statistic_is_named_twice() -> None:
    joint = Secret(("mean(c)", "mean(a)"), within=0.8)
    for tolerance in ({"slope": 0.01}, {"sd": 0.01, "slope": 0.0}):
        with refuses(Refusal, Cause.NUMBERS, "tolerance 0"):
            made(joint, theta=(people(tolerance),))
    for forms in (("mean(a)", "sum(a)"), ("mean(a)", "mean(2 * a)")):
        with refuses(Refusal, Cause.SECRET, "fewer secrets"):
            made(Secret(forms, within=0.8))


def test_columns_that_nearly_determine_one_another_are_refused() -> None:
    """The condition of two columns of correlation r is (1 + r)/(1 - r), and a million is too much."""
    for r, enough in ((1 - 1.9e-6, False), (1 - 2.1e-6, True)):
        rho = np.eye(5)
        rho[2, 3] = rho[3, 2] = r
        if enough:
            made(A, B, theta=(people(rho=rho),))
        else:
            with refuses(Refusal, Cause.SECRET, "fewer secrets"):
                made(A, B, theta=(people(rho=rho),))


# ------------------------------------------------------------------------------------------------------- how far apart


@pytest.mark.parametrize("drift", [0.0, 0.1])
@pytest.mark.parametrize(
    ("cases", "furthest"),
    [
        (("< 8.5", ">= 8.5"), 1.5),
        (("< 11", "[11, 14)"), 4.0),  # of all ends the one that is furthest from the mean, 10
        (("< 3", "[3, 12)", ">= 12"), 7.0),
    ],
)
def test_sets_without_an_end_reach_beyond_their_last_one(cases: tuple[str, ...], furthest: float, drift: float) -> None:
    """Twice as far as that end may lie from the mean, and two hundred standard errors."""
    wanted = 2 * (furthest + drift * 3.0) + 200 * 3.0 / math.sqrt(N)
    theta = (people({"slope": 0, "mean": drift}),)
    (check,) = made(Secret("mean(a)", cases=cases), theta=theta).checks
    assert check.reads[0].by == pytest.approx(wanted, rel=1e-9)
    scaled = tuple(_scaled(case) for case in cases)
    (check,) = made(Secret("sum(a)", cases=scaled), theta=theta).checks
    assert check.reads[0].by == pytest.approx(wanted, rel=1e-9)


def _scaled(case: str) -> str:
    """The same set of sums."""
    if case[0] == "[":
        return "[{}, {})".format(*(float(end) * N for end in case[1:-1].split(",")))
    sign, _, end = case.partition(" ")
    return f"{sign} {float(end) * N}"


def test_sets_without_an_end_need_exact_slopes() -> None:
    half = Secret("mean(a)", cases=("< 8", ">= 8"))
    with refuses(Refusal, Cause.NUMBERS, "tolerance 0"):
        made(half, theta=(people({"slope": 0.01}),))


# --------------------------------------------------------------------------------------------------------- a class of laws


def test_under_a_tolerance_the_complement_of_the_least_covariance_is_credited() -> None:
    """Of a matrix that no covariance of the class is below, given both statistics."""
    member = people({"correlation": 0.02, "sd": 0.01})
    floor = covariance_floor(member, ("q", "r", "a", "b"), -1.0)
    left = (floor[:2, :2] - floor[:2, 2:] @ np.linalg.solve(floor[2:, 2:], floor[2:, :2])) / N
    assert np.linalg.eigvalsh(left)[0] > 0
    for check in made(A, B, asked="qr", theta=(member,)).checks:
        assert np.array(check.credited) == pytest.approx(left, rel=1e-8)


@pytest.mark.parametrize("asked", ["q", "qr"])
@pytest.mark.parametrize("secrets", [(A,), (A, B)])
@pytest.mark.parametrize("tolerance", [{"correlation": 0.04, "sd": 0.05}, {"slope": 0.15, "sd": 0.03}])
def test_every_member_of_a_class_moves_as_is_stated_and_keeps_what_is_credited(
    asked: str, secrets: tuple[Secret, ...], tolerance: dict[str, float]
) -> None:
    """Random members, at the ends of what they may be."""
    found = made(*secrets, asked=asked, theta=(people(tolerance),))
    given = "ab"[: len(secrets)]
    rng = np.random.default_rng(5)
    nearest = np.inf
    for _ in range(40):
        sd = SD * (1 + tolerance["sd"] * rng.choice([-1, 1], 5))
        rho = RHO.copy()
        for i in range(5):
            for j in range(i):
                side = rng.choice([-1, 1])
                if "slope" in tolerance:  # of both columns on each other, and sds move too: this is well inside
                    rho[i, j] *= 1 + side * (tolerance["slope"] - 2.5 * tolerance["sd"])
                else:
                    rho[i, j] += side * tolerance["correlation"]
                rho[j, i] = rho[i, j]
        v = rho * np.outer(sd, sd)
        assert np.linalg.eigvalsh(v)[0] > 0
        for check, name, gap in zip(found.checks, given, (0.7, 1.5), strict=False):
            for read, one in zip(check.reads, given, strict=True):
                assert abs(slopes_on(one, name, v)[0, 0] * gap - read.by) <= read.off + 1e-12
            own = slopes_on(asked, name, v)[:, 0] * gap
            assert (np.abs(own - np.array(check.own)) <= np.array(check.own_off) + 1e-12).all()
            spare = left_of(asked, given, v) / N - np.array(check.credited)
            unit = np.outer(sd[places(asked)], sd[places(asked)]) / N
            nearest = min(nearest, float(np.linalg.eigvalsh(spare / unit)[0]))
    assert nearest >= -1e-12
    assert nearest < 0.7  # and something is credited
