"""Plans for counts keep their promise: random small problems, from the policy to the law of what is released, by brute force.

The twin (`count_twin`) draws distributions that the assumption allows and adds up everything. The same check must reject plans
with a fifth less noise, and plans for pairs that are one row nearer.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.probabilities import ValueLaw
from attrpriv.errors import AttrprivError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.optimal.proof import CouplingEvidence
from attrpriv.numerics.laws.records import Interval01
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from tests.property.count_twin import Truth, alike, keeps

NAMES = ("a", "b", "c")
Box = tuple[Interval01, ...]


# ------------------------------------------------------------------------------------------------------------- problems


@st.composite
def boxes(draw: st.DrawFn, size: int) -> list[Any]:
    """Probabilities in twentieths, some of them intervals; or in thirteenths, which no float writes."""
    if draw(st.integers(0, 2)) == 0:
        cuts = sorted(draw(st.lists(st.integers(0, 13), min_size=size - 1, max_size=size - 1)))
        parts = [b - a for a, b in zip([0, *cuts], [*cuts, 13], strict=True)]
        return [Fraction(k, 13) if draw(st.booleans()) else k / 13 for k in parts]
    cuts = sorted(draw(st.lists(st.integers(0, 20), min_size=size - 1, max_size=size - 1)))
    exact = [b - a for a, b in zip([0, *cuts], [*cuts, 20], strict=True)]
    slack = draw(st.sampled_from([0, 0, 1, 2]))
    return [k / 20 if not slack else [max(0, k - slack) / 20, min(20, k + slack) / 20] for k in exact]


@st.composite
def assumptions(draw: st.DrawFn, kind: str, values: list[int], categories: tuple[str, ...]) -> Counts:
    laws: dict[str, Any] = {}
    for name in categories:
        box = draw(boxes(2 if kind == "event" else len(values)))
        laws[name] = box[1] if kind == "event" else {"values": values, "probabilities": box}
    prior: dict[str, Any] = {}
    told = draw(st.sampled_from(["nothing", "one", "an interval", "all"]))
    if told in ("one", "an interval"):
        prior = {categories[0]: 0.25 if told == "one" else [0.2, 0.4]}
    if told == "all":
        prior = dict(zip(categories, [0.5, 0.25, 0.25] if len(categories) == 3 else [0.625, 0.375], strict=True))
    return Counts(sensitive="s", given={"e > 0" if kind == "event" else "x": laws}, prior=prior)


@st.composite
def secrets(draw: st.DrawFn, n: int, categories: tuple[str, ...]) -> Secret:
    text = f"s = '{categories[0]}'" if draw(st.booleans()) else f"s != '{categories[-1]}'"
    if draw(st.integers(0, 3)) == 0:
        low = draw(st.integers(0, 8)) / 10
        return Parameter(f"share({text})", between=(low, draw(st.integers(int(10 * low) + 1, 10)) / 10))
    low_count = draw(st.integers(0, n - 1))
    high = draw(st.integers(low_count + 1, n))
    within = draw(st.one_of(st.none(), st.integers(1, high - low_count).map(float)))
    return Secret(f"count({text})", between=(low_count, high), within=within)


@st.composite
def problems(draw: st.DrawFn, kinds: Sequence[str] = ("event", "sum", "histogram")) -> Problem:
    kind = draw(st.sampled_from(list(kinds)))
    n = draw(st.integers(2, 4 if kind == "histogram" else 6))
    categories = NAMES[: draw(st.integers(2, 3))]
    values = draw(st.sampled_from([[0, 1, 3], [3, 0, 1], [-2, 0, 4], [0, 1]]))
    query = {"event": Query("count", where="e > 0"), "sum": Query("sum", "x"), "histogram": Query("count", group_by="x")}[kind]
    return Problem(
        queries=(query,),
        secrets=(draw(secrets(n, categories)),),
        epsilon=draw(st.sampled_from([0.3, 1.0, 2.0])),
        delta=draw(st.sampled_from([0.0, 0.0, 1e-3, 0.05])),
        n=n,
        theta=tuple(draw(assumptions(kind, values, categories)) for _ in range(draw(st.sampled_from([1, 1, 2])))),
    )


def box_of(counts: Counts, name: str) -> Box:
    law = next(iter(counts.given.values()))[name]
    if isinstance(law, ValueLaw):
        return law.probabilities
    low, high = law
    return ((1 - high, 1 - low), (low, high))


def truths(problem: Problem, rng: random.Random) -> Truth:
    law = next(iter(problem.theta[0].given.values()))["a"]  # type: ignore[attr-defined]
    values = [float(v) for v in law.values] if isinstance(law, ValueLaw) else [0.0, 1.0]
    return Truth(problem, values, box_of, problem.queries[0].group_by is not None, rng)


def holds(problem: Problem, made: Plan, seed: int, draws: int = 6) -> bool:
    """The check that mutants must fail."""
    rng = random.Random(seed)
    for _ in range(draws):
        truth = truths(problem, rng)
        (secret,) = problem.secrets
        categories = truth.counts.categories
        wanted = "!=" in secret.text
        members = categories[:-1] if wanted else categories[:1]
        evidence = made.certificate.evidence
        if isinstance(evidence, CouplingEvidence) and evidence.shares is not None:
            if not alike(truth.population(made, secret, members), problem, secret):
                return False
        elif not keeps(made, problem, truth.given(secret, members), secret):
            return False
    return True


def planned(problem: Problem, mechanism: str) -> Plan | None:
    try:
        return plan(problem, mechanism)
    except AttrprivError as error:
        refusal = error
    assert refusal.exit_code in (2, 3), refusal
    assert "\n" not in str(refusal)
    return None


# ---------------------------------------------------------------------------------------------------------- the promise

CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much]


@settings(max_examples=40, deadline=None, suppress_health_check=CHECKS)
@given(problem=problems(), seed=st.integers(0, 2**16))
def test_laplace_keeps_its_promise(problem: Problem, seed: int) -> None:
    made = planned(problem, "laplace")
    assume(made is not None)
    assert made is not None
    assert holds(problem, made, seed)


@settings(max_examples=40, deadline=None, suppress_health_check=CHECKS)
@given(problem=problems(("event", "sum")), seed=st.integers(0, 2**16))
def test_wasserstein_keeps_its_promise(problem: Problem, seed: int) -> None:
    made = planned(problem, "wasserstein")
    assume(made is not None)
    assert made is not None
    assert holds(problem, made, seed)


@settings(max_examples=25, deadline=None, suppress_health_check=CHECKS)
@given(problem=problems(("event", "sum")), delta=st.sampled_from([1e-3, 0.05]), seed=st.integers(0, 2**16))
def test_gaussian_keeps_its_promise(problem: Problem, delta: float, seed: int) -> None:
    problem = problem.model_copy(update={"delta": delta})
    made = planned(problem, "gaussian")
    assume(made is not None)
    assert made is not None
    assert holds(problem, made, seed)


@settings(max_examples=20, deadline=None, suppress_health_check=CHECKS)
@given(problem=problems(("event", "sum")), seed=st.integers(0, 2**16))
def test_optimal_keeps_its_promise(problem: Problem, seed: int) -> None:
    problem = problem.model_copy(update={"theta": problem.theta[:1], "delta": 0.0})
    made = planned(problem, "optimal")
    assume(made is not None)
    assert made is not None
    assert holds(problem, made, seed, draws=3)


@settings(max_examples=15, deadline=None, suppress_health_check=CHECKS)
@given(problem=problems(), seed=st.integers(0, 2**16))
def test_group_privacy_keeps_its_promise(problem: Problem, seed: int) -> None:
    made = planned(problem, "group_dp")
    assert made is not None
    assert holds(problem, made, seed, draws=2)


# -------------------------------------------------------------------------------------------------------------- mutants


def example(kind: str, **changes: Any) -> Problem:
    laws: dict[str, Any] = {"a": [0.35, 0.4], "b": [0.6, 0.65]}
    if kind != "event":
        laws = {
            "a": {"values": [0, 1], "probabilities": [[0.6, 0.65], [0.35, 0.4]]},
            "b": {"values": [0, 1], "probabilities": [[0.35, 0.4], [0.6, 0.65]]},
        }
    query = {"event": Query("count", where="e > 0"), "sum": Query("sum", "x"), "histogram": Query("count", group_by="x")}[kind]
    stated: dict[str, Any] = {
        "queries": (query,),
        "secrets": (Secret("count(s = 'a')", between=(0, 4)),),
        "epsilon": 1.0,
        "n": 4,
        "theta": (Counts(sensitive="s", given={"e > 0" if kind == "event" else "x": laws}),),
    }
    return Problem(**(stated | changes))


def weaker(made: Plan) -> Plan:
    assert made.tally is not None
    return made.model_copy(update={"tally": made.tally.model_copy(update={"scale": made.tally.scale * 0.8})})


def less_noise(problem: Problem, mechanism: str) -> Plan:
    return weaker(plan(problem, mechanism))


def one_row_nearer(problem: Problem, mechanism: str) -> Plan:
    return plan(problem.model_copy(update={"secrets": (Secret("count(s = 'a')", between=(0, 3)),)}), mechanism)


def middle_of_the_box(problem: Problem, mechanism: str) -> Plan:
    theta = Counts(sensitive="s", given={"e > 0": {"a": 0.375, "b": 0.625}})
    return plan(problem.model_copy(update={"theta": (theta,)}), mechanism)


CAUGHT: list[tuple[str, float, str, Callable[[Problem, str], Plan]]] = [
    ("event", 0.0, "laplace", less_noise),
    ("event", 0.0, "laplace", one_row_nearer),
    ("event", 0.0, "laplace", middle_of_the_box),
    ("sum", 0.0, "laplace", less_noise),
    ("sum", 0.0, "laplace", one_row_nearer),
    ("histogram", 0.0, "laplace", less_noise),
    ("histogram", 0.0, "laplace", one_row_nearer),
    ("event", 1e-3, "laplace", less_noise),
    ("event", 1e-3, "laplace", one_row_nearer),
    ("event", 1e-3, "gaussian", less_noise),
    ("event", 1e-3, "gaussian", one_row_nearer),
    ("event", 1e-3, "gaussian", middle_of_the_box),
    ("event", 0.0, "optimal", one_row_nearer),
    ("event", 0.0, "optimal", middle_of_the_box),
]


@pytest.mark.parametrize(("kind", "delta", "mechanism", "mutant"), CAUGHT)
def test_a_mutant_is_caught(kind: str, delta: float, mechanism: str, mutant: Callable[[Problem, str], Plan]) -> None:
    problem = example(kind, delta=delta)
    assert not holds(problem, mutant(problem, mechanism), seed=1, draws=60)


@pytest.mark.parametrize("mechanism", ["laplace", "wasserstein", "gaussian", "optimal"])
def test_what_is_not_a_mutant_is_not(mechanism: str) -> None:
    problem = example("event", delta=0.0 if mechanism == "optimal" else 1e-3)
    assert holds(problem, plan(problem, mechanism), seed=1, draws=60)
