"""The law of a coupled draw is that of the draw: every whole number that the system could return is looked at."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from attrpriv.errors import UsageError
from attrpriv.noise import coupled_draw, coupled_weights, exact


def test_the_law_is_that_of_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """All lists of three numbers below 4 with the same sum; an empty slice is one point."""
    lists = [one for one in itertools.product(range(4), repeat=3) if sum(one)]
    for source, target in itertools.product(lists, repeat=2):
        if sum(source) != sum(target):
            continue
        for position, width in enumerate(source):
            drawn: Counter[int] = Counter()
            for value in range(max(1, width)):
                monkeypatch.setattr(exact, "randbelow", lambda bound, value=value: value)
                drawn[coupled_draw(source, target, position)] += 1
            assert coupled_weights(source, target, position) == [drawn[o] for o in range(3)]


def test_positions_and_lists_that_do_not_fit_are_refused() -> None:
    assert coupled_draw([1, 0], [0, 1], 0) == 1
    for position in (-1, 2):
        with pytest.raises(UsageError, match="count"):
            coupled_draw([1, 0], [0, 1], position)
    with pytest.raises(UsageError, match="target"):
        coupled_draw([1, 0], [1, 1], 0)
    with pytest.raises(UsageError, match="source"):
        coupled_draw([0, 0], [0, 0], 0)
