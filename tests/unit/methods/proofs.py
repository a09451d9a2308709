"""What the tests of proofs share: one proof of every kind, what a certificate makes of it, and exact Gaussian numbers."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import cache
from typing import Any

import mpmath

from attrpriv.errors import AttrprivError, CertificateError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.evidence import CHARGES, Counted
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.table import MECHANISMS
from attrpriv.problem.secret import Secret
from tests.conformance.test_mechanisms import PROBLEMS, planned
from tests.unit.methods.counts import problem, smokers
from tests.unit.methods.laplace_sequence.test_plan import AGE, STAY, asked
from tests.unit.methods.transport.test_sequence import released

FREE: dict[str, Any] = dict.fromkeys(CHARGES, 0.0)
"""No charge at all."""


@cache
def plans() -> dict[str, Plan]:
    """The first plan of each kind of evidence."""
    found: dict[str, Plan] = {}
    for one in PROBLEMS.values():
        for name in MECHANISMS:
            made = planned(one, name)
            if made is not None:
                found.setdefault(made.certificate.evidence.kind, made)
    return found


@cache
def sets_plan() -> Plan:
    """Which of two sets holds a count of eight rows is hidden."""
    sets = Secret("count(smoker = 'yes')", cases=("< 3", ">= 3"))
    return plan(problem(smokers(prior={"yes": 0.4}), secrets=(sets,), n=8, epsilon=0.5, delta=1e-3), "laplace")


@cache
def every() -> dict[str, Plan]:
    """One plan of every kind, those of sequences and of sets of counts too."""
    first = plan(asked(STAY), "laplace")
    more = [sets_plan(), plan(asked(AGE, first, spend=1.0), "laplace"), released(("weight", 0.5))[-1]]
    return plans() | {made.certificate.evidence.kind: made for made in more}


def accepted(evidence: Any, epsilon: float, delta: float) -> bool:
    """Whether a certificate with these numbers holds, as `verify` sees it."""
    told = Certificate.model_construct(epsilon=epsilon, delta=delta, evidence=evidence, assumes=())
    try:
        told.verify()
    except CertificateError:
        return False
    return True


def refused(evidence: Any, epsilon: float = 50.0) -> bool:
    """Whether it proves nothing, however little is promised; a delta is a probability even then, or infinite."""
    with suppress(AttrprivError):
        assert not 1 + 1e-9 < evidence.delta(epsilon) < math.inf
    return not accepted(evidence, epsilon, 1 - 1e-9)


def gaussian_delta(epsilon: Any, mu: Any) -> Any:
    """H of N(0, 1) and N(mu, 1), with 40 digits."""
    with mpmath.workdps(40):
        epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
        if not mu:
            return mpmath.mpf(0)
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


def counted(**changes: Any) -> Counted:
    """A count of an event among ten rows, with Laplace noise of scale 2."""
    told: dict[str, Any] = {
        "n": 10, "width": 1, "steps": (0, 1), "histogram": False, "reads": frozenset({"x"}), "identity": "i", "event": "x > 1",
        "noise": "laplace", "scale": 2.0,
    }  # fmt: skip
    return Counted(**(told | changes))
