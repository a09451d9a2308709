"""Problems about averages: normal rows, rows of two categories, and tables of populations that differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.groups import Groups
from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from bench.utility_suite.entries import Entry
from bench.utility_suite.worlds import GaussianWorld, GroupWorld, HierarchyWorld

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
    several: dict[str, Any] = {"columns": ("weight", "height", "income"), "queries": (WEIGHT, HEIGHT)}
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
        _school("nearly normal rows", secrets=(NEAR,), tolerance={"slope": 0.01, "shape": {"lambda": 1e-3, "eta": 1e-9}}),
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


def averages() -> list[Entry]:
    """All of them, in the order of the table."""
    return [*_gaussian(), *_all_groups(), *_hierarchies()]
