"""`make mutants` speaks of the code as it is: what it plants, leaves out and calls equivalent is there."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from scripts.mutants.named import NAMED
from scripts.mutants.planting import ROOT, SOURCE, Mutant, mutants_of
from scripts.mutants.sampling import LEFT_OUT, SEARCHES, equivalent
from scripts.mutants.trying import functions_around, plant

LINES = [
    line
    for path in sorted((ROOT / "tests" / "equivalent_mutants").glob("*.txt"))
    for line in path.read_text("utf-8").splitlines()
]
LISTED = [found.groups() for line in LINES if (found := re.match(r"([\w/]+\.py): (\w+): ", line))]


def test_every_named_mistake_can_be_planted_at_one_place() -> None:
    lacking = [
        (module, before)
        for module, before, _ in NAMED
        if not (SOURCE / module).exists() or (SOURCE / module).read_text(encoding="utf-8").count(before) != 1
    ]
    assert lacking == []


def test_nothing_is_listed_twice() -> None:
    names = [line.partition("  # ")[0] for line in LINES if line and not line.startswith("#")]
    assert sorted(names) == sorted(set(names))
    assert all(why for why in equivalent().values())


def test_what_is_left_out_or_searched_is_there() -> None:
    assert [place for place in (*LEFT_OUT, *SEARCHES) if not (SOURCE / place).exists()] == []


@pytest.mark.parametrize("module", sorted({module for module, _ in LISTED}))
def test_what_is_called_equivalent_can_still_be_planted(module: str) -> None:
    """A name that the code has outgrown might one day be that of another mistake."""
    listed = {name for name in equivalent() if name.startswith(f"{module}: ") and not name.endswith(": *")}
    made = mutants_of(SOURCE / module)
    assert listed <= {mutant.name for mutant in made} | {mutant.exact for mutant in made}


@pytest.mark.parametrize("module", sorted({module for module, _ in LISTED}))
def test_functions_with_equivalent_mutants_are_there(module: str) -> None:
    tree = ast.parse((SOURCE / module).read_text(encoding="utf-8"))
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)} | {"module"}
    assert {name for one, name in LISTED if one == module} <= functions


@pytest.mark.parametrize("module", ["numerics/laws/markov.py", "methods/base/clamp.py", "noise/exact.py"])
def test_every_mutant_of_a_module_lies_in_one_function(module: str) -> None:
    """In the one that is named, or around it, and it can be compiled."""
    made = mutants_of(SOURCE / module)
    assert len(made) > 50
    for mutant in made:
        (code,) = functions_around(compile(mutant.text, module, "exec"), mutant.line)
        assert mutant.function in (code.co_name, *(getattr(one, "co_name", "") for one in code.co_consts))


MADE_UP = """
from functools import cache

class Counter:
    @property
    def twice(self):
        return 2 * 21

@cache
def plain():
    return 2 * 21

def around():
    def inner(x):
        return [y * 2 for y in x]
    return inner([21])[0]
"""


@pytest.mark.parametrize(
    ("before", "after", "line"), [("2 * 21", "2 + 21", 7), ("2 * 21", "2 + 21", 11), ("y * 2", "y + 2", 15)]
)
def test_a_mutant_is_planted_wherever_its_function_is_used(before: str, after: str, line: int) -> None:
    """Behind a decorator, on a class, inside another function; and nothing beside it changes."""
    file = f"a_module_of_line_{line}.py"
    made: dict[str, Any] = {}
    exec(compile(MADE_UP, str(SOURCE / file), "exec"), made)
    lines = MADE_UP.split("\n")
    lines[line - 1] = lines[line - 1].replace(before, after)
    assert plant(Mutant(file, "any", line, before, after, "\n".join(lines)))
    told = {7: made["Counter"]().twice, 11: made["plain"](), 15: made["around"]()}
    assert told == {7: 42, 11: 42, 15: 42} | {line: 23}


def test_the_same_change_at_several_places_has_a_place_in_its_name() -> None:
    made = mutants_of(SOURCE / "numerics/laws/markov.py")
    assert len({mutant.exact for mutant in made}) == len(made)
    assert len({mutant.name for mutant in made}) < len(made)


def test_what_is_not_loaded_is_not_planted() -> None:
    assert not plant(Mutant("numerics/nothing.py", "f", 2, "1", "2", "def f():\n    return 2\n"))
