"""The proof that a parameter of a network is hidden: influence by enumeration, terms that add up, and what may follow what."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

from attrpriv.methods.markov_quilt.proof import EarlierTerms, QuiltCheck, QuiltEvidence, QuiltTerm
from attrpriv.numerics.networks.network import Network, Node
from tests.unit.methods.proofs import counted, refused

TWO = ("low", "high")
FLIP = ((0.7, 0.3), (0.2, 0.8))
NETWORK = Network(
    nodes={
        "g": Node(states=TWO, table=((0.4, 0.6),)),
        "h": Node(states=TWO, parents=("g",), table=FLIP),
        "w": Node(states=TWO, parents=("h",), table=((0.9, 0.1), (0.35, 0.65))),
    }
)


def joint() -> dict[tuple[int, int, int], float]:
    found = {}
    for g, h, w in itertools.product((0, 1), repeat=3):
        found[g, h, w] = (0.4, 0.6)[g] * FLIP[g][h] * ((0.9, 0.1), (0.35, 0.65))[h][w]
    return found


def influence(known: str, on: str = "g") -> float:
    """max over values of what the known ones tell of the other: by enumeration."""
    names, law = "ghw", joint()
    i = names.index(on)
    worst = 0.0
    for values in itertools.product((0, 1), repeat=len(known)):
        both = []
        for x in (0, 1):
            given = sum(p for state, p in law.items() if state[i] == x)
            told = sum(
                p for state, p in law.items()
                if state[i] == x and tuple(state[names.index(name)] for name in known) == values
            )  # fmt: skip
            both.append(told / given)
        worst = max(worst, abs(math.log(both[0] / both[1])))
    return worst


def term(**changes: Any) -> QuiltTerm:
    return QuiltTerm(**({"name": "w", "columns": ("w",), "sensitivity": 2.0, "granularity": 0.25, "scale": 4.0} | changes))


def evidence(**changes: Any) -> QuiltEvidence:
    told: dict[str, Any] = {
        "networks": (NETWORK,), "tolerances": (0.0,), "protected": ("g",), "terms": (term(),),
        "checks": (QuiltCheck(secret="g", theta=0, known=()),),
    }  # fmt: skip
    return QuiltEvidence(**(told | changes))


def known(*names: str) -> tuple[QuiltCheck, ...]:
    return (QuiltCheck(secret="g", theta=0, known=names),)


def test_nothing_known_costs_the_whole_sensitivity() -> None:
    assert evidence().loss() == pytest.approx(2.25 / 4, rel=1e-11)
    assert evidence().loss() >= 2.25 / 4
    assert evidence().delta(2.25 / 4 * (1 + 1e-11)) == 0.0
    assert evidence().delta(2.25 / 4 * (1 - 1e-11)) == 1.0


@pytest.mark.parametrize("names", ["h", "w", "hw"])
def test_what_is_known_costs_its_influence(names: str) -> None:
    told = evidence(checks=known(*names))
    exact = influence(names) + (0.0 if "w" in names else 2.25 / 4)
    assert told.loss() == pytest.approx(exact, rel=1e-6)
    assert told.loss() >= exact * (1 - 1e-12)


def test_a_term_is_known_only_with_all_that_it_reads() -> None:
    both = term(name="s", columns=("h", "w"))
    assert both.part(frozenset({"h"})) == (2.25, 4.0)
    assert both.part(frozenset({"h", "w", "x"})) == (0.0, 4.0)
    assert both.part(frozenset()) == (2.25, 4.0)
    assert term(sensitivity=None).part(frozenset())[0] == math.inf
    assert term().rate() == pytest.approx(2.25 / 4)
    assert term().rate() >= 2.25 / 4
    assert term(scale=0.0).rate() == math.inf
    exact = term(scale=0.0)
    assert refused(evidence(terms=(exact,)))
    assert evidence(terms=(exact,), checks=known("w")).loss() == pytest.approx(influence("w"), rel=1e-6)
    assert refused(evidence(terms=(term(sensitivity=None),)))


def test_everything_released_adds_up() -> None:
    earlier = (EarlierTerms(columns=("h",), rate=0.125), EarlierTerms(columns=("w",), rate=0.5))
    two = (term(), term(name="h", columns=("h",), sensitivity=1.0, granularity=0.0, scale=8.0))
    told = evidence(terms=two, earlier=earlier)
    assert told.loss() == pytest.approx(0.125 + 0.5 + 2.25 / 4 + 0.125, rel=1e-11)
    with_h = evidence(terms=two, earlier=earlier, checks=known("h"))
    assert with_h.loss() == pytest.approx(influence("h") + 0.5 + 2.25 / 4, rel=1e-6)
    assert refused(evidence(earlier=(EarlierTerms(columns=("h",), rate=None),)))
    assert not refused(evidence(earlier=(EarlierTerms(columns=("h",), rate=None),), checks=known("h")))


def test_every_parameter_under_every_network_is_checked() -> None:
    other = Network(nodes={**NETWORK.nodes, "h": Node(states=TWO, parents=("g",), table=((0.9, 0.1), (0.1, 0.9)))})
    checks = (*known("h"), QuiltCheck(secret="g", theta=1, known=("h",)))
    both = evidence(networks=(NETWORK, other), tolerances=(0.0, 0.0), checks=checks)
    assert both.loss() == pytest.approx(math.log(9) + 2.25 / 4, rel=1e-6)
    assert refused(evidence(networks=(NETWORK, other), tolerances=(0.0, 0.0), checks=checks[:1]))
    assert refused(evidence(networks=(NETWORK, other), tolerances=(0.0,), checks=checks))
    assert refused(evidence(protected=("g", "h")))
    assert refused(evidence(checks=(*known(), QuiltCheck(secret="h", theta=0, known=()))))
    assert refused(evidence(checks=()))
    wide = evidence(tolerances=(0.1,), checks=known("h"))
    assert wide.loss() > evidence(checks=known("h")).loss() + 0.01


def test_what_is_spent() -> None:
    lost = evidence().loss()
    assert evidence().spent(2 * lost, 0.0) == pytest.approx(0.5, rel=1e-12)
    assert evidence().spent(2 * lost, 0.0) >= 0.5
    assert evidence().spent(lost, 0.0) == 1.0
    assert evidence().spent(lost / 2, 0.0) == pytest.approx(2.0, rel=1e-12)


def test_what_may_follow() -> None:
    first = evidence(terms=(term(), term(name="s", columns=("w", "h"), sensitivity=1.0, scale=2.0)))
    assert first.follows(None)
    kept = first.together()
    assert [one.columns for one in kept] == [("h", "w"), ("w",)]
    assert [one.rate for one in kept] == pytest.approx([1.25 / 2, 2.25 / 4], rel=1e-12)
    then = evidence(earlier=kept)
    assert then.follows(first)
    assert not then.follows(None)
    assert not first.follows(first)
    assert not then.follows("something else")
    assert not evidence(earlier=kept[:1]).follows(first)
    again = then.together()
    assert [one.rate for one in again] == pytest.approx([1.25 / 2, 2 * 2.25 / 4], rel=1e-12)
    assert again[1].rate is not None
    assert again[1].rate >= 2 * 2.25 / 4
    assert evidence(terms=(term(scale=0.0),)).together()[0].rate is None


def test_what_is_covered() -> None:
    told = evidence()
    assert told.covers("w", "laplace", 4.0)
    for other in (("h", "laplace", 4.0), ("w", "none", 4.0), ("w", "laplace", 3.0)):
        assert not told.covers(*other)
    assert evidence(terms=(term(scale=0.0),)).covers("w", "none", 0.0)
    assert not evidence(terms=(term(scale=0.0),)).covers("w", "laplace", 0.0)
    assert not evidence(terms=(term(columns=("h", "w")),)).covers("w", "laplace", 4.0)
    read = frozenset({"w"})
    assert told.covers_statistic("w", read, Fraction(2), "laplace", 4.0)
    for name, columns, width, kind, scale in (
        ("h", read, 2, "laplace", 4.0), ("w", frozenset({"h"}), 2, "laplace", 4.0), ("w", read, 3, "laplace", 4.0),
        ("w", read, 2, "none", 4.0), ("w", read, 2, "laplace", 3.0),
    ):  # fmt: skip
        assert not told.covers_statistic(name, columns, Fraction(width), kind, scale)
    assert not evidence(terms=(term(sensitivity=None),)).covers_statistic("w", read, Fraction(2), "laplace", 4.0)
    assert told.width_of("w") == 2.0
    assert told.width_of("h") is None
    assert evidence(terms=(term(), term(sensitivity=1.0), term(sensitivity=None))).width_of("w") == 1.0


def test_a_count_is_covered_for_all_of_its_rows() -> None:
    told = evidence(terms=(term(sensitivity=20.0),))
    asked: dict[str, Any] = {"n": 10, "width": 2, "scale": 4.0, "reads": frozenset({"w"})}
    assert told.covers_tally(counted(**asked))
    for changes in ({"n": 11}, {"width": 1}, {"scale": 3.0}, {"noise": "none"}, {"reads": frozenset({"h"})}):
        assert not told.covers_tally(counted(**(asked | changes))), changes
    assert not evidence(terms=(term(sensitivity=20.0), term(sensitivity=20.0))).covers_tally(counted(**asked))
