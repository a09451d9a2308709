"""Which policies may follow which: tighter is a partial order, and whatever is looser is refused by its name."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attrpriv as ap
from attrpriv.policy import Policy
from attrpriv.policy.change import loosened, require_tighter

INCOME: Mapping[str, Any] = {"secret": "mean(income)", "between": [20_000, 200_000], "within": 1000}
GAUSSIAN: Mapping[str, Any] = {
    "kind": "gaussian",
    "sd": {"weight": 25, "income": 30_000, "sat": 200},
    "correlation": {"weight~income": 0.3, "weight~sat": 0.1, "income~sat": 0.2},
    "tolerance": {"sd": 0.02, "slope": 0.05},
}


def made(**changes: Any) -> Policy:
    stated: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "protect": [dict(INCOME)],
        "assume": copy.deepcopy(dict(GAUSSIAN)),
        "bounds": {"weight": [0, 500]},
        "resolution": {"weight": 1, "income": 1},
        "known_rows": 0.1,
        "release": ["avg(weight)"],
    }
    return Policy(**{**stated, **changes})


def secret(**changes: Any) -> list[dict[str, Any]]:
    return [{key: value for key, value in {**INCOME, **changes}.items() if value is not None}]


def other(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(dict(GAUSSIAN)), **changes}


SAT = {"secret": "mean(sat)", "within": 10}
TIGHTER: dict[str, dict[str, Any]] = {
    "the same": {},
    "epsilon": {"epsilon": 0.5},
    "delta": {"delta": 1e-9},
    "one more secret": {"protect": [*secret(), SAT]},
    "secrets in another order": {"protect": [SAT, *secret()]},
    "a wider range": {"protect": secret(between=[10_000, 300_000])},
    "a larger distance": {"protect": secret(within=2000)},
    "any distance": {"protect": secret(within=None)},
    "any range": {"protect": secret(between=None)},
    "one more belief": {"assume": [dict(GAUSSIAN), other(sd={"weight": 30, "income": 30_000, "sat": 200})]},
    "more known rows": {"known_rows": 0.2},
    "other places": {"data": "x.parquet", "ledger": "y.ledger", "release": ["avg(sat)"]},
}
LOOSER: dict[str, tuple[dict[str, Any], str]] = {
    "epsilon": ({"epsilon": 1.1}, r"epsilon: must not become larger \(it was 1\)\. Got 1\.1"),
    "delta": ({"delta": 1e-5}, "delta: must not become larger"),
    "another secret": ({"protect": [SAT]}, r"protect: must still hide mean\(income\)"),
    "a sum instead": ({"protect": secret(secret="sum(income)")}, "protect: must still hide"),
    "a narrower range": ({"protect": secret(between=[20_000, 190_000])}, "protect: must still hide"),
    "a shifted range": ({"protect": secret(between=[30_000, 300_000])}, "protect: must still hide"),
    "a smaller distance": ({"protect": secret(within=900)}, "protect: must still hide"),
    "another belief": ({"assume": other(tolerance={"sd": 0.02, "slope": 0.1})}, "assume: must keep every member"),
    "no belief": ({"assume": []}, "assume: must keep every member"),
    "fewer known rows": ({"known_rows": 0.0}, r"known_rows: must not become smaller"),
    "bounds": ({"bounds": {"weight": [0, 400]}}, "bounds: must stay as it was"),
    "resolution": ({"resolution": {"weight": 2, "income": 1}}, "resolution: must stay as it was"),
    "missing": ({"missing": {"weight": 0}}, "missing: must stay as it was"),
    "rows": ({"rows": 10}, "rows: must stay as it was"),
    "calibration": ({"calibration": "classical"}, "calibration: must stay as it was"),
    "identifiers": ({"identifiers": ["id"]}, "identifiers: must stay as it was"),
    "fit risk": ({"accept_fit_risk": True}, "accept_fit_risk: must stay as it was"),
    "individuals later": ({"individuals": {"epsilon": 1.0}}, "individuals: must not be dropped"),
}


@pytest.mark.parametrize("name", TIGHTER)
def test_what_promises_more_may_follow(name: str) -> None:
    assert loosened(made(), made(**TIGHTER[name])) == []
    require_tighter("x", made(), made(**TIGHTER[name]))


@pytest.mark.parametrize("name", LOOSER)
def test_what_promises_less_is_refused_by_name(name: str) -> None:
    change, text = LOOSER[name]
    with pytest.raises(ap.RefusedError, match=rf"^x: belongs to its table.* {text}"):
        require_tighter("x", made(), made(**change))
    # Nothing that is tighter elsewhere makes up for it.
    assert loosened(made(), made(**{"epsilon": 0.5, "delta": 1e-9, **change}))


def test_single_persons_keep_what_they_were_promised() -> None:
    before = made(individuals={"epsilon": 1.0})
    assert loosened(before, made(individuals={"epsilon": 0.5})) == []
    for now in (made(), made(individuals={"epsilon": 1.5})):
        assert "individuals" in loosened(before, now)[0]


def test_every_part_of_a_policy_is_thought_of() -> None:
    """A key that is added one day is one that must stay as it is, unless somebody decides otherwise here."""
    from attrpriv.policy import change

    keys = set(made().to_json())
    assert keys >= change._PLACES | change._ORDERED
    assert {"attrpriv", "data", "ledger", "release"} == change._PLACES
    assert {"epsilon", "delta", "protect", "assume", "known_rows", "individuals"} == change._ORDERED


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """From few values for each part, so that many pairs are comparable."""
    within = draw(st.sampled_from([None, 500, 1000]))
    between = draw(st.sampled_from([[0, 10_000], [2000, 8000], [2000, 12_000]]))
    secrets = [{key: value for key, value in {**INCOME, "within": within, "between": between}.items() if value is not None}]
    more = draw(st.sampled_from([[], [SAT], [{**SAT, "within": 20}]]))
    beliefs = draw(st.sampled_from([[dict(GAUSSIAN)], [dict(GAUSSIAN), other(tolerance=0)], [other(tolerance=0)]]))
    return made(
        epsilon=draw(st.sampled_from([0.5, 1.0])),
        delta=draw(st.sampled_from([1e-7, 1e-6])),
        protect=[*secrets, *more],
        assume=beliefs,
        known_rows=draw(st.sampled_from([0.0, 0.2])),
        individuals=draw(st.sampled_from(["none", {"epsilon": 0.5}, {"epsilon": 1.0}])),
        resolution=draw(st.sampled_from([{}, {"weight": 1}])),
    )


def follows(now: Policy, before: Policy) -> bool:
    return not loosened(before, now)


def inside(between: Any, value: float) -> bool:
    return between is None or bool(between[0] <= value <= between[1])


def hidden(policy: Policy, name: str, a: float, b: float) -> bool:
    """By hand: whether two values of a statistic must look alike."""
    return any(
        one.text == name and all(inside(one.between, x) for x in (a, b)) and (one.within is None or abs(a - b) <= one.within)
        for one in policy.protect
    )


@given(a=policies(), b=policies(), c=policies())
@settings(max_examples=40, deadline=None)
def test_tighter_is_a_partial_order(a: Policy, b: Policy, c: Policy) -> None:
    assert follows(a, a)
    if follows(b, a) and follows(c, b):
        assert follows(c, a)
    if follows(a, b) and follows(b, a):
        assert a.stated | {"protect": 0, "assume": 0} == b.stated | {"protect": 0, "assume": 0}


@given(before=policies(), now=policies(), a=st.integers(0, 12_500), b=st.integers(0, 12_500))
@settings(max_examples=40, deadline=None)
def test_whatever_had_to_look_alike_still_has_to(before: Policy, now: Policy, a: int, b: int) -> None:
    if not follows(now, before):
        return
    assert (now.epsilon, now.delta) <= (before.epsilon, max(now.delta, before.delta))
    assert now.delta <= before.delta
    assert set(map(str, before.assume)) <= set(map(str, now.assume))
    for name in ("mean(income)", "mean(sat)"):
        assert hidden(now, name, a, b) or not hidden(before, name, a, b)
