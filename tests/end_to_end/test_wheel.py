"""The wheel works where nothing else of this repository exists.

It is built once and installed, with its dependencies, into an empty virtual environment; both need a package index. The
commands run there from an empty directory, so that nothing can be imported from the checkout.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def run(*command: str | Path, cwd: Path, timeout: float) -> str:
    """The standard output of a command that must succeed, without what would let it see the checkout."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "PYTEST"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        timeout=timeout,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command[0]} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_wheel_in_a_clean_environment(tmp_path: Path) -> None:
    dist, env, empty = tmp_path / "dist", tmp_path / "env", tmp_path / "empty"
    empty.mkdir()

    run(sys.executable, "-m", "build", "--wheel", "--outdir", dist, ROOT, cwd=empty, timeout=300)
    (wheel,) = dist.glob("*.whl")
    assert wheel.name == f"attrpriv-{VERSION}-py3-none-any.whl"
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"attrpriv/py.typed", "attrpriv/__init__.py"} <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert all(name.startswith(("attrpriv/", f"attrpriv-{VERSION}.dist-info/")) for name in names)
    told = zipfile.ZipFile(wheel).read(f"attrpriv-{VERSION}.dist-info/METADATA").decode()
    assert re.findall(r"\]\((?!https:|#)[^)]*\)", told.partition("\n\n")[2]) == []  # what an index could not follow

    run(sys.executable, "-m", "venv", env, cwd=empty, timeout=120)
    scripts = env / ("Scripts" if os.name == "nt" else "bin")
    python, attrpriv = scripts / "python", scripts / "attrpriv"
    pip = (python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    run(*pip, wheel, "--constraint", ROOT / "constraints.txt", cwd=empty, timeout=600)

    # Only what the wheel itself asks for is there: an import that needs a development tool would fail here.
    location = run(python, "-c", "import attrpriv; attrpriv.Policy; print(attrpriv.__file__)", cwd=empty, timeout=120)
    assert Path(location.strip()).is_relative_to(env)
    assert VERSION in run(attrpriv, "--version", cwd=empty, timeout=120)
    schema = json.loads(run(attrpriv, "schema", cwd=empty, timeout=120))
    assert "properties" in schema or "$ref" in schema
