"""A page in headless Chromium: what axe-core finds, whether it scrolls sideways, and its PDF. Skips where either is not there.

axe-core is looked for where `AXE_CORE` says, or below build/, where `.ci/run` puts it. A copy of the page gets a script that
runs it and writes down what it found; the page itself has none, and no request leaves the machine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
_QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run", "--hide-scrollbars"),
)
_RUN = """
addEventListener('load', async () => {
  const found = await axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']});
  const told = {
    serious: found.violations.filter(one => ['serious', 'critical'].includes(one.impact)).map(one => one.id),
    violations: found.violations.map(one => one.id + ': ' + one.nodes.map(node => node.html.slice(0, 120)).join(' | ')),
    passes: found.passes.length,
    dark: matchMedia('(prefers-color-scheme: dark)').matches,
    inner: innerWidth, scroll: document.documentElement.scrollWidth,
  };
  const out = document.createElement('output');
  out.id = 'told';
  out.textContent = JSON.stringify(told);
  parent.document.body.append(out);
});
"""


def chromium() -> str:
    found = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("Chromium is not installed")
    return found


def axe_core() -> str:
    places = [Path(os.environ.get("AXE_CORE", "none")), ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        pytest.skip("axe-core is not there: npm install --prefix build/axe axe-core, or name its axe.min.js in AXE_CORE")
    return found.read_text(encoding="utf-8")


def looked_at(html: str, place: Path, *, width: int, dark: bool) -> dict[str, Any]:
    """What axe-core finds in a window of this width, and how wide the page is."""
    policy = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
    script = f"<script>{axe_core()}</script><script>{_RUN}</script>"
    inside = escape(policy.sub("", html).replace("</head>", f"{script}</head>"), quote=True)
    framed = place / f"framed-{width}-{dark}.html"  # a window is never narrower than 500 pixels, a frame is
    style = f"width:{width}px;height:1500px;border:0"
    framed.write_text(f'<!DOCTYPE html><body><iframe style="{style}" srcdoc="{inside}"></iframe>', encoding="utf-8")
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    shown = run([*scheme, "--virtual-time-budget=20000", "--dump-dom", framed.as_uri()], place, width=1600)
    told = re.search(r'<output id="told">(.*?)</output>', shown, flags=re.DOTALL)
    assert told is not None, "axe-core did not finish"
    found: dict[str, Any] = json.loads(unescape(told.group(1)))
    return found


def looked_at_file(page: Path, place: Path, *, dark: bool) -> dict[str, Any]:
    """The same for a page of a site, with its style sheets, in a window of 1,200 pixels; a copy beside it is looked at."""
    script = f"<script>{axe_core()}</script><script>{_RUN}</script>"
    copy = page.with_name(f"looked-at-{page.name}")
    copy.write_text(page.read_text(encoding="utf-8").replace("</head>", f"{script}</head>"), encoding="utf-8")
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    shown = run([*scheme, "--virtual-time-budget=20000", "--dump-dom", copy.as_uri()], place)
    copy.unlink()
    told = re.search(r'<output id="told">(.*?)</output>', shown, flags=re.DOTALL)
    assert told is not None, "axe-core did not finish"
    found: dict[str, Any] = json.loads(unescape(told.group(1)))
    return found


def run(options: list[str], place: Path, *, width: int = 1200) -> str:
    profile = place / f"profile-{len(list(place.iterdir()))}"
    command = [chromium(), *_QUIET, f"--user-data-dir={profile}", f"--window-size={width},1600", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def printed(html: str, place: Path) -> list[list[str]]:
    """The lines of each sheet of paper."""
    pdfium = pytest.importorskip("pypdfium2", reason="pypdfium2, which reads a PDF, is not installed")
    page, pdf = place / "printed.html", place / "printed.pdf"
    page.write_text(html, encoding="utf-8")
    run(["--no-pdf-header-footer", f"--print-to-pdf={pdf}", page.as_uri()], place)
    sheets = pdfium.PdfDocument(pdf)
    return [sheets[k].get_textpage().get_text_range().split("\r\n") for k in range(len(sheets))]
