"""What a page of another site, a file of the folder or another program may try against a studio, and what it gets."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from attrpriv.policy.strict_yaml import dump_strict, load_strict
from tests.end_to_end.material import attrpriv, contents, school
from tests.end_to_end.studio_server import Browser, opened, studio
from tests.end_to_end.test_studio import staff

FORM = "application/x-www-form-urlencoded"
SCRIPT = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'"
SCREENS = ("table", "hide", "know", "publish", "compare", "files", "release", "record", "report")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("attacked") / "folder"
    made.mkdir()
    school(made)
    (made.parent / "outside.yaml").write_text("attrpriv: 1\nprotect:\n  - secret: precious\n", encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def browser(place: Path) -> Iterator[Browser]:
    with opened(place) as found:
        yield found


def raw(browser: Browser, *lines: str, body: bytes = b"", host: str | None = "", seconds: float = 5.0) -> bytes:
    """What comes back for these bytes. With the cookie; `host`: by default the right one."""
    known = [] if host is None else [f"Host: {host or browser.host}"]
    head = "\r\n".join([lines[0], *known, *lines[1:], f"Cookie: {browser.cookie}", "", ""])
    with socket.create_connection(("127.0.0.1", int(browser.host.partition(":")[2])), timeout=seconds) as sock:
        sock.sendall(head.encode("latin-1") + body)
        found = b""
        try:
            while more := sock.recv(65_536):
                found += more
        except (TimeoutError, ConnectionResetError):
            pass
    return found


def key_of(browser: Browser) -> str:
    found = re.search(r'name="key" value="([^"]+)"', browser.get("/").text)
    assert found is not None
    return found[1]


# ---------------------------------------------------------------------------------------------------------- another page


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost"}, 421),
        ({"Host": "127.0.0.1"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "[::1]:80"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:1"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Cookie": ""}, 403),
        ({"Cookie": "other=1"}, 403),
    ],
)
@pytest.mark.parametrize("path", ["/", "/p/students.yaml/files", "/p/students.yaml/at", "/static/style.css", "/none"])
def test_another_page_gets_nothing(browser: Browser, headers: dict[str, str], status: int, path: str) -> None:
    page = browser.ask("GET", path, headers=headers)
    assert page.status == status
    assert page.text.startswith("refused: ")
    assert "students" not in page.text
    assert "access-control-allow-origin" not in page.headers


def test_the_same_host_in_another_spelling_or_twice_is_another_one(browser: Browser) -> None:
    port = browser.host.partition(":")[2]
    for host in (f"127.1:{port}", f"2130706433:{port}", f"127.0.0.1:0{port}", f"user@127.0.0.1:{port}", f"LOCALHOST:{port}"):
        assert browser.ask("GET", "/", headers={"Host": host}).status == 421
    assert b" 200 " not in raw(browser, "GET / HTTP/1.1", "Host: evil.example", "Connection: close").split(b"\r\n")[0]
    assert b" 200 " not in raw(browser, "GET / HTTP/1.1", "Connection: close", host=None).split(b"\r\n")[0]
    assert b" 200 " not in raw(browser, "GET / HTTP/1.0", host=None).split(b"\r\n")[0]
    assert b" 421 " in raw(browser, "GET http://evil.example/ HTTP/1.1", "Connection: close", host="evil.example")


@pytest.mark.parametrize("path", ["/start", "/start?token=", "/start?token=x", "/start?token=x&token=y", "/start/?token=x"])
def test_the_start_address_needs_its_token(browser: Browser, path: str) -> None:
    page = browser.ask("GET", path, headers={"Cookie": ""})
    assert page.status == 403
    assert "set-cookie" not in page.headers


def test_the_cookie_is_strict_and_out_of_reach_of_scripts(browser: Browser) -> None:
    page = browser.ask("GET", browser.address.removeprefix(browser.origin), headers={"Cookie": ""})
    cookie = page.headers["set-cookie"].lower()
    assert page.status == 303
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in cookie.split(";")[1:]}
    assert "domain" not in cookie
    token = urlsplit(browser.address).query.removeprefix("token=")
    assert token not in page.headers["location"]
    assert token not in page.headers["set-cookie"]
    assert token not in browser.get("/").text


def test_a_cookie_of_another_port_does_not_hide_the_right_one(browser: Browser) -> None:
    """Cookies know no ports: a page of another program on this machine can set one of this name."""
    name = browser.cookie.partition("=")[0]
    for both, status in (
        (f"{name}=x; {browser.cookie}", 200),
        (f"{browser.cookie}; {name}=x", 200),
        (f"{name}=x; {name}=y", 403),
    ):
        assert browser.ask("GET", "/", headers={"Cookie": both}).status == status


def test_no_header_of_a_proxy_is_believed(browser: Browser) -> None:
    told = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example", "X-HTTP-Method-Override": "POST"}
    page = browser.ask("GET", "/p/students.yaml/files/", headers=told)
    assert (page.status, page.headers.get("location")) == (404, None)
    assert browser.ask("GET", "/p/students.yaml/undo", headers=told).status == 404


def test_no_page_can_be_framed_kept_or_run_other_scripts(browser: Browser) -> None:
    for path in ("/", "/p/students.yaml/files", "/static/studio.js", "/none"):
        for headers in ({}, {"Host": "evil.example"}, {"Cookie": ""}):
            found = browser.ask("GET", path, headers=headers).headers
            policy = found["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "form-action 'self'" in policy
            assert "unsafe" not in policy
            assert found["x-frame-options"] == "DENY"
            assert found["cache-control"] == "no-store"
            assert found["x-content-type-options"] == "nosniff"
            assert "server" not in found


# ------------------------------------------------------------------------------------------------------------------ forms


@pytest.mark.parametrize(
    ("headers", "change", "status"),
    [
        ({"Origin": ""}, {}, 403),
        ({"Origin": "http://evil.example"}, {}, 403),
        ({"Origin": "null"}, {}, 403),
        ({"Sec-Fetch-Site": "none"}, {}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, {}, 403),
        ({"Cookie": ""}, {}, 403),
        ({}, {"key": ""}, 403),
        ({}, {"key": "x" * 43}, 403),
        ({}, {"key": "é"}, 403),
        ({"Content-Type": "multipart/form-data; boundary=x"}, {}, 415),
        ({"Content-Type": "text/plain"}, {}, 415),
        ({"Content-Type": "application/json"}, {}, 415),
        ({"Content-Type": ""}, {}, 415),
    ],
)
def test_a_form_that_no_page_of_this_studio_sent_changes_nothing(
    browser: Browser, place: Path, headers: dict[str, str], change: dict[str, str], status: int
) -> None:
    before = contents(place)
    fields = {"key": key_of(browser), "do": "make", "table": "students.parquet"} | change
    sent = {"Origin": browser.origin, "Sec-Fetch-Site": "same-origin"} | headers
    assert browser.ask("POST", "/", urlencode(fields).encode(), sent).status == status
    assert contents(place) == before


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"])
def test_other_methods_are_refused(browser: Browser, method: str) -> None:
    assert browser.ask(method, "/", headers={"Origin": browser.origin}).status == 405


def test_a_body_that_is_too_long_is_not_read_to_its_end(browser: Browser, place: Path) -> None:
    before, sent = contents(place), ("Content-Type: " + FORM, f"Origin: {browser.origin}", "Connection: close")
    big = b"a=" + b"b" * 70_000
    assert b" 413 " in raw(browser, "POST / HTTP/1.1", *sent, f"Content-Length: {len(big)}", body=big)
    assert b" 413 " in raw(browser, "POST / HTTP/1.1", *sent, "Content-Length: 99999999999999", body=b"a")
    chunk = b"%x\r\n%s\r\n" % (len(big), big)
    assert b" 413 " in raw(browser, "POST / HTTP/1.1", *sent, "Transfer-Encoding: chunked", body=chunk + b"0\r\n\r\n")
    many = "&".join(f"f{k}=" for k in range(5_000)).encode()
    assert b" 400 " in raw(browser, "POST / HTTP/1.1", *sent, f"Content-Length: {len(many)}", body=many)
    for body in (b"key=%ff%fe", b"\xff\xfe", b"key=%00", b"&&&==="):
        told = raw(browser, "POST / HTTP/1.1", *sent, f"Content-Length: {len(body)}", body=body)
        assert b" 400 " in told or b" 403 " in told
    assert contents(place) == before


def test_a_request_hidden_behind_another_one_is_not_answered(browser: Browser) -> None:
    """Two lengths, or a length beside chunks: a server that reads one and a proxy that reads the other would disagree."""
    hidden = b"GET /p/students.yaml/files HTTP/1.1\r\nHost: " + browser.host.encode() + b"\r\n\r\n"
    sent = ("Content-Type: " + FORM, f"Origin: {browser.origin}")
    both = raw(browser, "POST / HTTP/1.1", *sent, "Content-Length: 5", "Transfer-Encoding: chunked", body=b"0\r\n\r\n" + hidden)
    twice = raw(browser, "POST / HTTP/1.1", *sent, "Content-Length: 0", "Content-Length: 5", body=b"aaaaa" + hidden)
    odd = raw(browser, "POST / HTTP/1.1", *sent, "Transfer-Encoding: xchunked", body=b"0\r\n\r\n" + hidden)
    for told in (both, twice, odd):
        assert b"students.yaml" not in told
    injected = browser.ask("GET", "/p/%0d%0aSet-Cookie:%20a=b/table")
    assert "set-cookie" not in injected.headers
    long = raw(browser, "GET /" + "a" * 100_000 + " HTTP/1.1", "Connection: close")
    assert b" 200 " not in long.split(b"\r\n")[0]


# ------------------------------------------------------------------------------------------------------------ the folder


@pytest.mark.parametrize(
    "name",
    [
        *("../outside.yaml", "..%2foutside.yaml", "%2e%2e%2foutside.yaml", "..%5coutside.yaml", "%2fetc%2fpasswd"),
        *(
            "outside.yaml%00.yaml",
            "students.yaml%00",
            "link.yaml",
            "students.parquet",
            ".",
            "..",
            "%252e%252e%252foutside.yaml",
            "a" * 300 + ".yaml",
        ),
    ],
)
def test_only_policies_of_the_folder_have_pages(browser: Browser, place: Path, name: str) -> None:
    link = place / "link.yaml"
    if not link.is_symlink():
        link.symlink_to(place.parent / "outside.yaml")
    page = browser.ask("GET", f"/p/{name}/files")
    assert page.status == 404
    assert "precious" not in page.text
    assert "link.yaml" not in browser.get("/").text
    sent = urlencode({"key": key_of(browser), "do": "query", "query": "avg(weight)", "seen": ""}).encode()
    assert browser.ask("POST", f"/p/{name}/publish", sent, {"Origin": browser.origin}).status == 404
    assert (place.parent / "outside.yaml").read_text(encoding="utf-8").endswith("precious\n")


def test_static_files_are_the_two_that_there_are(browser: Browser) -> None:
    for name in ("..%2fsecurity.py", "../security.py", "security.py", "%2e%2e/security.py", "style.css%00", "."):
        assert browser.ask("GET", f"/static/{name}").status == 404


@pytest.mark.parametrize("name", [".{}.tmp", ".{}.new", ".{}.undo", ".{}.undo.tmp"])
def test_a_link_that_waits_for_a_temporary_file_is_not_written_through(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    policy = school(folder)
    outside = tmp_path / "outside.txt"
    outside.write_text('["precious"]', encoding="utf-8")
    (folder / name.format(policy.name)).symlink_to(outside)
    policy.chmod(0o640)
    with opened(folder) as browser:
        publish = browser.get(f"/p/{policy.name}/publish")
        assert "precious" not in publish.text
        done = browser.send(publish.form("Publish this query"), query="sum(weight)")
        assert done.status == 200
        assert "sum(weight)" in policy.read_text(encoding="utf-8")
        assert browser.send(done.form("Undo")).status == 200
    assert outside.read_text(encoding="utf-8") == '["precious"]'
    assert not policy.is_symlink()
    assert policy.stat().st_mode & 0o777 == 0o640
    assert "precious" not in policy.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"data": "../people.parquet"}, "data"),
        ({"data": "linked.parquet"}, "data"),
        ({"data": "sub/../../people.parquet"}, "data"),
        ({"data": "*/../../people*.parquet"}, "data"),
        ({"data": "postgresql://localhost/people"}, "data"),
        ({"ledger": "../people.ledger"}, "ledger"),
        ({"ledger": "linked.ledger"}, "ledger"),
        ({"assume": {"file": "../assumption.yaml"}}, "assume"),
        ({"assume": {"file": "linked.yaml"}}, "assume"),
        ({"assume": {"file": "named.yaml"}}, "assume"),
        ({"assume": {"kind": "parameter_network", "network": "/etc/passwd", "tolerance": 0}}, "assume"),
    ],
)
def test_a_policy_that_names_a_place_outside_is_refused(tmp_path: Path, change: dict[str, object], key: str) -> None:
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    policy = school(folder, **change)
    pq.write_table(pa.table({"weight": [1.0] * 400, "precious": [2.0] * 400}), tmp_path / "people.parquet")
    (tmp_path / "assumption.yaml").write_text("attrpriv: 1\nkind: gaussian\nmean: {precious: 1}\n", encoding="utf-8")
    network = f"attrpriv: 1\nkind: parameter_network\nnetwork: {tmp_path / 'assumption.yaml'}\ntolerance: 0\n"
    (folder / "named.yaml").write_text(network, encoding="utf-8")
    for link, to in (("parquet", "people.parquet"), ("ledger", "people.ledger"), ("yaml", "assumption.yaml")):
        (folder / f"linked.{link}").symlink_to(tmp_path / to)
    with opened(folder) as browser:
        for screen in SCREENS:
            page = browser.get(f"/p/{policy.name}/{screen}")
            assert "precious" not in page.text
            assert "unexpected" not in page.text
        page = browser.get(f"/p/{policy.name}/release")
        assert f"{key}: " in page.problem
        assert not [form for form in page.parsed.forms if form.button == "Release"]
    assert not (tmp_path / "people.ledger").exists()


def test_a_ledger_of_the_usual_name_that_leads_out_of_the_folder_is_not_written(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    policy = school(folder)
    (folder / "students.ledger").symlink_to(tmp_path / "elsewhere.ledger")
    with opened(folder) as browser:
        assert "ledger: must be in the folder" in browser.get(f"/p/{policy.name}/release").problem
    assert not (tmp_path / "elsewhere.ledger").exists()


def test_a_policy_that_repeats_itself_without_end_is_refused_at_once(tmp_path: Path) -> None:
    """Ten times ten times ten ...: a text of a few lines that no memory holds."""
    policy = school(tmp_path)
    lines = [f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]" for old, new in zip("abcdefghi", "bcdefghij", strict=True)]
    bomb = "data: students.parquet\na: &a [1, 2, 3]\n" + "\n".join(lines) + "\n"
    (tmp_path / "bomb.yaml").write_text(bomb, encoding="utf-8")
    (tmp_path / "deep.yaml").write_text("data: " + "[" * 5_000, encoding="utf-8")
    with opened(tmp_path) as browser:
        for name in ("bomb.yaml", "deep.yaml"):
            for screen in SCREENS:
                assert browser.get(f"/p/{name}/{screen}").status in (200, 404)
        assert browser.get(f"/p/{policy.name}/compare").status == 200


# ---------------------------------------------------------------------------------------------------------------- script


def test_names_and_comments_that_are_scripts_are_text_everywhere(tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)> 'q' \"d\" $(touch x); `touch y` & \\"
    table = tmp_path / f"{name}.parquet"
    pq.write_table(pa.table({SCRIPT: [1.0, 2.0] * 20, "weight": [1.0, 2.0] * 20, "javascript:alert(1)": ["a"] * 40}), table)
    (tmp_path / "policy.yaml").write_text(
        f"# {SCRIPT}\nattrpriv: 1\ndata: people.parquet\nepsilon: 1\nprotect:\n  - secret: mean(weight)\n    between: [1, 2]\n"
        f"assume:\n  kind: gaussian\n  sd: {{weight: 1}}\nsource:\n  assume.sd: {json.dumps(SCRIPT)}\n"
        "release:\n  - avg(weight)\n",
        encoding="utf-8",
    )
    pq.write_table(pa.table({SCRIPT: [1.0, 2.0] * 20, "weight": [1.0, 2.0] * 20}), tmp_path / "people.parquet")
    os.close(os.open(os.fsencode(tmp_path) + b"/\xff.csv", os.O_CREAT | os.O_WRONLY))
    os.close(os.open(os.fsencode(tmp_path) + b"/\xff.yaml", os.O_CREAT | os.O_WRONLY))
    with opened(tmp_path) as browser:
        made = browser.send(browser.get("/").form("Make a policy"), table=table.name)
        base = made.address.partition("/table")[0]
        pages = [browser.get("/"), made, *(browser.get(f"{one}/{s}") for one in (base, "/p/policy.yaml") for s in SCREENS)]
        pages += [browser.get(f"/p/policy.yaml/{quote(SCRIPT, safe='')}"), browser.get(f"/p/{quote(SCRIPT, safe='')}/table")]
        hide = browser.get("/p/policy.yaml/hide")
        pages.append(browser.send(hide.form("Hide this average"), column=SCRIPT, low=SCRIPT, high="2"))
        pages.append(browser.send(browser.get("/p/policy.yaml/publish").form("Publish this query"), query=SCRIPT))
        pages.append(browser.get(f"/p/policy.yaml/files?done={quote(SCRIPT)}"))
        command = re.findall(r"attrpriv check [^\n]*", browser.get(f"{base}/files").words.replace(" attrpriv", "\nattrpriv"))
    for page in pages:
        tags = page.parsed.tags
        assert {one["src"] for tag, one in tags if tag == "script"} <= {"/static/studio.js"}
        assert not [tag for tag, _ in tags if tag in ("img", "iframe", "object", "embed", "base", "style")]
        assert not [key for _, one in tags for key in one if key.startswith("on") or key == "style"]
        links = [one[key] for _, one in tags for key in ("href", "src", "action") if key in one]
        assert all(link.startswith(("/", "#")) or link == "data:," for link in links), links
        assert page.text.count("<script") == 1
    assert command
    folder = tmp_path / "typed"
    folder.mkdir()
    subprocess.run(["sh", "-c", command[0].replace("attrpriv check", "true")], cwd=folder, check=True, timeout=20)
    assert not list(folder.iterdir()), "a name that is typed as the page says runs nothing"


@pytest.mark.parametrize("view", [False, True])
def test_categories_of_public_rows_that_are_scripts_are_text_in_words_and_pictures(tmp_path: Path, view: bool) -> None:
    both = [SCRIPT, "M</svg><img src=x onerror=alert(1)>"]
    for name, rows in (("staff", 1_000), ("survey", 5_000)):
        staff(tmp_path / f"{name}.parquet", rows, rows)
        told = pq.read_table(tmp_path / f"{name}.parquet")
        kinds = pa.array([both[one == "M"] for one in told.column("gender").to_pylist()])
        pq.write_table(told.set_column(0, "gender", kinds), tmp_path / f"{name}.parquet")
    with opened(tmp_path) as browser:
        browser.send(browser.get("/").form("Make a policy"), table="staff.parquet")
        hide = browser.get("/p/staff.yaml/hide")
        if view:
            browser.send(hide.form("Hide everything"), columns=["gender"])
            know = browser.send(browser.get("/p/staff.yaml/know").form("Use this"), file="survey.parquet")
        else:
            browser.send(hide.form("Hide how"), column="gender", value=SCRIPT, low="25%", high="45%", within="2%")
            know = browser.send(browser.get("/p/staff.yaml/know").form("Fit"), file="survey.parquet", release="avg(hours)")
        assert know.status == 200
        pages = [know, *(browser.get(f"/p/staff.yaml/{screen}") for screen in SCREENS if screen != "report")]
    assert any("onerror" in page.words for page in pages)
    for page in pages:
        assert page.text.count("<script") == 1
        assert not [one for tag, one in page.parsed.tags if tag == "img" or any(key.startswith("on") for key in one)]
    assert "<figure" in pages[5].text


def test_what_a_page_says_to_type_is_never_an_option(tmp_path: Path) -> None:
    policy = school(tmp_path)
    policy.rename(tmp_path / "--help.yaml")
    with opened(tmp_path) as browser:
        page = browser.get("/p/--help.yaml/files")
    assert page.status == 200
    assert "attrpriv check ./--help.yaml" in page.words


# ------------------------------------------------------------------------------------------------------- before a release


def same_rows(folder: Path, kind: str) -> str:
    """The private table under another name."""
    private = folder / "students.parquet"
    name = {"itself": private.name, "csv": "public.csv"}.get(kind, "public.parquet")
    if kind == "link":
        (folder / name).symlink_to(private)
    elif kind == "hard link":
        (folder / name).hardlink_to(private)
    elif kind == "copy":
        (folder / name).write_bytes(private.read_bytes())
    elif kind == "shuffled":
        table = pq.read_table(private)
        pq.write_table(table.take(list(reversed(range(table.num_rows)))), folder / name)
    elif kind == "csv":
        pyarrow.csv.write_csv(pq.read_table(private), folder / name)
    return name


@pytest.mark.parametrize("kind", ["itself", "link", "hard link", "copy", "shuffled", "csv"])
def test_the_private_table_is_no_public_file(tmp_path: Path, kind: str) -> None:
    """Otherwise the pictures of the public rows would be pictures of the private ones."""
    policy = school(tmp_path)
    name = same_rows(tmp_path, kind)
    pq.write_table(pq.read_table(tmp_path / "students.parquet").slice(0, 3), tmp_path / "other.parquet")
    with opened(tmp_path) as browser:
        form = browser.get(f"/p/{policy.name}/know").form("Fit")
        page = browser.send(form, file=name)
        assert page.status == 422
        assert "must not be the private table" in page.problem or "private" in page.problem
        assert "<figure" not in page.text.partition("What the public records say")[2]
        assert not list(tmp_path.glob("*.assumption*"))


@pytest.mark.parametrize("kind", ["itself", "link", "copy", "shuffled"])
def test_the_private_table_is_no_reference(tmp_path: Path, kind: str) -> None:
    policy = school(tmp_path, protect=[{"secret": "columns(income)"}])
    said = load_strict(policy.read_text(encoding="utf-8"))
    assert isinstance(said, dict)
    policy.write_text(
        dump_strict({key: one for key, one in said.items() if key not in ("assume", "release")}), encoding="utf-8"
    )
    name = same_rows(tmp_path, kind)
    pq.write_table(pq.read_table(tmp_path / "students.parquet").slice(0, 3), tmp_path / "other.parquet")
    with opened(tmp_path) as browser:
        before = policy.read_bytes()
        page = browser.send(browser.get(f"/p/{policy.name}/know").form("Use this reference"), file=name)
        assert page.status == 422
        assert "private" in page.problem
        assert policy.read_bytes() == before


def test_two_confirmations_at_once_release_once(tmp_path: Path) -> None:
    policy = school(tmp_path)
    with studio(tmp_path) as (browser, _):
        browser.opened()
        form = browser.get(f"/p/{policy.name}/release").form("Release")
        with ThreadPoolExecutor(6) as pool:
            pages = list(pool.map(lambda _: browser.send(form, typed="release students"), range(6)))
        assert sorted(page.status for page in pages) == [200] + [422] * 5
    assert len(json.loads(attrpriv("ledger", policy.name, "--json", folder=tmp_path).stdout)["entries"]) == 1


@pytest.mark.parametrize(
    "typed", ["", "release", "release Students", "release  students", "RELEASE students", "release students!"]
)
def test_nothing_is_released_without_the_words(browser: Browser, place: Path, typed: str) -> None:
    before = contents(place)
    page = browser.send(browser.get("/p/students.yaml/release").form("Release"), typed=typed)
    assert page.status == 422
    assert "Nothing was released" in page.problem
    assert contents(place) == before
