"""Chains that an attack broke: a state that nothing leads to, and an event that an engine reads by its own text."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import attrpriv as ap
from attrpriv.numerics.divergences import ratio_step

Array = npt.NDArray[np.float64]

MOVES = ((0.0, 0.5, 0.5), (0.0, 0.9, 0.1), (0.0, 0.1, 0.9))
START = (0.0, 0.5, 0.5)


def scale(rows: int) -> float:
    """The noise on a count at epsilon 1, whatever the start."""
    chain = ap.Chain(column="x", states=[0, 1, 2], initial="any", transition=MOVES, tolerance=0)
    asked = ap.Query("count", where="x = 1")
    problem = ap.Problem(queries=(asked,), secrets=(ap.Secret("entries(x)"),), epsilon=1.0, n=rows, theta=(chain,))
    found = ap.plan(problem, "laplace").tally
    assert found is not None
    return float(found.scale)


def enumerated(rows: int, noise: float) -> float:
    """The loss about any entry under one start, from all sequences and all answers."""
    chance = {
        one: START[one[0]] * math.prod(MOVES[a][b] for a, b in itertools.pairwise(one))
        for one in itertools.product(range(3), repeat=rows)
    }
    possible = {one: p for one, p in chance.items() if p}
    worst = 0.0
    for place in range(rows):
        law = {}
        for state in {one[place] for one in possible}:
            given = {one: p for one, p in possible.items() if one[place] == state}
            law[state] = [
                sum(p * math.exp(-abs(answer - one.count(1)) / noise) for one, p in given.items()) / sum(given.values())
                for answer in range(-1, rows + 2)
            ]
        for a, b in itertools.permutations(law, 2):
            worst = max(worst, *(math.log(p / q) for p, q in zip(law[a], law[b], strict=True)))
    return worst


@pytest.mark.parametrize("rows", [3, 6])
def test_a_state_that_nothing_leads_to(rows: int) -> None:
    assert enumerated(rows, scale(rows)) <= 1 + 1e-9


def test_the_closed_bound_would_break_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted mistake: bounds by way of values that the entry cannot have."""
    unclosed = ratio_step._open

    def closed(ratio: Array, cost: Array) -> Array:
        found = unclosed(ratio, cost)
        for k in range(len(found)):
            found = np.minimum(found, found[:, k : k + 1] * found[k : k + 1])
        return np.asarray(found)

    monkeypatch.setattr(ratio_step, "_open", closed)
    assert enumerated(7, scale(7)) > 1.05  # a length that nothing was computed for before


def test_an_event_is_counted_by_the_states_that_it_holds_for(tmp_path: Path) -> None:
    """As a float, 2^53 is at least 2^53 + 1; by the states as written it is not, and so it is not counted."""
    big = 2**53
    chain = ap.Chain(
        column="x",
        states=[0, big, 2 * big],
        initial=[0.5, 0.5, 0],
        transition=[[0.9, 0.1, 0], [0.1, 0.9, 0], [0.1, 0.1, 0.8]],
        tolerance=0,
    )
    table = pa.table({"x": pa.array([0.0] * 400 + [float(big)] * 600, pa.float64())})
    policy = ap.Policy(rows=1000, epsilon=5.0, assume=chain, protect=[ap.Secret("entries(x)")])
    with ap.Session(table, policy, ledger=tmp_path / "a.ledger") as session:
        release = session.release(f"count(*) filter (where x >= {big + 1})", "laplace", spend=1.0)
    noise = release.plan.tally
    assert noise is not None
    assert abs(release.value) < min(300, 40 * noise.scale + 1)  # 600 by the text; noise misses it with a chance below 1e-15


def test_costs_are_not_lowered_through_an_impossible_value() -> None:
    ratios = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 50.0], [1.0, 50.0, 1.0]])
    assert ratio_step._open(ratios, np.zeros((3, 3)))[1, 2] >= 50
