"""The documentation site: every page in its order, every public name, built strictly, and nothing fetched from elsewhere."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import attrpriv
from tests.end_to_end.browser import looked_at_file

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_site", ROOT / "scripts" / "docs_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_has_its_place(script: ModuleType) -> None:
    listed = re.findall(r": docs/(\S+\.md)$", script.navigation(), flags=re.MULTILINE)
    assert len(listed) == len({*listed})
    there = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert {*listed} == there - {"README.md"}


def test_every_public_name_is_in_the_reference() -> None:
    told = re.findall(r"^::: attrpriv\.(\w+)$|`ap\.(\w+)`", (ROOT / "docs" / "api.md").read_text(), flags=re.MULTILINE)
    assert {name for pair in told for name in pair if name} >= {*attrpriv.__all__} - {"__version__"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning."""
    pytest.importorskip("zensical", reason="the site needs the extra docs")
    out = tmp_path_factory.mktemp("built")
    command = [sys.executable, str(ROOT / "scripts" / "docs_site.py"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out / "site"


PAGES = ("index", "docs/guide/reference-view", "docs/theory/gaussian", "docs/api", "docs/guide/commands")


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_everybody_can_read_it(name: str, dark: bool, site: Path, tmp_path: Path) -> None:
    """axe-core finds nothing serious. What it calls moderate is of the theme: landmarks without names of their own."""
    found = looked_at_file(site / f"{name}.html", tmp_path, dark=dark)
    assert found["serious"] == []
    assert found["dark"] is dark
    assert found["passes"] > 25


def test_the_site_is_built_without_a_warning_and_asks_for_nothing(script: ModuleType, site: Path) -> None:
    assert "Publish rows to a model" in (site / "index.html").read_text(encoding="utf-8")
    assert (site / "search.json").exists() or list(site.rglob("search*.json"))
    for page, name in (("api", "record_outside"), ("api", "ledger"), ("api-mathematics", "wasserstein_inf")):
        shown = (site / "docs" / f"{page}.html").read_text(encoding="utf-8")
        assert re.search(rf'id="attrpriv\.[\w.]*\.{name}"', shown)
        assert "<blockquote" not in shown  # an example is code, no quotation
    assert script.requests(site) == []


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://example.org/x.js"></script>',
        "<img alt='' src='http://example.org/x.png'>",
        '<link rel="stylesheet" href="https://example.org/x.css">',
        '<link href="https://example.org/x.woff" rel="preload">',
    ],
)
def test_a_page_that_fetches_something_is_noticed(text: str, script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(f'<a href="https://example.org/">a link is no request</a>{text}', encoding="utf-8")
    (tmp_path / "page.css").write_text("a { color: red }", encoding="utf-8")
    assert len(script.requests(tmp_path)) == 1


def test_a_font_from_elsewhere_is_noticed(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "page.css").write_text("@font-face { src: url(https://example.org/x.woff) }", encoding="utf-8")
    assert script.requests(tmp_path) == ["https://example.org/x.woff"]
