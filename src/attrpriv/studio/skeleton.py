"""The shape of an assumption, with TODO in the place of every number: what the secrets and the queries of a policy need."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from attrpriv.cli.proposal import kind_of, only_averages, only_counts, propose
from attrpriv.errors import UsageError
from attrpriv.studio.asked import releases, secrets
from attrpriv.studio.draft import TODO


def skeleton(stated: Mapping[str, Any], columns: Mapping[str, str], named: str = "") -> dict[str, Any]:
    """An assumption of the kind that fits; `named`: the categories of the hidden column, with commas between."""
    asked = releases(stated)
    if not asked:
        raise UsageError("release: must be known first: which numbers are needed depends on what will be published. Got none.")
    hidden = [str(one.get("secret")) for one in secrets(stated)]
    kinds = {kind_of(text) for text in hidden}
    told = [propose(columns, kind_of(text), only_counts(asked), text, asked) for text in hidden]
    if kinds == {"mean"}:
        return _gaussian(list(dict.fromkeys(c for one in told for c in one.hidden)), told[0].averaged)
    names = {column for one in told for column in one.hidden}
    if kinds != {"share"} or len(names) != 1:
        raise UsageError("assume: numbers can be typed for averages, or for shares of one column. Fit them, or publish a view.")
    said = [one.strip() for one in named.split(",") if one.strip()]
    categories = list(dict.fromkeys([*(one.category for one in told if one.category is not None), *said]))
    if len(categories) < 2:
        got = ", ".join(categories) or "none"
        raise UsageError(f"categories: must be all values of {next(iter(names))}, as the table has them. Got {got} alone.")
    if only_counts(asked):
        return _counts(next(iter(names)), categories, told[0].events)
    if not only_averages(asked):
        raise UsageError(
            "release: must be counts alone or averages alone for numbers to be typed. Fit them, or publish a view."
        )
    return _groups(next(iter(names)), categories, told[0].averaged)


def _gaussian(hidden: list[str], averaged: tuple[str, ...]) -> dict[str, Any]:
    both = [*averaged, *hidden]
    return {
        "kind": "gaussian",
        "mean": dict.fromkeys(hidden, TODO),
        "sd": dict.fromkeys(both, TODO),
        "correlation": {f"{a}~{b}": TODO for a, b in itertools.combinations(both, 2)},
        "tolerance": {"mean": TODO, "sd": TODO, "slope": TODO},
    }


def _counts(column: str, categories: list[str], events: tuple[str, ...]) -> dict[str, Any]:
    return {
        "kind": "counts",
        "sensitive": column,
        "given": {event: dict.fromkeys(categories, TODO) for event in events},
        "prior": {categories[0]: TODO},
    }


def _groups(column: str, categories: list[str], averaged: tuple[str, ...]) -> dict[str, Any]:
    mean, sd = ({category: dict.fromkeys(averaged, TODO) for category in categories} for _ in range(2))
    return {"kind": "groups", "sensitive": column, "mean": mean, "sd": sd, "tolerance": {"mean": TODO, "sd": TODO}}


def law_skeleton(stated: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """A reference that states the law of each hidden column, which must hold whole numbers."""
    told = [propose(columns, "columns", False, str(one.get("secret")), ()) for one in secrets(stated)]
    hidden = [column for one in told for column in one.hidden]
    other = next((column for column in hidden if columns.get(column) != "integer"), None)
    if other is not None:
        raise UsageError(f"reference: ends can be stated for columns of whole numbers. Got {other}. Use a public file.")
    laws = {column: {"law": "uniform", "low": TODO, "high": TODO} for column in hidden}
    return {**laws, "least_density": TODO}
