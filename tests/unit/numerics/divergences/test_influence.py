"""Max-influence: exact numbers, an exact twin, bounds over a tolerance, and what is infinite."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences import influence as module
from attrpriv.numerics.divergences.influence import max_influence
from attrpriv.numerics.networks.network import Network, Node
from tests.unit.assumptions.networks import Rows, joint, nearby, random_network
from tests.unit.assumptions.test_network import as_pyagrum
from tests.unit.numerics.networks.test_inference import exact

COIN = Node(states=("0", "1"), table=((0.5, 0.5),))
FLIP = ((0.7, 0.3), (0.3, 0.7))
XOR = Node(states=("0", "1"), parents=("i", "a"), table=((1, 0), (0, 1), (0, 1), (1, 0)))


def chain(flip: Any = FLIP) -> Network:
    gender = Node(states=("0.4", "0.6"), parents=("income",), table=flip)
    return Network(nodes={"income": COIN, "gender": gender, "height": gender.model_copy(update={"parents": ("gender",)})})


def twin(network: Network, of: tuple[str, ...], on: str) -> mpmath.mpf:
    """The largest log ratio over all values, from fractions."""
    law = exact(network, (*of, on))
    states = range(len(network.nodes[on].states))
    prior = {a: sum((p for key, p in law.items() if key[-1] == a), Fraction(0)) for a in states}
    worst = Fraction(1)
    for key, p in law.items():
        for b in states:
            if prior[key[-1]] == 0 or prior[b] == 0 or p == 0:
                continue
            other = law[(*key[:-1], b)] / prior[b]
            if other == 0:
                return mpmath.inf
            worst = max(worst, p / prior[key[-1]] / other)
    return mpmath.log(mpmath.mpf(worst.numerator) / worst.denominator)


# ---------------------------------------------------------------------------------------------------------------- numbers


def test_the_chain_of_the_theory() -> None:
    assert max_influence(chain(), of=["gender"], on="income").value == pytest.approx(0.847298, abs=5e-7)
    assert max_influence(chain(), of=["height"], on="income").value == pytest.approx(0.322773, abs=5e-7)
    both = max_influence(chain(), of=["gender", "height"], on="income")
    assert both.value == max_influence(chain(), of=["gender"], on="income").value
    assert both.pair == ("0", "1")
    assert dict(both.seen) == {"gender": "0.4"}


def test_xor_tells_nothing_alone_and_everything_together() -> None:
    network = Network(nodes={"i": COIN, "a": COIN, "b": XOR})
    assert max_influence(network, of=["a"], on="i").value == 0
    assert max_influence(network, of=["b"], on="i").value < 1e-14
    assert max_influence(network, of=["a", "b"], on="i").value == math.inf


def test_the_empty_set_and_what_the_graph_separates() -> None:
    network = Network(nodes={"i": COIN, "a": COIN, "b": XOR})
    for of in ((), ("a",)):
        found = max_influence(network, of=of, on="i", tolerance=0.1)
        assert (found.value, found.pair) == (0.0, None)


def test_itself_and_other_supports_are_infinite() -> None:
    assert max_influence(chain(), of=["income", "height"], on="income").value == math.inf
    assert max_influence(chain(((1.0, 0.0), (0.3, 0.7))), of=["gender"], on="income").value == math.inf
    sure = Network(
        nodes={"i": Node(states=("0", "1"), table=((1.0, 0.0),)), "j": Node(states=("0", "1"), parents=("i",), table=FLIP)}
    )
    assert max_influence(sure, of=["j"], on="i").value == 0  # one value is impossible: no pair
    assert max_influence(sure, of=["i"], on="i").value == 0


def test_too_small_to_tell_from_zero_is_infinite() -> None:
    tiny = ((1.0, 1e-200), (1.0, 2e-200))
    two = Node(states=("0", "1"), parents=("i",), table=tiny)
    network = Network(nodes={"i": COIN, "a": two, "b": two})
    assert max_influence(network, of=["a", "b"], on="i").value == math.inf


@pytest.mark.parametrize("seed", range(80))
def test_never_below_the_truth_and_hardly_above(seed: int) -> None:
    rng = random.Random(seed)
    network = random_network(rng)
    on = rng.choice("abcd")
    of = tuple(rng.sample([name for name in "abcd" if name != on], k=rng.randint(1, 3)))
    truth, found = twin(network, of, on), max_influence(network, of=of, on=on)
    assert found.value >= truth
    assert found.value == math.inf if truth == mpmath.inf else found.value <= truth + mpmath.mpf("1e-12")


def test_the_worst_values_attain_it() -> None:
    found = max_influence(chain(), of=["height"], on="income")
    assert found.pair is not None
    law = exact(chain(), ("height", "income"))
    v = ("0.4", "0.6").index(found.seen["height"])
    a, b = (("0", "1").index(state) for state in found.pair)
    assert math.log(law[v, a] / law[v, b]) == pytest.approx(found.value, abs=1e-12)


# ------------------------------------------------------------------------------------------------------------- the class


def test_of_several_networks_the_worst() -> None:
    found = max_influence([chain(), chain(((0.9, 0.1), (0.1, 0.9)))], of=["gender"], on="income")
    assert found.value == pytest.approx(math.log(9))
    assert found.theta == 1


def test_a_pyagrum_network_as_it_is() -> None:
    gum = pytest.importorskip("pyagrum")
    found = max_influence(as_pyagrum(gum, chain()), of=["height"], on="income")
    assert found.value == pytest.approx(0.322773, abs=5e-7)


def ratio(network: Network, tables: dict[str, Rows], of: str, on: str) -> float:
    """The influence in one network near by, by adding up its joint law."""
    names, law = list(network.nodes), joint(network, tables)
    k, m = names.index(of), names.index(on)
    cells = {(v, a): 0.0 for v in range(len(network.nodes[of].states)) for a in range(len(network.nodes[on].states))}
    for states, p in law.items():
        cells[states[k], states[m]] += p
    prior = {a: sum(p for (_, b), p in cells.items() if a == b) for _, a in cells}
    worst = 0.0
    for (v, a), p in cells.items():
        for b in prior:
            if p > 0 and prior[a] > 0 and prior[b] > 0:
                worst = max(worst, math.inf if cells[v, b] == 0 else math.log(p / prior[a] / (cells[v, b] / prior[b])))
    return worst


def exceeded(seed: int) -> bool:
    rng = random.Random(seed)
    network, t = random_network(rng, "abc"), rng.choice([0.01, 0.05])
    on, of = rng.sample("abc", 2)
    bound = max_influence(network, of=[of], on=on, tolerance=t).value
    return any(ratio(network, nearby(rng, network, t), of, on) > bound + 1e-9 for _ in range(25))


@pytest.mark.parametrize("seed", range(40))
def test_no_network_within_the_tolerance_exceeds_the_bound(seed: int) -> None:
    assert not exceeded(seed)


def test_ignoring_the_tolerance_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_bounded", lambda network, needed, on, t: module._given(network, needed, on))
    module._influence.cache_clear()
    try:
        assert sum(exceeded(seed) for seed in range(40)) > 10
    finally:
        module._influence.cache_clear()


def test_a_tolerance_widens_and_a_tiny_one_hardly() -> None:
    values = [max_influence(chain(), of=["height"], on="income", tolerance=t).value for t in (0, 1e-9, 0.01, 0.05)]
    assert values == sorted(values)
    assert values[1] == pytest.approx(values[0], abs=1e-6)
    assert values[3] < math.inf


# --------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"of": ["shoe"], "on": "income"}, "of: must be in the network. Got shoe."),
        ({"of": ["gender"], "on": "shoe"}, "on: must be in the network. Got shoe."),
        ({"of": ["gender"], "on": "income", "tolerance": 1.5}, "tolerance: must be at least 0 and below 1. Got 1.5."),
        ({"of": ["gender"], "on": "income", "tolerance": math.nan}, "tolerance: must be at least 0 and below 1. Got nan."),
    ],
)
def test_bad_input_is_one_line(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        max_influence(chain(), **asked)
    assert str(caught.value) == said


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(UsageError, match="there must be one or more"):
        max_influence([], of=["a"], on="b")
    pytest.importorskip("pyagrum")
    with pytest.raises(UsageError, match="must be the path of a BIF file or a pyagrum network"):
        max_influence(7, of=["a"], on="b")


def test_too_many_combinations_cannot_be_bounded() -> None:
    wide = Node(states=tuple(map(str, range(70))), parents=("i",), table=((1 / 70,) * 70,) * 2)
    network = Network(nodes={"i": COIN, "a": wide, "b": wide})
    with pytest.raises(UsageError, match="9800 combinations of a, b are too many to be bounded"):
        max_influence(network, of=["a", "b"], on="i", tolerance=0.01)


def test_as_many_combinations_as_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three states that are seen, for each of the two that are hidden: six."""
    seen = Node(states=("0", "1", "2"), parents=("i",), table=((0.5, 0.25, 0.25), (0.25, 0.25, 0.5)))
    network = Network(nodes={"i": COIN, "a": seen})
    monkeypatch.setattr(module, "_MOST_BOUNDED", 6)
    assert max_influence(network, of=["a"], on="i", tolerance=0.0123).value < math.inf
    monkeypatch.setattr(module, "_MOST_BOUNDED", 5)
    with pytest.raises(UsageError, match="6 combinations"):
        max_influence(network, of=["a"], on="i", tolerance=0.0124)


def test_a_tolerance_by_its_corners_in_either_direction() -> None:
    """Of a child .71 against .29; of a parent by Bayes, with its own law and both rows at the ends that pull furthest."""
    high = 0.51 * 0.71 / (0.51 * 0.71 + 0.49 * 0.29)
    low = 0.49 * 0.29 / (0.49 * 0.29 + 0.51 * 0.71)
    for of, on, truth in (("gender", "income", math.log(0.71 / 0.29)), ("income", "gender", math.log(high / low))):
        found = max_influence(chain(), of=[of], on=on, tolerance=0.01).value
        assert truth <= found <= truth + 1e-9


@pytest.mark.parametrize("tolerance", [-1e-9, 1.0, math.inf])
def test_what_is_no_tolerance(tolerance: float) -> None:
    with pytest.raises(UsageError, match="tolerance"):
        max_influence(chain(), of=["height"], on="income", tolerance=tolerance)


def test_what_a_tolerance_makes_impossible_or_unknown() -> None:
    """A value that need not be possible bounds nothing: what is seen may then tell everything. Itself is told by itself."""
    rare = Node(states=("0", "1"), table=((0.999, 0.001),))
    below = Node(states=("0", "1"), parents=("top",), table=((0.999, 0.001), (0.999, 0.001)))
    seen = Node(states=("0", "1"), parents=("i",), table=FLIP)
    network = Network(nodes={"top": rare, "i": below, "j": seen})
    assert max_influence(network, of=["j"], on="i").value == pytest.approx(math.log(7 / 3), rel=1e-9)
    assert max_influence(network, of=["j"], on="i", tolerance=0.01).value >= math.log(7 / 3)
    sure = Network(nodes={"i": Node(states=("0", "1"), table=((1.0, 0.0),)), "j": seen})
    assert max_influence(sure, of=["i"], on="i", tolerance=0.01).value == math.inf
    assert max_influence(sure, of=["i", "j"], on="i").value == 0


def test_it_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    max_influence(chain(), of=["height"], on="income")
    monkeypatch.setattr(module, "_given", lambda *_: pytest.fail("computed again"))
    for of in itertools.repeat(["height"], 3):
        max_influence(chain(), of=of, on="income")
