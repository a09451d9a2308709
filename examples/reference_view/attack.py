"""Property inference from models of all rows and of views: `python -m examples.reference_view.attack DIRECTORY [--out FILE]`.

Somebody trains a model on a table of 8,000 Adult rows and hands it out. The adversary wants to know something about a column of
that table: its mean age, its mean hours, how far apart the ages of its men and women are. It knows the population, how tables
are drawn and how models are trained, makes *shadow* tables of both kinds, and fits a linear discriminant to what their models
hold.

What must never change: targets are fresh draws, whose kind a fair coin decides, so that whoever learns nothing is right
Bin(targets, 1/2) times; models of views are attacked with shadow models of views; the adversary gets the whole fitted object.

Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import attrpriv as ap
from examples.adult.attack import Guesses
from examples.reference_view.tables import (
    Draws,
    Floats,
    Population,
    Property,
    Whole,
    design,
    halves,
    kept,
    kinds,
    right_answers,
)

RESULTS = Path(__file__).with_name("results.json")
ROWS = 8_000
PROBE = 300
INCOME = "income_>50K"

SECRETS: Mapping[tuple[str, ...], Property] = {
    ("age",): Property("mean(age): 38.0 or 39.4", lambda s: [s[0]], ([38.0], [39.4]), [0.02]),
    ("hours_per_week",): Property("mean(hours): 39.8 or 41.0", lambda s: [s[0]], ([39.8], [41.0]), [0.02]),
    # How much older the men are, at the same share of women and the same mean age of all.
    ("age", "sex"): Property(
        "men older by 1.0 or 4.0 years",
        lambda s: [float(s[1] == "Female"), s[0], s[0] * float(s[1] == "Female")],
        tuple([0.33, 38.6, 0.33 * (38.6 - 0.67 * gap)] for gap in (1.0, 4.0)),  # type: ignore[arg-type]
        [0.001, 0.05, 0.05],
    ),
}


def policy_of(hidden: Sequence[str], source: Path | pd.DataFrame, least_density: float = 0.8) -> ap.Policy:
    """Hide everything about these columns: from a file of public records, or from their shares, stated as if exact."""
    of_values: dict[str, Any] = {"file": str(source)} if isinstance(source, Path) else {"shares": _shares(hidden, source)}
    reference = {**of_values, "least_density": least_density, "failure": 1e-6, "rarest_event": 1}
    return ap.Policy(
        epsilon=1.0,
        delta=1e-6,
        protect=[ap.Secret(f"columns({', '.join(hidden)})")],
        reference=ap.Reference.model_validate(reference),
    )


def _shares(hidden: Sequence[str], public: pd.DataFrame) -> dict[str, Any]:
    found = public.groupby(list(hidden)).size() / len(public)
    keys = [key if isinstance(key, tuple) else (key,) for key in found.index]
    values = [[one if isinstance(one, str) else int(one) for one in key] for key in keys]
    return {", ".join(hidden): {"values": values, "shares": [float(share) for share in found]}}


# -------------------------------------------------------------------------------------------------------------- the models


def naive_bayes() -> Any:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


def regression() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))


def forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=20, max_depth=10, min_samples_leaf=5, random_state=0, n_jobs=1)


def boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=100, random_state=0)


MODELS: Mapping[str, Callable[[], Any]] = {
    "naive Bayes": naive_bayes,
    "scaler + logistic regression": regression,
    "random forest": forest,
}


def inside(model: Any, probe: Floats) -> Floats:
    """What somebody who receives a fitted model reads in it: its numbers, and for trees what they do."""
    if hasattr(model, "theta_"):
        return np.concatenate([model.theta_.ravel(), model.var_.ravel(), model.class_prior_])
    if hasattr(model, "named_steps"):
        scaler, regression = model[0], model[1]
        return np.concatenate([scaler.mean_, scaler.scale_, regression.coef_.ravel(), regression.intercept_])
    width = probe.shape[1]
    trees = [tree.tree_ for tree in model.estimators_]
    splits = sum(np.bincount(tree.feature[tree.feature >= 0], minlength=width) for tree in trees)
    leaves = model.apply(probe)
    sizes = np.mean([tree.weighted_n_node_samples[leaves[:, k]] for k, tree in enumerate(trees)], axis=0)
    first = np.concatenate([_first_splits(tree) for tree in trees])
    answers = model.predict_proba(probe)[:, 1]
    return np.concatenate([model.feature_importances_, splits, np.log(sizes), first, answers])


def _first_splits(tree: Any) -> Floats:
    """Which share of a tree's rows goes to the left at the root, and which share of them has the label."""
    left = tree.children_left[0]
    share = tree.weighted_n_node_samples[left] / tree.weighted_n_node_samples[0]
    return np.array([share, tree.value[0, 0, -1], tree.value[left, 0, -1]])


# ---------------------------------------------------------------------------------------------------------- the experiment


@dataclass(frozen=True)
class Outcome(Guesses):
    """One secret, one kind of model, one kind of training rows: how often the adversary is right, how often the model is."""

    secret: str
    model: str
    trained_on: str
    right: int
    targets: int
    rows: int
    accuracy: float


@dataclass(frozen=True)
class Material:
    """The population as numbers, and rows to measure accuracy on, which no table has."""

    population: Population
    numbers: Floats
    label: Whole
    test: tuple[Floats, Whole]
    probe: Floats

    @classmethod
    def of(cls, public: pd.DataFrame, others: pd.DataFrame, hidden: tuple[str, ...], test_rows: int) -> Material:
        both = design(pd.concat([others, public], ignore_index=True))
        label = both[INCOME].to_numpy(np.int64)
        numbers = both.drop(columns=[name for name in both if str(name).startswith("income")]).to_numpy(np.float64)
        n = len(others)
        test = numbers[n : n + test_rows], label[n : n + test_rows]
        return cls(Population(others, hidden), numbers[:n], label[:n], test, numbers[-PROBE:])


def experiment(
    material: Material, told: Property, keep: Whole, *, shadows: int, targets: int, n: int, generator: np.random.Generator
) -> list[Outcome]:
    """Draw tables and views, train every model on each, attack."""
    draws, high = Draws.of(material.population, told, n), kinds(shadows, targets, generator)
    found: dict[tuple[str, str], list[Floats]] = {(model, kind): [] for model in MODELS for kind in ("all rows", "view")}
    accuracy: dict[tuple[str, str], list[float]] = {key: [] for key in found}
    for number, is_high in enumerate(high):
        if sys.stderr.isatty():
            print(f"\r{told.name}: table {number + 1} of {len(high)} ", end="", file=sys.stderr)
        rows = material.population.rows(draws.counts(bool(is_high), generator), generator)
        view = rows[kept(material.population.cell[rows], keep, generator.random(n))]
        for kind, chosen in (("all rows", rows), ("view", view)):
            for name, make in MODELS.items():
                model = make().fit(material.numbers[chosen], material.label[chosen])
                found[name, kind].append(inside(model, material.probe))
                if number >= shadows:
                    accuracy[name, kind].append(float(np.mean(model.predict(material.test[0]) == material.test[1])))
    size = {"all rows": n, "view": int(keep.sum())}
    return [
        Outcome(
            told.name, *key, right_answers(np.array(seen), high, shadows), targets, size[key[1]], float(np.mean(accuracy[key]))
        )
        for key, seen in found.items()
    ]


def as_markdown(outcomes: Sequence[Outcome]) -> str:
    """The results as a table: the attack before and after, the accuracy before and after."""
    lines = [
        "| adversary asks | model | attack, all rows | attack, view | model, all rows | model, view |",
        "|---|---|---|---|---|---|",
    ]
    for before in outcomes:
        if before.trained_on != "all rows":
            continue
        (after,) = (one for one in outcomes if (one.secret, one.model) == (before.secret, before.model) and one is not before)
        low, high = after.attack_interval()
        lines.append(
            f"| {before.secret} | {before.model} | {before.attack:.1%} | {after.attack:.1%} ({low:.0%} to {high:.0%}) | "
            f"{before.accuracy:.1%} | {after.accuracy:.1%} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Attack models of Adult tables and of their reference views.")
    parser.add_argument("directory", type=Path, help="where adult.data and adult.test are")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"rows of a table; default {ROWS}")
    parser.add_argument("--shadows", type=int, default=100, help="tables the adversary learns from; default 100")
    parser.add_argument("--targets", type=int, default=200, help="tables that are attacked; default 200")
    parser.add_argument("--secrets", default="", help="only those whose hidden columns are these, with commas; default: all")
    parser.add_argument("--seed", type=int, help="default: a new one")
    parser.add_argument("--out", type=Path, default=RESULTS, help="default results.json beside this script")
    options = parser.parse_args(arguments)
    public, others = halves(options.directory)
    seed = secrets.randbits(32) if options.seed is None else options.seed
    started = time.monotonic()
    outcomes: list[Outcome] = []
    for number, (hidden, told) in enumerate(SECRETS.items()):
        if options.secrets and tuple(options.secrets.split(",")) != hidden:
            continue
        material = Material.of(public, others, hidden, test_rows=10_000)
        with tempfile.TemporaryDirectory() as place:
            public.to_parquet(Path(place) / "public.parquet", index=False)
            keep = material.population.keep(policy_of(hidden, Path(place) / "public.parquet"), options.rows)
        sizes = {"shadows": options.shadows, "targets": options.targets, "n": options.rows}
        outcomes += experiment(material, told, keep, generator=np.random.default_rng([seed, number]), **sizes)
    found = {
        "rows": options.rows,
        "shadows": options.shadows,
        "targets": options.targets,
        "seed": seed,
        "outcomes": [vars(outcome) for outcome in outcomes],
    }
    options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(as_markdown(outcomes))
    print(f"{time.monotonic() - started:.0f} s; wrote {options.out.name}")


if __name__ == "__main__":
    main()
