"""Plans that transport counts: which form, what they promise and refuse, and a release from a policy and a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

import attrpriv as ap
from attrpriv.errors import Cause, CertificateError, RefusedError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.methods.count_transport.proof import CountHybridEvidence, CountTransportEvidence
from attrpriv.methods.optimal.proof import KernelEvidence
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from tests.refusing import refuses
from tests.unit.methods.counts import column, problem, smokers

READS = "it reads the secret, and rests on the stated probabilities as they are: no tolerance is covered."


def all_of(n: int, **more: Any) -> dict[str, Any]:
    return {"n": n, "secrets": (Secret("count(smoker = 'yes')", between=(0, n)),)} | more


def half() -> Any:
    return smokers(prior={"yes": 0.5})


def test_twenty_rows_as_the_issue_asks() -> None:
    made = plan(problem(half(), **all_of(20)), "transport")
    assert isinstance(made.certificate.evidence, CountTransportEvidence)
    assert made.error.mean_absolute is not None
    assert 0.0163 <= made.error.mean_absolute <= 1.06 * 0.0163
    assert READS in made.notes
    assert made.guarantee.kind == "proved"
    assert made.guarantee.reference == "docs/theory/count-transport.md"
    others = [plan(problem(half(), **all_of(20)), name).error.mean_absolute or 0.0 for name in ("laplace", "wasserstein")]
    assert min(others) > 100 * made.error.mean_absolute


def test_it_answers_with_whole_numbers_of_any_count() -> None:
    """No count is refused: what is proved for the range holds for every count."""
    made = plan(problem(half(), n=20, secrets=(Secret("count(smoker = 'yes')", between=(8, 12)),)), "transport")
    for f, a in ((0, 0), (20, 20), (10, 10), (3, 19)):
        ((answer,),) = made.tallied((f,), (a, 20 - a))
        assert isinstance(answer, int)
        assert 0 <= answer <= 20


@pytest.mark.parametrize("within", [None, 1])
def test_near_pairs_and_sets_are_hidden_with_all_pairs(within: int | None) -> None:
    near = Secret("count(smoker = 'yes')", between=(0, 12), within=within)
    sets = Secret("count(smoker = 'yes')", cases=["< 5", ">= 5"])
    plans = [plan(problem(half(), n=12, secrets=(one,)), "transport") for one in (near, sets)]
    assert plans[0].error == plans[1].error
    assert "sets of values are hidden point by point." in plans[1].notes


def test_sums_of_few_values() -> None:
    visits = column("visits", [0, 1, 3], [0.2, 0.5, 0.3], [0.5, 0.3, 0.2], prior={"yes": 0.4})
    asked = (Query("sum", "visits"), Query("avg", "visits"), Query("count"))
    made = plan(problem(visits, **all_of(12), queries=asked), "transport")
    total, average, rows = made.errors
    assert total.rmse == pytest.approx(12 * (average.rmse or 0.0))
    assert rows.rmse == 0
    assert made.tallied((4, 5, 3), (6, 6))[2] == (12,)


def test_a_share_of_the_population() -> None:
    """Every count of the table is hidden, and so is what the counts are drawn with."""
    asked = problem(n=26, epsilon=0.2, secrets=(Parameter("share(smoker = 'yes')", between=(0.2, 0.8)),))
    made = plan(asked, "transport")
    evidence = made.certificate.evidence
    assert isinstance(evidence, CountTransportEvidence)
    assert evidence.transport.records.member[1] == (0.4, 0.4)  # given the row's own category, not mixed by a share
    assert (evidence.pairs.low, evidence.pairs.high) == (0, 26)
    assert "given its category, what a row adds does not depend on the population's share" in made.certificate.assumes
    seen = plan(asked, "optimal")  # beyond 24 rows it sees the count alone
    assert isinstance(seen.certificate.evidence, KernelEvidence)
    assert (made.error.mean_absolute or 0.0) < (seen.error.mean_absolute or 0.0)


def test_intervals_get_noise_for_the_rest() -> None:
    made = plan(problem(smokers((0.38, 0.42), (0.58, 0.62), prior={"yes": 0.5}), **all_of(16)), "transport")
    evidence = made.certificate.evidence
    assert isinstance(evidence, CountHybridEvidence)
    assert evidence.scale > 0
    assert made.tally is not None
    assert made.tally.scale == evidence.scale
    additive = plan(problem(smokers((0.38, 0.42), (0.58, 0.62), prior={"yes": 0.5}), **all_of(16)), "laplace")
    assert 3 * (made.error.rmse or 0.0) < (additive.error.rmse or 0.0)
    assert isinstance(made.tallied((8,), (8, 8))[0][0], int)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "known rows": ({"known_rows": 0.25}, "known_rows: must be 0"),
    "single persons": ({"individuals": 1.0}, "individuals: "),
    "a histogram": ({"queries": (Query("count", group_by="ward"),)}, "one number"),
    "two secrets": ({"secrets": tuple(Secret("count(smoker = 'yes')", between=(k, 4)) for k in (0, 1))}, "one secret"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    changes, reason = REFUSED[name]
    given = {"stay > 7": {"yes": 0.4, "no": 0.6}}
    if name == "a histogram":
        values = {"values": ["a", "b"], "probabilities": [0.4, 0.6]}
        given = {"ward": {"yes": values, "no": values}}  # type: ignore[dict-item]
    with pytest.raises(RefusedError, match=f"transport: .*{reason}"):
        plan(problem(smokers(given=given), **changes), "transport")


def test_intervals_of_many_rows_or_values_are_refused() -> None:
    with refuses(RefusedError, Cause.SIZE, "fewer rows"):
        plan(problem(smokers((0.4, 0.41), 0.6), **all_of(41)), "transport")
    wide = column("visits", [0, 1, 2], [(0.2, 0.3), (0.4, 0.5), (0.2, 0.4)], [0.5, 0.3, 0.2])
    with refuses(RefusedError, Cause.NUMBERS, "exact probabilities"):
        plan(problem(wide, **all_of(10), queries=(Query("sum", "visits"),)), "transport")
    with refuses(RefusedError, Cause.SECRET, "one secret under one assumption"):
        plan(problem(smokers(), smokers(0.41, 0.6)), "transport")
    with refuses(RefusedError, Cause.SIZE, "fewer rows"):
        plan(problem(half(), **all_of(1_000_001)), "transport")


def test_a_tiny_promise_is_refused_or_kept() -> None:
    with pytest.raises(RefusedError, match="no law lies within the bounds"):
        plan(problem(half(), **all_of(6), epsilon=1e-12), "transport")
    assert plan(problem(half(), **all_of(6), epsilon=1e-6), "transport").certificate.evidence.delta(1e-6) == 0


def test_what_holds_where_the_probabilities_are_off() -> None:
    few, many = (plan(problem(half(), **all_of(n)), "transport") for n in (20, 400))
    for made in (few, many):
        found = [row.epsilon or 0.0 for row in made.model_error]
        assert [row.off_by for row in made.model_error] == [0.01, 0.02, 0.05, 0.1]
        assert found == sorted(found)
        assert found[0] > 1.0
    assert (many.model_error[0].epsilon or 0.0) > 2
    assert any("fragile" in line for line in many.warnings)


def test_a_plan_that_was_changed_draws_nothing() -> None:
    made = plan(problem(half(), **all_of(8)), "transport")
    evidence = made.certificate.evidence
    assert isinstance(evidence, CountTransportEvidence)
    assert made.tally is not None
    weaker = made.certificate.model_copy(update={"epsilon": 0.9})
    other = evidence.model_copy(update={"pairs": evidence.pairs.all_of(9)})
    changed = [
        made.model_copy(update={"certificate": weaker, "epsilon": 0.9}),
        made.model_copy(update={"certificate": made.certificate.model_copy(update={"evidence": other})}),
        made.model_copy(update={"tally": made.tally.model_copy(update={"noise": "none"})}),
        made.model_copy(update={"tally": made.tally.model_copy(update={"scale": 1.0})}),
        made.model_copy(update={"n": 9}),
    ]
    for one in changed:
        with pytest.raises(CertificateError):
            one.tallied((4,), (4, 4))


def test_it_survives_json() -> None:
    for asked in (problem(half(), **all_of(300)), problem(half(), **all_of(9), delta=0.01)):
        made = plan(asked, "transport")
        again = Plan.from_json(json.dumps(made.to_json(), allow_nan=False))
        assert again == made
        again.certificate.verify()


def test_auto_takes_it_beyond_the_linear_program() -> None:
    assert rank(problem(half(), **all_of(200))).plans[0].mechanism == "transport"


POLICY = """
attrpriv: 1
protect: [{secret: "count(smoker = 'yes')", between: [0, 100]}]
epsilon: 1
assume: {kind: counts, sensitive: smoker, given: {"stay > 7": {"yes": 0.4, "no": 0.6}}, prior: {"yes": 0.5}}
"""


def test_from_a_policy_to_an_answer(tmp_path: Path) -> None:
    """A hundred rows: the answer is within what a law of that spread gives, and the ledger has the proof."""
    generator = np.random.default_rng(3)
    smoker = generator.random(100) < 0.5
    stay = np.where(generator.random(100) < np.where(smoker, 0.4, 0.6), 9, 3)
    table = pa.table({"smoker": np.where(smoker, "yes", "no"), "stay": stay})
    (tmp_path / "policy.yaml").write_text(POLICY)
    with ap.Session(table, tmp_path / "policy.yaml", ledger=tmp_path / "x.ledger") as session:
        release = session.release("count(*) filter (where stay > 7)", mechanism="transport")
        entry = session.recorded()[0]
    count = int((stay > 7).sum())
    low, high = release.interval(0.95)
    # The output has the law of a count within e^.6 of one with sd 5: further than 12 sd off has a chance below 1e-30.
    assert abs(release.value - count) < 12 * 5
    assert low <= release.value <= high
    assert json.loads(json.dumps(entry.plan))[0]["certificate"]["evidence"]["kind"] == "count_transport"


@pytest.mark.slow
def test_simulated_errors_are_the_predicted_ones() -> None:
    """12,000 tables as their two counts: the mean |error| within 5.5 standard errors of the plan's (false alarm 4e-8)."""
    made = plan(problem(half(), **all_of(60), epsilon=0.5), "transport")
    generator = np.random.default_rng(11)
    members = generator.binomial(60, 0.5, 12_000)
    counts = generator.binomial(members, 0.4) + generator.binomial(60 - members, 0.6)
    evidence = made.certificate.evidence
    assert made.tally is not None
    off = np.array([
        abs(made.tally.released((int(f),), (int(a), 60 - int(a)), made.certificate.evidence)[0] - f)
        for f, a in zip(counts, members, strict=True)
    ])  # fmt: skip
    assert isinstance(evidence, CountTransportEvidence)
    error = off.std() / np.sqrt(len(off))
    assert abs(off.mean() - (made.error.mean_absolute or 0.0)) < float(norm.isf(2e-8)) * error
