"""How a release goes through the code (`scripts/walk.py`): numbers that may only become smaller."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"
# Before the tree was rebuilt: 128 modules and 365 switches under auto, and 287 modules loaded by a session and a plan.
MOST = {"auto": {"modules": 76, "switches": 242, "hops back": 0}, "gaussian": {"modules": 59, "switches": 150, "hops back": 0}}
# By a session that plans with a named mechanism; less than half of what it was.
MOST_LOADED = 129


@cache
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("walk", ROOT / "scripts" / "walk.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["walk"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("mechanism", MOST)
def test_the_walk_of_an_average(mechanism: str) -> None:
    found = script().numbers(script().walk(mechanism))
    assert {name: found[name] for name in MOST[mechanism] if found[name] > MOST[mechanism][name]} == {}


def test_a_session_and_a_plan_load_less_than_half(tmp_path: Path) -> None:
    script()._students(tmp_path)
    code = (
        "import sys, attrpriv as ap\n"
        "with ap.Session(policy='students.yaml') as session:\n"
        "    session.plan('avg(weight)', 'gaussian')\n"
        "print(sum(name.split('.')[0] == 'attrpriv' for name in sys.modules))\n"
    )
    told = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert int(told.stdout) <= MOST_LOADED


def test_a_call_of_a_higher_room_is_a_hop_back() -> None:
    down = [("session/session", "methods/choice/choose"), ("cases/shift", "problem/secret")]
    up = [("methods/gaussian/plan", "session/session"), ("methods/base/plan", "methods/gaussian/plan")]
    assert script().hops_back([*down, *up]) == up


def test_every_room_has_its_height() -> None:
    source = ROOT / "src" / "attrpriv"
    for path in source.rglob("*.py"):
        script().hops_back([(path.relative_to(source).with_suffix("").as_posix(),) * 2])


def test_the_page_says_what_is_measured() -> None:
    told = re.search(r"<!-- walk -->\n(.*?)<!-- /walk -->", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert told is not None
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \|", told.group(1), flags=re.MULTILINE)
    assert [name for name, *_ in rows] == list(MOST)
    for name, *numbers in rows:
        assert [int(one) for one in numbers] == list(MOST[name].values())
