"""What depends on a table's counts where averages hide a share: the noise that equalises, and the plan's own numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from attrpriv.methods.base.accuracy import Noise, gaussian_error
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import Told
from attrpriv.numerics.laws.groups import VectorCase
from tests.unit.methods.groups.test_proof import CASE, PAIR, check, evidence, several

PART = ColumnPlan(column="x", noise=Noise(kind="gaussian", scale=1.0), error=gaussian_error(1.0))
COUNTS = Told(inside=(30,), outside=(70,))


def test_a_table_that_varies_less_gets_more_noise() -> None:
    """40 rows of sd 11 among 100 vary most; 30 of them less."""
    most, own = (Fraction(k * 121 + (100 - k) * 9, 100**2) for k in (40, 30))
    told = evidence(form="equalised", scale=0.5)
    sd = math.sqrt(float(most - own) + 0.25)
    found = told.given(PART, 0, COUNTS)
    assert found is not None
    assert found[0] == 0
    assert found[1] == pytest.approx(sd, rel=1e-12)
    noise = told.table_noise(COUNTS)
    assert noise is not None
    assert noise[0] == pytest.approx(sd, rel=1e-12)
    assert told.given(PART, 0, Told()) is None
    direct = evidence(scale=0.5)
    assert direct.given(PART, 0, COUNTS) == (Fraction(0), 0.5)
    assert direct.table_noise(COUNTS) is None
    assert direct.own_noise == (0.5,)


def test_categories_further_apart_than_stated_are_told_apart_more() -> None:
    """With every mean larger by a share, each difference is too; one share for all checks and columns."""
    told = evidence(checks=(check(), check(replace(CASE, apart=10))))
    wider = told.wider(0.25)
    assert [one.case.members for one in wider.checks] == [((45.0, 11.0),)] * 2
    assert [one.case.rest for one in wider.checks] == [((52.5, 3.0),)] * 2
    assert wider.delta(1.0) > told.delta(1.0)
    case = several().wider(0.5).check.case
    assert isinstance(case, VectorCase)
    assert (case.members[0][0], case.rest[0][0]) == ((4.5, 1.5), (1.5, 3.0))
    assert (case.members[0][1], case.rest[0][1]) == (PAIR.members[0][1], PAIR.rest[0][1])


def test_of_several_checks_each_counts() -> None:
    """The least delta is that of the worst; a case of several averages proves nothing of one."""
    near, far = check(replace(CASE, apart=3)), check()
    assert evidence(checks=(near,)).delta(0.2) < evidence(checks=(far,)).delta(0.2)
    for checks in ((near, far), (far, near)):
        assert evidence(checks=checks).delta(0.2) == evidence(checks=(far,)).delta(0.2)
    assert evidence(checks=(check(PAIR),)).delta(5.0) == pytest.approx(1.0, rel=1e-9)
    assert evidence(checks=(far, check(PAIR))).delta(5.0) == pytest.approx(1.0, rel=1e-9)
