"""Tables to be shared whose mean age must not show: the quantised mean of `lin2024summary` against a reference view.

The people are those of examples/reference_view; no person is real. Tables differ in how old they are. Quantising moves all
ages by the same amount, so that their mean is the middle of its bin; the reference view keeps a public number of rows of each
age. Three attackers guess the table's own mean age: by the mean that is shown, by the smallest age that is shown (everybody
knows that people start at 18), and by a regression on means, spreads and correlations of all columns that are shown, fitted on
other tables of the same kind.
"""

from __future__ import annotations

import importlib.util
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import attrpriv as ap
from bench.peers.budget import Budget
from bench.peers.results import Cell, Table, mean_of, measured

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "reference_view" / "generate.py"
ROWS, PUBLIC, LATER = 8_000, 60_000, 20_000
TILT = 0.01
LEARN, TRY, MODELS = 100, 100, 5
WITHIN = 0.25
FIRST_AGE = 18
BINS = (1.0, 4.0)


def _bins(width: float) -> str:
    return f"mean age in bins of {width:g}"


# The chance of a guess within `WITHIN`, where every mean in a bin is as likely.
PROMISED = {_bins(width): 2 * WITHIN / width for width in BINS}

Share = Callable[[Any], Any]
Array = np.ndarray[Any, np.dtype[np.float64]]


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference_view_people", EXAMPLE)
    if spec is None or spec.loader is None:
        raise FileNotFoundError("examples/reference_view/generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def quantised(seed: int, budget: Budget) -> list[Table]:
    people, random = example().people, np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="attrpriv-peers-") as folder:
        census = Path(folder) / "census.parquet"
        people(PUBLIC, random).to_parquet(census, index=False)
        ways: dict[str, Share] = {
            "as it is": lambda table: table,
            **{_bins(width): _quantiser(width) for width in BINS},
            "reference view of age": lambda table: view(table, census, Path(folder)),
        }
        tables = [people(ROWS, random, tilt=random.uniform(-TILT, TILT)) for _ in range(LEARN + TRY)]
        later = people(LATER, random)
        rows, uses = [], []
        for name, share in ways.items():
            budget.say(f"{name}: {LEARN + TRY} tables")
            shown = [share(table) for table in tables]
            rows.append([name, PROMISED.get(name), *attacked(tables, shown)])
            uses.append([name, *useful(tables, shown, later)])
    true = np.array([table["age"].mean() for table in tables])
    rows.append(["nothing", None, *[_hits(np.full(TRY, np.median(true[:LEARN])), true[LEARN:])] * 3])
    attack = {
        "what is shared": "text",
        "2t/s": "percent",
        "the mean shown": "percent",
        "the smallest age shown": "percent",
        "all columns": "percent",
    }
    title = f"The table's mean age guessed within {WITHIN:g} years, {TRY} tables of {ROWS:,} made-up people"
    use = {"what is shared": "text", "rows": "whole", "age moved by, years": "number", "accuracy of a model": "percent"}
    return [
        Table.of("guessed", title, attack, rows),  # type: ignore[arg-type]
        Table.of("useful", "What is left of the table", use, uses),  # type: ignore[arg-type]
    ]


def _quantiser(width: float) -> Share:
    def moved(table: Any) -> Any:
        mean = float(table["age"].mean())
        middle = (math.floor(mean / width) + 0.5) * width
        return table.assign(age=table["age"] + (middle - mean))

    return moved


def view(table: Any, census: Path, folder: Path) -> Any:
    policy = ap.Policy(
        epsilon=1.0,
        delta=1e-6,
        protect=[ap.Secret("columns(age)")],
        reference=ap.Reference(file=str(census), least_density=0.75),
    )
    with tempfile.TemporaryDirectory(dir=folder) as place, ap.Session(table, policy, ledger=Path(place) / "ledger") as session:
        return session.view().execute()


# ----------------------------------------------------------------------------------------------------------------- attacked


def attacked(tables: list[Any], shown: list[Any]) -> list[Cell]:
    from sklearn.linear_model import RidgeCV

    true = np.array([table["age"].mean() for table in tables])
    means = np.array([one["age"].mean() for one in shown])
    known, asked = slice(0, LEARN), slice(LEARN, LEARN + TRY)
    by_mean = _by_neighbours(means[known], true[known], means[asked])
    first = np.array([one["age"].min() for one in shown])
    by_first = means - (first - FIRST_AGE)
    inputs = np.array([features(one) for one in shown])
    inputs = (inputs - inputs[known].mean(axis=0)) / np.maximum(inputs[known].std(axis=0), 1e-9)
    learned = RidgeCV(alphas=np.geomspace(1e-4, 1e4, 25)).fit(inputs[known], true[known]).predict(inputs[asked])
    return [_hits(guess, true[asked]) for guess in (by_mean, by_first[asked], learned)]


def _by_neighbours(seen: Array, true: Array, asked: Array, k: int = 9) -> Array:
    """The median of the true means of those tables whose shown mean is nearest."""
    return np.array([np.median(true[np.argsort(abs(seen - one), kind="stable")[:k]]) for one in asked])


def features(table: Any) -> list[float]:
    import pandas as pd

    numbers = pd.get_dummies(table).astype(float).reindex(columns=COLUMNS, fill_value=0.0)
    return [*numbers.mean(), *numbers.std(), *numbers.corr()["age"].fillna(0.0).drop("age")]


COLUMNS = (
    "age",
    "education",
    "hours",
    "married",
    "high_income",
    "sex_Female",
    "job_office",
    "job_shop",
    "job_trade",
    "job_care",
)


def _hits(guess: Array, true: Array) -> Cell:
    """With Wilson's interval."""
    n, z = len(true), 1.96
    p = float((abs(guess - true) <= WITHIN).mean())
    middle, half = p + z**2 / (2 * n), z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return measured(p, max(0.0, (middle - half) / (1 + z**2 / n)), min(1.0, (middle + half) / (1 + z**2 / n)))


# ------------------------------------------------------------------------------------------------------------------- useful


def useful(tables: list[Any], shown: list[Any], later: Any) -> list[Cell | float]:
    """Rows, how far ages were moved (the Wasserstein distance of the two columns), and a model of a high income."""
    from scipy.stats import wasserstein_distance

    chosen = range(LEARN, LEARN + MODELS)
    moved = [wasserstein_distance(tables[k]["age"], shown[k]["age"]) for k in range(LEARN, LEARN + TRY)]
    scores = [accuracy(shown[k], later) for k in chosen]
    return [float(np.mean([len(one) for one in shown])), mean_of(moved), mean_of(scores)]


def accuracy(rows: Any, later: Any) -> float:
    import pandas as pd
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def split(table: Any) -> tuple[Any, Any]:
        inputs = pd.get_dummies(table).astype(float).reindex(columns=COLUMNS, fill_value=0.0).drop(columns="high_income")
        return inputs, table["high_income"]

    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(*split(rows))
    return float(model.score(*split(later)))
