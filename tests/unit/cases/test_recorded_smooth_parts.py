"""The rule for rounding of coarse sensitive columns, part by part: against sums over statistics, parts of rows and columns."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import attrpriv as ap
from attrpriv.assumptions.vector_box import covariance_floor, vector_box
from attrpriv.cases import recorded_smooth
from attrpriv.cases.gaussian import row_floors
from attrpriv.cases.recorded_smooth import SMOOTH, require_smooth
from attrpriv.cases.subset import Rows
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.sql import parse_queries

SD = {"g": 4.0, "h": 3.0, "i": 2.0, "x": 9.0, "y": 7.0}
TIED = {"xg": 0.5, "xh": 0.2, "yg": -0.3, "yh": 0.4, "gh": 0.1, "xy": 0.3, "gi": 0.0, "hi": 0.05, "xi": 0.1, "yi": 0.2}


def law(tolerance: Any = 0, sd: Any = None, **pairs: float) -> ap.Gaussian:
    correlation = {tuple(pair): value for pair, value in (TIED | pairs).items()}
    return ap.Gaussian(sd=SD | (sd or {}), correlation=correlation, tolerance=tolerance)


def covariance(names: str, sd: Any = None, **pairs: float) -> Any:
    sds, tied = SD | (sd or {}), TIED | pairs
    rho = [[1.0 if a == b else tied.get(a + b, tied.get(b + a, 0.0)) for b in names] for a in names]
    each = np.array([sds[name] for name in names])
    return np.array(rho) * np.outer(each, each)


def problem(text: str = "avg(x), avg(y)", secrets: Any = ("mean(g)",), **changes: Any) -> Problem:
    given: dict[str, Any] = {
        "queries": parse_queries(text), "secrets": (Secret(secrets if len(secrets) > 1 else secrets[0], within=1.0),),
        "epsilon": 1.0, "delta": 1e-6, "n": 200, "theta": (law(),), "resolution": {"g": 0.5, "h": 0.25, "i": 1.0},
        "sizes": {"k = 'a'": 30, "k = 'b'": 20, "k in ('a', 'b')": 60},
    }  # fmt: skip
    return Problem(**(given | changes))


# ------------------------------------------------------------------------------------------------------ the best combination


def worst(gram: Any, sizes: Any) -> float:
    """Of all combinations, by summing over pairs of statistics for each pair of parts."""
    parts = len(sizes)
    matrix = np.zeros((parts, parts))
    for one, other in itertools.product(range(len(gram)), repeat=2):
        matrix[one % parts, other % parts] += gram[one, other] ** 2
    for a, b in itertools.product(range(parts), repeat=2):
        matrix[a, b] /= math.sqrt(sizes[a] * sizes[b])
    return float(np.linalg.eigvalsh(matrix)[-1])


def test_the_worst_combination_is_the_largest_eigenvalue() -> None:
    rng = np.random.default_rng(3)
    for statistics, sizes in ((1, [7.0]), (2, [7.0, 3.0]), (3, [5.0, 11.0, 2.0])):
        root = rng.normal(size=(statistics * len(sizes), 4))
        gram = root @ root.T
        assert recorded_smooth._largest(gram, np.array(sizes)) == pytest.approx(worst(gram, sizes), rel=1e-12)
    assert recorded_smooth._largest(np.zeros((2, 2)), np.array([3.0, 4.0])) == 0.0
    for infinite in (
        np.full((2, 2), math.inf),
        np.array([[math.inf, 0.0], [0.0, 1.0]]),
        np.array([[1.0, 0.0], [0.0, math.nan]]),
    ):
        assert recorded_smooth._largest(infinite, np.array([3.0, 4.0])) == math.inf


def test_slopes_that_are_off_add_their_fourth_root() -> None:
    """That of what is off is taken with the sizes of the inverse, entry by entry."""
    rng = np.random.default_rng(4)
    root, sizes = rng.normal(size=(2, 5)) * np.array([[1.0], [30.0]]), np.array([6.0, 10.0])
    spread, pulls, off = root @ root.T, rng.normal(size=(2, 4)), rng.uniform(size=(2, 4))
    inverse = np.linalg.inv(spread)
    each = worst(pulls.T @ inverse @ pulls, sizes), worst(off.T @ np.abs(inverse) @ off, sizes)
    wanted = (each[0] ** 0.25 + each[1] ** 0.25) ** 4
    assert wanted <= recorded_smooth._kurtosis(pulls, off, spread, sizes) * (1 + 1e-9)
    assert recorded_smooth._kurtosis(pulls, off, spread, sizes) == pytest.approx(wanted, rel=1e-9)
    alone = recorded_smooth._kurtosis(pulls, 0 * off, spread, sizes)
    assert alone == pytest.approx(each[0], rel=1e-9)


def test_averages_that_determine_each_other_show_everything() -> None:
    sizes = np.array([10.0])
    for off, most in ((1e-9, 1e9), (1e-14, math.inf)):
        spread = np.array([[1.0, 1 - off], [1 - off, 1.0]]) * np.outer([2.0, 50.0], [2.0, 50.0])
        found = recorded_smooth._kurtosis(np.array([[2.0], [0.0]]), np.zeros((2, 1)), spread, sizes)
        wanted = (1 / (2 * off)) ** 2 / 10
        assert wanted * (0.999 if most < math.inf else 1e6) <= found <= (wanted * 1.001 if most < math.inf else math.inf)


def test_eigenvalues_are_taken_for_less_by_their_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of correlations, by a unit for each average; with a unit that shows."""
    monkeypatch.setattr(recorded_smooth, "_EIGEN", 0.05)
    rng = np.random.default_rng(8)
    scale, sizes, pulls = np.array([2.0, 5.0, 0.5]), np.array([6.0]), rng.normal(size=(3, 1))
    unit = np.array([[1.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 1.0]])
    at = pulls / scale[:, None]
    wanted = worst(at.T @ np.linalg.inv(unit - 0.15 * np.eye(3)) @ at, sizes)
    found = recorded_smooth._kurtosis(pulls, 0 * pulls, unit * np.outer(scale, scale), sizes)
    assert found == pytest.approx(wanted, rel=1e-9)
    for size, times in ((0.44, 1.0), (0.46, 8.0)):  # of two columns of which .9 is the least eigenvalue
        monkeypatch.setattr(recorded_smooth, "_EIGEN", size)
        asked = problem(secrets=("mean(g)", "mean(h)"))
        assert recorded_smooth._together(asked, law(), asked.secrets[0]) == times


def test_errors_of_each_statistic_pull_in_each_part() -> None:
    rng = np.random.default_rng(5)
    slopes, members, sizes = rng.normal(size=(3, 2)), rng.uniform(size=(3, 4)), np.array([3.0, 5.0, 7.0, 2.0])
    found = recorded_smooth._pulls(slopes, [0.5, 2.0], members, sizes)
    for k, j, a in itertools.product(range(3), range(2), range(4)):
        wanted = slopes[k, j] * (0.5, 2.0)[j] * members[k, a] * math.sqrt(sizes[a])
        assert found[k, 4 * j + a] == pytest.approx(wanted, rel=1e-13)


def test_parts_are_the_rows_that_lie_in_the_same_subsets() -> None:
    text = "avg(x), avg(x) filter (where k = 'a'), avg(y) filter (where k in ('a', 'b')), avg(y) filter (where k = 'b')"
    members, sizes = recorded_smooth._parts(Rows.of(problem(text)))
    inside = {(1, 1, 1, 0): 30, (1, 0, 1, 1): 20, (1, 0, 1, 0): 10, (1, 0, 0, 0): 140}
    found = {tuple((column > 0).astype(int).tolist()): size for column, size in zip(members.T, sizes, strict=True)}
    assert found == inside
    assert {round(1 / entry) for row, size in zip(members, (200, 30, 60, 20), strict=True) for entry in row if entry} == {
        200,
        30,
        60,
        20,
    }
    for row, size in zip(members, (200, 30, 60, 20), strict=True):
        assert set(row) <= {0.0, 1 / size}
    # Parts that are all of what is around them leave it none.
    full = problem(
        "avg(x), avg(x) filter (where k = 'a'), avg(x) filter (where k = 'b')", sizes={"k = 'a'": 30, "k = 'b'": 170}
    )
    members, sizes = recorded_smooth._parts(Rows.of(full))
    assert sorted(sizes) == [30, 170]
    assert np.count_nonzero(members) == 4
    nearly = full.model_copy(update={"sizes": {"k = 'a'": 30, "k = 'b'": 169}})
    assert sorted(recorded_smooth._parts(Rows.of(nearly))[1]) == [1, 30, 169]


# ------------------------------------------------------------------------------------------------------------- what is rounded


def test_a_statistic_is_rounded_as_its_columns_together() -> None:
    """Fourth powers of weights and spacings add up."""
    asked = problem()
    for statistic in ({"g": 1.0}, {"g": 2.0, "h": -3.0}, {"g": 0.5, "i": 1.0, "x": 5.0}):
        steps = {"g": 0.5, "h": 0.25, "i": 1.0}
        wanted = sum((weight * steps.get(name, 0.0)) ** 4 for name, weight in statistic.items()) ** 0.25
        assert recorded_smooth._spacing(asked, statistic) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(
    ("secrets", "steps", "tie", "times"),
    [
        (("mean(g)",), {"g": 40.0}, 0.0, 1.0),
        (("mean(g)", "mean(h)"), {"g": 40.0}, 0.0, 1.0),
        (("mean(g)", "mean(h)"), {"g": 0.5, "h": 0.25}, 0.1, 1.0),
        (("mean(g)", "mean(h)"), {"g": 0.5, "h": 3.1}, 0.1, 8.0),
        (("mean(g)", "mean(h)"), {"g": 3.99, "h": 0.25}, 0.1, 8.0),
        (("mean(g)", "mean(h)", "mean(i)"), {"g": 0.5, "h": 0.25, "i": 2.1}, 0.1, 27.0),
        (("mean(g)", "mean(h)", "mean(i)"), {"g": 0.5, "h": 0.25, "i": 1.0}, 0.1, 1.0),
        (("mean(g)", "mean(h)", "mean(i)"), {"g": 0.5, "h": 0.25}, 1.0, 8.0),
        (("mean(g)", "mean(h)"), {"g": 1e-9, "h": 1e-9}, 1.0, 8.0),
    ],
)
def test_errors_that_may_go_the_same_way_count_together(secrets: Any, steps: Any, tie: float, times: float) -> None:
    """Where a column varies by less than a spacing given the others: m^3 for m coarse columns."""
    pairs = {"gh": tie, "gi": 0.0, "hi": 0.0}
    theta = law(**pairs, xg=0.0, xh=0.0, yg=0.0, yh=0.0, xi=0.0, yi=0.0)
    asked = problem(secrets=secrets, resolution=steps)
    assert recorded_smooth._together(asked, theta, asked.secrets[0]) == times


def test_columns_vary_by_the_least_that_the_assumption_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """3.98 given the other, or a fifth less; where it is exact, less by its rounding."""
    asked = problem(secrets=("mean(g)", "mean(h)"), resolution={"g": 3.9, "h": 0.25})
    for tolerance, times in ((0, 1.0), ({"sd": 0.2, "correlation": 0.01}, 8.0)):
        assert recorded_smooth._together(asked, law(tolerance), asked.secrets[0]) == times
    signs: list[float] = []

    def noted(theta: Any, names: Any, sign: float) -> Any:
        signs.append(sign)
        return covariance_floor(theta, names, sign)

    monkeypatch.setattr(recorded_smooth, "covariance_floor", noted)
    recorded_smooth._regressed(law(), ("x", "y"), asked.secrets[0])
    assert signs == [-1.0]


# ------------------------------------------------------------------------------------------------- slopes and what is left open


def test_several_exact_statistics_are_regressed_on_together() -> None:
    """Sums of columns too. A hidden column that is asked for has nothing left, one that is part of a hidden sum has."""
    theta = law()
    secret = Secret(("mean(g + 2*h)", "mean(i)"), within=1.0)
    found = recorded_smooth._regressed(theta, ("x", "i", "y", "g"), secret)
    cov = covariance("ghixy")
    hidden = np.array([[1.0, 2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]])
    chosen = np.eye(5)[[3, 2, 4, 0]]
    spread, shared = hidden @ cov @ hidden.T, chosen @ cov @ hidden.T
    slopes = np.linalg.solve(spread, shared.T).T
    left = chosen @ cov @ chosen.T - slopes @ shared.T
    left[1], left[:, 1] = 0.0, 0.0
    assert np.abs(found.slopes - slopes).max() < 1e-9
    (residual,) = found.residuals
    assert np.abs(residual - left).max() < 1e-9
    assert (np.diag(residual)[[0, 2, 3]] < np.diag(left)[[0, 2, 3]]).all()
    assert np.linalg.eigvalsh(left - residual)[0] >= -1e-15
    unit = np.sqrt(np.diag(spread))
    least = np.linalg.eigvalsh(spread / np.outer(unit, unit))[0]
    sizes = np.linalg.norm(slopes * unit, axis=1)
    assert found.off == pytest.approx(1e-14 / least * sizes[:, None] / unit, rel=1e-6, abs=0)


def test_regressions_are_off_by_what_solving_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a unit that shows: over the least eigenvalue, of each column's own variance and of the slopes."""
    secret = Secret(("mean(g)", "mean(h)"), within=1.0)
    exact = recorded_smooth._regressed(law(), ("x", "y"), secret)
    monkeypatch.setattr(recorded_smooth, "_SOLVED", 0.01)
    found = recorded_smooth._regressed(law(), ("x", "y"), secret)
    off = 0.01 / 0.9
    less = np.diag(exact.residuals[0] - found.residuals[0])
    assert less == pytest.approx(off * np.array([81.0, 49.0]), rel=1e-6)
    sizes = np.linalg.norm(exact.slopes * np.array([4.0, 3.0]), axis=1)
    assert found.off == pytest.approx(off * sizes[:, None] / np.array([4.0, 3.0]), rel=1e-6)


@pytest.mark.parametrize("theta", [law(), law({"slope": 0.05, "sd": 0.02})])
def test_one_statistic_has_its_box_and_two_bounds_on_what_is_left(theta: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is the least eigenvalue, less by its rounding; here with a unit that shows."""
    asked = problem("avg(x), avg(y), avg(h)", theta=(theta,))
    secret, columns = asked.secrets[0], ("x", "y", "h")
    box = vector_box(theta, columns, {"g": 1.0})
    (floor,) = row_floors(asked, theta, columns)
    assert box is not None
    monkeypatch.setattr(recorded_smooth, "_EIGEN", 0.01)
    found = recorded_smooth._one(asked, theta, columns, secret)
    assert found is not None
    for k, (low, high) in enumerate(box.slopes):
        assert (found.slopes[k, 0], found.off[k, 0]) == pytest.approx(((low + high) / 2, (high - low) / 2))
    assert (found.residuals[0] == box.residual).all()
    wanted = [max(0.0, floor[column] - 0.01 * 3 * theta.sd_range(column)[1] ** 2) for column in columns]
    assert max(wanted) > 0
    assert np.diag(found.residuals[1]) == pytest.approx(wanted)
    assert np.count_nonzero(found.residuals[1]) == np.count_nonzero(wanted)


@pytest.mark.parametrize(("short", "refused"), [(0.99e-6, True), (1.01e-6, False)])
def test_statistics_that_nearly_determine_one_another_are_refused(short: float, refused: bool) -> None:
    theta = law(gh=1 - short, xg=0.0, xh=0.0, yg=0.0, yh=0.0, gi=0.0, hi=0.0, xi=0.0, yi=0.0)
    secret = Secret(("mean(g)", "mean(h)"), within=1.0)
    if refused:
        with pytest.raises(Refusal, match="nearly determine one another") as caught:
            recorded_smooth._regressed(theta, ("x",), secret)
        assert caught.value.cause is Cause.SECRET
    else:
        assert recorded_smooth._regressed(theta, ("x",), secret).residuals[0] == pytest.approx(np.array([[81.0]]), rel=1e-6)


def test_under_a_tolerance_slopes_are_bounded_by_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hidden column given all others at least its share of the least eigenvalue: no slope is beyond that."""
    theta = law({"sd": 0.02, "slope": 0.05})
    asked = problem("avg(x), avg(y)", ("mean(g)", "mean(h)"), theta=(theta,))
    found = recorded_smooth._roughly(asked, theta, ("x", "y"), asked.secrets[0])
    assert (found.slopes == 0).all()
    (left,) = found.residuals
    cov = covariance("ghxy")
    sd = np.array([4.0, 3.0, 9.0, 7.0])
    share = 1.0
    for place in (0, 1):
        others = [k for k in range(4) if k != place]
        open_ = cov[np.ix_(others, others)] - np.outer(cov[others, place], cov[others, place]) / cov[place, place]
        share = min(share, float(np.linalg.eigvalsh(open_ / np.outer(sd[others], sd[others]))[0]))
    least = np.diag(left) / sd[2:] ** 2
    assert (least < share).all()
    assert (least > 0.5 * share).all()
    assert left[0, 1] == left[1, 0] == 0
    for k, j in itertools.product(range(2), repeat=2):
        bound = found.off[k, j] * sd[j] / sd[2 + k]
        assert 1.02 / math.sqrt(share) <= bound <= 1.02 * 1.02 / math.sqrt(0.5 * share)
    floors = [row_floors(problem(secrets=(text,)), theta, ("x", "y", "g", "h"))[0] for text in ("mean(g)", "mean(h)")]
    assert floors[0]["x"] != floors[1]["x"]
    assert np.diag(left) == pytest.approx([min(floor[column] for floor in floors) for column in "xy"])
    furthest = min(floors[1]["g"] / 4.08**2, floors[0]["h"] / 3.06**2)
    for share, refused in ((0.999, False), (1.001, True)):
        monkeypatch.setattr(recorded_smooth, "_APART", furthest * share)
        if refused:
            with pytest.raises(Refusal, match="within the tolerance"):
                recorded_smooth._roughly(asked, theta, ("x", "y"), asked.secrets[0])
        else:
            recorded_smooth._roughly(asked, theta, ("x", "y"), asked.secrets[0])
    for texts in (("mean(g)", "mean(g + h)"), ("mean(g + h)", "mean(h)")):
        with pytest.raises(Refusal, match="exactly stated moments"):
            recorded_smooth._roughly(asked, theta, ("x", "y"), Secret(texts, within=1.0))


def test_combinations_of_columns_are_rounded_down() -> None:
    rng = np.random.default_rng(6)
    weights, root = rng.normal(size=(2, 3)), rng.normal(size=(3, 3))
    residual = root @ root.T
    made = weights @ residual @ weights.T
    found = recorded_smooth._combined(weights, residual)
    assert np.abs(found - made).max() < 1e-11
    assert (np.diag(found) < np.diag(made)).all()
    assert found[0, 1] == found[1, 0]


# -------------------------------------------------------------------------------------------------------------------- the rule


def limit(known: float, noise: float) -> float:
    """The largest spacing of g of which averages of x and y over 200 rows show nothing, by the rule's formula."""
    cov = covariance("gxy")
    slopes = cov[1:, 0] / cov[0, 0]
    left = (cov[1:, 1:] - np.outer(slopes, slopes) * cov[0, 0]) * (1 - known) / 200 + noise * np.eye(2)
    pulls = slopes[:, None] / 200 * math.sqrt(200)
    return float((1 / SMOOTH / ((pulls.T @ np.linalg.solve(left, pulls)).item() ** 2 / 200)) ** 0.25)


@pytest.mark.parametrize("known", [0.0, 0.6])
def test_known_rows_leave_less_open(known: float) -> None:
    for share, shows in ((0.999, False), (1.001, True)):
        asked = problem(resolution={"g": share * limit(known, 0.01)}, known_rows=known)
        noise = 0.01 * np.eye(2)
        if shows:
            with pytest.raises(Refusal, match="rounding shows"):
                require_smooth(asked, Rows.of(asked), (law(),), noise, asked.secrets)
        else:
            require_smooth(asked, Rows.of(asked), (law(),), noise, asked.secrets)


def test_the_rule_is_asked_of_every_law_and_secret_and_of_nothing_else() -> None:
    coarse, fine = law(sd={"x": 1.0, "y": 1.0}), law(sd={"x": 1.0, "y": 1.0}, xg=0.0, yg=0.0)
    asked = problem(resolution={"g": 4.0})
    noise = 1e-6 * np.eye(2)
    for theta in ((coarse, fine), (fine, coarse)):
        with pytest.raises(Refusal, match="rounding shows"):
            require_smooth(asked, Rows.of(asked), theta, noise, asked.secrets)
    hidden = (Secret("mean(h)", within=1.0), Secret("mean(g)", within=1.0))
    for secrets in (hidden, hidden[::-1]):
        with pytest.raises(Refusal, match="rounding shows"):
            require_smooth(asked, Rows.of(asked), (coarse,), noise, secrets)
    require_smooth(asked, Rows.of(asked), (fine,), noise, asked.secrets)
    require_smooth(asked, Rows.of(asked), (coarse,), noise, (Secret("mean(h)", within=1.0),))  # h has no spacing
    require_smooth(asked, Rows.of(asked), (coarse,), noise, ())
    jointly = Secret(("mean(g)", "mean(h)"), within=1.0)  # of which one has none
    with pytest.raises(Refusal, match="rounding shows"):
        require_smooth(asked, Rows.of(asked), (coarse,), noise, (jointly,))
    shaped = replace_shape(coarse)
    require_smooth(asked, Rows.of(asked), (shaped,), noise, asked.secrets)
    nothing = problem("count(*)", resolution={"g": 4.0})
    require_smooth(nothing, Rows.of(nothing), (coarse,), np.zeros((0, 0)), nothing.secrets)


def replace_shape(theta: ap.Gaussian) -> ap.Gaussian:
    """The same law where it is stated how far rows may be from normal."""
    return theta.model_copy(update={"tolerance": theta.tolerance.model_copy(update={"shape": 0.1})})


def test_one_average_that_shows_it_alone_is_named() -> None:
    asked = problem(resolution={"g": 4.0}, theta=(law(sd={"x": 1.0}, xg=0.7, yg=0.0, xy=0.0),))
    with pytest.raises(Refusal, match=r"^x: is so closely tied"):
        require_smooth(asked, Rows.of(asked), asked.theta, 1e-6 * np.eye(2), asked.secrets)  # type: ignore[arg-type]
