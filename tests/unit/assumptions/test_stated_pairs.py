"""Pairs that may be left out: the pattern, that some law has what is stated, and that no value is made up."""

from __future__ import annotations

import itertools
import math
import pickle
import random

import numpy as np
import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.stated_pairs import StatedPairs, least_eigenvalue
from attrpriv.assumptions.vector_box import _covariance, covariances
from attrpriv.assumptions.worst_case import correlation_range, correlation_ranges
from attrpriv.errors import PolicyError
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

LOOSE = {"mean": 0.01, "sd": 0.02, "slope": 0.05}


def slow_cliques(pairs: dict[str, float], columns: list[str]) -> set[frozenset[str]]:
    """All largest sets with every pair stated, by trying every set."""
    stated = {frozenset(pair.split("~")) for pair in pairs}

    def whole(some: tuple[str, ...]) -> bool:
        return all(frozenset(pair) in stated for pair in itertools.combinations(some, 2))

    sets = [frozenset(s) for k in range(1, len(columns) + 1) for s in itertools.combinations(columns, k) if whole(s)]
    return {one for one in sets if not any(one < other for other in sets)}


def patterned(generator: random.Random, core: int, blocks: list[int]) -> tuple[list[str], list[list[str]], dict[str, float]]:
    """A core, blocks, and small correlations of exactly the pairs that the pattern states; columns in any order."""
    names = [f"x{k}" for k in range(core + sum(blocks))]
    ends = list(itertools.accumulate(blocks, initial=core))
    parts = [names[a:b] for a, b in itertools.pairwise(ends)]
    pairs = {pair for part in parts for pair in itertools.combinations([*names[:core], *part], 2)}
    order = generator.sample(sorted(pairs), len(pairs))
    stated = {"~".join(generator.sample(pair, 2)): generator.uniform(-0.3, 0.3) for pair in order}
    return generator.sample(names, len(names)), [[*names[:core], *part] for part in parts], stated


@pytest.mark.parametrize("seed", range(12))
def test_cliques_are_those_found_by_trying_every_set(seed: int) -> None:
    generator = random.Random(seed)
    columns, parts, stated = patterned(generator, generator.randint(1, 3), [generator.randint(1, 3) for _ in range(3)])
    found = list(StatedPairs(stated).cliques("correlation", columns))
    assert set(map(frozenset, found)) == slow_cliques(stated, columns) == set(map(frozenset, parts))
    assert all(list(part) == [c for c in columns if c in part] for part in found)


@pytest.mark.parametrize("seed", range(12))
def test_some_law_has_what_is_stated_exactly_where_the_assumption_is_taken(seed: int) -> None:
    """The twin fills in the missing pairs as if blocks were independent given the core, and looks at the whole matrix."""
    generator = random.Random(100 + seed)
    columns, parts, stated = patterned(generator, 2, [2, 1, 2])
    stated = {pair: value * 3.2 for pair, value in stated.items()}
    if any(abs(value) > 1 for value in stated.values()):
        return
    place = {column: k for k, column in enumerate(columns)}
    whole = np.eye(len(columns))
    for pair, value in stated.items():
        j, k = (place[name] for name in pair.split("~"))
        whole[j, k] = whole[k, j] = value
    core = [place[name] for name in parts[0][:2]]
    inverse = np.linalg.inv(whole[np.ix_(core, core)])
    for one, other in itertools.permutations(parts, 2):
        a, b = [place[c] for c in one[2:]], [place[c] for c in other[2:]]
        whole[np.ix_(a, b)] = whole[np.ix_(a, core)] @ inverse @ whole[np.ix_(core, b)]
    exists = bool(np.linalg.eigvalsh(whole)[0] >= -1e-9)
    try:
        Gaussian(sd=dict.fromkeys(columns, 1.0), correlation=stated, tolerance=0)
        taken = True
    except PolicyError as error:
        taken = "semidefinite" not in str(error)
    assert taken == exists


def test_both_kinds_of_law_were_there() -> None:
    """The test above says something only where some are taken and some are not."""
    seen = set()
    for seed in range(12):
        columns, _, stated = patterned(random.Random(100 + seed), 2, [2, 1, 2])
        try:
            Gaussian(sd=dict.fromkeys(columns, 1.0), correlation={p: 3.2 * v for p, v in stated.items()}, tolerance=0)
            seen.add(True)
        except PolicyError as error:
            seen.add("semidefinite" in str(error) and False)
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("stated", "missing"),
    [
        ("", "a~b, a~c, a~d, a~e, b~c, b~d, b~e, c~d, c~e, d~e"),  # no core
        ("a~b c~d", "a~c, a~d, a~e, b~c, b~d, b~e, c~e, d~e"),
        ("a~b a~c a~d a~e b~c c~d", "b~d"),  # a is the core; b, c and d hang together
    ],
)
def test_what_is_missing_from_the_pattern_is_named(stated: str, missing: str) -> None:
    with pytest.raises(ValueError, match=rf"^correlation: every pair .* Missing: {missing}\.$"):
        list(StatedPairs(dict.fromkeys(stated.split(), 0.1)).cliques("correlation", list("abcde")))
    many = [f"x{k}" for k in range(40)]
    with pytest.raises(ValueError, match=r"x0~x20, and others\.$"):
        list(StatedPairs({}).cliques("correlation", many))


def test_what_is_not_stated_has_no_value() -> None:
    pairs = StatedPairs({"a~b": 0.0, "c~a": 0.5})
    assert (pairs.of("b", "a"), pairs.of("a", "c")) == (0.0, 0.5)
    for ask in (lambda: pairs.of("b", "c"), lambda: pairs.matrix(("a", "b", "c")), lambda: pairs.of("a", "z")):
        with pytest.raises(PolicyError, match=r"must be stated, because both columns are asked or hidden\. Got none\."):
            ask()
    assert pairs.matrix(("a", "c", "a")).tolist() == [[1, 0.5, 1], [0.5, 1, 0.5], [1, 0.5, 1]]
    assert least_eigenvalue([], pairs.matrix, 1e-9) == 1.0
    again = pickle.loads(pickle.dumps(pairs))
    assert (again, hash(again), again.of("c", "a")) == (pairs, hash(pairs), 0.5)


def wide(columns: int, secrets: int, tolerance: dict[str, float]) -> Gaussian:
    generator = random.Random(3)
    names = [f"c{k}" for k in range(columns)]
    pairs = [(a, b) for k, b in enumerate(names) for a in names[:k] if k >= columns - secrets]
    return Gaussian(
        mean={name: generator.uniform(40, 60) for name in names},
        sd={name: generator.uniform(5, 15) for name in names},
        correlation={pair: generator.uniform(-0.1, 0.2) for pair in pairs},
        tolerance=tolerance,
    )


def asked(theta: Gaussian, hidden: list[str], *columns: str) -> Problem:
    return Problem(
        queries=tuple(Query("avg", column) for column in columns),
        secrets=tuple(Secret(f"mean({name})", within=0.5) for name in hidden),
        epsilon=1.0,
        delta=1e-6,
        n=10_000,
        theta=(theta,),
        resolution=dict.fromkeys(theta.columns, 0.001),
    )


@pytest.mark.parametrize("tolerance", [LOOSE, {"sd": 0.01, "correlation": 0.02}])
def test_plans_are_those_of_the_columns_at_hand_alone(tolerance: dict[str, float]) -> None:
    """What is known of other columns does not matter, nor that nothing is known of their pairs."""
    theta = wide(30, 3, tolerance)
    hidden = ["c27", "c28", "c29"]
    names = ("c0", *hidden)
    assert not theta.complete
    small = Gaussian(
        mean={name: theta.mean[name] for name in names},
        sd={name: theta.sd_of(name) for name in names},
        correlation={pair: theta.correlation_of(*pair) for pair in itertools.combinations(names, 2)},
        tolerance=tolerance,
    )
    assert small.complete
    few, many = rank(asked(small, hidden, "c0")), rank(asked(theta, hidden, "c0"))
    assert [p.mechanism for p in few.plans] == [p.mechanism for p in many.plans]
    for one, other in zip(few.plans, many.plans, strict=True):
        assert (one.error, one.noise, one.certificate.evidence) == (other.error, other.noise, other.certificate.evidence)


def test_averages_whose_correlation_is_not_stated_are_not_answered_together() -> None:
    with pytest.raises(PolicyError, match=r"^assume: (c0~c1|c1~c0) must be stated"):
        plan(asked(wide(10, 2, LOOSE), ["c8", "c9"], "c0", "c1"), "gaussian")


def test_a_column_of_the_core_can_be_asked_for() -> None:
    found = plan(asked(wide(10, 2, LOOSE), ["c9"], "c8"), "gaussian")
    assert found.error.rmse is not None


@pytest.mark.parametrize("tolerance", [LOOSE, {"sd": 0.3, "slope": 1.5}, {"sd": 0.01, "correlation": 0.02}, {"correlation": 1}])
def test_all_ranges_at_once_are_those_one_by_one(tolerance: dict[str, float]) -> None:
    theta = wide(7, 6, tolerance)
    names = (*theta.columns[1:], "c3")  # one twice
    rho, covariance = correlation_ranges(theta, names), covariances(theta, names)
    for j, a in enumerate(names):
        for k, b in enumerate(names):
            assert (covariance[0][j, k], covariance[1][j, k]) == _covariance(theta, a, b)
            assert (rho[0][j, k], rho[1][j, k]) == ((1.0, 1.0) if a == b else correlation_range(theta, a, b))


@pytest.mark.parametrize(("rho", "found"), [(0.5, -1e-9), (1.0, -1e-9), (1 + 1e-10, -1e-9), (1 + 1e-8, -1e-8), (1.5, -0.5)])
def test_the_least_eigenvalue_where_it_matters(rho: float, found: float) -> None:
    """1 - rho of two columns. Down to the slack nothing more is said of it; NaN is no number."""
    parts = [("a", "b"), ("a", "c")]
    pairs = StatedPairs({"a~b": 0.25, "a~c": rho})
    assert least_eigenvalue(parts, pairs.known, 1e-9) == pytest.approx(found, rel=1e-6)
    assert math.isnan(least_eigenvalue([("a", "b", "c")], pairs.known, 1e-9))
