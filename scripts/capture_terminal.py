"""Run a command in a pseudo-terminal and draw what it printed as an SVG picture.

    .venv/bin/python scripts/capture_terminal.py docs/images/demo.svg --title "make demo" -- .venv/bin/attrpriv demo

What must never change: the picture shows what the command really printed, and it refers to nothing outside itself (Rich's own
template loads a font from a web host; that part is cut out, and the picture is checked for what is left).

Only standard output is drawn, so that no spinner is caught halfway. A command that fails is not drawn at all. Needs a POSIX
system and Rich, which attrpriv depends on.
"""

from __future__ import annotations

import argparse
import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

COLUMNS = 112
ROWS = 60

_FONT_FACE = re.compile(r"@font-face\s*{[^}]*}\s*")
_FONT = "'DejaVu Sans Mono', 'Liberation Mono', Menlo, Consolas, monospace"
# Where a picture could fetch something from. The name space of SVG is a name, not a place.
_OUTSIDE = re.compile(r"""(?:url\(\s*["']?(?!#)|href\s*=|@import|(?<!xmlns=")https?://)""")


def capture(command: Sequence[str], columns: int = COLUMNS) -> str:
    """What the command writes to a terminal of this width, with its colours; `SystemExit` if the command fails."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "LINES")}
    environment |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": str(columns)}
    with subprocess.Popen(command, stdin=child, stdout=child, stderr=subprocess.PIPE, env=environment) as process:
        os.close(child)
        written = _read_all(parent)
        complaint = process.stderr.read() if process.stderr else b""
    os.close(parent)
    if process.returncode != 0:
        sys.stderr.write(complaint.decode(errors="replace"))
        raise SystemExit(f"capture_terminal: the command ended with exit code {process.returncode}; nothing was drawn.")
    return written.decode().replace("\r\n", "\n")


def _read_all(descriptor: int) -> bytes:
    """Everything up to the end; Linux reports the end of a pseudo-terminal as an error."""
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:
            part = b""
        if not part:
            return b"".join(parts)
        parts.append(part)


def draw(ansi: str, title: str, columns: int = COLUMNS) -> str:
    """The text with its colours as a self-contained SVG."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(ansi.rstrip("\n")), soft_wrap=True)
    svg = console.export_svg(title=title, unique_id="terminal")
    return self_contained(svg)


def self_contained(svg: str) -> str:
    """Without the web fonts of Rich's template; `SystemExit` if anything else would be fetched."""
    svg = _FONT_FACE.sub("", svg)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace("font-family: Fira Code, monospace;", f"font-family: {_FONT};")
    svg = svg.replace("font-family: arial;", f"font-family: {_FONT};")
    svg = "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"
    if _OUTSIDE.search(svg):
        raise SystemExit("capture_terminal: the picture would fetch something from outside; nothing was written.")
    return svg


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Draw what a command prints as an SVG picture.")
    parser.add_argument("out", type=Path, help="where to write the picture")
    parser.add_argument("--title", default="", help="the title in the window's frame")
    parser.add_argument("--columns", type=int, default=COLUMNS, help=f"width of the terminal; default {COLUMNS}")
    parser.add_argument("command", nargs="+", help="the command to run, after --")
    options = parser.parse_args(arguments)
    svg = draw(capture(options.command, options.columns), options.title, options.columns)
    options.out.write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
