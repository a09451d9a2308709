"""One measurement in the environment of one library: from a Parquet file to a number, in a process that does nothing else.

Reads {"library": ..., "path": ..., "rows": ..., "what": "average" or "count"} and prints the value, the processor seconds of
this process and of those that it started, and its peak memory. Imports are part of what is measured: whoever wants one number
pays them.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

LOW, HIGH = 0.0, 200.0


def load(name: str) -> Any:
    """Which libraries there are differs between environments."""
    return importlib.import_module(name)


def column(path: str) -> Any:
    return load("pyarrow.parquet").read_table(path, columns=["weight"])["weight"]


def duckdb(path: str, rows: int, what: str) -> float:
    connection = load("duckdb").connect()
    asked = "avg(weight)" if what == "average" else "count(*) FILTER (WHERE weight > 100)"
    return float(connection.execute(f"SELECT {asked} FROM read_parquet(?)", [path]).fetchone()[0])


def attrpriv(path: str, rows: int, what: str, mechanism: str) -> float:
    ap = load("attrpriv")
    if what == "average":
        policy = ap.Policy(
            epsilon=1.0,
            delta=1e-6,
            protect=[ap.Secret("mean(income)", between=(20_000, 200_000), within=1_000)],
            assume=ap.Gaussian(
                mean={"income": 60_000},
                sd={"weight": 25, "income": 30_000},
                correlation={("weight", "income"): 0.3},
                tolerance={"mean": 0.01, "sd": 0.02, "slope": 0.05},
            ),
            bounds={"weight": (LOW, HIGH)},
            release=["avg(weight)"],
        )
    else:
        policy = ap.Policy(
            epsilon=1.0,
            delta=1e-6,
            protect=[ap.Secret("share(smoker = 'yes')", between=(0.2, 0.4), within=0.001)],
            assume=ap.Counts(sensitive="smoker", given={"weight > 100": {"yes": 0.25, "no": 0.2}}),
            release=["count(*) filter (where weight > 100)"],
        )
    with tempfile.TemporaryDirectory() as folder, ap.Session(path, policy, ledger=Path(folder) / "ledger") as session:
        return float(session.release(mechanism=mechanism).value)


def opendp(path: str, rows: int, what: str) -> float:
    dp, pl = load("opendp.prelude"), load("polars")
    dp.enable_features("contrib")
    fixed = {"invariant": "lengths"} if what == "average" else {}
    context = dp.Context.compositor(
        data=pl.scan_parquet(path),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=rows, **fixed)],
    )
    if what == "average":
        asked = context.query().select(pl.col("weight").fill_null(0.0).fill_nan(0.0).dp.mean((LOW, HIGH)))
    else:
        asked = context.query().filter(pl.col("weight") > 100.0).select(dp.len())
    return float(asked.release().collect().item())


def diffprivlib(path: str, rows: int, what: str) -> float:
    tools, values = load("diffprivlib").tools, column(path).to_numpy()
    if what == "average":
        return float(tools.mean(values, epsilon=1.0, bounds=(LOW, HIGH)))
    return float(tools.count_nonzero(values > 100.0, epsilon=1.0))


def smartnoise(path: str, rows: int, what: str) -> float:
    snsql, frame = load("snsql"), column(path).to_pandas().to_frame("weight")
    # By its own account an average costs three times the epsilon that is stated, and half as much delta again.
    share = 3.0 if what == "average" else 1.0
    about = {"name": "weight", "type": "float", "lower": LOW, "upper": HIGH}
    table = {"row_privacy": True, "rows": rows, "weight": about}
    reader = snsql.from_connection(
        frame, privacy=snsql.Privacy(epsilon=1 / share, delta=1e-6 / 1.5), metadata={"": {"people": {"people": table}}}
    )
    asked = (
        "AVG(weight) AS x FROM people.people" if what == "average" else "COUNT(*) AS x FROM people.people WHERE weight > 100"
    )
    epsilon, delta = reader.get_privacy_cost(f"SELECT {asked}")
    if not (abs(epsilon - 1) < 1e-9 and delta < 1.001e-6):
        raise ValueError(f"must cost epsilon 1 and delta 1e-6. Got {epsilon:g} and {delta:g}.")
    return float(reader.execute(f"SELECT {asked}")[1][0])


def pipelinedp(path: str, rows: int, what: str) -> float:
    dp = load("pipeline_dp")
    records = list(enumerate(column(path).to_pylist()))
    accountant = dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=1e-6)
    if what == "count":
        records = [record for record in records if record[1] > 100.0]
    parameters = dp.AggregateParams(
        metrics=[dp.Metrics.MEAN if what == "average" else dp.Metrics.COUNT],
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=LOW,
        max_value=HIGH,
        noise_kind=dp.NoiseKind.LAPLACE,
    )
    extractors = dp.DataExtractors(
        privacy_id_extractor=lambda record: record[0],
        partition_extractor=lambda record: 0,
        value_extractor=lambda record: record[1],
    )
    found = dp.DPEngine(accountant, dp.LocalBackend()).aggregate(records, parameters, extractors, public_partitions=[0])
    accountant.compute_budgets()
    return float(next(iter(found))[1][0])


def tumult(path: str, rows: int, what: str) -> float:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = load("pyspark.sql").SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").config("spark.log.level", "ERROR").getOrCreate()
    ta = load("tmlt.analytics")
    session = ta.Session.from_dataframe(
        privacy_budget=ta.PureDPBudget(1.0),
        source_id="people",
        dataframe=spark.read.parquet(path),
        protected_change=ta.AddOneRow(),
    )
    query = ta.QueryBuilder("people")
    asked = query.average("weight", LOW, HIGH) if what == "average" else query.filter("weight > 100").count()
    value, gateway = float(session.evaluate(asked, ta.PureDPBudget(1.0)).collect()[0][0]), spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()  # what the Java process took is known when it has ended
    gateway.proc.stdin.close()
    gateway.proc.wait()
    return value


LIBRARIES: dict[str, Callable[[str, int, str], float]] = {
    "duckdb": duckdb,
    "attrpriv gaussian": lambda path, rows, what: attrpriv(path, rows, what, "gaussian"),
    "attrpriv transport": lambda path, rows, what: attrpriv(path, rows, what, "transport"),
    "attrpriv laplace": lambda path, rows, what: attrpriv(path, rows, what, "laplace"),
    "opendp": opendp,
    "diffprivlib": diffprivlib,
    "smartnoise": smartnoise,
    "pipelinedp": pipelinedp,
    "tumult": tumult,
}


def peak(most: int) -> int:
    """Of this process alone, in bytes: Linux hands ru_maxrss on from the process that started this one."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
    except (OSError, StopIteration):
        return 1024 * most


def main() -> None:
    given = json.load(sys.stdin)
    value = LIBRARIES[given["library"]](given["path"], given["rows"], given["what"])
    own, started = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    used = sum(each.ru_utime + each.ru_stime for each in (own, started))
    print(json.dumps({"value": value, "seconds": used, "bytes": max(peak(own.ru_maxrss), 1024 * started.ru_maxrss)}))


if __name__ == "__main__":
    main()
