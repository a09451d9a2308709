"""A public reference for the columns about which everything is hidden: which values they have, and how often.

    reference:
      file: census.parquet        # public records with the hidden columns
      # or age: {values: [17, 18, ...], shares: [0.01, ...]}, or age: {law: poisson, mean: 3} (`reference_laws`)
      least_density: 0.8          # the table's law has at least this much of the public density, everywhere
      failure: 1e-9               # chance that some value has fewer rows than the view keeps
      rarest_event: 0.001         # events about the hidden columns that are at least as probable as this are hidden

What must never change: everything here is public and was known before the table was looked at. A reference that was made from
the table, or changed until a view could be drawn, is itself a release.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import zip_longest
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, GetJsonSchemaHandler, Tag, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from attrpriv.frozen import Finite, FrozenMap, FrozenModel, Positive
from attrpriv.frozen.requirements import shown
from attrpriv.numerics.rounding import SUM_SLACK
from attrpriv.problem.intervals import Intervals, PublicIntervals
from attrpriv.problem.reference_laws import BinomialLaw, GeometricLaw, PoissonLaw, UniformLaw

Probability = Annotated[Finite, Field(gt=0, lt=1)]


def _scalar(value: object) -> object:
    if value is not None and not isinstance(value, str | int | float):
        raise ValueError(f"must be text, a number, true, false or null (a missing entry). Got {shown(value)}.")
    return value


Value = Annotated[bool | int | float | str | None, BeforeValidator(_scalar)]


def _combination(value: object) -> object:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


Combination = Annotated[tuple[Value, ...], BeforeValidator(_combination, json_schema_input_type=Value | list[Value])]


# Stands where a combination has no value for a column.
_LACKING = object()


class StatedShares(FrozenModel):
    """The public law of some columns, as the policy writes it: each value, or combination of values, and its share."""

    values: tuple[Combination, ...] = Field(min_length=1, description="each value; of several columns, each list of values")
    shares: tuple[Annotated[Finite, Field(gt=0, le=1)], ...] = Field(description="the public share of each, in the same order")

    @model_validator(mode="after")
    def _shares_of_values(self) -> StatedShares:
        if len(self.values) != len(self.shares):
            raise ValueError(f"needs a share for each value. Got {len(self.values)} values and {len(self.shares)} shares.")
        if len(set(map(_told_apart, self.values))) != len(self.values):
            raise ValueError("values: must name each value once. Got one of them twice.")
        total = float(sum(Fraction(repr(share)) for share in self.shares))
        if total > 1 + SUM_SLACK:
            raise ValueError(f"shares: must add up to 1 at most. Got {total:g}.")
        return self

    @model_validator(mode="after")
    def _one_kind(self) -> StatedShares:
        for place, column in enumerate(zip_longest(*self.values, fillvalue=_LACKING)):
            if _LACKING in column:
                raise ValueError("values: must have one entry for each column. Got combinations of different lengths.")
            if len({kind_of(value) for value in column if value is not None}) > 1:
                got = ", ".join(sorted({kind_of(value) for value in column if value is not None}))
                raise ValueError(f"values: must be of one type in each column. Got {got} in column {place + 1}.")
        return self

    def listed(self) -> tuple[tuple[tuple[Value, ...], float], ...]:
        return tuple(zip(self.values, self.shares, strict=True))


_LAWS = ("uniform", "binomial", "poisson", "geometric")


def _form(value: object) -> str:
    """Which form a stated law has; shares, where it says none."""
    said = value.get("law") if isinstance(value, Mapping) else getattr(value, "law", None)
    return "<shares>" if said is None else f"<{said}>"


def _known_law(value: object) -> object:
    if _form(value) not in ("<shares>", *(f"<{name}>" for name in _LAWS)):
        raise ValueError(f"law: must be one of {', '.join(_LAWS)}; or state values and shares.")
    return value


Stated = Annotated[
    Annotated[StatedShares, Tag("<shares>")]
    | Annotated[UniformLaw, Tag("<uniform>")]
    | Annotated[BinomialLaw, Tag("<binomial>")]
    | Annotated[PoissonLaw, Tag("<poisson>")]
    | Annotated[GeometricLaw, Tag("<geometric>")],
    Discriminator(_form),
    BeforeValidator(_known_law),
]


class Reference(FrozenModel):
    """Where cells and their public shares come from.

    Examples:
        >>> Reference(file="census.parquet", least_density=0.8).show
        'values'
    """

    file: str | None = Field(default=None, description="public records with the hidden columns; relative to the policy file")
    shares: FrozenMap[Stated] = Field(
        default_factory=dict, description="instead of a file: the public law of the hidden columns, under their names"
    )
    least_density: Annotated[Finite, Field(gt=0, le=1)] = Field(
        description="r: the table's law of the hidden columns has at least r times the public density everywhere"
    )
    failure: Probability = Field(default=1e-9, description="chance that some value has fewer rows than the view keeps")
    confidence: Probability | None = Field(
        default=None, description="with which the public records tell the shares; left out: that chance is part of failure"
    )
    rarest_event: Annotated[Positive, Field(le=1)] = Field(
        default=1e-3,
        description="least prior probability of the events about the hidden columns that are hidden; 1: only parameters",
    )
    sorted: FrozenMap[Intervals] = Field(
        default_factory=dict,
        description="one number with nearly all values different, sorted into intervals: {low, high, width} or {breaks}",
        exclude_if=lambda value: not value,
    )
    show: Literal["values", "nothing"] = Field(
        default="values", description="whether the view has the hidden columns, with their public values, or not at all"
    )

    @model_validator(mode="before")
    @classmethod
    def _columns_beside(cls, value: Any) -> Any:
        """Columns may stand beside the other keys: what is no key and is a mapping is a column's law."""
        if not isinstance(value, Mapping):
            return value
        stated = {key: one for key, one in value.items() if key not in cls.model_fields and isinstance(one, Mapping)}
        if not stated:
            return value
        if "shares" in value:
            raise ValueError("shares: must hold every column's law, where it is there. Got some beside it.")
        return {**{key: one for key, one in value.items() if key not in stated}, "shares": stated}

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        made = handler(schema)
        inside = handler.resolve_ref_schema(made)
        inside["additionalProperties"] = inside["properties"]["shares"]["additionalProperties"]  # columns beside the keys
        return made

    @model_validator(mode="after")
    def _one_source(self) -> Reference:
        if (self.file is None) == (not self.shares):
            raise ValueError("needs a file of public records, or the shares of each value, one of them.")
        self._require_lengths()
        if len(self.shares) > 1:
            raise ValueError(
                "shares: several columns need the shares of their combinations, under one name, as in "
                f'"{", ".join(self.shares)}": {{values: [[...], ...], shares: [...]}}; shares of each alone do not tell them.'
            )
        if len(self.sorted) > 1 or (self.sorted and self.file is None):
            raise ValueError("sorted: one column can be sorted into intervals, from a file of public records.")
        return self

    def _require_lengths(self) -> None:
        """As many values in a combination as columns are named; a named law is one of whole numbers."""
        for name, law in self.shares.items():
            size = len(law.values[0]) if isinstance(law, StatedShares) else 1
            if size != len(named_columns(name)):
                got = f"{len(named_columns(name))} columns and {size} in each of its values"
                raise ValueError(f"{name}: must have a value for each of its columns, as in values: [[17, F], ...]. Got {got}.")

    @property
    def level(self) -> float:
        """The chance, over table and public records, that the view cannot be drawn; from above."""
        missed = 0 if self.confidence is None else 1 - Fraction(repr(self.confidence))
        return float(Fraction(repr(self.failure)) + missed)


class PublicCell(FrozenModel):
    """One combination of values, and what the public knows of it: how many public records have it, or its share."""

    values: Combination
    count: int | None = Field(default=None, ge=0)
    share: Annotated[Finite, Field(gt=0, le=1)] | None = None


class PublicCells(FrozenModel):
    """What a reference says of the hidden columns, read: every combination of values that is known of."""

    columns: tuple[str, ...] = Field(min_length=1)
    kinds: FrozenMap[str] = Field(default_factory=dict, description="types of these columns in the public records")
    records: int | None = Field(default=None, ge=1, description="how many public records; none: shares are stated")
    cells: tuple[PublicCell, ...] = Field(min_length=1)
    intervals: PublicIntervals | None = Field(default=None, exclude_if=lambda value: value is None)
    """Of the column that is sorted: its value in a cell is the low end of an interval, or missing."""

    def share_of(self, cell: PublicCell) -> float:
        """The share of the public that has a cell's values: counted, or stated."""
        return (cell.share or 0.0) if self.records is None else (cell.count or 0) / self.records

    def only(self, column: str) -> PublicCells:
        """What the reference says of one of its columns alone."""
        place = self.columns.index(column)
        found: dict[object, list[PublicCell]] = {}
        for cell in self.cells:
            found.setdefault(_told_apart(cell.values)[place], []).append(cell)
        cells = [_added(parts, parts[0].values[place]) for parts in found.values()]
        return self.model_copy(update={"columns": (column,), "cells": tuple(cells)})

    @property
    def digest(self) -> str:
        """SHA-256 of the cells, whatever their order."""
        rows = sorted(json.dumps(cell.to_json(), sort_keys=True) for cell in self.cells)
        ends = [] if self.intervals is None else [self.intervals.column, json.dumps(self.intervals.edges)]
        return hashlib.sha256("\n".join([*self.columns, str(self.records), *ends, *rows]).encode()).hexdigest()


def _added(parts: Sequence[PublicCell], value: Value) -> PublicCell:
    """One cell of all that have a value in common."""
    if parts[0].count is not None:
        return PublicCell(values=(value,), count=sum(part.count or 0 for part in parts))
    return PublicCell(values=(value,), share=min(1.0, math.fsum(part.share or 0.0 for part in parts)))


def stated_cells(reference: Reference, columns: Sequence[str]) -> PublicCells | None:
    """The cells of a reference that states shares; None where it names a file, or other columns."""
    for name, law in reference.shares.items():
        if named_columns(name) == tuple(columns):
            cells = tuple(PublicCell(values=values, share=share) for values, share in law.listed())
            return PublicCells(columns=tuple(columns), kinds=_kinds(cells, columns), cells=cells)
    return None


def named_columns(name: str) -> tuple[str, ...]:
    """The columns that a stated law is of."""
    return tuple(part.strip() for part in name.split(","))


def _kinds(cells: Sequence[PublicCell], columns: Sequence[str]) -> dict[str, str]:
    """The type of each column, as its values tell it."""
    found: dict[str, str] = {}
    for k, column in enumerate(columns):
        values = [cell.values[k] for cell in cells if cell.values[k] is not None]
        if values:
            found[column] = kind_of(values[0])
    return found


def kind_of(value: object) -> str:
    """What a public value is: true or false, a number, or text (also of dates)."""
    return "boolean" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "text"


def _told_apart(values: tuple[object, ...]) -> tuple[tuple[bool, object], ...]:
    """A number and a boolean of one value are two values."""
    return tuple((isinstance(value, bool), value) for value in values)


def value_name(values: Sequence[object]) -> str:
    """A combination of values in words, which no other has: `39~Female`; what is missing as `missing`."""
    return "~".join("missing" if value is None else _named(str(value)) for value in values)


def _named(text: str) -> str:
    """A text that could be taken for something else stands in quotes."""
    return "'" + text.replace("'", "''") + "'" if text == "missing" or "~" in text or text.startswith("'") else text
