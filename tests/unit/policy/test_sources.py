"""`source`: where each number of a policy comes from."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from attrpriv.assumptions.recorded_table import RecordedTable
from attrpriv.errors import PolicyError
from attrpriv.policy import Policy
from attrpriv.policy.sources import StatedNumber, source_of, stated_numbers

ROOT = Path(__file__).resolve().parents[3]
STUDENTS = (ROOT / "examples" / "students" / "students.yaml").read_text(encoding="utf-8")


def written(tmp_path: Path, text: str = STUDENTS, **source: str) -> Policy:
    place = tmp_path / "students.yaml"
    place.write_text(text + yaml.safe_dump({"source": source}) if source else text, encoding="utf-8")
    return Policy.load(place)


def told(policy: Policy) -> dict[str, StatedNumber]:
    return {one.place: one for one in stated_numbers(policy)}


def test_every_number_that_is_stated_is_listed(tmp_path: Path) -> None:
    found = told(written(tmp_path))
    assert {"assume.mean.income", "assume.sd.weight", "assume.correlation.weight~income", "assume.tolerance.slope"} <= set(
        found
    )
    assert {"bounds.weight", "resolution.weight"} <= set(found)
    assert found["bounds.weight"].value == "[60, 400]"
    assert found["assume.sd.income"].value == "30,000"
    assert all(one.source is None for one in found.values())
    assert not any(place.startswith(("protect", "epsilon")) for place in found)  # decisions


def test_what_a_reference_states_of_the_table_is_a_number_too() -> None:
    """Its chance of a failure is a decision."""
    reference = {"sex": {"values": ["F", "M"], "shares": [0.4, 0.6]}, "least_density": 0.9, "failure": 1e-9}
    source = {"reference.least_density": "judgement, 2 May"}
    policy = Policy(epsilon=1.0, delta=1e-6, protect=[{"secret": "columns(sex)"}], reference=reference, source=source)
    found = told(policy)
    assert found["reference.least_density"].source == "judgement, 2 May"
    assert [place for place, one in found.items() if one.source is None] == ["reference.shares.sex.shares"]


def test_a_public_file_is_one_line_and_not_its_rows() -> None:
    """Its rows are thousands of numbers, and the digest says which file they are."""
    rows = {"school": [8, 9, 10, 11], "hours": [30, 38, 40, 45]}
    assume = {"kind": "records", "file": RecordedTable.of(rows), "columns": ["school", "hours"], "resamples": {"number": 2}}
    other = RecordedTable.of({**rows, "hours": [31, 38, 40, 45]})
    secret = {"secret": "mean(school)", "between": [9, 10]}
    source = {"assume.file": "census 2021"}
    policy = Policy(epsilon=1.0, delta=1e-6, rows=20, protect=[secret], assume={**assume, "further": [other]}, source=source)
    file, further = stated_numbers(policy)
    assert (file.place, file.value, file.source) == ("assume.file", "4 public rows", "census 2021")
    assert (further.place, further.value) == ("assume.further[0]", "4 public rows")
    assert further.source == f"digest {other.records().digest[:16]}"


def test_a_place_above_is_for_all_below(tmp_path: Path) -> None:
    found = told(written(tmp_path, **{"assume": "survey 2024", "assume.sd.income": "tax office", "bounds.weight": "scales"}))
    assert found["assume.sd.weight"].source == "survey 2024"
    assert found["assume.sd.income"].source == "tax office"
    assert found["bounds.weight"].source == "scales"
    assert found["resolution.weight"].source is None


def test_a_name_that_only_begins_alike_is_another() -> None:
    assert source_of({"bounds.weight": "x"}, "bounds.weight_2") is None
    assert source_of({"assume": "x"}, "assume[1].sd.a") == "x"


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("assume.sd.incme", "x", "such as assume.sd.income"),
        ("protect", "x", "must name a number"),
        ("assume.kind", "x", "must name a number"),
        ("assume.sd", "  ", "where assume.sd comes from"),
    ],
)
def test_a_source_of_nothing_is_refused(tmp_path: Path, key: str, text: str, said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        written(tmp_path, **{key: text})


def test_no_promise_depends_on_a_source(tmp_path: Path) -> None:
    plain, sourced = written(tmp_path), written(tmp_path, assume="survey 2024")
    assert plain.digest == sourced.digest
    assert "source" not in plain.to_json()
    assert Policy.from_json(sourced.to_json()).source == sourced.source


def test_what_was_fitted_says_so(tmp_path: Path) -> None:
    fitted = STUDENTS.replace(
        "  tolerance:",
        f"  fitted:\n    rows: 5000\n    digest: {'ab' * 32}\n    confidence: 0.9999995\n  tolerance:",
    )
    found = told(written(tmp_path, fitted, **{"assume.mean": "tax office"}))
    assert found["assume.sd.income"].source == f"fitted on 5,000 public records, digest {'ab' * 8}"
    assert found["assume.mean.income"].source == "tax office"
    assert not any("fitted" in place for place in found)


def test_a_fit_begins_without_the_assumption_and_its_sources(tmp_path: Path) -> None:
    written(tmp_path, assume="survey 2024")
    assert Policy.load(tmp_path / "students.yaml", assume=False).assume == ()
