"""The comparison with peers: its page is what the committed results give, and its runs resume, skip and go on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from attrpriv.errors import PolicyError
from bench.peers import features, page, property_inference, speed
from bench.peers.budget import Budget, Unavailable
from bench.peers.environment import end, in_environment, run_alone
from bench.peers.libraries import LIBRARIES, Library
from bench.peers.results import Cell, Result, Row, Table, measured, quoted, read
from bench.peers.running import EXPERIMENTS, RESULTS, experiments, kept, run_all

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = sorted(RESULTS.glob("*.json"))


def result(name: str = "made_up", value: float = 12.345) -> Result:
    rows: list[Row] = [
        ["ours", measured(value, value - 1, value + 1)],
        ["theirs", quoted(69.85, "chen2023protecting, Table 2")],
    ]
    table = Table.of("errors", "Errors", {"who": "text", "error": "number"}, rows)
    return Result.of(name, "Made up", seconds=1.0, seed=1, tables=[table], notes=["a note"])


# --------------------------------------------------------------------------------------------------------- what is committed


def test_the_page_is_what_the_committed_results_give() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.written(RESULTS), "run `python -m bench.peers --page`"


def test_each_result_is_of_an_experiment_and_each_experiment_has_a_text() -> None:
    assert {one.stem for one in COMMITTED} <= set(EXPERIMENTS)
    for one in experiments():
        assert (page.TEXTS / f"{one.NAME}.md").is_file()
        assert 0 < one.SECONDS <= 900
    assert sum(one.SECONDS for one in experiments()) <= 3600, "under 60 minutes"


@pytest.mark.parametrize("place", COMMITTED, ids=lambda place: place.stem)
def test_a_committed_result_reads_and_names_its_sources(place: Path) -> None:
    found = read(place)
    assert found.name == place.stem
    keys = set(re.findall(r"@\w+\{([^,]+),", (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")))
    for table in found.tables:
        for cell in (cell for row in table.rows for cell in row if cell.quoted):
            assert cell.source.split(",")[0] in keys


def test_every_result_is_shown() -> None:
    """A table that no text asks for is measured in vain."""
    for place in COMMITTED:
        text = (page.TEXTS / f"{place.stem}.md").read_text(encoding="utf-8")
        for table in read(place).tables:
            assert f"{place.stem}/{table.key}" in text


# ------------------------------------------------------------------------------------------------------------------ the page


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "page"
    place.mkdir()
    (place / "head.md").write_text("# Compared\n")
    (place / "made_up.md").write_text(
        "## Made up\n\n{{table made_up/errors}}\n\nOurs is {{made_up/errors | ours | error}}, not "
        "{{made_up/errors|theirs|error}}.\n"
    )
    monkeypatch.setattr(page, "EXPERIMENTS", ("made_up",))
    return place


def test_numbers_come_from_the_result_and_quoted_ones_are_marked(texts: Path, tmp_path: Path) -> None:
    (tmp_path / "made_up.json").write_text(result().model_dump_json())
    text = page.written(tmp_path, texts)
    assert "| ours | 12.3 (11.3 to 13.3) |" in text
    assert "| theirs | 69.85‡ |" in text
    assert "‡ quoted, not measured here: chen2023protecting, Table 2." in text
    assert "Ours is 12.3 (11.3 to 13.3), not 69.85‡." in text
    assert "{{" not in text
    (tmp_path / "made_up.json").write_text(result(value=99.0).model_dump_json())
    assert page.written(tmp_path, texts) != text


def test_what_was_left_out_tells_the_reason_and_no_number(texts: Path, tmp_path: Path) -> None:
    left = Result.of("made_up", "Made up", seconds=0.0, seed=0, tables=[], left_out="needs the Adult data")
    (tmp_path / "made_up.json").write_text(left.model_dump_json())
    assert page.written(tmp_path, texts) == "# Compared\n\n## Made up\n\n*Not measured: needs the Adult data.*\n"


def test_the_page_is_written_where_no_library_can_be_installed() -> None:
    """What a text speaks of must be a row all the same."""
    row = property_inference._private_row("differential privacy, ε = 1", cast(Any, None), None, 1.0, "each single person")
    assert row == ["differential privacy, ε = 1", None, None, None, "each single person"]
    text = (page.TEXTS / "property_inference.md").read_text(encoding="utf-8")
    names = {f"differential privacy, ε = {one:g}" for one in property_inference.EPSILONS}
    assert set(re.findall(r"attacks \| (differential privacy[^|]+?) \|", text)) <= names


def test_without_a_result_the_page_says_so(texts: Path, tmp_path: Path) -> None:
    assert page.written(tmp_path, texts) == f"# Compared\n\n## Made up\n\n{page.NOT_MEASURED}\n"


@pytest.mark.parametrize("place", ["{{table made_up/others}}", "{{made_up/errors | nobody | error}}"])
def test_a_place_that_no_result_fills_is_an_error(texts: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "made_up.json").write_text(result().model_dump_json())
    (texts / "made_up.md").write_text(f"## Made up\n\n{place}\n")
    with pytest.raises(KeyError):
        page.written(tmp_path, texts)


# ------------------------------------------------------------------------------------------------------------------ results


def test_a_result_is_json_and_says_nothing_of_the_machine_but_cores_and_memory() -> None:
    found = result()
    assert Result.from_json(found.model_dump_json()) == found
    assert set(found.machine.to_json()) == {"cores", "memory_gb", "python"}


@pytest.mark.parametrize(
    "wrong",
    [{"value": 1.0, "low": 2.0, "high": 3.0}, {"value": 1.0, "low": 0.0}, {"value": "a", "low": 0.0, "high": 1.0}],
)
def test_an_interval_holds_its_value(wrong: dict[str, float]) -> None:
    with pytest.raises(PolicyError):
        Cell(**wrong)


def test_what_is_quoted_names_its_source_and_tables_are_rectangular() -> None:
    with pytest.raises(PolicyError, match="source"):
        Cell(value=1.0, quoted=True)
    with pytest.raises(PolicyError, match="cells"):
        Table.of("errors", "Errors", {"who": "text", "error": "number"}, [["ours"]])


# ---------------------------------------------------------------------------------------------------------------------- runs


@dataclass
class Made:
    """An experiment that is what a test needs."""

    NAME: str
    trouble: BaseException | None = None
    NEEDS: tuple[str, ...] = ()
    TITLE: str = "Made up"
    SECONDS: float = 1.0
    runs: list[float] = field(default_factory=list)

    def run(self, budget: Budget) -> Result:
        budget.say("half of it")
        self.runs.append(budget.left)
        if self.trouble is not None:
            raise self.trouble
        return result(self.NAME)


def test_a_run_skips_with_the_reason_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = [
        Made("one"),
        Made("two", Unavailable("needs the Adult data")),
        Made("three", ValueError("a mistake")),
        Made("four", NEEDS=("no_such_package",)),
        Made("five"),
    ]
    results, done = tmp_path / "results", tmp_path / "done"
    assert run_all(chosen, results=results, done=done) == ["three"]
    told = " ".join(capsys.readouterr().err.split())
    assert "two: skipped. needs the Adult data" in told
    assert "four: skipped. needs no_such_package, which is not installed here" in told
    found = {one.NAME: read(results / f"{one.NAME}.json") for one in chosen}
    assert [bool(one.tables) for one in found.values()] == [True, False, False, False, True]
    assert found["two"].left_out == "needs the Adult data"
    assert found["three"].left_out == "it failed here"


def test_results_that_are_there_from_elsewhere_are_measured_again(tmp_path: Path) -> None:
    """A fresh clone holds the results of another machine."""
    results, done, one = tmp_path / "results", tmp_path / "done", Made("one")
    kept(result("one", value=99.0), results / "one.json")
    run_all([one], results=results, done=done)
    assert len(one.runs) == 1
    assert read(results / "one.json") == result("one")
    run_all([one], results=results, done=done)
    assert len(one.runs) == 2, "what was finished is a run of its own"


def test_a_run_that_was_ended_resumes_where_it_was(tmp_path: Path) -> None:
    results, done = tmp_path / "results", tmp_path / "done"
    ended = [Made("one"), Made("two", Unavailable("needs much")), Made("three", KeyboardInterrupt()), Made("four")]
    with pytest.raises(KeyboardInterrupt):
        run_all(ended, results=results, done=done)
    assert [len(one.runs) for one in ended] == [1, 1, 1, 0]
    ended[2].trouble = None
    run_all(ended, results=results, done=done)
    assert [len(one.runs) for one in ended] == [1, 1, 2, 1]
    with pytest.raises(KeyboardInterrupt):
        run_all([ended[0], Made("three", KeyboardInterrupt())], results=results, done=done)
    run_all(ended[:1], results=results, done=done, again=True)
    assert len(ended[0].runs) == 3, "2 at first, and once more though it was done"


def test_a_busy_machine_may_be_given_more_time(tmp_path: Path) -> None:
    one = Made("one")
    run_all([one], results=tmp_path / "results", done=tmp_path / "done", patience=50.0)
    assert 40.0 < one.runs[0] <= 50.0


def test_each_library_is_measured_once_before_any_is_again() -> None:
    """A run whose time is over has left out what comes last."""
    order = list(speed.turns(list(LIBRARIES)))
    number = len({key[1:] for key in order})
    first, later = order[:number], order[number:]
    assert {turn for turn, *_ in first} == {0}
    assert 0 not in {turn for turn, *_ in later}
    assert {who for *_, who in first} >= {"duckdb", *(each.name for each in LIBRARIES)}
    counted = Counter(who for _, rows, what, who in order if (rows, what) == (speed.SIZES[0], "average"))
    assert counted["duckdb"] == counted["opendp"] == speed.ROUNDS
    assert counted["pipelinedp"] == counted["tumult"] == speed.SLOW_ROUNDS


def test_what_would_take_too_much_is_left_out_with_the_reason() -> None:
    light = {"seconds": 1.0, "bytes": 1e8}
    assert speed._too_much("opendp", [light]) == ""
    assert "could not be measured" in speed._too_much("opendp", [])
    assert "more than 10 processor seconds" in speed._too_much("pipelinedp", [{**light, "seconds": 15.0}])
    assert speed._too_much("tumult", [{**light, "seconds": 15.0}]) == "", "most of it is Java's start"
    assert "of the memory might be needed" in speed._too_much("opendp", [{**light, "bytes": 1e13}])


def test_each_call_names_the_version_that_it_was_tried_with() -> None:
    call = {"call": "f(a | b)", "answer": "yes", "seen": "works"}
    table = features.evidence({"attrpriv": {"it": call}, "opendp": {"it": call}}, {"attrpriv": "1", "OpenDP (Polars)": "2"})
    assert [row[1].value for row in table.rows] == ["attrpriv 1", "OpenDP (Polars) 2"]
    assert table.rows[0][2].value == "`` f(a \\| b) ``"


def test_what_no_version_is_known_of_is_left_out_and_the_others_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A version is asked for first: what was measured of others is not lost."""

    def version(each: Library) -> str:
        if each.name == "opendp":
            raise Unavailable("opendp: its versions took more than 60 seconds")
        return "1.0"

    def called(*given: Any) -> Any:
        limits.append(given[-1])
        return {"it": {"call": "f()", "answer": "yes", "seen": "works"}}

    limits: list[float] = []
    for module in (features, speed):
        monkeypatch.setattr(module, "version", version)
    for name in ("in_this_environment", "in_environment"):
        monkeypatch.setattr(features, name, called)
    monkeypatch.setattr(speed, "written", lambda path, rows: path)
    monkeypatch.setattr(speed, "one", lambda *_: {"seconds": 1.0, "bytes": 1.0})
    asked, timed = features.run(Budget(60.0)), speed.run(Budget(60.0))
    for found in (asked, timed):
        assert any("OpenDP (Polars): opendp: its versions took more than 60 seconds" in note for note in found.notes)
        assert "OpenDP (Polars)" not in found.versions
        assert found.versions["diffprivlib"] == "1.0"
    assert limits == [features.TIMES * 60.0] * len(LIBRARIES), "which --patience multiplies; ours, and all others but one"
    assert asked.table("overview").cell("it", "OpenDP (Polars)").value == features.NOT_TRIED
    assert asked.table("overview").cell("it", "diffprivlib").value == "yes"
    for what in (f"{kind}-{rows}" for kind in speed.OURS for rows in speed.SIZES):
        assert timed.table(what).cell("OpenDP (Polars)", "runs").value is None
        assert timed.table(what).cell("diffprivlib", "runs").value == speed.ROUNDS


def test_a_script_leaves_nothing_in_the_repository(tmp_path: Path) -> None:
    script = "import os, pathlib; pathlib.Path('left-behind').mkdir(); print(os.getcwd())"
    place = Path(run_alone([sys.executable, "-c", script], "", 60.0, os.environ).stdout.strip())
    assert ROOT not in [place, *place.parents]
    assert not place.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_a_process_has_started_ends_with_it(tmp_path: Path) -> None:
    """The end of the pipe comes when nobody is left who could write to it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    child = (
        f"import time; pipe = open({str(pipe)!r}, 'w'); print('ready', file=pipe, flush=True); time.sleep(60); pipe.write('!')"
    )
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    process = subprocess.Popen([sys.executable, "-c", parent], text=True, start_new_session=True)
    with pipe.open() as reader:
        assert reader.readline() == "ready\n"
        end(process)
        assert reader.read() == ""
    assert process.wait() != 0


@pytest.mark.slow
def test_an_environment_is_its_own_and_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.peers.environment.ENVIRONMENTS", tmp_path / "peers")
    script = tmp_path / "script.py"
    script.write_text(
        "import importlib.util, json, sys\n"
        "given = json.load(sys.stdin)\n"
        "print('a library says something')\n"
        "print(json.dumps({'twice': 2 * given['one'], 'numpy': importlib.util.find_spec('numpy') is not None}))\n"
    )
    found = in_environment("bare", (), script, {"one": 1}, timeout=60)
    assert found == {"twice": 2, "numpy": False}
    mark = tmp_path / "peers" / "bare" / "requirements.txt"
    before = mark.stat().st_mtime_ns
    in_environment("bare", (), script, {"one": 1}, timeout=60)
    assert mark.stat().st_mtime_ns == before
    script.write_text("raise SystemExit('no')\n")
    with pytest.raises(Unavailable, match="bare: the measurement failed"):
        in_environment("bare", (), script, {}, timeout=60)
    script.write_text("import time; time.sleep(60)\n")
    with pytest.raises(Unavailable, match="took more than 1 seconds"):
        in_environment("bare", (), script, {}, timeout=1)
