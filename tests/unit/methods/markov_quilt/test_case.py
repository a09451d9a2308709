"""`markov_quilt` after earlier releases: targets, refusals, and what the evidence keeps of the past."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from attrpriv.errors import Cause, CertificateError, RefusedError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.markov_quilt.proof import QuiltEvidence, QuiltTerm
from attrpriv.numerics.networks.network import Network, Node
from attrpriv.problem.secret import Parameter
from attrpriv.queries.query import Query
from tests.refusing import refuses
from tests.unit.methods.chain_quilt.test_plan import problem as chain_problem
from tests.unit.methods.markov_quilt.test_plan import evidence_of, problem
from tests.unit.methods.markov_quilt.test_score import COIN, TALL, school
from tests.unit.methods.markov_quilt.test_sets import XOR


def count(*columns: str) -> tuple[Query, ...]:
    return (Query("count", where=" and ".join(f"{column} > 0" for column in columns)),)


def after(earlier: QuiltEvidence | None, *columns: str, **changes: Any) -> Plan:
    return plan(problem(**{"queries": count(*columns), "earlier": earlier} | changes), "markov_quilt")


def sequence(*steps: tuple[str, float], **changes: Any) -> QuiltEvidence:
    """Some releases, each of one column and a share of what is left."""
    evidence = None
    for column, spend in steps:
        evidence = evidence_of(after(evidence, column, spend=spend, **changes))
    assert evidence is not None
    return evidence


# ------------------------------------------------------------------------------------------------------------------ plans


def test_a_share_of_the_budget() -> None:
    """Below the influence of height the whole count gets noise, for the share alone."""
    found = after(None, "height", spend=0.2)
    assert found.noise.scale == pytest.approx(100 / 0.2)
    assert evidence_of(found).spent(1.0, 0.0) == pytest.approx(0.2)


def test_each_release_takes_its_share_of_what_is_left() -> None:
    """The column of the secret itself is never known, so all of it is paid for by noise."""
    evidence = sequence(("income", 0.5), ("income", 0.5), ("income", 1.0))
    assert evidence.spent(1.0, 0.0) == pytest.approx(1.0)
    assert evidence.spent(1.0, 0.0) <= 1.0
    assert evidence.terms[0].scale == pytest.approx(100 / 0.25)
    assert {terms.columns: terms.size for terms in evidence.earlier} == pytest.approx({("income",): 0.75})


def test_what_may_show_costs_once() -> None:
    """height and weight are exact; both of them together tell of income what height tells."""
    evidence = sequence(("height", 0.5), ("weight", 0.01), ("height", 0.01))
    assert evidence.loss() == pytest.approx(TALL)
    assert [terms.rate for terms in evidence.earlier] == [None, None]


def test_the_other_half_of_the_xor_is_noised_for_what_is_left() -> None:
    changes = {"network": XOR, "secrets": (Parameter("i"),), "epsilon": 0.5}
    first = evidence_of(after(None, "a", **changes))
    assert first.loss() < 1e-14
    found = after(first, "b", **changes)
    assert found.noise.scale == pytest.approx(200)
    assert evidence_of(found).checks[0].known == ("a",)
    assert any("all releases together, this one included, lose 0.5 at most" in note for note in found.notes)


def test_both_halves_exact_do_not_verify() -> None:
    """A certificate that was made for b alone, with the past written into it."""
    changes = {"network": XOR, "secrets": (Parameter("i"),), "epsilon": 0.5}
    first, second = (after(None, name, **changes) for name in "ab")
    joint = evidence_of(second).model_copy(update={"earlier": evidence_of(first).together()})
    assert joint.loss() == math.inf
    assert math.isinf(joint.spent(0.5, 0.0))
    with pytest.raises(CertificateError):
        second.certificate.model_copy(update={"evidence": joint}).verify()


def test_averages_are_planned_for_what_is_left() -> None:
    first = sequence(("income", 0.5))
    both, bounds = (Query("avg", "income"), Query("avg", "sat")), {"income": (0.0, 10.0), "sat": (0.0, 1.0)}
    found = after(first, queries=both, bounds=bounds)
    assert evidence_of(found).loss() == pytest.approx(1.0, abs=1e-8)
    assert evidence_of(found).loss() <= 1.0
    assert [part.noise.scale for part in found.columns] == pytest.approx([2 * 10 / 0.5, 2 / 0.5])


def test_many_networks_and_secrets_share_one_target() -> None:
    secrets = (Parameter("income"), Parameter("gender"))
    first = evidence_of(after(None, "sat", spend=0.3, secrets=secrets, tolerance=0.01))
    found = evidence_of(after(first, "weight", spend=0.5, secrets=secrets, tolerance=0.01))
    assert found.spent(1.0, 0.0) <= first.spent(1.0, 0.0) + 0.5 * (1 - first.spent(1.0, 0.0)) + 1e-12


def test_of_a_large_network_the_columns_read_before_stay_in_the_certificate() -> None:
    nodes = {f"c{k}": COIN for k in range(70)} | dict(school().nodes)
    network = Network(nodes=nodes)
    first = evidence_of(after(None, "c3", network=network, spend=0.5))
    found = evidence_of(after(first, "c5", network=network))
    assert {"c3", "c5", "income"} <= set(found.networks[0].nodes)
    assert len(found.networks[0].nodes) < 10
    assert found.loss() == 0


# --------------------------------------------------------------------------------------------------------------- refusals


def test_when_all_is_spent_nothing_with_a_cost_is_answered() -> None:
    spent = sequence(("income", 1.0))
    for columns in (("income",), ("income", "sat"), ("sat",), ("height",)):
        with pytest.raises(RefusedError, match="no noise hides the parameters"):
            after(spent, *columns)
    with pytest.raises(RefusedError, match="no noise hides the parameters"):
        after(spent, queries=(Query("avg", "income"),), bounds={"income": (0.0, 10.0)})


def test_columns_without_bounds_are_named() -> None:
    with refuses(RefusedError, Cause.PUBLIC_FACT, "bounds of sat"):
        after(sequence(("height", 1.0)), queries=(Query("avg", "sat"),), bounds={})


def test_a_tighter_policy_counts_what_was_drawn_and_nothing_else() -> None:
    """More secrets: what was exact, and told nothing, now tells everything of the new one. Less epsilon: less is left."""
    exact = sequence(("height", 1.0))
    with refuses(RefusedError, Cause.EARLIER, "a larger epsilon"):
        after(exact, "sat", secrets=(Parameter("income"), Parameter("height")))
    with refuses(RefusedError, Cause.EARLIER, "a larger epsilon"):
        after(exact, "sat", epsilon=0.3)
    found = after(exact, "sat", epsilon=0.5)
    assert found.noise.scale == pytest.approx(100 / (0.5 - TALL))


def test_other_kinds_are_not_continued() -> None:
    chain = plan(chain_problem(), "chain_quilt").certificate.evidence
    with pytest.raises(RefusedError, match="no rule covers it"):
        after(chain, "sat")  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------------------------- the past


def test_follows_is_exact() -> None:
    one = sequence(("sat", 0.4))
    two = sequence(("sat", 0.4), ("height", 0.4))
    three = evidence_of(after(two, "weight", spend=0.1))
    assert one.follows(None)
    assert two.follows(one)
    assert three.follows(two)
    swapped = sequence(("height", 0.4), ("sat", 0.4))
    assert not any(evidence.follows(past) for evidence, past in ((two, None), (three, one), (one, two), (three, swapped)))
    assert not three.follows(plan(chain_problem(), "chain_quilt").certificate.evidence)
    term = two.terms[0]
    for change in ({"scale": term.scale * 1.0000001}, {"columns": ("weight",)}, {"sensitivity": 99.0}):
        assert not three.follows(two.model_copy(update={"terms": (term.model_copy(update=change),)}))
    for forged in ((), three.earlier[:1], tuple(reversed(three.earlier))):
        assert not three.model_copy(update={"earlier": forged}).follows(two)


def test_the_past_survives_json() -> None:
    found = sequence(("sat", 0.4), ("height", 0.4), ("weight", 0.5))
    again = QuiltEvidence.from_json(json.dumps(found.to_json()))
    assert again == found
    assert again.follows(sequence(("sat", 0.4), ("height", 0.4)))
    older = {key: value for key, value in sequence(("sat", 0.4)).to_json().items() if key != "earlier"}
    assert QuiltEvidence.from_json(older) == sequence(("sat", 0.4))


def with_terms(*terms: QuiltTerm) -> QuiltEvidence:
    return sequence(("sat", 0.4)).model_copy(update={"terms": terms})


def test_rates_of_equal_columns_add_up_and_exact_ones_stay() -> None:
    noisy = QuiltTerm(name="x", columns=("sat", "height"), sensitivity=3.0, granularity=1.0, scale=8.0)
    other = noisy.model_copy(update={"columns": ("height", "sat"), "scale": 4.0})
    merged = with_terms(noisy, other).together()
    assert {terms.columns: terms.size for terms in merged} == pytest.approx({("height", "sat"): 1.5}, rel=1e-14)
    assert merged[0].size >= 1.5
    for exact in (noisy.model_copy(update={"scale": 0.0}), noisy.model_copy(update={"sensitivity": None})):
        for terms in ((exact, other), (other, exact)):
            assert [terms.rate for terms in with_terms(*terms).together()] == [None]


def test_a_rate_too_small_for_a_float_is_not_forgotten() -> None:
    tiny = QuiltTerm(name="x", columns=("sat",), sensitivity=1e-300, scale=1e300)
    assert with_terms(tiny).together()[0].size > 0


def test_the_past_of_many_releases_stays_small() -> None:
    evidence = None
    for k in range(200):
        evidence = evidence_of(after(evidence, "income", ("sat", "height", "weight")[k % 3], spend=0.01))
    assert evidence is not None
    assert len(evidence.earlier) == 3
    assert evidence.spent(1.0, 0.0) == pytest.approx(1 - 0.99**200)


def test_a_node_that_repeats() -> None:
    """A chain of copies: exact answers about one of them make all others exact at no further cost."""
    copy = Node(states=("low", "high"), parents=("a",), table=((1.0, 0.0), (0.0, 1.0)))
    network = Network(nodes={"i": COIN, "a": COIN, "b": copy})
    evidence = sequence(("a", 0.5), ("b", 0.5), network=network, secrets=(Parameter("i"),))
    assert evidence.loss() == 0
