"""The proofs of transported counts: bounds hold or they do not, refusals prove nothing, and every number is the drawn one."""

from __future__ import annotations

import math
from typing import Any

import pytest

from attrpriv.methods.count_transport.hybrid import hybrid_loss
from attrpriv.methods.count_transport.proof import CountHybridEvidence, CountTransportEvidence
from attrpriv.methods.count_transport.target import transport_bounds
from attrpriv.numerics.laws.records import CountPairs
from tests.unit.methods.proofs import counted, every, refused


def plain() -> CountTransportEvidence:
    found = every()["count_transport"].certificate.evidence
    assert isinstance(found, CountTransportEvidence)
    return found


def hybrid() -> CountHybridEvidence:
    found = every()["count_hybrid"].certificate.evidence
    assert isinstance(found, CountHybridEvidence)
    return found


def test_bounds_hold_from_their_loss_on() -> None:
    told = plain()
    loss = transport_bounds(told.transport).loss
    assert told.delta(loss * (1 + 1e-9)) == transport_bounds(told.transport).delta
    assert told.delta(loss * (1 - 1e-6)) == 1.0


def test_a_hybrid_is_all_or_nothing() -> None:
    told = hybrid()
    loss = hybrid_loss(told.transport, told.records, told.pairs, told.scale)
    assert told.delta(loss) == 0.0
    assert told.delta(math.nextafter(loss, 0.0)) == 1.0


@pytest.mark.parametrize("make", [plain, hybrid])
def test_pairs_of_another_table_prove_nothing(make: Any) -> None:
    told = make()
    n = told.transport.n
    assert not refused(told, 5.0)
    for other in (n - 1, n + 1):
        assert refused(told.model_copy(update={"pairs": CountPairs(other, 0, other, 1)}), 5.0)


@pytest.mark.parametrize("make", [plain, hybrid])
def test_what_is_covered(make: Any) -> None:
    told = make()
    scale = told.scale if isinstance(told, CountHybridEvidence) else 0.0
    asked: dict[str, Any] = {
        "n": told.transport.n, "steps": told.transport.records.values, "noise": "kernel", "scale": scale,
    }  # fmt: skip
    assert told.covers_tally(counted(**asked))
    for changes in ({"n": asked["n"] + 1}, {"steps": (0, 5)}, {"noise": "laplace"}, {"scale": scale + 1}, {"histogram": True}):
        assert not told.covers_tally(counted(**(asked | changes))), changes
