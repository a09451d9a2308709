"""What a policy file may write that its model does not know: percentages, files of assumptions, and the word TODO.

A share may be given in percent, a mean, a sum or a count may not. A starter policy leaves decisions to its owner: a policy that
still says TODO anywhere is refused, also within a condition, because `share(smoker = 'TODO')` is a well-formed secret of which
no table has anything: without this it would hide nothing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrpriv.errors import PolicyError
from attrpriv.frozen.requirements import shown
from attrpriv.policy.strict_yaml import read_strict
from attrpriv.problem.assumption import Assumption

_SHARES = ("share(", "distribution(")


class Percent(float):
    """A number that was written with a percent sign."""


def without_percent(value: Any) -> Any:
    """The policy with plain numbers; `PolicyError` where a secret that is no share is given in percent."""
    if isinstance(value, dict) and isinstance(value.get("protect"), list):
        for place, secret in enumerate(value["protect"]):
            _require_share(place, secret)
    return _plain(value)


def _require_share(place: int, secret: Any) -> None:
    text = secret.get("secret", secret.get("parameter")) if isinstance(secret, dict) else None
    if text is None or str(text).strip().lower().startswith(_SHARES):
        return
    if "secret" in secret and "(" not in str(text):  # no statistic at all, which is said later
        return
    for key, given in secret.items():
        if _has_percent(given):
            raise PolicyError(
                f"protect[{place}].{key}: only a share may be given in percent. Got a percentage for {text}. "
                f"Write a number in the unit of {text}."
            )


def _has_percent(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_percent, value.values()))
    return any(map(_has_percent, value)) if isinstance(value, list) else isinstance(value, Percent)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        # Most of a long policy are mappings of plain numbers.
        kinds = {*map(type, value), *map(type, value.values())}
        return {_plain(key): _plain(item) for key, item in value.items()} if kinds & {Percent, dict, list} else value
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, Percent) else value


def with_files(value: object, folder: Path) -> list[object]:
    """A list of assumptions, in which each `{file: path}` is replaced by what the file says."""
    listed = [value] if isinstance(value, Mapping | Assumption) else value
    if not isinstance(listed, list | tuple):
        raise PolicyError(f"assume: must be a mapping that begins with its kind. Got {shown(value)}. {_meant(value)}")
    return [_member(member, folder) for member in listed]


def _meant(value: object) -> str:
    """What to write for an assumption that is a word alone."""
    if isinstance(value, str) and value.endswith((".yaml", ".yml")):
        return f"Write the file on a line below it: `file: {value}`."
    kind = value if isinstance(value, str) and Assumption.knows(value) else "gaussian"
    return f"Write it on lines below, the first of which is `kind: {kind}`."


def _member(member: object, folder: Path) -> object:
    if isinstance(member, Mapping) and set(member) == {"file"} and isinstance(member["file"], str):
        return read_assumption(folder / member["file"])
    if isinstance(member, Mapping):  # a network's BIF file, public rows
        return {**member, **{key: _beside(member[key], folder) for key in ("network", "file", "further") if key in member}}
    return member


def _beside(value: object, folder: Path) -> object:
    """A path, or each of a list of paths, from the policy's folder; anything else as it is."""
    if isinstance(value, list):
        return [_beside(one, folder) for one in value]
    return str(folder / value) if isinstance(value, str) else value


def require_no_table(path: Path) -> None:
    """A refusal of a table in the place of a policy file, by its name."""
    if path.name.lower().endswith((".parquet", ".csv", ".csv.gz")):
        raise PolicyError(
            f"policy: must be a policy file, in YAML. Got {shown(path.name, 200)}, a table. Write a policy for it with: "
            f"attrpriv init {shlex.quote(str(path))}"
        )


def read_assumption(path: Path) -> dict[str, object]:
    """What a file of `attrpriv fit` says, as it would stand under `assume`."""
    value = read_strict(
        path, absent=f"Write it with: attrpriv fit POLICY --public RECORDS --out {shown(path.name, 200).strip(chr(39))}"
    )
    if not isinstance(value, dict):
        raise PolicyError(f"{path.name}: must be a mapping. Got {type(value).__name__}.")
    version = value.pop("attrpriv", None)
    if version != 1 or isinstance(version, bool):
        raise PolicyError(f"{path.name}: must be an assumption that attrpriv fit wrote, with attrpriv: 1. Got {version!r}.")
    if "kind" not in value:
        raise PolicyError(f"{path.name}: must be an assumption with its kind, not a reference to another file. Got none.")
    return value


_WORD = re.compile(r"(?<!\w)TODO(?!\w)")
DECIDE = ": must be decided by you"


def require_decided(value: object) -> None:
    """Refuse a policy in which the word TODO stands where the starter wrote it.

    >>> list(_undecided({"rows": "TODO", "protect": [{"secret": "share(a = 'TODO')"}], "data": "TODO.csv"}))
    ['rows', 'protect[0].secret']
    """
    found = list(_undecided(value))
    if found:
        more = f" ({len(found) - 1} more after this one.)" if len(found) > 1 else ""
        raise PolicyError(f"{found[0]}{DECIDE}. Got TODO. Write your decision instead of the word.{more}")


def _undecided(value: object, path: str = "") -> Iterator[str]:
    """Where the word stands, as a key or as a value; the places of the data and the ledger may be called anything."""
    if isinstance(value, Mapping) and not _of_numbers(value):
        for key, part in value.items():
            inner = f"{path}.{key}" if path else str(key)
            if _says(key):
                yield inner
            elif inner not in ("data", "ledger"):
                yield from _undecided(part, inner)
    elif isinstance(value, list):
        for k, part in enumerate(value):
            yield from _undecided(part, f"{path}[{k}]")
    elif _says(value):
        yield path


def _of_numbers(value: Mapping[object, object]) -> bool:
    """Whether it says nothing but numbers, under keys without the word: most of a long policy are such mappings."""
    return {*map(type, value.values())} <= {int, float} and "TODO" not in " ".join(map(str, value))


def _says(value: object) -> bool:
    return isinstance(value, str) and _WORD.search(value) is not None
