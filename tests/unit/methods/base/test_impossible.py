"""Impossible proofs: numbers that cannot be, and lists that do not belong together, in every kind of evidence.

A proof that was changed like that proves nothing, or no less than before, and it is refused in words, never by a crash.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from attrpriv.errors import AttrprivError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.outside import OutsideRelease
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.outside import plan_outside
from attrpriv.methods.table import METHODS
from tests.conformance.test_mechanisms import chain_problem
from tests.unit.methods.laplace_sequence.test_plan import STAY, asked
from tests.unit.methods.proofs import every as every_plan

Path = tuple[str | int, ...]

# Of which fewer may be listed: a proof then speaks of fewer secrets, and `covers` and the binding find what is missing.
FEWER = {
    *(("laplace", "terms"), ("gaussian", "checks")),
    *(("recorded_transport", "checks"), ("recorded_share_transport", "checks")),
}


@cache
def every() -> dict[str, Plan | OutsideRelease]:
    """Every plan, and what the ledger keeps of another library's release, which no plan draws."""
    return {
        **every_plan(),
        "outside": plan_outside(asked(STAY), 0.01, "a histogram", None),
        "chain_outside": plan_outside(chain_problem(), 0.01, "a histogram", None),
    }


def test_every_kind_is_here() -> None:
    assert set(every()) == {kind for method in METHODS for kind in method.proofs}


def places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every list and every number, of long lists the first entry and the last."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from places(one, (*path, key))
    elif isinstance(value, list):
        yield path, value
        for k in sorted({0, len(value) - 1}) if value else ():
            yield from places(value[k], (*path, k))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


def forged(told: Any, path: Path, value: Any) -> Any:
    made = copy.deepcopy(told)
    inner = made
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return made


def reached(told: Any, epsilon: float) -> float | None:
    """The delta of a forged proof, None where it is refused; any other failure is one of this test."""
    try:
        read = Certificate.from_json(told)
        read.verify()
        return float(read.evidence.delta(epsilon))
    except AttrprivError:
        return None


def promise(kind: str) -> tuple[Plan | OutsideRelease, Any]:
    made = every()[kind]
    return made, {**made.certificate.to_json(), "delta": 1 - 1e-9}


@pytest.mark.parametrize("kind", sorted(every()))
def test_lists_that_do_not_belong_together(kind: str) -> None:
    """Each list without its last entry, with that twice, and empty; each is refused, or proves no more than before."""
    made, told = promise(kind)
    before = made.certificate.evidence.delta(made.epsilon)
    assert reached(told, made.epsilon) == before
    for path, value in places(told["evidence"], ("evidence",)):
        for other in [value[:-1], [*value, value[-1]], []] if isinstance(value, list) and value else ():
            found = reached(forged(told, path, other), made.epsilon)
            if (kind, path[1]) not in FEWER:
                assert found is None or found >= before * (1 - 1e-9), (path, other)


@pytest.mark.parametrize("kind", sorted(every()))
def test_numbers_that_cannot_be(kind: str) -> None:
    """Not a number, or infinite: refused, wherever it stands."""
    made, told = promise(kind)
    for path, value in places(told["evidence"], ("evidence",)):
        for bad in (math.nan, math.inf, -math.inf) if not isinstance(value, list) else ():
            assert reached(forged(told, path, bad), made.epsilon) is None, (path, bad)


@pytest.mark.parametrize("kind", sorted(every()))
def test_a_copy_with_changed_numbers_is_validated(kind: str) -> None:
    """`verify` reads the numbers again: what was put in beside the model's own checks is refused too."""
    made = every()[kind]
    evidence = made.certificate.evidence
    for name, value in evidence:
        if isinstance(value, float):
            for bad in (math.nan,) if name == "centre" else (math.nan, -1.0):
                changed = made.certificate.model_copy(
                    update={"evidence": evidence.model_copy(update={name: bad}), "delta": 1 - 1e-9}
                )
                with pytest.raises(AttrprivError):
                    changed.verify()
