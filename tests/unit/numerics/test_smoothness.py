"""Public records against a stated channel: what breaks it is refused, what is as stated is not, and nothing is approved."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from attrpriv.errors import UsageError
from attrpriv.numerics import smoothness
from attrpriv.numerics.divergences.channel import explained
from attrpriv.numerics.smoothness import break_points, check_cells, check_places, functions, left_over, separated

Table = dict[str, NDArray[Any]]
RNG_SIZE = 4_000
NAMES = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain capital-loss "
    "hours-per-week native-country income"
).split()


def normal_channel(seed: int, information: float, size: int = RNG_SIZE) -> tuple[NDArray[np.float64], Table]:
    """z = sqrt(iota) s + noise, split over two columns that only together tell as much; and a column of noise."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=size)
    z = math.sqrt(information) * hidden + rng.normal(size=size)
    other = rng.normal(size=size)
    return hidden, {"first": z + other, "second": z - other, "third": rng.choice(["a", "b"], size=size)}


# --- functions ---------------------------------------------------------------------------------------------------------------


def test_functions_of_a_column_with_different_values() -> None:
    rng = np.random.default_rng(1)
    income = rng.lognormal(size=2_000)
    columns: Table = {
        "tax": np.maximum(0.0, income - 1) * 0.3 + income * 0.01,
        "band": np.where(income > 1, "high", "low"),
        "noise": rng.normal(size=2_000),
        "one": np.zeros(2_000),
        "letter": rng.choice(list("abc"), size=2_000),
    }
    found = {(function.column, function.determines) for function in functions(income, columns)}
    assert found == {("tax", False), ("tax", True), ("band", False)}


def test_a_table_of_codes_is_a_function_without_order() -> None:
    """Windows of neighbouring values do not see it; records of one value do."""
    rng = np.random.default_rng(2)
    table = rng.permutation(500)
    hidden = rng.integers(0, 500, size=3_000)
    code = table[hidden].astype(float)
    assert left_over(hidden, code) <= 1e-12
    assert smoothness._within(smoothness._windows(hidden), code) > 0.2
    # Wrong for one record in a hundred: nearly a function still.
    wrong = np.where(rng.random(3_000) < 0.01, rng.permutation(code), code)
    assert 0.0 < left_over(hidden, wrong) < 0.1


def test_what_is_left_is_one_minus_what_is_explained() -> None:
    rng = np.random.default_rng(3)
    hidden = np.repeat(np.arange(100.0), 40)
    other = hidden / hidden.std() + rng.normal(size=hidden.size)
    assert left_over(hidden, other) == pytest.approx(0.5, abs=0.05)
    coin = np.where(rng.random(hidden.size) < 0.5, "x", "y")
    assert left_over(hidden, coin) == pytest.approx(1.0, abs=0.02)


def test_pairs_by_their_definition() -> None:
    rng = np.random.default_rng(4)
    groups, codes = rng.integers(0, 3, size=40), rng.integers(0, 4, size=40)
    for group, found in enumerate(smoothness._differing(groups, codes)):
        inside = codes[groups == group]
        pairs = [a != b for i, a in enumerate(inside) for b in inside[i + 1 :]]
        assert found == pytest.approx(np.mean(pairs))


def test_too_few_alike_say_nothing() -> None:
    names = np.array([f"name {i}" for i in range(500)])
    assert left_over(names, np.arange(500.0)) == 1.0
    assert left_over(np.full(200, math.nan), np.arange(200.0)) == pytest.approx(1.0, abs=0.01)


# --- neighbours --------------------------------------------------------------------------------------------------------------


def test_a_channel_exactly_as_stated_is_hardly_ever_refused() -> None:
    """The bound is reached by normal rows: at level .01 for all places of a table together."""
    refused = 0
    for seed in range(20):
        hidden, columns = normal_channel(seed, 0.5)
        verdicts = check_places(hidden, columns, [-1.0, 0.0, 1.0], 600, 0.5)
        refused += bool(break_points(verdicts))
        assert all(verdict.finding in ("refused", "not refuted") for verdict in verdicts)
    assert refused <= 1


def test_four_times_as_much_information_is_refused() -> None:
    hidden, columns = normal_channel(5, 2.0, size=10_000)
    cells = check_cells(hidden, columns, [-1.0, 0.0, 1.0], 0.5)
    assert {verdict.finding for verdict in cells} == {"refused"}
    middle = cells[1]
    assert middle.separation == pytest.approx(math.sqrt(2.0) * 0.5, rel=0.25)
    assert middle.allowed == pytest.approx(math.sqrt(0.5) * 0.5, rel=0.1)


def test_a_step_becomes_a_break_point() -> None:
    rng = np.random.default_rng(6)
    age = rng.uniform(15, 25, size=RNG_SIZE)
    columns: Table = {
        "vote": np.where((age >= 18) & (rng.random(RNG_SIZE) < 0.7), "yes", "no"),
        "noise": rng.normal(size=RNG_SIZE),
    }
    verdicts = check_places(age, columns, [16.0, 17.0, 18.0, 19.0, 20.0], 300, 0.01)
    assert break_points(verdicts) == (18.0,)


def test_all_alike_within_both_groups_is_a_large_finite_distance() -> None:
    """A column that the side determines: no infinity, and a refusal."""
    hidden = np.arange(400.0)
    columns: Table = {"side": np.where(hidden < 200, "low", "high")}
    verdict = check_places(hidden, columns, [200.0], 200, 1e-6)[0]
    assert verdict.finding == "refused"
    assert 5 < verdict.separation < 20
    assert math.isfinite(verdict.error)
    same = check_places(hidden, {"same": np.zeros(400)}, [200.0], 200, 1e-6)[0]
    assert (same.finding, same.separation) == ("not refuted", 0.0)


def test_too_few_records_and_halves_that_keep_ties() -> None:
    hidden = np.repeat([1.0, 2.0, 3.0], [30, 200, 60])
    columns: Table = {"z": np.arange(290.0) % 7}
    found = check_cells(hidden, columns, [1.0, 2.0, 3.0], 0.1)
    assert [verdict.finding for verdict in found] == ["too few records", "not refuted"]
    assert found[1].records == (200, 60)
    assert check_cells(hidden, columns, [5.0, 6.0], 0.1)[0].finding == "too few records"


def test_many_columns_of_noise_do_not_flatter_themselves() -> None:
    """The mutant: scores of the records that the direction was made from."""
    rng = np.random.default_rng(7)
    lower, upper = rng.normal(size=(2, 120, 60))
    found, error = separated(lower, upper)
    assert abs(found) < 4 * error
    direction = smoothness._discriminant(lower, upper)
    flattered, _ = smoothness._distance(lower @ direction, upper @ direction)
    assert flattered > 8 * error


def test_the_standard_error_is_right() -> None:
    """Spread of d' over many tables, at a separation where the spread of the scores matters as well."""
    rng = np.random.default_rng(8)
    found = np.array([separated(rng.normal(size=(300, 2)), rng.normal((1.5, 0.0), size=(300, 2))) for _ in range(300)])
    assert found[:, 0].mean() == pytest.approx(1.5, abs=0.05)
    assert found[:, 1].mean() == pytest.approx(found[:, 0].std(), rel=0.15)


def test_missing_numbers_are_told_apart() -> None:
    rng = np.random.default_rng(9)
    hidden = rng.uniform(size=1_000)
    z = np.where((hidden > 0.5) & (rng.random(1_000) < 0.8), math.nan, rng.normal(size=1_000))
    assert check_places(hidden, {"z": z}, [0.5], 500, 0.01)[0].finding == "refused"


# --- Adult -------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def adult(shared: Path) -> Table:
    files = [shared / "data" / name for name in ("adult.data", "adult.test")]
    if not all(file.is_file() for file in files):
        pytest.skip("needs the UCI Adult data in ../shared/data")
    lines = [line.split(", ") for file in files for line in file.read_text().splitlines()]
    rows = [[entry.rstrip(".") for entry in line] for line in lines if len(line) == len(NAMES)]
    text = {name: np.array([row[number] for row in rows]) for number, name in enumerate(NAMES)}
    numbers = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
    public = np.random.default_rng(3).permutation(len(rows))[: len(rows) // 2]
    return {name: (column.astype(float) if name in numbers else column)[public] for name, column in text.items()}


def test_education_is_determined_by_its_number(adult: Table) -> None:
    rest = {name: column for name, column in adult.items() if name != "education-num"}
    found = functions(adult["education-num"], rest)
    assert {(function.column, function.determines) for function in found} == {("education", False), ("education", True)}


def test_ages_of_seventeen_and_eighteen_are_no_smooth_cell(adult: Table) -> None:
    """A number from R^2 lets d' be about .07; it is above 1."""
    rest = {name: column for name, column in adult.items() if name != "age"}
    age = adult["age"]
    information = explained(0.44, float(np.var(age)))
    teens = np.isin(age, (17, 18))
    verdict = check_places(age[teens], {name: column[teens] for name, column in rest.items()}, [18.0], 1_000, information)[0]
    assert verdict.finding == "refused"
    assert verdict.allowed == pytest.approx(0.065, abs=0.01)
    assert 1.0 < verdict.separation < 1.8
    assert break_points(check_places(age, rest, [18.0, 40.0], 500, information)) == (18.0,)


# --- bad input ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0])
def test_bad_numbers_are_refused(bad: float) -> None:
    hidden, columns = normal_channel(1, 0.5, size=200)
    with pytest.raises(UsageError, match="information: "):
        check_places(hidden, columns, [0.0], 100, bad)
    with pytest.raises(UsageError, match="information: "):
        check_cells(hidden, columns, [-1.0, 1.0], 0.5, level=bad)
    with pytest.raises(UsageError, match="most_left: "):
        functions(hidden, columns, most_left=bad or -0.1)


def test_bad_columns_are_refused() -> None:
    with pytest.raises(UsageError, match="columns: short must have as many"):
        check_places(np.arange(5.0), {"short": np.arange(4)}, [0.0], 2, 0.5)
    with pytest.raises(UsageError, match="columns: must have as many"):
        left_over(np.arange(5.0), np.arange(4))
    with pytest.raises(UsageError, match="hidden: "):
        check_cells(np.array([1.0, math.nan]), {"z": np.arange(2)}, [0.0, 2.0], 0.5)
    for places, rows in (([math.nan], 2), ([0.0], 0)):
        with pytest.raises(UsageError, match="places: "):
            check_places(np.arange(5.0), {"z": np.arange(5)}, places, rows, 0.5)


@pytest.mark.parametrize("unit", [1e-6, 0.1, 1e4])
def test_how_far_apart_and_how_surely_has_no_unit(unit: float) -> None:
    """d' and its error are shares of the scores' own spread."""
    rng = np.random.default_rng(4)
    lower, upper = rng.normal(0, 1, 300), rng.normal(0.7, 1.3, 500)
    assert smoothness._distance(unit * lower, unit * upper) == pytest.approx(smoothness._distance(lower, upper), rel=1e-9)


def test_the_error_of_a_distance_is_that_of_many_samples() -> None:
    """Of 4,000 pairs of samples: the standard deviation of an estimated one is known to 1.1%, and six of these are allowed."""
    rng = np.random.default_rng(5)
    found = [smoothness._distance(rng.normal(0, 3, 200), rng.normal(4.5, 3, 300)) for _ in range(4_000)]
    told = math.sqrt(float(np.mean([variance for _, variance in found])))
    assert float(np.std([value for value, _ in found])) == pytest.approx(told, rel=0.07)
