"""Plans that hide which set holds a count: by the law of the mixture where the policy states enough, else point by point."""

from __future__ import annotations

from typing import Any

import pytest

from attrpriv.assumptions.counts import Counts
from attrpriv.errors import CertificateError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.count_noise.proof import CountCasesEvidence
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

MIXTURE = "sets of values are hidden by the exact law of the mixture, under the stated prior."
POINTS = "sets of values are hidden point by point."
VISITS = {
    "visits": {
        "yes": {"values": [0, 1, 3], "probabilities": [0.2, 0.5, 0.3]},
        "no": {"values": [0, 1, 3], "probabilities": [0.5, 0.3, 0.2]},
    }
}
SETS = Secret("count(smoker = 'yes')", cases=("< 100", ">= 100"))


def counts(prior: Any = 0.1, yes: Any = 0.4, **changes: Any) -> Counts:
    stated = {} if prior is None else {"prior": {"yes": prior}}
    return Counts(sensitive="smoker", given={"stay > 7": {"yes": yes, "no": 0.2}}, **(stated | changes))


def problem(**changes: Any) -> Problem:
    stated: dict[str, Any] = {
        "queries": (Query("count", where="stay > 7"),),
        "secrets": (SETS,),
        "epsilon": 1.0,
        "delta": 0.0,
        "n": 1000,
        "theta": (counts(),),
    }
    return Problem(**(stated | changes))


def evidence(found: Plan) -> CountCasesEvidence:
    assert isinstance(found.certificate.evidence, CountCasesEvidence)
    return found.certificate.evidence


@pytest.mark.parametrize(
    ("mechanism", "delta", "scale"), [("laplace", 0.0, 3.292207), ("laplace", 1e-6, 1.426460), ("gaussian", 1e-6, 2.299430)]
)
def test_the_mixture_needs_less_and_says_what_it_rests_on(mechanism: str, delta: float, scale: float) -> None:
    found = plan(problem(delta=delta), mechanism)
    assert found.tally is not None
    assert found.tally.scale == pytest.approx(scale, abs=1e-5)
    assert MIXTURE in found.notes
    assert POINTS not in found.notes
    assert any("exactly the prior share (0.1 for count(smoker = 'yes'))" in line for line in found.certificate.assumes)
    assert found.certificate.exact
    assert found.tally.covered_by(found.certificate, found.n)
    assert not found.tally.model_copy(update={"scale": scale / 2}).covered_by(found.certificate, found.n)
    assert Plan.model_validate_json(found.model_dump_json()) == found


def test_shares_and_the_other_side_of_the_prior() -> None:
    """The same sets as shares, and as a count of the complement whose prior follows."""
    first = plan(problem(), "laplace")
    shares = plan(problem(secrets=(Secret("share(smoker = 'yes')", cases=("< 0.1", ">= 0.1")),)), "laplace")
    other = plan(problem(secrets=(Secret("count(smoker = 'no')", cases=("<= 900", "> 900")),)), "laplace")
    assert evidence(shares).checks[0].sets == evidence(first).checks[0].sets
    assert evidence(other).checks[0].sets.share == pytest.approx(0.9)
    assert evidence(other).scale == pytest.approx(evidence(first).scale, rel=1e-6)


def test_every_member_and_secret_is_checked() -> None:
    theta = (counts(), counts(prior=0.11))
    secrets = (SETS, Secret("count(smoker = 'yes')", cases=("< 80", "[80, 120]", "> 120")))
    found = evidence(plan(problem(theta=theta, secrets=secrets), "laplace"))
    assert [(check.theta, check.sets.share, len(check.sets.cases)) for check in found.checks] == [
        (0, 0.1, 2),
        (0, 0.1, 3),
        (1, 0.11, 2),
        (1, 0.11, 3),
    ]
    assert found.scale > evidence(plan(problem(), "laplace")).scale


def test_categories_are_mixed_by_the_prior() -> None:
    """Members of two categories add what their average adds."""
    three = Counts(
        sensitive="smoker",
        given={"stay > 7": {"daily": 0.5, "sometimes": 0.3, "no": 0.2}},
        prior={"daily": 0.05, "sometimes": 0.05, "no": 0.9},
    )
    secret = Secret("count(smoker in ('daily', 'sometimes'))", cases=("< 100", ">= 100"))
    found = evidence(plan(problem(theta=(three,), secrets=(secret,)), "laplace"))
    assert found.checks[0].sets.share == pytest.approx(0.1)
    assert found.scale == pytest.approx(3.292207, abs=1e-5)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"theta": (counts(prior=None),)}, "prior share"),
        ({"theta": (counts(prior=(0.09, 0.11)),)}, "prior share"),
        ({"theta": (counts(), counts(prior=None))}, "prior share"),
        ({"theta": (counts(yes=(0.39, 0.41)),)}, "not intervals"),
        ({"known_rows": 0.01}, "known rows"),
        ({"secrets": (SETS, Secret("count(smoker = 'yes')", between=(50.0, 150.0)))}, "all have cases"),
        ({"secrets": (Secret(parameter="share(smoker = 'yes')", cases=("< 0.1", ">= 0.1")),)}, "this table"),
        (
            {
                "queries": (Query("count", group_by="visits"),),
                "theta": (Counts(sensitive="smoker", given=VISITS, prior={"yes": 0.1}),),
            },
            "one number",
        ),
    ],
)
def test_otherwise_point_by_point(changes: dict[str, Any], why: str) -> None:
    found = plan(problem(**changes), "laplace")
    assert found.certificate.evidence.kind == "count_laplace"
    assert POINTS in found.notes
    assert MIXTURE not in found.notes
    assert any(why in note for note in found.notes)
    assert not any("prior" in line for line in found.certificate.assumes)


def test_the_prior_is_not_promised_for_nothing() -> None:
    """Where the exact answer hides every two counts, it hides them for any prior."""
    near = counts(yes=0.2001)
    for mechanism, delta in (("laplace", 0.0), ("laplace", 1e-6), ("gaussian", 1e-6)):
        found = plan(problem(theta=(near,), delta=delta), mechanism)
        assert found.tally is not None
        assert found.tally.scale == 0
        assert POINTS in found.notes
    # With delta the rows hide counts at most one apart, point by point and without noise.
    single = Secret("count(smoker = 'yes')", cases=("[99.5, 100.5]", "[100.6, 101.5]"))
    for mechanism in ("laplace", "gaussian"):
        found = plan(problem(secrets=(single,), delta=1e-3, epsilon=0.5), mechanism)
        assert found.certificate.evidence.kind == "count_direct"
        assert found.notes[0].startswith("the exact answer")


def test_single_rows_are_protected_on_top() -> None:
    found = plan(problem(individuals=0.1), "laplace")
    assert found.tally is not None
    assert evidence(found).scale == found.tally.scale == pytest.approx(10.0)
    assert found.certificate.individuals is not None


def test_sums_are_covered() -> None:
    stated: dict[str, Any] = {
        "queries": (Query("sum", "visits"),),
        "theta": (Counts(sensitive="smoker", given=VISITS, prior={"yes": 0.1}),),
        "secrets": (Secret("count(smoker = 'yes')", cases=("< 30", ">= 30")),),
        "n": 300,
    }
    pointwise = plan(problem(**stated, known_rows=0.001), "laplace")
    assert pointwise.tally is not None
    assert evidence(plan(problem(**stated), "laplace")).scale < pointwise.tally.scale / 10


def test_a_changed_prior_is_caught() -> None:
    """The stored share is what is checked: with another one the noise is not enough."""
    found = plan(problem(), "laplace")
    check = evidence(found).checks[0]
    sets = type(check.sets)(check.sets.n, check.sets.cases, 0.3, check.sets.records)
    moved = evidence(found).model_copy(update={"checks": (check.model_copy(update={"sets": sets}),)})
    with pytest.raises(CertificateError):
        found.certificate.model_copy(update={"evidence": moved}).verify()


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "wasserstein", "optimal", "transport"])
def test_the_mixture_has_no_model_error_and_counts_have(mechanism: str) -> None:
    """As docs/limitations.md says; the other exception is tested in test_model_error.py."""
    points = problem(n=20, delta=1e-6, secrets=(Secret("count(smoker = 'yes')", between=(0, 20)),))
    assert [row.off_by for row in plan(points, mechanism).model_error] == [0.01, 0.02, 0.05, 0.1]
    if mechanism in ("laplace", "gaussian"):
        mixed = plan(problem(delta=1e-6), mechanism)
        assert isinstance(mixed.certificate.evidence, CountCasesEvidence)
        assert mixed.model_error == ()
        assert any("is not computed for this plan" in line for line in mixed.warnings)
