"""How many small mistakes in the code that guarantees rest on the tests would find: `make mutants`.

    python scripts/mutants.py [--count 200] [--seed 1 | --fresh] [--only methods/base noise/exact.py ...] [--named]

A mutant is the source with one expression changed: a comparison, a sign, a factor, a number, `and` for `or`, `max` for `min`, a
term left out. The slack for rounding (`numerics.rounding`) is left alone: its size is argued there, and no test could see it.
So is what no promise rests on: words, expected errors, searches whose finds are proved again (`LEFT_OUT`, `SEARCHES`), unless
`--all` is given. Printed are the share that was found, with its 95% interval (Clopper and Pearson), and the
survivors. One that changes nothing anybody could see is listed with its reason in tests/equivalent_mutants, and does not
count.

`--named` tries the mistakes of `NAMED` instead, every one of which must be found, and every `or` for `and` in a proof.

Tried are the tests that run the mutant's line, and those of its room, quick ones first, until one fails. Which tests run which
lines is measured once (coverage.py, a context a test) and kept in .mutants/, for changed files of tests again; `--measure` does
it all again, as a changed source asks for.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "attrpriv"
KEPT = ROOT / ".mutants"
EQUIVALENT = ROOT / "tests" / "equivalent_mutants"
# What a promise is computed from, and what is drawn.
TESTED = ("numerics", "noise", "cases", "methods")
# No promise rests on these: they compare plans, each of which has its own proof, or are said, shown and expected.
LEFT_OUT = {
    "methods/choice/accuracy_first.py": "asks for plans, each with its own proof",
    "methods/choice/best_guess.py": "is made of a released answer",
    "methods/choice/ranking.py": "compares plans, each with its own proof",
    "methods/choice/warnings.py": "words about plans",
    "methods/base/accuracy.py": "errors to expect",
    "methods/markov_quilt/picture.py": "a picture",
    "methods/yardsticks": "what others are measured by; their noise is proved by methods/base/evidence.py",
    "numerics/laws/shifted_laplace.py": "errors to expect",
    "numerics/calibration/kernel_accuracy.py": "errors to expect",
}
# Mostly searches: what they find is proved again before it is used, by functions that are run when a plan is verified. Only
# those count, which is measured with the plans of the conformance suite.
SEARCHES = (
    "numerics/calibration",
    "numerics/search.py",
    "methods/count_transport/hybrid.py",
    "methods/count_transport/lattice.py",
    "methods/count_transport/reference.py",
    "methods/group_transport/clamp.py",
    "methods/group_transport/correction.py",
    "methods/group_transport/vector_clamp.py",
    "methods/base/equalising.py",
    "methods/markov_quilt/score.py",
    "methods/markov_quilt/sets.py",
    "methods/optimal/near_coupling.py",
    "methods/optimal/population_coupling.py",
    "methods/transport/ways.py",
)
# Functions that make words, or bounds on rounding.
WORDS = ("describe", "__str__", "__repr__", "slack", "_slack", "up", "_up", "upward", "downward")
SUITES = (
    *(f"tests/unit/{part}" for part in TESTED),
    *("tests/unit/accounting", "tests/unit/assumptions", "tests/unit/session", "tests/property", "tests/conformance"),
)
MOST_OF_ONE, MOST_SECONDS, SECONDS, PATIENCE = 8, 30.0, 180, 10
SMALL = 1e-5
# Names, in either case, of what rounding may have taken away.
ROUNDED = ("ULP", "ULPS", "UNIT", "SOME_ULPS", "ROUNDING", "SLACK", "FUZZ")
SWAPPED: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {"max": "min", "min": "max", "any": "all", "all": "any", "ceil": "floor", "floor": "ceil"}

# Mistakes that were once not found, and their kin: the module, what stands there, and what is put instead.
NAMED: tuple[tuple[str, str, str], ...] = (
    ("methods/parameter_counts/proof.py", "(moved + self.ignored)", "(moved - self.ignored)"),
    ("methods/count_noise/proof.py", "(moved + self.ignored)", "(moved - self.ignored)"),
    ("methods/base/gaussian_proof.py", "[cell for cell in cells if _within(cell, box)]", "list(cells)"),
    ("methods/base/gaussian_proof.py", "box.means[0] <= cell.means[0]", "True"),
    ("methods/base/gaussian_proof.py", "and cell.means[1] <= box.means[1]", ""),
    ("methods/base/gaussian_proof.py", "and box.sds[0] <= cell.sds[0]", ""),
    ("methods/base/gaussian_proof.py", "and cell.sds[1] <= box.sds[1]", ""),
    ("numerics/laws/groups.py", "one * Fraction(s) ** 2", "one * Fraction(s) ** 3"),
    ("numerics/laws/groups.py", "other * Fraction(t) ** 2", "other * Fraction(t) ** 3"),
    ("methods/groups/proof.py", "self.form) + check.tail", "self.form)"),
    ("methods/groups/proof.py", "worst + self.check.tail", "worst"),
    ("methods/group_transport/proof.py", "self.charged(close + self.check.tail, epsilon)", "self.charged(close, epsilon)"),
    ("methods/group_transport/proof.py", "close(inner) + self.check.tail", "close(inner)"),
    ("methods/base/evidence.py", "2 * self.lam", "self.lam"),
    ("methods/base/evidence.py", "(1 + math.exp(epsilon))", "math.exp(epsilon)"),
    ("methods/base/evidence.py", "math.exp(self.lam) * worst", "worst"),
    ("methods/base/evidence.py", " + self.shape_lambda", ""),
    ("methods/base/evidence.py", " + self.lattice_lambda", ""),
    ("methods/base/evidence.py", "self.grid_lambda + ", ""),
    ("methods/base/evidence.py", " + self.shape_eta", ""),
    ("methods/base/evidence.py", "self.grid_eta + ", ""),
    ("methods/base/evidence.py", " + self.clip_delta", ""),
    ("methods/base/evidence.py", " + self.fit_delta", ""),
    ("methods/base/evidence.py", " + self.reserve", ""),
    ("methods/base/certificate.py", ".delta(stored.epsilon) + stored.fit_delta", ".delta(stored.epsilon)"),
    ("methods/calibrated_weights/proof.py", "2 * self.lam", "self.lam"),
    ("methods/calibrated_weights/proof.py", "(1 + math.exp(least))", "math.exp(least)"),
    ("methods/calibrated_weights/proof.py", " + inexact)", ")"),
    ("methods/quantile_clip/proof.py", "self.above + 2 * self.lam", "self.above + self.lam"),
    ("methods/quantile_clip/proof.py", " + grid.draw_charge", ""),
    ("methods/quantile_clip/proof.py", " + rounding_charge(grid.depth, self.kurtosis)", ""),
    ("methods/quantile_clip/proof.py", "self.lattice + ", ""),
    ("methods/base/plan.py", 'self.bound != binding_of(self.model_dump(mode="json", warnings=False))', "False"),
    ("accounting/standing.py", 'if kind == "view":', "if False:"),
    ("accounting/standing.py", "return require_view(name, entry.kind, history)", "return None"),
    ("noise/exact.py", "/ exact) + noise) * exact", "/ exact) + noise) * exact + exact * 3 / 2"),
    ("noise/exact.py", "(round(Fraction(value) / exact) + noise)", "(round(Fraction(value) / exact + Fraction(3, 2)) + noise)"),
    ("noise/exact.py", "- Fraction(1, 2)\n", "+ 1\n"),
    ("methods/count_transport/target.py", "(y + self.excess) / x", "y / x"),
    ("methods/optimal/proof.py", "min(corner, loss + moved(", "min(corner, loss + 0 * moved("),
    ("numerics/laws/recorded_slopes.py", "turns ** (_ORDER + 1)", "turns ** (_ORDER + 2)"),
    ("methods/base/parts.py", " or part.centre is not None or evidence.common_noise()", " or evidence.common_noise()"),
    ("methods/group_transport/plan.py", "max(ways, key=lambda way: evidence", "min(ways, key=lambda way: evidence"),
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One expression of one module, and what stands there instead."""

    module: str
    function: str
    line: int
    before: str
    after: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.module}: {self.function}: {' '.join(self.before.split())} -> {' '.join(self.after.split())}"

    @property
    def whole(self) -> str:
        return f"{self.module}: {self.function}: *"


# ------------------------------------------------------------------------------------------------------------ the mutants


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of an expression."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPPED:
        yield ast.Compare(node.left, [SWAPPED[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(SWAPPED[type(node.op)](), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.BinOp):
        yield from _operators(node)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        yield ast.Constant(node.value + 1 if isinstance(node.value, int) else node.value * 1.5 or 0.5)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
        yield from _calls(node)


def _operators(node: ast.BinOp) -> Iterator[ast.AST]:
    if type(node.op) in SWAPPED:
        yield ast.BinOp(node.left, SWAPPED[type(node.op)](), node.right)
        yield node.left  # a term or a factor left out
        if isinstance(node.op, ast.Add | ast.Mult):
            yield node.right
    elif isinstance(node.op, ast.Pow):
        yield ast.BinOp(node.left, node.op, ast.BinOp(node.right, ast.Add(), ast.Constant(1)))


def _calls(node: ast.Call) -> Iterator[ast.AST]:
    called = copy.deepcopy(node)
    if isinstance(called.func, ast.Name) and called.func.id in NAMES:
        called.func.id = NAMES[called.func.id]
        yield called
    elif isinstance(called.func, ast.Attribute) and called.func.attr in NAMES:
        called.func.attr = NAMES[called.func.attr]
        yield called


def mutants_of(path: Path) -> list[Mutant]:
    """All of one module."""
    text = path.read_text(encoding="utf-8")
    tree, module = ast.parse(text), path.relative_to(SOURCE).as_posix()
    return [
        Mutant(module, function, node.lineno, ast.unparse(node), ast.unparse(other), _with(text, node, ast.unparse(other)))
        for function, node in _code(tree)
        for other in changed(node)
    ]


def _code(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Expressions in functions and methods; no messages, no types, no descriptions of fields."""
    for inner in ast.walk(tree):
        if isinstance(inner, ast.FunctionDef) and inner.name not in WORDS:
            for statement in inner.body:
                if not isinstance(statement, ast.Raise | ast.FunctionDef):
                    yield from ((inner.name, found) for found in _expressions(statement))


def named() -> list[Mutant]:
    """Those of `NAMED`, each of which must stand in the code once, and every `and` of a proof for its `or`."""
    found = []
    for module, before, after in NAMED:
        text = (SOURCE / module).read_text(encoding="utf-8")
        if text.count(before) != 1:
            raise SystemExit(f"{module}: {before!r} must stand there once. Got {text.count(before)} times; see NAMED.")
        line = text[: text.index(before)].count("\n") + 1
        found.append(Mutant(module, "named", line, before, after, text.replace(before, after)))
    for path in sorted((SOURCE / "methods").rglob("*proof.py")):
        found += [one for one in mutants_of(path) if isinstance(ast.parse(one.before, mode="eval").body, ast.BoolOp)]
    return found


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.FunctionDef) or _slack(node) or _named_rounding(node):
        return
    rounded = isinstance(node, ast.BinOp) and (_slack(node.left) or _slack(node.right))
    if isinstance(node, ast.expr) and not rounded:
        yield node
    for name, value in ast.iter_fields(node):
        inner = value if isinstance(value, list) else [value]
        for one in inner if name not in ("annotation", "returns", "slice") else ():
            if isinstance(one, ast.AST):
                yield from _expressions(one)


def _named_rounding(node: ast.AST) -> bool:
    """Whether what is computed here is called a bound on rounding."""
    if isinstance(node, ast.keyword):
        return (node.arg or "").upper() in ROUNDED
    return isinstance(node, ast.Assign) and all(isinstance(one, ast.Name) and _tiny(one) for one in node.targets)


def _slack(node: ast.AST) -> bool:
    """Whether an expression is there for rounding alone: a share such as COMPUTED_UP, 1 + 4 * ULP, or some units."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return isinstance(node.left, ast.Constant) and _slack(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        return _tiny(node)
    return _tiny(node) or (isinstance(node, ast.Name) and node.id.endswith(("_UP", "_DOWN")))


def _tiny(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _tiny(node.left) or _tiny(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return _tiny(node.left)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):  # 2.0**-53
        return isinstance(node.left, ast.Constant) and isinstance(node.right, ast.UnaryOp | ast.BinOp)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and 0 < abs(node.value) < SMALL
    return isinstance(node, ast.Name) and (node.id.lstrip("_").upper() in ROUNDED or node.id == "_SHARE")


def _with(text: str, node: ast.expr, after: str) -> str:
    """The module with these characters replaced; columns count bytes."""
    lines = text.encode().splitlines(keepends=True)
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: (node.end_lineno or node.lineno) - 1])) + (node.end_col_offset or 0)
    whole = text.encode()
    return (whole[:start] + f"({after})".encode() + whole[end:]).decode()


# ------------------------------------------------------------------------------------------------- which tests run a line


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


def counts(mutant: Mutant) -> bool:
    """Whether a promise rests on the mutant's function."""
    return not mutant.module.startswith(SEARCHES) or mutant.line in verified(mutant.module)


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


def tests_of(mutant: Mutant) -> list[str]:
    """The tests of the mutant's room and those that run its line, as many as take a while; of one test a few cases."""
    seconds = seconds_of_tests()
    hit = {name.partition("|")[0] for name, bits in contexts_of(mutant.module) if name and _has(bits, mutant.line)}
    hit &= set(seconds)
    room = (Path("tests/unit") / mutant.module).parent.as_posix() + "/"
    own = f"{room}test_{Path(mutant.module).stem}.py"
    near = {name for name in seconds if name.startswith(room)}
    functions: dict[str, list[str]] = {}
    for name in sorted(hit | near):
        functions.setdefault(name.partition("[")[0], []).append(name)
    few = [
        name
        for names in functions.values()
        for name in (names if names[0].startswith(own) else random.Random(1).sample(names, min(len(names), MOST_OF_ONE)))
    ]
    ranked = sorted(few, key=lambda name: (not name.startswith(own), name not in hit, seconds.get(name, 0.0), name))
    taken: list[str] = []
    total = 0.0
    for name in ranked:
        total += seconds.get(name, 0.0)
        if taken and total > MOST_SECONDS:
            break
        taken.append(name)
    return taken


def _has(bits: bytes, line: int) -> bool:
    byte, bit = divmod(line, 8)
    return byte < len(bits) and bool(bits[byte] & (1 << bit))


# ------------------------------------------------------------------------------------------------------------ trying them


def tried(mutant: Mutant, worker: int) -> str:
    """found, survived or not covered; in a copy of the source that only this worker uses."""
    tests = tests_of(mutant)
    if not tests:
        return "not covered"
    place = KEPT / f"worker{worker}"
    target = place / "attrpriv" / mutant.module
    original = target.read_text(encoding="utf-8")
    target.write_text(mutant.text, encoding="utf-8")
    try:
        # First those of which one is likely to fail: every file that is opened takes its time.
        first = [name for name in tests if name.partition("::")[0] == tests[0].partition("::")[0]]
        rest = [name for name in tests if name not in set(first)]
        return "found" if any(_fails(part, place) for part in (first, rest) if part) else "survived"
    finally:
        target.write_text(original, encoding="utf-8")


def _fails(tests: Sequence[str], place: Path) -> bool:
    """Whether one of these tests fails, in a process of its own: a copy of this one, which has the libraries loaded."""
    child = os.fork()
    if child == 0:
        os.setsid()
        # Of its own time: on a busy machine tests that would pass take long, which is no find.
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        os.environ |= {"PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(place))
        os.chdir(ROOT)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        import pytest

        code = 1
        try:
            quiet = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", "--no-header", "-m", ""]
            code = int(pytest.main([*quiet, *tests]))
        finally:
            os._exit(code)
    end = time.monotonic() + PATIENCE * SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status != 0
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)  # it does not end where the code does
    os.waitpid(child, 0)
    return True


def _work(mutants: Sequence[Mutant], worker: int) -> int:
    """Try these in a process of its own, and write a line for each."""
    child = os.fork()
    if child:
        return child
    import mpmath  # noqa: F401
    import numpy  # noqa: F401
    import pydantic  # noqa: F401
    import pytest  # noqa: F401
    import scipy.linalg
    import scipy.optimize
    import scipy.stats  # noqa: F401

    with (KEPT / f"outcomes{worker}").open("w", encoding="utf-8") as lines:
        if mutants and _fails(tests_of(mutants[0])[:20], KEPT / f"worker{worker}"):
            print("The tests must pass where nothing was planted.", file=sys.stderr)
            os._exit(1)
        for k, mutant in enumerate(mutants):
            began = time.monotonic()
            outcome = tried(mutant, worker)
            print(f"{k}\t{outcome}\t{time.monotonic() - began:.1f}\t{mutant.name}", file=lines, flush=True)
    os._exit(0)


def interval(found: int, of: int) -> tuple[float, float]:
    """Clopper and Pearson's, at 95%."""
    from scipy.stats import beta

    low = float(beta.ppf(0.025, found, of - found + 1)) if found else 0.0
    high = float(beta.ppf(0.975, found + 1, of - found)) if found < of else 1.0
    return low, high


def equivalent() -> dict[str, str]:
    """The mutants that change nothing, each with its reason: `module: function: before -> after  # why`.

    `module: function: *` stands for all of a function, which is not sampled.
    """
    lines = [line for path in sorted(EQUIVALENT.glob("*.txt")) for line in path.read_text(encoding="utf-8").splitlines()]
    told = [line.partition("  # ") for line in lines if line and not line.startswith("#")]
    return {name: why for name, _, why in told}


def chosen(count: int, seed: int, only: Sequence[str], *, everything: bool = False) -> list[Mutant]:
    paths = [path for part in TESTED for path in sorted((SOURCE / part).rglob("*.py"))]
    places = [(path, path.relative_to(SOURCE).as_posix()) for path in paths]
    left_out = () if everything else tuple(LEFT_OUT)
    wanted = [path for path, name in places if not name.startswith(left_out) and (not only or name.startswith(tuple(only)))]
    known = equivalent()
    every = [
        mutant for path in wanted for mutant in mutants_of(path) if everything or (counts(mutant) and mutant.whole not in known)
    ]
    picked = random.Random(seed).sample(every, min(count, len(every)))
    return [mutant for mutant in picked if _compiles(mutant.text)]


def _compiles(text: str) -> bool:
    try:
        compile(text, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def main() -> int:
    ask = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    ask.add_argument("--count", type=int, default=200)
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--fresh", action="store_true", help="another sample each time")
    ask.add_argument("--only", nargs="*", default=(), help="modules or folders below src/attrpriv")
    ask.add_argument("--all", action="store_true", help="searches, expected errors and words too, on which no promise rests")
    ask.add_argument("--named", action="store_true", help="the named ones, and every guard of a proof")
    ask.add_argument("--jobs", type=int, default=2)
    ask.add_argument("--measure", action="store_true", help="measure again which tests run which lines")
    told = ask.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    if told.measure or not list(KEPT.glob("seconds*.xml")):
        shutil.rmtree(KEPT, ignore_errors=True)
        measure()
    elif new_files():
        measure(new_files())
    if told.measure or not (KEPT / "verified.json").exists():
        measure_verified()
    seed = random.randrange(2**32) if told.fresh else told.seed
    mutants = named() if told.named else chosen(told.count, seed, told.only, everything=told.all)
    for worker in range(told.jobs):
        shutil.rmtree(KEPT / f"worker{worker}", ignore_errors=True)
        shutil.copytree(ROOT / "src", KEPT / f"worker{worker}", ignore=shutil.ignore_patterns("__pycache__"))
    start = time.monotonic()
    parts = [mutants[k :: told.jobs] for k in range(told.jobs)]
    if any(os.waitpid(child, 0)[1] for child in [_work(part, k) for k, part in enumerate(parts)]):
        return 1
    outcomes = [
        (parts[worker][int(line.split("\t")[0])], line.split("\t")[1])
        for worker in range(told.jobs)
        for line in (KEPT / f"outcomes{worker}").read_text(encoding="utf-8").splitlines()
    ]
    print("named" if told.named else f"seed {seed}")
    return report(outcomes, time.monotonic() - start, all_of_them=told.named)


def report(outcomes: Sequence[tuple[Mutant, str]], seconds: float, *, all_of_them: bool) -> int:
    """Exit code 1 where fewer than 95% of those that change something are found; of the named ones, all must be."""
    known = equivalent()
    counted = [(mutant, outcome) for mutant, outcome in outcomes if mutant.name not in known or outcome == "found"]
    missed = [(mutant, outcome) for mutant, outcome in counted if outcome != "found"]
    found = len(counted) - len(missed)
    low, high = interval(found, len(counted))
    print(f"{found} of {len(counted)} mutants found: {found / len(counted):.1%} ({low:.1%} to {high:.1%}), {seconds:.0f} s")
    print(f"{len(outcomes) - len(counted)} more change nothing (tests/equivalent_mutants)")
    for mutant, outcome in missed:
        print(f"  {outcome}: line {mutant.line} of {mutant.name}")
    return 0 if found >= (1.0 if all_of_them else 0.95) * len(counted) else 1


if __name__ == "__main__":
    sys.exit(main())
