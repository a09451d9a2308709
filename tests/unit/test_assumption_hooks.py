"""Nothing outside `assumptions` asks which class an assumption is of: what varies is a hook of the base class, `Assumption`.

`Problem.assumed(cls)` is the one place that selects by class: it gives a case the numbers of the assumption it is made for.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import attrpriv.assumptions
from attrpriv.problem.assumption import Assumption

SOURCE = Path(__file__).resolve().parents[2] / "src" / "attrpriv"


def assumptions() -> frozenset[str]:
    """The names of all classes of assumptions that this package has."""
    for module in iter_modules(attrpriv.assumptions.__path__):
        import_module(f"attrpriv.assumptions.{module.name}")
    return frozenset(cls.__name__ for cls in Assumption.kinds.values() if cls.__module__.startswith("attrpriv."))


def names(node: ast.AST) -> set[str]:
    """Every name in an expression, also as the last part of a dotted one."""
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return found | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def type_tests(tree: ast.AST) -> Iterator[tuple[int, set[str]]]:
    """The lines that test a type, and the names of the classes that they test for."""
    renamed = {
        alias.asname: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is not None
    }
    for node in ast.walk(tree):
        tested: set[str] = set()
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"isinstance", "issubclass"} and len(node.args) == 2:
            tested = names(node.args[1])
        elif isinstance(node, ast.MatchClass):
            tested = names(node.cls)
        elif isinstance(node, ast.Compare) and any(map(_is_type, (node.left, *node.comparators))):
            tested = names(node)
        if tested:
            yield getattr(node, "lineno", 0), {renamed.get(name, name) for name in tested}


def _is_type(node: ast.AST) -> bool:
    """`type(x)` or `x.__class__`."""
    called = isinstance(node, ast.Call) and ast.unparse(node.func) == "type"
    return called or (isinstance(node, ast.Attribute) and node.attr == "__class__")


def violations(source: Path, classes: frozenset[str]) -> list[str]:
    told = []
    for file in sorted(source.rglob("*.py")):
        if file.relative_to(source).parts[0] == "assumptions":
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for line, tested in type_tests(tree):
            told += [f"{file.relative_to(source).as_posix()}:{line}: {name}" for name in sorted(tested & classes)]
    return told


def test_no_module_outside_assumptions_tests_the_class_of_one() -> None:
    assert violations(SOURCE, assumptions()) == []


def test_the_classes_are_all_of_them() -> None:
    assert assumptions() == {
        "Chain",
        "Channel",
        "Counts",
        "Gaussian",
        "Groups",
        "Hierarchy",
        "Laws",
        "ParameterNetwork",
        "Records",
    }


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(member, Gaussian)",
        "isinstance(member, Gaussian | Counts)",
        "isinstance(member, (Counts, dict))",
        "isinstance(member, attrpriv.assumptions.counts.Counts)",
        "issubclass(cls, Chain)",
        "type(member) is Groups",
        "member.__class__ == Groups",
        "from attrpriv.assumptions.groups import Groups as G\nisinstance(member, G)",
        "match member:\n    case Hierarchy(mean=mean):\n        pass",
        "match member:\n    case None | Hierarchy():\n        pass",
        "def late():\n    return [m for m in theta if isinstance(m, ParameterNetwork)]",
    ],
)
def test_a_type_test_is_caught(tmp_path: Path, text: str) -> None:
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "planted.py").write_text(text + "\n", encoding="utf-8")
    (found,) = {line.rpartition(":")[0].rpartition(":")[0] for line in violations(tmp_path, assumptions())}
    assert found == "methods/planted.py"


@pytest.mark.parametrize("text", ["problem.assumed(Gaussian)", "isinstance(x, Mapping)", "Gaussian(sd={})"])
def test_other_uses_are_allowed(tmp_path: Path, text: str) -> None:
    (tmp_path / "planted.py").write_text(text + "\n", encoding="utf-8")
    assert violations(tmp_path, assumptions()) == []


def test_an_assumption_from_outside_that_overrides_nothing_says_nothing() -> None:
    class Bare(Assumption):
        kind: str = "bare_for_this_test"

        def __str__(self) -> str:
            return "rows are rows"

    try:
        bare = Bare()
        silent = (bare.named_categories, bare.public_records, bare.fit_record, bare.slope_tolerance)
        assert [said() for said in silent] == [None] * 4
        assert not bare.normal_rows
        assert (*bare.listed_values(), *bare.named_events(), *bare.public_centres(), *bare.expected_rows(("x",), 10)) == ()
        assert bare.nearly() == (0.0, 0.0)
        assert bare.surer(0.5) is None
        assert bare.explained() == ("Whoever believes: rows are rows.",)
    finally:
        Assumption.kinds.pop("bare_for_this_test")


def test_a_kind_loads_when_it_is_first_read() -> None:
    code = (
        "import sys\n"
        "from attrpriv.problem.assumption import OURS, Assumption\n"
        "assert not Assumption.kinds, Assumption.kinds\n"
        "Assumption.of_kind({'kind': 'gaussian', 'sd': {'x': 1}, 'correlation': {}, 'tolerance': 0})\n"
        "assert [*Assumption.kinds] == ['gaussian'], Assumption.kinds\n"
        "assert all(Assumption.class_of(kind).model_fields['kind'].default == kind for kind in Assumption.known())\n"
        "assert {*Assumption.kinds} == {*OURS} == {*Assumption.known()}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_kind_of_ours_is_ours_before_it_is_loaded() -> None:
    code = (
        "from attrpriv.errors import UsageError\n"
        "from attrpriv.problem.assumption import Assumption\n"
        "try:\n"
        "    class Other(Assumption):\n"
        "        kind: str = 'counts'\n"
        "except UsageError as error:\n"
        "    assert 'Counts' in str(error)\n"
        "else:\n"
        "    raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_policy_loads_the_kinds_that_it_names() -> None:
    code = (
        "import attrpriv as ap\n"
        "from attrpriv.problem.assumption import Assumption\n"
        "stated = {'sd': {'x': 1, 'y': 1}, 'correlation': {'x~y': 0.5}, 'tolerance': 0}\n"
        "ap.Policy(epsilon=1, delta=1e-6, protect=[ap.Secret('mean(x)', within=1)], assume=stated)\n"
        "assert [*Assumption.kinds] == ['gaussian'], Assumption.kinds\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
