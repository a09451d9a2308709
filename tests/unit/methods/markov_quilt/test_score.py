"""The subset rule and quilts: the school, edge cases of the theory, and random networks."""

from __future__ import annotations

import math
import random

import pytest

from attrpriv.errors import UsageError
from attrpriv.methods.markov_quilt.score import (
    Relaxed,
    least_known,
    least_scale,
    markov_quilts,
    quilt_loss,
    quilt_scale,
    relaxed_loss,
    relaxed_scale,
)
from attrpriv.methods.markov_quilt.sensitivity import ColumnSensitivity
from attrpriv.numerics.divergences.influence import max_influence
from attrpriv.numerics.networks.network import Network, Node
from tests.unit.assumptions.networks import random_network

COIN = Node(states=("low", "high"), table=((0.5, 0.5),))
FLIP = ((0.7, 0.3), (0.3, 0.7))


def child(*parents: str) -> Node:
    table = FLIP if len(parents) == 1 else tuple((0.2 + 0.15 * k, 0.8 - 0.15 * k) for k in range(2 ** len(parents)))
    return Node(states=("low", "high"), parents=parents, table=table)


def school() -> Network:
    """The paper's five attributes."""
    return Network(
        nodes={
            "gender": COIN,
            "income": child("gender"),
            "sat": child("income"),
            "height": child("gender"),
            "weight": child("height"),
        }
    )


HEIGHT = ColumnSensitivity.count(("height",), n=100)
BOTH = ColumnSensitivity.count(("height", "sat"), n=100)
GENDER = math.log(7 / 3)
TALL = math.log(0.58 / 0.42)


def test_the_school_s_first_query_needs_no_noise_where_the_influence_allows() -> None:
    """The paper does not say so, but e(gender | income) <= epsilon is needed."""
    quilt = next(q for q in markov_quilts(school(), "income", HEIGHT, 1.0) if q.quilt == ("gender",))
    assert (quilt.near, quilt.remote) == (("income", "sat"), ("height", "weight"))
    assert quilt.influence == pytest.approx(GENDER)
    assert (quilt.sensitivity, quilt.scale) == (0.0, 0.0)
    too_much = next(q for q in markov_quilts(school(), "income", HEIGHT, 0.8) if q.quilt == ("gender",))
    assert too_much.scale == math.inf
    # The subset rule looks at height itself, which tells less: 0.8 and even 0.33 are enough.
    assert least_known(school(), "income", HEIGHT, 0.33).scale == 0
    assert least_known(school(), "income", HEIGHT, 0.32).scale == pytest.approx(100 / 0.32)


def test_the_school_s_second_query() -> None:
    quilts = markov_quilts(school(), "income", BOTH, 1.0)
    gender = next(q for q in quilts if q.quilt == ("gender",))
    assert gender.scale == pytest.approx(100 / (1 - GENDER))
    # All of a conjunction moves as much as one of its columns: the trivial quilt is better, by the algorithm's own rule.
    assert quilts[0].quilt == ()
    assert quilts[0].scale == pytest.approx(100)
    assert least_scale([school()], ["income"], BOTH, 1.0)[0] == pytest.approx(100)


def test_where_columns_add_up_the_quilt_helps_and_the_subset_rule_helps_more() -> None:
    added = ColumnSensitivity.function(("height", "sat"), {"height": 100.0, "sat": 100.0})
    scale, known = least_scale([school()], ["income"], added, 1.0)
    assert scale == pytest.approx(100 / (1 - TALL))
    assert known[0].columns == ("height",)
    assert 100 / (1 - TALL) < 200 < 100 / (1 - GENDER)
    assert markov_quilts(school(), "income", added, 1.0)[0].scale == pytest.approx(100 / (1 - TALL))


def test_the_trivial_quilt_is_always_there() -> None:
    for epsilon in (0.01, 5.0):
        quilts = markov_quilts(school(), "sat", BOTH, epsilon)
        trivial = next(q for q in quilts if not q.quilt and not q.remote)
        assert trivial.scale == pytest.approx(100 / epsilon)
        assert str(trivial).startswith("quilt {}, near {gender, income, sat, height, weight}, remote {}: influence 0")


def test_equality_is_usable_only_where_nothing_is_left() -> None:
    assert quilt_scale(1.0, 0.0, 1.0) == 0
    assert quilt_scale(math.nextafter(1.0, 2), 0.0, 1.0) == math.inf
    assert quilt_scale(1.0, 5.0, 1.0) == math.inf
    assert quilt_scale(1.0, 5.0, 1.0 + 1e-6) == pytest.approx(5e6, rel=1e-3)


def test_zero_over_zero_is_zero_and_anything_else_over_zero_infinite() -> None:
    assert quilt_loss(0.25, [(0.0, 0.0), (0.0, 3.0)]) == 0.25
    assert quilt_loss(0.25, [(1e-300, 0.0)]) == math.inf
    assert quilt_loss(0.25, [(math.inf, 2.0)]) == math.inf
    for bad in (math.nan, -0.1):
        with pytest.raises(UsageError):
            quilt_loss(bad, [])
    with pytest.raises(UsageError):
        quilt_loss(0.0, [(math.inf, math.inf)])


def test_the_final_scale_is_the_largest_over_parameters_and_networks() -> None:
    strong = Network(
        nodes={
            **school().nodes,
            "height": Node(states=("low", "high"), parents=("gender",), table=((0.99, 0.01), (0.01, 0.99))),
        }
    )
    scale, known = least_scale([school(), strong], ["income", "sat"], HEIGHT, 0.5)
    assert len(known) == 4
    assert scale == max(one.scale for one in known) == pytest.approx(200)
    assert {(one.on, one.theta) for one in known if one.scale} == {("income", 1)}


# ------------------------------------------------------------------------------------------------------------- the graph


def test_a_collider_is_no_quilt() -> None:
    """income -> sat <- effort: deleting sat cuts the graph in two, and knowing it ties the two together."""
    network = Network(nodes={"income": COIN, "effort": COIN, "sat": child("income", "effort")})
    effort = ColumnSensitivity.count(("effort",), n=10)
    quilts = markov_quilts(network, "income", effort, 1.0)
    assert not any(quilt.quilt == ("sat",) for quilt in quilts)
    assert quilts[0].quilt == ()
    assert quilts[0].remote == ("effort",)
    assert quilts[0].scale == 0
    together = max_influence(network, of=("sat", "effort"), on="income").value
    assert together > max_influence(network, of=("sat",), on="income").value


def test_a_quilt_of_the_columns_that_is_none_of_the_parameters_is_not_used() -> None:
    """Columns may form income -> gender -> height; if the parameter of height also depends on income's, gender is none."""
    columns = Network(nodes={"income": COIN, "gender": child("income"), "height": child("gender")})
    parameters = Network(nodes={"income": COIN, "gender": child("income"), "height": child("gender", "income")})
    assert any(quilt.quilt == ("gender",) for quilt in markov_quilts(columns, "income", HEIGHT, 1.0))
    assert not any(quilt.quilt == ("gender",) for quilt in markov_quilts(parameters, "income", HEIGHT, 1.0))


def test_columns_outside_of_the_network_are_near() -> None:
    shoe = ColumnSensitivity.count(("height", "shoe"), n=100)
    assert least_known(school(), "income", shoe, 1.0).scale == pytest.approx(100)


# ------------------------------------------------------------------------------------------------------------------ twins


@pytest.mark.parametrize("seed", range(40))
def test_the_subset_rule_is_never_worse_than_a_quilt(seed: int) -> None:
    rng = random.Random(seed)
    network = random_network(rng, "abcde")
    on = rng.choice("abcde")
    read = rng.sample("abcde", k=rng.randint(1, 4))
    sensitivity = ColumnSensitivity.function(read, {name: float(rng.randint(1, 5)) for name in read})
    epsilon = rng.choice([0.3, 1.0, 3.0])
    known = least_known(network, on, sensitivity, epsilon)
    quilts = markov_quilts(network, on, sensitivity, epsilon, largest=4)
    assert known.scale <= quilts[0].scale * (1 + 1e-9)
    assert quilt_loss(known.influence, [(known.sensitivity, known.scale)]) <= epsilon
    for quilt in quilts:
        if math.isfinite(quilt.scale):
            assert quilt_loss(quilt.influence, [(quilt.sensitivity, quilt.scale)]) <= epsilon


def test_many_columns_are_searched_in_part() -> None:
    nodes: dict[str, Node] = {"i": COIN}
    for k in range(14):
        nodes[f"x{k}"] = child("i" if k == 0 else f"x{k - 1}")
    far = ColumnSensitivity.count(tuple(f"x{k}" for k in range(3, 14)), n=10)
    assert least_known(Network(nodes=nodes), "i", far, 0.5).scale == 0  # all of them: the first says it all


def test_an_unbounded_statistic_is_refused_unless_it_is_exact() -> None:
    unbounded = ColumnSensitivity(("height",), ())
    assert least_known(school(), "income", unbounded, 1.0).scale == 0
    with pytest.raises(UsageError, match="nothing bounds the statistic"):
        least_known(school(), "income", ColumnSensitivity(("shoe",), ()), 1.0)
    with pytest.raises(UsageError, match="nothing bounds the statistic"):
        least_known(school(), "income", unbounded, 0.1)


@pytest.mark.parametrize(("on", "epsilon"), [("shoe", 1.0), ("income", 0.0), ("income", math.nan)])
def test_bad_input(on: str, epsilon: float) -> None:
    with pytest.raises(UsageError):
        least_known(school(), on, HEIGHT, epsilon)


# --------------------------------------------------------------------------------------------------------------- relaxed


def test_the_relaxed_form() -> None:
    """phi_S and phi_i jointly normal: H_e is above 0 for every e, and Lap(Delta/b) on top gives (e + Delta/b, delta)."""
    close = Relaxed(influence=0.4, delta=1e-6, sensitivity=3.0)
    trivial = Relaxed(influence=0.0, delta=0.0, sensitivity=9.0)
    assert relaxed_scale([close, trivial], 1.0, 1e-6) == pytest.approx(5.0)
    assert relaxed_scale([close, trivial], 1.0, 1e-7) == pytest.approx(9.0)  # the close set's delta does not fit
    loss, delta = relaxed_loss(close, relaxed_scale([close], 1.0, 1e-6))
    assert loss <= 1.0
    assert delta == 1e-6
    with pytest.raises(UsageError, match="no set is usable"):
        relaxed_scale([close], 0.3, 1e-6)
    with pytest.raises(UsageError, match="relaxed: needs"):
        Relaxed(influence=-1.0, delta=0.0, sensitivity=1.0)
