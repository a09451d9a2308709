"""Entries of Markov chains: group privacy, the two quilt mechanisms of `song2017pufferfish`, our quilts, our ratio recursion.

Their problem: a chain of 100 entries with two states, from a family whose matrices stay with probabilities between alpha and
1 - alpha and start anywhere; released is the share of entries in one state. And, like their household, a chain of a million
entries with 51 states, of which the histogram is released.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence

import numpy as np

from attrpriv.numerics.calibration import chain_budget, chain_score
from attrpriv.numerics.laws import ChainFamily, MarkovChain
from bench.peers import quilts
from bench.peers.budget import Budget
from bench.peers.results import Cell, Result, Table, mean_of

NAME = "song_chains"
TITLE = "Entries of Markov chains (Song, Wang and Chaudhuri 2017)"
NEEDS: tuple[str, ...] = ()
SECONDS = 120.0

SEED = 2017
LENGTH, ALPHAS, EPSILONS = 100, (0.1, 0.2, 0.3, 0.4), (0.2, 1.0, 5.0)
STEP = 0.1
STARTS = ((1.0, 0.0), (0.5, 0.5), (0.0, 1.0))
TRIALS = 500
STATES, LONG = 51, 1_000_000

THEIRS = ("group privacy", "MQMApprox", "MQMExact")
OURS = ("`chain_quilt`, listed chains", "`laplace`, listed chains", "`laplace`, any start, intervals")


def run(budget: Budget) -> Result:
    tables = []
    scales: dict[tuple[float, float, str], float] = {}
    for epsilon in EPSILONS:
        for alpha in ALPHAS:
            budget.say(f"epsilon {epsilon:g}, alpha {alpha:g}")
            scales |= {(epsilon, alpha, name): scale for name, scale in scales_of(alpha, epsilon).items()}
        rows = [[name, *(_error(name, scales[epsilon, alpha, name]) for alpha in ALPHAS)] for name in (*THEIRS, *OURS)]
        columns = {"mechanism": "text", **{f"α = {alpha:g}": "number" for alpha in ALPHAS}}
        key = f"epsilon-{epsilon:g}".replace(".", "-")
        tables.append(Table.of(key, f"Mean error of the share, T = {LENGTH}, ε = {epsilon:g}", columns, rows))  # type: ignore[arg-type]
    budget.say("simulating")
    tables.append(simulated(scales))
    budget.say(f"{STATES} states")
    tables.append(long_chains())
    return Result.of(NAME, TITLE, seconds=budget.spent, seed=SEED, tables=tables, notes=NOTES)


NOTES = (
    f"the error of a share is the mean absolute value of its noise over T, computed from the law of the noise; {TRIALS} "
    "simulated releases beside it have 95% intervals",
    f"listed: the matrices whose entries are {STEP:g} apart (.05 for alpha .4), both ends among them; for `chain_quilt` and "
    "`laplace` each from three starts, of which two are certain; MQMExact has the same matrices from every start",
    "`laplace` with intervals covers all matrices of the family, also where another one holds at each step, from any start",
    "the ratio recursion takes minutes for 51 states that are rarely left, and is not run there",
    "their published numbers for these chains are curves in a figure; none is quoted",
)


def scales_of(alpha: float, epsilon: float) -> dict[str, float]:
    """The scale of the noise on the count, by each mechanism."""
    pairs = listed(alpha)
    chains = [MarkovChain(start, matrix(p, q)) for (p, q), start in itertools.product(pairs, STARTS)]
    whole = ChainFamily(((alpha, alpha),) * 2, ((1 - alpha, 1 - alpha),) * 2)
    return {
        "group privacy": quilts.group(LENGTH, epsilon),
        "MQMApprox": quilts.approximate(alpha, LENGTH, epsilon),
        "MQMExact": quilts.exact(pairs, LENGTH, epsilon),
        OURS[0]: max(chain_score(chain, LENGTH, epsilon).sigma for chain in chains),
        OURS[1]: 1 / chain_budget(chains, LENGTH, epsilon),
        OURS[2]: 1 / chain_budget([whole], LENGTH, epsilon),
    }


def listed(alpha: float) -> list[tuple[float, float]]:
    steps = round((1 - 2 * alpha) / (STEP if alpha < 0.4 else STEP / 2))
    stays = [round(alpha + (1 - 2 * alpha) * k / steps, 6) for k in range(steps + 1)]
    return [(p, q) for p in stays for q in stays]


def matrix(p: float, q: float) -> tuple[tuple[float, float], tuple[float, float]]:
    return (p, round(1 - p, 6)), (round(1 - q, 6), q)


def mean_absolute(scale: float, *, whole: bool) -> float:
    """Of Laplace noise; on whole numbers 2q/(1 - q^2), q = exp(-1/scale)."""
    return 1 / math.sinh(1 / scale) if whole else scale


def _error(name: str, scale: float) -> float:
    return mean_absolute(scale, whole=name in OURS) / LENGTH


# --------------------------------------------------------------------------------------------------------------- simulated


def simulated(scales: dict[tuple[float, float, str], float], epsilon: float = 1.0, alpha: float = 0.3) -> Table:
    """As in the publication: chains of the family, a release of each, and the mean error, here with its interval."""
    random = np.random.default_rng(SEED)
    rows: list[Sequence[Cell | str | float | None]] = []
    for name in (*THEIRS, *OURS):
        scale = scales[epsilon, alpha, name]
        errors = [_trial(random, alpha, scale, whole=name in OURS) for _ in range(TRIALS)]
        rows.append([name, _error(name, scale), mean_of(errors)])
    title = f"The same, simulated: {TRIALS} chains of α = {alpha:g}, ε = {epsilon:g}, a release of each"
    return Table.of("simulated", title, {"mechanism": "text", "computed": "number", "simulated": "number"}, rows)


def _trial(random: np.random.Generator, alpha: float, scale: float, *, whole: bool) -> float:
    p, q, start = random.uniform(alpha, 1 - alpha), random.uniform(alpha, 1 - alpha), random.random()
    state, ones = int(random.random() < start), 0
    for chance in random.random(LENGTH):
        ones += state
        state = int(chance < (q if state else 1 - p))
    if whole:
        chance = -math.expm1(-1 / scale)
        noise = float(random.geometric(chance)) - float(random.geometric(chance))
    else:
        noise = random.laplace(0.0, scale)
    return abs((ones + noise) / LENGTH - ones / LENGTH)


# -------------------------------------------------------------------------------------------------------------- 51 states


def long_chains() -> Table:
    random = np.random.default_rng(SEED)
    mixed = random.dirichlet(np.ones(STATES), size=STATES)
    chains = {"a fresh law at each step": mixed, "stays with .8 or more": 0.8 * np.eye(STATES) + 0.2 * mixed}
    rows = [_long(name, law, 1.0, quick=law is mixed) for name, law in chains.items()]
    columns = {
        "chain, ε = 1": "text",
        "group privacy": "number",
        "MQMApprox": "number",
        "our quilts": "number",
        "ratio recursion": "number",
        "our quilts, time": "seconds",
        "ratio recursion, time": "seconds",
    }
    title = f"Mean L1 error of a histogram of {LONG:,} entries with {STATES} states (all bins together, as a share)"
    return Table.of("long", title, columns, rows)  # type: ignore[arg-type]


def _long(
    name: str, law: np.ndarray[tuple[int, int], np.dtype[np.float64]], epsilon: float, *, quick: bool
) -> list[Cell | str | float | None]:
    """An entry that changes leaves one bin and enters another: twice the scale of a count in every bin."""
    rows = law / law.sum(axis=1, keepdims=True)
    chain = MarkovChain((1 / STATES,) * STATES, tuple(map(tuple, rows.tolist())))

    def error(scale: float, *, whole: bool) -> float:
        return STATES * mean_absolute(2 * scale, whole=whole) / LONG

    began = time.process_time()
    ours = chain_score(chain, LONG, epsilon).sigma
    searched = time.process_time()
    ratio = 1 / chain_budget([chain], LONG, epsilon) if quick else None
    ended = time.process_time()
    least, gap = quilts.gap_of(rows)
    approximate = quilts.closed(least, gap, LONG, epsilon)
    return [
        name,
        error(quilts.group(LONG, epsilon), whole=False),
        error(approximate, whole=False),
        error(ours, whole=True),
        error(ratio, whole=True) if ratio is not None else None,
        searched - began,
        ended - searched if quick else None,
    ]
