"""`constant` under records: the public rows' own mean, with an error that does not leave out what these rows do not know.

    error of the mean m of N public rows, for a table of n rows:   own spread sd/sqrt(n), and how far m may be off

How far m may be off is the largest distance of a listed law's mean from it, and at least the sampling error sd/sqrt(N).
"""

from __future__ import annotations

import math

from attrpriv.cases.recorded import RecordedCase, recorded_case
from attrpriv.methods.base.accuracy import ExpectedError, Noise, folded_reach, folded_size
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import ConstantEvidence
from attrpriv.methods.base.parts import AveragesPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.base.tally_plan import ExpectedCount, constant_plan
from attrpriv.methods.base.tally_plan import Part as CountPart
from attrpriv.methods.recorded.plan import event_tally
from attrpriv.numerics.calibration.recorded_members import RecordedLaw
from attrpriv.problem.problem import Problem

_REFERENCE = "docs/theory/yardsticks.md"
_NOTE = "its error counts in how far the public rows' own mean may be off."


def plan(problem: Problem) -> Plan:
    """The mean of the public rows; the number of rows is public under every assumption."""
    if problem.public:
        return _averages(problem, ())
    case = recorded_case(problem)
    if case.asked.event is not None:
        return constant_plan(problem, event_tally(case), _expected(case), notes=(_NOTE,))
    laws, unit = case.checks[0].laws, float(case.asked.unit)
    centre, bias, sd = _off(laws, problem.n)
    off = {"bias": bias * unit, "sd": sd * unit}
    column = ColumnPlan(
        column=case.asked.name,
        noise=Noise(kind="none"),
        error=_error(off["bias"], off["sd"]),
        centre=centre * unit,
        parameters=off,
    )
    return _averages(problem, (column,))


def _averages(problem: Problem, columns: tuple[ColumnPlan, ...]) -> Plan:
    certificate = Certificate(
        epsilon=problem.epsilon, delta=problem.delta, evidence=ConstantEvidence(), assumes=("no row is read",)
    )
    certificate.verify()
    return assemble(
        problem,
        "constant",
        AveragesPart(columns=columns),
        certificate,
        reference=_REFERENCE,
        model_error=certificate.evidence.model_error(problem.epsilon, problem.delta),
        notes=("a yardstick: auto never chooses it.", _NOTE) if columns else (),
    )


def _off(laws: tuple[RecordedLaw, ...], n: int) -> tuple[float, float, float]:
    """The first law's mean, how far it may be off, and the largest spread of an average of n rows."""
    moments = [law.moments() for law in laws]
    centre, sd = moments[0]
    sampling = sd / math.sqrt(sum(laws[0].counts))
    return centre, max(sampling, *(abs(mean - centre) for mean, _ in moments)), max(s for _, s in moments) / math.sqrt(n)


def _error(bias: float, sd: float) -> ExpectedError:
    return ExpectedError(rmse=math.hypot(bias, sd), mean_absolute=folded_size(bias, sd), alpha95=folded_reach(bias, sd, 0.95))


def _expected(case: RecordedCase) -> list[ExpectedCount]:
    """The count under each law, and under the file's own law with its share off by a sampling error."""
    n, laws = case.problem.n, case.checks[0].laws
    share, sd = laws[0].moments()
    sampling = sd / math.sqrt(sum(laws[0].counts))
    shares = [law.moments()[0] for law in laws] + [max(0.0, share - sampling), min(1.0, share + sampling)]
    return [ExpectedCount((CountPart(1.0, n * p, math.sqrt(n * p * (1 - p))),)) for p in shares]
