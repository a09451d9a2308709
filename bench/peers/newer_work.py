"""Newer mechanisms, on the same problems as ours: quantised secrets, transport plans, general additive noise, influence curves.

`lin2024summary` shares a whole column whose mean is rounded; `ding2022kantorovich` and `pierquin2024renyi` calibrate noise by
the transport between two laws; `bai2026composition` translates differentially private algorithms by influence curves.
"""

from __future__ import annotations

from typing import Any

import attrpriv as ap
from attrpriv.numerics.calibration import chain_budget, chain_epsilon, chain_score
from attrpriv.numerics.calibration.chain_quilt import chain_loss
from attrpriv.numerics.laws import MarkovChain
from bench.peers import additive
from bench.peers.budget import Budget
from bench.peers.here import in_this_environment
from bench.peers.quantised import quantised
from bench.peers.results import Cell, Result, Table

NAME = "newer_work"
TITLE = "Newer mechanisms: quantised secrets, transport plans, additive noise, influence"
NEEDS: tuple[str, ...] = ("pandas", "sklearn")
SECONDS = 200.0
SEED = 2024

EPSILON, DELTA = 1.0, 1e-6
Row = list[Cell | str | float | None]

NOTES = (
    "definitions are taken from the publications' abstracts and, for quantised secrets, from the code that its authors "
    "published, not from the full texts, so that refinements of these mechanisms may be missing",
    "no closed form of the influence curve of a chain could be established; what is compared is the quantity itself, whose "
    "optimum over all mechanisms a linear program gives",
    "privacy amplification by iteration (pierquin2024renyi) is not compared: attrpriv has nothing of the kind",
)


def run(budget: Budget) -> Result:
    budget.say("transport plans")
    tables = [transport_plans()]
    budget.say("additive noise")
    tables.append(additive_noise())
    budget.say("influence")
    tables += [influence(), many_counts()]
    budget.say("quantised secrets")
    tables += quantised(SEED, budget)
    packages = ("pandas", "scikit-learn")
    return Result.of(NAME, TITLE, seconds=budget.spent, seed=SEED, tables=tables, notes=NOTES, packages=packages)


# ---------------------------------------------------------------------------------------------------------- transport plans

WORDS = {
    "distance alone": "noise by the Kantorovich distance alone (not private)",
    "wasserstein": "the transport plan's longest way (Ding's first condition; `wasserstein`)",
    "kantorovich": "ways on average for each answer (`examples/own_method`)",
    "laplace": "exact loss (`laplace`)",
    "transport": "`transport`, which reads the secret",
    "optimal": "`optimal`, a linear program",
}


def transport_plans() -> Table:
    found = in_this_environment("transport_plans.py", {"epsilon": EPSILON})
    rows: list[Row] = []
    for problem, by_name in found.items():
        for name, words in WORDS.items():
            one = by_name[name]
            rows.append([f"{problem}: {words}", one["scale"], one["loss"], one.get("error")])
    columns = {"what": "text", "scale of Laplace noise": "number", "true loss": "number", "mean error": "number"}
    return Table.of("transport-plans", f"Counts, ε = {EPSILON:g} promised", columns, rows)  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------------------------------- additive noise


def additive_noise() -> Table:
    rows: list[Row] = []
    average = normal_average()
    shift = 0.3 * 25 / 30_000 * 1_000
    what = "average of 10,000 normal rows"
    rows += _general(what, shift, "", DELTA)
    rows += [[what, f"`{name}`", ap.plan(average, name).error.rmse] for name in ("gaussian", "transport")]
    what = "count of 40 patients"
    count = patients()
    laws = additive.counts(0.5, 0.2, 40, 5, 20)
    rows += _general(what, ap.plan(count, "wasserstein").noise.scale * EPSILON, "", DELTA)
    rows += _general(what, additive.nearly(laws, 5, DELTA / 2), ", δ/2 of the mass left out", DELTA / 2)
    rows.append([what, f"{GENERAL}, Laplace noise (`wasserstein`)", ap.plan(count, "wasserstein").error.rmse])
    rows += [[what, f"`{name}`", ap.plan(count, name).error.rmse] for name in ("gaussian", "laplace", "optimal", "transport")]
    columns = {"statistic": "text", "mechanism": "text", "root mean square error": "number"}
    return Table.of("additive", f"Additive noise, ε = {EPSILON:g}, δ = {DELTA:g}", columns, rows)  # type: ignore[arg-type]


GENERAL = "general Wasserstein mechanism"


def _general(what: str, distance: float, words: str, delta: float) -> list[Row]:
    """Their Gaussian noise, by the bound that they prove and by the exact divergence, which their coupling allows as well."""
    return [
        [what, f"{GENERAL}, Gaussian noise{words}", additive.gaussian_scale(distance, EPSILON, delta)],
        [what, f"{GENERAL}, Gaussian noise{words}, exact δ", additive.exact_scale(distance, EPSILON, delta)],
    ]


def normal_average() -> Any:
    exact = {"mean": 0.0, "sd": 0.0, "slope": 0.0}
    assumed = ap.Gaussian(
        mean={"income": 60_000}, sd={"weight": 25, "income": 30_000}, correlation={("weight", "income"): 0.3}, tolerance=exact
    )
    secret = ap.Secret("mean(income)", between=(20_000, 200_000), within=1_000)
    return problem("avg(weight)", secret, assumed, 10_000)


def patients() -> Any:
    assumed = ap.Counts(sensitive="smoker", given={"readmitted = 1": {"yes": 0.5, "no": 0.2}})
    secret = ap.Secret("count(smoker = 'yes')", between=(5, 20), within=5)
    return problem("count(*) filter (where readmitted = 1)", secret, assumed, 40)


def problem(query: str, secret: ap.Secret, assumed: Any, n: int) -> Any:
    asked = tuple(ap.queries.sql.parse_queries(query))
    return ap.Problem(queries=asked, secrets=(secret,), epsilon=EPSILON, delta=DELTA, n=n, theta=(assumed,))


# ---------------------------------------------------------------------------------------------------------------- influence


def stays(p: float) -> MarkovChain:
    return MarkovChain((0.5, 0.5), ((p, 1 - p), (1 - p, p)))


def influence(length: int = 6) -> Table:
    rows: list[Row] = []
    for p in (0.6, 0.9):
        for b in (0.1, 0.5, 1.0):
            shapes = [(x, y) for x in range(length) for y in range(length) if x or y]
            rows.append(
                [
                    f"stays with {p:g}, b = {b:g}",
                    additive.optimum(((p, 1 - p), (1 - p, p)), length, b),
                    chain_epsilon([stays(p)], length, b),
                    chain_loss(stays(p), length, b, shapes),
                    length * b,
                ]
            )
    columns = {
        "chain": "text",
        "worst of all b-private mechanisms": "number",
        "ratio recursion": "number",
        "quilts": "number",
        "group": "number",
    }
    title = f"What a mechanism that is b-private for one entry tells about one of {length} entries: the loss"
    return Table.of("influence", title, columns, rows)  # type: ignore[arg-type]


def many_counts(length: int = 100) -> Table:
    rows: list[Row] = []
    for p in (0.6, 0.9):
        for releases, words in ((1, "1 count"), (10, "10 counts")):
            published = chain_score(stays(p), length, EPSILON / releases).sigma
            together = releases * chain_score(stays(p), length, EPSILON).sigma
            ours = releases / chain_budget([stays(p)], length, EPSILON)
            rows.append([f"stays with {p:g}, {words}", published, together, ours])
    columns = {
        "chain": "text",
        "quilts, ε split": "number",
        "our quilts, one for all": "number",
        "ratio recursion": "number",
    }
    return Table.of("many-counts", f"Scale of the noise on each count, T = {length}, ε = {EPSILON:g} in all", columns, rows)  # type: ignore[arg-type]
