"""Who is let in by the start address, and what an error that nobody made on purpose may tell."""

from __future__ import annotations

import asyncio
import socket
import webbrowser
from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import Event
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import pytest

from attrpriv.cli.studio_command import _started
from attrpriv.studio.curve import CurveState
from attrpriv.studio.draft import Draft
from attrpriv.studio.folder import Folder
from attrpriv.studio.slider import told_at

pytest.importorskip("starlette", reason="starlette, which the studio needs, is not installed")
from attrpriv.studio.app import make_app
from attrpriv.studio.security import Keys
from attrpriv.studio.server import listening

Receive: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]


def asked(
    place: Path, keys: Keys, address: str, cookie: str = "", form: Receive | None = None
) -> tuple[int, dict[str, str], str]:
    """What the studio answers, without a server: status, headers, body. `form`: what is sent, and how it comes."""
    parts, told = urlsplit(address), list[Any]()
    headers = [(b"host", keys.host.encode()), (b"cookie", cookie.encode()), (b"origin", keys.origin.encode())]
    headers += [(b"content-type", b"application/x-www-form-urlencoded")]
    method, query = "GET" if form is None else "POST", parts.query.encode()
    scope = {"type": "http", "method": method, "path": parts.path, "query_string": query, "headers": headers}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        told.append(message)

    asyncio.run(make_app(Folder.of(place), keys)(scope, form or receive, send))
    named = {name.decode(): value.decode() for name, value in told[0]["headers"]}
    return told[0]["status"], named, b"".join(one.get("body", b"") for one in told[1:]).decode()


def test_the_address_in_the_list_of_processes_is_good_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every user of the machine can read with which address a browser was started."""
    opened, there = list[str](), Event()

    def opens(address: str) -> None:
        opened.append(address)
        there.set()

    monkeypatch.setattr(webbrowser, "open", opens)
    keys = Keys(1)
    _started(tmp_path, keys, browser=True, as_json=False)
    assert there.wait(20)
    printed = capsys.readouterr().out
    assert keys.start in printed
    assert keys.token not in opened[0]
    assert opened[0] not in printed
    assert [asked(tmp_path, keys, opened[0])[0] for _ in range(2)] == [303, 403]
    assert [asked(tmp_path, keys, keys.start)[0] for _ in range(2)] == [303, 303]
    assert asked(tmp_path, keys, "/start?token=")[0] == 403


def test_an_error_that_nobody_made_on_purpose_is_told_by_its_type_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a precious cell")

    monkeypatch.setattr(Draft, "__init__", fails)
    keys = Keys(1)
    for path in ("/p/x.yaml/table", "/p/x.yaml/at"):
        status, headers, text = asked(tmp_path, keys, path, f"{keys.cookie_name}={keys.cookie}")
        assert status == 500
        assert "unexpected RuntimeError" in text
        assert "precious" not in text
        assert headers["cache-control"] == "no-store"


def test_a_curve_that_another_page_stopped_is_not_asked_for_again_and_again() -> None:
    told = told_at(CurveState(14, (), "cancelled"), 1.0)
    assert told["ended"]
    assert told["progress"] == "The curve stopped at 0 of 14 epsilons: another page asked for one. Load this page again."


def test_a_studio_that_answers_is_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release may read for longer than a studio stays unused; it ends afterwards, and not before."""
    keys, seen = Keys(1), list[float]()

    def waits(*_: object) -> None:
        keys.asked -= 3600  # an hour passes
        seen.append(keys.unused)
        raise RuntimeError

    monkeypatch.setattr(Draft, "__init__", waits)
    assert asked(tmp_path, keys, "/p/x.yaml/table", f"{keys.cookie_name}={keys.cookie}")[0] == 500
    assert seen == [0.0]
    assert 0 < keys.unused < 600
    keys.asked -= 3600
    assert asked(tmp_path, keys, "/p/x.yaml/table")[0] == 403  # whoever is refused keeps nothing up
    assert keys.unused >= 3600


def test_a_form_that_never_comes_is_waited_for_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attrpriv.studio.security._LONGEST", 0.01)
    keys = Keys(1)

    async def never() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    cookie = f"{keys.cookie_name}={keys.cookie}"
    assert asked(tmp_path, keys, "/", cookie, never)[0] == 408


def test_answers_are_sent_at_once() -> None:
    """asyncio lets no answer wait for an acknowledgement, on sockets that name their protocol."""
    with listening(0) as sock:
        assert sock.getsockname()[0] == "127.0.0.1"
        assert (sock.proto, sock.type) == (socket.IPPROTO_TCP, socket.SOCK_STREAM)
