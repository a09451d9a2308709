"""`markov_quilt` as a mechanism: its plans, what its certificate refuses to cover, and its picture."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.errors import CertificateError, RefusedError, UsageError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.markov_quilt.picture import drawn_quilt
from attrpriv.methods.markov_quilt.proof import QuiltEvidence
from attrpriv.numerics.networks.network import Network, Node
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from tests.unit.methods.markov_quilt.test_score import GENDER, TALL, school

TALLER = Query("count", where="height > 66")


def problem(**changes: Any) -> Problem:
    tolerance = changes.pop("tolerance", 0)
    network = changes.pop("network", school())
    given: dict[str, Any] = {
        "queries": (TALLER,),
        "secrets": (Parameter("income"),),
        "epsilon": 1.0,
        "n": 100,
        "theta": (ParameterNetwork(network=network, tolerance=tolerance),),
        "bounds": {"weight": (60.0, 400.0), "sat": (400.0, 1600.0)},
    }
    return Problem(**(given | changes))


def quilted(**changes: Any) -> Plan:
    return plan(problem(**changes), "markov_quilt")


def evidence_of(found: Plan) -> QuiltEvidence:
    evidence = found.certificate.evidence
    assert isinstance(evidence, QuiltEvidence)
    return evidence


# ------------------------------------------------------------------------------------------------------------------ plans


def test_the_count_is_exact_where_the_influence_allows() -> None:
    found = quilted()
    assert found.noise.kind == "none"
    assert found.error.rmse == 0
    assert evidence_of(found).loss() == pytest.approx(TALL)
    assert found.tallied([37], []) == ((37,),)
    assert any("the exact answer is private" in note for note in found.notes)


def test_below_the_influence_it_is_group_privacy() -> None:
    found = quilted(epsilon=0.3)
    assert found.noise.scale == pytest.approx(100 / 0.3)
    assert evidence_of(found).loss() <= 0.3


def test_a_histogram_moves_twice() -> None:
    found = quilted(queries=(Query("count", group_by="height"),), epsilon=0.1, bins={"height": (50.0, 60.0, 70.0, 80.0)})
    assert found.noise.scale == pytest.approx(2000)
    exact = quilted(queries=(Query("count", group_by="height"),), bins={"height": (50.0, 60.0, 70.0, 80.0)})
    assert exact.tallied([10, 50, 40], []) == ((10, 50, 40),)


def test_a_histogram_of_categories() -> None:
    theta = (
        ParameterNetwork(
            network=school(), tolerance=0, attributes={"gender": {"family": "categorical", "categories": ["F", "M"]}}
        ),
    )
    found = quilted(queries=(Query("count", group_by="gender"),), theta=theta)
    assert found.tally is not None
    assert [cell.name for cell in found.tally.cells] == ["F", "M"]
    assert found.noise.kind == "none"
    assert evidence_of(found).loss() == pytest.approx(GENDER)


def test_averages_share_the_budget_and_some_are_exact() -> None:
    found = quilted(queries=(Query("avg", "weight"), Query("sum", "sat")), epsilon=0.5)
    weight, sat = found.columns
    assert weight.noise.kind == "none"
    assert evidence_of(found).checks[0].known == ("weight",)
    spent = evidence_of(found).loss()
    assert spent <= 0.5
    influence = evidence_of(found).influence_of(evidence_of(found).checks[0])
    assert sat.noise.scale == pytest.approx(1200 / (0.5 - influence), rel=1e-6)
    assert len(found.answers([150, 1000])) == 2  # type: ignore[list-item]


def test_an_exact_average_needs_no_bounds() -> None:
    found = quilted(queries=(Query("avg", "weight"),), bounds={})
    assert found.answers([150]) == (150.0,)  # type: ignore[list-item]


def test_single_persons_on_top() -> None:
    count = quilted(individuals=0.5)
    assert count.noise.scale == pytest.approx(2.0)
    average = quilted(queries=(Query("avg", "weight"),), individuals=0.5)
    assert average.noise.scale == pytest.approx(340 / 100 / 0.5)
    assert len(average.answers([150])) == 1  # type: ignore[list-item]


def test_the_worst_of_several_networks() -> None:
    strong = Network(nodes={**school().nodes, "height": Node(states=("0", "1"), parents=("gender",), table=((1, 0), (0, 1)))})
    theta = tuple(ParameterNetwork(network=one, tolerance=0) for one in (school(), strong))
    assert quilted(theta=theta, epsilon=0.5).noise.scale == pytest.approx(200)
    assert len(evidence_of(quilted(theta=theta)).checks) == 2


def test_a_tolerance_costs() -> None:
    assert evidence_of(quilted(tolerance=0.02)).loss() > evidence_of(quilted()).loss()
    assert quilted(tolerance=0.1, epsilon=0.5).noise.scale == pytest.approx(200)


def test_of_a_large_network_only_what_matters_is_stored() -> None:
    nodes = dict(school().nodes)
    for k in range(80):
        nodes[f"x{k}"] = Node(states=("0", "1"), parents=("weight",), table=((0.7, 0.3), (0.3, 0.7)))
    found = quilted(network=Network(nodes=nodes))
    assert set(evidence_of(found).networks[0].nodes) == {"gender", "income", "height"}


def test_columns_outside_of_the_network_are_told() -> None:
    found = quilted(queries=(Query("count", where="height > 66 and shoe > 40"),))
    assert found.noise.scale == pytest.approx(100)
    assert "shoe: is not in the network; nothing is assumed of it." in found.notes


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"theta": ()}, "needs a parameter_network assumption"),
        ({"known_rows": 0.1}, "known_rows: is not covered"),
        ({"secrets": (Parameter("shoe"),)}, "parameter: must be in the network. Got shoe."),
        ({"secrets": (Secret("mean(income)", within=1.0),)}, "hides parameters of the network"),
        ({"queries": (Query("count"),)}, "the number of rows is public"),
        ({"queries": (TALLER, Query("count", where="sat > 1300"))}, "answers one count or histogram, or some averages"),
        ({"queries": (Query("avg", "sat", where="height > 66"),)}, "needs the subset's size as a public number"),
        ({"queries": (Query("count", group_by="height"),)}, "a histogram of height needs bins, or its categories"),
        ({"queries": (Query("avg", "sat"),), "bounds": {}, "epsilon": 0.1}, "needs bounds for sat"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises((RefusedError, UsageError)) as caught:
        quilted(**changes)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------------------------------------------------ certificates


def with_evidence(found: Plan, **changes: Any) -> Plan:
    evidence = evidence_of(found).model_copy(update=changes)
    return found.model_copy(update={"certificate": found.certificate.model_copy(update={"evidence": evidence})})


def test_a_certificate_that_lacks_a_secret_or_a_network_fails() -> None:
    found = quilted()
    evidence = evidence_of(found)
    for changes in (
        {"checks": ()},
        {"protected": ("income", "sat")},
        {"networks": (school(), school())},
        {"tolerances": ()},
        {"tolerances": (0.4,)},
        {"checks": (evidence.checks[0].model_copy(update={"known": ("gender", "income")}),)},
        {"checks": (evidence.checks[0].model_copy(update={"known": ()}),)},
        {"terms": (evidence.terms[0].model_copy(update={"columns": ("height", "sat")}),)},
    ):
        with pytest.raises(CertificateError):
            with_evidence(found, **changes).tallied([37], [])


def test_a_plan_must_draw_and_read_what_was_counted_on() -> None:
    exact, noisy = quilted(), quilted(epsilon=0.3)
    assert exact.tally is not None
    assert noisy.tally is not None
    for found, changes in (
        (noisy, {"scale": 1.0}),
        (noisy, {"noise": "none", "scale": 0.0}),
        (exact, {"cells": (exact.tally.cells[0].model_copy(update={"where": "sat > 1300"}),)}),
        (exact, {"cells": (exact.tally.cells[0].model_copy(update={"value": 2}),)}),
        (exact, {"histogram": True}),
    ):
        assert found.tally is not None
        changed = found.model_copy(update={"tally": found.tally.model_copy(update=changes)})
        with pytest.raises(CertificateError):
            changed.tallied([37], [])


def test_an_exact_average_of_another_column_is_not_covered() -> None:
    found = quilted(queries=(Query("avg", "weight"),), bounds={})
    other = found.columns[0].model_copy(update={"column": "sat"})
    changed = found.model_copy(update={"columns": (other,), "queries": (Query("avg", "sat"),)})
    with pytest.raises(CertificateError):
        changed.answers([1000])  # type: ignore[list-item]


# ---------------------------------------------------------------------------------------------------------------- pictures


def test_the_picture_shows_the_paper_s_quilt() -> None:
    evidence = evidence_of(quilted())
    assert drawn_quilt(evidence, evidence.checks[0], 1.0) == (("gender",), ("income", "sat"), ("height", "weight"))


def test_without_a_quilt_it_shows_what_the_certificate_uses() -> None:
    evidence = evidence_of(quilted(epsilon=0.5))
    assert drawn_quilt(evidence, evidence.checks[0], 0.5)[0] == ("height",)
    trivial = evidence_of(quilted(epsilon=0.1))
    assert drawn_quilt(trivial, trivial.checks[0], 0.1)[0] == ()


def test_a_figure_is_drawn() -> None:
    pytest.importorskip("matplotlib")
    figure = quilted().draw("income")
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert set(school().nodes) <= set(texts)
    assert "no noise" in figure.axes[0].get_title()
    with pytest.raises(UsageError, match=r"secret: must be one of income. Got sat."):
        quilted().draw("sat")


def test_a_figure_of_a_random_network_is_drawn() -> None:
    pytest.importorskip("matplotlib")
    from tests.unit.numerics.networks.test_separation import random_graph

    network = random_graph(random.Random(3))
    found = quilted(network=network, secrets=(Parameter("a"),), queries=(Query("count", where="g > 1"),))
    assert len(found.draw().axes[0].texts) >= len(evidence_of(found).networks[0].nodes)


def test_other_plans_have_no_picture() -> None:
    other = plan(problem(theta=(), secrets=(Secret("mean(sat)", within=1.0),), queries=(Query("avg", "sat"),)), "group_dp")
    with pytest.raises(UsageError, match=r"draw: is for plans on a parameter network. Got group_dp."):
        other.draw()


def test_without_matplotlib_the_way_to_install_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'attrpriv\[plots\]'"):
        quilted().draw()


def test_randomise_is_the_exact_number() -> None:
    assert quilted().randomise(12) == 12
    assert math.isfinite(quilted(epsilon=0.1).randomise(12))
