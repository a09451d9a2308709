"""The commands, in-process: what each prints with and without --json, its exit code, and what it says when something fails."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

import attrpriv
from attrpriv.accounting.ledger import Ledger
from attrpriv.cli import app as app_module
from attrpriv.cli import guard, render, starter
from attrpriv.errors import CertificateError
from attrpriv.policy.strict_yaml import dump_strict
from attrpriv.queries.query import quoted
from tests.end_to_end.material import (
    NOON,
    ROWS,
    Said,
    assume,
    contents,
    gaussians_of,
    policy,
    school,
    students,
    write_policy,
    write_table,
)

PLANTED = "PLANTED-4711"
table_reads = importlib.import_module("attrpriv.session.table_reads")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of its own with the school's table and policy, and a clock that stands still."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(app_module, "clock", lambda: NOON)
    school(tmp_path)
    return tmp_path


# --------------------------------------------------------------------------------------------------------- every command

RUNS: dict[str, tuple[str, ...]] = {
    "init": ("init", "students.parquet", "--out", "new.yaml"),
    "check": ("check", "students.yaml"),
    "check, query given": ("check", "students.yaml", "sum(weight)", "count(*)"),
    "explain": ("explain", "students.yaml"),
    "plan": ("plan", "students.yaml"),
    "plan, query given": ("plan", "students.yaml", "sum(weight)", "count(*)"),
    "release": ("release", "students.yaml"),
    "release, query given": ("release", "students.yaml", "avg(weight), count(*)", "sum(weight)"),
    "schema": ("schema",),
    "demo": ("demo",),
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.usefixtures("here")
def test_a_command_prints_plain_text(name: str) -> None:
    said = Said(*RUNS[name])
    assert (said.code, said.err) == (0, "")
    assert said.out.endswith("\n")
    assert "\x1b" not in said.out
    assert "\t" not in said.out
    longest = max(map(len, said.out.splitlines()))
    assert longest < 1000
    assert not any(line != line.rstrip() and len(line) > 300 for line in said.out.splitlines()), "no table fills the pipe"


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.usefixtures("here")
def test_a_command_prints_one_json_document(name: str) -> None:
    said = Said(*RUNS[name], "--json")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(("{", "["))
    assert said.json


def test_every_command_takes_json() -> None:
    commands: dict[str, Any] = typer.main.get_command(app_module.app).commands  # type: ignore[attr-defined]
    assert {"init", "check", "plan", "release", "schema", "demo"} <= set(commands)
    assert {name for name, command in commands.items() if not any("--json" in p.opts for p in command.params)} == set()
    for name in commands:
        said = Said(name, "--help")
        assert said.code == 0
        assert f"attrpriv {name}" in said.out or f" {name} " in said.out


def test_version_and_help() -> None:
    assert Said("--version").out == f"attrpriv {attrpriv.__version__}\n"
    assert Said("--version").code == 0
    assert "release" in Said("--help").out
    assert Said().code == 2  # no command at all
    assert Said("publish").code == 2
    assert Said("plan").code == 2
    assert Said("plan", "x.yaml", "--jsn").code == 2


@pytest.mark.parametrize(
    "wrong",
    [
        ("plan", "students.yaml", "--jsn"),
        ("plan",),
        ("plan", "students.yaml", "--spend", "half"),
        ("release", "students.yaml", "--error"),
        ("schema", "students.yaml"),
        ("publish",),
    ],
    ids=["unknown option", "missing argument", "bad value", "no value", "too many arguments", "unknown command"],
)
def test_a_command_line_that_cannot_be_read_is_reported_like_every_error(wrong: tuple[str, ...]) -> None:
    plain, asked = Said(*wrong), Said(wrong[0], "--json", *wrong[1:])
    assert (plain.code, plain.out) == (2, "")
    assert asked.code == 2
    assert set(asked.json) == {"schema_version", "error"}
    assert asked.json["error"] == {"kind": "usage", "message": asked.complaint, "exit_code": 2}
    assert "Input should" not in plain.complaint


# ------------------------------------------------------------------------------------------------------------------ plan

PLAN_KEYS = {
    "schema_version": int,
    "query": str,
    "mechanism": str,
    "chosen": bool,
    "n": int,
    "policy_digest": str,
    "epsilon": float,
    "delta": float,
    "noise": dict,
    "parameters": dict,
    "error": dict,
    "guarantee": dict,
    "model_error": list,
}


def test_plan_json_has_the_keys_of_the_design(here: Path) -> None:
    known = assume(mean={"income": 60_000, "weight": 150})
    write_policy(here, policy(assume=known, bounds={"weight": [60, 400]}, release=["avg(weight)", "count(*)"]))
    rows = Said("plan", "students.yaml", "--json").json
    planned = [row for row in rows if "refused" not in row]
    assert {"gaussian", "group_dp", "constant"} <= {row["mechanism"] for row in planned}
    assert {row["query"] for row in planned} == {"avg(weight)", "count(*)"}
    for row in planned:
        for key, kind in PLAN_KEYS.items():
            assert isinstance(row[key], kind), key
        assert {"kind", "scale"} <= set(row["noise"])
        assert {"rmse", "mean_absolute", "alpha95", "worst"} <= set(row["error"])
        assert {"kind", "statement", "reference"} <= set(row["guarantee"])
        assert all({"off_by", "epsilon"} <= set(entry) for entry in row["model_error"])
        assert (row["n"], row["epsilon"], row["delta"]) == (ROWS, 1.0, 1e-6)
    assert {row["mechanism"] for row in planned if row["chosen"]} == {"gaussian"}
    for row in rows:
        if "refused" in row:
            assert set(row) == {"query", "mechanism", "refused", "cause", "needs"}
            assert row["refused"]


def test_plan_says_why_a_mechanism_is_refused(here: Path) -> None:
    rows = Said("plan", "students.yaml", "--json").json
    refused = {row["mechanism"]: row["refused"] for row in rows if "refused" in row}
    assert "needs bounds for weight" in refused["group_dp"]
    said = Said("plan", "students.yaml")
    assert "group_dp refused: needs bounds for weight" in said.out
    assert "chosen: gaussian; nothing has been read or released." in said.out


def test_plan_groups_what_is_for_other_assumptions(here: Path) -> None:
    lines = Said("plan", "students.yaml").out.splitlines()
    (others,) = [line for line in lines if line.startswith("for other assumptions: ")]
    assert "laplace, wasserstein, optimal (counts)" in others
    assert not any(line.startswith("laplace") for line in lines)


def test_a_plan_by_another_measure_or_by_name(here: Path) -> None:
    rows = Said("plan", "students.yaml", "--by", "mean_absolute", "--json").json
    errors = [row["error"]["mean_absolute"] for row in rows if "refused" not in row]
    assert errors == sorted(errors)
    assert "mean absolute error" in Said("plan", "students.yaml", "--by", "mean_absolute").out
    assert "by: must be one of rmse, mean_absolute, alpha95" in Said("plan", "students.yaml", "--by", "worst").complaint
    rows = Said("plan", "students.yaml", "--mechanism", "gaussian", "--json").json
    assert {row["mechanism"] for row in rows if row.get("chosen")} == {"gaussian"}
    assert Said("plan", "students.yaml", "--mechanism", "gausian").complaint.endswith("Did you mean gaussian?")
    assert Said("plan", "students.yaml", "--mechanism", "laplace").code == 3


def test_accuracy_first(here: Path) -> None:
    """The least epsilon for a wanted error: shown, in JSON, and recorded by a release."""
    write_policy(here, policy(protect=[{"secret": "mean(income)", "between": [20_000, 200_000]}]))
    base = Said("plan", "students.yaml", "--mechanism", "gaussian", "--json").json
    wanted = 1.5 * next(row["error"]["rmse"] for row in base if row.get("chosen"))
    options = ("--mechanism", "gaussian", "--error", str(wanted))
    said = Said("plan", "students.yaml", *options)
    assert said.code == 0
    assert f"enough for an error (rmse) of {wanted:g}: epsilon 0." in said.out
    (chosen,) = [row for row in Said("plan", "students.yaml", *options, "--json").json if row.get("chosen")]
    assert chosen["error"]["rmse"] <= wanted
    assert 0.5 < chosen["epsilon"] < 1
    refused = Said("plan", "students.yaml", "--mechanism", "gaussian", "--error", str(wanted / 3))
    assert (refused.code, refused.out) == (3, "")
    assert "more than the policy allows" in refused.complaint
    told = Said("release", "students.yaml", *options, "--json").json
    (entry,) = Ledger(here / "students.ledger").entries()
    assert entry.plan[0]["epsilon"] == chosen["epsilon"] == told["plan"][0]["epsilon"]
    assert entry.plan[0]["certificate"]["epsilon"] == chosen["epsilon"]


def test_a_fragile_plan_is_warned_of_in_one_line(here: Path) -> None:
    """Slopes taken as exact, and the whole range hidden: 1% more than doubles epsilon."""
    wide = [{"secret": "mean(income)", "between": [20_000, 200_000]}]
    exact = assume(tolerance=0)
    write_table(here, students(10_000))
    write_policy(here, policy(protect=wide, assume=exact))
    for command in ("plan", "check", "explain", "release"):
        said = Said(command, "students.yaml", *(("--mechanism", "transport") if command == "release" else ()))
        (line,) = [line for line in said.out.splitlines() if "fragile: " in line]
        assert "off by 1% more than stated, epsilon can be" in line
        assert command in ("check", "explain") or line.startswith("warning ")


def test_the_constant_answer_is_a_baseline(here: Path) -> None:
    write_policy(here, policy(assume=assume(mean={"income": 60_000, "weight": 150})))
    assert "\nconstant (baseline) " in Said("plan", "students.yaml").out


def test_plan_needs_no_table_where_rows_are_declared(here: Path) -> None:
    write_policy(here, policy(data="later.parquet", rows=10_000))
    said = Said("plan", "students.yaml", "--json")
    assert said.code == 0
    assert {row["n"] for row in said.json if "refused" not in row} == {10_000}
    assert Said("check", "students.yaml").code == 0


def test_plan_and_check_write_nothing(here: Path) -> None:
    before = contents(here)
    for command in ("plan", "check", "explain"):
        assert Said(command, "students.yaml").code == 0
    assert contents(here) == before


def test_a_warning_where_the_constant_answer_is_better(here: Path) -> None:
    write_policy(here, policy(assume=assume(mean={"income": 60_000, "weight": 150}), rows=ROWS, epsilon=0.01))
    for command in ("plan", "check"):
        assert "nothing beats the constant answer" in Said(command, "students.yaml").out


# ----------------------------------------------------------------------------------------------------------------- check


def test_check_lists_what_is_hidden_and_answered(here: Path) -> None:
    said = Said("check", "students.yaml")
    assert "hide   mean(income), between 20000 and 200000, values at most 1000 apart\n" in said.out
    assert "answer avg(weight) by gaussian" in said.out
    assert "ok the policy is complete and consistent, and provable.\n" in said.out
    found = Said("check", "students.yaml", "--json").json
    assert (found["ok"], found["refused"]) == (True, None)
    assert found["queries"][0]["query"] == "avg(weight)"
    assert found["protect"] == ["mean(income), between 20000 and 200000, values at most 1000 apart"]


def test_check_without_a_query(here: Path) -> None:
    write_policy(here, policy(release=[]))
    said = Said("check", "students.yaml")
    assert said.code == 0
    assert "no query is named" in said.out
    assert Said("check", "students.yaml", "--json").json["queries"] == []


UNPROVABLE = {
    "refused": (policy("assume"), 3),
    "bad usage": (policy(delta=0), 2),
}


@pytest.mark.parametrize("name", UNPROVABLE)
@pytest.mark.parametrize("command", ["check", "plan", "release"])
def test_what_cannot_be_proved(name: str, command: str, here: Path) -> None:
    text, code = UNPROVABLE[name]
    write_policy(here, text)
    before = contents(here)
    said, told = Said(command, "students.yaml"), Said(command, "students.yaml", "--json")
    assert said.code == told.code == code
    assert said.complaint == told.complaint
    assert "gaussian" in said.complaint
    assert told.json
    assert contents(here) == before


# --------------------------------------------------------------------------------------------------------------- release


def test_a_release_is_shown_and_recorded(here: Path) -> None:
    said = Said("release", "students.yaml")
    (entry,) = Ledger(here / "students.ledger").entries()
    (answer,) = entry.answers
    shown = next(line for line in said.out.splitlines() if line.startswith("avg(weight)")).split()
    assert abs(float(shown[1]) - answer["value"]) < 0.05
    assert abs(float(shown[2]) - answer["interval"]["low"]) < 0.05
    assert abs(float(shown[4]) - answer["interval"]["high"]) < 0.05
    assert "\nrecorded as entry 1, 2024-05-06T12:00:00+00:00\n" in said.out
    assert re.search(r"\n(\d+%|nothing) of the table's budget is left\n", said.out)
    assert said.out.endswith(f"\nhead digest {entry.digest}\n")
    assert "single persons are not protected" in said.out


def test_a_release_in_json_is_what_the_ledger_holds(here: Path) -> None:
    told = Said("release", "students.yaml", "--json").json
    (entry,) = Ledger(here / "students.ledger").entries()
    assert told["answers"] == entry.answers
    assert told["plan"] == entry.plan
    place = {"entry": 1, "time": "2024-05-06T12:00:00+00:00", "digest": entry.digest, "head": entry.digest, "recorded": False}
    assert told["ledger"] == place


def test_the_same_release_twice_is_one(here: Path) -> None:
    first = Said("release", "students.yaml")
    before = contents(here)
    again = Said("release", "students.yaml")
    assert (again.code, again.err) == (0, "")
    new, old = again.out.splitlines(), first.out.splitlines()
    assert [line for line in new if line not in old] == [
        "this is the recorded answer of entry 1, 2024-05-06T12:00:00+00:00; nothing was drawn."
    ]
    assert new[-1] == old[-1]
    told = Said("release", "students.yaml", "--json").json
    (entry,) = Ledger(here / "students.ledger").entries()
    assert told["answers"] == entry.answers
    assert told["plan"] == entry.plan
    assert told["ledger"]["recorded"] is True
    assert contents(here) == before


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_release_is_refused_where_nothing_is_left(flags: tuple[str, ...], here: Path) -> None:
    write_policy(here, policy(protect=[{"secret": "mean(income)", "between": [20_000, 200_000], "within": 5000}]))
    assert Said("release", "students.yaml", "--mechanism", "gaussian").code == 0
    before = contents(here)
    for queries in (("sum(income)",), ("avg(income)",), ("avg(weight)", "avg(income)")):
        said = Said("release", "students.yaml", *queries, "--spend", "0.5", *flags)
        assert said.code == 3
        assert "must have something left of the table's budget. Got none" in said.complaint
        assert "answers that are harmless alone can reveal the secret together" in said.complaint
        if flags:
            assert said.json == {
                "schema_version": 1,
                "error": {"kind": "refused", "message": said.complaint, "exit_code": 3},
            }
        else:
            assert said.out == ""
    assert contents(here) == before


def test_a_mechanism_by_name(here: Path) -> None:
    write_policy(here, policy(bounds={"weight": [60, 400]}))
    told = Said("release", "students.yaml", "--mechanism", "group_dp", "--json").json
    assert told["plan"][0]["mechanism"] == "group_dp"
    said = Said("release", "students.yaml", "--mechanism", "magic")
    assert said.code in (2, 3)


@pytest.mark.parametrize("column", ["[/x]", "[red]weight", ":car:", "größe", 'a"b', "force", "a\nb", "\x1b[31m"])
def test_a_column_may_have_any_name(column: str, here: Path) -> None:
    table = students().rename_columns([column, "income", "gender"])
    write_table(here, table)
    write_policy(
        here,
        policy(
            "resolution",
            assume=assume(sd={column: 25, "income": 30_000}, correlation={f"{column}~income": 0.3}),
            release=[f"avg({quoted(column)})"],
        ),
    )
    name = f"avg({quoted(column)})"
    printed = name.replace("\n", "\\n").replace("\x1b", "\\x1b")
    for command in ("plan", "release"):
        said = Said(command, "students.yaml")
        assert (said.code, said.err) == (0, "")
        assert printed in said.out
        assert "\x1b" not in said.out
    (entry,) = Ledger(here / "students.ledger").entries()
    assert entry.answers[0]["query"] == name
    assert "\x1b" not in Said("plan", "students.yaml", f"avg({quoted(column + '!')})").complaint


# ------------------------------------------------------------------------------------------------------ something fails


def fail(*_: Any, **__: Any) -> Any:
    raise ValueError(PLANTED)


# Where something unexpected happens, and the command that meets it.
UNEXPECTED: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], tuple[str, ...]]] = {
    "init": (lambda patch: patch.setattr(starter, "open_table", fail), ("init", "students.parquet", "--out", "n.yaml")),
    "check": (lambda patch: patch.setattr(table_reads, "open_table", fail), ("check", "students.yaml")),
    "plan": (lambda patch: patch.setattr(table_reads, "open_table", fail), ("plan", "students.yaml")),
    "release, opening": (lambda patch: patch.setattr(table_reads, "open_table", fail), ("release", "students.yaml")),
    "release, reading": (lambda patch: patch.setattr(table_reads, "scan", fail), ("release", "students.yaml")),
    "release, noise": (
        lambda patch: patch.setattr(importlib.import_module("attrpriv.methods.base.column_plan"), "add_gaussian", fail),
        ("release", "students.yaml"),
    ),
    "release, recording": (lambda patch: patch.setattr(Ledger, "commit", fail), ("release", "students.yaml")),
    "schema": (lambda patch: patch.setattr(attrpriv.Policy, "schema_document", fail), ("schema",)),
    "demo": (lambda patch: patch.setattr("attrpriv.demo.school.write_students", fail), ("demo",)),
}


@pytest.mark.parametrize("name", UNEXPECTED)
def test_an_unexpected_error_says_only_its_type(name: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrange, arguments = UNEXPECTED[name]
    arrange(monkeypatch)
    before = contents(here)
    said, told = Said(*arguments), Said(*arguments, "--json")
    assert said.code == told.code == 1
    assert said.complaint == told.complaint
    assert said.complaint.startswith("unexpected ValueError. What was released before that, if anything,")
    assert PLANTED not in said.out + said.err + told.out + told.err
    assert told.json["error"] == {"kind": "unexpected", "message": told.complaint, "exit_code": 1}
    assert contents(here) == before


def test_a_certificate_that_fails_is_no_release(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def verify(_: Any) -> None:
        raise CertificateError("certificate: does not hold.")

    monkeypatch.setattr(attrpriv.Certificate, "verify", verify)
    said = Said("release", "students.yaml")
    assert (said.code, said.complaint) == (1, "certificate: does not hold.")
    assert not (here / "students.ledger").exists()


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_an_answer_that_cannot_be_printed_is_not_denied(
    flags: tuple[str, ...], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = guard.print_json

    def failing(document: Any) -> None:
        if "answers" in document:
            raise UnicodeEncodeError("ascii", PLANTED, 0, 1, PLANTED)
        real(document)

    monkeypatch.setattr(render, "show_release", fail)
    monkeypatch.setattr(app_module, "print_json", failing)
    said = Said("release", "students.yaml", *flags)
    assert said.code == 1
    assert said.complaint.startswith("the answer was released but could not be printed (")
    assert "Entry 1 of the ledger holds it." in said.complaint
    assert PLANTED not in said.out + said.err
    assert len(Ledger(here / "students.ledger").entries()) == 1


# ------------------------------------------------------------------------------------------------------------------ init

VALUES = {"between": ("20000", "200000"), "within": "1000", "mean": "0.01", "sd": "0.02", "slope": "0.05", "rows": str(ROWS)}


def decided(text: str) -> str:
    """A starter policy with every TODO replaced, as its owner would."""
    lines = []
    for line in text.splitlines():
        key = line.split(":")[0].strip()
        if line.lstrip().startswith("#") or "TODO" not in line:
            lines.append(line)
        elif key == "between":
            lines.append(line.replace("TODO", "20000", 1).replace("TODO", "200000", 1))
        else:
            value = VALUES.get(key, "0.3" if "~" in line else "30000")
            lines.append(line.replace("TODO", str(value)))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", ["students.parquet", "people.csv"])
def test_a_starter_policy_works_once_decided(name: str, here: Path) -> None:
    write_table(here, name=name)
    said = Said("init", name, "--out", "new.yaml")
    assert said.code == 0
    assert "wrote new.yaml: column names and types, no statistic.\n" in said.out
    assert ("The types were guessed from a sample of rows" in said.out) == name.endswith(".csv")
    text = (here / "new.yaml").read_text(encoding="utf-8")
    assert ("guessed from a sample of rows" in text) == name.endswith(".csv")
    for line in ("#   weight: integer", "#   income: integer", "#   gender: text"):
        assert line in text
    undecided = Said("check", "new.yaml")
    assert undecided.code == 2
    assert "must be decided by you. Got TODO." in undecided.complaint
    (here / "new.yaml").write_text(decided(text), encoding="utf-8")
    assert Said("check", "new.yaml").code == 0
    assert Said("release", "new.yaml").code == 0


def test_a_starter_policy_in_json(here: Path) -> None:
    write_table(here, name="people.csv")
    told = Said("init", "people.csv", "--json").json
    assert (told["path"], told["types_by_sample"]) == ("people.yaml", True)
    assert told["policy"] == (here / "people.yaml").read_text(encoding="utf-8")
    assert Said("init", "students.parquet", "--force", "--json").json["types_by_sample"] is False


def test_init_does_not_overwrite(here: Path) -> None:
    before = contents(here)
    said = Said("init", "students.parquet")
    assert said.code == 2
    assert said.complaint == "out: students.yaml exists already. Use --force to overwrite it, or --out to write elsewhere."
    assert contents(here) == before
    assert Said("init", "students.parquet", "--force").code == 0
    assert contents(here)["students.yaml"] != before["students.yaml"]


def test_init_says_nothing_about_the_rows(here: Path) -> None:
    written = []
    for seed in (1, 2):
        write_table(here, students(seed=seed, income=1e6 * seed))
        assert Said("init", "students.parquet", "--force").code == 0
        written.append((here / "students.yaml").read_bytes())
    assert written[0] == written[1]


def test_init_elsewhere_names_the_table_by_its_full_path(here: Path) -> None:
    (here / "policies").mkdir()
    assert Said("init", "students.parquet", "--out", "policies/p.yaml").code == 0
    text = (here / "policies" / "p.yaml").read_text(encoding="utf-8")
    assert f"data: {dump_strict([str(here / 'students.parquet')]).strip()[2:]}\n" in text


@pytest.mark.parametrize("first", ["body weight", "a: b", "# x", "'", '"', "yes", "1e-6", "{x}", "TODOs", "é\u2028b"])
def test_a_starter_policy_for_any_column_name(first: str, here: Path) -> None:
    write_table(here, students().rename_columns([first, "income", "gender"]))
    assert Said("init", "students.parquet", "--force").code == 0
    path = here / "students.yaml"
    path.write_text(
        decided(path.read_text(encoding="utf-8").replace("TODOs", "tod0s")).replace("tod0s", "TODOs"), encoding="utf-8"
    )
    found = attrpriv.Policy.load(path)
    assert gaussians_of(found)[0].columns == (first, "income")
    assert [query.columns for query in found.queries()] == [(first,)]
    assert Said("check", "students.yaml").code == 0


def test_init_needs_two_numeric_columns(here: Path) -> None:
    write_table(here, students().select(["gender", "weight"]), "few.parquet")
    before = contents(here)
    said = Said("init", "few.parquet")
    assert said.code == 2
    assert said.complaint.startswith("data: ")
    assert said.complaint.endswith(" needs two numeric columns, one to hide and one to publish. Got 1.")
    assert contents(here) == before


@pytest.mark.parametrize("out", ["none/x.yaml", "."])
def test_init_where_nothing_can_be_written(out: str, here: Path) -> None:
    before = contents(here)
    said = Said("init", "students.parquet", "--out", out, "--force")
    assert said.code == 2
    assert said.complaint.startswith("out: must be a place that can be written. Got ")
    assert contents(here) == before


# ------------------------------------------------------------------------------------------------------------------ demo


def test_the_demo_compares_and_releases(here: Path) -> None:
    said = Said("demo", "--dir", "school")
    assert said.code == 0
    assert "group differential privacy" in said.out
    assert "attrpriv: exact calibration" in said.out
    assert sorted(p.name for p in (here / "school").iterdir()) == ["students.ledger", "students.parquet", "students.yaml"]
    assert "this is the recorded answer of entry 1" in Said("release", "school/students.yaml").out
    assert Said("release", "school/students.yaml", "count(*)").code == 0  # everybody knows that
    assert Said("release", "school/students.yaml", "avg(income)").code == 3  # which needs more than is left
    again = Said("demo", "--dir", "school")
    assert (again.code, again.complaint) == (2, "dir: must be a new directory that can be made. Got 'school'.")


def test_the_demo_keeps_nothing_unless_told(here: Path) -> None:
    before = contents(here)
    told = Said("demo", "--json").json
    assert [row["chosen"] for row in told["compared"]].count(True) == 1
    assert told["release"]["answers"][0]["query"] == "avg(weight)"
    assert contents(here) == before


def test_groups_stand_below_their_query(here: Path) -> None:
    """The first group's name is in a line of its own, as the others are, and not behind the query."""
    policy = (
        "attrpriv: 1\ndata: students.parquet\nepsilon: 1\nprotect:\n  - secret: share(gender = 'F')\n    between: [20%, 80%]\n"
        "categories: {gender: [F, M]}\nrelease:\n  - SELECT gender, avg(weight) FROM data GROUP BY gender\n"
    )
    (here / "groups.yaml").write_text(policy, encoding="utf-8")
    said = Said("release", "groups.yaml")
    assert said.code == 0
    lines = [line.rstrip() for line in said.out.splitlines()]
    at = lines.index("SELECT gender, avg(weight) FROM data GROUP BY gender")
    assert [line.split()[0] for line in lines[at + 1 : at + 3]] == ["F", "M"]
    assert all(line.startswith("  ") for line in lines[at + 1 : at + 3])
