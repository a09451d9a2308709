"""Bad input: one line that says parameter, requirement and what was received, exit code 2, and nothing written."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from attrpriv.errors import UsageError
from attrpriv.session.session import Session
from tests.end_to_end.material import Said, assume, contents, policy, school, students, write_policy, write_table

TOLERANCE = {"mean": 0.01, "sd": 0.02, "slope": 0.05}
ALL = ("check", "plan", "release")
BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
)


def secret(**keys: Any) -> list[dict[str, Any]]:
    return [{"secret": "mean(income)", **keys}]


def table(content: pa.Table, name: str = "students.parquet") -> Callable[[Path], object]:
    return lambda folder: write_table(folder, content, name)


def raw(content: bytes, name: str = "students.parquet") -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def cut(folder: Path) -> None:
    """A Parquet file whose second half is lost."""
    path = write_table(folder)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def blank_pages(folder: Path) -> None:
    """A Parquet file with a good footer and pages of zeros."""
    path = write_table(folder)
    content = bytearray(path.read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    content[4:footer] = bytes(footer - 4)
    path.write_bytes(content)


def floats(**values: list[float | None]) -> pa.Table:
    return pa.table({"weight": [150.0, 160.0, 170.0], "income": [1.0, 2.0, 3.0], **values})


def network(name: str = "s.bif") -> dict[str, Any]:
    """Counts under the network of this file."""
    return {"kind": "counts", "sensitive": "gender", "network": name, "tolerance": 0}


UNUSABLE = "must be a path of at most 4,000 bytes, 240 in each of its parts, without NUL. Got "
LONG_CSV = "weight,income\n" + "150,60000\n" * 30_000


@dataclass(frozen=True)
class Bad:
    """A policy (or its text), what else is put beside it, which commands must refuse it, and what they must say."""

    text: Any
    says: tuple[str, ...]
    commands: tuple[str, ...] = ALL
    arrange: Callable[[Path], object] = field(default=lambda folder: None)
    more: tuple[str, ...] = ()


BAD: dict[str, Bad] = {
    "negative epsilon": Bad(policy(epsilon=-1), ("epsilon: ", "greater than 0", "Got -1.")),
    "delta 0 with the Gaussian mechanism": Bad(
        policy(delta=0, bounds={"weight": [60, 400]}),
        ("gaussian: delta: ", "needs delta above 0", "Got 0."),
        ("release",),
        more=("--mechanism", "gaussian"),
    ),
    "delta 0 and no bounds": Bad(policy(delta=0), ("delta: ", "needs delta above 0", "Got 0.")),
    "empty Parquet": Bad(policy(), ("data: ", "at least 2 rows", "Got 0."), arrange=table(students(0))),
    "one row": Bad(policy(), ("data: ", "at least 2 rows", "Got 1."), arrange=table(students(1))),
    "one row declared": Bad(policy(rows=1), ("rows: ", "must be at least 2", "Got 1.")),
    "empty CSV": Bad(policy(data="s.csv", rows=5), ("data: ", "Got "), arrange=raw(b"", "s.csv")),
    "CSV without rows": Bad(
        policy(data="s.csv", rows=5), ("query: ", "Got weight, which is text."), arrange=raw(b"weight,income\n", "s.csv")
    ),
    "CSV with one row": Bad(
        policy(data="s.csv", rows=400),
        ("rows: must be the number of rows of the table, 1. Got 400.",),
        ("release",),
        raw(b"weight,income\n150,60000\n", "s.csv"),
    ),
    "CSV and no rows declared": Bad(
        policy(data="s.csv"), ("rows: must be declared, because s.csv",), arrange=table(students(), "s.csv")
    ),
    "CSV with other numbers of fields": Bad(
        policy(data="s.csv", rows=5),
        ("data: ", "with the same number of fields on each line"),
        arrange=raw(b"weight,income\n1,2\n3,4,5\n6\n", "s.csv"),
    ),
    "a number for missing text": Bad(
        policy(missing={"gender": 1}), ("missing: needs a numeric column. Got gender, which is text. Fill it in the table.",)
    ),
    "unknown column": Bad(
        policy(release=["avg(wieght)"]), ("query: the column must be one of the table's. Got wieght. Close: weight.",)
    ),
    "unknown secret column": Bad(policy(protect=[{"secret": "mean(age)", "within": 1}]), ("protect: ", "Got age.")),
    "unknown bounds": Bad(policy(bounds={"age": [0, 1]}), ("bounds: ", "Got age.")),
    "text averaged": Bad(policy(release=["avg(gender)"]), ("query: ", "need a numeric column", "Got gender, which is text.")),
    "text as secret": Bad(
        policy(protect=[{"secret": "mean(gender)", "within": 1}]), ("protect: ", "Got gender, which is text.")
    ),
    "low above high": Bad(policy(protect=secret(between=[2, 1])), ("protect[0].between: ", "must be below", "Got [2, 1].")),
    "bounds, low above high": Bad(policy(bounds={"weight": [400, 60]}), ("bounds.weight: ", "must be below", "Got [400, 60].")),
    "unknown key": Bad(policy(epsilonn=1), ("epsilonn: unknown key.",)),
    "unknown key of a secret": Bad(policy(protect=secret(within=1, wthin=1)), ("protect[0].wthin: unknown key.",)),
    "unknown key of an assumption": Bad(policy(assume=assume(means={})), ("assume[0].means: unknown key.",)),
    "unknown key of a tolerance": Bad(
        policy(assume=assume(tolerance={**TOLERANCE, "slop": 1})), ("assume[0].tolerance.slop: unknown key.",)
    ),
    "alias": Bad("attrpriv: 1\nepsilon: *x\n", ("students.yaml, line 2: aliases are not allowed. Got *x.",)),
    "anchor": Bad("attrpriv: 1\nepsilon: &x 1\n", ("students.yaml, line 2: anchors are not allowed. Got &x.",)),
    "bomb": Bad(BOMB, ("students.yaml, line 1: anchors are not allowed. Got &a0.",)),
    "deep bomb": Bad("[" * 100_000, ("students.yaml, line 1: must be nested at most",)),
    "no YAML": Bad("epsilon: [1", ("students.yaml, line 1: must be valid YAML. Got ",)),
    "empty policy": Bad("", ("students.yaml: must be a mapping. Got an empty file.",)),
    "missing data": Bad(policy(data="gone.parquet"), ("data: the file must exist. Got ", "gone.parquet'.")),
    "missing data, rows declared": Bad(
        policy(data="gone.parquet", rows=400), ("data: the file must exist. Got ", "gone.parquet'."), ("release",)
    ),
    "data is a directory": Bad(policy(data="."), ("data: it must be one file. Got ", "which is a directory.")),
    "data of another kind": Bad(policy(data="students.yaml"), ("data: the file's name must end in .parquet, .csv", "Got ")),
    "no data": Bad(policy("data"), ("data: must be given", "Got neither.")),
    "no Parquet": Bad(policy(), ("data: the file must be a complete Parquet file. Got ",), arrange=raw(b"PAR1 or so")),
    "Parquet of no bytes": Bad(policy(), ("data: the file must be a complete Parquet file. Got ",), arrange=raw(b"")),
    "half a Parquet": Bad(policy(), ("data: the file must be a complete Parquet file. Got ",), arrange=cut),
    "blank pages": Bad(
        policy(), ("data: the engine could not read the table. Columns read: weight.",), ("release",), blank_pages
    ),
    "text late in a CSV column": Bad(
        policy("resolution", data="s.csv", rows=30_001),
        ("data: the engine could not read the table. Columns read: weight, income.",),
        ("release",),
        raw(LONG_CSV.encode() + b"heavy,60000\n", "s.csv"),
    ),
    "a field too many late in a CSV": Bad(
        policy("resolution", data="s.csv", rows=30_001),
        ("data: the engine could not read the table. Columns read: weight, income.",),
        ("release",),
        raw(LONG_CSV.encode() + b"150,60000,1\n", "s.csv"),
    ),
    "CSV not in UTF-8": Bad(
        policy(data="s.csv", rows=2), ("data: ", "Got "), arrange=raw(b"w\xff\xfeight,income\n1,2\n3,4\n", "s.csv")
    ),
    "rows do not match": Bad(policy(rows=399), ("rows: must be the number of rows of the table, 400. Got 399.",)),
    "rows do not match, CSV": Bad(
        policy(data="s.csv", rows=399),
        ("rows: must be the number of rows of the table, 400. Got 399.",),
        ("release",),
        table(students(), "s.csv"),
    ),
    "rows do not match, count": Bad(
        policy(data="s.csv", rows=399),
        ("rows: must be the number of rows of the table, 400. Got 399.",),
        ("release",),
        table(students(), "s.csv"),
        ("count(*)",),
    ),
    "missing value": Bad(
        policy("resolution"),
        ("data: every value of a column read must be present, finite and small enough to be added. Columns read: weight.",),
        ("release",),
        table(floats(weight=[150.0, None, 170.0])),
    ),
    "not a number": Bad(
        policy("resolution"),
        ("data: every value", "Got one that is not."),
        ("release",),
        table(floats(weight=[1.0, math.nan, 2.0])),
    ),
    "infinite value": Bad(
        policy("resolution"),
        ("data: every value", "Got one that is not."),
        ("release",),
        table(floats(weight=[1.0, -math.inf, 2.0])),
    ),
    "finite value that no sum holds": Bad(
        policy("resolution", assume=assume(mean={"income": 60_000, "weight": 150})),
        ("data: every value", "finite and small enough to be added", "Got one that is not.", "huge values with `bounds`"),
        ("release",),
        table(floats(weight=[1.0, 1e300, 2.0])),
    ),
    "missing value in a CSV": Bad(
        policy(data="s.csv", rows=400),
        ("data: every value", "Got one that is not."),
        ("release",),
        raw(b"weight,income\n150,1\n,2\n" + b"170,3\n" * 398, "s.csv"),
    ),
    "ledger in no directory": Bad(
        policy(ledger="none/x.ledger"), ("ledger '", "in a directory that exists", "Got one that cannot be used."), ("release",)
    ),
    "ledger is a directory": Bad(policy(ledger="."), ("ledger '", "must be a file.", "Got something else."), ("release",)),
    "ledger is another file": Bad(
        policy(ledger="students.yaml"), ("ledger '", "must be a ledger of attrpriv.", "Got another file."), ("release",)
    ),
    "unknown mechanism": Bad(
        policy(), ("mechanism: must be auto or one of ", "Got 'magic'."), ("release",), more=("--mechanism", "magic")
    ),
    "no query": Bad(policy(release=[]), ("query: there must be one", "Got none."), ("plan", "release")),
    "unknown statistic": Bad(policy(), ("query: must be avg(column)", "Got 'MODE(weight)'"), more=("mode(weight)",)),
    "no such version": Bad(policy(attrpriv=2), ("attrpriv: ", "Got 2.")),
    "NUL in the table's path": Bad(policy(data="a\0b.csv"), ("data: " + UNUSABLE, "a\\x00b.csv'.")),
    "NUL in the ledger's path": Bad(policy(ledger="a\0b"), ("ledger: " + UNUSABLE, "a\\x00b'.")),
    "NUL in the network's path": Bad(
        policy(assume=network(name="a\0b")), ("network: must be the path of a BIF file. Got 'a\\x00b',",)
    ),
    "NUL in the assumption's path": Bad(policy(assume={"file": "a\0b"}), ("a\\x00b: must be a text file",)),
    "long path of the table": Bad(policy(data="a" * 5_000, rows=400), ("data: " + UNUSABLE, "aaa....")),
    "long name of the table": Bad(policy(data="a" * 250 + ".csv", rows=400), ("data: " + UNUSABLE, "aaa....")),
    "deep path of the table": Bad(policy(data="a/" * 2_500 + "x.csv", rows=400), ("data: " + UNUSABLE, "a/a/....")),
    "long name in a cluster": Bad(policy(data="spark:" + "a" * 5_000, rows=400), ("data: must be a path of at most",)),
    "long path of the ledger": Bad(policy(ledger="a" * 5_000), ("ledger: " + UNUSABLE, "aaa....")),
    "long path of the network": Bad(
        policy(assume=network(name="a" * 5_000)), ("network: must be the path of a BIF file. Got 'aaa",)
    ),
    "long path of the assumption": Bad(policy(assume={"file": "a" * 5_000}), ("must be a text file of at most 4 MiB.",)),
    "no variable in a network": Bad(
        policy(assume=network()),
        ("network: must be a network without cycles in BIF. Got s.bif", "line 1: expected a name"),
        arrange=raw(b"probability ( ) { table 1; }", "s.bif"),
    ),
    "column in no assumption": Bad(
        policy(assume=assume(sd={"income": 1}, correlation={}), release=["avg(weight)"]),
        ("assume: weight must have a standard deviation", "Got none."),
    ),
}
CASES = [(name, command) for name, bad in BAD.items() for command in bad.commands]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    school(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("name", "command"), CASES)
def test_bad_input(name: str, command: str, here: Path) -> None:
    bad = BAD[name]
    bad.arrange(here)
    write_policy(here, bad.text)
    before = contents(here)
    said = Said(command, "students.yaml", *bad.more)
    assert said.code == 2
    for part in bad.says:
        assert part in said.complaint
    assert contents(here) == before


def test_a_path_in_python_is_held_to_the_same(here: Path) -> None:
    for place in ("a\0b.csv", Path("a\0b.csv"), "a" * 5_000, "\ud800.csv"):
        with pytest.raises(UsageError, match=r"^data: must be a path of at most 4,000 bytes"):
            Session(place, "students.yaml")
        with pytest.raises(UsageError, match=r"^ledger: must be a path of at most 4,000 bytes"):
            Session("students.parquet", "students.yaml", ledger=place).plan("avg(weight)")


@pytest.mark.parametrize("name", ["negative epsilon", "unknown column", "bomb", "missing value", "ledger in no directory"])
def test_bad_input_in_json(name: str, here: Path) -> None:
    bad = BAD[name]
    bad.arrange(here)
    write_policy(here, bad.text)
    before = contents(here)
    said = Said("release", "students.yaml", *bad.more, "--json")
    assert said.code == 2
    kind = said.json["error"]["kind"]
    assert kind in ("usage", "policy", "query", "data")
    assert said.json == {"schema_version": 1, "error": {"kind": kind, "message": said.complaint, "exit_code": 2}}
    assert contents(here) == before


PLACES = {
    "none.yaml": "none.yaml: must be a text file of at most 4 MiB. Got no such file.",
    ".": ".: must be a text file of at most 4 MiB. Got a directory.",
    "students.parquet": "students.parquet",
    "large.yaml": "large.yaml: must be a text file of at most 4 MiB. Got a larger file.",
    "latin.yaml": "latin.yaml: must be a text file of at most 4 MiB. Got bytes that are not UTF-8.",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", ALL)
def test_a_policy_that_cannot_be_read(place: str, command: str, here: Path) -> None:
    (here / "large.yaml").write_bytes(b"#" * (4 << 20) + b"#")
    (here / "latin.yaml").write_bytes("# größe\n".encode("latin-1"))
    before = contents(here)
    said = Said(command, place)
    assert said.code == 2
    assert PLACES[place] in said.complaint
    assert contents(here) == before


def test_the_school_itself_is_not_bad(here: Path) -> None:
    """The cases above fail for the reason they name: without it, the same commands succeed."""
    for command in ALL:
        assert Said(command, "students.yaml").code == 0
