"""Every key of several policies, made wrong in every way: what is said is in this project's words.

An error of a policy reads "parameter: requirement. Got value. What to do." The sweep knows nothing of how a policy is checked:
it replaces, removes and adds, and reads what comes out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest

from attrpriv.errors import AttrprivError, PolicyError
from attrpriv.policy import Policy

FLIP = [[0.7, 0.3], [0.3, 0.7]]
BASE: dict[str, Any] = {"attrpriv": 1, "epsilon": 1.0, "delta": 1e-6}
SHARE = {"secret": "share(smoker = 'yes')", "between": [0.2, 0.4], "within": 0.02}
POLICIES: dict[str, dict[str, Any]] = {
    "gaussian": BASE
    | {
        "data": "students.parquet",
        "rows": 10_000,
        "individuals": {"epsilon": 1.0},
        "protect": [{"secret": "mean(income)", "between": [20_000, 200_000], "within": 1_000}],
        "assume": {
            "kind": "gaussian",
            "mean": {"income": 60_000},
            "sd": {"weight": 25, "income": 30_000},
            "correlation": {"weight~income": 0.3},
            "tolerance": {"mean": 0.01, "sd": 0.02, "slope": 0.05},
        },
        "accept_fit_risk": False,
        "calibration": "analytic",
        "bounds": {"weight": [60, 400]},
        "resolution": {"weight": 1},
        "bins": {"weight": [100, 200]},
        "categories": {"school": ["a", "b", "other"]},
        "sizes": {"school = 'a'": 300},
        "known_rows": 0.1,
        "missing": {"weight": 150},
        "ledger": "students.ledger",
        "release": ["avg(weight)"],
    },
    "counts": BASE
    | {
        "protect": [SHARE],
        "assume": {
            "kind": "counts",
            "sensitive": "smoker",
            "given": {"stay > 7": {"yes": [0.38, 0.42], "no": 0.2}},
            "prior": {"yes": [0.25, 0.35]},
        },
    },
    "groups": BASE
    | {
        "protect": [{"secret": "distribution(smoker)", "between": {"yes": [0.2, 0.4], "other": [0.6, 0.8]}}],
        "assume": [
            {
                "kind": "groups",
                "sensitive": "smoker",
                "mean": {"yes": {"hours": 36}, "no": {"hours": 42}},
                "sd": {"yes": {"hours": 11}, "no": {"hours": 12}},
                "tolerance": {"mean": 0.02, "sd": 0.02},
            }
        ],
        "composition": {"smoker = 'yes'": 0.3},
        "identifiers": ["patient"],
        "row_id": "patient",
    },
    "hierarchy": BASE
    | {
        "protect": [{"parameter": "income", "between": [40_000, 80_000]}],
        "assume": {
            "kind": "hierarchy",
            "mean": {"weight": 150, "income": 60_000},
            "between_sd": {"weight": 5, "income": 8_000},
            "between_correlation": {"weight~income": 0.3},
            "within_sd": {"weight": 25, "income": 30_000},
            "tolerance": 0,
        },
    },
    "chain": BASE
    | {
        "protect": [{"secret": "entries(state)"}],
        "assume": {
            "kind": "chain",
            "column": "state",
            "states": [0, 1],
            "initial": [1, 0],
            "transition": [[0.9, 0.1], [0.4, 0.6]],
            "tolerance": 0,
        },
    },
    "parameter_network": BASE
    | {
        "protect": [{"parameter": "income"}],
        "assume": {
            "kind": "parameter_network",
            "tolerance": 0,
            "network": {
                "nodes": {
                    "income": {"states": ["low", "high"], "table": [[0.5, 0.5]]},
                    "sat": {"states": ["low", "high"], "parents": ["income"], "table": FLIP},
                }
            },
            "values": {"sat": {"low": 0.2, "high": 0.6}},
            "attributes": {"sat": {"family": "bernoulli"}},
        },
        "ranges": {"regr_slope(sat, height)": [-20.0, 30.0]},
    },
}
WRONG: tuple[Any, ...] = (
    *(None, True, "", "word", 0, -1, 1.5, 10**30, 10**400, 10**5000, math.nan, math.inf, b"bytes", object()),
    *([], [1], [1, 2, 3], ["a"], [None], [[]], {}, {"a": 1}, {"a": None}, {"a": []}, {1: 2}),
)
# What a checking library says for itself.
FOREIGN = re.compile(
    r"[Ii]nput|[Ss]hould|[Vv]alue error|[Ff]ield required|[Ee]xtra |permitted|[Vv]alidat|pydantic|instance of|type=|iterable"
    r"|[Dd]ict\b|dictionary|[Tt]uple|<class|Traceback|unable to|callable"
)


def mutated(value: Any) -> Iterator[Any]:
    """A policy with one thing wrong: something else instead of each part, a key less, a key more."""
    yield from WRONG
    if isinstance(value, dict):
        yield value | {"colour": 1}
        for key in value:
            yield {name: part for name, part in value.items() if name != key}
            yield {f"{name}s" if name == key else name: part for name, part in value.items()}
            for inner in mutated(value[key]):
                yield value | {key: inner}
    if isinstance(value, list):
        yield [*value, *value]
        for k, part in enumerate(value):
            yield value[:k] + value[k + 1 :]
            for inner in mutated(part):
                yield [*value[:k], inner, *value[k + 1 :]]


def messages(name: str) -> Iterator[str]:
    for wrong in mutated(POLICIES[name]):
        try:
            Policy.checked(wrong)
        except PolicyError as error:
            yield str(error)


@pytest.mark.parametrize("name", POLICIES)
def test_what_is_wrong_is_said_in_our_words(name: str) -> None:
    Policy.checked(POLICIES[name])
    said = set(messages(name))
    assert len(said) > 100
    foreign = {line for line in said if FOREIGN.search(re.sub(r" Got .*", "", line))}
    assert foreign == set()
    assert {
        line for line in said if not re.match(r"[^ :]+.*: \S.*[.)]$", line) or not line.isprintable() or len(line) > 600
    } == set()


class Table:
    """What shows its rows wherever it is shown."""

    def __repr__(self) -> str:
        return "PLANTED-4711"


@pytest.mark.parametrize("wrong", [Table(), [Table()], {"a": [Table()]}], ids=["alone", "in a list", "deeper"])
@pytest.mark.parametrize("key", ["epsilon", "bounds", "data", "rows", "release", "assume"])
def test_an_object_given_by_mistake_is_not_quoted(key: str, wrong: Any) -> None:
    with pytest.raises(PolicyError) as caught:
        Policy(**(POLICIES["gaussian"] | {key: wrong}))
    assert "PLANTED" not in str(caught.value)


def test_the_sweep_would_see_the_words_of_a_library() -> None:
    for line in ("epsilon: Input should be a valid number. Got 'x'.", "a: Field required", "b: Extra inputs are not permitted"):
        assert FOREIGN.search(re.sub(r" Got .*", "", line))
    assert issubclass(PolicyError, AttrprivError)
