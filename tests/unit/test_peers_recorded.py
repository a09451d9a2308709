"""What is recorded of the comparison is what today's code gives, where that is quick to tell; what the page says of it holds.

Numbers without chance agree in the three digits that are shown. Means of simulated errors agree with the law of the noise up to
six standard errors: a run is off by that less than once in 10^8.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from bench.peers import newer_work, song_chains
from bench.peers.budget import Unavailable
from bench.peers.chen_mechanisms import apart, directional_variance, least_sd
from bench.peers.chen_ohrimenko import DAUM, DIRM, EPSILONS, EXPM, GAUSSIAN, MANY, TRANSPORT, UNDEFENDED, VIEW
from bench.peers.five_statistics import INCOME, PRIVATE, STATISTICS, Setting
from bench.peers.property_inference import VALUES
from bench.peers.results import Cell, Table, measured, read
from bench.peers.running import RESULTS


def recorded(experiment: str, key: str) -> Table:
    place = RESULTS / f"{experiment}.json"
    if not place.is_file() or read(place).left_out:
        pytest.skip(f"{experiment} was not measured on the machine whose results these are")
    return read(place).table(key)


def value(cell: Cell) -> float:
    assert isinstance(cell.value, int | float)
    return float(cell.value)


def ends(cell: Cell) -> tuple[float, float]:
    assert cell.low is not None
    assert cell.high is not None
    return cell.low, cell.high


# ------------------------------------------------------------------------------------------------------- as today's code has it


@pytest.mark.parametrize(("alpha", "epsilon"), [(0.4, 0.2), (0.3, 1.0), (0.4, 5.0)])
def test_the_errors_on_chains_are_todays(alpha: float, epsilon: float) -> None:
    found = recorded("song_chains", f"epsilon-{epsilon:g}".replace(".", "-"))
    scales = song_chains.scales_of(alpha, epsilon)
    assert set(scales) == {*song_chains.THEIRS, *song_chains.OURS}
    for name, scale in scales.items():
        assert value(found.cell(name, f"α = {alpha:g}")) == pytest.approx(song_chains._error(name, scale), rel=5e-4)


@pytest.mark.parametrize("table", [newer_work.additive_noise, newer_work.influence, newer_work.many_counts])
def test_what_newer_mechanisms_need_is_todays(table: Callable[[], Table]) -> None:
    today = table()
    found = recorded("newer_work", today.key)
    assert [[one.value for one in row if isinstance(one.value, str)] for row in found.rows] == [
        [one.value for one in row if isinstance(one.value, str)] for row in today.rows
    ]
    for row, other in zip(found.rows, today.rows, strict=True):
        for one, two in zip(row, other, strict=True):
            assert isinstance(one.value, str) or value(one) == pytest.approx(value(two), rel=5e-4)


def near(cell: Cell, expected: float) -> bool:
    """Within six standard errors; an interval has 1.96 of them on either side."""
    if expected == 0:
        return value(cell) == 0
    return abs(value(cell) - expected) <= 6 * (ends(cell)[1] - value(cell)) / 1.96


def of_the_law(setting: Setting, epsilon: float) -> dict[str, float]:
    """Mean lengths: of normal noise in each of the directions, of normal noise along a line, of Laplace noise along a line."""
    k = len(STATISTICS)
    length = math.sqrt(2) * math.gamma((k + 1) / 2) / math.gamma(k / 2)
    return {
        EXPM: least_sd(setting, epsilon)[0] * length,
        DAUM: math.sqrt(2 / math.pi * directional_variance(setting, epsilon)[0]),
        DIRM: apart(setting)[0] / epsilon,
    }


@pytest.mark.parametrize(("setting", "key"), [(INCOME, "income-error"), (PRIVATE, "private-error"), (MANY, "large-error")])
def test_errors_of_published_mechanisms_are_those_of_the_law_of_their_noise(setting: Setting, key: str) -> None:
    found = recorded("chen_ohrimenko", key)
    try:
        expected = {epsilon: of_the_law(setting, epsilon) for epsilon in EPSILONS}
    except Unavailable as reason:
        pytest.skip(str(reason))
    for epsilon, by_name in expected.items():
        for name, error in by_name.items():
            cell = found.cell(name, f"ε = {epsilon:g}")
            assert near(cell, error), f"{name}, {epsilon:g}"
            assert error == 0 or not near(cell, 1.5 * error), "and the mutant, half as much again, is found"


# ----------------------------------------------------------------------------------------------------- what the page says of it


def better(table: Table, first: str, second: str, epsilon: float) -> bool:
    """Beyond the intervals of both."""
    one, two = (table.cell(name, f"ε = {epsilon:g}") for name in (first, second))
    return ends(one)[1] < ends(two)[0]


def test_theirs_is_better_where_the_page_says_so() -> None:
    income, private, large = (recorded("chen_ohrimenko", f"{key}-error") for key in ("income", "private", "large"))
    view = f"{VIEW} (ε = 0)"
    assert better(income, DIRM, GAUSSIAN, 1.0)
    assert better(income, DAUM, TRANSPORT, 5.0)
    assert better(private, DIRM, TRANSPORT, 5.0)
    assert value(private.cell(DAUM, "ε = 5")) == 0
    assert better(large, DIRM, TRANSPORT, 5.0)
    assert all(better(table, DIRM, view, 5.0) for table in (income, private, large))


@pytest.mark.parametrize("key", ["income-attack", "income-better", "private-attack", "private-better", "large-better"])
def test_no_attack_is_right_more_often_than_promised_and_on_a_view_it_is_a_coin(key: str) -> None:
    found = recorded("chen_ohrimenko", key)
    promised = {one.name: value(found.cell("promised for ε: at most", one.name)) for one in found.columns[1:]}
    for row in found.rows[:-1]:
        name = str(row[0].value)
        for cell, column in zip(row[1:], promised, strict=True):
            assert name == UNDEFENDED or value(cell) <= promised[column], name
            assert "(ε = 0)" not in name or near(cell, 0.5), name
    undefended = found.cell(UNDEFENDED, "ε = 1")
    assert ends(undefended)[0] > 0.5, "there is something to be hidden"
    assert not near(undefended, 0.5)


def test_what_is_kept_is_what_the_page_says() -> None:
    found = recorded("chen_ohrimenko", "delta")
    for row in found.rows:
        name = str(row[0].value)
        if name.startswith((GAUSSIAN, TRANSPORT, EXPM)):
            assert all(ends(cell)[0] <= 0.001 for cell in row[1:]), name
    for name in (DAUM, DIRM):
        assert ends(found.cell(f"{name}, income", "ε = 0.2"))[0] > 0.001


def test_published_numbers_are_such_as_their_way_to_measure_gives() -> None:
    found = recorded("chen_ohrimenko", "as-they-measure")

    def inside(name: str, shares: str, column: str) -> bool:
        low, high = ends(found.cell(f"{name}, {shares}", column))
        return low <= value(found.cell(f"{name[:4]}, as published", column)) <= high

    for column in (f"ε = {one:g}" for one in EPSILONS):
        for shares in ("20% or 30%", "45% or 55%"):
            assert inside(EXPM, shares, column)
            assert inside(DAUM, shares, column) == (column != "ε = 5" or shares == "45% or 55%")


def test_without_the_longest_way_noise_is_not_private() -> None:
    found = recorded("newer_work", "transport-plans")
    losses = {str(row[0].value): value(row[2]) for row in found.rows if row[2].value is not None}
    for name, loss in losses.items():
        assert (loss > newer_work.EPSILON) == ("not private" in name), name
    assert len(losses) == 8


def test_quantising_and_the_view_keep_what_the_page_says() -> None:
    guessed, useful = (recorded("newer_work", key) for key in ("guessed", "useful"))
    wide = "mean age in bins of 4"
    assert ends(guessed.cell("mean age in bins of 1", "the mean shown"))[0] <= value(
        guessed.cell("mean age in bins of 1", "2t/s")
    )
    assert ends(guessed.cell(wide, "the mean shown"))[0] <= value(guessed.cell("nothing", "the mean shown"))
    for name in ("mean age in bins of 1", wide):
        assert min(ends(guessed.cell(name, one))[0] for one in ("the smallest age shown", "all columns")) > 0.8
        assert (
            ends(useful.cell(name, "age moved by, years"))[1]
            < ends(useful.cell("reference view of age", "age moved by, years"))[0]
        )
    for column in ("the mean shown", "the smallest age shown", "all columns"):
        assert ends(guessed.cell("reference view of age", column))[0] <= value(guessed.cell("nothing", column))
    kept = value(useful.cell("reference view of age", "rows")) / value(useful.cell("as it is", "rows"))
    assert 0.3 < kept < 0.37, "a third"


def test_training_with_differential_privacy_leaves_the_share_to_be_guessed_and_views_do_not() -> None:
    found = recorded("property_inference", "attacks")
    right = {str(row[0].value): row[1] for row in found.rows}
    usual, large = (right[f"differential privacy, ε = {one}"] for one in (1, 10))
    if usual.value is None:
        pytest.skip("diffprivlib was not there")
    assert ends(right["differential privacy, ε = 0.1"])[0] <= 0.5
    assert ends(usual)[0] > 0.5
    assert ends(large)[0] <= value(right["undefended"]) <= ends(large)[1]
    for name in ("view", "reference view"):
        assert ends(right[name])[0] <= 0.5 <= ends(right[name])[1]


def test_n_leaked_is_the_number_of_the_publication() -> None:
    """log(4w(1 - w)) / log r, where r is the larger quotient of the two shares or of what is not in them."""
    found = recorded("property_inference", "attacks")
    low, high = VALUES
    for row in found.rows:
        if isinstance(row[2].value, float):
            w = max(value(row[1]), 0.5)
            expected = math.log(4 * w * (1 - w)) / math.log(max(low / high, (1 - high) / (1 - low)))
            assert value(row[2]) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_near_finds_what_is_off() -> None:
    cell = measured(10.0, 9.804, 10.196)
    assert near(cell, 10.5)
    assert not near(cell, 10.7)


def test_each_cell_of_the_feature_table_has_its_version_and_call() -> None:
    overview, evidence = (recorded("features", key) for key in ("overview", "evidence"))
    versions = read(RESULTS / "features.json").versions
    called = {(str(row[0].value), str(row[1].value)) for row in evidence.rows}
    for row in overview.rows:
        for answer, library in zip(row[1:], overview.columns[1:], strict=True):
            if library.name in versions:  # others could not be installed
                assert (str(row[0].value), f"{library.name} {versions[library.name]}") in called
                assert answer.value in ("yes", "no", "mentioned")
    assert len(called) == len(evidence.rows)
