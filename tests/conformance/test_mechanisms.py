"""What every mechanism must do, whatever it is: one suite over the table of methods.

Each mechanism meets every problem below. It may refuse, with a reason of one line; it must not crash, and for at least one of
them it must have a plan. A mechanism that is added to the table and to no problem here fails `test_has_a_problem`.
"""

from __future__ import annotations

import itertools
import json
import math
from functools import cache
from typing import Any

import pytest
from scipy.stats import norm

from attrpriv.accounting.hash_chain import contents, entry_of, next_entry, row_of
from attrpriv.assumptions.chain import Chain
from attrpriv.assumptions.channel import Channel
from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.groups import Groups
from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.assumptions.laws import Laws
from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.assumptions.recorded_table import RecordedTable
from attrpriv.assumptions.records import Records
from attrpriv.errors import AttrprivError, RefusedError, UsageError
from attrpriv.methods.base.accuracy import Spread
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.methods.table import MECHANISMS
from attrpriv.numerics.networks.network import Network, Node
from attrpriv.problem.intervals import PublicIntervals
from attrpriv.problem.problem import Problem
from attrpriv.problem.reference import PublicCell, PublicCells, Reference, stated_cells
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries
from attrpriv.session.record import details_of, recorded_plan

MOMENTS: dict[str, Any] = {
    "mean": {"weight": 150.0, "height": 67.0, "income": 60_000.0},
    "sd": {"weight": 25.0, "height": 4.0, "income": 30_000.0},
    "correlation": {("weight", "income"): 0.3, ("weight", "height"): 0.5, ("height", "income"): 0.2},
}


SHARE = (Secret("share(gender = 'F')", between=(0.25, 0.4)),)


def problem(**changes: Any) -> Problem:
    """Everything declared, so that as many mechanisms as possible apply."""
    tolerance = changes.pop("tolerance", {"mean": 0.01, "sd": 0.02, "slope": 0.05})
    stated: dict[str, Any] = {
        "queries": (Query("avg", "weight"),),
        "secrets": (Secret("mean(income)", between=(20_000.0, 200_000.0), within=1_000.0),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 10_000,
        "theta": (Gaussian(**MOMENTS, tolerance=tolerance),),
        "bounds": {"weight": (60.0, 400.0), "height": (40.0, 90.0)},
        "resolution": {"weight": 1.0, "height": 1.0, "income": 1.0},
        "policy_digest": "abc",
    }
    return Problem(**(stated | changes))


def counts_problem(**changes: Any) -> Problem:
    """A count under a counts assumption."""
    given = changes.pop("given", {"stay > 7": {"yes": (0.38, 0.42), "no": 0.2}, **VALUES})
    stated: dict[str, Any] = {
        "queries": (Query("count", where="stay > 7"),),
        "secrets": (Secret("count(smoker = 'yes')", between=(10.0, 20.0)),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 40,
        "theta": (Counts(sensitive="smoker", given=given, prior={"yes": 0.4}),),
        "policy_digest": "abc",
    }
    return Problem(**(stated | changes))


def groups_problem(**changes: Any) -> Problem:
    """Averages that hide a share of rows."""
    tolerance = changes.pop("tolerance", {"mean": 0.02, "sd": 0.02})
    groups = Groups(
        sensitive="gender",
        mean={"F": {"hours": 36.0, "age": 40.0}, "M": {"hours": 42.0, "age": 38.0}},
        sd={"F": {"hours": 11.0, "age": 9.0}, "M": {"hours": 12.0, "age": 10.0}},
        correlation={"F": {"hours~age": 0.2}, "M": {"hours~age": 0.1}},
        prior={"F": 0.3, "M": 0.7},
        tolerance=tolerance,
    )
    stated: dict[str, Any] = {
        "queries": (Query("avg", "hours"),),
        "secrets": SHARE,
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 1_000,
        "theta": (groups,),
        "resolution": {"hours": 1.0, "age": 1.0},
        "policy_digest": "abc",
    }
    return Problem(**(stated | changes))


def hierarchy_problem(**changes: Any) -> Problem:
    """Averages that hide a mean of the population."""
    hierarchy = Hierarchy(
        mean=MOMENTS["mean"],
        between_sd={"weight": 5.0, "height": 1.0, "income": 8_000.0},
        between_correlation=MOMENTS["correlation"],
        within_sd=MOMENTS["sd"],
        tolerance=0,
    )
    stated: dict[str, Any] = {
        "queries": (Query("avg", "weight"),),
        "secrets": (Parameter("income", between=(40_000.0, 80_000.0)),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 10_000,
        "theta": (hierarchy,),
        "resolution": {"weight": 1.0, "height": 1.0, "income": 1.0},
        "policy_digest": "abc",
    }
    return Problem(**(stated | changes))


def chain_problem(**changes: Any) -> Problem:
    """Each entry of a correlated column."""
    chain = Chain(column="state", states=[0, 1], initial=[1, 0], transition=[[0.9, 0.1], [0.4, 0.6]], tolerance=0)
    stated: dict[str, Any] = {
        "queries": (Query("count", where="state = 1"),),
        "secrets": (Secret("entries(state)"),),
        "epsilon": 1.0,
        "n": 100,
        "theta": (chain,),
        "policy_digest": "abc",
    }
    return Problem(**(stated | changes))


VALUES = {
    "visits": {
        "yes": {"values": [0, 1, 3], "probabilities": [0.2, 0.5, 0.3]},
        "no": {"values": [0, 1, 3], "probabilities": [0.5, 0.3, 0.2]},
    },
    "ward": {
        "yes": {"values": ["a", "b", "c"], "probabilities": [0.2, 0.5, 0.3]},
        "no": {"values": ["a", "b", "c"], "probabilities": [0.5, 0.3, 0.2]},
    },
}


def known_law() -> ParameterNetwork:
    """A network over two parameters, and how the entries of a column follow from one of them."""
    flip = ((0.7, 0.3), (0.3, 0.7))
    nodes = {
        "income": Node(states=("low", "high"), table=((0.5, 0.5),)),
        "height": Node(states=("0.3", "0.5"), parents=("income",), table=flip),
    }
    return ParameterNetwork(network=Network(nodes=nodes), attributes={"height": {"family": "bernoulli"}}, tolerance=0)


def network_problem(**changes: Any) -> Problem:
    """Statistics that hide a parameter of the population."""
    tolerance = changes.pop("tolerance", 0)
    two, flip = ("low", "high"), ((0.7, 0.3), (0.3, 0.7))
    nodes = {
        "gender": Node(states=two, table=((0.5, 0.5),)),
        "income": Node(states=two, parents=("gender",), table=flip),
        "height": Node(states=two, parents=("gender",), table=flip),
        "weight": Node(states=two, parents=("height",), table=flip),
    }
    stated: dict[str, Any] = {
        "queries": (Query("count", where="height > 66"),),
        "secrets": (Parameter("income"),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 100,
        "theta": (ParameterNetwork(network=Network(nodes=nodes), tolerance=tolerance),),
        "bounds": {"weight": (60.0, 400.0), "height": (40.0, 90.0)},
        "bins": {"height": (40.0, 60.0, 90.0)},
        "policy_digest": "abc",
    }
    return Problem(**(stated | changes))


def stated_problem(**changes: Any) -> Problem:
    """A count whose laws are written down: of a clique of four, given the entry of one of them."""
    given = changes.pop("given", {"0": [0.2, 0.225, 0.5, 0.075, 0.0], "1": [0.0, 0.075, 0.5, 0.225, 0.2]})
    statistic = changes.pop("statistic", "count(*) filter (where flu = 1)")
    values = changes.pop("values", [0, 1, 2, 3, 4])
    stated: dict[str, Any] = {
        "queries": (Query("count", where="flu = 1"),),
        "secrets": (Secret("entries(flu)"),),
        "epsilon": 1.0,
        "delta": 1e-3,
        "n": 4,
        "theta": (Laws(statistic=statistic, values=values, given=given),),
        "policy_digest": "abc",
    }
    return Problem(**(stated | changes))


def records_problem(**changes: Any) -> Problem:
    """Sums over rows like public ones."""
    rows: dict[str, Any] = {
        "school": [8, 9, 9, 10, 10, 11, 12, 8],
        "hours": [30, 40, 38, 40, 45, 41, 50, 20],
        "sex": list("FMFMFMMF"),
    }
    theta = Records(file=RecordedTable.of(rows), columns=("school", "hours", "sex"), resamples={"number": 1, "size": 6})
    stated: dict[str, Any] = {
        "queries": (Query("avg", "hours"),),
        "secrets": (Secret("mean(school)", between=(9.0, 10.5), within=0.2),),
        "epsilon": 1.0,
        "delta": 1e-3,
        "n": 20,
        "theta": (theta,),
        "types": {"school": "integer", "hours": "integer", "sex": "text"},
        "bounds": {"hours": (0.0, 99.0)},
        "policy_digest": "abc",
    }
    return Problem(**(stated | changes))


BOXES = {"0": [(0.5, 0.7), (0.2, 0.4), (0.05, 0.1)], "1": [(0.1, 0.2), (0.3, 0.5), (0.3, 0.6)]}
THREE = {"0": [0.6, 0.3, 0.1], "1": [0.3, 0.4, 0.3], "2": [0.1, 0.3, 0.6]}

REFERENCE = Reference(file="census.parquet", least_density=0.8)
STATED = Reference.checked(
    {"sex": {"values": ["F", "M"], "shares": [0.4, 0.6]}, "least_density": 0.9, "failure": 1e-9, "rarest_event": 0.01}
)
SORTED = {"file": "census.parquet", "least_density": 0.8, "failure": 1e-10}
PUBLIC = PublicCells(
    columns=("sex",),
    kinds={"sex": "text"},
    records=2000,
    cells=(PublicCell(values=("F",), count=900), PublicCell(values=("M",), count=1090), PublicCell(values=(None,), count=10)),
)
INTERVALS = PublicCells(
    columns=("income",),
    kinds={"income": "float"},
    records=2000,
    cells=tuple(PublicCell(values=(low,), count=1000) for low in (0.0, 5.0)),
    intervals=PublicIntervals(column="income", edges=(0.0, 5.0, 10.0), variance=8.0, repeated=0.0),
)

PROBLEMS: dict[str, Problem] = {
    "the school": problem(),
    "a sum": problem(queries=(Query("sum", "weight"),)),
    "several queries": problem(queries=(Query("avg", "weight"), Query("sum", "height"), Query("count"))),
    "several secrets": problem(
        secrets=(Secret("mean(income)", within=1_000.0), Secret("sum(height)", between=(600_000.0, 700_000.0)))
    ),
    "several ranges, slopes hardly known": problem(
        secrets=(Secret("mean(income)", between=(20_000.0, 100_000.0)), Secret("mean(height)", between=(66.0, 68.0))),
        tolerance={"mean": 0.01, "sd": 0.02, "slope": 0.5},
    ),
    "nothing but the count": problem(queries=(Query("count"),)),
    "exact moments": problem(tolerance=0),
    "exact moments, no delta": problem(tolerance=0, delta=0.0),
    "exact moments, far values": problem(tolerance=0, secrets=(Secret("mean(income)", between=(20_000.0, 200_000.0)),)),
    "nearly normal rows": problem(tolerance={"slope": 0.05, "shape": {"lambda": 1e-3, "eta": 1e-9}}),
    "single persons too": problem(individuals=1.0),
    "a share": problem(secrets=SHARE, theta=()),
    "a share, filtered": problem(secrets=SHARE, queries=(Query("count", where="height > 66"),), theta=()),
    "everything about a column": problem(
        secrets=(Secret("columns(sex)"),), theta=(), reference=REFERENCE, public_cells=PUBLIC, types={"sex": "text"}
    ),
    "everything about a number": problem(
        secrets=(Secret("columns(income)"),),
        theta=(Channel(information={"iota": 1e-9}),),
        reference=Reference.checked({**SORTED, "sorted": {"income": {"breaks": [0, 5, 10]}}}),
        public_cells=INTERVALS,
        types={"income": "float"},
    ),
    "everything about a column, single persons too": problem(
        queries=(Query("avg", "weight"), Query("count")),
        secrets=(Secret("columns(sex)"),),
        theta=(),
        reference=STATED,
        public_cells=stated_cells(STATED, ("sex",)),
        types={"sex": "text", "weight": "float"},
        missing={"weight": 150.0},
        individuals=1.0,
    ),
    "known rows": problem(known_rows=0.2),
    "a difference": problem(queries=parse_queries("avg(weight - 2 * height)")),
    "averages over subsets": problem(
        queries=(Query("avg", "weight", where="ward = 'a'"), Query("avg", "height", group_by="ward"), Query("count")),
        sizes={"ward = 'a'": 4_000, "ward = 'b'": 3_500},
        categories={"ward": ("a", "b", "other")},
    ),
    "a set of means": problem(secrets=(Secret("mean(income)", cases=("< 60000", ">= 60000")),), tolerance=0),
    "a variance": problem(queries=parse_queries("var_pop(weight)")),
    "a count": counts_problem(),
    "a count, exact probabilities": counts_problem(given={"stay > 7": {"yes": 0.4, "no": 0.2}}),
    "a count, known rows": counts_problem(known_rows=0.1),
    "a count, single persons too": counts_problem(individuals=1.0),
    "a sum of few values": counts_problem(queries=(Query("sum", "visits"), Query("avg", "visits"), Query("count"))),
    "a count, a set of counts": counts_problem(
        given={"stay > 7": {"yes": 0.4, "no": 0.6}},
        secrets=(Secret("count(smoker = 'yes')", cases=("< 3", ">= 3")),),
        n=8,
        epsilon=0.5,
        delta=1e-3,
    ),
    "a histogram": counts_problem(queries=(Query("count", group_by="ward"),)),
    "a share of the population": counts_problem(secrets=(Parameter("share(smoker = 'yes')", between=(0.2, 0.5)),)),
    "an average beside counts": counts_problem(queries=(Query("avg", "age"),), bounds={"age": (0.0, 120.0)}),
    "a count without an assumption": counts_problem(theta=()),
    "a chain": chain_problem(),
    "a chain, single persons too": chain_problem(individuals=0.1),
    "a chain, a histogram": chain_problem(queries=(Query("count", group_by="state"),)),
    "a parameter": network_problem(),
    "a parameter, with a tolerance": network_problem(tolerance=0.02),
    "a parameter, averages": network_problem(queries=(Query("avg", "weight"), Query("sum", "height"), Query("count"))),
    "a parameter, a histogram": network_problem(queries=(Query("count", group_by="height"),)),
    "a parameter, single persons too": network_problem(individuals=1.0),
    "a parameter, the law of the count known": network_problem(
        queries=(Query("count", where="height = 1"), Query("count")),
        theta=(known_law(),),
        epsilon=0.2,
        n=30,
        bins={},
    ),
    "stated laws": stated_problem(),
    "stated laws, intervals": stated_problem(given=BOXES, values=[0, 1, 4]),
    "stated laws, single persons too": stated_problem(individuals=0.5),
    "stated laws, a count that can be read": stated_problem(
        given=THREE, values=[0, 1, 2], n=2, secrets=(Secret("count(smoker = 1)", between=(0, 2)),)
    ),
    "stated laws, one row": stated_problem(
        given=THREE, values=[0, 100, 400], n=1, statistic="sum(bill)", queries=(Query("avg", "bill"), Query("count"))
    ),
    "an entry behind counts": counts_problem(secrets=(Secret("entries(smoker)"),)),
    "groups": groups_problem(),
    "groups, exact moments": groups_problem(tolerance=0),
    "groups, several averages": groups_problem(
        queries=(Query("avg", "hours"), Query("sum", "age")), tolerance={"mean": 0.02, "sd": 0.0}
    ),
    "groups, a share of the population": groups_problem(secrets=(Parameter("share(gender = 'F')", between=(0.25, 0.4)),)),
    "groups, known rows": groups_problem(known_rows=0.05),
    "groups, single persons too": groups_problem(individuals=1.0, bounds={"hours": (-60.0, 140.0)}),
    "records": records_problem(),
    "records, a count behind a share": records_problem(
        queries=(Query("count", where="hours >= 40"), Query("count")),
        secrets=(Secret("share(sex = 'F')", between=(0.3, 0.5), within=0.1),),
        bounds={},
    ),
    "records, an average behind a share": records_problem(
        secrets=(Secret("share(sex = 'F')", between=(0.3, 0.5), within=0.1),)
    ),
    "records, a sum": records_problem(queries=(Query("sum", "hours"), Query("count")), missing={"hours": 40.0}),
    "a hierarchy": hierarchy_problem(),
    "a hierarchy, near values": hierarchy_problem(secrets=(Parameter("income", within=6_500.0),)),
    "a hierarchy, several averages": hierarchy_problem(
        queries=(Query("avg", "weight"), Query("sum", "height"), Query("count"))
    ),
    "a hierarchy, several secrets": hierarchy_problem(
        queries=(Query("sum", "weight"),), secrets=(Parameter("income", within=1_000.0), Parameter("height", within=1.0))
    ),
    "a hierarchy, single persons too": hierarchy_problem(individuals=1.0, bounds={"weight": (-150.0, 450.0)}),
}


@pytest.fixture(params=MECHANISMS, ids=list(MECHANISMS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def planned(asked: Problem, name: str) -> Plan | None:
    """The plan, or None where it is refused for a stated reason; every other exception fails the test."""
    try:
        return plan(asked, name)
    except (RefusedError, UsageError) as refusal:
        reason = str(refusal)
    assert reason.startswith(f"{name}: ")
    assert "\n" not in reason
    assert len(reason) > len(name) + 10
    return None


@cache
def plans(name: str) -> dict[str, Plan]:
    """Made once for all tests of a process: plans are frozen."""
    found = {label: planned(asked, name) for label, asked in PROBLEMS.items()}
    return {label: one for label, one in found.items() if one is not None}


# ------------------------------------------------------------------------------------------------------------------ the suite


def test_has_a_problem(name: str) -> None:
    assert plans(name)


def test_is_a_function_of_the_problem(name: str) -> None:
    """The same problem, built again, has an equal plan: nothing else goes into it."""
    for label, found in plans(name).items():
        again = plan(Problem.from_json(PROBLEMS[label].to_json()), name)
        assert again == found
        assert again.to_json() == found.to_json()


def test_says_what_was_asked(name: str) -> None:
    for label, found in plans(name).items():
        asked = PROBLEMS[label]
        assert found.mechanism == name
        assert found.queries == asked.queries
        assert found.n == asked.n
        assert found.policy_digest == "abc"
        assert found.epsilon <= asked.epsilon
        assert found.delta <= asked.delta


def test_its_certificate_verifies(name: str) -> None:
    for found in plans(name).values():
        found.certificate.verify()
        found.verify()
        assert (found.certificate.epsilon, found.certificate.delta) == (found.epsilon, found.delta)
        assert found.certificate.evidence.delta(found.epsilon) <= found.delta
        assert found.guarantee.kind in ("proved", "approximate")
        assert found.guarantee.reference.startswith("docs/theory/")
        assert found.certificate.assumes


def test_says_what_holds_where_the_assumption_is_off(name: str) -> None:
    """Rows for 1, 2, 5 and 10%, each no less than the one before; or no row, and a line that says so."""
    for label, found in plans(name).items():
        shares = [row.off_by for row in found.model_error]
        assert shares in ([], [0.01, 0.02, 0.05, 0.1]), label
        assert bool(shares) or any("not computed" in line for line in found.warnings), label
        reached = [math.inf if row.epsilon is None else row.epsilon for row in found.model_error]
        assert all(a <= b * (1 + 1e-3) for a, b in itertools.pairwise(reached)), label
        assert all("\n" not in line for line in found.warnings)
        assert sum(line.startswith("fragile: where slopes") for line in found.warnings) <= 1


def test_what_it_tells_keeps_its_promise(name: str) -> None:
    """Of every two values that must look alike: at most what (epsilon, delta) allows, whatever the method."""
    for label, made in plans(name).items():
        told = made.tells()
        assert told.inside
        assert told.after.how in ("exact", "bound"), label
        allowed = 0.5 + (math.expm1(made.epsilon) + 2 * made.delta) / (math.exp(made.epsilon) + 1) / 2
        assert 0.5 <= told.after.right <= allowed * (1 + 1e-9), label
        assert told.after.epsilon is not None, label
        assert told.after.epsilon <= made.epsilon, label
        for alarms, misses in told.after.curve:
            assert 1 - made.delta - math.exp(made.epsilon) * alarms <= misses + 1e-9 <= 1 - alarms + 2e-9, label


def test_survives_json(name: str) -> None:
    for found in plans(name).values():
        text = json.dumps(found.to_json(), allow_nan=False)
        again = Plan.from_json(text)
        assert again == found
        assert Certificate.from_json(json.dumps(found.certificate.to_json(), allow_nan=False)) == found.certificate
        again.certificate.verify()
        assert str(found).startswith(f"{name}: ")


def test_is_rebuilt_from_its_ledger_entry(name: str) -> None:
    """A release that is told again has the plan it was made by, with the same intervals at every level."""
    for found in plans(name).values():
        if found.view is not None:
            continue
        told, details = found.entries(chosen=True), details_of(found)
        said = contents(kind="release", time="now", policy_digest="abc", plan=told, answers=[], details=details)
        again = recorded_plan(entry_of(row_of(next_entry(said, None, None))))
        assert again == found
        again.verify()
        for query in found.queries:
            assert again.spread_of(query).reach(0.9) == found.spread_of(query).reach(0.9)


def test_prints_the_documented_entry(name: str) -> None:
    """`plan --json`: the keys that the design promises, finite numbers, one entry a query."""
    keys = {"schema_version", "query", "mechanism", "chosen", "n", "policy_digest", "epsilon", "delta", "noise", "parameters"}
    keys |= {"error", "guarantee", "model_error"}
    for found in plans(name).values():
        entries = json.loads(json.dumps(found.entries(chosen=True), allow_nan=False))
        assert [entry["query"] for entry in entries] == [query.text for query in found.queries]
        for entry in entries:
            assert keys <= set(entry)
            assert set(entry["error"]) == {"rmse", "mean_absolute", "alpha95", "worst"}
            assert set(entry["guarantee"]) >= {"kind", "statement", "reference"}
            assert {"kind", "scale"} <= set(entry["noise"])


def test_its_errors_are_those_of_its_noise(name: str) -> None:
    for found in plans(name).values():
        for query in found.queries:
            error, noise = found.error_of(query), found.noise_of(query)
            if found.view is not None:  # which rows it has errs too: known in part beforehand, or not at all
                assert error.rmse is None or error.rmse >= noise.scale * math.sqrt(2)
                continue
            assert error.rmse is not None
            assert error.mean_absolute is not None
            assert error.alpha95 is not None
            assert all(math.isfinite(x) and x >= 0 for x in (error.rmse, error.mean_absolute, error.alpha95))
            assert error.mean_absolute <= error.rmse * (1 + 1e-12)
            if found.tally is not None:
                continue  # whole-number noise has moments of its own: test_whole_spread
            spread = found.spread_of(query)
            if not isinstance(spread, Spread):  # what is taken back is more than noise: test_clamp, test_group_transport
                assert error.alpha95 == pytest.approx(spread.reach(0.95), rel=1e-12)
                assert spread.reach(0.99) > error.alpha95
                continue
            if noise.kind == "gaussian" and not noise.individuals:
                assert error.rmse == pytest.approx(noise.scale)
                assert error.mean_absolute == pytest.approx(noise.scale * math.sqrt(2 / math.pi))
                assert error.alpha95 == pytest.approx(noise.scale * float(norm.isf(0.025)))
            if noise.kind == "laplace":
                assert error.rmse == pytest.approx(noise.scale * math.sqrt(2))
                assert error.mean_absolute == pytest.approx(noise.scale)
                assert error.alpha95 == pytest.approx(noise.scale * math.log(20))
            if noise.kind != "none":
                assert error.alpha95 == pytest.approx(found.spread_of(query).reach(0.95))
                assert found.spread_of(query).reach(0.99) > error.alpha95
                assert error.worst is None


def test_a_sum_errs_n_times_as_much_as_its_average(name: str) -> None:
    average, total = planned(PROBLEMS["the school"], name), planned(PROBLEMS["a sum"], name)
    assert (average is None) == (total is None)
    if average is not None and total is not None and average.error.rmse is not None:
        assert total.error.rmse == pytest.approx(10_000 * average.error.rmse)


FEW: dict[str, list[float]] = {"epsilon": [0.2, 1.0, 5.0], "delta": [1e-6, 1e-3]}
# Each of these plans takes a second, and a budget is a plan.
LONG = {"records", "records, a sum", "groups, a share of the population", "a share of the population"}
MANY: dict[str, list[float]] = {"epsilon": [0.02, 0.2, 1.0, 5.0, 50.0], "delta": [1e-9, 1e-6, 1e-3, 0.1]}


@pytest.mark.parametrize("budgets", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"])
@pytest.mark.parametrize("label", [pytest.param(one, marks=pytest.mark.slow) if one in LONG else one for one in PROBLEMS])
def test_a_larger_budget_never_means_more_error(name: str, label: str, budgets: dict[str, list[float]]) -> None:
    for field, values in budgets.items():
        found = [planned(PROBLEMS[label].model_copy(update={field: value}), name) for value in values]
        for query in PROBLEMS[label].queries:
            errors = [_ranked_by(one, query) for one in found if one is not None]
            assert all(later <= earlier * (1 + 1e-9) for earlier, later in itertools.pairwise(errors))


def _ranked_by(found: Plan, query: Query) -> float:
    """The linear program minimises the mean absolute error, all others the root mean square."""
    error = found.error_of(query)
    return (error.mean_absolute if found.mechanism == "optimal" else error.rmse) or 0.0


INCOMPLETE: dict[str, dict[str, Any]] = {
    "delta 0": {"delta": 0.0},
    "no assumption": {"theta": ()},
    "no bounds": {"bounds": {}},
    "nothing": {"theta": (), "bounds": {}, "delta": 0.0},
    "no mean": {"theta": (Gaussian(sd=MOMENTS["sd"], correlation=MOMENTS["correlation"], tolerance=0),)},
    "another column": {"queries": (Query("avg", "shoe size"),)},
    "another secret": {"secrets": (Secret("mean(shoe_size)", within=1.0),)},
    "few rows": {"n": 2},
    "known rows": {"known_rows": 0.999},
    "tiny epsilon": {"epsilon": 1e-12},
    "huge pairs": {"secrets": (Secret("mean(income)", within=1e300),)},
    "filtered": {"queries": (Query("avg", "weight", where="height > 66"),)},
    "grouped": {"queries": (Query("count", group_by="gender"),)},
}


@pytest.mark.parametrize("lacking", INCOMPLETE)
def test_plans_or_refuses_but_never_crashes(name: str, lacking: str) -> None:
    for base in (PROBLEMS["the school"], PROBLEMS["a share"]):
        found = planned(base.model_copy(update=INCOMPLETE[lacking]), name)
        if found is not None:
            found.certificate.verify()
            assert not found.queries[0].where or found.view is not None or found.tally is not None


def test_what_each_one_needs() -> None:
    """The refusals that a user meets first, by name."""
    needs: list[tuple[str, dict[str, Any], str]] = [
        ("gaussian", {"delta": 0.0}, "delta: a Gaussian mechanism needs delta above 0"),
        ("gaussian", {"theta": ()}, "needs a gaussian assumption"),
        ("group_dp", {"bounds": {}}, "needs bounds for weight"),
        ("constant", {"theta": ()}, "needs the mean of weight"),
    ]
    for mechanism, changes, says in needs:
        with pytest.raises(AttrprivError, match=says):
            plan(PROBLEMS["the school"].model_copy(update=changes), mechanism)


# ----------------------------------------------------------------------------------------------------------------------- auto


@pytest.mark.parametrize("label", PROBLEMS)
def test_auto_takes_the_least_error_of_what_is_provable(label: str) -> None:
    asked = PROBLEMS[label]
    ranking = rank(asked)
    assert {p.mechanism for p in ranking.plans} | set(ranking.refused) == set(MECHANISMS)
    assert not {p.mechanism for p in ranking.plans} & set(ranking.refused)
    chosen = plan(asked)
    assert chosen == ranking.chosen
    assert (chosen.mechanism == "constant") == asked.public  # the number of rows is public, and nothing is spent on it
    rivals = [p for p in ranking.plans if (p.mechanism == "constant") == asked.public]
    if any(p.mechanism not in ("subsample", "group_dp") for p in rivals):  # a view answers another question
        rivals = [p for p in rivals if p.view is None]
    if len(asked.queries) == 1:
        rmse = [math.inf if p.error.rmse is None else p.error.rmse for p in rivals]
        mine = math.inf if chosen.error.rmse is None else chosen.error.rmse
        assert mine == min(rmse)
    entries = ranking.entries()
    assert {entry["mechanism"] for entry in entries if entry.get("chosen")} == {chosen.mechanism}
