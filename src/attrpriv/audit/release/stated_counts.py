"""Tables of counts that the assumption describes: rows that fall into cells by their category, and chains given one entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attrpriv.assumptions.chain import Chain
from attrpriv.assumptions.counts import Counts
from attrpriv.audit.release.stated import NotDrawn, Pair, World, counted_pairs
from attrpriv.audit.tables import Floats
from attrpriv.cases.lattice import one_query
from attrpriv.cases.tally_layout import layout, members_of
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.tally import Tally
from attrpriv.numerics.laws.markov import MarkovChain
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.conditions import parse_condition
from attrpriv.queries.evaluate import holds_for

# Entries of all tables together that a chain is followed for.
_MOST_ENTRIES = 20_000_000


def tally_worlds(plan: Plan, tally: Tally, problem: Problem, secret: Secret, pairs: Sequence[Pair] | None) -> list[World]:
    """The laws of what is counted, for one secret; none where the assumption is of another kind."""
    found = [world for member in problem.assumed(Counts) for world in _count_worlds(tally, problem, secret, member, pairs)]
    return found + [world for member in problem.assumed(Chain) for world in _chain_worlds(plan, tally, member)]


@dataclass(frozen=True)
class _Counted:
    """Rows that fall into cells by the law of their category."""

    label: str
    secret: str
    pairs: tuple[Pair, ...]
    n: int
    scale: int
    population: bool
    members: tuple[bool, ...]
    shares: Floats
    laws: Floats
    """of each category, over what a row can add"""
    complete: bool
    counted: bool
    few: int = 100

    def tables(self, value: float, count: int, generator: np.random.Generator) -> list[Any]:
        return [self._table(value, generator) for _ in range(count)]

    def smooth(self, value: float, count: int, generator: np.random.Generator) -> None:
        return None

    def _table(self, value: float, generator: np.random.Generator) -> Any:
        inside = int(generator.binomial(self.n, value)) if self.population else round(value * self.scale)
        rows = np.zeros(len(self.members), np.int64)
        for side, size in ((True, inside), (False, self.n - inside)):
            chosen = np.flatnonzero(np.array(self.members) == side)
            rows[chosen] = generator.multinomial(size, self.shares[chosen] / self.shares[chosen].sum())
        cells = sum(generator.multinomial(k, law) for k, law in zip(rows, self.laws, strict=True))
        kept = np.asarray(cells)[0 if self.complete else 1 :]
        return [int(k) for k in kept], [int(k) for k in rows] if self.counted else []


def _count_worlds(tally: Tally, problem: Problem, secret: Secret, member: Counts, pairs: Sequence[Pair] | None) -> list[World]:
    found = layout(problem, member, one_query(problem))
    laws, inside = found.laws(member), members_of(problem, member, secret)
    prior = member.shares()
    shares = np.array([sum(map(float, prior[name])) / 2 if name in prior else 1.0 for name in member.categories])
    tried = tuple(counted_pairs(secret, problem.n) if pairs is None else [(float(a), float(b)) for a, b in pairs])
    composition = secret.composition
    if tally.categories and [one.name for one in tally.categories] != list(member.categories):
        raise NotDrawn("The plan counts other categories than the assumption names.")
    made: list[World] = []
    for label, ends in _ends(laws):
        rows = [[ends(name in inside, pair) for pair in laws[name]] for name in member.categories]
        chances = np.array(rows, np.float64)
        if len(chances[0]) == 2:  # an event: what does not have it has the rest
            chances[:, 0] = 1 - chances[:, 1]
        made.append(
            _Counted(
                label,
                secret.text,
                tried,
                problem.n,
                problem.n if composition is not None and composition.kind == "share" else 1,
                secret.parameter is not None,
                tuple(name in inside for name in member.categories),
                shares,
                chances / chances.sum(axis=1, keepdims=True),
                tally.complete,
                bool(tally.categories),
            )
        )
    return made


def _ends(laws: Any) -> list[tuple[str, Any]]:
    """Which ends of the intervals are taken: the middle, and for an event the two ways in which categories differ most."""
    found: list[tuple[str, Any]] = [("the middle of the stated probabilities", lambda inside, pair: sum(map(float, pair)) / 2)]
    exact = all(low == high for law in laws.values() for low, high in law)
    if not exact and all(len(law) == 2 for law in laws.values()):
        found += [
            ("its event likeliest inside, rarest outside", lambda inside, pair: float(pair[1] if inside else pair[0])),
            ("its event rarest inside, likeliest outside", lambda inside, pair: float(pair[0] if inside else pair[1])),
        ]
    return found


# ---------------------------------------------------------------------------------------------------------------- chain


@dataclass(frozen=True)
class _Chained:
    """Counts along a chain of which one entry has a given state: values are numbers of states."""

    label: str
    secret: str
    pairs: tuple[Pair, ...]
    initial: Floats
    step: Floats
    place: int
    n: int
    cells: Floats
    """of each state, 1 for the cells and then the categories that it falls into"""
    own: int
    """so many of these are cells"""
    few: int = 100

    def tables(self, value: float, count: int, generator: np.random.Generator) -> list[Any]:
        if count * self.n > _MOST_ENTRIES:
            raise NotDrawn(f"A chain of {self.n:,} entries is too long to be followed for {count:,} tables.")
        states = np.full(count, int(value))
        seen = self.cells[states]
        laws = [self.initial]
        for _ in range(self.place):
            laws.append(laws[-1] @ self.step)
        now = states
        for k in range(self.place, 0, -1):  # backwards, by Bayes' rule
            back = laws[k - 1][:, None] * self.step
            now = _next(now, (back / np.maximum(back.sum(axis=0), 1e-300)).T, generator)
            seen = seen + self.cells[now]
        now = states
        for _ in range(self.place + 1, self.n):
            now = _next(now, self.step, generator)
            seen = seen + self.cells[now]
        return [([int(k) for k in row[: self.own]], [int(k) for k in row[self.own :]]) for row in seen]

    def smooth(self, value: float, count: int, generator: np.random.Generator) -> None:
        return None


def _next(states: Any, step: Floats, generator: np.random.Generator) -> Any:
    ends = np.cumsum(step, axis=1)
    return (generator.random(len(states))[:, None] > ends[states]).sum(axis=1).clip(0, step.shape[1] - 1)


def _chain_worlds(plan: Plan, tally: Tally, member: Chain) -> list[World]:
    wheres = [*(cell.where for cell in tally.cells), *(one.where for one in tally.categories)]
    conditions = [parse_condition(where) for where in wheres if where is not None]
    if len(conditions) != len(wheres):
        raise NotDrawn("The plan counts more than the chain's own entries.")
    cells = np.array([[float(holds_for(condition, state)) for condition in conditions] for state in member.states])
    found: list[World] = []
    for k, chain in enumerate(member.members):
        if not isinstance(chain, MarkovChain):
            raise NotDrawn("Sequences are followed for single chains, not for an interval of matrices.")
        for place in sorted({0, plan.n // 2, plan.n - 1}):
            law = np.array(chain.initial, np.float64) @ np.linalg.matrix_power(np.array(chain.transition, np.float64), place)
            states = [s for s in range(len(member.states)) if law[s] > 0]
            pairs = tuple((float(a), float(b)) for a in states for b in states if a < b)
            if pairs:
                label = f"chain {k + 1}, entry {place + 1} of {plan.n}"
                step = np.array(chain.transition, np.float64)
                initial = np.array(chain.initial, np.float64)
                found.append(
                    _Chained(label, f"entries({member.column})", pairs, initial, step, place, plan.n, cells, len(tally.cells))
                )
    return found
