"""A studio as a user starts it, in a process of its own, and a browser without script that fills in its forms."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from tests.end_to_end.material import environment

pytest.importorskip("starlette", reason="starlette, which the studio needs, is not installed")
pytest.importorskip("uvicorn", reason="uvicorn, which the studio needs, is not installed")

_FORM = "application/x-www-form-urlencoded"


@dataclass
class Form:
    """A form as it would be sent if nothing was changed."""

    action: str
    fields: list[tuple[str, str]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    button: str = ""

    def filled(self, **values: str | list[str]) -> list[tuple[str, str]]:
        """With these values; a field that the form has not is a mistake of the test."""
        changed = {name.replace("__", ":"): value for name, value in values.items()}
        assert changed.keys() <= self.names, f"{sorted(changed.keys() - self.names)} not in {sorted(self.names)}"
        kept = [(name, value) for name, value in self.fields if name not in changed]
        return kept + [(n, one) for n, value in changed.items() for one in (value if isinstance(value, list) else [value])]


class _Forms(HTMLParser):
    """The forms of a page, its words, and every element."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self._select = ""
        self._in_button = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags.append((tag, found))
        if tag == "form":
            self.forms.append(Form(found["action"]))
        elif tag == "select":
            self._select = found["name"]
            self.forms[-1].names.add(found["name"])
        elif tag == "button":
            self._in_button = True
        elif tag == "option" and self.forms:
            fields, known = self.forms[-1].fields, [name for name, _ in self.forms[-1].fields]
            if "selected" in found and self._select in known:
                fields[known.index(self._select)] = (self._select, found["value"])
            elif self._select not in known:
                fields.append((self._select, found["value"]))
        elif tag == "input" and self.forms and "name" in found:
            self.forms[-1].names.add(found["name"])
            if found.get("type") != "checkbox" or "checked" in found:
                self.forms[-1].fields.append((found["name"], found.get("value", "")))

    def handle_endtag(self, tag: str) -> None:
        if tag == "button":
            self._in_button = False

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self._in_button and self.forms:
            self.forms[-1].button += data


@dataclass
class Page:
    """What the server answered."""

    status: int
    text: str
    headers: Mapping[str, str]
    address: str

    @property
    def parsed(self) -> _Forms:
        found = _Forms()
        found.feed(self.text)
        return found

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.parsed.words).split())

    @property
    def problem(self) -> str:
        """What the page complains about."""
        _, _, rest = self.text.partition('role="alert"')
        found = _Forms()
        found.feed("<p" + rest.partition("</div>")[0])
        return " ".join(" ".join(found.words).split())

    def form(self, button: str) -> Form:
        """The form with this button."""
        found = [one for one in self.parsed.forms if one.button.startswith(button)]
        assert len(found) == 1, f"{button!r}: {len(found)} of {[one.button for one in self.parsed.forms]}"
        return found[0]


@dataclass
class Browser:
    """A browser with one cookie jar, that sends what Chromium sends."""

    address: str
    cookie: str = ""

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc

    @property
    def origin(self) -> str:
        return f"http://{self.host}"

    def opened(self) -> Page:
        """Open the start address, and follow to the folder."""
        return self.ask("GET", self.address.removeprefix(self.origin), follow=True)

    def get(self, path: str, **headers: str) -> Page:
        return self.ask("GET", path, headers=headers, follow=True)

    def send(self, form: Form, **values: str | list[str]) -> Page:
        """Fill in a form, send it, and follow the redirect."""
        body = urlencode(form.filled(**values)).encode()
        return self.ask("POST", form.action, body, {"Origin": self.origin, "Sec-Fetch-Site": "same-origin"}, follow=True)

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None, *, follow: bool = False
    ) -> Page:
        """One request; the headers given come on top of those of a browser, and an empty one is left out."""
        sent = {"Host": self.host, "Cookie": self.cookie, "Content-Type": _FORM if method == "POST" else "", **(headers or {})}
        connection = http.client.HTTPConnection(self.host, timeout=120)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in {**sent, **({"Content-Length": str(len(body))} if method == "POST" else {})}.items():
                if value:
                    connection.putheader(name.replace("_", "-"), value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
            page = Page(answer.status, answer.read().decode(), {k.lower(): v for k, v in answer.getheaders()}, path)
        finally:
            connection.close()
        if "set-cookie" in page.headers:
            self.cookie = page.headers["set-cookie"].partition(";")[0]
        if follow and page.status == 303:
            return self.ask("GET", page.headers["location"], follow=True)
        return page


@contextmanager
def studio(folder: Path, *options: str, before: str = "") -> Iterator[tuple[Browser, subprocess.Popen[bytes]]]:
    """The command in a process, and a browser that has not opened its address yet. `before`: what the process does first."""
    code = f"{before}import sys; sys.argv[0] = 'attrpriv'\nfrom attrpriv.cli import main\nmain()"
    command = [sys.executable, "-c", code, "studio", str(folder), "--no-browser", "--json", *options]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the studio did not start"
        yield Browser(json.loads(line)["address"]), process
    finally:
        process.kill()
        process.communicate(timeout=60)


@contextmanager
def opened(folder: Path, *options: str) -> Iterator[Browser]:
    """The same with a browser that has its cookie."""
    with studio(folder, *options) as (browser, _):
        assert browser.opened().status == 200
        yield browser
