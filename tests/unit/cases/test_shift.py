"""How secrets show in averages, by regression: shifts and what is left of a row, for exact moments and members of a class."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.cases.gaussian import gaussians
from attrpriv.cases.shift import MOST_CORNERS, ShiftCase, apart, design, joint_share, seen, seen_in, semidefinite_or_nothing
from attrpriv.cases.subset import Rows
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.sql import parse_queries
from tests.conformance.test_mechanisms import problem

NAMES = ("weight", "height", "income", "age")
SDS = np.array([25.0, 4.0, 30_000.0, 10.0])
CORRELATION = np.array([[1.0, 0.5, 0.3, -0.2], [0.5, 1.0, 0.2, 0.1], [0.3, 0.2, 1.0, 0.4], [-0.2, 0.1, 0.4, 1.0]])
V = CORRELATION * np.outer(SDS, SDS)
N = 10_000


def law(**tolerance: float) -> Gaussian:
    pairs = {(NAMES[i], NAMES[j]): float(CORRELATION[i, j]) for i, j in itertools.combinations(range(4), 2)}
    return Gaussian(
        mean=dict(zip(NAMES, (150.0, 67.0, 60_000.0, 40.0), strict=True)),
        sd=dict(zip(NAMES, SDS.tolist(), strict=True)),
        correlation=pairs,
        tolerance=tolerance or 0,
    )


def asked(text: str, *secrets: Secret, theta: Gaussian | None = None, **changes: Any) -> Problem:
    return problem(queries=parse_queries(text), secrets=secrets, theta=(theta or law(),), bounds={}, n=N, **changes)


def row(*columns: str, **weights: float) -> np.ndarray:
    return np.array([weights.get(name, 1.0 if name in columns else 0.0) for name in NAMES])


INCOME = Secret("mean(income)", within=1_000.0)
AVERAGES = {
    "avg(weight)": [row("weight")],
    "avg(weight), avg(height)": [row("weight"), row("height")],
    "avg(weight), avg(height), avg(age)": [row("weight"), row("height"), row("age")],
    "avg(2 * weight + height)": [row(weight=2.0, height=1.0)],
    "avg(weight - height), avg(age)": [row(weight=1.0, height=-1.0), row("age")],
}


@pytest.mark.parametrize("text", AVERAGES)
@pytest.mark.parametrize("off", [0.0, 0.1])
@pytest.mark.parametrize("known", [0.0, 0.2])
def test_one_secret_by_regression(text: str, off: float, known: float) -> None:
    """A unit of the secret moves an average by its slope; what is left of a row is what the regression leaves."""
    problem_, forms, hidden = asked(text, INCOME, known_rows=known), np.array(AVERAGES[text]), row("income")
    slope = forms @ V @ hidden / (hidden @ V @ hidden)
    explained = np.outer(slope, slope) * (hidden @ V @ hidden)
    left = forms @ V @ forms.T - explained * (1 + off) ** 2
    cases = seen(problem_, gaussians(problem_), off)
    everywhere = seen_in(problem_, Rows.of(problem_), gaussians(problem_), off)
    for case, over in zip(cases, everywhere, strict=True):
        assert (case.secret, case.theta, case.signless) == ("mean(income)", 0, False)
        for times in case.shifts[:, 0] / (slope * 1_000):  # a corner of the slopes
            assert min(abs(abs(times) - 1 - off), abs(abs(times) - 1 + off)) < 1e-9
        assert case.residual == pytest.approx(left, rel=1e-7, abs=1e-7)
        assert over.shifts == pytest.approx(case.shifts)
        assert over.residual == pytest.approx(case.residual * (1 - known) / N, rel=1e-12)
        check = over.check()
        assert (check.secret, check.theta) == ("mean(income)", 0)
        assert np.array(check.shifts) == pytest.approx(over.shifts)
        assert np.array(check.credited) == pytest.approx(over.residual)
    steepest = [np.abs(case.shifts[:, 0]) for case in cases]
    assert any(found == pytest.approx(np.abs(slope) * 1_000 * (1 + off), rel=1e-9) for found in steepest)


def test_a_sum_and_a_combination_are_in_their_own_units() -> None:
    for secret, hidden, gap in (
        (Secret("sum(income)", within=1e7), row("income"), 1e7 / N),
        (Secret("mean(income + 100 * age)", within=500.0), row(income=1.0, age=100.0), 500.0),
    ):
        problem_, forms = asked("avg(weight), avg(height)", secret), np.array([row("weight"), row("height")])
        slope = forms @ V @ hidden / (hidden @ V @ hidden)
        case = seen(problem_, gaussians(problem_))[0]
        assert np.abs(case.shifts[:, 0]) == pytest.approx(np.abs(slope) * gap, rel=1e-9)
        assert case.residual == pytest.approx(forms @ V @ forms.T - np.outer(slope, slope) * (hidden @ V @ hidden), rel=1e-7)


def test_a_hidden_column_that_is_asked_for_is_moved_by_itself() -> None:
    """By exactly the gap, however far slopes may be off; and nothing is left of it."""
    problem_ = asked("avg(weight), avg(income)", INCOME, theta=law(slope=0.1, sd=0.02))
    for off in (0.0, 0.1):
        cases = seen(problem_, gaussians(problem_), off)
        assert {abs(float(case.shifts[1, 0])) for case in cases} == {1_000.0}
        steep = 0.3 * 25 / 30_000 * 1_000
        assert max(abs(float(case.shifts[0, 0])) for case in cases) == pytest.approx(steep * (1.1 + 1.1 * off), rel=1e-9)
        assert all(abs(case.residual[1, 1]) < 1e-6 for case in cases)
    alone = asked("avg(income)", INCOME, theta=law(slope=0.1, sd=0.02))
    (case,) = seen(alone, gaussians(alone), 0.1)
    assert case.shifts.tolist() == [[1_000.0]]
    assert case.residual[0, 0] <= 1e-6


def furthest(cases: list[ShiftCase], noise: np.ndarray) -> float:
    """The largest distance of two outputs, in standard deviations, over all cases."""
    spans = [case.shifts.T @ np.linalg.solve(case.residual + noise, case.shifts) for case in cases]
    return math.sqrt(max(float(np.linalg.eigvalsh(span)[-1]) for span in spans))


@pytest.mark.parametrize("text", ["avg(weight)", "avg(weight), avg(height)", "avg(weight - height), avg(age)"])
@pytest.mark.parametrize("tolerance", [{"slope": 0.1}, {"slope": 0.1, "sd": 0.03}, {"correlation": 0.02, "sd": 0.02}])
def test_no_member_of_a_class_shows_more(text: str, tolerance: dict[str, float]) -> None:
    """Random members, and corners: each is as hard to tell apart as the cases say, whatever the noise is; and the cases are
    not much worse than the worst of them."""
    problem_, forms = asked(text, INCOME, theta=law(**tolerance)), np.array(AVERAGES[text])
    cases = seen(problem_, gaussians(problem_))
    rng = np.random.default_rng(11)
    size, worst, sides = len(forms), 0.0, 0.0
    turned = rng.normal(size=(size, size))
    noise = turned @ turned.T + np.eye(size)
    for _ in range(300):
        sds = SDS * (1 + tolerance.get("sd", 0.0) * rng.choice([-1, 1, 0], 4))
        moved = CORRELATION + np.triu(tolerance.get("correlation", 0.0) * rng.choice([-1, 1, 0], (4, 4)), 1)
        moved = np.triu(moved, 1) + np.triu(moved, 1).T + np.eye(4)
        cov = moved * np.outer(sds, sds)
        if "slope" in tolerance:
            slopes = V[:, 2] / V[2, 2] * (1 + tolerance["slope"] * rng.choice([-1, 1, 0], 4))
            slopes[2] = 1.0
            cov[:, 2] = cov[2, :] = slopes * sds[2] ** 2
        if np.linalg.eigvalsh(cov)[0] <= 0:
            continue
        slope = forms @ cov[:, 2] / cov[2, 2]
        left = forms @ cov @ forms.T - np.outer(slope, slope) * cov[2, 2]
        member = ShiftCase("member", 0, slope[:, None] * 1_000, left)
        worst = max(worst, furthest([member], noise))
        sides = max(sides, float(np.abs(slope).max()) * 1_000)
        assert furthest([member], noise) <= furthest(cases, noise) * (1 + 1e-9)
    assert furthest(cases, noise) <= 1.5 * worst or not any(case.residual.any() for case in cases)
    assert max(float(np.abs(case.shifts).max()) for case in cases) == pytest.approx(sides, rel=0.1)


def test_so_many_corners_that_one_case_stands_for_all() -> None:
    """Signs are left open then, and nothing is credited; just before that there is a case for each."""
    for count, many in ((8, False), (9, True)):
        names = [f"c{k}" for k in range(count)]
        pairs = {(name, "income"): 0.2 for name in names} | dict.fromkeys(itertools.combinations(names, 2), 0.04)
        wide = Gaussian(
            sd={**dict.fromkeys(names, 1.0), "income": 30_000.0}, correlation=pairs, tolerance={"slope": 0.1, "sd": 0.0}
        )
        problem_ = asked(", ".join(f"avg({name})" for name in names), INCOME, theta=wide, resolution={})
        cases = seen(problem_, (wide,))
        steep = 0.2 / 30_000 * 1.1 * 1_000
        assert (len(cases) == 1) is many
        assert len(cases) <= MOST_CORNERS
        assert [case.signless for case in cases] == [many] * len(cases)
        assert max(float(np.abs(case.shifts).max()) for case in cases) == pytest.approx(steep, rel=1e-9)
        assert all((case.residual == 0).all() for case in cases) or not many
        if not many:
            found = {tuple(np.round(case.shifts[:, 0] / steep, 6)) for case in cases}
            assert all(tuple(-x for x in corner) not in found for corner in found)
            assert len(found) == 2**count


def test_corners_on_both_sides_of_zero_are_taken_once() -> None:
    """A slope of which the sign is open: of two opposite corners, one."""
    free = Gaussian(
        sd={"weight": 25.0, "height": 4.0, "income": 30_000.0},
        correlation={("weight", "income"): 0.0, ("height", "income"): 0.0, ("weight", "height"): 0.5},
        tolerance={"correlation": 0.1, "sd": 0.0},
    )
    problem_ = asked("avg(weight), avg(height)", INCOME, theta=free)
    cases = seen(problem_, (free,))
    assert len(cases) == 2
    assert sorted(np.sign(case.shifts).prod() for case in cases) == [-1, 1]


def test_what_is_hidden_jointly() -> None:
    """The regression on both, and every step between two values; what they explain grows with how far slopes are off."""
    joint = Secret(("mean(income)", "mean(age)"), between={"mean(income)": (59_000.0, 61_000.0), "mean(age)": (38.0, 42.0)})
    problem_, forms = asked("avg(weight), avg(height)", joint), np.array([row("weight"), row("height")])
    hidden = np.array([row("income"), row("age")])
    gamma = forms @ V @ hidden.T @ np.linalg.inv(hidden @ V @ hidden.T)
    explained = gamma @ hidden @ V @ forms.T
    steps = joint.joint_steps(N)
    for off in (0.0, 0.05):
        cases = seen(problem_, gaussians(problem_), off)
        assert len(cases) == len(steps)
        for case, step in zip(cases, steps, strict=True):
            assert case.shifts == pytest.approx(gamma @ np.array(step) * (1 + off), rel=1e-7)
            assert np.abs(case.shifts).max() >= np.abs(gamma @ np.array(step) * (1 + off)).max()
            left = forms @ V @ forms.T - explained * (1 + off) ** 2
            assert case.residual == pytest.approx(left, rel=1e-6)
            assert np.linalg.eigvalsh(left - case.residual)[0] >= 0
    residual = forms @ V @ forms.T - explained
    unit = np.outer(SDS[:2], SDS[:2])
    found = joint_share(gaussians(problem_)[0], ("weight", "height"), joint)
    assert found == pytest.approx(float(np.linalg.eigvalsh(residual / unit)[0]), rel=1e-9)


@pytest.mark.parametrize("tolerance", [{"slope": 0.01}, {"correlation": 0.01}, {"slope": 0.0, "sd": 0.01}])
def test_hidden_jointly_under_a_tolerance_is_refused(tolerance: dict[str, float]) -> None:
    joint = Secret(("mean(income)", "mean(age)"), within=1.0)
    problem_ = asked("avg(weight), avg(height)", joint, theta=law(**tolerance))
    with pytest.raises(Refusal, match="exactly stated"):
        seen(problem_, gaussians(problem_))


@pytest.mark.parametrize(("tie", "taken"), [(1 - 1e-5, True), (1 - 1e-7, False)])
def test_statistics_that_determine_one_another_are_refused(tie: float, taken: bool) -> None:
    near = Gaussian(
        sd={"weight": 25.0, "income": 30_000.0, "age": 10.0},
        correlation={("weight", "income"): 0.3, ("weight", "age"): 0.3, ("income", "age"): tie},
        tolerance=0,
    )
    joint = Secret(("mean(income)", "mean(age)"), within=1.0)
    problem_ = asked("avg(weight)", joint, theta=near)
    if taken:
        assert seen(problem_, (near,))
    else:
        with pytest.raises(Refusal, match="determine one another"):
            seen(problem_, (near,))


def test_what_is_no_covariance_is_nothing() -> None:
    for matrix in ([[1.0, 0.5], [0.5, 1.0]], [[1.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]], [[4e8, 1.0], [1.0, 1e-8]]):
        assert semidefinite_or_nothing(np.array(matrix)).tolist() == matrix
    for matrix in ([[1.0, 1.1], [1.1, 1.0]], [[-1e-9, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, -1.0]], [[4e8, 3.0], [3.0, 1e-8]]):
        assert (semidefinite_or_nothing(np.array(matrix)) == 0).all()


def test_noise_that_is_laid_out_hides_every_case() -> None:
    """Whatever was asked for: within the distance, never below a mask, and with nothing to hide the masks alone."""
    rng = np.random.default_rng(5)
    for size in (1, 2, 3):
        for _ in range(10):
            cases = []
            for _ in range(3):
                root = rng.normal(size=(size, size))
                cases.append(ShiftCase("s", 0, rng.normal(size=(size, 1)) * 3, 0.1 * root @ root.T))
            masks, sds, mu = [0.2] * size, [1.0] * size, 0.7
            for made in (design(cases, masks, sds, mu), apart(cases, masks, mu)):
                factor = np.array(made.factor).reshape(size, -1) if made.factor else np.zeros((size, 1))
                noise = np.diag(np.array(made.independent) ** 2) + factor @ factor.T
                assert furthest(cases, noise) <= mu * (1 + 1e-9)
                assert all(own >= 0.2 for own in made.independent)
            signless = [ShiftCase("s", 0, case.shifts, case.residual, signless=True) for case in cases]
            assert not design(signless, masks, sds, mu).factor
    none = design([], [0.2, 0.3], [1.0, 1.0], 0.7)
    assert none.independent == pytest.approx((0.2, 0.3))
    assert not none.factor
    assert design([], [], [], 0.7).independent == ()


@pytest.mark.parametrize(("shift", "needed"), [(0.0, 0.0), (0.07, 0.0), (0.3, 0.3), (1.0, math.sqrt(2.0))])
def test_one_average_needs_its_mask_or_what_the_distance_leaves(shift: float, needed: float) -> None:
    """(shift / 0.7)^2 less what it varies by itself, where that is more than the mask, which the recorded digits rest on."""
    left = (shift / 0.7) ** 2 - needed**2 if needed else 1.0
    cases = [ShiftCase("s", 0, np.array([[shift]]), np.array([[left]]))]
    assert design(cases, [0.2], [3.0], 0.7).independent == pytest.approx((max(0.2, needed),), rel=1e-6)
    assert design([], [0.2], [3.0], 0.7).independent == pytest.approx((0.2,), rel=1e-6)


def test_masks_of_several_averages_stand_in_any_unit() -> None:
    """Common noise hides the direction in which they move; each keeps the mask that its own digits need."""
    masks, sds = [0.2, 0.003], [40.0, 0.25]
    cases = [ShiftCase("s", 0, np.array([[60.0], [0.3]]), np.diag([1e-3, 1e-7]))]
    made = design(cases, masks, sds, 0.7)
    assert made.factor
    assert all(mask <= own <= 1.01 * mask for own, mask in zip(made.independent, masks, strict=True))


def test_a_set_without_an_end_needs_the_mean() -> None:
    cases = Secret("mean(income)", cases=["< 60000", ">= 60000"])
    whole = asked("avg(weight)", cases)
    assert seen(whole, gaussians(whole)) == []
    lacking = law().model_copy(update={"mean": {}})
    with pytest.raises(Refusal, match="mean in the assumption"):
        seen(asked("avg(weight)", cases, theta=lacking), (lacking,))
    assert seen(asked("count(*)", INCOME), (law(),)) == []
    assert seen_in(asked("count(*)", INCOME), Rows((), ()), (law(),)) == []
