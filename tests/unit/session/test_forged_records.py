"""Records that somebody made up, with digests that fit: what the record itself can show to be wrong, the recheck finds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from attrpriv.accounting import hash_chain as chain
from attrpriv.accounting.hash_chain import Entry
from attrpriv.errors import AttrprivError
from attrpriv.session.record import recheck
from tests.unit.session.sequences import made, session

Change = Callable[[dict[str, Any]], None]


def entries_of(place: Path, mechanism: str) -> tuple[Entry, ...]:
    exact = made(assume={**made().assume[0].to_json(), "tolerance": 0})
    with session(place, exact) as opened:
        opened.release("avg(weight)", mechanism, spend=0.5)
        opened.release("avg(height)", mechanism, spend=0.5)
        return opened.recorded()


def rewritten(entries: tuple[Entry, ...], change: Change) -> list[Entry]:
    """The same chain with each entry changed, and every digest computed anew."""
    head, found = None, []
    for entry in entries:
        told = copy.deepcopy(entry.to_json())
        change(told)
        said = {key: told[key] for key in ("kind", "time", "policy_digest", "plan", "answers", "details")}
        head = chain.next_entry(chain.contents(**said), told["account"], head)
        found.append(head)
    return found


def evidence(told: dict[str, Any]) -> list[dict[str, Any]]:
    return [one["certificate"]["evidence"] for one in told["plan"]]


def noise(told: dict[str, Any], scale: float) -> None:
    for one in told["plan"]:
        one["noise"]["scale"] = scale
    for part in told["details"]["columns"]:
        part["noise"]["scale"] = part["independent"] = scale


def no_shift(told: dict[str, Any]) -> None:
    for one in evidence(told):
        for check in one["checks"]:
            check["shifts"] = [[0.0] for _ in check["shifts"]]


def hardly_any_noise(told: dict[str, Any]) -> None:
    no_shift(told)
    for one in evidence(told):
        one["independent"] = [1e-9] * len(one["independent"])
    noise(told, 1e-9)


def named_otherwise(told: dict[str, Any]) -> None:
    hardly_any_noise(told)
    told["details"]["mechanism"] = "optimal"
    for one in told["plan"]:
        one["mechanism"] = "optimal"


def without_types(told: dict[str, Any]) -> None:
    hardly_any_noise(told)
    del told["details"]["types"]


def nothing_taken_back(told: dict[str, Any]) -> None:
    for one in evidence(told):
        one["slopes"] = [[0.0] * len(row) for row in one["slopes"]]
        for check in one["checks"]:
            check["own"] = [0.0] * len(check["own"])
            check["regression"] = [[0.0] * len(row) for row in check["regression"]]


def no_mask(told: dict[str, Any]) -> None:
    for one in evidence(told):
        for step in one["steps"]:
            step["least"] = step["noise"] = 1e-12
    noise(told, 1e-12)


def no_charges(told: dict[str, Any]) -> None:
    for one in evidence(told):
        one["lattice_lambda"] = one["grid_lambda"] = one["reserve"] = 0.0


def hidden_value(told: dict[str, Any]) -> None:
    told["answers"][0]["exactly"] = 150.123456


def a_string(told: dict[str, Any]) -> None:
    told["answers"][0]["value"] = "150.123456, exactly"


def another_group(told: dict[str, Any]) -> None:
    answer = told["answers"][0]
    told["answers"][0] = {"query": answer["query"], "groups": [{"group": "150.123456", "value": 1.0, "interval": None}]}


def wide_words(told: dict[str, Any]) -> None:
    told["answers"][0]["interval"]["exactly"] = 150.123456


def clipped(told: dict[str, Any]) -> None:
    for part in told["details"]["columns"]:
        part["clip"] = [170.0, 170.5]


def another_kind(told: dict[str, Any]) -> None:
    for one in told["plan"]:
        one["guarantee"]["kind"] = "approximate"


def more_left(told: dict[str, Any]) -> None:
    for one in told["plan"]:
        one["budget"]["left"] = 0.99


FORGED: dict[str, tuple[str, Change]] = {
    "shifts of nothing": ("gaussian", no_shift),
    "hardly any noise": ("gaussian", hardly_any_noise),
    "another mechanism's name": ("gaussian", named_otherwise),
    "no types": ("gaussian", without_types),
    "an answer that says more": ("gaussian", hidden_value),
    "a text for a number": ("gaussian", a_string),
    "groups that nobody asked for": ("gaussian", another_group),
    "an interval that says more": ("gaussian", wide_words),
    "rows that were clipped": ("gaussian", clipped),
    "another kind of promise": ("gaussian", another_kind),
    "more left than there is": ("gaussian", more_left),
    "nothing taken back": ("transport", nothing_taken_back),
    "no mask": ("transport", no_mask),
    "no charges": ("transport", no_charges),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_record_that_was_made_up_is_found(name: str, tmp_path: Path) -> None:
    mechanism, change = FORGED[name]
    entries = entries_of(tmp_path / "x.ledger", mechanism)
    honest = recheck("record", rewritten(entries, lambda told: None))
    assert (honest.certificates, honest.releases, honest.planned_again) == (2, 2, 2)
    with pytest.raises(AttrprivError, match=r"entry [12]: "):
        recheck("record", rewritten(entries, change))


def test_a_policy_that_asks_for_more_is_not_what_was_proved(tmp_path: Path) -> None:
    """The stated policy is replaced, digests included, by one that hides a thousand times as much."""
    entries = entries_of(tmp_path / "x.ledger", "gaussian")
    wider = made(
        assume={**made().assume[0].to_json(), "tolerance": 0},
        protect=[{"secret": "mean(income)", "between": [0, 100_000_000], "within": 3_000_000}],
    )

    def stated(told: dict[str, Any]) -> None:
        told["policy_digest"] = wider.digest
        told["details"]["policy_digest"] = wider.digest
        for one in told["plan"]:
            one["policy_digest"] = wider.digest
        if "stated" in told["account"]:
            told["account"]["stated"] = wider.stated

    with pytest.raises(AttrprivError, match="entry 1: "):
        recheck("record", rewritten(entries, stated))


@pytest.mark.parametrize("secret", [{"secret": "count(s = 'a')"}, {"parameter": "share(s = 'a')"}])
def test_probabilities_next_to_one_are_those_of_the_policy(tmp_path: Path, secret: dict[str, str]) -> None:
    """A billionth off they are the same law for all rows, and the exact answer is proved: a row loses log 6."""
    policy = made(
        "release",
        delta=0.0,
        epsilon=0.5,
        protect=[{**secret, "between": [0, 1] if "parameter" in secret else [0, 3]}],
        assume={"kind": "counts", "sensitive": "s", "given": {"v > 0": {"a": 0.9999999999, "b": 0.9999999994}}},
    )
    with session(tmp_path / "x.ledger", policy, pa.table({"s": ["a", "b", "a"], "v": [1, 1, 1]})) as opened:
        opened.release("count(*) filter (where v > 0)", "optimal")
        entries = opened.recorded()

    def one_law(told: dict[str, Any]) -> None:
        del told["details"]["bound"]  # as 0.1.0 wrote it
        (found,) = evidence(told)
        for law in ("member", "rest"):
            found["records"][law][1] = [0.99999999965] * 2
        if "weights" in found:
            found["weights"] = [[2**62 * (f == o) for o in range(4)] for f in range(4)]
        else:
            found["sources"] = found["targets"] = [[2**126] * 4] * 4

    assert recheck("record", rewritten(entries, lambda told: None)).planned_again == 1
    with pytest.raises(AttrprivError, match=r"records\.member.* must be 0\.9999999999, as the policy plans it"):
        recheck("record", rewritten(entries, one_law))


def test_a_constant_tells_its_public_value_and_nothing_else(tmp_path: Path) -> None:
    policy = made(assume={**made().assume[0].to_json(), "mean": {"income": 60_000, "weight": 150}, "tolerance": 0})
    with session(tmp_path / "x.ledger", policy) as opened:
        opened.release("avg(weight)", "constant", spend=0.5)
        entries = opened.recorded()
    assert recheck("record", entries).releases == 1

    def told_more(told: dict[str, Any]) -> None:
        told["answers"][0]["value"] = 149.87654321

    with pytest.raises(AttrprivError, match="entry 1: "):
        recheck("record", rewritten(entries, told_more))
