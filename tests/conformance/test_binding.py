"""A plan is bound to its proof: every field of every kind of plan is changed, one at a time, and `verify` refuses each.

What may vary is listed in `binding.FREE`, each with its reason; a new field is bound until somebody lists it there.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from attrpriv.errors import AttrprivError, CertificateError, PolicyError
from attrpriv.methods.base import plan as plan_module
from attrpriv.methods.base.certificate import FREE, binding_of
from attrpriv.methods.base.parts import NOT_THERE, AveragesPart, WeightsPart
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.table import MECHANISMS
from attrpriv.problem.secret import Secret
from tests.conformance.test_mechanisms import PROBLEMS, planned, problem

Path = tuple[str | int, ...]


@cache
def kinds() -> dict[str, tuple[str, str]]:
    """Of each kind of plan (what proves it, what it reads, whether it protects persons), the first problem that has one."""
    found: dict[str, tuple[str, str]] = {}
    for label, asked in PROBLEMS.items():
        for name in MECHANISMS:
            made = planned(asked, name)
            if made is not None:
                found.setdefault(kind_of(made), (label, name))
    return found


def kind_of(plan: Plan) -> str:
    parts = [name for name in ("tally", "view", "statistic", "factor", "categories") if getattr(plan, name)]
    parts += [name for name in ("clip", "fill", "centre") if any(getattr(one, name) is not None for one in plan.columns)]
    return " ".join([plan.certificate.evidence.kind, *parts, *(["persons"] if plan.certificate.individuals else [])])


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """The places of single values, of long lists the first and the last."""
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from leaves(one, (*path, key))
    elif isinstance(value, list) and value:
        for k in sorted({0, len(value) - 1}):
            yield from leaves(value[k], (*path, k))
    else:
        yield path


def changed(value: Any) -> list[Any]:
    """Other values of the same type, and none at all."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value * 1.001 if value else 1e-3, 0 if value else 2]
    if isinstance(value, str):
        return [value + "x", ""]
    return [1.0, [0.0, 1.0], "x"] if value is None else [None]


def with_value(told: Any, path: Path, value: Any) -> Any:
    forged = copy.deepcopy(told)
    inner = forged
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return forged


def place(path: Path) -> str:
    return ".".join(step for step in path if isinstance(step, str))


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
    label, name = kinds()[kind]
    made = planned(PROBLEMS[label], name)
    assert made is not None
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
    label, name = kinds()[kind]
    made = planned(PROBLEMS[label], name)
    assert made is not None
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
    for label, name in kinds().values():
        made = planned(PROBLEMS[label], name)
        assert made is not None
        found |= {place(path[:k]) for path in leaves(made.to_json()) for k in range(1, len(path) + 1)}
    assert set(FREE) <= found


def test_a_plan_made_of_another_one_is_bound_as_it_is() -> None:
    """Where transport gains nothing, it is the plan of gaussian under another name."""
    found = plan(problem(secrets=(Secret("mean(income)", within=10.0),)), "transport")
    assert any("this is the plan of gaussian" in note for note in found.notes)
    found.verify()
    with pytest.raises(CertificateError):
        found.model_copy(update={"mechanism": "gaussian"}).verify()


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
