"""The utility suite holds what is said of it: `auto` is not beaten, no release tells more than it may, predictions come true.

False alarms: each comparison of a simulation has a rate of `agreement.ALARM` = 1e-10, and the whole suite makes fewer than
2,000 of them. The other tests are not random. Power: the planted mistakes below are all found.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from attrpriv import __version__
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.ranking import Ranking
from attrpriv.methods.quantile_clip.proof import QuantileClipEvidence
from attrpriv.methods.table import MECHANISMS
from bench.utility_suite import agreement, reporting
from bench.utility_suite.measuring import Measured, Row, every_plan, paper_plan
from bench.utility_suite.problems import Entry, suite
from bench.utility_suite.simulation import Simulated, can_simulate, simulate
from bench.utility_suite.worlds import ChainWorld
from tests.property import exact_kernel, utility_averages_twin, utility_counts_twin
from tests.property.twin import exact_delta
from tests.property.utility_groups_twin import stick

ROOT = Path(__file__).resolve().parents[2]
SUITE = {entry.name: entry for entry in suite()}
# One problem for each kind of evidence; the others are among the slow tests.
FAST = [
    "school: ε 1",
    "school: slope within 1%",
    "school: near values, slope within 1%",
    "school: two averages, ε .1",
    "hours: 100,000 rows, ε .5",
    "populations: ε 1",
    "counts: 20 rows, .4 or .6, prior",
    "counts: 1,000 rows, near counts, δ 1e-6",
    "counts: 1,000 rows, within 10%",
    "network: 30 rows, known law",
    "chain: 100 rows, sticky",
]
# Masses of laws with delta 0 are sums of floats: what a divergence may be from rounding alone.
ROUNDING = 1e-12
MOST = 1.01
NAMES = [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in SUITE]


@cache
def planned(name: str) -> tuple[Ranking, dict[str, Plan]]:
    ranking, plans, _ = every_plan(SUITE[name].problem)
    return ranking, plans


def chosen(name: str) -> Plan:
    found = planned(name)[0].chosen
    assert found is not None
    return found


# ------------------------------------------------------------------------------------------------------------------ the suite


def test_the_suite_is_as_wide_as_it_should_be() -> None:
    problems = [entry.problem for entry in suite()]
    assert len(SUITE) == len(problems) >= 40
    assert set(FAST) <= set(SUITE)
    assert {entry.family for entry in suite()} == set(reporting.FAMILIES)
    assert min(problem.n for problem in problems) == 4
    assert max(problem.n for problem in problems) == 1_000_000
    assert (min(problem.epsilon for problem in problems), max(problem.epsilon for problem in problems)) == (0.1, 5.0)
    assert {len(problem.columns) for problem in problems} >= {0, 1, 2}
    tolerances = [getattr(getattr(problem.theta[0], "tolerance", None), "slope", None) for problem in problems]
    assert {0.01, 0.1} <= set(tolerances)
    assert sum(bool(getattr(problem.theta[0], "prior", None)) for problem in problems) >= 10


@pytest.mark.slow
def test_every_mechanism_has_a_problem() -> None:
    """Mechanisms come from the table of methods: one that is new and solves nothing here needs a problem here."""
    assert {name for one in SUITE for name in planned(one)[1]} == set(MECHANISMS)


# ----------------------------------------------------------------------------------------------------------------------- auto


@pytest.mark.parametrize("name", NAMES)
def test_auto_is_not_worse_than_any_mechanism(name: str) -> None:
    """Those too that auto leaves out because they take long; by 1% at most."""
    ranking, plans = planned(name)
    mine = ranking.score(chosen(name))
    for mechanism, found in plans.items():
        if mechanism != "constant" and found.view is None:
            assert mine <= ranking.score(found) + math.log(MOST), mechanism


def test_transport_of_a_count_is_near_the_optimum() -> None:
    """20 rows, .4 or .6: the best that any mechanism can do is 0.0163, and Wasserstein noise errs by 5."""
    plans = planned("counts: 20 rows, .4 or .6, prior")[1]
    absolute = {name: plan.error.mean_absolute or math.nan for name, plan in plans.items() if plan.view is None}
    assert absolute["optimal"] == pytest.approx(0.0163, abs=5e-5)
    assert absolute["transport"] <= 1.06 * absolute["optimal"]
    assert absolute["wasserstein"] == pytest.approx(5.0, rel=0.01)


def test_a_worse_choice_is_noticed() -> None:
    rows = (Row("transport", 1.0, 1.0), Row("gaussian", 0.98, 1.0), Row("constant", 0.1, 0.1), Row("paper", 0.5, 0.5))
    found = Measured("x", "gaussian", 10, 1.0, 0.0, "transport", "paper", rows)
    assert found.worse(MOST) == ["x: gaussian errs by 0.98, less than transport, which auto chooses: 1"]
    assert found.worse(1.03) == []


# -------------------------------------------------------------------------------------------------------------- the divergence


def worst_delta(entry: Entry, plan: Plan) -> float:
    if plan.tally is None:
        return utility_averages_twin.worst_delta(entry.problem, plan)
    return utility_counts_twin.worst_delta(entry, plan)


@pytest.mark.parametrize("name", NAMES)
def test_the_exact_divergence_is_at_most_delta(name: str) -> None:
    entry, plan = SUITE[name], chosen(name)
    assert plan.delta <= entry.problem.delta
    assert worst_delta(entry, plan) <= entry.problem.delta + ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("name", SUITE)
def test_so_is_that_of_every_other_mechanism(name: str) -> None:
    entry = SUITE[name]
    for mechanism, plan in planned(name)[1].items():
        if mechanism != "constant" and plan.view is None:
            assert worst_delta(entry, plan) <= entry.problem.delta + ROUNDING, mechanism


def changed(plan: Plan, **changes: Any) -> Plan:
    """The plan with other evidence."""
    evidence = plan.certificate.evidence.model_copy(update=changes)
    return plan.model_copy(update={"certificate": plan.certificate.model_copy(update={"evidence": evidence})})


def _wider_clamp(plan: Plan) -> Plan:
    clamp = plan.certificate.evidence.taken_back()
    assert clamp is not None
    return changed(plan, clamp=clamp.model_copy(update={"reach": 1.1 * clamp.reach}))


def _less_noise(plan: Plan) -> Plan:
    assert plan.tally is not None
    return plan.model_copy(update={"tally": plan.tally.model_copy(update={"scale": 0.95 * plan.tally.scale})})


def _wider_clip(plan: Plan) -> Plan:
    evidence = plan.certificate.evidence
    assert isinstance(evidence, QuantileClipEvidence)
    return changed(plan, below=1.05 * evidence.below)


def _evidence(plan: Plan) -> Any:
    return plan.certificate.evidence


def _generous(plan: Plan) -> Plan:
    transport = _evidence(plan).transport
    return changed(plan, transport=type(transport)(**(vars(transport) | {"epsilon": 1.2 * transport.epsilon, "delta": 0.0})))


def _untouched(plan: Plan) -> Plan:
    return changed(plan, targets=_evidence(plan).sources)


def _exact(plan: Plan) -> Plan:
    size = len(_evidence(plan).weights)
    return changed(plan, weights=tuple(tuple(int(j == k) for j in range(size)) for k in range(size)))


MUTANTS: dict[str, tuple[str, Callable[[Plan], Plan]]] = {
    "a clip that moves less": ("school: ε 1", _wider_clip),
    "weights that fail too often": ("school: slope within 1%", lambda plan: changed(plan, bound=0.95 * _evidence(plan).bound)),
    "a wider staircase": ("school: near values, slope within 1%", _wider_clamp),
    "a wider ball": ("school: two averages, ε .1", _wider_clamp),
    "a wider clamp on a population's mean": ("populations: ε 1", _wider_clamp),
    "a wider clamp on a count": (
        "hours: 100,000 rows, ε .5",
        lambda plan: changed(plan, reach=1.1 * _evidence(plan).reach),
    ),
    "a count that is not moved": ("counts: 20 rows, .4 or .6, prior", _untouched),
    "a count that is moved less": ("counts: 1,000 rows, near counts, δ 1e-6", _generous),
    "less noise on a count": ("counts: 1,000 rows, within 10%", _less_noise),
    "the count itself": ("network: 30 rows, known law", _exact),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_release_that_tells_more_is_noticed(mutant: str) -> None:
    name, mistake = MUTANTS[mutant]
    assert worst_delta(SUITE[name], mistake(chosen(name))) > max(1.01 * SUITE[name].problem.delta, 1e-9)


# --------------------------------------------------------------------------------------------------------------- the twins


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_cells_add_up_to_the_divergence_of_normal_laws(epsilon: float) -> None:
    grid = np.linspace(-9, 10, 8001)
    p, q = (np.diff(norm.cdf(grid - mean)) for mean in (0.0, 1.0))
    assert stick(p, q, epsilon) == pytest.approx(float(exact_delta(epsilon, 1.0)), rel=1e-5)


def test_couplings_are_those_of_fractions() -> None:
    law = exact_kernel.count_law(exact_kernel.event(0.25), exact_kernel.event(0.5), 2, 3)
    source, target = [3, 5, 0, 8], [4, 0, 10, 2]
    wanted = exact_kernel.coupled(law, 0, source, target)
    masses = np.array([float(law.get(k, 0)) for k in range(4)])
    assert utility_counts_twin.coupled(masses, source, target) == pytest.approx([float(x) for x in wanted])


def test_rows_add_up_to_binomial_and_other_laws() -> None:
    both = utility_counts_twin.rows((0, 1), (0.7, 0.3), 7).plus(utility_counts_twin.rows((0, 1), (0.7, 0.3), 3))
    assert both.masses == pytest.approx(binom.pmf(np.arange(11), 10, 0.3))
    few = utility_counts_twin.rows((0, 1, 3), (0.2, 0.5, 0.3), 2)
    assert few.masses == pytest.approx([0.04, 0.2, 0.25, 0.12, 0.3, 0.0, 0.09])


def test_chains_are_those_of_all_paths() -> None:
    """Every path of 5 entries, by hand; the release adds nothing."""
    entry, n = SUITE["chain: 100 rows, sticky"], 5
    world = ChainWorld(entry.problem.model_copy(update={"n": n}), (0.7, 0.3), ((0.9, 0.1), (0.4, 0.6)))
    plan = chosen(entry.name)
    assert plan.tally is not None
    bare = plan.model_copy(update={"tally": plan.tally.model_copy(update={"noise": "none", "scale": 0.0})})
    found = list(utility_counts_twin._chain(bare, world)())
    for row, pair in enumerate(found):
        for state, law in enumerate(pair):
            wanted = np.zeros(n + 1)
            for path in itertools.product((0, 1), repeat=n):
                chance = world.initial[path[0]] * math.prod(world.transition[s][t] for s, t in itertools.pairwise(path))
                wanted[sum(path)] += chance * (path[row] == state)
            assert law.masses == pytest.approx(wanted / wanted.sum())


# ----------------------------------------------------------------------------------------------------------- predicted errors


def simulated(entry: Entry, plan: Plan, draws: int, seconds: float) -> Simulated:
    return simulate(plan, entry.world, np.random.default_rng(20), draws, seconds)


# Of those whose draws take no more than a millisecond.
QUICK = ["school: near values, slope within 1%", "hours: 100,000 rows, ε .5", "populations: ε 1", "chain: 100 rows, sticky"]


@pytest.mark.parametrize("name", QUICK)
def test_the_prediction_of_the_chosen_mechanism_comes_true(name: str) -> None:
    entry, plan = SUITE[name], chosen(name)
    run = simulated(entry, plan, 600, math.inf)
    assert agreement.disagreements(plan, entry.problem, run) == []
    for factor in (0.5, 2.0):  # errors of another size are noticed
        assert agreement.disagreements(plan, entry.problem, Simulated(factor * run.errors, 0))


@pytest.mark.slow
@pytest.mark.parametrize("name", SUITE)
def test_every_prediction_comes_true(name: str) -> None:
    entry = SUITE[name]
    for plan in (planned(name)[1] | paper_plan(entry, {})).values():
        if can_simulate(plan):
            assert agreement.disagreements(plan, entry.problem, simulated(entry, plan, 1_500, 3.0)) == [], plan.mechanism


# ----------------------------------------------------------------------------------------------------------------- the reports


def test_the_page_shows_a_run_of_this_suite() -> None:
    page = (ROOT / "docs" / "guide" / "accuracy.md").read_text(encoding="utf-8")
    run = json.loads((ROOT / "bench" / "results" / "utility.json").read_text(encoding="utf-8"))
    assert run["version"] == __version__
    assert f"attrpriv {__version__}; {len(SUITE)} problems." in page
    assert [one["problem"] for one in run["problems"]] == list(SUITE)
    for one in run["problems"]:
        assert f"| {one['problem']} | {one['rows']:,} | {one['epsilon']:g} |" in page
        assert f"`{one['chosen']}`" in page


@pytest.mark.slow
def test_the_errors_on_the_page_are_those_of_this_version() -> None:
    """Within 2%: an improvement calls for another run of make bench-utility."""
    run = json.loads((ROOT / "bench" / "results" / "utility.json").read_text(encoding="utf-8"))
    for one in run["problems"]:
        for mechanism, found in planned(one["problem"])[1].items():
            if mechanism in one["mechanisms"] and len(found.queries) == 1:
                assert found.error.rmse == pytest.approx(one["mechanisms"][mechanism]["rmse"], rel=0.02, abs=1e-9)


def test_reports_survive_numbers_of_every_size(tmp_path: Path) -> None:
    rows = (
        Row("transport", 1e-11, 1e-12, 0.0, 5),
        Row("optimal", 0.0, 0.0),
        Row("group_dp", 123_456.7, 1.0),
        Row("constant", 0.25, 0.2),
    )
    results = [Measured("x: y", "counts", 1_000, 0.5, 1e-6, "transport", "wasserstein", rows, {"gaussian": "needs delta."})]
    text = reporting.markdown(results)
    assert "| x: y | 1,000 | 0.5 | 1e-6 | `transport` | 1e-11 | 0 |  | over a million | over a million |  |" in text
    assert json.loads(reporting.to_json(results))["problems"][0]["refused"] == {"gaussian": "needs delta."}
    page = tmp_path / "page.md"
    page.write_text(f"before\n{reporting.START}\nold\n{reporting.END}\nafter\n", encoding="utf-8")
    reporting.put_into(page, text)
    reporting.put_into(page, text)
    assert page.read_text(encoding="utf-8") == f"before\n{reporting.START}\n\n{text}\n{reporting.END}\nafter\n"


@pytest.mark.slow
def test_the_figure_is_drawn_alike_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = (Row("transport", 1e-11, 1e-12), Row("optimal", 0.1, 0.1), Row("group_dp", 10.0, 5.0), Row("constant", 0.25, 0.2))
    results = [
        Measured(f"x: {k}", family, 9, 0.5, 0.0, "transport", "group_dp", rows) for k, family in enumerate(reporting.FAMILIES)
    ]
    reporting.draw(results, [tmp_path / "x.svg"])
    reporting.draw(results, [tmp_path / "y.svg"])
    assert "<svg" in (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert (tmp_path / "x.svg").read_bytes() == (tmp_path / "y.svg").read_bytes()
