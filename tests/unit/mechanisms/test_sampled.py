"""`gaussian_approximation` by simulation: by opt-in alone, deterministic, honest on skewness, and refused where not covered."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from attrpriv import errors
from attrpriv.assumptions import Gaussian, Groups, Hierarchy
from attrpriv.framework import Problem, Secret
from attrpriv.framework.sampling import Sampled
from attrpriv.guarantee import SampledEvidence
from attrpriv.mechanisms import plan as plan_problem
from attrpriv.mechanisms.plan import Plan
from attrpriv.mechanisms.registry import rank
from attrpriv.queries.sql import parse_queries

SD = {"weight": 25.0, "height": 4.0, "income": 30_000.0}
RHO = {("weight", "income"): 0.3, ("height", "income"): 0.2, ("weight", "height"): 0.5}
MEAN = {"weight": 150.0, "height": 66.0, "income": 60_000.0}
INCOME = Secret("mean(income)", between=(55_000, 65_000))
FAR = Secret("mean(income)", between=(0, 120_000))
SHARE = Secret("share(gender = 'F')", between=(0.25, 0.4))
FEW = Sampled(runs=3_000)
BY_NAME = "gaussian_approximation"
KINDS = ("var_pop(weight)", "covar_pop(weight, income)", "regr_slope(weight, height)", "regr_intercept(weight, height)")


def normal(tolerance: Any = 0, **changes: Any) -> Gaussian:
    return Gaussian(**{"mean": MEAN, "sd": SD, "correlation": RHO, "tolerance": tolerance, **changes})


def groups(tolerance: Any = 0, **changes: Any) -> Groups:
    given: dict[str, Any] = {
        "sensitive": "gender",
        "mean": {"F": {"hours": 36.0, "pay": 18.0}, "M": {"hours": 42.0, "pay": 25.0}},
        "sd": {"F": {"hours": 11.0, "pay": 7.0}, "M": {"hours": 12.0, "pay": 9.0}},
        "correlation": {"F": {"hours~pay": 0.7}, "M": {"hours~pay": 0.8}},
        "tolerance": tolerance,
    }
    return Groups(**{**given, **changes})


def problem(text: str, theta: Any = None, **changes: Any) -> Problem:
    about_groups = isinstance(theta, Groups)
    given: dict[str, Any] = {"queries": parse_queries(text), "epsilon": 1.0, "delta": 1e-6, "n": 2_000, "sampled": FEW}
    given |= {"secrets": (SHARE if about_groups else INCOME,), "theta": (normal() if theta is None else theta,)}
    return Problem(**{**given, **changes})


def plan(text: str, theta: Any = None, **changes: Any) -> Plan:
    return plan_problem(problem(text, theta, **changes), BY_NAME)


def evidence(found: Plan) -> SampledEvidence:
    assert isinstance(found.certificate.evidence, SampledEvidence)
    return found.certificate.evidence


# ------------------------------------------------------------------------------------------------------------ the opt-in


@pytest.mark.parametrize("text", KINDS)
def test_without_the_opt_in_it_is_refused_even_by_name(text: str) -> None:
    closed = problem(text, sampled=None)
    with pytest.raises(errors.RefusedError, match=r"add sampled: \{runs: 100000, confidence: 0.999999\}"):
        plan_problem(closed, BY_NAME)
    assert rank(closed).chosen is None


def test_auto_chooses_it_only_with_the_opt_in_even_where_a_plan_exists() -> None:
    ranking = rank(problem("var_pop(weight)"))
    assert ranking.chosen is not None
    assert ranking.chosen.guarantee.kind == "sampled"
    closed = type(ranking)(problem("var_pop(weight)", sampled=None), ranking.plans, ranking.refused)
    assert closed.chosen is None  # the plan is there, and is passed over


@pytest.mark.parametrize("text", KINDS)
def test_the_plan_says_what_it_is(text: str) -> None:
    found = plan(text)
    assert found.guarantee.kind == "sampled"
    assert found.guarantee.confidence == 0.999999
    assert found.guarantee.label == "sampled, confidence 0.999999" in str(found)
    assert "confidence 0.999999" in found.guarantee.statement
    (entry,) = found.entries(chosen=True)
    assert entry["guarantee"]["kind"] == "sampled"
    assert entry["guarantee"]["confidence"] == 0.999999
    assert found.left == 0
    assert evidence(found).final
    assert any("nothing about them is tested" in line for line in found.certificate.assumes)
    assert any("is taken as normal" in line for line in found.certificate.assumes)
    assert found.warnings
    assert found.warnings[0].startswith("fragile: epsilon 1 rests on rows without any skewness")
    assert Plan.from_json(found.to_json()) == found
    assert "sampled, confidence 0.999999" in found._repr_html_()


def test_other_guarantees_have_no_confidence() -> None:
    shown = plan_problem(problem("avg(weight)"), "gaussian").guarantee
    assert shown.label == "proved"
    assert "confidence" not in shown.to_json()


# ---------------------------------------------------------------------------------------------------------- determinism


def test_a_plan_is_a_function_of_public_facts_and_its_seed_of_policy_query_and_rows() -> None:
    from attrpriv.calibration.sampled import draw

    text = KINDS[3]
    first = plan(text)
    draw.cache_clear()
    assert plan(text) == first
    facts = ((text, "", 2_000), (text, "x", 2_000), (text, "", 2_001), (KINDS[0], "", 2_000))
    seeds = {evidence(plan(asked, policy_digest=digest, n=n)).seed for asked, digest, n in facts}
    assert len(seeds) == 4
    assert evidence(first).seed in first.notes[0]
    assert "no seed" in first.notes[0]


# --------------------------------------------------------------------------------------------------------- what it says


@pytest.mark.parametrize("text", KINDS[:3])
def test_squares_of_normal_rows_tell_nothing_of_a_mean_and_still_get_noise(text: str) -> None:
    found = evidence(plan(text, normal({"mean": 0.1, "sd": 0.05, "slope": 0.1})))
    assert all(check.gap == 0 and check.spread == 0 for check in found.checks)
    assert 0 < found.floor <= found.scale <= found.floor * (1 + 1e-6)
    assert found.floor == pytest.approx(math.sqrt(found.checks[0].least) / 50)


def test_an_intercept_moves_as_theory_says() -> None:
    """d = slope of weight less the slope on height times that of height, on income."""
    b, weight, height = 0.5 * 25 / 4, 0.3 * 25 / 30_000, 0.2 * 4 / 30_000
    (check,) = evidence(plan("regr_intercept(weight, height)", sampled=Sampled(runs=50_000))).checks
    assert check.gap == pytest.approx(abs(weight - b * height) * 10_000, rel=0.05)
    assert check.gap > abs(weight - b * height) * 10_000
    assert len(check.values) == 9


def test_pairs_that_are_close_need_less_noise() -> None:
    near = Secret("mean(income)", between=(0, 120_000), within=1_000)
    wide, close = (plan("regr_intercept(weight, height)", secrets=(secret,)) for secret in (FAR, near))
    assert close.noise.scale < 0.5 * wide.noise.scale
    assert [len(check.values) for check in evidence(close).checks] == [3] * 5


def test_a_sum_is_hidden_as_its_mean() -> None:
    total = Secret("sum(income)", between=(55_000 * 2_000, 65_000 * 2_000))
    one, other = (plan("regr_intercept(weight, height)", secrets=(secret,)) for secret in (INCOME, total))
    assert one.noise.scale == pytest.approx(other.noise.scale, rel=1e-9)


def test_a_mean_tolerance_of_an_intercept_is_covered_and_a_zero_average_has_the_least_variance() -> None:
    own = Secret("mean(height)", between=(-0.5, 1.0))
    centred = {**MEAN, "height": 0.2}
    many = Sampled(runs=20_000)
    (check,) = evidence(plan("regr_intercept(weight, height)", normal(mean=centred), secrets=(own,), sampled=many)).checks
    stated = 25**2 * 0.75 / 2_000  # at height 0 the slope's error does not count
    assert check.least < stated < 1.15 * check.least
    assert check.laws == 2
    tolerant = normal({"mean": 0.05, "correlation": 0}, mean={**MEAN, "height": 5.0})
    (moved,) = evidence(plan("regr_intercept(weight, height)", tolerant)).checks
    (exact,) = evidence(plan("regr_intercept(weight, height)", normal(mean={**MEAN, "height": 5.0}))).checks
    assert moved.laws == 2
    assert moved.spread > exact.spread
    assert moved.least < exact.least


def test_a_quantile_moves_with_its_slope_and_is_bounded_by_its_rows() -> None:
    few = {"n": 400, "sampled": Sampled(runs=2_000)}
    (check,) = evidence(plan("median(weight)", **few)).checks
    assert check.gap == pytest.approx(0.3 * 25 / 30_000 * 10_000, rel=1e-7)
    variance = 25**2 / 400 * (math.pi / 2 - 0.09)  # asymptotic
    assert 0.75 * variance < check.least < variance
    tolerant = normal({"sd": 0.05, "correlation": 0.05})
    assert plan("median(weight)", tolerant, **few).noise.scale > plan("median(weight)", **few).noise.scale
    with pytest.raises(errors.RefusedError, match=r"Got 200,000,000. State runs: 50000 or fewer"):
        plan("median(weight)", sampled=Sampled(runs=100_000))


def test_variances_of_groups_cover_their_tolerance() -> None:
    exact, wide = (evidence(plan("var_pop(hours)", groups(t))) for t in (0, {"mean": 0.02, "sd": 0.02}))
    assert [check.laws for check in (*exact.checks, *wide.checks)] == [1, 8]
    assert wide.checks[0].gap > exact.checks[0].gap
    assert wide.checks[0].least < exact.checks[0].least
    assert wide.scale > exact.scale

    def mean(a: float) -> float:
        return (a * 121 + (2_000 - a) * 144) / 2_000 * (1 - 1 / 2_000) + a * (2_000 - a) / 2_000**2 * 36

    assert exact.checks[0].gap > abs(mean(500) - mean(800))


@pytest.mark.parametrize("text", ["covar_pop(hours, pay)", "regr_slope(pay, hours)", "regr_intercept(pay, hours)"])
def test_groups_cover_regressions_for_exact_moments(text: str) -> None:
    found = plan(text, groups())
    assert found.noise.scale > evidence(found).floor
    assert not any(note.startswith("fragile: epsilon 1 rests") for note in found.notes)  # moments alone move it
    assert [row.epsilon for row in found.model_error] == sorted(row.epsilon or 0 for row in found.model_error)
    with pytest.raises(errors.RefusedError, match="exact moments"):
        plan(text, groups({"mean": 0.01, "sd": 0}))


def test_counts_that_must_look_alike_are_as_far_apart_as_stated() -> None:
    """m_a of a variance is known: the gap is its largest step over `within`, and what the draws leave open."""

    def mean(a: float) -> float:
        return (a * 121 + (2_000 - a) * 144) / 2_000 * (1 - 1 / 2_000) + a * (2_000 - a) / 2_000**2 * 36

    gaps = []
    for rows in (1, 50, 200, 300):
        near = Secret("count(gender = 'F')", between=(500, 800), within=rows)
        (check,) = evidence(plan("var_pop(hours)", groups(), secrets=(near,))).checks
        assert (check.values[0], check.values[-1]) == (500, 800)
        gaps.append(check.gap - max(abs(mean(a) - mean(a + rows)) for a in range(500, 801 - rows)))
    assert min(gaps) > 0
    assert max(gaps) < 3 * min(gaps)  # chance alone, the same for all


def test_a_mean_that_turns_inside_a_window_is_seen() -> None:
    """Of two groups of equal spread var_pop is largest at half and half: values alike at both ends differ inside."""
    apart = groups(mean={"F": {"hours": 30.0}, "M": {"hours": 50.0}}, sd={c: {"hours": 10.0} for c in "FM"}, correlation=None)
    for within in (None, 0.2, 0.19):
        near = Secret("share(gender = 'F')", between=(0.4, 0.6), within=within)
        checks = evidence(plan("var_pop(hours)", apart, secrets=(near,))).checks
        assert max(check.gap for check in checks) > 400 * 0.095**2  # m = 100 + 400 p (1 - p)


# --------------------------------------------------------------------------------------------------------------- refusals

HIERARCHY = Hierarchy(
    mean={"weight": 150.0, "income": 60.0},
    between_sd={"weight": 5.0, "income": 8.0},
    between_correlation={"weight~income": 0.3},
    within_sd={"weight": 25.0, "income": 30.0},
    tolerance=0,
)
NEITHER = Secret("mean(income)", within=1_000)
REFUSED: dict[str, tuple[str, Any, dict[str, Any], str]] = {
    "two at once": ("SELECT var_pop(weight), var_pop(height) FROM data", None, {}, "one statistic at a time"),
    "arithmetic": ("var_pop(weight + height)", None, {}, "of columns as they are"),
    "a filter": ("var_pop(weight) filter (where height > 66)", None, {}, "over some rows"),
    "known rows": ("var_pop(weight)", None, {"known_rows": 0.01}, "known_rows"),
    "single rows": ("var_pop(weight)", None, {"individuals": 1.0}, "individuals"),
    "a share of the budget": ("var_pop(weight)", None, {"spend": 0.5}, "one release alone"),
    "few rows": ("var_pop(weight)", None, {"n": 99}, "from 100 rows on"),
    "visibly not normal": ("var_pop(weight)", None, {"n": 100, "sampled": Sampled(runs=100_000)}, "away from a normal one"),
    "no range": ("regr_intercept(weight, height)", None, {"secrets": (NEITHER,)}, "needs between"),
    "sd tolerance": ("regr_intercept(weight, height)", normal({"sd": 0.1, "slope": 0}), {}, "exact sds"),
    "coarse values": ("var_pop(height)", None, {"resolution": {"height": 3.0}}, "twice the spacing"),
    "coarse quantile": (
        "median(weight)",
        None,
        {"resolution": {"weight": 12.0}, "sampled": Sampled(runs=1_000)},
        "its own spread",
    ),
    "three categories": (
        "var_pop(hours)",
        groups(mean={c: {"hours": 1.0} for c in "FMX"}, sd={c: {"hours": 1.0} for c in "FMX"}, correlation=None),
        {},
        "two categories",
    ),
    "a population": (
        "var_pop(hours)",
        groups(),
        {"secrets": (Secret(parameter="share(gender = 'F')", between=(0.2, 0.4)),)},
        "not of a population",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_covered_is_refused_with_its_reason(case: str) -> None:
    text, theta, changes, reason = REFUSED[case]
    with pytest.raises((errors.RefusedError, errors.UsageError), match=reason):
        plan(text, theta, **changes)


USAGE: dict[str, tuple[str, dict[str, Any], str]] = {
    "no delta": ("var_pop(weight)", {"delta": 0.0}, "delta above 0"),
    "classical": ("var_pop(weight)", {"calibration": "classical"}, "analytic"),
    "unknown column": ("var_pop(age)", {}, "age must have a standard deviation"),
    "no mean": ("var_pop(weight)", {"theta": normal(mean={"income": 60_000.0})}, "mean of weight"),
    "no mean of x": ("regr_intercept(weight, height)", {"theta": normal(mean={"income": 6e4})}, "mean of height"),
}


@pytest.mark.parametrize("case", USAGE)
def test_a_policy_that_says_too_little_is_bad_usage(case: str) -> None:
    text, changes, reason = USAGE[case]
    with pytest.raises(errors.UsageError, match=reason):
        plan(text, **changes)


def test_other_assumptions_are_refused_by_name() -> None:
    with pytest.raises(errors.RefusedError, match="needs a gaussian or groups assumption"):
        plan("var_pop(weight)", HIERARCHY, secrets=(Secret(parameter="income"),))
    with pytest.raises(errors.RefusedError, match="needs a gaussian or groups assumption"):
        plan_problem(problem("var_pop(weight)").model_copy(update={"theta": ()}), BY_NAME)


def test_a_shape_tolerance_is_charged_and_makes_room() -> None:
    text, rows = "var_pop(weight)", {"n": 120, "sampled": Sampled(runs=100_000), "delta": 1e-2}
    with pytest.raises(errors.RefusedError, match="state a shape"):
        plan(text, **rows)
    shaped = normal({"correlation": 0, "shape": {"lambda": 0.05, "eta": 1e-4}})
    found = evidence(plan(text, shaped, **rows))
    assert (found.shape_lambda, found.shape_eta) == (0.05, 1e-4)
    assert found.allowed > 0.05


# --------------------------------------------------------------------------------------------------------- the evidence


def test_the_certificate_is_recomputed_and_catches_what_is_changed() -> None:
    found = plan("regr_intercept(weight, height)", secrets=(FAR,))
    found.verify()
    told = evidence(found)
    (check,) = told.checks
    planted: list[dict[str, Any]] = [
        {"scale": told.scale * 0.99},
        {"scale": told.floor * 0.99},
        {"allowed": told.distance * 0.99},
        {"tail": told.tail * 1.01},
        {"tail": told.tail / 1000, "skewness": told.skewness * 100},
        {"kurtosis": told.kurtosis * 1000},
        {"skewness": math.nan},
        {"checks": (check.model_copy(update={"gap": check.gap * 1.01}),)},
        {"checks": (check.model_copy(update={"spread": check.spread + 4 * check.least}),)},
        {"checks": (check.model_copy(update={"least": check.least / 4}),)},
        {"checks": (check.model_copy(update={"least": -check.least}),)},
        {"checks": (check.model_copy(update={"gap": math.nan}),)},
        {"checks": ()},
    ]
    for change in planted:
        certificate = found.certificate.model_copy(update={"evidence": told.model_copy(update=change)})
        with pytest.raises(errors.CertificateError):
            certificate.verify()


def test_a_plan_that_draws_or_reads_otherwise_is_not_released() -> None:
    found = plan("regr_intercept(weight, height)")
    (part,) = found.columns
    assert found.statistic is not None
    clipped = found.statistic.model_copy(update={"clips": {"weight": (0.0, 1.0), "height": None}})
    kept = found.statistic.model_copy(update={"range": (0.0, 1.0)})
    less = part.model_copy(update={"independent": part.independent / 2})
    changes: tuple[dict[str, Any], ...] = (
        {"statistic": clipped},
        {"statistic": kept},
        {"columns": (less,)},
        {"statistic": None},
    )
    for change in changes:
        with pytest.raises(errors.CertificateError):
            found.model_copy(update=change).randomise(1.0)
    assert math.isfinite(found.randomise(1.0))


# ------------------------------------------------------------------------------------------------------------- skewness


def skewed_rows(text: str, runs: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """y and x of many tables: sums of exponential parts that share one; of a regression, y with a curve in x."""
    generator = np.random.default_rng(8)
    if text.startswith("regr"):
        x = 2 + 2**0.5 * generator.standard_normal((runs, n))
        return 0.4 * (x - 2) ** 2 + generator.standard_normal((runs, n)), x
    parts = generator.exponential(size=(3, runs, n))
    return parts[0] + parts[1], parts[0] + parts[2]


@pytest.mark.parametrize("text", ["var_pop(x)", "covar_pop(y, x)", "regr_slope(y, x)", "regr_intercept(y, x)"])
def test_what_skewness_does_is_reported_in_its_order(text: str) -> None:
    """The regression of the statistic on the secret mean, over many tables of such rows, against co-skewness times `skewed`.

    The standard error of the regression is below 3% of it in each case: bounds at five of them, false alarms below 1e-6.
    """
    n, runs = 150, 6_000
    y, x = skewed_rows(text, runs, n)
    sds, rho = {"x": float(x.std()), "y": float(y.std())}, float(np.corrcoef(x.ravel(), y.ravel())[0, 1])
    zx, zy = (x - x.mean()) / sds["x"], (y - y.mean()) / sds["y"]
    co_skewness = max(abs(float((zx * zx * other).mean())) for other in (zx, zy))
    theta = Gaussian(mean={"x": 2.0, "y": float(y.mean())}, sd=sds, correlation={"x~y": rho}, tolerance=0)
    hidden = Secret("mean(x)", between=(1.9, 2.1))
    (check,) = evidence(plan(text, theta, secrets=(hidden,), n=n, sampled=Sampled(runs=2_000))).checks
    means, squares = x.mean(axis=1), x.var(axis=1)
    shared = (x * y).mean(axis=1) - means * y.mean(axis=1)
    slope = shared / squares
    seen = {"var": squares, "cov": shared, "regr_slope": slope, "regr_i": y.mean(axis=1) - slope * means}
    drawn = next(values for name, values in seen.items() if text.startswith(name))
    moved = abs(np.cov(drawn, means)[0, 1] / means.var(ddof=1)) * 0.2
    predicted = co_skewness * (check.skewed or 0.0)
    assert 0.4 * predicted < moved < 1.15 * predicted
    assert moved > 3 * check.gap  # what normal rows would do, intervals included


def test_epsilon_grows_with_skewness() -> None:
    found = plan("var_pop(income)")
    epsilons = [row.epsilon or math.inf for row in found.model_error]
    assert epsilons == sorted(epsilons)
    assert epsilons[-1] > 5
    unbounded = plan("var_pop(income)", secrets=(Secret("mean(income)", cases=("< 60000", ">= 60000")),))
    assert [row.epsilon for row in unbounded.model_error] == [None] * 4
