"""A mutant is tried: planted in loaded modules of a copy of the process, and what is found there once more in changed source.

Tests are collected once. Each mutant has a copy of the process that did (a fork), in which its function gets another code; the
tests that may see it run there until one fails. What was computed while modules were loaded is not computed again, so that both
answers are asked once more of a new process that imports changed source: whether the one test fails, or whether any does.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from scripts.mutants.covering import KEPT, files_of, seconds_of_tests, tests_of
from scripts.mutants.planting import ROOT, SOURCE, TESTED, Mutant

MEMORY = 6 << 30
# Of a processor's time, which another process on the machine does not use up: what one test has beyond ten times its own.
SECONDS_OF_A_TEST, PATIENCE = 20.0, 20
QUIET = ("-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", "-m", "")


@dataclass(frozen=True)
class Outcome:
    """found, survived or not covered, and the test that failed."""

    said: str
    by: str = ""


def try_all(mutants: Sequence[Mutant], jobs: int, seconds: float, *, again: bool) -> list[Outcome]:
    """What became of each; `again`: each answer is asked of changed source, too."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).with_suffix("").as_posix()
        if name.startswith(TESTED):
            importlib.import_module("attrpriv." + name.replace("/", ".").removesuffix(".__init__"))
    for slot in range(jobs if again else 0):
        shutil.rmtree(KEPT / f"source{slot}", ignore_errors=True)
        shutil.copytree(ROOT / "src", KEPT / f"source{slot}", ignore=shutil.ignore_patterns("__pycache__"))
    tries = Tries(mutants, jobs, seconds, again=again)
    code = pytest.main([*QUIET, "-p", "no:terminal", *files_of(mutants)], plugins=[tries])
    if len(tries.outcomes) < len(mutants):
        raise SystemExit(f"The tests could not be collected: pytest's exit code is {int(code)}.")
    finders = sorted({one.by for one in tries.outcomes.values() if "::" in one.by})
    if finders and fails(finders, ROOT / "src", sum(seconds_of_tests().get(name, 1.0) for name in finders)):
        raise SystemExit("The tests must pass where nothing was planted.")
    return [tries.outcomes[k] for k in range(len(mutants))]


@dataclass
class Running:
    """A copy of the process with one mutant."""

    which: int
    slot: int
    answer: int
    began: float = field(default_factory=time.monotonic)


class Tries:
    """In the place of pytest's own loop over all tests: a loop over mutants."""

    def __init__(self, mutants: Sequence[Mutant], jobs: int, seconds: float, *, again: bool) -> None:
        self.mutants, self.jobs, self.seconds, self.again = mutants, jobs, seconds, again
        self.outcomes: dict[int, Outcome] = {}
        self.items: Mapping[str, pytest.Item] = {}
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        gc.collect()
        waiting = list(range(len(self.mutants)))[::-1]
        running: dict[int, Running] = {}
        while waiting or running:
            free = set(range(self.jobs)) - {one.slot for one in running.values()}
            if waiting and free:
                self._start(waiting.pop(), free.pop(), running)
                continue
            child, status = os.waitpid(-1, os.WNOHANG)
            if child in running:
                self._end(running.pop(child), status)
            elif child == 0:
                self._stop_late(running)
                time.sleep(0.02)
        return True

    def _start(self, which: int, slot: int, running: dict[int, Running]) -> None:
        answer, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(answer)
            self._child(self.mutants[which], slot, write)
        os.close(write)
        running[child] = Running(which, slot, answer)

    def _stop_late(self, running: Mapping[int, Running]) -> None:
        for child, one in running.items():
            if time.monotonic() - one.began > PATIENCE * (2 * self.seconds + SECONDS_OF_A_TEST):
                os.killpg(child, signal.SIGKILL)

    def _end(self, one: Running, status: int) -> None:
        with os.fdopen(one.answer) as answer:
            lines = answer.read().splitlines()
        # A test that does not end where the code does was stopped, which is a find; what ended otherwise tells nothing.
        ended = Outcome("found", "never ended") if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF else None
        told = Outcome(*lines[-1].split("\t")) if lines and not os.WIFSIGNALED(status) else Outcome("stuck", f"status {status}")
        self.outcomes[one.which] = outcome = ended or told
        mutant = self.mutants[one.which]
        line = f"{len(self.outcomes)}/{len(self.mutants)} {outcome.said}: line {mutant.line} of {mutant.exact}  [{outcome.by}]"
        print(line, file=sys.stderr, flush=True)

    def _child(self, mutant: Mutant, slot: int, write: int) -> None:
        """Never comes back."""
        outcome = Outcome("stuck", "planting")
        try:
            os.setpgid(0, 0)
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nothing, stream)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            names = tests_of(mutant, self.items)
            outcome = self._tried(mutant, names)
            if self.again and names:
                outcome = self._in_source(mutant, slot, names, outcome)
        except BaseException as error:  # a copy of the process must end here, whatever a test did to it
            outcome = Outcome("stuck", type(error).__name__)
        finally:
            os.write(write, f"{outcome.said}\t{outcome.by}\n".encode())
            os._exit(0)

    def _tried(self, mutant: Mutant, names: Sequence[str]) -> Outcome:
        if not names:
            return Outcome("not covered")
        if not plant(mutant):
            return Outcome("survived", "could not be planted in loaded modules")
        forget()
        began = time.process_time()
        for name in names:
            signal.setitimer(signal.ITIMER_PROF, SECONDS_OF_A_TEST + 10 * seconds_of_tests().get(name, 1.0))
            item = self.items[name]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            if self.failed:
                return Outcome("found", name)
            if time.process_time() - began > self.seconds:
                break
        return Outcome("survived")

    def _in_source(self, mutant: Mutant, slot: int, names: Sequence[str], before: Outcome) -> Outcome:
        """The same asked of a process that imports changed source: of the one test that failed, or of as many as were run."""
        place = KEPT / f"source{slot}"
        target = place / "attrpriv" / mutant.module
        target.write_text(mutant.text, encoding="utf-8")
        try:
            if before.said == "found" and fails([before.by], place, self.seconds):
                return before
            few = names[: cut(names, self.seconds)]
            return Outcome("found", "in changed source") if fails(few, place, self.seconds) else Outcome("survived", before.by)
        finally:
            target.write_bytes((SOURCE / mutant.module).read_bytes())


def fails(names: Sequence[str], place: Path, seconds: float) -> bool:
    """Whether one of these tests fails, or does not end, in a new process that imports the source in `place`."""
    most = int(SECONDS_OF_A_TEST + 10 * seconds)
    told = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", *QUIET, "-x", "-q", *names]
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env=told,
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (most, most)),
    )
    return ended.returncode != 0


def cut(names: Sequence[str], seconds: float) -> int:
    """How many of these tests take about so long."""
    total = 0.0
    for k, name in enumerate(names):
        total += seconds_of_tests().get(name, 0.1)
        if total > seconds:
            return k + 1
    return len(names)


def plant(mutant: Mutant) -> bool:
    """Give the function another code, wherever it is used."""
    file = str(SOURCE / mutant.module)
    new = next(functions_around(compile(mutant.text, file, "exec", dont_inherit=True), mutant.line), None)
    if new is None:
        return False
    found = [one for one in gc.get_objects() if type(one) is FunctionType and _same(one.__code__, new)]
    for function in found:
        if len(function.__code__.co_freevars) != len(new.co_freevars):
            return False
        function.__code__ = new
    return bool(found)


def forget() -> None:
    """Nothing that was computed before is remembered."""
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper):
            one.cache_clear()


def _same(code: CodeType, new: CodeType) -> bool:
    return (code.co_filename, code.co_qualname, code.co_firstlineno) == (new.co_filename, new.co_qualname, new.co_firstlineno)


def functions_around(code: CodeType, line: int) -> Iterator[CodeType]:
    """The outermost function around a line, of a module or of the classes in it."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            if not one.co_flags & inspect.CO_OPTIMIZED:  # the body of a class
                yield from functions_around(one, line)
            elif one.co_firstlineno <= line <= _last_line(one):
                yield one


def _last_line(code: CodeType) -> int:
    own = [number for _, _, number in code.co_lines() if number]
    return max([*own, *(_last_line(one) for one in code.co_consts if isinstance(one, CodeType))], default=0)
