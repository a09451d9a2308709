"""A policy file that is being written: read anew for each page, changed in place, and every change can be undone.

The file is the truth. Before a change, what it was is kept in a journal beside it (`.NAME.undo`), so that a server that was
killed loses nothing. What must never change: a change is made to the text that its author saw, or not at all; what makes the
policy wrong is refused with the policy's own words, while decisions that are still open (TODO) are not.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from attrpriv.errors import AttrprivError, PolicyError, UsageError
from attrpriv.policy import Policy
from attrpriv.policy.strict_yaml import MAX_BYTES, composed, load_strict
from attrpriv.studio.folder import Folder, digest_of

TODO = "TODO"
_MOST_STEPS = 200
_MOST_BYTES = 64 << 20  # of the journal; the oldest steps are forgotten first
Place = tuple[str | int, ...]


class StaleTextError(UsageError):
    """The file is not what it was when the page was shown."""

    kind = "stale"


STALE = (
    "policy: must be the one that this page showed. Got another: it was changed since, in another window or by an editor. "
    "Look at the page again, and decide again."
)


class Draft:
    """One policy file of a folder."""

    def __init__(self, folder: Folder, name: str) -> None:
        self.folder, self.name = folder, name
        self.path = folder.inside(name, "policy")
        if not self.path.is_file() or not name.lower().endswith((".yaml", ".yml")):
            raise UsageError("policy: must be a policy file of this folder. Got none of that name.")

    @property
    def text(self) -> str:
        """What the file says now."""
        with suppress(OSError, ValueError):  # also what is no UTF-8
            return _start_of(self.path, MAX_BYTES).decode("utf-8")
        raise PolicyError(f"{self.name}: must be text in UTF-8 of at most 4 MiB that can be read. Got a file that is not.")

    @property
    def digest(self) -> str:
        return digest_of(self.text)

    @property
    def stated(self) -> dict[str, Any]:
        """What it says, with every value as it is written; {} where it is no YAML."""
        return stated(self.text)

    @property
    def files(self) -> str:
        """What tells the files that it names from others of their names, or from what they are later."""
        return self.folder.state_of(self.stated)

    def policy(self) -> Policy:
        """The policy, where all is decided and right."""
        self.folder.require_inside(self.stated)
        policy = Policy.load(self.path)
        self.folder.require_ledger_inside(policy)
        return policy

    def problem(self) -> AttrprivError | None:
        """What is wrong with it, if anything."""
        try:
            self.policy()
        except AttrprivError as error:
            return error
        return None

    # ------------------------------------------------------------------------------------------------------- changing it

    def change(self, seen: str, text: str) -> None:
        """Write this text instead of the one that was seen."""
        before = self._seen(seen)
        if text == before:
            return
        wrong = self._wrong(text)
        known = self._wrong(before)
        if wrong is not None and TODO not in str(wrong) and str(wrong) != str(known):
            raise wrong
        with writing("policy"):
            self._keep([*self._kept(), before][-_MOST_STEPS:])
            self._write(text)

    def undo(self, seen: str) -> None:
        """Take the last change back."""
        self._seen(seen)
        kept = self._kept()
        if not kept:
            raise UsageError("undo: nothing was changed here yet.")
        with writing("policy"):
            self._write(kept[-1])
            self._keep(kept[:-1])

    @property
    def steps(self) -> int:
        """How many changes can be undone."""
        return len(self._kept())

    def _seen(self, seen: str) -> str:
        now = self.text
        if digest_of(now) != seen:
            raise StaleTextError(STALE)
        return now

    def _wrong(self, text: str) -> AttrprivError | None:
        """What is wrong with a text in the place of this file."""
        beside: Path | None = None
        try:
            load_strict(text, where=self.name)
            self.folder.require_inside(stated(text))
            with writing("policy"):
                beside = _beside(self.path, text)
            Policy.load(beside)
        except AttrprivError as error:
            return error
        finally:
            if beside is not None:
                beside.unlink(missing_ok=True)
        return None

    def _write(self, text: str) -> None:
        """In one step: a server that is killed leaves the old text or the new one."""
        place = self.path.resolve()
        _put(place, text, like=place)

    @property
    def _journal(self) -> Path:
        return self.path.with_name(f".{self.name}.undo")

    def _kept(self) -> list[str]:
        if self._journal.is_symlink() or not self._journal.is_file():  # nothing that this module has written
            return []
        try:
            found = json.loads(_start_of(self._journal, _MOST_BYTES))
        except (OSError, ValueError, RecursionError):
            return []
        return found if isinstance(found, list) and all(isinstance(one, str) for one in found) else []

    def _keep(self, texts: list[str]) -> None:
        while len(said := json.dumps(texts)) > _MOST_BYTES:
            texts = texts[1:]
        _put(self._journal, said)


def _start_of(place: Path, most: int) -> bytes:
    """The content of a file that is not longer than that."""
    with place.open("rb") as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise ValueError("longer")
    return found


@contextmanager
def writing(key: str) -> Iterator[None]:
    """What an operating system says of a file that it does not write, in words of ours."""
    with suppress(OSError):
        yield
        return
    raise UsageError(
        f"{key}: must be in a folder that can be written. Got one that cannot. Look at its permissions and its room."
    )


def _put(place: Path, text: str, like: Path | None = None) -> None:
    """A file of this text, with the permissions of another one."""
    beside = _beside(place, text)
    try:
        if like is not None:
            shutil.copymode(like, beside)
        os.replace(beside, place)
    finally:
        beside.unlink(missing_ok=True)


def _beside(place: Path, text: str) -> Path:
    """A new file beside this one, of a name that nobody can know: where a known name is, a link may lead out of the folder."""
    number, name = tempfile.mkstemp(prefix=f".{place.name}.", suffix=".new", dir=place.parent)
    with os.fdopen(number, "wb") as file:
        file.write(text.encode())
    return Path(name)


def stated(text: str) -> dict[str, Any]:
    """A policy's text as mappings, lists and words, each word as it is written; nothing of what no policy may say.

    An alias stands for as much as its author likes, a hundred of them for more than any memory holds.
    """
    try:
        node = composed(text)
    except (yaml.YAMLError, AttrprivError, ValueError, OverflowError, RecursionError):
        return {}
    found = None if node is None else _plain(node)
    return found if isinstance(found, dict) else {}


def _plain(node: yaml.Node, depth: int = 0) -> Any:
    if depth > 50:
        return ""
    if isinstance(node, yaml.MappingNode):
        return {str(_plain(key, depth + 1)): _plain(value, depth + 1) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(one, depth + 1) for one in node.value]
    return str(node.value)


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Every word and every short list of words, with its place."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, (*place, key))
    elif isinstance(value, list) and not all(isinstance(one, str) for one in value):
        for k, one in enumerate(value):
            yield from leaves(one, (*place, k))
    else:
        yield place, ", ".join(value) if isinstance(value, list) else str(value)


def written(place: Place) -> str:
    """A place as messages write it.

    >>> written(("assume", "sd", "income")), written(("protect", 0, "between"))
    ('assume.sd.income', 'protect[0].between')
    """
    return "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in place).removeprefix(".")
