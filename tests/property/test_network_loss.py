"""The whole guarantee of `markov_quilt`, numerically: parameters, tables and noise are enumerated on small networks.

The law of the released number given phi_i = a is a mixture over all parameters and tables, with whole-number Laplace noise on
top. Its true loss must never be above what the plan promises. A mutant that forgets the influence is caught. The same for
sequences whose queries depend on earlier answers, transcript by transcript.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest

from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.errors import CertificateError
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.markov_quilt import case as quilt_case
from attrpriv.methods.markov_quilt import score as markov_quilt
from attrpriv.methods.markov_quilt.plan import plan as markov_quilt_plan
from attrpriv.methods.markov_quilt.proof import EarlierTerms, QuiltEvidence
from attrpriv.methods.markov_quilt.score import Relaxed, least_known, relaxed_loss
from attrpriv.methods.markov_quilt.sensitivity import ColumnSensitivity
from attrpriv.methods.markov_quilt.sets import Before
from attrpriv.numerics.divergences.influence import Influence
from attrpriv.numerics.networks.network import Network
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Parameter
from attrpriv.queries.query import Query
from tests.unit.assumptions.networks import Rows, joint, nearby, random_network
from tests.unit.methods.markov_quilt.test_sets import XOR

Emissions = Mapping[str, tuple[float, ...]]


def random_emissions(rng: random.Random, network: Network) -> Emissions:
    """The chance that an entry is 1, for each state of its parameter; often extreme, so that the data tell the parameter."""
    draws = (0.0, 1.0, 0.02, 0.98, 0.5)
    return {name: tuple(rng.choice(draws) for _ in node.states) for name, node in network.nodes.items()}


def row_law(emissions: Emissions, phi: Mapping[str, int], columns: tuple[str, ...]) -> dict[tuple[int, ...], float]:
    law = {}
    for row in itertools.product((0, 1), repeat=len(columns)):
        law[row] = math.prod(emissions[c][phi[c]] if x else 1 - emissions[c][phi[c]] for c, x in zip(columns, row, strict=True))
    return law


def tables(law: Mapping[tuple[int, ...], float], n: int) -> dict[tuple[tuple[int, ...], ...], float]:
    """Every table of n rows with its chance."""
    found = {}
    for table in itertools.product(law, repeat=n):
        p = math.prod(law[row] for row in table)
        if p > 0:
            found[table] = p
    return found


def statistics(asked: list[tuple[str, ...]], columns: tuple[str, ...], table: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Of each query: the rows in which all its columns are 1."""
    places = [[columns.index(name) for name in query] for query in asked]
    return tuple(sum(all(row[k] for k in at) for row in table) for at in places)


def laws_given(
    network: Network,
    emissions: Emissions,
    asked: list[tuple[str, ...]],
    on: str,
    n: int,
    stated: Mapping[str, Rows] | None = None,
) -> dict[int, dict[tuple[int, ...], float]]:
    """The exact law of the statistics given each possible value of phi_on."""
    names = tuple(network.nodes)
    columns = tuple(dict.fromkeys(name for query in asked for name in query))
    laws: dict[int, dict[tuple[int, ...], float]] = {}
    for states, p in joint(network, stated).items():
        if p == 0:
            continue
        phi = dict(zip(names, states, strict=True))
        law = laws.setdefault(phi[on], {})
        for table, chance in tables(row_law(emissions, phi, columns), n).items():
            value = statistics(asked, columns, table)
            law[value] = law.get(value, 0.0) + p * chance
    return {a: {value: p / sum(law.values()) for value, p in law.items()} for a, law in laws.items()}


def density(law: Mapping[tuple[int, ...], float], out: tuple[int, ...], scales: list[float]) -> float:
    """Of the noisy answers, up to a common factor."""
    total = 0.0
    for value, p in law.items():
        for w, f, b in zip(out, value, scales, strict=True):
            p *= (w == f) if b == 0 else math.exp(-abs(w - f) / b)
        total += p
    return total


def true_loss(laws: Mapping[int, Mapping[tuple[int, ...], float]], scales: list[float], n: int) -> float:
    """Beyond 0 and n the ratio of two densities does not change any more."""
    worst = 0.0
    for out in itertools.product(range(n + 1), repeat=len(scales)):
        densities = [density(law, out, scales) for law in laws.values()]
        high, low = max(densities), min(densities)
        if high > 1e-14:  # the rest is rounding of the enumeration
            worst = max(worst, math.inf if low == 0 else math.log(high / low))
    return worst


def drawn(seed: int) -> tuple[random.Random, Network, Emissions, str, tuple[str, ...], int, float]:
    rng = random.Random(seed)
    network = random_network(rng, "abc" if seed % 2 else "abcd")
    on = rng.choice(list(network.nodes))
    read = tuple(rng.sample(list(network.nodes), k=rng.randint(1, 2)))
    return rng, network, random_emissions(rng, network), on, read, rng.randint(1, 3), rng.choice([0.3, 1.0, 2.0])


def excess(seed: int) -> float:
    """How far the true loss of the planned release is above epsilon."""
    _, network, emissions, on, read, n, epsilon = drawn(seed)
    known = least_known(network, on, ColumnSensitivity.count(read, n), epsilon)
    return true_loss(laws_given(network, emissions, [read], on, n), [known.scale], n) - epsilon


@pytest.mark.parametrize("seed", range(80))
def test_the_true_loss_is_never_above_epsilon(seed: int) -> None:
    assert excess(seed) <= 1e-9


def test_a_mutant_that_drops_the_influence_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markov_quilt, "max_influence", lambda *_, of, on, tolerance: Influence(0.0, on, of))
    assert sum(excess(seed) > 1e-6 for seed in range(80)) > 5


def escapes(seed: int, claimed: float, t: float) -> bool:
    """Whether a network within t of the stated one loses more than epsilon, planned for the tolerance `claimed`."""
    rng, network, emissions, on, read, n, epsilon = drawn(seed)
    known = least_known(network, on, ColumnSensitivity.count(read, n), epsilon, tolerance=claimed)
    laws = (laws_given(network, emissions, [read], on, n, nearby(rng, network, t)) for _ in range(6))
    return any(true_loss(law, [known.scale], n) > epsilon + 1e-9 for law in laws)


def test_under_a_tolerance_no_network_near_by_loses_more() -> None:
    assert not any(escapes(seed, 0.05, 0.05) for seed in range(60))


def test_planning_without_the_tolerance_is_caught() -> None:
    assert any(escapes(seed, 0.0, 0.05) for seed in range(60))


# ------------------------------------------------------------------------------------------------------ several releases

Chosen = tuple[tuple[str, ...], float]
Table = tuple[tuple[int, ...], ...]
# The answers so far, what was released, and the weight of each table given each value of the secret.
Branch = tuple[tuple[int, ...], QuiltEvidence | None, dict[int, dict[Table, float]]]


def chosen(rng: random.Random, names: Sequence[str]) -> Chosen:
    return tuple(rng.sample(list(names), k=rng.choice([1, 1, 2]))), rng.choice([0.2, 0.5, 1.0])


def asked_after(seed: int, outputs: tuple[int, ...], n: int, names: Sequence[str]) -> Chosen:
    """The analyst: columns and share of the budget as any function of the answers so far."""
    seen = tuple(min(max(out, 0), n) for out in outputs)
    return chosen(random.Random(f"{seed} {seen}"), names)


def next_release(network: Network, on: str, n: int, query: Chosen, earlier: QuiltEvidence | None) -> QuiltEvidence | None:
    """None where it is refused."""
    problem = Problem(
        queries=(Query("count", where=" and ".join(f"{name} = 1" for name in query[0])),),
        secrets=(Parameter(on),),
        epsilon=1.0,
        n=n,
        theta=(ParameterNetwork(network=network, tolerance=0),),
        spend=query[1],
        earlier=earlier,
    )
    try:
        evidence = markov_quilt_plan(problem).certificate.evidence
    except Refusal:
        return None
    assert isinstance(evidence, QuiltEvidence)
    assert evidence.follows(earlier)
    return evidence


@dataclass(frozen=True)
class Told:
    """One transcript: the certificate's loss after each release, and the true one."""

    claimed: float
    true: float
    target: float


def transcripts(seed: int, releases: int = 3) -> Iterator[Told]:
    """Every transcript of outputs in 0..n, beyond which no ratio changes: what it claims and what it tells, by enumeration."""
    rng = random.Random(f"sequence {seed}")
    network = XOR if seed % 2 else random_network(rng, "abc")
    tells = dict.fromkeys("iab", (0.0, 1.0))  # every column tells its parameter
    emissions, on, n = tells if seed % 2 else random_emissions(rng, network), rng.choice(list(network.nodes)), 2
    names = tuple(network.nodes)
    laws = row_laws(network, emissions, on, n)
    open_ends: list[Branch] = [((), None, laws)]
    for _ in range(releases):
        grown: list[Branch] = []
        for outputs, earlier, weights in open_ends:
            query = asked_after(seed, outputs, n, names)
            evidence = next_release(network, on, n, query, earlier)
            if evidence is None:
                continue
            spent = 0.0 if earlier is None else earlier.loss()
            for out in range(n + 1):
                after = seen(weights, names, query[0], out, evidence.terms[0].scale)
                totals = [math.fsum(law.values()) for law in after.values()]
                if max(totals) < 1e-13:
                    continue  # cannot happen, or is rounding of the enumeration
                true = math.inf if min(totals) == 0 else math.log(max(totals) / min(totals))
                yield Told(evidence.loss(), true, spent + query[1] * (1.0 - spent))
                grown.append(((*outputs, out), evidence, after))
        open_ends = grown


def row_laws(network: Network, emissions: Emissions, on: str, n: int) -> dict[int, dict[Table, float]]:
    """The exact law of the whole table given each possible value of phi_on."""
    names = tuple(network.nodes)
    laws: dict[int, dict[Table, float]] = {}
    for states, p in joint(network).items():
        phi = dict(zip(names, states, strict=True))
        for table, chance in tables(row_law(emissions, phi, names), n).items() if p else ():
            law = laws.setdefault(phi[on], {})
            law[table] = law.get(table, 0.0) + p * chance
    return {a: {table: p / math.fsum(law.values()) for table, p in law.items()} for a, law in laws.items()}


def seen(
    laws: Mapping[int, Mapping[Table, float]], names: tuple[str, ...], query: tuple[str, ...], out: int, scale: float
) -> dict[int, dict[Table, float]]:
    """The weights of all tables once this noisy count is out, up to a common factor."""
    found: dict[int, dict[Table, float]] = {}
    for a, law in laws.items():
        found[a] = {}
        for table, p in law.items():
            (value,) = statistics([query], names, table)
            found[a][table] = p * (float(out == value) if scale == 0 else math.exp(-abs(out - value) / scale))
    return found


def test_no_transcript_of_adaptive_releases_tells_more_than_its_certificates_say() -> None:
    found = [told for seed in range(20) for told in transcripts(seed)]
    assert all(told.true <= told.claimed + 1e-9 for told in found)
    assert all(told.claimed <= min(1.0, told.target + 1e-9) for told in found)
    assert sum(told.true > 0.5 * told.claimed > 0 for told in found) > 50  # and they say something


def escapes_in_sequence() -> bool:
    """Whether some transcript tells more than epsilon."""
    return any(told.true > 1.0 + 1e-6 for seed in range(20) for told in transcripts(seed))


def forget(patch: pytest.MonkeyPatch, keep: Callable[[float], bool]) -> None:
    """A planner that counts only some of the past."""
    right = quilt_case._before

    def wrong(problem: Problem) -> tuple[tuple[EarlierTerms, ...], Before]:
        terms, before = right(problem)
        return terms, Before(tuple((read, rate) for read, rate in before.rates if keep(rate)))

    patch.setattr(quilt_case, "_before", wrong)


@pytest.mark.parametrize("kept", ["nothing", "noisy", "exact"])
def test_a_planner_that_forgets_is_caught_by_the_twin_and_by_the_certificate(
    kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(monkeypatch, {"nothing": lambda _: False, "noisy": math.isfinite, "exact": math.isinf}[kept])
    with pytest.raises(CertificateError):
        escapes_in_sequence()
    monkeypatch.setattr(Certificate, "verify", lambda _: None)
    assert escapes_in_sequence()


def test_a_part_of_what_was_read_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that takes a set of columns for known where one of them is."""
    monkeypatch.setattr(Before, "beside", lambda self, known: math.fsum(r for read, r in self.rates if not read & set(known)))
    monkeypatch.setattr(Certificate, "verify", lambda _: None)
    assert escapes_in_sequence()


def test_an_accountant_that_adds_the_releases_own_losses_is_caught() -> None:
    """xor: each alone loses nothing, both together everything; the sum of the two would be nothing."""
    emissions = {"i": (0.0, 1.0), "a": (0.0, 1.0), "b": (0.0, 1.0)}
    alone = [true_loss(laws_given(XOR, emissions, [(name,)], "i", 2), [0.0], 2) for name in "ab"]
    both = true_loss(laws_given(XOR, emissions, [("a",), ("b",)], "i", 2), [0.0, 0.0], 2)
    assert alone == [0.0, 0.0]
    assert both == math.inf


# ------------------------------------------------------------------------------------------------------- the relaxed form


def hockey_stick(one: Mapping[tuple[int, ...], float], other: Mapping[tuple[int, ...], float], epsilon: float) -> float:
    return sum(max(0.0, p - math.exp(epsilon) * other.get(key, 0.0)) for key, p in one.items())


def noisy(law: Mapping[tuple[int, ...], float], scale: float, n: int) -> dict[tuple[int, ...], float]:
    """The law with whole-number Laplace noise; what is left out beyond the window is 1e-12 or less."""
    reach = math.ceil(30 * scale)
    weight = (1 - math.exp(-1 / scale)) / (1 + math.exp(-1 / scale))
    return {
        (w,): sum(p * weight * math.exp(-abs(w - f) / scale) for (f,), p in law.items()) for w in range(-reach, n + reach + 1)
    }


def test_close_parameters_give_a_close_answer() -> None:
    """H of the answer at e + Delta/b is at most H of phi_S at e, both ways; without Delta/b it is not."""
    tight = 0
    for seed in range(40):
        rng = random.Random(seed)
        network = random_network(rng, "abc")
        on, kept, other = rng.sample("abc", 3)
        names, n, scale, e = tuple(network.nodes), 2, 2.0, rng.choice([0.1, 0.5])
        laws = laws_given(network, random_emissions(rng, network), [(kept, other)], on, n)
        phi: dict[int, dict[tuple[int, ...], float]] = {}
        for states, p in joint(network).items():
            at = dict(zip(names, states, strict=True))
            row = phi.setdefault(at[on], {})
            row[at[kept],] = row.get((at[kept],), 0.0) + p
        phi = {a: {v: p / sum(row.values()) for v, p in row.items()} for a, row in phi.items() if sum(row.values()) > 0}
        for a, c in itertools.permutations(laws, 2):
            known = Relaxed(e, min(0.999, hockey_stick(phi[a], phi[c], e)), float(n))
            epsilon, delta = relaxed_loss(known, scale)
            outputs = noisy(laws[a], scale, n), noisy(laws[c], scale, n)
            assert hockey_stick(*outputs, epsilon) <= delta + 1e-9
            tight += hockey_stick(*outputs, e) > delta + 1e-6
    assert tight > 2
