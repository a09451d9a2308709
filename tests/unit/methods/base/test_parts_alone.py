"""Averages as a part of plans: every condition of what is covered, which column a query reads, units, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from attrpriv.errors import CertificateError
from attrpriv.methods.base.accuracy import ExpectedError, Noise, Spread
from attrpriv.methods.base.clamp import Read
from attrpriv.methods.base.column_plan import ColumnPlan, Group
from attrpriv.methods.base.evidence import Evidence, Told
from attrpriv.methods.base.parts import AveragesPart, WeightsPart
from attrpriv.methods.base.tally import TallyCategory
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries

AVG, SUM, COUNT = Query("avg", "x"), Query("sum", "x"), Query("count")
UNKNOWN = ExpectedError(rmse=None, mean_absolute=None, alpha95=None)


def column(name: str = "x", kind: Any = "gaussian", scale: float = 3.0, individuals: float = 0.0, **changes: Any) -> ColumnPlan:
    noise = Noise(kind=kind, scale=scale, individuals=individuals)
    return ColumnPlan(**{"column": name, "noise": noise, "independent": 2.0, "error": UNKNOWN, **changes})


class Proof(Evidence):
    """It covers columns x and y with noise of their own at 2 (Gaussian) or 3 (Laplace), and clips of width 4."""

    kind: str = "a proof of this test"
    wanted: Any = None

    def covers(self, column: str, kind: str, scale: float) -> bool:
        return column in ("x", "y") and scale == (2.0 if kind == "gaussian" else 3.0)

    def width_of(self, column: str) -> float | None:
        return 4.0 if column == "x" else None

    def suits(self, columns: tuple[str, ...], n: int, *, clipped: bool) -> bool:
        return self.wanted is None or (columns, n, clipped) == self.wanted

    def statistics_read(self) -> tuple[Read, ...]:
        return ()


class Common(Proof):
    kind: str = "a proof of common noise"

    def common_noise(self) -> tuple[tuple[float, ...], ...]:
        return ((0.5,),)


class Categories(Proof):
    kind: str = "a proof of categories"
    reads_categories = True


class Weighs(Proof):
    kind: str = "a proof of weights"
    weighs = True


def plan(evidence: Any, *queries: Query, rows: Any = None, n: int = 10) -> Any:
    return SimpleNamespace(certificate=SimpleNamespace(evidence=evidence, individuals=rows), n=n, queries=queries or (AVG,))


def rows(**scales: float) -> Any:
    return SimpleNamespace(terms=[SimpleNamespace(column=name, scale=scale) for name, scale in scales.items()])


# ---------------------------------------------------------------------------------------------------------------- averages

CATEGORY = TallyCategory(name="a", where="s = 'a'", member=True)
CLIPPED: dict[str, Any] = {"clip": (1.0, 5.0)}


@pytest.mark.parametrize(
    ("columns", "changes", "evidence", "individuals", "covered"),
    [
        ([column()], {}, Proof(), None, True),
        ([column(), column("y")], {}, Proof(), None, True),
        ([column(), column("z")], {}, Proof(), None, False),
        ([column("z"), column()], {}, Proof(), None, False),
        ([column(independent=1.9)], {}, Proof(), None, False),
        ([column("z", centre=1.0)], {}, Proof(), None, True),
        ([column()], {}, Weighs(), None, False),
        ([column()], {"factor": ((0.5,),)}, Common(), None, True),
        ([column()], {}, Common(), None, False),
        ([column()], {"factor": ((0.5,),)}, Proof(), None, False),
        ([column()], {"factor": ((0.6,),)}, Common(), None, False),
        ([column()], {"categories": (CATEGORY,)}, Categories(), None, True),
        ([column()], {"categories": (CATEGORY,)}, Proof(), None, False),
        ([column()], {}, Categories(), None, False),
        ([column(), column("y")], {}, Proof(wanted=(("x", "y"), 10, False)), None, True),
        ([column("y"), column()], {}, Proof(wanted=(("x", "y"), 10, False)), None, False),
        ([column(), column("y", **CLIPPED)], {}, Proof(wanted=(("x", "y"), 10, True)), None, True),
        ([column("x", "laplace", **CLIPPED)], {}, Proof(), None, True),
        ([column("x", "laplace")], {}, Proof(), None, False),
        ([column("x", "laplace", **CLIPPED), column("y", "laplace")], {}, Proof(), None, False),
        ([column(clip=(1.0, 5.0 + 3e-12))], {}, Proof(), None, True),
        ([column(clip=(1.0, 5.0 + 5e-12))], {}, Proof(), None, False),
        ([column(clip=(-5.0, -1.0))], {}, Proof(), None, True),
        ([column("y", clip=(1.0, 50.0))], {}, Proof(), None, True),
        ([column("y"), column(clip=(1.0, 5.1))], {}, Proof(), None, False),
        ([column(individuals=0.7)], {}, Proof(), rows(x=0.7), True),
        ([column(individuals=0.7)], {}, Proof(), rows(x=0.8), False),
        ([column(individuals=0.7)], {}, Proof(), rows(y=0.7), False),
        ([column(individuals=0.7)], {}, Proof(), None, False),
        ([column()], {}, Proof(), rows(x=0.7), False),
        ([column(individuals=0.7), column("y", individuals=0.9)], {}, Proof(), rows(x=0.7, y=0.9), True),
        ([column(individuals=0.7), column("y", individuals=0.9)], {}, Proof(), rows(x=0.7, y=0.7), False),
        ([column("x", "laplace", **CLIPPED)], {}, Proof(), rows(y=0.7), True),  # Laplace noise protects rows by itself
    ],
)
def test_averages_are_covered_by_every_condition(
    columns: Any, changes: Any, evidence: Proof, individuals: Any, covered: bool
) -> None:
    part = AveragesPart(columns=tuple(columns), **changes)
    assert part.covered(plan(evidence, rows=individuals)) is covered


def test_weights_are_covered_where_products_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    part = WeightsPart(columns=(column(),))
    assert not part.covered(plan(Weighs()))
    monkeypatch.setattr(Weighs, "gram_columns", lambda self: (("x", 0.0, 1.0, None),))
    assert part.covered(plan(Weighs()))
    assert not part.covered(plan(Proof()))
    assert not WeightsPart(columns=(column("z"),)).covered(plan(Weighs()))


BY = Query("avg", "x", group_by="g")


def grouped(*noises: float, counted: Sequence[int | None] = (5, 50)) -> AveragesPart:
    """Averages of x by group, of a and b, beside that of y."""
    columns = [
        column(f"x in {name}", scale=s, rows=r, where=f"g = '{name}'") for name, s, r in zip("ab", noises, counted, strict=True)
    ]
    groups = tuple(Group(name=name, column=f"x in {name}") for name in "ab")
    return AveragesPart(columns=(column("y", scale=100.0), *columns), groups={BY.text: groups})


def test_of_groups_the_one_with_the_most_noise_in_the_answer() -> None:
    twin = BY.twin
    assert twin is not None
    part = grouped(4.0, 3.0)
    assert part.of(BY, 10).column == "x in a"
    assert part.of(twin, 10).column == "x in b"  # 150 rather than 20, of a sum
    assert [part.of(BY, 10, name).column for name in ("a", "b")] == ["x in a", "x in b"]
    assert grouped(4.0, 3.0, counted=(None, 5)).of(twin, 10).column == "x in a"  # all 10 rows
    assert grouped(3.0, 4.0).of(BY, 10).column == "x in b"
    assert part.of(Query("avg", "y"), 10).column == "y"
    assert part.groups_of(BY) == part.groups_of(twin) == part.groups[BY.text]
    assert part.groups_of(Query("avg", "y")) == ()
    assert part.group_names(twin) == ("a", "b")
    assert part.group_names(Query("avg", "y")) == (None,)
    assert (part.rows_of(BY, "a"), part.rows_of(BY, "b"), part.rows_of(Query("avg", "y"), None)) == (5, 50, None)
    assert part.rows_of(COUNT, None) is None
    assert AveragesPart(columns=()).rows_of(AVG, None) is None


def test_noise_is_that_of_the_answer() -> None:
    """Of a sum as many times that of the average as there are rows."""
    part = AveragesPart(columns=(column(individuals=0.5), column("y", rows=4)))
    assert part.noise_of(AVG, 10, None) == Noise(kind="gaussian", scale=3.0, individuals=0.5)
    assert part.noise_of(SUM, 10, None) == Noise(kind="gaussian", scale=30.0, individuals=5.0)
    assert part.noise_of(Query("sum", "y"), 10, None).scale == 12.0
    assert part.noise_of(COUNT, 10, None) == Noise(kind="none")
    for n in (1, 2):
        assert part.noise_of(SUM, n, None) == Noise(kind="gaussian", scale=3.0 * n, individuals=0.5 * n)


def test_the_law_of_an_answer_is_that_of_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    public = column("y", centre=1.0, parameters={"sd": 2.0, "bias": -0.5})
    part = AveragesPart(columns=(column(individuals=0.5), public))
    assert part.spread_of(SUM, 10, None, Proof()) == Spread("gaussian", 30.0, 5.0)
    assert part.spread_of(COUNT, 10, None, Proof()) == Spread("none", 0.0)
    assert part.spread_of(Query("sum", "y"), 10, None, Proof()) == Spread("gaussian", 20.0, bias=-5.0)
    asked = []

    def law(self: Proof, columns: Sequence[ColumnPlan], place: int) -> Any:
        asked.append((len(columns), place))
        return Scaled()

    class Scaled:
        def scaled(self, factor: float) -> float:
            return 100 * factor

    monkeypatch.setattr(Proof, "error_law", law)
    found: Any = part.spread_of(SUM, 10, None, Proof())
    assert found == 1000
    assert asked == [(2, 0)]


def test_an_answer_lies_where_its_rows_are_clipped() -> None:
    part = AveragesPart(columns=(column(clip=(0.5, 5.0), rows=4), column("y")))
    assert part.public_range(AVG, 10) == (0.5, 5.0)
    assert part.public_range(SUM, 10) == (2.0, 20.0)
    assert part.public_range(Query("avg", "y"), 10) is None
    assert part.public_range(COUNT, 10) == (0.0, 10.0)
    for columns, clips in (
        ([column()], False), ([column(clip=(1.0, 5.0))], True), ([column(), column("y", clip=(1.0, 5.0))], True),
        ([column(clip=(1.0, 5.0), centre=2.0)], False), ([column(centre=2.0), column("y")], False),
    ):  # fmt: skip
        assert AveragesPart(columns=tuple(columns)).clips is clips


def test_parameters_are_those_of_the_column_or_of_each_group() -> None:
    shown = column(parameters={"mask": 0.25})
    assert AveragesPart(columns=(shown,)).parameters_of(AVG, 10) == {"mask": 0.25}
    assert AveragesPart(columns=(shown,)).parameters_of(COUNT, 10) == {}
    assert AveragesPart(columns=()).parameters_of(AVG, 10) == {}
    assert grouped(4.0, 3.0).parameters_of(BY, 10) == {
        "groups": {"a": {"where": "g = 'a'", "rows": 5, "scale": 4.0}, "b": {"where": "g = 'b'", "rows": 50, "scale": 3.0}}
    }


FILTERED = Query("avg", "x", where="y > 1")
NAMED = "x filter (where y > 1)"


def test_over_rows_of_public_number_each_answer_has_its_own_name() -> None:
    over = column(NAMED, where="y > 1", rows=4)
    for part, query, holds in (
        (AveragesPart(columns=(over,)), FILTERED, True),
        (AveragesPart(columns=(column(), over)), FILTERED, True),
        (AveragesPart(columns=(over, column())), AVG, False),
        (AveragesPart(columns=(column(NAMED, where="y > 2", rows=4),)), FILTERED, False),
        (AveragesPart(columns=(column(NAMED, where="y > 1"),)), FILTERED, False),
        (AveragesPart(columns=()), FILTERED, False),
        (AveragesPart(columns=(over,)), Query("count", where="y > 1"), False),
        (AveragesPart(columns=(over,)), BY, False),
    ):
        assert part.over_public_rows(query, 10) is holds
    names = ("x filter (where g = 'a')", "x filter (where g = 'b')")
    for wheres, counted, holds in (
        (("g = 'a'", "g = 'b'"), (5, 6), True),
        (("g = 'a'", "g = 'c'"), (5, 6), False),
        (("g = 'c'", "g = 'b'"), (5, 6), False),
        (("g = 'a'", "g = 'b'"), (5, None), False),
        (("g = 'a'", "g = 'b'"), (None, 6), False),
    ):
        columns = tuple(column(names[k], where=wheres[k], rows=counted[k]) for k in (0, 1))
        groups = tuple(Group(name="ab"[k], column=names[k]) for k in (0, 1))
        assert AveragesPart(columns=columns, groups={BY.text: groups}).over_public_rows(BY, 10) is holds


# ----------------------------------------------------------------------------------------------------------------- the draw


class Sensitive(Proof):
    """Beside x and y the averages of s and t are read; answers are those of the columns, and what was told is kept."""

    kind: str = "a proof of statistics that are read"
    heard: Any = None

    def statistics_read(self) -> tuple[Read, ...]:
        return (Read(coefficients={"s": 1.0, "t": -2.0}, centre=0.0, fill={"t": 7.0}),)

    def drawn(self, columns: Sequence[ColumnPlan], averages: Sequence[Fraction], told: Told) -> list[Fraction]:
        self.heard.append((tuple(averages), dict(told.read), told.inside, told.outside))
        return [1000 * average for average in averages]


CATEGORIES = tuple(
    TallyCategory(name=name, where=None, member=member) for name, member in (("a", True), ("b", False), ("c", True))
)


def test_what_is_read_goes_to_the_proof_and_answers_come_in_their_units() -> None:
    heard: list[Any] = []
    evidence = Sensitive(heard=heard)
    part = AveragesPart(columns=(column(clip=(0.0, 2.0)), column("y", rows=None)), categories=CATEGORIES)
    asked = plan(evidence, Query("sum", "y"), COUNT, AVG)
    assert part.read_columns(evidence) == {"s": None, "t": 7.0}
    answers = part.draw(asked, ([Fraction(3), Fraction(5), Fraction(8), Fraction(9)], (30, 40, 50)))
    assert answers == ((50_000.0,), (10.0,), (2000.0,))
    assert heard == [((2, 5), {"s": 8, "t": 9}, (30, 50), (40,))]
    for averages, counts in (
        ([3, 5, 8], (30, 40, 50)),
        ([3, 5, 8, 9, 1], (30, 40, 50)),
        ([3, 5, 8, 9], (30, 40)),
        ([3, 5, 8, 9], ()),
    ):
        with pytest.raises(CertificateError, match="needs"):
            part.draw(asked, ([Fraction(x) for x in averages], counts))
    assert len(heard) == 1


def test_a_sum_over_some_rows_is_so_many_times_their_average() -> None:
    over = column(NAMED, where="y > 1", rows=4)
    part = AveragesPart(columns=(over, column()))
    asked = plan(Sensitive(heard=[]), Query("sum", "x", where="y > 1"), FILTERED, SUM)
    found = part.draw(asked, ([Fraction(3), Fraction(5), Fraction(0), Fraction(0)], ()))
    assert found == ((12_000.0,), (3000.0,), (50_000.0,))


@pytest.mark.parametrize(
    ("columns", "query"),
    [
        ([column(), column(NAMED)], FILTERED),  # of an undeclared number of rows
        ([column(), column(NAMED, where="y > 2", rows=4)], FILTERED),
        ([column(where="y > 1", rows=4)], AVG),
        ([column(rows=4)], AVG),
        ([column()], Query("count", where="y > 1")),
        ([column()], BY),
    ],
)
def test_a_filter_or_a_group_needs_rows_of_its_own(columns: Any, query: Query) -> None:
    part = AveragesPart(columns=tuple(columns))
    for queries in ((query,), (query, AVG), (AVG, query)):
        with pytest.raises(CertificateError, match="a filter or a group"):
            part.draw(plan(Sensitive(heard=[]), *queries), ([Fraction(1)] * (len(columns) + 2), ()))


def test_a_statistic_that_is_no_average_is_not_answered() -> None:
    part = AveragesPart(columns=(column(),))
    for queries in (parse_queries("median(x)"), (AVG, *parse_queries("median(x)")), (*parse_queries("avg(x * y)"), AVG)):
        with pytest.raises(CertificateError, match="no average"):
            part.draw(plan(Sensitive(heard=[]), *queries), ([Fraction(1)] * 3, ()))
    assert part.answered(plan(Proof(), COUNT), {}) == ((10.0,),)
