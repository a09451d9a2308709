"""A plan for a tally: what every mechanism for counts has in common once its noise is found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from attrpriv.cases.lattice import Counted
from attrpriv.methods.base.accuracy import ExpectedError
from attrpriv.methods.base.assemble import assemble
from attrpriv.methods.base.certificate import AnyEvidence, Certificate
from attrpriv.methods.base.discrete_noise import TallyNoise, WholeSpread
from attrpriv.methods.base.parts import TallyPart
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.sensitivity import LaplaceEvidence, LaplaceTerm
from attrpriv.methods.base.tally import Tally
from attrpriv.methods.base.wording import common_assumptions
from attrpriv.methods.count_noise.proof import CountCheck
from attrpriv.methods.count_noise.sets import set_assumptions
from attrpriv.methods.count_noise.sets_proof import CountCasesEvidence
from attrpriv.numerics.rounding import SOLVED_UP
from attrpriv.problem.problem import Problem
from attrpriv.queries.query import Query


class Asked(Protocol):
    """What is asked, and what is counted for it, still without noise."""

    @property
    def problem(self) -> Problem: ...

    @property
    def query(self) -> Query: ...

    @property
    def tally(self) -> Tally: ...


def checks(found: Counted) -> tuple[CountCheck, ...]:
    """The cases as a certificate stores them."""
    return tuple(
        CountCheck(secret=case.secret, theta=case.theta, records=case.records, pairs=case.pairs) for case in found.cases
    )


def count_plan(
    found: Counted,
    mechanism: str,
    noise: TallyNoise,
    scale: float,
    evidence: AnyEvidence,
    reference: str,
    *,
    exact: bool = True,
    gap: float = 0.0,
    notes: Sequence[str] = (),
) -> Plan:
    """The plan of additive noise on a tally under a counts assumption, certified."""
    assumes = (*count_assumptions(found), *set_assumptions(evidence))
    said = (*_notes(found, evidence), *notes)
    return tally_plan(found, mechanism, noise, scale, evidence, reference, assumes=assumes, notes=said, exact=exact, gap=gap)


def tally_plan(
    found: Asked,
    mechanism: str,
    noise: TallyNoise,
    scale: float,
    evidence: AnyEvidence,
    reference: str,
    *,
    assumes: tuple[str, ...],
    notes: Sequence[str],
    exact: bool = True,
    gap: float = 0.0,
) -> Plan:
    """The plan of additive noise on a tally, certified."""
    problem = found.problem
    rows = _row_evidence(found, noise, scale)
    extra = 0.0 if rows is None or noise == "laplace" else rows.terms[0].scale
    tally = found.tally.model_copy(update={"noise": noise, "scale": scale, "individuals": extra})
    certificate = Certificate(
        epsilon=problem.epsilon,
        delta=problem.delta,
        evidence=evidence,
        individuals=rows,
        assumes=assumes,
        exact=exact,
        gap=gap,
    )
    certificate.verify()
    return assemble(
        problem,
        mechanism,
        TallyPart(tally=tally),
        certificate,
        reference=reference,
        errors=tuple(additive_error(problem, tally, query) for query in problem.queries),
        model_error=evidence.model_error(problem.epsilon, problem.delta),
        notes=(*noise_notes(tally), *notes),
    )


def _row_evidence(found: Asked, noise: TallyNoise, scale: float) -> LaplaceEvidence | None:
    """One row moves everything that is released by at most the tally's width."""
    epsilon = found.problem.individuals
    if epsilon is None:
        return None
    # whole numbers: the grid of the noise is the grid of the answer, and costs nothing
    needed = scale if noise == "laplace" else row_scale(found)
    term = LaplaceTerm(column=found.query.text, sensitivity=float(found.tally.width), scale=needed, granularity=5e-324)
    return LaplaceEvidence(epsilon=epsilon, terms=(term,))


def row_scale(found: Asked) -> float:
    """The scale of Laplace noise that protects single rows; 0 where the policy does not ask for that."""
    epsilon = found.problem.individuals
    return 0.0 if epsilon is None else found.tally.width / epsilon * SOLVED_UP


def additive_error(problem: Problem, tally: Tally, query: Query) -> ExpectedError:
    """The error of whole-number noise; of a histogram, of each of its cells."""
    if query.whole_table:
        return ExpectedError(rmse=0.0, mean_absolute=0.0, alpha95=0.0, worst=0.0)
    spread = WholeSpread(tally.noise, tally.scale, tally.individuals, tally.unit_of(query, problem.n))
    rmse, absolute = spread.moments()
    exact = 0.0 if not (tally.scale or tally.individuals) else None
    return ExpectedError(rmse=rmse, mean_absolute=absolute, alpha95=spread.reach(0.95), worst=exact)


def count_assumptions(found: Counted) -> tuple[str, ...]:
    """Everything the proof rests on."""
    problem = found.problem
    lines = ["rows are independent, and given its category a row adds to the statistic by the law that is stated: assumed"]
    lines += [f"{'one of: ' if len(found.theta) > 1 else ''}{counts}" for counts in found.theta]
    first = found.theta[0]
    if first.prior and len(first.categories) > 2:
        lines.append("where categories are taken together, rows fall into them by the stated prior")
    if first.other is not None:
        lines.append(f"rows of no named category, missing entries included, count as {first.other}, and follow its law")
    lines += [f"the law of {c} is that of its entries with missing ones replaced" for c in problem.missing]
    known = (
        f"the adversary knows at most {found.known} of the rows: of each its category, what it adds, or both"
        if problem.known_rows
        else "the adversary knows no row"
    )
    return (*lines, known, *common_assumptions(problem))


def noise_notes(tally: Tally) -> tuple[str, ...]:
    """What the noise means for the answer."""
    if tally.noise == "none":
        return () if tally.individuals else ("the exact answer is private already; no noise is added.",)
    return ("whole numbers: the answer is the count plus whole-number noise, and may be below 0 or above n.",)


def _notes(found: Counted, evidence: AnyEvidence) -> tuple[str, ...]:
    notes = []
    column = found.query.column
    if column is not None and column in found.problem.bins:
        notes.append(f"{column}: each entry counts as the value of its bin; the answer is about these, not about the entries.")
    if any(case.population for case in found.cases):
        notes.append("a share of the population is hidden whatever share this table has.")
    if isinstance(evidence, CountCasesEvidence):
        notes.append("sets of values are hidden by the exact law of the mixture, under the stated prior.")
    elif any(secret.cases is not None for secret in found.problem.secrets):
        notes.append("sets of values are hidden point by point.")
    return tuple(notes)
