"""What screens say of a promise, and how numbers of a form are read."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from attrpriv.errors import UsageError
from attrpriv.policy.strict_yaml import dump_strict, load_strict
from attrpriv.studio.asked import releases, secrets, whole_columns
from attrpriv.studio.draft import TODO
from attrpriv.studio.numbers import amount_in, count_in, in_order, number_in, read_number, several_in, share_in
from attrpriv.studio.pages.hide import promised
from attrpriv.studio.skeleton import law_skeleton, skeleton
from attrpriv.studio.sources import numbers_in, source_key, without, words_of


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1.0, 0.0), (1.0, 1e-6), (3.0, 0.01), (10.0, 0.1)])
def test_the_best_guess_is_right_as_often_as_the_worst_law_allows(epsilon: float, delta: float) -> None:
    """The worst pair of laws under (epsilon, delta): delta gives the value away, else randomised response."""
    kept = 1 / (1 + math.exp(-epsilon))
    assert promised(epsilon, delta) == pytest.approx(delta + (1 - delta) * kept, abs=1e-12)


def test_no_guess_is_right_more_than_always() -> None:
    assert promised(800.0, 0.5) <= 1


@pytest.mark.parametrize(
    ("text", "value"),
    [("20000", 20_000), ("-3", -3), ("0.5", 0.5), ("1e-6", 1e-6), ("25%", 0.25), ("2.5 %", 0.025), ("7%", 0.07)],
)
def test_a_number_of_a_form(text: str, value: float) -> None:
    assert number_in("within", text) == value
    assert isinstance(number_in("within", text), type(value))


# What no float holds, what holds it nearly, and what two readers read in two ways.
NO_NUMBERS = (
    *("", " ", "x", "%", "-", ".", "e5", "TODO", "true", "null", "~", "1 # one", "[1]", "{a: 1}", "- 1", "1\n2", "1\0", "*a"),
    *("nan", "inf", "-inf", ".inf", ".nan", "infinity", "1e999", "-1e999", "1e400", "9" * 400, "1e-400", "-1e-400", "1e-330%"),
    *("0" * 5_000 + "1", "1e" + "9" * 5_000, "0x10", "0b1", "0o7", "010", "1_000", "1__0", "1 000", "1\u202f000", "1'000"),
    *("2,5", "1,234", "1,234.5", "1.234,5", "1.234.567", "1e5.5", "25%%", "25 pct", "$5", "1:30", "1/2", "2^3", "--1", "+-1"),
    *("\uff11\uff12", "\u0661\u0662", "\u00b2", "\u00bd", "\u2212\u0031", "1\u066b5", "\u096a"),
)


@pytest.mark.parametrize("text", NO_NUMBERS)
@pytest.mark.parametrize("read", [number_in, amount_in, share_in, count_in])
def test_what_is_no_number(text: str, read: Callable[[str, str], float]) -> None:
    with pytest.raises(UsageError, match="within: must be") as told:
        read("within", text)
    assert str(told.value).isprintable()
    assert len(str(told.value)) < 300


def test_a_number_of_a_file_is_read_as_the_file_reads_it() -> None:
    assert [read_number(text) for text in ("20_000", "1e-6", "25%", "")] == [20_000, 1e-6, 0.25, None]
    assert [read_number(text) for text in ("nan", "1e999", "true", "x", "{", "\uff11", "010")] == [None] * 7


@pytest.mark.parametrize(
    ("text", "both"), [("20.000", "20000 or 20.0000"), ("-1.234", "1234 or 1.2340"), ("999.125", "999125")]
)
def test_three_digits_behind_a_point_may_be_thousands(text: str, both: str) -> None:
    with pytest.raises(UsageError, match=f"low: must have one meaning.*{both}"):
        amount_in("low", text)


def test_what_cannot_be_thousands_is_read() -> None:
    for text in ("20000", "20.0", "20.0000", "0.125", "1234.567", "20.12", "1.234e3", "-3", ".125"):
        assert amount_in("low", text) == float(text)


def test_a_percentage_of_a_columns_unit_is_asked_for_again() -> None:
    with pytest.raises(UsageError, match=r"low: must be a number in the unit of the column.*Got a percentage"):
        amount_in("low", "25%")


@pytest.mark.parametrize("text", ["25", "2", "1", "0.5", "-0.1", "1e-3", "101%", "-1%"])
def test_a_share_says_that_it_is_one(text: str) -> None:
    with pytest.raises(UsageError, match="within: must be a share"):
        share_in("within", text)


def test_half_may_be_half_a_percent() -> None:
    with pytest.raises(UsageError, match=r"Got '0\.5'\. Write 50% or 0\.5%\."):
        share_in("within", "0.5")
    assert [share_in("low", text) for text in ("0", "0%", "0.5%", "25 %", "100%")] == [0, 0, 0.005, 0.25, 1]


@pytest.mark.parametrize("text", ["0.5", "25%", "1e3", "-1", "1000.0", "20.000"])
def test_a_number_of_rows_is_whole(text: str) -> None:
    with pytest.raises(UsageError, match="rows: must be a whole number of rows"):
        count_in("rows", text)


def test_two_numbers_stand_apart() -> None:
    assert several_in("value", "0.38, 0.42", number_in) == several_in("value", "[0.38,  0.42]", number_in) == [0.38, 0.42]
    assert several_in("value", " 0.3 ", number_in) == 0.3
    for text in ("2,5", "[2,5]", "0,38, 0,42", "1,", ", 1", "[1", "", "[]"):
        with pytest.raises(UsageError, match="value: must be a number"):
            several_in("value", text, number_in)


@pytest.mark.parametrize(("low", "high"), [(2, 1), (1, 1), (0.5, 0.25)])
def test_what_is_no_range(low: float, high: float) -> None:
    with pytest.raises(UsageError, match="between: must be two numbers, the smaller one first"):
        in_order("between", low, high)


def test_open_decisions_are_no_secrets_and_no_queries() -> None:
    said = {"protect": [{"secret": TODO}, {"secret": "columns(age)"}], "release": ["avg(x)", "avg(TODO)"]}
    assert secrets(said) == [{"secret": "columns(age)"}]
    assert whole_columns(said)
    assert releases(said) == ("avg(x)",)


COLUMNS = {"hours": "integer", "income": "integer", "gender": "text", "stay": "integer"}


@pytest.mark.parametrize(
    ("secret", "release", "named", "kind", "open_numbers"),
    [
        ("mean(income)", "avg(hours)", "", "gaussian", 7),
        ("share(gender = 'F')", "avg(hours)", "M", "groups", 6),
        ("count(gender = 'F')", "count(*) filter (where stay > 7)", "F, M, other", "counts", 4),
    ],
)
def test_a_skeleton_asks_for_what_is_needed(secret: str, release: str, named: str, kind: str, open_numbers: int) -> None:
    made = skeleton({"protect": [{"secret": secret}], "release": [release]}, COLUMNS, named)
    assert made["kind"] == kind
    assert str(made).count(TODO) == open_numbers
    numbers = numbers_in({"assume": made}, "assume")
    assert len(numbers) == open_numbers
    words = [words_of(place, {"assume": made}) for place, _, _ in numbers]
    assert all(hint and "assume" not in what for what, hint in words)  # none is named by its place in a file
    assert len(set(words)) == open_numbers


def test_a_skeleton_without_a_query_or_categories_says_what_lacks() -> None:
    with pytest.raises(UsageError, match="release: must be known first"):
        skeleton({"protect": [{"secret": "mean(income)"}]}, COLUMNS)
    with pytest.raises(UsageError, match="categories: must be all values of gender"):
        skeleton({"protect": [{"secret": "share(gender = 'F')"}], "release": ["avg(hours)"]}, COLUMNS)


def test_the_ends_of_a_law() -> None:
    made = law_skeleton({"protect": [{"secret": "columns(stay, hours)"}]}, COLUMNS)
    assert made["hours"] == {"law": "uniform", "low": TODO, "high": TODO}
    keys = [source_key(place) for place, _, _ in numbers_in({"reference": made | {"failure": "1e-9"}}, "reference")]
    assert keys[::2] == ["reference.shares.stay.low", "reference.shares.hours.low", "reference.least_density"]
    assert keys[-1] == ""
    words = [words_of(place, {"reference": made})[0] for place, _, _ in numbers_in({"reference": made}, "reference")]
    assert words[:2] == ["Lowest value of stay", "Highest value of stay"]
    assert words[-1] == "Least density"
    with pytest.raises(UsageError, match="Got gender"):
        law_skeleton({"protect": [{"secret": "columns(gender)"}]}, COLUMNS)


def test_a_block_goes_with_the_sources_of_its_numbers() -> None:
    said = {"epsilon": 1, "assume": {"sd": {"x": 1}}, "source": {"assume.sd": "a", "bounds.x": "b"}, "bounds": {"x": [0, 1]}}
    left = load_strict(without(dump_strict(said), "assume"))
    assert left == {"epsilon": 1, "source": {"bounds.x": "b"}, "bounds": {"x": [0, 1]}}
    only = {"epsilon": 1, "assume": {"sd": {"x": 1}}, "source": {"assume.sd": "a"}}
    assert load_strict(without(dump_strict(only), "assume")) == {"epsilon": 1}
