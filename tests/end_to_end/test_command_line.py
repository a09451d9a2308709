"""The command in a process of its own: pipes, terminals, odd encodings, full disks, and the exit codes a shell sees."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from attrpriv import __version__
from attrpriv.accounting.ledger import Ledger
from tests.end_to_end.material import (
    assume,
    attrpriv,
    contents,
    environment,
    policy,
    school,
    students,
    write_policy,
    write_table,
)

COMMAND = [sys.executable, "-c", "import sys; sys.argv[0] = 'attrpriv'; from attrpriv.cli import main; main()"]


def test_a_release_and_a_second_one(tmp_path: Path) -> None:
    hidden = [{"secret": "mean(income)", "between": [20_000, 200_000], "within": 5000}]  # takes the whole budget
    school(tmp_path, protect=hidden)
    first = attrpriv("release", "students.yaml", "--mechanism", "gaussian", "--json", folder=tmp_path)
    assert (first.returncode, first.stderr) == (0, b"")
    (entry,) = Ledger(tmp_path / "students.ledger").entries()
    assert json.loads(first.stdout)["answers"] == entry.answers
    before = contents(tmp_path)
    again = attrpriv("release", "students.yaml", "--json", folder=tmp_path)
    assert (again.returncode, again.stderr) == (0, b"")
    assert json.loads(again.stdout)["answers"] == entry.answers
    second = attrpriv("release", "students.yaml", "avg(income)", "--spend", "0.5", folder=tmp_path)
    assert (second.returncode, second.stdout) == (3, b"")
    assert second.stderr.startswith(b"attrpriv: ledger 'students.ledger': must have something left of the table's budget")
    assert second.stderr.count(b"\n") == 1
    assert contents(tmp_path) == before


def test_version_and_bad_usage(tmp_path: Path) -> None:
    done = attrpriv("--version", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"attrpriv {__version__}\n".encode(), b"")
    done = attrpriv("plan", "none.yaml", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"attrpriv: none.yaml: must be a text file of at most 4 MiB. Got no such file. Check the path.\n"


def test_an_unexpected_error_says_only_its_type(tmp_path: Path) -> None:
    school(tmp_path)
    broken = "def fail(*_): raise ValueError('PLANTED')\nimport attrpriv.session.table_reads as r; r.scan = fail"
    done = attrpriv("release", "students.yaml", folder=tmp_path, first=broken)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"attrpriv: unexpected ValueError. What was released before that, if anything,")
    assert done.stderr.count(b"\n") == 1
    assert b"PLANTED" not in done.stderr


def umlaut(folder: Path) -> None:
    """A school whose column name does not fit into ASCII."""
    write_table(folder, students().rename_columns(["größe", "income", "gender"]))
    spelled = assume(sd={"größe": 25, "income": 30_000}, correlation={"größe~income": 0.3})
    write_policy(folder, policy("resolution", assume=spelled, release=['avg("größe")']))


@pytest.mark.slow
def test_an_answer_survives_a_terminal_that_cannot_spell_it(tmp_path: Path) -> None:
    umlaut(tmp_path)
    done = attrpriv("release", "students.yaml", folder=tmp_path, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b'avg("gr\\xf6\\xdfe")' in done.stdout
    (tmp_path / "students.ledger").unlink()
    done = attrpriv("release", "students.yaml", "--json", folder=tmp_path, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout.decode("ascii"))["answers"][0]["query"] == 'avg("größe")'


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_an_answer_that_no_disk_takes_is_not_denied(tmp_path: Path) -> None:
    school(tmp_path)
    command = [*COMMAND, "release", "students.yaml", "--json"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment(), stdout=full, stderr=subprocess.PIPE, timeout=120, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"attrpriv: the answer was released but could not be printed (OSError).")
    assert done.stderr.count(b"\n") == 1
    assert len(Ledger(tmp_path / "students.ledger").entries()) == 1


def in_a_terminal(folder: Path, *arguments: str) -> tuple[bytes, bytes]:
    """What goes to a pipe and what to a terminal when only stderr is one."""
    reader, writer = pty.openpty()
    command = [*COMMAND, *arguments]
    with subprocess.Popen(
        command, cwd=folder, env=environment(TERM="xterm-256color"), stdout=subprocess.PIPE, stderr=writer
    ) as process:
        os.close(writer)
        seen = b""
        while True:
            try:
                part = os.read(reader, 10_000)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
        out, _ = process.communicate(timeout=120)
    os.close(reader)
    assert process.returncode == 0
    return out, seen


@pytest.mark.slow
def test_a_spinner_stays_out_of_the_document(tmp_path: Path) -> None:
    school(tmp_path)
    out, seen = in_a_terminal(tmp_path, "release", "students.yaml", "--json")
    assert json.loads(out)["answers"]
    assert b"\x1b" not in out
    assert b"reading the table once" in seen
    assert json.loads(out)["answers"][0]["query"].encode() not in seen
