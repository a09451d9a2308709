"""What each secret tells of the answer, by numpy's own regression, and the laws by their distribution functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.methods.quantile_clip import model_error as quantile_model
from attrpriv.methods.quantile_clip import plan as quantile_clip
from attrpriv.methods.quantile_clip.model_error import Line
from attrpriv.methods.quantile_clip.proof import QuantileClipEvidence
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

N = 400
NAMES = ("weight", "a", "b")
MEAN = np.array([150.0, 5.0, -4.0])
SD = np.array([25.0, 3.0, 2.0])
RHO = np.array([[1.0, 0.3, 0.5], [0.3, 1.0, 0.2], [0.5, 0.2, 1.0]])


def asked(*secrets: Secret, rho: Any = RHO, delta: float = 1e-6) -> Problem:
    member = Gaussian(
        mean=dict(zip(NAMES, MEAN.tolist(), strict=True)),
        sd=dict(zip(NAMES, SD.tolist(), strict=True)),
        correlation={(NAMES[i], NAMES[j]): float(rho[i][j]) for i in range(3) for j in range(i)},
        tolerance=0,
    )
    return Problem(
        queries=(Query("avg", "weight"),), secrets=secrets, epsilon=0.5, delta=delta, n=N, theta=(member,),
        resolution=dict.fromkeys(NAMES, 0.01),
    )  # fmt: skip


def evidence_of(problem: Problem) -> QuantileClipEvidence:
    found = quantile_clip.drafted(problem).certificate.evidence
    assert isinstance(found, QuantileClipEvidence)
    return found


def lines_of(problem: Problem) -> list[Line]:
    return quantile_model._lines(problem, evidence_of(problem))


def told(problem: Problem, forms: list[list[float]], rho: Any = RHO) -> tuple[Any, float, float]:
    """Factors of a secret's statistics in the answer, in units of sqrt(V), and what is left open; and that unit."""
    evidence = evidence_of(problem)
    v = rho * np.outer(SD, SD)
    read = sorted({NAMES.index(c) for one in evidence.reads for c in one.coefficients})
    slopes = np.zeros(3)
    slopes[read] = np.linalg.solve(v[np.ix_(read, read)], v[read, 0])
    root = math.sqrt((v[0, 0] - v[0] @ slopes) / N + evidence.mask**2)
    g = np.array(forms)
    factors = np.linalg.solve(g @ v @ g.T, g @ v @ slopes)
    left = slopes @ v @ slopes - factors @ g @ v @ slopes
    return factors / root, math.sqrt(max(left, 0.0) / N) / root, root


def agrees(line: Line, low: float, high: float, apart: float, spread: float) -> bool:
    found, truth = (line.low, line.high, line.apart, line.spread), (low, high, apart, spread)
    return found == pytest.approx(truth, rel=1e-8, abs=1e-10)


def test_one_secret_tells_all_that_is_taken_back() -> None:
    """In a range around its stated mean, in the unit of a mean; the values of a sum lie n times as far apart."""
    ranged = asked(Secret("mean(a)", between=(4.2, 7.0)))
    (f,), spread, _ = told(ranged, [[0, 1, 0]])
    assert spread == pytest.approx(0.0, abs=1e-6)
    (line,) = lines_of(ranged)
    assert agrees(line, f * (4.2 - 5), f * 2, math.inf, 0.0)
    assert line.spread == 0
    (line,) = lines_of(asked(Secret("sum(a)", between=(4.2 * N, 7.0 * N), within=60.0)))
    assert agrees(line, f * (4.2 - 5), f * 2, f * 60 / N, 0.0)
    (line,) = lines_of(asked(Secret("sum(a)", within=60.0)))
    assert agrees(line, -math.inf, math.inf, f * 60 / N, 0.0)


def test_of_several_secrets_each_leaves_something_open() -> None:
    """One that falls with the answer too: its range is turned around."""
    first, second = Secret("mean(a)", within=0.3, between=(4.0, 8.0)), Secret("sum(a - 3 * b)", between=(12.0 * N, 19.0 * N))
    problem = asked(first, second)
    one, other = lines_of(problem)
    (f,), spread, _ = told(problem, [[0, 1, 0]])
    assert spread > 0.01
    assert agrees(one, f * (4 - 5), f * (8 - 5), f * 0.3, spread)
    (f,), spread, _ = told(problem, [[0, 1, -3]])
    assert f < 0
    assert agrees(other, f * (19 - 17), f * (12 - 17), math.inf, spread)


def test_statistics_hidden_jointly_add_up() -> None:
    """Their ranges, each in its own unit; and near pairs in the direction that tells most."""
    ranged = Secret(("mean(a)", "sum(b)"), between={"mean(a)": (4.0, 8.0), "sum(b)": (-5.0 * N, -3.5 * N)})
    (line,), ((f, g), _, _) = lines_of(asked(ranged)), told(asked(ranged), [[0, 1, 0], [0, 0, 1]])
    assert agrees(line, -f - g, 3 * f + 0.5 * g, math.inf, 0.0)
    near = Secret(("mean(a)", "sum(b)"), within=0.4)
    (line,) = lines_of(asked(near))
    assert agrees(line, -math.inf, math.inf, 0.4 * math.hypot(f, g / N), 0.0)


def test_what_the_answer_does_not_move_with_tells_nothing() -> None:
    """However far apart its values may be."""
    rho = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.2], [0.0, 0.2, 1.0]])
    for line in lines_of(asked(Secret("mean(a)", within=0.3), Secret("mean(b)", within=0.3), rho=rho)):
        assert line == Line(0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("cases", "low", "high"),
    [
        (("[4, 4.5)", "[6, 7)"), (4.0, 0), (7.0, 0)),  # no side is open
        (("< 4.9", "[6, 7)"), (4.9, -1), (7.0, 1)),  # ten standard errors beyond all ends, where one side is
        (("< 8", "[8.5, 9)"), (5.0, -1), (9.0, 1)),  # and beyond the mean itself
        (("> 3", "[1, 2)"), (1.0, -1), (5.0, 1)),
    ],
)
@pytest.mark.parametrize("kind", ["mean", "sum"])
def test_sets_of_values_end_where_their_last_one_does(
    cases: tuple[str, ...], low: tuple[float, int], high: tuple[float, int], kind: str
) -> None:
    if kind == "sum":
        cases = tuple(_scaled(case) for case in cases)
    problem = asked(Secret(f"{kind}(a)", cases=cases))
    (line,), ((f,), _, _) = lines_of(problem), told(problem, [[0, 1, 0]])
    error = 10 * 3.0 / math.sqrt(N)
    first, last = (f * (end + far * error - 5) for end, far in (low, high))
    assert agrees(line, first, last, math.inf, 0.0)


def _scaled(case: str) -> str:
    """The same set of sums."""
    if case[0] == "[":
        return "[{}, {})".format(*(float(end) * N for end in case[1:-1].split(",")))
    return f"{case[0]} {float(case[2:]) * N}"


# ------------------------------------------------------------------------------------------------------ slopes that are off


def test_slopes_may_be_too_steep_and_too_flat_and_charges_come_on_top(monkeypatch: pytest.MonkeyPatch) -> None:
    """What true slopes leave: residual - ((1 + off)^2 - 1) explained of each row, and the mask."""
    problem = asked(Secret("mean(a)", between=(4.2, 7.0)), Secret("mean(b)", between=(-6.0, -3.0)))
    evidence = evidence_of(problem).model_copy(update={"mask": 0.5})  # a quarter of the variance
    seen: list[tuple[float, float, float, float]] = []

    def found(self: Any, off: float, c: float, delta: float, least: float) -> float:
        seen.append((off, c, delta, least))
        return least + 0.7

    monkeypatch.setattr(quantile_model._Family, "epsilon", found)
    families = len(quantile_model.telling(lines_of(problem)))
    rows = quantile_model.model_error(problem, evidence)
    assert [row.off_by for row in rows] == [0.01, 0.02, 0.05, 0.1]
    # Each one starts from what those before it needed.
    assert [row.epsilon for row in rows] == pytest.approx([0.7 * 2 * families * 1.01 + 2 * evidence.lam] * 4, rel=1e-12)
    assert [off for off, *_ in seen] == [sign * row.off_by for row in rows for sign in (1, -1) for _ in range(families)]
    residual, explained, v = float(evidence.residual), float(evidence.explained), float(evidence.variance)
    for off, c, delta, _ in seen:
        assert c == pytest.approx(
            math.sqrt(((residual - ((1 + off) ** 2 - 1) * explained) / N + evidence.mask**2) / v), rel=1e-9
        )
        assert delta == 1e-6
    # Never less than what is promised.
    monkeypatch.setattr(quantile_model._Family, "epsilon", lambda self, off, c, delta, least: 0.0)
    assert {row.epsilon for row in quantile_model.model_error(problem, evidence)} == {evidence.loss()}


def test_slopes_that_leave_no_variance_hold_for_no_epsilon() -> None:
    """At correlation .99 a row keeps .0199 of its variance, and slopes 2% too steep would explain .0396 more of .9801."""
    rho = np.array([[1.0, 0.99, 0.0], [0.99, 1.0, 0.0], [0.0, 0.0, 1.0]])
    problem = asked(Secret("mean(a)", between=(4.9, 5.0)), rho=rho)
    epsilons = [row.epsilon for row in quantile_model.model_error(problem, evidence_of(problem))]
    assert epsilons[0] is not None
    assert epsilons[1:] == [None, None, None]


def family(line: Line) -> tuple[Any, Any]:
    evidence = evidence_of(asked(Secret("mean(a)", between=(4.2, 7.0))))
    return quantile_model._Family.of(evidence, line), evidence


@pytest.mark.parametrize("line", [Line(-1.5, 0.7, math.inf, 0.0), Line(0.2, 1.9, 0.6, 0.45)])
@pytest.mark.parametrize(("off", "c"), [(0.1, 0.93), (-0.3, 1.2)])
def test_cells_have_the_mass_that_the_law_gives_them(line: Line, off: float, c: float) -> None:
    """Between two edges: the distribution function of N(off t, c^2) at what z must be for the answer to lie below."""
    found, evidence = family(line)
    reach = evidence.grid.reach
    edges = np.linspace(-reach, reach, quantile_model._CELLS + 1)
    u = np.linspace(-7, 7, 141) if line.spread else np.zeros(1)
    shares = norm.pdf(u) / norm.pdf(u).sum()
    masses = np.exp(found._laws(off, c))
    assert list(found.values) == sorted({t for pair in line.pairs() for t in pair})
    assert {(found.values[i], found.values[j]) for i, j in found.pairs} == {
        both for pair in line.pairs() for both in (pair, pair[::-1])
    }
    for t, row in zip(found.values, masses, strict=True):
        below = np.zeros(len(edges))
        for shift, share in zip(t + line.spread * u, shares, strict=True):
            below += share * norm.cdf((evidence.clip.quantiles(shift, edges)[0] - off * shift) / c)
        truth = np.array([below[0], *np.diff(below), 1 - below[-1]])
        assert len(row) == len(truth)
        assert np.abs(row - truth).sum() < 0.02  # a few cells hold a corner of the density
        large = truth > 1e-9
        large[[0, -1]] = False
        assert float(np.median(np.abs(row / truth - 1)[large])) < 1e-2
        assert (row[0], row[-1]) == pytest.approx((truth[0], truth[-1]), rel=3e-2, abs=1e-15)


@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-3])
def test_the_epsilon_of_the_worst_pair_is_found_from_above(delta: float) -> None:
    """By bisection of each pair alone, both ways; and never less than what is needed already."""
    found, _ = family(Line(-0.8, 0.7, 0.6, 0.0))
    laws = found._laws(0.1, 0.93)
    truth = max(_least(laws[i], laws[j], delta) for i, j in found.pairs)
    told = found.epsilon(0.1, 0.93, delta, 0.0)
    assert truth * (1 - 1e-9) <= told <= truth * (1 + 1e-6)
    assert found.epsilon(0.1, 0.93, delta, 0.9 * truth) == pytest.approx(told, rel=1e-6)
    assert found.epsilon(0.1, 0.93, delta, 1.3 * truth) == 1.3 * truth
    nothing, _ = family(Line(0.4, 0.4, math.inf, 0.0))
    assert nothing.epsilon(0.1, 0.93, delta, 0.25) == 0.25


def _least(p: Any, q: Any, delta: float) -> float:
    if delta == 0:
        return float((p - q).max())
    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if np.maximum(np.exp(p) - np.exp(middle + q), 0).sum() <= delta else (middle, high)
    return high
