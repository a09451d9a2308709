"""Which noise, distance or coupling a plan for stated laws takes, and when it may say that no less would do."""

from __future__ import annotations

from typing import Any

import pytest

from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.choice.choose import plan
from attrpriv.numerics.calibration.direct import shift_scale
from attrpriv.numerics.calibration.stated_laws import least_stated_scale, stated_distance
from attrpriv.problem.secret import Secret
from tests.unit.methods.stated_laws.test_plan import COUNT, GIVEN, TABLE_1, assumed, problem

OTHER = {"0": [0.3, 0.3, 0.3, 0.1, 0.0], "1": [0.0, 0.1, 0.3, 0.3, 0.3]}
MILD = {"0": [0.2, 0.2, 0.2, 0.2, 0.2], "1": [0.15, 0.2, 0.3, 0.2, 0.15]}
BOXES = {name: [(max(0.0, p - 0.02), p + 0.02) for p in law] for name, law in GIVEN.items()}


def least(given: Any, noise: Any, delta: float) -> float:
    (case,) = plan(problem(assumed(given=given)), "laplace").certificate.evidence.checks  # type: ignore[attr-defined]
    return least_stated_scale(case.laws, noise, 1.0, delta)


@pytest.mark.parametrize(("name", "delta"), [("laplace", 0.0), ("laplace", 0.01), ("gaussian", 0.01)])
def test_noise_is_the_least_for_the_law_that_needs_most(name: str, delta: float) -> None:
    need = {k: least(given, name, delta) for k, given in enumerate((GIVEN, MILD, OTHER))}
    assert len(set(need.values())) == 3
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        theta = [assumed(given=(GIVEN, MILD, OTHER)[k]) for k in order]
        assert plan(problem(*theta, delta=delta), name).noise.scale == max(need.values())


def test_single_persons_may_need_more_noise_than_the_laws() -> None:
    for epsilon in (0.5, 0.01):
        assert plan(problem(assumed(given=MILD), individuals=epsilon), "laplace").noise.scale == pytest.approx(1 / epsilon)
        moved = plan(problem(assumed(given=MILD), individuals=epsilon), "wasserstein").noise.scale
        assert moved == pytest.approx(max(1 / epsilon, stated_distance(assumed_laws(MILD))))
    strong = plan(problem(individuals=1.0), "wasserstein")
    assert strong.noise.scale == pytest.approx(2.0)


def assumed_laws(given: Any) -> Any:
    (case,) = plan(problem(assumed(given=given)), "laplace").certificate.evidence.checks  # type: ignore[attr-defined]
    return case.laws


def test_noise_is_called_exact_where_no_less_would_do() -> None:
    """Of numbers always; of intervals where the loss at a thousandth less is too large, or where there is no noise."""
    wide = assumed(given=BOXES)
    for theta, name, changes, exact in (
        (assumed(), "laplace", {}, True),
        (assumed(), "gaussian", {"delta": 1e-3}, True),
        (wide, "laplace", {}, True),
        (wide, "laplace", {"delta": 1e-3}, False),
        (wide, "gaussian", {"delta": 1e-3}, False),
        (wide, "laplace", {"individuals": 0.1}, False),
        (assumed(given={"0": [(0.3, 0.4), 0.65, 0, 0, 0], "1": [(0.3, 0.4), 0.65, 0, 0, 0]}), "laplace", {}, True),
    ):
        made = plan(problem(theta, **changes), name)
        assert made.certificate.exact is exact
        assert made.noise.scale > 0 or made.noise.kind == "none"


def test_one_law_that_needs_the_noise_is_enough_to_call_it_exact() -> None:
    mild = {name: [(p - 0.01, p + 0.01) for p in law] for name, law in MILD.items()}
    for theta in ((assumed(given=BOXES), assumed(given=mild)), (assumed(given=mild), assumed(given=BOXES))):
        assert plan(problem(*theta), "laplace").certificate.exact


def test_the_distance_is_that_of_the_laws_that_are_furthest_apart() -> None:
    for theta in ((assumed(), assumed(given=MILD)), (assumed(given=MILD), assumed())):
        for epsilon in (1.0, 0.25):
            made = plan(problem(*theta, epsilon=epsilon), "wasserstein")
            assert made.certificate.evidence.distance == 2  # type: ignore[attr-defined]
            assert made.noise.scale == pytest.approx(2 / epsilon)


def test_mass_may_be_left_aside_where_that_errs_less() -> None:
    """With half of delta and Gaussian noise, or with all of it and Laplace noise: what errs least of the three."""
    laws, delta = assumed_laws(GIVEN), 0.21
    found = plan(problem(delta=delta), "wasserstein")
    evidence: Any = found.certificate.evidence
    assert (stated_distance(laws), stated_distance(laws, delta)) == (2, 1)
    assert (evidence.distance, evidence.noise) == (1, "laplace")
    assert evidence.ignored == pytest.approx(delta, rel=1e-6)
    assert evidence.ignored <= delta
    small: Any = plan(problem(delta=0.1, epsilon=0.1), "wasserstein").certificate.evidence
    scale = shift_scale(stated_distance(laws, 0.05), 0.1, 0.05, 1e9)
    assert scale is not None
    assert small.noise == "gaussian"
    assert small.ignored == pytest.approx(0.05, rel=1e-6)
    assert small.scale == pytest.approx(scale, rel=1e-3)
    assert found.error.rmse is not None
    for delta_ in (0.0, 1e-9):
        plain: Any = plan(problem(delta=delta_), "wasserstein").certificate.evidence
        assert (plain.distance, plain.ignored, plain.noise, plain.scale) == (2, 0.0, "laplace", pytest.approx(2.0))
    boxes: Any = plan(problem(assumed(given=BOXES), delta=0.4), "wasserstein").certificate.evidence
    assert boxes.ignored == 0.0


@pytest.mark.parametrize("low", [0, 1])
def test_a_coupling_knows_which_count_is_the_first(low: int) -> None:
    counts = (Secret("count(x2 = 1)", between=(low, 3)),)
    for name in ("optimal", "transport"):
        made: Any = plan(problem(assumed(given=TABLE_1), secrets=counts), name).certificate.evidence
        assert (made.kind, made.low) == ("stated_coupling", low)


def test_a_kernel_is_for_what_a_coupling_is_not() -> None:
    near = (Secret("count(x2 = 1)", between=(0, 4), within=3),)
    for given, secrets, kind in (
        (TABLE_1, COUNT, "stated_coupling"),
        (TABLE_1, near, "stated_kernel"),
        (GIVEN, None, "stated_kernel"),
    ):
        asked = problem(assumed(given=given), **({} if secrets is None else {"secrets": secrets}))
        assert plan(asked, "optimal").certificate.evidence.kind == kind


def test_calibrations_are_exact_and_gaussian_noise_needs_delta() -> None:
    with pytest.raises((RefusedError, UsageError), match="classical is for means"):
        plan(problem(delta=1e-3, calibration="classical"), "gaussian")
    with pytest.raises((RefusedError, UsageError), match="delta"):
        plan(problem(), "gaussian")
