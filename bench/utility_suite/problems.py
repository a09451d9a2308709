"""The suite: problems of every kind of assumption, each with the tables that its assumption describes.

A problem knows nothing of mechanisms: those are taken from the registry, so that a new one is measured without a change here.
`paper` names the mechanism of Zhang, Ohrimenko and Cummings for this kind of problem (docs/guide/accuracy.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from attrpriv.assumptions import Chain, Counts, Gaussian, Groups, Hierarchy, ParameterNetwork
from attrpriv.framework import Problem, Secret
from attrpriv.framework.network import Network, Node
from attrpriv.framework.secret import Parameter
from attrpriv.queries.query import Query
from bench.utility_suite.worlds import (
    AnyWorld,
    ChainWorld,
    CountWorld,
    GaussianWorld,
    GroupWorld,
    HierarchyWorld,
    NetworkWorld,
    World,
)

Family = Literal["gaussian", "groups", "hierarchy", "counts", "network", "chain"]
Paper = Literal["classical", "gaussian", "wasserstein", "markov_quilt", "chain_quilt"]


@dataclass(frozen=True)
class Entry:
    """One problem of the suite."""

    name: str
    family: Family
    problem: Problem
    world: World
    paper: Paper

    @property
    def paper_problem(self) -> Problem:
        """The problem as the paper would calibrate it."""
        changes = {"calibration": "classical"} if self.paper == "classical" else {}
        return self.problem.model_copy(update=changes)

    @property
    def paper_mechanism(self) -> str:
        return "gaussian" if self.paper == "classical" else self.paper


# ------------------------------------------------------------------------------------------------------- averages: the school

MEANS = {"weight": 150.0, "height": 67.0, "income": 60_000.0, "age": 21.0}
SDS = {"weight": 25.0, "height": 4.0, "income": 30_000.0, "age": 3.0}
CORRELATION = {
    "weight~income": 0.3,
    "weight~height": 0.5,
    "height~income": 0.2,
    "weight~age": 0.25,
    "height~age": 0.1,
    "income~age": 0.4,
}
BOUNDS = {"weight": (60.0, 400.0), "height": (40.0, 90.0), "income": (0.0, 1_000_000.0)}
FINE = {"weight": 0.001, "height": 0.001, "income": 1.0, "age": 0.001}
INCOME = Secret("mean(income)", between=(20_000.0, 200_000.0))
NEAR = Secret("mean(income)", within=1_000.0)
WEIGHT, HEIGHT = Query("avg", "weight"), Query("avg", "height")


def _school(
    name: str, *, columns: Sequence[str] = ("weight", "income"), strength: float | None = None, **changes: Any
) -> Entry:
    pairs = {pair: r for pair, r in CORRELATION.items() if set(pair.split("~")) <= set(columns)}
    pairs |= {} if strength is None else {"weight~income": strength}
    tolerance = changes.pop("tolerance", 0)
    moments = {"mean": {c: MEANS[c] for c in columns}, "sd": {c: SDS[c] for c in columns}, "correlation": pairs}
    stated: dict[str, Any] = {
        "queries": (WEIGHT,),
        "secrets": (INCOME,),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 10_000,
        "theta": (Gaussian(**moments, tolerance=tolerance),),
        "bounds": BOUNDS,
        "resolution": FINE,
    }
    problem = Problem(**(stated | changes))
    return Entry(f"school: {name}", "gaussian", problem, GaussianWorld(problem), "classical")


def _gaussian() -> list[Entry]:
    several = {"columns": ("weight", "height", "income"), "queries": (WEIGHT, HEIGHT)}
    two = (INCOME, Secret("mean(age)", between=(18.0, 30.0)))
    both = Secret("mean(income + 1000 * age)", between=(60_000.0, 100_000.0))
    bounded = Secret("mean(income)", between=(20_000.0, 200_000.0), within=1_000.0)
    signs = tuple(
        Gaussian(
            mean={c: MEANS[c] for c in ("weight", "income")},
            sd={c: SDS[c] for c in ("weight", "income")},
            correlation={"weight~income": r},
            tolerance=0,
        )
        for r in (0.3, -0.1)
    )
    loose = {"mean": 0.001, "sd": 0.02, "slope": 0.05}
    return [
        *(_school(f"ε {epsilon:g}", epsilon=epsilon) for epsilon in (0.1, 0.5, 1.0, 2.0, 5.0)),
        _school("100 rows", n=100),
        _school("1,000,000 rows", n=1_000_000),
        _school("slope within 1%", tolerance={"slope": 0.01}),
        _school("slope within 10%", tolerance={"slope": 0.1}),
        _school("correlation within .05", tolerance={"correlation": 0.05}, n=1_000, epsilon=2.0),
        _school("everything uncertain", tolerance=loose),
        _school("near values", secrets=(NEAR,)),
        _school("near values, slope within 1%", secrets=(NEAR,), tolerance={"slope": 0.01}),
        _school("pure ε", delta=0.0),
        _school("pure ε .1, 400 rows", delta=0.0, epsilon=0.1, n=400),
        _school("correlation .95, 500 rows", strength=0.95, n=500, epsilon=2.0),
        _school("two averages", **several),
        _school("two averages, slope within 2%", **several, tolerance={"slope": 0.02}),
        _school("two averages, ε .1", **several, epsilon=0.1),
        _school("two secrets", columns=("weight", "income", "age"), secrets=two),
        _school("two secrets, ε 5", columns=("weight", "income", "age"), secrets=two, epsilon=5.0),
        _school("slope positive or negative", theta=signs),
        _school("the secret itself", queries=(Query("avg", "income"),)),
        _school("a combination hidden", columns=("weight", "income", "age"), secrets=(both,)),
        _school("single persons too", individuals=1.0, secrets=(bounded,), bounds={"weight": (-150.0, 450.0)}),
    ]


# ------------------------------------------------------------------------------------------------------------------- groups


def _groups(
    name: str, *, tolerance: Any = 0, prior: float = 0.32, columns: Sequence[str] = ("hours",), **changes: Any
) -> Entry:
    mean = {"F": {"hours": 36.0, "age": 40.0}, "M": {"hours": 42.0, "age": 38.0}}
    sd = {"F": {"hours": 11.0, "age": 9.0}, "M": {"hours": 12.0, "age": 10.0}}
    assumed = Groups(
        sensitive="gender",
        mean={c: {x: mean[c][x] for x in columns} for c in mean},
        sd={c: {x: sd[c][x] for x in columns} for c in sd},
        correlation={"F": {"hours~age": 0.2}, "M": {"hours~age": 0.1}} if len(columns) > 1 else None,
        prior={"F": prior, "M": 1 - prior},
        tolerance=tolerance,
    )
    stated: dict[str, Any] = {
        "queries": tuple(Query("avg", x) for x in columns),
        "secrets": (Secret("share(gender = 'F')", between=(0.25, 0.4)),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 1_000,
        "theta": (assumed,),
        "resolution": {"hours": 1.0, "age": 1.0},
        "bounds": {"hours": (-100.0, 180.0), "age": (-60.0, 140.0)},
    }
    problem = Problem(**(stated | changes))
    return Entry(f"hours: {name}", "groups", problem, GroupWorld(problem), "gaussian")


def _all_groups() -> list[Entry]:
    share = (Parameter("share(gender = 'F')", between=(0.25, 0.4)),)
    return [
        _groups("1,000 rows"),
        _groups("100,000 rows, ε .5", n=100_000, epsilon=0.5),
        _groups("means and sds within 2%", tolerance={"mean": 0.02, "sd": 0.02}),
        _groups("two averages", columns=("hours", "age")),
        # Errors are stated for populations at that end of the range where they are larger: here that is the prior.
        _groups("share of the population", secrets=share, prior=0.4),
        _groups(
            "100 rows, population .2 to .3",
            n=100,
            delta=1e-3,
            prior=0.3,
            secrets=(Parameter("share(gender = 'F')", between=(0.2, 0.3)),),
        ),
    ]


# ---------------------------------------------------------------------------------------------------------------- hierarchy


def _populations(name: str, **changes: Any) -> Entry:
    columns = ("weight", "height", "income")
    assumed = Hierarchy(
        mean={c: MEANS[c] for c in columns},
        between_sd={"weight": 5.0, "height": 1.0, "income": 8_000.0},
        between_correlation={"weight~income": 0.3, "weight~height": 0.5, "height~income": 0.2},
        within_sd={c: SDS[c] for c in columns},
        tolerance=0,
    )
    stated: dict[str, Any] = {
        "queries": (WEIGHT,),
        "secrets": (Parameter("income", between=(40_000.0, 80_000.0)),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 10_000,
        "theta": (assumed,),
        "bounds": {"weight": (-150.0, 450.0), "height": (0.0, 130.0)},
        "resolution": {"weight": 1.0, "height": 1.0, "income": 1.0},
    }
    problem = Problem(**(stated | changes))
    return Entry(f"populations: {name}", "hierarchy", problem, HierarchyWorld(problem), "classical")


def _hierarchies() -> list[Entry]:
    return [
        *(_populations(f"ε {epsilon:g}", epsilon=epsilon) for epsilon in (0.2, 1.0, 5.0)),
        _populations("400 rows, δ .001", n=400, delta=1e-3),
        _populations("near values", secrets=(Parameter("income", within=6_500.0),)),
        _populations("two averages", queries=(WEIGHT, HEIGHT)),
    ]


# ------------------------------------------------------------------------------------------------------------------- counts


def _events(
    name: str,
    member: float | tuple[float, float],
    rest: float | tuple[float, float],
    share: float | None = None,
    **changes: Any,
) -> Entry:
    """How many rows have an event, where how many rows are of a category is hidden."""
    assumed = Counts(
        sensitive="smoker", given={"stay > 7": {"yes": member, "no": rest}}, prior={} if share is None else {"yes": share}
    )
    middles = [sum(p) / 2 if isinstance(p, tuple) else p for p in (member, rest)]
    return _counted(name, assumed, Query("count", where="stay > 7"), ((0, 1), *((1 - p, p) for p in middles)), share, changes)


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
    changes: Mapping[str, Any],
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
        _unknown_law("an average, law unknown, ε .2", WEIGHT, epsilon=0.2),
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


def suite() -> tuple[Entry, ...]:
    """All problems, in the order of the table."""
    entries = [*_gaussian(), *_all_groups(), *_hierarchies(), *_all_counts(), *_networks(), *_chains()]
    return tuple(entries)
