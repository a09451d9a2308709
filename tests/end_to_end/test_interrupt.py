"""Ctrl-C at any moment of a command: no traceback, exit code 130, and with --json one document.

Every module that a command imports is a moment at which it can come; so is the end, when the answer is being printed.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.material import contents, environment, school

LINE = "stopped. What was released before that, if anything, is in the ledger."
DOCUMENT = {"schema_version": 1, "error": {"kind": "stopped", "message": LINE, "exit_code": 130}}
PROGRAM = """
import signal, sys
def press(): signal.raise_signal(signal.SIGINT)
signal.signal(signal.SIGINT, signal.{handler})  # a job in the background may have it ignored
sys.argv[0] = "attrpriv"
{first}
from attrpriv.cli import main
main()
"""
AT_IMPORT = """
class Importing:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            press()
sys.meta_path.insert(0, Importing())
"""
BEFORE_THE_GUARD = ("attrpriv.cli.app", "typer", "pydantic", "attrpriv.cli.render", "attrpriv.methods.choice.choose")
AFTER = ("numpy", "scipy.special", "pyarrow.parquet", "duckdb", "opendp")


def run(
    folder: Path, *arguments: str, first: str = "", handler: str = "default_int_handler"
) -> subprocess.CompletedProcess[str]:
    program = PROGRAM.format(first=first, handler=handler)
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("school")
    school(folder)
    return folder


@pytest.mark.parametrize("name", [*BEFORE_THE_GUARD, *AFTER])
def test_ctrl_c_at_an_import(name: str, here: Path) -> None:
    before = contents(here)
    found = run(here, "release", "students.yaml", "--json", first=AT_IMPORT.format(name=name))
    assert (found.returncode, found.stderr) == (130, f"attrpriv: {LINE}\n")
    assert json.loads(found.stdout) == DOCUMENT
    assert contents(here) == before


@pytest.mark.parametrize("name", ["typer", "numpy"])
def test_people_get_one_line(name: str, here: Path) -> None:
    found = run(here, "check", "students.yaml", first=AT_IMPORT.format(name=name))
    assert (found.returncode, found.stdout, found.stderr) == (130, "", f"attrpriv: {LINE}\n")


def test_a_library_that_makes_another_error_of_it(here: Path) -> None:
    code = """
import attrpriv.session.table_reads as reads
def failing(*_):
    try: press()
    except KeyboardInterrupt: raise ImportError("half imported") from None
reads.open_table = failing
"""
    found = run(here, "check", "students.yaml", "--json", first=code)
    assert (found.returncode, json.loads(found.stdout)) == (130, DOCUMENT)
    assert found.stderr == f"attrpriv: {LINE}\n"


def test_an_interrupt_that_goes_nowhere_comes_again(here: Path) -> None:
    """An exception inside a destructor is printed and dropped; what is waited for then is not waited out."""
    code = """
import time
import attrpriv.session.table_reads as reads
class Dying:
    def __del__(self): press()
def slow(*_):
    Dying()
    time.sleep(3_600)
reads.open_table = slow
"""
    found = run(here, "check", "students.yaml", "--json", first=code)
    assert (found.returncode, json.loads(found.stdout)) == (130, DOCUMENT)
    assert found.stderr == f"attrpriv: {LINE}\n"


@pytest.mark.parametrize(("moment", "only"), [("json.dumps", "options.get('indent') == 2"), ("sys.exit", "True")])
def test_it_is_too_late_once_the_answer_is_on_its_way(moment: str, only: str, here: Path) -> None:
    code = f"""
import json
real = {moment}
def pressed(*arguments, **options):
    if {only}: press()
    return real(*arguments, **options)
{moment} = pressed
"""
    found = run(here, "check", "students.yaml", "--json", first=code)
    assert (found.returncode, found.stderr) == (0, "")
    assert "error" not in json.loads(found.stdout)


def test_just_after_the_guard_it_is_told_once(here: Path) -> None:
    """Where nothing was printed yet, by the command's very end."""
    code = """
import contextlib
import attrpriv.cli.app as app
import attrpriv.cli
@contextlib.contextmanager
def open_guard(as_json):
    attrpriv.cli.work()
    press()
    yield
app.guarded = open_guard
"""
    found = run(here, "check", "students.yaml", "--json", first=code)
    assert (found.returncode, json.loads(found.stdout)) == (130, DOCUMENT)
    assert found.stderr == f"attrpriv: {LINE}\n"


def test_where_it_is_ignored_it_stays_ignored(here: Path) -> None:
    found = run(here, "check", "students.yaml", "--json", first=AT_IMPORT.format(name="typer"), handler="SIG_IGN")
    assert (found.returncode, found.stderr) == (0, "")


def test_an_import_installs_nothing() -> None:
    before = signal.getsignal(signal.SIGINT), sys.unraisablehook
    import attrpriv.cli.app
    import attrpriv.cli.guard  # noqa: F401

    assert (signal.getsignal(signal.SIGINT), sys.unraisablehook) == before
