"""A plan for a tally: what every method that counts has in common once its noise is found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from attrpriv.methods.base.accuracy import ExpectedError, folded_size, folded_tail, largest_error
from attrpriv.methods.base.certificate import AnyEvidence, Certificate
from attrpriv.methods.base.evidence import ConstantEvidence, LaplaceEvidence, LaplaceTerm
from attrpriv.methods.base.parts import TallyPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.base.tally import Tally, TallyNoise, WholeSpread
from attrpriv.numerics.calibration.kernel_accuracy import KernelError
from attrpriv.numerics.laws.float_law import float_law
from attrpriv.numerics.laws.lattice import binomial_sum
from attrpriv.numerics.laws.lattice_law import LatticeLaw
from attrpriv.numerics.laws.records import RecordLaws
from attrpriv.numerics.rounding import SOLVED_UP
from attrpriv.problem.problem import Problem
from attrpriv.queries.query import Query

if TYPE_CHECKING:
    from attrpriv.numerics.laws.count_cases import CountPrior


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


# ----------------------------------------------------------------------------------------------------------------------------
# A count answered by a public number: no row is read.


_REFERENCE = "docs/theory/yardsticks.md"


def constant_plan(problem: Problem, whole: Tally, laws: Sequence[ExpectedCount], notes: Sequence[str] = ()) -> Plan:
    """The middle of what the count is expected to be under the laws of Theta; its error is that of the worst of them."""
    means = [law.mean for law in laws]
    centre = round((min(means) + max(means)) / 2)
    off = {"bias": max(abs(mean - centre) for mean in means), "sd": max(law.sd for law in laws)}
    tally = whole.model_copy(update={"centre": centre, "parameters": off})
    certificate = Certificate(
        epsilon=problem.epsilon, delta=problem.delta, evidence=ConstantEvidence(), assumes=("no row is read",)
    )
    error = largest_error([law.error(centre) for law in laws])
    exact = ExpectedError(rmse=0.0, mean_absolute=0.0, alpha95=0.0, worst=0.0)
    errors = tuple(exact if q.whole_table else error.scaled(tally.unit_of(q, problem.n)) for q in problem.queries)
    kind = () if all(query.whole_table for query in problem.queries) else ("a yardstick: auto never chooses it.",)
    certificate.verify()
    return assemble(
        problem,
        "constant",
        TallyPart(tally=tally),
        certificate,
        reference=_REFERENCE,
        errors=errors,
        model_error=certificate.evidence.model_error(problem.epsilon, problem.delta),
        notes=(*kind, *notes),
    )


# ----------------------------------------------------------------------------------------------------------------------------
# How far a count is from a fixed number, over the tables of one law of the rows: the error of the constant answer.
#
#     F given a:   a rows of the category and n - a others;     a by the prior, in the range of the secret
#     mean_absolute = E|F - c|,   rmse^2 = E (F - c)^2,   alpha95 = the least t with P(|F - c| > t) <= .05
#
# The law of F is a mixture over a. In few rows its parts are exact; in many they are normal laws. For expected errors only.


# Supports up to this size are looked at value by value; of more rows, so many counts are looked at.
_FEW_VALUES = 400
_NODES = 65
_HALVINGS = 60


@dataclass(frozen=True)
class Part:
    """A part of a mixture: its chance, mean and standard deviation, and its law where that is looked at."""

    chance: float
    mean: float
    sd: float
    law: LatticeLaw | None = None


@dataclass(frozen=True)
class ExpectedCount:
    """The law of a count over all tables of one law of the rows."""

    parts: tuple[Part, ...]

    @property
    def mean(self) -> float:
        return math.fsum(part.chance * part.mean for part in self.parts)

    @property
    def sd(self) -> float:
        return self._rmse(self.mean)

    def _rmse(self, centre: float) -> float:
        return math.sqrt(math.fsum(p.chance * (p.sd**2 + (p.mean - centre) ** 2) for p in self.parts))

    def error(self, centre: int) -> ExpectedError:
        """Of the answer `centre`."""
        laws = [(part.chance, part.law) for part in self.parts if part.law is not None]
        if len(laws) == len(self.parts):
            size, reach = _whole(laws, centre)
        else:
            size = math.fsum(p.chance * folded_size(p.mean - centre, p.sd) for p in self.parts)
            reach = self._reach(centre)
        return ExpectedError(rmse=self._rmse(centre), mean_absolute=size, alpha95=reach)

    def _reach(self, centre: float) -> float:
        low, high = 0.0, self._rmse(centre) / math.sqrt(0.05)  # Chebyshev
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            missed = math.fsum(p.chance * folded_tail(p.mean - centre, p.sd, middle) for p in self.parts)
            low, high = (middle, high) if missed > 0.05 else (low, middle)
        return high


def _whole(laws: Sequence[tuple[float, LatticeLaw]], centre: int) -> tuple[float, float]:
    """E|F - c| and alpha95 by adding up."""
    chances: dict[int, float] = {}
    for chance, law in laws:
        for value, mass in enumerate(law.masses.tolist(), law.start):
            away = abs(value - centre)
            chances[away] = chances.get(away, 0.0) + chance * mass
    left, reach = 1.0, 0
    for away in sorted(chances):
        left, reach = left - chances[away], away
        if left <= 0.05:
            break
    return math.fsum(away * chance for away, chance in chances.items()), float(reach)


def expected_count(records: RecordLaws, prior: CountPrior) -> ExpectedCount:
    """Under one law of the rows, given by the lower ends of `records`."""
    counts, chances = prior.nodes(_NODES)
    few = prior.n * records.width < _FEW_VALUES
    (m1, v1), (m0, v0) = (_moments(records.values, [float(low) for low, _ in law]) for law in (records.member, records.rest))
    parts = []
    for a, chance in zip(counts.tolist(), chances.tolist(), strict=True):
        law = float_law(records, prior.n, a) if few else None
        rest = prior.n - a
        parts.append(Part(chance, a * m1 + rest * m0, math.sqrt(a * v1 + rest * v0), law))
    return ExpectedCount(tuple(parts))


def expected_events(n: int, states: Sequence[float], probabilities: Sequence[float]) -> ExpectedCount:
    """Of a population in one of some states: all rows count with the same probability."""
    parts = []
    for chance, p in zip(states, probabilities, strict=True):
        law = binomial_sum(n, p, 0, 0.0) if n < _FEW_VALUES else None
        parts.append(Part(chance, n * p, math.sqrt(n * p * (1 - p)), law))
    return ExpectedCount(tuple(parts))


def _moments(values: Sequence[int], law: Sequence[float]) -> tuple[float, float]:
    total = math.fsum(law)
    mean = math.fsum(v * p for v, p in zip(values, law, strict=True)) / total
    return mean, max(0.0, math.fsum((v - mean) ** 2 * p for v, p in zip(values, law, strict=True)) / total)
