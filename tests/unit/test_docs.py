"""The documentation tells the truth: its examples run, its links lead somewhere, its lists are those of the code.

In README.md, the tutorial and the example's README every block runs in order in one directory, as a reader would: a complete
policy is saved (under the name on its first line, if there is one), a console block is executed, a Python block is a doctest.
On the other pages the Python blocks are doctests.
"""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from attrpriv.assumptions.chain import Chain
from attrpriv.assumptions.channel import Channel
from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.gaussian import Gaussian, Tolerance
from attrpriv.assumptions.groups import Groups
from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.assumptions.records import Records
from attrpriv.cli.app import app
from attrpriv.demo.school import students_policy
from attrpriv.engines import public_cells, scan, tables, tally
from attrpriv.engines.view import draw as view
from attrpriv.engines.view import sorted_rows as view_sorted
from attrpriv.engines.view import values as view_values
from attrpriv.methods.base.tally import OUTSIDE
from attrpriv.policy import Policy
from attrpriv.problem.reference import Reference
from attrpriv.problem.secret import Secret
from attrpriv.session import view_estimates
from attrpriv.session.table_reads import OTHER_SIZE
from tests.end_to_end.material import own_methods

ROOT = Path(__file__).resolve().parents[2]
SCHOOL = Path("examples/students")
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
OTHER_PAGES = sorted(ROOT.glob("*.md"))
# Pages to follow from top to bottom, with the directory in which their reader is.
FOLLOWED = {
    "README.md": Path(),
    "docs/guide/counts.md": Path(),
    "docs/guide/first-release.md": Path(),
    "docs/guide/monthly-release.md": Path(),
    "docs/guide/transport.md": SCHOOL,
    "docs/guide/two-secrets.md": SCHOOL,
    "examples/activity/README.md": Path("examples/activity"),
    "examples/hospital/README.md": Path("examples/hospital"),
    "examples/laws/README.md": Path("examples/laws"),
    "examples/own_method/README.md": Path("examples/own_method"),
    "examples/paper/README.md": Path("examples/paper"),
    "examples/students/README.md": SCHOOL,
}
# A complete policy, and the name that its first line may give it.
POLICY = re.compile(r"(?:# (\S+\.yaml)\n)?attrpriv:")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block: the word after its fence, its text, and the line it starts on."""

    language: str
    text: str
    line: int


def blocks(text: str) -> list[Block]:
    found = re.finditer(r"^```([^\n]*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [Block(match[1].strip(), match[2], text.count("\n", 0, match.start()) + 1) for match in found]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def pages(language: str) -> list[Path]:
    return [page for page in PAGES if any(block.language == language for block in blocks(page.read_text(encoding="utf-8")))]


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the examples, with the students."""
    place = tmp_path_factory.mktemp("docs")
    shutil.copytree(
        ROOT / "examples", place / "examples", ignore=shutil.ignore_patterns("*.parquet", "*.ledger*", "__pycache__")
    )
    load(ROOT / SCHOOL / "generate.py").main(["--out", str(place / SCHOOL / "students.parquet")])
    return place


@pytest.fixture
def go(school: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Put the reader of a page into a directory of a fresh copy of the repository."""
    shutil.copytree(school, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return lambda directory: monkeypatch.chdir(Path.cwd() / directory)


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ------------------------------------------------------------------------------------------------------------- examples


@pytest.mark.parametrize("page", [page for page in pages("python") if name_of(page) not in FOLLOWED], ids=name_of)
def test_python_examples(page: Path, go: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch) -> None:
    go(SCHOOL)
    module = ModuleType("page")  # what a page defines is found under its module's name, as in a file or a notebook
    monkeypatch.setitem(sys.modules, "page", module)
    names = vars(module)
    with own_methods():
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.language == "python":
                run_doctest(page, block, names)


@pytest.mark.parametrize("page", FOLLOWED)
def test_a_reader_who_follows_the_page(page: str, go: Callable[[Path], None]) -> None:
    go(FOLLOWED[page])
    names: dict[str, Any] = {}
    for block in blocks((ROOT / page).read_text(encoding="utf-8")):
        if block.language == "yaml" and (policy := POLICY.match(block.text)):
            Path(policy[1] or "students.yaml").write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            run_console(block, go)
        elif block.language == "python":
            run_doctest(ROOT / page, block, names)


def run_doctest(page: Path, block: Block, names: dict[str, Any]) -> None:
    """Run one block; `names` goes from block to block."""
    assert block.text.startswith(">>> "), f"{name_of(page)}:{block.line}: a Python block must be a doctest"
    test = doctest.DocTestParser().get_doctest(block.text, names, name_of(page), str(page), block.line)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


def run_console(block: Block, go: Callable[[Path], None]) -> None:
    """Run each `$` line; every line shown below it must be in what it printed."""
    for command, shown in commands(block.text):
        words = shlex.split(command, comments=True)
        if words[0] in ("cd", "mkdir"):
            go(Path(words[1])) if words[0] == "cd" else Path(words[1]).mkdir()
            continue
        code, printed = run_command(words)
        expected = re.search(r"# exit code (\d)$", command)
        assert code == (int(expected[1]) if expected else 0), f"{command}: {printed}"
        if words[:2] != ["attrpriv", "release"] or code:  # a released value differs each time
            assert missing_lines(shown, printed) == [], printed


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block, with the lines shown below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        yield command, shown


def run_command(words: list[str]) -> tuple[int, str]:
    if words[0] == "attrpriv":
        result = CliRunner().invoke(app, words[1:])
        return result.exit_code, result.output
    assert words[0] == "python", words
    done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def missing_lines(shown: list[str], printed: str) -> list[str]:
    """The shown lines that were not printed; spaces do not matter, and `...` at the end of a line stands for the rest."""
    squeezed = [" ".join(line.split()) for line in printed.splitlines()]
    lacking = []
    for line in shown:
        wanted = " ".join(line.split())
        if wanted.endswith("..."):
            if not any(there.startswith(wanted[:-3].rstrip()) for there in squeezed):
                lacking.append(line)
        elif wanted not in squeezed:
            lacking.append(line)
    return lacking


def test_a_line_that_is_not_printed_is_noticed() -> None:
    assert missing_lines(["a  b", "c ...", "..."], "a b\nc d e\n") == []
    assert missing_lines(["a  c", "d ..."], "a b\nc d e\n") == ["a  c", "d ..."]


def test_a_wrong_example_is_noticed() -> None:
    with pytest.raises(AssertionError, match="Expected"):
        run_doctest(ROOT / "README.md", Block("python", ">>> 1 + 1\n3\n", 1), {})


# ------------------------------------------------------------------------------------------------------------- policies


def policies() -> list[Any]:
    return [
        pytest.param(block.text, id=f"{name_of(page)}:{block.line}")
        for page in PAGES
        for block in blocks(page.read_text(encoding="utf-8"))
        if block.language == "yaml" and POLICY.match(block.text)
    ]


@pytest.mark.parametrize("text", policies())
def test_a_complete_policy_loads(text: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(text, encoding="utf-8")
    assert Policy.load(path).protect


def test_the_policy_in_the_readme_is_the_example() -> None:
    told = [block.text for block in blocks((ROOT / "README.md").read_text(encoding="utf-8")) if block.language == "yaml"]
    shown = next(text for text in told if "students.parquet" in text)
    bare = [
        re.sub(r"\s*#.*", "", text).strip() for text in (shown, (ROOT / SCHOOL / "students.yaml").read_text(encoding="utf-8"))
    ]
    assert bare[0] == bare[1]


def without_comments(text: str) -> str:
    return re.sub(r"\s*#.*", "", text).strip()


def test_the_example_is_the_policy_of_the_demonstration() -> None:
    packaged = ROOT / "src" / "attrpriv" / "demo" / "students.yaml"
    assert (ROOT / SCHOOL / "students.yaml").read_bytes() == packaged.read_bytes() == students_policy().encode()


def test_the_example_writes_as_many_students_as_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "few.parquet"
    load(ROOT / SCHOOL / "generate.py").main(["--rows", "7", "--out", str(out)])
    assert tables.open_table(out).rows == 7
    assert capsys.readouterr().out == "wrote few.parquet: 7 synthetic students\n"


@pytest.mark.parametrize("rows", ["1", "-5", "many"])
def test_the_example_refuses_a_bad_number_of_rows(rows: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        load(ROOT / SCHOOL / "generate.py").main(["--rows", rows, "--out", str(tmp_path / "x.parquet")])
    assert "--rows" in capsys.readouterr().err
    assert not (tmp_path / "x.parquet").exists()


# ------------------------------------------------------------------------------------------------------ lists and texts


def section(page: str, heading: str) -> str:
    """The text below a heading, up to the next one of the same or a higher level."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(rf"^(#+) {re.escape(heading)}$", text, flags=re.MULTILINE)
    assert found, f"{page} has no heading {heading!r}"
    rest = text[found.end() :]
    end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, flags=re.MULTILINE)
    return rest[: end.start()] if end else rest


def first_cells(text: str) -> list[str]:
    """The words in the first column of the tables in a text that stand in backquotes there."""
    return re.findall(r"^\| \[?`([^`|]+)`\]?(?:\([^)]*\))? \|", text, flags=re.MULTILINE)


def test_the_commands_documented_are_the_commands() -> None:
    group = typer.main.get_command(app)
    page = "docs/guide/commands.md"
    documented = first_cells((ROOT / page).read_text(encoding="utf-8").partition("## Exit codes")[0])
    assert sorted(documented) == sorted(group.commands)  # type: ignore[attr-defined]
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        usage = section(page, name)
        for parameter in command.params:
            wanted = parameter.opts[-1] if parameter.opts[-1].startswith("--") else parameter.metavar
            assert wanted in usage or wanted == "--help", f"{name} has {wanted}"


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("Keys", Policy),
        ("`protect`: a secret", Secret),
        ("`reference`: public records or laws", Reference),
        ("`assume`: Gaussian rows", Gaussian),
        ("`tolerance`: how far the truth may be from these numbers", Tolerance),
        ("`assume`: counts", Counts),
        ("`assume`: groups", Groups),
        ("`assume`: a chain", Chain),
        ("`assume`: a channel", Channel),
        ("`assume`: records", Records),
        ("`assume`: hierarchy", Hierarchy),
        ("`assume`: a parameter network", ParameterNetwork),
    ],
)
def test_the_keys_documented_are_the_keys(heading: str, model: type[Policy]) -> None:
    text = section("docs/guide/policy.md", heading).partition("\n### ")[0]
    assert sorted(first_cells(text)) == sorted(model.model_fields)


@pytest.mark.parametrize(
    "text",
    [
        scan.NOT_FINITE,
        scan.ENGINE_FAILED,
        tables.UNREADABLE_PARQUET,
        tables.UNREADABLE_CSV,
        tables.UNREADABLE_FRAME,
        tally.UNKNOWN_CATEGORY,
        OUTSIDE,
        OTHER_SIZE,
        view.OUT_OF_RANGE,
        view.NO_CELL,
        view.TOO_FEW,
        view_sorted.TOO_FAR,
        public_cells.SAME_TABLE,
        view_values.NO_GROUP,
        view_estimates.NO_HITS,
        view_estimates.NO_ANSWER,
        view.NOT_UNIQUE,
        view.CHANGED,
        view.ENGINE_FAILED,
    ],
)
def test_the_texts_of_announced_failures_are_documented(text: str) -> None:
    assert f"    {text}\n" in (ROOT / "docs" / "guide" / "errors.md").read_text(encoding="utf-8")


# ---------------------------------------------------------------------------------------------------------------- links


def anchors(page: Path) -> set[str]:
    """The names under which a page's headings can be reached."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    found = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and (there.suffix != ".md" or anchor not in anchors(there))):
            found.append(target)
    return found


@pytest.mark.parametrize("page", sorted({*PAGES, *OTHER_PAGES}), ids=name_of)
def test_relative_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n[a](page.md) [b](#one) [c](#two) [d](nowhere.md) [e](page.md#two) [f](https://example.org/x)\n")
    assert broken_links(page) == ["#two", "nowhere.md", "page.md#two"]


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    linked = {(ROOT / "docs" / target).resolve() for target in re.findall(r"\]\(([^)#\s]+)\)", index)}
    assert {page for page in (ROOT / "docs").rglob("*.md") if page.name != "README.md"} <= linked


def test_every_cited_key_is_in_the_bibliography() -> None:
    keys = set(
        re.findall(r"^@\w+{([^,]+),", (ROOT / "docs" / "references.bib").read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
    cited = {key for page in PAGES for key in re.findall(r"`([a-z]+\d{4}[a-z]+)`", page.read_text(encoding="utf-8"))}
    assert cited
    assert cited <= keys


def modules() -> list[str]:
    """The dotted names of all modules and packages."""
    files = (ROOT / "src").rglob("*.py")
    return sorted(".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__") for path in files)


def exists(name: str) -> bool:
    """Whether a dotted name is the end of a module's name, or something defined in such a module."""
    owner, _, last = name.rpartition(".")
    ends = [module for module in modules() if f".{module}".endswith(f".{owner}")]
    return any(f".{module}".endswith(f".{name}") for module in modules()) or any(
        hasattr(importlib.import_module(module), last) for module in ends
    )


def test_every_name_of_the_code_exists() -> None:
    """Names such as `methods.gaussian.plan`, `worst_case.worst` or `gaussian.plan._layout`."""
    words = {part for module in modules() for part in module.split(".")}
    lacking = []
    for page in PAGES:
        for name in re.findall(r"`([a-z_]+(?:\.[A-Za-z_]+)+)`", page.read_text(encoding="utf-8")):
            is_code = name.partition(".")[0] in words and not name.endswith((".py", ".yaml", ".md"))
            if is_code and not exists(name):
                lacking.append(f"{name_of(page)}: {name}")
    assert lacking == []


def test_a_name_that_does_not_exist_is_noticed() -> None:
    assert exists("methods.gaussian")
    assert exists("gaussian.plan._layout")
    assert not exists("gaussian.plan.budgets")
    assert not exists("methods.gaussians")


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


# -------------------------------------------------------------------------------------------------------------- picture


def test_the_picture_refers_to_nothing_outside() -> None:
    svg = (ROOT / "docs" / "images" / "demo.svg").read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", svg))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert "@font-face" not in svg
    assert "attrpriv:&#160;exact&#160;calibration" in svg


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_is_captured_with_its_colours(tmp_path: Path) -> None:
    script = load(ROOT / "scripts" / "capture_terminal.py")
    out = tmp_path / "x.svg"
    script.main([str(out), "--title", "a title", "--", sys.executable, "-c", "print('\\x1b[1;32mgreen\\x1b[0m plain')"])
    svg = out.read_text(encoding="utf-8")
    assert "a&#160;title" in svg
    assert "green" in svg
    assert "font-weight: bold" in svg
    assert "cdnjs" not in svg


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_command_that_fails_is_not_drawn(tmp_path: Path) -> None:
    script = load(ROOT / "scripts" / "capture_terminal.py")
    with pytest.raises(SystemExit, match="exit code 3"):
        script.main([str(tmp_path / "x.svg"), "--", sys.executable, "-c", "raise SystemExit(3)"])
    assert not (tmp_path / "x.svg").exists()


def test_a_picture_that_would_fetch_something_is_refused() -> None:
    script = load(ROOT / "scripts" / "capture_terminal.py")
    with pytest.raises(SystemExit, match="outside"):
        script.self_contained('<svg xmlns="http://www.w3.org/2000/svg"><image href="https://example.org/x.png"/></svg>')
