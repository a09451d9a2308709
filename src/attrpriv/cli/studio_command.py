"""`attrpriv studio`, as the command line takes it."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attrpriv.cli.guard import guarded, number
from attrpriv.cli.options import AsJson
from attrpriv.errors import UsageError

if TYPE_CHECKING:
    from attrpriv.studio.security import Keys

_NEEDS = ("starlette", "uvicorn")


def studio(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where the tables and policies are; default: here.")
    ] = Path(),
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="A port of this machine; default: any that is free.")
    ] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    idle: Annotated[
        float, typer.Option("--idle", parser=number("idle"), metavar="HOURS", help="End after so long without a request.")
    ] = 2.0,
    as_json: AsJson = False,
) -> None:
    """Design a release in a browser, on this machine alone. The policy file stays the truth. Shows no row."""
    with guarded(as_json):
        if any(importlib.util.find_spec(name) is None for name in _NEEDS):
            raise UsageError(
                "studio: needs the packages starlette and uvicorn. Install them with pip install 'attrpriv[studio]'."
            )
        if not 0 < idle < math.inf:
            raise UsageError(f"idle: must be a number of hours above 0. Got {idle:g}.")
        from attrpriv.studio.folder import Folder
        from attrpriv.studio.security import Keys
        from attrpriv.studio.server import listening, serve

        place = Folder.of(folder)
        with listening(port) as sock:
            keys = Keys(sock.getsockname()[1])
            serve(place, sock, keys, idle * 3600, lambda: _started(place.root, keys, browser=browser, as_json=as_json))


def _started(root: Path, keys: Keys, *, browser: bool, as_json: bool) -> None:
    """The address goes to stdout and nowhere else: it holds the key. A browser gets one that is good once."""
    address = keys.start
    if as_json:
        import json

        sys.stdout.write(json.dumps({"schema_version": 1, "address": address, "folder": str(root)}) + "\n")
    else:
        sys.stdout.write(f"attrpriv studio for {root.name}: {address}\nopen this address; Ctrl-C ends it.\n")
    sys.stdout.flush()
    if browser:
        import threading
        import webbrowser

        threading.Thread(target=webbrowser.open, args=(keys.opening,), daemon=True).start()
