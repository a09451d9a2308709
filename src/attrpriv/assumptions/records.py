"""Records: rows are independent draws from one of some recorded laws, whatever their shape.

| member of Theta | law |
|---|---|
| the file | each public row with the same probability |
| resamples | so many of its rows drawn anew, with replacement; `number`, `size` and `seed` say which |
| further files | other years, other places |

Smaller resamples lie further from the file: those of a quarter of its rows twice as far as another sample of its size would.
What must never change: the laws are those listed, and no other; nothing is promised for rows that are like none of them. The
rows themselves are part of the assumption, so that a ledger can prove a release again without the files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from attrpriv.assumptions.recorded_table import RecordedTable
from attrpriv.frozen import FrozenModel
from attrpriv.problem.assumption import Assumption, PublicRecords
from attrpriv.problem.shapes import RECORDED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]

# Smaller resamples are of no use, and larger ones of no more: they take gigabytes to draw.
_LEAST, _MOST = 2, 20_000_000


class Resamples(FrozenModel):
    """Which further laws are drawn from the file's rows: public, and the same everywhere."""

    number: Annotated[int, Field(strict=True, ge=0, le=200)] = Field(default=20, description="how many; 0: none")
    size: Annotated[int, Field(strict=True, ge=_LEAST, le=_MOST)] | None = Field(
        default=None, description="rows of each; left out: a quarter of the file's"
    )
    seed: Annotated[int, Field(strict=True, ge=0)] = Field(default=1, description="which ones are drawn")

    def drawn(self, table: RecordedTable) -> list[Whole]:
        """How often each different row is drawn, for each resample."""
        import numpy as np

        ends, total = np.cumsum(table.counts()), table.total
        found = []
        for k in range(self.number):
            # SHAKE-256, the same on every machine; 32 of its bits, times the number of rows, are a row.
            told = hashlib.shake_256(f"attrpriv records 1 {self.seed} {k}".encode()).digest(4 * self.rows(table))
            places = np.frombuffer(told, dtype="<u4").astype(np.uint64) * np.uint64(total) >> np.uint64(32)
            found.append(np.bincount(np.searchsorted(ends, places, side="right"), minlength=len(ends)).astype(np.int64))
        return found

    def rows(self, table: RecordedTable) -> int:
        """How many rows a resample of this table has."""
        return max(_LEAST, min(_MOST, table.total // 4)) if self.size is None else self.size


@dataclass(frozen=True, eq=False)
class Member:
    """One law: a table's different rows, and how often each occurs."""

    name: str
    table: RecordedTable
    counts: Whole


_PATH = WithJsonSchema({"type": "string"}, mode="validation")


def _given(value: object) -> object:
    if not isinstance(value, RecordedTable | Mapping):
        raise ValueError("must be the path of a Parquet or CSV file of public rows.")
    return value


Table = Annotated[RecordedTable, BeforeValidator(_given), _PATH]


class Records(Assumption):
    """Rows are independent draws from the law of public rows, or of another that is listed.

    >>> rows = RecordedTable.of({"hours": [40, 38, 40, 45], "sex": ["F", "M", "F", "M"]}, name="public.csv")
    >>> theta = Records(file=rows, columns=["hours", "sex"], resamples={"number": 2, "size": 3})
    >>> len(theta.members())
    3
    """

    shape: ClassVar[str] = RECORDED
    lists_tables: ClassVar[bool] = True
    kind: Literal["records"] = "records"
    file: Table = Field(description="public rows: a Parquet or CSV file, relative to the policy file")
    columns: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        min_length=2, description="the columns that queries and secrets are about; only these are kept"
    )
    resamples: Resamples = Field(default_factory=Resamples, description="{number, size, seed}: laws drawn from the file")
    further: tuple[Table, ...] = Field(default=(), description="more files of public rows: other years, other places")

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        """Files become their rows, of the columns that are named."""
        if not isinstance(value, Mapping):
            return value
        if not isinstance(value.get("columns"), list | tuple):  # which is told alone: without them no file is read
            unread = {"file": RecordedTable.of({"": [0]}), "further": ()}
            return {key: unread.get(key, one) if isinstance(one, str | list | tuple) else one for key, one in value.items()}
        columns = [column for column in value["columns"] if isinstance(column, str)]
        told = dict(value)
        if isinstance(told.get("file"), str):
            told["file"] = RecordedTable.read(told["file"], columns)
        if isinstance(told.get("further"), list | tuple):
            told["further"] = [RecordedTable.read(one, columns) if isinstance(one, str) else one for one in told["further"]]
        return told

    @model_validator(mode="after")
    def _of_columns(self) -> Records:
        if len(set(self.columns)) != len(self.columns):
            raise ValueError("columns: must name each column once. Got one twice.")
        for table in self.tables:
            if table.columns != self.columns:
                raise ValueError(f"file: must have the columns {', '.join(self.columns)}, in this order. Got others.")
        return self

    @property
    def tables(self) -> tuple[RecordedTable, ...]:
        """The file, and the further ones."""
        return (self.file, *self.further)

    def members(self) -> list[Member]:
        """All laws, the file's own first."""
        name = self.file.name or "the public rows"
        found = [Member(name, self.file, self.file.counts())]
        found += [
            Member(f"{name}, resample {k}", self.file, counts) for k, counts in enumerate(self.resamples.drawn(self.file), 1)
        ]
        others = [Member(table.name or f"further rows {k}", table, table.counts()) for k, table in enumerate(self.further, 1)]
        return [*found, *others]

    def public_records(self) -> PublicRecords | None:
        return self.file.records()

    def public_tables(self) -> Mapping[str, PublicRecords]:
        further = {f"further[{k}]": table.records() for k, table in enumerate(self.further)}
        return {"file": self.file.records(), **further}

    def explained(self) -> tuple[str, ...]:
        return (
            f"Whoever believes: {self}.",
            "They may believe any one of these laws, and know all of them. What holds for rows that are like none of them is "
            "not known: the promise is for the laws listed.",
        )

    def __str__(self) -> str:
        again, name = self.resamples, self.file.name or "a file"
        size = f"{again.rows(self.file):,} of its rows (seed {again.seed})"
        drawn = f", {again.number} resamples of {size}" if again.number else ""
        files = "".join(f", the rows of {table.name or 'a further file'}" for table in self.further)
        return f"rows are independent draws from one law of a list: the {self.file.total:,} rows of {name}{drawn}{files}"


__all__ = ["Member", "RecordedTable", "Records", "Resamples"]
