"""Rows that are equal have one hash, and rows that differ have two: recorded digests rest on both."""

from __future__ import annotations

import hashlib
import itertools
import struct

import numpy as np
import pytest

from attrpriv.numerics.row_digest import STARTS, number_of, row_hashes


@pytest.mark.parametrize("start", STARTS)
def test_equal_numbers_have_one_hash(start: int) -> None:
    """0 and -0 are equal; and a number that is missing is missing, whatever its bits."""
    (other,) = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0123))
    found = row_hashes([np.array([0.0, -0.0, np.nan, other])], start).tolist()
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert len(set(found)) == 2


@pytest.mark.parametrize("start", STARTS)
def test_rows_that_differ_anywhere_have_two(start: int) -> None:
    rows = [(1.0, 2.0), (2.0, 1.0), (1.0, 2.0000000000000004), (1.0, -2.0), (1.0, 0.0), (0.0, 1.0), (1.0, np.nan), (0.0, 0.0)]
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    assert len(set(row_hashes(columns, start).tolist())) == len(rows)
    assert not set(row_hashes(columns, STARTS[0]).tolist()) & set(row_hashes(columns, STARTS[1]).tolist())


def test_a_text_has_a_number_that_floats_hold() -> None:
    found = [number_of(text) for text in ("", "a", "A", "a ", "nan")]
    assert len(set(found)) == len(found)
    assert all(0 <= one < 2.0**52 and one.is_integer() for one in found)


def mixed(state: int) -> int:
    """The last steps of splitmix64, in whole numbers."""
    whole = 2**64
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % whole
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) % whole
    return state ^ (state >> 31)


@pytest.mark.parametrize("start", STARTS)
def test_hashes_are_those_of_splitmix64(start: int) -> None:
    """Recorded digests are made of them, so that none of its numbers may ever change."""
    rows = list(itertools.product((0.0, 1.5, -7.25e100), (3.0, -1e-300, 12345.678)))
    wanted = []
    for row in rows:
        state = start
        for number in row:
            (bits,) = struct.unpack("<Q", struct.pack("<d", number))
            state = mixed(((state ^ bits) + 0x9E3779B97F4A7C15) % 2**64)
        wanted.append(state)
    assert row_hashes([np.array(column) for column in zip(*rows, strict=True)], start).tolist() == wanted


def test_the_number_of_a_text_is_the_first_52_bits_of_its_digest() -> None:
    for text in ("", "a", "Gr\xfc\xdfe"):
        assert number_of(text) == int(hashlib.sha256(text.encode()).hexdigest()[:13], 16)
