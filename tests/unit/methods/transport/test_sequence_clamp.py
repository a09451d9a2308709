"""The sequential clamp: its law by simulation, its bound by the joint law itself, and the theory's recursion as a slow twin.

The twin keeps what the owner believes (me), the public reference (ref) and the covariance P, and updates all three from the
published answers. The code uses no answer at all: both must release the same numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import kstest

from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.transport.sequence_clamp import Innovations, beyond, clipped, shown

Array = NDArray[np.float64]
Queries = Callable[[int, bool], Array]


def covariance(size: int, seed: int) -> Array:
    root = np.random.default_rng(seed).normal(size=(size, size + 2))
    return np.asarray(root @ root.T / size)


def adaptive(seed: int, size: int) -> Queries:
    """Random directions that turn with the sign of the answer before."""
    directions = np.random.default_rng(seed).normal(size=(200, 2, size))
    return lambda k, up: np.asarray(directions[k, int(up)])


@dataclass
class Steps:
    """The code under test, step by step: queries of averages with residual covariance P0, told `m` by the secrets."""

    start: Array
    noise: float
    queries: list[Array] = field(default_factory=list)
    reaches: list[float] = field(default_factory=list)
    found: Innovations = field(default_factory=Innovations)

    def ask(self, query: Array, mu: float) -> None:
        row = [float(q @ self.start @ query) for q in (*self.queries, query)]
        row[-1] += self.noise**2
        self.found = self.found.after(row)
        self.queries.append(query)
        self.reaches.append(mu * math.sqrt(self.found.spreads[-1]) / 2)

    def moves(self, told: Array) -> list[tuple[float, float]]:
        exact = [Fraction(float(q @ told)) for q in self.queries]
        return [(float(x), float(y)) for x, y in shown(self.found, self.reaches, exact)]

    @property
    def spread(self) -> Array:
        rows = np.array(self.queries)
        return np.asarray(rows @ self.start @ rows.T + self.noise**2 * np.eye(len(rows)))

    def shift(self, told: Array) -> Array:
        """What this table's answers are moved by, on average: m - x + y."""
        return np.array([float(q @ told) - x + y for q, (x, y) in zip(self.queries, self.moves(told), strict=True)])


def apart(first: Array, second: Array, spread: Array) -> float:
    """The distance of two normal laws of equal covariance, directly."""
    gap = first - second
    return math.sqrt(float(gap @ np.linalg.solve(spread, gap)))


def factors(found: Innovations) -> tuple[Array, Array]:
    lower = np.eye(len(found.spreads))
    for k, row in enumerate(found.gains):
        lower[k, :k] = [float(x) for x in row]
    return lower, np.array([float(x) for x in found.spreads])


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize(("left", "enough"), [(1e-11, True), (1e-13, False)])
def test_what_is_left_open_is_a_share_whatever_the_unit(left: float, enough: bool, unit: float) -> None:
    """Two answers that differ by so little of their variance: in centimetres as in kilometres."""
    own = unit**2
    covariance = [[own, own], [own, own * (1 + left)]]
    if enough:
        assert float(Innovations.of(covariance).spreads[1]) == pytest.approx(own * left, rel=1e-3)
    else:
        with pytest.raises(RefusedError, match="nothing of one is left open"):
            Innovations.of(covariance)


# ------------------------------------------------------------------------------------------------------- the slow twin


@dataclass
class Twin:
    """The recursion of the theory, in floats, from published answers."""

    covariance: Array
    me: Array
    ref: Array

    def answer(self, query: Array, mu: float, noise: float, value: float, told: Array, drawn: float) -> float:
        spread = float(query @ self.covariance @ query) + noise**2
        expected, centre = float(query @ (told + self.me)), float(query @ self.ref)
        inside = min(max(expected, centre - mu * math.sqrt(spread) / 2), centre + mu * math.sqrt(spread) / 2)
        out = value - expected + inside + drawn
        gain = self.covariance @ query / spread
        self.me = self.me + gain * (out - inside)
        self.ref = self.ref + gain * (out - centre)
        self.covariance = self.covariance - np.outer(gain, self.covariance @ query)
        return out


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 5), st.integers(0, 10**6), st.floats(-2, 3))
def test_no_answer_is_needed_to_give_the_next(size: int, seed: int, far: float) -> None:
    generator = np.random.default_rng(seed)
    start, told = covariance(size, seed), generator.normal(size=size) * 10.0**far
    residual = generator.multivariate_normal(np.zeros(size), start)
    steps, twin = Steps(start, 0.3), Twin(start, np.zeros(size), np.zeros(size))
    queries, out = adaptive(seed, size), 0.0
    for k, mu in enumerate(generator.uniform(0.01, 3.0, size=12)):
        query, drawn = queries(k, out > 0), 0.3 * generator.normal()
        value = float(query @ (told + residual))
        steps.ask(query, mu)
        x, y = steps.moves(told)[-1]
        out = twin.answer(query, mu, 0.3, value, told, drawn)
        assert value - x + y + drawn == pytest.approx(out, abs=1e-9 * (1 + 10.0**far))


# ------------------------------------------------------------------------------------------------------------ the bound


def hundred(size: int, seed: int) -> tuple[Steps, list[float], list[Array]]:
    """100 adaptive queries of one table, along the path that its own answers take, and two tables' m."""
    generator = np.random.default_rng(seed)
    mus = list(generator.uniform(0.01, 0.3, size=100))
    tables = [generator.normal(size=size) * 10.0 ** generator.uniform(-3, 6) for _ in range(2)]
    residual = generator.multivariate_normal(np.zeros(size), covariance(size, seed))
    steps, queries, out = Steps(covariance(size, seed), 0.05), adaptive(seed, size), 0.0
    kept: list[Fraction] = []
    for k, mu in enumerate(mus):
        steps.ask(queries(k, out > 0), mu)
        x = beyond(steps.found.gains[k], Fraction(float(steps.queries[k] @ tables[0])), kept)
        kept.append(clipped(x, Fraction(steps.reaches[k])))
        out = float(steps.queries[k] @ (tables[0] + residual)) - float(x - kept[k]) + 0.05 * generator.normal()
    return steps, mus, tables


@settings(max_examples=2, deadline=None)
@given(st.integers(1, 5), st.integers(0, 10**6))
def test_one_hundred_adaptive_queries_stay_within_the_bound(size: int, seed: int) -> None:
    steps, mus, tables = hundred(size, seed)
    total = math.sqrt(sum(mu**2 for mu in mus))
    zeros = [0.0] * 100
    assert steps.found.distance(steps.reaches, zeros, zeros) == pytest.approx(total, rel=1e-9)
    first, second = (steps.shift(told) for told in tables)
    assert apart(first, second, steps.spread) <= total * (1 + 1e-6)
    lower, spreads = factors(steps.found)
    whitened = np.linalg.solve(lower, first - second) / np.sqrt(spreads)
    assert (np.abs(whitened) <= np.array(mus) * (1 + 1e-6)).all()


def fresh_shift(steps: Steps, mus: Sequence[float], told: Array) -> Array:
    """The mutant that plans each answer as if it were the first: nothing is carried on."""
    plain = np.array([float(q @ told) for q in steps.queries])
    reach = np.array(mus) * np.sqrt(np.diag(steps.spread)) / 2
    return np.asarray(np.clip(plain, -reach, reach))


def forgetful_shift(steps: Steps, told: Array) -> Array:
    """The mutant that has the right reaches and forgets what the earlier answers show."""
    plain = np.array([float(q @ told) for q in steps.queries])
    return np.asarray(np.clip(plain, -np.array(steps.reaches), np.array(steps.reaches)))


def test_mutants_that_forget_the_past_exceed_the_bound() -> None:
    steps, mus, tables = hundred(3, 12)
    total = math.sqrt(sum(mu**2 for mu in mus))
    assert apart(steps.shift(tables[0]), steps.shift(tables[1]), steps.spread) <= total * (1 + 1e-6)
    one, other = (fresh_shift(steps, mus, told) for told in tables)
    assert apart(one, other, steps.spread) > 1.2 * total
    forgetful = [forgetful_shift(steps, told) for told in tables]
    lower, spreads = factors(steps.found)
    whitened = np.abs(np.linalg.solve(lower, forgetful[0] - forgetful[1]) / np.sqrt(spreads))
    assert (whitened > 1.2 * np.array(mus)).any()


def test_the_difference_of_two_answers_does_not_give_the_secret_away() -> None:
    """F1 = g + U, F2 = U, U of variance 1e4, noise .01: as single releases they give g away up to .014 sd."""
    start, mu = np.full((2, 2), 1e4), 0.268051 / math.sqrt(2)
    steps = Steps(start, 0.01)
    for query in np.eye(2):
        steps.ask(query, mu)
    tables = [np.array([gamma, 0.0]) for gamma in (-1e6, 0.0, 0.3, 1e6)]
    for a, b in itertools.combinations(tables, 2):
        assert apart(steps.shift(a), steps.shift(b), steps.spread) <= 0.268051 * (1 + 1e-6)
    # Each clamped on its own, as if it were the only one, they would:
    one, other = (fresh_shift(steps, [mu, mu], told) for told in tables[::3])
    assert apart(one, other, steps.spread) > 100


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 5), st.integers(0, 10**6))
def test_what_the_class_leaves_open_is_passed_on(size: int, seed: int) -> None:
    """Slopes that are off move the means by b; data may vary more than is credited; the bound covers both."""
    generator = np.random.default_rng(seed)
    steps = Steps(covariance(size, seed), 0.1)
    for k in range(size):
        steps.ask(generator.normal(size=size), 0.2 * k)
    middle, off = generator.normal(size=size) * 0.1, generator.uniform(0, 0.1, size=size)
    bound = steps.found.distance(steps.reaches, middle.tolist(), off.tolist())
    more = covariance(size, seed + 1)
    for _ in range(5):
        untold = middle + off * generator.choice([-1.0, 1.0], size=size)
        one, other = (steps.shift(generator.normal(size=size) * 10.0) for _ in range(2))
        assert apart(one + untold, other, steps.spread) <= bound * (1 + 1e-9)
        assert apart(one + untold, other, steps.spread + more) <= bound * (1 + 1e-9)


def test_a_mutant_that_does_not_pass_it_on_is_below_the_truth() -> None:
    """An error of the first slope alone shows in the second answer too, where both averages move together."""
    steps = Steps(np.array([[1.0, 0.9], [0.9, 1.0]]), 0.01)
    for query in np.eye(2):
        steps.ask(query, 0.0)
    untold = np.array([1.0, 0.0])
    truth = apart(untold, np.zeros(2), steps.spread)
    mutant = math.sqrt(sum(float(b) ** 2 / float(d) for b, d in zip(untold, steps.found.spreads, strict=True)))
    assert truth > 2 * mutant
    assert steps.found.distance([0.0, 0.0], [1.0, 0.0], [0.0, 0.0]) == pytest.approx(truth, rel=1e-9)


# -------------------------------------------------------------------------------------------------------------- the law


def simulated(
    told: Array, runs: int, generator: np.random.Generator, claimed: Callable[[Innovations], Innovations] = lambda found: found
) -> Array:
    """(L^-1 out - y)/sqrt(D) of 5 answers, each query chosen by the sign of the answer before: all runs of a branch at once."""
    start, queries = covariance(3, 7), adaptive(5, 3)
    residual = generator.multivariate_normal(np.zeros(3), start, size=runs)

    def branch(steps: Steps, outs: Array, members: Array, up: bool) -> list[Array]:
        if len(steps.queries) == 5:
            found = claimed(steps.found)
            lower, spreads = factors(found)
            kept = np.array([y for _, y in steps.moves(told)])
            return [(np.linalg.solve(lower, outs.T).T - kept) / np.sqrt(spreads)]
        grown = Steps(start, 0.1, list(steps.queries), list(steps.reaches), steps.found)
        grown.ask(queries(len(steps.queries), up), 0.4)
        x, y = grown.moves(told)[-1]
        values = (told + members) @ grown.queries[-1] - x + y + 0.1 * generator.normal(size=len(members))
        both = np.column_stack([outs, values])
        sides = ((values > 0, True), (values <= 0, False))
        return [part for side, sign in sides if side.any() for part in branch(grown, both[side], members[side], sign)]

    return np.vstack(branch(Steps(start, 0.1), np.zeros((runs, 0)), residual, up=False))


def fits(found: Array) -> bool:
    """Independent standard normals? False alarms below 1e-6 in all: 5 at 1e-8, and 15 means at six standard errors."""
    size = len(found)
    products = [np.mean(found[:, a] * found[:, b]) * math.sqrt(size) for a, b in itertools.combinations(range(5), 2)]
    squares = [(np.mean(found[:, k] ** 2) - 1) * math.sqrt(size / 2) for k in range(5)]
    normal = all(kstest(found[:, k], "norm").pvalue > 1e-8 for k in range(5))
    return normal and bool(np.abs([*products, *squares]).max() < 6)


@pytest.mark.parametrize("far", [0.0, 3.0, 1e4])
def test_the_joint_law_of_five_adaptive_answers(far: float) -> None:
    """100,000 runs. A variance that is 3% off, or two answers with a correlation of .02, would be seen almost surely."""
    assert fits(simulated(np.full(3, far), 100_000, np.random.default_rng(11)))


def narrower(found: Innovations) -> Innovations:
    """The third answer claimed to vary 4% less than it does."""
    return replace(found, spreads=tuple(d * Decimal("0.96") if k == 2 else d for k, d in enumerate(found.spreads)))


def unrelated(found: Innovations) -> Innovations:
    """Answers claimed to be independent of those before."""
    return replace(found, gains=tuple(tuple(Decimal(0) for _ in row) for row in found.gains))


@pytest.mark.parametrize("claimed", [narrower, unrelated])
def test_the_simulation_sees_wrong_laws(claimed: Callable[[Innovations], Innovations]) -> None:
    assert not fits(simulated(np.full(3, 3.0), 100_000, np.random.default_rng(11), claimed))


# ------------------------------------------------------------------------------------------------------------- the rest


def test_earlier_rows_do_not_change_when_answers_follow() -> None:
    matrix = covariance(6, 3) + np.eye(6)
    whole = Innovations.of(matrix.tolist())
    for size in range(1, 6):
        part = Innovations.of(matrix[:size, :size].tolist())
        assert (part.gains, part.spreads) == (whole.gains[:size], whole.spreads[:size])
    lower, spreads = factors(whole)
    assert lower @ np.diag(spreads) @ lower.T == pytest.approx(matrix, rel=1e-12)
    inverse = np.linalg.inv(lower)
    for k, row in enumerate(whole.inverse):
        assert [float(x) for x in row] == pytest.approx(inverse[k, : k + 1], abs=1e-12)


def test_nearly_singular_covariances_are_factored_to_all_digits() -> None:
    """Floats would have the second spread wrong in its eighth digit; here it is exact."""
    found = Innovations.of([[1e4 + 1e-4, 1e4], [1e4, 1e4 + 1e-4]])
    a, b = Fraction(1e4 + 1e-4), Fraction(1e4)
    assert float(Fraction(found.spreads[1]) / (a - b * b / a) - 1) == pytest.approx(0, abs=1e-60)


def test_what_is_determined_already_is_refused() -> None:
    with pytest.raises(RefusedError, match="earlier answers"):
        Innovations.of([[1.0, 1.0], [1.0, 1.0]])
    with pytest.raises(RefusedError, match="earlier answers"):
        Innovations.of([[0.0]])


@pytest.mark.parametrize("row", [[], [1.0, 2.0], [math.nan], [math.inf]])
def test_bad_rows(row: list[float]) -> None:
    with pytest.raises(UsageError, match="covariance"):
        Innovations().after(row)


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(-5), Fraction(10**9)])
def test_what_is_shown_is_within_the_reach_and_near(x: Fraction) -> None:
    """On a grid of the reach; of no reach, nothing."""
    assert clipped(x, Fraction(0)) == 0
    for reach in (Fraction(1, 7), Fraction(2), Fraction(10**12)):
        found = clipped(x, reach)
        assert -reach <= found <= reach
        assert abs(found - min(max(x, -reach), reach)) <= reach / 2**30
        assert clipped(-x, reach) == -found
