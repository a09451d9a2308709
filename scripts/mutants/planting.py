"""Small mistakes: a module with one expression changed."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "attrpriv"
# What a promise is computed from, and what is drawn.
TESTED = ("numerics", "noise", "cases", "methods")
# Functions that make words, or bounds on rounding.
WORDS = ("describe", "__str__", "__repr__", "slack", "_slack", "up", "_up", "upward", "downward")
SMALL = 1e-5
# Names, in either case, of what rounding may have taken away.
ROUNDED = ("ULP", "ULPS", "UNIT", "SOME_ULPS", "ROUNDING", "SLACK", "FUZZ")
SWAPPED: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {"max": "min", "min": "max", "any": "all", "all": "any", "ceil": "floor", "floor": "ceil"}


@dataclass(frozen=True)
class Mutant:
    """One expression of one module, and what stands there instead."""

    module: str
    function: str
    line: int
    before: str
    after: str
    text: str
    place: str = ""
    """Which of several in its function that read the same: (2 of 3)."""

    @property
    def name(self) -> str:
        """What it is, wherever in its function."""
        return f"{self.module}: {self.function}: {' '.join(self.before.split())} -> {' '.join(self.after.split())}"

    @property
    def exact(self) -> str:
        return f"{self.name} {self.place}".strip()

    @property
    def whole(self) -> str:
        return f"{self.module}: {self.function}: *"


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
    made = [
        Mutant(module, function, node.lineno, ast.unparse(node), ast.unparse(other), _with(text, node, ast.unparse(other)))
        for function, node in sorted(_code(tree), key=lambda found: (found[1].lineno, found[1].col_offset))
        for other in changed(node)
    ]
    places: dict[str, int] = {}
    counted = []
    for one in made:
        places[one.name] = places.get(one.name, 0) + 1
        counted.append(places[one.name])
    return [
        replace(one, place=f"({k} of {places[one.name]})") if places[one.name] > 1 else one
        for one, k in zip(made, counted, strict=True)
    ]


def _code(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Expressions in functions and methods; no messages, no types, no descriptions of fields."""
    for inner in ast.walk(tree):
        if isinstance(inner, ast.FunctionDef) and inner.name not in WORDS:
            for statement in inner.body:
                if not isinstance(statement, ast.Raise | ast.FunctionDef):
                    yield from ((inner.name, found) for found in _expressions(statement))


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
