"""What verdicts on public records do to plans: auto keeps off methods that rest on normal rows; by name they warn."""

from __future__ import annotations

from typing import Any

import pytest

import attrpriv as ap
from attrpriv.assumptions.gaussian import FittedRecord
from attrpriv.assumptions.shape import ShapeFinding
from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.problem.problem import Problem
from attrpriv.queries.sql import parse_queries

FITTED = {"rows": 20_000, "digest": "0123456789abcdef" * 4, "confidence": 1 - 5e-7}
ON_EXACT_LAWS = ("transport", "calibrated_weights")


def found(pair: str = "good", column: str = "good", **more: Any) -> tuple[ShapeFinding, ...]:
    return (
        ShapeFinding(of="weight", skewness=0.0, kurtosis=0.0, verdict=column),
        ShapeFinding(of="income", skewness=0.0, kurtosis=0.0, verdict="good"),
        ShapeFinding(of="weight", on="income", curvature=0.0 if pair == "good" else 0.3, spread=0.0, verdict=pair),
        *(ShapeFinding(of=name, verdict=told) for name, told in more.items()),
    )


def problem(shape: tuple[ShapeFinding, ...] | None, query: str = "avg(weight)") -> Problem:
    assumed = ap.Gaussian(
        mean={"weight": 150, "income": 60_000},
        sd={"weight": 25, "income": 30_000},
        correlation={("weight", "income"): 0.3},
        tolerance={"mean": 0.04, "sd": 0.03, "slope": 0.12},
        fitted=None if shape == () else FittedRecord(**FITTED, shape=shape),
    )
    secret = ap.Secret("mean(income)", between=(57_000, 63_000))
    return ap.Policy(epsilon=1.0, delta=1e-6, protect=[secret], assume=assumed).problem(
        parse_queries(query), 10_000, {"weight": "integer", "income": "integer"}
    )


@pytest.mark.parametrize(
    "shape", [(), None, found(), found(height="bad: heavy tails")], ids=["stated", "old", "good", "elsewhere"]
)
def test_good_and_unexamined_records_change_nothing(shape: tuple[ShapeFinding, ...] | None) -> None:
    ranking = rank(problem(shape))
    assert ranking.chosen is not None
    assert ranking.chosen.mechanism in ON_EXACT_LAWS
    assert not any(note.startswith("shape:") for one in ranking.plans for note in one.notes)
    told = " | ".join(ranking.chosen.certificate.assumes)
    assert ("shape: not examined" in told) == (not shape)


@pytest.mark.parametrize(
    "shape",
    [found(pair="bad: curved"), found(column="bad: heavy tails"), found(pair="unknown: too few rows"), found()[:2]],
    ids=["curved", "heavy", "unknown", "pair not examined"],
)
def test_auto_keeps_off_where_the_records_are_not_normal(shape: tuple[ShapeFinding, ...]) -> None:
    ranking = rank(problem(shape))
    assert ranking.chosen is not None
    assert ranking.chosen.mechanism == "gaussian"
    for name in ON_EXACT_LAWS:
        assert ranking.refused[name].reason.startswith("rests on normal rows, which the public records do not show: weight")
        assert ranking.refused[name].reason.endswith("auto does not take it; ask for it by name to do so all the same.")
    assert plan(problem(shape)).mechanism == "gaussian"


@pytest.mark.parametrize("query", ["median(weight)", "avg(height)", "count(*) filter (where height > 6)"])
def test_who_would_be_refused_by_name_too_is_told_why(query: str) -> None:
    asked = problem(found(pair="bad: curved", column="bad: heavy tails"), query)
    ranking = rank(asked)
    for name in ON_EXACT_LAWS:
        assert "ask for it by name" not in ranking.refused[name].reason
        with pytest.raises((RefusedError, UsageError)) as caught:
            plan(asked, name)
        assert str(caught.value) == f"{name}: {ranking.refused[name].reason}"


@pytest.mark.parametrize("name", [*ON_EXACT_LAWS, "gaussian"])
def test_by_name_a_plan_warns_and_names_the_reason(name: str) -> None:
    for made in (
        plan(problem(found(pair="bad: curved")), name),
        rank(problem(found(pair="bad: curved")), mechanism=name).chosen,
    ):
        assert made is not None
        assert made.mechanism == name
        (warning,) = [line for line in made.warnings if line.startswith("shape: ")]
        assert warning.startswith(
            "shape: epsilon 1 rests on normal rows, which the public records do not show: weight on income: "
        )
        assert "weight on income: curved (curvature 0.3, spread 0)" in warning
        assert f"warning: {warning}" in str(made)
        assert "; shape: bad: weight on income: curved" in " | ".join(made.certificate.assumes)


def test_what_uses_no_assumption_does_not_warn() -> None:
    ranking = rank(problem(found(pair="bad: curved")))
    assert [one.mechanism for one in ranking.plans if not any(note.startswith("shape:") for note in one.notes)] == ["constant"]


# ------------------------------------------------------------------------------------- good verdicts, and a wide range


def ranged(
    between: tuple[float, float] | None,
    *,
    n: int = 1000,
    curvature: float = 0.0,
    spread: float = 0.0,
    rows: int = 20_000,
    rho: float = 0.3,
    **more: Any,
) -> Problem:
    """In standard deviations; the verdict is good."""
    shape = (*found()[:2], ShapeFinding(of="weight", on="income", curvature=curvature, spread=spread, verdict="good"))
    assumed = ap.Gaussian(
        mean={"weight": 0, "income": 0},
        sd={"weight": 1, "income": 1},
        correlation={("weight", "income"): rho},
        tolerance={"mean": 0.04, "sd": 0.03, "slope": 0.12},
        fitted=FittedRecord(**{**FITTED, "rows": rows}, shape=shape),
    )
    secret = ap.Secret("mean(income)", between=between, within=more.pop("within", None))
    policy = ap.Policy(epsilon=1.0, delta=1e-6, protect=[secret], assume=assumed, **more)
    return policy.problem(parse_queries("avg(weight)"), n, {"weight": "float", "income": "float"})


def warned(asked: Problem, name: str) -> bool:
    return any(line.startswith("shape: ") for line in plan(asked, name).warnings)


def test_a_narrow_range_of_flat_rows_is_not_charged() -> None:
    for asked in (ranged((-0.1, 0.1)), ranged((-0.1, 0.1), n=10_000)):
        assert rank(asked).plans[0].mechanism == "calibrated_weights"
        assert not any(warned(asked, name) for name in (*ON_EXACT_LAWS, "gaussian"))
    assert not warned(ranged((-0.5, 0.5), within=0.01), "gaussian")


@pytest.mark.parametrize(
    "asked",
    [
        ranged((-0.2, 0.2), n=100_000, curvature=0.09),  # epsilon is really 2.8
        ranged((-1.0, 1.0), n=100_000, curvature=0.04),  # 40
        ranged((-0.2, 0.2), n=100_000),  # a curvature of 0.03 is not seen in 20,000 rows
        ranged((-0.2, 0.2), n=100_000, rows=10**6, spread=0.06),  # a cubic regression (0.3) has no curvature: 2.3
        ranged((-0.5, 0.5), curvature=0.02, rows=5000),
        ranged((-0.5, 0.5), curvature=0.09),
        ranged((-1.0, 1.0), spread=0.09, rows=10**6),
    ],
)
def test_what_passes_for_normal_is_charged_by_range_and_rows(asked: Problem) -> None:
    chosen = rank(asked)
    assert chosen.refused["calibrated_weights"].reason.startswith(
        "rests on normal rows, which the public records do not show for this range: weight on income: "
    )
    made = chosen.chosen
    assert made is not None
    assert made.mechanism in ("gaussian", "transport")
    assert warned(asked, "calibrated_weights")


def test_noise_hides_what_a_small_curvature_moves() -> None:
    """Of the size of the whole effect, it does; where there is no slope, there is none."""
    assert not warned(ranged((-1.0, 1.0), n=100_000, curvature=0.09), "gaussian")
    assert warned(ranged((-1.0, 1.0), n=100_000, curvature=0.09, rho=0.001), "gaussian")
    assert not warned(ranged((-0.2, 0.2), n=100_000), "transport")
    assert warned(ranged((-0.2, 0.2), n=100_000, curvature=0.09), "transport")


def test_known_rows_and_secrets_without_a_range_are_charged_too() -> None:
    """Whoever knows most rows knows how far the others are moved. Without a range, what is likely is looked at."""
    few: dict[str, Any] = {"curvature": 0.05, "rows": 10**6, "rho": 0.001}
    assert not warned(ranged((-0.1, 0.1), **few), "gaussian")
    assert warned(ranged((-0.1, 0.1), **few, known_rows=0.9), "gaussian")
    assert not warned(ranged(None, within=0.01, **few), "gaussian")
    assert warned(ranged(None, within=0.5, **few), "gaussian")


def test_columns_that_are_nearly_one_show_more_together() -> None:
    """Their difference hardly varies, and what is small in each may be large in it."""
    names = ("weight", "height")
    shape = (
        *(ShapeFinding(of=name, skewness=0.0, kurtosis=0.0, verdict="good") for name in (*names, "income")),
        *(ShapeFinding(of=name, on="income", curvature=0.01, spread=0.0, verdict="good") for name in names),
    )

    def asked(between: float) -> Problem:
        assumed = ap.Gaussian(
            mean=dict.fromkeys((*names, "income"), 0),
            sd=dict.fromkeys((*names, "income"), 1),
            correlation={"weight~income": 0.001, "height~income": 0.001, "weight~height": between},
            tolerance={"mean": 0.01, "slope": 0.0},
            fitted=FittedRecord(**{**FITTED, "rows": 10**6}, shape=shape),
        )
        secret = ap.Secret("mean(income)", between=(-0.1, 0.1))
        policy = ap.Policy(epsilon=1.0, delta=1e-6, protect=[secret], assume=assumed)
        queries = [query for name in names for query in parse_queries(f"avg({name})")]
        return policy.problem(queries, 1000, dict.fromkeys((*names, "income"), "float"))

    assert not warned(asked(0.3), "gaussian")
    assert warned(asked(0.99), "gaussian")


# ---------------------------------------------------------------------------------------------------------------- groups


def groups(verdict: str | None, columns: tuple[str, ...] = ("hours",), *, sd: float = 0.0) -> Problem:
    means = {"F": dict.fromkeys(columns, 36.0), "M": dict.fromkeys(columns, 37.0)}
    sds = {"F": dict.fromkeys(columns, 5.0), "M": dict.fromkeys(columns, 12.0)}
    shape = None
    if verdict is not None:
        cells = [(column, category) for column in columns for category in ("F", "M")]
        shape = tuple(ShapeFinding(of=of, category=c, kurtosis=9.0, verdict=verdict if c == "M" else "good") for of, c in cells)
    assumed = ap.Groups(
        sensitive="gender",
        mean=means,
        sd=sds,
        correlation=None if len(columns) == 1 else {c: {"hours~pay": 0.1} for c in ("F", "M")},
        tolerance={"mean": 0.01, "sd": sd} if sd else 0,
        fitted=FittedRecord(**FITTED, shape=shape),
    )
    secret = ap.Secret("share(gender = 'F')", between=(0.3, 0.6))
    queries = [query for column in columns for query in parse_queries(f"avg({column})")]
    types = {"gender": "text", **dict.fromkeys(columns, "float")}
    return ap.Policy(epsilon=1.0, delta=1e-6, protect=[secret], assume=assumed).problem(queries, 1000, types)


def test_the_equalised_form_is_not_taken_where_rows_are_not_normal() -> None:
    """Its noise differs with the counts, so as to equal variances that only normal rows have."""
    good, bad = (plan(groups(told), "gaussian") for told in ("good", "bad: heavy tails"))
    assert good.columns[0].parameters["form"] == "equalised"
    assert bad.columns[0].parameters["form"] == "direct"
    assert any(line.startswith("shape: ") and "hours in M: heavy tails (kurtosis 9)" in line for line in bad.warnings)
    chosen = rank(groups("bad: heavy tails")).chosen
    assert chosen is not None
    assert (chosen.mechanism, chosen.columns[0].parameters["form"]) == ("gaussian", "direct")
    old = plan(groups(None), "gaussian")
    assert old.columns[0].parameters["form"] == "equalised"
    assert "shape: not examined" in " | ".join(old.certificate.assumes)


def test_jointly_hidden_means_have_a_reason_of_their_own() -> None:
    hidden = ap.Secret(["mean(income)", "mean(weight)"], between={"mean(income)": (57_000, 63_000), "mean(weight)": (149, 151)})
    asked = problem(found(pair="bad: curved")).model_copy(update={"secrets": (hidden,)})
    with pytest.raises(RefusedError) as caught:
        plan(asked, "transport")
    assert str(caught.value) == f"transport: {rank(asked).refused['transport'].reason}"


def test_weights_are_not_for_groups_by_name_either() -> None:
    assert rank(groups("bad: heavy tails")).refused["calibrated_weights"].reason.startswith("needs a gaussian assumption")


def test_several_averages_with_groups_have_no_other_form() -> None:
    bad = groups("bad: heavy tails", ("hours", "pay"))
    ranking = rank(bad)
    assert ranking.refused["gaussian"].reason.startswith("rests on normal rows, ")
    assert any(line.startswith("shape: ") for line in plan(bad, "gaussian").warnings)
    with pytest.raises(RefusedError, match="rests on normal rows"):
        plan(bad)
