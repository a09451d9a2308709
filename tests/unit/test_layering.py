"""Imports inside attrpriv go one way.

A *unit* is a module or package directly under src/attrpriv, or under src/attrpriv/methods. `MAY_IMPORT` says which other units
each may import; a method that it does not name may import what `A_METHOD` says, and no other method. Every import statement
counts, also one inside a function; only `if TYPE_CHECKING:` blocks do not. `importlib.import_module`
with a literal name counts too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "attrpriv"

LOWEST = {"errors", "frozen", "numerics", "problem", "queries"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": {"formatting"},
    "formatting": set(),
    "lazy": set(),
    "frozen": {"errors"},
    "notebook": {"errors", "formatting"},
    "pictures": {"errors", "formatting"},
    "queries": {"errors"},
    "noise": {"errors"},
    "numerics": {"errors", "frozen", "lazy"},
    "engines": {"errors", "frozen", "numerics", "queries", "problem"},
    "problem": {"errors", "frozen", "notebook", "numerics", "queries"},
    "assumptions": LOWEST,
    "methods": set(),
    "methods.table": {"errors", "problem"},
    "methods.base": {*LOWEST, "formatting", "noise", "notebook", "pictures", "methods.table"},
    "cases": {*LOWEST, "assumptions", "methods.base"},
    "methods.dispatch": {"problem", "queries", "methods.table", "methods.base"},
    "methods.laplace_sequence": {*LOWEST, "assumptions", "cases", "methods.base"},
    "methods.choice": {
        *LOWEST,
        "assumptions",
        "cases",
        "notebook",
        "pictures",
        "methods.base",
        "methods.dispatch",
        "methods.table",
    },
    "policy": {*LOWEST, "assumptions", "notebook"},
    "accounting": {*LOWEST, "policy", "methods.base"},
}
# Every other folder of methods/ is a method: it knows no other one, and asks for its plan by name (`methods.dispatch`).
# `laplace_sequence` is none by itself: Laplace noise in a sequence is drawn by several.
A_METHOD = {*LOWEST, "noise", "assumptions", "cases", "methods.base", "methods.dispatch", "methods.laplace_sequence"}
# What stands in two places and is one: transport and its form without a delta.
ONE = {"quantile_clip": "transport"}
ANYTHING_BUT_CLI = {"audit", "demo", "extend", "report", "session"}
ANYTHING = {"__init__", "__main__", "cli", "studio"}


@dataclass(frozen=True)
class Import:
    """Module `importer` (a file) uses unit `target` in line `line`."""

    importer: str
    unit: str
    target: str
    line: int


def unit_of(parts: tuple[str, ...]) -> str:
    """The unit of a dotted name below the package; the package itself is `__init__`."""
    if parts[:1] == ("methods",) and len(parts) > 1 and parts[1] != "__init__":
        return f"methods.{ONE.get(parts[1], parts[1])}"
    return parts[0] if parts else "__init__"


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below, without the bodies of `if TYPE_CHECKING:`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            for alternative in child.orelse:
                yield alternative
                yield from statements(alternative)
        else:
            yield child
            yield from statements(child)


def imported_names(node: ast.AST, package: tuple[str, ...], units: set[str]) -> Iterator[tuple[str, ...]]:
    """The dotted names, as tuples, that one node imports. `package` is the package that relative imports start from."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield tuple(alias.name.split("."))
    elif isinstance(node, ast.ImportFrom):
        start = package[: len(package) - node.level + 1] if node.level else ()
        module = start + tuple(node.module.split(".") if node.module else ())
        for alias in node.names:
            is_unit = module in ((PACKAGE,), (PACKAGE, "methods")) and unit_of((*module[1:], alias.name)) in units
            yield (*module, alias.name) if is_unit else module
    elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in {"import_module", "__import__"}:
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            name = first.value.lstrip(".")
            level = len(first.value) - len(name)
            start = package[: len(package) - level + 1] if level else ()
            yield start + tuple(name.split("."))


def imports(source: Path) -> Iterator[Import]:
    """Every import of one unit by another, or by itself, under `source`."""
    files = sorted(source.rglob("*.py"))
    units = {unit_of(file.relative_to(source).with_suffix("").parts) for file in files}
    for file in files:
        relative = file.relative_to(source)
        package = (PACKAGE, *relative.parent.parts)
        for node in statements(ast.parse(file.read_text(encoding="utf-8"), filename=str(relative))):
            for name in imported_names(node, package, units):
                if name[0] == PACKAGE:
                    line = getattr(node, "lineno", 0)
                    yield Import(relative.as_posix(), unit_of(relative.with_suffix("").parts), unit_of(name[1:]), line)


def allowed(found: Import) -> bool:
    if found.unit == found.target or found.unit in ANYTHING:
        return True
    if found.unit in ANYTHING_BUT_CLI:
        return found.target != "cli"
    return found.target in MAY_IMPORT.get(found.unit, A_METHOD if is_method(found.unit) else set())


def is_method(unit: str) -> bool:
    return unit.startswith("methods.") and unit not in MAY_IMPORT


def violations(source: Path) -> list[str]:
    """One sentence for each import that goes the wrong way and for each unit that the table does not know."""
    known = MAY_IMPORT.keys() | ANYTHING | ANYTHING_BUT_CLI
    units = {unit_of(file.relative_to(source).with_suffix("").parts) for file in source.rglob("*.py")}
    known |= {unit for unit in units if is_method(unit) and (source / unit.replace(".", "/")).is_dir()}
    unknown = [f"{unit} is not in the table of test_layering.py" for unit in sorted(units - known)]
    wrong = [f"{i.importer}:{i.line}: {i.unit} must not import {i.target}" for i in imports(source) if not allowed(i)]
    return unknown + wrong


def evidence_tests(source: Path) -> list[str]:
    """One sentence for each `isinstance` that asks for a kind of evidence outside of the unit that defines it."""
    trees = {file.relative_to(source): ast.parse(file.read_text(encoding="utf-8")) for file in sorted(source.rglob("*.py"))}
    homes = {
        node.name: unit_of(file.with_suffix("").parts)
        for file, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name.endswith("Evidence")
    }
    found = []
    for file, tree in trees.items():
        unit = unit_of(file.with_suffix("").parts)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                kinds = [one for one in ast.walk(node.args[1]) if isinstance(one, ast.Name | ast.Attribute)]
                names = [one.id if isinstance(one, ast.Name) else one.attr for one in kinds]
                others = [name for name in names if homes.get(name, unit) != unit]
                found += [f"{file.as_posix()}:{node.lineno}: {name} is of {homes[name]}" for name in others]
    return found


def test_imports_go_one_way() -> None:
    assert violations(ROOT / "src" / PACKAGE) == []


def test_the_table_itself_has_no_cycle() -> None:
    table = {**MAY_IMPORT, "a method": A_METHOD}
    assert set(TopologicalSorter(table).static_order()) == set(table)


def test_evidence_is_told_apart_by_its_own_unit_alone() -> None:
    """Everybody else asks it (`methods.base.evidence`), so that a kind from outside is treated like ours."""
    assert evidence_tests(ROOT / "src" / PACKAGE) == []


@pytest.mark.parametrize(
    ("unit", "line", "caught"),
    [
        ("methods/choice", "isinstance(x, GaussianEvidence)", True),
        ("methods/choice", "isinstance(x, int | GaussianEvidence)", True),
        ("methods/choice", "isinstance(x, (proof.GaussianEvidence, int))", True),
        ("methods/gaussian", "isinstance(x, GaussianEvidence)", False),
        ("methods/choice", "isinstance(x, int)", False),
    ],
)
def test_a_question_for_a_kind_of_evidence_is_caught(tmp_path: Path, unit: str, line: str, caught: bool) -> None:
    plant_methods(tmp_path, unit, line)
    (tmp_path / "methods" / "gaussian" / "proof.py").write_text("class GaussianEvidence: ...\n", encoding="utf-8")
    found = evidence_tests(tmp_path)
    assert found == ([f"{unit}/here.py:1: GaussianEvidence is of methods.gaussian"] if caught else [])


@pytest.mark.parametrize(
    "line",
    [
        "import attrpriv.session.session",
        "import attrpriv.methods.gaussian.plan as g",
        "from attrpriv.methods import gaussian",
        "from attrpriv import methods",
        "from attrpriv import Policy",
        "from .. import methods",
        "from ..methods.gaussian import plan",
        "def late():\n    from attrpriv.methods import gaussian",
        "class Late:\n    import attrpriv.cli",
        "import importlib\nimportlib.import_module('attrpriv.methods')",
        "if TYPE_CHECKING:\n    pass\nelse:\n    import attrpriv.methods",
        "try:\n    import attrpriv.methods\nexcept ImportError:\n    pass",
    ],
)
def test_a_forbidden_import_is_caught(tmp_path: Path, line: str) -> None:
    plant(tmp_path, line)
    (found,) = violations(tmp_path)
    assert found.startswith("numerics/gaussian.py:")
    assert "numerics must not import" in found


@pytest.mark.parametrize(
    "line",
    [
        "import numpy, attrpriv.errors",
        "from attrpriv import errors",
        "from . import lattice",
        "from .lattice import Lattice",
        "from ..errors import UsageError",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from attrpriv.methods import gaussian",
        "import typing\nif typing.TYPE_CHECKING:\n    import attrpriv.methods",
        "from mechanisms import gaussian",
    ],
)
def test_an_allowed_import_passes(tmp_path: Path, line: str) -> None:
    plant(tmp_path, line)
    assert violations(tmp_path) == []


def test_session_may_not_import_cli_and_cli_may_import_session(tmp_path: Path) -> None:
    plant(tmp_path, "")
    (tmp_path / "session.py").write_text("import attrpriv.cli\n", encoding="utf-8")
    (tmp_path / "cli.py").write_text("import attrpriv.session.session\n", encoding="utf-8")
    assert violations(tmp_path) == ["session.py:1: session must not import cli"]


def test_an_unknown_unit_is_named(tmp_path: Path) -> None:
    (tmp_path / "surprise.py").write_text("", encoding="utf-8")
    assert violations(tmp_path) == ["surprise is not in the table of test_layering.py"]


def test_a_module_beside_the_methods_is_named(tmp_path: Path) -> None:
    plant(tmp_path, "")
    (tmp_path / "methods" / "surprise.py").write_text("", encoding="utf-8")
    assert violations(tmp_path) == ["methods.surprise is not in the table of test_layering.py"]


@pytest.mark.parametrize(
    ("unit", "line", "target"),
    [
        ("methods/transport", "from attrpriv.methods.gaussian.plan import plan", "methods.gaussian"),
        ("methods/transport", "from attrpriv.methods import gaussian", "methods.gaussian"),
        ("methods/transport", "from .. import gaussian", "methods.gaussian"),
        ("methods/transport", "from ..gaussian import plan", "methods.gaussian"),
        ("methods/transport", "def late():\n    import attrpriv.methods.choice", "methods.choice"),
        ("methods/laplace_sequence", "import attrpriv.methods.gaussian", "methods.gaussian"),
        ("methods/choice", "from attrpriv.methods.gaussian import plan", "methods.gaussian"),
        ("methods/base", "from attrpriv.cases import shift", "cases"),
        ("methods/base", "from attrpriv.assumptions.gaussian import Gaussian", "assumptions"),
        ("methods/base", "import attrpriv.methods.gaussian", "methods.gaussian"),
        ("cases", "from attrpriv.methods.gaussian.plan import plan", "methods.gaussian"),
        ("cases", "from attrpriv.methods.choice import choose", "methods.choice"),
    ],
)
def test_a_method_knows_no_other_one(tmp_path: Path, unit: str, line: str, target: str) -> None:
    plant_methods(tmp_path, unit, line)
    (found,) = violations(tmp_path)
    assert found.startswith(f"{unit}/here.py:")
    assert found.endswith(f"{unit.replace('/', '.')} must not import {target}")


@pytest.mark.parametrize(
    ("unit", "line"),
    [
        ("methods/transport", "from attrpriv.methods import base"),
        ("methods/transport", "from attrpriv.methods.transport import proof"),
        ("methods/transport", "from attrpriv.methods.quantile_clip import plan"),
        ("methods/transport", "from attrpriv.cases.shift import seen"),
        ("methods/gaussian", "from ..laplace_sequence import proof"),
        ("methods/choice", "from attrpriv.methods.table import methods"),
        ("methods/base", "from attrpriv.methods.table import load"),
        ("cases", "from attrpriv.methods.base.tally import Tally"),
    ],
)
def test_a_method_may_know_what_is_below_it(tmp_path: Path, unit: str, line: str) -> None:
    plant_methods(tmp_path, unit, line)
    assert violations(tmp_path) == []


def plant(source: Path, line: str) -> None:
    """A small package in which numerics/gaussian.py holds `line`."""
    for unit in ("errors", "problem", "numerics", "methods"):
        (source / unit).mkdir()
        (source / unit / "__init__.py").write_text("", encoding="utf-8")
    (source / "__init__.py").write_text("from attrpriv.methods import anything\n", encoding="utf-8")
    (source / "numerics" / "gaussian.py").write_text(line + "\n", encoding="utf-8")


def plant_methods(source: Path, unit: str, line: str) -> None:
    """A small package with some methods, in which here.py of a unit holds `line`."""
    below = ("base", "choice", "gaussian", "laplace_sequence", "quantile_clip", "transport")
    for folder in ("cases", "methods", *(f"methods/{name}" for name in below)):
        (source / folder).mkdir()
        (source / folder / "__init__.py").write_text("", encoding="utf-8")
    (source / unit / "here.py").write_text(line + "\n", encoding="utf-8")
