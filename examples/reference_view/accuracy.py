"""What the view costs a model: `python -m examples.reference_view.accuracy DIRECTORY [--out FILE]`.

The table is the first 16,000 rows after the public half of Adult; accuracy is measured on those after it. Models are trained on
all rows, on views, and on as many rows drawn at random: the last tells what fewer rows cost, whatever is hidden. Draws have
seeds, so that the numbers repeat. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from examples.reference_view.attack import INCOME, SECRETS, boosting, policy_of, regression
from examples.reference_view.tables import Population, Whole, design, halves, kept

RESULTS = Path(__file__).with_name("accuracies.json")
TABLE = 16_000
LEARNERS: Mapping[str, Callable[[], Any]] = {"scaler + logistic regression": regression, "boosting": boosting}


@dataclass(frozen=True)
class Accuracy:
    """Of one kind of model, in shares of right answers on the rows held out; averages over the draws."""

    hidden: str
    source: str
    model: str
    rows: int
    all_rows: float
    view: float
    random_rows: float
    spread: float
    """the largest standard deviation from draw to draw, of views and of random rows"""


def accuracies(
    public: pd.DataFrame, others: pd.DataFrame, hidden: Sequence[str], *, stated: bool, draws: int, seed: int
) -> list[Accuracy]:
    keep, source = keeps(public, others, hidden, stated=stated), "stated shares" if stated else "public records"
    numbers = design(others)
    label = numbers[INCOME].to_numpy(np.int64)
    values = numbers.drop(columns=[name for name in numbers if str(name).startswith("income")]).to_numpy(np.float64)
    cell = Population(others, tuple(hidden)).cell[:TABLE]
    generator = np.random.default_rng(seed)
    views = [kept(cell, keep, generator.random(TABLE)) for _ in range(draws)]
    few = [generator.permutation(TABLE)[: keep.sum()] for _ in range(draws)]
    found = []
    for name, make in LEARNERS.items():

        def score(rows: Whole, make: Callable[[], Any] = make) -> float:
            model = make().fit(values[rows], label[rows])
            return float(np.mean(model.predict(values[TABLE:]) == label[TABLE:]))

        shown, random = ([score(rows) for rows in chosen] for chosen in (views, few))
        spread = float(max(np.std(shown, ddof=1), np.std(random, ddof=1)))
        whole = score(np.arange(TABLE))
        means = float(np.mean(shown)), float(np.mean(random))
        found.append(Accuracy(", ".join(hidden), source, name, int(keep.sum()), whole, *means, spread))
    return found


def keeps(public: pd.DataFrame, others: pd.DataFrame, hidden: Sequence[str], *, stated: bool) -> Whole:
    """How many rows of each value the view keeps: from public records, or from their shares, stated as if they were exact."""
    people = Population(others, tuple(hidden))
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "public.parquet"
        public.to_parquet(path, index=False)
        return people.keep(policy_of(hidden, public if stated else path), TABLE)


def as_markdown(found: Sequence[Accuracy]) -> str:
    lines = ["| hidden | from | rows kept | model | all rows | view | as many random rows |", "|---|---|---|---|---|---|---|"]
    lines += [
        f"| {one.hidden} | {one.source} | {one.rows:,} ({one.rows / TABLE:.1%}) | {one.model} | "
        f"{one.all_rows:.2%} | {one.view:.2%} | {one.random_rows:.2%} |"
        for one in found
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Accuracy of models of an Adult table and of its reference views.")
    parser.add_argument("directory", type=Path, help="where adult.data and adult.test are")
    parser.add_argument("--draws", type=int, default=10, help="views, and sets of random rows; default 10")
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    parser.add_argument("--out", type=Path, default=RESULTS, help="default accuracies.json beside this script")
    options = parser.parse_args(arguments)
    public, others = halves(options.directory)
    found = [
        one
        for stated in (False, True)
        for hidden in SECRETS
        for one in accuracies(public, others, hidden, stated=stated, draws=options.draws, seed=options.seed)
    ]
    options.out.write_text(json.dumps([vars(one) for one in found], indent=2) + "\n", encoding="utf-8")
    print(as_markdown(found))
    print(f"wrote {options.out.name}")


if __name__ == "__main__":
    main()
