"""What a reference view shows of the public, and how that changes with the least density and with fewer hidden columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from attrpriv.methods.base.count_test import CountTest
from attrpriv.methods.base.view_coverage import Coverage, Outlook
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.view.reference import ReferenceEvidence, kept_rows
from attrpriv.problem.problem import Problem
from attrpriv.problem.reference import PublicCells, Reference, value_name

# The least densities that are compared with the stated one.
_COMPARED = (1.0, 0.9, 0.8, 0.6, 0.5)


def with_coverage(plan: ViewPlan, problem: Problem) -> ViewPlan:
    """The plan, which says what it shows; a view of another kind as it is."""
    evidence = plan.certificate.evidence
    if problem.reference is None or problem.public_cells is None or not isinstance(evidence, ReferenceEvidence):
        return plan
    found = coverage_of(evidence, problem.reference, problem.public_cells)
    return plan.model_copy(update={"coverage": found, "notes": (*plan.notes, *found.lines)})


def coverage_of(evidence: ReferenceEvidence, reference: Reference, public: PublicCells) -> Coverage:
    """What the view of this evidence shows."""
    shown = {cell.name for cell in evidence.cells}
    named = [(value_name(cell.values), public.share_of(cell)) for cell in public.cells]
    return Coverage(
        n=evidence.n,
        values=len(public.cells),
        shown=len(shown),
        rows=sum(cell.keep for cell in evidence.cells),
        public=sum(share for name, share in named if name in shown),
        never_shown=tuple(name for name, _ in named if name not in shown),
        failure=evidence.failure(),
        rarest_event=evidence.rarest_event,
        delta=evidence.delta(0.0),
        outlook=_outlook(evidence.n, reference, public, evidence.test),
    )


@lru_cache(maxsize=16)  # a command plans the same view several times
def _outlook(n: int, reference: Reference, public: PublicCells, test: CountTest | None) -> tuple[Outlook, ...]:
    """The stated least density among others; then each of several columns alone."""
    stated = reference.least_density
    densities = sorted({*_COMPARED, stated}, reverse=True)
    rows = [_row(n, _with_density(reference, r), public, test, stated=r == stated) for r in densities]
    alone = [public.only(column) for column in public.columns] if len(public.columns) > 1 else []
    return (*rows, *(_row(n, reference, one, test, stated=False) for one in alone))


def _with_density(reference: Reference, least: float) -> Reference:
    return reference.model_copy(update={"least_density": least})


def _row(n: int, reference: Reference, public: PublicCells, test: CountTest | None, *, stated: bool) -> Outlook:
    keeps: Sequence[int] = kept_rows(n, reference, public, test)[0]
    return Outlook(
        columns=public.columns,
        least_density=reference.least_density,
        rows=sum(keeps),
        kept=sum(keeps) / n,
        public=sum(public.share_of(cell) for cell, keep in zip(public.cells, keeps, strict=True) if keep),
        stated=stated,
    )
