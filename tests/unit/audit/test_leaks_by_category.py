"""The leakage map of `groups` and `counts`: every number once more, by enumeration, integration or simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import attrpriv as ap
from attrpriv.audit.leaks import LeakageMap, leaks
from attrpriv.audit.leaks_by_category import TwoValues, right_of_counts, right_of_normals
from attrpriv.errors import AttrprivError, UsageError

N = 400
SHARE = "share(sex = 'F')"
GROUPS = {
    "kind": "groups",
    "sensitive": "sex",
    "mean": {"F": {"hours": 36, "age": 37}, "M": {"hours": 42, "age": 37}},
    "sd": {"F": {"hours": 11, "age": 14}, "M": {"hours": 12, "age": 14}},
    "tolerance": 0,
}
COUNTS = {
    "kind": "counts",
    "sensitive": "sex",
    "given": {
        "stay > 7": {"F": 0.4, "M": 0.2},
        "night = 'yes'": {"F": 0.3, "M": 0.3},
        "risk": {
            name: {"values": [1, 2, 5], "probabilities": p} for name, p in (("F", [0.2, 0.5, 0.3]), ("M", [0.5, 0.3, 0.2]))
        },
    },
}


def found(assumed: dict[str, Any], secret: dict[str, Any] | None = None, **changes: Any) -> LeakageMap:
    protect = {"secret": SHARE, "between": [0.25, 0.4], "within": 0.05} if secret is None else secret
    return leaks(policy=ap.Policy(epsilon=1.0, delta=1e-6, rows=N, protect=[protect], assume=assumed, **changes))


def summed(n: int, m: int, inside: float, outside: float) -> Any:
    """The number of rows of an event, all counts, by adding up."""
    laws: list[Any] = [np.asarray(stats.binom.pmf(range(k + 1), k, p)) for k, p in ((m, inside), (n - m, outside))]
    return np.convolve(laws[0], laws[1])


def test_averages_of_groups() -> None:
    """Both ends of the range, integrated; ages are alike, so that they tell nothing."""
    map_ = found(GROUPS)

    def right(m: int) -> float:
        laws = [stats.norm((k * 36 + (N - k) * 42) / N, np.sqrt(k * 11**2 + (N - k) * 12**2) / N) for k in (m, m + 20)]
        grid = np.linspace(30, 50, 400_001)
        return 0.5 + float(integrate.trapezoid(np.abs(laws[0].pdf(grid) - laws[1].pdf(grid)), grid)) / 4

    one = map_.of("avg(hours)", SHARE)
    assert one.right == pytest.approx(max(right(100), right(140)), abs=1e-6)
    assert one.apart == 0.05
    assert map_.of("avg(age)", SHARE).right == pytest.approx(0.5, abs=1e-12)
    assert map_.source == "the stated assumption"


def test_spread_alone_tells_too() -> None:
    """Two normal laws with one mean: by simulation, within five standard errors (a false alarm below 1e-6)."""
    draws, generator = 400_000, np.random.default_rng(1)
    wide = np.repeat([False, True], draws)
    seen = np.where(wide, 3.0, 1.0) * generator.normal(size=2 * draws)
    likelier = stats.norm.pdf(seen, scale=3) > stats.norm.pdf(seen)
    right = float((likelier == wide).mean())
    assert abs(right - right_of_normals((0, 9), (0, 1))) < 5 * 0.5 / np.sqrt(2 * draws)
    assert right > 0.7


def test_shares_of_events() -> None:
    """All counts, at both ends of the range: the exact laws."""
    map_ = found(COUNTS)
    rights = [0.5 + np.abs(summed(N, m, 0.4, 0.2) - summed(N, m + 20, 0.4, 0.2)).sum() / 4 for m in (100, 140)]
    assert map_.of("share(stay > 7)", SHARE).right == pytest.approx(max(rights), abs=1e-9)
    assert map_.of("share(night = 'yes')", SHARE).right == pytest.approx(0.5, abs=1e-9)
    assert map_.largest[0].right > 0.5


def test_averages_and_shares_of_listed_values() -> None:
    map_ = found(COUNTS)
    values = np.array([1, 2, 5])
    means = [values @ law for law in ([0.2, 0.5, 0.3], [0.5, 0.3, 0.2])]
    variances = [values**2 @ law - mean**2 for law, mean in zip(([0.2, 0.5, 0.3], [0.5, 0.3, 0.2]), means, strict=True)]
    spread = [np.sqrt(((s + 0.025) * variances[0] + (1 - s - 0.025) * variances[1]) / N) for s in (0.25, 0.35)]
    wanted = stats.norm.cdf(0.05 * (means[0] - means[1]) / min(spread) / 2)
    assert map_.of("avg(risk)", SHARE).right == pytest.approx(wanted, abs=1e-9)
    told = map_.of("share(risk = 1)", SHARE).right
    rights = [0.5 + np.abs(summed(N, m, 0.2, 0.5) - summed(N, m + 20, 0.2, 0.5)).sum() / 4 for m in (100, 140)]
    assert told == pytest.approx(max(rights), abs=1e-9)


def test_of_an_interval_the_end_that_tells_most() -> None:
    given = {"stay > 7": {"F": (0.3, 0.5), "M": 0.2}}
    wide = found({**COUNTS, "given": given}).of("share(stay > 7)", SHARE).right
    ends = [found({**COUNTS, "given": {"stay > 7": {"F": p, "M": 0.2}}}).of("share(stay > 7)", SHARE).right for p in (0.3, 0.5)]
    assert wide == max(ends) > min(ends)


def test_rare_events_tell_little_however_sure_they_are() -> None:
    """At the end of the range no row is outside: an average of them has no spread, and still tells little."""
    right = right_of_counts(TwoValues(100, 90, 100, False), 0.0, 0.001)
    assert right == pytest.approx(0.5 + (1 - 0.999**10) / 2, abs=1e-12)


def test_a_parameter_of_the_population_is_told_less_well() -> None:
    """The rows' own sex varies too: n draws with the mixed probability."""
    parameter = {"parameter": SHARE, "between": [0.3, 0.4]}
    one = found(COUNTS, parameter).of("share(stay > 7)", SHARE)
    laws = [stats.binom.pmf(range(N + 1), N, s * 0.4 + (1 - s) * 0.2) for s in (0.3, 0.4)]
    assert one.right == pytest.approx(0.5 + np.abs(laws[0] - laws[1]).sum() / 4, abs=1e-9)
    table = found(COUNTS, {"secret": SHARE, "between": [0.3, 0.4]}).of("share(stay > 7)", SHARE)
    assert one.right < table.right
    assert one.apart == pytest.approx(0.1)


def test_a_count_is_in_rows_and_tells_what_its_share_does() -> None:
    one = found(COUNTS, {"secret": "count(sex = 'F')", "between": [100, 160], "within": 20})
    assert one.of("share(stay > 7)", "count(sex = 'F')").apart == 20
    assert one.leaks[0].right == found(COUNTS).leaks[0].right


def test_what_the_assumption_does_not_say_is_refused() -> None:
    with pytest.raises(AttrprivError, match="sex"):
        found(COUNTS, {"secret": "share(city = 'A')", "between": [0.1, 0.3]})
    with pytest.raises(UsageError, match="must protect a share or a count"):
        found(COUNTS, {"secret": "entries(sex)"})
