"""How many small mistakes in the code that guarantees rest on the tests would find: `make mutants`.

    python scripts/mutants.py [--count 200] [--seed 1 | --fresh] [--only guarantee/charges.py] [--named]

A mutant is the source with one expression changed: a comparison, a sign, a factor, a number, `and` for `or`, `max` for `min`, a
term left out. The slack for rounding (`numerics.rounding`) is left alone: its size is argued there, and no test could see it.
Only tests that run the mutant's line are tried, until one fails. Printed are the share that was found, with its 95% interval
(Clopper and Pearson), and the survivors. One that changes nothing anybody could see is listed with its reason in
tests/equivalent_mutants.txt, and does not count.

Which tests run which lines is measured once (coverage.py, a context a test) and kept in .mutants/; `--measure` does it again.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "attrpriv"
KEPT = ROOT / ".mutants"
EQUIVALENT = ROOT / "tests" / "equivalent_mutants.txt"
# What a promise is computed from, and what is drawn.
TESTED = ("guarantee", "calibration", "divergences", "laws", "noise", "mechanisms", "numerics")
SUITES = ("tests/unit", "tests/property", "tests/conformance")
MOST_TESTS, MOST_OF_ONE, SECONDS = 150, 4, 300.0
SMALL = 1e-5
SWAPPED: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {"max": "min", "min": "max", "any": "all", "all": "any", "ceil": "floor", "floor": "ceil"}


@dataclass(frozen=True)
class Mutant:
    """One expression of one module, and what stands there instead."""

    module: str
    line: int
    before: str
    after: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.module}: {self.before} -> {self.after}"


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
        Mutant(module, node.lineno, ast.unparse(node), ast.unparse(other), _with(text, node, ast.unparse(other)))
        for node in _code(tree)
        for other in changed(node)
    ]


def _code(tree: ast.AST) -> Iterator[ast.expr]:
    """Expressions in functions and methods; no messages, no types, no descriptions of fields."""
    for inner in ast.walk(tree):
        if isinstance(inner, ast.FunctionDef):
            for statement in inner.body:
                if not isinstance(statement, ast.Raise | ast.FunctionDef):
                    yield from _expressions(statement)


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.FunctionDef) or _slack(node):
        return
    rounded = isinstance(node, ast.BinOp) and (_slack(node.left) or _slack(node.right))
    if isinstance(node, ast.expr) and not rounded:
        yield node
    for name, value in ast.iter_fields(node):
        inner = value if isinstance(value, list) else [value]
        for one in inner if name not in ("annotation", "returns", "slice") else ():
            if isinstance(one, ast.AST):
                yield from _expressions(one)


def _slack(node: ast.AST) -> bool:
    """Whether an expression is there for rounding alone."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Sub) and isinstance(node.left, ast.Constant) and _slack(node.right)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and 0 < abs(node.value) < SMALL
    return isinstance(node, ast.Name) and (node.id.endswith(("_UP", "_DOWN")) or node.id in ("ULP", "UNIT", "SOME_ULPS"))


def _with(text: str, node: ast.expr, after: str) -> str:
    """The module with these characters replaced; columns count bytes."""
    lines = text.encode().splitlines(keepends=True)
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: (node.end_lineno or node.lineno) - 1])) + (node.end_col_offset or 0)
    whole = text.encode()
    return (whole[:start] + f"({after})".encode() + whole[end:]).decode()


# ------------------------------------------------------------------------------------------------- which tests run a line


def measure() -> None:
    """Run the suites once, with a context for each test."""
    KEPT.mkdir(exist_ok=True)
    told = {**os.environ, "COVERAGE_FILE": str(KEPT / "coverage")}
    source = [f"--cov={SOURCE / part}" for part in TESTED if (SOURCE / part).exists()]
    quiet = ["-q", "-p", "no:cacheprovider", "--no-header", "-n", "2", "--cov-context=test", "--cov-report="]
    subprocess.run([sys.executable, "-m", "pytest", *quiet, *source, *SUITES], cwd=ROOT, env=told, check=False)


def tests_of(mutant: Mutant) -> list[str]:
    """The tests that run the mutant's line, those named after its module first, then the quicker suites."""
    with sqlite3.connect(KEPT / "coverage") as found:
        rows = found.execute(
            "select context.context, line_bits.numbits from line_bits join file on file.id = line_bits.file_id "
            "join context on context.id = line_bits.context_id where file.path like ?",
            (f"%/src/attrpriv/{mutant.module}",),
        ).fetchall()
    hit = {name.partition("|")[0] for name, bits in rows if name and _has(bits, mutant.line)}
    stem = Path(mutant.module).stem
    functions: dict[str, list[str]] = {}
    for name in sorted(hit):
        functions.setdefault(name.partition("[")[0], []).append(name)
    few = [name for names in functions.values() for name in random.Random(1).sample(names, min(len(names), MOST_OF_ONE))]
    return sorted(few, key=lambda name: (stem not in name, "property" in name, name))[:MOST_TESTS]


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
        told = {**os.environ, "PYTHONPATH": str(place), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        quiet = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header", "-m", ""]
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *quiet, *tests],
            cwd=ROOT, env=told, timeout=SECONDS, capture_output=True, check=False,
        )  # fmt: skip
        return "survived" if run.returncode == 0 else "found"
    except subprocess.TimeoutExpired:
        return "found"  # it does not end where the code does
    finally:
        target.write_text(original, encoding="utf-8")


def interval(found: int, of: int) -> tuple[float, float]:
    """Clopper and Pearson's, at 95%."""
    from scipy.stats import beta

    low = float(beta.ppf(0.025, found, of - found + 1)) if found else 0.0
    high = float(beta.ppf(0.975, found + 1, of - found)) if found < of else 1.0
    return low, high


def equivalent() -> dict[str, str]:
    """The mutants that change nothing, each with its reason: `module: before -> after  # why`."""
    lines = EQUIVALENT.read_text(encoding="utf-8").splitlines() if EQUIVALENT.exists() else []
    told = [line.partition("  # ") for line in lines if line and not line.startswith("#")]
    return {name: why for name, _, why in told}


def chosen(count: int, seed: int | None, only: Sequence[str]) -> list[Mutant]:
    paths = [path for part in TESTED for path in sorted((SOURCE / part).rglob("*.py"))]
    wanted = [path for path in paths if not only or path.relative_to(SOURCE).as_posix() in only]
    every = [mutant for path in wanted for mutant in mutants_of(path)]
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
    ask.add_argument("--only", nargs="*", default=(), help="modules below src/attrpriv")
    ask.add_argument("--jobs", type=int, default=2)
    ask.add_argument("--measure", action="store_true", help="measure again which tests run which lines")
    told = ask.parse_args()
    if told.measure or not (KEPT / "coverage").exists():
        measure()
    mutants = chosen(told.count, None if told.fresh else told.seed, told.only)
    for worker in range(told.jobs):
        shutil.rmtree(KEPT / f"worker{worker}", ignore_errors=True)
        shutil.copytree(ROOT / "src", KEPT / f"worker{worker}", ignore=shutil.ignore_patterns("__pycache__"))
    start = time.monotonic()
    with ThreadPoolExecutor(told.jobs) as pool:
        parts = [pool.submit(_several, mutants[k :: told.jobs], k) for k in range(told.jobs)]
        outcomes = [one for part in parts for one in part.result()]
    return report(outcomes, time.monotonic() - start)


def _several(mutants: Sequence[Mutant], worker: int) -> list[tuple[Mutant, str]]:
    return [(mutant, tried(mutant, worker)) for mutant in mutants]


def report(outcomes: Sequence[tuple[Mutant, str]], seconds: float) -> int:
    """Exit code 1 where fewer than 95% of those that change something are found."""
    known = equivalent()
    counted = [(mutant, outcome) for mutant, outcome in outcomes if mutant.name not in known or outcome == "found"]
    missed = [(mutant, outcome) for mutant, outcome in counted if outcome != "found"]
    found = len(counted) - len(missed)
    low, high = interval(found, len(counted))
    print(f"{found} of {len(counted)} mutants found: {found / len(counted):.1%} ({low:.1%} to {high:.1%}), {seconds:.0f} s")
    print(f"{len(outcomes) - len(counted)} more change nothing (tests/equivalent_mutants.txt)")
    for mutant, outcome in missed:
        print(f"  {outcome}: src/attrpriv/{mutant.module}:{mutant.line}: {mutant.before} -> {mutant.after}")
    return 0 if found >= 0.95 * len(counted) else 1


if __name__ == "__main__":
    sys.exit(main())
