"""docs/paper.md leaves nothing of the paper out, and quotes its tables as they are.

The paper's source counts its items; the page has to name each. Its doctests run in `test_docs.py`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.unit.test_docs import ROOT, blocks, section

PAGE = "docs/paper.md"
# How many of each kind the paper has, and how its source marks them; `\n` keeps what is commented out from counting.
ITEMS = {
    "Definition": (10, r"\n\s*\\begin{definition}"),
    "Theorem": (5, r"\n\s*\\begin{(?:theorem|restatable)}"),
    "Algorithm": (5, r"\n\s*\\begin{algorithm}"),
    "Example": (3, r"\n\s*\\begin{example}"),
    "Table": (2, r"\n\s*\\begin{table}"),
}


@pytest.fixture(scope="module")
def source(shared: Path) -> str:
    path = shared / "attribute-privacy-paper.tex"
    if not path.is_file():
        pytest.skip("needs the paper's source in ../shared")
    return path.read_text(encoding="utf-8")


def rows() -> list[str]:
    """The lines of the table of all items."""
    return [line for line in section(PAGE, "All of it in one table").splitlines() if line.startswith("| ")]


@pytest.mark.parametrize("kind", ITEMS)
def test_every_item_of_the_paper_has_a_row(kind: str) -> None:
    named = {int(found[1]) for row in rows() if (found := re.match(rf"\| {kind} (\d+)\b", row))}
    assert named == set(range(1, ITEMS[kind][0] + 1))


@pytest.mark.parametrize("kind", ITEMS)
def test_the_paper_has_as_many_items(kind: str, source: str) -> None:
    number, mark = ITEMS[kind]
    assert len(re.findall(mark, source)) == number


def test_every_row_says_what_runs_it() -> None:
    for row in rows():
        item, call, *_ = (cell.strip() for cell in row.strip("|").split("|"))
        assert call or item.startswith("**"), row


@pytest.mark.parametrize("number", [1, 2])
def test_the_tables_are_quoted_as_they_are(number: int, source: str) -> None:
    table = re.findall(r"\n\s*\\begin{table}.*?\\end{table}", source, flags=re.DOTALL)[number - 1]
    laws = [line for line in table.splitlines() if "P(F(X)=j" in line]
    printed = [[float(digits) for digits in re.findall(r"&(0\.\d{4})", line)] for line in laws]
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    quoted = re.search(r">>> published = ({.*?^\.\.\. })", text, flags=re.DOTALL | re.MULTILINE)
    assert quoted is not None
    assert ast.literal_eval(re.sub(r"^\.\.\. ", "", quoted[1], flags=re.MULTILINE))[number] == printed


def test_each_of_the_nine_corrections_has_a_counterexample_that_runs() -> None:
    headings = re.findall(r"^### (\d)\. (.+)$", section(PAGE, "Nine corrections"), flags=re.MULTILINE)
    assert [int(number) for number, _ in headings] == list(range(1, 10))
    for number, title in headings:
        _, told, rest = section(PAGE, f"{number}. {title}").partition("*Counterexample.*")
        shown, here, _ = rest.partition("*Here*")
        assert told, title
        assert here, title
        assert any(block.language == "python" for block in blocks(shown)), title
