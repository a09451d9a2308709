"""Several releases together: xor, one common set, and the refusal."""

from __future__ import annotations

import math
import random

import pytest

from attrpriv.accounting.network_accountant import (
    CloseSet,
    NetworkRelease,
    close_loss,
    network_loss,
    require_network_budget,
)
from attrpriv.calibration.column_sensitivity import ColumnSensitivity
from attrpriv.calibration.markov_quilt import least_known
from attrpriv.errors import RefusedError, UsageError
from attrpriv.framework.network import Network, Node
from tests.unit.assumptions.networks import random_network
from tests.unit.calibration.test_markov_quilt import TALL, school

COIN = Node(states=("0", "1"), table=((0.5, 0.5),))
XOR = Network(
    nodes={"i": COIN, "a": COIN, "b": Node(states=("0", "1"), parents=("i", "a"), table=((1, 0), (0, 1), (0, 1), (1, 0)))}
)


def count(*columns: str, scale: float = 0.0, n: int = 100) -> NetworkRelease:
    return NetworkRelease(ColumnSensitivity.count(columns, n), scale)


def test_xor_each_alone_loses_nothing_and_the_pair_is_refused() -> None:
    for name in "ab":
        assert require_network_budget(XOR, [count(name)], ["i"], 0.1)[0].value < 1e-14
    with pytest.raises(RefusedError, match=r"i: 2 release\(s\) together lose inf, above epsilon 0.1"):
        require_network_budget(XOR, [count("a"), count("b")], ["i"], 0.1)


def test_with_noise_on_one_of_them_the_pair_loses_that() -> None:
    found = network_loss(XOR, [count("a"), count("b", scale=200.0)], "i")
    assert found.value == pytest.approx(0.5)
    assert found.known == ("a",)


def test_one_common_set_for_all_releases() -> None:
    releases = [count("height"), count("weight"), count("sat", scale=1000.0)]
    found = network_loss(school(), releases, "income")
    assert found.value == pytest.approx(TALL + 0.1)
    assert found.known == ("height", "weight")


def test_no_release_loses_nothing() -> None:
    assert network_loss(school(), [], "income").value == 0


def test_one_release_loses_what_it_was_planned_for() -> None:
    for seed in range(30):
        rng = random.Random(seed)
        network = random_network(rng)
        on, epsilon = rng.choice("abcd"), rng.choice([0.5, 1.0])
        sensitivity = ColumnSensitivity.function("abc", {"a": 1.0, "b": 2.0, "c": 3.0})
        known = least_known(network, on, sensitivity, epsilon)
        found = network_loss(network, [NetworkRelease(sensitivity, known.scale)], on)
        assert found.value <= epsilon


def test_more_releases_never_lose_less() -> None:
    first, second = count("height", scale=50.0), count("sat", scale=500.0)
    alone = [network_loss(school(), [one], "income").value for one in (first, second)]
    assert network_loss(school(), [first, second], "income").value >= max(alone)


def test_the_worst_network_counts() -> None:
    found = network_loss([school(), XOR_LIKE], [count("height")], "income", tolerances=[0.0, 0.0])
    assert found.theta == 1


XOR_LIKE = Network(
    nodes={"income": COIN, "height": Node(states=("0", "1"), parents=("income",), table=((0.9, 0.1), (0.1, 0.9)))}
)


def test_close_sets() -> None:
    sets = [CloseSet(("height",), 0.2, 1e-6), CloseSet((), 0.0, 0.0), CloseSet(("sat",), 0.5, 2e-6)]
    releases = [count("height", scale=1000.0), count("sat", scale=200.0)]
    fixed = close_loss(sets[:1], releases)
    assert fixed[0] == pytest.approx(0.2 + 0.5)
    assert fixed[1] == pytest.approx(1e-6)
    every = close_loss(sets, releases)
    assert every[0] == pytest.approx(min(0.7, 0.6, 0.6))
    assert every[1] == pytest.approx(3e-6)
    assert every[1] >= 3e-6


def test_bad_input() -> None:
    with pytest.raises(UsageError, match="scale: must be finite"):
        count("height", scale=math.nan)
    with pytest.raises(UsageError, match="must be in the network"):
        network_loss(school(), [count("height")], "shoe")
    with pytest.raises(UsageError, match="one or more"):
        network_loss([], [count("height")], "income")
    with pytest.raises(UsageError, match="one or more"):
        close_loss([], [])


def test_what_cannot_be_bounded_is_infinite() -> None:
    """A column without a declared sensitivity loses everything unless its parameter may show."""
    unbounded = NetworkRelease(ColumnSensitivity(("sat",), ()), 5.0)
    assert network_loss(school(), [unbounded], "sat").value == math.inf
    assert network_loss(school(), [unbounded], "income").value == pytest.approx(math.log(7 / 3))
