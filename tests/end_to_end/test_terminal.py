"""In a real terminal: a bar while the engine reads, gone when it has; Ctrl-C leaves nothing; a pipe gets nothing of it."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

pty = pytest.importorskip("pty")
pytestmark = pytest.mark.slow

# The command line on a table that exists nowhere but in the engine, of as many rows as are wished.
CHILD = """
import sys
import ibis
from attrpriv.session import table_reads
from attrpriv.engines import progress
from attrpriv.engines.tables import open_table

rows = int(sys.argv.pop(1))
progress.PATIENCE = 0.05
connection = ibis.duckdb.connect()
connection.raw_sql("SET threads = 1")
made = "150 + sin(range) * 25 AS weight, 60000 + cos(range) * 30000 AS income"
connection.raw_sql(f"CREATE VIEW slow AS SELECT {made} FROM range({rows})")
table_reads.open_table = lambda data: open_table(connection.table("slow"))

from attrpriv.cli.app import main

main()
"""
POLICY = """attrpriv: 1
data: slow.parquet
rows: {rows}
epsilon: 1.0
delta: 1.0e-6
protect:
  - secret: mean(income)
    between: [20000, 200000]
    within: 3000
assume:
  kind: gaussian
  mean: {{weight: 150, income: 60000}}
  sd: {{weight: 25, income: 30000}}
  correlation: {{weight~income: 0.3}}
  tolerance: {{mean: 0.01, sd: 0.02, slope: 0.05}}
resolution: {{weight: 0.000001, income: 0.001}}
release: ["avg(weight)"]
"""


def command(folder: Path, rows: int, *options: str) -> list[str]:
    (folder / "slow.yaml").write_text(POLICY.format(rows=rows), encoding="utf-8")
    (folder / "child.py").write_text(CHILD, encoding="utf-8")
    return [sys.executable, "child.py", str(rows), "release", "slow.yaml", "--mechanism", "gaussian", *options]


def in_a_terminal(folder: Path, arguments: list[str], stop: bool) -> tuple[str, int]:
    """What the terminal got, and the exit code; with `stop`, Ctrl-C is pressed once there is a bar."""
    process, terminal = pty.fork()
    if process == 0:  # pragma: no cover - another process
        os.chdir(folder)
        os.environ |= {"TERM": "xterm", "COLUMNS": "120"}
        os.execv(arguments[0], arguments)
    found, pressed, end = b"", False, time.monotonic() + 120
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                found += os.read(terminal, 65536)
            except OSError:  # the other side is closed
                break
        if stop and not pressed and b" %" in found:
            os.write(terminal, b"\x03")
            pressed = True
    os.close(terminal)
    return found.decode(), os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def cleared(shown: str) -> bool:
    """Whether the line of the bar is erased after its last picture."""
    bars = [found.end() for found in re.finditer(r"\d+ %", shown)]
    return bool(bars) and "\x1b[2K" in shown[bars[-1] :]


def test_a_bar_that_goes_when_the_answer_comes(tmp_path: Path) -> None:
    shown, code = in_a_terminal(tmp_path, command(tmp_path, 20_000_000), stop=False)
    assert code == 0, shown
    assert re.search(r"reading the table once [━╌]{28} \d+ %", shown)
    assert cleared(shown)
    assert "avg(weight)" in shown
    assert (tmp_path / "slow.ledger").exists()


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    arguments = command(tmp_path, 10**12)
    before = sorted(tmp_path.iterdir())
    shown, code = in_a_terminal(tmp_path, arguments, stop=True)
    assert code == 130
    assert cleared(shown)
    assert shown.rstrip().endswith("stopped. What was released before that, if anything, is in the ledger.")
    assert "Traceback" not in shown
    assert sorted(path for path in tmp_path.iterdir() if path.name != "__pycache__") == before


@pytest.mark.parametrize("option", [[], ["--json"]], ids=["text", "json"])
def test_a_pipe_gets_no_bar(option: list[str], tmp_path: Path) -> None:
    found = subprocess.run(command(tmp_path, 20_000_000, *option), cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stderr == ""
    assert "━" not in found.stdout
    assert "╌" not in found.stdout
