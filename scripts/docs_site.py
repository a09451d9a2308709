"""The documentation as a site: `make docs`, or `python scripts/docs_site.py [--out DIRECTORY]`.

The pages are copied as they lie in the repository, so that their links to each other, to examples and to the changelog lead to
the same places on the site. Their order is that of docs/README.md. Zensical (or any other reader of mkdocs.yml) makes HTML of
them, strictly: a link that leads nowhere is an error. Nothing is fetched, and no page asks for anything outside of the site.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What pages link to.
SHOWN = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "CITATION.cff", "docs", "examples")
PROJECT = {"Changes": "CHANGELOG.md", "Contributing": "CONTRIBUTING.md", "A false guarantee": "SECURITY.md"}
NOT_SHOWN = ("__pycache__", "*.ledger*", "*.parquet", ".*")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--out", type=Path, default=ROOT / "build", help="pages and site are made below it; default: build")
    out = parser.parse_args(arguments).out.resolve()
    settings = stage(out)
    done = subprocess.run([sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", str(settings)], check=False)
    if done.returncode:
        raise SystemExit(f"docs: the site could not be built without a warning (exit code {done.returncode}). See above.")
    searchable_from_disk(out / "site")
    if outside := requests(out / "site"):
        raise SystemExit("docs: pages must ask for nothing outside of the site. Got " + ", ".join(outside) + ".")
    print(f"the site is {out / 'site' / 'index.html'}")


def stage(out: Path) -> Path:
    """Copy the pages, and the settings with their places; returned is the file of settings."""
    place = out / "pages"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name in SHOWN:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns(*NOT_SHOWN))
        else:
            shutil.copy(ROOT / name, place / name)
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    text = text.replace("docs_dir: build/pages", "docs_dir: pages").replace("site_dir: build/site", "site_dir: site")
    for here in ("src", "scripts/griffe_doctests.py"):
        text = text.replace(f"{here}]", f"'{(ROOT / here).as_posix()}']")
    settings = out / "mkdocs.yml"
    settings.write_text(text + navigation(), encoding="utf-8")
    return settings


def navigation() -> str:
    """The order of the pages: the sections of docs/README.md, each page by its link's words."""
    lines = ["nav:", "  - Home: README.md"]
    for heading, body in sections():
        lines += [f"  - {heading}:", *(f"      - {json.dumps(title)}: docs/{page}" for title, page in pages(body))]
    lines += ["  - Project:", *(f"      - {title}: {page}" for title, page in PROJECT.items())]
    return "\n".join(lines) + "\n"


def sections() -> list[tuple[str, str]]:
    """The headings of docs/README.md that list pages, with the text below each."""
    found = re.split(r"^## (.+)$", (ROOT / "docs" / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return [(heading, body) for heading, body in zip(found[::2], found[1::2], strict=True) if pages(body)]


def pages(body: str) -> list[tuple[str, str]]:
    """The pages that a section lists: the first link of each item."""
    found = re.findall(r"^(?:-|\d+\.) \[([^\]]+)\]\(([^)#]+\.md)\)", body, flags=re.MULTILINE)
    return [(title.replace("`", ""), page) for title, page in found]


def searchable_from_disk(site: Path) -> None:
    """A page that was opened from a disk may fetch no JSON, but load a script: the site's search asks for this one there."""
    (site / "search.js").write_text(f"var __index = {(site / 'search.json').read_text(encoding='utf-8')}", encoding="utf-8")


def requests(site: Path) -> list[str]:
    """The addresses outside of the site from which a browser would fetch something for one of its pages."""
    fetched = r"""<(?:script|img|iframe|source|video|audio|object|embed)\b[^>]*?\b(?:src|data)\s*=\s*["']?(https?:[^"'\s>]+)"""
    linked = r"""<link\b(?=[^>]*\brel=["']?(?:stylesheet|preload|icon|preconnect))[^>]*?\bhref\s*=\s*["']?(https?:[^"'\s>]+)"""
    styled = r"""(?:url\(|@import)\s*["']?(https?:[^"')\s]+)"""
    found: set[str] = set()
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        found.update(re.findall(fetched, text), re.findall(linked, text))
    for sheet in site.rglob("*.css"):
        found.update(re.findall(styled, sheet.read_text(encoding="utf-8")))
    return sorted(found)


if __name__ == "__main__":
    main()
