"""The opt-in to simulated guarantees: what it takes, and that a policy has none by default."""

from __future__ import annotations

from typing import Any

import pytest

from attrpriv.errors import PolicyError
from attrpriv.framework.sampling import OPT_IN, Sampled
from attrpriv.policy import Policy
from attrpriv.policy.strict_yaml import load_strict


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"runs": 10}, "must be at least 1000"),
        ({"runs": 10_000_000}, "must be at most 1000000"),
        ({"runs": 1e5}, "must be a whole number"),
        ({"confidence": 1.0}, "less than 1"),
        ({"confidence": 0.1}, "must be at least 0.5"),
        ({"seed": 1}, "unknown key"),
    ],
)
def test_what_it_takes(given: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        Sampled(**given)


def test_a_policy_has_none_unless_it_says_so() -> None:
    stated: dict[str, Any] = {"epsilon": 1.0, "protect": [{"secret": "mean(x)", "between": [0, 1]}]}
    assert Policy(**stated).sampled is None
    opted = Policy(**stated, sampled={})
    assert opted.sampled == Sampled(runs=100_000, confidence=0.999999)
    assert opted.digest != Policy(**stated).digest
    assert "confidence 0.999999" in str(opted)
    with pytest.raises(PolicyError, match="sampled"):
        Policy(**stated, sampled=True)


def test_the_line_that_refusals_name_is_the_default() -> None:
    found = load_strict(OPT_IN)
    assert isinstance(found, dict)
    assert Sampled(**found["sampled"]) == Sampled()
