"""What a view leaves on the disk: a file for its owner alone, and nothing of a process that was told to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attrpriv.engines.progress import tidied
from tests.end_to_end.material import attrpriv, environment
from tests.end_to_end.test_view import people, place

# Rows of a view that is large enough to be met while it is written, with sorting that does not fit into memory.
ROWS = 600_000
VIEW = "import sys; sys.argv[0] = 'attrpriv'; from attrpriv.cli import main; main()"
FINISHED = f"""
import time
from attrpriv.engines.view import file as view_file
view_file._written_rows = lambda half: time.sleep(60)
{VIEW}
"""


def test_a_view_is_for_its_owner_alone(tmp_path: Path) -> None:
    place(tmp_path)
    for _ in range(2):
        done = attrpriv("view", "people.yaml", "--out", "rows.parquet", "--force", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "rows.parquet").stat().st_mode & 0o777 == 0o600
        (tmp_path / "rows.parquet").chmod(0o644)
    assert pq.read_table(tmp_path / "rows.parquet").num_rows > 100


def test_it_is_so_while_it_is_written(tmp_path: Path) -> None:
    place(tmp_path)
    child = start(FINISHED, tmp_path)
    (half,) = met(child, tmp_path, "view0.parquet")
    assert half.stat().st_mode & 0o777 == 0o600
    assert half.parent.stat().st_mode & 0o777 == 0o700
    end(child, signal.SIGTERM)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_process_that_is_told_to_end_leaves_no_rows(tmp_path: Path, number: signal.Signals) -> None:
    """The rows are written, and have not got their name yet."""
    place(tmp_path)
    child = start(FINISHED, tmp_path)
    met(child, tmp_path, "view0.parquet")
    end(child, number)
    assert kept(tmp_path) == ["people.ledger", "people.parquet", "people.yaml"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_the_engine_spilled_goes_too(tmp_path: Path, number: signal.Signals) -> None:
    wide = {f"c{k}": np.random.default_rng(k).random(ROWS) for k in range(30)}
    table = people(ROWS)
    place(tmp_path, pa.table({**{name: table[name] for name in table.column_names}, **wide}))
    child = start(VIEW, tmp_path, "--low-memory")
    met(child, tmp_path, "duckdb_temp*")
    end(child, number)
    assert kept(tmp_path) == ["people.ledger", "people.parquet", "people.yaml"]


def test_a_second_signal_does_not_stop_the_tidying_up(tmp_path: Path) -> None:
    code = f"""
import os, signal, sys
from attrpriv.engines.progress import tidied
with tidied():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGHUP)
        open({str(tmp_path / "done")!r}, "w").close()
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment(), timeout=60, check=False, capture_output=True)
    assert done.returncode == -signal.SIGTERM
    assert (tmp_path / "done").exists()


def test_a_program_with_a_handler_of_its_own_keeps_it() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        own = signal.getsignal(signal.SIGTERM)
        with tidied():
            assert signal.getsignal(signal.SIGTERM) is own
            os.kill(os.getpid(), signal.SIGTERM)
        assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_in_another_thread_nothing_is_handled() -> None:
    seen: list[object] = []

    def run() -> None:
        with tidied():
            seen.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout=60)
    assert seen == [before]
    with tidied():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def start(code: str, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", code, "view", "people.yaml", "--out", "rows.parquet", *more]
    return subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_hear
    )


def _hear() -> None:
    """A shell's background jobs ignore one of these signals, what `nohup` starts the other."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def met(child: subprocess.Popen[bytes], folder: Path, name: str) -> list[Path]:
    """Files of this name in the temporary folder, once one of them holds rows."""
    for _ in range(3000):
        found = [one for one in folder.glob(f".attrpriv-*/**/{name}") if one.is_file() and one.stat().st_size > 0]
        if found:
            return found
        assert child.poll() is None, child.communicate()
        time.sleep(0.02)
    raise AssertionError("no rows were met")


def end(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    if number == signal.SIGINT:
        assert (child.returncode, out) == (130, b""), err
    else:
        assert (child.returncode, out, err) == (-number, b"", b"")


def kept(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())
