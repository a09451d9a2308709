"""What may be believed of a secret: Bayes by hand from stated tests, which values are weighed, and which one is true."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from scipy.stats import norm

from attrpriv.errors import UsageError
from attrpriv.methods.base import belief as module
from attrpriv.methods.base.belief import Belief, belief, prior_near
from attrpriv.methods.base.tells import BestTest, Scale

Known = Mapping[float, BestTest]
COIN = BestTest(how="exact", right=0.5, epsilon=0.0, loss=0.0)
# At distances 1 and 2: what the exact answers tell, and what a release does.
BEFORE: Known = {0.0: COIN, 1.0: BestTest(how="exact", right=0.8, loss=3.0), 2.0: BestTest(how="exact", right=1.0)}
AFTER: Known = {0.0: COIN, 1.0: BestTest(how="bound", right=0.6, loss=0.7), 2.0: BestTest(how="bound", right=0.7, loss=1.5)}
UNKNOWN = BestTest(how="unknown")


def believed(
    monkeypatch: pytest.MonkeyPatch,
    prior: Any,
    at: Any = None,
    before: Known = BEFORE,
    after: Known = AFTER,
    delta: float = 0.02,
    **changes: Any,
) -> Belief:
    told: dict[str, Any] = {"secret": "s", "promised": 1.0, "ends": (0.0, 4.0), "step": 1.0}
    scale = Scale(**(told | changes))
    secret = SimpleNamespace(text="s", ends=scale.ends)
    outlook = SimpleNamespace(secret=secret, scale=scale, before=before.__getitem__, after=after.__getitem__)
    monkeypatch.setattr(module, "Outlook", SimpleNamespace(of=lambda plan, secret: outlook))
    plan: Any = SimpleNamespace(delta=delta)
    return belief(plan, prior, at, None)


def normalised(*weights: float) -> Any:
    return pytest.approx([weight / sum(weights) for weight in weights], rel=1e-12)


# --------------------------------------------------------------------------------------------------------------- posteriors


def test_odds_change_as_the_best_tests_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Normal laws with right guesses p are 2 z(p) apart, and at their centre the odds change by e^(-(2 z)^2 / 2)."""
    found = believed(monkeypatch, {2.0: 4.0, 1.0: 2.0, 0.0: 3.0}, at=1.0)
    assert (found.secret, found.at, found.values) == ("s", 1.0, (0.0, 1.0, 2.0))
    assert found.prior == normalised(3, 2, 4)
    exact, typical = (math.exp(-2 * norm.ppf(right) ** 2) for right in (0.8, 0.6))
    assert found.exact == normalised(3 * exact, 2, 4 * exact)
    assert found.typical == normalised(3 * typical, 2, 4 * typical)
    assert found.worst == normalised(3 * math.exp(-0.7), 2, 4 * math.exp(-0.7))
    assert found.risk == 0.04
    further = believed(monkeypatch, {0.0: 1.0, 1.0: 1.0, 2.0: 1.0}, at=0.0)
    wide = math.exp(-2 * norm.ppf(0.7) ** 2)
    assert further.exact == normalised(1, exact, 0)  # what is always told right is excluded
    assert further.typical == normalised(1, typical, wide)
    assert further.worst == normalised(1, math.exp(-0.7), math.exp(-1.5))


def test_a_test_that_knows_nothing_leaves_no_belief_and_one_pair_that_it_knows_does(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown: Known = {0.0: COIN, 1.0: UNKNOWN, 2.0: UNKNOWN}
    partly: Known = {0.0: COIN, 1.0: AFTER[1.0], 2.0: UNKNOWN}
    nothing = believed(monkeypatch, {0.0: 1.0, 1.0: 1.0, 2.0: 1.0}, at=0.0, before=unknown, after=unknown)
    assert (nothing.exact, nothing.typical, nothing.worst) == ((), (), ())
    some = believed(monkeypatch, {0.0: 1.0, 1.0: 1.0, 2.0: 1.0}, at=0.0, before=unknown, after=partly)
    assert some.exact == ()
    assert some.typical == normalised(1, math.exp(-2 * norm.ppf(0.6) ** 2), 0)
    assert some.worst == normalised(1, math.exp(-0.7), 0)


def test_values_that_are_not_promised_may_be_excluded(monkeypatch: pytest.MonkeyPatch) -> None:
    found = believed(monkeypatch, {0.0: 1.0, 1.0: 1.0, 9.0: 2.0}, at=0.0)
    assert found.prior == normalised(1, 1, 2)
    assert found.worst == normalised(1, math.exp(-0.7), 0)


def test_a_risk_is_a_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [believed(monkeypatch, {0.0: 1.0, 1.0: 1.0}, delta=delta).risk for delta in (0.0, 0.3, 0.7)] == [0.0, 0.6, 1.0]


def test_what_is_hidden_as_a_whole_is_no_belief(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="hidden as a whole"):
        believed(monkeypatch, {0.0: 1.0, 1.0: 1.0}, promised=None, step=None)


# ------------------------------------------------------------------------------------------------------------------ priors


@pytest.mark.parametrize(
    "prior",
    [
        {}, {1.0: 1.0}, {1.0: 0.0, 2.0: 0.0}, {1.0: 1.0, 2.0: -1e-9}, {1.0: 1.0, 2.0: math.nan}, {1.0: 1.0, 2.0: math.inf},
        {1.0: 1.0, math.nan: 1.0}, {1.0: 1.0, math.inf: 1.0}, {1.0: 1.0, 2.0: True}, {True: 1.0, 2.0: 1.0},
        {1.0: 1.0, 2.0: "a"}, {"a": 1.0, 2.0: 1.0},
    ],
)  # fmt: skip
def test_a_prior_weighs_two_values_or_more(prior: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="prior: must have two or more values"):
        believed(monkeypatch, prior)


def test_weights_may_be_any_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    for most in (1e-300, 3.0, 1.7e308):
        assert believed(monkeypatch, {0.0: most / 2, 1: most, 2.0: 0}).prior == normalised(1, 2, 0)


@pytest.mark.parametrize(
    ("prior", "at", "true"),
    [
        ({0.0: 1, 1.0: 1, 2.0: 1}, None, 1.0),
        ({0.0: 1, 1.0: 1, 2.0: 0}, None, 0.0),
        ({0.0: 1, 2.0: 1, 3.0: 1, 9.0: 1}, None, 2.0),  # 9 is not in the range: the middle is 1.5
        ({-3.0: 1, 1.0: 1, 2.0: 1}, None, 1.0),
        ({2.0: 1, 3.0: 1, 4.0: 1}, None, 3.0),
        ({0.0: 1, 1.0: 1, 2.0: 1}, 2, 2.0),
    ],
)
def test_one_of_the_values_that_may_be_is_true(prior: Any, at: Any, true: float, monkeypatch: pytest.MonkeyPatch) -> None:
    every: Known = {abs(a - b): AFTER[1.0] for a in prior for b in prior} | {0.0: COIN}
    assert believed(monkeypatch, prior, at, every, every).at == true


@pytest.mark.parametrize(("prior", "at"), [({0.0: 1, 1.0: 1}, 0.5), ({0.0: 0, 1.0: 1}, 0.0), ({0.0: 1, 9.0: 1}, 9.0)])
def test_a_true_value_is_weighed_and_promised(prior: Any, at: float, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="from 0 to 4, and that the prior weighs"):
        believed(monkeypatch, prior, at)
    with pytest.raises(UsageError, match="must weigh a value"):
        believed(monkeypatch, {-1.0: 1, 9.0: 1})


class Alike(dict[float, BestTest]):
    def __missing__(self, key: float) -> BestTest:
        return COIN


def uniform(monkeypatch: pytest.MonkeyPatch, at: float | None = None, **changes: Any) -> Belief:
    found = believed(monkeypatch, None, at, Alike(), Alike(), **changes)
    assert found.prior == pytest.approx([1 / len(found.values)] * len(found.values))
    return found


def test_without_a_prior_all_values_of_the_range_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = (-1.0, 3.0)
    assert uniform(monkeypatch, ends=ends).values == pytest.approx([-1 + 0.1 * k for k in range(41)])
    assert uniform(monkeypatch, at=0.123, ends=ends).values[12] == 0.123
    assert uniform(monkeypatch, ends=ends, whole=2).values == (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)


def test_without_a_range_they_are_ten_promised_distances_to_each_side(monkeypatch: pytest.MonkeyPatch) -> None:
    around = uniform(monkeypatch, at=50.0, ends=None, promised=2.0).values
    assert around == pytest.approx([30 + k for k in range(41)])
    assert uniform(monkeypatch, ends=None, promised=2.0).values == pytest.approx([-20 + k for k in range(41)])


@pytest.mark.parametrize(
    ("ends", "promised", "low", "high"),
    [((2.0, 6.0), 0.5, 2.0, 6.0), ((2.0, 102.0), 0.5, 47.0, 57.0), (None, 0.5, -5.0, 5.0), ((2.0, 102.0), None, 42.0, 62.0)],
)
def test_a_picture_is_of_the_middle(
    ends: Any, promised: float | None, low: float, high: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    scale = Scale(secret="s", promised=promised, ends=ends, step=promised)
    monkeypatch.setattr(module, "Outlook", SimpleNamespace(of=lambda plan, secret: SimpleNamespace(scale=scale)))
    plan: Any = None
    found = prior_near(plan)
    assert list(found) == pytest.approx([low + (high - low) * k / 40 for k in range(41)], rel=1e-9, abs=1e-9)
    assert set(found.values()) == {1.0}


# ----------------------------------------------------------------------------------------------------------------- in words


def test_the_likeliest_values_hold_the_weight() -> None:
    told: dict[str, Any] = dict.fromkeys(("prior", "exact", "typical", "worst"), ())
    found = Belief(secret="s", at=3.0, values=(1.0, 2.0, 3.0, 4.0, 7.0), risk=0.0, **told)
    assert found.likely((0.1, 0.2, 0.4, 0.2, 0.1), 0.4) == (3.0, 3.0)
    assert found.likely((0.1, 0.2, 0.4, 0.2, 0.1), 0.5) == (2.0, 3.0)
    assert found.likely((0.1, 0.2, 0.4, 0.2, 0.1), 0.8) == (2.0, 4.0)
    assert found.likely((0.1, 0.2, 0.4, 0.2, 0.1), 0.85) == (1.0, 4.0)  # 1 is nearer to 3 than 7 is
    assert found.likely((0.2, 0.0, 0.4, 0.2, 0.2), 0.6) == (3.0, 4.0)  # and 4 than 1
    assert found.likely((0.1, 0.2, 0.4, 0.2, 0.1)) == (1.0, 7.0)
    assert found.likely((0.03, 0.0, 0.0, 0.0, 0.97)) == (7.0, 7.0)
