"""A group's case with means further apart: every mean by that share, and nothing else."""

from __future__ import annotations

from fractions import Fraction

import pytest

from attrpriv.methods.base.checks import GroupCheck
from attrpriv.numerics.laws.groups import GroupCase, VectorCase

ONE = GroupCase(n=50, low=10, high=20, apart=10, members=((3.0, 1.0), (-2.0, 2.0)), rest=((1.0, 0.5),))
SQUARE = ((1.0, 0.2), (0.2, 1.0))
BOTH = VectorCase(n=50, low=10, high=20, apart=10, members=(((3.0, 1.0), SQUARE),), rest=(((-1.0, 2.0), SQUARE),))


@pytest.mark.parametrize("off", [0.01, 0.1])
def test_one_average(off: float) -> None:
    wider = GroupCheck(secret="s", theta=0, case=ONE).wider(off).case
    assert isinstance(wider, GroupCase)
    for before, after in zip((*ONE.members, *ONE.rest), (*wider.members, *wider.rest), strict=True):
        assert after[0] == pytest.approx(before[0] * (1 + off))
        assert after[1] == before[1]
    assert float(Fraction(wider.told)) == pytest.approx(ONE.told * (1 + off))
    assert (wider.n, wider.low, wider.high, wider.apart) == (50, 10, 20, 10)


@pytest.mark.parametrize("off", [0.01, 0.1])
def test_several_averages(off: float) -> None:
    wider = GroupCheck(secret="s", theta=0, case=BOTH).wider(off).case
    assert isinstance(wider, VectorCase)
    for before, after in zip((*BOTH.members, *BOTH.rest), (*wider.members, *wider.rest), strict=True):
        assert after[0] == pytest.approx(tuple(mean * (1 + off) for mean in before[0]))
        assert after[1] == before[1]
