"""What a command says while it works and when something goes wrong: one line on stderr, one JSON document, an exit code.

What must never change: every failure has the same form, also of an option that cannot be read; an unexpected error prints its
type and no message, because an engine's message can quote a value of the table.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from attrpriv.cli import BEFORE, STOPPED, answer, pressed, work
from attrpriv.errors import AttrprivError, UsageError, Way

if TYPE_CHECKING:
    from rich.console import Console

    from attrpriv.problem.refusal import Refusal

# A pipe has no width of its own; in this one no sentence and no table wraps.
_PIPE_WIDTH = 10_000
_STOPPED = ("stopped", f"stopped. {BEFORE}", STOPPED)


@contextmanager
def guarded(as_json: bool) -> Iterator[None]:
    """One line on stderr (and a JSON document on stdout if asked) for whatever goes wrong, and its exit code."""
    ways: tuple[Way, ...] = ()
    causes: tuple[Refusal, ...] = ()
    refusals: dict[str, Any] = {}
    try:
        work()
        yield
        sys.stdout.flush()
        return
    except AttrprivError as error:
        kind, message, code = error.kind, str(error), error.exit_code
        ways, causes, refusals = error.ways, error.causes, refusals_of(error)
    except (BrokenPipeError, typer.Exit):
        raise
    except (KeyboardInterrupt, typer.Abort):  # Abort: the input ended at a question, as by Ctrl-D
        kind, message, code = _STOPPED
    except Exception as error:  # its message may quote the table
        kind, code = "unexpected", 1
        message = f"unexpected {type(error).__name__}. {BEFORE} Please report it with the command you used."
    answer()
    if pressed():  # a library may have made another error of it
        (kind, message, code), ways, causes, refusals = _STOPPED, (), (), {}
    try:
        if as_json:
            print_json({"schema_version": 1, "error": {"kind": kind, "message": message, "exit_code": code, **refusals}})
        sys.stdout.flush()
    except OSError:
        _give_up_stdout()
    from attrpriv.cli import render

    render.complain(message, ways, () if as_json else causes)
    raise typer.Exit(code)


def refusals_of(error: AttrprivError | None) -> dict[str, Any]:
    """Why mechanisms refused, as data: one cause for each query, and every mechanism's; nothing where none was asked."""
    if error is None or not error.refusals:
        return {}
    return {"causes": [one.to_json() for one in error.causes], "refusals": [one.to_json() for one in error.refusals]}


class _NotShownError(AttrprivError):
    """The answer exists and the ledger holds it, but it could not be printed."""

    kind = "not_shown"


@contextmanager
def showing(number: int) -> Iterator[None]:
    """From here on the answer is released: what fails now must not be reported as if nothing had been."""
    try:
        yield
        sys.stdout.flush()
        return
    except Exception as error:
        problem = type(error).__name__
    raise _NotShownError(
        f"the answer was released but could not be printed ({problem}). Entry {number} of the ledger holds it."
    )


def _give_up_stdout() -> None:
    """A full disk or a closed pipe: Python would try again when it ends, and complain in its own words."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends


def print_json(document: Any) -> None:
    """One document on stdout, and nothing after it."""
    answer()
    readable = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False, ensure_ascii=not readable) + "\n")


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    # A column may be called `:car:`, so that no word is read as an emoji; and `[red]`, so that every name is escaped.
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=False, emoji=False)


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on stderr for as long as something takes, with a bar where the engine takes over a second; silent in a pipe."""
    shown = console(stderr=True)
    if not shown.is_terminal:
        yield
        return
    from attrpriv.cli.lines import bar
    from attrpriv.engines.progress import watched

    with shown.status(f"{what} ...") as status, watched(lambda share, rows: status.update(bar(what, share, rows, shown.width))):
        yield


# What `plan --csv` tells of a mechanism.
PLAN_COLUMNS = (
    *("query", "mechanism", "chosen", "epsilon", "delta", "n"),
    *("noise.kind", "noise.scale", "error.rmse", "error.mean_absolute", "error.alpha95", "refused"),
)


def flat(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry without entries inside: `noise.scale` for the scale of its noise.

    >>> flat({"query": "avg(x)", "noise": {"kind": "laplace", "scale": 2}})
    {'query': 'avg(x)', 'noise.kind': 'laplace', 'noise.scale': 2}
    """
    told: dict[str, Any] = {}
    for key, value in entry.items():
        told |= {f"{key}.{inner}": cell for inner, cell in value.items()} if isinstance(value, Mapping) else {key: value}
    return told


def print_csv(header: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """One table on stdout, and nothing after it; a cell that a row has not is empty."""
    answer()
    writer = csv.DictWriter(sys.stdout, header, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


class Commands(TyperGroup):
    """All commands. An option or an argument that cannot be read is reported as everything else that goes wrong."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        given = sys.argv[1:] if args is None else args
        run = partial(super().main, args, prog_name, complete_var, windows_expand_args=windows_expand_args, **extra)
        if not given or not standalone_mode:
            return run(standalone_mode=standalone_mode)
        try:
            sys.exit(run(standalone_mode=False))
        except typer.TyperException as error:
            problem = _misuse(error)
        except UsageError as error:
            problem = str(error)
        try:
            with guarded(as_json="--json" in given):
                raise UsageError(problem)
        except typer.Exit as done:
            sys.exit(done.exit_code)


def _misuse(error: typer.TyperException) -> str:
    """What is wrong with the command line, and where its help is."""
    said, context = error.format_message().rstrip("."), getattr(error, "ctx", None)
    end = "" if said.endswith("?") else "."
    return f"{said[0].lower()}{said[1:]}{end} See `{'attrpriv' if context is None else context.command_path} --help`."


def number(name: str) -> Callable[[str], float]:
    """A number of the command line, with an error that says which one."""

    def read(text: str) -> float:
        try:
            return float(text)
        except ValueError:
            pass
        raise UsageError(f"{name}: must be a number, such as 0.5. Got {text!r}.")

    return read
