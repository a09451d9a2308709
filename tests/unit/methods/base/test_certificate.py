"""A certificate recomputes its promise from its own numbers, and nothing that was tampered with passes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest
from pydantic import ValidationError

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.errors import CertificateError, PolicyError
from attrpriv.frozen import FrozenModel
from attrpriv.methods.base.certificate import Certificate, Guarantee
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

Path = tuple[str | int, ...]


def problem(*columns: str) -> Problem:
    """Noise is needed for every column, and the certificate is tight: nothing can be taken away."""
    names = ("y", "w", "x")
    return Problem(
        queries=tuple(Query("avg", column) for column in columns),
        secrets=(Secret("mean(x)", between=(0.0, 1.0)),),
        epsilon=1.0,
        delta=1e-5,
        n=100,
        theta=(
            Gaussian(
                mean=dict.fromkeys(names, 0.0),
                sd=dict.fromkeys(names, 1.0),
                correlation={("y", "w"): 0.2, ("y", "x"): 0.6, ("w", "x"): -0.5},
                tolerance={"slope": 0.1},
            ),
        ),
        bounds={"y": (-30.0, 30.0), "w": (-30.0, 30.0)},
    )


def gaussian_plan() -> Plan:
    return plan(problem("y"), "gaussian")


PLANS: dict[str, Callable[[], Plan]] = {
    "one average": gaussian_plan,
    "two averages": lambda: plan(problem("y", "w"), "gaussian"),
    "group_dp": lambda: plan(problem("y", "w"), "group_dp"),
    "constant": lambda: plan(problem("y"), "constant"),
}


@pytest.fixture(params=PLANS, ids=list(PLANS))
def certified(request: pytest.FixtureRequest) -> Plan:
    return PLANS[request.param]()


def numbers(value: object, path: Path = ()) -> Iterator[tuple[Path, float]]:
    """Every float in a JSON-able value, with the way to it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, (*path, key))
    elif isinstance(value, list):
        for k, inner in enumerate(value):
            yield from numbers(inner, (*path, k))
    elif isinstance(value, float):
        yield path, value


def changed(value: Any, path: Path, new: float) -> Any:
    """The same frozen value with one number replaced, past every validator."""
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(value, FrozenModel):
        return value.model_copy(update={str(first): changed(getattr(value, str(first)), rest, new)})
    items = list(value)
    items[int(first)] = changed(items[int(first)], rest, new)
    return tuple(items)


def names(path: Path) -> list[str]:
    return [part for part in path if isinstance(part, str)]


# ------------------------------------------------------------------------------------------------------------- it verifies


def test_a_certificate_verifies(certified: Plan) -> None:
    certified.certificate.verify()
    assert certified.certificate.evidence.delta(certified.epsilon) <= certified.delta


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_no_number_may_be_missing(certified: Plan, bad: float) -> None:
    """A NaN or an infinity anywhere in the evidence or the promise fails the check, even past validation."""
    certificate = certified.certificate
    for path, _ in numbers(certificate.to_json()):
        with pytest.raises(CertificateError):
            changed(certificate, path, bad).verify()


def test_negative_numbers_do_not_cancel(certified: Plan) -> None:
    """A shift, a credit, a charge or a scale with the wrong sign is refused or changes nothing for the better."""
    certificate = certified.certificate
    signed = {"shifts", "factor"}  # these may be negative: their squares count
    for path, number in numbers(certificate.to_json()):
        if number > 0 and not signed & set(path):
            with pytest.raises(CertificateError):
                changed(certificate, path, -number).verify()


@pytest.mark.parametrize("factor", [0.0, 0.5, 0.9])
def test_less_noise_than_was_counted_on_fails(certified: Plan, factor: float) -> None:
    certificate = certified.certificate
    noisy = [
        p for p, number in numbers(certificate.to_json()) if number and "evidence" in p and {"independent", "scale"} & set(p)
    ]
    if not noisy:
        assert certified.mechanism == "constant"
    moved = certificate
    for path in noisy:
        moved = changed(moved, path, factor * _at(certificate.to_json(), path))
    for path, number in numbers(certificate.to_json()):
        if "factor" in path:
            moved = changed(moved, path, factor * number)
    if noisy:
        with pytest.raises(CertificateError):
            moved.verify()


def _at(value: Any, path: Path) -> float:
    for part in path:
        value = value[part]
    return float(value)


def test_a_larger_shift_fails(certified: Plan) -> None:
    certificate = certified.certificate
    moved = certificate
    for path, number in numbers(certificate.to_json()):
        if {"shifts", "sensitivity"} & set(names(path)):
            moved = changed(moved, path, 1.2 * number)
    if moved is certificate:
        assert certified.mechanism == "constant"
        return
    with pytest.raises(CertificateError):
        moved.verify()


@pytest.mark.parametrize("charge", ["grid_lambda", "lattice_lambda", "grid_eta", "clip_delta", "reserve"])
def test_every_charge_counts(charge: str) -> None:
    certificate = gaussian_plan().certificate
    with pytest.raises(CertificateError):
        changed(certificate, ("evidence", charge), 0.6).verify()


def test_a_smaller_promise_fails() -> None:
    certificate = gaussian_plan().certificate
    with pytest.raises(CertificateError, match="above the promised"):
        changed(certificate, ("delta",), certificate.delta * 0.9).verify()
    with pytest.raises(CertificateError, match="above the promised"):
        changed(certificate, ("epsilon",), certificate.epsilon * 0.9).verify()
    with pytest.raises(CertificateError):
        changed(certificate, ("epsilon",), 1e6).verify()


def test_pure_epsilon_is_all_or_nothing() -> None:
    certificate = plan(problem("y"), "group_dp").certificate
    assert certificate.evidence.delta(1.0) == 0.0
    assert certificate.evidence.delta(0.999) == 1.0


def test_an_overflow_is_a_failure_not_a_crash() -> None:
    certificate = gaussian_plan().certificate
    for path, _ in numbers(certificate.to_json()):
        if "shifts" in path:
            with pytest.raises(CertificateError):
                changed(certificate, path, 1e308).verify()


def test_tiny_numbers_do_not_vanish() -> None:
    """Squares of numbers below 1e-162 are zero in floats; a distance of 0.47 must not become 0 for that."""
    certificate = gaussian_plan().certificate
    for shift, credited, scale in [(1.4e-162, 0.0, 3e-162), (1e-170, 0.0, 1e-170), (1.0, 0.0, 1.0)]:
        moved = certificate
        for path, _ in numbers(certificate.to_json()):
            if "shifts" in path:
                moved = changed(moved, path, shift)
            if "credited" in path:
                moved = changed(moved, path, credited)
            if "independent" in path:
                moved = changed(moved, path, scale)
        with pytest.raises(CertificateError):
            moved.verify()


# ------------------------------------------------------------------------------------------------- the plan draws just that


def test_a_plan_that_draws_less_than_its_certificate_says_releases_nothing() -> None:
    found = gaussian_plan()
    (part,) = found.columns
    less = part.model_copy(update={"independent": 0.9 * part.independent})
    quiet = part.model_copy(update={"noise": part.noise.model_copy(update={"kind": "none"})})
    laplace = part.model_copy(update={"noise": part.noise.model_copy(update={"kind": "laplace"})})
    for mutant in (less, quiet, laplace):
        with pytest.raises(CertificateError, match="Nothing was released"):
            found.model_copy(update={"columns": (mutant,)}).randomise(1.0)
    assert math.isfinite(found.randomise(1.0))


def test_a_plan_whose_certificate_promises_something_else_releases_nothing() -> None:
    found = gaussian_plan()
    for update in ({"epsilon": 0.5}, {"delta": 1e-9}):
        with pytest.raises(CertificateError, match="must promise and draw"):
            found.model_copy(update=update).randomise(1.0)
    empty = found.certificate.model_copy(update={"evidence": found.certificate.evidence.model_copy(update={"checks": ()})})
    empty.verify()  # nothing is hidden, so nothing is needed: it is the plan that must not go with it
    with pytest.raises(CertificateError, match="must promise and draw"):
        found.model_copy(update={"certificate": empty}).randomise(1.0)


def test_common_noise_cannot_be_left_out() -> None:
    found = plan(problem("y", "w"), "gaussian")
    assert found.factor
    for factor in ((), tuple(tuple(0.9 * x for x in row) for row in found.factor)):
        with pytest.raises(CertificateError, match="must promise and draw"):
            found.model_copy(update={"factor": factor}).answers([Fraction(0), Fraction(0)])


def test_laplace_noise_needs_the_bounds_it_was_sized_for() -> None:
    found = plan(problem("y"), "group_dp")
    (part,) = found.columns
    unbounded = part.model_copy(update={"clip": None})
    with pytest.raises(CertificateError, match="must promise and draw"):
        found.model_copy(update={"columns": (unbounded,)}).randomise(1.0)


def test_rows_are_clipped_as_tightly_as_noise_was_sized_for() -> None:
    """More tightly is allowed, and 1e-12 of the width for rounding; more than that is not."""
    found = plan(problem("y"), "group_dp")
    (part,) = found.columns
    assert part.clip is not None
    low, high = part.clip
    for times, taken in (
        (0.5, True),
        (1.0, True),
        (1 + 9e-13, True),
        (1 + 2e-12, False),
        (1.001, False),
        (1.6, False),
        (3.0, False),
    ):
        wide = part.model_copy(update={"clip": (low, low + (high - low) * times)})
        assert found.part.model_copy(update={"columns": (wide,)}).covered(found) is taken, times


def test_the_wrong_number_of_averages() -> None:
    with pytest.raises(CertificateError, match=r"needs 1 averages\. Got 2"):
        gaussian_plan().answers([Fraction(0), Fraction(0)])


# ------------------------------------------------------------------------------------------------------- as text and as JSON


def test_round_trip_and_rendering(certified: Plan) -> None:
    certificate = certified.certificate
    text = json.dumps(certificate.to_json(), allow_nan=False)
    again = Certificate.from_json(text)
    assert again == certificate
    assert again.to_json()["schema_version"] == 1
    again.verify()
    for shown in (str(certificate), str(certified), str(certified.guarantee)):
        assert shown.strip()
        assert "nan" not in shown.lower().split()
        assert "None" not in shown
    assert f"<= {certificate.delta:g} at epsilon {certificate.epsilon:g}" in str(certificate)
    assert all(f"assumes: {line}" in str(certificate) for line in certificate.assumes)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_bad_numbers_are_not_read_back(bad: float) -> None:
    certificate = gaussian_plan().certificate.to_json()
    for path in (("delta",), ("epsilon",), ("evidence", "reserve"), ("evidence", "grid_lambda"), ("gap",)):
        place = json.loads(json.dumps(certificate))
        inner = place
        for part in path[:-1]:
            inner = inner[part]
        inner[path[-1]] = bad
        with pytest.raises(PolicyError):
            Certificate.from_json(place)


def test_unknown_keys_and_versions_are_refused() -> None:
    certificate = gaussian_plan().certificate.to_json()
    with pytest.raises(PolicyError, match="unknown key"):
        Certificate.from_json(certificate | {"note": "trust me"})
    with pytest.raises(PolicyError, match="schema_version"):
        Certificate.from_json(certificate | {"schema_version": 2})


def test_frozen() -> None:
    certificate = gaussian_plan().certificate
    with pytest.raises(ValidationError):
        certificate.delta = 0.5  # type: ignore[misc]
    assert isinstance(certificate.assumes, tuple)
    guarantee = Guarantee(kind="proved", statement="s", reference="r")
    with pytest.raises(ValidationError):
        guarantee.kind = "approximate"  # type: ignore[misc]
    assert Guarantee.from_json(guarantee.to_json()) == guarantee
    assert str(guarantee) == "s (proved; r)"
    with pytest.raises(PolicyError, match="kind"):
        Guarantee(kind="hoped", statement="s", reference="r")


def test_the_risk_of_a_fit_is_paid_on_top() -> None:
    """Where it is most of delta: a promise just below it fails, and just above it holds."""
    from attrpriv.methods.base.evidence import ConstantEvidence

    risk = 0.01
    for promised, holds in ((risk, True), (risk * (1 - 1e-12), False), (risk * (1 + 1e-12), True)):
        told = Certificate(epsilon=1.0, delta=promised, evidence=ConstantEvidence(), fit_delta=risk, assumes=())
        if holds:
            told.verify()
        else:
            with pytest.raises(CertificateError):
                told.verify()
    assert "0.01" in str(Certificate(epsilon=1.0, delta=risk, evidence=ConstantEvidence(), fit_delta=risk, assumes=()))
