"""What a promise pays besides its calibration: each charge counts, with its exact coefficient, in every kind of evidence."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any, Literal

import mpmath
import pytest

from attrpriv.cases.budget import Budget
from attrpriv.errors import CertificateError, PolicyError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.evidence import CHARGES, Charged
from attrpriv.methods.base.plan import Plan
from tests.unit.methods.proofs import every

LAMBDAS = ("grid_lambda", "lattice_lambda", "shape_lambda")
ETAS = ("grid_eta", "shape_eta")
PLAIN = ("clip_delta", "fit_delta", "reserve")


class Stated(Charged):
    """A calibration that reaches a stated delta."""

    kind: Literal["stated"] = "stated"
    worst: float

    def delta(self, epsilon: float) -> float:
        return 1.0 if self.inner(epsilon) is None else self.charged(self.worst, epsilon)


def stated(worst: float = 0.0, **charges: float) -> Stated:
    return Stated(**{**dict.fromkeys(CHARGES, 0.0), **charges, "worst": worst})


def test_there_are_eight_and_each_is_of_one_kind() -> None:
    assert sorted(CHARGES) == sorted((*LAMBDAS, *ETAS, *PLAIN))


@pytest.mark.parametrize("name", CHARGES)
def test_none_may_be_left_out(name: str) -> None:
    with pytest.raises(PolicyError, match="is required"):
        Stated(worst=0.0, **{one: 0.0 for one in CHARGES if one != name})


def exact(worst: float, epsilon: float, charges: dict[str, float]) -> Any:
    """e^lambda worst + eta (1 + e^epsilon) + the rest, with 60 digits."""
    with mpmath.workdps(60):
        lam = sum(mpmath.mpf(charges.get(name, 0.0)) for name in LAMBDAS)
        eta = sum(mpmath.mpf(charges.get(name, 0.0)) for name in ETAS)
        rest = sum(mpmath.mpf(charges.get(name, 0.0)) for name in PLAIN)
        return mpmath.exp(lam) * mpmath.mpf(worst) + eta * (1 + mpmath.exp(mpmath.mpf(epsilon))) + rest


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 12.0])
@pytest.mark.parametrize("names", [(name,) for name in CHARGES] + list(itertools.combinations(CHARGES, 2)) + [CHARGES])
def test_delta_is_the_sum_from_above(names: tuple[str, ...], epsilon: float) -> None:
    """At large values, where a factor 2, a forgotten e^lambda or 1 + e^epsilon as e^epsilon shows."""
    charges = {name: 0.03 * (k + 1) for k, name in enumerate(names)}
    worst = 0.125
    found, wanted = stated(worst, **charges).delta(epsilon), exact(worst, epsilon, charges)
    assert wanted <= found <= wanted * (1 + 2e-12)


def test_lambdas_are_paid_twice_in_epsilon() -> None:
    """The calibration's own epsilon is below epsilon - 2 lambda, and by no more than its rounding; nothing is left below 0."""
    for name in LAMBDAS:
        inner = stated(**{name: 0.2}).inner(1.0)
        assert inner is not None
        assert 0.6 * (1 - 1e-14) <= inner <= 0.6
        assert stated(**{name: 0.5}).inner(1.0) == 0.0
        assert stated(**{name: math.nextafter(0.5, 1.0)}).inner(1.0) is None
        assert stated(**{name: 0.6}).delta(1.0) == 1.0
    together = stated(**dict.fromkeys(LAMBDAS, 0.1)).inner(1.0)
    assert together == pytest.approx(0.4, rel=1e-12)


# ------------------------------------------------------------------------------------------------- in every kind of evidence


@cache
def charged_plans() -> dict[str, Plan]:
    """One plan for each kind of evidence that carries charges."""
    return {kind: made for kind, made in every().items() if isinstance(made.certificate.evidence, Charged)}


def test_every_kind_with_charges_is_here() -> None:
    kinds = {one.model_fields["kind"].default for one in _below(Charged) if one is not Stated}
    assert set(charged_plans()) == kinds


def _below(base: type[Charged]) -> list[type[Charged]]:
    return [one for each in base.__subclasses__() for one in (each, *_below(each))]


@pytest.mark.parametrize("name", CHARGES)
@pytest.mark.parametrize("kind", sorted(charged_plans()))
def test_each_stored_charge_raises_delta_by_its_coefficient(kind: str, name: str) -> None:
    plan = charged_plans()[kind]
    evidence: Any = plan.certificate.evidence
    before, more = evidence.delta(plan.epsilon), 1e-4
    after = evidence.model_copy(update={name: getattr(evidence, name) + more}).delta(plan.epsilon)
    if name in LAMBDAS:
        # What the calibration alone reaches at the epsilon that is left is paid e^lambda times; the rest does not change,
        # but that of weights is paid at 2 lambda.
        lam = evidence.lam + more
        eta, plain = sum(getattr(evidence, one) for one in ETAS), sum(getattr(evidence, one) for one in PLAIN)
        if kind == "calibrated_weights":
            worst, at, eta = evidence.failing(), 2 * lam, eta + evidence.direction_eta()
        else:
            free = evidence.model_copy(update=dict.fromkeys(CHARGES, 0.0))
            worst, at = free.delta(plan.epsilon - 2 * lam), plan.epsilon
        assert after == pytest.approx(math.exp(lam) * worst + eta * (1 + math.exp(at)) + plain, rel=1e-7)
        assert after > before
    else:
        # weights are as close as the charges allow, whatever epsilon is promised
        paid_at = 2 * evidence.lam if kind == "calibrated_weights" else plan.epsilon
        coefficient = 1 + math.exp(paid_at) if name in ETAS else 1.0
        assert after - before == pytest.approx(coefficient * more, rel=1e-9)


@pytest.mark.parametrize("kind", sorted(charged_plans()))
def test_a_certificate_holds_just_below_its_charges_and_not_above(kind: str) -> None:
    plan = charged_plans()[kind]
    room = plan.delta - plan.certificate.evidence.delta(plan.epsilon)
    for share, holds in ((0.999, True), (1.001, False)):
        charged: Any = plan.certificate.evidence
        changed = charged.model_copy(update={"reserve": charged.reserve + room * share})
        assert (changed.delta(plan.epsilon) <= plan.delta) is holds


# Of kinds that carry no such charges: what they pay beside their noise, of which delta has all.
IGNORED = ("wasserstein", "parameter_wasserstein", "stated_wasserstein")


@pytest.mark.parametrize("kind", IGNORED)
def test_what_a_distance_leaves_aside_is_added_to_delta(kind: str) -> None:
    plan = every()[kind]
    told: Any = plan.certificate.evidence
    before = told.model_copy(update={"noise": "gaussian"})
    for more in (1e-4, 0.03):
        after = before.model_copy(update={"ignored": before.ignored + more})
        assert after.delta(1.0) - before.delta(1.0) == pytest.approx(more, rel=1e-9)


@pytest.mark.parametrize("kind", sorted(every()))
def test_the_risk_of_a_fit_is_added_to_what_a_certificate_needs(kind: str) -> None:
    """Beside any evidence: promised just below the sum it fails, just above it holds."""
    told = every()[kind].certificate
    reached = told.evidence.delta(told.epsilon)
    for share, holds in ((1 - 1e-9, False), (1 + 1e-9, True)):
        stated = told.model_copy(update={"fit_delta": 0.01, "delta": (reached + 0.01) * share})
        assert _verifies(stated) is holds


def _verifies(certificate: Certificate) -> bool:
    try:
        certificate.verify()
    except CertificateError:
        return False
    return True


def test_a_budget_hands_on_every_charge() -> None:
    """The planted mistake: a charge that the constructor forgets."""
    numbers = {name: 0.001 * (k + 1) for k, name in enumerate(CHARGES)}
    left = Budget(epsilon=1.0, delta=1e-6, promised=1e-6, fit_lines=(), **numbers)
    assert left.charges == numbers
    assert stated(**left.charges).delta(1.0) >= sum(numbers[name] for name in PLAIN)
    forgotten = {name: value for name, value in left.charges.items() if name != "fit_delta"}
    with pytest.raises(PolicyError, match="is required"):
        Stated(worst=0.0, **forgotten)
