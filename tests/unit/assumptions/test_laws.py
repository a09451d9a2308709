"""Stated laws as a policy writes them: what is read, and what is refused with the place and the value."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from attrpriv.assumptions.laws import Laws, read_laws
from attrpriv.errors import PolicyError
from attrpriv.policy.models import Policy

COUNT = "count(*) filter (where flu = 1)"
GIVEN: dict[Any, Any] = {"0": [0.5, 0.5, 0], "1": [0, 0.5, 0.5]}


def laws(**changes: Any) -> Laws:
    return Laws(**({"statistic": COUNT, "values": [0, 1, 2], "given": GIVEN} | changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"statistic": "count(*)"}, "one count of some rows"),
        ({"statistic": "max(x)"}, "statistic"),
        ({"statistic": "count(*) group by x"}, "statistic"),
        ({"statistic": "sum(x) filter (where y = 1)"}, "over all rows"),
        ({"statistic": "avg(x), avg(y)"}, "one count of some rows"),
        ({"values": []}, "values: must be numbers in increasing order"),
        ({"values": [0, 2, 1]}, "values: must be numbers in increasing order"),
        ({"given": {"0": [0.5, 0.5, 0]}}, "given: needs the laws of two or more"),
        ({"given": {"0": [0.5, 0.5], "1": [0, 0.5, 0.5]}}, "given.0: needs one probability for each of the 3 values. Got 2."),
        ({"given": {"0": [0.5, 0.4, 0], "1": [0, 0.5, 0.5]}}, "given.0: probabilities must be able to sum to 1"),
        ({"given": {"0": [0.5, [0.1, 0.2], 0], "1": [0, 0.5, 0.5]}}, "given.0: probabilities must be able to sum to 1"),
        ({"given": {"0": [0.5, 0.5, -0.1], "1": [0, 0.5, 0.5]}}, "between 0 and 1"),
        ({"given": {0: [1, 0, 0], "0": [0, 0.5, 0.5]}}, "given: must give each value of the secret once"),
        ({"prior": {"2": 0.5}}, "prior: names values of the secret that given has. Got 2."),
        ({"row_values": [0, 1]}, "row_values: are for a sum or an average"),
        ({"statistic": "sum(x)", "row_values": [1, 1]}, "row_values: must be two or more different numbers. Got [1.0, 1.0]."),
        ({"statistic": "sum(x)", "row_values": [1]}, "row_values: must be two or more different numbers. Got [1.0]."),
        ({"sensitive": "flu"}, "sensitive"),
    ],
)
def test_what_is_no_law_is_refused(changes: Any, words: str) -> None:
    with pytest.raises(PolicyError) as caught:
        laws(**changes)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_numbers_intervals_and_fractions_are_kept_as_they_are_written() -> None:
    found = laws(given={0: ["1/3", [0.2, 0.7], 0], "1": [0, 0.5, 0.5]})
    assert found.given["0"][:2] == ((Fraction(1, 3),) * 2, (0.2, 0.7))
    assert not found.exact
    assert laws().exact
    assert Laws.from_json(found.to_json()) == found
    assert "intervals" in str(found)


def test_a_file_stands_for_values_and_laws(tmp_path: Path) -> None:
    path = tmp_path / "flu.csv"
    path.write_text("secret,value,probability\n0,0,0.5\n0,1,0.5\n1,1,0.5\n1,2,0.5\n", encoding="utf-8")
    assert Laws(statistic=COUNT, file=str(path)) == laws()
    path.write_text("secret,value,low,high\n0,0,0.5,0.6\n0,1,0.4,0.5\n1,1,1,1\n", encoding="utf-8")
    assert Laws(statistic=COUNT, file=str(path)).given["0"] == ((0.5, 0.6), (0.4, 0.5))
    with pytest.raises(PolicyError, match="instead of values and given"):
        laws(file=str(path))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"secret,value\n0,1\n", "must have the columns secret, value, probability"),
        (b"", "must have the columns"),
        (b"secret,value,probability\n0,0,half\n", "line 2: must hold finite numbers"),
        (b"secret,value,probability\n0,0,nan\n", "line 2: must hold finite numbers"),
        (b"secret,value,probability\n0,0,0.5\n0,0,0.5\n", "line 3: must be one value"),
        (b"secret,value,probability\n0,0,0.5,7\n", "line 2: must be one value"),
        (b"secret,value,probability\n0,0\n", "line 2: must hold finite numbers"),
        (b"\xff\xfe", "readable CSV file in UTF-8"),
    ],
)
def test_a_file_that_is_none_is_refused_by_its_line(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "flu.csv"
    path.write_bytes(content)
    with pytest.raises(PolicyError) as caught:
        read_laws(str(path))
    assert words in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="Check the path"):
        read_laws(str(tmp_path / "none.csv"))


def test_a_policy_finds_the_file_beside_itself(tmp_path: Path) -> None:
    (tmp_path / "flu.csv").write_text("secret,value,probability\n0,0,1\n1,1,1\n", encoding="utf-8")
    text = (
        f"attrpriv: 1\nrows: 1\nepsilon: 1\nprotect:\n  - secret: entries(flu)\nassume:\n  kind: laws\n  statistic: {COUNT}\n"
    )
    (tmp_path / "policy.yaml").write_text(text + "  file: flu.csv\n", encoding="utf-8")
    policy = Policy.load(tmp_path / "policy.yaml")
    assert policy.assume[0] == Laws(statistic=COUNT, values=[0, 1], given={"0": [1, 0], "1": [0, 1]})
    assert policy.speaks_of_one_row


def test_the_schema_has_the_kind_and_its_keys() -> None:
    parts = Policy.schema_document()["$defs"]
    assert {"statistic", "values", "given", "file", "prior", "row_values"} <= set(parts["Laws"]["properties"])
