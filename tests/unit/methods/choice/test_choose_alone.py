"""What a method may be asked for, and what follows what: each condition by itself, with methods of a test's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from attrpriv.errors import Cause, CertificateError, UsageError
from attrpriv.methods.base.evidence import ConstantEvidence, LaplaceEvidence
from attrpriv.methods.choice import choose as module
from attrpriv.methods.choice.choose import charged, measure, require_covered
from attrpriv.methods.table import Form, Method
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.shapes import CHAIN, LATTICE, NOTHING, SHIFT, STATED
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries


def query(text: str) -> Query:
    (found,) = parse_queries(text)
    return found


AVG, COUNT = query("avg(x)"), query("count(*)")
SOME, SUM_SOME, COUNT_SOME = (query(f"{what} filter (where y > 1)") for what in ("avg(x)", "sum(x)", "count(*)"))
COMBINED, COMBINED_SOME, SUM_COMBINED_SOME = (
    query("avg(x + 2 * z)"),
    query("avg(x + 2 * z) filter (where y > 1)"),
    query("sum(x + 2 * z) filter (where y > 1)"),
)
PRODUCT, SPREAD, SPREAD_SOME = query("avg(x * z)"), query("var_pop(x)"), query("var_pop(x) filter (where y > 1)")


def method(*covers: str, **changes: Any) -> Method:
    told: dict[str, Any] = {"page": "own.md", "covers": frozenset(covers), "asks": ("gaussian",), **changes}
    return Method("own", told.pop("forms", (Form((SHIFT,), "home"),)), **told)


def asked(*queries: Query, shape: str = SHIFT, sizes: Any = (), **changes: Any) -> Any:
    told: dict[str, Any] = {
        "queries": queries, "shape": shape, "sizes": dict.fromkeys(sizes, 5), "theta": ("something",), "secrets": (),
        "types": {}, "alone": True, "earlier": None, "delta": 0.01, "accept_fit_risk": False, "closed": False, **changes,
    }  # fmt: skip
    return SimpleNamespace(**told)


def cause(done: Any) -> Cause | None:
    try:
        done()
    except Refusal as refusal:
        return refusal.cause
    return None


# ----------------------------------------------------------------------------------------------------------- statistics

NOT, FACT = Cause.STATISTIC, Cause.PUBLIC_FACT


@pytest.mark.parametrize(
    ("covers", "one", "changes", "refused"),
    [
        ((), AVG, {}, None),
        ((), COUNT, {}, None),
        ((), COUNT_SOME, {}, None),
        # An average over some rows needs their number, and a method for subsets.
        ((), SOME, {}, FACT),
        (("subsets",), SOME, {}, FACT),
        ((), SOME, {"sizes": ["y > 1"]}, NOT),
        (("combinations",), SOME, {"sizes": ["y > 1"]}, NOT),
        (("subsets",), SOME, {"sizes": ["y > 2"]}, FACT),
        (("subsets",), SOME, {"sizes": ["y > 1"]}, None),
        (("subsets",), SOME, {"sizes": ["y > 1"], "shape": LATTICE}, None),
        (("subsets",), COMBINED_SOME, {"sizes": ["y > 1"]}, NOT),
        (("subsets", "combinations"), COMBINED_SOME, {"sizes": ["y > 1"]}, None),
        (("subsets", "combinations"), COMBINED_SOME, {"sizes": ["y > 1"], "shape": LATTICE}, NOT),
        (("subsets", "combinations"), COMBINED_SOME, {"sizes": ["y > 1"], "shape": NOTHING}, None),
        # Sums over some rows are left to the method.
        ((), SUM_SOME, {}, None),
        (("subsets",), SUM_SOME, {}, None),
        (("subsets", "combinations"), SUM_COMBINED_SOME, {}, None),
        (("subsets",), SUM_COMBINED_SOME, {}, NOT),
        (("combinations",), SUM_COMBINED_SOME, {}, NOT),
        # Combinations of columns.
        ((), COMBINED, {}, NOT),
        (("combinations",), COMBINED, {}, None),
        (("combinations",), COMBINED, {"shape": NOTHING}, None),
        (("combinations",), COMBINED, {"shape": LATTICE}, NOT),
        (("subsets",), COMBINED, {}, NOT),
        # Other statistics.
        (("combinations", "subsets"), PRODUCT, {}, NOT),
        (("non_linear",), PRODUCT, {}, NOT),
        ((), SPREAD, {}, NOT),
        (("non_linear",), SPREAD, {}, None),
        (("non_linear",), SPREAD_SOME, {}, NOT),
        (("any",), SPREAD_SOME, {}, None),
        (("any",), PRODUCT, {}, None),
        (("any",), SOME, {}, None),
    ],
)
def test_what_a_method_may_be_asked_for(
    covers: tuple[str, ...], one: Query, changes: dict[str, Any], refused: Cause | None
) -> None:
    assert cause(lambda: require_covered(method(*covers), asked(one, **changes))) is refused


@pytest.mark.parametrize(
    ("one", "changes", "needs"),
    [
        (SOME, {}, "sizes of y > 1"),
        (SOME, {"shape": NOTHING, "theta": ()}, "sizes of y > 1"),
        (SOME, {"shape": LATTICE}, "sizes of y > 1, under a gaussian assumption"),
        (COMBINED, {}, "a view"),
        (COMBINED, {"shape": NOTHING, "theta": ()}, "a gaussian assumption"),
        (COMBINED, {"shape": LATTICE}, "a gaussian assumption"),
    ],
)
def test_a_refusal_says_what_is_missing(one: Query, changes: dict[str, Any], needs: str) -> None:
    with pytest.raises(Refusal) as caught:
        require_covered(method(), asked(one, **changes))
    found = caught.value.needs
    assert (found if isinstance(found, str) else found[0]) == needs


def test_every_query_counts_and_names_mean_one_thing(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(module, "require_one_meaning", seen.append)
    assert cause(lambda: require_covered(method(), asked(AVG, COMBINED))) is NOT
    assert cause(lambda: require_covered(method(), asked(COMBINED, AVG))) is NOT
    assert len(seen) == 2
    require_covered(method(), asked(AVG))
    assert len(seen) == 2


def test_an_average_by_group_is_asked_for_by_its_sizes_elsewhere() -> None:
    by = Query("avg", "x", group_by="g")
    assert cause(lambda: require_covered(method("subsets"), asked(by))) is None
    view = method("any", asks=())
    for problem, told in (
        (asked(by, types={"g": "text"}, categories={}, bins={}), Cause.PUBLIC_FACT),
        (asked(by, types={"g": "text"}, categories={"g": ("a", "b")}, bins={}), None),
        (asked(by, types={"x": "float"}, categories={}, bins={}), None),
        (asked(AVG, types={"x": "float"}, categories={}, bins={}), None),
        (
            asked(
                by, types={"g": "text"}, secrets=(SimpleNamespace(whole_columns=("h",)), SimpleNamespace(whole_columns=("g",)))
            ),
            None,
        ),
    ):
        assert cause(lambda problem=problem: require_covered(view, problem)) is told


def test_what_is_compared_is_one_of_three() -> None:
    assert [measure(one) for one in ("rmse", "mean_absolute", "alpha95")] == ["rmse", "mean_absolute", "alpha95"]
    for wrong in ("", "mse", "RMSE"):
        with pytest.raises(UsageError, match="by"):
            measure(wrong)


# -------------------------------------------------------------------------------------------------------- what follows what


@pytest.mark.parametrize(
    ("changes", "earlier", "shape", "refused"),
    [
        ({"follows": ("laplace",)}, None, SHIFT, None),
        ({"follows": ("laplace",)}, LaplaceEvidence(terms=()), SHIFT, None),
        ({"follows": ("laplace",)}, ConstantEvidence(), SHIFT, Cause.EARLIER),
        ({}, None, SHIFT, Cause.BUDGET),
        ({}, ConstantEvidence(), SHIFT, Cause.EARLIER),
        ({"covers": frozenset({"any"}), "asks": ()}, None, SHIFT, None),
        ({"covers": frozenset({"any"}), "asks": ()}, ConstantEvidence(), SHIFT, Cause.EARLIER),
        ({"follows": ("laplace",)}, None, LATTICE, Cause.ASSUMPTION),
        ({"follows": ("laplace",), "asks": ("gaussian", "groups")}, None, LATTICE, None),
        ({"follows": ("laplace",), "asks": ()}, None, LATTICE, None),
    ],
)
def test_releases_share_a_budget_by_a_rule(changes: Any, earlier: Any, shape: str, refused: Cause | None) -> None:
    found = cause(lambda: module._require_joint(method(**changes), asked(AVG, shape=shape, earlier=earlier)))
    assert found is refused


@pytest.fixture
def _charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan says what it may use; notes are marks of what was done to it."""
    monkeypatch.setattr(module, "charged", lambda method, problem: Made())
    monkeypatch.setattr(module, "require_covered", lambda method, problem: None)
    monkeypatch.setattr(module, "require_open", lambda problem: _no_if(problem.closed))
    monkeypatch.setattr(module, "with_warning", lambda made, problem: made.model_copy({"notes": (*made.notes, "warned")}))
    monkeypatch.setattr(module, "weak_lines", lambda problem, epsilon, delta: ("weak",))


def _no_if(closed: bool) -> None:
    if closed:
        raise Refusal(Cause.MISTAKE, "is closed.", needs="an open one")


class Made(SimpleNamespace):
    def __init__(self, **told: Any) -> None:
        super().__init__(**{"epsilon": 1.0, "delta": 0.0, "notes": ("made",), **told})

    def model_copy(self, update: dict[str, Any]) -> Made:
        return Made(**{**vars(self), **update})


@pytest.mark.usefixtures("_charged")
def test_a_plan_is_made_of_what_a_method_hides() -> None:
    entry, column = (
        SimpleNamespace(entries="x", whole_columns=(), text="entries(x)"),
        SimpleNamespace(entries=None, whole_columns=("x",), text="columns(x)"),
    )
    other = SimpleNamespace(entries=None, whole_columns=(), text="mean(x)")
    told: dict[str, Any] = {"spend": 0.5, "non_linear": False, "tallied": False}

    def made(by: Method, *secrets: Any, **changes: Any) -> Any:
        return module._planned(by, asked(AVG, **{"secrets": secrets, **told, **changes}))

    plain = made(method(), other)
    assert (plain.spend, plain.notes) == (0.5, ("made", "warned", "weak"))
    assert made(method(asks=()), other, closed=True).notes == ("made", "weak")  # not asked whether anything is open
    assert made(method(chosen=False), other).notes == ("made", "warned")
    assert cause(lambda: made(method(), other, closed=True)) is not None
    for hides in (
        method(hides_entries=True),
        method(forms=(Form((STATED,), "home"),)),
        method(forms=(Form((CHAIN, "a"), "home"),)),
    ):
        assert made(hides, other, entry, shape=hides.forms[0].shapes[0]) is not None
    for not_for in (method(), method(forms=(Form((), "home"),))):
        assert cause(lambda not_for=not_for: made(not_for, other, entry)) is Cause.SECRET
    assert cause(lambda: made(method(), other, column)) is Cause.SECRET
    assert made(method("any", asks=()), other, column) is not None
    assert cause(lambda: made(method(), other, alone=False)) is Cause.BUDGET
    assert made(method(chosen=False), other, alone=False) is not None
    assert made(method(follows=("laplace",)), other, alone=False) is not None


# ------------------------------------------------------------------------------------------------------------ fitted counts


class Problem(SimpleNamespace):
    def model_copy(self, update: dict[str, Any]) -> Problem:
        return Problem(**{**vars(self), **update})


def fitted(*records: Any, **changes: Any) -> Any:
    theta = tuple(SimpleNamespace(fit_record=lambda record=record: record) for record in records)
    return Problem(**vars(asked(AVG, shape=LATTICE, theta=theta, **changes)))


@pytest.mark.parametrize(
    ("by", "problem", "paid"),
    [
        (method(), fitted("record"), True),
        (method(), fitted(None), False),
        (method(), fitted(None, "record"), True),
        (method(), fitted(), False),
        (method(), fitted("record").model_copy({"shape": STATED}), True),
        (method(), fitted("record").model_copy({"shape": SHIFT}), False),
        (method(asks=()), fitted("record"), False),
        (method(asks=(), follows=("laplace",)), fitted("record"), False),
        (method(asks=(), follows=("laplace",)), fitted("record", earlier="something"), True),
        (method(asks=()), fitted("record", earlier="something"), False),
    ],
)
def test_what_rests_on_a_fit_pays_for_it(by: Method, problem: Any, paid: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "planned_by", lambda method, problem: problem.delta)
    monkeypatch.setattr(module, "fit_refusal", lambda theta, delta: None)
    monkeypatch.setattr(module, "fit_charge", lambda theta, delta: SimpleNamespace(calibration=delta / 4))
    monkeypatch.setattr(module, "_with_charge", lambda made, charge: ("paid", made))
    found: Any = charged(by, problem)
    assert found == (("paid", 0.0025) if paid else 0.01)


def test_a_risk_beyond_delta_is_accepted_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "planned_by", lambda method, problem: problem.delta)
    monkeypatch.setattr(module, "fit_charge", lambda theta, delta: SimpleNamespace(calibration=delta / 4))
    monkeypatch.setattr(module, "_with_charge", lambda made, charge: "paid")
    for reason, accepted, refused in ((None, False, None), (None, True, None), ("no", True, None), ("no", False, Cause.BUDGET)):
        monkeypatch.setattr(module, "fit_refusal", lambda theta, delta, reason=reason: reason)
        assert cause(lambda accepted=accepted: charged(method(), fitted("record", accept_fit_risk=accepted))) is refused


def test_a_statement_says_its_delta_once() -> None:
    charge: Any = SimpleNamespace(calibration=0.01, promised=0.02, risk=0.01, lines=())
    for statement in ("nothing", "(epsilon 1, delta 0.01) or (epsilon 2, delta 0.01)"):
        made: Any = SimpleNamespace(guarantee=SimpleNamespace(statement=statement), certificate=None)
        with pytest.raises(CertificateError, match="does not say its delta"):
            module._with_charge(made, charge)
