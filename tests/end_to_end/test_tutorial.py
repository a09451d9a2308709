"""The tutorial runs as it is, shows what it says, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.end_to_end.material import environment

TUTORIAL = Path(__file__).resolve().parents[2] / "examples" / "tutorial" / "tutorial.py"


def test_the_tutorial_runs(tmp_path: Path) -> None:
    places = {**environment(), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(TUTORIAL)], capture_output=True, text=True, timeout=120, cwd=tmp_path, env=places, check=False
    )
    assert done.returncode == 0, done.stderr
    for line in (
        "hides       mean(income)",
        "transport            expected error",
        "avg(weight) = ",
        "the same value again: True",
    ):
        assert line in done.stdout
    assert "head digest " in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_its_cells_are_marked() -> None:
    text = TUTORIAL.read_text(encoding="utf-8")
    assert text.count("\n# %% [markdown]\n# ") >= 6
    assert text.count("\n# %%\n") >= 8
