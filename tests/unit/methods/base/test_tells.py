"""What is told of two values: which values a promise is about, how many steps lead on, and which proofs hold for a pair."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Self

import pytest

from attrpriv.assumptions.counts import Counts
from attrpriv.errors import UsageError
from attrpriv.methods.base import tells as module
from attrpriv.methods.base.accuracy import Profile
from attrpriv.methods.base.tells import BestTest, Outlook, Scale, Tells, tells_of_view
from attrpriv.methods.base.trade_off import TradeOff
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query


def scale(**changes: Any) -> Scale:
    told: dict[str, Any] = {"secret": "s", "promised": 2.0, "ends": (3.0, 10.0), "step": 1.5}
    return Scale(**(told | changes))


# ------------------------------------------------------------------------------------------------- distances and their steps


def test_no_two_values_are_further_apart_than_the_range_is_wide() -> None:
    assert [scale().inside(far) for far in (0.0, 7.0, 7.0 * (1 + 1e-9), 10.0)] == [True, True, False, False]
    assert scale(ends=None).inside(1e9)


def test_a_promise_is_about_the_values_of_its_range() -> None:
    """Up to rounding, of 1e-12 of the largest of the value and the ends: 1e-11 here."""
    held = {3.0: True, 10.0: True, 5.123: True, 3 - 5e-12: True, 10 + 5e-12: True, 3 - 2e-11: False, 10 + 2e-11: False}
    assert {value: scale().holds(value) for value in held} == held
    assert scale(ends=(-10.0, 3.0)).holds(3 + 5e-12)
    assert not scale(ends=(-10.0, 3.0)).holds(3 + 2e-11)
    assert not scale(ends=(-10.0, 3.0)).holds(-10 - 2e-11)


def test_a_count_is_a_whole_number_and_a_share_one_over_the_rows() -> None:
    quarters = {5.25: True, 5.3: False, 5.25 + 5e-12: True, 5.25 - 2e-11: False, 10.25: False, 2.75: False}
    assert {value: scale(whole=4).holds(value) for value in quarters} == quarters
    anywhere = {1e6 + 5e-7: True, 1e6 + 2e-6: False, -1e6 - 5e-7: True, -1e6 - 2e-6: False}
    assert {value: scale(whole=1, ends=None).holds(value) for value in anywhere} == anywhere
    assert not scale(whole=1000, ends=None).holds(1e-3 + 1e-13)
    assert (scale(whole=4).nearest(5.3), scale(whole=4).nearest(5.2), scale().nearest(5.3)) == (5.25, 5.25, 5.3)


def test_two_values_are_promised_to_look_alike() -> None:
    pairs = {
        (4.0, 6.0): True, (3.0, 3.5): True, (8.0, 10.0): True, (4.0, 6.001): False, (4.0, 4.0): False, (6.0, 4.0): False,
        (2.0, 4.0): False, (9.0, 11.0): False,
    }  # fmt: skip
    assert {pair: scale().promises(*pair) for pair in pairs} == pairs
    assert not scale(promised=None).promises(4.0, 4.3)
    assert not scale(whole=1).promises(4.0, 5.5)


def test_rounding_is_that_of_the_promise_and_of_the_larger_value() -> None:
    wide = scale(ends=None)
    assert wide.promises(-1e6, -1e6 + 2 + 5e-7)
    assert not wide.promises(-1e6, -1e6 + 2 + 5e-6)
    assert wide.promises(1e6, 1e6 + 2 + 5e-7)
    long = scale(ends=None, promised=1e6)
    assert long.promises(0.0, 1e6 + 1.5e-6)
    assert long.promises(-1e6 - 1.5e-6, 0.0)
    assert not long.promises(0.0, 1e6 + 3e-6)


@pytest.mark.parametrize(
    ("distance", "times", "steps"), [(None, 1.0, 1), (1.0, 0.5, 1), (2.0, 1.0, 1), (3.0, 1.5, 2), (3.1, 1.55, 3)]
)
def test_how_many_promised_pairs_lead_from_one_value_to_the_other(distance: float | None, times: float, steps: int) -> None:
    assert scale().times(distance) == pytest.approx(times)
    assert scale().steps(distance) == steps
    for unknown in (scale(promised=None), scale(step=None)):
        assert unknown.steps(distance) == 1
    assert scale(promised=None).times(distance) == 1.0


@pytest.mark.parametrize(("distance", "step", "steps"), [(1.1, 0.1, 11), (0.3, 0.1, 3), (0.7, 0.1, 7), (1.1001, 0.1, 12)])
def test_a_quotient_of_floats_is_no_step_more(distance: float, step: float, steps: int) -> None:
    assert scale(promised=step, step=step).steps(distance) == steps


def test_a_distance_that_is_none() -> None:
    scale().require(0.0)
    for wrong in (-1e-9, math.nan, math.inf):
        with pytest.raises(UsageError, match="must be a finite number"):
            scale().require(wrong)
    with pytest.raises(UsageError, match="hidden as a whole"):
        scale(promised=None).require(1.0)


# ------------------------------------------------------------------------------------------------------ the scale of a secret


def of(secret: Secret, **changes: Any) -> tuple[Any, ...]:
    problem = Problem(**{"queries": (Query("count", where="z > 1"),), "secrets": (secret,), "epsilon": 1.0, "n": 10} | changes)
    found = Scale.of(problem, secret)
    assert found.secret == secret.text
    return found.promised, found.ends, found.whole, found.step


EVENT = {"theta": (Counts(sensitive="smoker", given={"z > 1": {"yes": 0.7, "no": 0.4}}, prior={"yes": 0.4}),)}


def test_counts_and_shares_are_of_whole_rows() -> None:
    assert of(Secret("count(smoker = 'yes')", between=(2.0, 9.0), within=3.0), **EVENT) == (3.0, (2.0, 9.0), 1, 3.0)
    assert of(Secret("share(smoker = 'yes')", between=(0.2, 0.9), within=0.3), **EVENT) == (0.3, (0.2, 0.9), 10, 0.3)


def test_a_mean_moves_by_its_spacing() -> None:
    """Of ten whole numbers the mean moves by 0.1: two steps of it are what 0.25 surely leads on."""
    whole = {"types": {"x": "integer"}}
    assert of(Secret("mean(x)", between=(2.0, 9.0), within=0.25), **whole) == (0.25, (2.0, 9.0), None, pytest.approx(0.2))
    assert of(Secret("mean(x)", within=0.3), **whole) == (0.3, None, None, pytest.approx(0.3))
    assert of(Secret("mean(x)", within=0.25)) == (0.25, None, None, 0.25)
    assert of(Secret("mean(x)", between=(2.0, 9.0))) == (7.0, (2.0, 9.0), None, 7.0)


@pytest.mark.parametrize(
    ("secret", "changes"),
    [
        (Secret("mean(x)", cases=["< 5", ">= 5"]), {}),
        (Secret(["mean(x)", "mean(y)"], within=1.0), {}),
        (Secret(["mean(x)", "mean(y)"], between={"mean(x)": (0.0, 1.0), "mean(y)": (0.0, 1.0)}), {}),
        (Secret("count(smoker = 'yes')", cases=["< 5", ">= 5"]), EVENT),
        (Secret("entries(smoker)"), {}),
        (Secret("columns(smoker)"), {}),
        (Secret("distribution(smoker)", between={"yes": (0.1, 0.6), "no": (0.4, 0.9)}), EVENT),
    ],
    ids=lambda one: one.text if isinstance(one, Secret) else "",
)
def test_what_is_hidden_as_a_whole_has_no_distance(secret: Secret, changes: Any) -> None:
    assert of(secret, **changes) == (None, None, None, None)


def test_a_share_of_a_population_is_any_number() -> None:
    theta = (Counts(sensitive="smoker", given={"z > 1": {"yes": 0.7, "no": 0.4}}),)
    share = Parameter("share(smoker = 'yes')", between=(0.2, 0.7))
    assert of(share, theta=theta) == (0.7 - 0.2, (0.2, 0.7), None, 0.7 - 0.2)


# ------------------------------------------------------------------------------------------------------------- the best test


def test_a_best_test_is_what_the_promises_leave() -> None:
    found = TradeOff(promises=((0.0, 0.3), (0.7, 0.01)))
    told = BestTest.of(found, "bound", 0.01)
    assert (told.how, told.right, told.epsilon, told.curve) == ("bound", found.right, 0.7, found.curve)
    assert told.loss == found.loss(0.01)
    assert BestTest.of(None, "exact", 0.01) == BestTest(how="unknown")
    assert BestTest.of(TradeOff(promises=((0.0, 0.0),)), "exact", 0.0).right == 0.5


@pytest.mark.parametrize(
    ("distance", "promised", "inside"),
    [(None, None, True), (None, 2.0, True), (2.0, 2.0, True), (2.1, 2.0, False), (1.0, None, False)],
)
def test_which_pairs_the_promise_is_about(distance: float | None, promised: float | None, inside: bool) -> None:
    unknown = BestTest(how="unknown")
    told = Tells(secret="s", distance=distance, promised=promised, delta=0.0, before=unknown, after=unknown)
    assert told.inside is inside
    assert ("beyond what is promised" in str(told)) is not inside


def test_a_view_is_told_by_its_proof_alone() -> None:
    evidence = SimpleNamespace(delta=lambda eps: 0.02 if eps < 0.5 else 0.001, told_by=Profile((0.0,), attained=True))
    certificate = SimpleNamespace(evidence=evidence, epsilon=0.5, delta=0.01)
    view: Any = SimpleNamespace(certificate=certificate, secret=SimpleNamespace(text="columns(x)"))
    told = tells_of_view(view)
    assert (told.secret, told.distance, told.promised, told.delta) == ("columns(x)", None, None, 0.01)
    assert told.before == BestTest(how="unknown")
    assert told.after == BestTest.of(TradeOff(promises=((0.0, 0.02), (0.5, 0.001))), "bound", 0.01)


@pytest.mark.parametrize(("name", "place"), [(None, 0), ("mean(x)", 0), ("mean(y)", 1)])
def test_a_secret_is_asked_for_by_its_name_or_is_the_first(name: str | None, place: int) -> None:
    secrets = (Secret("mean(x)", within=1.0), Secret("mean(y)", within=2.0))
    problem = Problem(queries=(Query("count", where="z > 1"),), secrets=secrets, epsilon=1.0, n=10)
    plan: Any = SimpleNamespace(problem=problem)
    found = Outlook.of(plan, name)
    assert (found.secret, found.scale.promised) == (secrets[place], place + 1.0)
    with pytest.raises(UsageError, match=r"secret: must be one of mean\(x\), mean\(y\). Got mean\(z\)"):
        Outlook.of(plan, "mean(z)")


# -------------------------------------------------------------------------------------------- which proof holds for which pair


class Proof:
    """Evidence whose delta is `rate` * e^-epsilon; for pairs further apart it is larger, if it says anything of them."""

    reads_rows, by_secret = True, ("checks", "more")

    def __init__(self, rate: float = 0.01, **told: Any) -> None:
        self.rate = rate
        self.told_by = Profile((0.0, 2.0), attained=told.pop("attained", False))
        self.beyond: bool = told.pop("beyond", True)
        self.steps: bool = told.pop("steps", True)
        self.checks, self.more = told.pop("checks", ()), told.pop("more", ())
        self.fails: Exception | None = None

    def delta(self, epsilon: float) -> float:
        if self.fails is not None and epsilon < 1:
            raise self.fails
        return self.rate * math.exp(-epsilon)

    def stretched(self, times: float) -> Proof | None:
        found = Proof(self.rate * times**2)
        return found if times <= 1 or self.beyond else None

    def leads_on(self) -> bool:
        return self.steps

    def model_copy(self, update: dict[str, Any]) -> Self:
        found = type(self)(self.rate / 2)
        found.__dict__.update(update)
        return found


def outlook(evidence: Any, secrets: int = 1, **changes: Any) -> Outlook:
    told: dict[str, Any] = {"exact": True, "individuals": None, "fit_delta": 0.0, "parameter": None, "earlier": None} | changes
    certificate = SimpleNamespace(evidence=evidence, **{name: told[name] for name in ("exact", "individuals", "fit_delta")})
    names: list[Any] = [SimpleNamespace(text=f"s{k}", parameter=told["parameter"]) for k in range(secrets)]
    plan: Any = SimpleNamespace(certificate=certificate, epsilon=1.0, delta=0.003)
    problem: Any = SimpleNamespace(secrets=tuple(names), earlier=told["earlier"])
    return Outlook(plan, problem, names[0], scale(secret="s0", ends=(0.0, 20.0)))


def promises(rate: float, extra: float = 0.0) -> TradeOff:
    return TradeOff(promises=tuple((eps, rate * math.exp(-eps) + extra) for eps in (0.0, 1.0, 2.0)))


def expected(found: TradeOff, how: Any) -> BestTest:
    return BestTest.of(found, how, 0.003)


@pytest.mark.parametrize("attained", [False, True])
@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize(("distance", "rate"), [(None, 0.01), (2.0, 0.01), (1.0, 0.0025)])
def test_within_the_promise_the_proof_itself_holds(distance: float | None, rate: float, steps: bool, attained: bool) -> None:
    made = outlook(Proof(attained=attained, steps=steps))
    assert made.after(distance) == expected(promises(rate), "exact" if attained else "bound")


def test_beyond_the_promise_the_proof_for_such_pairs_holds_and_that_of_steps() -> None:
    """Values 3 apart, where 2 are promised: the same proof at 1.5 times, or two steps of the promise."""
    wide, two = promises(0.0225), promises(0.01).in_steps(2)
    assert outlook(Proof()).after(3.0) == expected(wide.also(two), "bound")
    assert outlook(Proof(steps=False)).after(3.0) == expected(wide, "bound")
    assert outlook(Proof(attained=True)).after(3.0) == expected(wide, "exact")
    assert outlook(Proof(beyond=False)).after(3.0) == expected(two, "bound")
    assert outlook(Proof(beyond=False, attained=True)).after(3.0) == expected(two, "bound")
    assert outlook(Proof(beyond=False, steps=False)).after(3.0) == BestTest(how="unknown")
    assert outlook(Proof(beyond=False, steps=False, attained=True)).after(3.0) == expected(TradeOff(), "exact")


def test_equal_values_are_a_coin_and_values_out_of_range_unknown() -> None:
    made = outlook(Proof())
    coin = made.after(0)
    assert (coin.how, coin.right, coin.epsilon, coin.loss) == ("exact", 0.5, 0.0, 0.0)
    assert made.before(0) == coin
    assert made.after(20.001) == made.before(20.001) == BestTest(how="unknown")
    assert made.after(20.0).how == "bound"


def test_a_proof_of_a_population_is_for_its_whole_range() -> None:
    for distance in (0.5, 2.0, 3.0):
        assert outlook(Proof(attained=True), parameter="share").after(distance) == expected(promises(0.01), "bound")


def test_a_constant_after_other_answers_says_nothing_of_them() -> None:
    silent = Proof()
    silent.reads_rows = False
    assert outlook(silent, earlier="something").after(1.0) == BestTest(how="unknown")
    assert outlook(silent).after(1.0) == expected(promises(0.0025), "bound")
    assert outlook(Proof(), earlier="something").after(1.0) == expected(promises(0.0025), "bound")


def test_the_risk_of_a_fit_is_added_and_what_cannot_be_computed_proves_nothing() -> None:
    assert outlook(Proof(), fit_delta=0.002).after(2.0) == expected(promises(0.01, 0.002), "bound")
    for error in (UsageError("no"), ZeroDivisionError()):
        failing = Proof()
        failing.fails = error
        failing.stretched = lambda times, failing=failing: failing  # type: ignore[method-assign,misc]
        later = TradeOff(promises=tuple((eps, 0.01 * math.exp(-eps)) for eps in (1.0, 2.0)))
        assert outlook(failing).after(2.0) == expected(later, "bound")


def test_of_several_secrets_the_checks_of_one_are_its_own() -> None:
    mine, other = SimpleNamespace(secret="s0"), SimpleNamespace(secret="s1")
    for checks, more in (((mine, other), ()), ((other,), (mine,)), ((mine,), (mine, other))):
        made = outlook(Proof(checks=checks, more=more, attained=True), secrets=2)
        about: Any = made._about
        assert (about.checks, about.more) == (tuple(c for c in checks if c is mine), tuple(c for c in more if c is mine))
        assert made.after(2.0).right == expected(promises(0.005), "exact").right
    both = outlook(Proof(checks=(other,), attained=True), secrets=2)
    assert both._about is None
    assert both.after(2.0) == expected(promises(0.01), "bound")
    alone: Any = Proof(checks=(other,))
    assert outlook(alone)._about is alone


@pytest.mark.parametrize(
    ("changes", "how"),
    [({}, "exact"), ({"exact": False}, "bound"), ({"individuals": "rows"}, "bound"), ({"parameter": "share"}, "bound")],
)
def test_only_what_a_law_reaches_is_exact(changes: dict[str, Any], how: str) -> None:
    assert outlook(Proof(attained=True), **changes).after(2.0).how == how
    assert outlook(Proof(), **changes).after(2.0).how == "bound"


def test_a_constant_is_exact_for_a_population_too() -> None:
    silent = Proof(attained=True)
    silent.reads_rows = False
    assert outlook(silent, parameter="share").after(1.0).how == "exact"
    assert outlook(silent, parameter="share", individuals="rows").after(1.0).how == "bound"


def test_exact_answers_are_those_of_pairs_so_far_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    at: list[float] = []

    def loaded(path: str) -> Callable[..., Any]:
        def answer(problem: Any, secret: Any, times: float) -> Any:
            at.append(times)
            return (
                None
                if times > 5
                else SimpleNamespace(delta=lambda eps: 0.2 * times * math.exp(-eps), profile=Profile((0.0, 2.0), True))
            )

        return answer

    monkeypatch.setattr(module, "load", loaded)
    made = outlook(Proof())
    assert made.before(3.0) == expected(promises(0.3), "exact")
    assert made.before(None) == expected(promises(0.2), "exact")
    assert made.before(11.0) == BestTest(how="unknown")
    assert at == [1.5, 1.0, 5.5]
