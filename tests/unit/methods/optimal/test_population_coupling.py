"""Reading the table's count to hide the population's share: the real law of the output in fractions, and both limits."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb
from typing import Any

import mpmath
import pytest

from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.optimal.population_coupling import beta_laws, certified_population_coupling, population_loss_upper
from attrpriv.numerics.calibration.coupling import CertifiedCoupling, certified_coupling, coupling_loss_upper, overlaps
from attrpriv.numerics.calibration.kernel import certified_kernel
from attrpriv.numerics.laws.count_cases import CountPrior
from attrpriv.numerics.laws.records import CountPairs, RecordLaws
from tests.unit.numerics.laws.test_fixed_window import VISITS, exact_law

EVENT = RecordLaws.event(0.4, 0.6)


def prior(n: int, shares: tuple[float, float]) -> list[float]:
    return [float(x) for x in CountPrior(n, 0, n, shares=shares).nodes(n + 1)[1]]


def output_law(found: CertifiedCoupling, records: RecordLaws, n: int, phi: Fraction) -> list[Fraction]:
    """The law of the answer given the share phi: first the count, then F, then the part of a slice."""
    output = [Fraction(0)] * len(found.targets[0])
    for a, (source, target) in enumerate(zip(found.sources, found.targets, strict=True)):
        law = exact_law(records, n, a)
        chance = comb(n, a) * phi**a * (1 - phi) ** (n - a)
        for f, o, part, whole in overlaps(source, target):
            output[o] += chance * law[f] * Fraction(part, whole)
    return output


def loss(laws: Sequence[Sequence[Fraction]]) -> Any:
    """To 60 digits."""
    ratio = max(x / y for p in laws for q in laws for x, y in zip(p, q, strict=True))
    with mpmath.workdps(60):
        return mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)


@pytest.mark.parametrize(("records", "n"), [(EVENT, 6), (RecordLaws.event(0.9, 0.1), 5), (VISITS, 3)])
@pytest.mark.parametrize("shares", [(0.2, 0.8), (0.4, 0.5)])
def test_every_share_of_the_range_is_hidden(records: RecordLaws, n: int, shares: tuple[float, float]) -> None:
    found = certified_population_coupling(records, n, shares, 0.15, prior(n, shares))
    low, high = (Fraction(repr(end)) for end in shares)
    laws = [output_law(found, records, n, low + (high - low) * k / 8) for k in range(9)]
    assert all(sum(law) == 1 for law in laws)
    assert loss(laws) <= found.loss <= 0.15
    # Where it moves anything, the counts themselves are not hidden as well as that: the test can fail.
    if found.optimum > 1e-6:
        assert coupling_loss_upper(found.sources, found.targets, records, CountPairs.all_of(n)) > 0.15


def test_it_errs_less_than_both_limits() -> None:
    """Less than hiding every count of the table, and less than seeing F alone."""
    n, shares, epsilon = 12, (0.2, 0.8), 0.2
    found = certified_population_coupling(EVENT, n, shares, epsilon, prior(n, shares))
    counts = certified_coupling(EVENT, CountPairs.all_of(n), epsilon, prior(n, shares))
    mixed = RecordLaws.event(0.8 * 0.4 + 0.2 * 0.6, 0.2 * 0.4 + 0.8 * 0.6)
    sees = certified_kernel(mixed, CountPairs.all_of(n), epsilon, [1 / (n + 1)] * (n + 1))
    assert found.optimum == pytest.approx(0.282, abs=5e-4)
    assert found.optimum < 0.95 * counts.optimum < 0.5 * sees.optimum


def test_all_shares_are_all_counts() -> None:
    """Shares 0 and 1: beta_k is the point k, so that every count has to be hidden."""
    flat = [1 / 7] * 7
    found = certified_population_coupling(EVENT, 6, (0.0, 1.0), 0.5, flat)
    assert found.optimum == pytest.approx(certified_coupling(EVENT, CountPairs.all_of(6), 0.5, flat).optimum, rel=1e-6)
    assert [row.index(max(row)) for row in beta_laws(6, (0.0, 1.0))] == list(range(7))


def test_planted_slices_are_noticed() -> None:
    shares = (0.2, 0.8)
    found = certified_population_coupling(EVENT, 6, shares, 0.2, prior(6, shares))
    assert population_loss_upper(found.sources, found.sources, EVENT, 6, shares) > 0.2
    assert population_loss_upper(found.sources[::-1], found.targets, EVENT, 6, shares) > 0.2
    assert population_loss_upper(found.sources, found.targets, EVENT, 6, (0.1, 0.9)) > 0.2
    planted = CertifiedCoupling(0, 0, found.sources, found.sources, 0.0, 0.0)
    assert loss([output_law(planted, EVENT, 6, Fraction(k, 10)) for k in (2, 8)]) > 0.2


def test_what_is_refused() -> None:
    with pytest.raises(RefusedError, match="up to 24 rows"):
        certified_population_coupling(EVENT, 25, (0.2, 0.8), 0.5, [1 / 26] * 26)
    with pytest.raises(RefusedError, match="exact probabilities"):
        certified_population_coupling(RecordLaws.event((0.4, 0.5), 0.6), 3, (0.2, 0.8), 0.5, [0.25] * 4)
    with pytest.raises(UsageError, match=r"^shares: "):
        beta_laws(3, (0.5, 0.5))
    with pytest.raises(UsageError, match=r"^prior: "):
        certified_population_coupling(EVENT, 3, (0.2, 0.8), 0.5, [0.5] * 3)
