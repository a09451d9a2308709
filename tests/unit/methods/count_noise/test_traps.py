"""Traps under a counts assumption, each of which once led to a release that told the secret, or could have."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from attrpriv.assumptions.counts import Counts
from attrpriv.engines.tally import UNKNOWN_CATEGORY
from attrpriv.errors import AttrprivError, Cause, CertificateError, DataError, PolicyError, QueryError
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.count_noise.proof import WassersteinEvidence
from attrpriv.numerics.laws.records import CountPairs
from attrpriv.policy import Policy
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.conditions import parse_condition
from attrpriv.queries.query import Query
from attrpriv.session.session import Session
from tests.refusing import refuses

E = "e > 0"
ALL = Secret("count(c = 'yes')", between=(0.0, 10.0))


def problem(given: dict[str, Any], *, where: str = E, secret: Secret = ALL, n: int = 10, **changes: Any) -> Problem:
    own = {key: changes.pop(key) for key in ("prior", "other") if key in changes}
    stated: dict[str, Any] = {"queries": (Query("count", where=where),), "epsilon": 0.1, "n": n}
    return Problem(secrets=(secret,), theta=(Counts(sensitive="c", given=given, **own),), **(stated | changes))


# ------------------------------------------------------------------------------------------------- what `other` stands for


@pytest.mark.parametrize("condition", ["c in ('yes', 'maybe')", "c != 'no'", "not (c = 'no')", "c = 'rest'", "c is null"])
def test_a_secret_must_not_depend_on_what_other_rows_are(condition: str) -> None:
    given = {E: {"yes": 0.5, "no": 0.1, "rest": 0.9}}
    asked = problem(given, secret=Secret(f"count({condition})", between=(0.0, 10.0)), other="rest")
    with pytest.raises(AttrprivError, match="must name categories by = or in, of yes, no"):
        plan(asked, "laplace")
    assert plan(problem(given, other="rest"), "laplace").tally is not None


# ------------------------------------------------------------------------------------------- missing entries and negations


def policy(given: dict[str, Any], **changes: Any) -> Policy:
    return Policy(epsilon=0.1, protect=[ALL], assume=Counts(sensitive="c", given=given), **changes)


def table(e: list[float | None]) -> pa.Table:
    return pa.table({"c": ["yes", "no"] * 5, "e": pa.array(e, pa.float64())})


def test_a_missing_entry_satisfies_neither_an_event_nor_its_negation(tmp_path: Path) -> None:
    """P(e) = .5 in both categories, but half of one category's entries missing: `not e` would count them out."""
    stated = policy({E: {"yes": 0.5, "no": 0.5}})
    for k, where in enumerate((E, f"not ({E})")):
        query = f"count(*) filter (where {where})"
        with Session(table([None, 1.0] * 5), stated, ledger=tmp_path / f"{k}.ledger") as session:
            assert session.plan(query, "laplace").noise.kind == "none"
            with pytest.raises(DataError) as caught:
                session.release(query, "laplace")
        assert str(caught.value) == UNKNOWN_CATEGORY.format(columns="e, c")
    filled = policy({E: {"yes": 0.5, "no": 0.5}}, missing={"e": 0.0})
    with Session(table([None, 1.0] * 5), filled, ledger=tmp_path / "filled.ledger") as session:
        assert session.release(f"count(*) filter (where {E})", "laplace").value == 5


def test_the_negation_of_a_condition_that_asks_for_missing_entries_is_not_known() -> None:
    both = "e > 0 and e is null"
    counts = Counts(sensitive="c", given={both: {"yes": 0.5, "no": 0.4}})
    with pytest.raises(QueryError, match="must give the probability of"):
        counts.event(parse_condition(f"not ({both})"), {})


def test_an_event_of_a_listed_column_needs_listed_values(tmp_path: Path) -> None:
    law = {"values": [0, 1], "probabilities": [0.5, 0.5]}
    stated = policy({"e": {"yes": law, "no": law}})
    rows: list[tuple[str, list[float | None]]] = [("e >= 1", [5.0, 0.0]), ("e = 1", [None, 0.0])]
    for k, (where, values) in enumerate(rows):
        with Session(table(values * 5), stated, ledger=tmp_path / f"{k}.ledger") as session, pytest.raises(DataError):
            session.release(f"count(*) filter (where {where})", "laplace")


def test_an_event_is_of_the_entries_as_they_are(tmp_path: Path) -> None:
    """Bounds clip what is summed, not what a condition looks at."""
    stated = policy({"e = 8": {"yes": 0.1, "no": 0.1}}, bounds={"e": (8.0, 20.0)})
    with Session(table([3.0, 8.0] * 5), stated, ledger=tmp_path / "x.ledger") as session:
        assert session.release("count(*) filter (where e = 8)", "laplace").value == 5


# ------------------------------------------------------------------------------------------------------ small probabilities


@pytest.mark.parametrize(("yes", "no"), [(1e-17, 0.0), (1.05e-15, 0.95e-15), (1e-300, 0.0)])
def test_a_small_probability_is_not_lost_in_its_complement(yes: float, no: float) -> None:
    """1 - 1e-17 is 1 in floats; an exact release would then tell everything."""
    for where in (E, f"not ({E})"):
        found = plan(problem({E: {"yes": yes, "no": no}}, where=where, secret=ALL), "laplace")
        assert found.noise.kind == "laplace"
    low, high = Counts(sensitive="c", given={E: {"yes": yes, "no": no}}).event(parse_condition(f"not ({E})"), {})["yes"]
    assert low <= 1 - Fraction(repr(yes)) <= high <= 1.0
    assert low < 1.0


def test_nor_in_a_sum_or_a_mixture() -> None:
    listed = {
        "yes": {"values": [0, 1], "probabilities": [1e-17, 1.0]},
        "no": {"values": [0, 1], "probabilities": [0.0, 1.0]},
    }
    assert plan(problem({"e": listed}, where="e >= 1"), "laplace").noise.kind == "laplace"
    share = Parameter("share(c = 'yes')", between=(0.0, 1e-20))
    assert plan(problem({E: {"yes": 1e-310, "no": 0.0}}, secret=share), "laplace").noise.kind == "laplace"


def test_decimal_numbers_stay_themselves() -> None:
    counts = Counts(sensitive="c", given={E: {"yes": 0.4, "no": 0.9}})
    assert counts.event(parse_condition(f"not ({E})"), {}) == {"yes": (0.6, 0.6), "no": (0.1, 0.1)}


# ------------------------------------------------------------------------------------------------- wasserstein, known rows


def test_fewer_unknown_rows_can_be_further_apart() -> None:
    """Even values a little likelier: one row is told apart more easily than three. Known rows leave one."""
    even = {"values": list(range(8)), "probabilities": [0.15, 0.1] * 4}
    odd = {"values": list(range(8)), "probabilities": [0.1, 0.15] * 4}
    asked = problem({"x": {"yes": even, "no": odd}}, n=3, secret=Secret("count(c = 'yes')", between=(0.0, 3.0)), known_rows=0.5)
    asked = asked.model_copy(update={"queries": (Query("sum", "x"),), "delta": 0.05})
    with refuses(AttrprivError, Cause.PERSONS, "mechanism laplace"):
        plan(asked, "wasserstein")
    found = plan(asked.model_copy(update={"known_rows": 0.0}), "wasserstein")
    evidence = found.certificate.evidence
    assert isinstance(evidence, WassersteinEvidence)
    planted = found.certificate.model_copy(update={"evidence": evidence.model_copy(update={"known": 2})})
    with pytest.raises(CertificateError):
        planted.verify()


def test_known_rows_and_an_event() -> None:
    found = plan(problem({E: {"yes": 0.4, "no": 0.6}}, known_rows=0.5), "wasserstein")
    evidence = found.certificate.evidence
    assert isinstance(evidence, WassersteinEvidence)
    assert [check.pairs for check in evidence.checks] == [CountPairs.all_of(10)]
    assert evidence.known == 5


# --------------------------------------------------------------------------------------------------- contradictory policies


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ({"given": {"c": {"yes": {"values": ["yes", "no"], "probabilities": [0.5, 0.5]}}}}, "sensitive column itself"),
        ({"given": {"e > 0": {"yes": 0.1, "no": 0.2}, "e>0": {"yes": 0.3, "no": 0.2}}}, "must give each event once"),
        ({"given": {E: {"yes": 0.1, "no": 0.2}, f"not ({E})": {"yes": 0.1, "no": 0.2}}}, "an event or its negation"),
        ({"given": {E: {"a": 0.1, "b": 0.2, "d": 0.3}}, "prior": {"a": 0.9, "b": 0.9}}, "must not sum to more than 1"),
    ],
)
def test_contradictions_are_refused(stated: dict[str, Any], says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        Counts(sensitive="c", **stated)
