"""Public records: number of rows, means and covariances of some columns (or by category), and a digest of their content.

Sums are taken around a pilot a, the mean of the first K rows:

    S_i = sum of (x_i - a_i)      P_ij = sum of (x_i - a_i)(x_j - a_j)
    mean_i = a_i + S_i/n          covariance_ij = (P_ij - S_i S_j/n)/(n - 1)

The mean of K of the n rows is at most sqrt((n-K)/K) standard deviations from the mean of all, however the rows are sorted and
whatever their size (Cauchy and Schwarz). So the subtraction loses at most log10(n/K) of sixteen digits. By category of another
column the pilot is each category's own mean from a first pass, because categories may be far apart against their spread.

The digest is one of the rows as a multiset of numbers. It does not depend on the file's format, on the order of the rows or on
other columns, so that the private table is recognised in another form. It protects from mistakes, not from malice.

What must never change: these are *public* records. The private table is met by `require_other_table` alone, which tells nothing
but whether it is the same; a failure that depends on rows has a fixed text.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

from attrpriv.engines.progress import waited
from attrpriv.engines.scan import _compensated_sum, check_columns
from attrpriv.engines.shape import group_shape, row_shape
from attrpriv.engines.tables import Source, as_number, careful, open_table, quietly, shown_name
from attrpriv.errors import DataError
from attrpriv.numerics.row_digest import STARTS, row_hashes
from attrpriv.problem.row_shape import GroupShape, Pair, RowShape

if TYPE_CHECKING:
    from attrpriv.engines.public_counts import GroupCounts

ENGINE_FAILED = (
    "public: the engine could not read the table. Columns read: {columns}. Check that the file is complete and that each "
    "column holds values of one type; if it is a CSV file, convert it to Parquet with the types you mean."
)
NOT_FINITE = (
    "public: every value of a column read must be present, finite and small enough to be added. Columns read: {columns}. "
    "Got one that is not. Clean the table, or fill missing entries with the value that the policy names under `missing`."
)
SAME_TABLE = (
    "public: must be other records than the private table, independent of it. Got the private table itself. Fitted on it, the "
    "noise would depend on its rows and nothing could be promised. Find public records of the same population."
)
NOT_COMPARED = (
    "public: must be other records than the private table, which could not be read to compare the two. Repair that table first."
)

NO_CATEGORY = (
    "public: every row must have a category of {column}. Got one that has none. Clean the table, or fill missing entries."
)
NOT_CATEGORIES = "public: the sensitive column must hold text, whole numbers or booleans. Got {column}, which is {type}."
TOO_MANY = "public: {column} must have at most {most} categories. Got more; is it an identifier?"

_MOST_CATEGORIES = 200
_PILOT_ROWS = 1000
_MOST_POPULATIONS = 1_000_000
_FORMAT = "attrpriv rows 1"


@dataclass(frozen=True)
class Moments:
    """What is known of the named columns of public records."""

    rows: int
    columns: tuple[str, ...]
    means: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    """With n - 1 in the denominator."""
    digest: str


@dataclass(frozen=True)
class GroupMoments:
    """What is known of the named columns of public records within each category of another column."""

    rows: int
    sensitive: str
    categories: tuple[str, ...]
    columns: tuple[str, ...]
    counts: tuple[int, ...]
    means: tuple[tuple[float, ...], ...]
    """Of each category, of each column."""
    variances: tuple[tuple[float, ...], ...]
    """With one less than the category's rows in the denominator; NaN where it has a single row."""
    digest: str
    """Of the columns, without the sensitive one."""


@dataclass(frozen=True)
class PopulationRows:
    """Reference populations: one row each, of each column its entries."""

    rows: int
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    digest: str


class PublicTable:
    """Public records, for `Gaussian.fit` and the like. Never the private table.

    Args:
        data: a path (Parquet, CSV), a pandas, Polars or Arrow table, or an Ibis table.

    Examples:
        >>> import pandas as pd
        >>> PublicTable(pd.DataFrame({"x": [1.0, 2.0, 6.0]})).moments(["x"]).rows
        3
    """

    def __init__(self, data: object) -> None:
        self._source = open_table(data)

    def moments(self, columns: Sequence[str]) -> Moments:
        """One query for the pilot, one for the sums, one pass for the digest."""
        return moments(self._source, columns)

    def group_moments(self, sensitive: str, columns: Sequence[str]) -> GroupMoments:
        """One query for the categories and their means, one for the sums, one pass for the digest."""
        return group_moments(self._source, sensitive, columns)

    def group_counts(self, sensitive: str, events: Sequence[str], columns: Sequence[str]) -> GroupCounts:
        """One query for the events, one for each listed column, one pass for the digest."""
        from attrpriv.engines.public_counts import group_counts

        return group_counts(self._source, sensitive, events, columns)

    def shape(self, moments: Moments, pairs: Sequence[Pair]) -> RowShape:
        """One pass: how the rows with these moments lie, and how the first column of each pair depends on the second."""
        return row_shape(self._source, moments, pairs, _values(self._source, self._source.table, moments.columns))

    def group_shape(self, moments: GroupMoments) -> GroupShape:
        """One pass: how the rows of each category lie."""
        category = self._source.table[moments.sensitive].cast("string")
        return group_shape(self._source, moments, category, _values(self._source, self._source.table, moments.columns))

    def populations(self, columns: Sequence[str]) -> PopulationRows:
        """The rows themselves, one a reference population; one pass for them, one for the digest."""
        return populations(self._source, columns)


def moments(source: Source, columns: Sequence[str]) -> Moments:
    """Rows, means, covariances and digest of these columns. A missing or infinite value is refused with a fixed text."""
    names = tuple(dict.fromkeys(columns))
    check_columns(source, names)
    found = quietly(lambda: _moments(source, names))
    if found is None:
        raise DataError(ENGINE_FAILED.format(columns=_listed(names)))
    rows, means, covariance = found
    if rows < 2:
        raise DataError(f"public: needs at least 2 rows. Got {rows}.")
    if not all(math.isfinite(number) for row in (means, *covariance) for number in row):
        raise DataError(NOT_FINITE.format(columns=_listed(names)))
    return Moments(rows, names, means, covariance, _digest(source, names))


def populations(source: Source, columns: Sequence[str]) -> PopulationRows:
    """Every entry of these columns. A missing or infinite value is refused with a fixed text."""
    names = tuple(dict.fromkeys(columns))
    check_columns(source, names)
    if source.rows is not None and source.rows > _MOST_POPULATIONS:
        raise DataError(f"populations: must be at most {_MOST_POPULATIONS} rows, one a population. Got {source.rows}.")
    named = {f"c{i}": value for i, value in enumerate(_values(source, source.table, names))}
    found = quietly(lambda: source.engine.to_pyarrow(source.table.select(**named)))
    if found is None:
        raise DataError(ENGINE_FAILED.format(columns=_listed(names)))
    values = tuple(tuple(math.nan if x is None else float(x) for x in column.to_pylist()) for column in found.columns)
    if not all(math.isfinite(x) for column in values for x in column):
        raise DataError(NOT_FINITE.format(columns=_listed(names)))
    return PopulationRows(found.num_rows, names, values, _digest(source, names))


def group_moments(source: Source, sensitive: str, columns: Sequence[str]) -> GroupMoments:
    """Counts, means and variances of these columns in each category of a text, whole-number or boolean column."""
    names = tuple(dict.fromkeys(columns))
    check_columns(source, names)
    _check_categories(source, sensitive)
    pilots = _pilots(sensitive, names, quietly(lambda: _group_means(source, sensitive, names)))
    sums = quietly(lambda: _group_sums(source, sensitive, names, pilots))
    if sums is None:
        raise DataError(ENGINE_FAILED.format(columns=_listed((sensitive, *names))))
    found = [[_mean_and_variance(row, i, pilots[row["category"]][i]) for i in range(len(names))] for row in sums]
    if any(None in group for group in found):
        raise DataError(NOT_FINITE.format(columns=_listed(names)))
    counts = tuple(int(row["rows"]) for row in sums)
    means, variances = (tuple(tuple(pair[k] for pair in group if pair) for group in found) for k in (0, 1))
    return GroupMoments(sum(counts), sensitive, tuple(pilots), names, counts, means, variances, _digest(source, names))


def _pilots(sensitive: str, names: Sequence[str], groups: list[dict[str, Any]] | None) -> dict[str, list[float]]:
    """The mean of each column in each category, to centre sums with; a refusal where there are no usable categories."""
    if groups is None:
        raise DataError(ENGINE_FAILED.format(columns=_listed((sensitive, *names))))
    if len(groups) > _MOST_CATEGORIES:
        raise DataError(TOO_MANY.format(column=shown_name(sensitive), most=_MOST_CATEGORIES))
    if any(group["category"] is None for group in groups):
        raise DataError(NO_CATEGORY.format(column=shown_name(sensitive)))
    return {str(group["category"]): [_finite(group[f"mean_{i}"]) for i in range(len(names))] for group in groups}


def _digest(source: Source, names: Sequence[str]) -> str:
    digest = content_digest(source, names)
    if digest is None:
        raise DataError(ENGINE_FAILED.format(columns=_listed(names)))
    return digest


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(shown_name, names)) or "none"


# --------------------------------------------------------------------------------------------------------------- moments


def _moments(source: Source, names: Sequence[str]) -> tuple[int, tuple[float, ...], tuple[tuple[float, ...], ...]]:
    """NaN takes the place of whatever a missing or infinite value spoils."""
    pilot = _pilot(source, names)
    values = _values(source, source.table, names)
    centred = [value - _number(centre) for value, centre in zip(values, pilot, strict=True)]
    pairs = list(combinations_with_replacement(range(len(names)), 2))
    wanted = {"rows": source.table.count()}
    wanted |= {f"present_{i}": value.count() for i, value in enumerate(values)}
    wanted |= {f"sum_{i}": _sum(source, value) for i, value in enumerate(centred)}
    wanted |= {f"product_{i}_{j}": _sum(source, centred[i] * centred[j]) for i, j in pairs}
    row = source.run(source.table.aggregate(**wanted))
    n = int(row["rows"])
    whole = all(row[f"present_{i}"] == n for i in range(len(names)))
    if n < 2 or not whole:
        return n, (math.nan,), ()
    sums = [float(row[f"sum_{i}"]) for i in range(len(names))]
    half = {(i, j): (float(row[f"product_{i}_{j}"]) - sums[i] * sums[j] / n) / (n - 1) for i, j in pairs}
    means = tuple(centre + total / n for centre, total in zip(pilot, sums, strict=True))
    order = range(len(names))
    return n, means, tuple(tuple(half[min(i, j), max(i, j)] for j in order) for i in order)


def _pilot(source: Source, names: Sequence[str]) -> list[float]:
    first = source.table.limit(_PILOT_ROWS)
    wanted = {f"mean_{i}": value.mean() for i, value in enumerate(_values(source, first, names))}
    row = source.run(first.aggregate(**wanted))
    means = [row[f"mean_{i}"] for i in range(len(names))]
    return [_finite(mean) for mean in means]


def _values(source: Source, table: Any, names: Sequence[str]) -> list[Any]:
    """The columns as floats."""
    return [as_number(source, name, table).cast("float64") for name in names]


def _number(value: float) -> Any:
    """The very float: as text, which an engine reads as a float and not, like a number in SQL, as a decimal first."""
    import ibis

    return ibis.literal(repr(value)).cast("float64")


def _sum(source: Source, value: Any) -> Any:
    return _compensated_sum()(value) if source.engine.name == "duckdb" else value.sum()


def _finite(value: float | None) -> float:
    return float(value) if value is not None and math.isfinite(value) else 0.0


# ----------------------------------------------------------------------------------------------------------- by category


def _check_categories(source: Source, sensitive: str) -> None:
    """Raise DataError where the column is not there or has no categories. Decided by the schema alone."""
    kind = source.columns.get(sensitive)
    if kind is None:
        check_columns(source, [sensitive])
    if kind not in ("text", "integer", "boolean"):
        raise DataError(NOT_CATEGORIES.format(column=shown_name(sensitive), type=kind))


def _by_category(source: Source, sensitive: str, names: Sequence[str]) -> tuple[Any, list[Any]]:
    """The table with the category as text and the columns as floats, under names of its own; and these columns."""
    named = {f"value_{i}": value for i, value in enumerate(_values(source, source.table, names))}
    table = source.table.select(category=source.table[sensitive].cast("string"), **named)
    return table, [table[name] for name in named]


def _group_means(source: Source, sensitive: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """Each category with the rough mean of each column; one category more than allowed is enough to know."""
    table, values = _by_category(source, sensitive, names)
    wanted = {f"mean_{i}": value.mean() for i, value in enumerate(values)}
    found = table.group_by("category").aggregate(**wanted).order_by("category")
    return _run_rows(source, found.limit(_MOST_CATEGORIES + 1))


def _group_sums(
    source: Source, sensitive: str, names: Sequence[str], pilots: Mapping[str, Sequence[float]]
) -> list[dict[str, Any]]:
    """Sums and squares around each category's pilot."""
    import ibis

    table, values = _by_category(source, sensitive, names)
    wanted: dict[str, Any] = {"rows": table.count()}
    for i, value in enumerate(values):
        cases = [(table["category"] == ibis.literal(category), _number(pilot[i])) for category, pilot in pilots.items()]
        centred = value - ibis.cases(*cases, else_=_number(0.0))
        wanted |= {f"present_{i}": value.count(), f"sum_{i}": _sum(source, centred)}
        wanted |= {f"square_{i}": _sum(source, centred * centred)}
    return _run_rows(source, table.group_by("category").aggregate(**wanted).order_by("category"))


def _run_rows(source: Source, expression: Any) -> list[dict[str, Any]]:
    with careful(source.engine):
        rows: list[dict[str, Any]] = waited(source.engine, lambda: source.engine.to_pyarrow(expression)).to_pylist()
    return rows


def _mean_and_variance(row: Mapping[str, Any], i: int, pilot: float) -> tuple[float, float] | None:
    """None where a value is missing or infinite; the variance of a single row is NaN."""
    n, total, square = int(row["rows"]), row[f"sum_{i}"], row[f"square_{i}"]
    if row[f"present_{i}"] != n or not (math.isfinite(total) and math.isfinite(square)):
        return None
    variance = (float(square) - float(total) ** 2 / n) / (n - 1) if n > 1 else math.nan
    return pilot + float(total) / n, variance


# ---------------------------------------------------------------------------------------------------------------- digest


def content_digest(source: Source, columns: Iterable[str]) -> str | None:
    """SHA-256 of the columns' names and of their rows as a multiset of floats; None if the engine fails."""
    names = sorted(set(columns))
    found = quietly(lambda: _hashed(source, names))
    if found is None:
        return None
    return hashlib.sha256(json.dumps([_FORMAT, names, *found]).encode()).hexdigest()


def require_other_table(source: Source, rows: int, columns: Sequence[str], digest: str, declared: int | None = None) -> None:
    """Raise DataError if the private table `source` is the one that has this digest.

    No row is read where the number of rows or the columns already tell the two apart. The number of rows that a policy declares
    is enough for that: a release fails where it is not the table's.
    """
    numeric = ("integer", "boolean", "decimal", "float")
    known = declared if source.rows is None else source.rows
    if (known is not None and known != rows) or any(source.columns.get(c) not in numeric for c in columns):
        return
    found = content_digest(source, columns)
    if found is None:
        raise DataError(NOT_COMPARED)
    if found == digest:
        raise DataError(SAME_TABLE)


def _hashed(source: Source, names: Sequence[str]) -> tuple[int, ...]:
    """The number of rows, and for each start the sum of the hashes of all rows; 8 bytes of memory a value."""
    named = {f"c{i}": value for i, value in enumerate(_values(source, source.table, names))}
    rows, sums = 0, [0] * len(STARTS)
    for batch in waited(source.engine, lambda: source.engine.to_pyarrow(source.table.select(**named))).to_batches():
        columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
        rows += batch.num_rows
        for k, start in enumerate(STARTS):
            sums[k] = (sums[k] + int(row_hashes(columns, start).sum())) % 2**64
    return rows, *sums
