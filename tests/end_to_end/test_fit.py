"""`attrpriv fit`: from public records to a policy that uses them; the private table is refused in every disguise."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import attrpriv as ap
from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.groups import Groups
from attrpriv.engines.moments import NOT_FINITE, SAME_TABLE, PublicTable
from attrpriv.errors import PolicyError
from attrpriv.numerics.calibration import recorded_trial
from attrpriv.policy import Policy
from attrpriv.policy.strict_yaml import dump_strict, load_strict
from tests.end_to_end.material import ROWS, Said, assume, contents, gaussians_of, policy, students, write_policy, write_table

OUT = "public.assumption.yaml"
PUBLIC_ROWS = 20_000
TRIED = recorded_trial._MOST_WORK


@pytest.fixture
def school(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private table, public records, and a policy that names an assumption file which is not there yet."""
    write_table(tmp_path)
    write_table(tmp_path, students(PUBLIC_ROWS, seed=2), "public.parquet")
    write_policy(tmp_path, policy(assume={"file": OUT}))
    monkeypatch.chdir(tmp_path)
    # What a fit tries is tested in test_against; here it would find within seconds that the range is too wide to be tried.
    monkeypatch.setattr(recorded_trial, "_MOST_WORK", 0)
    return tmp_path


def fit(*more: str, public: str = "public.parquet", out: str = OUT) -> Said:
    return Said("fit", "students.yaml", "--public", public, "--out", out, *more)


# ------------------------------------------------------------------------------------------------------------ it works


def test_from_public_records_to_a_certificate(school: Path) -> None:
    assert Said("plan", "students.yaml").code == 2  # the assumption is not there yet
    said = fit()
    assert (said.code, said.err) == (0, "")
    assert "slope of weight on income" in said.out
    assert "assumed, not tested" in said.out
    box = gaussians_of(Policy.load("students.yaml"))[0]
    assert box == Gaussian.fit(PublicTable("public.parquet"), sensitive=["income"], queries=["weight"], confidence=0.9999995)
    assert box.fitted is not None
    assert box.fitted.rows == PUBLIC_ROWS
    (entry,) = [entry for entry in Said("plan", "students.yaml", "--json").json if entry["mechanism"] == "gaussian"]
    assumed = " | ".join(entry["certificate"]["assumes"])
    assert f"{PUBLIC_ROWS} public rows (digest {box.fitted.digest[:16]}), confidence 0.9999995" in assumed


def test_the_file_is_strict_yaml_and_says_what_it_is(school: Path) -> None:
    fit()
    text = (school / OUT).read_text(encoding="utf-8")
    content: Any = load_strict(text)
    assert list(content) == ["attrpriv", "kind", "mean", "sd", "correlation", "tolerance", "fitted"]
    body = text[text.index("\nattrpriv: 1") + 1 :]
    assert body == dump_strict(content)
    header = text[: -len(body)]
    assert all(line.startswith("# ") for line in header.splitlines())
    for said in ("public.parquet", f"{PUBLIC_ROWS} rows", "0.9999995", f"file: {OUT}", "shape: good.", "not tested"):
        assert said in header
    assert header.count(", from ") == 6  # each interval


def test_as_json(school: Path) -> None:
    said = fit("--json")
    document = said.json
    assert said.err == ""
    assert list(document) == ["schema_version", "out", "assume", "assumption", "intervals", "shape", "tried", "notes"]
    assert document["assume"] == {"file": OUT}
    assert Gaussian.from_json(document["assumption"]) == Policy.load("students.yaml").assume[0]
    assert {interval["kind"] for interval in document["intervals"]} == {"mean", "sd", "slope", "residual sd"}
    assert all(interval["low"] < interval["estimate"] < interval["high"] for interval in document["intervals"])


def test_the_path_is_relative_to_the_policy(school: Path) -> None:
    (school / "assumptions").mkdir()
    document = fit("--json", out="assumptions/school.yaml").json
    assert document["assume"] == {"file": "assumptions/school.yaml"}
    elsewhere = school / "elsewhere"
    elsewhere.mkdir()
    os.chdir(elsewhere)
    write_policy(school, policy(assume=[document["assume"], assume()]))
    fitted, stated = gaussians_of(Policy.load("../students.yaml"))
    assert fitted.fitted is not None
    assert stated.fitted is None


def test_a_policy_in_python_takes_a_file_too(school: Path) -> None:
    fit()
    made = Policy(**policy("data", assume={"file": OUT}))
    assert gaussians_of(made)[0].fitted is not None
    assert Policy.from_json(made.to_json()) == made
    assert made.digest == Policy.load("students.yaml").digest  # what the file says, not where it is


def test_the_shape_is_shown_and_written(school: Path) -> None:
    said = fit()
    shown = [line.split() for line in said.out.partition("verdict")[2].splitlines() if line.rstrip().endswith("good")]
    assert [line[:-3] for line in shown] == [["weight"], ["income"], ["weight", "on", "income"]]
    assert "warning" not in said.out
    document = fit("--json", "--force").json
    assert document["shape"]["verdict"] == "good"
    assert document["shape"]["limits"] == {"skewness": 0.25, "kurtosis": 0.5, "curvature": 0.1, "spread": 0.1}
    assert document["shape"]["findings"] == document["assumption"]["fitted"]["shape"]
    content: Any = load_strict((school / OUT).read_text(encoding="utf-8"))
    assert content["fitted"]["shape"] == document["shape"]["findings"]


@pytest.mark.parametrize("secret", ["mean(income)", "share(gender = 'F')"])
@pytest.mark.parametrize("ending", [".svg", ".png"])
def test_a_picture(school: Path, secret: str, ending: str) -> None:
    pytest.importorskip("matplotlib")
    between = [20_000, 200_000] if secret.startswith("mean") else [0.3, 0.6]
    write_policy(school, policy("assume", protect=[{"secret": secret, "between": between}]))
    said = fit("--plot", f"shape{ending}")
    assert (said.code, said.err) == (0, "")
    drawn = (school / f"shape{ending}").read_bytes()
    assert drawn.startswith(b"<?xml" if ending == ".svg" else b"\x89PNG")
    assert len(drawn) > 5000
    assert (
        "exists already. Use --force to overwrite it, or --plot" in fit("--plot", f"shape{ending}", out="other.yaml").complaint
    )


@pytest.mark.parametrize(
    ("plot", "message"),
    [
        ("shape.txt", "plot: must end in one of .svg, .png, .pdf. Got shape.txt."),
        ("students.png", "plot: must be a file of its own. Got students.png, which"),
        ("nowhere/shape.png", "plot: must be a place that can be written. Got 'nowhere/shape.png'."),
    ],
)
def test_a_picture_that_cannot_be(school: Path, plot: str, message: str) -> None:
    pytest.importorskip("matplotlib")
    out = plot if plot.startswith("students") else OUT
    said = fit("--plot", plot, out=out)
    assert said.code == 2
    assert said.complaint.startswith(message)


def test_without_the_package_for_pictures(school: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert fit("--plot", "shape.svg").complaint == (
        "plot: needs the package matplotlib. Install it with pip install 'attrpriv[plots]'."
    )
    assert not (school / OUT).exists()


@pytest.mark.parametrize("name", ["public.csv", "public.parquet"])
def test_formats_agree(school: Path, name: str) -> None:
    write_table(school, students(PUBLIC_ROWS, seed=2), name)
    document = fit("--json", public=name).json
    expected = Gaussian.fit(
        PublicTable(students(PUBLIC_ROWS, seed=2)), sensitive=["income"], queries=["weight"], confidence=0.9999995
    )
    assert document["assumption"] == expected.to_json()


def test_strange_names_stay_on_one_line(school: Path) -> None:
    odd = 'net\n# "pay": \u202e[%]'
    table = students(PUBLIC_ROWS, seed=2).rename_columns(["weight", odd, "gender"])
    write_table(school, table, "public.parquet")
    quoted = '"' + odd.replace('"', '""') + '"'
    write_policy(school, policy("data", protect=[{"secret": f"mean({quoted})", "within": 1000}], assume={"file": OUT}))
    said = fit()
    assert said.code == 0, said.err
    assert set(gaussians_of(Policy.load("students.yaml"))[0].columns) == {"weight", odd}


def test_a_share_gives_a_groups_assumption(school: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_trial, "_MOST_WORK", TRIED)
    write_policy(school, policy("assume", protect=[{"secret": "share(gender = 'F')", "between": [0.3, 0.6]}]))
    said = fit()
    assert (said.code, said.err) == (0, "")
    assert "mean of weight in F" in said.out
    assert "weight in F" in said.out.partition("verdict")[2]
    text = (school / OUT).read_text(encoding="utf-8")
    content: Any = load_strict(text)
    assert list(content) == ["attrpriv", "kind", "sensitive", "mean", "sd", "tolerance", "fitted"]
    assert "# shape: good." in text
    expected = Groups.fit(PublicTable("public.parquet"), sensitive="gender", columns=["weight"], confidence=0.9999995)
    content.pop("attrpriv")
    content["fitted"].pop("tried")  # what the plans for the policy's queries did on these rows
    assert Groups.checked(content) == expected
    told = fit("--json", "--force").json["assumption"]
    assert told["fitted"].pop("tried")
    assert told == expected.to_json()
    refused(fit("--force", public="students.parquet"), SAME_TABLE)
    shuffled = students().take(np.random.default_rng(0).permutation(ROWS))
    write_table(school, shuffled, "other.csv")
    refused(fit("--force", public="other.csv"), SAME_TABLE)


# ----------------------------------------------------------------------------------------------------------- confidence


def test_a_lower_confidence_must_be_accepted(school: Path) -> None:
    said = fit("--confidence", "0.99")
    assert said.code == 2
    assert said.complaint.startswith("confidence: must be at least 1 - delta/2 = 0.9999995, ")
    assert "accept_fit_risk: true in the policy to promise delta + 0.01 instead" in said.complaint
    assert not (school / OUT).exists()
    write_policy(school, policy(assume={"file": OUT}, accept_fit_risk=True))
    assert fit("--confidence", "0.99", "--json").json["assumption"]["fitted"]["confidence"] == 0.99


def test_a_higher_confidence_is_welcome(school: Path) -> None:
    wider = fit("--confidence", "0.99999999", "--json").json["assumption"]["tolerance"]
    usual = fit("--json", "--force").json["assumption"]["tolerance"]
    assert all(wider[key] > usual[key] for key in ("mean", "sd", "slope"))


def test_a_low_confidence_without_acceptance_plans_nothing(school: Path) -> None:
    write_policy(school, policy(assume={"file": OUT}, accept_fit_risk=True))
    fit("--confidence", "0.99")
    write_policy(school, policy(assume={"file": OUT}))
    said = Said("plan", "students.yaml", "--json")
    refused = [entry for entry in said.json if entry["mechanism"] == "gaussian"]
    assert "accept_fit_risk: true" in refused[0]["refused"]


@pytest.mark.parametrize("given", ["1", "0.4", "-1", "nan"])
def test_a_confidence_that_cannot_be(school: Path, given: str) -> None:
    write_policy(school, policy(accept_fit_risk=True))
    assert fit("--confidence", given).complaint.startswith("confidence: must be at least 0.5 and below 1. Got ")


# ---------------------------------------------------------------------------------------------------- the private table


@pytest.mark.parametrize("disguise", ["itself", "link", "hard link", "copy", "csv", "shuffled", "fewer columns"])
def test_the_private_table_is_refused(school: Path, disguise: str) -> None:
    private = school / "students.parquet"
    name = "other.csv" if disguise == "csv" else "other.parquet"
    table = students()
    if disguise == "link":
        (school / name).symlink_to(private)
    elif disguise == "hard link":
        os.link(private, school / name)
    elif disguise == "copy":
        shutil.copy(private, school / name)
    elif disguise == "shuffled":
        write_table(school, table.take(np.random.default_rng(0).permutation(ROWS)), name)
    elif disguise != "itself":
        write_table(school, table.drop_columns(["gender"]) if disguise == "fewer columns" else table, name)
    said = fit(public="students.parquet" if disguise == "itself" else name)
    assert (said.code, said.complaint) == (2, SAME_TABLE)
    assert not (school / OUT).exists()


def test_the_private_table_need_not_be_there(school: Path) -> None:
    (school / "students.parquet").unlink()
    assert fit().code == 0


def test_what_is_written_does_not_depend_on_the_private_table(school: Path) -> None:
    fit()
    first = contents(school)
    write_table(school, students(seed=9, income=90_000.0))
    fit("--force")
    second = contents(school)
    assert {name for name in first if first[name] != second[name]} == {"students.parquet"}


# ------------------------------------------------------------------------------------------------------------- refusals


def refused(said: Said, start: str) -> None:
    assert said.code == 2
    assert said.complaint.startswith(start)


def test_what_a_policy_must_name(school: Path) -> None:
    write_policy(school, policy("release"))
    refused(fit(), "release: must name the averages or sums to publish")
    write_policy(school, policy(release=["count(*)"]))
    refused(fit(), "release: must name the averages or sums to publish")
    two = [{"secret": f"share({column} = 'F')", "between": [0.2, 0.4]} for column in ("gender", "city")]
    write_policy(school, policy("assume", protect=two))
    refused(fit(), "protect: must name a mean or a sum, or shares and counts of one column of categories. Got gender, city.")
    mixed = [{"secret": "mean(income)", "between": [50_000, 60_000]}, two[0]]
    write_policy(school, policy("assume", protect=mixed))
    refused(
        fit(), "protect: no assumption covers a mean or a sum together with a share or a count. Got mean(income) and share(gen"
    )
    write_policy(school, policy("assume", protect=[{"secret": "share(weight = 3)", "between": [0.2, 0.4]}]))
    refused(fit(), "release: must name other columns than weight")
    write_policy(school, policy("delta"))
    refused(fit(), "delta: must be above 0")
    write_policy(school, policy(delta=1e-17))
    refused(fit(), "delta: must be at least 1e-15")
    refused(Said("fit", "students.yaml"), "public, out: both are needed")
    assert not (school / OUT).exists()


def test_where_it_may_write(school: Path) -> None:
    before = contents(school)
    for name in ("students.yaml", "students.parquet", "public.parquet"):
        refused(fit("--force", out=name), f"out: must be a file of its own. Got {name}")
    refused(fit(out="nowhere/x.yaml"), "out: must be a place that can be written.")
    assert contents(school) == before
    assert fit().code == 0
    refused(fit(), f"out: {OUT} exists already. Use --force")


def test_public_records_that_cannot_be_used(school: Path) -> None:
    table = students(PUBLIC_ROWS, seed=2)
    bad: dict[str, tuple[Any, str]] = {
        "few": (table.slice(0, 10), "public: needs at least"),
        "constant": (
            table.set_column(0, "weight", pa.array([150] * PUBLIC_ROWS)),
            "public: every column must vary. Got weight",
        ),
        "lacking": (table.drop_columns(["weight"]), "public: the file must have the column weight."),
        "missing": (
            table.set_column(0, "weight", pa.array([None] + [150, 160] * (PUBLIC_ROWS // 2 - 1) + [1])),
            "public: every value",
        ),
    }
    for name, (made, start) in bad.items():
        write_table(school, made, f"{name}.parquet")
        refused(fit(public=f"{name}.parquet"), start)
    refused(fit(public="none.parquet"), "public: must be a file that is there.")
    assert NOT_FINITE.startswith("public: every value")
    assert not (school / OUT).exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- 1\n", "must be a mapping. Got list."),
        ("kind: gaussian\n", "must be an assumption that attrpriv fit wrote, with attrpriv: 1. Got None."),
        ("attrpriv: true\nkind: gaussian\n", "with attrpriv: 1. Got True."),
        ("attrpriv: 1\nfile: other.yaml\n", "must be an assumption with its kind, not a reference to another file."),
    ],
)
def test_an_assumption_file_that_is_none(school: Path, text: str, says: str) -> None:
    (school / OUT).write_text(text, encoding="utf-8")
    with pytest.raises(PolicyError) as caught:
        Policy.load("students.yaml")
    assert says in str(caught.value)


def test_a_file_stands_alone(school: Path) -> None:
    fit()
    with pytest.raises(PolicyError, match=r"^assume\[0\]\.file: unknown key"):
        ap.Policy(**policy(assume={"file": OUT, "kind": "gaussian", "tolerance": 0, "sd": {"a": 1}}))
