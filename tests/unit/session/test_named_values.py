"""Values that secrets, sizes and filters name are compared with those that the policy lists; padded text is pointed out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import attrpriv as ap
from attrpriv.queries.sql import parse_queries
from attrpriv.session.named_columns import listed_values, padded, require_listed
from tests.end_to_end.material import Said

COUNTS = {"kind": "counts", "sensitive": "sex", "given": {"hours > 40": {"Female": 0.3, "Male": 0.4}}}
GROUPS = {
    "kind": "groups",
    "sensitive": "sex",
    "mean": {"Female": {"hours": 36}, "Male": {"hours": 42}},
    "sd": {"Female": {"hours": 11}, "Male": {"hours": 12}},
    "tolerance": {"mean": 0.02, "sd": 0.02},
}
VISITS = {
    "Female": {"values": [0, 1, 2], "probabilities": [0.2, 0.5, 0.3]},
    "Male": {"values": [0, 1, 2], "probabilities": [0.5, 0.3, 0.2]},
}


def policy(secret: str = "share(sex = 'Female')", assume: Any = COUNTS, **changes: Any) -> ap.Policy:
    given = {"rows": 1000, "epsilon": 1.0, "protect": [ap.Secret(secret, between=(0.25, 0.4))], "assume": assume}
    return ap.Policy.from_json(ap.Policy(**(given | changes)).to_json())


def refusal(found: ap.Policy, *queries: str) -> str:
    with pytest.raises(ap.UsageError) as caught:
        require_listed([query for text in queries for query in parse_queries(text)], found)
    return str(caught.value)


@pytest.mark.parametrize("assume", [COUNTS, GROUPS], ids=["counts", "groups"])
@pytest.mark.parametrize("value", ["Femal", " Female", "Female ", "female", "FEMALE"])
def test_a_secret_with_a_value_that_is_not_listed(assume: Any, value: str) -> None:
    told = refusal(policy(f"share(sex = '{value}')", assume))
    assert told.startswith(f"protect: sex = '{value}': the policy lists 'Female', 'Male' for sex. Got '{value}'.")
    assert told.endswith("Did you mean 'Female'?")


def test_check_refuses_what_it_said_ok_to(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    text = (
        "attrpriv: 1\ndata: t.parquet\nrows: 1000\nepsilon: 1\ndelta: 1e-6\n"
        "protect:\n  - secret: share(sex = 'Female')\n    between: [25%, 40%]\n"
        "assume:\n  kind: groups\n  sensitive: sex\n  mean: {Female: {hours: 36}, Male: {hours: 42}}\n"
        "  sd: {Female: {hours: 11}, Male: {hours: 12}}\n  tolerance: {mean: 0.02, sd: 0.02}\n"
        "release:\n  - count(*) filter (where hours > 40)\n"
    )
    path.write_text(text, encoding="utf-8")
    assert Said("check", str(path)).code == 0
    for wrong in ("Femal", " Female"):
        path.write_text(text.replace("'Female'", f"'{wrong}'"), encoding="utf-8")
        for command in ("check", "plan", "explain"):
            said = Said(command, str(path))
            assert said.code == 2
            assert "Did you mean 'Female'?" in said.complaint
    path.write_text(text.replace("'Female'", "'Femal'").partition("release")[0], encoding="utf-8")
    assert Said("check", str(path)).code == 2


def test_values_of_filters_sizes_and_given() -> None:
    assert "query: sex in ('Female', 'Mal')" in refusal(policy(), "count(*) filter (where sex in ('Female', 'Mal'))")
    wards: dict[str, Any] = {"categories": {"ward": ["a", "b"]}}
    assert "Did you mean 'a'?" in refusal(policy(**wards), "avg(age) filter (where age > 3 and not (ward = 'A'))")
    assert refusal(policy(**wards, sizes={"ward = 'c'": 10})).startswith(
        "sizes: ward = 'c': the policy lists 'a', 'b' for ward."
    )
    given = {**COUNTS, "given": {"ward = 'c'": {"Female": 0.3, "Male": 0.4}}}
    assert refusal(policy(assume=given, **wards)).startswith("assume: ward = 'c': ")
    listed = {**COUNTS, "given": {"visits": VISITS}}
    assert "lists 0, 1, 2 for visits. Got 3." in refusal(policy(assume=listed), "count(*) filter (where visits = 3)")


def test_cells_of_a_distribution() -> None:
    secret = ap.Secret("distribution(sex)", between={"Female": (0.2, 0.5), "Mail": (0.5, 0.8)})
    assert "Did you mean" not in refusal(policy(protect=[secret]), "count(*) filter (where sex = 'x')")
    with pytest.raises(ap.UsageError, match=r"query: sex = 'femal'.*Did you mean 'Female'\?"):
        require_listed(parse_queries("count(*) filter (where sex = 'femal')"), policy(protect=[secret], assume=()))


LISTED: dict[str, tuple[str, dict[str, Any]]] = {
    "as listed": ("count(*) filter (where sex = 'Male')", {}),
    "a number": ("count(*) filter (where visits != 2)", {"assume": {**COUNTS, "given": {"visits": VISITS}}}),
    "a number as text": ("count(*) filter (where ward = 1)", {"categories": {"ward": ["1", "2"]}}),
    "a boolean": ("count(*) filter (where paid = true)", {"categories": {"paid": [True, False]}}),
    "an order": ("count(*) filter (where visits > 7)", {"assume": {**COUNTS, "given": {"visits": VISITS}}}),
    "a column that nothing lists": ("count(*) filter (where town = 'x')", {}),
    "other": ("count(*) filter (where ward = 'c')", {"categories": {"ward": ["a", "other"]}}),
    "listed elsewhere": ("count(*) filter (where sex = 'Unknown')", {"categories": {"sex": ["Unknown", "Female"]}}),
    "other of the assumption": ("count(*) filter (where sex = 'x')", {"assume": {**COUNTS, "other": "Male"}}),
    "bins": ("count(*) filter (where age = 7)", {"bins": {"age": [0, 10, 20]}, "categories": {"age": [1]}}),
}


@pytest.mark.parametrize("name", LISTED)
def test_what_may_be(name: str) -> None:
    text, changes = LISTED[name]
    require_listed(parse_queries(text), policy(**changes))


def test_states_of_a_chain_are_listed() -> None:
    chain = {
        "kind": "chain",
        "column": "state",
        "states": ["on", "off"],
        "initial": [1, 0],
        "transition": [[0.9, 0.1], [0.4, 0.6]],
    }
    found = policy(assume={**chain, "tolerance": 0}, protect=[ap.Secret("entries(state)")])
    assert listed_values(found) == {"state": ("on", "off")}
    assert "Did you mean 'off'?" in refusal(found, "count(*) filter (where state = 'of')")


def test_padded_values_that_are_listed_so_are_pointed_out() -> None:
    assert padded(policy(), ()) is None
    assume = {**COUNTS, "given": {"hours > 40": {" Female": 0.3, " Male": 0.4}}}
    found = policy("share(sex = ' Female')", assume)
    require_listed((), found)
    assert padded(found, ()) == "' Female', ' Male': begins or ends with a space, and only rows that are written so are meant."
