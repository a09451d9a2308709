"""Every limit of what numerics takes, from both sides: the last number that is computed, and the first that is refused.

A guard that lets more through would compute where nothing is proved; one that lets less through would refuse without a reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attrpriv.errors import AttrprivError
from attrpriv.numerics.calibration import pair_families
from attrpriv.numerics.calibration.pair_families import family_of
from attrpriv.numerics.calibration.secret_laws import exp_lower, log_upper
from attrpriv.numerics.divergences import all_pairs, gaussian_mixture, set_valued
from attrpriv.numerics.divergences.all_pairs import all_pairs_delta, all_pairs_loss
from attrpriv.numerics.divergences.families import family_wasserstein
from attrpriv.numerics.divergences.gaussian import gaussian_delta_upper, gaussian_epsilon, unequal_delta_upper
from attrpriv.numerics.divergences.gaussian_mixture import gaussian_mixture_delta_upper
from attrpriv.numerics.divergences.groups import clamped_group_delta_upper, group_delta_upper, pair_upper
from attrpriv.numerics.divergences.lattice import lattice_approximate_max_divergence, lattice_delta_upper
from attrpriv.numerics.divergences.max_divergence import approximate_max_divergence, corrected_guarantee
from attrpriv.numerics.divergences.mixture import set_law
from attrpriv.numerics.divergences.moving_sets import moving_upper
from attrpriv.numerics.divergences.set_valued import lam_of, mixture_hockey_stick, pointwise_hockey_stick
from attrpriv.numerics.divergences.vector_loss import loss_law
from attrpriv.numerics.divergences.wasserstein import close_distance
from attrpriv.numerics.laws import count_cases, lattice
from attrpriv.numerics.laws.binomial import binomial_above, binomial_below, binomial_tails
from attrpriv.numerics.laws.chi_squared import lower_tail_upper, upper_tail_upper
from attrpriv.numerics.laws.count_cases import CountCases, case_laws
from attrpriv.numerics.laws.fixed_point import fixed_record_sum
from attrpriv.numerics.laws.fixed_window import window_binomial, window_law
from attrpriv.numerics.laws.gaussian import GaussianLaw, GaussianMixture
from attrpriv.numerics.laws.groups import GroupCase
from attrpriv.numerics.laws.intervals import parse_case, parse_cases
from attrpriv.numerics.laws.lattice import binomial_sum, discrete_gaussian, discrete_laplace, record_sum
from attrpriv.numerics.laws.lattice_law import LatticeLaw, require_probabilities
from attrpriv.numerics.laws.law_box import Cell, MovingCases
from attrpriv.numerics.laws.markov import LEAST, MOST_STATES, MarkovChain
from attrpriv.numerics.laws.normal_digits import fixed_exp, fixed_normal_cdf, fixed_root
from attrpriv.numerics.laws.parameter_counts import ParameterCounts
from attrpriv.numerics.laws.records import CountPairs, RecordLaws
from attrpriv.numerics.rounding import SUM_SLACK

HALF, DICE = {0: 0.5, 1: 0.5}, {0: 0.25, 1: 0.75}
COIN, BIASED = LatticeLaw.of(HALF), LatticeLaw.of(DICE)
BELOW, ABOVE = parse_cases(["< 0", ">= 0"])
CASE = GroupCase(n=100, low=25, high=40, apart=15, members=((36.0, 11.0),), rest=((42.0, 12.0),))
EVENT = RecordLaws.event(0.4, 0.6)
WHOLE = RecordLaws((0, 1, 3), ((0.5, 0.5), (0.25, 0.25), (0.25, 0.25)), ((0.25, 0.25), (0.25, 0.25), (0.5, 0.5)))
THIRDS = ((1.0, 1.0), (0.0, 0.0), (0.0, 0.0))
UNIT, NORMAL = np.eye(1), GaussianLaw(0.0, 1.0)
JUST, MORE, LESS = 1e-9, 1 + 1e-12, 1 - 1e-12


def normal(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def ended(low: float, log: bool) -> Callable[[float], float]:
    """That density, or its logarithm, with another value at the ends."""
    return lambda y: low if abs(y) > 11.999 else math.log(normal(y)) if log else normal(y)


def mixed(*weights: float, means: tuple[float, ...] = (0.0, 1.0), variance: float = 1.0, lost: float = 0.0) -> GaussianMixture:
    return GaussianMixture(np.array(weights), np.array(means), variance, lost)


def moving(**changes: Any) -> MovingCases:
    told: dict[str, Any] = {
        "cases": (BELOW, ABOVE), "box": Cell((0.0, 0.0), (1.0, 1.0)), "form": "slope", "strength": 0.5, "query_sds": (1.0, 1.0),
    }  # fmt: skip
    return MovingCases(**(told | changes))


def chain(k: int) -> MarkovChain:
    row = (1.0, *(0.0,) * (k - 1))
    return MarkovChain(row, (row,) * k)


# What is called, arguments that are taken, and arguments that are refused; both as near to the limit as can be.
LIMITS: dict[str, tuple[Callable[..., Any], list[Any], list[Any]]] = {
    "pairs: epsilon": (lambda x: all_pairs_delta([COIN, BIASED], x), [0.0, 600.0], [-JUST, math.inf, math.nan]),
    "pairs: laws": (lambda n: all_pairs_delta([COIN] * n, 1.0), [2, 3], [0, 1]),
    "pairs: apart": (lambda n: all_pairs_delta([COIN] * 3, 1.0, apart=n), [1, 2, 5], [0, -1]),
    "pairs: pure": (
        lambda one, other: all_pairs_loss([one, other]),
        [(COIN, BIASED)],
        [(COIN, replace(BIASED, lost=1e-300)), (replace(COIN, error=math.inf), BIASED)],
    ),
    "mixtures: epsilon": (
        lambda x: gaussian_mixture_delta_upper(mixed(0.5, 0.5), mixed(0.4, 0.6), x),
        [0.0, 700.0],
        [-JUST, 700 * MORE, math.nan],
    ),
    "mixtures: variance": (lambda v: mixed(1.0, means=(0.0,), variance=v), [1e-300, 1e300], [0.0, -1.0, math.inf, math.nan]),
    "mixtures: one variance": (
        lambda v: gaussian_mixture_delta_upper(mixed(0.5, 0.5), mixed(0.4, 0.6, variance=v), 1.0), [1.0], [MORE, LESS]
    ),
    "mixtures: lost": (lambda x: mixed(0.5, 0.5, lost=x), [0.0, 1.0], [-JUST, math.inf, math.nan]),
    "mixtures: weights": (lambda a, b: mixed(a, b), [(0.0, 1.0), (1.0, 0.0)], [(-JUST, 1.0), (1.0, -JUST), (0.5, math.nan)]),
    "mixtures: means": (lambda a, b: mixed(0.5, 0.5, means=(a, b)), [(0.0, JUST)], [(0.0, 0.0), (0.0, -JUST), (0.0, math.inf)]),
    "normal law: variance": (lambda v: GaussianLaw(0.0, v), [1e-300, 1e300], [0.0, -JUST, math.inf, math.nan]),
    "normal law: mean": (lambda m: GaussianLaw(m, 1.0), [-1e300, 0.0, 1e300], [math.inf, -math.inf, math.nan]),
    "groups: noise": (lambda v: group_delta_upper(CASE, v, 1.0), [0.0, 1e9], [-JUST, math.inf, math.nan]),
    "groups, clamped: noise": (
        lambda v: clamped_group_delta_upper(CASE, 0.1, v, 1.0, "direct"), [0.0, 1e9], [-JUST, math.inf, math.nan]
    ),
    "groups: reach": (
        lambda h: clamped_group_delta_upper(CASE, h, 0.1, 1.0, "direct"), [0.0, 1e9, math.inf], [-JUST, math.nan]
    ),
    "groups: form": (lambda form: group_delta_upper(CASE, 0.1, 1.0, form), ["direct", "equalised"], ["other", ""]),
    "groups, clamped: form": (
        lambda form: clamped_group_delta_upper(CASE, 0.1, 0.1, 1.0, form), ["direct", "equalised"], ["other", ""]
    ),
    "groups: equalising": (
        lambda t: group_delta_upper(replace(CASE, sd_tolerance=t), 0.1, 1.0, "equalised"), [0.0], [JUST, 0.5]
    ),
    "groups: variance": (lambda v: pair_upper(0.1, v, (0.0, 0.1), 1.0), [1e-9], [0.0, -JUST, math.nan]),
    "families: delta": (
        lambda d: family_wasserstein(EVENT, CountPairs.all_of(4), d), [0.0, LESS], [-JUST, 1.0, math.nan]
    ),
    "families: exact": (
        lambda records: family_wasserstein(records, CountPairs.all_of(2)),
        [WHOLE, RecordLaws.event((0.4, 0.5), 0.6)],
        [RecordLaws((0, 1, 3), ((0.4, 0.6), (0.2, 0.3), (0.2, 0.3)), WHOLE.rest)],
    ),
    "closeness: delta": (lambda d: close_distance(HALF, DICE, d), [0.0, LESS], [-JUST, 1.0, math.nan]),
    "closeness: what is lost": (
        lambda d: close_distance(replace(COIN, lost=1e-3), BIASED, d), [1.1e-3, 0.5], [0.0, 0.9e-3]
    ),
    "gaussian: epsilon": (lambda x: gaussian_delta_upper(x, 1.0), [0.0, 1e300], [-JUST, math.inf, math.nan]),
    "gaussian: mu": (lambda x: gaussian_delta_upper(1.0, x), [0.0, 1e300], [-JUST, math.inf, math.nan]),
    "gaussian: delta": (lambda x: gaussian_epsilon(1.0, x), [JUST, LESS], [0.0, 1.0, -JUST, math.nan]),
    "unequal: epsilon": (lambda x: unequal_delta_upper(NORMAL, GaussianLaw(0.0, 2.0), x), [0.0, 1e300], [-JUST, math.inf]),
    "unequal: variances": (lambda v: unequal_delta_upper(NORMAL, GaussianLaw(1.0, v), 1.0), [MORE, LESS], [1.0]),
    "lattice: epsilon": (lambda x: lattice_delta_upper(COIN, BIASED, x), [0.0, 1e9, math.inf], [-JUST, math.nan]),
    "lattice: eta": (lambda x: lattice_approximate_max_divergence(COIN, BIASED, x), [0.0, LESS], [-JUST, 1.0, math.nan]),
    "corrected: epsilon and lambda": (
        lambda e, x: corrected_guarantee(e, 1e-6, x, 0.0),
        [(600.0, 0.0), (0.0, 300.0), (200.0, 200.0)],
        [(600 * MORE, 0.0), (0.0, 300 * MORE), (200.0, 200 * MORE), (-JUST, 0.0), (0.0, -JUST), (math.nan, 0.0)],
    ),
    "corrected: delta and eta": (
        lambda d, x: corrected_guarantee(1.0, d, 0.0, x),
        [(0.0, 0.0), (2.0, 2.0)],
        [(-JUST, 0.0), (0.0, -JUST), (0.0, math.inf)],
    ),
    "max divergence: eta": (
        lambda x: approximate_max_divergence(normal, NORMAL, x, support=(-12.0, 12.0)), [1e-6, LESS], [-JUST, 1.0, math.nan]
    ),
    "max divergence: mass": (
        lambda x: approximate_max_divergence(lambda y: x * normal(y), NORMAL, 0.1, support=(-12.0, 12.0)),
        [1.0, 1.0009, 0.9991],
        [1.0011, 0.9989],
    ),
    "max divergence: kinks": (
        lambda x: approximate_max_divergence(normal, NORMAL, 0.1, support=(-12.0, 12.0), kinks=[0.0, x]),
        [-12.0, 12.0],
        [-12 * MORE, 12 * MORE],
    ),
    "max divergence: support": (
        lambda a, b: approximate_max_divergence(normal, NORMAL, 0.1, support=(a, b)),
        [(-9.0, 9.0)],
        [(1.0, 1.0), (9.0, -9.0), (-9.0, math.inf), (-math.inf, 9.0)],
    ),
    "max divergence: density": (
        lambda low, log: approximate_max_divergence(ended(low, log), NORMAL, 0.1, support=(-12.0, 12.0), log=log),
        [(0.0, False), (-math.inf, True), (-1e3, True)],
        [(-JUST, False), (math.inf, True), (math.inf, False), (math.nan, True), (math.nan, False)],
    ),
    "loss: epsilon": (lambda x: loss_law(np.ones(1), UNIT, 2 * UNIT).upper(x), [0.0, 600.0], [-JUST, 600 * MORE, math.nan]),
    "loss: laws": (
        lambda d, a, b: loss_law(np.array([d]), a * UNIT, b * UNIT),
        [(1.0, 1.0, 1.0)],
        [(math.inf, 1.0, 1.0), (1.0, math.nan, 1.0), (1.0, 1.0, math.inf)],
    ),
    "sets: epsilon": (lambda x: mixture_hockey_stick(BELOW, ABOVE, 0.5, x), [600.0, -600.0], [600 * MORE, -600 * MORE]),
    "sets: lam": (lambda x: mixture_hockey_stick(BELOW, ABOVE, x, 1.0), [0.0, 1e300, math.inf], [-JUST, math.nan]),
    "sets: a law's lam": (lambda x, y: set_law(BELOW, x, y), [(0.0, 0.0), (1e9, -5.0)], [(-JUST, 0.0), (1.0, math.inf)]),
    "sets: rho": (lambda x: lam_of(x, 1.0), [-1.0, 0.0, 1.0], [MORE, -MORE, math.nan]),
    "sets: variance": (lambda x: lam_of(0.5, x), [0.0, 1e300], [-JUST, math.inf, math.nan]),
    "sets: gap": (
        lambda g, x: pointwise_hockey_stick(g, x, 1.0),
        [(0.0, 0.0), (math.inf, 1.0)],
        [(-JUST, 1.0), (1.0, math.inf), (1.0, -JUST)],
    ),
    "sets that move: epsilon": (
        lambda x: moving_upper((BELOW, ABOVE), Cell((0.0, 0.0), (1.0, 1.0)), 0.5, x), [0.0, 600.0], [-JUST, math.nan]
    ),
    "cells": (
        lambda means, sds: Cell(means, sds),
        [((0.0, 0.0), (JUST, JUST)), ((-1.0, 1.0), (1.0, 2.0))],
        [((JUST, 0.0), (1.0, 1.0)), ((0.0, 0.0), (0.0, 1.0)), ((0.0, 0.0), (MORE, 1.0)), ((0.0, math.inf), (1.0, 1.0)),
         ((-math.inf, 0.0), (1.0, 1.0)), ((0.0, 0.0), (1.0, math.inf))],
    ),
    "moving cases": (
        lambda changes: moving(**changes),
        [{}, {"strength": 0.0}, {"query_sds": (JUST, 1e9)}],
        [{"strength": -JUST}, {"strength": math.inf}, {"query_sds": (0.0, 1.0)}, {"query_sds": (MORE, 1.0)},
         {"query_sds": (1.0, math.inf)}, {"cases": (BELOW,)}],
    ),
    "standardised: sd": (
        lambda x: parse_case("< 1").standardised(0.0, x), [1e-100, 1e100], [1e-100 * LESS, 1e100 * MORE, -1.0]
    ),
    "standardised: mean": (lambda x: parse_case("< 0").standardised(x, 1.0), [1e100, -1e100], [1e100 * MORE, math.inf]),
    "chi-square: freedom": (lambda n: lower_tail_upper(n, 0.5), [1, 2], [0, -1, 10**11 + 1]),
    "chi-square: x": (lambda x: lower_tail_upper(3, x), [0.0, 1e9], [-JUST, math.nan]),
    "chi-square, above: freedom": (lambda n: upper_tail_upper(n, 1.0), [0, 1, 40], [-1, 41]),
    "chi-square, above: w": (lambda w: upper_tail_upper(3, w), [0.0, 1e9], [-JUST, math.nan]),
    "records: values": (
        lambda *values: RecordLaws(values, THIRDS[: len(values)], THIRDS[: len(values)]),
        [(0, 1), (-1, 5, 6)],
        [(1, 1), (1, 0), (0, 1, 1), (0, 2, 1), (1, 0, 2)],
    ),
    "records: one value": (lambda n: RecordLaws(tuple(range(n)), THIRDS[:n], THIRDS[:n]), [3], [0, 1]),
    "records: probabilities": (
        lambda low, high: RecordLaws((0, 1), ((0.0, 1.0), (low, high)), ((0.5, 0.5),) * 2),
        [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)],
        [(-JUST, 0.5), (0.5, 1 + JUST), (0.5, 0.4), (math.nan, 1.0)],
    ),
    "records: sums": (
        lambda low, high: RecordLaws((0, 1), ((low, low), (0.5, 0.5)), ((0.5, 0.5), (0.0, high))),
        [(0.5 + 0.9 * SUM_SLACK, 0.5), (0.5, 0.5 - 0.9 * SUM_SLACK), (0.5 - 0.9 * SUM_SLACK, 1.0)],
        [(0.5 + 1.1 * SUM_SLACK, 0.5), (0.5, 0.5 - 1.1 * SUM_SLACK), (0.5 - 1.1 * SUM_SLACK, 1.0)],
    ),
    "pairs of counts": (
        lambda *told: CountPairs(*told),
        [(1, 0, 1, 1), (5, 2, 4, 1), (5, 0, 5, 5)],
        [(0, 0, 0, 0), (5, -1, 4, 1), (5, 4, 6, 1), (5, 3, 2, 1), (5, 2, 4, 0), (5, 2, 4, 3), (5, 3, 3, 1)],
    ),
    "hull": (lambda records: records.hull, [EVENT], [WHOLE, RecordLaws((0, 2), EVENT.member, EVENT.rest)]),
    "cases: share": (
        lambda p: CountCases(2, (((0, 0),), ((1, 2),)), p, EVENT), [1e-290, LESS], [1e-290 * LESS, 0.0, 1.0, -0.1]
    ),
    "fixed point": (
        lambda a, b, bits: fixed_record_sum((0, 1), (0.5, 0.5), a, (0.5, 0.5), b, bits),
        [(0, 0, 1), (1, 0, 1)],
        [(-1, 0, 1), (0, -1, 1), (0, 0, 0)],
    ),
    "fixed point: law": (
        lambda *law: fixed_record_sum((0, 1), law, 1, (0.5, 0.5), 1, 8),
        [(0.5, 0.5 + 0.9 * SUM_SLACK), (0.5, 0.5 - 0.9 * SUM_SLACK), (0.0, 1.0)],
        [(0.5, 0.5 + 1.1 * SUM_SLACK), (0.5, 0.5 - 1.1 * SUM_SLACK), (-0.1, 1.1), (1.1, -0.1), (0.5,), (0.5, 0.25, 0.25)],
    ),
    "windows: count": (lambda a: window_law(EVENT, 4, a), [0, 4], [-1, 5]),
    "windows: exact": (
        lambda records: window_law(records, 2, 1),
        [EVENT, WHOLE],
        [RecordLaws.event((0.4, 0.5), 0.6), RecordLaws.event(0.4, (0.5, 0.6))],
    ),
    "windows: binomial": (lambda n, p: window_binomial(n, p), [(0, 0.0), (1, 1.0)], [(-1, 0.5), (1, -JUST), (1, 1 + JUST)]),
    "binomial tails: share": (lambda p: (binomial_below(4, p, 2), binomial_above(4, p, 2)), [0.0, 1.0], [-JUST, 1 + JUST]),
    "both tails": (
        lambda n, p: binomial_tails(n, p),
        [(1, 1e-290), (1, 0.9999999999999999), (1, 1 - Fraction(2, 10**290))],
        [(0, 0.5), (1, 1e-291), (1, 0.0), (1, 1.0), (1, 1 - Fraction(1, 10**291))],
    ),
    "binomial": (
        lambda n, p: binomial_sum(n, p, 0, 0.5),
        [(0, 0.5), (1, 0.0), (1, 1.0), (1, 1e-290), (1, 1 - Fraction(2, 10**290))],
        [(-1, 0.5), (1, -JUST), (1, 1 + JUST), (1, 1e-291), (1, 1 - Fraction(1, 10**291))],
    ),
    "record sums": (lambda a, b: record_sum((0, 1), (0.5, 0.5), a, (0.5, 0.5), b), [(0, 0), (1, 0)], [(-1, 0), (0, -1)]),
    "record sums: sizes": (lambda *law: record_sum((0, 1), law, 1, (0.5, 0.5), 0), [(0.5, 0.5)], [(1.0,), (0.5, 0.25, 0.25)]),
    "tail": (lambda t: binomial_sum(4, 0.4, 4, 0.6, tail=t), [0.0, 1e-280, LESS], [1e-280 * LESS, 1.0, -JUST, math.nan]),
    "tail of records": (
        lambda t: record_sum((0, 1), (0.5, 0.5), 1, (0.5, 0.5), 1, tail=t), [0.0, 1e-280, LESS], [1e-280 * LESS, 1.0, -JUST]
    ),
    "laplace noise: tail": (lambda t: discrete_laplace(1.0, tail=t), [1e-280, LESS], [0.0, 1e-280 * LESS, 1.0, math.nan]),
    "normal noise: tail": (lambda t: discrete_gaussian(1.0, tail=t), [1e-280, LESS], [0.0, 1e-280 * LESS, 1.0, math.nan]),
    "laplace noise: scale": (lambda s: discrete_laplace(s, tail=0.1), [1e-9, 1e3], [0.0, -1.0, math.inf, math.nan]),
    "normal noise: scale": (lambda s: discrete_gaussian(s, tail=0.1), [1e-9, 1e3], [0.0, -1.0, math.inf, math.nan]),
    "probabilities": (
        lambda *p: require_probabilities("p", p),
        [(1.0,), (0.0, 1.0), (0.5, 0.5 + 0.9 * SUM_SLACK), (0.5, 0.5 - 0.9 * SUM_SLACK)],
        [(), (-JUST, 1.0), (1.0 + JUST / 2,), (0.5, 0.5 + 1.1 * SUM_SLACK), (0.5, 0.5 - 1.1 * SUM_SLACK), (0.5, math.nan)],
    ),
    "chain: states": (chain, [2, MOST_STATES], [1, MOST_STATES + 1]),
    "chain: probabilities": (
        lambda *law: MarkovChain(law, ((0.5, 0.5), (0.5, 0.5))),
        [(0.0, 1.0), (LEAST, 1.0), (0.5, 0.5 + 0.9 * SUM_SLACK), (0.5, 0.5 - 0.9 * SUM_SLACK), (0.0, 1 + 0.9 * SUM_SLACK)],
        [(LEAST * LESS, 1.0), (-JUST, 1.0), (0.5, 0.5 + 1.1 * SUM_SLACK), (0.5, 0.5 - 1.1 * SUM_SLACK), (math.nan, 1.0),
         (1.0,)],
    ),
    "chain: rows": (
        lambda *rows: MarkovChain((0.5, 0.5), rows),
        [((1.0, 0.0), (0.0, 1.0))],
        [((1.0, 0.0),), ((1.0, 0.0), (0.0, 1.0), (0.5, 0.5)), ((1.0, 0.0), (1.0,)), ((1.0, 0.0), (0.5, 0.6)),
         ((0.5, 0.6), (1.0, 0.0))],
    ),
    "root": (lambda x: fixed_root(x, 8), [Fraction(0), Fraction(1, 3)], [Fraction(-1, 10**9)]),
    "exponential": (lambda x: fixed_exp(x, 8), [Fraction(0), Fraction(1000)], [Fraction(-1, 10**9), 1000 + Fraction(1, 10**9)]),
    "normal digits: z": (
        lambda z: fixed_normal_cdf(z, 8), [40 << 8, -(40 << 8)], [(40 << 8) + 1, -(40 << 8) - 1]
    ),
    "normal digits: bits": (lambda bits: fixed_normal_cdf(0, bits), [1, 2048], [0, -1, 2049]),
    "exponential: bits": (lambda bits: fixed_exp(Fraction(1), bits), [1, 2048], [0, 2049]),
    "parameter: rows": (
        lambda n: ParameterCounts(n, ((0.4, 0.4), (0.6, 0.6)), ((1.0, 0.0), (0.0, 1.0))), [1, 10**6], [0, 10**6 + 1]
    ),
    "parameter: probabilities": (
        lambda low, high: ParameterCounts(4, ((low, high), (0.6, 0.6)), ((1.0, 0.0), (0.0, 1.0))),
        [(0.0, 0.0), (1.0, 1.0), (1e-290, 1e-290), (LESS, LESS)],
        [(1e-291, 1e-291), (0.5, 0.4), (0.0, 1e-9), (1 - 1e-9, 1.0), (-0.1, -0.1), (1.1, 1.1)],
    ),
    "known rows of a family": (lambda k: family_of(EVENT, CountPairs(4, 1, 3, 2), k), [0, 4], [-1, 5]),
    "known rows of whole numbers": (lambda k: family_of(WHOLE, CountPairs(4, 0, 4, 2), k), [0, 2], [-1, 3]),
    "a logarithm": (lambda a, b: log_upper(a, b), [(1, 1), (3, 2)], [(1, 2), (0, 0), (1, 0), (-1, -2)]),
    "an exponential": (exp_lower, [0.0, 500.0], [-JUST, 500 * MORE, math.nan]),
}  # fmt: skip


def _called(label: str, argument: Any) -> Any:
    call = LIMITS[label][0]
    return call(*argument) if isinstance(argument, tuple) else call(argument)


@pytest.mark.parametrize("label", LIMITS)
def test_the_last_that_is_taken(label: str) -> None:
    for argument in LIMITS[label][1]:
        _called(label, argument)


@pytest.mark.parametrize("label", LIMITS)
def test_the_first_that_is_refused(label: str) -> None:
    for argument in LIMITS[label][2]:
        with pytest.raises(AttrprivError):
            pytest.fail(f"{label}: {argument} was taken, and gave {_called(label, argument)}.")


# ----------------------------------------------------------------------------------------------------------- limits of work


def test_as_many_terms_as_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    p, q = mixed(0.4, 0.2, 0.4, means=(0.0, 1.0, 2.0)), mixed(0.2, 0.6, 0.2, means=(0.0, 1.0, 2.0))
    terms = 16 * (2 + 24) * 6  # sixteen cells a standard deviation, twelve of these beyond both ends, and three means each
    monkeypatch.setattr(gaussian_mixture, "_LARGEST", terms)
    assert 0 < gaussian_mixture_delta_upper(p, q, 0.1) < 1
    monkeypatch.setattr(gaussian_mixture, "_LARGEST", terms - 1)
    with pytest.raises(AttrprivError):
        gaussian_mixture_delta_upper(p, q, 0.1)


def test_as_wide_as_noise_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    for noise in (discrete_laplace, discrete_gaussian):
        last = noise(3.0, tail=1e-3).end
        monkeypatch.setattr(lattice, "_WIDEST", last)
        assert noise(3.0, tail=1e-3).end == last
        monkeypatch.setattr(lattice, "_WIDEST", last - 1)
        with pytest.raises(AttrprivError):
            noise(3.0, tail=1e-3)


def test_as_many_rows_and_products_as_a_set_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    for records, work in ((WHOLE, 6 * 19 * 4), (EVENT, 6 * 7 * 2)):  # six steps of Horner's rule, answers, values of a row
        cases = CountCases(6, (((0, 2),), ((3, 6),)), 0.4, records)
        monkeypatch.setattr(count_cases, "MOST_WORK", work)
        assert cases.whole() is not None
        monkeypatch.setattr(count_cases, "MOST_WORK", work - 1)
        assert cases.whole() is None
    more = CountCases(7, (((0, 2),), ((3, 7),)), 0.4, EVENT)
    with pytest.raises(AttrprivError):
        case_laws(more, 0.0)
    monkeypatch.setattr(count_cases, "MOST_WORK", 10**9)
    monkeypatch.setattr(count_cases, "_MOST_ROWS", 8)
    assert case_laws(CountCases(8, (((0, 2),), ((3, 8),)), 0.4, EVENT), 0.0)
    with pytest.raises(AttrprivError):
        case_laws(CountCases(9, (((0, 2),), ((3, 9),)), 0.4, EVENT), 0.0)


def test_where_sets_are_bounded_by_their_points() -> None:
    """Up to lam 1000 by their law, beyond it by the pointwise rule, which for sets without an end says nothing."""
    near = parse_cases(["[0, 0.0001)", "[0.0001, 0.0002)"])
    at, beyond = (mixture_hockey_stick(near[0], near[1], lam, 0.5) for lam in (1000.0, 1000 * MORE))
    assert at.crossings
    assert not beyond.crossings
    assert beyond.upper == pointwise_hockey_stick(near[0].gap(near[1]), 1000 * MORE, 0.5)
    for epsilon, told in ((0.0, False), (-JUST, True)):
        assert (mixture_hockey_stick(near[0], near[1], 2000.0, epsilon).upper == 1.0) is told
    assert set_valued._LARGEST_LAM == 1000


def test_pairs_that_are_out_of_reach() -> None:
    """What no float can say is refused, not passed over; an infinite loss is an answer."""
    points = [LatticeLaw.of({0: 1.0}), LatticeLaw.of({1: 1.0})]
    assert all_pairs_loss(points).upper == math.inf
    with pytest.raises(AttrprivError):
        all_pairs._finite(all_pairs.WorstPair(math.inf, (0, 1)))
    with pytest.raises(AttrprivError):
        all_pairs._finite(all_pairs.WorstPair(math.nan, (0, 1)), infinite=True)


@pytest.mark.parametrize(("n", "apart"), [(2, None), (3, 1), (4, 2), (5, None), (5, 4), (5, 9)])
def test_pairs_up_to_so_many_apart(n: int, apart: int | None) -> None:
    """Laws further and further from each other: the worst pair is the furthest that counts as one."""
    laws = [binomial_sum(8, 0.1 + 0.15 * k, 0, 0.5) for k in range(n)]
    reach = min(n - 1, apart or n)
    wanted = max(
        lattice_delta_upper(laws[a], laws[b], 0.3) for a in range(n) for b in range(n) if a != b and abs(a - b) <= reach
    )
    found = all_pairs_delta(laws, 0.3, apart=apart)
    assert found.upper == pytest.approx(wanted, rel=1e-9)
    assert abs(found.pair[0] - found.pair[1]) == reach
    pure = all_pairs_loss(laws, apart=apart)
    ratios = [
        float(np.max(np.log(laws[a].masses / laws[b].masses)))
        for a in range(n)
        for b in range(n)
        if a != b and abs(a - b) <= reach
    ]
    assert pure.upper == pytest.approx(max(ratios), rel=1e-9)


@pytest.mark.parametrize("known", [0, 1, 2])
def test_as_many_whole_numbers_as_are_compared(known: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the rows that nobody knows: which counts are left, how many laws that are, and how many outputs each has."""
    pairs = CountPairs(6, 1, 5, 2)
    left = family_of(WHOLE, pairs, known)
    assert isinstance(left, pair_families.WholeNumbers)
    low, high = max(0, 1 - known), min(5, 6 - known)
    assert left.counts == CountPairs(6 - known, low, high, 2)
    assert len(left.all_laws) == high - low + 1
    for block, a in (((0, 1), low), ((1, 3), low + 1)):
        assert left.pair(block) == (a, a + block[1] - block[0])
        for place, law in zip(block, left.laws(block), strict=True):
            member, rest = ([p for p, _ in one] for one in (WHOLE.member, WHOLE.rest))
            wanted = record_sum(WHOLE.values, member, low + place, rest, 6 - known - low - place)
            assert law.start == wanted.start
            assert law.masses == pytest.approx(wanted.masses, rel=1e-9, abs=1e-15)
    work = (high - low + 1) ** 2 * (6 - known) * 3
    for name, most in (("_MOST_WORK", float(work)), ("_MOST_OUTPUTS", 6 * 3)):
        with monkeypatch.context() as patched:
            patched.setattr(pair_families, name, most)
            assert family_of(WHOLE, pairs, known)
            patched.setattr(pair_families, name, most - 1)
            with pytest.raises(AttrprivError):
                family_of(WHOLE, pairs, known)


@pytest.mark.parametrize("known", [0, 1, 3, 5])
def test_events_without_the_rows_that_are_known(known: int) -> None:
    """So many rows of each kind are left out of both laws; never more than there are, nor those that differ."""
    pairs = CountPairs(8, 2, 6, 3)
    exact = family_of(EVENT, pairs, known)
    for k in (2, 3):
        members, others = max(0, k - known), max(0, 8 - 3 - k - known)
        more, fewer = exact.laws((k, k))
        assert exact.pair((k, k)) == (k, k + 3)
        for law, a, b in ((more, members + 3, others), (fewer, members, others + 3)):
            assert law.masses == pytest.approx(binomial_sum(a, 0.4, b, 0.6).masses, rel=1e-9, abs=1e-12)
    box = family_of(RecordLaws.event((0.4, 0.5), (0.5, 0.6)), pairs, known)
    assert isinstance(box, pair_families.Events)
    kept = max(3, 8 - 2 * known)
    assert (box.p1, box.p0, box.n, box.apart, box.range, box.known) == (0.6, 0.4, kept, 3, (0, kept - 3), 0)
