"""Counts by the Kantorovich mechanism as examples/own_method proves it, and by the methods of attrpriv: scales and true losses.

In a process of its own, since importing the example registers a method. Prints one JSON document.
"""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import attrpriv as ap
from attrpriv.problem.problem import Problem

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "own_method" / "own_method.py"
VALUES = {"yes": (0.5, 0.2, 0.3), "no": (0.7, 0.25, 0.05)}


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("own_method", EXAMPLE)
    if spec is None or spec.loader is None:
        raise FileNotFoundError("examples/own_method/own_method.py")
    module = sys.modules["own_method"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def problems(epsilon: float) -> dict[str, Problem]:
    """How many of 40 patients were readmitted; a sum of four small numbers, of which one is far off."""
    patients = ap.Counts(sensitive="smoker", given={"readmitted = 1": {"yes": 0.5, "no": 0.2}})
    few: dict[str, Any] = {k: {"values": [0, 1, 4], "probabilities": list(law)} for k, law in VALUES.items()}
    return {
        "40 patients, a count": Problem(
            queries=tuple(ap.queries.sql.parse_queries("count(*) filter (where readmitted = 1)")),
            secrets=(ap.Secret("count(smoker = 'yes')", between=(5, 20), within=5),),
            epsilon=epsilon,
            n=40,
            theta=(patients,),
        ),
        "4 rows, a sum": Problem(
            queries=tuple(ap.queries.sql.parse_queries("sum(x)")),
            secrets=(ap.Secret("count(smoker = 'yes')", between=(0, 4), within=2),),
            epsilon=epsilon,
            n=4,
            theta=(ap.Counts(sensitive="smoker", given={"x": few}),),
        ),
    }


def loss(laws: dict[int, dict[int, float]], apart: int, scale: float) -> float:
    """The largest logarithm of a quotient of two laws of the noisy count: beyond the ends of the support it stays as it is."""
    values = sorted({x for law in laws.values() for x in law})
    worst = 0.0
    for z in range(values[0] - 1, values[-1] + 2):
        chance = {a: math.fsum(p * math.exp(-abs(z - x) / scale) for x, p in law.items()) for a, law in laws.items()}
        worst = max([worst, *(math.log(chance[a] / chance[b]) for a in laws for b in laws if 0 < abs(a - b) <= apart)])
    return worst


def measure(own: ModuleType, problem: Problem, epsilon: float) -> dict[str, Any]:
    plans = {name: ap.plan(problem, name) for name in ("wasserstein", "kantorovich", "laplace", "optimal", "transport")}
    evidence: Any = plans["kantorovich"].certificate.evidence
    (check,) = evidence.checks
    weights, apart = own.laws_of_counts(check.records, check.pairs), check.pairs.apart
    laws = {a: {x: w / sum(law.values()) for x, w in law.items() if w} for a, law in weights.items()}
    distance = 0.0
    for a in weights:
        for b in weights:
            if 0 < abs(a - b) <= apart:
                moved = [way for found in own.ways(weights[a], weights[b]).values() for way in found]
                distance = max(distance, sum(far * w for far, w in moved) / sum(weights[b].values()))
    found: dict[str, Any] = {"distance alone": {"scale": distance / epsilon, "loss": loss(laws, apart, distance / epsilon)}}
    for name, plan in plans.items():
        scale = plan.noise.scale if name in ("wasserstein", "kantorovich", "laplace") else None
        error = plan.error.mean_absolute
        found[name] = {"scale": scale, "loss": loss(laws, apart, scale) if scale else None, "error": error}
    return found


def main() -> None:
    given = json.load(sys.stdin)
    own = example()
    found = {name: measure(own, problem, given["epsilon"]) for name, problem in problems(given["epsilon"]).items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
