"""`attrpriv schema`: a JSON Schema that accepts what the loader accepts and refuses what an editor can see is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from attrpriv.demo.school import students_policy
from attrpriv.policy import Policy
from attrpriv.policy.strict_yaml import load_strict
from tests.end_to_end.material import assume, policy

SCHEMA = Policy.schema_document()
TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}
# Every keyword of the schema must be known here, so that none is skipped in silence.
NOTES = {"title", "description", "default", "examples", "$defs", "$schema", "discriminator"}


def fits(value: Any, part: Mapping[str, Any]) -> bool:
    """A small JSON Schema validator, for the keywords that the schema uses."""
    checks: dict[str, Callable[[Any], bool]] = {
        "$ref": lambda given: fits(value, SCHEMA["$defs"][given.removeprefix("#/$defs/")]),
        "anyOf": lambda given: any(fits(value, option) for option in given),
        "oneOf": lambda given: sum(fits(value, option) for option in given) == 1,
        "type": lambda given: TYPES[given](value),
        "const": lambda given: value == given and type(value) is type(given),
        "enum": lambda given: value in given,
        "properties": lambda given: all(fits(value[key], given[key]) for key in given if key in value),
        "required": lambda given: all(key in value for key in given),
        "additionalProperties": lambda given: all(
            given is not False and (given is True or fits(item, given))
            for key, item in value.items()
            if key not in part.get("properties", {})
        ),
        "prefixItems": lambda given: all(map(fits, value, given)),
        "items": lambda given: all(fits(item, given) for item in value),
        "minItems": lambda given: len(value) >= given,
        "maxItems": lambda given: len(value) <= given,
        "minimum": lambda given: value >= given,
        "maximum": lambda given: value <= given,
        "exclusiveMinimum": lambda given: value > given,
        "exclusiveMaximum": lambda given: value < given,
        "minLength": lambda given: len(value) >= given,
        "minProperties": lambda given: len(value) >= given,
    }
    unknown = set(part) - set(checks) - NOTES
    assert not unknown, f"teach this validator {unknown}"
    order = sorted(set(part) & set(checks), key=lambda key: key != "type")  # first the type, on which the others rely
    return all(checks[key](part[key]) for key in order)


def parts(part: Any) -> Iterator[Mapping[str, Any]]:
    """Every object of the schema."""
    if isinstance(part, dict):
        yield part
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from parts(inner)


def test_what_the_schema_says_of_itself() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["title"] == "attrpriv policy"
    assert SCHEMA["type"] == "object"
    assert {"epsilon", "protect"} <= set(SCHEMA["required"])
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


def test_every_reference_resolves_and_every_type_exists() -> None:
    for part in parts(SCHEMA):
        if "$ref" in part:
            assert part["$ref"].removeprefix("#/$defs/") in SCHEMA["$defs"]
        if isinstance(part.get("type"), str):
            assert part["type"] in TYPES


def test_every_key_is_explained_and_no_other_is_allowed() -> None:
    described = [SCHEMA, *SCHEMA["$defs"].values()]
    for part in described:
        beside = part["properties"]["shares"]["additionalProperties"] if part.get("title") == "Reference" else False
        assert part["additionalProperties"] == beside  # columns stand beside the keys of a reference
        assert part["description"]
        assert ">>>" not in part["description"]  # an example for programmers is no help in an editor
    silent = [key for key, part in SCHEMA["properties"].items() if not part.get("description")]
    assert silent == []


COLUMNS: dict[str, Any] = {"protect": [{"secret": "columns(age)"}]}
DENSITY = {"least_density": 0.8}
GOOD: dict[str, Any] = {
    "the school": load_strict(students_policy()),
    "the tests' policy": policy(),
    "zero tolerance": policy(assume=assume(tolerance=0)),
    "two gaussians": policy(assume=[assume(), assume(tolerance=0)]),
    "public records": policy("assume", **COLUMNS, reference={"file": "census.parquet", "least_density": 0.8}),
    "stated shares": policy("assume", **COLUMNS, reference={"age": {"values": [17, 18], "shares": [0.5, 0.5]}, **DENSITY}),
    "shares of several columns": policy(
        "assume",
        protect=[{"secret": "columns(age, sex)"}],
        reference={"age, sex": {"values": [[17, "F"], [None, "M"]], "shares": [0.5, 0.5]}, **DENSITY},
    ),
    "a law": policy("assume", **COLUMNS, reference={"shares": {"age": {"law": "poisson", "mean": 3}}, **DENSITY}),
    "no assumption": policy("assume", "delta", "resolution", "release", bounds={"weight": [60, 400]}),
}
BAD: dict[str, Any] = {
    "unknown key": policy(epsilonn=1),
    "unknown key of a secret": policy(protect=[{"secret": "mean(income)", "wthin": 1}]),
    "unknown key of an assumption": policy(assume=assume(means={})),
    "no epsilon": policy("epsilon"),
    "no secret": policy("protect"),
    "empty list of secrets": policy(protect=[]),
    "negative epsilon": policy(epsilon=-1),
    "epsilon 0": policy(epsilon=0),
    "epsilon as text": policy(epsilon="1"),
    "delta 1": policy(delta=1),
    "no row": policy(rows=0),
    "bare tolerance": policy(assume=assume(tolerance=0.05)),
    "no tolerance": policy(assume=assume("tolerance")),
    "three ends": policy(bounds={"weight": [1, 2, 3]}),
    "version 2": policy(attrpriv=2),
    "no least density": policy("assume", **COLUMNS, reference={"file": "census.parquet"}),
    "an unknown law": policy("assume", **COLUMNS, reference={"age": {"law": "poison", "mean": 3}, **DENSITY}),
    "an unknown key of a reference": policy("assume", **COLUMNS, reference={"fil": "census.parquet", **DENSITY}),
    "calibration": policy(calibration="best"),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_policy_fits(name: str) -> None:
    assert fits(GOOD[name], SCHEMA)
    Policy.checked(GOOD[name])


@pytest.mark.parametrize("name", BAD)
def test_a_bad_policy_does_not(name: str) -> None:
    assert not fits(BAD[name], SCHEMA)
