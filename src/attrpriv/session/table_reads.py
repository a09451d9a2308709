"""One pass over the table for a plan, exact; and the columns it needs.

What must never change: a release reads the table once, and a public answer not at all. Nothing here is shown to anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from attrpriv.engines.gram import GramRead, gram
from attrpriv.engines.grid import Grid
from attrpriv.engines.scan import ColumnRead, scan
from attrpriv.engines.tables import Source, open_table
from attrpriv.engines.tally import TallyRead
from attrpriv.errors import CertificateError, DataError, PolicyError
from attrpriv.methods.base.accuracy import IDENTIFIER
from attrpriv.methods.base.column_plan import ColumnPlan, StatisticPlan
from attrpriv.methods.base.parts import StatisticPart, TallyPart, WeightsPart
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.tally import Tally, TallyCategory
from attrpriv.policy import Policy
from attrpriv.problem.assumption import Assumption
from attrpriv.problem.reference import PublicCells, Reference
from attrpriv.queries.arithmetic import LinearForm
from attrpriv.queries.conditions import Condition, joined, parse_condition
from attrpriv.queries.query import Query

OTHER_SIZE = (
    "sizes: subsets must have the numbers of rows that the policy declares, and be apart or one inside the other as their "
    "conditions say. Got some that have not, or are not. This is outside the "
    "guarantee: correct the policy, or treat this message as an answer about the table. Nothing was released."
)
# A table that is only opened where it has to be read.
Opened = Callable[[], Source]


def opened_table(data: object) -> Source:
    failure: DataError
    try:
        return open_table(data)
    except DataError as error:
        failure = error.with_traceback(None)  # its frames hold the table, whose repr shows rows
    del data  # and so would this one
    raise failure


def public_facts(policy: Policy, source: Source | None) -> tuple[int, Mapping[str, str]]:
    """n and the column types: from the table's metadata, or from the policy where the table is not there yet."""
    if source is None:
        return policy.rows or 0, {}
    if source.rows is None and policy.rows is None:
        raise PolicyError(f"rows: must be declared, because {source.name} does not say how many rows it has. Add rows.")
    if None not in (source.rows, policy.rows) and source.rows != policy.rows:
        raise DataError(f"rows: must be the number of rows of the table, {source.rows}. Got {policy.rows}.")
    n = policy.rows if source.rows is None else source.rows
    least = 1 if policy.speaks_of_one_row else 2
    if n is None or n < least:
        raise DataError(f"data: the table must have at least {least} row{'s' * (least > 1)}. Got {n}.")
    return n, source.columns


def require_other_records(policy: Policy, opened: Opened) -> None:
    """An assumption must not have been fitted on this very table, nor a reference be its rows."""
    tables = [tuple(one.public_tables().values()) if one.lists_tables else (one.public_records(),) for one in policy.assume]
    for fit in (found for listed in tables for found in listed if found is not None):
        from attrpriv.engines.moments import require_other_table
        from attrpriv.engines.public_counts import require_other_rows

        differ = require_other_table if fit.numbers else require_other_rows
        differ(opened(), fit.rows, fit.columns, fit.digest, policy.rows)
    require_other_reference(policy, opened)


def require_other_reference(policy: Policy, opened: Opened) -> None:
    """The public records must not be this very table's rows."""
    path = policy.reference_path() if policy.whole_columns else None
    if path is None:
        return
    from attrpriv.engines.public_cells import require_other_records

    require_other_records(opened(), path, policy.rows)


def public_cells(policy: Policy, n: int, types: Mapping[str, str], data: object = None) -> PublicCells | None:
    """What the policy's reference says of the columns about which everything is hidden; None where there is no such secret.

    Of a table of n rows with columns of these `types`: what the view has is compared with a number that is sorted into
    intervals. `data` is the table, whose own file is no reference.
    """
    if not policy.whole_columns:
        return None
    from attrpriv.engines.public_cells import reference_cells, require_other_file

    path, reference = policy.reference_path(), policy.reference
    if path is not None:
        require_other_file(path, data)
    if reference is None or path is None or not reference.sorted:
        return reference_cells(reference, policy.whole_columns, path)
    return _sorted_cells(policy, reference, path, n, types)


def _sorted_cells(policy: Policy, reference: Reference, path: str | Path, n: int, types: Mapping[str, str]) -> PublicCells:
    from attrpriv.engines.public_sorted import sorted_cells_of_file
    from attrpriv.methods.view.found_ends import ends_finder

    ((column, intervals),) = reference.sorted.items()
    if column not in policy.whole_columns:
        raise PolicyError(
            f"reference.sorted: must be one of the hidden columns. Got {column}. Name it under protect: columns(...)."
        )
    out = {*policy.whole_columns, *policy.left_out, policy.row_id}
    assumed = policy.assume[0] if len(policy.assume) == 1 else None
    shown = [name for name in types if name not in out]
    ends = (
        intervals.edges
        if intervals.ends is None
        else ends_finder(policy.problem((Query("count"),), n, types), column, intervals.edges)
    )
    return sorted_cells_of_file(path, policy.whole_columns, column, ends, assumed, shown)


def identifier_lines(policy: Policy, types: Mapping[str, str]) -> tuple[str, ...]:
    """A warning where a column that the view would show is nearly unique in the *public* records, so that it may name rows."""
    path = policy.reference_path()
    if path is None or not policy.whole_columns or not Path(path).is_file():
        return ()
    from attrpriv.engines.public_cells import nearly_unique

    apart = {*policy.left_out, *policy.whole_columns, policy.row_id}
    named = [name for name in nearly_unique(path) if name not in apart and (not types or name in types)]
    if not named:
        return ()
    return (
        f"{IDENTIFIER} nearly every public record has its own {', '.join(named)}. If it names persons or numbers rows, put it "
        "under identifiers, so that the view leaves it out.",
    )


def read(source: Source, plan: Plan, policy: Policy) -> Any:
    """What the plan's part reads, from one pass."""
    match plan.part:
        case TallyPart(tally=tally):
            return tallied(source, plan, tally)
        case StatisticPart(statistic=how):
            return statistics(source, plan, how)
        case WeightsPart():
            return weighted(source, plan)
        case _:
            return averages(source, plan, policy.assume)


def averages(source: Source, plan: Plan, assume: Sequence[Assumption] = ()) -> tuple[list[Fraction], tuple[int, ...]]:
    """The exact averages and counts of categories that the plan needs, from one pass; from none where nothing is asked."""
    counted = any(query.kind == "count" for query in plan.queries)
    if not counted and all(part.centre is not None for part in plan.columns):
        return [Fraction(0)] * len(plan.columns), (0,) * len(plan.categories)
    reads = [read for part in plan.columns for read in column_reads(part)]
    rows = [plan.n if part.rows is None else part.rows for part in plan.columns for _ in column_reads(part)]
    rows += [plan.n for _ in plan.read_columns]
    reads += [ColumnRead(column, fill) for column, fill in plan.read_columns.items()]
    unions = tuple(joined("or", *map(parse_condition, union.wheres)) for union in plan.unions)
    tally = TallyRead(unions, False, category_conditions(plan.categories)) if unions or plan.categories else None
    full = [condition for condition, union in zip(unions, plan.unions, strict=True) if union.rows == plan.n]
    grids = public_grids(assume, {read.column for read in reads})
    found = scan(source, [replace(read, grid=_grid(plan, read.column, grids)) for read in reads], tally, full)
    if found.rows != plan.n:
        raise DataError(f"rows: must be the number of rows of the table, {found.rows}. Got {plan.n}.")
    counted_unions = () if found.tally is None else found.tally.cells
    if (found.hits and found.hits != tuple(rows)) or counted_unions != tuple(union.rows for union in plan.unions):
        raise DataError(OTHER_SIZE)
    means = iter([total / size for total, size in zip(found.sums, rows, strict=True)])
    asked = [query for query in plan.queries if query.key is not None]
    forms = {plan.of(query, group).column: query.linear for query in asked for group in plan.group_names(query)}
    averaged = [_combined(part, forms[part.column], means) if part.terms else next(means) for part in plan.columns]
    return [*averaged, *means], () if found.tally is None else found.tally.categories


def _grid(plan: Plan, column: str, grids: Mapping[str, Grid]) -> Grid | None:
    """The spacing that the plan's proof counted on, else the public grid of the column."""
    evidence = plan.certificate.evidence
    spacing = evidence.spacing_of(column) if evidence.rounds_rows else None
    return grids.get(column) if spacing is None else Grid(spacing, spaced=True)


def statistics(source: Source, plan: Plan, how: StatisticPlan) -> tuple[list[Fraction], tuple[int, ...]]:
    """The exact value of the plan's statistic, kept in its range, from one pass."""
    from attrpriv.engines.statistics import StatisticRead, statistic

    (query,) = [query for query in plan.queries if not query.whole_table]
    rows, value = statistic(source, StatisticRead(query, plan.n, how.fills, how.clips))
    if rows != plan.n:
        raise DataError(f"rows: must be the number of rows of the table, {rows}. Got {plan.n}.")
    return [how.kept(value)], ()


def public_grids(assume: Sequence[Assumption], columns: Collection[str]) -> dict[str, Grid]:
    """Of each of these columns whose mean and standard deviation an assumption states, the grid on which floats are added."""
    found: dict[str, Grid] = {}
    for assumed in assume:
        centres = assumed.public_centres()
        for column in (one for one in columns if one in centres):
            grid = Grid.around(*centres[column])
            if grid is not None:
                found.setdefault(column, grid)
    return found


def column_reads(part: ColumnPlan) -> list[ColumnRead]:
    """The column, or those that a linear combination is made of."""
    if not part.terms:
        return [ColumnRead(part.column, part.fill, part.clip)]
    where = None if part.where is None else parse_condition(part.where)
    return [ColumnRead(column, fill, where=where) for column, fill in part.terms.items()]


def _combined(part: ColumnPlan, form: LinearForm | None, means: Iterator[Fraction]) -> Fraction:
    """The average of a linear combination, exactly, from those of its columns."""
    if form is None or set(form.coefficients) != set(part.terms):
        raise CertificateError(f"plan: must read the columns of {part.column}. Nothing was released.")
    return form.of({column: next(means) for column in part.terms})


def tallied(source: Source, plan: Plan, tally: Tally) -> tuple[Sequence[int], Sequence[int]]:
    """The counts of the tally's cells and of the sensitive column's categories, from one pass; a public answer reads no row."""
    if tally.centre is not None:
        return [0] * len(tally.cells), [0] * len(tally.categories)
    found = scan(source, (), tally_read(tally))
    if found.rows != plan.n or found.tally is None:
        raise DataError(f"rows: must be the number of rows of the table, {found.rows}. Got {plan.n}.")
    return found.tally.cells, found.tally.categories


def weighted(source: Source, plan: Plan) -> tuple[int, Sequence[int], Sequence[Sequence[int]]]:
    """The number of rows, and the sums and products of the columns that are weighted, from one pass."""

    found = gram(source, [GramRead(*one) for one in plan.certificate.evidence.gram_columns()])
    if found.rows != plan.n:
        raise DataError(f"rows: must be the number of rows of the table, {found.rows}. Got {plan.n}.")
    return found.rows, found.sums, found.products


def tally_read(tally: Tally) -> TallyRead:
    """What the engine has to count."""
    cells = tuple(parse_condition(cell.where) for cell in tally.cells)
    covering = tuple(tuple(map(parse_condition, alternatives)) for alternatives in tally.covering)
    return TallyRead(cells, tally.complete, category_conditions(tally.categories), tally.fill, tally.clip, covering)


def category_conditions(categories: Sequence[TallyCategory]) -> tuple[Condition | None, ...]:
    """How the engine recognises each category; None: all rows of no other."""
    return tuple(None if one.where is None else parse_condition(one.where) for one in categories)
