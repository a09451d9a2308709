"""Text files that are not quite CSV become tables: every row, its names, its types; no error quotes a cell."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from attrpriv.cli.app import app
from attrpriv.engines.tidy import tidy
from attrpriv.errors import AttrprivError, DataError, UsageError

PADDED = "39, State-gov, ?, 2.5\n50,  Private ,, 3\n38, Private, 7, 4\n"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "adult.data"


def test_names_types_spaces_and_missing_cells(tmp_path: Path) -> None:
    (tmp_path / "people.data").write_text(PADDED)
    types = tidy(tmp_path / "people.data", tmp_path / "p.parquet", ["age", "work", "loss", "rate"], ["?"])
    assert types == {"age": "integer", "work": "text", "loss": "integer", "rate": "float"}
    made = pd.read_parquet(tmp_path / "p.parquet")
    assert made["age"].tolist() == [39, 50, 38]
    assert made["work"].tolist() == ["State-gov", "Private", "Private"]
    assert made["loss"].isna().tolist() == [True, True, False]
    assert made["rate"].tolist() == [2.5, 3.0, 4.0]


def test_the_first_line_has_the_names_where_none_are_given(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("age; word\n1; x\n2; 2\n")
    assert tidy(tmp_path / "a.csv", tmp_path / "a.parquet") == {"age": "integer", "word": "text"}
    assert pd.read_parquet(tmp_path / "a.parquet")["word"].tolist() == ["x", "2"]


def test_every_row_is_kept_in_its_order(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.writelines(f"{i}, w{i}\n" for i in range(30_000))
    tidy(tmp_path / "a.csv.gz", tmp_path / "a.parquet", ["i", "w"])
    assert pd.read_parquet(tmp_path / "a.parquet")["i"].tolist() == list(range(30_000))


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (("1", "-2", "+3"), "integer"),
        (("1", "2.5"), "float"),
        (("1e3", ".5", "4."), "float"),
        (("01234", "99999"), "text"),
        (("1", "nan"), "text"),
        (("inf", "1"), "text"),
        (("1", "1" * 25), "float"),
        (("", ""), "text"),
    ],
)
def test_the_type_is_what_every_cell_is_written_as(cells: tuple[str, ...], kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{cell},a\n" for cell in cells))
    assert tidy(tmp_path / "a.csv", tmp_path / "a.parquet")["x"] == kind


def test_a_number_far_down_that_is_none_makes_the_column_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n" + "1\n" * 40_000 + "many\n")
    assert tidy(tmp_path / "a.csv", tmp_path / "a.parquet") == {"x": "text"}


@pytest.mark.parametrize(
    ("text", "names"),
    [("a,b\n1,SECRET\n2\n", None), ("1,SECRET\n2,3\n", ["x"]), ("1,2\n", ["x", "x"]), ("1,2\n", ["x", ""])],
)
def test_what_cannot_be_is_refused_and_quotes_no_cell(text: str, names: list[str] | None, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(AttrprivError) as refused:
        tidy(tmp_path / "a.csv", tmp_path / "a.parquet", names)
    assert "SECRET" not in str(refused.value)
    assert not (tmp_path / "a.parquet").exists()


@pytest.mark.parametrize("first", ["39, State-gov", "work, 2019", "-1.5e3, x"])
def test_a_first_row_of_values_is_not_taken_for_names(first: str, tmp_path: Path) -> None:
    (tmp_path / "a.data").write_text(f"{first}\n50, Private\n")
    with pytest.raises(DataError, match="--names first,second") as refused:
        tidy(tmp_path / "a.data", tmp_path / "a.parquet")
    assert not {*first.split(", ")} & {*str(refused.value).split()}
    assert not (tmp_path / "a.parquet").exists()
    tidy(tmp_path / "a.data", tmp_path / "a.parquet", ["a", "b"])
    assert len(pd.read_parquet(tmp_path / "a.parquet")) == 2


NO_TEXT = {
    "nothing": ("a.csv", b"", "which is empty. Write it anew."),
    "Latin-1": ("a.csv", "name,age\nJos\u00e9,3\n".encode("latin-1"), "which is in another encoding. Save it in UTF-8."),
    "UTF-16": ("a.csv", "name,age\nJos\u00e9,3\n".encode("utf-16"), "which is in another encoding. Save it in UTF-8."),
    "a spreadsheet": ("a.xlsx", b"PK\x03\x04 name", "which is a spreadsheet or an archive. Save the sheet as CSV in UTF-8."),
    "an older spreadsheet": ("a.xls", b"\xd0\xcf\x11\xe0\x00", "which is a spreadsheet or an archive. Save the sheet as CSV"),
    "Parquet": ("a.parquet", b"PAR1\x15\x04", "which is a Parquet file. Go on with: attrpriv init "),
}


@pytest.mark.parametrize("name", NO_TEXT)
def test_what_is_no_text_is_told_by_what_it_is(name: str, tmp_path: Path) -> None:
    """And not by its lines, which were said to have too few cells; a spreadsheet became a table of garbage."""
    file, content, told = NO_TEXT[name]
    (tmp_path / file).write_bytes(content)
    with pytest.raises(DataError) as refused:
        tidy(tmp_path / file, tmp_path / "made.parquet", ["name", "age"])
    assert f"must be a text file in UTF-8. Got {file}, {told}" in str(refused.value)
    assert not (tmp_path / "made.parquet").exists()
    (tmp_path / "saved.csv").write_text("name,age\nJos\u00e9,3\n", encoding="utf-8")
    assert tidy(tmp_path / "saved.csv", tmp_path / "made.parquet") == {"name": "text", "age": "integer"}


def test_a_comma_before_decimals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed leads to numbers; a point is then none, and codes stay words."""
    monkeypatch.chdir(tmp_path)
    Path("pay.csv").write_text("name;pay;rate;code\nA;1200,50;-0,5;1,2,3\nB;900;,25;4\n;;1,5e2;\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["tidy", "pay.csv"])
    assert done.exit_code == 0
    assert "pay: numbers with commas are text. To read them as decimals: --decimal , --force" in " ".join(done.output.split())
    done = CliRunner().invoke(app, ["tidy", "pay.csv", *"--decimal , --force".split()])
    assert "name (text), pay (float), rate (float), code (text)" in " ".join(done.output.split())
    made = pd.read_parquet("pay.parquet")
    assert made["pay"].tolist()[:2] == [1200.5, 900.0]
    assert made["rate"].tolist() == [-0.5, 0.25, 150.0]
    assert made["code"].tolist()[0] == "1,2,3"
    Path("pay.csv").write_text("pay;age\n1.5;3\n2,5;4\n", encoding="utf-8")
    assert tidy(Path("pay.csv"), Path("pay.parquet"), decimal=",") == {"pay": "text", "age": "integer"}
    with pytest.raises(UsageError, match="decimal: must be a point or a comma"):
        tidy(Path("pay.csv"), Path("pay.parquet"), decimal=";")


def test_a_directory_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"which is a directory\. Name a file in it\."):
        tidy(tmp_path, tmp_path / "made.parquet")


def test_names_that_are_numbers_are_given_instead_of_their_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("land,2019\nA,7\n")
    with pytest.raises(DataError, match="--skip 1"):
        tidy(tmp_path / "a.csv", tmp_path / "a.parquet")
    assert tidy(tmp_path / "a.csv", tmp_path / "a.parquet", ["land", "y2019"], skip=1) == {"land": "text", "y2019": "integer"}
    assert len(pd.read_parquet(tmp_path / "a.parquet")) == 1


@pytest.mark.parametrize("first", ["SECRET", "|SECRET", "# SECRET, line"])
def test_a_first_line_of_another_length_is_left_out_only_where_that_is_asked(first: str, tmp_path: Path) -> None:
    (tmp_path / "a.data").write_text(first + "\n" + "1, a, 5\n2, b, 6\n3, c, 7\n")
    with pytest.raises(AttrprivError) as refused:
        tidy(tmp_path / "a.data", tmp_path / "a.parquet", ["x", "y", "z"])
    assert "SECRET" not in str(refused.value)
    tidy(tmp_path / "a.data", tmp_path / "a.parquet", ["x", "y", "z"], skip=1)
    assert pd.read_parquet(tmp_path / "a.parquet")["x"].tolist() == [1, 2, 3]


def test_a_name_with_brackets_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").write_text("x\n1\n")
    (tmp_path / "a1.csv").write_text("y\n2\n")
    assert tidy(tmp_path / "a[1].csv", tmp_path / "a.parquet") == {"x": "integer"}


def test_places(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    with pytest.raises(UsageError, match=r"must end in \.parquet"):
        tidy(tmp_path / "a.csv", tmp_path / "a.csv")
    with pytest.raises(DataError, match="which is not there"):
        tidy(tmp_path / "b.csv", tmp_path / "a.parquet")


def test_the_way_out_of_a_file_without_names_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("h.csv").write_text("1, a\n2, b\n")
    run = CliRunner().invoke
    refused = run(app, ["init", "h.csv"])
    assert refused.exit_code == 2
    command = refused.output.strip().rpartition(": attrpriv ")[2]
    assert command == "tidy h.csv --names first,second"
    assert run(app, command.split()).exit_code == 0
    assert run(app, command.split()).exit_code == 2  # there already
    assert json.loads(run(app, [*command.split(), "--force", "--json"]).output)["columns"] == {
        "first": "integer",
        "second": "text",
    }
    assert run(app, ["init", "h.parquet", "--secret", "columns(second)"]).exit_code == 0


def test_a_text_file_of_another_ending_is_led_to_this_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("h.data").write_text("age, sex\n1, a\n2, b\n")
    run = CliRunner().invoke
    command = run(app, ["init", "h.data"]).output.strip().rpartition(": attrpriv ")[2]
    assert command == "tidy h.data"
    done = run(app, command.split())
    assert done.exit_code == 0
    following = done.output.strip().rpartition(": attrpriv ")[2]
    assert run(app, [*following.split(), "--secret", "columns(sex)"]).exit_code == 0


@pytest.mark.skipif(not SHARED.exists(), reason="needs the UCI Adult data beside the repository")
def test_adult(tmp_path: Path) -> None:
    names = "age work fnlwgt education years marital job relation race sex gain loss hours country income".split()
    types = tidy(SHARED, tmp_path / "adult.parquet", names, ["?"])
    made = pd.read_parquet(tmp_path / "adult.parquet")
    assert len(made) == 32_561
    assert {*made["sex"]} == {"Female", "Male"}
    assert types["age"] == "integer"
