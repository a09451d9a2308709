"""`help` of a public name is enough to use it: every parameter is named, and there is an example."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import attrpriv as ap

# What people are given, not what they make; the errors say in their message what to do.
GIVEN = {"AttrprivError", "Bridge", "Cause", "CertificateError", "DataError", "ModelAudit", "PolicyError", "QueryError"} | {
    *("Refusal", "RefusedError", "UsageError", "LeakageMap", "ReleaseAudit")
}
NAMES = [name for name in ap.__all__ if inspect.isclass(getattr(ap, name)) or inspect.isfunction(getattr(ap, name))]


def parameters(value: Any) -> list[str]:
    if not inspect.isclass(value):
        return list(inspect.signature(value).parameters)
    fields = getattr(value, "model_fields", None) or getattr(value, "__dataclass_fields__", None)
    if fields is not None:
        return [name for name in fields if name not in ("kind", "schema_version", "sampled")]
    return [name for name in inspect.signature(value).parameters if name not in ("args", "kwargs")]


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_named(name: str) -> None:
    value = getattr(ap, name)
    told = inspect.getdoc(value) or ""
    assert told
    if name not in GIVEN | {"Plan", "Problem"}:  # whose fields are the policy's keys
        assert [one for one in parameters(value) if one not in told] == []


@pytest.mark.parametrize("name", [name for name in NAMES if name not in GIVEN | {"Plan", "Problem"}])  # see `plan`
def test_there_is_an_example(name: str) -> None:
    assert ">>> " in (inspect.getdoc(getattr(ap, name)) or "")


def test_what_is_said_of_a_field_is_in_the_help() -> None:
    assert "\nFields:\n" in (ap.Policy.__doc__ or "")
    for name, field in ap.Policy.model_fields.items():
        if field.description:
            assert f"{name}: {field.description}" in (ap.Policy.__doc__ or "")


@pytest.mark.parametrize("name", ["plan", "rank", "release", "view", "record_outside", "bridge", "verify", "problem"])
def test_every_method_of_a_session_says_what_it_takes(name: str) -> None:
    method = getattr(ap.Session, name)
    told = f"{inspect.getdoc(method)}\n{inspect.getdoc(ap.Session)}"
    assert [one for one in inspect.signature(method).parameters if one != "self" and one not in told] == []
