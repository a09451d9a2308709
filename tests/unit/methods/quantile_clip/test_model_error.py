"""What holds where slopes are off, with many secrets: only lines that no other one covers are looked at."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.methods.choice.choose import rank
from attrpriv.methods.quantile_clip import model_error as quantile_model
from attrpriv.methods.quantile_clip import plan as quantile_clip
from attrpriv.methods.quantile_clip.model_error import Line, telling
from attrpriv.methods.quantile_clip.proof import QuantileClipEvidence
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query


def problem(secrets: int, within: float | None, between: tuple[float, float] = (0.0, 10.0), epsilon: float = 0.2) -> Problem:
    """An average beside columns that are correlated with it, one more than the other."""
    names = [f"s{k}" for k in range(secrets)]
    pairs = {("weight", name): 0.1 + 0.02 * k for k, name in enumerate(names)}
    pairs |= {(a, b): 0.05 for k, a in enumerate(names) for b in names[:k]}
    member = Gaussian(
        mean={"weight": 150.0, **dict.fromkeys(names, 5.0)},
        sd={"weight": 25.0, **dict.fromkeys(names, 3.0)},
        correlation=pairs,
        tolerance=0,
    )
    hidden = tuple(Secret(f"mean({name})", between=between, within=within) for name in names)
    return Problem(queries=(Query("avg", "weight"),), secrets=hidden, epsilon=epsilon, delta=1e-6, n=10_000, theta=(member,))


def lines_of(given: Problem) -> list[Line]:
    evidence = quantile_clip.drafted(given).certificate.evidence
    assert isinstance(evidence, QuantileClipEvidence)
    return quantile_model._lines(given, evidence)


def epsilons(given: Problem) -> list[float]:
    return [math.inf if row.epsilon is None else row.epsilon for row in quantile_clip.plan(given).model_error]


@pytest.mark.parametrize(("within", "between"), [(0.1, (0.0, 10.0)), (None, (0.0, 10.0)), (None, (4.5, 7.0))])
def test_covered_lines_change_nothing(
    within: float | None, between: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the twin that looks at all of them; and where another line is taken for the telling one, it shows."""
    given = problem(6, within, between)
    found = epsilons(given)
    monkeypatch.setattr(quantile_model, "telling", list)
    assert epsilons(given) == pytest.approx(found, rel=1e-6)  # a search halves thirty times, from another start
    monkeypatch.setattr(quantile_model, "telling", lambda lines: [min(lines, key=lambda line: line.high - line.low)])
    assert epsilons(given)[-1] < found[-1]


def test_of_many_secrets_in_wide_ranges_one_is_looked_at() -> None:
    lines = lines_of(problem(12, 0.1))
    assert len(lines) == 12
    (left,) = telling(lines)
    assert left.high - left.low == max(line.high - line.low for line in lines)


@pytest.mark.parametrize(
    ("other", "covered"),
    [
        (Line(-5.0, 5.0, 1.0, 0.5), True),
        (Line(-10.0, 10.0, 1.0, 0.3), True),  # itself
        (Line(-5.0, 5.0, 1.5, 0.5), False),  # pairs further apart
        (Line(-5.0, 5.0, 1.0, 0.2), False),  # less is left open
        (Line(-8.0, 5.0, 1.0, 0.5), False),  # on the line, but not what it is a mixture of
        (Line(-math.inf, 5.0, 1.0, 0.5), False),
    ],
)
def test_what_a_line_covers(other: Line, covered: bool) -> None:
    line = Line(-10.0, 10.0, 1.0, 0.3)
    assert line.covers(other) == covered
    assert telling([line, other, line]) == ([line] if covered else [line, other])


def test_a_form_that_errs_more_is_not_looked_at_any_further(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Problem] = []

    def counted(given: Problem, evidence: QuantileClipEvidence) -> Sequence[object]:
        asked.append(given)
        return ()

    monkeypatch.setattr(quantile_clip, "model_error", counted)
    kinds = [
        next(one for one in rank(problem(2, within)).plans if one.mechanism == "transport").certificate.evidence.kind
        for within in (0.001, 0.1)
    ]
    assert kinds == ["gaussian", "quantile_clip"]
    assert len(asked) == 1


@pytest.mark.parametrize("cases", [("< {}", ">= {}"), ("abs < {}", "abs >= {}")])
def test_a_set_of_sums_tells_what_the_set_of_means_does(cases: tuple[str, ...]) -> None:
    """The same secret in another unit; where the side is open, the mean that is assumed is looked at in that unit too."""
    given = problem(1, None)
    mean, total = (
        given.model_copy(update={"secrets": (Secret(f"{kind}(s0)", cases=[case.format(at) for case in cases]),)})
        for kind, at in (("mean", 4.9), ("sum", 49_000))
    )
    assert [(line.low, line.high) for line in lines_of(total)] == [
        pytest.approx((line.low, line.high), rel=1e-9) for line in lines_of(mean)
    ]


def test_an_open_set_is_looked_at_as_far_as_its_mean_may_lie() -> None:
    """From the end that is stated, and from the mean that is assumed: so many of its own standard errors to both sides."""
    ranged = problem(1, None)
    cut = ranged.model_copy(update={"secrets": (Secret("mean(s0)", cases=["< 4.9", ">= 4.9"]),)})
    (whole,), (found,) = lines_of(ranged), lines_of(cut)
    per_unit = (whole.high - whole.low) / 10
    far = quantile_model._FAR * 3.0 / math.sqrt(10_000)
    assert found.high / per_unit == pytest.approx(far, rel=1e-6)
    assert found.low / per_unit == pytest.approx(4.9 - 5 - far, rel=1e-6)


# ---------------------------------------------------------------------------------------------------- by the laws themselves


@pytest.mark.parametrize(
    "line",
    [
        Line(-3.0, 5.0, 1.25, 0.0),
        Line(2.0, 3.0, 4.0, 0.0),  # pairs may be further apart than the line is long
        Line(-1.0, math.inf, 0.75, 0.0),
        Line(-math.inf, 2.5, 0.75, 0.0),
    ],
)
def test_near_pairs_are_as_far_apart_as_they_may_be_along_the_line_and_at_both_ends(line: Line) -> None:
    found = list(line.pairs())
    apart = min(line.apart, line.high - line.low)
    assert all(line.low <= t < other <= line.high and other - t <= apart for t, other in found)
    ends = {t for t in (line.low, line.high - apart) if math.isfinite(t)}
    along = {t for t in (0.5 * k for k in range(-16, 17)) if line.low <= t <= line.high - apart}
    assert {t for t, other in found if other == t + apart} >= ends | along
    # An end without a limit is looked at as far as eight standard deviations out.
    assert min(t for t, _ in found) == max(line.low, -8.0)
    assert max(t for t, _ in found) >= min(line.high - apart, 8.0)


def test_far_pairs_are_both_ends_and_what_lies_between() -> None:
    assert set(Line(-5.0, 3.0, math.inf, 0.0).pairs()) == set(itertools.combinations((-5.0, -2.0, 0.0, 2.0, 3.0), 2))
    assert set(Line(-math.inf, 1.0, math.inf, 0.0).pairs()) == set(itertools.combinations((-8.0, -2.0, 0.0, 1.0), 2))


def brute_force(evidence: QuantileClipEvidence, line: Line, off: float, c: float) -> float:
    """The least epsilon of a line's pairs at delta 1e-6, from histograms of the map on a fine grid: no formula of a density."""
    z, told = np.linspace(-9, 9, 40_001), np.linspace(-5, 5, 41) if line.spread else np.zeros(1)
    shares, edges = norm.pdf(told) / norm.pdf(told).sum(), np.linspace(-7.001, 7.001, 961)
    laws: dict[float, Any] = {}
    for t in {one for pair in line.pairs() for one in pair}:
        laws[t] = np.zeros(960)
        for u, share in zip(t + line.spread * told, shares, strict=True):
            answers = np.clip(evidence.clip.moved(z + u, z), -7, 7)
            laws[t] += share * np.histogram(answers, edges, weights=norm.pdf(z, off * u, c) * (z[1] - z[0]))[0]
    both = [(laws[a], laws[b]) for a, b in line.pairs()]
    return max(least(p, q) for one in both for p, q in (one, one[::-1]))


def least(p: Any, q: Any) -> float:
    low, high = 0.0, 100.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if np.maximum(p - math.exp(middle) * q, 0).sum() <= 1e-6 else (middle, high)
    return high


@pytest.mark.parametrize(
    ("line", "off", "c"),
    [
        (Line(-1.0, 0.5, math.inf, 0.0), 0.1, 0.95),
        (Line(-1.0, 0.5, math.inf, 0.0), 0.1, 1.05),
        (Line(-1.0, 0.5, 0.75, 0.0), 0.1, 0.8),
        (Line(-1.0, 0.5, math.inf, 0.4), 0.1, 0.95),
        (Line(0.0, 1.0, 1.0, 0.5), 0.1, 0.9),
        (Line(1.0, 3.0, 2.0, 0.8), 0.1, 0.9),
    ],
)
def test_what_holds_is_what_the_laws_say(line: Line, off: float, c: float) -> None:
    """Of far pairs and near ones; where a secret leaves something open, it is mixed over."""
    evidence = quantile_clip.drafted(problem(1, None, epsilon=0.5)).certificate.evidence
    assert isinstance(evidence, QuantileClipEvidence)
    told = quantile_model._Family.of(evidence, line).epsilon(off, c, 1e-6, 0.0) * quantile_model._ROUND_UP
    real = brute_force(evidence, line, off, c)
    assert real > evidence.loss()
    assert real <= told <= 1.04 * real
