"""Ledgers of counts, sums, histograms, averages and releases of other libraries, against whoever chooses the law of a row.

The twin knows no theorem of ours. A row is of a category and has an event e and a value v, whose laws in each category are
stated; how e and v go together is chosen by a linear program, output by output, and so are laws within intervals. What may read
all of a row reads its category. All outputs are tried at which a factor can be largest: at each value of a count, for each set
of cells. The rows that change are independent, so that as many of them lose as many times as much.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

import attrpriv as ap
from attrpriv.errors import AttrprivError
from attrpriv.methods.choice.outside import curve_of, largest_b, plan_outside
from attrpriv.methods.laplace_sequence import proof
from attrpriv.methods.laplace_sequence.loss import Asked, row_loss
from attrpriv.methods.laplace_sequence.proof import CountHistory
from attrpriv.problem.problem import Problem
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries

Floats = NDArray[np.float64]
Ends = tuple[float, float]
VALUES = (0, 1, 3)
ATOMS = tuple(itertools.product((0, 1), VALUES))
ADDS: Mapping[str, Callable[[str, int, int], int]] = {
    "count(*) filter (where e = 1)": lambda _, e, v: e,
    "sum(v)": lambda _, e, v: v,
    "count(*) filter (where v >= 1)": lambda _, e, v: int(v >= 1),
    "count(*) filter (where v = 3)": lambda _, e, v: int(v == 3),
    "count(*) filter (where x = 'a')": lambda c, e, v: int(c == "a"),
}
OTHERS = ("a histogram", "avg(y)", "outside: whole rows", "outside: e = 1", "outside: v")
N, WIDTH = 10, 10.0
# A linear program is solved to about 1e-7.
SOLVED = 1e-6


class Ledger:
    """A random sequence, planned one after the other, each on top of what was released before."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        names = self.random.choice(["ab", "abc"])
        wide = self.random.choice([0.0, 0.05, 0.2])
        self.events = {name: self._box(2, wide)[1] for name in names}
        self.values = {name: self._box(3, wide) for name in names}
        if self.random.random() < 0.4:  # alone neither tells anything
            self.events = dict.fromkeys(names, self.events["a"])
            self.values = dict.fromkeys(names, self.values["a"])
        self.prior = dict(zip(names, (0.3, 0.45, 0.25) if len(names) > 2 else (0.4, 0.6), strict=True))
        self.apart = self.random.randint(1, 4)
        listed = {name: {"values": list(VALUES), "probabilities": list(law)} for name, law in self.values.items()}
        self.stated: dict[str, Any] = {
            "secrets": (ap.Secret("count(x = 'a')", within=self.apart),),
            "epsilon": self.random.choice([0.5, 2.0]),
            "n": N,
            "theta": (ap.Counts(sensitive="x", given={"e = 1": self.events, "v": listed}, prior=self.prior),),
            "bounds": {"y": (0.0, WIDTH)},
        }
        self.told: list[tuple[str, float]] = []
        """What was released, and its scale; of another library's, its b."""
        earlier = None
        for spend in (*(self.random.choice([0.3, 0.6]) for _ in range(self.random.randint(0, 2))), 1.0):
            what = self.random.choice([*ADDS, *OTHERS])
            try:
                found, size = self._planned(what, earlier, spend)
            except AttrprivError:  # nothing is left, or no rule leads on
                continue
            earlier = found
            self.told.append((what, size))

    def _box(self, size: int, wide: float) -> list[Ends]:
        weights = [self.random.random() + 0.05 for _ in range(size)]
        law = [round(one / sum(weights), 3) for one in weights[:-1]]
        law.append(round(1 - sum(law), 3))
        return [(max(0.0, round(p - wide, 3)), min(1.0, round(p + wide, 3))) for p in law]

    def _planned(self, what: str, earlier: Any, spend: float) -> tuple[Any, float]:
        if what.startswith("outside"):
            reads = None if what.endswith("whole rows") else what.partition(": ")[2]
            asked = Problem(queries=(Query("count"),), earlier=earlier, spend=spend, **self.stated)
            b = largest_b(asked, curve_of(asked, reads))
            return plan_outside(asked, b, "a model", reads).certificate.evidence, b
        queries = (Query("count", group_by="v"),) if what == "a histogram" else tuple(parse_queries(what))
        made = ap.plan(Problem(queries=queries, earlier=earlier, spend=spend, **self.stated), "laplace")
        return made.certificate.evidence, made.noise.scale

    def lost(self) -> float:
        """The largest loss, as a share of epsilon."""
        free = sum({"avg(y)": WIDTH / N / size, "outside: whole rows": size}.get(what, 0.0) for what, size in self.told if size)
        lines = [list(self._lines(what, size)) for what, size in self.told if what not in ("avg(y)", "outside: whole rows")]
        worst = 0.0
        for chosen in itertools.product(*lines):
            means = self._means(np.sum(chosen, axis=0) if chosen else np.zeros((len(self.events), len(ATOMS))))
            others = [name for name in self.events if name != "a"]
            share = sum(self.prior[name] for name in others)
            rest = [sum(self.prior[name] / share * means[name][k] for name in others) for k in (0, 1)]
            worst = max(worst, *(math.log(top / low) for top, low in ((means["a"][1], rest[0]), (rest[1], means["a"][0]))))
        return float(self.apart * (worst + free) / self.stated["epsilon"])

    def _lines(self, what: str, size: float) -> Iterator[Floats]:
        """log of the factor of a row, for each category and atom: at every output that can be worst."""
        if what in ADDS:
            rate = 1 / size if size else 1e3
            added = np.array([[ADDS[what](name, e, v) for e, v in ATOMS] for name in self.events], dtype=np.float64)
            yield from (-rate * abs(added - output) for output in np.unique([*added.flat, 0, 1]))
            return
        span = size if what.startswith("outside") else 2 / size
        read = np.array([e if what.endswith("e = 1") else v for e, v in ATOMS])
        for cells in itertools.chain.from_iterable(itertools.combinations(set(read.tolist()), k) for k in range(3)):
            yield np.broadcast_to(span * np.isin(read, cells), (len(self.events), len(ATOMS)))

    def _means(self, logs: Floats) -> dict[str, tuple[float, float]]:
        """The least and the largest mean in each category, up to a common factor."""
        weights = np.exp(logs - logs.max())
        return {name: self._ends(name, line) for name, line in zip(self.events, weights, strict=True)}

    def _ends(self, name: str, weights: Floats) -> tuple[float, float]:
        rows: Sequence[Sequence[int]] = [[e for e, _ in ATOMS], *([int(v == value) for _, v in ATOMS] for value in VALUES)]
        box = [self.events[name], *self.values[name]]
        sides = np.array([*rows, *(-np.array(row) for row in rows)])
        most = [*(high for _, high in box), *(-low for low, _ in box)]
        found = [
            linprog(sign * weights, A_ub=sides, b_ub=most, A_eq=[[1] * len(ATOMS)], b_eq=[1], bounds=(0, 1)) for sign in (1, -1)
        ]
        assert all(one.status == 0 for one in found)
        least, largest = (float(np.asarray(one.x) @ weights) for one in found)
        return least, largest


SEEDS = range(24)


def test_no_joint_law_loses_more_than_epsilon() -> None:
    lost = [Ledger(seed).lost() for seed in SEEDS]
    assert max(lost) <= 1 + SOLVED
    assert sum(one > 0.99 for one in lost) >= 4  # the bound is reached: nothing looser was compared


def without_free(self: CountHistory, b: float) -> CountHistory:
    return self


def alone(asked: Sequence[Asked], free: float = 0.0, *, going_on: bool = False) -> float:
    """Each statistic by its own law, as if they were independent."""
    return free + sum(row_loss([one], going_on=going_on) for one in asked)


@pytest.mark.parametrize("mistake", ["what may read whole rows is free", "losses of single statistics are added"])
def test_a_wrong_account_is_found(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if mistake.startswith("what"):
        monkeypatch.setattr(CountHistory, "spending", without_free)
    else:
        monkeypatch.setattr(proof, "row_loss", alone)
    assert any(Ledger(seed).lost() > 1.05 for seed in SEEDS)
