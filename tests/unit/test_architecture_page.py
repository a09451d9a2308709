"""docs/architecture.md is what the code is: its table of methods, its rooms, and where every method and proof has its home."""

from __future__ import annotations

import importlib.util
import pkgutil
import re
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

import attrpriv
from attrpriv.methods.base.evidence import Evidence
from attrpriv.methods.table import METHODS, ROOM, Form, Method, load

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "attrpriv"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PICTURE = ROOT / "docs" / "images" / "release-flow.svg"
# Folders below methods/ that belong to no single method.
SHARED = {"base", "choice"}


def script(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"of_the_page_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look for themselves there
    spec.loader.exec_module(module)
    return module


MADE = script(ROOT / "scripts" / "methods_table.py")


# -------------------------------------------------------------------------------------------------------------- methods


def test_the_table_of_methods_is_that_of_the_code() -> None:
    assert MADE.written(PAGE) == PAGE, "run python scripts/methods_table.py --write"
    assert all(f"\n| `{method.name}` |" in PAGE for method in METHODS)


def test_a_table_that_differs_is_noticed() -> None:
    assert MADE.written(PAGE.replace("| `gaussian` | `quilt`", "| `gauss` | `quilt`")) == PAGE


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(SystemExit, match="markers"):
        MADE.written("# A page\n")


def test_the_script_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    MADE.main([])
    assert capsys.readouterr().out == MADE.table()


def test_a_line_of_the_table_says_what_the_method_says() -> None:
    method = Method(
        "new",
        (Form(("shift",), ".new.plan:plan", "averages"), Form(("lattice",), ".other.plan:plan", alone=True)),
        page="new.md",
        proofs={"kind": ".new.proof"},
        follows=("kind",),
        needs_delta=True,
    )
    assert MADE.row(method) == (
        "`new`",
        "`shift`, `lattice`",
        "averages (`shift`); what the case covers (`lattice`)",
        "after `kind`; alone under `lattice`",
        "no",
        "yes",
        "`kind`",
        "`new`, `other`",
        "[new.md](theory/new.md)",
    )


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_home_and_every_proof_page_exists(method: Method) -> None:
    assert (ROOT / "docs" / "theory" / method.page).is_file()
    for form in method.forms:
        assert callable(load(form.home))
        assert not form.too_slow or callable(load(form.too_slow))


def test_every_folder_of_methods_is_reached_from_the_table() -> None:
    folders = {path.parent.name for path in (SOURCE / "methods").glob("*/__init__.py")}
    reached = {folder for method in METHODS for folder in MADE.folders(method)}
    assert folders - SHARED == reached - SHARED
    assert folders >= SHARED


def test_every_kind_of_evidence_is_of_exactly_one_method() -> None:
    for module in pkgutil.walk_packages(attrpriv.__path__, "attrpriv."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    named = Counter((kind, f"{ROOM}{home}") for method in METHODS for kind, home in method.proofs.items())
    ours = {kind: of.__module__ for kind, of in Evidence.kinds.items() if of.__module__.startswith("attrpriv.")}
    assert named == Counter(ours.items())


# ---------------------------------------------------------------------------------------------------------------- rooms


def rooms() -> dict[str, str]:
    """Each room of the page's table, with its last cell."""
    part = PAGE.partition("\n## The rooms\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `([\w.<>]+)` \|.*\| ([^|]+) \|$", part, flags=re.MULTILINE))


def test_every_room_exists_and_every_room_is_named() -> None:
    modules = {path.stem for path in SOURCE.glob("*.py") if not path.stem.startswith("__")}
    assert {name.partition(".")[0] for name in rooms()} == modules | {path.parent.name for path in SOURCE.glob("*/__init__.py")}


def test_every_package_within_a_room_is_named() -> None:
    for path in SOURCE.glob("*/*/__init__.py"):
        room, name = path.parts[-3:-1]
        of_a_method = room == "methods" and name not in SHARED
        assert (f"`{name}`" if of_a_method else f"`{room}/{name}`") in PAGE


def test_rooms_import_what_the_page_says() -> None:
    """The last column is the table that the imports are tested against."""
    layering = script(ROOT / "tests" / "unit" / "test_layering.py")
    told = {**layering.MAY_IMPORT, "methods.<name>": layering.A_METHOD}
    for room, said in rooms().items():
        if room in layering.ANYTHING:
            assert said == "all"
        elif room in layering.ANYTHING_BUT_CLI:
            assert said == "all but `cli`"
        else:
            assert set(re.findall(r"`([\w.]+)`", said)) == told[room], room
    assert set(told) - set(rooms()) == {"methods"}


# -------------------------------------------------------------------------------------------------------------- picture


def test_the_picture_says_what_it_shows_and_refers_to_nothing_outside() -> None:
    text = PICTURE.read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"href|@import|@font-face|<script", text)
    assert "prefers-color-scheme: dark" in text
    drawn = ElementTree.fromstring(text)
    for name in ("title", "desc"):
        assert (drawn.findtext(f"{{http://www.w3.org/2000/svg}}{name}") or "").strip()


def test_the_rooms_in_the_picture_exist() -> None:
    named = re.findall(r'class="room"[^>]*>([^<]+)<', PICTURE.read_text(encoding="utf-8"))
    assert named
    for room in " ".join(named).split():
        assert (SOURCE / room / "__init__.py").is_file(), room
