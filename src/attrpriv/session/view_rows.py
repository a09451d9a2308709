"""A view bound to its table: drawn once and recorded, or taken up again from the ledger.

What must never change: the secret state is in the ledger before a single row is handed out, and a ledger that holds a view
never draws another. What is recorded with it must be what is asked for: other cells or ranges, another `row_id` or another
table would be another view. A column that it leaves out (`identifiers`) stays out; more may be left out.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from attrpriv.accounting.hash_chain import Entry
from attrpriv.accounting.ledger import Ledger
from attrpriv.engines.tables import Source
from attrpriv.engines.view import Cells, Drawn, draw, require_same_table, view_table
from attrpriv.engines.view_answers import CellMoments, CellSums, Viewed, check_queries, view_moments, view_sums
from attrpriv.engines.view_file import write_view
from attrpriv.engines.view_quantiles import view_quantiles, weighted_hits
from attrpriv.engines.view_values import AtMost, Group, Quadratic
from attrpriv.errors import CertificateError, DataError, RefusedError
from attrpriv.methods.base.accuracy import Spread
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.view.answers import standard_error
from attrpriv.methods.view.plan import public_shares
from attrpriv.numerics.rounding import COMPUTED_DOWN
from attrpriv.policy import Policy
from attrpriv.policy.models import digest_of
from attrpriv.queries.query import Query
from attrpriv.session.release import Answer, Value


@dataclass(frozen=True)
class ViewRows:
    """The rows of a recorded view, not yet read."""

    plan: ViewPlan
    policy: Policy
    source: Source
    cells: Cells
    drawn: Drawn

    @classmethod
    def recorded_or_drawn(
        cls,
        plan: ViewPlan,
        policy: Policy,
        source: Source,
        ledger: Ledger,
        time: Callable[[], str],
        table: str | None = None,
        known: ViewRows | None = None,
    ) -> ViewRows:
        """The rows of the recorded view, or of a new one of the table that is called so.

        `known`: rows whose table was compared with the view before.
        """
        _require_certified(plan)
        cells = _cells(plan, policy)
        public = _public(plan, policy, cells)
        first = ledger.first()
        if first is None:
            drawn = draw(source, cells, plan.n, policy.row_id)
            ledger.commit(
                kind="view",
                time=time(),
                policy_digest=plan.policy_digest,
                plan=public,
                answers=[],
                details={"certificate": plan.certificate.to_json(), "table": table},
                state=drawn.to_json(),
            )
            return cls(plan, policy, source, cells, drawn)
        ledger.refuse("answer")
        _require_same_view(first, public, policy)
        drawn = _recorded(ledger)
        if known is None or (known.source, known.drawn) != (source, drawn):
            require_same_table(source, cells, drawn, policy.row_id)
        return cls(plan, policy, source, cells, drawn)

    def table(self) -> Any:
        """The view as a lazy Ibis table."""
        return view_table(self.source, self.cells, self.drawn, self.policy.row_id, self.policy.identifiers)

    def write(self, out: Path, *, low_memory: bool) -> None:
        write_view(self.source, self.table(), out, self.plan.rows, low_memory=low_memory)

    def answers(self, queries: Sequence[Query]) -> tuple[Answer, ...]:
        """Each query from the view, scaled to the public composition."""
        require_answerable(self.source, self.policy, queries)
        shares = public_shares(self.plan, self.policy.composition)
        return tuple(self._answer(query, shares) for query in queries)

    def _answer(self, query: Query, shares: Mapping[str, float]) -> Answer:
        groups = groups_of(self.policy, query, self.source.columns)
        view = Viewed(self.source, self.cells, self.drawn, self.policy.row_id, self.policy.missing, self.policy.bounds, groups)
        return Answer(query, estimates(view, query, self.plan, shares))


def groups_of(policy: Policy, query: Query, types: Mapping[str, str]) -> tuple[Group, ...] | None:
    """The public groups of a query; None where it has none."""
    if query.group_by is None:
        return None
    return tuple(Group(name, condition) for name, condition in policy.groups(query.group_by, types).items())


def _require_same_view(first: Entry, public: Mapping[str, Any], policy: Policy) -> None:
    asked, told = dict(public), dict(first.plan)
    asked.pop("identifiers")
    dropped = told.pop("identifiers", None)
    if told != asked:
        raise RefusedError("view: the ledger holds a view drawn for other ranges, cells or row_id. Keep to that policy.")
    if dropped is None and first.policy_digest not in (policy.digest, digest_of({**policy.stated, "identifiers": []})):
        raise RefusedError(
            "view: the ledger holds a view of attrpriv 0.1.0, which does not record the identifiers that it leaves out. Keep "
            "to the very policy that it was drawn for, or to that policy with identifiers where it had none."
        )
    shown = [name for name in dropped or () if name not in policy.identifiers]
    if shown:
        raise RefusedError(
            f"view: the ledger holds a view without {', '.join(shown)}, and what was left out must stay out. Name it under "
            "identifiers again."
        )


def _recorded(ledger: Ledger) -> Drawn:
    with contextlib.suppress(KeyError, TypeError):
        return Drawn.from_json(ledger.view_state())
    raise RefusedError("view: the ledger's secret state must be as attrpriv wrote it. Got another. Restore it from a backup.")


def require_answerable(source: Source, policy: Policy, queries: Sequence[Query]) -> None:
    """Raise DataError, from the schema alone, where a query reads what the view does not have."""
    check_queries(source, queries, [*policy.identifiers, *(() if policy.row_id is None else (policy.row_id,))])
    for query in queries:
        groups_of(policy, query, source.columns)


def _require_certified(plan: ViewPlan) -> None:
    """The certificate must hold, and the rows kept must be the ones it counted on."""
    plan.certificate.verify()
    if plan.certificate.evidence.view_of() != (plan.n, plan.cells):
        raise CertificateError("view: must keep what its certificate counted on. Nothing was drawn.")


def _cells(plan: ViewPlan, policy: Policy) -> Cells:
    conditions = {cell.name: cell.condition for cell in plan.secret.cells(plan.n, policy.bins)}
    return Cells(
        conditions=tuple(conditions[cell.name] for cell in plan.cells),
        keep=tuple(cell.keep for cell in plan.cells),
        low=tuple(cell.low for cell in plan.cells),
        high=tuple(cell.high for cell in plan.cells),
    )


def _public(plan: ViewPlan, policy: Policy, cells: Cells) -> dict[str, Any]:
    """What identifies a view: its cells, how many rows of each are kept, what tells rows apart, and what is left out."""
    kept = {key: value for key, value in plan.to_json().items() if key in ("schema_version", "secret", "n", "cells")}
    conditions = [None if condition is None else str(condition) for condition in cells.conditions]
    left_out = sorted(set(policy.identifiers))
    return {**kept, "conditions": conditions, "row_id": policy.row_id, "identifiers": left_out}


# ----------------------------------------------------------------------------------------------------------------------------
# Answers from a view at the public composition, each with its error.
#
# A row of cell c stands for weight_c = share_c / keep_c of the rows. With E the weighted mean over the rows of the filter
# (and of the group), H their weight, and all sums exact (`engines.view_answers`):
#
# | statistic | answer | a row's part in the error, linearised |
# |---|---|---|
# | count, sum | n sum of weight_c y | y |
# | avg | E u | (u - avg) / H |
# | var_pop | E u^2 - (E u)^2 | ((u - E u)^2 - var) / H |
# | covar_pop(u, v) | E uv - E u E v | ((u - E u)(v - E v) - cov) / H |
# | regr_slope(u, v) | b = cov/var(v) | (v - E v) e / var(v) / H,    e = u - E u - b (v - E v) |
# | regr_intercept(u, v) | E u - b E v | (e - E v (v - E v) e / var(v)) / H |
# | quantile p | Q(p) | half of the way to Q(p +- 2 s), s the error of F(Q(p)) |
#
# What must never change: answers are functions of kept rows and public facts; a failure has a fixed text.


NO_HITS = "query: some row of the view must satisfy the filter of an average. Got none. Ask for a wider one."
NO_ANSWER = "query: the view must have rows of the filter, and in a regression a second column that varies. Got none."
# How many errors of F the quantile's own error looks to each side.
_SIDES = 2.0
# Below this many rows a linearised error, or the error of a quantile, is no guide.
_FEWEST = 30


class Found(NamedTuple):
    """An answer and its standard error; None: no error is known."""

    value: float
    error: float | None


def estimates(view: Viewed, query: Query, plan: ViewPlan, shares: Mapping[str, float]) -> tuple[Value, ...]:
    """One value for each group that has one; without groups, one value or an announced failure."""
    if query.kind in ("avg", "sum", "count"):
        found, failure = _averages(view, query, plan, shares), NO_HITS
    elif query.kind == "quantile":
        found, failure = _quantiles(view, query, plan, shares), NO_HITS
    else:
        found, failure = _second_moments(view, query, plan, shares), NO_ANSWER
    values = []
    for name, one in zip(view.names, found, strict=True):
        if one is None and query.group_by is None:
            raise DataError(failure)
        if one is not None:
            values.append(Value(one.value, _spread(one.error), name))
    return tuple(values)


def _spread(error: float | None) -> Spread:
    return Spread("gaussian", math.inf) if error is None else Spread("gaussian" if error else "none", error)


def _averages(view: Viewed, query: Query, plan: ViewPlan, shares: Mapping[str, float]) -> Iterator[Found | None]:
    for cells in view_sums(view, query).groups.values():
        yield estimate(query, plan, cells, shares)


def estimate(query: Query, plan: ViewPlan, sums: Sequence[CellSums], shares: Mapping[str, float]) -> Found | None:
    """The value at the public composition and its standard error (of a ratio: by linearisation); None: an average of no row."""
    mean = sum(shares[cell.name] * float(s.total / cell.keep) for cell, s in zip(plan.cells, sums, strict=True))
    ratio = query.kind == "avg" and not query.plain
    weight = _hits(plan, [s.hits for s in sums], shares)
    if ratio and weight == 0:
        return None
    centre = mean / weight if ratio else 0.0
    error = _error(plan, sums, shares, centre)
    if ratio:
        return Found(centre, error / weight)
    factor = plan.n if query.kind in ("sum", "count") else 1
    return Found(mean * factor, error * factor)


def _hits(plan: ViewPlan, hits: Sequence[int], shares: Mapping[str, float]) -> float:
    """H: the share of the rows that the filter keeps."""
    return sum(shares[cell.name] * count / cell.keep for cell, count in zip(plan.cells, hits, strict=True))


def _error(plan: ViewPlan, sums: Sequence[CellSums], shares: Mapping[str, float], centre: float) -> float:
    sds = [_sd(s, cell.keep, Fraction(centre)) for cell, s in zip(plan.cells, sums, strict=True)]
    return standard_error(plan.cells, shares, sds)


def _sd(sums: CellSums, keep: int, centre: Fraction) -> float:
    """The standard deviation, over a cell's kept rows, of y - centre * i; exact until the root, so nothing cancels."""
    if keep < 2:
        return 0.0
    total = sums.total - centre * sums.hits
    squares = sums.squares - 2 * centre * sums.total + centre**2 * sums.hits
    return math.sqrt(max(Fraction(0), (squares - total**2 / keep) / (keep - 1)))


# Variances, covariances, regressions.


def _second_moments(view: Viewed, query: Query, plan: ViewPlan, shares: Mapping[str, float]) -> Iterator[Found | None]:
    weights = [Fraction(shares[cell.name]) / cell.keep for cell in plan.cells]
    moments = list(view_moments(view, query).groups.values())
    answers = [_answer(query.kind, weights, cells) for cells in moments]
    parts = view_sums(view, query, [None if answer is None else answer[1] for answer in answers]).groups.values()
    for answer, cells in zip(answers, parts, strict=True):
        if answer is None:
            yield None
            continue
        value, _ = answer
        weight = _hits(plan, [s.hits for s in cells], shares)
        centre = value if query.kind in ("var_pop", "covar_pop") else 0.0
        enough = sum(s.hits for s in cells) >= _FEWEST
        yield Found(value, _error(plan, cells, shares, centre) / weight if enough else None)


def _answer(kind: str, weights: Sequence[Fraction], cells: Sequence[CellMoments]) -> tuple[float, Quadratic] | None:
    """The statistic and each row's part in its error; exact until the last step, so that nothing cancels."""
    weight = sum((w * cell.hits for w, cell in zip(weights, cells, strict=True)), Fraction(0))
    if not weight:
        return None
    size = len(cells[0].totals)
    mean = [sum((w * c.totals[j] for w, c in zip(weights, cells, strict=True)), Fraction(0)) / weight for j in range(size)]

    def spread(j: int, k: int) -> Fraction:
        products = sum((w * c.products[j][k] for w, c in zip(weights, cells, strict=True)), Fraction(0))
        return products / weight - mean[j] * mean[k]

    centres = tuple(map(float, mean))
    if kind in ("var_pop", "covar_pop"):
        j, k = 0, size - 1
        return float(spread(j, k)), Quadratic(centres, (0.0,) * size, ((j, k, 1.0),))
    if not spread(1, 1) > 0:
        return None
    slope, unit = spread(0, 1) / spread(1, 1), float(1 / spread(1, 1))
    b, v = float(slope), centres[1]
    if kind == "regr_slope":
        return b, Quadratic(centres, (0.0, 0.0), ((0, 1, unit), (1, 1, -b * unit)))
    intercept = float(mean[0] - slope * mean[1])
    return intercept, Quadratic(centres, (1.0, -b), ((0, 1, -v * unit), (1, 1, v * b * unit)))


# Quantiles.


def _quantiles(view: Viewed, query: Query, plan: ViewPlan, shares: Mapping[str, float]) -> Iterator[Found | None]:
    weights = [shares[cell.name] / cell.keep for cell in plan.cells]
    hits = [[s.hits for s in cells] for cells in view_sums(view, query).groups.values()]
    whole = [weighted_hits(weights, counts) for counts in hits]
    level = query.level or 0.5
    # Weights are floats, and their sums round: what is reached up to that is reached.
    found = view_quantiles(view, query, weights, [[level * weight * COMPUTED_DOWN] for weight in whole])
    below = view_sums(view, query, [None if one is None else AtMost(one[0]) for one in found]).groups.values()
    errors = [
        _error(plan, cells, shares, level) / weight if weight else 0.0 for cells, weight in zip(below, whole, strict=True)
    ]
    reach = [(level - _SIDES * error, min(1.0, level + _SIDES * error)) for error in errors]
    sides = view_quantiles(
        view, query, weights, [[low * weight, high * weight] for (low, high), weight in zip(reach, whole, strict=True)]
    )
    for one, (low, high), ends, counts in zip(found, reach, sides, hits, strict=True):
        if one is None or ends is None:
            yield None
        else:
            known = low > 0 and high < 1 and sum(counts) >= _FEWEST
            yield Found(one[0], max(ends[1] - one[0], one[0] - ends[0]) / _SIDES if known else None)
