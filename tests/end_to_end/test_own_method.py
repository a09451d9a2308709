"""A method and an assumption from outside (examples/own_method): planned, ranked, certified, released, recorded, rechecked."""

from __future__ import annotations

import importlib.util
import itertools
import json
import math
import shutil
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest

import attrpriv as ap
from attrpriv import extend
from attrpriv.problem.problem import Problem
from attrpriv.session.record import recheck
from tests.conformance.test_binding import accepts, free
from tests.end_to_end.material import attrpriv, own_methods
from tests.forging import changed, leaves, place, with_value

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "own_method"
METHODS = {"clinic": "kantorovich", "wages": "laplace_rows"}


def load(name: str) -> ModuleType:
    """A module from its file, as a reader of the guide loads it."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def own() -> Iterator[Any]:
    with own_methods():
        yield load("own_method")
    del sys.modules["own_method"]


@pytest.fixture
def folder(own: Any, tmp_path: Path) -> Path:
    """Both policies and their tables."""
    for name in METHODS:
        shutil.copy(FOLDER / f"{name}.yaml", tmp_path)
    load("generate").main(["--out", str(tmp_path)])
    return tmp_path


def problem(name: str, **changes: Any) -> Problem:
    policy = ap.Policy.load(FOLDER / f"{name}.yaml")
    made = policy.problem([q for q in policy.queries() if isinstance(q, ap.Query)], policy.rows or 0, {})
    return made.model_copy(update=changes)


# ----------------------------------------------------------------------------------------------------- like one of ours


@pytest.mark.parametrize(("name", "mechanism"), METHODS.items())
def test_it_ranks_releases_and_is_rechecked(name: str, mechanism: str, folder: Path) -> None:
    policy = ap.Policy.load(folder / f"{name}.yaml")
    with ap.Session(policy=policy) as session:
        (ranking,) = session.ranked().rankings
        assert mechanism in [plan.mechanism for plan in ranking.plans]
        released = session.release(mechanism=mechanism)
        assert released.plan.mechanism == mechanism
        released.plan.verify()
        assert session.release(mechanism=mechanism).value == released.value  # recorded: told again
        record = session.ledger
    (entry,) = record.entries
    assert entry.plan[0]["mechanism"] == mechanism
    told = recheck("ledger", record.entries)
    assert (told.certificates, told.releases, told.planned_again) == (1, 1, 1)


def test_it_stands_between_the_wasserstein_mechanism_and_the_exact_loss(own: Any) -> None:
    scales = [ap.plan(problem("clinic"), name).noise.scale for name in ("laplace", "kantorovich", "wasserstein")]
    assert scales == sorted(set(scales))


def test_auto_takes_it_where_it_is_all_there_is(own: Any) -> None:
    assert ap.plan(problem("wages")).mechanism == "laplace_rows"


@pytest.mark.parametrize(("name", "mechanism"), METHODS.items())
def test_it_survives_json_and_every_field_is_bound(name: str, mechanism: str, own: Any) -> None:
    made = ap.plan(problem(name), mechanism)
    told: Any = made.to_json()
    assert ap.Plan.from_json(told) == made
    assert accepts(told)
    for path in (path for path in leaves(told) if not free(path)):
        value: Any = told
        for step in path:
            value = value[step]
        for other in changed(value):
            assert other == value or not accepts(with_value(told, path, other)), (place(path), other)


@pytest.mark.parametrize(
    ("name", "mechanism", "field", "value"),
    [
        ("clinic", "kantorovich", "scale", 0.9),
        ("wages", "laplace_rows", "sigma", 0.9),
        ("wages", "laplace_rows", "shift", 1.1),
        ("wages", "laplace_rows", "residual", 0.9),
        ("wages", "laplace_rows", "credit", 1.3),
        ("wages", "laplace_rows", "spacing", 2.0),
    ],
)
def test_forged_evidence_is_refused(name: str, mechanism: str, field: str, value: float, own: Any) -> None:
    made = ap.plan(problem(name), mechanism)
    evidence = made.certificate.evidence
    forged = evidence.model_copy(update={field: getattr(evidence, field) * value})
    certificate = made.certificate.model_copy(update={"evidence": forged})
    with pytest.raises(ap.CertificateError, match="needs delta"):
        certificate.verify()


@pytest.mark.parametrize(("name", "mechanism"), METHODS.items())
def test_less_noise_than_was_proved_is_refused(name: str, mechanism: str, own: Any) -> None:
    made = ap.plan(problem(name), mechanism)
    if made.tally is not None:
        forged = made.rebuilt(tally=made.tally.model_copy(update={"scale": made.tally.scale * 0.9}))
    else:
        (column,) = made.columns
        forged = made.rebuilt(columns=(column.model_copy(update={"independent": column.independent * 0.9}),))
    with pytest.raises(ap.CertificateError, match="what its certificate counted on"):
        forged.verify()


@pytest.mark.parametrize(
    ("name", "mechanism", "changes", "cause"),
    [
        ("clinic", "kantorovich", {"known_rows": 0.1}, extend.Cause.PERSONS),
        ("clinic", "kantorovich", {"individuals": 1.0}, extend.Cause.PERSONS),
        ("clinic", "kantorovich", {"n": 61}, extend.Cause.SIZE),
        ("clinic", "kantorovich", {"spend": 0.5}, extend.Cause.BUDGET),
        ("wages", "laplace_rows", {"known_rows": 0.1}, extend.Cause.PERSONS),
        ("wages", "laplace_rows", {"delta": 0.0}, extend.Cause.BUDGET),
        ("wages", "laplace_rows", {"spend": 0.5}, extend.Cause.BUDGET),
        ("wages", "laplace_rows", {"secrets": (ap.Secret("mean(hours)", within=1.0),)}, extend.Cause.SECRET),
        ("wages", "laplace_rows", {"queries": (ap.mean("wage"),)}, extend.Cause.STATISTIC),
        ("wages", "kantorovich", {}, extend.Cause.ASSUMPTION),
    ],
)
def test_what_is_not_covered_is_refused(
    name: str, mechanism: str, changes: dict[str, Any], cause: extend.Cause, own: Any
) -> None:
    with pytest.raises((ap.RefusedError, ap.UsageError)) as caught:
        ap.plan(problem(name, **changes), mechanism)
    assert caught.value.refusals[0].cause is cause


def test_intervals_are_refused_by_the_method_for_exact_laws(own: Any) -> None:
    counts = ap.Counts(sensitive="smoker", given={"readmitted = 1": {"yes": (0.4, 0.5), "no": 0.2}})
    with pytest.raises(ap.RefusedError, match="stated exactly"):
        ap.plan(problem("clinic", theta=(counts,)), "kantorovich")


# ------------------------------------------------------------------------------------------------- twins of the promises


def enumerated(records: extend.RecordLaws, a: int, n: int) -> dict[int, Fraction]:
    """The law of F where `a` of the rows are members, over all tables."""
    law: dict[int, Fraction] = {}
    rows = [records.member] * a + [records.rest] * (n - a)
    for table in itertools.product(range(len(records.values)), repeat=n):
        chance = math.prod((Fraction(extend.exactly(row[k][0])) for row, k in zip(rows, table, strict=True)), start=Fraction(1))
        total = sum(records.values[k] for k in table)
        law[total] = law.get(total, Fraction(0)) + chance
    return law


def largest_loss(records: extend.RecordLaws, pairs: extend.CountPairs, scale: float) -> float:
    """The exact loss of Laplace noise: beyond the ends of the support it does not change any more."""
    laws = {a: enumerated(records, a, pairs.n) for a in range(pairs.low, pairs.high + 1)}
    values = {value for law in laws.values() for value in law}
    worst = mpmath.mpf(0)
    with mpmath.workdps(60):
        for z in range(min(values) - 1, max(values) + 2):
            chance = {
                a: mpmath.fsum(
                    mpmath.mpf(p.numerator) / p.denominator * mpmath.exp(-abs(z - x) / mpmath.mpf(scale))
                    for x, p in law.items()
                )
                for a, law in laws.items()
            }
            losses = (mpmath.log(chance[a] / chance[b]) for a in laws for b in laws if abs(a - b) <= pairs.apart)
            worst = max(worst, *losses)
    return float(worst)


FAMILIES = {
    "an event": (extend.RecordLaws.event(0.5, 0.2), extend.CountPairs(6, 1, 5, 3)),
    "far apart": (extend.RecordLaws.event(0.95, 0.05), extend.CountPairs.all_of(5)),
    "nearly certain": (extend.RecordLaws.event(0.999999, 1e-9), extend.CountPairs(5, 0, 5, 1)),
    "beyond floats": (extend.RecordLaws.event(0.5, Fraction(1, 10**80)), extend.CountPairs(5, 0, 5, 5)),
    "a sum": (
        extend.RecordLaws((0, 1, 4), ((0.5, 0.5), (0.2, 0.2), (0.3, 0.3)), ((0.7, 0.7), (0.25, 0.25), (0.05, 0.05))),
        extend.CountPairs(4, 0, 4, 2),
    ),
    "never": (extend.RecordLaws.event(0.5, 0.0), extend.CountPairs(4, 1, 4, 3)),
}


def check_of(label: str) -> tuple[Any, ...]:
    records, pairs = FAMILIES[label]
    return (extend.CountCheck(secret="", theta=0, records=records, pairs=pairs),)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("label", FAMILIES)
def test_the_count_is_as_private_as_promised_over_all_tables(label: str, epsilon: float, own: Any) -> None:
    scale = own.least_scale(check_of(label), epsilon)
    evidence = own.KantorovichEvidence(checks=check_of(label), scale=scale)
    assert evidence.delta(epsilon) == 0.0
    assert evidence.model_copy(update={"scale": scale * 0.99}).delta(epsilon) == 1.0
    assert largest_loss(*FAMILIES[label], scale) <= epsilon


def test_the_twin_finds_noise_for_the_average_way(own: Any) -> None:
    """The Kantorovich distance itself, and (1) on average over y: neither says anything of a single y."""
    records, pairs = FAMILIES["a sum"]
    laws = own.laws_of_counts(records, pairs)
    alike = [(a, b) for a, b in itertools.permutations(laws, 2) if abs(a - b) <= pairs.apart]

    def average(a: int, b: int, cost: Callable[[int], float]) -> float:
        moved = [way for found in own.ways(laws[a], laws[b]).values() for way in found]
        return math.fsum(weight / sum(laws[b].values()) * cost(far) for far, weight in moved)

    distance = max(average(a, b, float) for a, b in alike)
    assert largest_loss(records, pairs, distance) > 1.5
    scales = (k / 100 for k in range(100, 1000))
    scale = next(s for s in scales if max(average(a, b, lambda far: math.exp(far / s)) for a, b in alike) <= math.e)  # noqa: B023
    assert largest_loss(records, pairs, scale) > 1.2


def test_the_coupling_is_one(own: Any) -> None:
    for label in FAMILIES:
        laws = own.laws_of_counts(*FAMILIES[label])
        for a, b in itertools.permutations(laws, 2):
            found = own.ways(laws[a], laws[b])
            assert {y: sum(weight for _, weight in each) for y, each in found.items()} == {
                y: weight for y, weight in laws[b].items() if weight
            }
            assert sum(laws[a].values()) == sum(laws[b].values())


def true_delta(n: int, residual: float, sigma: float, shift: float, epsilon: float) -> float:
    """The delta of mean residual + noise against itself moved, from its characteristic function."""
    reach = 30 * max(1.5 * residual / math.sqrt(n), sigma) + shift
    x, t = np.linspace(-reach, reach, 3001), np.linspace(0, 12 / sigma, 3001)
    phi = (1 + (residual * t / n) ** 2) ** -float(n) * np.exp(-((sigma * t) ** 2) / 2)
    phi[0] /= 2

    def density(centre: float) -> Any:
        return np.cos(np.outer(x - centre, t)) @ phi * (t[1] - t[0]) / math.pi

    return float(np.maximum(density(shift / 2) - math.exp(epsilon) * density(-shift / 2), 0).sum() * (x[1] - x[0]))


ROWS = [(n, ratio, delta) for n in (4, 20) for ratio in (0.5, 1.5) for delta in (1e-2, 1e-3)]


def start(own: Any, n: int, ratio: float) -> Any:
    return own.LaplaceRowsEvidence(
        column="x", n=n, shift=1.0, residual=ratio * math.sqrt(n / 2), spacing=1e-3, credit=0.5, sigma=1.0
    )


@pytest.mark.parametrize(("n", "ratio", "delta"), ROWS)
def test_the_average_is_as_private_as_promised(n: int, ratio: float, delta: float, own: Any) -> None:
    found = own.least_noise(start(own, n, ratio), 1.0, delta)
    assert found.delta(1.0) <= delta
    # rows rounded against each other: the worst that rounding can do to all tables at once
    assert true_delta(n, found.residual, found.sigma, found.shift + found.spacing, 1.0) <= delta


@pytest.mark.parametrize("mistake", ["variance of a sum", "half of the shift"])
def test_the_twin_finds_a_mistake_in_the_statement(mistake: str, own: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = own.LaplaceRowsEvidence.delta

    def mistaken(self: Any, epsilon: float) -> float:
        changes = {"residual": self.residual * math.sqrt(self.n)} if "sum" in mistake else {"shift": self.shift / 2}
        found: float = honest(self.model_copy(update=changes), epsilon)
        return found

    monkeypatch.setattr(own.LaplaceRowsEvidence, "delta", mistaken)
    broken = 0
    for n, ratio, delta in ROWS:
        found = own.least_noise(start(own, n, ratio), 1.0, delta)
        broken += true_delta(n, found.residual, found.sigma, found.shift, 1.0) > delta
    assert broken >= 2


# ---------------------------------------------------------------------------------------------------------- the registry


def test_a_taken_name_is_refused(own: Any) -> None:
    assert ap.register(own.KANTOROVICH) is own.KANTOROVICH  # once more is no mistake
    for name in ("laplace", "kantorovich"):
        with pytest.raises(ap.UsageError, match=f"must have a name of its own. Got {name}"):
            ap.register(extend.Method(name, (), page="x.md"))
    with pytest.raises(ap.UsageError, match="Got kantorovich, which is kantorovich's"):
        ap.register(extend.Method("other", (), page="x.md", proofs={"kantorovich": "x"}))
    with pytest.raises(ap.UsageError, match="Got count_laplace, which is laplace's"):
        ap.register(extend.Method("other", (), page="x.md", proofs={"count_laplace": "x"}))


def test_a_taken_kind_is_refused(own: Any) -> None:
    assert ap.register(own.LaplaceRows) is own.LaplaceRows
    with pytest.raises(ap.UsageError, match=r"assumption Other: must have a kind of its own\. Got laplace_rows"):
        type("Other", (extend.Assumption,), {"__annotations__": {"kind": str}, "kind": "laplace_rows"})
    with pytest.raises(ap.UsageError, match=r"evidence Other: must have a kind of its own\. Got kantorovich"):
        type("Other", (extend.Evidence,), {"__annotations__": {"kind": str}, "kind": "kantorovich"})


@pytest.mark.parametrize("what", [3, int, extend.Assumption, "kantorovich"])
def test_nothing_else_is_registered(what: Any) -> None:
    with pytest.raises(ap.UsageError, match="register: must be given a Method, or the class of an assumption"):
        ap.register(what)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"slope": 1}, "assume[0].slope: must be a list. Got 1. Put it in brackets, with commas: [1, 2]."),
        ({"slop": 1}, "assume[0].slop: unknown key. Did you mean slope?"),
        ({"residual": 0}, "assume[0].residual: must be greater than 0. Got 0."),
        (
            {"kind": "laplace_row"},
            "assume: kind must be one of chain, channel, counts, gaussian, groups, hierarchy, laplace_rows",
        ),
    ],
)
def test_a_mistake_in_the_policy_is_told_as_for_ours(stated: dict[str, Any], message: str, own: Any) -> None:
    assume = {"kind": "laplace_rows", "column": "x", "on": "y", "slope": [0, 1], "residual": 1, "spacing": 1}
    with pytest.raises(ap.PolicyError) as caught:
        ap.Policy.from_json({"epsilon": 1, "protect": [{"secret": "mean(y)", "within": 1}], "assume": {**assume, **stated}})
    assert str(caught.value).startswith(message)


def test_the_schema_has_it_beside_ours(own: Any) -> None:
    schema = ap.Policy.schema_document()
    assert schema["$defs"]["laplace_rows"]["required"] == ["column", "on", "slope", "residual", "spacing"]
    assert json.dumps(schema["properties"]["assume"]).count("#/$defs/laplace_rows") == 2
    with own_methods():
        del extend.Assumption.kinds["laplace_rows"]
        assert "laplace_rows" not in json.dumps(ap.Policy.schema_document())
        extend.Assumption.kinds["laplace_rows"] = own.LaplaceRows


# ------------------------------------------------------------------------------------- installed, for the command line


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed packages with own_method in it."""
    place = tmp_path / "site"
    info = place / "own_method-0.1.0.dist-info"
    info.mkdir(parents=True)
    shutil.copy(FOLDER / "own_method.py", place)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-method\nVersion: 0.1.0\n", encoding="utf-8")
    project = (FOLDER / "pyproject.toml").read_text(encoding="utf-8")
    points = project.partition('entry-points."attrpriv.methods"]\n')[2].partition("\n\n")[0].replace('"', "")
    (info / "entry_points.txt").write_text(f"[attrpriv.methods]\n{points}\n", encoding="utf-8")
    return place


def test_the_command_line_knows_it_where_it_is_installed_and_says_so_where_not(site: Path, folder: Path) -> None:
    knows = f"sys.path.insert(0, {str(site)!r})"
    for name, mechanism in METHODS.items():
        planned = attrpriv("plan", f"{name}.yaml", "--mechanism", mechanism, "--json", folder=folder, first=knows)
        assert planned.returncode == 0, planned.stderr
        assert mechanism in planned.stdout.decode()
        released = attrpriv("release", f"{name}.yaml", "--mechanism", mechanism, folder=folder, first=knows)
        assert released.returncode == 0, released.stderr
        checked = attrpriv("ledger", f"{name}.yaml", "--recheck", folder=folder, first=knows)
        assert checked.returncode == 0, checked.stderr
        assert b"1 of 1 releases" in b" ".join(checked.stdout.split())
    told = attrpriv("ledger", "clinic.yaml", "--recheck", folder=folder)  # where it is not installed
    assert told.returncode == 1
    assert b"evidence: of kind kantorovich: no installed method knows it. Install the package, or the version" in told.stderr
    told = attrpriv("ledger", "wages.yaml", "--recheck", folder=folder)
    assert told.returncode == 2
    assert b"Got 'laplace_rows'. Another kind needs the package that brings it." in told.stderr
    explained = attrpriv("explain", "wages.yaml", folder=folder, first=knows)
    assert b"independent Laplace residuals" in b" ".join(explained.stdout.split())
    assert b'"#/$defs/laplace_rows"' in attrpriv("schema", folder=folder, first=knows).stdout


@pytest.mark.parametrize(
    ("point", "reason"),
    [("own = nowhere:METHOD", "ModuleNotFoundError"), ("own = own_method:NONE", "AttributeError")],
)
def test_a_broken_one_is_named(site: Path, folder: Path, point: str, reason: str) -> None:
    (site / "own_method-0.1.0.dist-info" / "entry_points.txt").write_text(f"[attrpriv.methods]\n{point}\n", encoding="utf-8")
    done = attrpriv("plan", "clinic.yaml", folder=folder, first=f"sys.path.insert(0, {str(site)!r})")
    assert done.returncode == 2
    assert f"entry point {point}".encode() in done.stderr
    assert reason.encode() in done.stderr
    assert b"Repair or uninstall its package." in done.stderr
