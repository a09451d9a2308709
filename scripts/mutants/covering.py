"""Which tests run which lines, how long each takes, and which lines run when a plan is verified.

Measured once, and kept in .mutants/.
"""

from __future__ import annotations

import ast
import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from xml.etree import ElementTree

import pytest

from scripts.mutants.planting import ROOT, SOURCE, TESTED, Mutant

KEPT = ROOT / ".mutants"
SUITES = (
    *(f"tests/unit/{part}" for part in TESTED),
    *("tests/unit/accounting", "tests/unit/assumptions", "tests/unit/session"),
    *("tests/property", "tests/conformance", "tests/statistical"),
)

# Of one test with many cases.
MOST_OF_ONE = 12


def measure(files: Sequence[str] = SUITES) -> None:
    """Run these tests once, with a context for each, and note how long each takes; beside what was measured before."""
    KEPT.mkdir(exist_ok=True)
    told = {**os.environ, "COVERAGE_FILE": str(KEPT / "coverage"), "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    quiet = ["-q", "-p", "no:cacheprovider", "--no-header", "-n", "2", "--cov-context=test", "--cov-report=", "--cov-append"]
    quiet += [f"--cov={SOURCE}", f"--junitxml={KEPT / f'seconds{time.time():.0f}.xml'}", "-o", "junit_family=xunit1"]
    subprocess.run([sys.executable, "-m", "pytest", *quiet, *files], cwd=ROOT, env=told, check=False)


def new_files() -> list[str]:
    """Files of tests that were never measured, or changed since."""
    measured: dict[str, float] = {}
    for path in sorted(KEPT.glob("seconds*.xml")):
        began = float(path.stem.removeprefix("seconds") or 0)
        measured |= {str(case.get("file")): began for case in ElementTree.parse(path).iter("testcase")}
    files = [path for suite in SUITES for path in (ROOT / suite).rglob("test_*.py")]
    named = {path.relative_to(ROOT).as_posix(): path.stat().st_mtime for path in files}
    return sorted(name for name, changed_at in named.items() if changed_at > measured.get(name, 0.0))


PLANS = """
import json
from attrpriv.methods.table import MECHANISMS
from tests.conformance.test_mechanisms import PROBLEMS, planned
from tests.unit.methods.proofs import every
made = [*every().values(), *(planned(asked, name) for asked in PROBLEMS.values() for name in MECHANISMS)]
json.dump([one.to_json() for one in made if one is not None], open(".mutants/plans.json", "w"))
"""
VERIFIED = """
import coverage, json
measured = coverage.Coverage(data_file=None, source=["src/attrpriv"], config_file=False)
measured.start()
from attrpriv.methods.base.plan import Plan
for told in json.load(open(".mutants/plans.json")):
    Plan.from_json(told).verify()
measured.stop()
found = measured.get_data()
json.dump({file: sorted(found.lines(file)) for file in found.measured_files()}, open(".mutants/verified.json", "w"))
"""


def measure_verified() -> None:
    """Which lines run when a plan is verified; in a process that has planned nothing, and so remembers nothing."""
    KEPT.mkdir(exist_ok=True)
    told = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    for script in (PLANS, VERIFIED):
        subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=told, check=True)


@cache
def verified(module: str) -> frozenset[int]:
    """The first lines of functions of a module that are run when a plan is verified."""
    lines = set(json.loads((KEPT / "verified.json").read_text(encoding="utf-8")).get(str(SOURCE / module), ()))
    tree = ast.parse((SOURCE / module).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return frozenset(
        line
        for node in functions
        if any(inner.lineno in lines for one in node.body for inner in ast.walk(one) if isinstance(inner, ast.stmt | ast.expr))
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    )


@cache
def seconds_of_tests() -> Mapping[str, float]:
    """How long each test took, by its name; without those that failed, which would find anything."""
    found = {}
    for path in sorted(KEPT.glob("seconds*.xml")):
        for case in ElementTree.parse(path).iter("testcase"):
            name = f"{case.get('file')}::{case.get('name')}"
            found[name] = float(case.get("time") or 0.0)
            if case.find("failure") is not None or case.find("error") is not None:
                del found[name]
    return found


@cache
def contexts_of(module: str) -> list[tuple[str, bytes]]:
    with sqlite3.connect(KEPT / "coverage") as found:
        return found.execute(
            "select context.context, line_bits.numbits from line_bits join file on file.id = line_bits.file_id "
            "join context on context.id = line_bits.context_id where file.path like ?",
            (f"%/src/attrpriv/{module}",),
        ).fetchall()


def hit_by(mutant: Mutant) -> set[str]:
    """The tests that run its line, of those that were measured."""
    hit = {name.partition("|")[0] for name, bits in contexts_of(mutant.module) if name and _has(bits, mutant.line)}
    return hit & set(seconds_of_tests())


def files_of(mutants: Sequence[Mutant]) -> list[str]:
    """The files with tests of these mutants."""
    files = {name.partition("::")[0] for mutant in mutants for name in hit_by(mutant)}
    files |= {path.relative_to(ROOT).as_posix() for one in mutants for path in (ROOT / room_of(one)).glob("test_*.py")}
    return sorted(name for name in files if (ROOT / name).exists())


def room_of(mutant: Mutant) -> str:
    return f"tests/unit/{mutant.module.rpartition('/')[0]}/"


def tests_of(mutant: Mutant, items: Mapping[str, pytest.Item]) -> list[str]:
    """The tests that run its line and those of its room, those of its room and quick ones first; of one test a few cases."""
    seconds, hit, room = seconds_of_tests(), hit_by(mutant), room_of(mutant)
    own = f"{room}test_{mutant.module.rpartition('/')[2]}"
    functions: dict[str, list[str]] = {}
    for name in sorted(name for name in items if name in hit or name.startswith(room)):
        functions.setdefault(name.partition("[")[0], []).append(name)
    few = [
        name
        for names in functions.values()
        for name in (names if names[0].startswith(own) else random.Random(1).sample(names, min(len(names), MOST_OF_ONE)))
    ]

    def later(name: str) -> tuple[bool, bool, bool, float, str]:
        slow = items[name].get_closest_marker("slow") is not None
        return (slow, name not in hit, not name.startswith(room), seconds.get(name, 0.1), name)

    return sorted(few, key=later)


def _has(bits: bytes, line: int) -> bool:
    byte, bit = divmod(line, 8)
    return byte < len(bits) and bool(bits[byte] & (1 << bit))
