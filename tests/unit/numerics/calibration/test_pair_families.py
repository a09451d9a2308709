"""Which pairs of numbers of rows stand for all of them."""

from __future__ import annotations

import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration.pair_families import Events, family_of
from attrpriv.numerics.laws.records import CountPairs, RecordLaws


def event(member: tuple[float, float], rest: tuple[float, float]) -> RecordLaws:
    return RecordLaws((0, 1), ((1 - member[1], 1 - member[0]), member), ((1 - rest[1], 1 - rest[0]), rest))


def test_intervals_are_compared_at_their_ends_by_the_rows_that_nobody_knows() -> None:
    """Of either kind some are known; the others may all have the most and the least probability that any has."""
    records = event((0.5, 0.6), (0.2, 0.3))
    assert family_of(records, CountPairs(20, 5, 12, 4), 3) == Events(0.6, 0.2, 14, 4, (0, 10), 0)
    assert family_of(records, CountPairs(20, 5, 12, 4), 9) == Events(0.6, 0.2, 4, 4, (0, 0), 0)


def test_numbers_are_compared_for_every_pair_of_the_range() -> None:
    records = event((0.5, 0.5), (0.25, 0.25))
    assert family_of(records, CountPairs(20, 5, 12, 4), 3) == Events(0.5, 0.25, 20, 4, (5, 8), 3)


@pytest.mark.parametrize("known", [-1, 21])
def test_no_more_rows_are_known_than_there_are(known: int) -> None:
    with pytest.raises(UsageError):
        family_of(event((0.5, 0.5), (0.25, 0.25)), CountPairs(20, 5, 12, 4), known)
    for edge in (0, 20):
        assert isinstance(family_of(event((0.5, 0.5), (0.25, 0.25)), CountPairs(20, 5, 12, 4), edge), Events)
