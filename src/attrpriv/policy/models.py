"""The policy file as a frozen value, and its JSON Schema.

The same class reads YAML (`Policy.load`) and Python (`Policy(epsilon=..., protect=[...])`). What must never change: a policy
is complete when it exists, it holds no data, and its `digest` covers everything the promise depends on (all but the places of
the data and the ledger).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, Literal, cast

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    PrivateAttr,
    SerializeAsAny,
    Tag,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue, SkipJsonSchema
from pydantic_core import CoreSchema, InitErrorDetails

from attrpriv.errors import PolicyError, QueryError
from attrpriv.frozen import Finite, FrozenMap, FrozenModel, Positive, Range
from attrpriv.frozen.requirements import shown
from attrpriv.policy.strict_yaml import read_strict
from attrpriv.policy.written import Percent, require_decided, require_no_table, with_files, without_percent
from attrpriv.problem.assumption import ONE_ROW, Assumption, shape_of
from attrpriv.problem.places import default_ledger, has_password, is_remote, is_url, usable
from attrpriv.problem.problem import Delta, Edges, Epsilon, Problem, Ranges, Share, Sizes
from attrpriv.problem.public_groups import Categories, PublicGroups, public_groups
from attrpriv.problem.reference import PublicCells, Reference
from attrpriv.problem.secret import Secret
from attrpriv.problem.shapes import STATED
from attrpriv.queries.derived import Question, parse_questions
from attrpriv.queries.query import Query


def digest_of(stated: Mapping[str, Any]) -> str:
    """The digest of the policy that states this."""
    return hashlib.sha256(json.dumps(stated, sort_keys=True, allow_nan=False).encode()).hexdigest()


class AssumptionFile(FrozenModel):
    """An assumption that `attrpriv fit` wrote to a file of its own."""

    file: str = Field(description="path of the assumption's file, relative to the policy file")


def _read_assume(value: object) -> object:
    """One assumption or several, each of a kind there is; in Python, a file's path starts at the working directory."""
    members = with_files(value, Path())
    for member in members:
        if isinstance(member, Mapping) and not Assumption.knows(kind := member.get("kind", "gaussian")):
            near = get_close_matches(kind, Assumption.known(), n=1) if isinstance(kind, str) else []
            hint = f"Did you mean {near[0]}?" if near else "Another kind needs the package that brings it."
            raise PolicyError(f"assume: kind must be one of {', '.join(Assumption.known())}. Got {shown(kind)}. {hint}")
    return members


def _listed(value: object) -> object:
    """Secrets as they are; one alone, whose fields would be taken for entries, is an error."""
    if isinstance(value, Secret):
        raise ValueError("must be a list. Got one Secret. Put it in brackets: protect=[Secret(...)].")
    return value


def _of_kind(value: object) -> Assumption:
    """An assumption, read by the class of its kind; where that refuses it, the error path has the kind as its tag."""
    if isinstance(value, Assumption):
        return value
    kind = value.get("kind", "gaussian") if isinstance(value, Mapping) else "gaussian"  # a bad kind was refused before
    try:
        return Assumption.class_of(kind).model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False)
    told = [{**detail, "loc": (f"<{kind}>", *detail["loc"])} for detail in found]  # messages leave out what is in brackets
    raise ValidationError.from_exception_data("assume", cast("list[InitErrorDetails]", told))


class _Ours:
    """The JSON Schema of an assumption: one of our kinds, which are loaded for it."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        classes = [Assumption.class_of(kind) for kind in _IN_ORDER]
        twice: Any = GenericAlias(tuple, (*classes, *classes))  # a class that is used once gets no name under $defs
        return {"oneOf": handler(TypeAdapter(twice).core_schema)["prefixItems"][: len(classes)]}


_IN_ORDER = ("gaussian", "groups", "counts", "chain", "hierarchy", "parameter_network", "laws", "channel", "records")
Assumed = Annotated[SerializeAsAny[Assumption], BeforeValidator(_of_kind), _Ours()]


def _word_none(value: object) -> object:
    if value != "none":
        raise ValueError(f"must be none, or {{epsilon: e}}. Got {shown(value)}.")
    return value


def _individuals_form(value: object) -> str:
    return "<epsilon>" if isinstance(value, Mapping | Individuals) else "<none>"


def _no_simulation(value: object) -> None:
    if value is not None:
        raise ValueError(
            "guarantees by simulation are gone: a small skewness of the rows broke them. Protect a count, share or "
            "distribution and ask from a view, which assumes nothing; or declare bounds or ranges for group_dp."
        )


class Individuals(FrozenModel):
    """Row-level differential privacy on top of everything else."""

    epsilon: Epsilon
    delta: Annotated[Finite, Field(gt=0, lt=1)] | None = Field(
        default=None,
        exclude_if=lambda delta: delta is None,  # so that digests of policies without one stay what they were
        description="of the test of counts before a view, which alone needs one; left out: 1e-9",
    )


class Policy(FrozenModel):
    """What must stay hidden, from whom, and at what cost: a policy file's keys, as values.

    Examples:
        >>> Policy(epsilon=1.0, protect=[Secret("mean(income)", between=(20_000, 200_000))]).delta
        0.0
    """

    attrpriv: Literal[1] = Field(default=1, description="version of the policy format")
    data: str | None = Field(
        default=None, description="the table: a path relative to this file, a pattern of paths, a PostgreSQL URL or spark:name"
    )
    rows: Annotated[int, Field(strict=True, ge=1)] | None = Field(
        default=None, description="number of rows, public; left out: from Parquet metadata"
    )
    epsilon: Epsilon = Field(description="how alike the answers must look: likelihood ratios up to e^epsilon")
    delta: Delta = Field(default=0.0, description="probability with which that may fail")
    individuals: Annotated[
        Annotated[Literal["none"], BeforeValidator(_word_none), Tag("<none>")] | Annotated[Individuals, Tag("<epsilon>")],
        Discriminator(_individuals_form),
    ] = Field(default="none", description="row-level differential privacy on top, from bounds: {epsilon: e}")
    protect: Annotated[tuple[Secret, ...], BeforeValidator(_listed)] = Field(
        min_length=1, description="the secrets, and which values are indistinguishable"
    )
    assume: Annotated[
        tuple[Assumed, ...],
        BeforeValidator(_read_assume, json_schema_input_type=Assumed | AssumptionFile | list[Assumed | AssumptionFile]),
    ] = Field(default=(), description="what an adversary may believe: one assumption, or a list of which one holds")
    accept_fit_risk: bool = Field(
        default=False, strict=True, description="promise delta plus the risk of a fitted assumption, where that risk is large"
    )
    calibration: Literal["analytic", "classical"] = Field(
        default="analytic", description="classical: the paper's constant, refused where it is unsound"
    )
    bounds: FrozenMap[Range] = Field(default_factory=dict, description="public range of a column: [low, high]")
    resolution: FrozenMap[Positive] = Field(
        default_factory=dict, description="spacing on which nearly all values of a column lie"
    )
    bins: FrozenMap[Edges] = Field(default_factory=dict, description="edges that cut a numeric column into categories")
    categories: FrozenMap[Categories] = Field(
        default_factory=dict, description="public values of a column, for GROUP BY; other: all rows of no other"
    )
    sizes: Sizes = Field(default_factory=dict, description="public number of rows of a subset, by its condition")
    ranges: Ranges = Field(default_factory=dict, description="public range of an answer, by its query: [low, high]")
    # Gone since 0.2; it stays a key so that digests of policies that never had it stay what ledgers recorded.
    sampled: SkipJsonSchema[Annotated[None, BeforeValidator(_no_simulation)]] = None
    composition: FrozenMap[Share] = Field(
        default_factory=dict, description="public shares that answers from a view are scaled to; default: mid-range"
    )
    reference: Reference | None = Field(
        default=None,
        description="public records or shares of the columns about which everything is hidden",
        exclude_if=lambda reference: reference is None,  # so that digests of policies without one stay what they were
    )
    identifiers: tuple[str, ...] = Field(default=(), description="columns that name persons; a view leaves them out")
    row_id: str | None = Field(default=None, description="a column unique to each row, where the engine has no row positions")
    known_rows: Annotated[Share, Field(lt=1)] = Field(default=0.0, description="share of the rows that an adversary may know")
    missing: FrozenMap[Finite] = Field(default_factory=dict, description="public value for missing entries of a column")
    ledger: str | None = Field(default=None, description="path or PostgreSQL URL of the ledger; default: beside this file")
    release: tuple[str, ...] = Field(default=(), description="the queries to release")
    source: FrozenMap[str] = Field(
        default_factory=dict,
        description="where numbers come from, by their place, such as assume.sd.income; a place above holds for all below",
        exclude_if=lambda source: not source,
    )

    _origin: Path | None = PrivateAttr(default=None)

    @field_validator("data", "ledger")
    @classmethod
    def _without_password(cls, place: str | None) -> str | None:
        if place is not None and is_url(place) and has_password(place):
            raise ValueError("a URL must be well-formed and hold no password. Use PGPASSWORD, PGPASSFILE or a service.")
        return place

    @model_validator(mode="after")
    def _enough_rows(self) -> Policy:
        if self.rows == 1 and not self.speaks_of_one_row:
            raise PolicyError(f"rows: must be at least 2; {ONE_ROW}. Got 1.")
        return self

    @property
    def speaks_of_one_row(self) -> bool:
        """Whether a table of a single row is covered by its assumptions."""
        return shape_of(self.assume, self.protect) == STATED

    @field_validator("reference")
    @classmethod
    def _of_columns(cls, reference: Reference | None, info: ValidationInfo) -> Reference | None:
        secrets = info.data.get("protect")
        if reference is not None and secrets is not None and not any(secret.whole_columns for secret in secrets):
            raise ValueError("is for columns(...) under protect, as in columns(age). Got a policy without. Protect them so.")
        return reference

    @field_validator("release")
    @classmethod
    def _parse(cls, release: tuple[str, ...]) -> tuple[str, ...]:
        problem = None
        try:
            for text in release:
                parse_questions(text)
        except QueryError as error:
            problem = str(error)
        if problem is not None:
            raise ValueError(problem)
        return release

    @model_validator(mode="after")
    def _sourced(self) -> Policy:
        if self.source:
            from attrpriv.policy.sources import require_sourced

            require_sourced(self)
        return self

    @classmethod
    def load(cls, path: str | Path, *, assume: bool = True) -> Policy:
        """Read a policy file; with `assume` false without its assumption, as before one is fitted."""
        place = Path(path)
        require_no_table(place)
        value = without_percent(read_strict(place, percent=Percent))
        if not isinstance(value, dict):
            raise PolicyError(f"policy: must be a mapping. Got {type(value).__name__}.")
        if "attrpriv" not in value:
            raise PolicyError("attrpriv: the format version is required in a policy file. Add `attrpriv: 1`.")
        if not assume:
            for key in ("assume", "source"):  # what is to be fitted has no source yet
                value.pop(key, None)
        require_decided(value)
        if "assume" in value:
            value["assume"] = with_files(value["assume"], place.parent)
        policy = cls.checked(value)
        policy._origin = place
        return policy

    @property
    def origin(self) -> Path | None:
        """The file this policy was read from."""
        return self._origin

    def data_path(self) -> str | Path | None:
        """Where the table is: relative paths start at the policy file."""
        if self.data is None or is_remote(self.data):
            return usable("data", self.data)
        return usable("data", self._beside(self.data))

    def ledger_path(self, table: str | Path | None = None) -> str | Path | None:
        """Where the ledger is: as the policy says (a database by its URL), else beside the policy file, or the table.

        Named after the table, this one or the policy's own, so that a second policy beside the first one finds the same ledger.
        None where nobody says which table that is.
        """
        if self.ledger is not None:
            return usable("ledger", self.ledger if is_url(self.ledger) else self._beside(self.ledger))
        folder = None if self._origin is None else self._origin.parent
        named = self.data_path() if table is None and folder is not None else table
        return None if named is None else usable("ledger", default_ledger(named, folder))

    def _beside(self, path: str) -> Path:
        return Path(path) if self._origin is None else self._origin.parent / path

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything the promise depends on."""
        return digest_of(self.stated)

    @property
    def stated(self) -> dict[str, Any]:
        """Everything the promise depends on, as JSON: what a ledger keeps of a policy."""
        return {key: value for key, value in self.to_json().items() if key not in ("data", "ledger", "release", "source")}

    def queries(self) -> tuple[Question, ...]:
        """What is named under `release`."""
        return tuple(one for text in self.release for one in parse_questions(text))

    def groups(self, column: str, types: Mapping[str, str]) -> PublicGroups:
        """The public groups of a GROUP BY on this column, in order."""
        return public_groups(column, self.categories, self.bins, self.protect, types)

    @cached_property
    def whole_columns(self) -> tuple[str, ...]:
        """The columns about which everything is hidden."""
        return next((secret.whole_columns for secret in self.protect if secret.whole_columns), ())

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns that a view has not: those that name persons, and hidden ones where the reference shows nothing."""
        hidden = self.whole_columns if self.reference is not None and self.reference.show == "nothing" else ()
        return tuple(dict.fromkeys((*self.identifiers, *hidden)))

    def reference_path(self) -> str | Path | None:
        """Where the public records are: relative paths start at the policy file."""
        if self.reference is None or self.reference.file is None:
            return None
        return usable("reference", self._beside(self.reference.file))

    def problem(
        self, queries: Sequence[Query], n: int, types: Mapping[str, str], public_cells: PublicCells | None = None
    ) -> Problem:
        """The problem a mechanism has to solve, for a table of n rows with these column types and what a reference says."""
        return Problem(
            queries=tuple(queries),
            secrets=self.protect,
            epsilon=self.epsilon,
            delta=self.delta,
            n=n,
            theta=self.assume,
            calibration=self.calibration,
            bounds=self.bounds,
            resolution=self.resolution,
            missing=self.missing,
            bins=self.bins,
            categories=self.categories,
            sizes=self.sizes,
            ranges=self.ranges,
            composition=self.composition,
            reference=self.reference,
            public_cells=public_cells,
            known_rows=self.known_rows,
            individuals=None if self.individuals == "none" else self.individuals.epsilon,
            individuals_delta=None if self.individuals == "none" else self.individuals.delta,
            accept_fit_risk=self.accept_fit_risk,
            types=types,
            policy_digest=self.digest,
        )

    def __str__(self) -> str:
        from attrpriv.notebook.html import policy_facts

        return "\n".join(f"{name:12}{value}" for name, value in policy_facts(self).items())

    def _repr_html_(self) -> str:
        from attrpriv.notebook.html import policy_html

        return policy_html(self)

    @classmethod
    def schema_document(cls) -> dict[str, Any]:
        """The JSON Schema of a policy file, for editors."""
        from attrpriv.policy.schema import document

        return document(cls.model_json_schema(mode="validation"))
