"""The documentation site: every page in its order, every public name, built strictly, and nothing fetched from elsewhere."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

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


# What the search shows, which is inside of shadow roots.
_SHOWN = """
(() => {
  const within = (root) => [...root.querySelectorAll('*')].filter((one) => one.shadowRoot).map((one) => one.shadowRoot);
  return within(document).flatMap((root) => [root, ...within(root)]).map((root) => root.textContent).join(' ');
})()
"""


@pytest.mark.slow
def test_what_is_searched_for_is_found_in_pages_opened_from_a_disk(site: Path, tmp_path: Path) -> None:
    """And nothing is asked of any other place."""
    from tests.end_to_end.devtools import Browser

    with Browser(tmp_path / "profile") as browser:
        tab = browser.tab()
        tab.open((site / "index.html").as_uri())
        tab.until("document.querySelector('.md-search__button') !== null")
        tab.click("Search", "button")
        tab.until("document.activeElement !== document.body")
        tab.type("markov quilt")
        tab.until(f"{_SHOWN}.includes('Markov quilts')")
        asked = [one["params"]["request"]["url"] for one in browser.events if one.get("method") == "Network.requestWillBeSent"]
        assert len(asked) > 3
        assert [url for url in asked if not url.startswith((site.as_uri(), "data:", "blob:", "about:"))] == []
        assert tab.errors == []


class _Links(HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self) -> None:
        super().__init__()
        self.names, self.targets = set[str](), set[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value for key, value in attrs if value}
        self.names |= {given[key] for key in ("id", "name") if key in given}
        self.targets |= {given[key] for key in ("href", "src") if key in given and not re.match(r"[a-z]+:", given[key])}


def dead_links(site: Path) -> list[str]:
    pages = {page: _Links() for page in site.rglob("*.html") if page.name != "404.html"}  # which links from the site's root
    for page, links in pages.items():
        links.feed(page.read_text(encoding="utf-8"))
    found = []
    for page, links in pages.items():
        for target in links.targets:
            path, _, anchor = target.partition("#")
            there = (page.parent / unquote(path)).resolve() if path else page
            there = there / "index.html" if there.is_dir() else there
            if not there.exists() or (anchor and there in pages and unquote(anchor) not in pages[there].names):
                found.append(f"{page.relative_to(site)}: {target}")
    return sorted(found)


@pytest.mark.slow
def test_every_link_of_the_built_site_leads_somewhere(site: Path) -> None:
    assert dead_links(site.resolve()) == []


def test_a_dead_link_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#x">1</a><a href="b.html#y">2</a><a href="c.html">3</a>', encoding="utf-8")
    (tmp_path / "b.html").write_text('<p id="x"><a href="https://example.org/">elsewhere</a></p>', encoding="utf-8")
    assert dead_links(tmp_path) == ["a.html: b.html#y", "a.html: c.html"]


def test_the_site_is_built_without_a_warning_and_asks_for_nothing(script: ModuleType, site: Path) -> None:
    assert "Publish rows to a model" in (site / "index.html").read_text(encoding="utf-8")
    found = (site / "search.js").read_text(encoding="utf-8")
    assert json.loads(found.removeprefix("var __index = ")) == json.loads((site / "search.json").read_text(encoding="utf-8"))
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
