"""What holds for the repository as a whole: no trace of the machine it was written on, and modules of readable size."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "src").rglob("*.py"))
LONGEST_MODULE = 400

# The start of a home, temporary or build directory. A URL or a relative path that contains such a word is not meant.
MACHINE_PATH = re.compile(
    r"(?<![\w./:~-])/(?:home|root|Users|work|workspace|tmp|opt|mnt|srv|builds?|private|var/folders)/[\w.]"
    r"|\b[A-Za-z]:\\+Users\\"
)
LOCK_FILE = re.compile(r"(^|/)([^/]*\.lock|package-lock\.json|pylock(\.[^/]*)?\.toml|conda-lock\.ya?ml)$")


@cache
def tracked_files() -> tuple[str, ...]:
    """Files that are in the repository or would be after `git add`; nothing to check outside a clone."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs a git clone")
    return tuple(name for name in listed.stdout.split("\0") if (ROOT / name).is_file())


def machine_paths(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if MACHINE_PATH.search(line)]


def test_no_file_names_a_path_of_a_build_machine() -> None:
    found = {}
    for name in tracked_files():
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if lines := machine_paths(text):
            found[name] = lines
    assert found == {}


def test_no_lock_file() -> None:
    assert [name for name in tracked_files() if LOCK_FILE.search(name)] == []


# Written in two pieces, so that this file passes its own check.
@pytest.mark.parametrize("path", ["home/someone/x", "root/x", "Users/someone/x", "tmp/x", "work/x"])
def test_a_machine_path_is_caught(path: str) -> None:
    assert machine_paths("first\nfile = '/" + path + "'") != []


@pytest.mark.parametrize(
    "text", ["https://example.org/home/x", "docs/work/x", "../tmp/x", "#!/usr/bin/env bash", "a/b", "> /dev/null"]
)
def test_other_slashes_are_not(text: str) -> None:
    assert machine_paths(text) == []


@pytest.mark.parametrize("name", ["poetry.lock", "a/uv.lock", "pylock.toml", "package-lock.json"])
def test_a_lock_file_is_caught(name: str) -> None:
    assert LOCK_FILE.search(name)


@pytest.mark.parametrize("name", ["constraints.txt", "constraints-lowest.txt"])
def test_constraints_hold_names_and_versions_only(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    pin = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.]*")
    assert lines
    assert [line for line in lines if not pin.fullmatch(line)] == []


def test_every_dependency_is_constrained() -> None:
    project = pyproject()["project"]
    wanted = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {normalised(line.partition("==")[0]) for line in lines}
    named = {normalised(re.split(r"[\[<>=!~; ]", requirement)[0]) for requirement in wanted}
    assert named - {"attrpriv"} <= pinned  # an extra of our own may be part of another one


def test_the_oldest_versions_are_those_of_the_ranges() -> None:
    """`make test-lowest` tries what is promised: each lower bound, and nothing newer."""
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    oldest = {normalised(name): version for name, _, version in (line.partition("==") for line in lines)}
    for requirement in pyproject()["project"]["dependencies"]:
        name, low = re.match(r"([A-Za-z0-9-]+)(?:\[\w+\])?>=([0-9.]+)", requirement).groups()  # type: ignore[union-attr]
        assert Version(oldest[normalised(name)]) == Version(low), requirement


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(ROOT / "src").as_posix())
def test_module_says_what_it_is_and_stays_short(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), "the module needs a docstring"
    assert len(text.splitlines()) <= LONGEST_MODULE


def test_changelog_mentions_the_version() -> None:
    version = pyproject()["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[?{re.escape(version)}\]?(\s|$)", changelog, flags=re.MULTILINE)


def test_citation_has_the_same_version() -> None:
    version = pyproject()["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
