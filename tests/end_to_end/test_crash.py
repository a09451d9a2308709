"""Releases that are killed at random moments lose nothing and show nothing that is not recorded; neither do full disks."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from attrpriv.accounting.ledger import Ledger
from attrpriv.accounting.standing import LedgerState
from attrpriv.session.record import recheck
from tests.conftest import ROOT
from tests.end_to_end.material import attrpriv, environment, school
from tests.end_to_end.race import SPEND
from tests.unit.accounting.places import KINDS, URL, Place

ONCE = "import sys; sys.argv[0] = 'attrpriv'; from attrpriv.cli import main; main()"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trials", [50, pytest.param(500, marks=pytest.mark.slow)])
def test_killed_at_random_moments(kind: str, trials: int, tmp_path: Path) -> None:
    if kind == "postgres" and URL is None:
        pytest.skip("needs ATTRPRIV_TEST_POSTGRES")
    place = str(URL) if kind == "postgres" else str(tmp_path / "x")
    command = [sys.executable, "-m", "tests.end_to_end.crash", str(tmp_path), place, str(trials), "1"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(OPENBLAS_NUM_THREADS="1"), capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for one in found["places"]:
        Place(one).remove()
    told: list[dict[str, Any]] = found["trials"]
    killed = [one for one in told if one["killed"]]
    assert len(killed) == trials
    # Not a formality: a fifth was killed before the entry was there and a fifth after, also where a ledger was being continued.
    waited = {moment: [one for one in told if one["moment"] == moment] for moment in ("before", "after")}
    for moment, those in waited.items():
        assert all(one["killed"] and not one["shown"] and one["recorded"] == (moment == "after") for one in those)
        assert len(those) >= trials // 5
        assert sum(not one["first"] for one in those) > trials / 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_eight_processes_release_at_once(kind: str, tmp_path: Path) -> None:
    """All of it together keeps the budget, no entry is lost, and one question has one answer, whoever asked it."""
    count = 201
    if kind == "postgres" and URL is None:
        pytest.skip("needs ATTRPRIV_TEST_POSTGRES")
    place = str(URL) if kind == "postgres" else str(tmp_path / "x.ledger")
    command = [sys.executable, "-m", "tests.end_to_end.race", str(tmp_path), place, "8", str(count)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    ledger = Ledger(found["place"])
    entries, seen = ledger.entries(), found["seen"]
    assert not any("error" in one for one in seen), seen
    assert all(len(one) >= (count - 1) // 8 for one in seen)
    assert ledger.verify().entries == recheck("record", entries).certificates == len(entries) >= count
    answers = [(entry.answers[0]["query"], entry.answers[0]["value"]) for entry in entries]
    recorded = dict(answers)
    assert len(recorded) == len(answers), "no question was answered twice"
    assert all(recorded[query] == value for one in seen for query, value in one.items()), "what was shown is recorded"
    left = ledger.look(LedgerState.of).left(0.5, 0.0)
    assert left == pytest.approx((1 - SPEND) ** len(entries), rel=1e-6), "each spent its share of what the others left"
    who = [next((k for k, one in enumerate(seen) if query in one), None) for query, _ in answers]
    assert sum(a != b for a, b in pairwise(who)) > 8, "they did race"
    Place(found["place"]).remove()


def run(code: str, folder: Path, *arguments: str, size: int | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run Python in a process of its own; no file may grow beyond `size` bytes."""

    def limit() -> None:
        if size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, timeout=120, check=False, preexec_fn=limit
    )


@pytest.mark.parametrize("size", [0, pytest.param(8192, marks=pytest.mark.slow)])
def test_a_disk_without_room_releases_nothing(size: int, tmp_path: Path) -> None:
    school(tmp_path)
    done = run(ONCE, tmp_path, "release", "students.yaml", size=size)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"attrpriv: ledger 'students.ledger': must ")
    assert done.stderr.count(b"\n") == 1
    assert sorted(one.name for one in tmp_path.iterdir()) == ["students.parquet", "students.yaml"]
    assert attrpriv("release", "students.yaml", folder=tmp_path).returncode == 0


def test_a_disk_without_room_for_another_entry_keeps_the_ledger(tmp_path: Path) -> None:
    """The recorded answer is still told, and an entry that does not fit is not there."""
    school(tmp_path)
    ledger = Ledger(tmp_path / "students.ledger")
    assert attrpriv("release", "students.yaml", folder=tmp_path).returncode == 0
    before = ledger.entries()
    size = (tmp_path / "students.ledger").stat().st_size
    code = """
from attrpriv.accounting.ledger import Ledger
Ledger("students.ledger").commit(time="t", policy_digest="ab", plan={}, answers="x" * 100_000, allowed=lambda _: None)
"""
    done = run(code, tmp_path, size=size + 4096)
    assert b"UsageError: ledger 'students.ledger': must " in done.stderr
    assert ledger.entries() == before


AUDITOR = """
import os
from attrpriv.accounting.ledger import Ledger
from attrpriv.errors import UsageError

ledger = Ledger("students.ledger")
os.setuid(65534)
print(ledger.verify().head)
try:
    ledger.commit(time="t", policy_digest="ab", plan={}, answers=[], allowed=lambda _: None)
except UsageError as error:
    print(error)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_somebody_who_may_only_read_reads_everything_and_releases_nothing() -> None:
    """An auditor: neither the file nor its directory can be written."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        school(folder)
        assert attrpriv("release", "students.yaml", folder=folder).returncode == 0
        (entry,) = Ledger(folder / "students.ledger").entries()
        folder.chmod(0o755)
        (folder / "students.ledger").chmod(0o644)
        done = run(AUDITOR, folder)
        assert sorted(one.name for one in folder.iterdir()) == ["students.ledger", "students.parquet", "students.yaml"]
    head, refused = done.stdout.decode().splitlines()
    assert head == entry.digest
    assert "must be a file that can be read and written" in refused


def test_the_check_after_a_crash_is_able_to_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that shows a value before it is recorded is caught by what `crash.trial` asserts."""
    from tests.end_to_end import crash

    answers: list[tuple[Any, bool, float]] = [({"value": 1.0, "digest": "ab", "recorded": False}, True, 0.0)]
    monkeypatch.setattr(crash, "forked", lambda *_, **__: answers[0])
    with pytest.raises(AssertionError):
        crash.trial(tmp_path, str(tmp_path / "x.ledger"), 0.0, "commit")
