"""Problems about counts: rows of two categories, parameters of a network, and entries of a chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrpriv.assumptions.chain import Chain
from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.numerics.networks.network import Network, Node
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from bench.utility_suite.entries import Entry
from bench.utility_suite.worlds import AnyWorld, ChainWorld, CountWorld, NetworkWorld

Probability = float | tuple[float, float]

# ------------------------------------------------------------------------------------------------------------------- counts


def _events(
    name: str,
    member: Probability,
    rest: Probability,
    share: float | None = None,
    **changes: Any,
) -> Entry:
    """How many rows have an event, where how many rows are of a category is hidden."""
    assumed = Counts(
        sensitive="smoker", given={"stay > 7": {"yes": member, "no": rest}}, prior={} if share is None else {"yes": share}
    )
    p, q = (p[1] if isinstance(p, tuple) else p for p in (member, rest))
    return _counted(name, assumed, Query("count", where="stay > 7"), ((0, 1), (1 - p, p), (1 - q, q)), share, changes)


VISITS = {"yes": (0.2, 0.5, 0.3), "no": (0.5, 0.3, 0.2)}


def _sums(name: str, query: Query, share: float | None = None, **changes: Any) -> Entry:
    """A sum of few values."""
    given = {"visits": {k: {"values": [0, 1, 3], "probabilities": list(law)} for k, law in VISITS.items()}}
    assumed = Counts(sensitive="smoker", given=given, prior={} if share is None else {"yes": share})
    return _counted(name, assumed, query, ((0, 1, 3), VISITS["yes"], VISITS["no"]), share, changes)


def _counted(
    name: str,
    assumed: Counts,
    query: Query,
    laws: tuple[tuple[int, ...], tuple[float, ...], tuple[float, ...]],
    share: float | None,
    changes: dict[str, Any],
) -> Entry:
    n = int(changes.get("n", 20))
    stated: dict[str, Any] = {
        "queries": (query,),
        "secrets": (Secret("count(smoker = 'yes')", between=(0.0, float(n))),),
        "epsilon": 1.0,
        "n": n,
        "theta": (assumed,),
    }
    problem = Problem(**(stated | changes))
    values, member, rest = laws
    return Entry(f"counts: {name}", "counts", problem, CountWorld(problem, values, member, rest, share), "wasserstein")


def _all_counts() -> list[Entry]:
    total, average = Query("sum", "visits"), Query("avg", "visits")
    near = (Secret("count(smoker = 'yes')", between=(200.0, 500.0), within=50.0),)
    share = (Parameter("share(smoker = 'yes')", between=(0.2, 0.5)),)
    return [
        _events("4 rows, .4 or .6, ε .5", 0.4, 0.6, n=4, epsilon=0.5),
        _events("4 rows, .4 or .6", 0.4, 0.6, n=4),
        _events("20 rows, .4 or .6, prior", 0.4, 0.6, 0.5),
        _events("20 rows, .4 or .6, prior, ε .1", 0.4, 0.6, 0.5, epsilon=0.1),
        _events("20 rows, .4 or .6 within .05", (0.35, 0.45), (0.55, 0.65), 0.5),
        _events("20 rows, .2 or .6 within .01", (0.19, 0.21), (0.59, 0.61), 0.5),
        _events(
            "40 rows, 10 to 20 hidden, δ 1e-6",
            0.4,
            0.2,
            0.4,
            n=40,
            delta=1e-6,
            secrets=(Secret("count(smoker = 'yes')", between=(10.0, 20.0)),),
        ),
        _events("1,000 rows, near counts, δ 1e-6", 0.4, 0.2, 0.35, n=1_000, delta=1e-6, secrets=near),
        _events("1,000 rows, within 10%", (0.36, 0.44), (0.18, 0.22), 0.35, n=1_000, delta=1e-6, secrets=near),
        _events("100,000 rows, prior", 0.31, 0.3, 0.4, n=100_000),
        _events("1,000,000 rows, prior, ε .5", 0.31, 0.3, 0.4, n=1_000_000, epsilon=0.5),
        _sums("a sum of 30 rows", total, 0.4, n=30),
        _sums("an average of 200 rows, ε 2", average, 0.4, n=200, epsilon=2.0),
        _events("30 rows, share of the population", 0.4, 0.2, n=30, secrets=share),
    ]


# ------------------------------------------------------------------------------------------------- parameters of a network


def _known_law(name: str, stay: float = 0.7, **changes: Any) -> Entry:
    """A population's parameter is hidden in a count whose law follows from another parameter."""
    flip = ((stay, 1 - stay), (1 - stay, stay))
    nodes = {
        "income": Node(states=("low", "high"), table=((0.5, 0.5),)),
        "height": Node(states=("0.3", "0.5"), parents=("income",), table=flip),
    }
    assumed = ParameterNetwork(network=Network(nodes=nodes), attributes={"height": {"family": "bernoulli"}}, tolerance=0)
    stated: dict[str, Any] = {
        "queries": (Query("count", where="height = 1"),),
        "secrets": (Parameter("income"),),
        "epsilon": 0.5,
        "n": 30,
        "theta": (assumed,),
    }
    problem = Problem(**(stated | changes))
    world = NetworkWorld(problem, {"low": (stay, 1 - stay), "high": (1 - stay, stay)}, (0.5, 0.5), (0.3, 0.5))
    return Entry(f"network: {name}", "network", problem, world, "markov_quilt")


def _unknown_law(name: str, query: Query, tolerance: float = 0.0, **changes: Any) -> Entry:
    """The same where nothing is known of a column but which parameter it depends on."""
    two, flip = ("low", "high"), ((0.8, 0.2), (0.2, 0.8))
    nodes = {
        "gender": Node(states=two, table=((0.5, 0.5),)),
        "income": Node(states=two, parents=("gender",), table=flip),
        "height": Node(states=two, parents=("gender",), table=flip),
        "weight": Node(states=two, parents=("height",), table=flip),
    }
    stated: dict[str, Any] = {
        "queries": (query,),
        "secrets": (Parameter("income"),),
        "epsilon": 1.0,
        "n": 100,
        "theta": (ParameterNetwork(network=Network(nodes=nodes), tolerance=tolerance),),
        "bounds": {"weight": (60.0, 400.0), "height": (40.0, 90.0)},
    }
    problem = Problem(**(stated | changes))
    return Entry(f"network: {name}", "network", problem, AnyWorld(problem), "markov_quilt")


def _networks() -> list[Entry]:
    tall = Query("count", where="height > 66")
    return [
        _known_law("30 rows, known law"),
        _known_law("30 rows, known law, ε .1", epsilon=0.1),
        _known_law("1,000 rows, known law, δ 1e-6", n=1_000, delta=1e-6),
        _known_law("30 rows, stronger tie, ε 1", stay=0.85, epsilon=1.0),
        _unknown_law("a count, law unknown, ε .5", tall, epsilon=0.5),
        _unknown_law("a count, tables within .02, ε .5", tall, tolerance=0.02, epsilon=0.5),
        _unknown_law("an average, law unknown, ε .2", Query("avg", "weight"), epsilon=0.2),
    ]


# -------------------------------------------------------------------------------------------------------------------- chain


def _chain(name: str, initial: Sequence[float], transition: Sequence[Sequence[float]], **changes: Any) -> Entry:
    assumed = Chain(
        column="state", states=[0, 1], initial=list(initial), transition=[list(row) for row in transition], tolerance=0
    )
    stated: dict[str, Any] = {
        "queries": (Query("count", where="state = 1"),),
        "secrets": (Secret("entries(state)"),),
        "epsilon": 1.0,
        "n": 100,
        "theta": (assumed,),
    }
    problem = Problem(**(stated | changes))
    return Entry(f"chain: {name}", "chain", problem, ChainWorld(problem, tuple(initial), transition), "chain_quilt")


def _chains() -> list[Entry]:
    return [
        _chain("100 rows, sticky", (1.0, 0.0), ((0.9, 0.1), (0.4, 0.6))),
        _chain("100 rows, stays .6", (0.5, 0.5), ((0.6, 0.4), (0.4, 0.6))),
        _chain("2,000 rows, stays .9, ε .5", (0.5, 0.5), ((0.9, 0.1), (0.1, 0.9)), n=2_000, epsilon=0.5),
    ]


def counts() -> list[Entry]:
    """All of them, in the order of the table."""
    return [*_all_counts(), *_networks(), *_chains()]
