"""Property inference on the Adult data: `python -m examples.adult.attack DIRECTORY [--out FILE]`.

Somebody trains a model on a table and hands it out. The adversary wants to know whether 27 or 38 in a hundred rows of the table
were women, and knows everything else: the population (all Adult rows), how tables are drawn from it, how models are trained. So
the adversary draws *shadow tables* of both kinds, trains *shadow models* on them in the same way, and learns from their
parameters to tell the two kinds apart.

What must never change:

* targets are fresh draws, attacked by an adversary who has seen only shadows. Each target's share is a fair coin's choice, so
  that whoever learns nothing is right Bin(targets, 1/2) times, exactly.
* models of views are attacked with shadow models of views: the adversary knows that a view is used.
* a view comes out of `Session.view`, with a ledger of its own. Its key is from the operating system, so a seed repeats the
  tables and never the views.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy.stats import binom, binomtest

import attrpriv as ap
from examples.adult.load import Adult, load_or_exit
from examples.adult.models import MODELS, Encoded, Flags, Floats

POLICY = Path(__file__).with_name("adult.yaml")
RESULTS = Path(__file__).with_name("results.json")
SHARES = (0.27, 0.38)
ROWS = 12_000
RIDGE = 1e-3

Derive = Callable[[Any], Any]
"""What a model is trained on, made from the owner's table."""


def draw_table(adult: Any, share: float, rows: int, generator: np.random.Generator) -> Any:
    """A table with this share of women: rows of either sex without replacement, in random order."""
    woman = np.asarray(pc.equal(adult["sex"], "Female").to_numpy())
    women = round(rows * share)
    chosen = [
        generator.choice(np.flatnonzero(woman == sex), k, replace=False) for sex, k in ((True, women), (False, rows - women))
    ]
    return adult.take(generator.permutation(np.concatenate(chosen)))


def all_rows(table: Any) -> Any:
    return table


def view_of(policy: ap.Policy) -> Derive:
    """The secret-free view of a table, as a user draws it."""

    def view(table: Any) -> Any:
        with tempfile.TemporaryDirectory() as place:
            out = Path(place) / "view.parquet"
            with ap.Session(table, policy, ledger=Path(place) / "adult.ledger") as session:
                session.view(out=out)
            return pq.read_table(out)

    return view


@dataclass(frozen=True)
class Adversary:
    """A linear discriminant between the parameters of two kinds of shadow models."""

    direction: Floats
    middle: Floats

    @classmethod
    def trained(cls, parameters: Floats, high: Flags) -> Self:
        centres = parameters[~high].mean(axis=0), parameters[high].mean(axis=0)
        noise = parameters - np.where(high[:, None], centres[1], centres[0])
        scale = noise.std(axis=0) + 1e-12
        within = np.cov(noise / scale, rowvar=False) + RIDGE * np.eye(len(scale))
        direction = np.linalg.solve(within, (centres[1] - centres[0]) / scale) / scale
        return cls(direction, (centres[0] + centres[1]) / 2)

    def says_high(self, parameters: Floats) -> Flags:
        return np.asarray((parameters - self.middle) @ self.direction > 0)


class Guesses:
    """How often an adversary was right, and what that says."""

    right: int
    targets: int

    @property
    def attack(self) -> float:
        return self.right / self.targets

    def attack_interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The exact binomial (Clopper-Pearson) interval."""
        found = binomtest(self.right, self.targets).proportion_ci(confidence, method="exact")
        return float(found.low), float(found.high)

    def is_a_coin(self, alarms: float) -> bool:
        """Whether the adversary does as well as a coin, by a test that a coin fails with at most this probability."""
        return abs(self.right - self.targets / 2) <= coin_bound(self.targets, alarms)


@dataclass(frozen=True)
class Outcome(Guesses):
    """One kind of model, trained on one kind of table: how often the adversary is right, how often the model is."""

    model: str
    trained_on: str
    right: int
    targets: int
    accuracy: float
    """of the model on the test rows, averaged over the targets"""
    accuracy_sd: float
    """from target to target"""


def coin_bound(tosses: int, alarms: float) -> float:
    """The least b with P(|Bin(tosses, 1/2) - tosses/2| > b) <= alarms."""
    return float(tosses / 2 - binom.ppf(alarms / 2, tosses, 0.5))


def experiment(
    adult: Adult, derived: Mapping[str, Derive], *, rows: int, shadows: int, targets: int, generator: np.random.Generator
) -> list[Outcome]:
    """Draw tables, train every model on everything derived from each, attack. The first tables are the shadows."""
    high = np.concatenate([np.arange(shadows) % 2 == 1, generator.random(targets) < 0.5])
    test = Encoded.of(adult.test)
    parameters: dict[tuple[str, str], list[Floats]] = {(model, kind): [] for model in MODELS for kind in derived}
    accuracies: dict[tuple[str, str], list[float]] = {key: [] for key in parameters}
    for number, is_high in enumerate(high):
        _show_progress(number, len(high))
        table = draw_table(adult.train, SHARES[int(is_high)], rows, generator)
        for kind, derive in derived.items():
            encoded = Encoded.of(derive(table))
            for name, model in MODELS.items():
                fitted = model.fit(encoded)
                parameters[name, kind].append(fitted.parameters)
                if number >= shadows:
                    accuracies[name, kind].append(float(np.mean(fitted.predict(test) == test.rich)))
    return [_outcome(*key, np.array(found), high, shadows, accuracies[key]) for key, found in parameters.items()]


def _outcome(
    model: str, kind: str, parameters: Floats, high: npt.NDArray[np.bool_], shadows: int, accuracies: Sequence[float]
) -> Outcome:
    adversary = Adversary.trained(parameters[:shadows], high[:shadows])
    right = int(np.sum(adversary.says_high(parameters[shadows:]) == high[shadows:]))
    return Outcome(model, kind, right, len(accuracies), float(np.mean(accuracies)), float(np.std(accuracies, ddof=1)))


def _show_progress(number: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\rtable {number + 1} of {total}", end="\n" if number + 1 == total else "", file=sys.stderr)


def as_markdown(outcomes: Sequence[Outcome]) -> str:
    """The results as a table."""
    lines = ["| model | trained on | attack is right | 95% interval | model is right |", "|---|---|---|---|---|"]
    for outcome in outcomes:
        low, high = outcome.attack_interval()
        shown = (
            f"{outcome.right} of {outcome.targets} ({outcome.attack:.1%}) | {low:.1%} to {high:.1%} | {outcome.accuracy:.2%}"
        )
        lines.append(f"| {outcome.model} | {outcome.trained_on} | {shown} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Attack models of Adult tables and of their secret-free views.")
    parser.add_argument("directory", type=Path, help="where adult.data and adult.test are")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"rows of a table; default {ROWS}")
    parser.add_argument("--shadows", type=int, default=500, help="tables the adversary learns from; default 500")
    parser.add_argument("--targets", type=int, default=1000, help="tables that are attacked; default 1000")
    parser.add_argument("--seed", type=int, help="repeats the tables, not the views; default: a new one")
    parser.add_argument("--out", type=Path, default=RESULTS, help="default results.json beside this script")
    options = parser.parse_args(arguments)
    adult = load_or_exit(options.directory)
    seed = np.random.SeedSequence(options.seed).entropy
    started = time.monotonic()
    outcomes = experiment(
        adult,
        {"all rows": all_rows, "view": view_of(ap.Policy.load(POLICY))},
        rows=options.rows,
        shadows=options.shadows,
        targets=options.targets,
        generator=np.random.default_rng(seed),
    )
    design = {"rows": options.rows, "shares": SHARES, "shadows": options.shadows, "targets": options.targets, "seed": str(seed)}
    majority = float(np.mean(~Encoded.of(adult.test).rich))
    found = {**design, "majority": majority, "outcomes": [vars(outcome) for outcome in outcomes]}
    options.out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(as_markdown(outcomes))
    print(f"{time.monotonic() - started:.0f} s; wrote {options.out.name}")


if __name__ == "__main__":
    main()
