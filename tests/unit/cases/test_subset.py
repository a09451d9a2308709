"""Averages over public subsets: against the joint normal law of all rows, written out, which knows nothing of overlaps.

The twin (`separation`) writes the averages and the secret as vectors over all entries of a table, adds up their covariances row
by row, and conditions directly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.cases.subset import Rows, grouped
from attrpriv.errors import AttrprivError, CertificateError, QueryError, RefusedError, UsageError
from attrpriv.frozen import FrozenModel
from attrpriv.methods.base.gaussian_proof import GaussianEvidence
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan as plan_problem
from attrpriv.methods.table import MECHANISMS
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries
from tests.refusing import refuses

Matrix = Any
GAP = 0.3
NAMES = ("x", "y", "z", "g", "h")
# The rows of each ward: what the policy says, and what the twin takes.
N = 900
WARDS = {"a": range(150), "b": range(150, 350), "c": range(350, 750), "other": range(750, 900)}
CATEGORIES = {"ward": ("a", "b", "c", "other")}
SIZES = {"ward = 'a'": 150, "ward = 'b'": 200, "ward = 'c'": 400, "ward in ('a', 'b')": 350}
REST = "not (ward in ('a', 'b', 'c')) or ward is null"
PLACES: Mapping[str | None, Sequence[int]] = {
    None: range(N),
    "ward = 'a'": WARDS["a"],
    "ward = 'b'": WARDS["b"],
    "ward = 'c'": WARDS["c"],
    "ward in ('a', 'b')": range(350),
    REST: WARDS["other"],
}


def covariance(seed: int, own: float = 1.0) -> Matrix:
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(5, 3))
    return loadings @ loadings.T + own * np.diag(rng.uniform(0.2, 1.0, 5))


def assumed(v: Matrix, tolerance: Any = 0) -> Gaussian:
    stated = {f"{a}~{b}": float(v[i, j]) for i, a in enumerate(NAMES) for j, b in enumerate(NAMES) if i <= j}
    return Gaussian(covariance=stated, tolerance=tolerance)


def problem(text: str, v: Matrix, **changes: Any) -> Problem:
    given: dict[str, Any] = {
        "queries": parse_queries(text),
        "secrets": (Secret("mean(g)", within=GAP),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": N,
        "theta": (assumed(v, changes.pop("tolerance", 0)),),
        "sizes": SIZES,
        "categories": CATEGORIES,
    }
    return Problem(**{**given, **changes})


def plan(text: str, v: Matrix, **changes: Any) -> Plan:
    return plan_problem(problem(text, v, **changes), "gaussian")


def separation(
    v: Matrix,
    plans: Sequence[Plan],
    secrets: Sequence[tuple[Mapping[str, float], float]],
    places: Mapping[str | None, Sequence[int]] = PLACES,
) -> float:
    """How far apart the laws of all that was released are, for the worst of the secrets."""
    keys, n = [part.column for made in plans for part in made.columns], len(places[None])
    asked = problem("avg(x)", v)
    reads = np.array([_entries(asked.average(key), places) for key in keys])
    noise = np.zeros((len(keys), len(keys)))
    at = 0
    for made in plans:
        own = np.diag([part.independent**2 for part in made.columns])
        block = own + (np.array(made.factor) @ np.array(made.factor).T if made.factor else 0.0)
        noise[at : at + len(own), at : at + len(own)] = block
        at += len(own)
    worst = 0.0
    for weights, gap in secrets:
        hidden = np.tile([weights.get(name, 0.0) / n for name in NAMES], (1, n, 1))
        spread = float(over_rows(v, hidden, hidden)[0, 0])
        shift = over_rows(v, reads, hidden)[:, 0] / spread
        left = over_rows(v, reads, reads) - np.outer(shift, shift) * spread + noise
        worst = max(worst, gap * math.sqrt(shift @ np.linalg.solve(left, shift)))
    return worst


def _entries(query: Query, places: Mapping[str | None, Sequence[int]] = PLACES) -> Matrix:
    """The average as a vector over all entries of the table."""
    entries = np.zeros((len(places[None]), len(NAMES)))
    form = query.linear
    assert form is not None
    for column, weight in form.coefficients.items():
        for row in places[query.where]:
            entries[row, NAMES.index(column)] = float(weight) / len(places[query.where])
    return entries


def over_rows(v: Matrix, first: Matrix, second: Matrix) -> Matrix:
    """Covariances of sums over all entries, row by row: rows are independent."""
    return np.einsum("krj,ji,lri->kl", first, v, second, optimize=True)


def reached(made: Plan) -> float:
    return float(made.columns[0].parameters["mu"])


ASKED = {
    "one group": "avg(x) filter (where ward = 'a')",
    "by group": "SELECT ward, avg(x) FROM data GROUP BY ward",
    "two by group": "SELECT ward, avg(x), avg(y) FROM data GROUP BY ward",
    "a group and all": "avg(x), avg(x) filter (where ward = 'a')",
    "another column of all": "avg(y), avg(x) filter (where ward = 'a'), avg(z) filter (where ward = 'b')",
    "by group and another of all": "SELECT ward, avg(x) FROM data GROUP BY ward; avg(y)",
    "nested": "avg(x), avg(x) filter (where ward in ('a', 'b')), avg(x) filter (where ward = 'a')",
    "combinations": "avg(x - 2*y) filter (where ward = 'c'), avg(y + z), avg(x) filter (where ward = 'a')",
    "sums": "sum(x) filter (where ward = 'b'), sum(x)",
}
SPACED = {"resolution": dict.fromkeys(NAMES, 1e-6)}


def asked_for(name: str) -> tuple[Query, ...]:
    return tuple(query for text in ASKED[name].split("; ") for query in parse_queries(text))


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_law_is_further_apart_than_the_budget_allows(name: str, seed: int) -> None:
    v = covariance(seed)
    made = plan("avg(x)", v, queries=asked_for(name), **SPACED)
    made.verify()
    found = separation(v, [made], [({"g": 1.0}, GAP)])
    assert 0.3 * reached(made) < found <= reached(made)


def test_several_secrets_and_a_hidden_sum() -> None:
    v = covariance(7)
    secrets = (Secret("mean(g)", within=GAP), Secret("sum(h)", within=180.0), Secret("mean(g - 2*h)", within=0.3))
    made = plan(ASKED["by group"], v, secrets=secrets)
    hidden: list[tuple[Mapping[str, float], float]] = [({"g": 1.0}, GAP), ({"h": 1.0}, 0.2), ({"g": 1.0, "h": -2.0}, 0.3)]
    assert separation(v, [made], hidden) <= reached(made)


def test_secrets_hidden_jointly() -> None:
    """All directions of a ball of two means."""
    v = covariance(8)
    made = plan(ASKED["a group and all"], v, secrets=(Secret(["mean(g)", "mean(h)"], within=0.3),))
    keys = [part.column for part in made.columns]
    reads = np.array([_entries(problem("avg(x)", v).average(key)) for key in keys])
    hidden = np.array([np.tile([float(name == one) / N for name in NAMES], (N, 1)) for one in ("g", "h")])
    shared = over_rows(v, reads, hidden)
    slopes = shared @ np.linalg.inv(over_rows(v, hidden, hidden))
    left = over_rows(v, reads, reads) - slopes @ shared.T + np.diag([part.independent**2 for part in made.columns])
    left += np.array(made.factor) @ np.array(made.factor).T if made.factor else 0.0
    most = 0.3 * math.sqrt(np.linalg.eigvalsh(slopes.T @ np.linalg.solve(left, slopes))[-1])
    assert 0.3 * reached(made) < most <= reached(made)


@pytest.mark.parametrize("tolerance", [{"sd": 0.05, "slope": 0.1}, {"sd": 0.05, "correlation": 0.05}])
@pytest.mark.parametrize("name", ["by group", "a group and all", "another column of all"])
def test_every_member_of_a_class_is_covered(name: str, tolerance: dict[str, float]) -> None:
    v, rng = covariance(3, own=8.0), np.random.default_rng(5)
    made = plan("avg(x)", v, queries=asked_for(name), tolerance=tolerance)
    sds, most = np.sqrt(np.diag(v)), 0.0
    for _ in range(20):
        member = v / np.outer(sds, sds)
        own = sds * (1 + tolerance["sd"] * rng.choice([-1, 1], 5))
        for j in range(3):
            if "slope" in tolerance:
                slope = v[j, 3] / v[3, 3] * (1 + tolerance["slope"] * rng.choice([-1, 1]))
                member[j, 3] = member[3, j] = slope * own[3] / own[j]
            else:
                member[j, 3] = member[3, j] = member[j, 3] + tolerance["correlation"] * rng.choice([-1, 1])
        if np.linalg.eigvalsh(member)[0] > 0:
            most = max(most, separation(member * np.outer(own, own), [made], [({"g": 1.0}, GAP)]))
    assert 0 < most <= reached(made)
    # A plan for the centre alone would not do: the members are able to show it.
    exact = plan("avg(x)", v, queries=asked_for(name))
    assert separation(v, [exact], [({"g": 1.0}, GAP)]) <= reached(exact)


@given(
    seed=st.integers(0, 10_000),
    rows=st.lists(st.integers(2, 60), min_size=4, max_size=4),
    chosen=st.lists(st.sampled_from(["0", "1", "2", "3", "01", "012", ""]), min_size=2, max_size=5, unique=True),
    columns=st.lists(st.sampled_from("xyz"), min_size=5, max_size=5),
    gap=st.floats(0.01, 2.0),
    spend=st.floats(0.1, 1.0),
)
@settings(max_examples=25, deadline=None)
def test_any_law_any_sizes_any_nested_subsets(
    seed: int, rows: list[int], chosen: list[str], columns: list[str], gap: float, spend: float
) -> None:
    """Four groups of any sizes, subsets made of some of them (none: all rows), in one release or in two."""
    v, n = covariance(seed), sum(rows) + 3
    starts = np.cumsum([0, *rows])
    places: dict[str | None, list[int]] = {None: list(range(n))}
    for name in filter(None, chosen):
        listed = ", ".join(f"'{one}'" for one in name)
        places[f"k in ({listed})"] = [row for one in name for row in range(starts[int(one)], starts[int(one) + 1])]
    wheres = [None if not name else f"k in ({', '.join(repr(one) for one in name)})" for name in chosen]
    queries = [Query("avg", column, where) for column, where in zip(columns, wheres, strict=False)]
    sizes = {where: len(found) for where, found in places.items() if where is not None}
    given_: dict[str, Any] = {"sizes": sizes, "n": n, "secrets": (Secret("mean(g)", within=gap), Secret("mean(h)", within=gap))}
    plans: list[Plan] = []
    refused = ""
    try:
        for asked in (queries[:1], queries[1:]):
            earlier = plans[-1].certificate.evidence if plans else None
            plans.append(
                plan("avg(x)", v, queries=tuple(asked), spend=spend if asked == queries[:1] else 1.0, earlier=earlier, **given_)
            )
    except RefusedError as error:
        refused = str(error)
    known = r"\A\Z|cannot both be released|nearly determine|the mask does not cover|nothing is left of the budget"
    assert re.search(known, refused)
    found = separation(v, plans, [({"g": 1.0}, gap), ({"h": 1.0}, gap)], places) if plans else 0.0
    assert not plans or found <= reached(plans[-1])


# Mutants, which the twin must catch.


def opposite() -> Matrix:
    """x and y hardly differ but for g, which they follow in opposite directions: their difference tells it."""
    loadings = np.array([[3.0, 1.0], [3.0, -1.0], [1.0, 0.0], [0.0, 1.0], [0.3, 0.2]])
    return loadings @ loadings.T + np.diag([0.2, 0.2, 1.0, 0.1, 1.0])


# What the mutant takes for the rows that two averages share, and what is asked for.
MUTANTS: dict[str, tuple[Callable[[Rows], Matrix], str]] = {
    "apart": (
        lambda rows: np.diag(1 / np.array(rows.sizes, dtype=float)),
        "avg(x), avg(y) filter (where ward in ('a', 'b'))",
    ),
    "as if all were as small": (
        lambda rows: np.full((len(rows.sizes),) * 2, 1 / min(rows.sizes)),
        "avg(x), avg(x) filter (where ward = 'a')",
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_another_covariance_is_caught(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    v, gap = opposite(), 0.03  # so small that little noise is needed, and the averages' own spread is what hides it
    asked, secrets = {"secrets": (Secret("mean(g)", within=gap),)}, [({"g": 1.0}, gap)]
    shared, text = MUTANTS[mutant]
    honest = plan(text, v, **asked)
    assert separation(v, [honest], secrets) <= reached(honest)
    monkeypatch.setattr(Rows, "shared", shared)
    wrong = plan(text, v, **asked)
    assert separation(v, [wrong], secrets) > 1.02 * reached(wrong)


# One release after the other.


def sequence(texts: Sequence[tuple[str, float]], v: Matrix) -> list[Plan]:
    plans: list[Plan] = []
    for text, spend in texts:
        earlier: FrozenModel | None = plans[-1].certificate.evidence if plans else None
        plans.append(plan(text, v, spend=spend, earlier=earlier))
    return plans


SEQUENCES = {
    "all, then groups": [("avg(x)", 0.3), ("avg(x) filter (where ward = 'a')", 0.5), ("avg(x) filter (where ward = 'b')", 1.0)],
    "groups, then all": [("avg(x) filter (where ward = 'c')", 0.4), ("avg(x)", 0.5), ("avg(y)", 1.0)],
    "by group, then another": [(ASKED["by group"], 0.5), ("avg(y), sum(y) filter (where ward = 'a')", 1.0)],
    "inwards": [("avg(x)", 0.2), ("avg(x) filter (where ward in ('a', 'b'))", 0.5), ("avg(x) filter (where ward = 'a')", 1.0)],
    "outwards": [("avg(x) filter (where ward = 'a')", 0.2), ("avg(x) filter (where ward in ('a', 'b'))", 0.5), ("avg(x)", 1.0)],
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_the_joint_laws_of_a_sequence(name: str) -> None:
    for seed in (1, 4):
        v = covariance(seed)
        plans = sequence(SEQUENCES[name], v)
        for k, made in enumerate(plans, 1):
            assert separation(v, plans[:k], [({"g": 1.0}, GAP)]) <= reached(made)
            assert made.certificate.follows(plans[k - 2].certificate if k > 1 else None)
        assert separation(v, plans, [({"g": 1.0}, GAP)]) > 0.3 * reached(plans[-1])


def test_a_planner_that_forgets_the_table_s_average_is_caught() -> None:
    v = opposite()
    first = plan("avg(x)", v, spend=0.5)
    forgetful = plan("avg(y) filter (where ward in ('a', 'b'))", v)
    assert separation(v, [forgetful], [({"g": 1.0}, GAP)]) <= reached(forgetful)
    assert separation(v, [first, forgetful], [({"g": 1.0}, GAP)]) > 1.05 * reached(forgetful)
    assert not forgetful.certificate.follows(first.certificate)


# The plan.


def test_groups_have_their_own_names_and_sizes() -> None:
    made = plan("SELECT ward, sum(x) FROM data GROUP BY ward", covariance(1))
    (query,) = made.queries
    assert [(part.where, part.rows) for part in made.columns] == [*list(SIZES.items())[:3], (REST, 150)]
    assert made.group_names(query) == ("a", "b", "c", "other")
    for group, rows in zip(made.group_names(query), (150, 200, 400, 150), strict=True):
        assert made.rows_of(query, group) == rows
        assert made.noise_of(query, group).scale == pytest.approx(made.of(query, group).noise.scale * rows)
    assert made.noise_of(query).scale == max(made.noise_of(query, group).scale for group in made.group_names(query))
    evidence = made.certificate.evidence
    assert isinstance(evidence, GaussianEvidence)
    assert evidence.columns[0] == "x filter (where ward = 'a')"
    assert Plan.from_json(made.to_json()) == made


def test_an_average_of_all_rows_beside_groups_has_none() -> None:
    made = plan("avg(x)", covariance(1), queries=asked_for("by group and another of all"), **SPACED)
    grouped, whole = made.queries
    assert made.group_names(grouped) == ("a", "b", "c", "other")
    assert made.group_names(whole) == (None,)
    (own,) = (part for part in made.columns if part.column == "y")
    assert (made.noise_of(whole), made.error_of(whole)) == (own.noise, own.error)
    assert made.of(grouped, "a").where == "ward = 'a'"


def test_a_sum_and_the_average_of_the_same_rows_are_one_release() -> None:
    v = covariance(1)
    one = plan("sum(x) filter (where ward = 'b')", v)
    both = plan("sum(x) filter (where ward = 'b'), avg(x) filter (where ward = 'b')", v)
    assert both.columns == one.columns
    scales = [both.noise_of(query).scale for query in both.queries]
    assert scales[0] == pytest.approx(200 * scales[1])


def test_many_groups_of_one_column_have_one_slope() -> None:
    """Twelve groups and a tolerance: corners are those of one slope, not of twelve."""
    names = tuple(f"w{k}" for k in range(12))
    sizes = {f"ward = '{name}'": 75 for name in names}
    made = plan(ASKED["by group"], covariance(2), categories={"ward": names}, sizes=sizes, tolerance={"slope": 0.1})
    evidence = made.certificate.evidence
    assert isinstance(evidence, GaussianEvidence)
    assert len(made.columns) == 12
    assert all(check.credited[0][0] > 0 for check in evidence.checks)


def test_an_answer_has_the_noise_of_the_plan() -> None:
    """400 answers of four groups: covariances within six standard errors, below 1e-6 by chance; without the common part not."""
    made, runs = plan(ASKED["by group"], covariance(3)), 400
    drawn = np.array([made.answers([0] * 4) for _ in range(runs)])  # type: ignore[list-item]
    own = np.diag([part.independent**2 for part in made.columns])
    noise = own + np.array(made.factor) @ np.array(made.factor).T
    found = drawn.T @ drawn / runs
    error = np.sqrt((noise**2 + np.outer(np.diag(noise), np.diag(noise))) / runs)
    assert (np.abs(found - noise) < 6 * error).all()
    assert not (np.abs(found - own) < 6 * error).all()


def test_a_plan_answers_for_its_own_rows_only() -> None:
    made = plan(ASKED["one group"], covariance(1))
    (part,) = made.columns
    other = part.model_copy(update={"where": "ward = 'b'"})
    assert len(made.answers([0])) == 1  # type: ignore[list-item]
    for wrong in (other, part.model_copy(update={"rows": None})):
        with pytest.raises(CertificateError, match="a filter or a group"):
            made.rebuilt(columns=(wrong,)).answers([0])  # type: ignore[list-item]
    whole = plan("avg(x)", covariance(1))
    fewer = whole.columns[0].model_copy(update={"rows": 150})
    with pytest.raises(CertificateError, match="a filter or a group"):
        whole.rebuilt(columns=(fewer,)).answers([0])  # type: ignore[list-item]


@pytest.mark.parametrize(
    "key",
    [
        "x filter (where ward = 'a')",
        "x - 2 * y filter (where ward in ('a', 'b'))",
        "x filter (where \"a b\" = ' filter (where ')",
    ],
)
def test_names_are_read_back(key: str) -> None:
    found = problem("avg(x)", covariance(1)).average(key)
    assert found.key == key
    assert found.kind == "avg"


@pytest.mark.parametrize("key", ["x), avg(y", "x filter (where ward = 'a'), sum(y)", "nobody", "avg(x)", "x filter (where )"])
def test_other_names_are_refused(key: str) -> None:
    with pytest.raises(QueryError, match="was released before"):
        problem("avg(x)", covariance(1)).average(key)


# What is refused.

TYPED = {"types": {**dict.fromkeys(NAMES, "float"), "ward": "text", "age": "integer"}}
IN_A = ASKED["one group"]
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "no size": (IN_A, {"sizes": {}}, "needs the subset's size as a public number"),
    "no size of a sum": ("sum(x) filter (where ward = 'a')", {"sizes": {}}, "needs its size as a public number"),
    "no size of two groups": (
        ASKED["by group"],
        {"sizes": {"ward = 'a'": 150, "ward = 'b'": 200}},
        "needs its size as a public",
    ),
    "no categories": (ASKED["by group"], {"categories": {}}, "ward needs public categories"),
    "too large": (IN_A, {"sizes": {"ward = 'a'": 901}}, "sizes: must say how many of the 900 rows"),
    "one row": (IN_A, {"sizes": {"ward = 'a'": 1}}, "2 at least. Got 1"),
    "more than all": (
        "avg(x) filter (where ward = 'a'), avg(x) filter (where ward = 'b')",
        {"sizes": {"ward = 'a'": 500, "ward = 'b'": 500}},
        "subsets within the 900 rows must not have more rows",
    ),
    "more than what is around": (
        "avg(x) filter (where ward = 'a'), avg(x) filter (where ward in ('a', 'b'))",
        {"sizes": {"ward = 'a'": 400, "ward in ('a', 'b')": 300}},
        "must not have more rows",
    ),
    "groups that leave rows out": (
        ASKED["by group"],
        {"categories": {"ward": ("a", "b", "c")}},
        "the groups of ward must have 900 rows in all. Got 750",
    ),
    "all groups and all": ("avg(x)", {"queries": (*asked_for("by group"), Query("avg", "x"))}, "cannot both be released"),
    "the same twice": (
        "avg(x) filter (where ward = 'a'), avg(x) filter (where ward in ('a'))",
        {"sizes": {"ward = 'a'": 150, "ward in ('a')": 150}},
        "subsets that are nearly all of these rows (0 are left) cannot both be released",
    ),
    "unknown overlap": (
        "avg(x) filter (where ward = 'a'), avg(y) filter (where age > 3)",
        {"sizes": {**SIZES, "age > 3": 300}},
        "how many rows satisfy both is not declared",
    ),
    "a column beside a subset of its name": (
        f"{IN_A}, avg(\"x filter (where ward = 'a')\")",
        {},
        "is an average of other columns or rows, and the name of a column too",
    ),
    "by an assumed column": ("avg(x) filter (where z > 6)", {"sizes": {"z > 6": 300}}, "do not have the assumed law"),
    "by the secret": ("avg(x) filter (where g > 6)", {"sizes": {"g > 6": 300}}, "do not have the assumed law"),
    "of the secret": ("avg(g) filter (where ward = 'a')", {}, "a column of a secret; over a subset that is not covered"),
    "known rows": (IN_A, {"known_rows": 0.01}, "known_rows, individuals"),
    "individuals": (IN_A, {"individuals": 1.0}, "known_rows, individuals"),
    "cases": (IN_A, {"secrets": (Secret("mean(g)", cases=("< 1", ">= 1")),)}, "not cases"),
    "few recorded rows": (IN_A, {"resolution": {"x": 0.01}, "sizes": {"ward = 'a'": 99}}, "need at least 100 rows"),
    "products": ("avg(x*y) filter (where ward = 'a')", {}, "does not cover"),
    "a count beside": (f"{IN_A}, count(*) filter (where ward = 'a')", {}, "answers statistics over all rows only"),
    "numbers as text": (
        "SELECT age, avg(x) FROM data GROUP BY age",
        {"categories": {"age": ("1", "2")}, **TYPED},
        "age is integer; write its categories as such",
    ),
    "a hidden combination": (
        f"{IN_A}, avg(y)",
        {"secrets": (Secret("mean(g - y)", within=1.0),)},
        "combines a column that is asked for",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    text, changes, message = REFUSED[name]
    with pytest.raises(AttrprivError) as caught:
        plan(text, covariance(1), **changes)
    assert message in str(caught.value)
    assert isinstance(caught.value, RefusedError | UsageError)


@pytest.mark.parametrize("text", [ASKED["one group"], ASKED["by group"], "sum(x) filter (where ward = 'a')"])
@pytest.mark.parametrize("mechanism", [name for name in MECHANISMS if name not in ("gaussian", "transport")])
def test_no_other_mechanism_takes_a_subset(mechanism: str, text: str) -> None:
    with pytest.raises(RefusedError):
        plan_problem(problem(text, covariance(1), bounds={"x": (0.0, 500.0)}), mechanism)


def test_a_column_beside_a_group_of_its_name_is_refused() -> None:
    queries = (*asked_for("by group"), Query("avg", "x filter (where ward = 'a')"))
    for listed in (queries, queries[::-1]):
        with refuses(Refusal, Cause.MISTAKE, "another name of the column"):
            grouped(problem("avg(x)", covariance(1), queries=listed))


def test_a_subset_of_all_rows_is_around_the_others() -> None:
    """Declared as large as the table, and still inside it: not a second subset beside the others."""
    every, some = "ward in ('a', 'b', 'c', 'd')", "ward = 'a'"
    asked = f"avg(x) filter (where {every}), avg(x) filter (where {some})"
    found = Rows.of(problem(asked, covariance(1), sizes={every: 900, some: 150}))
    assert found.nested(range(2)) == {every: (750, every), some: (150, every)}
    assert [(union.wheres, union.rows) for union in found.unions()] == [((every, some), 900)]


def test_a_group_that_was_released_is_not_released_again() -> None:
    v = covariance(1)
    first = plan(IN_A, v, spend=0.5)
    for text in (IN_A, ASKED["by group"]):
        with pytest.raises(RefusedError, match=r"x filter \(where ward = 'a'\): was released before"):
            plan(text, v, earlier=first.certificate.evidence)


def test_the_last_group_and_all_rows_are_computed_by_the_reader() -> None:
    v = covariance(1)
    first = plan(ASKED["by group"], v, spend=0.5)
    with refuses(RefusedError, Cause.TOGETHER, "fewer subsets"):
        plan("avg(x)", v, earlier=first.certificate.evidence)
    plan("avg(y)", v, earlier=first.certificate.evidence).verify()


def test_an_average_by_bins_has_no_rest() -> None:
    """Every group has an end, and none is other: nothing is refused for a category that is not named."""
    ends = {"age >= 0 and age < 40": 400, "age >= 40 and age <= 90": 500}
    given_ = problem("avg(x) filter (where age < 40)", covariance(1), bins={"age": (0.0, 40.0, 90.0)}, sizes=ends)
    made = plan_problem(given_.model_copy(update={"queries": (Query("avg", "x", group_by="age"),)}), "gaussian")
    made.verify()
    assert [(part.where, part.rows) for part in made.columns] == list(ends.items())
    assert [(union.wheres, union.rows) for union in made.unions] == [(tuple(ends), 900)]
