"""What one library has, each thing tried by a call: reads {"library": ...}, prints each call and what came of it.

A call is text that is run as it stands, so that what is shown is what was tried. `mentions` searches the files of the library:
where nothing is found there, a feature is not there under any of these words.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import re
import sys
import tempfile
import warnings
from pathlib import Path

PACKAGES = {
    "attrpriv": "attrpriv",
    "opendp": "opendp",
    "diffprivlib": "diffprivlib",
    "smartnoise": "snsql",
    "pipelinedp": "pipeline_dp",
    "tumult": "tmlt.analytics",
}
PROPERTY = "mentions: pufferfish|attribute privacy|distribution privacy|property inference"
AUDIT = "mentions: def [a-z_]*(attack|audit)|class [A-Za-z]*(Attack|Audit)"
SHARPER = r"mentions: class \w*(Concentrated|zCDP|Rho|PLD)"
VIEW = "mentions: reference view|class View|def view"

SET_UP = {
    "attrpriv": """
import attrpriv as ap, numpy as np, pandas as pd
rng = np.random.default_rng(1)
income = rng.normal(60_000, 30_000, 4_000)
people = pd.DataFrame({"income": income, "weight": 80 + 7.5 * (income - 60_000) / 30_000 + 24 * rng.normal(size=4_000)})
people["sex"] = np.where(rng.random(4_000) < 0.5, "F", "M")
people.to_parquet("people.parquet")
public = people.sample(8_000, replace=True, random_state=1)
public.to_parquet("public.parquet")
average = {"epsilon": 1.0, "delta": 1e-6, "bounds": {"weight": (0, 250)}, "protect": [ap.Secret("mean(income)", within=1_000)],
           "assume": ap.Gaussian(mean={"income": 60_000}, sd={"weight": 25, "income": 30_000},
                                 correlation={("weight", "income"): 0.3}, tolerance={"mean": 0.01, "sd": 0.02, "slope": 0.05})}
policy = ap.Policy(**average)
hidden = ap.Policy(epsilon=1.0, delta=1e-6, protect=[ap.Secret("columns(sex)")],
                   reference=ap.Reference(file="public.parquet", least_density=0.7))
def started(ledger, policy=policy):
    return ap.Session("people.parquet", policy, ledger=ledger)
session = started("people.ledger")
""",
    "opendp": """
import opendp.prelude as dp, polars as pl
dp.enable_features("contrib")
people = pl.LazyFrame({"id": list(range(1_000)), "weight": [float(k % 100) for k in range(1_000)], "city": ["a", "b"] * 500})
def context(**unit):
    return dp.Context.compositor(data=people, privacy_unit=dp.unit_of(**(unit or {"contributions": 1})),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=1e-6), split_evenly_over=1, margins=[dp.polars.Margin(max_length=1_000)])
""",
    "diffprivlib": """
import diffprivlib, numpy as np
weight = np.arange(1_000.0) % 100
""",
    "smartnoise": """
import snsql, pandas as pd
people = pd.DataFrame({"id": range(1_000), "weight": [float(k % 100) for k in range(1_000)], "city": ["a", "b"] * 500})
table = {"rows": 1_000, "id": {"type": "int", "private_id": True}, "weight": {"type": "float", "lower": 0, "upper": 100},
         "city": {"type": "string"}}
reader = snsql.from_connection(people, privacy=snsql.Privacy(epsilon=1.0, delta=1e-5), metadata={"": {"p": {"people": table}}})
""",
    "pipelinedp": """
import pipeline_dp as dp
rows = [(k, "ab"[k % 2], float(k % 100)) for k in range(1_000)]
extract = dp.DataExtractors(privacy_id_extractor=lambda r: r[0], partition_extractor=lambda r: r[1],
                            value_extractor=lambda r: r[2])
def aggregate(metric, public=("a", "b"), rows_of_a_person=1, **more):
    accountant = dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-6)
    asked = dp.AggregateParams(metrics=[metric], max_partitions_contributed=1, max_contributions_per_partition=rows_of_a_person,
                               min_value=0, max_value=100)
    found = dp.DPEngine(accountant, dp.LocalBackend()).aggregate(rows, asked, extract, public_partitions=public, **more)
    accountant.compute_budgets()
    return list(found)
""",
    "tumult": """
import tmlt.analytics as ta
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.log.level", "ERROR").getOrCreate()
people = spark.createDataFrame([(k, float(k % 100), "ab"[k % 2]) for k in range(200)], ["id", "weight", "city"])
def started(change):
    return ta.Session.from_dataframe(ta.ApproxDPBudget(1.0, 1e-6), "people", people, protected_change=change)
session, query = started(ta.AddOneRow()), ta.QueryBuilder("people")
""",
}

CALLS: dict[str, dict[str, str]] = {
    "a property of a column hidden behind an average": {
        "attrpriv": 'session.release("avg(weight)", mechanism="gaussian")',
        **dict.fromkeys(("opendp", "diffprivlib", "smartnoise", "pipelinedp", "tumult"), PROPERTY),
    },
    "real rows handed out, columns hidden": {
        "attrpriv": 'started("rows.ledger", hidden).view().execute()',
        **dict.fromkeys(("opendp", "diffprivlib", "smartnoise", "pipelinedp", "tumult"), VIEW),
    },
    "one person hidden": {
        "attrpriv": 'started("person.ledger", ap.Policy(**average, individuals={"epsilon": 1.0})).release("avg(weight)")',
        "opendp": "context().query().select(dp.len()).release().collect()",
        "diffprivlib": "diffprivlib.tools.mean(weight, epsilon=1.0, bounds=(0, 100))",
        "smartnoise": 'reader.execute("SELECT COUNT(*) AS n FROM p.people")',
        "pipelinedp": "aggregate(dp.Metrics.COUNT)",
        "tumult": "session.evaluate(query.count(), ta.PureDPBudget(0.1)).collect()",
    },
    "a person with several rows": {
        "attrpriv": 'ap.Policy(**average, individuals={"epsilon": 1.0, "rows": 3})',
        "opendp": "context(contributions=3).query().select(dp.len()).release().collect()",
        "smartnoise": 'reader.execute("SELECT COUNT(DISTINCT id) AS n FROM p.people")',
        "pipelinedp": "aggregate(dp.Metrics.COUNT, rows_of_a_person=3)",
        "tumult": "started(ta.AddMaxRows(3)).evaluate(query.count(), ta.PureDPBudget(0.1)).collect()",
        "diffprivlib": "mentions: user.level|privacy unit|contributions",
    },
    "groups that nobody named before": {
        "attrpriv": 'started("groups.ledger").release("SELECT sex, avg(weight) FROM data GROUP BY sex")',
        "opendp": 'context().query().group_by("city").agg(dp.len()).release().collect()',
        "smartnoise": 'reader.execute("SELECT city, COUNT(*) AS n FROM p.people GROUP BY city")',
        "pipelinedp": "aggregate(dp.Metrics.COUNT, public=None)",
        "tumult": 'session.evaluate(query.get_groups(["city"]), ta.ApproxDPBudget(0.1, 1e-7)).collect()',
        "diffprivlib": "mentions: group.?by",
    },
    "a median": {
        "attrpriv": 'started("median.ledger", hidden).release("median(weight)")',
        "opendp": 'context().query().select(pl.col("weight").fill_null(0.0).fill_nan(0.0).dp.median([0.0, 50.0, 100.0]))'
        ".release().collect()",
        "smartnoise": 'reader.execute("SELECT MEDIAN(weight) AS x FROM p.people")',
        "diffprivlib": "diffprivlib.tools.median(weight, epsilon=1.0, bounds=(0, 100))",
        "pipelinedp": "aggregate(dp.Metrics.PERCENTILE(50))",
        "tumult": 'session.evaluate(query.median("weight", 0, 100), ta.PureDPBudget(0.1)).collect()',
    },
    "a model, or principal components, with differential privacy": {
        "attrpriv": "mentions: LogisticRegression|def fit_private|dp_sgd",
        "opendp": "import opendp.extras.sklearn.decomposition",
        "diffprivlib": "diffprivlib.models.GaussianNB(epsilon=1.0, bounds=(0, 100)).fit(weight[:, None], weight > 50)",
        **dict.fromkeys(("smartnoise", "pipelinedp", "tumult"), "mentions: LogisticRegression|sklearn|dp_sgd"),
    },
    "SQL": {
        "attrpriv": 'started("sql.ledger").release("SELECT avg(weight) FROM data", mechanism="gaussian")',
        "opendp": 'context().query().sql("SELECT COUNT(*) FROM self").release()',
        "smartnoise": 'reader.execute("SELECT AVG(weight) AS x FROM p.people")',
        **dict.fromkeys(("diffprivlib", "pipelinedp", "tumult"), "mentions: def sql|parse_sql|sqlglot|SELECT .* FROM"),
    },
    "the budget refuses more than was stated": {
        "attrpriv": 'refuses: session.release("avg(income)", mechanism="gaussian")',
        "opendp": "refuses: c = context(); [c.query().select(dp.len()).release() for _ in range(2)]",
        "diffprivlib": "refuses: a = diffprivlib.BudgetAccountant(1.0, 0); "
        "[diffprivlib.tools.mean(weight, epsilon=0.9, bounds=(0, 100), accountant=a) for _ in range(2)]",
        "smartnoise": 'refuses: [reader.execute("SELECT COUNT(*) AS n FROM p.people") for _ in range(30)]',
        "pipelinedp": "refuses: a = dp.NaiveBudgetAccountant(1.0, 1e-6); a.compute_budgets(); "
        "a.request_budget(dp.aggregate_params.MechanismType.LAPLACE)",
        "tumult": "refuses: session.evaluate(query.count(), ta.ApproxDPBudget(2.0, 1e-7))",
    },
    "what was spent is on record for a later process": {
        "attrpriv": 'assert started("people.ledger").ledger.entries',
        "opendp": "import pickle; pickle.loads(pickle.dumps(context()))",
        "diffprivlib": "import pickle; assert pickle.loads(pickle.dumps(diffprivlib.BudgetAccountant(1.0, 0))).epsilon == 1",
        "smartnoise": "import pickle; pickle.loads(pickle.dumps(reader.odometer)).spent",
        "pipelinedp": "import pickle; pickle.loads(pickle.dumps(dp.NaiveBudgetAccountant(1.0, 1e-6)))",
        "tumult": "import pickle; pickle.loads(pickle.dumps(session))",
    },
    "the error is told before a row is read": {
        "attrpriv": 'assert ap.plan(policy.problem([ap.mean("weight")], 4_000, {}), "gaussian").error.rmse > 0',
        "opendp": "context().query().select(dp.len()).summarize(alpha=0.05)",
        "diffprivlib": "diffprivlib.mechanisms.Laplace(epsilon=1, sensitivity=1).variance(0)",
        "smartnoise": 'reader.get_simple_accuracy("SELECT COUNT(*) AS n FROM p.people", 0.05)',
        "pipelinedp": "dp.dp_computations.compute_dp_count_noise_std("
        "dp.dp_computations.ScalarNoiseParams(1, 0, 0, 1, None, None, 1, 2, dp.NoiseKind.LAPLACE))",
        "tumult": "session._noise_info(query.count(), ta.PureDPBudget(0.1))",
    },
    "noise on whole numbers": {
        "attrpriv": "from attrpriv.noise import whole_laplace; whole_laplace(1.0)",
        "opendp": "dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1.0)(0)",
        "diffprivlib": "diffprivlib.mechanisms.GaussianDiscrete(epsilon=1.0, delta=1e-6).randomise(1)",
        "smartnoise": 'assert isinstance(reader.execute("SELECT COUNT(*) AS n FROM p.people")[1][0], int)',
        "pipelinedp": "assert isinstance(aggregate(dp.Metrics.COUNT)[0][1][0], int)",
        "tumult": "from tmlt.core.random.discrete_gaussian import sample_dgauss; sample_dgauss(1)",
    },
    "a report for whoever approves": {
        "attrpriv": "from attrpriv.report.content import gather, report_html; "
        'report_html(gather(started("report.ledger"), {}, "avg(weight)"), "", "policy.yaml")',
        "pipelinedp": "from pipeline_dp.report_generator import ReportGenerator",
        **dict.fromkeys(("opendp", "diffprivlib", "smartnoise", "tumult"), r"mentions: class [A-Za-z]*Report\b|def report\b"),
    },
    "attacks on what is handed out": {
        "attrpriv": 'asked = policy.problem([ap.mean("weight")], 4_000, {}); '
        'ap.audit_release(ap.plan(asked, "gaussian"), asked, draws=2_000, tables=100, released=100, recorded=100)',
        **dict.fromkeys(("opendp", "diffprivlib", "smartnoise", "pipelinedp", "tumult"), AUDIT),
    },
    "a way to Spark (looked for, not run; Tumult was)": {
        "attrpriv": "from attrpriv.engines.remote import _open_spark",
        "pipelinedp": "dp.SparkRDDBackend",
        "smartnoise": "from snsql.sql.reader.spark import SparkReader",
        "tumult": "assert session",
        **dict.fromkeys(("opendp", "diffprivlib"), "mentions: pyspark"),
    },
    "sharper sums of many releases (zero-concentrated, privacy loss distributions)": {
        "attrpriv": SHARPER,
        "opendp": "dp.loss_of(rho=0.5)",
        "pipelinedp": "dp.PLDBudgetAccountant",
        "tumult": "ta.RhoZCDPBudget(0.5)",
        **dict.fromkeys(("diffprivlib", "smartnoise"), SHARPER),
    },
}


def files_of(package: str) -> list[Path]:
    found = importlib.util.find_spec(package)
    places = list(found.submodule_search_locations or []) if found else []
    return sorted(path for place in places for path in Path(place).rglob("*.py"))


def tried(call: str, names: dict[str, object], package: str) -> tuple[str, str]:
    """(yes, no or failed; what was seen)"""
    if call.startswith("mentions: "):
        pattern, files = re.compile(call.removeprefix("mentions: "), re.IGNORECASE), files_of(package)
        hits = [path for path in files if pattern.search(path.read_text(encoding="utf-8", errors="ignore"))]
        return ("see" if hits else "no", f"{len(hits)} of {len(files)} files")
    refuses = call.startswith("refuses: ")
    try:
        exec(call.removeprefix("refuses: "), names)
    except Exception as error:  # of any library, and of any kind: that is what is asked
        kind = type(error).__name__
        print(f"{call}: {kind}: {error}", file=sys.stderr)
        return ("yes" if refuses else "no", kind)
    return ("no" if refuses else "yes", "works")


def main() -> None:
    library = json.load(sys.stdin)["library"]
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    warnings.simplefilter("ignore")
    names: dict[str, object] = {}
    found = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        exec(SET_UP[library], names)
        for feature, calls in CALLS.items():
            if library in calls:
                answer, seen = tried(calls[library], names, PACKAGES[library])
                found[feature] = {"call": calls[library], "answer": answer, "seen": seen}
        os.chdir("/")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
