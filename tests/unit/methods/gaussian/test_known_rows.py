"""What `known_rows` promises: parts of rows only where one column is published and one is hidden."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.numerics.divergences.gaussian import gaussian_delta
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

KNOWN = 0.01
ROWS = 10_000
STATED = Gaussian(sd={"w": 1, "z": 1, "s": 1}, correlation={("w", "z"): 0.6, ("w", "s"): 0.0, ("z", "s"): 0.6}, tolerance=0)


def planned(*columns: str, secret: str = "mean(s)") -> Plan:
    queries = tuple(Query("avg", column) for column in columns)
    hidden = Secret(secret, between=(0.0, 1.0))
    problem = Problem(
        queries=queries,
        secrets=(hidden,),
        epsilon=1.0,
        delta=1e-6,
        n=ROWS,
        theta=(STATED,),
        resolution=dict.fromkeys("wzs", 0.001),
        known_rows=KNOWN,
    )
    return plan(problem, "gaussian")


def known_line(found: Plan) -> str:
    return next(line for line in found.certificate.assumes if line.startswith("the adversary knows"))


def delta_against(found: Plan, *, whole: bool) -> float:
    """The delta against someone who knows the z-entries of some rows, or these rows as a whole."""
    full = np.array([[1.0, 0.6, 0.0], [0.6, 1.0, 0.6], [0.0, 0.6, 1.0]])
    left = np.zeros((3, 3)) if whole else full - np.outer(full[:, 1], full[:, 1])
    total = ((1 - KNOWN) * full + KNOWN * left) / ROWS
    factor = np.array(found.factor) if found.factor else np.zeros((2, 1))
    noise = np.diag([part.independent**2 for part in found.columns]) + factor @ factor.T
    slope = total[:2, 2] / total[2, 2]
    spread = total[:2, :2] - np.outer(slope, slope) * total[2, 2] + noise
    return float(gaussian_delta(1.0, math.sqrt(slope @ np.linalg.solve(spread, slope))))


def test_an_entry_of_one_published_column_ties_another_to_the_secret() -> None:
    """Whole rows are covered; the entries of one column alone are not, and the certificate does not claim them."""
    found = planned("w", "z")
    assert delta_against(found, whole=True) <= 1e-6
    assert delta_against(found, whole=False) > 1e-3
    assert known_line(found).endswith("of the rows: whole, not in part")


@pytest.mark.parametrize("secret", ["mean(s - 2 * z)", "mean(s + w)"])
def test_a_hidden_combination_covers_whole_rows_only(secret: str) -> None:
    assert known_line(planned("w", secret=secret)).endswith("whole, not in part")


def test_one_column_of_each_kind_covers_entries_too() -> None:
    assert known_line(planned("w")).endswith("or their entries of the columns named here")
