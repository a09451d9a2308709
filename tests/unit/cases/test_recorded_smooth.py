"""Rounding of coarse sensitive columns in several averages together, and given several secrets together.

Two twins. Exact laws, from characteristic functions: how far the true delta is above the promise where normal rows are rounded.
And the excess kurtosis of combinations of averages, row by row, searched for the worst combination.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize

import attrpriv as ap
from attrpriv.cases import recorded_smooth
from attrpriv.cases.recorded_smooth import SMOOTH, require_smooth
from attrpriv.cases.subset import Rows
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.gaussian import plan as gaussian
from attrpriv.methods.transport import plan as gaussian_transport
from attrpriv.methods.transport import sequence as sequential_transport
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.sql import parse_queries
from tests.property import twin

# Sensitive columns: normal values g* of sd 2, recorded as g = round(g*).
_NODES, _MASSES = np.polynomial.legendre.leggauss(30)
CELLS, ERRORS = np.arange(-18, 19), _NODES / 2
LAW = np.exp(-((CELLS[:, None] + ERRORS) ** 2) / 8) * _MASSES
LAW /= LAW.sum()
SPREAD = float((LAW * CELLS[:, None] ** 2).sum())
SHARED = float((LAW * CELLS[:, None] * (CELLS[:, None] + ERRORS)).sum())
SLOPE, LEFT = SHARED / SPREAD, 4 - SHARED**2 / SPREAD
WIDE = 100.0

TIED = {"slope": 1e-6}

Made = Callable[[float], Plan]

# -------------------------------------------------------------------------------------------------------------- exact laws


@cache
def left_open(n: int, extra: float, count: int, standard_errors: float) -> CubicSpline:
    """The density of the average of g*_1 + ... + g*_count + N(0, extra^2), given the sums of the recorded columns, each so far
    out: around what these tell of it, in its own standard deviations."""
    span, points = 12.0, 768
    frequencies = 2 * np.pi * np.fft.fftfreq(points, 2 * span / points)
    sd = np.sqrt(count * LEFT + extra**2)
    turned = frequencies / (np.sqrt(n) * sd)
    sums = 2 ** int(np.ceil(np.log2(48 * np.sqrt(n))))
    waves = np.exp(2j * np.pi * np.outer(np.arange(sums), CELLS) / sums)
    total = round(standard_errors * np.sqrt(n * SPREAD))
    back = np.exp(-2j * np.pi * total * np.arange(sums) / sums) / sums
    rows = (LAW[:, :, None] * np.exp(1j * ((1 - SLOPE) * CELLS[:, None] + ERRORS)[:, :, None] * turned)).sum(axis=1)
    found = back @ (waves @ rows) ** n
    found = (found / found[0].real) ** count * np.exp(-n * (extra * turned) ** 2 / 2)
    density = np.fft.fft(found * np.exp(1j * frequencies * span)).real / (2 * span)
    return CubicSpline(np.linspace(-span, span, points, endpoint=False), density)


def true_delta(n: int, extra: float, epsilon: float, count: int = 1, standard_errors: float = 4.0) -> float:
    """In units of delta 1e-6: where the law is taken for normal, and secrets that far out on both sides look as far apart as
    normal laws may be."""
    law, mu = left_open(n, extra, count, standard_errors), ap.calibration.gaussian_mu(epsilon, 0.98e-6)
    outputs = np.linspace(-9, 9, 20_001)
    high, low = law(outputs - mu / 2), law(-(outputs + mu / 2))
    above = [np.clip(p - np.exp(epsilon) * q, 0, None).sum() * (outputs[1] - outputs[0]) for p, q in ((high, low), (low, high))]
    return float(max(above)) / 1e-6


def test_the_twin_knows_the_normal_law() -> None:
    assert true_delta(100, 400.0, 1.0) == pytest.approx(0.98, abs=1e-4)
    assert true_delta(100, 400.0, 1.0, count=2) == pytest.approx(0.98, abs=1e-4)


# ------------------------------------------------------------------------------------------ two averages, and their difference


def pair(text: str, extra: float, n: int = 100, **changes: object) -> Problem:
    """x = U + g* + e and y = U + e': of x - y nothing but g* and `extra` is left."""
    sds = {"g": SPREAD**0.5, "x": (WIDE**2 + 4 + extra**2 / 2) ** 0.5, "y": (WIDE**2 + extra**2 / 2) ** 0.5}
    pairs = {("x", "g"): SHARED / sds["x"] / sds["g"], ("y", "g"): 0.0, ("x", "y"): WIDE**2 / sds["x"] / sds["y"]}
    law = ap.Gaussian(mean=dict.fromkeys("gxy", 0.0), sd=sds, correlation=pairs, tolerance=0)
    given = {
        "queries": parse_queries(text),
        "secrets": (Secret("mean(g)", within=0.01),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": n,
        "theta": (law,),
        "resolution": {"g": 1.0, "x": 1e-3, "y": 1e-3},
        "types": {"g": "integer", "w": "text"},
    }
    return Problem.model_validate({**given, **changes})


def together(extra: float) -> Plan:
    return gaussian.plan(pair("avg(x), avg(y)", extra))


def transported(extra: float) -> Plan:
    hidden = (Secret("mean(g)", between=(-2, 2)),)
    return gaussian_transport.plan(pair("avg(x), avg(y)", extra, secrets=hidden))


def over_a_subset(extra: float) -> Plan:
    one = "filter (where w = 'a')"
    return gaussian.plan(pair(f"avg(x) {one}, avg(y) {one}", extra, n=1_000, sizes={"w = 'a'": 100}))


def in_sequence(extra: float) -> Plan:
    first = gaussian.plan(pair("avg(x)", extra, spend=0.5))
    return gaussian.plan(pair("avg(y)", extra, earlier=first.certificate.evidence))


def moved_in_sequence(extra: float) -> Plan:
    hidden = (Secret("mean(g)", between=(-2, 2)),)
    first = sequential_transport.plan(pair("avg(x)", extra, secrets=hidden, spend=0.02))
    return sequential_transport.plan(pair("avg(y)", extra, secrets=hidden, spend=0.999, earlier=first.certificate.evidence))


WAYS = [together, transported, over_a_subset, in_sequence, moved_in_sequence]


def each_alone(at: np.ndarray, off: np.ndarray, spread: np.ndarray, sizes: np.ndarray) -> float:
    """The mutant: no average shows the rounding by itself."""
    return max(KURTOSIS(at[[k]], off[[k]], spread[[k]][:, [k]], sizes) for k in range(len(at)))


KURTOSIS = recorded_smooth._kurtosis


@pytest.mark.parametrize("made", WAYS)
def test_rounding_that_only_the_difference_of_averages_shows_is_refused(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exact law of the difference exceeds the promise ten times and more; a rule for each average alone would plan it."""
    assert true_delta(100, 0.03, 0.1) == pytest.approx(99.2, rel=1e-2)
    assert true_delta(100, 0.03, 1.0) == pytest.approx(11.7, rel=1e-2)
    with pytest.raises(
        Refusal, match=r"x.*, y.*: are, together, so closely tied to mean\(g\).*rounding shows in averages of 100"
    ):
        made(0.03)
    monkeypatch.setattr(recorded_smooth, "_kurtosis", each_alone)
    made(0.03).certificate.verify()


@pytest.mark.parametrize("made", WAYS)
def test_two_averages_are_planned_where_their_difference_would_be(made: Made) -> None:
    """Just inside of the rule the difference is as near to normal as one average may be: (spacing^2/left)^2 = n/1600."""
    extra = (4 * 1.01 - LEFT) ** 0.5
    made(extra).certificate.verify()
    assert true_delta(100, extra, 1.0) <= 1.0
    assert true_delta(100, extra, 0.1) <= 1.08


def test_the_difference_itself_has_the_same_limit() -> None:
    for extra in (3.9, 1.9):
        outcomes = []
        for text in ("avg(x - y)", "avg(x), avg(x - y)", "avg(x), avg(y)"):
            try:
                gaussian.plan(pair(text, extra))
                outcomes.append(True)
            except Refusal:
                outcomes.append(False)
        assert outcomes == [extra > 3] * 3


# ------------------------------------------------------------------------------------------------------ jointly hidden secrets


def both(extra: float, **changes: object) -> Problem:
    """x = g* + h* + e, with the means of g and h hidden jointly."""
    sds = {"g": SPREAD**0.5, "h": SPREAD**0.5, "x": (8 + extra**2) ** 0.5}
    tie = SHARED / sds["x"] / sds["g"]
    law = ap.Gaussian(
        mean=dict.fromkeys("ghx", 0.0), sd=sds, correlation={("x", "g"): tie, ("x", "h"): tie, ("g", "h"): 0.0}, tolerance=0
    )
    given = {
        "queries": (ap.mean("x"),),
        "secrets": (Secret(("mean(g)", "mean(h)"), within=0.01),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 100,
        "theta": (law,),
        "resolution": {"g": 1.0, "h": 1.0, "x": 1e-3},
    }
    return Problem.model_validate({**given, **changes})


FAR = ("mean(g)", "mean(h)")
JOINT = Secret(FAR, between=dict.fromkeys(FAR, (-2, 2)))
EACH = tuple(Secret(text, between=(-2, 2)) for text in FAR)


def hidden_jointly(extra: float) -> Plan:
    return gaussian.plan(both(extra))


def moved_jointly(extra: float) -> Plan:
    return gaussian_transport.plan(both(extra, secrets=(JOINT,)))


def moved_along_both(extra: float) -> Plan:
    return gaussian_transport.plan(both(extra, secrets=EACH))


def moved_along_both_in_sequence(extra: float) -> Plan:
    return sequential_transport.plan(both(extra, secrets=EACH, spend=0.5))


def one_by_one(problem: Problem, rows: Rows, theta: object, noise: np.ndarray, hidden: Sequence[Secret]) -> None:
    """The mutant: what each statistic leaves open, not what all leave."""
    single = [Secret(text, within=1.0) for text in FAR]
    require_smooth(problem, rows, theta, noise, single)  # type: ignore[arg-type]


@pytest.mark.parametrize("made", [hidden_jointly, moved_jointly, moved_along_both_in_sequence])
def test_rounding_shows_given_all_secrets_that_are_read_or_joined(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    assert true_delta(100, 0.03, 0.1, count=2) == pytest.approx(58.1, rel=1e-2)
    assert true_delta(100, 0.03, 1.0, count=2) == pytest.approx(6.65, rel=1e-2)
    with pytest.raises(Refusal, match=r"tied to mean\(g\), mean\(h\).*rounding shows"):
        made(0.03)
    for module in ("gaussian.plan", "transport.plan", "transport.sequence_case"):
        monkeypatch.setattr(f"attrpriv.methods.{module}.require_smooth", one_by_one)
    made(0.03).certificate.verify()


@pytest.mark.parametrize("made", [hidden_jointly, moved_jointly, moved_along_both, moved_along_both_in_sequence])
def test_secrets_that_the_average_follows_less_closely_are_hidden_jointly(made: Made) -> None:
    """Just inside of the rule: (2 spacing^2/left)^2 = n/1600. Each secret four standard errors out, or both together."""
    extra = (8 * 1.01 - 2 * LEFT) ** 0.5
    made(extra).certificate.verify()
    assert true_delta(100, extra, 1.0, count=2) <= 1.0
    assert true_delta(100, extra, 0.1, count=2) <= 1.09
    assert true_delta(100, extra, 0.1, count=2, standard_errors=8**0.5) <= 1.03


def read_under_a_tolerance(spacing: float, tie: float = 0.3, n: int = 10_000) -> Problem:
    """Two secrets, each for itself, whose averages a clamp reads together, under a tolerance."""
    law = ap.Gaussian(
        mean=dict.fromkeys("ghx", 0.0),
        sd=dict.fromkeys("ghx", 10.0),
        correlation={("x", "g"): tie, ("x", "h"): tie, ("g", "h"): 0.2},
        tolerance={"slope": 0.05, "sd": 0.02},
    )
    steps = {"g": spacing, "h": spacing, "x": 1e-3}
    return both(1.0, theta=(law,), secrets=EACH, resolution=steps, n=n)


def test_several_statistics_under_a_tolerance() -> None:
    """Fine columns are planned; the bound on the slopes is a bound for members of the class."""
    gaussian_transport.plan(read_under_a_tolerance(1.0)).certificate.verify()
    problem = read_under_a_tolerance(1.0)
    (law,), (joint,) = problem.theta, gaussian_transport.read_jointly(problem)
    assert isinstance(law, ap.Gaussian)
    tied = recorded_smooth._tied(problem, law, joint)
    assert tied is not None
    rng, count = np.random.default_rng(3), 0
    while count < 200:
        own, slopes = 10 * (1 + rng.uniform(-0.02, 0.02, 3)), 0.3 * (1 + rng.uniform(-0.05, 0.05, 2))
        cov = np.diag(own**2)
        cov[2, :2] = cov[:2, 2] = slopes * own[:2] ** 2
        cov[0, 1] = cov[1, 0] = 0.2 * (1 + rng.uniform(-0.05, 0.05)) * own[0] ** 2
        if np.linalg.eigvalsh(cov)[0] > 0:
            found = np.linalg.solve(cov[:2, :2], cov[:2, 2])
            assert (np.abs(found - tied.slopes[0]) <= tied.off[0]).all()
            assert tied.residuals[0][0, 0] <= cov[2, 2] - found @ cov[:2, 2]
            count += 1
    with pytest.raises(Refusal, match="rounding shows"):
        gaussian_transport.plan(read_under_a_tolerance(4.9, 0.4, n=100))


@pytest.mark.parametrize("tolerance", [0, {"slope": 0.05, "sd": 0.02}])
@pytest.mark.parametrize("read", [("g",), ("g", "h")])
@pytest.mark.parametrize("own", [10.0, 0.01])
def test_a_hidden_column_that_is_asked_for_has_nothing_left(own: float, read: tuple[str, ...], tolerance: object) -> None:
    """Given its own average it moves no more: neither variance nor a slope is counted, of it or beside it."""
    law = ap.Gaussian(
        mean=dict.fromkeys("ghx", 0.0),
        sd={"g": 10.0, "h": 10.0, "x": own},
        correlation={("x", "g"): 0.3, ("x", "h"): 0.3, ("g", "h"): 0.2},
        tolerance=tolerance,
    )
    problem = read_under_a_tolerance(1.0).model_copy(update={"theta": (law,), "queries": parse_queries("avg(x), avg(g)")})
    joint = gaussian_transport.read_jointly(problem)[0] if len(read) > 1 else Secret("mean(g)", within=1.0)
    tied = recorded_smooth._tied(problem, law, joint)
    assert tied is not None
    place = problem.columns.index("g")
    assert (tied.slopes[place] == 0).all()
    assert (tied.off[place] == 0).all()
    for residual in tied.residuals:
        assert 0.5 < residual[1 - place, 1 - place] / own**2 < 0.91
        for entry in (residual[place, place], residual[0, 1], residual[1, 0]):
            assert entry == pytest.approx(0.0, abs=1e-9)


def test_noise_that_is_nearly_common_does_not_cover_a_hidden_column() -> None:
    """x and g with noise that their difference is nearly free of: what is left of x alone decides whether rounding shows."""
    for left, shows in ((0.05, True), (0.5, False)):
        sd = (0.04 * 16 + left) ** 0.5
        law = ap.Gaussian(mean={"g": 0.0, "x": 0.0}, sd={"g": 4.0, "x": sd}, correlation={("x", "g"): 0.8 / sd}, tolerance=TIED)
        problem = pair("avg(x), avg(g)", 1.0, theta=(law,), resolution={"g": 1.0, "x": 1e-3})
        noise = 100 * np.array([[1.0, 1 - 1e-9], [1 - 1e-9, 1.0]])
        refused = False
        try:
            require_smooth(problem, Rows.of(problem), (law,), noise, problem.secrets)
        except Refusal:
            refused = True
        assert refused is shows


# --------------------------------------------------------------------------------------------- the worst combination, by search

SIZES = {"k = 'a'": 30, "k = 'b'": 20, "k in ('a', 'b')": 60}


def searched(rows: Rows, noise: np.ndarray, slopes: np.ndarray, left: np.ndarray) -> float:
    """The largest figure of a combination, from the rows one by one: slopes on the secrets, and what these leave of a row."""
    inside = {None: range(200), "k = 'a'": range(30), "k = 'b'": range(30, 50), "k in ('a', 'b')": range(60)}
    member = np.array([[row in inside[where] for row in range(200)] for where in rows.wheres])
    weights = member / member.sum(axis=1, keepdims=True)
    spread = np.einsum("ki,li,kl->kl", weights, weights, left) + noise
    root = np.linalg.inv(np.linalg.cholesky(spread)).T

    def figure(u: np.ndarray) -> float:
        c = root @ (u / np.linalg.norm(u))
        squares = (((c * slopes.T) @ weights) ** 2).sum(axis=0)  # of each row, over the statistics
        return float(-(squares**2).sum())

    starts = np.random.default_rng(5).normal(size=(5, len(noise)))
    return max(-minimize(figure, start, options={"gtol": 1e-10}).fun for start in starts)


@pytest.mark.parametrize(
    ("text", "tight"),
    [
        ("avg(x)", 1.0),
        ("avg(x), avg(y)", 1.0),
        ("avg(x), avg(y), avg(z)", 1.0),
        ("avg(x) filter (where k = 'a'), avg(y) filter (where k = 'a')", 1.0),
        ("avg(x) filter (where k = 'a'), avg(y) filter (where k = 'b')", 1.0),
        ("avg(x), avg(x) filter (where k = 'a'), avg(y) filter (where k = 'a')", 1.3),
        ("avg(x), avg(y) filter (where k in ('a', 'b')), avg(z) filter (where k = 'a')", 1.3),
    ],
)
@pytest.mark.parametrize("secrets", [("mean(g)",), ("mean(g)", "mean(h)")])
def test_the_rule_finds_the_worst_combination(text: str, tight: float, secrets: tuple[str, ...]) -> None:
    """The largest spacing that passes, against a search over combinations: never above it, and not far below."""
    rng = np.random.default_rng(11)
    names, hidden = ("x", "y", "z"), [secret[5] for secret in secrets]
    root = rng.normal(size=(5, 5)) + 1.5 * np.eye(5)
    law = root @ root.T
    law[3, 4] = law[4, 3] = 0.0
    sds = dict(zip("xyzgh", np.sqrt(np.diag(law)).tolist(), strict=True))
    pairs = {(a, b): float(law[j, k] / sds[a] / sds[b]) for j, a in enumerate("xyzgh") for k, b in enumerate("xyzgh") if j < k}
    theta = (ap.Gaussian(sd=sds, correlation=pairs, tolerance=0),)
    places = ["xyzgh".index(name) for name in hidden]
    gamma = np.linalg.solve(law[np.ix_(places, places)], law[places][:, :3]).T
    open_left = law[:3, :3] - gamma @ law[places][:, :3]

    def problem(spacing: float) -> Problem:
        return Problem(
            queries=parse_queries(text),
            secrets=(Secret(secrets if len(secrets) > 1 else secrets[0], within=1.0),),
            epsilon=1.0,
            delta=1e-6,
            n=200,
            theta=theta,
            resolution=dict.fromkeys(hidden, spacing),
            sizes=SIZES,
        )

    given = problem(1e-9)
    rows = Rows.of(given)
    read = [names.index(next(iter(form))) for form in given.forms]
    noise = np.diag(rng.uniform(0.01, 0.1, len(read))) * 0.1
    exact = searched(rows, noise, gamma[read], open_left[np.ix_(read, read)])

    def passes(spacing: float) -> bool:
        try:
            require_smooth(problem(spacing), rows, theta, noise, problem(spacing).secrets)
        except Refusal:
            return False
        return True

    limit = (1 / SMOOTH / exact) ** 0.25
    loose = tight * (1.0 if len(secrets) == 1 else 2.0)
    assert not passes(limit * (1 + 1e-6))
    assert passes(limit / loose**0.25 * (1 - 1e-6))


@pytest.mark.parametrize("tolerance", [{"slope": 0.1, "sd": 0.02}, {"correlation": 0.05}, {"correlation": 0.02, "sd": 0.03}])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_rule_holds_for_every_member_of_a_class(tolerance: dict[str, float], size: int) -> None:
    """share^4 of the best combination, of random members of the class; and not far below the bound."""
    names = [f"x{k}" for k in range(size)]
    pairs = {(name, "g"): 0.6 - 0.3 * k for k, name in enumerate(names)}
    pairs |= {(first, second): 0.3 for k, first in enumerate(names) for second in names[:k]}
    law = ap.Gaussian(sd={"g": 3.0, **dict.fromkeys(names, 5.0)}, correlation=pairs, tolerance=tolerance)
    hidden = (Secret("mean(g)", within=1.0),)
    noise = np.diag(np.linspace(0.01, 0.02, size))

    def problem(spacing: float) -> Problem:
        queries = tuple(ap.mean(name) for name in names)
        steps = {"g": spacing}
        return Problem(queries=queries, secrets=hidden, epsilon=1.0, delta=1e-6, n=400, theta=(law,), resolution=steps)

    def share(moments: twin.Moments) -> float:
        places = [moments.columns.index(name) for name in (*names, "g")]
        cov = (moments.correlation * np.outer(moments.sd, moments.sd))[np.ix_(places, places)]
        slopes = cov[:-1, -1] / cov[-1, -1]
        left = cov[:-1, :-1] - np.outer(slopes, slopes) * cov[-1, -1]
        return float(slopes @ np.linalg.solve(left + 400 * noise, slopes))

    worst = max(map(share, twin.members(problem(1.0), law, np.random.default_rng(2), 200)))
    limit = (400 / SMOOTH / worst**2) ** 0.25
    rows = Rows.of(problem(1.0))
    with pytest.raises(Refusal, match="rounding shows"):
        require_smooth(problem(limit * (1 + 1e-6)), rows, (law,), noise, hidden)
    require_smooth(problem(limit * (0.9 if size == 1 else 0.6)), rows, (law,), noise, hidden)


def test_errors_of_columns_that_nearly_agree_are_not_taken_as_independent() -> None:
    """Given the other, a column of sd 2 varies by 2 sqrt(1 - r^2): more than a spacing, or less."""
    for correlation, times in ((0.85, 1.0), (0.88, 8.0)):
        pairs = {("g", "h"): correlation, ("g", "x"): 0.0, ("h", "x"): 0.0}
        law = ap.Gaussian(sd={"g": 2.0, "h": 2.0, "x": 9.0}, correlation=pairs, tolerance=0)
        problem = both(1.0, theta=(law,))
        assert recorded_smooth._together(problem, law, problem.secrets[0]) == times
