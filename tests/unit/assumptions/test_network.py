"""Networks: what they say by elimination against the whole joint law, bounds under a tolerance, and BIF files."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attrpriv.errors import PolicyError
from attrpriv.numerics.networks import inference as module
from attrpriv.numerics.networks.inference import bounds, bounds_given
from attrpriv.numerics.networks.network import Network, Node, read_network
from tests.unit.assumptions.networks import brute, nearby, random_network

BIF = """network "ward" {}
variable smoker { type discrete[2] {yes, no}; }
variable ward { type discrete[3] {a, b, c}; }
variable stay { type discrete[2] {short, long}; }
probability (smoker) { default 0.3 0.7; }
probability (ward | smoker) { (yes) 0.2 0.3 0.5; (no) 0.333333 0.333333 0.333333; }
probability (stay | ward, smoker) {
  (a, yes) 0.9 0.1; (b, yes) 0.8 0.2; (c, yes) 0.7 0.3;
  (a, no) 0.6 0.4; (b, no) 0.5 0.5; (c, no) 0.25 0.75;
}
"""


def random_event(rng: random.Random, network: Network) -> tuple[list[str], Any, set[tuple[int, ...]]]:
    """Some columns, and a random set of their states as an array and as a set."""
    columns = rng.sample(list(network.nodes), k=rng.randint(1, 2))
    shape = [len(network.nodes[column].states) for column in columns]
    event = np.array([float(rng.random() < 0.5) for _ in range(int(np.prod(shape)))]).reshape(shape)
    return columns, event, {index for index in itertools.product(*map(range, shape)) if event[index]}


def cases(seed: int) -> tuple[random.Random, Network, str, int, list[str], Any, set[tuple[int, ...]]]:
    rng = random.Random(seed)
    network = random_network(rng)
    sensitive = rng.choice(list(network.nodes))
    category = rng.randrange(len(network.nodes[sensitive].states))
    return rng, network, sensitive, category, *random_event(rng, network)


# ------------------------------------------------------------------------------------------------------------- inference


@pytest.mark.parametrize("seed", range(60))
def test_exact_tables_give_the_exact_probability(seed: int) -> None:
    _, network, sensitive, category, columns, event, held = cases(seed)
    truth = brute(network, None, columns, held)
    assert bounds(network, columns, event, 0.0) == pytest.approx((truth, truth), abs=1e-12)
    if brute(network, None, [sensitive], {(category,)}) > 0:
        found = bounds_given(network, sensitive, category, columns, event, 0.0)
        assert found[0] == pytest.approx(brute(network, (sensitive, category), columns, held), abs=1e-12)
        assert found[0] <= found[1] <= found[0] + 1e-12, "as narrow as rounding allows"


def test_the_cases_have_sensitive_columns_with_and_without_parents_and_children() -> None:
    seen = set()
    for seed in range(60):
        _, network, sensitive, *_ = cases(seed)
        children = any(sensitive in node.parents for node in network.nodes.values())
        seen.add((bool(network.nodes[sensitive].parents), children))
    assert len(seen) == 4


def escapes(seed: int, planted: float = 1.0) -> bool:
    """Whether a network inside the box (of `planted` times the tolerance that the bounds are for) leaves the interval."""
    rng, network, sensitive, category, columns, event, held = cases(seed)
    t = rng.choice([0.01, 0.05, 0.2])
    own = bounds(network, columns, event, t)
    given = None
    try:
        given = bounds_given(network, sensitive, category, columns, event, t)
    except ValueError as error:
        assert "must be possible" in str(error)  # noqa: PT017 - the other bound is still checked
    for _ in range(25):
        tables = nearby(rng, network, t * planted)
        truth = brute(network, None, columns, held, tables)
        if not own[0] - 1e-12 <= truth <= own[1] + 1e-12:
            return True
        if given is not None:
            truth = brute(network, (sensitive, category), columns, held, tables)
            if truth < given[0] - 1e-12 or truth > given[1] + 1e-12:  # never of NaN
                return True
    return False


@pytest.mark.parametrize("seed", range(60))
def test_no_network_within_the_tolerance_leaves_the_interval(seed: int) -> None:
    assert not escapes(seed)


def test_bounds_for_half_the_tolerance_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = module._best_rows

    def planted(values: Any, low: Any, high: Any, *, largest: bool) -> Any:
        middle = (low + high) / 2
        return real(values, (low + middle) / 2, (high + middle) / 2, largest=largest)

    monkeypatch.setattr(module, "_best_rows", planted)
    assert sum(escapes(seed) for seed in range(60)) > 30


def test_bounds_that_are_attained() -> None:
    """One column without parents: p may be off by exactly the tolerance, and by no more."""
    network = Network(nodes={"x": Node(states=("a", "b"), table=((0.3, 0.7),))})
    low, high = bounds(network, ("x",), np.array([1.0, 0.0]), 0.05)
    assert (low, high) == pytest.approx((0.25, 0.35), abs=1e-12)
    assert low <= 0.25
    assert high >= 0.35


def test_rows_that_miss_one_by_their_digits_are_covered_both_as_they_stand_and_scaled() -> None:
    third = 0.333333
    network = Network(nodes={"x": Node(states=("a", "b", "c"), table=((third, third, third),))})
    event = np.array([1.0, 0.0, 0.0])
    assert bounds(network, ("x",), event, 0.0) == pytest.approx((1 / 3, 1 / 3), abs=1e-12)
    low, high = bounds(network, ("x",), event, 1e-9)
    assert low <= third - 1e-9 + 1e-6  # rows that sum to one
    assert low < 1 / 3 < high


def test_an_impossible_category_is_refused() -> None:
    nodes = {
        "x": Node(states=("a", "b"), table=((1.0, 0.0),)),
        "y": Node(states=("c", "d"), parents=("x",), table=((1, 0), (0, 1))),
    }
    with pytest.raises(PolicyError, match="network: d of y must be possible"):
        bounds_given(Network(nodes=nodes), "y", 1, ("x",), np.array([1.0, 0.0]), 0.0)


def test_unknown_columns_and_tables_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    network = random_network(random.Random(0))
    with pytest.raises(ValueError, match="z is not one of its columns"):
        bounds(network, ("z",), np.ones(2), 0.0)
    monkeypatch.setattr(module, "_MOST_ENTRIES", 1)
    with pytest.raises(ValueError, match=r"is too large. Ask for fewer columns at once"):
        bounds(network, ("a",), np.ones(len(network.nodes["a"].states)), 0.0)


# ------------------------------------------------------------------------------------------------------------ validation


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (Node(states=("a", "b"), parents=("z",), table=((0.5, 0.5),)), "y: parents must come before their children. Got z."),
        (Node(states=("a", "b"), parents=("x",), table=((0.5, 0.5),)), "y: its table needs 2 row(s) of 2 probabilities."),
        (Node(states=("a", "b"), table=((0.5, 0.2, 0.3),)), "y: its table needs 1 row(s) of 2 probabilities."),
        (Node(states=("a", "b"), table=((1.5, -0.5),)), "y: probabilities must be between 0 and 1. Got [1.5, -0.5]."),
        (
            Node(states=("a", "b"), table=((0.5, 0.4),)),
            "y: each row of its table must sum to 1. Got a row that is off by -0.1.",
        ),
        (
            Node(states=("a", "b"), table=((0.5, 0.5001),)),
            "y: each row of its table must sum to 1. Got a row that is off by +0.0001.",
        ),
    ],
)
def test_a_bad_table_says_what_is_wrong(node: Node, said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Network(nodes={"x": Node(states=("a", "b"), table=((0.5, 0.5),)), "y": node})
    assert said in str(caught.value)


def test_json_round_trip() -> None:
    network = random_network(random.Random(3))
    assert Network.from_json(network.to_json()) == network


def test_what_is_no_network_is_refused_without_pyagrum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyagrum", None)
    with pytest.raises(
        ValueError, match=r"^must be the path of a BIF file or a pyagrum network\. Got an object of type object\.$"
    ):
        read_network(object())


# ------------------------------------------------------------------------------------------------------------------- BIF


def written(folder: Path, text: str = BIF) -> str:
    pytest.importorskip("pyagrum")
    path = folder / "ward.bif"
    path.write_text(text, encoding="utf-8")
    return str(path)


def from_file(path: str) -> Network:
    found = read_network(path)
    assert isinstance(found, Network)
    return found


def test_a_file_says_what_is_written_in_it(tmp_path: Path) -> None:
    network = from_file(written(tmp_path))
    assert network.nodes["smoker"] == Node(states=("yes", "no"), table=((0.3, 0.7),))
    assert network.nodes["ward"].table == ((0.2, 0.3, 0.5), (0.333333,) * 3)
    stay = network.nodes["stay"]
    assert set(stay.parents) == {"ward", "smoker"}
    tensor = network.array("stay")
    at = {"ward": 2, "smoker": 0}
    assert tensor[tuple(at[parent] for parent in stay.parents)].tolist() == [0.7, 0.3]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense {", "must be a network without cycles in BIF. Got ward.bif, which cannot be read: line 1: expected network"),
        (
            BIF.replace("(smoker) { default 0.3 0.7; }", "(smoker | ward) { (a) 0.3 0.7; (b) 0.3 0.7; (c) 0.3 0.7; }"),
            "without cycles",
        ),
        (
            BIF.replace("0.2 0.3 0.5", "0.2 0.3 0.4"),
            "ward: each row of its table must sum to 1. Got a row that is off by -0.1.",
        ),
    ],
)
def test_a_bad_file_says_what_is_wrong(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as caught:
        read_network(written(tmp_path, text))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("pyagrum")
    with pytest.raises(PolicyError, match=r"must be the path of a BIF file. Got .*none.bif', which is not there"):
        read_network(tmp_path / "none.bif")
    with pytest.raises(ValueError, match=r"must be the path of a BIF file or a pyagrum network. Got 7\."):
        read_network(7)


def as_pyagrum(gum: Any, network: Network) -> Any:
    net = gum.BayesNet("random")
    for name, node in network.nodes.items():
        net.add(gum.LabelizedVariable(name, name, list(node.states)))
    for name, node in network.nodes.items():
        for parent in node.parents:
            net.addArc(parent, name)
    for name, node in network.nodes.items():
        sizes = [range(len(network.nodes[parent].states)) for parent in node.parents]
        for row, states in zip(node.table, itertools.product(*sizes), strict=True):
            net.cpt(name)[dict(zip(node.parents, states, strict=True))] = list(row)
    return net


@pytest.mark.parametrize("seed", range(12))
def test_pyagrum_agrees(seed: int, tmp_path: Path) -> None:
    gum = pytest.importorskip("pyagrum")
    rng, network, sensitive, category, *_ = cases(seed)
    net = as_pyagrum(gum, network)
    path = tmp_path / "random.bif"
    gum.saveBN(net, str(path))
    target = rng.choice([name for name in network.nodes if name != sensitive])
    if brute(network, None, [sensitive], {(category,)}) == 0:
        return
    inference = gum.LazyPropagation(net)
    inference.setEvidence({sensitive: category})
    truth = inference.posterior(target).tolist()
    for read, close in ((read_network(net), 1e-12), (read_network(path), 1e-12)):
        assert isinstance(read, Network)
        found = [bounds_given(read, sensitive, category, (target,), np.eye(len(truth))[k], 0.0)[0] for k in range(len(truth))]
        assert found == pytest.approx(truth, abs=close)


SCHOOL = """
// a comment
network "school" { property author nobody; }
variable income { type discrete [ 2 ] { low, high }; property position = (3, 4); }
variable tall { type discrete [2] { "0.3", 0.5 }; }  /* states may be numbers */
probability ( tall | income ) { (low) 0.1234567890123, 0.8765432109877; (high) 0.5, 0.5; }
probability ( income ) { table 0.25, 0.75; }
"""


def test_a_file_is_read_digit_by_digit(tmp_path: Path) -> None:
    path = tmp_path / "school.bif"
    path.write_text(SCHOOL, encoding="utf-8")
    network = Network.checked(read_network(str(path)))
    assert list(network.nodes) == ["income", "tall"]
    assert network.nodes["tall"] == Node(
        states=("0.3", "0.5"), parents=("income",), table=((0.1234567890123, 0.8765432109877), (0.5, 0.5))
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("(high) 0.5, 0.5;", "", "tall lacks a row"),
        ("(high) 0.5, 0.5;", "(tiny) 0.5, 0.5;", "a row for tiny, which its parents do not have"),
        ("tall | income", "tall | wealth", "a parent that is not declared"),
        ("probability ( income ) { table", "probability ( income | tall ) { table", "write a row for each combination"),
        ("table 0.25, 0.75;", "table 0.25, 0.75", "line 7: expected ;, got something else"),
        ("table 0.25, 0.75;", "table 0.25, often;", "line 7: expected 2 numbers"),
        ("variable tall", "variable income", "declared twice"),
        ("network", "graph", "expected network or variable or probability"),
    ],
)
def test_a_file_that_is_not_understood_is_refused(old: str, new: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "school.bif"
    path.write_text(SCHOOL.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(PolicyError, match=r"must be a network without cycles in BIF. Got school.bif") as caught:
        read_network(path)
    assert says in str(caught.value)


def test_a_cycle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "school.bif"
    rows = "probability ( income | tall ) { (0.3) 0.25, 0.75; (0.5) 0.5, 0.5; }"
    path.write_text(SCHOOL.replace("probability ( income ) { table 0.25, 0.75; }", rows), encoding="utf-8")
    with pytest.raises(PolicyError, match="it has a cycle"):
        read_network(path)
