"""`laplace`, `gaussian`, `wasserstein`, `optimal` and `constant` where a parameter of the population is hidden in a count."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.errors import Cause, CertificateError, RefusedError, UsageError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.methods.parameter_counts import plan as parameter_plan
from attrpriv.methods.parameter_counts.proof import (
    ParameterKernelEvidence,
    ParameterNoiseEvidence,
    ParameterWassersteinEvidence,
)
from attrpriv.numerics.laws.parameter_counts import ParameterCounts
from attrpriv.numerics.networks.network import Network, Node
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from tests.refusing import refuses

FLIP = ((0.7, 0.3), (0.3, 0.7))
TALL = Query("count", where="tall = 1")
NOISY = ("laplace", "gaussian", "wasserstein")


def network(table: tuple[tuple[float, float], ...] = FLIP, states: tuple[str, str] = ("0.3", "0.5")) -> Network:
    income = Node(states=("low", "high"), table=((0.5, 0.5),))
    return Network(nodes={"income": income, "tall": Node(states=states, parents=("income",), table=table)})


def assumed(over: Network | None = None, **changes: Any) -> ParameterNetwork:
    given: dict[str, Any] = {"attributes": {"tall": {"family": "bernoulli"}}, "tolerance": 0}
    return ParameterNetwork(network=over or network(), **(given | changes))


def problem(**changes: Any) -> Problem:
    given: dict[str, Any] = {
        "queries": (TALL,),
        "secrets": (Parameter("income"),),
        "epsilon": 0.5,
        "n": 20,
        "theta": (assumed(),),
        "types": {"tall": "integer"},
    }
    return Problem(**(given | changes))


def paper(epsilon: float, **changes: Any) -> Problem:
    """The paper's second example: phi_1 = 0.6 - 0.2 phi_2, four persons, the sum of X_1."""
    nodes = {
        "x2": Node(states=("0.2", "0.8"), table=((0.5, 0.5),)),
        "x1": Node(states=("0.56", "0.44"), parents=("x2",), table=((1, 0), (0, 1))),
    }
    theta = ParameterNetwork(network=Network(nodes=nodes), attributes={"x1": {"family": "bernoulli"}}, tolerance=0)
    given: dict[str, Any] = {"queries": (Query("sum", "x1"),), "secrets": (Parameter("x2"),), "n": 4, "bounds": {"x1": (0, 1)}}
    return Problem(**(given | {"epsilon": epsilon, "theta": (theta,)} | changes))


# ---------------------------------------------------------------------------------------------------------------- numbers


def test_the_papers_example() -> None:
    wanted = {"optimal": 0.1232, "laplace": 0.7012, "wasserstein": 1.9190, "markov_quilt": 8.0}
    errors = {name: plan(paper(0.5), name).error.mean_absolute for name in wanted}
    assert errors == pytest.approx(wanted, abs=5e-5)
    moved = plan(paper(0.5), "wasserstein")
    assert "W = 1." in moved.notes
    assert moved.noise.scale == pytest.approx(2.0)
    assert plan(paper(0.5)).mechanism == "optimal"


def test_no_noise_where_the_laws_are_alike_already() -> None:
    """Four rows of 0.44 and of 0.56 differ by a factor of (56/44)^4 at most."""
    loss = 4 * math.log(56 / 44)
    exact, noisy = plan(paper(loss + 1e-9), "laplace"), plan(paper(loss - 1e-3), "laplace")
    assert (exact.noise.kind, exact.error.rmse) == ("none", 0.0)
    assert noisy.noise.scale > 0


def test_a_small_influence_needs_no_law_at_all() -> None:
    """And then the mechanism that assumes less goes first."""
    weak = problem(theta=(assumed(network(((0.55, 0.45), (0.45, 0.55)))),), n=1_000_000)
    assert plan(weak, "laplace").noise.kind == "none"
    assert plan(weak).mechanism == "markov_quilt"


def test_auto_takes_the_least_error() -> None:
    ranking = rank(problem(delta=1e-6))
    able = [found for found in ranking.plans if found.mechanism != "constant"]
    assert [found.mechanism for found in able] == ["optimal", "laplace", "wasserstein", "gaussian", "markov_quilt"]
    assert ranking.chosen is able[0]
    assert rank(problem(n=140)).refused["optimal"].reason.startswith("auto tries it for up to 100 rows")
    assert rank(problem(n=140)).chosen is not None


def test_the_constant_is_the_expected_count() -> None:
    found = plan(problem(), "constant")
    mean, p = 20 * 0.4, (0.3, 0.5)
    spread = math.sqrt(20 * (p[0] * (1 - p[0]) + p[1] * (1 - p[1])) / 2 + 400 * 0.01)
    assert found.tally is not None
    assert found.tally.centre == round(mean)
    assert found.error.rmse == pytest.approx(spread)


def test_averages_are_counts_of_ones() -> None:
    total, mean = (plan(problem(queries=(Query(kind, "tall"),)), "laplace") for kind in ("sum", "avg"))
    count = plan(problem(), "laplace")
    assert total.noise == count.noise
    assert mean.noise.scale == pytest.approx(count.noise.scale / 20)
    assert total.tally is not None
    assert total.tally.covering == (("tall = 0", "tall = 1"),)
    both = plan(problem(queries=(Query("sum", "tall"), Query("avg", "tall"), Query("count"))), "laplace")
    sums, means, rows = (answer[0] for answer in both.tallied([7], []))
    assert sums == pytest.approx(20 * means)
    assert rows == 20


def test_the_worst_of_several_networks_and_of_several_secrets() -> None:
    steep, flat = assumed(network(((0.9, 0.1), (0.1, 0.9)))), assumed()
    alone = [plan(problem(theta=(one,)), "laplace").noise.scale for one in (steep, flat)]
    assert plan(problem(theta=(flat, steep)), "laplace").noise.scale == max(alone)
    two = problem(secrets=(Parameter("income"), Parameter("tall")))
    assert plan(two, "laplace").noise.scale >= plan(problem(), "laplace").noise.scale
    with refuses(RefusedError, Cause.SECRET, "one secret under one assumption"):
        plan(two, "optimal")


def test_the_secret_is_the_counted_column_itself() -> None:
    found = plan(problem(secrets=(Parameter("tall"),)), "laplace")
    assert "tall itself has an unbounded influence; the count tells less." in " ".join(found.notes)
    assert 0 < found.noise.scale < 20 / 0.5


def test_single_rows_on_top() -> None:
    laplace, gaussian = (plan(problem(individuals=0.01, delta=1e-6), name) for name in ("laplace", "gaussian"))
    assert laplace.noise.scale >= 100
    assert gaussian.noise.individuals >= 100
    with refuses(RefusedError, Cause.PERSONS, "mechanism laplace"):
        plan(problem(individuals=1.0), "optimal")


@pytest.mark.parametrize(("where", "scale"), [("ward = 'A'", True), ("ward in ('A', 'B')", True), ("ward != 'D'", False)])
def test_categories(where: str, scale: bool) -> None:
    wards = {
        "family": "categorical",
        "categories": ("A", "B", "C"),
        "probabilities": {"0.3": (0.1, 0.2, 0.7), "0.5": (0.6, 0.3, 0.1)},
    }
    renamed = Network(nodes={"income": network().nodes["income"], "ward": network().nodes["tall"]})
    theta = ParameterNetwork(network=renamed, attributes={"ward": wards}, tolerance=0)
    asked = problem(queries=(Query("count", where=where),), theta=(theta,), types={"ward": "text"})
    found = plan(asked, "laplace")
    assert bool(found.noise.scale) == scale
    assert found.tally is not None
    assert found.tally.covering == (("ward is 'A'", "ward is 'B'", "ward is 'C'"),)
    with pytest.raises(RefusedError, match="covered where it is bernoulli"):
        plan(asked.model_copy(update={"queries": (Query("sum", "ward"),)}), "laplace")


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"theta": (assumed(tolerance=0.01),)}, "tolerance: must be 0"),
        ({"known_rows": 0.1}, "known_rows: is not covered"),
        ({"queries": (Query("count", group_by="tall"),)}, "histogram is not covered"),
        ({"queries": (Query("count", where="tall = 1 and income = 2"),)}, "must be about one column"),
        ({"queries": (Query("count", where="income = 1"),)}, "must say how income follows"),
        ({"queries": (Query("count", where="hair = 1"),)}, "must say how hair follows"),
        ({"queries": (Query("sum", "tall", where="tall = 1"),)}, "is not covered; ask without the filter"),
        ({"queries": (TALL, Query("count", where="tall = 0"))}, "ask for one after the other"),
        ({"types": {"tall": "text"}}, "has the entries 0 and 1"),
        ({"bins": {"tall": (0.0, 1.0)}}, "has the entries 0 and 1"),
        ({"theta": (assumed(), assumed(attributes={}))}, "must say how tall follows"),
        ({"secrets": (Parameter("hair"),)}, "must be in the network. Got hair"),
    ],
)
def test_what_is_not_covered(changes: dict[str, Any], reason: str) -> None:
    for name in ("laplace", "wasserstein", "optimal", "constant"):
        with pytest.raises((RefusedError, UsageError), match=reason):
            plan(problem(**changes), name)


def test_wrong_policies_are_bad_usage() -> None:
    with refuses(UsageError, Cause.SECRET, "a parameter of the network"):
        plan(problem(secrets=(Secret("mean(income)", within=1.0),)), "laplace")
    sure = Network(nodes={**network().nodes, "income": Node(states=("low", "high"), table=((1.0, 0.0),))})
    with pytest.raises(UsageError, match="single possible value"):
        plan(problem(theta=(assumed(sure),)), "laplace")
    with refuses(UsageError, Cause.BUDGET, "delta above 0"):
        plan(problem(), "gaussian")
    with refuses(UsageError, Cause.MISTAKE, "calibration analytic"):
        plan(problem(delta=1e-6, calibration="classical"), "gaussian")
    with refuses(RefusedError, Cause.SIZE, "mechanism laplace"):
        plan(problem(delta=1e-6, n=50_000), "gaussian")


def test_between_is_said_not_to_matter() -> None:
    found = plan(problem(secrets=(Parameter("income", between=(0, 1)),)), "laplace")
    assert any("not only those that between or within name" in note for note in found.notes)


# --------------------------------------------------------------------------------------------------------- certificates


@pytest.mark.parametrize("name", [*NOISY, "optimal"])
def test_a_certificate_survives_json_and_is_checked(name: str) -> None:
    found = plan(problem(delta=1e-6), name)
    again = Plan.from_json(json.loads(json.dumps(found.to_json())))
    assert again == found
    again.certificate.verify()
    assert isinstance(again.tallied([7], [])[0][0], int)


@pytest.mark.parametrize("name", NOISY)
def test_less_noise_fails(name: str) -> None:
    certificate = plan(problem(delta=1e-6), name).certificate
    evidence = certificate.evidence
    assert isinstance(evidence, ParameterNoiseEvidence | ParameterWassersteinEvidence)
    less = evidence.model_copy(update={"scale": evidence.scale * 0.99})
    with pytest.raises(CertificateError):
        certificate.model_copy(update={"evidence": less}).verify()


def test_other_weights_distances_and_kernels_fail() -> None:
    noisy, moved, kernel = (plan(problem(), name).certificate for name in ("laplace", "wasserstein", "optimal"))
    noise, distance, evidence = noisy.evidence, moved.evidence, kernel.evidence
    assert isinstance(noise, ParameterNoiseEvidence)
    assert isinstance(distance, ParameterWassersteinEvidence)
    assert isinstance(evidence, ParameterKernelEvidence)
    check = noise.checks[0]
    steeper = ParameterCounts(20, check.counts.probabilities, ((0.75, 0.25), (0.25, 0.75)))
    shorter = distance.model_copy(update={"distance": distance.distance - 1})
    identity = tuple(tuple(2**62 if f == o else 0 for o in range(21)) for f in range(21))
    for certificate, changed in (
        (noisy, noise.model_copy(update={"checks": (check.model_copy(update={"counts": steeper}),)})),
        (moved, shorter),
        (kernel, evidence.model_copy(update={"weights": identity})),
        (kernel, evidence.model_copy(update={"weights": evidence.weights[:-1]})),
    ):
        with pytest.raises(CertificateError):
            Certificate.model_validate(certificate.model_copy(update={"evidence": changed}).model_dump()).verify()


def test_a_plan_must_count_what_the_certificate_is_about() -> None:
    """Another event, another table's size, other noise, a histogram: nothing is released."""
    found = plan(problem(), "laplace")
    assert found.tally is not None
    cell = found.tally.cells[0]
    changes: list[dict[str, Any]] = [
        {"cells": (cell.model_copy(update={"where": "tall = 0"}),)},
        {"cells": (cell.model_copy(update={"value": 2}),)},
        {"scale": found.tally.scale / 2},
        {"noise": "none", "scale": 0.0},
        {"histogram": True},
        {"complete": True},
    ]
    for change in changes:
        with pytest.raises(CertificateError):
            found.model_copy(update={"tally": found.tally.model_copy(update=change)}).tallied([7], [])
    with pytest.raises(CertificateError):
        found.model_copy(update={"n": 21}).tallied([7], [])


@pytest.mark.parametrize(("epsilon", "n"), [(0.1, 5), (0.1, 60), (0.5, 5), (0.5, 60)])
def test_optimal_is_never_worse_in_mean(epsilon: float, n: int) -> None:
    least, laplace = (plan(problem(epsilon=epsilon, n=n), name).error.mean_absolute for name in ("optimal", "laplace"))
    assert least is not None
    assert laplace is not None
    assert least <= laplace + 1e-6


def test_delta_buys_nothing_beyond_the_rows_that_laws_are_compared_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """There the scale is that of pure epsilon, which keeps the promise too."""
    pure = plan(problem(delta=0.0), "laplace").tally
    asked = problem(delta=0.05)
    monkeypatch.setattr(parameter_plan, "MOST_ROWS_WITH_DELTA", asked.n)
    with_delta = plan(asked, "laplace").tally
    monkeypatch.setattr(parameter_plan, "MOST_ROWS_WITH_DELTA", asked.n - 1)
    beyond = plan(asked, "laplace").tally
    assert pure is not None
    assert with_delta is not None
    assert beyond is not None
    assert with_delta.scale < beyond.scale == pure.scale
