"""What is told of a secret, against a simulation that knows the assumption and the stated noise, for every method.

Tables of two values of the secret are drawn by NumPy from the law that the assumption states, and answers from them: either
with noise of the scale that the plan states, or, where noise does not come last, by the plan's own draw. The best of 60
thresholds guesses right no more often than `tells` says; and as often, where it says `exact`.

False alarms: with 200,000 answers of each value a share of right guesses is off by 0.6 points with probability below 1e-9, with
2,000 by 6. Power: see the last tests, which leave out noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.engines.tables import open_table
from attrpriv.engines.view.draw import draw, view_table
from attrpriv.methods.base.parts import TallyPart
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.choice.choose import plan
from attrpriv.policy import Policy
from attrpriv.session.session import Session
from attrpriv.session.view_rows import cells_of
from tests.conformance.test_mechanisms import PROBLEMS

Floats = Any
Tables = Mapping[str, Floats]
"""Of each column its averages, of each condition how many rows it has: one number a table."""
MANY, FEW = 200_000, 2_000


def the_school(value: float, tables: int, rng: np.random.Generator) -> Tables:
    weights = 150 + 0.3 * 25 / 30_000 * (value - 60_000) + 25 * math.sqrt(0.91 / 10_000) * rng.standard_normal(tables)
    return {"weight": weights, "income": np.full(tables, value)}


def a_chain(value: float, tables: int, rng: np.random.Generator) -> Tables:
    """100 entries, of which the 50th is `value`; eight times as many are drawn, and those that have it are kept."""
    state, ones, kept = np.zeros(8 * tables, np.int8), np.zeros(8 * tables, np.int16), None
    for entry in range(100):
        if entry:
            state = np.where(rng.random(len(state)) < np.where(state == 1, 0.6, 0.1), 1, 0).astype(np.int8)
        if entry == 50:
            kept = np.flatnonzero(state == value)[:tables]
            state, ones = state[kept], ones[kept]
        ones = ones + state
    return {"state = 1": ones}


def a_parameter(value: float, tables: int, rng: np.random.Generator) -> Tables:
    """30 rows with chance 0.3 or 0.5; the lower parent makes the lower one likelier, 7 to 3."""
    low = rng.random(tables) < (0.7 if value == 0 else 0.3)
    return {"height = 1": rng.binomial(30, np.where(low, 0.3, 0.5))}


def stated_laws(value: float, tables: int, rng: np.random.Generator) -> Tables:
    law = [0.2, 0.225, 0.5, 0.075, 0.0] if value == 0 else [0.0, 0.075, 0.5, 0.225, 0.2]
    return {"flu = 1": rng.choice(5, tables, p=law)}


def an_entry(value: float, tables: int, rng: np.random.Generator) -> Tables:
    """One of 40 rows is of a smoker or not, and the others are as they are."""
    return {"stay > 7": rng.binomial(39, 0.28, tables) + (rng.random(tables) < (0.4 if value else 0.2))}


def read_counts(value: float, tables: int, rng: np.random.Generator) -> Tables:
    law = [[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]][int(value)]
    return {"flu = 1": rng.choice(3, tables, p=law), "smoker = 1": np.full(tables, int(value))}


def a_count(value: float, tables: int, rng: np.random.Generator, likely: float = 0.42) -> Tables:
    """40 rows, of which so many are of smokers, who stay long with this chance, and others with chance 0.2."""
    smokers = round(value)
    stays = rng.binomial(smokers, likely, tables) + rng.binomial(40 - smokers, 0.2, tables)
    yes, no = np.full(tables, smokers), np.full(tables, 40 - smokers)
    return {"stay > 7": stays, "smoker is 'yes'": yes, "smoker is 'no'": no}


def sets_of_counts(value: float, tables: int, rng: np.random.Generator) -> Tables:
    """8 rows: fewer than 3 smokers or not, otherwise as the prior says."""
    smokers = np.empty(0, int)
    while len(smokers) < tables:
        drawn = rng.binomial(8, 0.4, 8 * tables)
        smokers = np.concatenate([smokers, drawn[(drawn >= 3) == bool(value)]])
    smokers = smokers[:tables]
    stays = rng.binomial(smokers, 0.4) + rng.binomial(8 - smokers, 0.6)
    return {"stay > 7": stays, "smoker is 'yes'": smokers, "smoker is 'no'": 8 - smokers}


def wards(value: float, tables: int, rng: np.random.Generator) -> Tables:
    """40 rows in three wards."""
    smokers = round(value)
    found = rng.multinomial(smokers, [0.2, 0.5, 0.3], tables) + rng.multinomial(40 - smokers, [0.5, 0.3, 0.2], tables)
    return {f"ward is '{name}'": found[:, k] for k, name in enumerate("abc")}


def ages(value: float, tables: int, rng: np.random.Generator) -> Tables:
    """Nothing is known of ages but that they are from 0 to 120: smokers are as old as can be, others as young."""
    return {"age": np.full(tables, 120 * value / 40)}


def groups(value: float, tables: int, rng: np.random.Generator) -> Tables:
    """1,000 rows, of which so many are women, with shorter hours."""
    women = round(1_000 * value)
    men = 1_000 - women
    of_women = rng.multivariate_normal([36, 40], np.array([[121, 19.8], [19.8, 81]]) / women, tables)
    of_men = rng.multivariate_normal([42, 38], np.array([[144, 12], [12, 100]]) / men, tables)
    hours, old = ((women * of_women + men * of_men) / 1_000).T
    return {"hours": hours, "age": old, "gender is 'F'": np.full(tables, women), "gender is 'M'": np.full(tables, men)}


def a_hierarchy(value: float, tables: int, rng: np.random.Generator) -> Tables:
    """The population's mean income is `value`; its mean weight follows from it, and 10,000 rows from both."""
    weights = 150 + 0.3 * 5 / 8_000 * (value - 60_000) + 5 * math.sqrt(0.91) * rng.standard_normal(tables)
    return {
        "weight": weights + 0.25 * rng.standard_normal(tables),
        "income": value + 300 * rng.standard_normal(tables),
    }


def records(value: float, tables: int, rng: np.random.Generator) -> Tables:
    """20 rows drawn from the file's 8, kept where their mean schooling is `value`."""
    school, hours = np.array([8, 9, 9, 10, 10, 11, 12, 8]), np.array([30, 40, 38, 40, 45, 41, 50, 20])
    found: list[Floats] = []
    while sum(map(len, found)) < tables:
        rows = rng.integers(8, size=(400_000, 20), dtype=np.int8)
        kept = rows[school[rows].sum(axis=1) == round(20 * value)]
        found.append(hours[kept].mean(axis=1))
    return {"hours": np.concatenate(found)[:tables], "school": np.full(tables, value)}


def records_of_women(value: float, tables: int, rng: np.random.Generator) -> Tables:
    """20 rows drawn from the file's women and men, so many of each."""
    women = round(20 * value)
    drawn = [rng.choice([30, 38, 45, 20], (tables, women)), rng.choice([40, 40, 41, 50], (tables, 20 - women))]
    hours = np.concatenate(drawn, axis=1)
    return {"hours": hours.mean(axis=1), "hours >= 40": (hours >= 40).sum(axis=1), "sex = 'F'": np.full(tables, women)}


Law = Callable[[float, int, np.random.Generator], Tables]
ADDED: list[Any] = [
    ("nearly normal rows", "gaussian_approximation", the_school, (60_000, 61_000)),
    ("exact moments", "gaussian", the_school, (60_000, 61_000)),
    ("exact moments", "group_dp", the_school, (60_000, 61_000)),
    ("exact moments", "constant", the_school, (60_000, 61_000)),
    ("a chain", "laplace", a_chain, (0, 1)),
    ("a chain", "chain_quilt", a_chain, (0, 1)),
    ("a chain", "group_dp", a_chain, (0, 1)),
    ("a parameter, the law of the count known", "markov_quilt", a_parameter, (0, 1)),
    ("a parameter, the law of the count known", "laplace", a_parameter, (0, 1)),
    ("a parameter, the law of the count known", "gaussian", a_parameter, (0, 1)),
    ("a parameter, the law of the count known", "wasserstein", a_parameter, (0, 1)),
    ("stated laws", "laplace", stated_laws, (0, 1)),
    ("stated laws", "gaussian", stated_laws, (0, 1)),
    ("stated laws", "wasserstein", stated_laws, (0, 1)),
    ("an entry behind counts", "laplace", an_entry, (0, 1)),
    ("an entry behind counts", "gaussian", an_entry, (0, 1)),
    ("a hierarchy", "gaussian", a_hierarchy, (40_000, 80_000)),
    ("a histogram", "laplace", wards, (10, 20)),
    ("an average beside counts", "laplace", ages, (10, 20)),
    ("a count, a set of counts", "laplace", sets_of_counts, (0, 1)),
    ("a count, a set of counts", "gaussian", sets_of_counts, (0, 1)),
    ("records, an average behind a share", "gaussian", records_of_women, (0.3, 0.4)),
    pytest.param("records", "gaussian", records, (9.6, 9.8), marks=pytest.mark.slow),  # the plan takes seconds
]
DRAWN: list[Any] = [
    ("the school", "transport", the_school, (60_000, 61_000)),
    ("exact moments", "transport", the_school, (60_000, 61_000)),  # by a clip at quantiles
    ("a parameter, the law of the count known", "optimal", a_parameter, (0, 1)),
    ("stated laws", "optimal", stated_laws, (0, 1)),
    ("stated laws, a count that can be read", "transport", read_counts, (0, 1)),
    ("stated laws, a count that can be read", "transport", read_counts, (0, 2)),
    ("a count", "transport", a_count, (10, 20)),
    ("a count, exact probabilities", "transport", partial(a_count, likely=0.4), (10, 20)),
    ("a count, exact probabilities", "optimal", partial(a_count, likely=0.4), (10, 20)),
    ("a count, a set of counts", "transport", sets_of_counts, (0, 1)),
    ("records, a count behind a share", "gaussian", records_of_women, (0.3, 0.4)),
    ("records, a count behind a share", "transport", records_of_women, (0.3, 0.4)),
    ("records, an average behind a share", "transport", records_of_women, (0.3, 0.4)),
    pytest.param("records", "transport", records, (9.6, 9.8), marks=pytest.mark.slow),  # the plan takes seconds
    ("groups, several averages", "gaussian", groups, (0.25, 0.4)),
    ("groups, several averages", "transport", groups, (0.25, 0.4)),
    ("groups, exact moments", "gaussian", groups, (0.25, 0.4)),
    ("groups, exact moments", "transport", groups, (0.25, 0.4)),
    ("a hierarchy", "transport", a_hierarchy, (40_000, 80_000)),
]


def noise(made: Plan, size: int, rng: np.random.Generator) -> Floats:
    """Of the plan's first answer, in the unit of what was drawn."""
    stated = made.noise_of(made.queries[0])
    if stated.kind == "none":
        return np.zeros(size)
    if stated.kind == "gaussian":
        drawn = rng.normal(0, stated.scale, size)
        return np.rint(drawn) if isinstance(made.part, TallyPart) else drawn
    assert stated.kind == "laplace"
    if not isinstance(made.part, TallyPart):
        return rng.laplace(0, stated.scale, size)
    stop = -math.expm1(-1 / stated.scale)
    return (rng.geometric(stop, size) - rng.geometric(stop, size)).astype(float)


def read_of(made: Plan, table: Tables, k: int) -> Any:
    """What a plan's part reads of one table."""
    part: Any = made.part
    if isinstance(part, TallyPart):
        counted = [int(table[cell.where][k]) for cell in part.tally.cells if cell.where in table]
        rest = [made.n - sum(counted)] if len(part.tally.cells) > len(counted) else []
        return [*counted, *rest], _sides(part.tally.categories, table, k, made.n)
    columns = [column.column for column in part.columns]
    averages = [Fraction(float(table[name][k])).limit_denominator(10**9) for name in (*columns, *made.read_columns)]
    return averages, _sides(part.categories, table, k, made.n)


def _sides(categories: Any, table: Tables, k: int, rows: int) -> list[int]:
    named = [None if one.where is None else int(table[one.where][k]) for one in categories]
    return [rows - sum(x for x in named if x is not None) if one is None else one for one in named]


def best_right(low: Floats, high: Floats) -> float:
    """Of 60 thresholds, and either side of them."""
    cuts = np.unique(np.quantile(np.concatenate([low, high]), np.linspace(0.01, 0.99, 60)))
    shares = [((low < cut).mean() + (high >= cut).mean()) / 2 for cut in cuts]
    return float(max(max(shares), 1 - min(shares)))


def by_noise(made: Plan, law: Law, pair: tuple[float, float], seed: int = 3) -> float:
    rng = np.random.default_rng(seed)
    if made.mechanism == "constant":
        return 0.5
    tables = [law(value, MANY, rng) for value in pair]
    where = made.part.tally.cells[0].where if isinstance(made.part, TallyPart) else made.queries[0].column
    return best_right(*(table[str(where)] + noise(made, MANY, rng) for table in tables))


def by_draws(made: Plan, law: Law, pair: tuple[float, float]) -> float:
    rng = np.random.default_rng(4)
    answers = []
    for value in pair:
        table = law(value, FEW, rng)
        drawn = [made.part.draw(made, read_of(made, table, k)) for k in range(FEW)]
        answers.append(np.array([float(one[0][0]) for one in drawn if one is not None]))
    return best_right(*answers)


@pytest.mark.parametrize(("label", "mechanism", "law", "pair"), ADDED)
def test_noise_of_the_stated_scale_tells_what_is_said(label: str, mechanism: str, law: Law, pair: tuple[float, float]) -> None:
    made = plan(PROBLEMS[label], mechanism)
    told, right = made.tells().after, by_noise(made, law, pair)
    assert right <= told.right + 0.006
    if told.how == "exact":
        assert right >= told.right - 0.006


# Thousands of draws of a plan that takes long to draw from.
LONG = {"records, an average behind a share", "groups, several averages", "a count"}


@pytest.mark.parametrize(
    ("label", "mechanism", "law", "pair"),
    [pytest.param(*one, marks=pytest.mark.slow) if one[0] in LONG else one for one in DRAWN],
)
def test_answers_as_drawn_tell_what_is_said(label: str, mechanism: str, law: Law, pair: tuple[float, float]) -> None:
    made = plan(PROBLEMS[label], mechanism)
    told, right = made.tells().after, by_draws(made, law, pair)
    assert told.how == "bound"
    assert right <= told.right + 0.06
    tables = [law(value, MANY, np.random.default_rng(5)) for value in pair]
    name = next(iter(tables[0]))
    assert best_right(tables[0][name], tables[1][name]) > right - 0.06  # no more is told than by the exact answers


def weighed(made: Plan, value: float, rng: np.random.Generator) -> Any:
    """Sums and products over rows of the school whose mean income is `value`, in the steps that weights are computed from."""
    income = 30_000 * rng.standard_normal(made.n)
    income += value - income.mean()
    weight = 150 + 0.3 * 25 / 30_000 * (income - 60_000) + 25 * math.sqrt(0.91) * rng.standard_normal(made.n)
    columns = {"income": income, "weight": weight}
    grids = made.certificate.evidence.gram_columns()
    steps = np.column_stack([np.rint((columns[name] - centre) / step) for name, centre, step, _ in grids])
    return made.n, [int(x) for x in steps.sum(axis=0)], [[int(x) for x in row] for row in steps.T @ steps]


def test_weights_tell_what_is_said() -> None:
    """Incomes 5,000 apart, five promised pairs: exact answers tell them apart 99.6% of the time, weighted ones hardly.

    Of 150 answers a share is off by 25 points at any threshold with probability below 1e-7.
    """
    made, rng, pair = plan(PROBLEMS["exact moments"], "calibrated_weights"), np.random.default_rng(7), (60_000.0, 65_000.0)
    drawn = [[made.part.draw(made, weighed(made, value, rng)) for _ in range(150)] for value in pair]
    answers = [np.array([float(one[0][0]) for one in side if one is not None]) for side in drawn]
    told = made.tells(5_000)
    assert told.after.how == "bound"
    assert best_right(answers[0], answers[1]) <= told.after.right + 0.25 < 0.8 < told.before.right


SEX = {"values": ["F", "M"], "shares": [0.35, 0.65]}
STATED = {"sex": SEX, "least_density": 0.6, "failure": 1e-9, "rarest_event": 0.01}
VIEWED: list[Any] = [
    {"protect": [{"secret": "share(sex = 'F')", "between": [0.25, 0.4]}]},
    {"protect": [{"secret": "columns(sex)"}], "reference": STATED},
]


def averages_of_rows(share: float, view: ViewPlan | None, policy: Policy) -> Floats:
    """Average weights in 5 views of 2,000 rows, women being lighter; of all rows where there is no view.

    Each row has 20 weights, which are independent, so that few views give many averages.
    """
    rng, found = np.random.default_rng(8), []
    women = round(2_000 * share)
    for _ in range(5):
        weights = np.concatenate([rng.normal(60, 10, (women, 20)), rng.normal(80, 10, (2_000 - women, 20))])
        if view is not None:
            sexes = ["F"] * women + ["M"] * (2_000 - women)
            source, rule = open_table(pd.DataFrame({"sex": sexes, "weights": list(weights)})), cells_of(view, policy)
            shown = view_table(source, rule, draw(source, rule, 2_000, None), None, ())
            weights = np.stack(shown.weights.execute().to_list())
        found.append(weights.mean(axis=0))
    return np.concatenate(found)


@pytest.mark.parametrize("stated", VIEWED, ids=["view", "reference view"])
def test_views_tell_what_is_said(stated: Mapping[str, Any]) -> None:
    """Of 100 averages of each side a share is off by 25 points at any threshold with probability below 1e-8."""
    policy = Policy(epsilon=1.0, delta=1e-6, rows=2_000, **stated)
    view = Session("no table", policy).view_plan()  # no row is read for it
    shown = [averages_of_rows(share, view, policy) for share in (0.25, 0.4)]
    told = view.tells().after
    assert told.how == "bound"
    assert told.right < 0.5 + 1e-6
    assert best_right(shown[0], shown[1]) <= told.right + 0.25
    plain = [averages_of_rows(share, None, policy) for share in (0.25, 0.4)]
    assert best_right(plain[0], plain[1]) > told.right + 0.45  # rows of which none are left out


def test_answers_without_noise_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these tells more by its exact answers than is said of the release."""
    monkeypatch.setattr("tests.property.test_tells_by_method.noise", lambda made, size, rng: np.zeros(size))
    for label, mechanism, law, pair in (ADDED[1], ADDED[8], ADDED[11], ADDED[16], *ADDED[18:22]):
        made = plan(PROBLEMS[label], mechanism)
        assert by_noise(made, law, pair) > made.tells().after.right + 0.006


def test_answers_that_are_handed_out_as_they_are_would_be_noticed() -> None:
    for label, mechanism, law, pair in (DRAWN[0], DRAWN[2], DRAWN[12], *DRAWN[14:]):
        tables = [law(value, MANY, np.random.default_rng(9)) for value in pair]
        name = next(iter(tables[0]))
        assert best_right(tables[0][name], tables[1][name]) > plan(PROBLEMS[label], mechanism).tells().after.right + 0.06


# -------------------------------------------------------------------------------------------------------------- sequences


def test_a_second_release_is_told_with_the_first(tmp_path: Path) -> None:
    """Two averages with normal noise are one normal vector: its distance, by the usual formula, is what both tell together."""
    moments = Gaussian(
        mean={"weight": 150.0, "height": 67.0, "income": 60_000.0},
        sd={"weight": 25.0, "height": 4.0, "income": 30_000.0},
        correlation={"weight~income": 0.3, "height~income": 0.2, "weight~height": 0.5},
        tolerance=0,
    )
    policy = Policy(
        epsilon=1.0,
        delta=1e-6,
        protect=[{"secret": "mean(income)", "between": [20_000, 200_000], "within": 1_000}],
        assume=moments,
        resolution={"weight": 1, "height": 1, "income": 1},
    )
    rng = np.random.default_rng(6)
    columns = {"weight": (150, 25), "height": (67, 4), "income": (60_000, 9_000)}
    table = pd.DataFrame({name: np.rint(rng.normal(*law, 10_000)) for name, law in columns.items()}).astype(int)
    with Session(table, policy, ledger=tmp_path / "x.ledger") as session:
        first = session.plan("avg(weight)", "gaussian", spend=0.5)
        session.release("avg(weight)", "gaussian", spend=0.5)
        second = session.plan("avg(height)", "gaussian")
        public = session.plan("avg(height)", "constant")
    slopes = np.array([0.3 * 25, 0.2 * 4]) / 30_000 * 1_000
    spread = np.array([[25**2 * 0.91, 25 * 4 * (0.5 - 0.06)], [25 * 4 * (0.5 - 0.06), 16 * 0.96]]) / 10_000
    spread += np.diag([first.noise.scale**2, second.noise.scale**2])
    both = norm.cdf(math.sqrt(slopes @ np.linalg.solve(spread, slopes)) / 2)
    alone = norm.cdf(slopes[1] / math.sqrt(spread[1, 1]) / 2)
    assert both > alone + 0.003
    told = second.tells(1_000).after
    assert both <= told.right
    assert told.right == pytest.approx(both, abs=2e-3)
    assert first.tells(1_000).after.right < told.right
    # A public constant's proof says nothing of what was released before it.
    assert public.tells(1_000).after.how == "unknown"
