"""Imports inside attrpriv go one way.

A *unit* is a module or package directly under src/attrpriv. `MAY_IMPORT` says which other units each may import. Every
import statement counts, also one inside a function; only `if TYPE_CHECKING:` blocks do not. `importlib.import_module`
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

MAY_IMPORT: dict[str, set[str]] = {
    "errors": {"formatting"},
    "formatting": set(),
    "lazy": set(),
    "frozen": {"errors"},
    "notebook": {"errors", "formatting"},
    "queries": {"errors"},
    "noise": {"errors"},
    "numerics": {"errors", "frozen", "lazy"},
    "engines": {"errors", "frozen", "numerics", "queries", "problem"},
    "problem": {"errors", "frozen", "notebook", "numerics", "queries"},
    "assumptions": {"errors", "frozen", "numerics", "problem", "queries"},
    "methods": {"errors", "frozen", "numerics", "problem", "queries", "assumptions", "noise", "notebook"},
    "policy": {"errors", "frozen", "numerics", "problem", "assumptions", "notebook", "queries"},
    "accounting": {"errors", "frozen", "numerics", "problem", "policy", "methods"},
}
ANYTHING_BUT_CLI = {"demo", "session"}
ANYTHING = {"__init__", "__main__", "cli"}


@dataclass(frozen=True)
class Import:
    """Module `importer` (a file) uses unit `target` in line `line`."""

    importer: str
    unit: str
    target: str
    line: int


def unit_of(parts: tuple[str, ...]) -> str:
    """The unit of a dotted name below the package; the package itself is `__init__`. Cases are a part of methods so far."""
    return parts[0].replace("cases", "methods") if parts else "__init__"


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
            is_unit = module == (PACKAGE,) and alias.name in units
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
    return found.target in MAY_IMPORT.get(found.unit, set())


def violations(source: Path) -> list[str]:
    """One sentence for each import that goes the wrong way and for each unit that the table does not know."""
    known = MAY_IMPORT.keys() | ANYTHING | ANYTHING_BUT_CLI
    units = {unit_of(file.relative_to(source).with_suffix("").parts) for file in source.rglob("*.py")}
    unknown = [f"{unit} is not in the table of test_layering.py" for unit in sorted(units - known)]
    wrong = [f"{i.importer}:{i.line}: {i.unit} must not import {i.target}" for i in imports(source) if not allowed(i)]
    return unknown + wrong


def test_imports_go_one_way() -> None:
    assert violations(ROOT / "src" / PACKAGE) == []


def test_the_table_itself_has_no_cycle() -> None:
    order = list(TopologicalSorter(MAY_IMPORT).static_order())
    assert set(order) == set(MAY_IMPORT)


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


def plant(source: Path, line: str) -> None:
    """A small package in which numerics/gaussian.py holds `line`."""
    for unit in ("errors", "problem", "numerics", "methods"):
        (source / unit).mkdir()
        (source / unit / "__init__.py").write_text("", encoding="utf-8")
    (source / "__init__.py").write_text("from attrpriv.methods import anything\n", encoding="utf-8")
    (source / "numerics" / "gaussian.py").write_text(line + "\n", encoding="utf-8")
