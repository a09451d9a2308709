"""The policy: from a file or from Python to one frozen value, and one line for each thing that can be wrong with it."""

from __future__ import annotations

import hashlib
import json
import math
import re
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import attrpriv as ap
from attrpriv.errors import PolicyError
from attrpriv.policy import Policy
from tests.end_to_end.material import assume, gaussians_of, own_methods, policy, write_policy

ROOT = Path(__file__).resolve().parents[3]
TOLERANCE = {"mean": 0.01, "sd": 0.02, "slope": 0.05}
THREE = {"weight": 25, "income": 30_000, "sat": 200}


def load(folder: Path, value: Mapping[str, Any] | str) -> Policy:
    return Policy.load(write_policy(folder, value))


def secret(**keys: Any) -> list[dict[str, Any]]:
    return [{"secret": "mean(income)", **keys}]


# --------------------------------------------------------------------------------------------------------- what is read


def test_a_file_and_python_spell_the_same_policy(tmp_path: Path) -> None:
    read = load(tmp_path, policy())
    made = ap.Policy(
        data="students.parquet",
        epsilon=1.0,
        delta=1e-6,
        protect=[ap.Secret("mean(income)", between=(20_000, 200_000), within=1_000)],
        assume=ap.Gaussian(
            mean={"income": 60_000},
            sd={"weight": 25, "income": 30_000},
            correlation={("weight", "income"): 0.3},
            tolerance={"mean": 0.01, "sd": 0.02, "slope": 0.05},
        ),
        resolution={"weight": 1, "income": 1},
        release=["avg(weight)"],
    )
    assert read.to_json() == made.to_json()
    assert read.digest == made.digest
    assert [q.text for q in read.queries()] == ["avg(weight)"]
    assert read.protect[0].gap == 1000


DESIGN = """
attrpriv: 1                       # format version
data: students.parquet            # path
rows: 10000                       # n, public
epsilon: 1.0
delta: 1e-6
individuals: none
protect:
  - secret: mean(income)
    between: [20000, 200000]
    within: 1000                  # optional: only values at most this far apart must look alike
  - secret: mean(sat)
    between: [900, 1300]
assume:
  kind: gaussian
  mean: {income: 60000, sat: 1050}
  sd: {weight: 25, income: 30000, sat: 200}
  correlation: {weight~income: 0.3, weight~sat: 0.1, income~sat: 0.4}
  tolerance: {mean: 0.01, sd: 0.02, slope: 0.05}
bounds: {weight: [60, 400]}
resolution: {weight: 1}
known_rows: 0
missing: {weight: 150}
ledger: students.ledger
release: ["avg(weight)"]
"""


def test_the_design_s_example(tmp_path: Path) -> None:
    read = load(tmp_path, DESIGN)
    (gaussian,) = gaussians_of(read)
    assert gaussian.columns == ("weight", "income", "sat")
    assert gaussian.correlation_of("sat", "weight") == 0.1
    assert dict(read.bounds) == {"weight": (60, 400)}
    assert (read.rows, read.delta, read.known_rows, dict(read.missing)) == (10_000, 1e-6, 0, {"weight": 150})
    assert read.ledger_path() == tmp_path / "students.ledger"
    assert read.data_path() == tmp_path / "students.parquet"


def published() -> dict[str, str]:
    """Every whole policy that users are shown: policy files, and blocks of the documentation that begin like one."""
    files = [*(ROOT / "src").rglob("*.yaml"), *(ROOT / "examples").rglob("*.yaml")]
    found = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        blocks = re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        whole = [block for block in blocks if re.search(r"^attrpriv: 1\b", block, flags=re.MULTILINE)]
        found |= {f"{page.relative_to(ROOT).as_posix()} {k}": block for k, block in enumerate(whole)}
    return {name: text for name, text in found.items() if re.search(r"^attrpriv: ", text, flags=re.MULTILINE)}


def test_the_school_is_published() -> None:
    assert "src/attrpriv/demo/students.yaml" in published()


@pytest.mark.parametrize("name", sorted(published()))
def test_every_published_policy_loads(name: str, tmp_path: Path) -> None:
    with own_methods():
        if name.startswith("examples/own_method/"):  # of a kind that this file brings along
            runpy.run_path(str(ROOT / "examples" / "own_method" / "own_method.py"))
        file = ROOT / name  # beside the networks that it names; a block of a page stands alone
        assert (Policy.load(file) if file.is_file() else load(tmp_path, published()[name])).protect


def test_percent_numbers(tmp_path: Path) -> None:
    text = DESIGN.replace("weight~income: 0.3", "weight~income: 30%").replace("sd: 0.02", "sd: 2%").replace("1e-6", "0.0001%")
    read = load(tmp_path, text)
    assert gaussians_of(read)[0].correlation_of("weight", "income") == 0.3
    assert gaussians_of(read)[0].tolerance.sd == 0.02
    assert read.delta == 1e-6
    assert read.digest == load(tmp_path, DESIGN).digest


def test_a_finite_list_of_gaussians(tmp_path: Path) -> None:
    read = load(tmp_path, policy(assume=[assume(), assume(correlation={"weight~income": -0.9}, tolerance=0)]))
    assert [gaussian.correlation_of("weight", "income") for gaussian in gaussians_of(read)] == [0.3, -0.9]
    assert gaussians_of(read)[1].tolerance == ap.Tolerance(correlation=0.0)


def test_covariance_instead_of_sd_and_correlation(tmp_path: Path) -> None:
    covariance = {"weight~weight": 625, "income~income": 9e8, "income~weight": 225_000}
    (gaussian,) = gaussians_of(load(tmp_path, policy(assume=assume("sd", "correlation", covariance=covariance))))
    assert gaussian.sd_of("weight") == 25
    assert gaussian.correlation_of("weight", "income") == pytest.approx(0.3)


def test_without_an_assumption(tmp_path: Path) -> None:
    assert load(tmp_path, policy("assume")).assume == ()


def test_a_policy_goes_through_json() -> None:
    made = Policy(**policy())
    assert Policy.from_json(json.dumps(made.to_json())) == made
    assert Policy.from_json(made.to_json()).digest == made.digest


def test_nothing_can_be_changed_afterwards() -> None:
    made = Policy(**policy(bounds={"weight": [60, 400]}))
    with pytest.raises(ValidationError, match="frozen"):
        made.epsilon = 9.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        made.bounds["weight"] = (0, 1)  # type: ignore[index]
    assert made.bounds["weight"] == (60, 400)


def test_the_caller_s_mapping_is_copied() -> None:
    bounds = {"weight": [60, 400]}
    made = Policy(**policy(bounds=bounds))
    bounds["weight"] = [0, 1]
    assert made.bounds["weight"] == (60, 400)


# ------------------------------------------------------------------------------------------------------ what is refused

# Each policy, where the line must point, and what else it must say: the requirement, and what was received.
REFUSED: dict[str, tuple[Any, str, tuple[str, ...]]] = {
    "unknown key": (policy(epsilonn=1), "epsilonn", ("unknown key", "attrpriv schema")),
    "unknown key of a secret": (policy(protect=secret(within=1, wthin=2)), "protect[0].wthin", ("unknown key",)),
    "unknown key of an assumption": (policy(assume=assume(means={})), "assume[0].means", ("unknown key",)),
    "unknown key of a tolerance": (
        policy(assume=assume(tolerance={**TOLERANCE, "slop": 1})),
        "assume[0].tolerance.slop",
        ("unknown key",),
    ),
    "low above high": (
        policy(protect=secret(between=[200, 100])),
        "protect[0].between",
        ("the low end must be below the high end", "Got [200, 100]"),
    ),
    "low equal high": (policy(protect=secret(between=[2, 2])), "protect[0].between", ("must be below", "Got [2, 2]")),
    "bounds": (policy(bounds={"weight": [400, 60]}), "bounds.weight", ("must be below", "Got [400, 60]")),
    "three ends": (policy(bounds={"weight": [1, 2, 3]}), "bounds.weight", ("2 entries", "Got [1, 2, 3]")),
    "negative epsilon": (policy(epsilon=-1), "epsilon", ("greater than 0", "Got -1.")),
    "epsilon 0": (policy(epsilon=0), "epsilon", ("greater than 0", "Got 0.")),
    "epsilon too large": (policy(epsilon=101), "epsilon", ("at most 100", "Got 101.")),
    "epsilon as text": (policy(epsilon="1"), "epsilon", ("must be a number", "Got '1'.")),
    "epsilon as truth": (policy(epsilon=True), "epsilon", ("must be a number", "Got True.")),
    "no epsilon": (policy("epsilon"), "epsilon", ("is required",)),
    "delta 1": (policy(delta=1), "delta", ("less than 1", "Got 1.")),
    "negative delta": (policy(delta=-0.1), "delta", ("at least 0", "Got -0.1.")),
    "one row": (policy(rows=1), "rows", ("at least 2", "Got 1.")),
    "rows not whole": (policy(rows=10.5), "rows", ("must be a whole number", "Got 10.5.")),
    "tolerance as a number": (
        policy(assume=assume(tolerance=0.05)),
        "assume[0].tolerance",
        ("must be a mapping", "or 0", "Got 0.05."),
    ),
    "tolerance as truth": (policy(assume=assume(tolerance=False)), "assume[0].tolerance", ("must be a mapping", "Got False.")),
    "no tolerance": (policy(assume=assume("tolerance")), "assume[0].tolerance", ("is required and has no default",)),
    "slope and correlation": (
        policy(assume=assume(tolerance={**TOLERANCE, "correlation": 0.1})),
        "assume[0].tolerance",
        ("slope or correlation, one of them", "Got both."),
    ),
    "neither slope nor correlation": (
        policy(assume=assume(tolerance={"mean": 0.1})),
        "assume[0].tolerance",
        ("slope or correlation, one of them", "Got neither."),
    ),
    "negative tolerance": (
        policy(assume=assume(tolerance={**TOLERANCE, "sd": -1})),
        "assume[0].tolerance.sd",
        ("at least 0", "Got -1."),
    ),
    "sd tolerance 1": (
        policy(assume=assume(tolerance={**TOLERANCE, "sd": 1})),
        "assume[0].tolerance.sd",
        ("less than 1", "Got 1."),
    ),
    "missing pairs": (
        policy(assume=assume(sd=THREE)),
        "assume[0]",
        ("correlation: every pair of columns is needed", "Missing: weight~sat, income~sat."),
    ),
    "mean of an unknown column": (policy(assume=assume(mean={"age": 1})), "assume[0]", ("mean: age", "weight, income")),
    "correlation of an unknown column": (
        policy(assume=assume(correlation={"weight~income": 0.3, "weight~age": 0})),
        "assume[0]",
        ("correlation: age", "weight, income"),
    ),
    "not positive semidefinite": (
        policy(assume=assume(sd=THREE, correlation={"weight~income": 0.9, "weight~sat": 0.9, "income~sat": -0.9})),
        "assume[0]",
        ("must be positive semidefinite", "Got a smallest eigenvalue of -0.8"),
    ),
    "correlation above 1": (
        policy(assume=assume(correlation={"weight~income": 2})),
        "assume[0].correlation",
        ("weight~income: must be between -1 and 1", "Got 2."),
    ),
    "correlation with itself": (
        policy(assume=assume(correlation={"weight~weight": 1, "weight~income": 0.3})),
        "assume[0].correlation",
        ("weight~weight: must name two different columns",),
    ),
    "a pair twice": (
        policy(assume=assume(correlation={"weight~income": 0.3, "income~weight": 0.3})),
        "assume[0].correlation",
        ("must name each pair once", "income~weight"),
    ),
    "one name": (policy(assume=assume(correlation={"weight": 0.3})), "assume[0].correlation", ("two columns", "Got 'weight'.")),
    "three names": (
        policy(assume=assume(correlation={"a~b~c": 0.3})),
        "assume[0].correlation",
        ("two columns", "Got 'a~b~c'."),
    ),
    "sd 0": (policy(assume=assume(sd={"weight": 0, "income": 1})), "assume[0].sd.weight", ("greater than 0", "Got 0.")),
    "sd and covariance": (policy(assume=assume(covariance={"weight~weight": 1})), "assume[0]", ("one of the two forms",)),
    "neither sd nor covariance": (policy(assume=assume("sd", "correlation")), "assume[0]", ("one of the two forms",)),
    "negative variance": (
        policy(assume=assume("sd", "correlation", covariance={"weight~weight": -1, "income~income": 9e8, "weight~income": 0})),
        "assume[0]",
        ("covariance: weight~weight must be a positive variance",),
    ),
    "unknown kind": (
        policy(assume=assume(kind="magic")),
        "assume",
        ("one of chain, channel, counts, gaussian, groups", "Got 'magic'."),
    ),
    "second gaussian": (policy(assume=[assume(), assume("tolerance")]), "assume[1].tolerance", ("is required",)),
    "assumption as text": (policy(assume="gaussian"), "assume", ("Got 'gaussian'.",)),
    "no secret": (policy("protect"), "protect", ("is required",)),
    "empty list of secrets": (policy(protect=[]), "protect", ("at least 1", "Got [].")),
    "secret as text": (policy(protect=["mean(income)"]), "protect[0]", ("Got 'mean(income)'.",)),
    "unbounded secret": (policy(protect=secret()), "protect[0]", ("needs between", "or within", "Got neither.")),
    "within 0": (policy(protect=secret(within=0)), "protect[0].within", ("greater than 0", "Got 0.")),
    "median": (policy(protect=[{"secret": "median(income)", "within": 1}]), "protect[0]", ("Got 'median(income)'.",)),
    "individuals": (policy(individuals="some"), "individuals", ("must be none, or {epsilon: e}.", "Got 'some'.")),
    "individuals, epsilon": (policy(individuals={"epsilon": -1}), "individuals.epsilon", ("greater than 0", "Got -1.")),
    "individuals, unknown key": (policy(individuals={"epsilon": 1, "eps": 1}), "individuals.eps", ("unknown key",)),
    "calibration": (policy(calibration="best"), "calibration", ("'analytic' or 'classical'", "Got 'best'.")),
    "resolution 0": (policy(resolution={"weight": 0}), "resolution.weight", ("greater than 0", "Got 0.")),
    "all rows known": (policy(known_rows=1), "known_rows", ("less than 1", "Got 1.")),
    "missing as text": (policy(missing={"weight": "x"}), "missing.weight", ("must be a number", "Got 'x'.")),
    "release": (policy(release=["mode(weight)"]), "release", ("avg(column)", "Got 'MODE(weight)'")),
    "version 2": (policy(attrpriv=2), "attrpriv", ("must be 1", "Got 2.")),
    "no version": (policy("attrpriv"), "attrpriv", ("is required", "attrpriv: 1")),
    "a list": ("- epsilon: 1\n", "policy", ("must be a mapping", "Got list.")),
    "a word": ("epsilon\n", "policy", ("must be a mapping", "Got str.")),
    "infinite epsilon": ("attrpriv: 1\nepsilon: .inf\n", "students.yaml, line 2", ("must be finite", "Got .inf.")),
    "epsilon nan": ("attrpriv: 1\nepsilon: .nan\n", "students.yaml, line 2", ("must be finite", "Got .nan.")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, tmp_path: Path) -> None:
    value, where, says = REFUSED[name]
    with pytest.raises(PolicyError) as caught:
        load(tmp_path, value)
    message = str(caught.value)
    assert message.startswith(f"{where}: ")
    for part in says:
        assert part in message
    assert message.isprintable()
    assert len(message) < 400
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, -math.inf, math.nan, "1", None, True, 100.5, 10**400])
def test_epsilon_from_python(epsilon: Any) -> None:
    with pytest.raises(PolicyError, match=r"^epsilon: .*Got "):
        Policy(**policy(epsilon=epsilon))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ap.Secret("mean(income)", between=(2, 1)), "between: the low end must be below the high end. Got [2, 1]."),
        (lambda: ap.Secret("mean(income)", within=math.nan), "within: must be a finite number. Got nan."),
        (lambda: ap.Tolerance(mean=0.1), "tolerance: must name slope or correlation, one of them (0 is allowed). Got neither."),
        (
            lambda: ap.Gaussian(sd={"a": 1}, correlation={("a", "b", "c"): 0.3}, tolerance=0),
            "correlation: keys must name two columns, as in weight~income. Got ('a', 'b', 'c').",
        ),
        (
            lambda: ap.Gaussian(sd={"a": 1, "b": 1}, correlation={("a", "b"): 0.3, ("b", "a"): 0.3}, tolerance=0),
            "correlation: must name each pair once. Got b~a twice.",
        ),
    ],
)
def test_parts_made_in_python_are_checked_alike(make: Any, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        make()
    assert str(caught.value) == message


def test_several_mistakes_are_counted(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"^epsilon: .* Got -1\. \(1 more after this one\.\)$"):
        load(tmp_path, policy(epsilon=-1, delta=2))


# -------------------------------------------------------------------------------------------------------------- places


def test_places_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    read = Policy.load(write_policy(tmp_path / "below", policy(data="../t.parquet", ledger="l/x.ledger"), "p.yaml"))
    assert read.data_path() == tmp_path / "below" / "../t.parquet"
    assert read.ledger_path() == tmp_path / "below" / "l" / "x.ledger"
    absolute = str(tmp_path / "t.parquet")
    assert Policy.load(write_policy(tmp_path, policy(data=absolute))).data_path() == Path(absolute)


def test_the_default_ledger_is_beside_the_file(tmp_path: Path) -> None:
    assert load(tmp_path, policy()).ledger_path() == tmp_path / "students.ledger"
    assert Policy(**policy()).ledger_path() is None
    assert Policy(**policy("data")).data_path() is None
    assert Policy(**policy(ledger="x.ledger")).ledger_path() == Path("x.ledger")


# -------------------------------------------------------------------------------------------------------------- digest

CHANGED: dict[str, Any] = {
    "individuals": {"epsilon": 1.0},
    "rows": 401,
    "epsilon": 1.5,
    "delta": 1e-7,
    "protect": secret(within=999),
    "assume": assume(tolerance=0),
    "calibration": "classical",
    "bounds": {"weight": [60, 400]},
    "resolution": {"weight": 2},
    "known_rows": 0.1,
    "missing": {"weight": 150},
}
PLACES: dict[str, Any] = {
    "data": "other.csv",
    "ledger": "other.ledger",
    "release": ["sum(income)"],
    "source": {"assume": "a survey"},
}


@pytest.mark.parametrize("key", CHANGED)
def test_the_digest_covers_what_the_promise_depends_on(key: str) -> None:
    assert Policy(**policy(**{key: CHANGED[key]})).digest != Policy(**policy()).digest


@pytest.mark.parametrize("key", PLACES)
def test_the_digest_ignores_places_and_queries(key: str) -> None:
    assert Policy(**policy(**{key: PLACES[key]})).digest == Policy(**policy()).digest


def test_the_digest_leaves_out_nothing_else() -> None:
    made = Policy(**policy())
    covered = {key: value for key, value in made.to_json().items() if key not in PLACES}
    assert set(covered) == set(Policy.model_fields) - set(PLACES) - {"reference"}  # which is there where it is stated
    whole = Policy(epsilon=1, protect=[{"secret": "columns(age)"}], reference={"file": "a.parquet", "least_density": 1})
    assert whole.digest != whole.model_copy(update={"reference": None}).digest
    assert made.digest == hashlib.sha256(json.dumps(covered, sort_keys=True).encode()).hexdigest()


def test_the_digest_does_not_depend_on_how_a_number_is_written(tmp_path: Path) -> None:
    assert load(tmp_path, policy(epsilon=1)).digest == load(tmp_path, policy(epsilon=1.0)).digest


def test_guarantees_by_simulation_are_an_error_with_a_way_out() -> None:
    with pytest.raises(PolicyError, match=r"^sampled: guarantees by simulation are gone.* ask from a view"):
        Policy.checked(policy(sampled={"runs": 100_000}))
    assert Policy.checked(policy(sampled=None)) == Policy(**policy())
    assert "sampled" not in Policy.model_json_schema()["properties"]
