"""Probabilities from public records: exact limits, all at once; what is refused; and that the risk of a miss is paid for."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import attrpriv as ap
from attrpriv.assumptions.fit_counts import binomial_limits, fit_group_counts
from attrpriv.engines.public_counts import GroupCounts, ValueCounts, require_other_rows
from attrpriv.engines.tables import open_table
from attrpriv.errors import CertificateError, DataError, PolicyError, UsageError
from attrpriv.methods.choice import choose as registry
from attrpriv.methods.choice.choose import plan
from attrpriv.numerics.networks.network import Network, Node
from attrpriv.problem.problem import Problem
from attrpriv.queries.sql import parse_queries

LEVEL = 1 - 1e-6 / 2


# ------------------------------------------------------------------------------------------------------------- the limits


def upper_tail(k: int, n: int, p: Fraction) -> Fraction:
    """P(k or more of n), term by term: the slow twin of the incomplete beta function."""
    return sum((comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1)), Fraction(0))


@pytest.mark.parametrize("tail", [0.025, 1e-4, 1e-9])
@pytest.mark.parametrize("n", [1, 7, 60])
def test_each_limit_is_that_of_the_binomial_law_itself(n: int, tail: float) -> None:
    for k in range(n + 1):
        low, high = binomial_limits(k, n, tail)
        below, above = upper_tail(k, n, Fraction(low)), upper_tail(n - k, n, 1 - Fraction(high))
        assert (k == 0 and low == 0) or below <= tail
        assert (k == n and high == 1) or above <= tail
        if low > 0:  # and no further out than six digits are
            assert upper_tail(k, n, Fraction(low) * Fraction(1 + 3e-5)) > tail
        if high < 1:
            assert upper_tail(n - k, n, 1 - Fraction(high) * Fraction(1 - 3e-5)) > tail


def missed(limits: Any, n: int, p: float, tail: float) -> tuple[float, float]:
    """How likely the truth is below the low limit, and above the high one: exactly, over all counts."""
    found = [limits(k, n, tail) for k in range(n + 1)]
    chances = [comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    return (
        sum(chance for chance, (low, _) in zip(chances, found, strict=True) if low > p),
        sum(chance for chance, (_, high) in zip(chances, found, strict=True) if high < p),
    )


def wald(k: int, n: int, tail: float) -> tuple[float, float]:
    """A planted mistake: the interval of most textbooks."""
    from scipy.stats import norm

    share = k / n
    reach = float(norm.isf(tail)) * (share * (1 - share) / n) ** 0.5
    return share - reach, share + reach


def test_every_probability_is_covered_and_a_normal_interval_would_not_do() -> None:
    """Exact coverage, so there is no false alarm; the normal interval misses a rare event nearly always."""
    worst = 0.0
    for n, p, tail in [(40, 0.3, 0.01), (40, 0.02, 0.01), (200, 0.5, 1e-3), (200, 0.004, 1e-3), (500, 0.9, 1e-6)]:
        assert max(missed(binomial_limits, n, p, tail)) <= tail
        worst = max(worst, *(miss / tail for miss in missed(wald, n, p, tail)))
    assert worst > 10


def test_limits_of_large_counts() -> None:
    low, high = binomial_limits(250_000, 1_000_000, 1e-9)
    assert 0.25 - low == pytest.approx(0.0026, rel=0.02)
    assert high - 0.25 == pytest.approx(0.0026, rel=0.02)
    assert binomial_limits(0, 10**9, 1e-9)[1] < 3e-8
    for wrong in [(-1, 5, 0.01), (6, 5, 0.01), (1, 5, 0.0), (1, 5, 0.5), (1, 5, float("nan")), (0, 0, 0.01)]:
        with pytest.raises(UsageError, match="counts: must be"):
            binomial_limits(*wrong)


# ---------------------------------------------------------------------------------------------------------------- the box


def records(rows: int = 4000, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    smoker = rng.random(rows) < 0.3
    ward = np.where(smoker, rng.choice(["a", "b"], rows, p=[0.7, 0.3]), rng.choice(["a", "b"], rows, p=[0.4, 0.6]))
    stay = np.where(smoker, rng.random(rows) < 0.4, rng.random(rows) < 0.2) * 5 + rng.integers(3, 8, rows)
    return pa.table({"smoker": np.where(smoker, "yes", "no"), "stay": stay, "ward": ward})


def fitted(table: pa.Table | None = None, **changes: Any) -> ap.Counts:
    given: dict[str, Any] = {"sensitive": "smoker", "events": ["stay>7"], "columns": ["ward"], "confidence": LEVEL}
    return ap.Counts.fit(ap.PublicTable(records() if table is None else table), **(given | changes))


def test_each_probability_has_its_share_of_the_risk() -> None:
    table = records()
    found = fitted(table)
    frame = table.to_pandas()
    tail = (1 - LEVEL) / (2 * (2 + 4 + 2))  # an event and two values in two categories, two shares
    for category in ("yes", "no"):
        mine = frame[frame.smoker == category]
        assert found.given["stay > 7"][category] == binomial_limits(int((mine.stay > 7).sum()), len(mine), tail)
        law = found.given["ward"][category]
        assert law.values == ("a", "b")  # type: ignore[union-attr]
        assert law.probabilities[1] == binomial_limits(int((mine.ward == "b").sum()), len(mine), tail)  # type: ignore[union-attr]
        assert found.prior[category] == binomial_limits(len(mine), len(frame), tail)
    assert found.fitted is not None
    assert (found.fitted.rows, found.fitted.confidence) == (4000, LEVEL)
    assert found.columns == ("smoker", "ward", "stay")
    assert "fitted on 4000 public rows" in str(found)
    assert ap.Counts.from_json(found.to_json()) == found


def test_a_stated_assumption_is_as_it_was() -> None:
    """A field that is not used must not change the digest of policies that exist."""
    stated = ap.Counts(sensitive="smoker", given={"stay > 7": {"yes": 0.4, "no": 0.2}})
    assert "fitted" not in stated.to_json()


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({"events": [], "columns": []}, "events, columns: at least one"),
    "the hidden column": (
        {"events": ["smoker = 'yes' and stay > 7"]},
        "events: an event is fitted where it is not",
    ),
    "its values": ({"columns": ["smoker"]}, "columns: must be other than smoker"),
    "missing entries": ({"events": ["stay is null"]}, "events: public records must have every entry"),
    "no such column": ({"events": ["sty > 7"]}, "Got sty. Close: stay"),
    "a text as a number": ({"events": ["ward > 7"]}, "ward"),
    "confidence": ({"confidence": 1.0}, "confidence"),
    "one category": (
        {"table": records().filter(pa.compute.equal(records()["smoker"], "yes"))},
        "two or more categories. Got 1",
    ),
    "a float": ({"table": pa.table({"smoker": ["a", "b"], "stay": [1, 2], "ward": [0.5, 1.5]})}, "so that they can be listed"),
    "a gap": (
        {"table": pa.table({"smoker": ["a", "b"], "stay": [1, None], "ward": ["x", "y"]})},
        "present, finite and small enough",
    ),
    "no category": ({"table": pa.table({"smoker": ["a", None], "stay": [1, 2], "ward": ["x", "y"]})}, "must have a category"),
    "one value": ({"table": pa.table({"smoker": ["a", "b"], "stay": [1, 2], "ward": ["x", "x"]})}, "two or more values. Got 1"),
    "an identifier": (
        {"table": pa.table({"smoker": ["a", "b"] * 200, "stay": [1] * 400, "ward": list(range(400))})},
        "at most 100 values",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_fitted(name: str) -> None:
    changes, told = WRONG[name]
    table = changes.pop("table", None) if "table" in changes else None
    with pytest.raises(UsageError) as caught:
        fitted(table, **{key: value for key, value in changes.items() if key != "table"})
    assert told in str(caught.value)


def test_a_path_is_no_table() -> None:
    with pytest.raises(UsageError, match="must be public records, as in PublicTable"):
        ap.Counts.fit("public.parquet", sensitive="a", events=["x > 1"], confidence=LEVEL)  # type: ignore[arg-type]


def test_counts_alone_are_enough() -> None:
    """No table: what somebody else counted."""
    found = GroupCounts(300, "s", ("a", "b"), (100, 200), ("x > 1",), ((10,), (0,)), (), ("s", "x"), "0" * 64)
    made = fit_group_counts(found, confidence=0.95)
    assert made.counts.given["x > 1"]["b"][0] == 0  # type: ignore[index]
    assert [interval.kind for interval in made.intervals] == ["probability"] * 2 + ["share"] * 2
    empty = replace(found, values=(ValueCounts("w", ("u", "v"), ((100, 0), (0, 200))),))
    assert fit_group_counts(empty, confidence=0.95).counts.given["w"]["a"].probabilities[1][0] == 0  # type: ignore[union-attr]


# ------------------------------------------------------------------------------------------------------ the private table


@pytest.mark.parametrize("form", ["shuffled", "csv", "more columns", "same"])
def test_the_same_rows_are_recognised_in_any_form(form: str, tmp_path: Path) -> None:
    table, box = records(300), fitted(records(300))
    path = tmp_path / ("t.csv" if form == "csv" else "t.parquet")
    if form == "shuffled":
        table = table.take(np.random.default_rng(2).permutation(300))
    if form == "more columns":
        table = table.append_column("id", pa.array(range(300)))
    (pyarrow.csv.write_csv if form == "csv" else pq.write_table)(table, path)
    assert box.fitted is not None
    with pytest.raises(DataError, match="Got the private table itself"):
        require_other_rows(open_table(path), box.fitted.rows, box.columns, box.fitted.digest, 300)


def test_other_rows_are_other_rows(tmp_path: Path) -> None:
    box = fitted(records(300))
    assert box.fitted is not None
    changed = records(300).to_pandas()
    changed.loc[0, "ward"] = {"a": "b", "b": "a"}[changed.loc[0, "ward"]]
    for table in (records(300, seed=2), records(299), pa.Table.from_pandas(changed), records(300).drop(["ward"])):
        require_other_rows(open_table(table), box.fitted.rows, box.columns, box.fitted.digest)


# --------------------------------------------------------------------------------------------------------------- the risk

SHARE = ap.Secret("share(smoker = 'yes')", between=(0.25, 0.4), within=0.02)
STAY = "count(*) filter (where stay > 7)"


def problem(confidence: float = LEVEL, text: str = STAY, **changes: Any) -> Problem:
    theta = fitted(confidence=confidence)
    given = {"queries": parse_queries(text), "secrets": (SHARE,), "epsilon": 1.0, "delta": 1e-6, "n": 300, "theta": (theta,)}
    return Problem(**(given | changes))


def unfitted(asked: Problem, **changes: Any) -> Problem:
    theta = tuple(member.model_copy(update={"fitted": None}) for member in asked.theta)
    return asked.model_copy(update={"theta": theta, **changes})


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "wasserstein"])
def test_the_risk_is_paid_out_of_delta(mechanism: str) -> None:
    """The noise is that of stated intervals with the rest of delta, and the promise is the policy's own."""
    asked = problem()
    made, risk = plan(asked, mechanism), 1 - LEVEL
    rest = plan(unfitted(asked, delta=1e-6 - risk * (1 + 1e-9)), mechanism)
    assert made.noise.scale == pytest.approx(rest.noise.scale, rel=1e-5)
    assert (made.delta, made.certificate.delta) == (1e-6, 1e-6)
    assert made.certificate.fit_delta == pytest.approx(risk)
    assert "delta 1e-06)-indistinguishable" in made.guarantee.statement
    assert any("5e-07 of delta 1e-06 is kept for a miss" in line for line in made.certificate.assumes)
    made.certificate.verify()


def test_a_certificate_that_forgets_the_risk_does_not_hold() -> None:
    """A planted mistake: noise for all of delta, and the risk on top of it."""
    asked = problem()
    whole = plan(unfitted(asked), "gaussian").certificate
    whole.verify()
    with pytest.raises(CertificateError):
        whole.model_copy(update={"fit_delta": 1 - LEVEL}).verify()


def test_every_mechanism_for_counts_is_charged() -> None:
    """Whatever plans with the probabilities: the choice charges, not the mechanism."""
    for text in (STAY, "SELECT ward, count(*) FROM data GROUP BY ward"):
        asked = problem(text=text, n=60)
        for made in registry.rank(asked, mechanism="optimal").plans:
            free = made.mechanism in ("subsample", "constant", "group_dp")
            assert (made.certificate.fit_delta == 0) == free, made.mechanism
            assert made.delta <= 1e-6


def test_noise_for_the_whole_range_pays_after_counts() -> None:
    first = plan(problem(spend=0.5), "laplace")
    after = plan(problem(earlier=first.certificate.evidence, spend=1.0, text="count(*) filter (where stay > 4)"), "group_dp")
    assert after.certificate.fit_delta > 0


def test_a_large_risk_must_be_accepted() -> None:
    asked = problem(confidence=0.99)
    with pytest.raises(UsageError, match="needs a confidence of at least 1 - delta/2"):
        plan(asked, "laplace")
    with pytest.raises(UsageError, match="needs a confidence of at least"):
        plan(problem(delta=0.0), "laplace")
    made = plan(asked.model_copy(update={"accept_fit_risk": True}), "laplace")
    assert made.delta == pytest.approx(1e-6 + 0.01)
    assert "delta 0.010001)" in made.guarantee.statement


def test_a_wider_box_costs_more() -> None:
    """Few public rows know little."""
    few = fitted(records(400))
    asked = problem()
    wide = asked.model_copy(update={"theta": (few,)})
    assert plan(wide, "laplace").noise.scale > plan(asked, "laplace").noise.scale


def test_a_network_has_no_record() -> None:
    network = Network(nodes={"smoker": Node(states=("yes", "no"), table=((0.3, 0.7),))})
    with pytest.raises(PolicyError, match="fitted: is of probabilities under given"):
        ap.Counts(sensitive="smoker", network=network, tolerance=0, fitted=fitted().fitted)
