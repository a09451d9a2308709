"""Several transported releases about one table: what is answered, what the record holds, and what is refused afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attrpriv as ap
from attrpriv.accounting.ledger import Ledger
from attrpriv.errors import CertificateError, RefusedError
from attrpriv.methods.transport.sequence_proof import SequenceEvidence
from attrpriv.session.record import recheck
from tests.end_to_end.material import Said

N = 1000
POLICY = """attrpriv: 1
data: people.parquet
epsilon: 1.0
delta: 1.0e-6
protect:
  - secret: mean(income)
    between: [20000, 200000]
assume:
  kind: gaussian
  mean: {income: 60000}
  sd: {weight: 25, height: 10, income: 30000}
  correlation: {weight~income: 0.3, height~income: 0.2, weight~height: -0.6}
  tolerance: 0
resolution: {weight: 0.001, height: 0.001, income: 1}
release: [avg(weight), avg(height)]
"""


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A table whose mean income is far above what the assumption says, so that every clamp binds."""
    generator = np.random.default_rng(3)
    sds = np.array([25.0, 10.0, 30_000.0])
    rho = np.array([[1.0, -0.6, 0.3], [-0.6, 1.0, 0.2], [0.3, 0.2, 1.0]])
    rows = generator.multivariate_normal([170.0, 100.0, 90_000.0], rho * np.outer(sds, sds), size=N)
    columns = {"weight": rows[:, 0].round(3), "height": rows[:, 1].round(3), "income": rows[:, 2].round()}
    pq.write_table(pa.table(columns), tmp_path / "people.parquet")
    path = tmp_path / "people.yaml"
    path.write_text(POLICY, encoding="utf-8")
    return path


def evidence(made: ap.Release) -> SequenceEvidence:
    assert isinstance(made.plan.certificate.evidence, SequenceEvidence)
    return made.plan.certificate.evidence


def test_two_releases_and_their_record(people: Path) -> None:
    with ap.Session(policy=people) as session:
        first = session.release("avg(weight)", "transport", spend=0.4)
        second = session.release("avg(height)", "transport", spend=1.0)
        assert second.plan.certificate.follows(first.plan.certificate)
        assert first.plan.left == pytest.approx(0.6, abs=1e-6)
        assert second.plan.left == 0
        assert session.release("avg(weight)").values == first.values  # told again, bit by bit
        assert session.release("sum(weight)").value == pytest.approx(N * first.value, rel=1e-15)
        with pytest.raises(RefusedError):
            session.release("avg(income)", "transport", spend=1.0)
    table = pq.read_table(people.with_name("people.parquet"))
    weight, height, income = (float(np.mean(table.column(c).to_numpy())) for c in ("weight", "height", "income"))
    # By the theory's formulas, in floats: both are moved by what income tells, up to the reach; the second also by what the
    # first has shown.
    told = (0.3 * 25 / 30_000 * (income - 60_000), 0.2 * 10 / 30_000 * (income - 60_000))
    spread = 25**2 * (1 - 0.09) / N + first.plan.columns[0].independent ** 2
    tied = 25 * 10 * (-0.6 - 0.06) / N / spread
    one, other = (step.reach for step in evidence(second).steps)
    assert one < told[0]
    assert first.value == pytest.approx(weight - told[0] + one, abs=1e-4)
    beyond = told[1] - tied * one
    assert second.value == pytest.approx(height - beyond + min(beyond, other), abs=1e-4)
    record = Said("ledger", str(people), "--recheck", "--json").json
    assert record["rechecked"]["certificates"] == 2


def test_nothing_of_the_table_is_in_the_record(people: Path) -> None:
    """Two tables that differ in everything give the same plans; only the answers differ."""
    texts = []
    for shift in (0.0, 40_000.0):
        table = pq.read_table(people.with_name("people.parquet"))
        moved = table.set_column(2, "income", pa.array(table.column("income").to_numpy() + shift))
        pq.write_table(moved, people.with_name("people.parquet"))
        ledger = people.with_name("people.ledger")
        with ap.Session(policy=people, ledger=ledger) as session:
            made = [session.release(query, "transport", spend=0.5) for query in ("avg(weight)", "avg(height)")]
        ledger.unlink()  # beside another one, each would point the other out
        texts.append(json.dumps([one.plan.to_json() for one in made], sort_keys=True))
    assert texts[0] == texts[1]


def test_a_ledger_that_lost_an_entry_is_not_proved(people: Path) -> None:
    with ap.Session(policy=people) as session:
        for query in ("avg(weight)", "avg(height)"):
            session.release(query, "transport", spend=0.5)
    entries = Ledger(people.with_suffix(".ledger")).entries()
    assert recheck("people", entries).certificates == 2
    for wrong in (entries[1:], entries[::-1]):
        with pytest.raises(CertificateError, match="entry"):
            recheck("people", wrong)


def test_additive_noise_does_not_follow(people: Path) -> None:
    with ap.Session(policy=people) as session:
        session.release("avg(weight)", "transport", spend=0.5)
        with pytest.raises(RefusedError, match="no rule covers"):
            session.release("avg(height)", "gaussian", spend=0.5)
        assert session.release("avg(height)", spend=0.5).plan.mechanism == "transport"
