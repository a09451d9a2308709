"""Where the noise drowns the answer, the plan says so, from public numbers alone."""

from __future__ import annotations

from typing import Any

import pytest

import attrpriv as ap

STATED: dict[str, Any] = {
    "protect": [{"secret": "share(smoker = 'yes')", "between": [0.2, 0.4], "within": 0.02}],
    "bounds": {"weight": [60, 400], "height": [50, 80]},
    "ranges": {"regr_slope(weight, height)": [-20, 20]},
}
N = 1_000
TYPES = {"weight": "integer", "height": "float", "smoker": "text", "stay": "integer"}


def planned(query: str, epsilon: float) -> ap.Plan:
    policy = ap.Policy(epsilon=epsilon, **STATED)
    queries = [one for one in ap.Policy(epsilon=1, **STATED, release=[query]).queries() if isinstance(one, ap.Query)]
    return ap.plan(policy.problem(queries, N, TYPES), "group_dp")


@pytest.mark.parametrize(
    ("query", "width", "shown"),
    [
        ("avg(weight)", 340, "[60, 400]"),
        ("sum(weight)", 340 * N, "[60000, 400000]"),
        ("var_pop(height)", 225, "[0, 225]"),
        ("regr_slope(weight, height)", 40, "[-20, 20]"),
        ("count(*) filter (where stay > 7)", N, "[0, 1000]"),
    ],
)
def test_a_plan_that_is_worse_than_the_middle_says_so(query: str, width: float, shown: str) -> None:
    """Laplace noise of scale width/epsilon has an expected error of sqrt(2) width/epsilon: half the width at 2 sqrt(2)."""
    for epsilon, worse in ((0.5, True), (2.7, True), (2.95, False), (50, False)):
        found = planned(query, epsilon)
        error = found.error.rmse
        assert error is not None
        assert (error > width / 2) is worse
        lines = [line for line in found.warnings if "public range" in line]
        assert len(lines) == worse
        assert all(line.startswith(f"{query}: the expected error of ") and f"public range {shown}." in line for line in lines)
        assert found.entries(chosen=True)[0]["notes"][-1:] == lines or not worse


def test_the_number_of_rows_needs_no_word() -> None:
    assert not any("public range" in line for line in planned("count(*)", 0.1).warnings)
