"""The folder that a studio was started for: its tables and policies, and nothing outside of it.

What must never change: a place is resolved, with all its links, before it is looked at, and what lies outside is refused
without a word on whether it is there.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attrpriv.errors import PolicyError, UsageError
from attrpriv.formatting import printable
from attrpriv.policy import Policy
from attrpriv.policy.strict_yaml import read_strict
from attrpriv.problem.places import WILD, files_of, is_pattern, is_remote, is_url, usable

TABLES = (".parquet", ".csv")
_POLICY = re.compile(r"^(protect|data):", flags=re.MULTILINE)
_MOST_BYTES = 1 << 20
# Of an assumption or a reference: what names a file.
_NAMES = ("file", "network", "further")


@dataclass(frozen=True)
class Folder:
    """A directory, resolved."""

    root: Path

    @classmethod
    def of(cls, place: Path) -> Folder:
        if not place.is_dir():
            raise UsageError(f"folder: must be a folder that is there. Got {printable(str(place))}.")
        return cls(place.resolve())

    def inside(self, name: str, key: str = "file") -> Path:
        """The place of this name, where it is in the folder after every link is followed."""
        wrong = not name or "\0" in name
        try:
            found = self.root if wrong else (self.root / usable(key, name)).resolve()
        except (OSError, RuntimeError, ValueError):  # a circle of links
            wrong = True
        if wrong or found == self.root or not found.is_relative_to(self.root):
            raise UsageError(f"{key}: must be in the folder of the studio. Copy it there, or start the studio for its folder.")
        if _is_special(found):
            raise UsageError(f"{key}: must be a file. Got a pipe, a socket or a device. Name a file.")
        return self.root / name

    def all_inside(self, name: str, key: str) -> tuple[Path, ...]:
        """The files of a name or a pattern, each of them in the folder; none where there are none."""
        if not is_pattern(self.root / name):
            return files_of(self.inside(name, key))
        pattern = Path(name)
        if set(WILD) & set(str(pattern.parent)) or "**" in pattern.name:  # links would be followed wherever they lead
            raise UsageError(
                f"{key}: a pattern must have its stars in the file's name alone. Got one with a star for folders. Use the "
                "command line for these."
            )
        self.inside(str(pattern.with_name("x")), key)
        return tuple(self.inside(str(found), key) for found in files_of(self.root / name))

    def tables(self) -> list[str]:
        """The names of its tables."""
        return [name for name in self._names() if name.lower().endswith(TABLES)]

    def policies(self) -> list[str]:
        """The names of its policy files; an assumption that was fitted is none."""
        return [name for name in self._names() if name.lower().endswith((".yaml", ".yml")) and self._is_policy(name)]

    def _names(self) -> Iterator[str]:
        for path in sorted(self.root.iterdir()):
            if not path.name.startswith(".") and path.is_file() and path.resolve().is_relative_to(self.root):
                yield path.name

    def _is_policy(self, name: str) -> bool:
        place = self.root / name
        try:
            return place.stat().st_size <= _MOST_BYTES and bool(_POLICY.search(place.read_text(encoding="utf-8")))
        except (OSError, UnicodeError):
            return False

    def require_inside(self, stated: Mapping[str, Any]) -> None:
        """An error where a policy names a place outside; what it names is looked at only after this."""
        for key, place in _places(stated):
            if is_url(place) or is_remote(place):
                raise UsageError(f"{key}: must be a file in the folder of the studio. Use the command line for databases.")
            self.all_inside(place, key)
        for name in _assumption_files(stated):
            said: object = None
            with suppress(PolicyError):  # it is told when the policy is read
                said = read_strict(self.inside(name, "assume"))
            if isinstance(said, dict) and any(_places({"assume": said})):
                raise UsageError(
                    "assume: the file of an assumption must name no further file. Write it into the policy itself."
                )

    def state_of(self, stated: Mapping[str, Any]) -> str:
        """A digest of which files a policy reads, and when they were changed: another file, or one that was written since, has
        another one. Of a ledger the entries tell that."""
        names = sorted({place for key, place in _places(stated) if key != "ledger"})
        return digest_of(repr([(name, [_state(file) for file in files_of(self.root / name)]) for name in names]))

    def require_ledger_inside(self, policy: Policy) -> None:
        """The same of the ledger, also where it has the name that nobody wrote: a file of this name may be a link."""
        place = policy.ledger_path()
        if isinstance(place, Path):
            self.inside(str(place), "ledger")

    def new_name(self, stem: str, ending: str) -> str:
        """A name that is not taken."""
        taken = {path.name for path in self.root.iterdir()}
        return next(one for k in range(1, 10_000) if (one := f"{stem}{'' if k == 1 else f'-{k}'}{ending}") not in taken)


def _places(stated: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a policy says where files are."""
    for key in ("data", "ledger"):
        if isinstance(stated.get(key), str):
            yield key, stated[key]
    for key in ("assume", "reference"):
        members = stated.get(key)
        for member in members if isinstance(members, list) else [members]:
            for name in _NAMES if isinstance(member, dict) else ():
                found = member.get(name) if isinstance(member, dict) else None
                yield from ((key, one) for one in (found if isinstance(found, list) else [found]) if isinstance(one, str))


def _assumption_files(stated: Mapping[str, Any]) -> Iterator[str]:
    members = stated.get("assume")
    for member in members if isinstance(members, list) else [members]:
        if isinstance(member, dict) and set(member) == {"file"} and isinstance(member["file"], str):
            yield member["file"]


def _is_special(place: Path) -> bool:
    """Whether this is a pipe, a socket or a device: whoever opens one may wait for ever."""
    with suppress(OSError):
        mode = place.stat().st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return False


def _state(file: Path) -> tuple[str, tuple[int, ...] | None]:
    """The time of change, unlike that of the contents, cannot be set back."""
    with suppress(OSError, ValueError):
        found = os.stat(file)
        return str(file), (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return str(file), None


def digest_of(text: str) -> str:
    """What tells two versions of a file apart."""
    return hashlib.sha256(text.encode()).hexdigest()
