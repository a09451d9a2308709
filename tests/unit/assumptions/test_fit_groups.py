"""A box from public moments by category: textbook intervals, all of them inside, and coverage over simulated tables.

Coverage tests are one-sided binomial tests: a coverage of exactly the confidence would fail one with probability below 1e-7.
With intervals of half their width the same test fails (`test_half_as_wide_would_be_noticed`). The seeds are fixed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from attrpriv.assumptions import fit as shared
from attrpriv.assumptions import fit_groups as module
from attrpriv.assumptions.fit import Interval
from attrpriv.assumptions.fit_groups import GroupFit, fit_group_moments, fit_group_table, least_group_rows
from attrpriv.assumptions.groups import Groups
from attrpriv.errors import DataError, UsageError

FALSE_ALARM = 1e-7


@dataclass(frozen=True)
class Given:
    sensitive: str
    categories: tuple[str, ...]
    columns: tuple[str, ...]
    counts: tuple[int, ...]
    means: tuple[tuple[float, ...], ...]
    variances: tuple[tuple[float, ...], ...]
    digest: str = "0123456789abcdef" * 4

    @property
    def rows(self) -> int:
        return sum(self.counts)


WORK = Given("gender", ("F", "M"), ("hours", "pay"), (900, 2000), ((36.0, 20.0), (42.0, 25.0)), ((121.0, 16.0), (144.0, 25.0)))


def fitted(given: Given = WORK, confidence: float = 0.99) -> GroupFit:
    return fit_group_moments(given, confidence=confidence)


def test_the_intervals_are_the_textbooks() -> None:
    found: dict[tuple[str, str, str | None], Interval] = {(i.kind, i.of, i.on): i for i in fitted(confidence=0.92).intervals}
    level = 1 - 0.08 / 8  # two categories, two columns, a mean and an sd
    mean = stats.t.interval(level, 899, 36, 11 / math.sqrt(900))
    sd = [math.sqrt(25 * 1999 / stats.chi2.ppf(p, 1999)) for p in ((1 + level) / 2, (1 - level) / 2)]
    for key, ends in ((("mean", "hours", "F"), mean), (("sd", "pay", "M"), sd)):
        assert (found[key].low, found[key].high) == pytest.approx(ends, rel=1e-5)
        assert found[key].low < ends[0] < ends[1] < found[key].high
    assert len(found) == 8


@pytest.mark.parametrize("confidence", [0.5, 0.99, 1 - 5e-7])
def test_the_box_contains_every_interval(confidence: float) -> None:
    fit = fitted(confidence=confidence)
    box, t = fit.groups, fit.groups.tolerance
    for interval in fit.intervals:
        category, column = str(interval.on), interval.of
        low, high = box.sd_range(category, column)
        for end in (interval.low, interval.high):
            if interval.kind == "sd":
                assert low <= end <= high
            else:
                assert abs(end - box.mean_of(category, column)) <= t.mean * low
    assert box.fitted is not None
    assert (box.fitted.rows, box.fitted.confidence) == (2900, confidence)
    assert fit.notes[0] == "the rarest category, F with 900 rows, decides the tolerances."
    assert Groups.from_json(box.to_json()) == box


def simulated(counts: Sequence[int], seed: int, tables: int) -> list[Given]:
    """Public tables by their sufficient statistics: mean and variance of normal rows, independent of each other."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(tables):
        means = [tuple(m + s * rng.normal() / math.sqrt(n) for m, s in law) for n, law in zip(counts, TRUTH, strict=True)]
        variances = [
            tuple(s * s * rng.chisquare(n - 1) / (n - 1) for _, s in law) for n, law in zip(counts, TRUTH, strict=True)
        ]
        found.append(replace(WORK, counts=tuple(counts), means=tuple(means), variances=tuple(variances)))
    return found


TRUTH = (((36.0, 11.0), (20.0, 4.0)), ((42.0, 12.0), (25.0, 5.0)))


def inside(box: Groups) -> bool:
    for category, law in zip("FM", TRUTH, strict=True):
        for column, (mean, sd) in zip(("hours", "pay"), law, strict=True):
            low, high = box.sd_range(category, column)
            if not low <= sd <= high or abs(mean - box.mean_of(category, column)) > box.tolerance.mean * sd:
                return False
    return True


def too_many(counts: Sequence[int], confidence: float, tables: int) -> bool:
    missed = sum(not inside(fitted(given, confidence).groups) for given in simulated(counts, sum(counts), tables))
    return bool(stats.binom.sf(missed - 1, tables, 1 - confidence) < FALSE_ALARM)


CASES = [((40, 1000), 0.9), ((300, 300), 0.9), ((300, 5000), 0.99)]


@pytest.mark.parametrize(("counts", "confidence"), CASES)
def test_boxes_contain_the_truth(counts: Sequence[int], confidence: float) -> None:
    assert not too_many(counts, confidence, 500)


@pytest.mark.slow
@pytest.mark.parametrize(("counts", "confidence"), CASES)
def test_boxes_contain_the_truth_in_many_tables(counts: Sequence[int], confidence: float) -> None:
    assert not too_many(counts, confidence, 20_000)


@pytest.mark.parametrize(("counts", "confidence"), CASES)
def test_half_as_wide_would_be_noticed(counts: Sequence[int], confidence: float, monkeypatch: pytest.MonkeyPatch) -> None:
    student, ratios = shared._student, shared._sd_ratios
    monkeypatch.setattr(module, "_student", lambda *of: student(*of) / 2)
    monkeypatch.setattr(module, "_sd_ratios", lambda *of: tuple((1 + ratio) / 2 for ratio in ratios(*of)))
    assert too_many(counts, confidence, 300)


def test_what_cannot_be_fitted() -> None:
    needed = least_group_rows(0.01 / 16)
    assert 5 < needed < 60
    fitted(replace(WORK, counts=(needed, 2000)))
    bad: list[tuple[dict[str, Any], str]] = [
        ({"counts": (needed - 1, 2000)}, f"public: needs at least {needed} rows of each category .* Got {needed - 1} of F"),
        ({"variances": ((0.0, 16.0), (144.0, 25.0))}, "public: every column must vary .* Got hours, constant in F"),
        ({"variances": ((math.nan, 16.0), (144.0, 25.0))}, "public: means and variances must be finite"),
        ({"means": ((36.0, math.inf), (42.0, 25.0))}, "public: means and variances must be finite"),
        ({"categories": ("F",)}, "public: gender must have two or more categories. Got 1"),
        ({"categories": ()}, "public: gender must have two or more categories. Got 0"),
    ]
    for changed, says in bad:
        with pytest.raises(DataError, match=f"^{says}"):
            fitted(replace(WORK, **changed))
    for confidence in (0.4, 1.0, math.nan):
        with pytest.raises(UsageError, match=r"^confidence: "):
            fitted(confidence=confidence)


def test_from_a_table() -> None:
    class Table:
        def group_moments(self, sensitive: str, columns: Sequence[str]) -> Given:
            assert (sensitive, tuple(columns)) == ("gender", ("hours", "pay"))
            return WORK

    options: dict[str, Any] = {"confidence": 0.99, "sensitive": "gender", "columns": ["hours", "pay", "hours"]}
    assert fit_group_table(Table(), **options) == fitted()
    assert Groups.fit(Table(), **options, other="M").other == "M"
    for table, changed, says in (
        ("public.parquet", {}, "table: must be public records"),
        (Table(), {"columns": []}, "columns: "),
        (Table(), {"columns": ["gender"]}, "columns: "),
        (Table(), {"confidence": 1.0}, "confidence: "),
    ):
        with pytest.raises(UsageError, match=f"^{says}"):
            fit_group_table(table, **{**options, **changed})  # type: ignore[arg-type]
