"""All slack for rounding is in one module, on the private side, in the order of what it covers."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

import attrpriv
from attrpriv.numerics import rounding

ROOT = Path(attrpriv.__file__).parent
ORDER = ("ROUNDED", "SUMMED", "COMPUTED", "AIMED", "SOLVED", "SHY")
LITERAL = re.compile(r"\b1 [-+] 1e-(?:8|9|1[0-5])\b|= 2\.0\*\*-5[23]\b|\bROUND_UP = ")
# Sums with a slack that is computed, which no constant can be.
COMPUTED_THERE = {"numerics/calibration/groups.py": "1 + 1e-10 + rounding", "methods/hierarchy/means.py": "1 - 1e-13"}


def test_shares_are_on_their_side_and_in_order() -> None:
    ups = [getattr(rounding, f"{name}_UP") - 1 for name in ORDER]
    downs = [1 - getattr(rounding, f"{name}_DOWN") for name in ORDER]
    for shares in (ups, downs):
        assert shares[0] > rounding.ULP
        assert all(a < b for a, b in pairwise(shares))
    assert 0 < 1 - rounding.LEFT_DOWN < rounding.SOLVED_UP - 1
    assert rounding.UNIT == rounding.ULP / 2


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_other_module_has_a_slack_of_its_own(path: Path) -> None:
    place = path.relative_to(ROOT).as_posix()
    if place == "numerics/rounding.py":
        return
    text = path.read_text(encoding="utf-8").replace(COMPUTED_THERE.get(place, "\0"), "")
    assert LITERAL.findall(text) == []
