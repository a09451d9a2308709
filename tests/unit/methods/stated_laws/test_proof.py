"""The proofs of noise, kernels and couplings for stated laws: what counts in them, what they cover, and what is drawn."""

from __future__ import annotations

import math
from typing import Any

import pytest

from attrpriv.errors import DataError
from attrpriv.methods.base.accuracy import OFF_BY
from attrpriv.methods.base.checks import StatedCheck
from attrpriv.methods.base.evidence import Counted
from attrpriv.methods.stated_laws.proof import (
    StatedCouplingEvidence,
    StatedKernelEvidence,
    StatedNoiseEvidence,
    StatedWassersteinEvidence,
)
from attrpriv.numerics.calibration.stated_laws import (
    stated_coupling,
    stated_delta,
    stated_distance,
    stated_kernel,
    stated_kernel_loss,
    stated_loss,
)
from attrpriv.numerics.laws.stated import StatedLaws
from attrpriv.numerics.search import least_epsilon

STEPS = (2, 3, 5)
NEAR = ((0.5, 0.3, 0.2), (0.4, 0.35, 0.25))
FAR = ((0.6, 0.3, 0.1), (0.2, 0.2, 0.6))
UNIT = 2**62


def laws(of: Any = FAR, steps: tuple[int, ...] = STEPS) -> StatedLaws:
    return StatedLaws(steps, tuple(tuple((p, p) for p in law) for law in of), len(of) - 1)


def check(of: Any = FAR, steps: tuple[int, ...] = STEPS) -> StatedCheck:
    return StatedCheck(secret="entries(x)", theta=0, laws=laws(of, steps))


def told(**changes: Any) -> dict[str, Any]:
    return {"counted": "i", "n": 7, "checks": (check(),), **changes}


def noise(kind: Any = "gaussian", scale: float = 2.0, **changes: Any) -> StatedNoiseEvidence:
    return StatedNoiseEvidence(**told(noise=kind, scale=scale, **changes))


def weights(kind: str, scale: float) -> dict[int, float]:
    found = {z: math.exp(-abs(z) / scale if kind == "laplace" else -z * z / 2 / scale**2) for z in range(-60, 61)}
    return {z: mass / math.fsum(found.values()) for z, mass in found.items()}


def sharp(p: dict[int, float], q: dict[int, float], epsilon: float) -> float:
    return math.fsum(max(0.0, mass - math.exp(epsilon) * q.get(o, 0.0)) for o, mass in p.items())


def noisy(law: tuple[float, ...], kind: str, scale: float) -> dict[int, float]:
    found: dict[int, float] = {}
    for step, chance in zip(STEPS, law, strict=True):
        for z, mass in weights(kind, scale).items():
            found[step + z] = found.get(step + z, 0.0) + chance * mass
    return found


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("checks", [(NEAR, FAR), (FAR, NEAR), (NEAR,)])
def test_noise_hides_the_laws_of_every_member(kind: Any, checks: Any) -> None:
    made = noise(kind, checks=tuple(map(check, checks)))
    every = [[noisy(law, kind, 2.0) for law in of] for of in checks]
    truth = max(sharp(a, b, 0.1) for one in every for a, b in (one, one[::-1]))
    assert truth <= made.delta(0.1) <= truth + 1e-9


# ---------------------------------------------------------------------------------------------------------------- distances


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("ignored", [0.0, 0.15])
def test_noise_hides_the_distance_and_what_is_left_aside_is_added(kind: Any, ignored: float) -> None:
    distance = stated_distance(laws(), ignored)
    assert stated_distance(laws(NEAR), ignored) < distance
    for checks in ((NEAR, FAR), (FAR, NEAR)):
        made = StatedWassersteinEvidence(
            **told(noise=kind, scale=4.0, checks=tuple(map(check, checks)), distance=distance, ignored=ignored)
        )
        masses = weights(kind, 4.0)
        epsilon = 0.3 if kind == "gaussian" else distance / 4.0 + 1e-9  # Laplace noise is used for pure epsilon alone
        moved = sharp(masses, {z + distance: mass for z, mass in masses.items()}, epsilon)
        truth = ignored + (moved if kind == "gaussian" else 0.0)
        assert truth * (1 - 1e-9) <= made.delta(epsilon) <= truth + 1e-7
        assert made.model_copy(update={"distance": distance + 1}).delta(epsilon) > made.delta(epsilon)
        assert made.model_copy(update={"distance": distance - 1}).delta(epsilon) == 1.0


def test_nothing_has_to_be_moved_where_laws_are_one() -> None:
    made = StatedWassersteinEvidence(**told(noise="none", scale=0.0, checks=(check((FAR[0],) * 2),), distance=0, ignored=0.2))
    assert 0.2 <= made.delta(1.0) <= 0.2 + 1e-12
    plain = {"noise": "gaussian", "scale": 0.3, "distance": 3, "ignored": 0.5}
    assert made.model_copy(update=plain).delta(1.0) == 1.0  # a delta is a probability


# ------------------------------------------------------------------------------------------------------ kernels and couplings


def kernel(epsilon: float = 0.5, **changes: Any) -> StatedKernelEvidence:
    found, _ = stated_kernel(laws(), (0.5, 0.5), epsilon)
    return StatedKernelEvidence(**told(weights=found.weights, **changes))


def coupling(epsilon: float = 0.5, **changes: Any) -> StatedCouplingEvidence:
    found, _ = stated_coupling(laws(), (0.5, 0.5), epsilon)
    return StatedCouplingEvidence(**told(low=3, sources=found.sources, targets=found.targets, **changes))


def test_a_kernel_proves_the_loss_that_it_has_under_every_member() -> None:
    made = kernel()
    assert made.delta(0.5) == 0.0
    assert made.delta(0.45) == 1.0
    loss = stated_kernel_loss(made.weights, laws())
    assert (made.delta(loss), made.delta(math.nextafter(loss, 0.0))) == (0.0, 1.0)
    assert made.model_copy(update={"one_row": True}).delta(0.5) == 1.0
    apart = check(((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)))
    for checks in ((check(), apart), (apart, check())):
        assert made.model_copy(update={"checks": checks}).delta(0.5) == 1.0


def test_a_coupling_proves_the_loss_of_its_one_law() -> None:
    made = coupling()
    assert made.delta(0.5) == 0.0
    assert made.delta(0.4) == 1.0
    assert made.model_copy(update={"one_row": True}).delta(0.5) == 1.0
    assert made.model_copy(update={"checks": (check(), check())}).delta(0.5) == 1.0


def row(place: int) -> tuple[int, ...]:
    """All of a row of weights from 2 to 5 at one place."""
    return tuple(UNIT if k == place else 0 for k in range(4))


def test_a_kernel_draws_from_the_row_of_the_statistic() -> None:
    made = StatedKernelEvidence(**told(weights=tuple(row(place) for place in (2, 0, 3, 1))))
    assert [made.kernel_draw(total, 9, 0.0) for total in (2, 3, 4, 5)] == [4, 2, 5, 3]


def test_a_coupling_draws_from_the_row_of_the_secret_that_the_table_has() -> None:
    made = StatedCouplingEvidence(**told(low=3, sources=(row(0), row(1), row(3)), targets=(row(2), row(1), row(0))))
    assert [made.kernel_draw(total, members, 0.0) for total, members in ((2, 3), (3, 4), (5, 5))] == [4, 3, 2]
    for members in (2, 6, 0, -1):
        with pytest.raises(DataError, match="outside of the range"):
            made.kernel_draw(2, members, 0.0)


# ------------------------------------------------------------------------------------------------------------ what is covered


def counted(**changes: Any) -> Counted:
    given: dict[str, Any] = {
        "n": 7, "width": 1, "steps": STEPS, "histogram": False, "reads": frozenset({"x"}), "identity": "i", "event": "x > 1",
        "noise": "gaussian", "scale": 2.0,
    }  # fmt: skip
    return Counted(**(given | changes))


@pytest.mark.parametrize("change", [{}, {"n": 8}, {"identity": "j"}, {"histogram": True}, {"noise": "laplace"}, {"scale": 1.5}])
def test_the_tally_must_be_the_one_that_it_counted_on(change: dict[str, Any]) -> None:
    for one_row in (False, True):
        assert noise(one_row=one_row).covers_tally(counted(**change)) is not bool(change)
    still = {"noise": "kernel", "scale": 0.0} | change
    for made in (kernel(), coupling()):
        assert made.covers_tally(counted(**still)) is not bool(change)


def test_one_row_adds_the_steps_of_its_laws() -> None:
    made = noise(one_row=True)
    assert made.support() == ()
    assert not made.covers_tally(counted(steps=(2, 3)))
    assert noise().covers_tally(counted(steps=(2, 3)))  # the steps of a row; the support is compared elsewhere
    assert noise().support() == STEPS


def test_laws_of_several_statistics_cover_none() -> None:
    made = noise(checks=(check(), check(steps=(2, 3, 6))))
    assert made.support() == (-1,)
    assert not made.model_copy(update={"one_row": True}).covers_tally(counted())


# ------------------------------------------------------------------------------------------- where the probabilities are off


def rows(made: Any, delta: float) -> list[float]:
    found = made.model_error(0.5, delta)
    assert [one.off_by for one in found] == list(OFF_BY)
    return [math.inf if one.epsilon is None else one.epsilon for one in found]


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_noise_hides_wider_laws_at_a_larger_epsilon(kind: Any, delta: float) -> None:
    """The least at which every member is hidden: alone or, where it is less, with delta."""
    made = noise(kind, checks=(check(NEAR), check(FAR)))
    wide = [[laws(of).widened(off) for of in (NEAR, FAR)] for off in OFF_BY]
    pure = [max(stated_loss(one, 2.0) for one in both) if kind == "laplace" else math.inf for both in wide]
    if not delta:
        assert rows(made, delta) == pytest.approx(pure)
        return
    for both, alone, found in zip(wide, pure, rows(made, delta), strict=True):

        def reached(epsilon: float, both: Any = both) -> float:
            return max(stated_delta(one, kind, 2.0, epsilon) for one in both)

        assert found == pytest.approx(min(alone, least_epsilon(reached, delta)), rel=1e-6)
        assert reached(found) <= delta or found == alone


def test_kernels_and_couplings_lose_more_under_wider_laws() -> None:
    made = kernel()
    for off, found in zip(OFF_BY, rows(made, 0.0), strict=True):
        mixed = [
            [sum(p * w[o] / UNIT for p, w in zip(law, (made.weights[k] for k in (0, 1, 3)), strict=True)) for o in range(4)]
            for law in FAR
        ]
        ratios = [math.log(a[o] / b[o]) for a, b in (mixed, mixed[::-1]) for o in range(4) if a[o] > 1e-15]
        assert max(ratios) * (1 - 1e-9) <= found <= max(ratios) + math.log1p(off) - math.log1p(-off) + 1e-9
    for checks in ((check(), check(NEAR)), (check(NEAR), check())):
        assert rows(made.model_copy(update={"checks": checks}), 0.0) == rows(made, 0.0)
    assert rows(made.model_copy(update={"checks": (check(NEAR),)}), 0.0)[0] < rows(made, 0.0)[0]
    taken = coupling()
    exact = 0.5
    for off, found in zip(OFF_BY, rows(taken, 0.0), strict=True):
        more = math.log1p(off) - math.log1p(-off)
        assert more < found <= exact + more + 1e-9
        assert found >= more + 0.4
    less = taken.model_copy(update={"targets": taken.sources})
    assert rows(less, 0.0)[0] != rows(taken, 0.0)[0]
