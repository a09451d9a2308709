"""`optimal`: the least expected error that any mechanism of pure epsilon can have, by linear programming.

Two forms. Where the probabilities are exact and the secret is this table's, the mechanism reads the secret and moves the
count as little as possible; where only near values must look alike, it hides just those in up to 40 rows. For a population's
share it does so too, in up to 24 rows: it reads the table's own count, and need not hide that one. Otherwise (intervals, or
more rows) it sees the count alone, and for intervals the corner covers the whole box. All are solved in floats and then
certified in whole numbers (docs/theory/optimal.md). For up to 150 rows' worth of secrets and answers; `auto` tries up to 60.
"""

from __future__ import annotations

import math
from typing import Literal

from attrpriv.cases.lattice import CountCase, Counted, count_assumptions, counted, worst_law
from attrpriv.errors import CertificateError, RefusedError, UsageError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.parts import TallyPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.base.tally_plan import kernel_answer_error
from attrpriv.methods.optimal.near_coupling import certified_near_coupling, near_solvable
from attrpriv.methods.optimal.population_coupling import certified_population_coupling, population_solvable
from attrpriv.methods.optimal.proof import CouplingEvidence, KernelEvidence
from attrpriv.numerics.calibration.coupling import certified_coupling
from attrpriv.numerics.calibration.kernel import certified_kernel
from attrpriv.numerics.calibration.kernel_accuracy import KernelError, coupling_error, kernel_error, largest
from attrpriv.numerics.calibration.linear_program import MOST_SECRETS, MOST_VALUES
from attrpriv.numerics.laws.count_cases import CountPrior
from attrpriv.problem.counted import share_range
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, refusal_of, refusing

AUTO_SECRETS = 60

Priors = list[list[float]]


def plan(problem: Problem) -> Plan:
    """The best mechanism, in the form that is covered."""
    found = counted(problem)
    case = _one_case(found)
    evidence, error = _solved(found, case, _priors(found, case))
    certificate = Certificate(
        epsilon=problem.epsilon, delta=problem.delta, evidence=evidence, assumes=_assumes(found, evidence)
    )
    certificate.verify()
    reads = isinstance(evidence, CouplingEvidence)
    changes = {"noise": "kernel", "tails": tuple(error.tail), "parameters": {"reads_secret": reads}}
    tally = found.tally.model_copy(update=changes)
    return assemble(
        problem,
        "optimal",
        TallyPart(tally=tally),
        certificate,
        reference="docs/theory/optimal.md",
        errors=tuple(kernel_answer_error(tally, query, problem.n, error) for query in problem.queries),
        model_error=evidence.model_error(problem.epsilon, problem.delta),
        notes=_notes(found, case, reads),
    )


def _assumes(found: Counted, evidence: KernelEvidence | CouplingEvidence) -> tuple[str, ...]:
    """What reads the secret rests on the one stated law."""
    if not isinstance(evidence, CouplingEvidence):
        return count_assumptions(found)
    lines = ["the secret is read, so that the stated probabilities are taken as exact: no tolerance is covered"]
    if evidence.shares is not None:
        lines.append("given its category, what a row adds does not depend on the population's share")
    return (*count_assumptions(found), *lines)


def too_slow(problem: Problem) -> str | None:
    """The size up to which `auto` solves the linear program, where it could be solved, but not within seconds."""
    try:
        case = _one_case(counted(problem))
    except Refusal:
        return None
    secrets, values = case.pairs.high - case.pairs.low + 1, case.pairs.n * case.records.width + 1
    long = AUTO_SECRETS < secrets <= MOST_SECRETS and values <= MOST_VALUES
    return f"{AUTO_SECRETS} values of the secret" if long else None


def _one_case(found: Counted) -> CountCase:
    if found.tally.histogram:
        raise Refusal(Cause.STATISTIC, "is for one number; a histogram is covered by laplace.", needs="mechanism laplace")
    if len(found.cases) != 1:
        raise Refusal(Cause.SECRET, "solves for one secret under one assumption.", needs="one secret under one assumption")
    if found.known:
        raise Refusal(
            Cause.PERSONS,
            "known_rows: must be 0; who knows rows knows more than the laws it is solved for.",
            needs="known_rows 0",
        )
    if found.problem.individuals is not None:
        raise Refusal(
            Cause.PERSONS, "individuals: single rows are not protected by it; use laplace.", needs="mechanism laplace"
        )
    return found.cases[0]


def _priors(found: Counted, case: CountCase) -> list[list[float]]:
    """What errors are averaged over: the prior, and where its share is an interval, both ends of it too."""
    return list(map(list, dict.fromkeys(tuple(_prior(found, case, at)) for at in (0.5, 0.0, 1.0))))


def _prior(found: Counted, case: CountCase, at: float) -> list[float]:
    """The counts of the range, binomial by the prior share (at this place of its interval), else all alike."""
    counts = range(case.pairs.low, case.pairs.high + 1)
    shares = found.theta[0].shares()
    members = [one.name for one in found.tally.categories if one.member]
    if case.population or any(name not in shares for name in members):
        return [1 / len(counts)] * len(counts)
    share = min(1.0, math.fsum((1 - at) * shares[name][0] + at * shares[name][1] for name in members))
    if not 0 < share < 1:
        return [1 / len(counts)] * len(counts)
    n = case.pairs.n
    logs = [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in counts]
    logs = [log + k * math.log(share) + (n - k) * math.log1p(-share) for log, k in zip(logs, counts, strict=True)]
    most = max(logs)
    weights = [math.exp(log - most) for log in logs]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def _solved(found: Counted, case: CountCase, priors: Priors) -> tuple[KernelEvidence | CouplingEvidence, KernelError]:
    with refusing(RefusedError, UsageError, CertificateError, to=lambda error: refusal_of(error, name="optimal")):
        ways: list[tuple[KernelEvidence | CouplingEvidence, KernelError]] = []
        if case.records.exact and not case.population:
            ways.append(_coupling(found, case, priors))
        # Of many rows what reads the secret hides all pairs of the range; where near ones would do, the other may win.
        if not ways or _too_many_near(case):
            ways.append(_kernel(found, case, priors))
        if case.population and population_solvable(case.rows, case.pairs.n):
            ways.append(_population(found, case))
        return min(ways, key=lambda way: way[1].mean_absolute)


def _near(case: CountCase) -> bool:
    """Whether only near values of the secret have to look alike."""
    return case.pairs.apart < case.pairs.high - case.pairs.low


def _too_many_near(case: CountCase) -> bool:
    """Whether the program of the near pairs would be too large."""
    return _near(case) and not near_solvable(case.records, case.pairs)


def _coupling(found: Counted, case: CountCase, priors: Priors) -> tuple[CouplingEvidence, KernelError]:
    solve = certified_near_coupling if _near(case) and not _too_many_near(case) else certified_coupling
    solved = solve(case.records, case.pairs, found.problem.epsilon, priors[0])
    evidence = CouplingEvidence(
        secret=case.secret,
        records=case.records,
        pairs=case.pairs,
        start=solved.start,
        sources=solved.sources,
        targets=solved.targets,
    )
    return evidence, largest([coupling_error(solved, case.records, case.pairs, prior) for prior in priors])


def _population(found: Counted, case: CountCase) -> tuple[CouplingEvidence, KernelError]:
    """The table's count is read; only the population's share is hidden. Errors are averages over all shares of the range."""
    n, shares = case.pairs.n, share_range(found.problem.secrets[0])
    counts, chances = CountPrior(n, 0, n, shares=shares).nodes(n + 1)
    prior = [0.0] * (n + 1)
    for a, chance in zip(counts.tolist(), chances.tolist(), strict=True):
        prior[a] = chance
    solved = certified_population_coupling(case.rows, n, shares, found.problem.epsilon, prior)
    evidence = CouplingEvidence(
        secret=case.secret,
        records=case.rows,
        pairs=case.pairs,
        start=solved.start,
        sources=solved.sources,
        targets=solved.targets,
        shares=shares,
    )
    return evidence, coupling_error(solved, case.rows, case.pairs, prior)


def _kernel(found: Counted, case: CountCase, priors: Priors) -> tuple[KernelEvidence, KernelError]:
    family: Literal["counts", "corner"] = "counts" if case.records.exact else "corner"
    solved = certified_kernel(case.records, case.pairs, found.problem.epsilon, priors[0], family)
    evidence = KernelEvidence(
        secret=case.secret,
        records=case.records,
        pairs=case.pairs,
        family=family,
        start=solved.start,
        weights=solved.weights,
    )
    return evidence, largest([kernel_error(solved, case.records, case.pairs, prior, family) for prior in priors])


def _words(found: Counted) -> str:
    return "the prior of the assumption" if found.theta[0].shares() else "all values of the secret alike"


def _notes(found: Counted, case: CountCase, reads: bool) -> tuple[str, ...]:
    notes = [f"expected errors are averages over {_words(found)}{worst_law(found)}."]
    if case.records.exact and not case.population and _too_many_near(case):
        notes.append("with within and so many rows this is not the least possible error: only smaller programs are solved.")
    if reads:
        notes.append("it reads the secret, and rests on the stated probabilities as they are: no tolerance is covered.")
    return tuple(notes)
