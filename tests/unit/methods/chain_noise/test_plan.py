"""`laplace` under a chain: the asked scales, one release and many, families, persons; what is refused, and what is bound."""

from __future__ import annotations

import math
from typing import Any

import pytest

import attrpriv as ap
from attrpriv.errors import AttrprivError, CertificateError, UsageError
from attrpriv.methods.base.evidence import Evidence
from attrpriv.methods.chain_noise.proof import ChainDraw, ChainNoiseEvidence, with_draw
from attrpriv.numerics.calibration.chain_curve import chain_epsilon
from attrpriv.numerics.laws.chain_family import ChainFamily
from attrpriv.queries.sql import parse_queries

COUNT = "count(*) filter (where state = 1)"


def chain(**changes: Any) -> ap.Chain:
    stated: dict[str, Any] = {
        "column": "state",
        "states": [0, 1],
        "initial": [1, 0],
        "transition": [[0.9, 0.1], [0.4, 0.6]],
        "tolerance": 0,
    }
    return ap.Chain(**(stated | changes))


def symmetric(stay: float, **changes: Any) -> ap.Chain:
    other = round(1 - stay, 6)
    return chain(**({"initial": [0.5, 0.5], "transition": [[stay, other], [other, stay]]} | changes))


def asked(query: str = COUNT, theta: ap.Chain | tuple[ap.Chain, ...] | None = None, **changes: Any) -> ap.Problem:
    told = chain() if theta is None else theta
    stated: dict[str, Any] = {
        "queries": tuple(parse_queries(query)),
        "secrets": (ap.Secret("entries(state)"),),
        "epsilon": 1.0,
        "n": 100,
        "theta": told if isinstance(told, tuple) else (told,),
    }
    return ap.Problem(**(stated | changes))


def proof_of(plan: ap.Plan) -> ChainNoiseEvidence:
    evidence = plan.certificate.evidence
    assert isinstance(evidence, ChainNoiseEvidence)
    return evidence


@pytest.mark.parametrize(("epsilon", "stay", "scale"), [(0.2, 0.6, 7.50), (1, 0.6, 1.47), (1, 0.9, 8.65), (5, 0.9, 0.80)])
def test_scales_of_one_count(epsilon: float, stay: float, scale: float) -> None:
    plan = ap.plan(asked(theta=symmetric(stay), epsilon=epsilon), "laplace")
    assert 0.99 * scale < plan.noise.scale <= scale
    assert proof_of(plan).loss() <= epsilon
    assert chain_epsilon(symmetric(stay).members, 100, 1 / plan.noise.scale) <= epsilon


def test_auto_takes_the_least_and_the_published_mechanism_stays() -> None:
    chosen = ap.plan(asked())
    assert (chosen.mechanism, chosen.guarantee.reference) == ("laplace", "docs/theory/chain-ratio.md")
    assert 3.3 < chosen.noise.scale <= 3.35
    assert ap.plan(asked(), "chain_quilt").noise.scale == pytest.approx(12.9341, abs=1e-4)


def test_ten_counts_have_the_same_noise() -> None:
    earlier: Evidence | None = None
    for k in range(10):
        plan = ap.plan(asked(theta=symmetric(0.9), spend=1 / (10 - k), earlier=earlier), "laplace")
        assert 86 < plan.noise.scale <= 86.5
        earlier = plan.certificate.evidence
        assert earlier.follows(plan_before(earlier))
    assert proof_of(plan).loss() == pytest.approx(1.0, abs=1e-6)
    assert proof_of(plan).loss() <= 1
    with pytest.raises(AttrprivError, match="nothing is left"):
        ap.plan(asked(theta=symmetric(0.9), earlier=earlier), "laplace")


def plan_before(evidence: Evidence) -> Evidence | None:
    """The evidence of everything that this one calls past."""
    assert isinstance(evidence, ChainNoiseEvidence)
    if not evidence.past:
        return None
    (one,) = evidence.past
    return evidence.model_copy(update={"past": (), "now": one})


def test_costs_of_several_statistics_add_up_before_the_curve_is_read() -> None:
    """Never the sum of epsilons: a count and a sum of the same entries are one cost."""
    first = ap.plan(asked(spend=0.5), "laplace")
    second = ap.plan(asked("sum(state)", earlier=first.certificate.evidence), "laplace")
    rates = 1 / first.noise.scale + 1 / second.noise.scale
    assert proof_of(second).loss() == pytest.approx(chain_epsilon(chain().members, 100, rates), rel=1e-6)
    assert proof_of(second).loss() <= 1
    assert rates == pytest.approx(1 / ap.plan(asked(), "laplace").noise.scale, rel=1e-6)


THREE = {
    "states": [0, 1, 2],
    "initial": [0.4, 0.3, 0.3],
    "transition": [[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]],
}


def test_states_that_a_count_does_not_tell_apart_cost_nothing() -> None:
    """A sum costs by how far two states lie apart: less than a histogram, for which any two are two steps apart."""
    total, cells = (
        ap.plan(asked(query, chain(**THREE)), "laplace").noise.scale
        for query in ("sum(state)", "SELECT state, count(*) FROM data GROUP BY state")
    )
    one = ap.plan(asked("count(*) filter (where state >= 1)", chain(**THREE)), "laplace").noise.scale
    assert one < total < cells
    quilts = ap.plan(asked("sum(state)", chain(**THREE)), "chain_quilt").noise.scale
    assert total < quilts


def test_quilts_are_used_where_they_are_better() -> None:
    """The recursion is told to say nothing; the quilts of the certificate still prove the published scale."""
    plan = ap.plan(asked("SELECT state, count(*) FROM data GROUP BY state", chain(**THREE)), "laplace")
    (check,) = proof_of(plan).checks
    assert check.shapes
    quilts = ap.plan(asked("SELECT state, count(*) FROM data GROUP BY state", chain(**THREE)), "chain_quilt")
    draw = proof_of(plan).now.model_copy(update={"rate": 1 / quilts.noise.scale})
    assert check.loss(100, (draw,)) <= 1 + 1e-9


def test_the_worst_chain_of_a_list_counts() -> None:
    both = ap.plan(asked(theta=(symmetric(0.6), symmetric(0.9))), "laplace")
    assert both.noise.scale == pytest.approx(ap.plan(asked(theta=symmetric(0.9)), "laplace").noise.scale, rel=1e-6)
    listed = chain(initial=[[0.5, 0.5], [1, 0]], transition=[[[0.9, 0.1], [0.1, 0.9]], [[0.6, 0.4], [0.4, 0.6]]])
    assert len(proof_of(ap.plan(asked(theta=listed), "laplace")).checks) == 4


# ----------------------------------------------------------------------------------------- any start, a tolerance, persons


def test_any_start_and_a_tolerance_cost_more() -> None:
    stated: tuple[dict[str, Any], ...] = ({}, {"initial": "any"}, {"tolerance": 0.05})
    known, anywhere, near = (ap.plan(asked(theta=symmetric(0.9, **more)), "laplace").noise.scale for more in stated)
    assert known < anywhere < 1.03 * known
    assert near == pytest.approx(ap.plan(asked(theta=symmetric(0.95, initial="any")), "laplace").noise.scale, rel=1e-6)


def symmetric_any() -> ap.Chain:
    return symmetric(0.9, initial="any")


def test_a_family_is_not_for_quilts_nor_for_many_states_with_a_tolerance() -> None:
    with pytest.raises(AttrprivError, match="is for one chain whose start and matrix are numbers; laplace takes others"):
        ap.plan(asked(theta=symmetric_any()), "chain_quilt")
    assert ap.plan(asked(theta=symmetric_any())).mechanism == "laplace"
    told = ap.rank(asked(theta=symmetric_any()))
    assert "chain_quilt" not in told.others  # it was said to be for an assumption called "mechanism laplace"
    assert ("chain_quilt",) in told.reasons.values()
    many = [[round(1 / 6, 4)] * 5 + [round(1 - 5 * round(1 / 6, 4), 4)]] * 6
    with pytest.raises(UsageError, match="intervals are for up to 5 states"):
        chain(states=list(range(6)), initial="any", transition=many, tolerance=0.05)
    assert chain(states=list(range(6)), initial="any", transition=many).members[0].states == 6


def test_a_probability_of_0_stays_0() -> None:
    (family,) = chain(transition=[[0.9, 0.1], [0, 1]], tolerance=0.05).members
    assert family == ChainFamily(((0.85, 0.05), (0.0, 0.95)), ((0.95, 0.15), (0.0, 1.0)))


def test_persons_pay_for_the_longest_chain_alone() -> None:
    alone = ap.plan(asked(theta=symmetric(0.9), n=20), "laplace").noise.scale
    several = ap.plan(asked(theta=symmetric(0.9, longest=20), n=1000), "laplace")
    assert several.noise.scale == pytest.approx(alone, rel=1e-9)
    assert alone < ap.plan(asked(theta=symmetric(0.9), n=1000), "laplace").noise.scale
    assert any("several persons" in line for line in several.certificate.assumes)
    assert ap.plan(asked(theta=symmetric(0.9, longest=1), n=50), "laplace").noise.scale == pytest.approx(1.0, rel=1e-6)
    with pytest.raises(AttrprivError, match="longest: must be at most the number of rows"):
        ap.plan(asked(theta=symmetric(0.9, longest=200), n=100), "laplace")
    with pytest.raises(AttrprivError, match="individuals: is about single rows"):
        ap.plan(asked(theta=symmetric(0.9, longest=20), n=1000, individuals=0.1), "laplace")


def test_what_is_written_is_read_again() -> None:
    for stated in (symmetric_any(), symmetric(0.9, longest=7, tolerance=0.02), chain()):
        assert ap.Chain.model_validate(stated.to_json()) == stated
    assert symmetric_any().to_json()["initial"] == "any"


# ------------------------------------------------------------------------------------------------------- refusals, binding


def test_what_tells_nothing_and_what_is_no_entry_is_refused() -> None:
    for query in ("count(*) filter (where state >= 0)", "count(*) filter (where state > 7)"):
        with pytest.raises(AttrprivError):
            ap.plan(asked(query), "laplace")
    with pytest.raises(AttrprivError, match="nothing to hide"):
        ap.plan(asked(theta=chain(transition=[[1, 0], [0.4, 0.6]])), "laplace")
    with pytest.raises(AttrprivError, match="known_rows: must be 0"):
        ap.plan(asked(known_rows=0.5), "laplace")
    with pytest.raises(AttrprivError, match="reads other"):
        ap.plan(asked("count(*) filter (where other = 1)"), "laplace")


@pytest.mark.parametrize(
    "change",
    [
        {"rate": 0.01},
        {"values": (0, 0)},
        {"values": (0, 2)},
        {"values": (0, 1, 1)},
        {"identity": "another"},
        {"width": 2},
    ],
)
def test_what_is_drawn_is_bound_to_the_proof(change: dict[str, Any]) -> None:
    plan = ap.plan(asked(), "laplace")
    proof = proof_of(plan)
    forged = proof.model_copy(update={"now": proof.now.model_copy(update=change)})
    with pytest.raises(CertificateError):
        plan.model_copy(update={"certificate": plan.certificate.model_copy(update={"evidence": forged})}).verify()


@pytest.mark.parametrize("change", [{"n": 99}, {"longest": 101}, {"longest": 99}, {"column": "other"}, {"states": ("0", "2")}])
def test_what_it_is_about_is_bound_to_the_proof(change: dict[str, Any]) -> None:
    first = ap.plan(asked(spend=0.5), "laplace")
    proof = proof_of(first)
    second = proof_of(ap.plan(asked(earlier=proof), "laplace"))
    assert second.follows(proof)
    assert not second.model_copy(update=change).follows(proof)


def test_a_past_that_is_not_what_was_drawn_does_not_follow() -> None:
    first = proof_of(ap.plan(asked(spend=0.5), "laplace"))
    second = proof_of(ap.plan(asked(earlier=first), "laplace"))
    (one,) = second.past
    less = second.model_copy(update={"past": (one.model_copy(update={"rate": one.rate / 2}),)})
    assert not less.follows(first)
    assert not second.model_copy(update={"past": ()}).follows(first)
    assert not second.follows(None)


def test_noise_that_is_too_small_is_found() -> None:
    plan = ap.plan(asked(), "laplace")
    proof = proof_of(plan)
    louder = proof.model_copy(update={"now": proof.now.model_copy(update={"rate": proof.now.rate * 1.001})})
    assert proof.delta(1.0) == 0
    assert louder.delta(1.0) == 1
    assert proof.model_copy(update={"longest": 1000}).loss() == math.inf  # more entries than rows


def test_many_statistics_are_put_together() -> None:
    drawn: tuple[ChainDraw, ...] = ()
    for k in range(40):
        drawn = with_draw(drawn, ChainDraw(statistic=f"s{k}", identity=str(k), values=(0, 1), width=1, rate=0.001))
    assert len(drawn) == 25
    assert sum(draw.rate for draw in drawn) == pytest.approx(0.04)
    again = with_draw(drawn, ChainDraw(statistic="s3", identity="3", values=(0, 1), width=1, rate=0.001))
    assert [draw.rate for draw in again if draw.identity == "3"] == pytest.approx([0.002])


def test_what_wrong_numbers_do() -> None:
    """Members within a share of the stated probabilities, from any start, lose no more than the plan says."""
    plan = ap.plan(asked(theta=symmetric(0.9)), "laplace")
    for row in plan.model_error:
        low, high = 0.9 - 0.1 * row.off_by, 0.9 + 0.1 * row.off_by
        assert row.epsilon is not None
        for stay in (low, high):
            assert chain_epsilon(symmetric(round(stay, 6), initial="any").members, 100, 1 / plan.noise.scale) <= row.epsilon
