"""Counts from the policy file to the ledger: plan, check, explain, release; bad inputs in one line; and nothing leaks."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from attrpriv.accounting.ledger import Ledger
from attrpriv.cli import app as app_module
from tests.end_to_end.material import NOON, Said, attrpriv, contents, write_policy, write_table

ROWS = 12
POLICY: Mapping[str, Any] = {
    "attrpriv": 1,
    "data": "ward.parquet",
    "epsilon": 1.0,
    "protect": [{"secret": "count(smoker = 'yes')", "between": [3, 6]}],
    "assume": {
        "kind": "counts",
        "sensitive": "smoker",
        "given": {
            "stay > 7": {"yes": [0.38, 0.42], "no": 0.2},
            "visits": {
                "yes": {"values": [0, 1, 3], "probabilities": [0.2, 0.5, 0.3]},
                "no": {"values": [0, 1, 3], "probabilities": [0.5, 0.3, 0.2]},
            },
        },
        "prior": {"yes": 0.4},
    },
    "release": ["count(*) filter (where stay > 7)"],
}


def policy(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(dict(POLICY)), **changes}


def assume(*drop: str, **changes: Any) -> dict[str, Any]:
    made = {**copy.deepcopy(POLICY["assume"]), **changes}
    return {key: value for key, value in made.items() if key not in drop}


def given(event: str, yes: Any, no: Any) -> dict[str, Any]:
    return assume(given={event: {"yes": yes, "no": no}})


def ward(smokers: int = 5, stays: int = 4, **changes: Any) -> pa.Table:
    """A ward of twelve; what is counted comes first."""
    columns: dict[str, Any] = {
        "smoker": ["yes"] * smokers + ["no"] * (ROWS - smokers),
        "stay": [9] * stays + [2] * (ROWS - stays),
        "visits": [0, 1, 3, 1] * (ROWS // 4),
        "age": [20 + k for k in range(ROWS)],
    }
    return pa.table(columns | changes)


def arrange(folder: Path, made: dict[str, Any] | None = None, table: pa.Table | None = None) -> None:
    write_table(folder, ward() if table is None else table, "ward.parquet")
    write_policy(folder, made or policy(), "ward.yaml")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(app_module, "clock", lambda: NOON)
    return tmp_path


# --------------------------------------------------------------------------------------------------------- it all works


QUERIES = {
    "a count": ["count(*) filter (where stay > 7)"],
    "a sum and its average": ["sum(visits)", "avg(visits)", "count(*)"],
    "a histogram": ["SELECT visits, count(*) FROM data GROUP BY visits"],
}


@pytest.mark.parametrize("name", [*list(QUERIES)[:2], pytest.param("a histogram", marks=pytest.mark.slow)])
@pytest.mark.parametrize("command", ["check", "plan", "explain"])
def test_commands_that_read_no_row(name: str, command: str, here: Path) -> None:
    arrange(here, policy(release=QUERIES[name]))
    before = contents(here)
    for flags in ((), ("--json",)):
        said = Said(command, "ward.yaml", *flags)
        assert (said.code, said.err) == (0, "")
        assert said.out
    assert contents(here) == before


@pytest.mark.parametrize("name", list(QUERIES))
def test_a_release_and_a_second_one(name: str, here: Path) -> None:
    arrange(here, policy(release=QUERIES[name]))
    said = Said("release", "ward.yaml", "--json")
    assert (said.code, said.err) == (0, "")
    (entry,) = Ledger(here / "ward.ledger").entries()
    assert said.json["answers"] == entry.answers
    before = contents(here)
    again = Said("release", "ward.yaml", "--json")
    assert (again.code, again.err) == (0, "")
    assert again.json == {**said.json, "ledger": {**said.json["ledger"], "recorded": True}}
    other = Said("release", "ward.yaml", "count(*) filter (where stay > 9)", "--spend", "0.5")
    assert (other.code, other.out) == (3, "")
    assert other.complaint.startswith("ledger 'ward.ledger': ")
    assert contents(here) == before


def values(answers: list[dict[str, Any]]) -> list[float]:
    return [group["value"] for answer in answers for group in answer.get("groups", [answer])]


@pytest.mark.parametrize("mechanism", ["laplace", "wasserstein", "optimal", "group_dp", "constant"])
def test_whole_answers_and_whole_intervals(mechanism: str, here: Path) -> None:
    arrange(here)
    (answer,) = Said("release", "ward.yaml", "--json", "--mechanism", mechanism).json["answers"]
    assert isinstance(answer["value"], int)
    low, high = answer["interval"]["low"], answer["interval"]["high"]
    assert isinstance(low, int)
    assert isinstance(high, int)
    assert low <= answer["value"] <= high


def test_answers_are_near_the_truth(here: Path) -> None:
    """At epsilon 100 the noise is nothing: every answer is the table's own, in the query's own unit."""
    for name, truth in {"a count": [4], "a sum and its average": [15, 1.25, 12], "a histogram": [3, 6, 3]}.items():
        arrange(here, policy(epsilon=100.0, release=QUERIES[name]))
        assert values(Said("release", "ward.yaml", "--json", "--mechanism", "laplace").json["answers"]) == truth
        (here / "ward.ledger").unlink()


def test_gaussian_noise_with_delta(here: Path) -> None:
    arrange(here, policy(delta=1e-6))
    said = Said("release", "ward.yaml", "--json", "--mechanism", "gaussian")
    assert said.code == 0
    (planned,) = said.json["plan"]
    assert planned["noise"]["kind"] == "gaussian"
    assert planned["certificate"]["evidence"]["kind"] == "count_direct"


def test_a_real_process(tmp_path: Path) -> None:
    arrange(tmp_path)
    done = attrpriv("release", "ward.yaml", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_network_beside_the_policy(here: Path) -> None:
    pytest.importorskip("pyagrum")
    (here / "nets").mkdir()
    (here / "nets" / "ward.bif").write_text(
        'network "ward" {}\n'
        "variable smoker { type discrete[2] {yes, no}; }\nvariable visits { type discrete[3] {0, 1, 3}; }\n"
        "probability (smoker) { default 0.4 0.6; }\n"
        "probability (visits | smoker) { (yes) 0.2 0.5 0.3; (no) 0.5 0.3 0.2; }\n"
    )
    network = {"kind": "counts", "sensitive": "smoker", "network": "nets/ward.bif", "tolerance": 0.01}
    arrange(here, policy(assume=network, release=["sum(visits)"], epsilon=100.0))
    said = Said("release", "ward.yaml", "--json", "--mechanism", "laplace")
    assert said.code == 0
    arrange(here, policy(assume={**network, "network": "nets/none.bif"}))
    assert (
        "network: must be the path of a BIF file. Got 'nets/none.bif', which is not there."
        in Said("plan", "ward.yaml").complaint
    )
    arrange(here, policy(assume={k: v for k, v in network.items() if k != "tolerance"}))
    assert "tolerance: goes with a network, and is needed there" in Said("plan", "ward.yaml").complaint


# ------------------------------------------------------------------------------------------------------------ bad inputs

VALUES = {"yes": {"values": [0, 1], "probabilities": [0.5, 0.5]}, "no": {"values": [0, 1], "probabilities": [0.4, 0.6]}}
YOUNG = assume(sensitive="age", given={"stay > 7": {"young": 0.3, "old": 0.4}}, prior={})
OLD = [{"secret": "count(age >= 50)", "between": [3, 6]}]
BOTH = ("plan", "release")
BAD: dict[str, tuple[dict[str, Any], str, tuple[str, ...]]] = {
    "above one": (
        policy(assume=given("stay > 7", 1.4, 0.2)),
        "probabilities must be between 0 and 1. Got 1.4.",
        ("check", "release"),
    ),
    "below zero": (
        policy(assume=given("stay > 7", 0.4, -0.2)),
        "probabilities must be between 0 and 1. Got -0.2.",
        ("check", "release"),
    ),
    "an interval above one": (
        policy(assume=given("stay > 7", [0.4, 1.2], 0.2)),
        "between 0 and 1. Got 1.2.",
        ("check", "release"),
    ),
    "low above high": (
        policy(assume=given("stay > 7", [0.42, 0.38], 0.2)),
        "above the high end. Got [0.42, 0.38].",
        ("check", "release"),
    ),
    "not one": (
        policy(assume=given("visits", VALUES["yes"], {"values": [0, 1], "probabilities": [0.4, 0.5]})),
        "probabilities must sum to 1. Got a sum of 0.9, off by -0.1.",
        ("check", "release"),
    ),
    "a prior that is not one": (
        policy(assume=assume(prior={"yes": 0.4, "no": 0.7})),
        "Got a sum of 1.1, off by +0.1.",
        ("check", "release"),
    ),
    "a prior of no category": (
        policy(assume=assume(prior={"may": 0.4})),
        "prior.may: must be one of yes, no.",
        ("check", "release"),
    ),
    "categories that differ": (
        policy(assume=assume(given={"stay > 7": {"yes": 0.4, "no": 0.2}, "stay > 9": {"yes": 0.4, "may": 0.2}})),
        "given.stay > 9: must have two or more categories, the same for all. Got yes, may.",
        ("check", "release"),
    ),
    "no such category": (
        policy(protect=[{"secret": "count(smoker = 'maybe')", "between": [3, 6]}]),
        "the policy lists 'yes', 'no' for smoker. Got 'maybe'.",
        BOTH,
    ),
    "more than all rows": (
        policy(protect=[{"secret": "count(smoker = 'yes')", "between": [3, 50]}]),
        "counts must be from 0 to the number of rows, 12. Got 3 to 50.",
        BOTH,
    ),
    "one count": (
        policy(protect=[{"secret": "share(smoker = 'yes')", "between": [0.25, 0.3]}]),
        "holds a single count of 12 rows, 3; there is nothing to hide.",
        BOTH,
    ),
    "a prior of zero": (
        policy(assume=assume(prior={"yes": 0.0})),
        "its categories have prior share 0, so that no value but 0 is possible.",
        BOTH,
    ),
    "no such event": (policy(release=["count(*) filter (where stay > 8)"]), "give the probability of stay > 8", BOTH),
    "bins that do not cover the bounds": (
        policy(assume=YOUNG, protect=OLD, bins={"age": [0, 50, 100]}, bounds={"age": [0, 120]}),
        "bins: those of age must cover its bounds [0, 120]. Got 0 to 100.",
        BOTH,
    ),
    "bins that cut": (
        policy(assume=YOUNG, protect=[{"secret": "count(age >= 60)", "between": [1, 11]}], bins={"age": [0, 50, 120]}),
        "cuts the bin [50, 120]; choose bins with an edge there.",
        BOTH,
    ),
    "one row": (policy(rows=1), "rows: ", ("check", "release")),
    "another number of rows": (policy(rows=13), "rows: must be the number of rows of the table, 12. Got 13.", BOTH),
}


@pytest.mark.parametrize(("name", "command"), [(name, command) for name, bad in BAD.items() for command in bad[2]])
def test_bad_input(name: str, command: str, here: Path) -> None:
    made, said_of_it, _ = BAD[name]
    arrange(here, made)
    before = contents(here)
    said = Said(command, "ward.yaml")
    assert said.code == 2
    assert said.out == "" or command == "plan"  # which shows what every mechanism says
    assert said_of_it in said.complaint
    assert contents(here) == before


def test_a_table_of_one_row(here: Path) -> None:
    arrange(here, None, ward().slice(0, 1))
    said = Said("release", "ward.yaml")
    assert (said.code, said.complaint) == (2, "data: the table must have at least 2 rows. Got 1.")


def test_a_number_of_rows_that_only_the_scan_sees(here: Path) -> None:
    write_table(here, ward(), "ward.csv")
    write_policy(here, policy(data="ward.csv", rows=13), "ward.yaml")
    said = Said("release", "ward.yaml")
    assert (said.code, said.complaint) == (2, "rows: must be the number of rows of the table, 12. Got 13.")
    assert not (here / "ward.ledger").exists()


def test_what_cannot_be_proved_is_refused_with_another_code(here: Path) -> None:
    arrange(here, policy(release=["SELECT visits, count(*) FROM data GROUP BY visits"]))
    said = Said("release", "ward.yaml", "--mechanism", "optimal")
    assert (said.code, said.complaint) == (3, "optimal: is for one number; a histogram is covered by laplace.")


# ------------------------------------------------------------------------------------------------------ rows of no place

UNKNOWN = (
    "data: every row must have a category, and a value, that the assumption knows. Columns read: {}. Got a row that has not. "
    "Name the value in the assumption as the table writes it, spaces included; or a public value under `missing`; or "
    "under `other` the category that all others count as."
)
STRANGE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "an unknown category": (policy(), {"smoker": ["PLANTED"] + ["no"] * 11}, "stay, smoker"),
    "no category": (policy(), {"smoker": [None] + ["no"] * 11}, "stay, smoker"),
    "an unknown value": (policy(release=["sum(visits)"]), {"visits": [4711] + [0] * 11}, "visits, smoker"),
    "no value": (policy(release=["sum(visits)"]), {"visits": [None] + [0] * 11}, "visits, smoker"),
}


@pytest.mark.parametrize("name", list(STRANGE))
def test_a_row_of_no_place_is_announced_and_not_quoted(name: str, here: Path) -> None:
    made, columns, read = STRANGE[name]
    arrange(here, made, ward(**columns))
    before = contents(here)
    said = Said("release", "ward.yaml", "--mechanism", "laplace")
    assert (said.code, said.out, said.complaint) == (2, "", UNKNOWN.format(read))
    assert contents(here) == before


def test_other_takes_them(here: Path) -> None:
    event = {"stay > 7": {"yes": 0.4, "no": 0.2, "unknown": [0.0, 1.0]}}
    arrange(here, policy(assume=assume("prior", given=event, other="unknown")), ward(smoker=[None, "PLANTED", "yes", "no"] * 3))
    said = Said("release", "ward.yaml", "--mechanism", "laplace")
    assert (said.code, said.err) == (0, "")
    assert "PLANTED" not in said.out


# --------------------------------------------------------------------------------------------------------- nothing leaks

ONE, OTHER = ward(smokers=3, stays=1), ward(smokers=6, stays=11, visits=[0] * 11 + [3])


def seen(here: Path, made: dict[str, Any], table: pa.Table, *arguments: str) -> dict[str, Any]:
    """Everything but values and digests that anyone can see."""
    arrange(here, made, table)
    found: dict[str, Any] = {}
    for command in (("check",), ("plan", "--json"), ("explain",)):
        said = Said(command[0], "ward.yaml", *command[1:])
        found[" ".join(command)] = (said.code, said.out, said.err)
    said = Said("release", "ward.yaml", "--json", *arguments)
    found["release"] = (said.code, said.err)
    if said.code == 0:
        answers = said.json["answers"]
        found["plan of the release"] = said.json["plan"]
        groups = [group for answer in answers for group in answer.get("groups", [answer])]
        found["widths"] = [round(group["interval"]["high"] - group["interval"]["low"], 9) for group in groups]
        found["ledger"] = re.sub(r'"(value|low|high)": ?-?[\d.e-]+', "", str(sorted(said.json["ledger"])))
        (here / "ward.ledger").unlink()
    found["files"] = sorted(path.name for path in here.iterdir())
    return found


@pytest.mark.parametrize(
    ("changes", "mechanism"),
    [
        ({}, "laplace"),
        pytest.param({"assume": given("stay > 7", 0.4, 0.2)}, "optimal", marks=pytest.mark.slow),
        pytest.param({"delta": 1e-6}, "gaussian", marks=pytest.mark.slow),
        ({"release": QUERIES["a histogram"]}, "laplace"),
        pytest.param(
            {"release": QUERIES["a sum and its average"], "individuals": {"epsilon": 1.0}}, "laplace", marks=pytest.mark.slow
        ),
    ],
)
def test_nothing_but_the_values_differs(changes: dict[str, Any], mechanism: str, here: Path) -> None:
    one, other = (seen(here, policy(**changes), table, "--mechanism", mechanism) for table in (ONE, OTHER))
    assert one == other
    assert one["release"] == (0, "")


def test_announced_failures_do_not_differ(here: Path) -> None:
    tables = (ward(smoker=["PLANTED"] + ["no"] * 11), ward(smoker=pa.array([None] * 12, pa.string())))
    one, other = (seen(here, policy(), table) for table in tables)
    assert one == other
    assert one["release"][0] == 2


def test_a_planted_leak_is_seen(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scale that depends on the table shows in this comparison."""
    import importlib

    import pyarrow.parquet as pq

    session = importlib.import_module("attrpriv.session.split")
    real = session.plan_problem

    def planted(problem: Any, *rest: Any) -> Any:
        smokers = pq.read_table("ward.parquet").column("smoker").to_pylist().count("yes")
        return real(problem.model_copy(update={"epsilon": 1 - smokers * 1e-9}), *rest)

    monkeypatch.setattr(session, "plan_problem", planted)
    one, other = (seen(here, policy(), table, "--mechanism", "laplace") for table in (ONE, OTHER))
    assert one["plan of the release"] != other["plan of the release"]
