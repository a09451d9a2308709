"""How far apart the answers of two values of the secret surely are: the worst law and pair are looked for, then one event.

    1. of all laws and pairs of values, the one at which a few tables look most apart
    2. of events of the answers (a combination above a threshold), the two that tell most there, by other tables
    3. their chances on fresh tables, and what these prove of the promise

The promise is a curve: P(event | one value) <= e^e P(event | another) + d, for each e at which the certificate reaches a d.

What must never change: what is tested is fixed before the tables are drawn that it is tested on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attrpriv.audit.release.bounds import least_excess, margin
from attrpriv.audit.release.chances import Event, quiet, smoothable
from attrpriv.audit.release.stated import Pair, World
from attrpriv.audit.tables import Floats
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.parts import ViewPart
from attrpriv.methods.base.plan import Plan

_MORE = 512
_HALVINGS = 7
_PLACES = np.linspace(-2.5, 2.5, 11)
_CHUNK = 2_000

Chance = Callable[[World, float, int, np.random.Generator], "Answers"]
"""Of so many tables with a value of the secret."""


@dataclass(frozen=True)
class Curve:
    """What is promised: of each epsilon a delta; and how often a guess between two values may be right at most."""

    points: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, certificate: Certificate) -> Curve:
        grid = [certificate.epsilon * 2.0**-k for k in range(_HALVINGS)] if certificate.epsilon else [0.0]
        reached = [(e, certificate.evidence.delta(e) + certificate.fit_delta) for e in grid]
        kept = tuple((e, d) for e, d in reached if d < 1)
        return cls(kept or ((certificate.epsilon, certificate.delta),))

    @property
    def apart(self) -> float:
        """The largest difference of an event's chances: (e^e - 1 + 2 d) / (e^e + 1), at the e where that is least."""
        return min((math.expm1(e) + 2 * d) / (math.exp(e) + 1) for e, d in self.points)

    @property
    def right(self) -> float:
        return (1 + self.apart) / 2


@dataclass(frozen=True)
class Answers:
    """Of many tables, what is known of their answers: a row each, and the chance of an event."""

    centres: Floats
    spread: Floats
    joint: bool
    chance: Callable[[Event], Floats]


def before_noise(plan: Plan) -> Chance | None:
    """Answers without noise, whose chances come from the stated law of it; None where noise does not come last."""

    def look(world: World, value: float, count: int, generator: np.random.Generator) -> Answers:
        smooth = world.smooth(value, count, generator)
        if smooth is not None and smoothable(plan, smooth[0][0]):
            found = quiet(plan, *smooth)
        else:
            found = quiet(plan, world.tables(value, count, generator))
        if found is None:
            raise TypeError(plan.mechanism)
        return Answers(found.centres, found.spread, found.joint, found.above)

    return None if isinstance(plan.part, ViewPart) or not plan.certificate.evidence.noise_last or _weighs(plan) else look


def _weighs(plan: Plan) -> bool:
    return plan.certificate.evidence.weighs


def as_released(plan: Plan) -> Chance:
    """Answers as they would be released, each with fresh noise. The certificate was checked before."""

    def look(world: World, value: float, count: int, generator: np.random.Generator) -> Answers:
        drawn = np.array([_released(plan, table) for table in world.tables(value, count, generator)])
        known = np.where(np.isfinite(drawn), drawn, 0.0)
        return Answers(known, np.zeros((drawn.shape[1],) * 2), True, lambda event: event.holds(known))

    return look


def _released(plan: Plan, table: Any) -> list[float]:
    if isinstance(plan.part, ViewPart):
        return list(table)
    values = plan.part.draw(plan, table)
    width = sum(len(plan.group_names(query)) for query in plan.queries)
    return [math.nan] * width if values is None else [float(x) for one in values for x in one]


# ------------------------------------------------------------------------------------------------------------ the search


@dataclass(frozen=True)
class Target:
    """Where it is tested: a law, and two values of the secret."""

    world: World
    pair: Pair


@dataclass(frozen=True)
class Tested:
    """An event, and at which epsilon it is compared with what is promised; swapped: of the lower value against the higher."""

    event: Event
    epsilon: float
    allowed: float
    swapped: bool

    def over(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The chances of the value that it is likelier under, and of the other."""
        return (low, high) if self.swapped else (high, low)


def worst(worlds: Sequence[World], look: Chance, curve: Curve, seed: int) -> Target:
    """The law and the pair at which a few tables look most apart."""
    tried = [Target(world, pair) for world in worlds for pair in world.pairs]
    found = []
    for target in tried:
        low, high = sides(target, look, target.world.few, np.random.SeedSequence([seed, 1]))
        found.append(chosen(low, high, curve.points)[0])
    return tried[int(np.argmax(found))]


def sides(target: Target, look: Chance, count: int, seed: np.random.SeedSequence) -> tuple[Answers, Answers]:
    """Tables with either value, from the same random numbers."""
    low, high = (look(target.world, value, count, np.random.default_rng(seed)) for value in target.pair)
    return low, high


def chosen(low: Answers, high: Answers, points: Sequence[tuple[float, float]]) -> tuple[float, Tested]:
    """Of many events and all points of the curve, where most is beyond what is promised; and how much it is."""
    best: tuple[float, Tested] | None = None
    for event in _events(low, high):
        one, other = float(low.chance(event).mean()), float(high.chance(event).mean())
        for epsilon, allowed in points:
            for swapped, likely, unlikely in ((False, other, one), (True, one, other)):
                beyond = likely - math.exp(epsilon) * unlikely - allowed
                if best is None or beyond > best[0]:
                    best = beyond, Tested(event, epsilon, allowed, swapped)
    if best is None:
        raise ValueError("no event")
    return best


def _events(low: Answers, high: Answers) -> list[Event]:
    """Thresholds along the direction in which both values are furthest apart, and along each answer; both ways."""
    pooled = (np.cov(low.centres.T) + np.cov(high.centres.T)) / 2 + low.spread
    covariance = np.atleast_2d(pooled)
    gap = high.centres.mean(axis=0) - low.centres.mean(axis=0)
    unit = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    directions = list(np.eye(len(gap)))
    if low.joint and len(gap) > 1:
        shrunk = covariance / np.outer(unit, unit) + 1e-6 * np.eye(len(gap))
        directions.append(np.linalg.solve(shrunk, gap / unit) / unit)
    found = []
    for direction in directions:
        middle = float((low.centres.mean(axis=0) + high.centres.mean(axis=0)) / 2 @ direction)
        sd = math.sqrt(max(float(direction @ covariance @ direction), 1e-300))
        for place in _PLACES:
            threshold = middle + float(place) * sd
            weights = tuple(float(x) for x in direction)
            found += [Event(weights, threshold), Event(tuple(-x for x in weights), -threshold)]
    return found


# -------------------------------------------------------------------------------------------------------------- the test


@dataclass(frozen=True)
class Found:
    """What fresh tables prove."""

    target: Target
    tables: int
    least: float
    """of P - e^epsilon P at the point of the curve that was chosen, from below"""
    allowed: float
    epsilon: float
    apart: float
    """the difference of an event's chances, from below"""
    seen: float
    """the least difference that would have been seen to be too large, about"""

    @property
    def right(self) -> float:
        return (1 + max(0.0, self.apart)) / 2


def tested(target: Target, look: Chance, curve: Curve, tables: int, error: float, seed: int) -> Found:
    """Choose the events by some tables, and try them on others."""
    low, high = sides(target, look, min(_MORE, tables), np.random.SeedSequence([seed, 2]))
    first = chosen(low, high, curve.points)[1]
    second = chosen(low, high, ((0.0, 0.0),))[1]
    parts: list[list[Floats]] = [[], [], [], []]
    for k, count in enumerate(_chunks(tables)):
        low, high = sides(target, look, count, np.random.SeedSequence([seed, 3, k]))
        for place, one in enumerate((first, second)):
            for side, chances in enumerate(one.over(low.chance(one.event), high.chance(one.event))):
                parts[2 * place + side].append(chances)
    likely, unlikely, other, rest = (np.concatenate(part) for part in parts)
    return Found(
        target,
        tables,
        least_excess(likely, unlikely, first.epsilon, error / 2),
        first.allowed,
        first.epsilon,
        least_excess(other, rest, 0.0, error / 2),
        curve.apart + margin(other, rest, error / 2),
    )


def _chunks(tables: int) -> list[int]:
    return [min(_CHUNK, tables - done) for done in range(0, tables, _CHUNK)]
