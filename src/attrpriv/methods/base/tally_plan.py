"""A plan for a tally: what every method that counts has in common once its noise is found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from attrpriv.methods.base.accuracy import ExpectedError
from attrpriv.methods.base.certificate import AnyEvidence, Certificate
from attrpriv.methods.base.evidence import LaplaceEvidence, LaplaceTerm
from attrpriv.methods.base.parts import TallyPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.base.tally import Tally, TallyNoise, WholeSpread
from attrpriv.numerics.calibration.kernel_accuracy import KernelError
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


def noise_notes(tally: Tally) -> tuple[str, ...]:
    """What the noise means for the answer."""
    if tally.noise == "none":
        return () if tally.individuals else ("the exact answer is private already; no noise is added.",)
    return ("whole numbers: the answer is the count plus whole-number noise, and may be below 0 or above n.",)


def kernel_answer_error(tally: Tally, query: Query, n: int, error: KernelError) -> ExpectedError:
    """The error of a kernel in the unit of an answer."""
    if query.whole_table:
        return ExpectedError(rmse=0.0, mean_absolute=0.0, alpha95=0.0, worst=0.0)
    unit = tally.unit_of(query, n)
    found = ExpectedError(
        rmse=error.rmse,
        mean_absolute=error.mean_absolute,
        alpha95=float(error.average_width(0.05)),
        worst=float(next((t for t, chance in enumerate(error.tail) if chance == 0), len(error.tail))),
    )
    return found.scaled(unit)
