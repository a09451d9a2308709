"""The command line: thin, on top of `Session`. One module for the commands, one for how things look."""

from attrpriv.cli.app import main

__all__ = ["main"]
