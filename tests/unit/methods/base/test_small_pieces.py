"""Small pieces of plans and proofs at numbers that are no round ones: shares left, rows' noise, grids, ranges, terms, tails."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attrpriv.errors import CertificateError, PolicyError, UsageError
from attrpriv.methods.base import evidence as module
from attrpriv.methods.base.accuracy import ExpectedError, Noise
from attrpriv.methods.base.certificate import LEAST_LEFT, Certificate, row_evidence, row_term
from attrpriv.methods.base.checks import GroupCheck
from attrpriv.methods.base.column_plan import ColumnPlan, Design, StatisticPlan, common_bits, exact
from attrpriv.methods.base.equalising import common_bits as equalising_bits
from attrpriv.methods.base.evidence import ConstantEvidence, Counted, Evidence, LaplaceEvidence, LaplaceTerm
from attrpriv.methods.base.laplace_terms import covers_range, covers_statistic, least_width
from attrpriv.methods.base.outside import require_what, shown_b
from attrpriv.methods.base.ranged import ranged
from attrpriv.noise import GRID_BITS, granularity
from attrpriv.numerics.calibration.groups import population_tail
from attrpriv.numerics.laws.groups import GroupCase
from attrpriv.numerics.rounding import COMPUTED_UP
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.sql import parse_queries

UNKNOWN = ExpectedError(rmse=None, mean_absolute=None, alpha95=None)


def term(column: str = "x", sensitivity: float = 3.0, scale: float = 8.0, granularity: float = 0.25) -> LaplaceTerm:
    return LaplaceTerm(column=column, sensitivity=sensitivity, scale=scale, granularity=granularity)


class Spends(Evidence):
    kind: str = "spends"
    share: float = 0.0
    reached: float = 0.0

    def delta(self, epsilon: float) -> float:
        return self.reached

    def spent(self, epsilon: float, delta: float) -> float:
        return self.share * epsilon / 2 * delta / 0.5


def certificate(evidence: Evidence, **changes: Any) -> Certificate:
    return Certificate.model_construct(**{"epsilon": 2.0, "delta": 0.1, "evidence": evidence, "assumes": (), **changes})


# ------------------------------------------------------------------------------------------------------------- certificates


def test_what_is_left_is_the_rest_or_nothing() -> None:
    for share, left in (
        (0.0, 1.0),
        (0.3, 0.7),
        (1 - 2 * LEAST_LEFT, 2 * LEAST_LEFT),
        (1 - LEAST_LEFT / 2, 0.0),
        (1.0, 0.0),
        (3.0, 0.0),
    ):
        assert certificate(Spends(share=share)).left(2.0, 0.5) == pytest.approx(left, rel=1e-9)
    assert certificate(Spends(share=-1.0)).left(2.0, 0.5) == 1.0


def test_a_certificate_holds_up_to_its_delta() -> None:
    certificate(LaplaceEvidence(terms=()), delta=0.0).verify()
    certificate(LaplaceEvidence(terms=()), delta=0.1, fit_delta=0.1).verify()
    with pytest.raises(CertificateError):
        certificate(LaplaceEvidence(terms=()), delta=0.1, fit_delta=0.1000001).verify()
    wide = LaplaceEvidence(terms=(term(),))  # spends 13/32
    for rows, holds in (
        (LaplaceEvidence(epsilon=0.5, terms=(term(),)), True),
        (LaplaceEvidence(epsilon=0.4, terms=(term(),)), False),
        (wide, False),
    ):
        made = certificate(wide, individuals=rows)
        if holds:
            made.verify()
        else:
            with pytest.raises(CertificateError):
                made.verify()


def rows_problem(individuals: float | None = 0.3, **changes: Any) -> Problem:
    told: dict[str, Any] = {
        "queries": parse_queries("avg(x), sum(y), avg(z)"), "secrets": (Secret("mean(s)", within=1.0),), "epsilon": 1.0, "n": 7,
        "bounds": {"x": (2.0, 5.0), "y": (-1.0, 3.0), "z": (-8.0, -2.0)}, "individuals": individuals,
    }  # fmt: skip
    return Problem(**(told | changes))


def test_noise_for_a_row_is_what_it_moves_an_average_by_and_a_step() -> None:
    made = row_term(rows_problem(), "y", 0.25, 0.125)
    assert made.column == "y"
    assert made.sensitivity == pytest.approx(4 / 7 + 0.125, rel=1e-11)
    assert made.sensitivity >= 4 / 7 + 0.125
    assert made.granularity == granularity(made.scale)
    assert made.scale == pytest.approx(made.sensitivity / (0.25 - 2.0**-GRID_BITS), rel=2e-9)
    assert (made.sensitivity + made.granularity) / made.scale <= 0.25
    for epsilon in (2.0**-GRID_BITS / 2, 0.0):
        with pytest.raises(Refusal):
            row_term(rows_problem(), "y", epsilon, 0.125)
    row_term(rows_problem(), "y", 2.0**-GRID_BITS * 1.01, 0.125)


def test_averages_share_what_single_rows_may_lose() -> None:
    clips = {"x": 3.0, "y": 4.0, "z": 6.0}
    made = row_evidence(rows_problem(), (0.5, 1.0, 2.0), clips)
    assert made is not None
    assert made.epsilon == 0.3
    for one, column, own in zip(made.terms, "xyz", (0.5, 1.0, 2.0), strict=True):
        assert one == row_term(rows_problem(), column, 0.3 / 3, granularity(own))
    assert made.delta(0.3) == 0.0
    assert row_evidence(rows_problem(None), (0.5, 1.0, 2.0), clips) is None
    alone = row_evidence(rows_problem(queries=parse_queries("avg(x)")), (0.5,), clips)
    assert alone is not None
    assert alone.terms == (row_term(rows_problem(), "x", 0.3, granularity(0.5)),)
    for without in ({"x": 3.0, "y": None, "z": 6.0}, {"x": 3.0, "z": 6.0}):
        with pytest.raises(Refusal):
            row_evidence(rows_problem(), (0.5, 1.0, 2.0), without)
    with pytest.raises(Refusal):
        row_evidence(rows_problem(bounds={"x": (2.0, 5.0)}), (0.5, 1.0, 2.0), clips)


# ----------------------------------------------------------------------------------------------------------------- evidence


def test_the_base_proves_pairs_as_near_as_promised_alone() -> None:
    base = ConstantEvidence()
    near = Spends()
    assert near.stretched(0.5) is near.stretched(1.0) is near
    assert near.stretched(1.0 + 1e-9) is None
    assert near.stretched(1.5) is None
    assert base.stretched(7.0) is base  # holds for any two values
    assert near.along(None, 0, 1.0) == 0.0  # type: ignore[arg-type]


def test_evidence_is_read_by_its_kind() -> None:
    for wrong in ({"kind": "no such kind"}, {"kind": 3}, {"kind": ["laplace"]}):
        with pytest.raises(ValueError, match="no installed method knows it"):
            Evidence.of_kind(wrong)
    for untouched in (None, 3, {}, {"kind": None}):
        assert Evidence.of_kind(untouched) is untouched
    assert Evidence.of_kind({"kind": "constant"}) == ConstantEvidence()


class Common(Evidence):
    kind: str = "common"
    rows: tuple[tuple[float, ...], ...] = ()

    def common_noise(self) -> tuple[tuple[float, ...], ...]:
        return self.rows


def test_common_noise_is_added_before_each_averages_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def drawn(factor: Any, bits: int) -> list[Fraction]:
        asked.append((factor, bits))
        return [Fraction(1, 4), Fraction(-3)]

    monkeypatch.setattr(module, "correlated_noise", drawn)
    monkeypatch.setattr(module, "noisy", lambda part, average, as_it_is, hidden: average * 1000)
    columns = [
        ColumnPlan(column=name, noise=Noise(kind="gaussian", scale=1.0), independent=2.0, error=UNKNOWN) for name in "xy"
    ]
    averages = [Fraction(5), Fraction(7)]
    assert Common().noised(columns, averages) == [5000, 7000]
    assert asked == []
    assert Common(rows=((8.0,), (1.0,))).noised(columns, averages) == [5250, 4000]
    assert asked == [(((8.0,), (1.0,)), 36)]  # a factor of 4 is two bits more


def test_laplace_terms_spend_up_to_their_epsilon() -> None:
    spent = (3.0 + 0.25) / 8.0 * COMPUTED_UP
    told = LaplaceEvidence(terms=(term(),))
    assert (told.delta(spent), told.delta(math.nextafter(spent, 0.0))) == (0.0, 1.0)
    assert told.covers("x", "laplace", 8.0)
    two = LaplaceEvidence(terms=(term(), term("y", scale=2.0)))
    for name, kind, scale, covers in (("x", "laplace", 8.0, True), ("y", "laplace", 2.0, True), ("x", "laplace", 2.0, False)):
        assert two.covers(name, kind, scale) is covers
    assert not two.covers("y", "none", 2.0)
    assert ConstantEvidence().delta(0.0) == 0.0


def counted(n: int = 5, width: int = 3, noise: str = "laplace", scale: float = 8.0) -> Counted:
    return Counted(n, width, (0, 3), False, frozenset(), "", "", noise, scale)


def test_what_laplace_terms_cover() -> None:
    terms = (term(sensitivity=15.0), term("y", sensitivity=2.5))
    assert covers_statistic(terms, "x", Fraction(15), "laplace", 8.0)
    assert covers_statistic(terms, "y", Fraction(5, 2), "laplace", 8.0)
    for name, width, kind, scale in (
        ("x", 16, "laplace", 8.0),
        ("y", 3, "laplace", 8.0),
        ("x", 15, "none", 8.0),
        ("x", 15, "laplace", 7.0),
        ("z", 1, "laplace", 8.0),
    ):
        assert not covers_statistic(terms, name, Fraction(width), kind, scale)
    assert covers_range(terms[:1], counted())
    for told in (counted(n=4), counted(width=2), counted(noise="gaussian"), counted(scale=7.0), counted(n=15, width=2)):
        assert not covers_range(terms[:1], told)
    assert not covers_range(terms, counted())
    assert not covers_range((), counted(noise="gaussian"))
    widths = (term(sensitivity=4.0), term(sensitivity=2.0), term("y", sensitivity=1.0))
    assert (least_width(widths, "x"), least_width(widths, "y"), least_width(widths, "z")) == (2.0, 1.0, None)


# -------------------------------------------------------------------------------------------------------------------- grids


@pytest.mark.parametrize(
    ("independent", "factor", "bits"),
    [
        ((2.0, 0.5), ((3.0, -1.0), (0.25, 0.0)), 35),
        ((2.0, 0.5), ((0.5, 0.0), (3.0, -2.0)), 38),  # ten times
        ((2.0, 0.5), ((0.5, 0.0), (0.0, 0.1)), 34),
        ((2.0, 0.5), ((0.0, 0.0), (0.0, 0.0)), 34),
        ((2.0, 0.5), (), 0),
    ],
)
def test_common_noise_is_on_a_grid_below_each_averages_own(independent: Any, factor: Any, bits: int) -> None:
    made = Design(independent, factor)
    assert common_bits(made) == bits
    squares = [own**2 + sum(x * x for x in (factor[k] if factor else ())) for k, own in enumerate(independent)]
    assert made.scales() == pytest.approx([math.sqrt(one) for one in squares], rel=1e-12)
    wanted = np.diag(np.array(independent) ** 2) + (np.array(factor) @ np.array(factor).T if factor else 0.0)
    assert made.covariance() == pytest.approx(wanted)


def test_noise_of_parts_is_on_a_finer_grid_of_many_rows() -> None:
    class Part:
        def __init__(self, factor: Any) -> None:
            self.factor = factor

    parts: Any = [Part(((3.0,), (0.5,))), Part(((-4.0, 1.0), (0.0, 0.0)))]
    assert equalising_bits((2.0, 1.0), (), parts, 2) == 34 + 2  # 8 / 2
    assert equalising_bits((2.0, 0.01), (), parts, 2) == 34 + 6  # 0.5 / 0.01
    assert equalising_bits((2.0, 1.0), ((0.5,), (9.5,)), parts, 2) == 34 + 4  # 10 / 1
    assert equalising_bits((2.0, 1.0), (), parts, 2**20) == 34 + 10
    assert equalising_bits((1e3, 1e3), (), parts, 1) == 34


def test_a_number_is_finite() -> None:
    assert exact(Fraction(1, 3)) == Fraction(1, 3)
    for wrong in (math.inf, math.nan):
        with pytest.raises(UsageError):
            exact(wrong)


# ------------------------------------------------------------------------------------------------------------------- ranges


def test_an_answer_is_kept_in_its_range() -> None:
    made = StatisticPlan(fills={"x": None}, clips={"x": (0.0, 3.0)}, range=(-1.5, 2.25), undefined=0.5)
    assert made.width == Fraction(15, 4)
    for value, kept in ((-2, Fraction(-3, 2)), (5, Fraction(9, 4)), (1, 1), (None, Fraction(1, 2))):
        assert made.kept(None if value is None else Fraction(value)) == kept
    with pytest.raises(CertificateError):
        made.model_copy(update={"undefined": None}).kept(None)
    told = made.to_json()
    assert StatisticPlan.model_validate({**told, "scales": {}}) == made  # as ledgers of 0.1.0 have it
    for other in ({**told, "scales": {"x": 1.0}}, {**told, "more": {}}):
        with pytest.raises((PolicyError, ValueError)):
            StatisticPlan.model_validate(other)


def asked(text: str, **changes: Any) -> Problem:
    told: dict[str, Any] = {
        "secrets": (Secret("mean(s)", within=1.0),),
        "epsilon": 1.0,
        "n": 8,
        "bounds": {"x": (1.0, 4.0), "y": (-2.0, 3.0)},
    }
    return Problem(queries=parse_queries(text), **(told | changes))


def test_how_far_a_statistic_moves() -> None:
    """A declared range is cut to what bounds allow; the width is rounded up, and a regression may be undefined."""
    found = ranged(asked("var_pop(x), count(*)"))
    assert (found.query.text, found.how.range, found.how.undefined) == ("var_pop(x)", (0.0, 2.25), None)
    cut = ranged(asked("var_pop(x)", ranges={"var_pop(x)": (0.5, 9.0)}))
    assert (cut.how.range, cut.width) == ((0.5, 2.25), 1.75)
    assert cut.how.clips == {"x": (1.0, 4.0)}
    line = ranged(asked("regr_slope(y, x)", ranges={"regr_slope(y, x)": (-1.0, 7.0)}))
    assert (line.how.range, line.how.undefined, line.width) == ((-1.0, 7.0), 3.0, 8.0)
    assert line.how.clips == {"x": (1.0, 4.0), "y": (-2.0, 3.0)}
    odd = ranged(asked("var_pop(x)", ranges={"var_pop(x)": (0.1, 0.3)}))
    assert Fraction(odd.width) >= Fraction(0.3) - Fraction(0.1) > Fraction(math.nextafter(odd.width, 0.0))


def test_a_quantile_of_a_column_lies_where_the_column_is_clipped() -> None:
    (text,) = (query.text for query in parse_queries("median(z)"))
    declared = ranged(asked("median(z)", ranges={text: (0.5, 2.0)}))
    assert (declared.how.clips, declared.how.range) == ({"z": (0.5, 2.0)}, (0.5, 2.0))
    both = ranged(asked("median(x)", ranges={"median(x)": (2.0, 9.0)}))
    assert (both.how.clips, both.how.range) == ({"x": (1.0, 4.0)}, (2.0, 4.0))
    for text, ranges in (
        ("median(z)", {}),
        ("var_pop(z)", {"var_pop(z)": (0.5, 2.0)}),
        ("median(z * x)", {"median(z * x)": (0.5, 2.0)}),
    ):
        with pytest.raises(Refusal):
            ranged(asked(text, ranges=ranges))


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("var_pop(x), median(x)", {}),
        ("var_pop(x)", {"individuals": 1.0}),
        ("var_pop(x)", {"ranges": {"var_pop(x)": (3.0, 9.0)}}),
        ("var_pop(x)", {"bounds": {"x": (-1e200, 1e200)}}),
        ("regr_slope(y, x)", {}),
    ],
)
def test_what_moves_without_bound_is_refused(text: str, changes: dict[str, Any]) -> None:
    with pytest.raises(Refusal):
        ranged(asked(text, **changes))


# -------------------------------------------------------------------------------------------------------------------- checks


def test_a_population_may_go_beyond_its_case() -> None:
    case = GroupCase(n=50, low=10, high=20, apart=10, members=((3.0, 1.0),), rest=((1.0, 0.5),))
    table = GroupCheck(secret="s", theta=0, case=case)
    people = GroupCheck(secret="s", theta=0, case=case, shares=(0.25, 0.35))
    assert (table.tail, table.readable, people.readable) == (0.0, True, True)
    assert people.tail == population_tail(50, 0.25, 0.35, 10, 20, 10) > 0
    known = GroupCase(n=50, low=10, high=20, apart=10, members=((3.0, 1.0),), rest=((1.0, 0.5),), known=2)
    assert GroupCheck(secret="s", theta=0, case=known).readable
    assert not GroupCheck(secret="s", theta=0, case=known, shares=(0.25, 0.35)).readable


def test_what_another_library_released_is_said_in_a_line() -> None:
    assert require_what("  histogram of ward  ") == "histogram of ward"
    assert require_what("x" * 200) == "x" * 200
    wrong: Sequence[object] = ("", "   ", "x" * 201, "a\nb", None, 3)
    for one in wrong:
        with pytest.raises(UsageError, match="what: must be a line"):
            require_what(one)
    assert (shown_b(0.12345678), shown_b(1.9999999), shown_b(2.5)) == ("0.123456", "1.99999", "2.5")
