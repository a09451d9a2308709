"""What a network and its file may hold, at the edges: the last that is taken, and the first that is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attrpriv.errors import PolicyError
from attrpriv.numerics.networks import bif, network
from attrpriv.numerics.networks.bif import read_bif
from attrpriv.numerics.networks.network import Network, Node, boundary, connected, read_network

COIN = Node(states=("0", "1"), table=((0.5, 0.5),))
TABLE = ((0.1, 0.9), (0.2, 0.8), (0.3, 0.7), (0.4, 0.6), (0.45, 0.55), (0.35, 0.65))


def of_two_parents() -> dict[str, Node]:
    """The last parent is the fastest."""
    three = Node(states=("0", "1", "2"), table=((0.2, 0.3, 0.5),))
    return {"a": COIN, "b": three, "c": Node(states=("0", "1"), parents=("a", "b"), table=TABLE)}


def test_a_table_has_a_row_for_each_combination() -> None:
    net = Network(nodes=of_two_parents())
    assert net.array("c").shape == (2, 3, 2)
    assert net.array("c")[1, 0].tolist() == [0.4, 0.6]
    assert net.array("a").tolist() == [0.5, 0.5]
    short = Node(states=("0", "1"), parents=("a", "b"), table=TABLE[:5])
    with pytest.raises(PolicyError, match=r"needs 6 row"):
        Network(nodes=of_two_parents() | {"c": short})
    wide = Node(states=("0", "1"), parents=("a", "b"), table=(*TABLE[:5], (0.2, 0.3, 0.5)))
    with pytest.raises(PolicyError, match=r"6 row\(s\) of 2"):
        Network(nodes=of_two_parents() | {"c": wide})


def test_columns_that_are_not_there_or_in_a_circle() -> None:
    with pytest.raises(PolicyError, match="parents must come before"):
        Network(nodes={"a": COIN, "c": Node(states=("0", "1"), parents=("z",), table=((0.5, 0.5),) * 2)})
    around = {name: Node(states=("0", "1"), parents=(other,), table=((0.5, 0.5),) * 2) for name, other in ("ab", "ba")}
    with pytest.raises(PolicyError, match="parents must come before"):
        Network(nodes=around)
    turned = dict(reversed(of_two_parents().items()))
    assert list(Network(nodes=turned).nodes) == ["b", "a", "c"]
    assert list(Network(nodes=of_two_parents()).nodes) == ["a", "b", "c"]


@pytest.mark.parametrize("off", [1e-5, -1e-5])
def test_rows_sum_to_one_up_to_a_hundred_thousandth(off: float) -> None:
    for factor, fine in ((0.99, True), (1.01, False)):
        node = Node(states=("0", "1"), parents=("a",), table=((0.5, 0.5), (0.25, 0.75 + factor * off)))
        if fine:
            assert Network(nodes={"a": COIN, "b": node}).nodes["b"] == node
        else:
            with pytest.raises(PolicyError, match="must sum to 1"):
                Network(nodes={"a": COIN, "b": node})


@pytest.mark.parametrize("row", [(-0.1, 1.1), (1.1, -0.1), (0.5, -0.1), (1.0 + 1e-6, 0.0)])
def test_probabilities_are_between_zero_and_one(row: tuple[float, float]) -> None:
    assert Network(nodes={"a": Node(states=("0", "1"), table=((1.0, 0.0),))}).nodes["a"].table == ((1.0, 0.0),)
    with pytest.raises(PolicyError, match="between 0 and 1"):
        Network(nodes={"a": Node(states=("0", "1"), table=(row,))})


def test_states_and_parents_are_different() -> None:
    """Each of both alone."""
    for node in (
        Node(states=("0", "0"), parents=("a",), table=((0.5, 0.5),) * 2),
        Node(states=("0", "1"), parents=("a", "a"), table=((0.5, 0.5),) * 4),
    ):
        with pytest.raises(PolicyError, match="different from one another"):
            Network(nodes={"a": COIN, "b": node})


def test_a_file_as_large_as_it_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.bif"
    path.write_text("variable x { type discrete [ 2 ] { a, b }; } probability ( x ) { table 0.3, 0.7; }")
    monkeypatch.setattr(network, "_MOST_BYTES", path.stat().st_size)
    found = read_network(str(path))
    assert isinstance(found, Network)
    assert found.nodes["x"].table == ((0.3, 0.7),)
    assert read_network(found) is found
    monkeypatch.setattr(network, "_MOST_BYTES", path.stat().st_size - 1)
    with pytest.raises(PolicyError, match="is larger than"):
        read_network(path)


class Foreign:
    """A network of pyagrum's kind: the column first in a table's names, and its array's axes in the reverse order."""

    columns = ("b", "a", "c")

    def topologicalOrder(self) -> list[int]:  # noqa: N802
        return [1, 0, 2]

    def variable(self, k: int) -> Any:
        sizes = {"a": 2, "b": 3, "c": 2}
        name = self.columns[k]
        return SimpleNamespace(name=lambda: name, domainSize=lambda: sizes[name], label=lambda state: f"{name}{state}")

    def cpt(self, k: int) -> Any:
        name = self.columns[k]
        names = ["c", "b", "a"] if name == "c" else [name]
        values = {"a": np.array([0.5, 0.5]), "b": np.array([0.2, 0.3, 0.5]).astype(np.float32).astype(float)}
        made = values.get(name, np.array(TABLE).reshape(2, 3, 2))  # a, b, c
        return SimpleNamespace(names=names, toarray=lambda: made)


def test_networks_of_another_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parents in its own order, and its numbers in single precision as they were written."""
    monkeypatch.setitem(sys.modules, "pyagrum", SimpleNamespace(BayesNet=Foreign))
    found = read_network(Foreign())
    assert isinstance(found, Network)
    assert list(found.nodes) == ["a", "b", "c"]
    assert found.nodes["b"].table == ((0.2, 0.3, 0.5),)
    assert found.nodes["c"].parents == ("a", "b")
    assert found.nodes["c"].table == TABLE
    assert found.nodes["c"].states == ("c0", "c1")
    with pytest.raises(ValueError, match="must be the path"):
        read_network(7)
    monkeypatch.setitem(sys.modules, "pyagrum", None)
    with pytest.raises(ValueError, match="must be the path"):
        read_network(Foreign())


def test_numbers_of_single_precision_are_read_as_they_were_written() -> None:
    assert network._as_written(float(np.float32(0.3))) == 0.3
    assert network._as_written(0.3) == 0.3
    assert network._as_written(1 / 3) == 1 / 3


def test_a_file_says_what_a_row_is_for() -> None:
    """A state that is not there, too few of them, too many, and none where there is a parent."""
    head = """variable x { type discrete [ 2 ] { a, b }; } variable y { type discrete [ 2 ] { c, d }; }
    probability ( x ) { table 0.3, 0.7; } """
    good = head + "probability ( y | x ) { (a) 0.1, 0.9; default 0.6, 0.4; }"
    assert read_bif(good, "x.bif")["y"][2] == ((0.1, 0.9), (0.6, 0.4))
    for given in ("(c)", "()", "(a, b)", "(a, a)"):
        with pytest.raises(PolicyError, match="which its parents do not have"):
            read_bif(good.replace("(a)", given), "x.bif")
    with pytest.raises(PolicyError, match="y has a table"):
        read_bif(good.replace("(a)", "table"), "x.bif")
    with pytest.raises(PolicyError, match="y lacks a row"):
        read_bif(good.replace("default 0.6, 0.4;", ""), "x.bif")
    with pytest.raises(PolicyError, match="parent that is not declared"):
        read_bif(good.replace("| x", "| z"), "x.bif")
    with pytest.raises(PolicyError, match="x lacks a row"):
        read_bif(good.replace("table 0.3, 0.7;", ""), "x.bif")
    with pytest.raises(PolicyError, match="y is declared twice"):
        read_bif(head + "variable y { type discrete [ 2 ] { c, d }; }", "x.bif")
    with pytest.raises(PolicyError, match="cycle"):
        read_bif(good.replace("( x ) { table 0.3, 0.7; }", "( x | y ) { default 0.3, 0.7; }"), "x.bif")
    with pytest.raises(PolicyError, match="no variable"):
        read_bif("network n { }", "x.bif")


def test_as_many_as_a_file_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three variables of four probabilities together, names of three states and of two characters."""
    text = "".join(f"variable {name} {{ type discrete [ 2 ] {{ no, ye }}; }}\n" for name in ("aa", "bb", "cc"))
    text += "probability ( aa ) { table 0.5, 0.5; } probability ( bb | aa ) { default 0.25, 0.75; }"
    text += "probability ( cc ) { table 0.1, 0.9; }"
    limits = {"MOST_VARIABLES": 3, "MOST_PROBABILITIES": 8, "_MOST_STATES": 2, "_LONGEST_NAME": 4}
    for name, most in limits.items():
        monkeypatch.setattr(bif, name, most)
    assert read_bif(text, "x.bif")["bb"][2] == ((0.25, 0.75),) * 2
    for name, most in limits.items():
        with monkeypatch.context() as patched:
            patched.setattr(bif, name, most - 1)
            with pytest.raises(PolicyError):
                read_bif(text, "x.bif")


def test_a_message_names_the_line() -> None:
    for lines in (0, 1, 4):
        with pytest.raises(PolicyError, match=f"line {lines + 1}: "):
            read_bif("\n" * lines + "unknown x", "x.bif")


def test_paths_go_through_what_is_known_as_they_must() -> None:
    """a -> c <- b, c -> d: c or d ties a and b together; c cuts d off from both, unless d is what is known."""
    child = Node(states=("0", "1"), parents=("c",), table=((0.5, 0.5),) * 2)
    both = Node(states=("0", "1"), parents=("a", "b"), table=((0.5, 0.5),) * 4)
    net = Network(nodes={"a": COIN, "b": COIN, "c": both, "d": child})
    assert connected(net, "a", ()) == {"c", "d"}
    assert connected(net, "a", ("d",)) == {"b", "c"}
    assert connected(net, "a", ("c",)) == {"b"}
    assert connected(net, "d", ()) == {"a", "b", "c"}
    assert connected(net, "d", ("c",)) == frozenset()
    assert boundary(net, "a", ("b", "d")) == ("b", "d")
    assert boundary(net, "a", ("b",)) == ()
    assert boundary(net, "d", ("a", "b", "c")) == ("c",)
    assert boundary(net, "a", ("d", "c", "b")) == ("b", "c")
