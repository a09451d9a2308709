"""The command line: thin, on top of `Session`. Here a command begins and ends; `app` has the commands.

Ctrl-C, from the first line of a command to its last: one line on stderr, one JSON document if asked, exit code 130.

    starting    imports and the command line: nothing was done yet, so the process ends at once
    working     KeyboardInterrupt, as in any program: what was begun is undone on the way out, and `guarded` says so
    ending      the answer or the error is on its way out, and nothing comes after it: Ctrl-C is too late and ignored

What must never change: this is installed by a command alone, never by an import, and where Ctrl-C is ignored from outside
(`nohup`, a job in the background) it stays ignored. Next to nothing is imported here, because what comes before
`begin` is not covered.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Literal

# What a shell says of a command that Ctrl-C ended.
STOPPED = 130
# A list may be released one after the other, and fail on the way.
BEFORE = "What was released before that, if anything, is in the ledger."
_LINE = f"stopped. {BEFORE}"
_DOCUMENT = f"""{{
  "schema_version": 1,
  "error": {{
    "kind": "stopped",
    "message": "{_LINE}",
    "exit_code": {STOPPED}
  }}
}}
"""


class _State:
    phase: Literal["starting", "working", "ending"] = "starting"
    pressed: bool = False
    said: bool = False


def main() -> None:
    """The entry point of the `attrpriv` command. Everything else is imported once Ctrl-C is taken care of."""
    outcome: BaseException | None = None
    # Threads of linear algebra wait for work in a loop before they sleep, for .06 s of processor time; a command has little.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")
    begin()
    try:
        from attrpriv.cli.app import main as run

        run()
    except BaseException as error:
        outcome = error
        raise
    finally:
        end(outcome)


def begin() -> None:
    """From here on Ctrl-C is ours, unless somebody has it ignored."""
    _State.phase, _State.pressed, _State.said = "starting", False, False
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _press)
        sys.unraisablehook = _unraised


def work() -> None:
    """From here on Ctrl-C is an exception."""
    _State.phase = "working"


def answer() -> None:
    """From here on it is too late: what is printed now is the last thing."""
    _State.phase, _State.said = "ending", True


def pressed() -> bool:
    """Whether Ctrl-C was pressed: whatever fails after that fails because of it."""
    return _State.pressed


def end(outcome: BaseException | None) -> None:
    """The command is over; an interrupt that came just before or after the work, and was told to nobody, is told here."""
    _State.phase = "ending"
    told = outcome is None or (isinstance(outcome, SystemExit) and (_State.said or outcome.code != STOPPED))
    if _State.pressed and not told:
        _stop()
    if signal.getsignal(signal.SIGINT) is _press:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # also while Python takes itself down


def _press(number: int, frame: FrameType | None) -> None:
    _State.pressed = True
    if _State.phase == "starting":
        _stop()
    if _State.phase == "working":
        raise KeyboardInterrupt


def _stop() -> None:
    """Say it, past everything that may be half imported or half written, and end."""
    document = "--json" in sys.argv[1:] and not _State.said
    for descriptor, text in ((1, _DOCUMENT if document else ""), (2, f"attrpriv: {_LINE}\n")):
        try:  # noqa: SIM105 - contextlib may be half imported
            os.write(descriptor, text.encode())
        except OSError:  # closed
            pass
    os._exit(STOPPED)


def _unraised(found: sys.UnraisableHookArgs) -> None:
    """An interrupt inside a destructor goes nowhere: it is sent again, a little later."""
    if found.exc_type is KeyboardInterrupt:
        import threading

        threading.Timer(0.02, _press_again).start()
    else:
        sys.__unraisablehook__(found)


def _press_again() -> None:
    """To the main thread, whose wait it ends: one that another thread raises for itself is heard when that wait is over."""
    import threading

    main = threading.main_thread().ident
    if sys.platform != "win32" and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)
