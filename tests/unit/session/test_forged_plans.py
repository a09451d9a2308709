"""Plans that somebody made up, recorded with accounts and digests that fit: planning again from the stated policy finds them.

Each forgery holds by itself: with the comparison of plans taken away, the recheck accepts it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import attrpriv as ap
from attrpriv.accounting import hash_chain as chain
from attrpriv.accounting.hash_chain import Entry
from attrpriv.cli.app import app
from attrpriv.errors import CertificateError
from attrpriv.methods.base.plan import Plan
from attrpriv.queries.sql import parse_queries
from attrpriv.session import record
from attrpriv.session import record as replanned
from attrpriv.session.record import details_of, document, recheck
from tests.unit.session.sequences import made, session

NUMBERS = {"income": "float", "weight": "float", "height": "float"}
SMOKERS = {"smoker": "text", "stay": "integer"}
MORE_THAN_A_WEEK = "count(*) filter (where stay > 7)"


def averages(**changes: Any) -> ap.Policy:
    stated: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "protect": [ap.Secret("mean(income)", between=(-100, 100))],
        "assume": ap.Gaussian(
            mean={"weight": 150, "income": 0, "height": 0},
            sd={"weight": 25, "income": 30, "height": 25},
            correlation={("weight", "income"): 0.3, ("height", "income"): 0.3, ("weight", "height"): 0.999},
            tolerance=0,
        ),
        "resolution": dict.fromkeys(NUMBERS, 1e-4),
    }
    return ap.Policy(**{**stated, **changes})


def patients(rows: int = 1000) -> ap.Policy:
    """The categories are not in the order in which a ledger keeps them."""
    yes = 0.31 if rows == 1000 else 0.9  # few rows tell little
    given = ap.Counts(sensitive="smoker", given={"stay > 7": {"yes": yes, "no": 0.3}}, prior={"yes": 0.4})
    return ap.Policy(rows=rows, epsilon=1.0, protect=[ap.Secret("count(smoker = 'yes')", between=(0, rows))], assume=given)


SINGLE = {
    "individuals": {"epsilon": 0.1},
    "protect": [ap.Secret("mean(income)", within=1, between=(-100, 100))],
    "bounds": {"weight": (-1000, 1000), "income": (-1000, 1000)},
}


def planned(policy: ap.Policy, query: str, mechanism: str, n: int, types: dict[str, str], **changes: Any) -> Plan:
    problem = policy.problem(parse_queries(query), n, types)
    return ap.plan(problem.model_copy(update=changes), mechanism)


def entry(plan: Plan, policy: ap.Policy, types: dict[str, str], value: float = 1.0, before: Sequence[Entry] = ()) -> Entry:
    """As the ledger would have it, had it been released."""
    number, rows = len(before) + 1, plan.certificate.individuals
    joint = None if plan.mechanism == "constant" else number
    account = {"joint": joint, "policy": 1, "n": plan.n, "table": "t", "individuals": 0.0 if rows is None else rows.epsilon}
    said = chain.contents(
        kind="release",
        time="now",
        policy_digest=plan.policy_digest,
        plan=plan.entries(chosen=True),
        answers=[{"query": query.text, "value": value, "interval": None} for query in plan.queries],
        details=details_of(plan, types, policy),
    )
    stated = {} if before else {"stated": policy.stated}
    return chain.next_entry(said, {**account, **stated}, before[-1] if before else None)


def proved(plan: Plan, **changes: Any) -> Plan:
    """With another certificate."""
    return plan.model_copy(update={"certificate": plan.certificate.model_copy(update=changes)})


def evidence(plan: Plan, **changes: Any) -> Plan:
    return proved(plan, evidence=plan.certificate.evidence.model_copy(update=changes))


def hardly_any_row_noise(plan: Plan) -> Plan:
    rows = plan.certificate.individuals
    assert rows is not None
    (term,) = rows.terms
    small = {name: getattr(term, name) * 2.0**-20 for name in ("sensitivity", "scale", "granularity")}
    rows = rows.model_copy(update={"terms": (term.model_copy(update=small),)})
    (part,) = plan.columns
    part = part.model_copy(update={"noise": part.noise.model_copy(update={"individuals": small["scale"]})})
    return proved(plan.model_copy(update={"columns": (part,)}), individuals=rows)


def other_sign(plan: Plan) -> Plan:
    rows: Any = plan.certificate.evidence
    (a, b), (c, d) = rows.credited
    return evidence(plan, credited=((a, -b), (-c, d)))


def other_reads(plan: Plan) -> Plan:
    told: Any = plan.certificate.evidence
    read = {"coefficients": {"height": 1.0}}
    checks = [
        one.model_copy(update={"reads": tuple(each.model_copy(update=read) for each in one.reads)}) for one in told.checks
    ]
    return evidence(plan, reads=tuple(one.model_copy(update=read) for one in told.reads), checks=tuple(checks))


def the_secret_counted(plan: Plan) -> Plan:
    other = planned(patients(), "count(*) filter (where smoker = 'yes')", "laplace", 1000, SMOKERS).tally
    told: Any = plan.certificate.evidence
    assert plan.tally is not None
    assert other is not None
    tally = plan.tally.model_copy(update={"cells": other.cells})
    found = evidence(plan, now=told.now.model_copy(update={"identity": tally.identity}))
    return found.model_copy(update={"tally": tally})


def exact_average(plan: Plan) -> Plan:
    (part,) = plan.columns
    return plan.model_copy(update={"columns": (part.model_copy(update={"centre": 148.125}),)})


def half_as_fragile(plan: Plan) -> Plan:
    halved = [one.model_copy(update={"epsilon": one.epsilon / 2}) for one in plan.model_error if one.epsilon is not None]
    return plan.model_copy(update={"model_error": tuple(halved)})


@dataclass(frozen=True)
class Forged:
    """What is planned honestly, what becomes of it, and what the recheck says."""

    says: str
    change: Callable[[Plan], Plan]
    policy: ap.Policy = field(default_factory=averages)
    query: str = "avg(weight)"
    mechanism: str = "gaussian"
    types: dict[str, str] = field(default_factory=lambda: NUMBERS)
    spend: float = 1.0
    before: str | None = None
    values: tuple[float, float] = (1.0, 1.0)

    def entries(self, change: Callable[[Plan], Plan], value: float) -> list[Entry]:
        rows, earlier, found = self.policy.rows or 1000, None, []
        if self.before is not None:
            first = planned(self.policy, self.before, self.mechanism, rows, self.types, spend=0.5)
            earlier, found = first.certificate.evidence, [entry(first, self.policy, self.types)]
        plan = planned(self.policy, self.query, self.mechanism, rows, self.types, spend=self.spend, earlier=earlier)
        return [*found, entry(change(plan).rebuilt(), self.policy, self.types, value, found)]


def as_it_is(plan: Plan) -> Plan:
    return plan


def for_more_rows(plan: Plan) -> Plan:
    return planned(averages(rows=1000), plan.queries[0].text, plan.mechanism, 1_000_000, NUMBERS)


FORGED = {
    "more rows than the policy states": Forged(
        r"entry 1: n: must be the policy's rows, 1000\. Got 1000000\.", for_more_rows, averages(rows=1000)
    ),
    "hardly any noise for single persons": Forged(
        r"entry 1: columns\[0\]\.noise\.individuals: must be 20\.0\d*, as the policy plans it\. Got 1\.9\d*e-05\.",
        hardly_any_row_noise,
        averages(**SINGLE),
    ),
    "another covariance": Forged(
        r"entry 2: certificate\.evidence\.credited\[0\]\[1\]: must be 0\.5\d*, as the policy plans it\. Got -0\.5\d*\.",
        other_sign,
        query="avg(height)",
        mechanism="transport",
        before="avg(weight)",
    ),
    "another column read": Forged(
        r"entry 1: certificate\.evidence\.reads\[0\]\.coefficients\.income: must be there where",
        other_reads,
        mechanism="transport",
        spend=0.5,
    ),
    "another count": Forged(
        r"entry 1: tally\.cells\[0\]\.name: must be .stay > 7., as the policy plans it\.",
        the_secret_counted,
        patients(),
        MORE_THAN_A_WEEK,
        "laplace",
        SMOKERS,
        0.5,
    ),
    "a constant that is the table's average": Forged(
        r"entry 1: columns\[0\]\.centre: must be 150\.0, as the policy plans it\. Got 148\.125\.",
        exact_average,
        mechanism="constant",
        values=(150.0, 148.125),
    ),
    "a kernel that hardly minds wrong probabilities": Forged(
        r"entry 1: model_error\[0\]\.epsilon: must be 1\.25\d*, as the policy plans it\. Got 0\.62\d*\.",
        half_as_fragile,
        patients(rows=4),
        MORE_THAN_A_WEEK,
        "optimal",
        SMOKERS,
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_plan_that_is_not_the_policy_s_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = FORGED[name]
    honest, forged = (one.entries(change, value) for change, value in zip((as_it_is, one.change), one.values, strict=True))
    assert recheck("record", honest).planned_again == len(honest)
    with pytest.raises(CertificateError, match=rf"^record: {one.says}"):
        recheck("record", forged)
    monkeypatch.setattr(record, "require_asked_for", lambda *told, **more: None)
    recheck("record", forged)  # nothing else would find it


def test_the_command_line_names_the_entry(tmp_path: Path) -> None:
    one = FORGED["a constant that is the table's average"]
    path = tmp_path / "record.json"
    for change, value, code in ((as_it_is, 150.0, 0), (one.change, 148.125, 1)):
        path.write_text(json.dumps(document(one.entries(change, value))))
        said = CliRunner().invoke(app, ["ledger", str(path), "--recheck"])
        assert said.exit_code == code, said.output
    assert "entry 1: columns[0].centre: must be 150.0" in said.output


def test_single_persons_must_be_protected_from_the_first_release_on(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = averages(**SINGLE)
    plan = planned(policy, "avg(weight)", "gaussian", 1000, NUMBERS, individuals=None)
    with pytest.raises(CertificateError, match=r"entry 1: .*individuals: single persons"):
        recheck("record", [entry(plan, policy, NUMBERS)])
    with pytest.raises(CertificateError, match=r"^columns\[0\]\.noise\.individuals: must be 20\.0\d*"):
        replanned.require_asked_for(plan, policy, NUMBERS, None)


def test_an_entry_without_an_account_is_no_entry() -> None:
    """Nobody could plan it again: no policy is stated."""
    policy = averages()
    told = entry(planned(policy, "avg(weight)", "gaussian", 1000, NUMBERS), policy, NUMBERS).to_json()
    for details in (told["details"], None):
        kept = {key: told[key] for key in ("kind", "time", "policy_digest", "plan", "answers")}
        made = chain.next_entry(chain.contents(**kept, details=details), None, None)
        with pytest.raises(CertificateError, match=r"^record: entry 1: must state the policy of its digest"):
            recheck("record", [made])


def test_a_column_has_one_type() -> None:
    policy = averages()
    first = planned(policy, "avg(weight)", "transport", 1000, NUMBERS, spend=0.5)
    whole = {**NUMBERS, "income": "integer"}
    found = [entry(first, policy, NUMBERS)]
    second = planned(policy, "avg(height)", "transport", 1000, whole, earlier=first.certificate.evidence)
    with pytest.raises(CertificateError, match=r"^record: entry 2: types: must be those of the entries before"):
        recheck("record", [*found, entry(second, policy, whole, before=found)])


def test_the_text_of_a_policy_is_that_of_the_stated_one() -> None:
    policy, other = averages(), averages(epsilon=2.0)
    plan = planned(policy, "avg(weight)", "gaussian", 1000, NUMBERS)
    told = entry(plan, policy, NUMBERS).to_json()
    kept = {key: told[key] for key in ("kind", "time", "policy_digest", "plan", "answers")}
    for text in (json.dumps(other.stated), "{", 5):
        said = chain.contents(**kept, details={**told["details"], "policy": text})
        with pytest.raises(CertificateError, match=r"^record: entry 1: must"):
            recheck("record", [chain.next_entry(said, told["account"], None)])


def test_a_constant_under_a_tightened_policy_states_it(tmp_path: Path) -> None:
    """So that its value can be checked; what is in force stays."""
    assume = {**made().assume[0].to_json(), "mean": {"income": 60_000, "height": 100}, "tolerance": 0}
    with session(tmp_path / "x.ledger", made(assume=assume)) as opened:
        opened.release("avg(weight)", "gaussian", spend=0.3)
    tight = made(assume=[{**assume, "mean": {"income": 60_000, "height": 101}}, assume])
    with session(tmp_path / "x.ledger", tight) as opened:
        assert opened.release("avg(height)", "constant", spend=0.5).value == 101
        first, second = opened.recorded()
        assert (second.account["policy"], second.account["stated"]) == (1, chain.json_value("", tight.stated))
        assert recheck("record", (first, second)).planned_again == 2
    with session(tmp_path / "x.ledger", made(assume=assume)) as opened:
        opened.release("avg(sat)", "gaussian", spend=0.3)
        assert recheck("record", opened.recorded()).planned_again == 3


# ------------------------------------------------------------------------------------------- nothing is left out


def each_changed(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """The JSON value with another number, word or gap in one place, for every place."""
    if isinstance(value, dict):
        for key, inner in value.items():
            for name, changed in each_changed(inner, f"{place}.{key}".lstrip(".")):
                yield name, {**value, key: changed}
    elif isinstance(value, list):
        for k, inner in enumerate(value):
            for name, changed in each_changed(inner, f"{place}[{k}]"):
                yield name, [*value[:k], changed, *value[k + 1 :]]
    else:
        yield place, other(value)


def other(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return 7
    if isinstance(value, int | float):
        return value * (1 + 1e-6) if isinstance(value, float) and value else value + 1
    return f"{value}."


@pytest.mark.parametrize("name", FORGED)
def test_every_number_and_word_is_compared(name: str) -> None:
    one = FORGED[name]
    plan = planned(one.policy, one.query, one.mechanism, one.policy.rows or 1000, one.types, spend=one.spend).to_json()
    free = ("bound", "notes[", "guarantee.statement", "guarantee.reference", "certificate.assumes[")
    assert not list(replanned._different(plan, plan, replanned._WORDS))
    for place, changed in each_changed(plan):
        found = list(replanned._different(plan, changed, replanned._WORDS))
        assert len(found) == (0 if place.startswith(free) else 1), place
