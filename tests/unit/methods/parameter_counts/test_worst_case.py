"""Of several hidden parameters the one that needs most noise decides, and delta never asks for more noise than none."""

from __future__ import annotations

import pytest

from attrpriv.methods.choice.choose import plan
from attrpriv.problem.secret import Parameter
from tests.unit.methods.parameter_counts.test_plan import problem


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_the_parameter_that_shows_most_decides(name: str) -> None:
    """The column's own parameter, and one that it follows loosely."""
    own, far = Parameter("tall"), Parameter("income")
    scales = [
        plan(problem(secrets=secrets, delta=1e-3), name).noise.scale for secrets in ((own,), (far,), (own, far), (far, own))
    ]
    assert scales[1] < scales[0] == scales[2] == scales[3]


def test_delta_asks_for_less_noise() -> None:
    pure, loose, hardly = (plan(problem(delta=delta), "laplace").noise.scale for delta in (0.0, 0.05, 1e-12))
    assert loose < 0.9 * pure
    assert 0.9 * pure < hardly <= pure
