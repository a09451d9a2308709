"""Hide each entry of a sequence, publish how often a state occurs: the chain assumption as a user meets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from attrpriv.engines.tally import UNKNOWN_CATEGORY
from tests.end_to_end.material import Said, contents, write_policy, write_table

ROWS = 1000
POLICY: dict[str, Any] = {
    "attrpriv": 1,
    "data": "activity.parquet",
    "epsilon": 1.0,
    "protect": [{"secret": "entries(state)"}],
    "assume": {
        "kind": "chain",
        "column": "state",
        "states": [0, 1],
        "initial": [1, 0],
        "transition": [[0.9, 0.1], [0.4, 0.6]],
        "tolerance": 0,
    },
    "release": ["count(*) filter (where state = 1)"],
}


def activity(seed: int = 1, rows: int = ROWS) -> list[int]:
    generator = np.random.default_rng(seed)
    states = [0]
    for draw in generator.random(rows - 1):
        states.append(int(draw < (0.1 if states[-1] == 0 else 0.6)))
    return states


def diary(folder: Path, states: list[Any] | None = None, **changes: Any) -> Path:
    write_table(folder, pa.table({"state": activity() if states is None else states}), "activity.parquet")
    return write_policy(folder, POLICY | changes, "activity.yaml")


def test_plan_release_and_a_second_release(tmp_path: Path) -> None:
    path = str(diary(tmp_path))
    ranked = Said("plan", path, "--json").json
    chosen = next(entry for entry in ranked if entry.get("chosen"))
    assert (chosen["mechanism"], chosen["guarantee"]["kind"]) == ("laplace", "proved")
    assert chosen["noise"]["scale"] == pytest.approx(3.3364, abs=1e-4)
    quilts = next(entry for entry in ranked if entry["mechanism"] == "chain_quilt")
    assert quilts["noise"]["scale"] == pytest.approx(12.9341, abs=1e-4)
    assert (quilts["parameters"]["node"], quilts["parameters"]["quilt"]) == (8, [1, 13])
    group = next(entry for entry in ranked if entry["mechanism"] == "group_dp")
    assert group["noise"]["scale"] == pytest.approx(1000)
    answer = Said("release", path, "--json").json["answers"][0]
    assert isinstance(answer["value"], int)
    assert abs(answer["value"] - sum(activity())) < 40 * 4
    assert Said("release", path, "--json").json["answers"] == [answer]  # told again, not drawn again


@pytest.mark.parametrize("query", ["sum(state)", "avg(state)", "SELECT state, count(*) FROM data GROUP BY state"])
def test_other_queries(tmp_path: Path, query: str) -> None:
    said = Said("release", str(diary(tmp_path, release=[query])), "--json").json
    assert said["plan"][0]["mechanism"] == "laplace"
    if "GROUP" in query:
        assert [group["group"] for group in said["answers"][0]["groups"]] == ["0", "1"]


def test_names_as_states(tmp_path: Path) -> None:
    named = [["rest", "walk"][state] for state in activity()]
    assume = POLICY["assume"] | {"states": ["rest", "walk"]}
    path = diary(tmp_path, named, assume=assume, release=["count(*) filter (where state = 'walk')"])
    assert isinstance(Said("release", str(path), "--json").json["answers"][0]["value"], int)


def test_nothing_but_the_value_depends_on_the_entries(tmp_path: Path) -> None:
    plans, names = [], []
    for k in (1, 2):
        folder = tmp_path / str(k)
        folder.mkdir()
        said = Said("release", str(diary(folder, activity(k))), "--json").json
        plans.append(said["plan"])
        names.append(sorted(contents(folder)))
    assert plans[0] == plans[1]
    assert names[0] == names[1]


@pytest.mark.parametrize("stranger", [2, None])
def test_an_unknown_state_is_an_announced_failure(tmp_path: Path, stranger: int | None) -> None:
    states: list[Any] = activity()
    states[7] = stranger
    path = diary(tmp_path, states)
    before = contents(tmp_path)
    said = Said("release", str(path))
    assert said.code == 2
    assert UNKNOWN_CATEGORY.format(columns="state") in said.complaint
    assert contents(tmp_path) == before


def test_explain_says_who_cannot_learn_what(tmp_path: Path) -> None:
    said = " ".join(Said("explain", str(diary(tmp_path))).out.split())
    assert "each entry of state, whatever its neighbours tell" in said
    assert "the entries of state in the order of the rows are a Markov chain with states 0, 1" in said
    assert "its neighbours tell the rest" in said
    assert "Each entry is hidden on its own" in said
    assert "Single persons" not in said


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"transition": [[0.9, 0.2], [0.4, 0.6]]},
            "assume[0]: transition: row 1: must sum to 1. Got a sum of 1.1, off by +0.1.",
        ),
        ({"tolerance": 1.5}, "tolerance: must be less than 1. Got 1.5."),
        ({"initial": "some"}, "initial: must be any, a list of probabilities, one a state"),
        ({"longest": 0}, "longest: must be at least 1. Got 0."),
        ({"states": [0, 1, 2]}, "initial: must have one probability for each of 3 states."),
    ],
)
def test_bad_policies(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    said = Said("check", str(diary(tmp_path, assume=POLICY["assume"] | changes)))
    assert said.code == 2
    assert says in said.complaint


def test_several_releases_share_the_budget_and_the_ledger_is_checked_again(tmp_path: Path) -> None:
    """Costs of entries add up; the second release knows the first, and every entry is proved again from the policy."""
    path = str(diary(tmp_path, ledger="activity.ledger", release=["count(*) filter (where state = 1)", "sum(state)"]))
    plans = Said("release", path, "--json").json["plan"]
    assert [plan["mechanism"] for plan in plans] == ["laplace", "laplace"]
    assert [plan["noise"]["scale"] for plan in plans] == pytest.approx([2 * 3.3364] * 2, abs=1e-3)
    assert "planned again from the stated policy" in Said("ledger", path, "--recheck").out


def test_persons_any_start_and_a_tolerance(tmp_path: Path) -> None:
    """Several persons in one table, of whom no start is known and each probability but roughly."""
    assume = POLICY["assume"] | {"initial": "any", "tolerance": 0.02, "longest": 60}
    path = str(diary(tmp_path, assume=assume))
    plan = next(entry for entry in Said("plan", path, "--json").json if entry.get("chosen"))
    assert 3.3 < plan["noise"]["scale"] < 6
    said = " ".join(Said("explain", path).out.split())
    assert "of each person (at most 60 entries)" in said
    assert "each probability to move on within 0.02 of those stated, whatever its start" in said
    assert isinstance(Said("release", path, "--json").json["answers"][0]["value"], int)
