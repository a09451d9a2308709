"""`transport` for counts: the number of members is read, and the count is moved into a law close to a public one.

Exact probabilities: the target laws are within bounds around a reference law that is chosen by the expected error under the
prior. Intervals, of an event in few rows: the same at their middle, with Laplace noise for the rest. What is drawn from depends
on the secret and is made when it is known; the bounds are public (docs/theory/count-transport.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from attrpriv.cases.lattice import CountCase, Counted, count_assumptions, counted, worst_law
from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.base.accuracy import ExpectedError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.parts import TallyPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.base.tally import Tally
from attrpriv.methods.count_transport.hybrid import hybrid_moved, least_hybrid_scale, require_feasible
from attrpriv.methods.count_transport.lattice import Moved, largest, moved
from attrpriv.methods.count_transport.proof import CountHybridEvidence, CountTransportEvidence
from attrpriv.methods.count_transport.reference import tuned_transport
from attrpriv.numerics.calibration.kernel import middle
from attrpriv.numerics.laws.count_cases import CountPrior
from attrpriv.problem.counted import share_range
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, refusal_of, refusing
from attrpriv.queries.query import Query

_REFERENCE = "docs/theory/count-transport.md"
# Under intervals, the parts of epsilon that the transport itself is made for.
_PARTS = (0.03, 0.12, 0.35)


@dataclass(frozen=True)
class _Found:
    """A certified way, and how far it moves the count."""

    evidence: CountTransportEvidence | CountHybridEvidence
    error: Moved
    scale: float = 0.0


def plan(problem: Problem) -> Plan:
    """The transport of least expected error."""
    found = counted(problem)
    case = _one_case(found)
    best = _solved(found, case, _priors(found, case))
    certificate = Certificate(
        epsilon=problem.epsilon, delta=problem.delta, evidence=best.evidence, assumes=_assumes(found, case, best)
    )
    certificate.verify()
    tally = _tally(found.tally, best)
    return assemble(
        problem,
        "transport",
        TallyPart(tally=tally),
        certificate,
        reference=_REFERENCE,
        errors=tuple(_answer_error(tally, query, problem.n, best.error) for query in problem.queries),
        model_error=best.evidence.model_error(problem.epsilon, problem.delta),
        notes=_notes(found, case, best),
    )


def _one_case(found: Counted) -> CountCase:
    if found.tally.histogram:
        raise Refusal(
            Cause.STATISTIC, "of counts is for one number; a histogram is covered by laplace.", needs="mechanism laplace"
        )
    if len(found.cases) != 1:
        raise Refusal(Cause.SECRET, "reads one secret, under one assumption.", needs="one secret under one assumption")
    if found.known:
        raise Refusal(
            Cause.PERSONS,
            "known_rows: must be 0; who knows rows knows more than the laws that are moved.",
            needs="known_rows 0",
        )
    if found.problem.individuals is not None:
        raise Refusal(
            Cause.PERSONS,
            "individuals: of counts, single rows are not protected by it; use laplace.",
            needs="mechanism laplace",
        )
    return found.cases[0]


def _priors(found: Counted, case: CountCase) -> list[CountPrior]:
    """What errors are averaged over: the prior, and where its share is an interval, both ends of it too."""
    return list(dict.fromkeys(_prior(found, case, at) for at in (0.5, 0.0, 1.0)))


def _prior(found: Counted, case: CountCase, at: float = 0.5) -> CountPrior:
    """Binomial by the stated share (at this place of its interval), of a population by any share of its range, else flat."""
    pairs = case.pairs
    if case.population:
        return CountPrior(pairs.n, 0, pairs.n, shares=share_range(found.problem.secrets[0]))
    shares = found.theta[0].shares()
    members = [one.name for one in found.tally.categories if one.member]
    if any(name not in shares for name in members):
        return CountPrior(pairs.n, pairs.low, pairs.high)
    share = min(1.0, math.fsum((1 - at) * shares[name][0] + at * shares[name][1] for name in members))
    return CountPrior(pairs.n, pairs.low, pairs.high, share=share if 0 < share < 1 else None)


def _solved(found: Counted, case: CountCase, priors: list[CountPrior]) -> _Found:
    with refusing(RefusedError, UsageError, to=lambda error: refusal_of(error, name="transport")):
        return _exact(found, case, priors) if case.rows.exact else _hybrid(found, case, priors)


def _exact(found: Counted, case: CountCase, priors: list[CountPrior]) -> _Found:
    transport, error = tuned_transport(case.rows, priors[0], found.problem.epsilon, found.problem.delta)
    error = largest([error, *(moved(transport, prior) for prior in priors[1:])])
    return _Found(CountTransportEvidence(secret=case.secret, pairs=case.pairs, transport=transport), error)


def _hybrid(found: Counted, case: CountCase, priors: list[CountPrior]) -> _Found:
    """The best share of epsilon for the transport itself: the more it has, the less it moves, and the more noise is needed."""
    require_feasible(case.rows, found.problem.n)
    ways = []
    for part in _PARTS:
        transport, _ = tuned_transport(middle(case.rows), priors[0], part * found.problem.epsilon)
        scale = least_hybrid_scale(transport, case.rows, case.pairs, found.problem.epsilon)
        evidence = CountHybridEvidence(
            secret=case.secret, records=case.rows, pairs=case.pairs, transport=transport, scale=scale
        )
        error = largest([hybrid_moved(transport, case.rows, prior, scale) for prior in priors])
        ways.append(_Found(evidence, error, scale))
    return min(ways, key=lambda way: way.error.rmse)


def _tally(tally: Tally, best: _Found) -> Tally:
    changes = {
        "noise": "kernel",
        "scale": best.scale,
        "tails": best.error.tail,
        "tail_step": best.error.step,
        "parameters": {"reads_secret": True},
    }
    return tally.model_copy(update=changes)


def _answer_error(tally: Tally, query: Query, n: int, error: Moved) -> ExpectedError:
    """In the unit of an answer."""
    if query.whole_table:
        return ExpectedError(rmse=0.0, mean_absolute=0.0, alpha95=0.0, worst=0.0)
    alpha = float(error.average_width(0.05))
    return ExpectedError(rmse=error.rmse, mean_absolute=error.mean_absolute, alpha95=alpha).scaled(tally.unit_of(query, n))


def _assumes(found: Counted, case: CountCase, best: _Found) -> tuple[str, ...]:
    """What reads the secret rests on more than what sees the count alone."""
    lines = [*count_assumptions(found)]
    if isinstance(best.evidence, CountHybridEvidence):
        lines.append("the secret is read; every law within the intervals is covered, one for all rows of a category")
    else:
        lines.append("the secret is read, so that the stated probabilities are taken as exact: no tolerance is covered")
    if case.population:
        lines.append("given its category, what a row adds does not depend on the population's share")
    return tuple(lines)


def _notes(found: Counted, case: CountCase, best: _Found) -> tuple[str, ...]:
    kind: Literal["prior", "share", "flat"] = "flat"
    if case.population:
        kind = "share"
    elif _prior(found, case).stated:
        kind = "prior"
    at = worst_law(found)
    words = {
        "prior": f"expected errors and intervals are averages over the prior of the assumption{at}.",
        "share": f"expected errors and intervals are averages over all shares of the range alike{at}.",
        "flat": f"expected errors are averages over all values of the secret alike{at}; intervals hold for each of them.",
    }
    notes = [words[kind]]
    if isinstance(best.evidence, CountHybridEvidence):
        notes.append("it reads the secret, and adds noise for the width of the intervals.")
    else:
        notes.append("it reads the secret, and rests on the stated probabilities as they are: no tolerance is covered.")
    if case.population:
        notes.append("a share of the population is hidden because every count of this table is.")
    elif any(secret.cases is not None for secret in found.problem.secrets):
        notes.append("sets of values are hidden point by point.")
    return tuple(notes)
