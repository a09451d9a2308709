"""`transport` shared with other releases: joint laws against the certificate, what binds the chain, refusals, numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.groups import Groups
from attrpriv.cases.budget import MOST_LATTICE, MOST_STEPS
from attrpriv.errors import Cause, CertificateError, RefusedError, UsageError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.transport.sequence_case import residual
from attrpriv.methods.transport.sequence_clamp import moved_on
from attrpriv.methods.transport.sequence_proof import SequenceEvidence
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.numerics.divergences.gaussian import gaussian_epsilon
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.refusing import refuses

Array = NDArray[np.float64]

INCOME = Secret("mean(income)", between=(20_000.0, 200_000.0))
AGE = Secret("mean(age)", between=(30.0, 60.0))
MEAN = {"weight": 170.0, "height": 100.0, "income": 60_000.0, "age": 40.0}
SD = {"weight": 25.0, "height": 10.0, "income": 30_000.0, "age": 12.0}
# Given income, weight and height move against each other: forgetting one release is worst for the next.
RHO = {
    ("weight", "income"): 0.3,
    ("weight", "height"): -0.6,
    ("height", "income"): 0.2,
    ("weight", "age"): 0.1,
    ("height", "age"): -0.2,
    ("income", "age"): 0.4,
}
N = 10_000


def people(tolerance: Any = 0, **changes: Any) -> Gaussian:
    return Gaussian(**{"mean": MEAN, "sd": SD, "correlation": RHO, "tolerance": tolerance} | changes)


def school(*queries: str, **changes: Any) -> Problem:
    stated = {
        "queries": tuple(Query("avg", name) for name in queries or ("weight",)),
        "secrets": (INCOME,),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": N,
        "theta": (people(),),
        "resolution": {"weight": 0.001, "height": 0.001, "income": 1.0, "age": 0.01},
    }
    return Problem(**stated | changes)


def evidence_of(made: Plan) -> SequenceEvidence:
    assert isinstance(made.certificate.evidence, SequenceEvidence)
    return made.certificate.evidence


def released(*shares: tuple[str, float], **changes: Any) -> list[Plan]:
    """One release a share, each after the others; columns of one release are joined by +."""
    plans: list[Plan] = []
    for columns, spend in shares:
        earlier = evidence_of(plans[-1]) if plans else None
        plans.append(plan(school(*columns.split("+"), spend=spend, earlier=earlier, **changes), "transport"))
    return plans


# ------------------------------------------------------------------------------------------------ the joint law, directly


def covariance(member: Gaussian, names: Sequence[str]) -> Array:
    sds = np.array([member.sd_of(name) for name in names])
    return np.asarray(member.correlation_matrix(names) * np.outer(sds, sds) / N)


def joint_shift(plans: Sequence[Plan], truth: Gaussian, hidden: Mapping[str, float]) -> Array:
    """The means of all answers where the hidden averages are these and the table follows this law."""
    names = tuple(hidden)
    shifts: list[float] = []
    for made in plans:
        columns = tuple(part.column for part in made.columns)
        both = covariance(truth, (*columns, *names))
        slopes = both[: len(columns), len(columns) :] @ np.linalg.inv(both[len(columns) :, len(columns) :])
        means = slopes @ np.array([hidden[name] - MEAN[name] for name in names])
        read = {name: Fraction(value) for name, value in hidden.items()}
        shifts += [float(x) for x in moved_on(evidence_of(made), [Fraction(float(x)) for x in means], read)]
    return np.array(shifts)


def joint_spread(plans: Sequence[Plan], truth: Gaussian, names: Sequence[str]) -> Array:
    """What all answers vary given the hidden averages: the table's own law, and all noise that is drawn."""
    columns = tuple(part.column for made in plans for part in made.columns)
    both = covariance(truth, (*columns, *names))
    k = len(columns)
    left = both[:k, :k] - both[:k, k:] @ np.linalg.solve(both[k:, k:], both[k:, :k])
    return np.asarray(left + np.diag([part.independent**2 for made in plans for part in made.columns]))


def apart(first: Array, second: Array, spread: Array) -> float:
    gap = first - second
    return math.sqrt(float(gap @ np.linalg.solve(spread, gap)))


def furthest(plans: Sequence[Plan], truth: Gaussian, tables: Sequence[Mapping[str, float]]) -> float:
    spread = joint_spread(plans, truth, tuple(tables[0]))
    shifts = [joint_shift(plans, truth, table) for table in tables]
    return max(apart(a, b, spread) for a, b in itertools.combinations(shifts, 2))


INCOMES = [{"income": value} for value in (20_000.0, 59_000.0, 59_990.0, 60_000.0, 60_100.0, 61_000.0, 200_000.0)]


@pytest.mark.parametrize(
    "shares",
    [
        [("weight", 0.5), ("height", 1.0)],
        [("weight", 0.1), ("height", 0.3), ("age", 1.0)],
        [("height+weight", 0.4), ("age", 0.9)],
    ],
)
def test_all_answers_together_are_no_further_apart_than_promised(shares: list[tuple[str, float]]) -> None:
    plans = released(*shares)
    found = furthest(plans, people(), INCOMES)
    distance = evidence_of(plans[-1]).distance()
    assert found <= distance * (1 + 1e-9)
    assert found >= 0.99 * distance  # far enough apart, every clamp binds on both sides
    assert distance <= gaussian_mu(1.0, 1e-6)
    # What each release may use of what is left, and no more.
    left = 1.0
    for made, (_, spend) in zip(plans, shares, strict=True):
        left *= 1 - spend
        assert made.left == pytest.approx(left, abs=2e-6)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.floats(0.05, 1.0), min_size=2, max_size=2), st.sampled_from([0.1, 1.0, 4.0]))
def test_any_law_order_and_shares(seed: int, spends: list[float], epsilon: float) -> None:
    """Random correlations, columns in random order, two in one release: the joint law against the last certificate."""
    generator = np.random.default_rng(seed)
    root = generator.normal(size=(4, 6))
    rho = 0.95 * np.corrcoef(root) + 0.05 * np.eye(4)
    names = ("weight", "height", "age", "income")
    stated = {(names[j], names[k]): float(rho[j, k]) for j, k in itertools.combinations(range(4), 2)}
    theta = (people(correlation=stated),)
    order = [names[k] for k in generator.permutation(3)]
    shares = [(order[0], spends[0] * 0.9), (f"{order[1]}+{order[2]}", spends[1])]
    plans = released(*shares, theta=theta, epsilon=epsilon)
    assert furthest(plans, theta[0], INCOMES) <= evidence_of(plans[-1]).distance() * (1 + 1e-7)
    assert evidence_of(plans[-1]).distance() <= gaussian_mu(epsilon, 1e-6)


def test_a_mutant_that_forgets_the_past_is_caught() -> None:
    """Two first releases of half the budget each. Planned jointly they keep it; each on its own they do not."""
    plans = [plan(school(column, spend=0.5), "transport") for column in ("weight", "height")]
    assert all(evidence_of(made).distance() <= gaussian_mu(1.0, 1e-6) * math.sqrt(0.5) for made in plans)
    assert furthest(plans, people(), INCOMES) > 1.5 * gaussian_mu(1.0, 1e-6)
    assert not plans[1].certificate.follows(plans[0].certificate)


def test_g_plus_u_and_u() -> None:
    """F1 = g + U, F2 = U as columns of a policy: both follow a common U closely, one of them and income move together."""
    rho = {("weight", "income"): 0.1, ("weight", "height"): 0.994, ("height", "income"): 0.0}
    rho |= {("weight", "age"): 0.0, ("height", "age"): 0.0, ("income", "age"): 0.0}
    theta = (people(correlation=rho),)
    plans = released(("weight", 0.5), ("height", 1.0), theta=theta)
    assert furthest(plans, theta[0], INCOMES) <= gaussian_mu(1.0, 1e-6)
    alone = [plan(school(column, spend=0.5, theta=theta), "transport") for column in ("weight", "height")]
    assert furthest(alone, theta[0], INCOMES) > 5 * gaussian_mu(1.0, 1e-6)


@pytest.mark.parametrize("tolerance", [{"slope": 0.01}, {"correlation": 0.01}, {"slope": 0.05, "sd": 0.02}])
def test_a_tolerance_is_covered_at_its_corners(tolerance: dict[str, float]) -> None:
    plans = released(("weight", 0.3), ("height", 1.0), theta=(people(tolerance),))
    slope, reach = tolerance.get("slope", 0.0), tolerance.get("correlation", 0.0)
    worst = 0.0
    for one, other in itertools.product((-1, 1), repeat=2):
        rho = dict(RHO)
        rho["weight", "income"] = 0.3 * (1 + one * slope) + one * reach
        rho["height", "income"] = 0.2 * (1 + other * slope) + other * reach
        truth = people(correlation=rho)
        found = furthest(plans, truth, INCOMES)
        worst = max(worst, found)
        assert found <= evidence_of(plans[-1]).distance()
    assert worst > 0.9 * evidence_of(plans[-1]).distance()
    assert evidence_of(plans[-1]).distance() <= gaussian_mu(1.0, 1e-6)


def test_a_list_of_assumptions_is_covered_member_by_member() -> None:
    theta = (people(), people(correlation=RHO | {("weight", "income"): 0.31}, sd=SD | {"height": 10.5}))
    plans = released(("weight", 0.3), ("height", 1.0), theta=theta)
    assert all(furthest(plans, truth, INCOMES) <= evidence_of(plans[-1]).distance() for truth in theta)
    assert max(furthest(plans, truth, INCOMES) for truth in theta) > 0.5 * evidence_of(plans[-1]).distance()


def test_the_sensitive_column_itself() -> None:
    """Given income nothing is left open of its average: what shows of it is the reach, hidden by noise alone."""
    second = released(("weight", 0.5), ("income", 1.0))[-1]
    step = evidence_of(second).steps[1]
    assert evidence_of(second).credited[1] == (0.0, 0.0)
    for income in (20_000, 59_999, 200_000):
        (moved,) = moved_on(evidence_of(second), [Fraction(income)], {"income": Fraction(income)})
        assert abs(moved - 60_000) <= Fraction(step.reach)
    assert (second.error.rmse or 0.0) <= 300  # the sd of the average itself


def test_several_secrets_at_exact_moments() -> None:
    plans = released(("weight", 0.4), ("height", 1.0), secrets=(INCOME, AGE))
    tables = [
        {"income": income, "age": age} for income in (20_000.0, 59_900.0, 60_100.0, 200_000.0) for age in (30.0, 40.0, 60.0)
    ]
    assert furthest(plans, people(), tables) <= evidence_of(plans[-1]).distance() * (1 + 1e-9)
    assert [read.mask for read in evidence_of(plans[-1]).reads] == [0.0, 0.0]


def test_what_is_credited_is_the_residual_from_below() -> None:
    for statistics in ([{"income": 1.0}], [{"income": 1.0}, {"age": 1.0}], [{"income": 0.5, "age": -100.0}]):
        names = ("weight", "height", "income", "age")
        whole = covariance(people(), names)
        rows = np.array([[one.get(name, 0.0) for name in names] for one in statistics])
        shared = whole[:2] @ rows.T
        left = whole[:2, :2] - shared @ np.linalg.solve(rows @ whole @ rows.T, shared.T)
        found = np.array(residual(people(), ("weight", "height"), statistics, N))
        assert found == pytest.approx(left, rel=1e-9)
        assert np.linalg.eigvalsh(left - found)[0] >= -1e-16
        # The entries of one column do not depend on which others there are.
        assert residual(people(), ("weight",), statistics, N) == ((found[0, 0],),)
    assert residual(people(), ("income",), [{"income": 2.0}], N) == ((0.0,),)


# ---------------------------------------------------------------------------------------------------- numbers and accuracy


def test_the_first_step_is_the_clamp_of_a_smaller_budget() -> None:
    (made,) = released(("weight", 0.25))
    sd = math.hypot(0.25 * math.sqrt(1 - 0.09), 1e-7)
    evidence = evidence_of(made)
    mu = gaussian_mu(1.0 - 2 * evidence.lam, 0.98e-6 * math.exp(-evidence.lam))
    assert evidence.steps[0].reach == pytest.approx(mu / 2 * sd / 2, rel=1e-6)
    assert made.columns[0].independent == pytest.approx(1e-7)


def test_errors_are_those_of_the_law() -> None:
    """200,000 tables of the assumption, drawn once: what the plan says, to six standard errors (false alarms below 1e-8)."""
    generator = np.random.default_rng(5)
    plans = released(("weight", 0.3), ("height", 1.0))
    evidence = evidence_of(plans[-1])
    gains = [[float(x) for x in row] for row in evidence.innovations().gains]
    told = generator.normal(size=200_000)[:, None] * 300.0 * np.array([row[0] for row in evidence.slopes])
    first = np.clip(told[:, 0], -evidence.steps[0].reach, evidence.steps[0].reach)
    second = told[:, 1] - gains[1][0] * first
    left = second - np.clip(second, -evidence.steps[1].reach, evidence.steps[1].reach)
    square = left**2 + evidence.steps[1].noise ** 2
    error = 6 * square.std() / math.sqrt(len(square))
    assert (plans[1].error.rmse or 0.0) ** 2 == pytest.approx(square.mean(), abs=error)
    query = Query("avg", "height")
    assert np.mean(np.abs(left) > plans[1].spread_of(query).reach(0.9)) == pytest.approx(0.1, abs=6 * math.sqrt(0.09 / 200_000))


def test_answers_are_the_moved_averages_with_their_noise() -> None:
    made = released(("weight", 0.3), ("height+age", 0.5))[-1]
    averages = [Fraction(100), Fraction(40), Fraction(61_000)]
    moved = moved_on(evidence_of(made), averages[:2], {"income": averages[2]})
    for value, want, part in zip(made.answers(averages), moved, made.columns, strict=True):
        assert abs(value - float(want)) < 40 * part.independent + 1e-9
    assert made.read_columns == {"income": None}
    with pytest.raises(UsageError, match="income"):
        released(("weight", 0.5))[0].randomise(170.0)


def test_the_budget_of_a_sequence_does_not_depend_on_what_is_asked() -> None:
    """So that a total is fixed beforehand, whatever the answers make someone ask next."""
    paths = [released(("weight", 0.5)), released(("height+weight", 0.5), ("age", 0.5))]
    charges = {(evidence_of(path[-1]).lam, evidence_of(path[-1]).grid_eta, path[-1].delta) for path in paths}
    assert len(charges) == 1
    assert evidence_of(paths[0][-1]).lattice_lambda == MOST_LATTICE


def test_spend_one_alone_is_the_release_it_always_was() -> None:
    assert plan(school(), "transport").certificate.evidence.kind != "transport_sequence"
    assert plan(school(spend=0.999), "transport").certificate.evidence.kind == "transport_sequence"


def test_a_wrong_slope_shows_in_model_error() -> None:
    made = released(("weight", 0.5), ("height", 1.0))[-1]
    real = [row.epsilon for row in made.model_error]
    assert all(a is not None and b is not None and a < b for a, b in itertools.pairwise(real))
    rho = RHO | {("weight", "income"): 0.303, ("height", "income"): 0.202}
    plans = released(("weight", 0.5), ("height", 1.0))
    distance = furthest(plans, people(correlation=rho), INCOMES)
    assert gaussian_epsilon(distance, 1e-6) <= (real[0] or 0.0) * 1.001


# ------------------------------------------------------------------------------------------------------ what binds the chain


def test_evidence_follows_exactly_what_came_before() -> None:
    first, second, third = released(("weight", 0.3), ("height", 0.3), ("age", 0.3))
    assert first.certificate.follows(None)
    assert second.certificate.follows(first.certificate)
    assert third.certificate.follows(second.certificate)
    assert not second.certificate.follows(None)
    assert not third.certificate.follows(first.certificate)  # one was dropped
    assert not first.certificate.follows(second.certificate)
    other, another = released(("height", 0.3), ("weight", 0.3))
    assert not third.certificate.follows(another.certificate)  # reordered
    assert not second.certificate.follows(other.certificate)
    assert not evidence_of(first).follows(plan(school(spend=0.5), "gaussian").certificate.evidence)


@pytest.mark.parametrize("field", ["noise", "reach", "least", "column"])
def test_an_edited_past_is_another_one(field: str) -> None:
    first, second = released(("weight", 0.3), ("height", 0.3))
    before = evidence_of(first)
    value = "size" if field == "column" else getattr(before.steps[0], field) * 1.5
    edited = before.model_copy(update={"steps": (before.steps[0].model_copy(update={field: value}),)})
    assert not evidence_of(second).follows(edited)


@pytest.mark.parametrize("field", ["slopes", "credited"])
def test_other_numbers_behind_the_past_are_another_one(field: str) -> None:
    first, second = released(("weight", 0.3), ("height", 0.3))
    edited = evidence_of(first).model_copy(update={field: ((1.0,),)})
    assert not evidence_of(second).follows(edited)


def test_json_and_verification() -> None:
    made = released(("weight", 0.3), ("height", 0.3))[-1]
    again = Plan.from_json(made.to_json())
    again.verify()
    assert again == made
    assert Certificate.from_json(made.certificate.to_json()) == made.certificate


def changed(made: Plan, **update: Any) -> Plan:
    certificate = made.certificate.model_copy(update={"evidence": evidence_of(made).model_copy(update=update)})
    return made.model_copy(update={"certificate": certificate})


def test_forged_evidence_fails() -> None:
    made = released(("weight", 0.3), ("height", 1.0))[-1]
    evidence = evidence_of(made)
    step = evidence.steps[0]
    forged: list[dict[str, Any]] = [
        {"steps": (step.model_copy(update={"reach": step.reach * 1.5}), evidence.steps[1])},
        {"steps": (step.model_copy(update={"noise": step.least * 0.9}), evidence.steps[1])},
        {"credited": ((evidence.credited[0][0], 0.0), evidence.credited[1])},
        {"credited": tuple(tuple(x / 2 for x in row) for row in evidence.credited)},
        {"credited": ((-1.0, 0.0), (0.0, 1.0))},
        {"slopes": ((0.0,), evidence.slopes[1])},
        {"slopes": evidence.slopes[:1]},
        {"before": 2},
        {"steps": (step, step)},
        {"reads": (evidence.reads[0].model_copy(update={"mask": 1.0}),)},
    ]
    for update in forged:
        with pytest.raises(CertificateError):
            changed(made, **update).verify()
    for update in ({"before": 0}, {"columns": made.columns[:0]}):  # a plan that draws something else
        with pytest.raises(CertificateError):
            (made.model_copy(update=update) if "columns" in update else changed(made, **update)).verify()


def test_several_statistics_with_something_untold_fail() -> None:
    made = released(("weight", 0.3), secrets=(INCOME, AGE))[-1]
    slopes = ((evidence_of(made).slopes[0][0] * (1 + 1e-4), evidence_of(made).slopes[0][1]),)
    assert evidence_of(made).delta(50.0) < 1
    assert evidence_of(made).model_copy(update={"slopes": slopes}).delta(50.0) == 1.0


# ----------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"delta": 0.0}, "delta"),
        ({"individuals": 1.0, "bounds": {"weight": (0.0, 500.0)}}, "individuals"),
        ({"theta": (people({"slope": 0.01}),), "secrets": (INCOME, AGE)}, "tolerance 0"),
        (
            {"theta": (people(), people(correlation=RHO | {("weight", "income"): 0.31})), "secrets": (INCOME, AGE)},
            "tolerance 0",
        ),
        ({"theta": (people({"slope": 0.01, "shape": {"lambda": 0.1, "eta": 1e-9}}),)}, "shape"),
        ({"theta": (people(mean={"weight": 170.0}),)}, "mean of income"),
    ],
)
def test_refusals_of_a_first_release(changes: dict[str, Any], says: str) -> None:
    with pytest.raises((RefusedError, UsageError), match=says):
        plan(school(spend=0.5, **changes), "transport")


def test_what_is_left_of_a_row_is_judged_given_all_that_is_read() -> None:
    """Income and age each leave plenty of a weight open, and together less than its spacing."""
    rho = dict.fromkeys(RHO, 0.0) | {("weight", "income"): 0.7, ("weight", "age"): 0.7}
    changes: dict[str, Any] = {"theta": (people(correlation=rho),), "resolution": {"weight": 4.0}, "spend": 0.5}
    for secret in (INCOME, AGE):
        assert plan(school(secrets=(secret,), **changes), "transport").left == pytest.approx(0.5, abs=1e-6)
    with refuses(RefusedError, Cause.PRECISION, "a finer resolution"):
        plan(school(secrets=(INCOME, AGE), **changes), "transport")


def test_known_rows_and_one_column() -> None:
    """Entries of known rows may move the slope by their share: no variance is credited, and what is untold is charged."""
    made = plan(school(spend=0.5, known_rows=0.01), "transport")
    tolerant = plan(school(spend=0.5, theta=(people({"slope": 0.01}),)), "transport")
    assert made.error.rmse == pytest.approx(tolerant.error.rmse, rel=1e-6)


@pytest.mark.parametrize(
    ("columns", "changes", "says"),
    [
        ("weight", {}, "was released before"),
        ("height", {"theta": (people(sd=SD | {"weight": 26.0}),)}, "assumption"),
        ("height", {"secrets": (INCOME, AGE)}, "other statistics"),
        ("height", {"known_rows": 0.01}, "known_rows"),
        ("height", {"resolution": {"weight": 0.01, "height": 0.001}}, "less noise below its digits"),
        ("height", {"epsilon": 0.3}, "nothing is left"),
    ],
)
def test_refusals_of_a_second_release(columns: str, changes: dict[str, Any], says: str) -> None:
    (first,) = released(("weight", 0.5))
    with pytest.raises(RefusedError, match=says):
        plan(school(columns, spend=0.5, earlier=evidence_of(first), **changes), "transport")


def test_nothing_is_left_once_everything_is_spent() -> None:
    (first,) = released(("weight", 0.5), ("height", 1.0))[-1:]
    assert first.left == 0.0
    with pytest.raises(RefusedError, match="nothing is left"):
        plan(school("age", earlier=evidence_of(first)), "transport")


def test_a_tightened_policy_is_judged_anew() -> None:
    """A smaller epsilon and a wider range: the joint proof is for the new promise, with what was drawn under the old one."""
    (first,) = released(("weight", 0.2), theta=(people({"slope": 0.01}),))
    wider = Secret("mean(income)", between=(0.0, 210_000.0))
    theta = (people({"slope": 0.01}),)
    made = plan(
        school("height", spend=0.5, epsilon=0.9, secrets=(wider,), theta=theta, earlier=evidence_of(first)), "transport"
    )
    assert made.certificate.follows(first.certificate)
    assert made.left < 0.5 * (1 - 0.2)
    assert evidence_of(made).distance() <= gaussian_mu(0.9, 1e-6)


def test_too_many_averages_are_refused() -> None:
    names = [f"c{k}" for k in range(MOST_STEPS + 1)]
    rho = dict.fromkeys(itertools.combinations([*names, "income"], 2), 0.0)
    rows = Gaussian(mean={"income": 60_000.0}, sd=dict.fromkeys(names, 1.0) | {"income": 3e4}, correlation=rho, tolerance=0)
    with pytest.raises(RefusedError, match="at most 40"):
        plan(school(*names, spend=0.5, theta=(rows,), resolution=dict.fromkeys(names, 0.001)), "transport")


def test_mixed_histories_are_refused_both_ways() -> None:
    (moved,) = released(("weight", 0.5))
    noisy = plan(school(spend=0.5), "gaussian")
    with pytest.raises(RefusedError, match="no rule covers"):
        plan(school("height", spend=0.5, earlier=noisy.certificate.evidence), "transport")
    with pytest.raises(RefusedError, match="no rule covers"):
        plan(school("height", spend=0.5, earlier=evidence_of(moved)), "gaussian")


def test_other_assumptions_share_no_budget() -> None:
    groups = Groups(
        sensitive="kind",
        mean={"a": {"weight": 170.0}, "b": {"weight": 180.0}},
        sd={"a": {"weight": 20.0}, "b": {"weight": 20.0}},
        prior={"a": 0.3, "b": 0.7},
        tolerance=0,
    )
    secret = Secret("share(kind = 'a')", between=(0.2, 0.4))
    with refuses(RefusedError, Cause.BUDGET, "spend 1"):
        plan(school(spend=0.5, theta=(groups,), secrets=(secret,)), "transport")
