"""A probability that no float writes is a number all the same: 5/13, what it leaves of 1, and averages over categories."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from attrpriv.assumptions.counts import Counts
from attrpriv.errors import CertificateError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.count_noise.proof import CountDirectEvidence, CountLaplaceEvidence
from attrpriv.methods.count_transport.proof import CountTransportEvidence
from attrpriv.numerics.calibration.laplace import histogram_loss, laplace_loss
from attrpriv.numerics.divergences.families import family_wasserstein
from attrpriv.numerics.laws.records import CountPairs, RecordLaws
from attrpriv.policy import Policy
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries
from attrpriv.session.record import require_asked_for
from tests.unit.methods.counts import STAY, column, problem, smokers

SOME = Secret("count(smoker = 'yes')", between=(40, 80))
TYPES = {"s": "text", "stay": "integer"}


def moved(yes: Any, **changes: Any) -> float:
    return plan(problem(smokers(yes, 0.2), n=200, secrets=(SOME,), **changes), "transport").error.rmse or 0.0


@pytest.mark.parametrize("yes", [5 / 13, Fraction(5, 13), "5/13"])
@pytest.mark.parametrize("where", [STAY, f"not ({STAY})"])
def test_sixteen_digits_are_no_interval(yes: Any, where: str) -> None:
    """5/13 was refused by what reads the secret, because 1 - 5/13 became an interval."""
    asked = (Query("count", where=where),)
    assert moved(yes, queries=asked) == pytest.approx(moved(0.38461538, queries=asked), rel=1e-4)


def test_categories_are_averaged_to_a_number() -> None:
    """Two thirds of 0.4 and a third of 0.3: no float is 11/30."""
    three = Counts(sensitive="s", given={STAY: {"a": 0.4, "b": 0.3, "c": 0.2}}, prior={"a": 0.2, "b": 0.1, "c": 0.7})
    made = plan(problem(three, n=60, secrets=(Secret("count(s != 'c')", between=(10, 30)),)), "transport")
    assert isinstance(made.certificate.evidence, CountTransportEvidence)
    assert made.certificate.evidence.transport.records.member[1] == (Fraction(11, 30), Fraction(11, 30))
    made.certificate.verify()
    assert Plan.from_json(made.to_json()) == made


def test_a_column_of_thirds_has_one_law() -> None:
    """Sums with delta are refused where a probability is an interval."""
    third = column("visits", [0, 1, 2], [1 / 3, 1 / 3, 1 / 3], ["1/2", "1/3", "1/6"])
    made = plan(problem(third, queries=(Query("sum", "visits"),), delta=1e-3, n=8, secrets=(half(8),)), "gaussian")
    assert isinstance(made.certificate.evidence, CountDirectEvidence)
    (check,) = made.certificate.evidence.checks
    assert check.records.rest == tuple((Fraction(1, k), Fraction(1, k)) if k != 2 else (0.5, 0.5) for k in (2, 3, 6))
    assert Plan.from_json(made.to_json()) == made


def half(n: int) -> Secret:
    return Secret("count(smoker = 'yes')", between=(0, n // 2))


def test_two_fractions_that_are_one_float_are_two_laws() -> None:
    one, other = Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**25)
    laws = RecordLaws.event(one, other)
    assert float(one) == float(other)
    for scale in (0.0, 1.0):
        assert 0 < laplace_loss(laws, 4, scale).upper < 1e-13
        assert 0 < histogram_loss(laws.member, laws.rest, 4, scale).upper < 1e-13
    assert family_wasserstein(laws, CountPairs.all_of(4)).distance >= 1
    assert laplace_loss(RecordLaws.event(one, one), 4, 0.0).lower == 0


@pytest.mark.parametrize("scale", [0.0, 1.5])
def test_the_loss_of_fractions_is_that_of_their_ratio(scale: float) -> None:
    laws = RecordLaws.event(Fraction(5, 13), Fraction(6, 13))
    u = 0.0 if not scale else math.exp(-1 / scale)
    exact = max(math.log((6 + 7 * u) / (5 + 8 * u)), math.log((8 + 5 * u) / (7 + 6 * u)))
    found = laplace_loss(laws, 7, scale)
    assert found.lower <= 7 * exact <= found.upper <= 7 * exact * (1 + 1e-12)


def test_a_policy_file_may_say_a_fraction(tmp_path: Path) -> None:
    text = f"""
    attrpriv: 1
    epsilon: 1.0
    rows: 100
    protect:
      - secret: count(smoker = 'yes')
        between: [20, 40]
    assume:
      kind: counts
      sensitive: smoker
      given:
        "{STAY}": {{'yes': 5/13, 'no': [1/5, 3/13]}}
    """
    file = tmp_path / "policy.yaml"
    file.write_text(dedent(text), encoding="utf-8")
    policy = Policy.load(file)
    (member,) = policy.assume if isinstance(policy.assume, tuple) else (policy.assume,)
    assert isinstance(member, Counts)
    assert dict(member.given[STAY]) == {"yes": (Fraction(5, 13),) * 2, "no": (0.2, Fraction(3, 13))}
    assert Counts.from_json(member.to_json()) == member
    assert "yes 0.384615, no 0.2 to 0.230769" in str(member)


def test_what_was_recorded_as_two_floats_is_still_what_the_policy_asks_for() -> None:
    """An entry of 0.1.0 holds two neighbouring floats where a fraction is held now."""
    given = Counts(sensitive="s", given={STAY: {"a": 0.4, "b": 0.3, "c": 0.2}}, prior={"a": 0.2, "b": 0.1, "c": 0.7})
    policy = Policy(rows=100, epsilon=1.0, protect=[Secret("count(s != 'c')", between=(10, 30))], assume=given)
    asked = policy.problem(parse_queries(f"count(*) filter (where {STAY})"), 100, TYPES)
    made = plan(asked, "laplace")
    assert isinstance(made.certificate.evidence, CountLaplaceEvidence)
    (check,) = made.certificate.evidence.checks
    near = [math.nextafter(11 / 30, end) for end in (0.0, 1.0)]
    member = ((1 - near[1], 1 - near[0]), (near[0], near[1]))
    wide = check.model_copy(update={"records": RecordLaws(check.records.values, member, check.records.rest)})
    evidence = made.certificate.evidence.model_copy(update={"checks": (wide,)})
    old = made.model_copy(update={"certificate": made.certificate.model_copy(update={"evidence": evidence})})
    assert old.to_json() != made.to_json()
    require_asked_for(old, policy, TYPES, None)


def test_noise_that_a_search_found_may_differ_a_little() -> None:
    """Another version may need a little less; what is told is proved by the certificate. More than that is another plan."""
    policy = Policy(
        rows=100,
        epsilon=1.0,
        delta=1e-3,
        protect=[Secret("count(s = 'a')", between=(10, 30))],
        assume=Counts(sensitive="s", given={STAY: {"a": 0.4, "b": 0.2}}),
    )
    made = plan(policy.problem(parse_queries(f"count(*) filter (where {STAY})"), 100, TYPES), "gaussian")
    assert isinstance(made.certificate.evidence, CountDirectEvidence)
    require_asked_for(louder(made, 1 + 1e-5), policy, TYPES, None)
    with pytest.raises(CertificateError, match="scale"):
        require_asked_for(louder(made, 1.05), policy, TYPES, None)
    with pytest.raises(CertificateError):
        louder(made, 1 - 1e-3).certificate.verify()


def louder(made: Plan, factor: float) -> Plan:
    """The same plan with other noise."""
    told = made.to_json()
    for place in (told["tally"], told["certificate"]["evidence"]):
        place["scale"] *= factor
    return Plan.from_json(told)
