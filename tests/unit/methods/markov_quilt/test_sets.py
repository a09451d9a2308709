"""What earlier releases cost beside a set, which sets are tried, and the loss of several releases together."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from attrpriv.errors import UsageError
from attrpriv.methods.markov_quilt.score import least_known, least_loss, least_scale
from attrpriv.methods.markov_quilt.sensitivity import ColumnSensitivity
from attrpriv.methods.markov_quilt.sets import NOTHING, Before, candidates
from attrpriv.numerics.divergences.influence import max_influence
from attrpriv.numerics.networks.network import Network, Node
from tests.unit.assumptions.networks import random_network
from tests.unit.methods.markov_quilt.test_score import TALL, school

COIN = Node(states=("0", "1"), table=((0.5, 0.5),))
XOR = Network(
    nodes={"i": COIN, "a": COIN, "b": Node(states=("0", "1"), parents=("i", "a"), table=((1, 0), (0, 1), (0, 1), (1, 0)))}
)


def sent(**rates: float) -> Before:
    """Releases by the columns they read, joined by an underscore."""
    return Before(tuple((frozenset(name.split("_")), rate) for name, rate in rates.items()))


def test_a_release_costs_nothing_only_where_all_it_reads_may_show() -> None:
    before = sent(height_sat=0.5, weight=0.25, gender=math.inf)
    assert before.beside(("gender", "height")) == 0.75
    assert before.beside(("gender", "height", "sat")) == 0.25
    assert before.beside(("height", "sat", "weight")) == math.inf
    assert before.columns == ("gender", "height", "sat", "weight")
    assert before.exact == {"gender"}
    assert (NOTHING.columns, NOTHING.exact, NOTHING.beside(())) == ((), frozenset(), 0.0)


def test_what_is_exact_is_in_every_set() -> None:
    found = list(candidates(school(), "income", ("sat",), sent(gender=math.inf, height=0.5, income=0.1, shoe=0.3)))
    assert sorted(map(sorted, found)) == sorted(
        ["gender", *some] for size in range(3) for some in itertools.combinations(("height", "sat"), size)
    )


def test_of_many_columns_sets_that_were_of_use_are_tried_again() -> None:
    names = [f"c{k:02}" for k in range(14)]
    network = Network(nodes={"i": COIN, **dict.fromkeys(names, COIN)})
    before = Before(tuple((frozenset((name,)), 0.1) for name in names[:13]), (tuple(names[3:8]),))
    found = set(map(frozenset, candidates(network, "i", (names[13],), before)))
    assert frozenset(names[3:8]) in found
    assert frozenset((*names[3:8], names[13])) in found
    assert frozenset(names[3:9]) not in found
    assert frozenset(names) in found


# -------------------------------------------------------------------------------------------------------- several releases


def test_xor_each_alone_loses_nothing_and_the_pair_everything() -> None:
    for name in "ab":
        assert least_loss([XOR], ["i"], sent(**{name: math.inf})) < 1e-14
    assert least_loss([XOR], ["i"], sent(a=math.inf, b=math.inf)) == math.inf


def test_after_one_half_of_the_xor_the_other_gets_noise() -> None:
    scale, found = least_scale([XOR], ["i"], ColumnSensitivity.count(("b",), 100), 0.5, before=sent(a=math.inf))
    assert scale == pytest.approx(200)
    assert found[0].columns == ("a",)
    assert least_loss([XOR], ["i"], sent(a=math.inf, b=100 / scale)) <= 0.5


def test_one_common_set_for_all_releases() -> None:
    assert least_loss([school()], ["income"], sent(height=math.inf, weight=math.inf, sat=0.1)) == pytest.approx(TALL + 0.1)


def test_no_release_loses_nothing() -> None:
    assert least_loss([school()], ["income"], NOTHING) == 0


def test_more_releases_never_lose_less() -> None:
    alone = [least_loss([school()], ["income"], one) for one in (sent(height=2.0), sent(sat=0.2))]
    assert least_loss([school()], ["income"], sent(height=2.0, sat=0.2)) >= max(alone)


def test_the_worst_network_and_the_worst_parameter_count() -> None:
    near = Network(
        nodes={"income": COIN, "height": Node(states=("0", "1"), parents=("income",), table=((0.9, 0.1), (0.1, 0.9)))}
    )
    before = sent(height=math.inf)
    assert least_loss([school(), near], ["income"], before, tolerances=[0.0, 0.0]) == pytest.approx(math.log(9))
    assert least_loss([school()], ["income", "gender"], before) == pytest.approx(math.log(7 / 3))
    assert least_loss([school()], ["height"], before) == math.inf


def test_a_column_outside_the_network_is_never_known() -> None:
    assert least_loss([school()], ["income"], sent(shoe=0.4)) == pytest.approx(0.4)
    assert least_loss([school()], ["income"], sent(shoe=math.inf)) == math.inf


def by_hand(network: Network, on: str, before: Before) -> float:
    """Every subset of all parameters, with no pruning."""
    others = [name for name in network.nodes if name != on]
    subsets = itertools.chain.from_iterable(itertools.combinations(others, size) for size in range(len(others) + 1))
    return min(max_influence(network, of=some, on=on).value + before.beside(some) for some in subsets)


def random_past(rng: random.Random, names: str) -> Before:
    rates = []
    for _ in range(rng.randint(0, 3)):
        read = frozenset(rng.sample(names, k=rng.randint(1, 2)))
        rates.append((read, rng.choice([math.inf, 0.1, 0.5, 2.0])))
    return Before(tuple(rates))


def test_no_set_of_parameters_is_better_than_those_that_are_tried() -> None:
    """And the scale of the next release is the least: with a little less the same rule is over its target."""
    refused = 0
    for seed in range(150):
        rng = random.Random(seed)
        network, on = random_network(rng), rng.choice("abcd")
        before = random_past(rng, "abcd")
        used = least_loss([network], [on], before)
        assert used == pytest.approx(by_hand(network, on, before), rel=1e-9, abs=1e-12)
        read, target = tuple(rng.sample("abcd", k=rng.randint(1, 2))), used + 0.3
        try:
            known = least_known(network, on, ColumnSensitivity.count(read, 10), target, before=before)
        except UsageError:
            refused += 1
            continue
        after = [
            Before((*before.rates, (frozenset(read), 10 / scale if scale else math.inf)))
            for scale in (known.scale, known.scale * (1 - 1e-6))
        ]
        assert least_loss([network], [on], after[0]) <= target
        assert not known.scale or by_hand(network, on, after[1]) > target
    assert 10 < refused < 100


def test_bad_input() -> None:
    with pytest.raises(UsageError, match="must be in the network"):
        least_loss([school()], ["shoe"], sent(height=0.1))
    with pytest.raises(UsageError, match="one or more"):
        least_loss([], ["income"], sent(height=0.1))
