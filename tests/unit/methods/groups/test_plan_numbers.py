"""Plans that hide a share: what they pay for, when a smaller noise would not do, and who is protected by them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import pytest

from attrpriv.cases.unequal import checks, group_budget, groups_of, masked
from attrpriv.errors import Cause, RefusedError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.group_transport import plan as group_transport
from attrpriv.methods.group_transport.clamp import GroupClamp
from attrpriv.methods.groups import plan as groups_plan
from attrpriv.methods.groups.proof import GroupEvidence
from attrpriv.numerics.calibration.groups import equalise
from attrpriv.numerics.laws.groups import VectorCase
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from tests.refusing import refuses
from tests.unit.methods.group_transport.test_plan import PLAIN, SEVERAL
from tests.unit.methods.groups.test_plan import SHARE, UNLIKE, groups, problem
from tests.unit.methods.groups.test_proof import CASE, check

BOTH = (Query("avg", "hours"), Query("avg", "age"))
OTHER = Secret("count(gender = 'F')", between=(300.0, 500.0))
POPULATION = Parameter("share(gender = 'F')", between=(0.25, 0.4))


def test_several_averages_hide_one_secret_under_one_assumption() -> None:
    """With two of them the second one would not be looked at."""
    for changes in ({"secrets": (SHARE, OTHER)}, {"theta": (groups(), groups(prior={"F": 0.4, "M": 0.6}))}):
        with pytest.raises(Refusal) as caught:
            groups_plan.plan(problem(queries=BOTH, **changes))
        assert caught.value.cause is Cause.TOGETHER
        with refuses(Refusal, Cause.SECRET, "mechanism gaussian"):
            group_transport.plan(problem(**changes))
    assert len(groups_plan.plan(problem(secrets=(SHARE, OTHER))).certificate.evidence.checks) == 2  # type: ignore[attr-defined]


def test_of_several_secrets_the_widest_asks_for_the_noise() -> None:
    """In either order; and the mask is the least of all."""
    scales = [groups_plan.plan(problem(secrets=secrets)).noise.scale for secrets in ((SHARE, OTHER), (OTHER, SHARE))]
    assert scales[0] == pytest.approx(scales[1], rel=1e-6)
    near = Secret("count(gender = 'F')", between=(300.0, 302.0))
    made = groups_plan.plan(problem(secrets=(near,), epsilon=5.0))
    assert made.noise.scale >= made.columns[0].parameters["mask"]


def test_only_one_secret_is_equalised_for() -> None:
    """And only where nothing else depends on the counts: no tolerance of sds, no single rows, no row that is known."""
    direct: list[dict[str, Any]] = [
        {"secrets": (SHARE, OTHER)},
        {"theta": (groups(**UNLIKE, tolerance={"mean": 0.0, "sd": 0.02}),)},
        {"individuals": 1.0, "bounds": {"hours": (-300.0, 400.0)}},
        {"known_rows": 0.02, "secrets": (POPULATION,)},
    ]
    for changes in direct:
        made = groups_plan.plan(problem(**({"theta": (groups(**UNLIKE),)} | changes)))
        assert made.certificate.evidence.form == "direct", changes  # type: ignore[attr-defined]
        assert made.noise.scale == made.columns[0].independent
    made = groups_plan.plan(problem(groups(**UNLIKE)))
    assert made.certificate.evidence.form == "equalised"  # type: ignore[attr-defined]
    assert made.noise.individuals == 0


def test_exact_is_said_of_exact_laws_or_of_the_mask() -> None:
    """A share of the population, a tolerance and several averages have bounds in the place of laws."""
    exact: list[tuple[dict[str, Any], bool]] = [
        ({}, True),
        ({"secrets": (POPULATION,)}, False),
        ({"theta": (groups(tolerance={"mean": 0.02}),)}, False),
        ({"queries": BOTH}, False),
        ({"secrets": (SHARE, POPULATION)}, False),
    ]
    for changes, said in exact:
        assert groups_plan.plan(problem(**changes)).certificate.exact is said, changes
    lattice = masked(problem(), groups_of(problem()))
    mask = lattice.masks["hours"]
    shares = (0.25, 0.4)
    for scale, said in ((mask, True), (mask * (1 + 1e-9), True), (mask * 1.01, False)):
        evidence = cast(GroupEvidence, groups_plan.plan(problem()).certificate.evidence).model_copy(update={"scale": scale})
        assert groups_plan._is_exact((check(CASE, shares=shares),), evidence, lattice) is said
    assert groups_plan._is_exact((check(CASE), check(CASE)), evidence, lattice)
    assert not groups_plan._is_exact((check(CASE), check(CASE, shares=shares)), evidence, lattice)


class Told(Exception):
    """How many numbers of common noise a budget was asked to pay for."""


def test_each_number_of_common_noise_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each average, and those of the parts that equalise."""

    def counted(*told: Any) -> Any:
        raise Told(*told[4:])

    asked = problem(groups(prior={"F": 0.3, "M": 0.7}), queries=BOTH)
    case = checks(asked, groups_of(asked))[0].case
    assert isinstance(case, VectorCase)
    common = sum(len(part.factor[0]) for part in equalise(case).parts) + 2
    assert common > 3
    monkeypatch.setattr("attrpriv.methods.group_transport.plan._plain", lambda problem: None)
    for module in (groups_plan, group_transport):
        monkeypatch.setattr(f"{module.__name__}.group_budget", counted)
        with pytest.raises(Told) as caught:
            module.plan(asked)
        assert caught.value.args == (common,)


def test_the_tail_of_a_population_is_taken_from_delta() -> None:
    """What is left for noise, and nothing where the tail takes all of it."""
    asked = problem(secrets=(POPULATION,))
    theta = groups_of(asked)
    (found,) = checks(asked, theta)
    left = group_budget(asked, theta, masked(asked, theta), {})
    assert 0 < found.tail < left.delta
    assert group_transport._left(left, found) == pytest.approx(left.delta - found.tail, rel=1e-6)
    narrow = found.model_copy(update={"shares": (0.05, 0.6)})
    assert narrow.tail > left.delta
    for refused in (
        lambda: group_transport._left(left, narrow),
        lambda: groups_plan._noise(asked, (narrow,), left, 0.1, "direct"),
    ):
        with pytest.raises((RefusedError, Refusal), match="delta"):
            refused()
    for form in ("direct", "equalised"):
        made = groups_plan._noise(asked, (found,), left, 1e-9, form)
        inner = left.epsilon
        reached = made._reached(found, inner) - found.tail
        assert 0.97 * (left.delta - found.tail) <= reached <= left.delta - found.tail


def test_the_mask_is_the_least_noise() -> None:
    asked = problem(secrets=(POPULATION,))
    (found,) = checks(asked, groups_of(asked))
    left = group_budget(asked, groups_of(asked), masked(asked, groups_of(asked)), {})
    assert groups_plan._noise(asked, (found,), left, 50.0, "direct").scale == pytest.approx(50.0, rel=1e-6)


# ---------------------------------------------------------------------------------------------------------------- transport


def test_the_gap_of_a_moved_average_is_its_noise_beyond_the_mask() -> None:
    for made in (PLAIN, SEVERAL):
        evidence: Any = made.certificate.evidence
        factor = evidence.common_noise()
        fixed = [math.hypot(own, *(factor[k] if factor else ())) for k, own in enumerate(evidence.own_noise)]
        beyond = max(own - part.parameters["mask"] for own, part in zip(fixed, made.columns, strict=True))
        assert made.certificate.gap == pytest.approx(beyond, rel=1e-6, abs=1e-9)
        assert made.certificate.exact is (made.certificate.gap == 0)


def test_what_64_bits_do_not_hold_is_not_drawn() -> None:
    """The noise that brings 250 rows of sd 1 among 750 of sd 30 to the spread of other tables, on the grid of the least."""

    def drawable(form: Any, noise_variance: float) -> bool:
        clamp = cast(GroupClamp, type("Clamp", (), {"form": form, "noise_variance": noise_variance}))
        return group_transport._drawable(CASE, clamp)

    assert drawable("direct", 1e-60)
    assert drawable("equalised", 1.0)
    assert not drawable("equalised", 1e-60)


def test_known_rows_do_not_hide_a_share_of_the_population_where_counts_are_read() -> None:
    assumed = groups(prior={"F": 0.3, "M": 0.7})
    with refuses(Refusal, Cause.PERSONS, "known_rows 0"):
        group_transport.plan(problem(assumed, secrets=(POPULATION,), known_rows=0.01))
    assert group_transport._single(problem(assumed, known_rows=0.01)) == assumed
    assert group_transport._single(problem(assumed, secrets=(POPULATION,))) == assumed


def test_where_the_mask_is_all_that_is_needed_nothing_is_taken_back() -> None:
    """Of several averages one that needs more is enough to take something back."""
    few = problem(
        groups(
            mean={"F": {"hours": 40.0, "age": 40.0}, "M": {"hours": 40.0, "age": 40.0}},
            sd={"F": {"hours": 11.0, "age": 9.0}, "M": {"hours": 11.0, "age": 9.0}},
            prior={"F": 0.3, "M": 0.7},
        )
    )
    with refuses(Refusal, Cause.NOTHING_FOUND, "mechanism gaussian"):
        group_transport.plan(few)
    lattice = masked(problem(queries=BOTH), groups_of(problem(queries=BOTH)))

    def something(*times: float) -> None:
        """Where plain noise of so many masks is needed on each average."""
        scales = [lattice.masks[query.column or ""] * much for query, much in zip(BOTH, times, strict=False)]
        parts = [
            SimpleNamespace(column=query.column, noise=SimpleNamespace(scale=scale))
            for query, scale in zip(BOTH, scales, strict=False)
        ]
        group_transport._require_something(cast(Plan, SimpleNamespace(columns=parts)), lattice)

    group_transport._require_something(None, lattice)
    for enough in ((1.1,), (1.0, 1.1), (1.1, 1.0)):
        something(*enough)
    for nothing in ((1.0,), (1.0, 1.0), (1 + 1e-9, 0.9)):
        with refuses(Refusal, Cause.NOTHING_FOUND, "mechanism gaussian"):
            something(*nothing)
