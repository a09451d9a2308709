"""The parameter network: what it must state, what it says of a parameter given another, and learning one from populations."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.engines.moments import PublicTable
from attrpriv.errors import DataError, PolicyError, UsageError
from attrpriv.numerics.networks.network import Network, Node
from attrpriv.problem.assumption import Assumption
from tests.unit.assumptions.networks import brute, random_network

FLIP = ((0.7, 0.3), (0.3, 0.7))
NODES = {
    "income": Node(states=("low", "high"), table=((0.5, 0.5),)),
    "tall": Node(states=("0.3", "0.5"), parents=("income",), table=FLIP),
}
BIF = """network "school" {}
variable income { type discrete[2] {low, high}; }
variable tall { type discrete[2] {few, many}; }
probability (income) { default 0.5 0.5; }
probability (tall | income) { (low) 0.7 0.3; (high) 0.3 0.7; }
"""


def stated(**changes: Any) -> ParameterNetwork:
    given: dict[str, Any] = {
        "network": Network(nodes=NODES),
        "values": {"income": {"low": 40_000, "high": 80_000}},
        "attributes": {"tall": {"family": "bernoulli"}, "income": {"family": "normal", "sd": 3e4}},
        "tolerance": 0,
    }
    return ParameterNetwork(**(given | changes))


def test_json_round_trip() -> None:
    network = stated(tolerance=0.01)
    assert ParameterNetwork.from_json(json.loads(json.dumps(network.to_json()))) == network
    assert Assumption.of_kind(network.to_json()) == network


def test_it_says_what_it_is() -> None:
    assert str(stated()) == (
        "the parameters of income, tall form a network, and each column depends on its own alone "
        "(tolerance 0: its tables are taken as exact)"
    )
    assert "tolerance 0.02" in str(stated(tolerance=0.02))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tolerance": 1.0}, "tolerance: "),
        ({"values": {"shoe": {"low": 1}}}, "values.shoe: must be in the network. It has income, tall."),
        ({"values": {"income": {"lo": 1}}}, "values.income: has the states low, high. Got lo."),
        ({"values": {}}, "values.income: needs a number for the state low."),
        ({"attributes": {"shoe": {"family": "none"}}}, "attributes.shoe: must be in the network."),
        ({"attributes": {"income": {"family": "bernoulli"}}}, "a bernoulli parameter must be in [0, 1]. Got 40000."),
        ({"attributes": {"income": {"family": "normal"}}}, "sd: goes with family normal, and is needed there."),
        ({"attributes": {"tall": {"family": "categorical"}}}, "categories: go with family categorical"),
        (
            {"attributes": {"tall": {"family": "categorical", "categories": ["a", "b"], "probabilities": {"0.3": [0.5, 0.4]}}}},
            "probabilities.0.3: needs one for each category, and they must sum to 1.",
        ),
        (
            {"attributes": {"tall": {"family": "categorical", "categories": ["a", "b"], "probabilities": {"0.3": [0.5, 0.5]}}}},
            "attributes.tall: probabilities are needed for the states 0.3, 0.5.",
        ),
        ({"attributes": {"tall": {"family": "poisson"}}}, "attributes.tall.family: "),
    ],
)
def test_what_is_wrong_is_said_in_one_line(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        stated(**changes)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_tolerance_is_required() -> None:
    with pytest.raises(PolicyError, match="tolerance: is required and has no default"):
        ParameterNetwork.checked({"network": Network(nodes=NODES)})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BIF.replace("0.7 0.3;", "0.7 0.2;"), "tall: each row of its table must sum to 1. Got a row that is off by -0.1."),
        (BIF.replace("(income) { default 0.5 0.5; }", "(income | tall) { (few) 0.5 0.5; (many) 0.5 0.5; }"), "without cycles"),
    ],
)
def test_a_bad_file_says_what_is_wrong(text: str, said: str, tmp_path: Path) -> None:
    pytest.importorskip("pyagrum")
    path = tmp_path / "school.bif"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PolicyError) as caught:
        ParameterNetwork(file=str(path), tolerance=0)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_is_read(tmp_path: Path) -> None:
    pytest.importorskip("pyagrum")
    path = tmp_path / "school.bif"
    path.write_text(BIF, encoding="utf-8")
    read = ParameterNetwork(file=str(path), tolerance=0)
    assert read.columns == ("income", "tall")
    assert "school.bif" not in json.dumps(read.to_json())  # what it says counts, not where it was


# --------------------------------------------------------------------------------------------------------------- posterior


def test_the_posterior_as_numbers() -> None:
    found = stated().posterior("income", "tall")
    assert found.values == (40_000.0, 80_000.0)
    assert [low for low, _ in found.given["0.3"]] == pytest.approx([0.7, 0.3])
    itself = stated().posterior("tall", "tall")
    assert itself.given["0.5"] == ((0.0, 0.0), (1.0, 1.0))


@pytest.mark.parametrize("seed", range(20))
def test_the_posterior_against_the_joint_law(seed: int) -> None:
    rng = random.Random(seed)
    network = random_network(rng)
    numbers = {name: {state: float(k) for k, state in enumerate(node.states)} for name, node in network.nodes.items()}
    column, secret = rng.sample("abcd", 2)
    t = rng.choice([0.0, 0.02])
    found = ParameterNetwork(network=network, values=numbers, tolerance=t).posterior(column, secret)
    for k, state in enumerate(network.nodes[secret].states):
        if brute(network, None, [secret], {(k,)}) == 0:
            continue
        for v, (low, high) in enumerate(found.given[state]):
            truth = brute(network, (secret, k), [column], {(v,)})
            assert low - 1e-12 <= truth <= high + 1e-12
            assert high - low < 1e-12 if t == 0 else high > low


def test_impossible_values_have_no_posterior() -> None:
    sure = {**NODES, "income": Node(states=("low", "high"), table=((1.0, 0.0),))}
    assert list(stated(network=Network(nodes=sure)).posterior("tall", "income").given) == ["low"]


def test_a_state_without_a_number_where_one_is_needed() -> None:
    bare = stated(values={}, attributes={})
    with pytest.raises(UsageError, match=r"values.income: needs a number for the state low."):
        bare.posterior("income", "tall")
    with pytest.raises(UsageError, match=r"parameter: must be one of the network's, income, tall. Got shoe."):
        bare.posterior("shoe", "tall")


# --------------------------------------------------------------------------------------------------------------------- fit


@dataclass(frozen=True)
class Rows:
    rows: int
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    digest: str = "0" * 64


@dataclass(frozen=True)
class Table:
    columns: dict[str, tuple[float, ...]]

    def populations(self, columns: Any) -> Rows:
        return Rows(len(next(iter(self.columns.values()))), tuple(columns), tuple(self.columns[name] for name in columns))


DISTRICTS = Table({"income": (1.0, 1.0, 3.0, 3.0), "tall": (0.1, 0.2, 0.9, 0.2), "sat": (0.1, 0.2, 0.9, 1.0)})
BINS = {"income": (0.0, 2.0, 4.0), "tall": (0.0, 0.5, 1.0)}


def test_counts_are_smoothed() -> None:
    found = ParameterNetwork.fit(DISTRICTS, bins=BINS, tolerance=0.1, parents={"tall": ["income"]})
    assert found.network.nodes["income"].table == ((0.5, 0.5),)
    assert found.network.nodes["tall"].table == ((0.75, 0.25), (0.5, 0.5))
    assert found.values["tall"] == {"[0, 0.5)": 0.25, "[0.5, 1]": 0.75}
    assert found.fitted is not None
    assert found.fitted.rows == 4
    assert "learned from 4 reference populations" in str(found)


def test_plain_counts() -> None:
    found = ParameterNetwork.fit(DISTRICTS, bins=BINS, tolerance=0, parents={"tall": ["income"]}, smoothing=0)
    assert found.network.nodes["tall"].table == ((1.0, 0.0), (0.5, 0.5))


def test_the_tree_joins_what_goes_together() -> None:
    found = ParameterNetwork.fit(DISTRICTS, bins={**BINS, "sat": (0.0, 0.5, 1.0)}, tolerance=0.1)
    assert found.network.nodes["sat"].parents == ("income",)
    assert found.network.nodes["tall"].parents == ("income",)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"bins": {}}, "bins: must name one or more columns"),
        ({"bins": {"income": (0.0, 4.0)}}, "bins: income needs three or more finite edges"),
        ({"bins": {"income": (0.0, 1.0, 2.0)}}, "populations: every entry of income must lie in its bins, 0 to 2."),
        ({"smoothing": -1.0}, "smoothing be at least 0"),
        ({"parents": {"tall": ["shoe"]}}, "parents: must be columns with bins. Got shoe."),
        ({"parents": {"tall": ["income"], "income": ["tall"]}}, "parents: must be without cycles. Got one among income, tall."),
        (
            {
                "bins": {"income": (0.0, 2.0, 4.0, 6.0), "tall": (0.0, 0.5, 1.0)},
                "smoothing": 0.0,
                "parents": {"tall": ["income"]},
            },
            "some combination of income has none",
        ),
    ],
)
def test_bad_fits_are_one_line(changes: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"bins": BINS, "tolerance": 0}
    with pytest.raises((UsageError, DataError)) as caught:
        ParameterNetwork.fit(DISTRICTS, **(given | changes))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_path_is_no_table() -> None:
    with pytest.raises(UsageError, match=r"PublicTable\(\"districts.csv\"\)"):
        ParameterNetwork.fit("districts.csv", bins=BINS, tolerance=0)  # type: ignore[arg-type]


def test_a_public_table_is_read(tmp_path: Path) -> None:
    path = tmp_path / "districts.csv"
    path.write_text("income,tall\n1,0.1\n1,0.2\n3,0.9\n3,0.2\n", encoding="utf-8")
    found = ParameterNetwork.fit(PublicTable(path), bins=BINS, tolerance=0.1)
    same = ParameterNetwork.fit(DISTRICTS, bins=BINS, tolerance=0.1)
    assert found.network == same.network
    path.write_text("income,tall\n1,0.1\n,0.2\n", encoding="utf-8")
    with pytest.raises(DataError):
        ParameterNetwork.fit(PublicTable(path), bins=BINS, tolerance=0.1)
