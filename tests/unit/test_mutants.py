"""`make mutants` speaks of the code as it is: what it plants, leaves out and calls equivalent is there."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "attrpriv"
LINES = [
    line
    for path in sorted((ROOT / "tests" / "equivalent_mutants").glob("*.txt"))
    for line in path.read_text("utf-8").splitlines()
]
LISTED = [found.groups() for line in LINES if (found := re.match(r"([\w/]+\.py): (\w+): ", line))]


@cache
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "scripts" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module
    spec.loader.exec_module(module)
    return module


def test_every_named_mistake_can_be_planted_at_one_place() -> None:
    lacking = [
        (module, before)
        for module, before, _ in script().NAMED
        if not (SOURCE / module).exists() or (SOURCE / module).read_text(encoding="utf-8").count(before) != 1
    ]
    assert lacking == []


def test_what_is_left_out_or_searched_is_there() -> None:
    assert [place for place in (*script().LEFT_OUT, *script().SEARCHES) if not (SOURCE / place).exists()] == []


@pytest.mark.parametrize("module", sorted({module for module, _ in LISTED}))
def test_functions_with_equivalent_mutants_are_there(module: str) -> None:
    tree = ast.parse((SOURCE / module).read_text(encoding="utf-8"))
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)} | {"module"}
    assert {name for one, name in LISTED if one == module} <= functions
