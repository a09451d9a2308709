"""Parts that are no averages, by themselves: a statistic in its range, counts, and which part the fields of JSON describe."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from attrpriv.errors import CertificateError
from attrpriv.methods.base import parts
from attrpriv.methods.base.accuracy import Noise, Spread
from attrpriv.methods.base.column_plan import StatisticPlan
from attrpriv.methods.base.parts import AveragesPart, StatisticPart, TallyPart, ViewPart, WeightsPart, part_of
from attrpriv.methods.base.tally import Tally, TallyCell, WholeSpread
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries
from tests.unit.methods.base.test_parts_alone import (
    AVG,
    CATEGORIES,
    CATEGORY,
    COUNT,
    FILTERED,
    SUM,
    Categories,
    Common,
    Proof,
    Sensitive,
    column,
    plan,
    rows,
)


def statistic(**changes: Any) -> StatisticPart:
    how = StatisticPlan(fills={"x": None}, clips={"x": (0.0, 3.0)}, range=(-1.0, 2.0))
    return StatisticPart(**{"columns": (column("median(x)", "laplace"),), "statistic": how, **changes})


(MEDIAN,) = parse_queries("median(x)")


def test_a_statistic_lies_in_its_range() -> None:
    part = statistic()
    assert part.clips
    assert (part.public_range(MEDIAN, 10), part.public_range(COUNT, 10)) == ((-1.0, 2.0), (0.0, 10.0))
    assert (part.name_of(MEDIAN), part.name_of(COUNT)) == ("median(x)", None)
    asked = plan(Sensitive(heard=[]), MEDIAN, COUNT)
    for value, kept in ((5, 2000.0), (-3, -1000.0), (1, 1000.0)):
        assert part.draw(asked, ([Fraction(value), Fraction(0), Fraction(0)], ())) == ((kept,), (10.0,))
    with pytest.raises(CertificateError, match="a filter or a group"):
        part.draw(plan(Sensitive(heard=[]), MEDIAN, FILTERED), ([Fraction(1)] * 3, ()))


class Covers(Proof):
    kind: str = "a proof of one statistic"

    def covers_statistic(self, name: str, read: frozenset[str], width: Fraction, kind: str, scale: float) -> bool:
        own = name == "median(x)" and set(read) == {"x"} and width == 3
        return own and scale == (2.0 if kind == "gaussian" else 3.0)


@pytest.mark.parametrize(
    ("part", "individuals", "covered"),
    [
        (statistic(), None, True),
        (statistic(), rows(y=0.7), True),
        (statistic(columns=(column("median(x)", individuals=0.7),)), rows(**{"median(x)": 0.7}), True),
        (statistic(columns=(column("median(x)", individuals=0.7),)), None, False),
        (statistic(columns=(column("median(x)"),)), rows(y=0.7), False),
        (statistic(columns=(column("median(x)", "laplace", scale=2.9),)), None, False),
        (statistic(categories=(CATEGORY,)), None, False),
        (statistic(factor=((0.5,),)), None, False),
    ],
)
def test_a_statistic_is_covered_by_every_condition(part: StatisticPart, individuals: Any, covered: bool) -> None:
    assert part.covered(plan(Covers(), MEDIAN, COUNT, rows=individuals)) is covered


TALLY = Tally(
    cells=(TallyCell(name="1", where="x > 1", value=1), TallyCell(name="3", where="x > 3", value=3)),
    complete=False,
    categories=CATEGORIES,
)


def test_a_tally_has_the_counts_of_all_cells_and_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tally, "released", lambda self, counts, categories, evidence: tuple(counts))
    part, asked = TallyPart(tally=TALLY), plan(Proof(), COUNT, Query("count", where="x > 1"))
    assert part.draw(asked, ((4, 5), (1, 2, 3))) == ((10,), (4, 5))
    for counts, categories in (((4,), (1, 2, 3)), ((4, 5, 6), (1, 2, 3)), ((4, 5), (1, 2)), ((4, 5), ()), ((), (1, 2, 3))):
        with pytest.raises(CertificateError, match="needs the counts"):
            part.draw(asked, (counts, categories))


@pytest.mark.parametrize("what", ["common_noise", "reads_categories", "suits", "covered_by"])
def test_a_tally_is_covered_by_every_condition(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tally, "covered_by", lambda self, certificate, n: n == 10)
    part = TallyPart(tally=TALLY)
    good, other = (
        Proof(wanted=((), 10, False)),
        {"common_noise": Common(), "reads_categories": Categories(), "suits": Proof(wanted=((), 9, False))},
    )
    assert part.covered(plan(good))
    assert not part.covered(plan(good, n=9) if what == "covered_by" else plan(other[what]))


@pytest.mark.parametrize(("persons", "n"), [(True, 10), (True, 9), (False, 10), (False, 9)])
def test_a_view_is_covered_for_its_rows_and_persons(persons: bool, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "persons_covered", lambda view, plan: persons)
    nothing: Any = None
    part = ViewPart.model_construct(view=nothing)
    assert part.covered(plan(Proof(wanted=((), 10, False)), n=n)) is (persons and n == 10)


def test_the_noise_of_a_tally_is_in_its_unit() -> None:
    part = TallyPart(tally=TALLY.model_copy(update={"unit": 0.5, "noise": "laplace", "scale": 3.0, "individuals": 4.0}))
    assert part.noise_of(SUM, 10, None) == Noise(kind="laplace", scale=1.5, individuals=2.0)
    assert part.noise_of(AVG, 8, None) == Noise(kind="laplace", scale=0.1875, individuals=0.25)
    assert part.noise_of(COUNT, 10, None) == Noise(kind="none")
    assert part.spread_of(AVG, 8, None, Proof()) == WholeSpread("laplace", 3.0, 4.0, 0.0625)
    assert part.spread_of(COUNT, 10, None, Proof()) == Spread("none", 0.0)
    assert (part.public_range(COUNT, 10), part.public_range(SUM, 10)) == ((0.0, 10.0), None)
    assert part.group_names(SUM) == (None,)
    assert part.group_names(Query("count", group_by="x")) == ("1", "3")


def test_a_part_is_known_by_its_fields() -> None:
    averages = AveragesPart(columns=(column(),)).to_json()
    told: dict[str, Any] = {**averages, "view": None, "tally": None, "statistic": None}
    assert type(part_of(told, weighs=False)) is AveragesPart
    assert type(part_of(told, weighs=True)) is WeightsPart
    assert type(part_of({**told, "statistic": statistic().statistic.to_json()}, weighs=False)) is StatisticPart
    counted: dict[str, Any] = {
        "tally": TALLY.to_json(),
        "columns": [],
        "factor": (),
        "groups": {},
        "statistic": None,
        "view": None,
    }
    assert type(part_of(counted, weighs=False)) is TallyPart
    for name, alien in (("columns", averages["columns"]), ("factor", ((1.0,),)), ("groups", {"a": []})):
        with pytest.raises(ValueError, match=f"{name}: must not be there"):
            part_of({**counted, name: alien}, weighs=False)
