"""Averages released one after the other: against the joint law of all of them, stacked by a twin that knows no conditioning.

The twin (`tests/property/twin.py`) is given every average released so far and the noise that was drawn for each release, as one
block-diagonal matrix, and computes the distance of the joint laws directly, for each secret and for members of the class.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attrpriv as ap
from attrpriv.cases.shift import ShiftCase
from attrpriv.frozen import FrozenModel
from attrpriv.methods.base.gaussian_proof import GaussianEvidence
from attrpriv.methods.gaussian import noise as stacked
from attrpriv.methods.gaussian import plan as gaussian
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.queries.sql import parse_queries
from tests.property import twin
from tests.refusing import refuses
from tests.unit.methods.gaussian.test_joint import RHO, SDS

EPSILON, DELTA = 1.0, 1e-6
MU = gaussian_mu(EPSILON, DELTA)
Matrix = Any


def asked(columns: Sequence[str], **changes: Any) -> ap.Problem:
    values: dict[str, Any] = {
        "queries": tuple(ap.mean(column) for column in columns),
        "secrets": (ap.Secret("mean(income)", within=1000),),
        "epsilon": EPSILON,
        "delta": DELTA,
        "n": 10_000,
        "theta": (ap.Gaussian(sd=SDS, correlation=RHO, tolerance=changes.pop("tolerance", 0)),),
    }
    return ap.Problem(**{**values, **changes})


def released(steps: Sequence[tuple[Sequence[str], float]], mechanism: str = "gaussian", **changes: Any) -> list[ap.Plan]:
    """Plans of releases one after the other, each with its share of what is left."""
    plans: list[ap.Plan] = []
    for columns, spend in steps:
        earlier = plans[-1].certificate.evidence if plans else None
        plans.append(ap.plan(asked(columns, spend=spend, earlier=earlier, **changes), mechanism))
    return plans


def stack(plans: Sequence[ap.Plan]) -> tuple[list[str], Matrix]:
    """Every average released, and the covariance of all noise drawn."""
    blocks = [twin.drawn_noise(plan) for plan in plans]
    size = sum(map(len, blocks))
    noise, at = np.zeros((size, size)), 0
    for block in blocks:
        noise[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    return [part.column for plan in plans for part in plan.columns], noise


def apart(plans: Sequence[ap.Plan], *, seed: int | None = None, count: int = 0, less: float = 0.0, **changes: Any) -> float:
    """The twin's distance of the joint laws; with `less`, as if the last release had drawn so much less noise."""
    columns, noise = stack(plans)
    last = len(plans[-1].columns)
    noise[-last:, -last:] *= (1 - less) ** 2
    problem = asked(columns, **changes)
    rng = np.random.default_rng(seed)
    return max(
        twin.separation(problem, moments, secret, noise)
        for member in problem.theta
        if isinstance(member, ap.Gaussian)
        for moments in twin.members(problem, member, rng, count)
        for secret in problem.secrets
    )


def evidence_of(plan: ap.Plan) -> GaussianEvidence:
    assert isinstance(plan.certificate.evidence, GaussianEvidence)
    return plan.certificate.evidence


# ------------------------------------------------------------------------------------------------------------- by hand


def test_alone_nothing_changes() -> None:
    """Everything spent on a first release: the same plan, bit by bit, and nothing of sequences in its JSON but defaults."""
    plain = ap.plan(asked(("weight", "height")), "gaussian")
    assert ap.plan(asked(("weight", "height"), spend=1.0, earlier=None), "gaussian") == plain
    assert (evidence_of(plain).before, evidence_of(plain).common_before) == (0, 0)
    assert evidence_of(plain).follows(None)


SECRETS: dict[str, tuple[ap.Secret, ...]] = {
    "one": (ap.Secret("mean(income)", within=1000),),
    "two": (ap.Secret("mean(income)", within=1000), ap.Secret("sum(sat)", within=60_000.0)),
    "one that is asked": (ap.Secret("mean(weight)", within=0.7),),
}
STEPS: dict[str, list[tuple[tuple[str, ...], float]]] = {
    "one by one": [(("weight",), 0.3), (("height",), 0.5), (("sat",), 1.0)],
    "together first": [(("weight", "height"), 0.5), (("sat",), 1.0)],
    "together last": [(("sat",), 0.2), (("weight", "height"), 1.0)],
    "halves": [(("height",), 0.5), (("weight",), 0.5), (("sat",), 0.5)],
}


@pytest.mark.parametrize("secrets", SECRETS)
@pytest.mark.parametrize("steps", STEPS)
def test_the_joint_laws_are_as_far_apart_as_was_spent_and_no_farther(secrets: str, steps: str) -> None:
    """After each release, and with a thousandth less of the last noise it is too far: nothing is wasted."""
    changes: dict[str, Any] = {"secrets": SECRETS[secrets]}
    plans, left = released(STEPS[steps], **changes), 1.0
    for k, (_, spend) in enumerate(STEPS[steps], 1):
        reached = apart(plans[:k], **changes)
        before = apart(plans[: k - 1], **changes) if k > 1 else 0.0
        most = before**2 + spend * (MU**2 - before**2)
        assert reached**2 <= most
        left *= 1 - spend
        assert evidence_of(plans[k - 1]).spent(EPSILON, DELTA) == pytest.approx((reached / MU) ** 2, rel=2e-3)
        masked = all(part.noise.scale <= part.parameters["mask"] * (1 + 1e-6) for part in plans[k - 1].columns)
        assert masked or reached**2 >= most * (1 - 5e-3)
        assert masked or apart(plans[:k], less=5e-3, **changes) > reached


def test_a_thousandth_less_noise_breaks_it() -> None:
    """The distance that is aimed at is the one of the exact budget, but for a reserve of a few millionths."""
    plans = released([(("weight",), 0.5), (("height",), 1.0)])
    reach = plans[-1].columns[0].parameters["mu"]
    assert apart(plans) <= reach <= MU
    assert apart(plans, less=1e-3) > reach


def test_jointly_hidden_statistics() -> None:
    """A ball around two means: all directions, by direct stacking."""
    secret = ap.Secret(["mean(income)", "mean(sat)"], within=50)
    plans = released([(("weight",), 0.4), (("height",), 1.0)], secrets=(secret,))
    _, noise = stack(plans)
    v = np.array([[1.0 if a == b else RHO.get(f"{a}~{b}", RHO.get(f"{b}~{a}", 0.0)) for b in SDS] for a in SDS])
    v *= np.outer(list(SDS.values()), list(SDS.values()))
    gamma = v[:2, 2:] @ np.linalg.inv(v[2:, 2:])
    spread = (v[:2, :2] - gamma @ v[2:, :2]) / 10_000 + noise
    turned = [50 * np.array([math.cos(t), math.sin(t)]) for t in np.linspace(0, math.pi, 361)]
    worst = max(math.sqrt(d @ gamma.T @ np.linalg.solve(spread, gamma @ d)) for d in turned)
    assert 0.99 * MU <= worst <= MU


@pytest.mark.parametrize("tolerance", [{"slope": 0.05, "sd": 0.02}, {"correlation": 0.03, "sd": 0.02}])
def test_every_member_of_a_class_is_covered(tolerance: dict[str, float]) -> None:
    plans = released([(("weight",), 0.3), (("sat",), 0.6), (("height",), 1.0)], tolerance=tolerance)
    for k in (1, 2, 3):
        assert apart(plans[:k], seed=k, count=150, tolerance=tolerance) <= MU
    # A plan for the centre alone would not do: the sampled members are able to show it.
    exact = released([(("weight",), 0.3), (("sat",), 0.6), (("height",), 1.0)])
    assert apart(exact, seed=3, count=150, tolerance=tolerance) > MU


# -------------------------------------------------------------------------------------------------- F1 = g + U, F2 = U


def hidden_by_u(**changes: Any) -> ap.Problem:
    """F1 = g + U with U of variance 1e4 hides g by U alone; F2 = U takes that away."""
    covariance = {"f~f": 10_001.0, "u~u": 10_000.0, "g~g": 1.0, "f~u": 10_000.0, "f~g": 1.0, "u~g": 0.0}
    values: dict[str, Any] = {
        "queries": (ap.mean("f"),),
        "secrets": (ap.Secret("mean(g)", within=0.2),),
        "epsilon": EPSILON,
        "delta": DELTA,
        "n": 100,
        "theta": (ap.Gaussian(covariance=covariance, tolerance=0),),
        "resolution": {"f": 1e-9, "u": 1e-9, "g": 1e-9},
    }
    return ap.Problem(**{**values, **changes})


@pytest.mark.parametrize("spend", [0.2, 1.0])
def test_what_hid_the_first_answer_is_noised(spend: float) -> None:
    first = ap.plan(hidden_by_u(spend=0.5), "gaussian")
    assert first.columns[0].noise.scale < 0.02  # next to nothing: U hides g
    second = ap.plan(hidden_by_u(queries=(ap.mean("u"),), spend=spend, earlier=first.certificate.evidence), "gaussian")
    both = hidden_by_u(queries=(ap.mean("f"), ap.mean("u")))
    moments = twin.stated(both.theta[0])  # type: ignore[arg-type]
    noise = np.diag([first.columns[0].noise.scale ** 2, second.columns[0].noise.scale ** 2])
    reached = twin.separation(both, moments, both.secrets[0], noise)
    assert reached <= MU
    assert reached >= 0.95 * MU * math.sqrt(spend)
    assert second.columns[0].noise.scale > 0.1 / MU
    # By itself U tells nothing of g; with noise of 0.01 on both, g would be seen.
    assert ap.plan(hidden_by_u(queries=(ap.mean("u"),)), "gaussian").columns[0].noise.scale < 0.01
    bare = np.diag([0.01**2, 0.01**2])
    assert twin.separation(both, moments, both.secrets[0], bare) > 2 * MU


def test_what_hid_the_first_answer_is_refused_where_values_are_too_coarse() -> None:
    """On a grid, f - u given g has no spread at all: no law of the noise alone covers that, so it is refused."""
    grid = {"f": 0.001, "u": 0.001, "g": 0.001}
    first = ap.plan(hidden_by_u(spend=0.5, resolution=grid), "gaussian")
    with refuses(ap.RefusedError, Cause.PRECISION, "a finer resolution"):
        ap.plan(hidden_by_u(queries=(ap.mean("u"),), resolution=grid, earlier=first.certificate.evidence), "gaussian")


def test_masks_are_widened_but_for_what_was_drawn() -> None:
    """What an earlier answer drew below its digits can be less than a wider mask, and is never more."""
    past = stacked.EarlierAverages(columns=("a", "b"), independent=(0.5, 9.0))
    assert past.widened({"a": 1.0, "b": 1.0, "c": 1.0}, 3.0) == {"a": 0.5, "b": 3.0, "c": 3.0}


def test_what_is_shown_of_an_answer_is_its_own() -> None:
    """How far it moves with a secret, and how much of its own spread is credited: as where it is the only answer."""
    columns = ("weight", "height", "sat")
    for secrets in SECRETS.values():
        alone = {name: ap.plan(asked((name,), secrets=secrets), "gaussian").columns[0].parameters for name in columns}
        assert len({told["shift"] for told in alone.values()}) == 3
        for made in released([(("weight",), 0.3), (("height", "sat"), 0.5)], secrets=secrets):
            for part in made.columns:
                for name in ("shift", "credited_variance"):
                    assert part.parameters[name] == pytest.approx(alone[part.column][name], rel=1e-9, abs=1e-15)


# --------------------------------------------------------------------------------------------------------------- mutants


def test_a_planner_that_forgets_the_past_is_caught_by_the_twin() -> None:
    first = ap.plan(asked(("weight",), spend=0.5), "gaussian")
    forgetful = ap.plan(asked(("height",), spend=1.0), "gaussian")
    assert apart([forgetful]) <= MU
    assert apart([first, forgetful]) > MU * 1.05
    assert not forgetful.certificate.follows(first.certificate)


def test_credit_that_the_past_used_up_is_caught_by_the_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that counts on the whole spread of the new average, though earlier answers tell a part of it."""
    first = ap.plan(hidden_by_u(spend=0.5), "gaussian")

    def marginal(past: stacked.EarlierAverages, cases: Sequence[ShiftCase], reach: float) -> list[ShiftCase]:
        size = len(past.columns)
        return [replace(case, shifts=case.shifts[size:], residual=case.residual[size:, size:]) for case in cases]

    monkeypatch.setattr(gaussian, "conditioned", marginal)
    with pytest.raises((ap.CertificateError, ap.RefusedError)):
        ap.plan(hidden_by_u(queries=(ap.mean("u"),), earlier=first.certificate.evidence), "gaussian")


# --------------------------------------------------------------------------------------------------------------- chains


def test_evidence_follows_exactly_what_was_released() -> None:
    first, second, third = released([(("weight", "height"), 0.3), (("sat",), 0.5), (("income",), 1.0)])
    a, b, c = evidence_of(first), evidence_of(second), evidence_of(third)
    assert b.follows(a)
    assert c.follows(b)
    for later, earlier in itertools.permutations((None, a, b, c), 2):
        if later is not None and (later, earlier) not in ((a, None), (b, a), (c, b)):
            assert not later.follows(earlier)
    nudged = tuple(math.nextafter(x, 0) for x in b.independent)
    forged: list[dict[str, Any]] = [
        {"columns": b.columns[::-1]},
        {"independent": nudged},
        {"before": 0, "common_before": 0},
        {"before": 1},
        {"factor": tuple(tuple(x / 2 for x in row) for row in b.factor)},
    ]
    for change in forged:
        if a.factor or "factor" not in change:
            assert not b.model_copy(update=change).follows(a), change
    assert not b.follows(a.model_copy(update={"independent": tuple(math.nextafter(x, 0) for x in a.independent)}))
    assert not b.follows(a.model_copy(update={"columns": ("weight", "sat")}))


def test_what_was_released_is_not_released_again() -> None:
    first = ap.plan(asked(("weight",), spend=0.5), "gaussian")
    with pytest.raises(ap.RefusedError, match="weight: was released before"):
        ap.plan(asked(("height", "weight"), earlier=first.certificate.evidence), "gaussian")


def test_nothing_is_left() -> None:
    first = ap.plan(asked(("weight",)), "gaussian")
    assert first.certificate.left(EPSILON, DELTA) == 0
    with pytest.raises(ap.RefusedError, match="nothing is left of the budget"):
        ap.plan(asked(("height",), spend=0.5, earlier=first.certificate.evidence), "gaussian")


def test_a_smaller_budget_is_counted_anew() -> None:
    """Under a tightened policy: what was drawn is what counts, not what was promised."""
    first = evidence_of(ap.plan(asked(("weight",), spend=0.1), "gaussian"))
    tighter = {"epsilon": 0.5, "secrets": (ap.Secret("mean(income)", within=1200), ap.Secret("mean(sat)", within=5.0))}
    second = ap.plan(asked(("height",), earlier=first, **tighter), "gaussian")
    problem = asked(("weight", "height"), **tighter)
    noise = np.diag([evidence_of(second).independent[0] ** 2, second.columns[0].noise.scale ** 2])
    assert evidence_of(second).independent[0] == first.independent[0]
    worst = max(twin.separation(problem, twin.stated(problem.theta[0]), s, noise) for s in problem.secrets)  # type: ignore[arg-type]
    assert 0.98 * gaussian_mu(0.5, DELTA) <= worst <= gaussian_mu(0.5, DELTA)
    with pytest.raises(ap.RefusedError):  # more was spent than a far smaller budget has
        ap.plan(asked(("height",), earlier=first, epsilon=0.05), "gaussian")


# ------------------------------------------------------------------------------------------------------------ many, any


def random_class(seed: int, columns: int) -> tuple[ap.Gaussian, list[str]]:
    rng = np.random.default_rng(seed)
    names = [f"q{k}" for k in range(columns)]
    loadings = rng.normal(size=(columns + 1, 3))
    v = loadings @ loadings.T + np.eye(columns + 1) * rng.uniform(0.05, 1.0)
    labels = [*names, "g"]
    covariance = {f"{a}~{b}": float(v[i, j]) for i, a in enumerate(labels) for j, b in enumerate(labels) if i <= j}
    return ap.Gaussian(covariance=covariance, tolerance=0), names


@given(seed=st.integers(0, 10_000), spends=st.lists(st.floats(0.05, 1.0), min_size=2, max_size=4), gap=st.floats(0.01, 3.0))
@settings(max_examples=12, deadline=None)
def test_any_gaussian(seed: int, spends: list[float], gap: float) -> None:
    """Random laws, orders and shares; the twin stacks what was released and never finds more than the budget."""
    theta, names = random_class(seed, 2 * len(spends))
    secrets = (ap.Secret("mean(g)", within=gap), ap.Secret("mean(q0)", within=gap / 2))
    base: dict[str, Any] = {"theta": (theta,), "secrets": secrets, "n": 50}
    plans: list[ap.Plan] = []
    earlier: FrozenModel | None = None
    for k, spend in enumerate(spends):
        try:
            plan = ap.plan(asked(names[2 * k : 2 * k + 1 + k % 2], spend=spend, earlier=earlier, **base), "gaussian")
        except ap.RefusedError:  # nothing left
            continue
        assert plan.certificate.follows(plans[-1].certificate if plans else None)
        plans, earlier = [*plans, plan], plan.certificate.evidence
        columns, noise = stack(plans)
        problem = asked(columns, **base)
        reached = max(twin.separation(problem, twin.stated(theta), secret, noise) for secret in secrets)
        assert reached <= MU * (1 + 1e-9)
        assert plan.certificate.evidence.spent(EPSILON, DELTA) >= (reached / MU) ** 2 * (1 - 1e-9)


@pytest.mark.slow
def test_adaptively_chosen_queries() -> None:
    """Whoever asks sees the noise that was drawn and goes for the average that tells most; the joint distance never exceeds."""
    theta, names = random_class(7, 45)
    secret = ap.Secret("mean(g)", within=0.3)
    base: dict[str, Any] = {"theta": (theta,), "secrets": (secret,), "n": 200}
    rng = np.random.default_rng(3)
    plans: list[ap.Plan] = []
    rest = list(names)
    moments = twin.stated(theta)
    while len(plans) < 40:
        columns, noise = stack(plans) if plans else ([], np.zeros((0, 0)))
        # The most telling of five, if it were told exactly; which five depends on an answer just drawn.
        offered = [rest[k] for k in rng.choice(len(rest), 5, replace=False)]
        bare = [np.pad(noise, (0, 1)) + np.diag([*[0.0] * len(noise), 1e-6]) for _ in offered]
        tells = [twin.separation(asked([*columns, c], **base), moments, secret, z) for c, z in zip(offered, bare, strict=True)]
        chosen = offered[int(np.argmax(tells))]
        rest.remove(chosen)
        earlier = plans[-1].certificate.evidence if plans else None
        plans.append(ap.plan(asked((chosen,), spend=0.05, earlier=earlier, **base), "gaussian"))
        columns, noise = stack(plans)
        assert twin.separation(asked(columns, **base), moments, secret, noise) <= MU
        rng = np.random.default_rng(abs(hash(plans[-1].answers([Fraction(1)])[0])) % 2**32)
    assert evidence_of(plans[-1]).spent(EPSILON, DELTA) == pytest.approx(1 - 0.95**40, abs=0.02)


@pytest.mark.parametrize("near", [4.6e-9, 9.6e-13])
def test_an_average_that_earlier_ones_determine_is_refused_not_a_failure(near: float) -> None:
    """x and y are nearly equal; floats have no digits for a proof about x - y beside both."""
    law = ap.Gaussian(
        sd=dict.fromkeys("xyg", 1.0), correlation={("x", "g"): 0.1, ("y", "g"): 0.1, ("x", "y"): 1 - near}, tolerance=0
    )
    step, earlier = math.sqrt(near) * 1e-3, None
    for text in ("avg(x)", "avg(y)", "avg(x - y)"):
        problem = ap.Problem(
            queries=parse_queries(text),
            secrets=(ap.Secret("mean(g)", within=2e-4),),
            epsilon=1.0,
            delta=1e-6,
            n=1_000,
            theta=(law,),
            resolution={"x": step, "y": step, "g": 1e-6},
            spend=0.5,
            earlier=earlier,
        )
        if text == "avg(x - y)":
            with refuses(Refusal, Cause.NOTHING_FOUND, "fewer averages"):
                gaussian.plan(problem)
        else:
            earlier = gaussian.plan(problem).certificate.evidence
