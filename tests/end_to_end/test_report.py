"""`attrpriv report`: one page, from public facts alone, that says what a person must know, for everybody to read."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from attrpriv.cli.report import write_report
from attrpriv.session.session import Session
from tests.end_to_end.browser import chromium, looked_at, printed
from tests.end_to_end.material import attrpriv

ROOT = Path(__file__).resolve().parents[2]
PLANTED = 987_654_321
NASTY = "<script>alert('x')</script>"


def school(place: Path, **source: str) -> Path:
    """The students' policy, with a table in which every row has a value that is nowhere else."""
    policy = yaml.safe_load((ROOT / "examples" / "students" / "students.yaml").read_text(encoding="utf-8"))
    policy |= {"source": source} if source else {}
    path = place / "students.yaml"
    path.write_text(yaml.safe_dump(policy, sort_keys=False), encoding="utf-8")
    table = {"weight": [PLANTED] * 10_000, "income": [PLANTED + 1] * 10_000}
    pq.write_table(pa.table(table), place / "students.parquet")
    return path


def page(policy: Path) -> str:
    out = policy.with_suffix(".html")
    write_report(policy, out, force=True)  # what the command calls
    return out.read_text(encoding="utf-8")


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.headings: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.opened.append(tag)

    def handle_data(self, data: str) -> None:
        if self.opened and self.opened[-1] in ("h1", "h2", "h3") and data.strip():
            self.headings.append(data.strip())


def parsed(html: str) -> _Tags:
    tags = _Tags()
    tags.feed(html)
    return tags


def test_it_says_what_an_approver_must_know(tmp_path: Path) -> None:
    html = page(school(tmp_path, **{"assume.sd": "national survey 2024"}))
    assert [one for one in parsed(html).headings if one[0].isupper()] == [
        *("Release of avg(weight)", "Summary", "Signatures", "What an outsider could learn", "What readers get"),
        *("The assumptions, to be ticked", "From whom it is hidden", "Where each number comes from"),
        *("What if a number is wrong?", "Who could still learn what", "Earlier releases", "The policy", "Commands"),
    ]
    assert "70.0%" in html
    assert "at most e^1 (about 2.72) times as likely" in html
    assert "at most 54.7%" in html
    assert "is what the proof guarantees" in html  # 52.3% at 100 apart, where the exact answers reveal 52.1%
    assert html.count("national survey 2024") >= 2  # both standard deviations; and the policy itself
    assert html.count(">missing<") == 8
    assert "8 of 10 numbers name no source" in html
    assert Session(policy=tmp_path / "students.yaml").policy.digest in html


def test_nothing_of_the_table_is_in_it_and_none_of_it_is_read(tmp_path: Path) -> None:
    path = school(tmp_path)
    html = page(path)
    for value in (PLANTED, PLANTED + 1):
        assert str(value) not in html
        assert f"{value:,}" not in html
    (tmp_path / "students.parquet").unlink()  # the policy declares the number of rows
    assert page(path).replace(" Names and types of columns were not checked.", "") == html


def test_equal_inputs_make_equal_pages(tmp_path: Path) -> None:
    path = school(tmp_path)
    assert page(path) == page(path)


def test_no_script_no_request_and_names_are_names(tmp_path: Path) -> None:
    name = "w<script>alert</script>"
    text = json.dumps(yaml.safe_load(school(tmp_path).read_text(encoding="utf-8"))).replace("weight", name)
    made = json.loads(text) | {"release": [f'avg("{name}")'], "source": {"assume.sd": NASTY}}
    path = tmp_path / "nasty.yaml"
    path.write_text(yaml.safe_dump(made), encoding="utf-8")
    (tmp_path / "students.parquet").unlink()
    html = page(path)
    tags = parsed(html)
    assert "script" not in tags.opened
    assert not {"link", "img", "iframe", "object"} & set(tags.opened)
    assert "&lt;script&gt;" in html
    assert set(re.findall(r"https?://[^\s\"'<)]+", html)) == set()
    assert not re.search(r"url\(|@import|\son\w+=", html)
    assert "default-src 'none'" in html


def test_earlier_releases_and_their_budget_are_shown(tmp_path: Path) -> None:
    path = school(tmp_path)
    assert "Nothing has been released of this table" in page(path)
    table = {"weight": [150, 151] * 5_000, "income": [60_000, 61_000] * 5_000}
    pq.write_table(pa.table(table), tmp_path / "students.parquet")
    with Session(policy=path) as session:
        released = session.release("avg(weight)", "gaussian", spend=0.5)
        head = session.ledger.head
    html = page(path)
    assert str(head) in html
    assert "The ledger holds these answers: they are repeated as they are" in html  # what is planned is for a first release
    assert "What is left of the budget" in html
    assert f"{released.value:.2f}"[:5] in html


def test_a_policy_that_proves_nothing_has_a_page_that_says_so(tmp_path: Path) -> None:
    policy = yaml.safe_load(school(tmp_path).read_text(encoding="utf-8"))
    path = tmp_path / "refused.yaml"
    del policy["bounds"]
    path.write_text(yaml.safe_dump({**policy, "release": ["median(weight)"]}), encoding="utf-8")
    assert "Nothing can be released with the policy as it is" in page(path)


def test_a_view_has_a_page(tmp_path: Path) -> None:
    path = tmp_path / "view.yaml"
    told = {"attrpriv": 1, "data": "rows.parquet", "rows": 1000, "epsilon": 1.0}
    path.write_text(
        yaml.safe_dump({**told, "protect": [{"secret": "share(sex = 'F')", "between": [0.3, 0.6]}], "release": ["avg(age)"]}),
        encoding="utf-8",
    )
    html = page(path)
    assert "What the view keeps" in html
    assert "It keeps" in html
    assert "at most 50.0% right" in html


def test_a_view_that_is_not_drawn_is_not_what_readers_get(tmp_path: Path) -> None:
    """A count with noise, of a share that a view could hide as well."""
    path = tmp_path / "hospital.yaml"
    path.write_text((ROOT / "examples" / "hospital" / "hospital.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    html = page(path)
    assert "(laplace)" in html
    assert "It keeps" not in html


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    path = school(tmp_path)
    for out, said in (("report.txt", "must end in .html"), ("no/report.html", "is not there")):
        done = attrpriv("report", path, "--out", tmp_path / out, folder=tmp_path)
        assert (done.returncode, said in done.stderr.decode()) == (2, True)
    page(path)
    assert attrpriv("report", path, "--out", path.with_suffix(".html"), folder=tmp_path).returncode == 2
    assert attrpriv("report", path, folder=tmp_path).returncode == 2
    told = json.loads(attrpriv("report", path, "--out", "b.html", "--json", folder=tmp_path).stdout)
    assert (told["ok"], told["numbers"], told["without_source"]) == (True, 10, 10)


# ---------------------------------------------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    chromium()
    return page(school(tmp_path_factory.mktemp("page")))


@pytest.mark.parametrize(("width", "dark"), [(390, True), (1440, False)], ids=["telephone, dark", "desk, light"])
def test_everybody_can_read_it(html: str, tmp_path: Path, width: int, dark: bool) -> None:
    found = looked_at(html, tmp_path, width=width, dark=dark)
    assert found["violations"] == []
    assert found["passes"] > 25
    assert (found["dark"], found["inner"]) == (dark, width)
    assert found["scroll"] <= width


def test_the_browser_would_notice(html: str, tmp_path: Path) -> None:
    wrong = html.replace(' lang="en"', "").replace("<main>", '<main><p style="width:900px;color:#ccc">Too faint to read</p>')
    found = looked_at(wrong, tmp_path, width=390, dark=False)
    assert {one.partition(":")[0] for one in found["violations"]} >= {"html-has-lang", "color-contrast"}
    assert found["scroll"] > 390


def test_no_heading_is_stranded_at_the_end_of_a_sheet(html: str, tmp_path: Path) -> None:
    sheets = printed(html, tmp_path)
    assert len(sheets) > 3
    ends = [[line.strip() for line in sheet if line.strip()][-1] for sheet in sheets]
    assert not set(ends) & set(parsed(html).headings)
    assert not [line for line in ends if line.startswith(("Released mechanism", "Number value", "Two values exact", "Off by"))]
