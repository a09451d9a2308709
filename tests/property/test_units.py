"""Units do not matter, and a list of assumptions is as careful as its members: relations that hold whatever a plan is made of.

A table in ounces instead of pounds asks for noise that is sixteen times as large, and promises the same. Factors are powers of
two, so that no digit of a float changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.groups import Groups
from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.cases import population_shift, unequal
from attrpriv.cases.gaussian import gaussians, masks, recorded
from attrpriv.methods.base.plan import Plan
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.conformance.test_mechanisms import groups_problem, hierarchy_problem, planned, problem

FACTORS = (2.0**-12, 2.0**9)
ASKED: dict[str, tuple[Problem, str]] = {
    "averages": (problem(), "weight"),
    "averages, exact moments": (problem(tolerance=0), "weight"),
    "averages, far values": (
        problem(tolerance=0, secrets=(Secret("mean(income)", between=(20_000.0, 200_000.0)),)), "weight",
    ),
    "averages, undeclared": (problem(resolution={"income": 1.0}), "weight"),
    "groups": (groups_problem(), "hours"),
    "groups, undeclared": (groups_problem(resolution={}), "hours"),
    "a hierarchy": (hierarchy_problem(), "weight"),
    "a hierarchy, undeclared": (hierarchy_problem(resolution={}), "weight"),
}  # fmt: skip


def _times(told: Mapping[str, Any] | None, column: str, factor: float) -> dict[str, Any]:
    return {name: (value * factor if name == column else value) for name, value in (told or {}).items()}


def in_units(asked: Problem, column: str, factor: float) -> Problem:
    """The same table with a column that is not hidden in other units."""
    theta = []
    for member in asked.theta:
        if isinstance(member, Gaussian):
            made = {"mean": _times(member.mean, column, factor), "sd": _times(member.sd, column, factor)}
        elif isinstance(member, Groups):
            made = {
                part: {name: _times(told, column, factor) for name, told in getattr(member, part).items()}
                for part in ("mean", "sd")
            }
        else:
            assert isinstance(member, Hierarchy)
            made = {part: _times(getattr(member, part), column, factor) for part in ("mean", "between_sd", "within_sd")}
        theta.append(type(member).from_json(member.to_json() | made))
    bounds = {name: tuple(end * factor for end in ends) if name == column else ends for name, ends in asked.bounds.items()}
    spacings = _times(asked.resolution, column, factor)
    return asked.model_copy(update={"theta": tuple(theta), "bounds": bounds, "resolution": spacings})


@pytest.mark.parametrize("label", ASKED)
@pytest.mark.parametrize("name", ["gaussian", "transport", "calibrated_weights"])
def test_a_plan_in_other_units(label: str, name: str) -> None:
    (asked, column), factor = ASKED[label], FACTORS[len(label) % 2]
    one, other = planned(asked, name), planned(in_units(asked, column, factor), name)
    assert (one is None) == (other is None)
    if one is None or other is None:
        return
    for query in asked.queries:
        times = factor if query.column == column else 1.0
        errors, moved = one.error_of(query), other.error_of(query)
        assert (moved.rmse or 0.0) == pytest.approx((errors.rmse or 0.0) * times, rel=1e-5, abs=0)
    evidence: Any = (one.certificate.evidence, other.certificate.evidence)
    for charge in ("grid_lambda", "grid_eta", "lattice_lambda", "clip_delta", "fit_delta", "reserve"):
        if hasattr(evidence[0], charge):
            assert getattr(evidence[1], charge) == pytest.approx(getattr(evidence[0], charge), rel=1e-5, abs=0)
    assert evidence[1].delta(one.epsilon) == pytest.approx(evidence[0].delta(one.epsilon), rel=1e-4, abs=0)


# ------------------------------------------------------------------------------------------------------ recorded values alone


@pytest.mark.parametrize("spacing", [None, 1.0, 0.25])
@pytest.mark.parametrize("factor", FACTORS)
def test_recorded_values_in_other_units(spacing: float | None, factor: float) -> None:
    told = {} if spacing is None else {"hours": spacing, "weight": spacing}
    grouped = groups_problem(resolution=told)
    found = [unequal.recorded(one, unequal.groups_of(one)) for one in (grouped, in_units(grouped, "hours", factor))]
    above = hierarchy_problem(resolution=told)
    theirs = [
        population_shift.recorded(one, population_shift.hierarchies(one), ("weight",))
        for one in (above, in_units(above, "weight", factor))
    ]
    for (one, other), column in ((found, "hours"), (theirs, "weight")):
        assert other.masks[column] == pytest.approx(one.masks[column] * factor, rel=1e-12, abs=0)
        assert other.spacing[column] == pytest.approx(one.spacing[column] * factor, rel=1e-12, abs=0)
        assert other.charge == pytest.approx(one.charge, rel=1e-9, abs=0)
    normal = problem(resolution=told | {"income": 1.0})
    lattices = []
    for asked in (normal, in_units(normal, "weight", factor)):
        scales = masks(asked, gaussians(asked))
        lattices.append((scales, recorded(asked, gaussians(asked), scales)))
    assert lattices[1][0]["weight"] == pytest.approx(lattices[0][0]["weight"] * factor, rel=1e-12, abs=0)
    assert lattices[1][1].spacing["weight"] == pytest.approx(lattices[0][1].spacing["weight"] * factor, rel=1e-12, abs=0)
    assert lattices[1][1].charge == pytest.approx(lattices[0][1].charge, rel=1e-9, abs=0)


# ----------------------------------------------------------------------------------------------------- several assumptions


def wider(member: Any, factor: float) -> Any:
    """The same class with another spread of what is asked for."""
    told = member.to_json()
    if isinstance(member, Gaussian):
        return Gaussian.from_json(told | {"sd": _times(member.sd, "weight", factor)})
    if isinstance(member, Groups):
        return Groups.from_json(told | {"sd": {name: _times(sds, "hours", factor) for name, sds in member.sd.items()}})
    return Hierarchy.from_json(told | {"within_sd": _times(member.within_sd, "weight", factor)})


LISTS: dict[str, tuple[Problem, Callable[[Problem], Any]]] = {
    "groups": (groups_problem(), lambda one: unequal.recorded(one, unequal.groups_of(one))),
    "groups, undeclared": (groups_problem(resolution={}), lambda one: unequal.recorded(one, unequal.groups_of(one))),
    "a hierarchy": (
        hierarchy_problem(), lambda one: population_shift.recorded(one, population_shift.hierarchies(one), ("weight",)),
    ),
    "a hierarchy, undeclared": (
        hierarchy_problem(resolution={}),
        lambda one: population_shift.recorded(one, population_shift.hierarchies(one), ("weight",)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("label", LISTS)
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_values_are_masked_for_every_assumption_of_a_list(label: str, factor: float) -> None:
    """The largest mask of any, and a charge that is enough for each with that mask; whatever their order."""
    asked, found = LISTS[label]
    pair = (asked.theta[0], wider(asked.theta[0], factor))
    alone = [found(asked.model_copy(update={"theta": (one,)})) for one in pair]
    for theta in (pair, pair[::-1]):
        both = found(asked.model_copy(update={"theta": theta}))
        for column, mask in both.masks.items():
            assert mask == max(one.masks[column] for one in alone)
        assert both.charge >= min(one.charge for one in alone) * (1 - 1e-12) or "undeclared" in label
        least = min if "hierarchy" in label else max  # half of the least standard deviation; else what the smaller masks cover
        assert all(both.spacing[column] <= least(one.spacing[column] for one in alone) for column in both.spacing)


TIGHT: dict[str, Any] = {"income": 0.9999, "height": 0.3}


@pytest.mark.parametrize("spacing", [None, 0.2])
def test_values_are_covered_given_every_secret_and_every_member(spacing: float | None) -> None:
    """What two secrets or two members leave open of a row is what the worse of them does: spacing and charge for both."""
    told = {"income": 1.0, "height": 1.0} | ({} if spacing is None else {"weight": spacing})
    pairs = {("weight", name): tie for name, tie in TIGHT.items()} | {("height", "income"): 0.29}
    sds = {"weight": 25.0, "height": 4.0, "income": 30_000.0}
    near, loose = (
        Gaussian(sd=sds, correlation=pairs | {("weight", "income"): tie}, tolerance=0) for tie in (TIGHT["income"], 0.5)
    )
    secrets = Secret("mean(income)", within=1_000.0), Secret("mean(height)", within=0.1)
    scale = {"weight": 0.6 / 10_000}

    def found(theta: tuple[Gaussian, ...], hidden: tuple[Secret, ...]) -> tuple[float, float]:
        asked = problem(theta=theta, secrets=hidden, resolution=told, bounds={})
        made = recorded(asked, gaussians(asked), scale)
        return made.spacing["weight"], made.charge

    worst = found((near,), secrets[:1])
    left = 25 * (1 - TIGHT["income"] ** 2) ** 0.5
    assert worst[0] == pytest.approx(spacing or left, rel=1e-6)
    for theta, hidden in (
        ((near,), secrets),
        ((near,), secrets[::-1]),
        ((near, loose), secrets[:1]),
        ((loose, near), secrets[:1]),
    ):
        one = found(theta, hidden)
        assert one[0] == pytest.approx(worst[0], rel=1e-9)
        assert one[1] == pytest.approx(worst[1], rel=1e-9, abs=0)
    assert found((loose,), secrets)[0] == pytest.approx(spacing or 0.4, rel=1e-6)
    if spacing is not None:
        assert found((loose,), secrets)[1] < worst[1]


@pytest.mark.parametrize("label", ["averages", "groups", "a hierarchy"])
@pytest.mark.parametrize("name", ["gaussian", "transport"])
def test_a_list_needs_as_much_noise_as_its_worst_member(label: str, name: str) -> None:
    asked, _ = ASKED[label]
    pair = (asked.theta[0], wider(asked.theta[0], 2.0))
    alone = [planned(asked.model_copy(update={"theta": (one,)}), name) for one in pair]
    together = [planned(asked.model_copy(update={"theta": theta}), name) for theta in (pair, pair[::-1])]
    for found in together:
        if found is not None:
            assert all(noise(one) <= noise(found) * (1 + 1e-9) for one in alone if one is not None)
            found.verify()
    if None not in together:
        assert noise(together[0]) == pytest.approx(noise(together[1]), rel=1e-9)


def noise(made: Plan | None) -> float:
    assert made is not None
    evidence: Any = made.certificate.evidence
    return float(evidence.scale if hasattr(evidence, "scale") else max(evidence.independent))


def test_a_refusal_does_not_depend_on_the_unit() -> None:
    """Standard deviations of just twice the spacing are enough, whatever both are measured in."""
    for factor in (1.0, *FACTORS):
        for share, taken in ((2.0, True), (2.0 * (1 - 1e-9), False)):
            asked = in_units(groups_problem(tolerance=0, resolution={"hours": 11.0 / share}), "hours", factor)
            if taken:
                unequal.recorded(asked, unequal.groups_of(asked))
            else:
                with pytest.raises(Refusal):
                    unequal.recorded(asked, unequal.groups_of(asked))


@pytest.mark.parametrize("label", ["groups", "a hierarchy"])
def test_one_member_that_is_too_coarse_is_enough_for_a_refusal(label: str) -> None:
    """A standard deviation of less than twice the spacing, in any member, of any place in the list."""
    asked, found = LISTS[label]
    coarse = wider(asked.theta[0], 1 / 16)
    for theta in ((asked.theta[0], coarse), (coarse, asked.theta[0])):
        with pytest.raises(Refusal):
            found(asked.model_copy(update={"theta": theta}))
    assert found(asked.model_copy(update={"theta": (asked.theta[0], wider(asked.theta[0], 0.5))}))


def test_columns_that_determine_one_another_leave_nothing_to_mask_with() -> None:
    """Within a category one column follows from the other: of their lattice nothing is smooth, and that is refused."""
    for tie, taken in ((0.9, True), (1 - 1e-9, False)):
        (told,) = groups_problem(tolerance=0).theta
        assert isinstance(told, Groups)
        near = Groups.from_json(told.to_json() | {"correlation": {"F": {"hours~age": tie}, "M": {"hours~age": 0.1}}})
        asked = groups_problem(theta=(near,), queries=(Query("avg", "hours"), Query("avg", "age")))
        if taken:
            assert unequal.recorded(asked, (near,)).charge < 1
        else:
            with pytest.raises(Refusal):
                unequal.recorded(asked, (near,))
