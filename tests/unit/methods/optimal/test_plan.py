"""The optimal mechanism's plans: which form, which errors, and that no other mechanism beats it."""

from __future__ import annotations

from typing import Any

import pytest

from attrpriv.errors import CertificateError, RefusedError
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.methods.optimal.plan import AUTO_SECRETS
from attrpriv.methods.optimal.proof import CouplingEvidence, KernelEvidence
from attrpriv.numerics.laws.records import CountPairs
from attrpriv.problem.secret import Parameter, Secret
from tests.unit.methods.counts import problem, smokers


def all_of(n: int) -> dict[str, Any]:
    return {"n": n, "secrets": (Secret("count(smoker = 'yes')", between=(0, n)),)}


def test_exact_probabilities_are_transported_by_reading_the_secret() -> None:
    made = plan(problem(smokers(prior={"yes": 0.5}), **all_of(20)), "optimal")
    assert isinstance(made.certificate.evidence, CouplingEvidence)
    assert made.error.mean_absolute == pytest.approx(0.0163, abs=5e-5)
    assert "it reads the secret, and rests on the stated probabilities as they are: no tolerance is covered." in made.notes
    assert made.notes[0] == "expected errors are averages over the prior of the assumption."


def test_intervals_are_covered_by_the_corner() -> None:
    made = plan(problem(smokers((0.4, 0.5), (0.5, 0.6))), "optimal")
    evidence = made.certificate.evidence
    assert isinstance(evidence, KernelEvidence)
    assert evidence.family == "corner"
    told = "expected errors are averages over all values of the secret alike, at the worst law within the intervals."
    assert made.notes == (told,)


def test_a_population_is_seen_through_the_count_alone() -> None:
    made = plan(problem(secrets=(Parameter("share(smoker = 'yes')", between=(0.2, 0.8)),)), "optimal")
    evidence = made.certificate.evidence
    assert isinstance(evidence, KernelEvidence)
    assert evidence.family == "counts"


def test_where_nothing_is_needed_nothing_is_changed() -> None:
    made = plan(problem(epsilon=2.0), "optimal")
    assert made.error.mean_absolute == 0
    assert made.error.worst == 0
    assert [made.tallied((f,), (2, 2)) for f in range(5)] == [((f,),) for f in range(5)]


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
@pytest.mark.parametrize("box", [(0.4, 0.6), ((0.35, 0.4), (0.6, 0.65))])
def test_nothing_beats_it(epsilon: float, box: Any) -> None:
    """By mean absolute error, which it minimises, over pure mechanisms."""
    asked = problem(smokers(*box), epsilon=epsilon)
    best = plan(asked, "optimal").error.mean_absolute
    assert best is not None
    for mechanism in ("laplace", "wasserstein", "group_dp"):
        assert best <= (plan(asked, mechanism).error.mean_absolute or 0.0)


def near(n: int, within: float) -> dict[str, Any]:
    return {"n": n, "secrets": (Secret("count(smoker = 'yes')", between=(0, n), within=within),)}


def test_near_pairs_are_hidden_and_no_others() -> None:
    """.067; hiding all pairs of the range, or seeing the count alone, errs by .229 and more."""
    made = plan(problem(smokers(0.2, 0.5, prior={"yes": 0.5}), epsilon=0.25, **near(8, 1)), "optimal")
    evidence = made.certificate.evidence
    assert isinstance(evidence, CouplingEvidence)
    assert made.error.mean_absolute == pytest.approx(0.0671, abs=1e-4)
    assert evidence.delta(0.25) == 0
    assert evidence.model_copy(update={"pairs": CountPairs.all_of(8)}).delta(0.25) == 1
    assert not any("not the least" in note for note in made.notes)


def test_too_many_near_pairs_are_not_called_the_least() -> None:
    made = plan(problem(smokers(prior={"yes": 0.5}), **near(41, 40)), "optimal")
    assert any("this is not the least possible error" in note for note in made.notes)


def test_auto_tries_it_for_few_secrets_only() -> None:
    many = problem(**all_of(AUTO_SECRETS + 1))
    assert "ask for it by name" in rank(many).refused["optimal"].reason


def test_too_many_secrets_are_refused_by_name() -> None:
    with pytest.raises(RefusedError, match="optimal: "):
        plan(problem(**all_of(400)), "optimal")


def test_a_population_s_share_may_be_hidden_by_reading_the_table_s_count() -> None:
    """Less error than hiding every count, and than seeing the count alone; the certificate says for which shares."""
    secret = Parameter("share(smoker = 'yes')", between=(0.2, 0.8))
    made = plan(problem(secrets=(secret,), n=12, epsilon=0.2), "optimal")
    evidence = made.certificate.evidence
    assert isinstance(evidence, CouplingEvidence)
    assert evidence.shares == (0.2, 0.8)
    assert made.error.mean_absolute == pytest.approx(0.282, abs=1e-3)
    transported = plan(problem(secrets=(secret,), n=12, epsilon=0.2), "transport")
    assert (made.error.mean_absolute or 0.0) < 0.95 * (transported.error.mean_absolute or 0.0)
    assert evidence.model_copy(update={"shares": None}).delta(0.2) == 1  # the counts themselves are not hidden
    assert evidence.model_copy(update={"pairs": CountPairs(12, 0, 12, 3)}).delta(0.2) == 1
    assert 0 <= int(made.tallied((7,), (5, 7))[0][0]) <= 12
    assert [row.epsilon for row in made.model_error] == sorted(row.epsilon or 0.0 for row in made.model_error)


@pytest.mark.parametrize(
    ("yes", "secret"),
    [
        (0.4, all_of(6)["secrets"][0]),
        ((0.4, 0.42), all_of(6)["secrets"][0]),
        (0.4, Parameter("share(smoker = 'yes')", between=(0.2, 0.8))),
    ],
)
def test_weights_are_for_the_values_and_rows_they_were_made_for(yes: Any, secret: Secret) -> None:
    """Drawn for other values they once passed, hid nothing, and failed for some tables only."""
    found = plan(problem(smokers(yes), secrets=(secret,), n=6, epsilon=0.2), "optimal")
    for start in (-1, 1):
        evidence = found.certificate.evidence.model_copy(update={"start": start})
        moved = found.model_copy(update={"certificate": found.certificate.model_copy(update={"evidence": evidence})})
        with pytest.raises(CertificateError):
            moved.verify()
    with pytest.raises(CertificateError):
        found.model_copy(update={"n": 7}).verify()
