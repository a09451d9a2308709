"""The counts assumption: what it accepts, what it says of events and values, and what it refuses to say."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.probabilities import Pair
from attrpriv.errors import PolicyError, QueryError
from attrpriv.numerics.networks.network import Network, Node
from attrpriv.queries.conditions import parse_condition
from tests.unit.assumptions.networks import brute, random_network

STAY = {"stay > 7": {"yes": 0.4, "no": (0.18, 0.22)}}
VISITS = {
    "visits": {
        "yes": {"values": [0, 1, 3], "probabilities": [0.2, 0.5, 0.3]},
        "no": {"values": [0, 1, 3], "probabilities": [(0.4, 0.6), (0.2, 0.3), (0.1, 0.3)]},
    }
}


def smokers(**changes: Any) -> Counts:
    return Counts(**({"sensitive": "smoker", "given": STAY | VISITS} | changes))


def event(counts: Counts, text: str, **bins: Any) -> dict[str, Pair]:
    return counts.event(parse_condition(text), bins)


def near(pair: tuple[float, float]) -> Any:
    return pytest.approx(pair, abs=1e-12)


# ------------------------------------------------------------------------------------------------------------ validation


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"given": {}}, "needs given (probabilities in each category) or network (a BIF file), one of them."),
        ({"tolerance": 0.1}, "tolerance: goes with a network, and is needed there (0 is allowed); given takes intervals."),
        ({"given": {"stay > 7": {"yes": 1.4, "no": 0.2}}}, "probabilities must be between 0 and 1. Got 1.4."),
        (
            {"given": {"stay > 7": {"yes": (0.4, 0.3), "no": 0.2}}},
            "the low end must not be above the high end. Got [0.4, 0.3].",
        ),
        ({"given": {"stay > 7": {"yes": 0.4}}}, "given.stay > 7: must have two or more categories, the same for all. Got yes."),
        (
            {"given": STAY | {"x = 1": {"yes": 0.4, "may": 0.2}}},
            "given.x = 1: must have two or more categories, the same for all.",
        ),
        (
            {"given": {"stay >": {"yes": 0.4, "no": 0.2}}},
            "stay >: must be a condition such as stay > 7, or a column with values.",
        ),
        ({"given": {"smoker = 'yes'": {"yes": 1, "no": 0}}}, "the sensitive column itself needs no probability; remove it."),
        ({"prior": {"may": 0.4}}, "prior.may: must be one of yes, no."),
        ({"prior": {"yes": 0.4, "no": 0.5}}, "probabilities must sum to 1. Got a sum of 0.9, off by -0.1."),
        ({"prior": {"yes": 1.4}}, "probabilities must be between 0 and 1. Got 1.4."),
        ({"other": "may"}, "other: must be one of yes, no. Got may."),
    ],
)
def test_a_bad_assumption_says_what_is_wrong(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        smokers(**changes)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_categories_must_list_the_same_values() -> None:
    laws = {name: {"values": [0, k], "probabilities": [0.5, 0.5]} for k, name in enumerate(("yes", "no"), 1)}
    with pytest.raises(PolicyError, match=r"given.visits: every category must list the same values"):
        smokers(given={"visits": laws})


def test_values_that_do_not_sum_to_one_say_by_how_much() -> None:
    laws = {name: {"values": [0, 1], "probabilities": [0.5, 0.45]} for name in ("yes", "no")}
    with pytest.raises(PolicyError, match=r"given.visits.yes: probabilities must sum to 1. Got a sum of 0.95, off by -0.05"):
        smokers(given={"visits": laws})


NETWORK = Network(
    nodes={
        "smoker": Node(states=("yes", "no"), table=((0.3, 0.7),)),
        "stay": Node(states=("short", "long"), parents=("smoker",), table=((0.6, 0.4), (0.8, 0.2))),
    }
)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "tolerance: goes with a network, and is needed there"),
        ({"tolerance": 0.0, "sensitive": "age"}, "sensitive: must be a column of the network. Got age."),
        ({"tolerance": 0.0, "prior": {"yes": 0.3}}, "prior: comes from the network; leave it out."),
        ({"tolerance": 0.0, "given": STAY}, "one of them."),
        ({"tolerance": 0.0, "other": "may"}, "other: must be one of yes, no. Got may."),
        ({"tolerance": -0.1}, "tolerance"),
        ({"tolerance": 1.0}, "tolerance"),
    ],
)
def test_a_bad_network_assumption_says_what_is_wrong(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Counts(**({"sensitive": "smoker", "network": NETWORK} | changes))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "made", [smokers(prior={"yes": (0.2, 0.3)}, other="no"), Counts(sensitive="smoker", network=NETWORK, tolerance=0.01)]
)
def test_json_round_trip(made: Counts) -> None:
    assert Counts.from_json(made.to_json()) == made


def test_a_file_is_read_once_and_kept(tmp_path: Path) -> None:
    pytest.importorskip("pyagrum")
    path = tmp_path / "x.bif"
    path.write_text(
        'network "x" {}\nvariable smoker { type discrete[2] {yes, no}; }\nprobability (smoker) { default 0.3 0.7; }\n'
    )
    made = Counts(sensitive="smoker", network=str(path), tolerance=0.0)
    path.unlink()
    assert made.categories == ("yes", "no")
    assert Counts.from_json(made.to_json()) == made


# ---------------------------------------------------------------------------------------------------------------- events


def test_a_condition_on_many_columns_of_a_network_fills_no_memory() -> None:
    coin = Node(states=("a", "b"), table=((0.5, 0.5),))
    counts = Counts(sensitive="v0", network=Network(nodes={f"v{k}": coin for k in range(45)}), tolerance=0.0)
    few = event(counts, " and ".join(f"v{k} = 'a'" for k in range(1, 9)))
    assert few["a"] == near((0.5**8, 0.5**8))
    with pytest.raises(QueryError, match=r"a condition on v1, v2, v3, v4, v5, v6, \.\.\. has too many combinations"):
        event(counts, " and ".join(f"v{k} = 'a'" for k in range(1, 45)))


def test_events_are_found_by_what_they_say() -> None:
    counts = smokers(given={"stay>7": STAY["stay > 7"]})
    assert event(counts, "stay > 7") == {"yes": (0.4, 0.4), "no": (0.18, 0.22)}
    assert event(counts, "not (stay > 7)") == {"yes": near((0.6, 0.6)), "no": near((0.78, 0.82))}
    assert event(smokers(given={"not (stay > 7)": {"yes": 0.25, "no": 0.5}}), "stay > 7") == {
        "yes": (0.75,) * 2,
        "no": (0.5,) * 2,
    }
    with pytest.raises(QueryError, match=r"must give the probability of stay > 8 in each category. Got stay > 7"):
        event(counts, "stay > 8")


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("visits >= 1", (0.8, 0.8), (0.4, 0.6)),
        ("visits = 3", (0.3, 0.3), (0.1, 0.3)),
        ("visits in (0, 3)", (0.5, 0.5), (0.7, 0.8)),
        ("not (visits = 1)", (0.5, 0.5), (0.7, 0.8)),
        ("visits >= 0", (1.0, 1.0), (1.0, 1.0)),
        ("visits > 3", (0.0, 0.0), (0.0, 0.0)),
    ],
)
def test_events_of_a_column_with_values(text: str, yes: tuple[float, float], no: tuple[float, float]) -> None:
    assert event(smokers(), text) == {"yes": near(yes), "no": near(no)}


@pytest.mark.parametrize("seed", range(30))
def test_intervals_of_events_hold_every_law_of_the_box_and_are_attained(seed: int) -> None:
    """The vertices of a box of three values: all but one of them at an end."""
    rng = random.Random(seed)
    p = [rng.random() + 0.1 for _ in range(3)]
    box = [(max(0.0, q / sum(p) - 0.1 * rng.random()), min(1.0, q / sum(p) + 0.1 * rng.random())) for q in p]
    chosen = [k for k in range(3) if rng.random() < 0.5]
    laws = {name: {"values": [0, 1, 2], "probabilities": box} for name in ("yes", "no")}
    text = " or ".join(f"x = {k}" for k in chosen) or "x > 5"
    low, high = event(smokers(given={"x": laws}), text)["yes"]
    found = []
    for free in range(3):
        for ends in itertools.product(*(box[k] for k in range(3) if k != free)):
            law = list(ends)
            law.insert(free, 1 - sum(ends))
            if box[free][0] - 1e-12 <= law[free] <= box[free][1] + 1e-12:
                found.append(sum(law[k] for k in chosen))
    assert (low, high) == near((min(found), max(found)))


def test_a_boolean_column_may_have_the_values_true_and_false_or_one_and_zero() -> None:
    """Found to be taken for impossible, and released exactly, before."""
    for values in ([True, False], [1, 0], ["true", "false"]):
        laws = {name: {"values": values, "probabilities": [p, 1 - p]} for name, p in (("yes", 0.9), ("no", 0.1))}
        counts = smokers(given={"flag": laws})
        assert event(counts, "flag = true") == {"yes": near((0.9, 0.9)), "no": near((0.1, 0.1))}
        assert event(counts, "not (flag = true)") == {"yes": near((0.1, 0.1)), "no": near((0.9, 0.9))}


def test_bins_must_be_as_many_as_values() -> None:
    """Found: a bin without a value was taken for impossible, and released exactly, before."""
    with pytest.raises(QueryError, match=r"bins: visits needs a bin for each of its 3 states, in order. Got 4"):
        event(smokers(), "visits >= 9", visits=(0, 3, 6, 9, 12))
    assert event(smokers(), "visits >= 6", visits=(0, 3, 6, 9))["yes"] == near((0.3, 0.3))


def test_events_of_the_sensitive_column_are_certain() -> None:
    assert event(smokers(), "smoker = 'yes'") == {"yes": (1.0, 1.0), "no": (0.0, 0.0)}
    assert event(smokers(), "smoker is null") == {"yes": (0.0, 0.0), "no": (0.0, 0.0)}
    ages = Counts(sensitive="age", given={"stay > 7": {"young": 0.4, "old": 0.5}})
    assert event(ages, "age >= 65", age=(0, 65, 120)) == {"young": (0.0, 0.0), "old": (1.0, 1.0)}
    with pytest.raises(QueryError, match="cuts the bin"):
        event(ages, "age >= 70", age=(0, 65, 120))


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("smoker = 'yes'", (0.0, 0.0)),
        ("smoker in ('yes', 'no')", (0.0, 0.0)),
        ("smoker = 'yes' or smoker is 'no'", (0.0, 0.0)),
        ("smoker = 'yes' and smoker != 'no'", (0.0, 0.0)),
        ("smoker = 'maybe'", (0.0, 1.0)),
        ("smoker = '''yes'''", (0.0, 1.0)),
        ("smoker in ('yes', 'maybe')", (0.0, 1.0)),
        ("smoker = 'unknown'", (0.0, 1.0)),
        ("smoker != 'yes'", (0.0, 1.0)),
        ("not (smoker = 'yes')", (0.0, 1.0)),
        ("smoker is null", (0.0, 1.0)),
        ("smoker = 'yes' or smoker is null", (0.0, 1.0)),
    ],
)
def test_rows_of_no_named_category_may_have_any_value_or_none(text: str, other: tuple[float, float]) -> None:
    """Found: `smoker = 'maybe'` was taken for impossible, and released exactly, before."""
    counts = Counts(sensitive="smoker", given={"stay > 7": {"yes": 0.4, "no": 0.2, "unknown": 0.3}}, other="unknown")
    assert event(counts, text)["unknown"] == other


def test_events_of_no_known_column() -> None:
    with pytest.raises(QueryError, match="must give the probability of age > 3"):
        event(smokers(), "age > 3")
    with pytest.raises(QueryError, match="must give the values of stay with their probabilities"):
        smokers().values("stay", {})


# ---------------------------------------------------------------------------------------------------------------- shares


@pytest.mark.parametrize(
    ("prior", "shares"),
    [
        ({}, {}),
        ({"yes": 0.25}, {"yes": (0.25, 0.25), "no": (0.75, 0.75)}),
        ({"yes": (0.25, 0.5)}, {"yes": (0.25, 0.5), "no": (0.5, 0.75)}),
        ({"yes": 0.25, "no": 0.75}, {"yes": (0.25, 0.25), "no": (0.75, 0.75)}),
    ],
)
def test_shares(prior: dict[str, Any], shares: dict[str, tuple[float, float]]) -> None:
    assert smokers(prior=prior).shares() == shares


# -------------------------------------------------------------------------------------------------------------- networks


@pytest.mark.parametrize("seed", range(20))
def test_a_network_answers_like_its_joint_law(seed: int) -> None:
    rng = random.Random(seed)
    network = random_network(rng)
    sensitive, one, two = rng.sample(list(network.nodes), 3)
    counts = Counts(sensitive=sensitive, network=network, tolerance=0.0)
    states = [network.nodes[column].states for column in (one, two)]
    text = f"{one} = '{states[0][0]}' or not ({two} in ('{states[1][-1]}', 'z'))"
    held: set[tuple[int, ...]] = {
        (i, j) for i in range(len(states[0])) for j in range(len(states[1])) if i == 0 or j != len(states[1]) - 1
    }
    for k, name in enumerate(counts.categories):
        share = brute(network, None, [sensitive], {(k,)})
        assert counts.shares()[name] == near((share, share))
        if share > 0:
            truth = brute(network, (sensitive, k), [one, two], held)
            assert event(counts, text)[name] == near((truth, truth))
            laws = counts.values(one, {})[1][name]
            assert [p for p, _ in laws] == pytest.approx(
                [brute(network, (sensitive, k), [one], {(i,)}) for i in range(len(states[0]))], abs=1e-12
            )


def test_a_network_with_bins_and_without_a_column() -> None:
    counts = Counts(sensitive="smoker", network=NETWORK, tolerance=0.0)
    assert event(counts, "stay >= 7", stay=(0, 7, 100)) == {"yes": near((0.4, 0.4)), "no": near((0.2, 0.2))}
    assert event(counts, "stay >= 7 and smoker = 'no'", stay=(0, 7, 100)) == {"yes": near((0, 0)), "no": near((0.2, 0.2))}
    with pytest.raises(QueryError, match=r"age must be a column of the network. Got smoker, stay"):
        event(counts, "age > 3")
    with pytest.raises(QueryError, match="bins: stay needs a bin for each of its 2 states"):
        event(counts, "stay >= 7", stay=(0, 7, 50, 100))
    with pytest.raises(QueryError, match="among rows of no is not given; leave smoker out"):
        event(counts.model_copy(update={"other": "no"}), "stay = 'long' and smoker = 'no'")


def test_a_tolerance_widens() -> None:
    wide = Counts(sensitive="smoker", network=NETWORK, tolerance=0.05)
    assert event(wide, "stay = 'long'") == {"yes": near((0.35, 0.45)), "no": near((0.15, 0.25))}
    assert wide.shares() == {"yes": near((0.25, 0.35)), "no": near((0.65, 0.75))}


def test_it_is_told_in_a_line() -> None:
    told = str(smokers())
    assert "given the category of smoker (yes, no)" in told
    assert "stay > 7 (yes 0.4, no 0.18 to 0.22)" in told
    assert "visits in 0, 1, 3" in told
    assert "each probability off by at most 0.05" in str(Counts(sensitive="smoker", network=NETWORK, tolerance=0.05))
