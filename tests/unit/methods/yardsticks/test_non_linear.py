"""Variances, covariances, regressions and quantiles kept in a range: how far they move, and what their noise hides, exactly."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.errors import Cause, CertificateError, RefusedError, UsageError
from attrpriv.methods.base.column_plan import StatisticPlan
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.ranged import ranged
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.methods.markov_quilt.proof import QuiltEvidence
from attrpriv.numerics.networks.network import Network, Node
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries
from tests.refusing import refuses
from tests.unit.queries.small_tables import Rows, answers, value_of

COIN = Node(states=("0", "1"), table=((0.5, 0.5),))
# The secret i; x tells something of it, y nearly nothing, z is free of it.
NETWORK = Network(
    nodes={
        "i": COIN,
        "x": Node(states=("0", "1"), parents=("i",), table=((0.7, 0.3), (0.3, 0.7))),
        "y": Node(states=("0", "1"), parents=("i",), table=((0.55, 0.45), (0.45, 0.55))),
        "z": COIN,
    }
)
BOUNDS = {"x": (0.0, 3.0), "y": (-1.0, 1.0), "z": (0.0, 2.0), "free": (0.0, 2.0)}


def one(text: str) -> Query:
    (query,) = parse_queries(text)
    return query


def problem(text: str = "var_pop(x)", **changes: Any) -> Problem:
    given: dict[str, Any] = {
        "queries": parse_queries(text),
        "secrets": (Parameter("i"),),
        "epsilon": 0.5,
        "n": 4,
        "theta": (ParameterNetwork(network=NETWORK, tolerance=0),),
        "bounds": BOUNDS,
    }
    return Problem(**(given | changes))


def how_of(found: Plan) -> StatisticPlan:
    assert found.statistic is not None
    return found.statistic


# -------------------------------------------------------------------------------------------- how far a statistic can move


@cache
def listed(query: Query, values: tuple[tuple[str, Sequence[float]], ...], n: int) -> list[tuple[Rows, Fraction | None]]:
    return answers(query, dict(values), n)


def attained(
    query: Query, how: StatisticPlan, values: Mapping[str, Sequence[float]], n: int, changed: Sequence[str]
) -> Fraction:
    """The largest change of the answer over all pairs of tables that differ in these columns only."""
    seen: dict[tuple[Any, ...], tuple[Fraction, Fraction]] = {}
    for rows, value in listed(query, tuple(values.items()), n):
        fixed = tuple(rows[name] for name in query.columns if name not in changed)
        kept = how.kept(value)
        low, high = seen.get(fixed, (kept, kept))
        seen[fixed] = min(low, kept), max(high, kept)
    return max(high - low for low, high in seen.values())


VALUES = {"x": (0, 1, 3), "y": (-1, 1)}
RANGES = {"regr_slope(y, x)": (-0.5, 0.75), "regr_intercept(y, x)": (-1.0, 2.0)}
# Each statistic, and a sensitivity that somebody might take for it and that is too small.
MOVED = {
    "var_pop(x)": 9 / 5,
    "covar_pop(x, y)": 3 * 2 / 4,
    "median(x)": 2.5,
    "approx_quantile(x, 0.75)": 2.5,
    "regr_slope(y, x)": 1.2,
    "regr_intercept(y, x)": 2.9,
}


@pytest.mark.parametrize("text", MOVED)
def test_nothing_moves_further_than_claimed_and_the_claim_is_reached(text: str) -> None:
    query = one(text)
    found = ranged(problem(text, ranges=RANGES))
    used = {name: VALUES[name] for name in query.columns}
    most = attained(query, found.how, used, 4, query.columns)
    assert Fraction(MOVED[text]) < most <= Fraction(found.width)
    assert most == Fraction(found.width)
    for name in query.columns:  # one column alone moves it no further, and the claim is the same
        alone = attained(query, found.how, used, 4, [name])
        assert alone <= Fraction(found.width)
    assert attained(query, found.how, used, 4, []) == 0


def test_one_column_moves_a_covariance_all_the_way() -> None:
    """So no credit may be given for the other one staying as it is; R_x R_y / 4 would be half of what is needed."""
    query = one("covar_pop(x, y)")
    found = ranged(problem("covar_pop(x, y)"))
    assert attained(query, found.how, VALUES, 4, ["x"]) == Fraction(found.width) == 3


def test_an_odd_number_of_rows_and_an_expression_stay_below() -> None:
    for text, n in (("var_pop(x)", 3), ("var_pop(x + 2 * y)", 3), ("covar_pop(x, x * y)", 3), ("median(x * y)", 3)):
        query, found = one(text), ranged(problem(text))
        used = {name: VALUES[name] for name in query.columns}
        assert 0 < attained(query, found.how, used, n, query.columns) <= Fraction(found.width)


def test_without_its_range_a_slope_moves_further() -> None:
    """The planted mistake: the answer is hardly clipped."""
    query = one("regr_slope(y, x)")
    found = ranged(problem("regr_slope(y, x)", ranges=RANGES))
    free = found.how.model_copy(update={"range": (-1e9, 1e9)})
    assert attained(query, free, VALUES, 4, query.columns) > Fraction(found.width)


# ---------------------------------------------------------------------------------------- the privacy loss, by enumeration

Laws = Mapping[str, Mapping[Any, Mapping[tuple[Fraction, ...], float]]]


def random_laws(rng: random.Random, values: Mapping[str, Sequence[float]], n: int, parameters: Mapping[str, int]) -> Laws:
    """Of each column, given its parameter, some law of all its entries: rows may depend on each other in any way."""
    found: dict[str, dict[Any, dict[tuple[Fraction, ...], float]]] = {}
    for name, listed in values.items():
        vectors = list(itertools.product(map(Fraction, listed), repeat=n))
        found[name] = {}
        for state in range(parameters[name]):
            chosen = rng.sample(vectors, min(len(vectors), 4))
            weights = [rng.random() ** 4 for _ in chosen]
            found[name][state] = {v: w / sum(weights) for v, w in zip(chosen, weights, strict=True)}
    return found


def answer_law(query: Query, how: StatisticPlan, step: float, laws: Laws, secret: int) -> dict[int, float]:
    """Of the answer in steps of the noise's grid, given phi_i. A column outside the network follows phi_i itself."""
    found: dict[int, float] = {}
    inside = [name for name in query.columns if name in NETWORK.nodes]
    for states in itertools.product((0, 1), repeat=len(inside)):
        shown = dict(zip(inside, states, strict=True))
        chance = math.prod(_conditional(name, state, secret) for name, state in shown.items())
        for vectors in itertools.product(*(laws[name][shown.get(name, secret)].items() for name in query.columns)):
            rows = {name: vector for name, (vector, _) in zip(query.columns, vectors, strict=True)}
            place = round(how.kept(value_of(query, rows)) / Fraction(step))
            found[place] = found.get(place, 0.0) + chance * math.prod(weight for _, weight in vectors)
    return found


def _conditional(name: str, state: int, secret: int) -> float:
    node = NETWORK.nodes[name]
    return float(node.table[secret if node.parents else 0][state])


def loss(first: Mapping[int, float], second: Mapping[int, float], rate: float) -> float:
    """The largest log-ratio of the two laws of a noisy answer.

    Between two neighbouring places the ratio is (A t + B)/(C t + D) in t = e^(2 w rate), which is monotone: only the places
    count. Without noise, the ratio of the probabilities.
    """
    places = sorted({*first, *second})
    return max(abs(math.log(_mass(first, w, rate) / _mass(second, w, rate))) for w in places)


def _mass(law: Mapping[int, float], w: int, rate: float) -> float:
    if math.isinf(rate):
        return law.get(w, 0.0) or 1e-300
    return sum(p * math.exp(-abs(w - place) * rate) for place, p in law.items())


def rate_of(found: Plan) -> tuple[float, float]:
    """The grid, and how fast the noise falls in a step of it."""
    evidence = found.certificate.evidence
    assert isinstance(evidence, QuiltEvidence)
    (term,) = evidence.terms
    return (term.granularity, term.granularity / term.scale) if term.scale else (2.0**-40, math.inf)


ASKED = (
    ("var_pop(x)", 0.5), ("var_pop(x)", 1.0), ("covar_pop(x, y)", 0.5), ("covar_pop(x, free)", 1.0), ("median(free)", 0.7),
    ("regr_slope(y, x)", 0.4), ("regr_slope(y, free)", 0.4), ("var_pop(z)", 0.1), ("covar_pop(y, z)", 0.25),
)  # fmt: skip


@pytest.mark.parametrize("laws", [8, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("text", "epsilon"), ASKED)
def test_the_noisy_answer_loses_at_most_epsilon(text: str, epsilon: float, laws: int) -> None:
    query = one(text)
    found = plan(problem(text, epsilon=epsilon, n=3, ranges={**RANGES, "regr_slope(y, free)": (-0.5, 0.5)}), "markov_quilt")
    step, rate = rate_of(found)
    rng = random.Random(text)
    used = {name: (0, 1, 2) if name in ("z", "free") else VALUES[name] for name in query.columns}
    worst = 0.0
    for _ in range(laws):
        law = random_laws(rng, used, 3, dict.fromkeys(used, 2))
        given = [answer_law(query, how_of(found), step, law, secret) for secret in (0, 1)]
        worst = max(worst, loss(given[0], given[1], rate))
    assert worst <= epsilon * (1 + 1e-9)


def test_the_worst_law_needs_all_of_the_noise() -> None:
    """A column of which nothing is assumed follows the secret itself; with noise for half the range it would show."""
    query = one("covar_pop(x, free)")
    found = plan(problem("covar_pop(x, free)", n=4, epsilon=1.0), "markov_quilt")
    step, rate = rate_of(found)
    half = tuple(map(Fraction, (0, 0, 3, 3)))
    with_it, against = tuple(map(Fraction, (0, 0, 2, 2))), tuple(map(Fraction, (2, 2, 0, 0)))
    laws: Laws = {"x": {0: {half: 1.0}, 1: {half: 1.0}}, "free": {0: {with_it: 1.0}, 1: {against: 1.0}}}
    given = [answer_law(query, how_of(found), step, laws, secret) for secret in (0, 1)]
    assert 0.999 < loss(given[0], given[1], rate) <= 1.0 + 1e-9
    assert loss(given[0], given[1], 2 * rate) > 1.5


# ------------------------------------------------------------------------------------------------------------------ plans


def test_a_remote_column_is_answered_exactly() -> None:
    found = plan(problem("var_pop(z)"), "markov_quilt")
    assert found.noise.kind == "none"
    assert found.answers([Fraction(1, 4)]) == (0.25,)
    assert found.answers([Fraction(7)]) == (1.0,)  # its range is [0, (2/2)^2]
    assert any("the exact answer is private" in note for note in found.notes)


def test_group_dp_needs_no_assumption() -> None:
    found = plan(problem("covar_pop(x, y)", theta=()), "group_dp")
    assert found.noise.scale == pytest.approx(3 / 0.5)
    assert found.error.rmse == pytest.approx(math.sqrt(2) * 6)
    assert isinstance(found.answers([Fraction(0)])[0], float)
    assert found.spread_of(found.queries[0]).reach(0.95) == pytest.approx(6 * math.log(20), rel=1e-6)


def test_auto_prefers_a_proof_that_can_go_on() -> None:
    ranking = rank(problem("var_pop(x)"))
    assert {one.mechanism for one in ranking.plans} == {"group_dp", "markov_quilt"}
    assert ranking.chosen is not None
    assert ranking.chosen.mechanism == "markov_quilt"


def test_auto_prefers_a_view_to_noise_of_the_whole_range() -> None:
    """As without bounds: the view's error is not known before it is drawn, but it is not a multiple of the range."""
    hidden = Secret(secret="share(z = 1)", between=(0.2, 0.6))
    ranking = rank(problem("var_pop(x)", secrets=(hidden,), theta=(), n=1000))
    assert {one.mechanism for one in ranking.plans} == {"group_dp", "subsample"}
    assert ranking.chosen is not None
    assert ranking.chosen.mechanism == "subsample"


def test_a_declared_range_is_cut_to_what_bounds_allow() -> None:
    how = ranged(problem("var_pop(x)", ranges={"var_pop(x)": (-5.0, 1.0)})).how
    assert how.range == (0.0, 1.0)
    with refuses(UsageError, Cause.MISTAKE, "ranges"):
        plan(problem("var_pop(x)", ranges={"var_pop(x)": (7.0, 8.0)}), "markov_quilt")


def test_a_quantile_needs_bounds_or_a_range() -> None:
    found = ranged(problem("median(x)", bounds={}, ranges={"median(x)": (0.0, 2.0)}))
    assert (found.width, found.how.clips) == (2.0, {"x": (0.0, 2.0)})
    with refuses(RefusedError, Cause.PUBLIC_FACT, "bounds of x"):
        plan(problem("median(x)", bounds={}), "group_dp")
    with refuses(RefusedError, Cause.PUBLIC_FACT, "bounds of x"):
        plan(problem("median(2 * x)", bounds={}, ranges={"median(2 * x)": (0.0, 2.0)}), "group_dp")


def test_an_undefined_regression_answers_the_middle() -> None:
    how = ranged(problem("regr_slope(y, x)", ranges=RANGES)).how
    assert how.kept(None) == Fraction(1, 8)
    assert how.kept(Fraction(10**9)) == Fraction(3, 4)
    with pytest.raises(CertificateError, match="must have a public answer"):
        StatisticPlan(fills={}, clips={}, range=(0.0, 1.0)).kept(None)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a regression says what to declare": (
        {"text": "regr_slope(y, x)"},
        r"Declare ranges: \{'regr_slope\(y, x\)': \[low, high\]\}",
    ),
    "with a range, rows need bounds too": (
        {"text": "regr_slope(y, x)", "ranges": RANGES, "bounds": {"x": (0.0, 3.0)}},
        r"declare bounds: \{y: \[low, high\]\}",
    ),
    "one at a time": ({"text": "var_pop(x), var_pop(y)"}, "one variance, covariance, regression or quantile at a time"),
    "no average beside it": ({"text": "avg(x), var_pop(y)"}, r"ask for var_pop\(y\) in a release of its own"),
    "single persons": ({"text": "median(x)", "individuals": 1.0}, "single persons are not protected"),
    "some rows": ({"text": "var_pop(x) filter (where y > 0)"}, "over some rows"),
    "groups": ({"text": "SELECT z, median(x) FROM data GROUP BY z"}, "over some rows"),
    "too wide": ({"text": "var_pop(x)", "bounds": {"x": (-1e300, 1e300)}}, "floats must hold what"),
}


@pytest.mark.parametrize("mechanism", ["markov_quilt", "group_dp"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_covered_is_refused(name: str, mechanism: str) -> None:
    changes, reason = REFUSED[name]
    with pytest.raises((RefusedError, UsageError), match=reason):
        plan(problem(**changes), mechanism)


def test_other_mechanisms_name_this_way() -> None:
    with refuses(RefusedError, Cause.STATISTIC, "a view"):
        plan(problem("var_pop(x)"), "laplace")


# --------------------------------------------------------------------------------- what a plan may not draw: forged numbers

FORGED: dict[str, dict[str, Any]] = {
    "a wider range": {"range": (0.0, 9.0)},
    "another column": {"fills": {"y": None}, "clips": {"y": (-1.0, 1.0)}},
}


@pytest.mark.parametrize("mechanism", ["markov_quilt", "group_dp"])
@pytest.mark.parametrize("name", FORGED)
def test_a_changed_reading_is_not_covered(name: str, mechanism: str) -> None:
    found = plan(problem("var_pop(x)"), mechanism)
    forged = found.model_copy(update={"statistic": how_of(found).model_copy(update=FORGED[name])})
    with pytest.raises(CertificateError):
        forged.answers([Fraction(1)])


def test_a_changed_query_or_noise_is_not_covered() -> None:
    found = plan(problem("covar_pop(x, y)"), "markov_quilt")
    less = found.columns[0].model_copy(update={"noise": found.noise.model_copy(update={"scale": 0.1})})
    for changes in ({"queries": (one("covar_pop(x, z)"),)}, {"columns": (less,)}, {"statistic": None}):
        with pytest.raises(CertificateError):
            found.model_copy(update=changes).answers([Fraction(1)])


def test_a_term_that_names_fewer_columns_is_not_covered() -> None:
    """Else a set S with x alone would be taken to know all of covar_pop(x, y)."""
    found = plan(problem("covar_pop(x, y)"), "markov_quilt")
    evidence = found.certificate.evidence
    assert isinstance(evidence, QuiltEvidence)
    forged = evidence.model_copy(update={"terms": (evidence.terms[0].model_copy(update={"columns": ("x",)}),)})
    certificate = found.certificate.model_copy(update={"evidence": forged})
    with pytest.raises(CertificateError):
        found.model_copy(update={"certificate": certificate}).answers([Fraction(1)])


def test_releases_follow_each_other_under_one_set() -> None:
    first = plan(problem("avg(x)", spend=0.5), "markov_quilt")
    earlier = first.certificate.evidence
    second = plan(problem("covar_pop(x, y)", earlier=earlier, spend=0.5), "markov_quilt")
    third = plan(problem("regr_slope(y, x)", earlier=second.certificate.evidence, ranges=RANGES), "markov_quilt")
    evidence = third.certificate.evidence
    assert isinstance(evidence, QuiltEvidence)
    assert evidence.follows(second.certificate.evidence)
    assert [terms.columns for terms in evidence.earlier] == [("x",), ("x", "y")]
    assert 0.45 < evidence.loss() <= 0.5
    again = Plan.from_json(third.to_json())
    again.verify()
    assert again == third
