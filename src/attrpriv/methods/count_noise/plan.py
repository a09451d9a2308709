"""A plan of noise on a tally under a counts assumption: what laplace, gaussian and wasserstein have in common."""

from __future__ import annotations

from collections.abc import Sequence

from attrpriv.cases.lattice import Counted, count_assumptions
from attrpriv.methods.base.certificate import AnyEvidence
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.tally import TallyNoise
from attrpriv.methods.base.tally_plan import tally_plan
from attrpriv.methods.count_noise.proof import CountCheck
from attrpriv.methods.count_noise.sets import set_assumptions
from attrpriv.methods.count_noise.sets_proof import CountCasesEvidence


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
