"""`wasserstein`: noise for the distance by which the laws of a count have to be moved (Algorithm 4 of the paper).

    W  = the largest W_inf between the laws of F given two values that must look alike
    epsilon alone:    Laplace noise of scale W/epsilon
    with delta:       mass `ignored` of the transport is left aside: Laplace noise of scale W(ignored)/epsilon, ignored = delta;
                      or Gaussian noise for a shift of W(ignored), each with half of delta; whichever errs least

W is never an underestimate, so that neither is the noise. `laplace` needs less: it looks at the laws, not only at a distance.
"""

from __future__ import annotations

from typing import Literal

from attrpriv.cases.lattice import Counted, counted
from attrpriv.errors import UsageError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.tally import WholeSpread
from attrpriv.methods.base.tally_plan import row_scale
from attrpriv.methods.count_noise.plan import checks, count_plan
from attrpriv.methods.count_noise.proof import CountCheck, WassersteinEvidence
from attrpriv.numerics.calibration.direct import shift_scale
from attrpriv.numerics.divergences.families import family_wasserstein
from attrpriv.numerics.laws.records import CountPairs
from attrpriv.numerics.rounding import AIMED_UP, SOLVED_DOWN
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, refusing

_REFERENCE = "docs/theory/wasserstein.md"


def plan(problem: Problem) -> Plan:
    """The Wasserstein mechanism, in the form with the least error."""
    found = counted(problem)
    if found.tally.histogram:
        raise Refusal(Cause.STATISTIC, "is for one number; a histogram is covered by laplace.", needs="mechanism laplace")
    if found.known and not all(case.records.binary for case in found.cases):
        raise Refusal(
            Cause.PERSONS,
            "known_rows: with known rows only counts of an event are covered; use laplace.",
            needs="mechanism laplace",
        )
    ways = [_laplace(found, 0.0)]
    if problem.delta > 0:
        # Ignoring mass and moving the rest must add up to delta; the last digits are left to rounding.
        ways += [_laplace(found, problem.delta * SOLVED_DOWN)]
        ways += _gaussian(found, problem.delta * (0.5 - 1e-9), min(_error(found, way) for way in ways))
    best = min(ways, key=lambda way: _error(found, way))
    ignored = f", mass {best.ignored:.3g} left aside" if best.ignored else ""
    notes = (f"W = {best.distance}{ignored}.",)
    return count_plan(found, "wasserstein", best.noise, best.scale, best, _REFERENCE, notes=notes)


def _error(found: Counted, way: WassersteinEvidence) -> float:
    """Of Gaussian noise, with the further noise that single persons need."""
    rows = row_scale(found) if way.noise != "laplace" else 0.0
    return WholeSpread(way.noise, way.scale, rows).moments()[0]


def _laplace(found: Counted, ignored: float) -> WassersteinEvidence:
    distance = _distance(found, ignored)
    scale = max(row_scale(found), distance / found.problem.epsilon * AIMED_UP)
    return _evidence(found, distance, ignored, "laplace", scale)


def _gaussian(found: Counted, ignored: float, error: float) -> list[WassersteinEvidence]:
    """Nothing where it would err more than `error` anyhow."""
    distance = _distance(found, ignored)
    scale = shift_scale(distance, found.problem.epsilon, ignored, error)
    return [] if scale is None else [_evidence(found, distance, ignored, "gaussian", scale)]


def _evidence(
    found: Counted, distance: int, ignored: float, noise: Literal["laplace", "gaussian", "none"], scale: float
) -> WassersteinEvidence:
    kind: Literal["laplace", "gaussian", "none"] = noise if scale else "none"
    return WassersteinEvidence(
        checks=_checks(found), distance=distance, ignored=ignored, known=found.known, noise=kind, scale=scale
    )


def _checks(found: Counted) -> tuple[CountCheck, ...]:
    """Where rows are known, only those that differ remain. Events are ordered: fewer of them are never further apart."""
    return tuple(
        check.model_copy(update={"pairs": CountPairs.all_of(check.pairs.apart)}) if found.known else check
        for check in checks(found)
    )


def _distance(found: Counted, ignored: float) -> int:
    with refusing(UsageError, to=lambda error: Refusal(Cause.NUMBERS, str(error))):
        pairs = [CountPairs.all_of(case.pairs.apart) if found.known else case.pairs for case in found.cases]
        distances = [family_wasserstein(c.records, p, ignored).distance for c, p in zip(found.cases, pairs, strict=True)]
        return int(max(distances))
