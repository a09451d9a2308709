"""The audit of a release finds planted mistakes, and nothing where there is none.

An audit calls a right release broken with probability 1e-6 at most (`test_release_bounds` tries the bounds themselves), so that
is the false-alarm rate of every test here that expects nothing. Power: each mutant is beyond an experiment's resolution.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import attrpriv as ap
from attrpriv.audit.release.recorded import record_worlds
from attrpriv.audit.release.result import ReleaseAudit
from attrpriv.audit.release.run import audit_release
from attrpriv.audit.release.stated import NotDrawn
from attrpriv.errors import UsageError
from attrpriv.methods.base.clamp import Clamp
from attrpriv.methods.choice.choose import plan
from attrpriv.problem.problem import Problem
from tests.conformance.test_mechanisms import PROBLEMS
from tests.end_to_end.material import write_policy

exact_module = importlib.import_module("attrpriv.noise.exact")
evidence_module = importlib.import_module("attrpriv.methods.base.evidence")
SCHOOL = PROBLEMS["the school"]
PAIR = [(60_000.0, 61_000.0)]


def audited(label: str, mechanism: str, **changes: Any) -> ReleaseAudit:
    sizes = {"draws": 500, "tables": 300, "released": 150, **changes}
    return audit_release(plan(PROBLEMS[label], mechanism), PROBLEMS[label], **sizes)


def broken(audit: ReleaseAudit) -> set[str]:
    return {one.experiment for one in audit.tried if one.broken}


@pytest.fixture
def school() -> ap.Plan:
    """Transport with no more noise than its masks need, so that the promise rests on slope and clamp."""
    return plan(SCHOOL, "transport")


def changed_clamp(patch: pytest.MonkeyPatch, slopes: float = 1.0, reach: float = 1.0) -> None:
    """Plant a clamp that takes back with other slopes, or keeps more, than its certificate says."""
    real = evidence_module.clamped

    def other(clamp: Clamp, averages: Sequence[Fraction], hidden: Sequence[Fraction], bits: int) -> list[Fraction]:
        rows = tuple(tuple(slopes * x for x in row) for row in clamp.slopes)
        return list(real(clamp.model_copy(update={"slopes": rows, "reach": reach * clamp.reach}), averages, hidden, bits))

    patch.setattr(evidence_module, "clamped", other)


# ------------------------------------------------------------------------------------------------------------ mutants


def test_noise_a_tenth_too_small_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the default size, by the noise: what 4,000 draws see with probability 0.9 is 7.4%, and 10% nearly always."""
    real = exact_module._gaussian
    monkeypatch.setattr(exact_module, "_gaussian", lambda steps: real(0.9 * steps))
    audit = audit_release(plan(SCHOOL, "gaussian"), SCHOOL, tables=100, released=100, pairs=PAIR)
    assert "noise" in broken(audit)


def test_a_slope_a_tenth_short_is_found(monkeypatch: pytest.MonkeyPatch, school: ap.Plan) -> None:
    changed_clamp(monkeypatch, slopes=0.9)
    audit = audit_release(school, SCHOOL, draws=100, released=100, pairs=PAIR)
    assert "before the noise" in broken(audit)


def test_a_clamp_a_tenth_too_wide_is_found(monkeypatch: pytest.MonkeyPatch, school: ap.Plan) -> None:
    changed_clamp(monkeypatch, reach=1.1)
    audit = audit_release(school, SCHOOL, draws=100, released=100, pairs=PAIR)
    assert "before the noise" in broken(audit)


def test_a_clip_left_out_is_found_by_two_experiments(monkeypatch: pytest.MonkeyPatch, school: ap.Plan) -> None:
    monkeypatch.setattr(evidence_module, "clamped", lambda clamp, averages, hidden, bits: list(averages))
    audit = audit_release(school, SCHOOL, draws=100, tables=1_000, released=1_000, pairs=PAIR)
    assert broken(audit) == {"before the noise", "as released"}
    found = next(one for one in audit.tried if one.experiment == "before the noise")
    assert found.right is not None
    assert found.allowed is not None
    assert found.right > 0.6 > found.allowed
    assert not audit.holds
    assert "broken: a guess is right" in audit.summary


def test_the_right_release_passes_at_the_default_size(school: ap.Plan) -> None:
    audit = audit_release(school, SCHOOL, draws=100, released=100, pairs=PAIR)
    assert audit.holds
    (found,) = [one for one in audit.tried if one.experiment == "before the noise"]
    assert found.right is not None
    assert found.allowed is not None
    assert found.seen is not None
    # What is promised is nearly reached here, and a clamp a tenth too wide is beyond what would have been seen.
    assert 0.54 < found.right < found.allowed < found.seen < 0.5505


# ---------------------------------------------------------------------------------------------------- all that is tried


@pytest.mark.parametrize(
    ("label", "mechanism"),
    [
        ("the school", "gaussian"),
        pytest.param("several queries", "gaussian", marks=pytest.mark.slow),
        ("groups, single persons too", "gaussian"),
        ("groups", "gaussian"),
        ("groups", "transport"),
        pytest.param("groups, several averages", "gaussian", marks=pytest.mark.slow),
        ("groups, a share of the population", "gaussian"),
        ("a count", "laplace"),
        ("a count", "gaussian"),
        ("a count", "transport"),
        ("a count", "optimal"),
        ("a count, exact probabilities", "transport"),
        ("a count, exact probabilities", "optimal"),
        ("a histogram", "laplace"),
        ("a share of the population", "laplace"),
        ("a chain", "chain_quilt"),
        ("the school", "group_dp"),
    ],
)
def test_right_releases_pass_all_three_experiments(label: str, mechanism: str) -> None:
    audit = audited(label, mechanism)
    assert audit.holds, audit.summary
    assert {one.experiment for one in audit.tried} == {"noise", "before the noise", "as released"}


def test_weights_are_tried_as_released_alone() -> None:
    audit = audited("exact moments", "calibrated_weights", released=100, pairs=PAIR)
    assert audit.holds
    assert {one.experiment for one in audit.tried} == {"as released"}
    assert any("noise by itself" in line for line in audit.would_not_show)


def test_what_cannot_be_made_up_is_said() -> None:
    audit = audited("a hierarchy", "gaussian")
    assert {one.experiment for one in audit.tried} == {"noise"}
    assert any("hierarchy" in line for line in audit.not_tried)
    alone = audit_release(plan(SCHOOL, "gaussian"), draws=500)
    assert {one.experiment for one in alone.tried} == {"noise"}
    assert any("needs the session or the problem" in line for line in alone.not_tried)


def test_laplace_noise_of_a_count_too_small_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    tally_module = importlib.import_module("attrpriv.methods.base.tally")
    real = tally_module.whole_laplace
    monkeypatch.setattr(tally_module, "whole_laplace", lambda scale: real(0.85 * scale))
    audit = audited("a count", "laplace", draws=4_000, tables=100, released=100)
    assert "noise" in broken(audit)


def test_a_kernel_that_draws_something_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    proof_module = importlib.import_module("attrpriv.methods.optimal.proof")
    monkeypatch.setattr(proof_module, "draw", lambda weights: len(weights) // 3)
    assert "noise" in broken(audited("a count", "optimal", draws=1_000, tables=100, released=100))


# ------------------------------------------------------------------------------------------------------- around the audit


def test_a_plan_that_does_not_verify_is_not_audited() -> None:
    wrong = plan(SCHOOL, "gaussian").model_copy(update={"epsilon": 0.5})
    with pytest.raises(ap.CertificateError):
        audit_release(wrong, SCHOOL)


def test_what_is_given_is_checked() -> None:
    made = plan(SCHOOL, "gaussian")
    with pytest.raises(UsageError, match="draws: must be"):
        audit_release(made, SCHOOL, draws=3)
    with pytest.raises(UsageError, match="error: must be"):
        audit_release(made, SCHOOL, error=0.0)
    with pytest.raises(UsageError, match="given: must be"):
        audit_release(made, "students.yaml")  # type: ignore[arg-type]


def test_only_promised_pairs_are_tried() -> None:
    """Values 20,000 apart may be told apart: a right release that does so is not broken."""
    made = plan(SCHOOL, "gaussian")
    for pair in ((60_000.0, 80_000.0), (1_000.0, 1_500.0), (60_000.0, 60_000.0), (60_000.0, float("nan"))):
        with pytest.raises(UsageError, match="pairs: must be"):
            audit_release(made, SCHOOL, pairs=[pair])
    chain = PROBLEMS["a chain"]
    with pytest.raises(UsageError, match="hidden as a whole"):
        audit_release(plan(chain, "laplace"), chain, pairs=[(0.0, 1.0)])


def test_a_pair_is_tried_for_the_secret_that_it_is_promised_of() -> None:
    """Mean incomes 1,000 apart; the same two numbers are no sums of heights."""
    audit = audited("several secrets", "gaussian", pairs=[(61_000.0, 60_000.0)], draws=100)
    assert audit.holds
    assert {one.on.partition(",")[0] for one in audit.tried if one.experiment != "noise"} == {"mean(income) 60000 or 61000"}


def test_results_as_words_numbers_and_html() -> None:
    audit = audited("the school", "gaussian", pairs=PAIR)
    assert list(audit.to_frame()["experiment"]) == ["noise", "before the noise", "as released"]
    assert "What it would not have seen" in str(audit)
    assert "promised at most" in audit.to_html()
    assert ReleaseAudit.from_json(audit.to_json()) == audit


def test_the_same_seed_looks_at_the_same_pair() -> None:
    first, second = (audited("the school", "gaussian", seed=3, draws=100) for _ in range(2))
    assert [one.on for one in first.tried] == [one.on for one in second.tried]
    assert isinstance(SCHOOL, Problem)


# -------------------------------------------------------------------------------------------------------- public records


def records(rows: int = 4_000) -> pd.DataFrame:
    generator = np.random.default_rng(1)
    income = 5_000 * np.rint(12 + 6 * generator.normal(size=rows))  # few values, so that tables are drawn quickly
    weight = np.rint(150 + 25 * (0.3 * (income - 60_000) / 30_000 + 0.95 * generator.normal(size=rows)))
    smoker = np.where(generator.random(rows) < 0.4, "yes", "no")
    stay = np.where(generator.random(rows) < np.where(smoker == "yes", 0.4, 0.2), 9, 3)
    return pd.DataFrame({"weight": weight, "income": income, "smoker": smoker, "stay": stay})


@pytest.mark.parametrize(
    ("asked", "mechanism"),
    [(SCHOOL.model_copy(update={"n": 400}), "gaussian"), (PROBLEMS["a count"], "laplace")],
    ids=["averages", "counts"],
)
def test_records_that_follow_the_assumption_break_nothing(asked: Problem, mechanism: str) -> None:
    sizes = {"draws": 100, "tables": 100, "released": 100, "recorded": 300}
    pairs = PAIR if mechanism == "gaussian" else None
    audit = audit_release(plan(asked, mechanism), asked, records=records(), pairs=pairs, **sizes)
    assert audit.holds
    assert sum("public records" in one.on for one in audit.tried) == 2


def test_pairs_are_looked_for_where_the_records_have_them() -> None:
    """Incomes up to 200,000 must be hidden, and no record has as much."""
    found = records()
    assert found["income"].max() < 199_000
    asked = SCHOOL.model_copy(update={"n": 400})
    made = record_worlds(plan(asked, "gaussian"), asked, None, found, None)
    assert 2 <= len(made[0].pairs) <= 5
    assert max(high for _, high in made[0].pairs) < found["income"].max()
    poor = found[found["income"] < 20_000]
    with pytest.raises(NotDrawn, match="The records have no tables with two values"):
        record_worlds(plan(asked, "gaussian"), asked, None, poor, None)


def test_records_whose_slope_is_another_break_the_promise() -> None:
    """Weights that follow incomes three times as closely as is stated: right at least 60% of the time, and 54.7% allowed."""
    asked = SCHOOL.model_copy(update={"n": 10_000})
    found = records()
    found["weight"] = np.rint(150 + 8 * (found["income"] - 60_000) / 10_000 + 20 * np.random.default_rng(2).normal(size=4_000))
    audit = audit_release(
        plan(asked, "gaussian"), asked, records=found, pairs=PAIR, draws=100, tables=100, released=100, recorded=300
    )
    broken_on = {one.on for one in audit.tried if one.broken}
    assert broken_on
    assert all("public records" in on for on in broken_on)


def test_a_view_is_tried_on_records_alone(tmp_path: Path) -> None:
    stated: dict[str, Any] = {
        "attrpriv": 1,
        "rows": 500,
        "epsilon": 1.0,
        "delta": 0,
        "protect": [{"secret": "share(smoker = 'yes')", "between": [0.3, 0.5]}],
        "release": ["avg(stay)"],
    }
    with ap.Session(records(500), ap.Policy(**stated)) as session:
        made = session.plan(["avg(stay)"], "subsample")
        audit = audit_release(made, session, records=records(), released=100, recorded=120, draws=100, tables=100)
    assert audit.holds, audit.summary
    assert {one.experiment for one in audit.tried} == {"as released"}


def test_the_protected_table_is_no_public_record(tmp_path: Path) -> None:
    records(400).to_parquet(tmp_path / "students.parquet")
    with ap.Session(policy=write_policy(tmp_path)) as session, pytest.raises(ap.DataError, match="must be public"):
        audit_release(session.plan(mechanism="gaussian"), session, records=tmp_path / "students.parquet")
