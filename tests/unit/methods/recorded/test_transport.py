"""`transport` under records: what is read, what is drawn, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from attrpriv.errors import CertificateError, DataError, RefusedError, UsageError
from attrpriv.methods.base.evidence import Told
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.methods.recorded.transport_proof import RecordedShareTransportEvidence, RecordedTransportEvidence
from attrpriv.numerics.laws.recorded_inversion import noisy_laws
from attrpriv.policy import Policy
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from attrpriv.session.record import recheck
from attrpriv.session.session import Session
from examples.records.generate import rows
from tests.conformance.test_mechanisms import records_problem

SHARE = Secret("share(sex = 'F')", between=(0.3, 0.5), within=0.1)
BEHIND_SHARE: dict[str, Any] = {"secrets": (SHARE,)}
COUNT: dict[str, Any] = {**BEHIND_SHARE, "queries": (Query("count", where="hours >= 40"),), "bounds": {}}
KINDS = {"a mean": {}, "a share": BEHIND_SHARE, "a count": COUNT}
POLICY = """
attrpriv: 1
data: workers.csv
rows: 60
epsilon: 1
delta: 1e-4
protect:
  - {secret: SECRET}
assume:
  kind: records
  file: public.parquet
  columns: [school, hours, sex]
  resamples: {number: 1, size: 300}
release: ["QUERY"]
"""


@pytest.fixture(scope="module", params=KINDS)
def made(request: pytest.FixtureRequest) -> Plan:
    return plan(records_problem(**KINDS[request.param]), "transport")


def evidence(made: Plan) -> RecordedTransportEvidence | RecordedShareTransportEvidence:
    found = made.certificate.evidence
    assert isinstance(found, RecordedTransportEvidence | RecordedShareTransportEvidence)
    return found


def test_the_promise_is_computed_again_and_needs_the_noise(made: Plan) -> None:
    proved = evidence(made)
    assert proved.delta(made.epsilon) <= made.delta
    assert "for the laws listed" in made.guarantee.statement
    check = proved.checks[0]
    first = check.laws[0]
    steeper = first.model_copy(update={"q": tuple(q + 9 * s for q, s in zip(first.q, first.s, strict=True))})
    other = proved.model_copy(update={"checks": (check.model_copy(update={"laws": (*check.laws, steeper)}),)})
    assert other.delta(made.epsilon) > made.delta
    again = type(proved).model_validate(proved.to_json())
    assert again == proved


def test_another_kernel_is_not_what_was_proved(made: Plan) -> None:
    """With the laws in another order the kernel is made for another law, and the promise is computed for that one."""
    proved = evidence(made)
    check = proved.checks[0]
    turned = proved.model_copy(update={"checks": (check.model_copy(update={"laws": check.laws[::-1]}),)})
    assert turned.delta(made.epsilon) != proved.delta(made.epsilon)


def test_answers_are_alike_for_all_values_of_the_secret() -> None:
    """Of tables with S and with another secret: 600 draws each, of sums as the first law has them.

    Means of the two lie within 6 standard errors (false alarm 2e-9); noise alone, which the exact sums differ by, is far off.
    """
    made = plan(records_problem(), "transport")
    proved = evidence(made)
    (check,) = proved.checks
    generator = np.random.default_rng(1)
    means, noisy = [], []
    for secret in (check.secrets.low, check.secrets.high):
        laws = noisy_laws(check.laws[0].rows, made.n, [secret], 0.2, 1.0)
        totals = generator.choice(laws.bins, 600, p=laws.probabilities[0] / laws.probabilities[0].sum())
        average = Fraction(secret, made.n)
        drawn = [proved.drawn(made.columns, [Fraction(int(t), made.n)], Told({"school": average}))[0] for t in totals]
        means.append((np.mean([float(x) for x in drawn]), np.std([float(x) for x in drawn]) / np.sqrt(600)))
        noisy.append(float(np.mean(totals)) / made.n)
    far = 6 * float(np.hypot(means[0][1], means[1][1]))
    assert abs(means[0][0] - means[1][0]) < far
    assert abs(noisy[0] - noisy[1]) > 2 * far


def test_a_secret_outside_of_its_range_is_not_answered(made: Plan) -> None:
    proved = evidence(made)
    for outside in (proved.checks[0].secrets.low - 1, proved.checks[0].secrets.high + 1):
        with pytest.raises(DataError, match="outside of the range"):
            proved.moved_to(700, outside)


def test_it_draws_nothing_without_what_it_takes_back() -> None:
    made = plan(records_problem(), "transport")
    with pytest.raises(CertificateError):
        evidence(made).drawn(made.columns, [Fraction(38)], Told())
    with pytest.raises(CertificateError):
        evidence(made).kernel_draw(9, 9, evidence(made).scale)
    with pytest.raises(UsageError, match=r"Session\.release"):
        made.randomise(38.0)


def test_a_plan_that_reads_something_else_is_refused(made: Plan) -> None:
    if made.tally is not None:
        (first, second) = made.tally.categories
        turned = (first.model_copy(update={"member": False}), second.model_copy(update={"member": True}))
        forged = made.model_copy(update={"tally": made.tally.model_copy(update={"categories": turned})})
    elif made.categories:
        forged = made.model_copy(update={"categories": ()})
    else:
        changed = evidence(made).model_copy(update={"hidden": "hours"})
        forged = made.model_copy(update={"certificate": made.certificate.model_copy(update={"evidence": changed})})
    with pytest.raises(CertificateError):
        forged.verify()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"secrets": (SHARE, Secret("mean(school)", between=(9.0, 10.5), within=0.2))}, "one secret"),
        ({**COUNT, "secrets": (Secret("mean(school)", between=(9.0, 10.5), within=0.2),)}, "different passes"),
        ({"queries": (Query("avg", "school"),), "bounds": {}}, "hidden column itself"),
        ({"secrets": (Secret("share(school > 9)", between=(0.3, 0.5)),), "missing": {"school": 9.0}}, "not replaced"),
        ({"delta": 0.0}, "delta"),
        ({"known_rows": 0.1}, "known rows"),
        ({"individuals": 1.0}, "individuals"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises((RefusedError, UsageError), match=words):
        plan(records_problem(**changes), "transport")


def test_errors_count_in_what_is_taken_back(made: Plan) -> None:
    """An answer is off by noise and by what is taken back, so by more than the noise; and by less than the constant here."""
    (query,) = made.queries
    noise, found = made.noise_of(query), made.error_of(query).rmse
    assert found is not None
    assert found > noise.scale
    reach = made.spread_of(query).reach(0.95)
    assert reach == pytest.approx(made.error_of(query).alpha95, rel=0.05, abs=1.5)


def test_auto_compares_it_with_the_noise() -> None:
    ranking = rank(records_problem(**BEHIND_SHARE))
    assert ranking.chosen is not None
    assert {"transport", "gaussian", "constant"} <= {one.mechanism for one in ranking.plans}
    assert ranking.chosen.mechanism == "transport"


ASKED = [
    ("mean(school), between: [8.5, 11.5], within: 0.2", "avg(hours)"),
    ("share(sex = 'F'), between: [30%, 70%], within: 10%", "avg(hours)"),
    ("share(sex = 'F'), between: [30%, 70%], within: 10%", "count(*) filter (where hours > 40)"),
]


@pytest.mark.parametrize(("secret", "query"), ASKED)
def test_a_release_is_recorded_and_proved_again_without_the_table(secret: str, query: str, tmp_path: Path) -> None:
    for seed, n, name in ((3, 400, "public"), (5, 60, "workers")):
        made = pd.DataFrame(rows(seed, n), columns=["school", "hours", "sex"])
        made.to_parquet(tmp_path / f"{name}.parquet")
        made.to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "policy.yaml").write_text(POLICY.replace("SECRET", secret).replace("QUERY", query))
    policy = Policy.load(tmp_path / "policy.yaml")
    with Session(tmp_path / "workers.csv", policy, ledger=tmp_path / "workers.ledger") as session:
        first = session.release(query, "transport")
        again = session.release(query)
        assert first.answers[0].values[0].value == again.answers[0].values[0].value
        entries = tuple(session.recorded())
    for name in ("workers.csv", "workers.parquet"):
        (tmp_path / name).unlink()
    assert recheck("record", entries).planned_again == 1
