"""Every whole number that the system could return is looked at: the laws are exact, not nearly so."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from attrpriv.errors import UsageError
from attrpriv.noise import coupled_draw, draw, exact


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """`randbelow` returns what is in this list, and the list says afterwards what it was asked for."""
    script: list[int] = []

    def scripted(bound: int) -> int:
        value = script.pop(0)
        assert 0 <= value < bound
        script.append(bound)
        return value

    monkeypatch.setattr(exact, "randbelow", scripted)
    return script


@pytest.mark.parametrize("weights", [[1], [3, 0, 2], [0, 0, 5, 1, 0], [2, 2, 2]])
def test_each_position_has_its_weight(weights: list[int], system: list[int]) -> None:
    drawn: Counter[int] = Counter()
    for value in range(sum(weights)):
        system[:] = [value]
        drawn[draw(weights)] += 1
        assert system == [sum(weights)]
    assert drawn == Counter({o: weight for o, weight in enumerate(weights) if weight})


@pytest.mark.parametrize(
    ("source", "target"), [([3, 0, 2], [1, 1, 3]), ([0, 4, 0, 0], [2, 0, 0, 2]), ([1, 1, 1], [1, 1, 1]), ([0, 5], [5, 0])]
)
def test_the_coupling_is_the_monotone_one(source: list[int], target: list[int], system: list[int]) -> None:
    holders = [o for o, width in enumerate(target) for _ in range(width)]
    seen = []
    for position, width in enumerate(source):
        for value in range(width):
            system[:] = [value]
            seen.append(coupled_draw(source, target, position))
            assert system == [width]
    assert seen == holders


def test_an_empty_slice_is_a_point(system: list[int]) -> None:
    """Nothing is asked of the system, so nothing can differ between two draws."""
    assert [coupled_draw([0, 2, 0, 2, 0], [1, 0, 2, 0, 1], f) for f in (0, 2, 4)] == [0, 2, 4]
    assert [coupled_draw([0, 2, 0, 2, 0], [1, 0, 3, 0, 0], f) for f in (0, 2, 4)] == [0, 2, 2]
    assert system == []


def test_the_sampler_and_the_certificate_mean_the_same_kernel(system: list[int]) -> None:
    from attrpriv.numerics.calibration.coupling import overlaps

    for source, target in itertools.product(itertools.product(range(3), repeat=4), repeat=2):
        if not 0 < sum(source) == sum(target):
            continue
        certified = {(f, o): (part, whole) for f, o, part, whole in overlaps(source, target)}
        for f, width in enumerate(source):
            drawn: Counter[int] = Counter()
            for value in range(max(1, width)):
                system[:] = [value]
                drawn[coupled_draw(source, target, f)] += 1
            assert {(f, o): (part, max(1, width)) for o, part in drawn.items()} == {
                cell: share for cell, share in certified.items() if cell[0] == f
            }


@pytest.mark.parametrize("weights", [[], [0, 0], [1, -1, 3], [0.5, 0.5], [True, 2]])
def test_weights_that_are_no_weights(weights: list[int]) -> None:
    with pytest.raises(UsageError, match=r"^weights: "):
        draw(weights)
    with pytest.raises(UsageError, match=r"^source: "):
        coupled_draw(weights, [1, 1], 0)
    with pytest.raises(UsageError, match=r"^target: "):
        coupled_draw([1, 1], weights, 0)


def test_totals_must_agree() -> None:
    with pytest.raises(UsageError, match=r"^target: must have the same sum"):
        coupled_draw([1, 1], [1, 2], 0)


@pytest.mark.parametrize("position", [-1, 2, 777])
def test_an_impossible_count_is_an_error_that_does_not_name_it(position: int) -> None:
    with pytest.raises(UsageError, match=r"^count: ") as caught:
        coupled_draw([1, 1], [1, 1], position)
    assert str(position) not in str(caught.value)
