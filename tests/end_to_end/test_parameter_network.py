"""A parameter network through the command line: a policy file with a BIF file beside it, plan, explain, release."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attrpriv.cli.app import app
from attrpriv.policy import Policy

pytest.importorskip("pyagrum")

BIF = """network "school" {}
variable gender { type discrete[2] {low, high}; }
variable income { type discrete[2] {low, high}; }
variable sat { type discrete[2] {low, high}; }
variable height { type discrete[2] {low, high}; }
probability (gender) { default 0.5 0.5; }
probability (income | gender) { (low) 0.7 0.3; (high) 0.3 0.7; }
probability (sat | income) { (low) 0.7 0.3; (high) 0.3 0.7; }
probability (height | gender) { (low) 0.7 0.3; (high) 0.3 0.7; }
"""
POLICY = """attrpriv: 1
data: students.csv
rows: 4
epsilon: 1.0
protect:
  - parameter: income
assume:
  kind: parameter_network
  file: students.bif
  values: {income: {low: 40000, high: 80000}}
  tolerance: 0
bounds: {sat: [400, 1600]}
release: ["count(*) filter (where height > 66)"]
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "students.bif").write_text(BIF, encoding="utf-8")
    (tmp_path / "students.csv").write_text(
        "gender,income,sat,height\nF,1,1200,60\nM,2,1300,70\nF,3,1400,67\nM,4,900,71\n", encoding="utf-8"
    )
    path = tmp_path / "students.yaml"
    path.write_text(POLICY, encoding="utf-8")
    return path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


def test_the_policy_holds_the_network_itself(policy: Path) -> None:
    loaded = Policy.load(policy)
    assert loaded.assume[0].kind == "parameter_network"
    assert Policy.from_json(loaded.to_json()).digest == loaded.digest


def test_plan_explain_release(policy: Path) -> None:
    entries = json.loads(run("plan", str(policy), "--json"))
    chosen = next(entry for entry in entries if entry.get("chosen"))
    assert chosen["mechanism"] == "markov_quilt"
    assert chosen["noise"]["kind"] == "none"
    told = " ".join(run("explain", str(policy)).split())
    assert "form a network, and each column depends on its own alone" in told
    assert "any two values of the parameter of income in the population behind the table" in told
    released = json.loads(run("release", str(policy), "--json"))
    assert "3" in json.dumps(released)


def test_an_average_with_noise(policy: Path) -> None:
    policy.write_text(
        POLICY.replace('"count(*) filter (where height > 66)"', '"avg(sat)"').replace("epsilon: 1.0", "epsilon: 0.5"),
        encoding="utf-8",
    )
    entries = json.loads(run("plan", str(policy), "--json"))
    quilt = next(entry for entry in entries if entry["mechanism"] == "markov_quilt")
    assert quilt["noise"]["scale"] == pytest.approx(2400, rel=1e-6)
    run("release", str(policy), "--json")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("parameter: income", "parameter: shoe_size", "shoe_size"),
        ("file: students.bif", "file: nothing.bif", "which is not there"),
        ("  tolerance: 0\n", "", "tolerance: is required"),
    ],
)
def test_mistakes_are_one_line(policy: Path, old: str, new: str, said: str) -> None:
    policy.write_text(POLICY.replace(old, new), encoding="utf-8")
    result = CliRunner().invoke(app, ["plan", str(policy)])
    assert result.exit_code in (2, 3)
    assert said in result.output


def test_a_network_learned_from_this_very_table_is_refused(policy: Path, tmp_path: Path) -> None:
    import attrpriv as ap

    fitted = ap.ParameterNetwork.fit(
        ap.PublicTable(tmp_path / "students.csv"),
        bins={"sat": (400, 1250, 1600), "height": (50, 66, 80), "income": (0, 2, 5)},
        tolerance=0.1,
    )
    private = ap.Policy(epsilon=5.0, rows=4, protect=[ap.Parameter("income")], assume=fitted)
    with (
        ap.Session(tmp_path / "students.csv", private, ledger=tmp_path / "x.ledger") as session,
        pytest.raises(ap.DataError, match=r"fitted|same|private"),
    ):
        session.release("count(*) filter (where height > 66)", mechanism="markov_quilt")
