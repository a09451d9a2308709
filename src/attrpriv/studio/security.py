"""Who may ask: the browser that was started with the address that the command printed, and pages of this server alone.

| refused | status |
|---|---|
| another Host than 127.0.0.1 and the port, which a page that rebinds its name would send | 421 |
| an Origin, or a Sec-Fetch-Site, of another page | 403 |
| no cookie, or a wrong one: it is handed out for the token in the start address, or once for a ticket | 403 |
| a POST without the form token, or without an Origin | 403 |
| a body that is no plain form, or longer than 64 KiB | 415, 413 |
| a body that has not come after 30 seconds | 408 |
| a method other than GET, HEAD and POST | 405 |

What must never change: all of this is looked at before anything of the folder is; secrets are compared in constant time.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from starlette.responses import PlainTextResponse, RedirectResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 64 * 1024
_MOST_FIELDS = 2_000
_LONGEST = 30.0  # seconds for a body
CONTENT_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# With no-referrer a browser sends `Origin: null` with its own forms, and no page could be told from another one's.
HEADERS = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


@dataclass
class Keys:
    """The secrets of one run of the studio, and whether anybody uses it."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    form: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    ticket: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """Good for one start; empty once it was used."""
    asked: float = field(default_factory=time.monotonic)
    """When somebody last asked, or was last answered."""
    answering: int = 0
    """How many are being answered now."""

    @property
    def unused(self) -> float:
        """For how many seconds nobody has waited for anything: a release may take longer than a studio stays unused."""
        return 0.0 if self.answering else time.monotonic() - self.asked

    @contextmanager
    def used(self) -> Iterator[None]:
        self.answering += 1
        try:
            yield
        finally:
            self.answering -= 1
            self.asked = time.monotonic()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def origin(self) -> str:
        return f"http://{self.host}"

    @property
    def cookie_name(self) -> str:
        """Cookies know no ports, so two studios need two names."""
        return f"attrpriv-studio-{self.port}"

    @property
    def start(self) -> str:
        """The address to open."""
        return f"{self.origin}/start?token={self.token}"

    @property
    def opening(self) -> str:
        """The same for a browser that is started here: every user of the machine sees it in the list of processes."""
        return f"{self.origin}/start?token={self.ticket}"

    def admits(self, given: str) -> bool:
        """Whether a start address has the token, or the ticket that nobody has used."""
        if self.ticket and _same(given, self.ticket):
            self.ticket = ""
            return True
        return _same(given, self.token)


class Guard:
    """What stands before every page."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self._app, self._keys = app, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no sockets
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = _headers(scope)
        found = self._refused(scope, headers) or self._started(scope)
        if found is None and scope["method"] == "POST":
            found = await self._read_form(scope, headers, receive)
        if found is not None:
            await found(scope, receive, _with_headers(send))
            return
        with self._keys.used():
            await self._app(scope, receive, _with_headers(send))

    def _refused(self, scope: Scope, headers: Mapping[str, str]) -> Response | None:
        keys, method = self._keys, scope["method"]
        if headers.get("host") != keys.host:
            return _no(421, "this address is not the studio's. Open the one that the command printed.")
        if method not in ("GET", "HEAD", "POST"):
            return _no(405, "a page is read or a form is sent; nothing else.")
        origin = headers.get("origin")
        if (origin is None and method == "POST") or (origin is not None and origin != keys.origin):
            return _no(403, "this was asked by another page.")
        from_here = ("same-origin",) if method == "POST" else ("same-origin", "none")  # none: an address that was typed
        if headers.get("sec-fetch-site", "same-origin") not in from_here:
            return _no(403, "this was asked by another page.")
        if scope["path"] != "/start" and not any(_same(one, keys.cookie) for one in _cookies(headers, keys.cookie_name)):
            return _no(403, "open the address that the command printed: it holds the key.")
        return None

    def _started(self, scope: Scope) -> Response | None:
        """The token in the start address becomes a cookie, and disappears from the address."""
        if scope["path"] != "/start":
            return None
        if scope["method"] != "GET" or not self._keys.admits(_query(scope).get("token", "")):
            return _no(403, "open the address that the command printed: it holds the key.")
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(self._keys.cookie_name, self._keys.cookie, httponly=True, samesite="strict", path="/")
        return answer

    async def _read_form(self, scope: Scope, headers: Mapping[str, str], receive: Receive) -> Response | None:
        """The fields of a form go to `scope["attrpriv.form"]`."""
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
            return _no(415, "a form must be sent as plain fields; files cannot be sent.")
        length = headers.get("content-length", "0")
        try:
            body = (
                None if not length.isdecimal() or int(length) > MOST_BYTES else await asyncio.wait_for(_body(receive), _LONGEST)
            )
        except TimeoutError:
            return _no(408, "a form must be sent at once.")
        if body is None:
            return _no(413, "a form must not be longer than 64 KiB.")
        form = _fields(body)
        if form is None:
            return _no(400, "a form must be fields of text.")
        if not _same(next(iter(form.get("key", ())), ""), self._keys.form):
            return _no(403, "the form lacks its key. Load the page again.")
        scope["attrpriv.form"] = form
        return None


def _no(status: int, why: str) -> Response:
    return PlainTextResponse(f"refused: {why}\n", status_code=status)


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def _headers(scope: Scope) -> dict[str, str]:
    """By name; of two of one name none is right."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        found[key] = f"{found[key]}, {value.decode('latin-1')}" if key in found else value.decode("latin-1")
    return found


def _cookies(headers: Mapping[str, str], name: str) -> list[str]:
    """All of this name: a page at another port of this machine can add one, which must not hide the right one."""
    pairs = (one.strip().partition("=") for one in headers.get("cookie", "").split(";"))
    return [value for key, _, value in pairs if key == name]


def _query(scope: Scope) -> dict[str, str]:
    return dict(parse_qsl(scope["query_string"].decode("latin-1")))


async def _body(receive: Receive) -> bytes | None:
    """All of it, None where it is longer than it may be: a length may be left out, or be a lie."""
    body = b""
    while True:
        message: Message = await receive()
        if message["type"] != "http.request":
            return None
        body += bytes(message.get("body", b""))
        if len(body) > MOST_BYTES:
            return None
        if not message.get("more_body", False):
            return body


def _fields(body: bytes) -> dict[str, tuple[str, ...]] | None:
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except (UnicodeError, ValueError):
        return None
    form: dict[str, tuple[str, ...]] = {}
    for name, value in pairs:
        form[name] = (*form.get(name, ()), value)
    return form


def _with_headers(send: Send) -> Send:
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            names = {name for name, _ in HEADERS}
            kept = [(name, value) for name, value in message.get("headers", ()) if name.lower() not in names]
            message = {**message, "headers": [*kept, *HEADERS]}
        await send(message)

    return sending
