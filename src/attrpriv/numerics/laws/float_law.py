"""The law of a sum over rows in floats, given how many of them are of the secret's categories: for what is expected only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrpriv.numerics.laws.lattice import LatticeLaw, binomial_sum, record_sum

if TYPE_CHECKING:
    from attrpriv.numerics.laws.records import RecordLaws

# Supports up to this size are looked at value by value; of wider ones so much is left out.
_FEW_VALUES = 400
_LEFT_OUT = 1e-17


def float_law(records: RecordLaws, n: int, a: int) -> LatticeLaw:
    """mu_a in floats: the whole support of few values, else a window."""
    member, rest = ([low for low, _ in law] for law in (records.member, records.rest))
    few = n * records.width < _FEW_VALUES
    if not records.binary:
        return record_sum(records.values, member, a, rest, n - a, tail=0.0 if few else _LEFT_OUT)
    if few:
        return binomial_sum(a, member[1], n - a, rest[1])
    parts = [binomial_sum(k, p, 0, p, tail=_LEFT_OUT) for k, p in ((a, member[1]), (n - a, rest[1]))]
    return parts[0].convolve(parts[1], exact=False)
