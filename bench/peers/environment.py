"""Another library, in an environment of its own below build/peers, measured in a process of its own.

    found = in_environment("diffprivlib", ("diffprivlib==0.6.6",), SCRIPT, {"rows": 1000}, timeout=300)

A script gets one JSON document on its standard input and prints one as its last line. It knows nothing of this package.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.peers.budget import Unavailable

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / "build" / "peers"
INSTALLING = 600.0
# What of the caller's environment would lead a process back to the caller's packages.
NOT_PASSED = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONSTARTUP")


def in_environment(name: str, requirements: Sequence[str], script: Path, payload: Any, timeout: float) -> Any:
    """What a script says to this payload; `Unavailable` where the library cannot be installed or the script fails."""
    done = _run([str(prepared(name, requirements)), str(script)], json.dumps(payload), timeout, f"{name}: the measurement")
    lines = [line for line in done.splitlines() if line.strip()]
    try:
        return json.loads(lines[-1])
    except (IndexError, json.JSONDecodeError):
        raise Unavailable(f"{name}: the measurement gave no JSON") from None


def prepared(name: str, requirements: Sequence[str]) -> Path:
    """The interpreter of an environment with exactly these requirements, which is made where it is not there."""
    place = ENVIRONMENTS / name
    python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    made, wanted = place / "requirements.txt", "\n".join(requirements) + "\n"
    if made.is_file() and made.read_text(encoding="utf-8") == wanted and python.exists():
        return python
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    what = f"{name}: an environment with {', '.join(requirements)}"
    _run([sys.executable, "-m", "venv", str(place)], "", INSTALLING, what)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-input"]
    if requirements:
        _run([*pip, *requirements], "", INSTALLING, what)
    made.write_text(wanted, encoding="utf-8")
    return python


def versions_in(name: str, requirements: Sequence[str], packages: Sequence[str]) -> dict[str, str]:
    """The versions of these packages in that environment."""
    code = "import json, sys; from importlib.metadata import version as v; print(json.dumps({n: v(n) for n in sys.argv[1:]}))"
    done = _run([str(prepared(name, requirements)), "-c", code, *packages], "", 60.0, f"{name}: its versions")
    found: dict[str, str] = json.loads(done)
    return found


def _run(command: Sequence[str], given: str, timeout: float, what: str) -> str:
    """Its output. What it complains of is shown, and not kept: it may name places of this machine."""
    passed = {key: value for key, value in os.environ.items() if key not in NOT_PASSED}
    try:
        done = run_alone(command, given, timeout, passed)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{what} took more than {timeout:.0f} seconds") from None
    except OSError:
        raise Unavailable(f"{what} could not be started") from None
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        raise Unavailable(f"{what} failed (exit code {done.returncode})")
    return done.stdout


def run_alone(
    command: Sequence[str], given: str, timeout: float, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """As subprocess.run; but what the process has started, such as a Java machine, ends with it when time is up or we end.

    It starts in a folder of its own: Spark leaves one behind wherever it is.
    """
    with (
        tempfile.TemporaryDirectory(prefix="attrpriv-peers-", ignore_cleanup_errors=True) as place,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=place,
            start_new_session=True,
        ) as process,
    ):
        try:
            output, complaints = process.communicate(given, timeout)
        except BaseException:
            end(process)
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, complaints)


def end(process: subprocess.Popen[str]) -> None:
    if os.name == "nt":
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
