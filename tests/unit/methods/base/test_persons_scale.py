"""Single persons: the noise is what one row moves an answer by, over epsilon; hardly more, and never less."""

from __future__ import annotations

import pytest

from attrpriv.methods.choice.choose import plan
from attrpriv.problem.problem import Problem
from attrpriv.queries.query import Query
from tests.conformance.test_mechanisms import (
    counts_problem,
    groups_problem,
    hierarchy_problem,
    network_problem,
    problem,
)

BOTH = (Query("avg", "weight"), Query("avg", "height"))  # widths 340 and 50
# What is asked, by which method, and by how much a row moves each answer; several share epsilon.
ASKED: dict[str, tuple[Problem, str, tuple[float, ...]]] = {
    "an average": (problem(bounds={"weight": (-150.0, 450.0)}), "gaussian", (600 / 10_000,)),
    "a count": (counts_problem(), "gaussian", (1.0,)),
    "groups": (groups_problem(bounds={"hours": (-60.0, 140.0)}), "gaussian", (200 / 1_000,)),
    "a hierarchy": (hierarchy_problem(bounds={"weight": (-150.0, 450.0)}), "gaussian", (600 / 10_000,)),
    "two averages of a network": (network_problem(queries=BOTH), "markov_quilt", (2 * 340 / 100, 2 * 50 / 100)),
    "a count of a network": (network_problem(), "markov_quilt", (1.0,)),
}


@pytest.mark.parametrize("label", ASKED)
@pytest.mark.parametrize("individuals", [1e-4, 0.01])
def test_a_row_is_hidden_by_what_it_moves(label: str, individuals: float) -> None:
    asked, name, moves = ASKED[label]
    made = plan(asked.model_copy(update={"individuals": individuals}), name)
    rows = made.certificate.individuals
    assert rows is not None
    assert rows.epsilon is not None
    assert rows.epsilon <= individuals
    assert rows.delta(individuals) == 0.0
    for term, move in zip(rows.terms, moves, strict=True):
        assert move / individuals <= term.scale <= move / individuals * (1 + 1e-4)
    made.verify()
