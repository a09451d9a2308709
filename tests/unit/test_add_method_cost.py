"""What a new mechanism inside the package costs: one folder with one file, and one entry of METHODS, and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.end_to_end.material import environment, school

SOURCE = Path(__file__).resolve().parents[2] / "src" / "attrpriv"

# Twice the noise of group_dp, under a name of its own: enough to plan, rank, certify and release.
FILE = '''"""Laplace noise for the whole range of one average, twice as much as needed."""

from typing import Literal

from attrpriv.extend import (
    AveragesPart, Certificate, ColumnPlan, Evidence, Noise, Plan, Problem, assemble, common_assumptions, laplace_error
)


class CautiousEvidence(Evidence):
    kind: Literal["cautious"] = "cautious"
    column: str
    width: float
    scale: float

    def delta(self, epsilon: float) -> float:
        return 0.0 if self.scale > 0 and self.width / self.scale * 1.001 <= epsilon else 1.0

    def covers(self, column: str, kind: str, scale: float) -> bool:
        return (column, kind, scale) == (self.column, "laplace", self.scale)

    def width_of(self, column: str) -> float | None:
        return self.width


def plan(problem: Problem) -> Plan:
    (column,) = problem.columns
    low, high = problem.bounds[column]
    scale = 2 * (high - low) / problem.epsilon
    drawn = ColumnPlan(
        column=column, noise=Noise(kind="laplace", scale=scale), error=laplace_error(scale), clip=(low, high)
    )
    evidence = CautiousEvidence(column=column, width=high - low, scale=scale)
    assumes = common_assumptions(problem)
    certificate = Certificate(epsilon=problem.epsilon, delta=problem.delta, evidence=evidence, assumes=assumes)
    return assemble(problem, "cautious", AveragesPart(columns=(drawn,)), certificate, reference="here")
'''
ENTRY = (
    '    Method("cautious", (Form((), ".cautious.plan:plan", "averages"),), page="x.md", '
    'proofs={"cautious": ".cautious.plan"}),\n'
)
USE = """
import json
import attrpriv as ap
from attrpriv.session.record import recheck

assert ap.__file__.startswith({source!r}), ap.__file__
with ap.Session(policy=ap.Policy.load({policy!r})) as session:
    ranked = [plan.mechanism for plan in session.ranked().rankings[0].plans]
    released = session.release(mechanism="cautious")
    told = recheck("ledger", session.ledger.entries)
print(json.dumps([ranked, released.plan.mechanism, told.planned_again]))
"""


def test_a_new_mechanism_is_one_folder_and_one_entry(tmp_path: Path) -> None:
    copied = tmp_path / "src" / "attrpriv"
    shutil.copytree(SOURCE, copied, ignore=shutil.ignore_patterns("__pycache__"))
    (copied / "methods" / "cautious").mkdir()
    (copied / "methods" / "cautious" / "plan.py").write_text(FILE, encoding="utf-8")
    table = copied / "methods" / "table.py"
    before = table.read_text(encoding="utf-8")
    end = before.index("\n)\n", before.index("\nMETHODS")) + 1
    table.write_text(before[:end] + ENTRY + before[end:], encoding="utf-8")
    assert len(table.read_text(encoding="utf-8").splitlines()) == len(before.splitlines()) + 1

    policy = school(tmp_path, bounds={"weight": [50, 300]})
    code = USE.format(source=str(tmp_path), policy=str(policy))
    env = environment(PYTHONPATH=str(tmp_path / "src"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=env, check=False)
    assert done.returncode == 0, done.stderr
    ranked, mechanism, again = json.loads(done.stdout)
    assert (mechanism, again) == ("cautious", 1)
    assert ranked.index("group_dp") < ranked.index("cautious")  # it errs more
