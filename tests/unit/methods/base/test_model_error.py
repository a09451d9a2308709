"""What every plan says of a wrong assumption: rows that bound the real epsilon, checked against other laws by brute force.

Each twin draws laws that are off by no more than the stated share, computes their loss without the code under test, and finds
it below the row's epsilon. That some of them lose more than the plan promised shows that the rows are needed, and that a row
which just repeated epsilon would be caught.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from fractions import Fraction
from typing import Any

import pytest

import attrpriv as ap
from attrpriv.assumptions.chain import Chain
from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.cases.lattice import counted
from attrpriv.methods.base.accuracy import OFF_BY, ModelError, fragile, off_by, unaffected
from attrpriv.methods.base.gaussian_proof import GaussianEvidence
from attrpriv.methods.chain_quilt.plan import ChainEvidence
from attrpriv.methods.count_noise.proof import CountDirectEvidence
from attrpriv.methods.markov_quilt.proof import QuiltEvidence
from attrpriv.methods.optimal.plan import _kernel, _one_case, _priors
from attrpriv.methods.optimal.proof import CouplingEvidence, KernelEvidence
from attrpriv.methods.parameter_counts.proof import ParameterNoiseEvidence
from attrpriv.numerics.calibration.coupling import overlaps
from attrpriv.numerics.laws.markov import MarkovChain
from attrpriv.numerics.laws.records import moved
from attrpriv.numerics.networks.network import Network, Node
from attrpriv.problem.secret import Parameter
from attrpriv.queries.query import Query
from tests.unit.methods.gaussian.test_sets import problem as cases_problem

N = 8


def counts_problem(p: Any = 0.4, q: Any = 0.2, **changes: Any) -> ap.Problem:
    stated: dict[str, Any] = {
        "queries": (Query("count", where="stay > 7"),),
        "secrets": (ap.Secret("count(smoker = 'yes')", between=(0.0, float(N))),),
        "epsilon": 0.5,
        "n": N,
        "theta": (Counts(sensitive="smoker", given={"stay > 7": {"yes": p, "no": q}}, prior={"yes": 0.4}),),
    }
    return ap.Problem(**(stated | changes))


def near(rng: random.Random, p: float, off: float) -> float:
    """A probability that is off by at most this share, often by all of it."""
    return p * (1 + off * rng.choice([-1.0, 1.0, rng.uniform(-1, 1)]))


def sums(a: int, p: float, n: int, q: float) -> list[float]:
    """The law of a rows with p and n - a with q, row by row."""
    law = [1.0]
    for k in range(n):
        r = p if k < a else q
        law = [(law[f] if f < len(law) else 0.0) * (1 - r) + (law[f - 1] * r if f else 0.0) for f in range(len(law) + 1)]
    return law


def stick(p: dict[int, float], q: dict[int, float], epsilon: float) -> float:
    return math.fsum(max(0.0, mass - math.exp(epsilon) * q.get(o, 0.0)) for o, mass in p.items())


def noisy(law: list[float], noise: str, scale: float) -> dict[int, float]:
    """The law with whole-number noise, far into its tails."""
    reach = 400
    weights = [
        math.exp(-abs(z) / scale) if noise == "laplace" else math.exp(-z * z / 2 / scale**2) for z in range(-reach, reach)
    ]
    total = math.fsum(weights)
    found: dict[int, float] = {}
    for f, mass in enumerate(law):
        for z, weight in zip(range(-reach, reach), weights, strict=True):
            found[f + z] = found.get(f + z, 0.0) + mass * weight / total
    return found


# ------------------------------------------------------------------------------------------------------------- the rows


def test_the_line() -> None:
    assert fragile(1.0, unaffected(1.0)) is None
    assert fragile(1.0, off_by(lambda off: 2.0)) is None
    assert fragile(1.0, off_by(lambda off: 2.0001)) == (
        "fragile: where slopes or probabilities are off by 1% more than stated, epsilon can be 2, not 1. State a tolerance."
    )
    none = fragile(1.0, off_by(lambda off: math.inf))
    assert none is not None
    assert "no epsilon holds" in none
    unknown = fragile(1.0, ())
    assert unknown is not None
    assert "not computed" in unknown
    assert fragile(0.0, unaffected(0.0)) is None


def test_rows() -> None:
    assert off_by(lambda off: 1 + off) == tuple(ModelError(off_by=off, epsilon=1 + off) for off in (0.01, 0.02, 0.05, 0.1))
    assert [row.epsilon for row in off_by(lambda off: math.nan)] == [None] * 4


def test_a_plan_warns_once_whatever_its_notes_say() -> None:
    plan = ap.plan(counts_problem(epsilon=0.1), "optimal")
    line = fragile(plan.epsilon, plan.model_error, plan.certificate.evidence.room)
    assert line is not None
    assert line.endswith("State intervals under given (of a network, a tolerance).")  # counts have no tolerance of their own
    assert plan.warnings == (line,)
    told = plan.model_copy(update={"notes": (*plan.remarks, line)})
    assert told.warnings == (line,)
    assert told.remarks == plan.remarks
    assert plan.entries(chosen=True)[0]["notes"] == [*plan.remarks, line] == told.entries(chosen=True)[0]["notes"]
    assert f"warning: {line}" in str(plan)
    silent = plan.model_copy(update={"model_error": ()})
    assert "not computed" in silent.warnings[0]


@pytest.mark.parametrize("name", ["group_dp", "constant"])
def test_what_rests_on_no_probability_repeats_epsilon(name: str) -> None:
    plan = ap.plan(counts_problem(), name)
    assert [(row.off_by, row.epsilon) for row in plan.model_error] == [(off, 0.5) for off in OFF_BY]
    assert not any(line.startswith("fragile") for line in plan.warnings)


# --------------------------------------------------------------------------------------------------------------- counts


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "wasserstein"])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_noise_on_counts_under_other_laws(mechanism: str, delta: float) -> None:
    if mechanism == "gaussian" and not delta:
        return
    plan = ap.plan(counts_problem(delta=delta), mechanism)
    assert plan.tally is not None
    rng, exceeded = random.Random(3), 0
    for row in plan.model_error:
        assert row.epsilon is not None
        for _ in range(6):
            p, q = near(rng, 0.4, row.off_by), near(rng, 0.2, row.off_by)
            laws = [noisy(sums(a, p, N, q), plan.tally.noise, plan.tally.scale) for a in (0, N)]
            for one, other in itertools.permutations(laws):
                assert stick(one, other, row.epsilon) <= delta + 1e-12
                exceeded += stick(one, other, plan.epsilon) > delta + 1e-9
    # The Wasserstein mechanism keeps a good deal in hand.
    assert exceeded or mechanism == "wasserstein"


def test_direct_bounds_are_not_far_from_the_truth() -> None:
    plan = ap.plan(counts_problem(delta=1e-3), "laplace")
    assert isinstance(plan.certificate.evidence, CountDirectEvidence)
    assert plan.tally is not None
    for row in plan.model_error:
        worst = [noisy(sums(a, 0.4 * (1 + row.off_by), N, 0.2 * (1 - row.off_by)), "laplace", plan.tally.scale) for a in (N, 0)]
        assert row.epsilon is not None
        assert stick(worst[0], worst[1], row.epsilon * 0.99) > 1e-3


def test_sums_with_gaussian_noise_say_that_nothing_is_computed() -> None:
    law = {"values": [0, 1, 3], "probabilities": [0.2, 0.5, 0.3]}
    other = {"values": [0, 1, 3], "probabilities": [0.5, 0.3, 0.2]}
    theta = (Counts(sensitive="smoker", given={"visits": {"yes": law, "no": other}}),)
    asked = counts_problem(theta=theta, queries=(Query("sum", "visits"),), delta=1e-3)
    assert ap.plan(asked, "gaussian").model_error == ()
    assert "not computed" in ap.plan(asked, "gaussian").warnings[0]
    rows = [row.epsilon for row in ap.plan(asked, "laplace").model_error]
    assert None not in rows


@pytest.mark.parametrize(
    ("exact", "cases", "query", "empty"),
    [
        (True, False, "count", set()),
        (False, False, "count", set()),
        (True, True, "count", {"laplace", "gaussian"}),
        (False, True, "count", set()),
        (True, False, "sum", {"gaussian"}),
    ],
)
def test_under_counts_two_kinds_of_plan_have_no_rows(exact: bool, cases: bool, query: str, empty: set[str]) -> None:
    """What docs/limitations.md says: sums with Gaussian noise, and sets that are hidden by their mixture."""
    law, other = ({"values": [0, 1, 3], "probabilities": chances} for chances in ([0.2, 0.5, 0.3], [0.5, 0.3, 0.2]))
    given = {"stay > 7": {"yes": 0.4 if exact else (0.38, 0.42), "no": 0.2}, "visits": {"yes": law, "no": other}}
    sets = {"cases": ("< 3", ">= 3")} if cases else {"between": (2, 5)}
    asked = ap.Problem(
        queries=(Query("count", where="stay > 7") if query == "count" else Query("sum", "visits"),),
        secrets=(ap.Secret("count(smoker = 'yes')", **sets),),
        epsilon=1.0,
        delta=1e-6,
        n=10,
        theta=(Counts(sensitive="smoker", given=given, prior={"yes": 0.3}),),
    )
    plans = ap.rank(asked).plans
    assert {"laplace", "gaussian", "wasserstein", "optimal", "transport"} <= {made.mechanism for made in plans}
    assert {made.mechanism for made in plans if not made.model_error} == empty
    for made in plans:
        assert any("is not computed for this plan" in line for line in made.warnings) == (made.mechanism in empty)


def test_a_kernel_under_other_laws() -> None:
    plan = ap.plan(counts_problem((0.38, 0.42), (0.18, 0.22)), "optimal")
    evidence = plan.certificate.evidence
    assert isinstance(evidence, KernelEvidence)
    rng, exceeded = random.Random(4), False
    for row in plan.model_error:
        for _ in range(20):
            p, q = near(rng, rng.choice([0.38, 0.42]), row.off_by), near(rng, rng.choice([0.18, 0.22]), row.off_by)
            outputs = [
                [math.fsum(m * w[o] for m, w in zip(sums(a, p, N, q), evidence.weights, strict=True)) for o in range(N + 1)]
                for a in range(N + 1)
            ]
            loss = max(
                math.log(x / y)
                for one, other in itertools.permutations(outputs, 2)
                for x, y in zip(one, other, strict=True)
                if x
            )
            assert row.epsilon is not None
            assert loss <= row.epsilon + 1e-9
            exceeded |= loss > plan.epsilon
    assert exceeded


def test_a_kernel_of_a_sum_under_other_laws() -> None:
    """Of rows with three values there is no corner to look at: the change of every law is added to the loss."""
    laws = {"yes": [0.2, 0.3, 0.5], "no": [0.3, 0.4, 0.3]}
    stated = Counts(
        sensitive="smoker",
        given={"visits": {name: {"values": [0, 1, 2], "probabilities": law} for name, law in laws.items()}},
        prior={"yes": 0.4},
    )
    small = {"n": 4, "secrets": (ap.Secret("count(smoker = 'yes')", between=(0.0, 4.0)),)}
    found = counted(counts_problem(queries=(Query("sum", "visits"),), theta=(stated,), **small))
    case = _one_case(found)
    evidence, _ = _kernel(found, case, _priors(found, case))
    rng = random.Random(6)
    for row in evidence.model_error(0.5, 0.0):
        assert row.epsilon is not None
        losses = []
        for _ in range(20):
            rows = {name: moved_row(rng, tuple(law), row.off_by) for name, law in laws.items()}
            outputs = []
            for a in range(5):
                law = [1.0]
                for k in range(4):
                    law = [
                        math.fsum(law[f - v] * rows["yes" if k < a else "no"][v] for v in range(3) if 0 <= f - v < len(law))
                        for f in range(len(law) + 2)
                    ]
                outputs.append([math.fsum(m * w[o] for m, w in zip(law, evidence.weights, strict=True)) for o in range(9)])
            pairs = itertools.permutations(outputs, 2)
            losses.append(max(math.log(x / y) for one, other in pairs for x, y in zip(one, other, strict=True) if x))
        assert 0.5 < max(losses) <= row.epsilon


def coupled(evidence: CouplingEvidence, p: float, q: float) -> float:
    """The loss of what is drawn, in exact fractions."""
    outputs = []
    for k, (source, target) in enumerate(zip(evidence.sources, evidence.targets, strict=True)):
        law, drawn = sums(evidence.pairs.low + k, p, N, q), [Fraction(0)] * len(target)
        for f, o, part, whole in overlaps(source, target):
            drawn[o] += Fraction(law[f]) * Fraction(part, whole)
        outputs.append(drawn)
    ratios = [x / y for one, other in itertools.permutations(outputs, 2) for x, y in zip(one, other, strict=True)]
    return math.log(max(ratios))


def test_a_mechanism_that_reads_the_secret_under_other_laws() -> None:
    plan = ap.plan(counts_problem(), "optimal")
    evidence = plan.certificate.evidence
    assert isinstance(evidence, CouplingEvidence)
    rng = random.Random(5)
    for row in plan.model_error:
        assert row.epsilon is not None
        assert row.epsilon < evidence.loss() + moved(evidence.records, evidence.pairs, row.off_by)  # of an event a corner tells
        found = [coupled(evidence, near(rng, 0.4, row.off_by), near(rng, 0.2, row.off_by)) for _ in range(8)]
        found += [coupled(evidence, 0.4 * (1 + x * row.off_by), 0.2 * (1 + y * row.off_by)) for x in (-1, 1) for y in (-1, 1)]
        assert max(found) <= row.epsilon
        assert max(found) > plan.epsilon
        assert max(found) > plan.epsilon + 0.5 * (row.epsilon - plan.epsilon)


# -------------------------------------------------------------------------------------------------- networks and chains


def moved_row(rng: random.Random, row: tuple[float, ...], off: float) -> tuple[float, ...]:
    """Another law, each of whose probabilities is off by at most this share."""
    for _ in range(1000):
        found = [near(rng, p, off) for p in row[:-1]]
        last = 1 - math.fsum(found)
        if abs(last - row[-1]) <= off * row[-1]:
            return (*found, last)
    return row


FLIP = ((0.7, 0.3), (0.3, 0.7))


def network_problem(**changes: Any) -> ap.Problem:
    nodes = {
        "income": Node(states=("low", "high"), table=((0.4, 0.6),)),
        "height": Node(states=("0.3", "0.5"), parents=("income",), table=FLIP),
    }
    theta = ParameterNetwork(network=Network(nodes=nodes), attributes={"height": {"family": "bernoulli"}}, tolerance=0)
    stated: dict[str, Any] = {
        "queries": (Query("count", where="height = 1"),),
        "secrets": (Parameter("income"),),
        "epsilon": 0.2,
        "n": 20,
        "theta": (theta,),
    }
    return ap.Problem(**(stated | changes))


@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_a_parameter_behind_a_count_under_other_networks(delta: float) -> None:
    plan = ap.plan(network_problem(delta=delta), "laplace")
    evidence = plan.certificate.evidence
    assert isinstance(evidence, ParameterNoiseEvidence)
    counts, rng, exceeded = evidence.checks[0].counts, random.Random(6), False
    for row in plan.model_error:
        assert row.epsilon is not None
        for _ in range(4):
            weights = tuple(moved_row(rng, line, row.off_by) for line in counts.weights)
            moved = ParameterNoiseEvidence(
                event=evidence.event,
                checks=(evidence.checks[0].model_copy(update={"counts": dataclasses.replace(counts, weights=weights)}),),
                noise=evidence.noise,
                scale=evidence.scale,
            )
            assert moved.delta(row.epsilon) <= delta
            exceeded |= moved.delta(plan.epsilon) > delta
    assert exceeded


def test_quilts_under_other_networks() -> None:
    asked = network_problem(queries=(Query("avg", "height"),), epsilon=1.0, bounds={"height": (0.0, 1.0)})
    plan = ap.plan(asked, "markov_quilt")
    evidence = plan.certificate.evidence
    assert isinstance(evidence, QuiltEvidence)
    rng = random.Random(7)
    for row in plan.model_error:
        assert row.epsilon is not None
        losses = []
        for _ in range(20):
            nodes = {
                name: node.model_copy(update={"table": tuple(moved_row(rng, line, row.off_by) for line in node.table)})
                for name, node in evidence.networks[0].nodes.items()
            }
            losses.append(evidence.model_copy(update={"networks": (Network(nodes=nodes),)}).loss())
        assert max(losses) <= row.epsilon
        assert max(losses) > evidence.loss()


def test_quilts_where_nothing_may_show_do_not_depend_on_the_network() -> None:
    plan = ap.plan(network_problem(queries=(Query("avg", "height"),), bounds={"height": (0.0, 1.0)}), "markov_quilt")
    assert {row.epsilon for row in plan.model_error} == {plan.model_error[0].epsilon}
    assert not any(line.startswith("fragile") for line in plan.warnings)


@pytest.mark.parametrize("initial", [[1, 0], [0.4, 0.6]])
def test_chains_under_other_transitions(initial: list[float]) -> None:
    chain = Chain(column="state", states=[0, 1], initial=initial, transition=[[0.9, 0.1], [0.4, 0.6]], tolerance=0)
    asked = ap.Problem(
        queries=(Query("count", where="state = 1"),), secrets=(ap.Secret("entries(state)"),), epsilon=1.0, n=100, theta=(chain,)
    )
    plan = ap.plan(asked, "chain_quilt")
    evidence = plan.certificate.evidence
    assert isinstance(evidence, ChainEvidence)
    rng, check = random.Random(8), evidence.checks[0]
    for row in plan.model_error:
        assert row.epsilon is not None
        losses = []
        for _ in range(12):
            rows = tuple(moved_row(rng, line, row.off_by) for line in check.chain.transition)
            first = check.chain.initial if 0 in check.chain.initial else moved_row(rng, check.chain.initial, row.off_by)
            moved = check.model_copy(update={"chain": MarkovChain(first, rows)})
            losses.append(evidence.model_copy(update={"checks": (moved,)}).loss())
        assert max(losses) <= row.epsilon
        assert max(losses) > plan.epsilon


# -------------------------------------------------------------------------------------------------------------- Gaussian


def test_sets_of_values_under_steeper_slopes() -> None:
    """The same noise under an assumption whose correlation is larger by the stated share."""
    plan = ap.plan(cases_problem(["< 0.01", ">= 0.01"]), "gaussian")
    evidence = plan.certificate.evidence
    assert isinstance(evidence, GaussianEvidence)
    assert [row.off_by for row in plan.model_error] == list(OFF_BY)
    for row in plan.model_error:
        steeper = ap.plan(cases_problem(["< 0.01", ">= 0.01"], rho=0.3 * (1 + row.off_by)), "gaussian").certificate.evidence
        assert isinstance(steeper, GaussianEvidence)
        real = steeper.model_copy(update={"independent": evidence.independent})
        assert row.epsilon is not None
        assert real.delta(row.epsilon) <= plan.delta
        assert real.delta(plan.epsilon) > plan.delta
        assert real.delta(row.epsilon * 0.99) > plan.delta
