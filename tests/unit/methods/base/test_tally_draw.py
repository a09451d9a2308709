"""A tally by itself: what is added to a count, what an answer is in the query's unit, and what a certificate agrees with."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from attrpriv.errors import CertificateError, UsageError
from attrpriv.methods.base import tally as module
from attrpriv.methods.base.accuracy import Spread
from attrpriv.methods.base.evidence import Counted
from attrpriv.methods.base.tally import Tally, TallyCategory, TallyCell, WholeSpread
from attrpriv.queries.query import Query

COUNT, SUM, AVG = Query("count", where="x > 1"), Query("sum", "x"), Query("avg", "x")


def cell(value: int, where: str | None = None) -> TallyCell:
    return TallyCell(name=str(value), where=where or f"x = {value}", value=value)


def tally(*cells: TallyCell, complete: bool = False, **changes: Any) -> Tally:
    return Tally(cells=cells or (cell(1),), complete=complete, **{"categories": (), **changes})


@pytest.fixture(autouse=True)
def _drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laplace noise is ten times its scale, Gaussian noise a thousand times."""
    monkeypatch.setattr(module, "whole_laplace", lambda scale: round(10 * scale))
    monkeypatch.setattr(module, "whole_gaussian", lambda scale: round(1000 * scale))


# --------------------------------------------------------------------------------------------------------------- the draw


@pytest.mark.parametrize(
    ("changes", "total"),
    [
        ({}, 7),
        ({"noise": "laplace", "scale": 2.0}, 27),
        ({"noise": "gaussian", "scale": 2.0}, 2007),
        ({"individuals": 3.0}, 37),
        ({"noise": "laplace", "scale": 2.0, "individuals": 3.0}, 57),
        ({"noise": "gaussian", "scale": 2.0, "individuals": 3.0}, 2037),
        ({"noise": "laplace", "scale": 2.0, "individuals": 3.0, "centre": 5}, 5),
    ],
)
def test_noise_of_each_kind_is_added_to_a_count(changes: dict[str, Any], total: int) -> None:
    assert tally(**changes).noisy_total(7) == total


def test_a_kernel_draws_no_noise_by_itself() -> None:
    with pytest.raises(CertificateError, match="kernel"):
        tally(noise="kernel", scale=2.0).noisy_total(7)


def test_values_are_added_and_stated_ones_the_nearest() -> None:
    made = tally(cell(1), cell(3), cell(7))
    assert made.total((2, 0, 5)) == 37
    for support, total in (((30, 35, 40), 35), ((30, 40), 40), ((40, 34), 34), ((39, 35), 35), ((0,), 0)):
        assert made.model_copy(update={"support": support}).total((2, 0, 5)) == total


CATEGORIES = (
    TallyCategory(name="a", where="s = 'a'", member=True),
    TallyCategory(name="b", where="s = 'b'", member=False),
    TallyCategory(name="c", where=None, member=True),
)


def test_what_is_released_of_counts() -> None:
    """Of a histogram each count, of a kernel what it draws for the total and the members, else the total, with noise."""
    asked: list[tuple[int, int, float]] = []

    class Kernel:
        def kernel_draw(self, total: int, members: int, scale: float) -> int:
            asked.append((total, members, scale))
            return -1

    evidence: Any = Kernel()
    told: dict[str, Any] = {"categories": CATEGORIES, "noise": "laplace", "scale": 2.0}
    assert tally(cell(1), cell(3), **told).released((4, 5), (2, 30, 500), evidence) == (19 + 20,)
    assert tally(cell(1), cell(3), histogram=True, **told).released((4, 5), (2, 30, 500), evidence) == (24, 25)
    kernel = tally(cell(1), cell(3), **(told | {"noise": "kernel"}))
    assert kernel.released((4, 5), (2, 30, 500), evidence) == (-1,)
    assert asked == [(19, 502, 2.0)]
    assert kernel.model_copy(update={"centre": 8}).released((4, 5), (2, 30, 500), evidence) == (8,)
    assert len(asked) == 1


# --------------------------------------------------------------------------------------------------------------- the units


def test_an_answer_is_an_origin_for_each_row_and_steps_of_a_unit() -> None:
    made = tally(unit=0.25, origin=-1.5)
    assert (made.answer(COUNT, 8, 3), made.answer(SUM, 8, 3), made.answer(AVG, 8, 3)) == (3, -11.25, -11.25 / 8)
    whole = made.answer(SUM, 8, 4)
    assert (whole, type(whole)) == (-11, int)
    assert (made.unit_of(COUNT, 8), made.unit_of(SUM, 8), made.unit_of(AVG, 8)) == (0.25, 0.25, 0.25 / 8)


def test_steps_are_what_an_answer_is_made_of() -> None:
    made = tally(unit=0.25, origin=-1.5)
    for steps in (-7, 0, 3, 40):
        total = -12 + Fraction(steps, 4)
        assert made.steps_of(SUM, 8, total) == steps
        assert made.steps_of(AVG, 8, total / 8) == steps
        assert made.steps_of(COUNT, 8, Fraction(steps)) == steps
        for near in (Fraction(1, 1000), Fraction(-1, 1000)):
            assert made.steps_of(SUM, 8, total + near / 4) == steps
        for off in (Fraction(11, 10_000), Fraction(-11, 10_000), Fraction(1, 2)):
            with pytest.raises(UsageError, match="must be made of steps"):
                made.steps_of(SUM, 8, total + off / 4)


def test_the_law_of_an_answer_is_that_of_its_noise_in_its_unit() -> None:
    told: dict[str, Any] = {
        "noise": "laplace",
        "scale": 2.0,
        "individuals": 3.0,
        "unit": 0.5,
        "tails": (0.2, 0.0),
        "tail_step": 3,
    }
    assert tally(**told).spread(AVG, 4) == WholeSpread("laplace", 2.0, 3.0, 0.125, (0.2, 0.0), 3)
    assert tally(**told).spread(SUM, 4) == WholeSpread("laplace", 2.0, 3.0, 0.5, (0.2, 0.0), 3)
    public = tally(unit=0.5, centre=3, parameters={"sd": 6.0, "bias": -2.0})
    assert public.spread(AVG, 4) == Spread("gaussian", 0.75, bias=-0.25)


# --------------------------------------------------------------------------------------------------------- what is counted


def test_what_one_row_can_add() -> None:
    two = (cell(2), cell(5))
    assert tally(*two).steps == (0, 2, 5)
    assert tally(*two, complete=True).steps == (2, 5)
    assert tally(*two, complete=True, histogram=True).steps == tally(*two, histogram=True).steps == (0, 1)
    assert (tally(*two).width, tally(*two, complete=True).width, tally(*two, histogram=True).width) == (5, 3, 2)


def test_values_are_clipped_where_every_row_is_in_a_cell_by_a_clipped_column() -> None:
    cells = (cell(1, "x > 0"), cell(2, "y > 0"))
    for complete, clip, clips in (
        (True, {"y": (0.0, 1.0)}, True),
        (True, {"z": (0.0, 1.0)}, False),
        (False, {"y": (0.0, 1.0)}, False),
    ):
        assert tally(*cells, complete=complete, clip=clip).clips is clips
    assert tally(*cells).reads == {"x", "y"}


def test_tallies_are_alike_where_they_count_the_same_in_the_same_steps() -> None:
    base: dict[str, Any] = {"fill": {"x": 1.0}, "clip": {"x": (0.0, 9.0)}}
    made = tally(cell(1), **base)
    alike = [
        tally(cell(1), **base, unit=2.0, noise="laplace", scale=1.0),
        tally(cell(1), **(base | {"fill": {"x": 1.0, "z": 5.0}})),
    ]
    assert {one.identity for one in alike} == {made.identity}
    others = [
        tally(cell(2), **base), tally(cell(1, "x = 9"), **base), tally(cell(1), cell(1), **base),
        tally(cell(1), complete=True, **base), tally(cell(1), histogram=True, **base),
        tally(cell(1), **(base | {"fill": {"x": 2.0}})), tally(cell(1), **(base | {"clip": {"x": (0.0, 8.0)}})),
        tally(cell(1), fill={"x": 1.0}),
    ]  # fmt: skip
    assert len({made.identity, *(one.identity for one in others)}) == len(others) + 1


# --------------------------------------------------------------------------------------------------------- the certificate


class Proof:
    def __init__(self, *, covers: bool = True, support: tuple[int, ...] = (), reads_rows: bool = True) -> None:
        self.yes, self.values, self.reads_rows = covers, support, reads_rows
        self.told: list[Counted] = []

    def support(self) -> tuple[int, ...]:
        return self.values

    def covers_tally(self, told: Counted) -> bool:
        self.told.append(told)
        return self.yes


def certificate(proof: Proof, *terms: tuple[float, float]) -> Any:
    rows = SimpleNamespace(terms=[SimpleNamespace(sensitivity=s, scale=b) for s, b in terms]) if terms else None
    return SimpleNamespace(evidence=proof, individuals=rows)


def test_a_proof_is_told_what_is_counted_and_drawn() -> None:
    proof = Proof()
    made = tally(cell(1, "x > 3"), noise="laplace", scale=2.0)
    assert made.covered_by(certificate(proof), 9)
    assert not made.covered_by(certificate(Proof(covers=False)), 9)
    (told,) = proof.told
    assert told == Counted(9, 1, (0, 1), False, frozenset({"x"}), made.identity, "x > 3", "laplace", 2.0)
    for other in (tally(cell(2, "x > 3")), tally(cell(0), cell(1), cell(2)), tally(cell(0), cell(1), histogram=True)):
        other.covered_by(certificate(proof), 9)
        assert proof.told[-1].event == ""


def test_stated_values_are_those_of_the_proof() -> None:
    for mine, proved, covered in (
        ((), (), True),
        ((1, 2), (1, 2), True),
        ((1, 2), (), False),
        ((), (1, 2), False),
        ((1, 2), (1, 3), False),
    ):
        assert tally(support=mine).covered_by(certificate(Proof(support=proved)), 9) is covered


def test_a_public_answer_needs_a_proof_that_reads_no_row() -> None:
    assert tally(centre=3).covered_by(certificate(Proof(reads_rows=False, covers=False)), 9)
    assert not tally(centre=3).covered_by(certificate(Proof()), 9)


@pytest.mark.parametrize(
    ("changes", "terms", "covered"),
    [
        ({"noise": "gaussian", "scale": 2.0, "individuals": 3.0}, [(5.0, 3.0)], True),
        ({"noise": "gaussian", "scale": 2.0, "individuals": 3.0}, [(5.0, 2.0)], False),
        ({"noise": "gaussian", "scale": 2.0, "individuals": 3.0}, [(4.0, 3.0)], False),
        ({"noise": "gaussian", "scale": 2.0, "individuals": 3.0}, [(5.0, 3.0), (5.0, 3.0)], False),
        ({"noise": "gaussian", "scale": 2.0, "individuals": 3.0}, [], False),
        ({"noise": "laplace", "scale": 2.0}, [(5.0, 2.0)], True),
        ({"noise": "laplace", "scale": 2.0}, [(5.0, 3.0)], False),
        ({"noise": "laplace", "scale": 2.0}, [], True),
        ({"noise": "gaussian", "scale": 2.0}, [(5.0, 2.0)], False),
    ],
)
def test_noise_for_single_rows_is_that_of_their_proof(changes: Any, terms: list[tuple[float, float]], covered: bool) -> None:
    assert tally(cell(2), cell(5), **changes).covered_by(certificate(Proof(), *terms), 9) is covered
