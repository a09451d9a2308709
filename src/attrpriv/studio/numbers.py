"""What a number means that somebody typed into a form: one thing, or it is refused and asked for again.

| typed | meant |
|---|---|
| `20000`, `-3`, `0.5`, `1e-6`, `25%` | the number, as a policy file reads it |
| `2,5`, `1,234`, `1 000`, `1_000`, `1.234.567`, `0x10`, digits of other scripts | refused: a decimal sign or thousands? |
| `1e999`, `nan`, `1e-400` | refused: no number that a policy can hold |
| `20.000`, `1.234` in the unit of a column | refused: people also write thousands so |
| `25`, `0.5` of a share | refused: percent, or a part of 1? |
| `25%` in the unit of a column | refused: of what? |

What must never change: nothing is guessed. A range that is a thousand times too small would be hidden, and everybody would
believe that the right one was.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from attrpriv.errors import PolicyError, UsageError
from attrpriv.frozen.requirements import shown
from attrpriv.policy.strict_yaml import load_strict
from attrpriv.policy.written import Percent

_TYPED = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?%?\Z")
_THOUSANDS = re.compile(r"[-+]?([1-9][0-9]{0,2})\.([0-9]{3})\Z")
_LONGEST = 100
# The two ends of a range, as messages name them.
LOWER, HIGHER = "between, the lower number", "between, the higher number"


def read_number(text: str) -> int | float | None:
    """The number that a policy file says; None: something else."""
    found: object = None
    try:
        found = load_strict(text, percent=Percent) if text else None
    except PolicyError:
        return None
    return None if isinstance(found, bool) or not isinstance(found, int | float) else found


def number_in(name: str, text: str) -> int | float:
    """A number of a form, or a percentage: 20000, 0.5, 1e-6 or 25%."""
    plain = re.sub(r" %\Z", "%", text.strip())
    found = read_number(plain) if len(plain) <= _LONGEST and _TYPED.match(plain) else None
    if found is None:
        again = " Write a point before decimals, and nothing between other digits." if "," in plain else ""
        raise UsageError(f"{name}: must be a number, such as 20000, 0.5 or 25%. Got {shown(text)}.{again}")
    return found


def amount_in(name: str, text: str) -> int | float:
    """A number in the unit of a column."""
    found = number_in(name, text)
    if isinstance(found, Percent):
        raise UsageError(f"{name}: must be a number in the unit of the column, such as 20000. Got a percentage, {shown(text)}.")
    doubtful = _THOUSANDS.match(text.strip())
    if doubtful:
        both = "{0}{1} or {0}.{1}0".format(*doubtful.groups())
        raise UsageError(f"{name}: must have one meaning. Got {shown(text)}, which may be {both}. Write one of these.")
    return found


def share_in(name: str, text: str) -> int | float:
    """A share of the rows, with its percent sign."""
    found = number_in(name, text)
    if found != 0 and not isinstance(found, Percent):
        percent = f" Write {100 * found:.15g}% or {found:.15g}%." if 0 < found < 1 else ""
        raise UsageError(f"{name}: must be a share with its percent sign, such as 25%. Got {shown(text)}.{percent}")
    if not 0 <= found <= 1:
        raise UsageError(f"{name}: must be a share from 0% to 100%. Got {shown(text)}.")
    return found


def count_in(name: str, text: str) -> int:
    """A number of rows."""
    found = number_in(name, text)
    if not isinstance(found, int) or found < 0:
        raise UsageError(f"{name}: must be a whole number of rows, such as 10000. Got {shown(text)}.")
    return found


def in_order(name: str, low: int | float, high: int | float) -> list[int | float]:
    """Two ends, the smaller one first."""
    if not low < high:
        raise UsageError(f"{name}: must be two numbers, the smaller one first. Got {low:.15g} and {high:.15g}.")
    return [low, high]


def several_in(name: str, text: str, one: Callable[[str, str], int | float]) -> int | float | list[int | float]:
    """A number, or several with `, ` between them, as in `0.38, 0.42`: a comma without a space may be a decimal sign."""
    inner = text.strip()
    inner = inner[1:-1].strip() if inner.startswith("[") and inner.endswith("]") else inner
    found = [one(name, part) for part in re.split(r",\s+", inner)]
    return found if len(found) > 1 else found[0]
