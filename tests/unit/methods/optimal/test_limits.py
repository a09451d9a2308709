"""Up to which size the linear program is solved without being asked for."""

from __future__ import annotations

import pytest

from attrpriv.methods.optimal.plan import too_slow
from attrpriv.problem.secret import Secret
from tests.unit.methods.counts import problem


@pytest.mark.parametrize(
    ("n", "low", "high", "slow"),
    [
        (150, 0, 59, False),  # 60 values of the secret
        (150, 0, 60, True),
        (150, 70, 120, False),
        (150, 70, 140, True),
        (150, 0, 150, True),  # 151 counts, the most that can be solved
        (151, 0, 100, False),
        (100, 0, 100, True),
    ],
)
def test_what_can_be_solved_but_not_within_seconds(n: int, low: int, high: int, slow: bool) -> None:
    asked = problem(n=n, secrets=(Secret("count(smoker = 'yes')", between=(low, high)),))
    assert (too_slow(asked) is not None) is slow
    assert too_slow(problem(theta=())) is None
