"""The command line: thin, on top of `Session`. One module for the commands, one for how things look."""

from attrpriv.cli import interrupt

__all__ = ["main"]


def main() -> None:
    """The entry point of the `attrpriv` command. Everything else is imported once Ctrl-C is taken care of."""
    outcome: BaseException | None = None
    interrupt.begin()
    try:
        from attrpriv.cli.app import main as run

        run()
    except BaseException as error:
        outcome = error
        raise
    finally:
        interrupt.end(outcome)
