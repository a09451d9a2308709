"""A plan is bound to its proof: every field of every kind of plan is changed, one at a time, and `verify` refuses each.

What may vary is listed in `binding.FREE`, each with its reason; a new field is bound until somebody lists it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from attrpriv.errors import AttrprivError, CertificateError, PolicyError
from attrpriv.methods.base import plan as plan_module
from attrpriv.methods.base.certificate import FREE, binding_of
from attrpriv.methods.base.parts import NOT_THERE, PARTS, AveragesPart, WeightsPart
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.table import MECHANISMS, METHODS
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from attrpriv.session.view_rows import require_certified
from tests.conformance.test_mechanisms import PROBLEMS, planned, problem
from tests.forging import Path, changed, leaves, place, with_value


@cache
def kinds() -> dict[str, Plan]:
    """Of each kind of plan (what proves it, what it reads, what came before, whether it protects persons), the first one."""
    found: dict[str, Plan] = {}
    every = (planned(asked, name) for asked in PROBLEMS.values() for name in MECHANISMS)
    for made in (*every, *after_another()):
        if made is not None:
            found.setdefault(kind_of(made), made)
    return found


def after_another() -> Iterator[Plan]:
    """Plans that go on from another one, of each method that leaves room for more, and what they go on from."""
    asked_next = [
        ("laplace", "a sum of few values", Query("count", where="stay > 7")),
        ("laplace", "a chain", Query("count", group_by="state")),
        ("chain_quilt", "a chain", Query("count", group_by="state")),
        ("markov_quilt", "a parameter", Query("avg", "weight")),
        ("gaussian", "the school", Query("avg", "height")),
        ("transport", "exact moments", Query("avg", "height")),
    ]
    for name, label, query in asked_next:
        first = plan(PROBLEMS[label].model_copy(update={"spend": 0.5}), name)
        changes = {"queries": (query,), "earlier": first.certificate.evidence}
        then = plan(PROBLEMS[label].model_copy(update=changes), name)
        assert then.certificate.follows(first.certificate)
        assert not then.certificate.follows(None)
        yield from (first, then)


def kind_of(plan: Plan) -> str:
    evidence = plan.certificate.evidence
    parts = [name for name in ("tally", "view", "statistic", "factor", "categories", "groups") if getattr(plan, name)]
    of_columns = ("clip", "fill", "centre", "where", "terms")
    parts += [name for name in of_columns if any(getattr(one, name) not in (None, {}) for one in plan.columns)]
    parts += ["sets"] if getattr(evidence, "set_checks", ()) else []
    parts += [] if evidence.follows(None) else ["after another"]
    return " ".join([evidence.kind, *parts, *(["persons"] if plan.certificate.individuals else [])])


def test_every_kind_of_evidence_has_a_plan_here() -> None:
    """What another library releases is planned by nobody: its entries are changed in tests/unit/session/test_outside.py."""
    of_ours = {kind for method in METHODS for kind in method.proofs} - {"outside", "chain_outside"}
    assert {made.certificate.evidence.kind for made in kinds().values()} == of_ours
    assert {type(made.part) for made in kinds().values()} == set(PARTS)


def free(path: Path) -> bool:
    words = place(path)
    return any(words == one or words.startswith(f"{one}.") for one in FREE)


def accepts(told: Any) -> bool:
    try:
        Plan.from_json(told).verify()
    except AttrprivError:
        return False
    return True


@pytest.mark.parametrize("kind", list(kinds()))
def test_every_field_is_bound(kind: str) -> None:
    made = kinds()[kind]
    told: Any = made.to_json()
    assert accepts(told)
    bound = [path for path in leaves(told) if not free(path)]
    assert len(bound) >= 8
    for path in bound:
        value: Any = told
        for step in path:
            value = value[step]
        for other in changed(value):
            assert other == value or not accepts(with_value(told, path, other)), (place(path), other)


@pytest.mark.parametrize("kind", list(kinds()))
def test_lists_and_maps_are_bound(kind: str) -> None:
    """An entry left out, or one that is there twice."""
    made = kinds()[kind]
    told: Any = made.to_json()
    containers = {path[:k] for path in leaves(told) for k in range(1, len(path)) if not free(path[:k])}
    for place_ in containers:
        value: Any = told
        for step in place_:
            value = value[step]
        fewer = [value[:-1], [*value, value[-1]]] if isinstance(value, list) else [dict(list(value.items())[:-1])]
        for other in fewer:
            assert not accepts(with_value(told, place_, other)) or only_free(made, told, place_, other), place(place_)


def dumped(plan: Plan) -> dict[str, Any]:
    return plan.model_dump(mode="json", warnings=False)


def only_free(made: Plan, told: Any, path: Path, other: Any) -> bool:
    """Whether nothing was left out but what may vary, or what has its default anyway."""
    return binding_of(dumped(Plan.from_json(with_value(told, path, other)))) == binding_of(dumped(made))


def test_what_is_free_exists() -> None:
    """No reason is left for a field that is gone."""
    found = set()
    for made in kinds().values():
        found |= {place(path[:k]) for path in leaves(made.to_json()) for k in range(1, len(path) + 1)}
    assert set(FREE) <= found


def test_a_plan_made_of_another_one_is_bound_as_it_is() -> None:
    """Where transport gains nothing, it is the plan of gaussian under another name."""
    found = plan(problem(secrets=(Secret("mean(income)", within=10.0),)), "transport")
    assert any("this is the plan of gaussian" in note for note in found.notes)
    found.verify()
    with pytest.raises(CertificateError):
        found.model_copy(update={"mechanism": "gaussian"}).verify()


# ------------------------------------------------------------------------------------- a view, which is drawn by itself


# What no row of a view depends on. It has no digest: what it draws must be what its certificate counted on.
VIEW_FREE = {
    "guarantee": "is the promise in words; the certificate has its numbers",
    "notes": "are words",
    "coverage": "says what to expect",
    "policy_digest": "says whose view it is; the ledger compares it",
    "secret.between": "the cells follow from it, and these are compared",
    "secret.within": "says nothing of a view, and is refused where it is stated",
    "persons": "is drawn from by a plan alone, which is bound to it",
}


@pytest.mark.parametrize("kind", [kind for kind, made in kinds().items() if made.view is not None])
def test_every_field_that_a_view_is_drawn_by_is_compared(kind: str) -> None:
    view = kinds()[kind].view
    assert view is not None
    told: Any = view.to_json()
    assert draws(told)
    # What the certificate holds it proves again, and a wrong proof that holds is one of less.
    bound = [path for path in leaves(told) if not place(path).startswith((*VIEW_FREE, "certificate"))]
    assert len(bound) >= 8
    for path in bound:
        value: Any = told
        for step in path:
            value = value[step]
        for other in changed(value):
            assert other == value or not draws(with_value(told, path, other)), (place(path), other)
    for fewer in (told["cells"][:-1], [*told["cells"], told["cells"][-1]], told["cells"][::-1]):
        assert not draws({**told, "cells": fewer})


def draws(told: Any) -> bool:
    try:
        require_certified(ViewPlan.from_json(told))
    except AttrprivError:
        return False
    return True


# --------------------------------------------------------------------------------------- what only the binding finds


def widened(plan: Plan) -> Plan:
    parts = [part.model_copy(update={"clip": (-1e6, 1e6)}) for part in plan.columns]
    return plan.model_copy(update={"columns": tuple(parts)})


def unclipped(plan: Plan) -> Plan:
    return plan.model_copy(update={"columns": tuple(part.model_copy(update={"clip": None}) for part in plan.columns)})


def swapped(plan: Plan) -> Plan:
    assert plan.tally is not None
    flipped = [one.model_copy(update={"member": not one.member}) for one in plan.tally.categories]
    return plan.model_copy(update={"tally": plan.tally.model_copy(update={"categories": tuple(flipped)})})


HOLES = {
    "a clip that was widened": ("a hierarchy, single persons too", "gaussian", widened),
    "a clip that was removed": ("a hierarchy, single persons too", "gaussian", unclipped),
    "the flags of members swapped": ("a count, exact probabilities", "transport", swapped),
}


@pytest.mark.parametrize("hole", HOLES)
def test_the_known_holes_are_closed_by_the_binding_alone(hole: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted mutant: with the binding taken away, the same plan is accepted."""
    label, name, forge = HOLES[hole]
    made = planned(PROBLEMS[label], name)
    assert made is not None
    made.verify()
    with pytest.raises(CertificateError):
        forge(made).verify()
    monkeypatch.setattr(plan_module, "binding_of", lambda told: told["bound"])
    forge(made).verify()


@pytest.mark.parametrize("change", [{"epsilon": 0.5}, {"delta": 1e-3}])
def test_a_plan_that_was_bound_anew_still_promises_what_its_certificate_does(change: dict[str, float]) -> None:
    """The digest fits, the certificate holds, what is drawn is covered: another promise is found all the same."""
    made = plan(problem(tolerance=0), "gaussian")
    forged = made.model_copy(update=change)
    bound = forged.model_copy(update={"bound": binding_of(dumped(forged))})
    made.model_copy(update={"bound": binding_of(dumped(made))}).verify()
    with pytest.raises(CertificateError):
        bound.verify()


def test_a_plan_that_was_bound_anew_still_draws_what_its_certificate_counted_on() -> None:
    made = plan(problem(tolerance=0), "gaussian")
    told: Any = made.to_json()
    forged = Plan.from_json(_halved(told))
    with pytest.raises(CertificateError):
        forged.model_copy(update={"bound": binding_of(dumped(forged))}).verify()


def _halved(told: Any) -> Any:
    """Half of the noise on every average, wherever the plan says so but in its certificate."""
    if isinstance(told, dict):
        return {key: value / 2 if key == "independent" and isinstance(value, float) else value if key == "certificate"
                else _halved(value) for key, value in told.items()}  # fmt: skip
    return [_halved(one) for one in told] if isinstance(told, list) else told


def of_another_kind(plan: Plan, kind: type[AveragesPart]) -> Plan:
    """The same numbers in a part that draws otherwise: in JSON, and to the binding, the two look alike."""
    fields = {name: getattr(plan.part, name) for name in kind.model_fields}
    return plan.model_copy(update={"part": kind(**fields)})


def test_a_proof_of_weights_covers_no_plain_average() -> None:
    """The mask of calibrated weights hides digits, not the mean: a plain average with it alone would tell the secret."""
    made = plan(problem(tolerance=0), "calibrated_weights")
    assert isinstance(made.part, WeightsPart)
    forged = of_another_kind(made, AveragesPart)
    assert forged.bound == binding_of(dumped(forged))
    with pytest.raises(CertificateError):
        forged.verify()
    with pytest.raises(CertificateError):
        forged.answers([Fraction(151)])
    with pytest.raises(CertificateError):
        of_another_kind(plan(problem(tolerance=0), "gaussian"), WeightsPart).verify()


def test_a_part_that_says_nothing_covers_nothing() -> None:
    made = plan(problem(tolerance=0), "gaussian")
    header = {name: value for name, value in made.to_json().items() if name not in NOT_THERE}
    with pytest.raises(PolicyError, match="must be one of attrpriv's own"):
        Plan.from_json({**header, "part": {}, "bound": ""})


@pytest.mark.parametrize("kind", [["gaussian"], {}, 5, "another"])
def test_evidence_of_no_known_kind_is_refused_in_a_line(kind: object) -> None:
    told: Any = plan(problem(tolerance=0), "gaussian").to_json()
    with pytest.raises(PolicyError, match="no installed method knows it"):
        Plan.from_json(with_value(told, ("certificate", "evidence", "kind"), kind))


def test_a_part_of_another_class_is_refused() -> None:
    """What it has beside the known fields would be in no digest."""

    class Wider(AveragesPart):
        margin: float = 1.0

    made = plan(problem(tolerance=0), "gaussian")
    fields = {name: getattr(made.part, name) for name in type(made.part).model_fields}
    with pytest.raises(PolicyError, match="must be one of attrpriv's own"):
        Plan(**{name: getattr(made, name) for name in type(made).model_fields if name != "part"}, part=Wider(**fields))
