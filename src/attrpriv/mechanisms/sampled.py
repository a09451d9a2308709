"""`gaussian_approximation` of statistics that are no averages, by simulated conditional laws (docs/theory/sampled.md).

Variances, covariances, regressions and quantiles over all rows, under a gaussian or a groups assumption, only where the policy
opts in (`sampled:`). Given each secret the statistic is simulated; bounds on its means and variances hold with the
stated confidence; taking its law as normal, the least Gaussian noise hides every pair. The guarantee's kind is `sampled`.

What must never change: the simulation's seed is a public number made of the policy's digest, the query and n, so that the same
plan is made again by whoever checks it; no number of the simulation is ever noise. A release of this kind stands alone.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from attrpriv.assumptions import Gaussian, Groups
from attrpriv.calibration.sampled import (
    TAIL_CHARGE,
    Drawn,
    Extent,
    chance_distance,
    draw,
    extent,
    least_sampled_noise,
    shape,
    smoothing_noise,
)
from attrpriv.calibration.sampled_curve import curved_extent
from attrpriv.errors import RefusedError, UsageError
from attrpriv.framework import Problem
from attrpriv.framework.sampling import OPT_IN, Sampled
from attrpriv.guarantee import Certificate, Guarantee, SampledCheck, SampledEvidence
from attrpriv.mechanisms.accuracy import Noise, noise_error
from attrpriv.mechanisms.budget import Budget, budget
from attrpriv.mechanisms.gaussian import gaussians
from attrpriv.mechanisms.group_case import groups_of
from attrpriv.mechanisms.plan import ColumnPlan, Plan
from attrpriv.mechanisms.recorded import require_fine
from attrpriv.mechanisms.refusal import Refusal
from attrpriv.mechanisms.sampled_case import Case, gaussian_cases, group_cases
from attrpriv.mechanisms.sampled_digits import LEAST_ROWS, Digits, digits
from attrpriv.mechanisms.sampled_words import sampled_assumptions, sampled_model_error, sampled_notes
from attrpriv.mechanisms.statistic_plan import StatisticPlan
from attrpriv.mechanisms.wording import statement
from attrpriv.noise import granularity
from attrpriv.queries.query import Query

_ROUND_UP = 1 + 1e-9
_REFERENCE = "docs/theory/sampled.md"

Theta = tuple[Gaussian, ...] | tuple[Groups, ...]


@dataclass(frozen=True)
class _Simulated:
    """A case with what was drawn for it, and for its laws of which only the variance counts."""

    case: Case
    drawn: tuple[Drawn, ...]
    besides: tuple[Drawn, ...]

    @property
    def all(self) -> tuple[Drawn, ...]:
        return self.drawn + self.besides


def plan(problem: Problem) -> Plan:
    """The least Gaussian noise for the simulated laws."""
    query, theta = _asked(problem)
    sampled = _opted_in(problem)
    cases = (gaussian_cases if isinstance(theta[0], Gaussian) else group_cases)(problem, theta, query)  # type: ignore[arg-type]
    seed = hashlib.sha256(f"{problem.policy_digest}|{query.text}|{problem.n}".encode()).hexdigest()[:12]
    reason = None
    try:
        found = _simulate(cases, sampled, seed)
        extents = _extents(found, sampled)
        evidence, left = _evidence(problem, theta, query, sampled, seed, found, extents)
    except (RefusedError, UsageError) as error:
        reason = str(error)
    if reason is not None:
        raise Refusal(reason)
    return _planned(problem, theta, query, evidence, left)


def _asked(problem: Problem) -> tuple[Query, Theta]:
    """The one statistic, and the assumption, where they are of a kind that can be simulated."""
    kinds = {type(member) for member in problem.theta}
    if kinds != {Gaussian} and kinds != {Groups}:
        raise Refusal("needs a gaussian or groups assumption (assume: kind: gaussian, or groups) to simulate this statistic.")
    (query, *others) = problem.queries
    if others:
        raise Refusal(f"simulates one statistic at a time. Ask for {query.text} alone.")
    odd = [one.text for one in query.arguments if one.column is None]
    if odd:
        raise Refusal(f"simulates statistics of columns as they are. Got {odd[0]}; a view answers it.")
    averages = problem.model_copy(update={"queries": tuple(Query("avg", column) for column in query.columns)})
    theta: Theta = gaussians(averages) if kinds == {Gaussian} else groups_of(averages)
    _require_stated(problem, theta)
    return query, theta


def _require_stated(problem: Problem, theta: Theta) -> None:
    if not problem.alone:
        raise Refusal("a simulated law covers one release alone: nothing before it, and spend 1.")
    if problem.known_rows:
        raise Refusal("known_rows: laws are simulated for an adversary who knows no row. State 0, or ask for a view.")
    if problem.individuals is not None:
        raise Refusal("individuals: single rows are not covered for this statistic. Leave it out, or ask for averages.")
    if problem.calibration == "classical":
        raise Refusal("calibration: classical is for means; simulated laws need analytic.", usage=True)
    if problem.n < LEAST_ROWS:
        raise Refusal(f"simulated laws are nearly normal from {LEAST_ROWS} rows on. Got {problem.n}.")
    for gaussian in (member for member in theta if isinstance(member, Gaussian)):
        for column in {column for secret in problem.secrets for column in secret.columns}:
            require_fine(problem, gaussian, column)


def _opted_in(problem: Problem) -> Sampled:
    if problem.sampled is None:
        raise Refusal(
            "simulates the statistic's law given each secret and takes it as normal: a guarantee of kind sampled, only where "
            f"the policy opts in. Read docs/theory/sampled.md, then add {OPT_IN}"
        )
    return problem.sampled


# ----------------------------------------------------------------------------------------------------------- simulation


def _simulate(cases: Sequence[Case], sampled: Sampled, seed: str) -> list[_Simulated]:
    """All laws of all cases; equal ones are drawn once, with the same numbers."""
    start, found = int(seed, 16), []
    for case in cases:
        drawn = tuple(draw(law, case.values, sampled.runs, start + k) for k, law in enumerate(case.laws))
        besides = tuple(draw(law, case.values[:1], sampled.runs, start + 1000 + k) for k, law in enumerate(case.besides))
        found.append(_Simulated(case, drawn, besides))
    return found


def _extents(found: Sequence[_Simulated], sampled: Sampled) -> list[Extent]:
    """What holds for all of them at once: each interval gets its share of what may fail."""
    alpha = _alpha(found, sampled)
    return [_extent(one, alpha) for one in found]


def _extent(found: _Simulated, alpha: float) -> Extent:
    case = found.case
    if case.curves:
        return curved_extent(found.drawn, case.curves, alpha, corners=case.corners)
    return extent(found.drawn, alpha, found.besides, corners=case.corners)


def _alpha(found: Sequence[_Simulated], sampled: Sampled) -> float:
    """Each interval's share; that of skewness and kurtosis comes with each variance's."""
    statements = sum(one.statements + 2 * len(one.values) for case in found for one in case.all)
    return sampled.risk * (1 - 1e-9) / statements  # 1 - confidence is rounded


def _evidence(
    problem: Problem,
    theta: Theta,
    query: Query,
    sampled: Sampled,
    seed: str,
    found: Sequence[_Simulated],
    extents: Sequence[Extent],
) -> tuple[SampledEvidence, Budget]:
    recorded = _digits(problem, theta, query, found, min(one.least for one in extents))
    left = budget(problem, theta, recorded.charge, 0.0, None, 1)
    chance = chance_distance(sampled.runs, sum(len(one.distances) for case in found for one in case.all))
    allowed = chance + left.shape_eta + math.expm1(left.shape_lambda)
    checks = tuple(_check(case, one) for case, one in zip(found, extents, strict=True))
    _require_normal(query, checks, allowed)
    tail = min(0.25, left.delta * (1 - 1e-9))  # larger ones are no tails
    far = shape([one for case in found for one in case.all], _alpha(found, sampled))
    least = max(recorded.floor, math.sqrt(smoothing_noise(far, tail)))
    variance = least_sampled_noise(extents, left.epsilon, tail / TAIL_CHARGE * (1 - 1e-9), (least * _ROUND_UP) ** 2)
    evidence = SampledEvidence(
        columns=(query.text,),
        scale=math.sqrt(variance) * _ROUND_UP,
        floor=recorded.floor,
        runs=sampled.runs,
        confidence=sampled.confidence,
        seed=seed,
        allowed=allowed,
        tail=tail,
        variance=far.variance,
        skewness=far.skewness,
        kurtosis=far.kurtosis,
        spacing=dict(recorded.spacing),
        checks=checks,
        grid_lambda=left.grid_lambda,
        lattice_lambda=left.lattice_lambda,
        grid_eta=left.grid_eta,
        shape_lambda=left.shape_lambda,
        shape_eta=left.shape_eta,
        clip_delta=left.clip_delta,
        fit_delta=left.fit_delta,
        reserve=left.reserve,
    )
    return evidence, left


def _digits(problem: Problem, theta: Theta, query: Query, found: Sequence[_Simulated], least: float) -> Digits:
    ranges = {c: [one for member in theta for one in _sd_ranges(member, c)] for c in query.columns}
    sds = {column: min(low for low, _ in both) for column, both in ranges.items()}
    return digits(problem, query, sds, max(case.case.farthest for case in found), least)


def _sd_ranges(member: Gaussian | Groups, column: str) -> list[tuple[float, float]]:
    if isinstance(member, Gaussian):
        return [member.sd_range(column)]
    return [member.sd_range(category, column) for category in member.categories]


def _check(found: _Simulated, one: Extent) -> SampledCheck:
    case = found.case
    return SampledCheck(
        secret=case.secret,
        theta=case.theta,
        values=case.values,
        laws=len(found.all),
        gap=one.gap,
        least=one.least,
        spread=one.spread,
        distance=max(distance for drawn in found.all for distance in drawn.distances),
        skewed=case.skewed if math.isfinite(case.skewed) else None,
    )


def _require_normal(query: Query, checks: Sequence[SampledCheck], allowed: float) -> None:
    """A refusal where the simulated laws are visibly not normal: then the approximation is not one."""
    distance = max(check.distance for check in checks)
    if not distance <= allowed:
        raise Refusal(
            f"the simulated law of {query.text} is {distance:.3g} away from a normal one (largest difference of distribution "
            f"functions), more than chance and the stated shape explain ({allowed:.3g}). Use more rows, state a shape "
            "tolerance (shape: {lambda: , eta: }) if you know how far it is, or ask for a view."
        )


# ------------------------------------------------------------------------------------------------------------- the plan


def _planned(problem: Problem, theta: Theta, query: Query, evidence: SampledEvidence, left: Budget) -> Plan:
    certificate = Certificate(
        epsilon=problem.epsilon,
        delta=left.promised,
        evidence=evidence,
        assumes=(*sampled_assumptions(problem, theta, query, evidence), *left.fit_lines),
        exact=evidence.scale <= evidence.floor * _ROUND_UP**3,
        gap=max(0.0, evidence.scale - evidence.floor * _ROUND_UP**3),
    )
    certificate.verify()
    confidence = evidence.confidence
    promise = f"{statement(problem, left.promised)}, where the simulated laws are right: confidence {confidence!r}"
    model_error = sampled_model_error(problem, theta, evidence, left.promised)
    return Plan(
        mechanism="gaussian_approximation",
        queries=problem.queries,
        n=problem.n,
        epsilon=problem.epsilon,
        delta=left.promised,
        policy_digest=problem.policy_digest,
        columns=(_column(query, evidence),),
        statistic=_read(problem, theta, query),
        guarantee=Guarantee(kind="sampled", statement=promise, reference=_REFERENCE, confidence=confidence),
        certificate=certificate,
        model_error=model_error,
        notes=sampled_notes(problem, theta, query, evidence, model_error),
    )


def _column(query: Query, evidence: SampledEvidence) -> ColumnPlan:
    worst = max(evidence.checks, key=lambda check: check.gap / math.sqrt(check.least))
    return ColumnPlan(
        column=query.text,
        noise=Noise(kind="gaussian", scale=evidence.scale),
        independent=evidence.scale,
        error=noise_error(evidence.scale, 0.0),
        parameters={
            "floor": evidence.floor,
            "granularity": granularity(evidence.scale),
            "gap": worst.gap,
            "least_variance": worst.least,
            "spread_of_variances": worst.spread,
            "distance": evidence.distance,
            "runs": evidence.runs,
            "confidence": evidence.confidence,
            "values": list(worst.values),
        },
    )


def _read(problem: Problem, theta: Theta, query: Query) -> StatisticPlan:
    """Nothing is clipped, which would change the law; a public centre and spread say where values are looked for."""
    return StatisticPlan(
        fills={column: problem.missing.get(column) for column in query.columns},
        clips=dict.fromkeys(query.columns),
        scales={} if query.kind == "quantile" else {c: _scale(problem, theta, c) for c in query.columns},
    )


def _scale(problem: Problem, theta: Theta, column: str) -> tuple[float, float]:
    spread = max(high for member in theta for _, high in _sd_ranges(member, column))
    means = [
        mean
        for member in theta
        for mean in (
            [member.mean.get(column)]
            if isinstance(member, Gaussian)
            else [member.mean_of(category, column) for category in member.categories]
        )
    ]
    stated = [mean for mean in means if mean is not None]
    if stated:
        return (min(stated) + max(stated)) / 2, spread + max(stated) - min(stated)
    if column in problem.bounds:
        low, high = problem.bounds[column]
        return (low + high) / 2, max(spread, high - low)
    raise Refusal(f"assume: mean of {column} (or bounds) must be stated, so that squares can be added. Got none.", usage=True)
