"""A script of `inside/` in another process with the packages of this one: what it registers, loads or takes stays there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrpriv
from bench.peers.budget import Unavailable
from bench.peers.environment import run_alone

INSIDE = Path(__file__).parent / "inside"


def in_this_environment(script: str, payload: Any, timeout: float = 300.0) -> Any:
    """What it says to this payload, as `environment.in_environment` for other libraries; `Unavailable` where it fails."""
    paths = [str(Path(attrpriv.__file__).resolve().parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    try:
        command = [sys.executable, str(INSIDE / script)]
        done = run_alone(command, json.dumps(payload), timeout, {**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{script} took more than {timeout:.0f} seconds") from None
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        raise Unavailable(f"{script} failed (exit code {done.returncode})")
    return json.loads(done.stdout.splitlines()[-1])
