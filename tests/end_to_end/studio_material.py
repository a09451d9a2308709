"""A real studio for the tests: a folder with tables, the server as the command starts it, and raw requests to it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NASTY = "<script>alert('x')</script>"
# A value that every row of the private table has in a column that nobody asks for: it must never be seen.
PLANTED = 987_654_321.0
ROWS = 2_000


def people(rows: int, seed: int, *, private: bool) -> pa.Table:
    """Made people: pay differs by sex, stays by smoking, hours by age."""
    rng = np.random.default_rng(seed)
    female, smokes = rng.random(rows) < 0.4, rng.random(rows) < 0.25
    age = rng.integers(20, 30, rows)
    table = {
        "sex": np.where(female, "female", "male"),
        "pay": np.where(female, 3_000.0, 3_200.0) + rng.normal(0, 400, rows),
        "smoker": np.where(smokes, "yes", "no"),
        "stay": np.where(rng.random(rows) < np.where(smokes, 0.4, 0.2), 9, 3),
        "age": age,
        "hours": rng.normal(38, 6, rows) + 0.1 * (age - 25),
    }
    if private:
        table |= {"secret_number": np.full(rows, PLANTED), "name": [f"person-{k}" for k in range(rows)]}
        table[NASTY] = np.full(rows, PLANTED)
    return pa.table(table)


def made_folder(place: Path) -> Path:
    """A private table and a public one."""
    place.mkdir(parents=True, exist_ok=True)
    pq.write_table(people(ROWS, 1, private=True), place / "people.parquet")
    pq.write_table(people(20_000, 2, private=False), place / "survey.parquet")
    return place


class Server:
    """The command, running; its address holds the token."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        command = [sys.executable, "-m", "attrpriv", "studio", str(folder), "--no-browser", "--json"]
        command += ["--port", str(port), "--idle", "0.2"]
        self.folder = folder
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self._process.stderr.read() if self._process.stderr is not None else ""
        self.start = str(json.loads(line)["address"])
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/start\?token=(.+)", self.start)
        assert found is not None
        self.port, self.token = int(found[1]), found[2]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(signal.SIGINT)

    def end(self, how: signal.Signals) -> str:
        """End it; what it said to stderr."""
        if self._process.poll() is None:
            self._process.send_signal(how)
        try:
            _, told = self._process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, told = self._process.communicate(timeout=30)
        return str(told)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def raw(self, data: bytes, *, seconds: float = 20.0) -> bytes:
        """What comes back for these bytes, until the server closes or is silent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as sock:
            sock.sendall(data)
            found = b""
            try:
                while more := sock.recv(65_536):
                    found += more
            except (TimeoutError, ConnectionResetError):
                pass
        return found


class Client:
    """Somebody without a browser, who sends exactly what is asked for."""

    def __init__(self, server: Server, *, known: bool = True) -> None:
        self.server = server
        self.cookie, self.key = "", ""
        if known:
            status, headers, _ = self.ask("GET", f"/start?token={server.token}", cookie="")
            assert status == 303
            self.cookie = headers["set-cookie"].partition(";")[0]
            found = re.search(r'name="key" value="([^"]+)"', self.ask("GET", "/")[2])
            assert found is not None
            self.key = found[1]

    def ask(
        self, method: str, path: str, body: str | bytes | None = None, *, cookie: str | None = None, **headers: str | None
    ) -> tuple[int, Mapping[str, str], str]:
        """Status, headers and page. Headers are named with underscores; None leaves one out."""
        sent: dict[str, str | None] = {"host": f"127.0.0.1:{self.server.port}"}
        held = self.cookie if cookie is None else cookie
        sent |= {"cookie": held} if held else {}
        if body is not None:
            sent |= {"content-type": "application/x-www-form-urlencoded", "origin": self.server.origin}
            sent |= {"content-length": str(len(body))}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        link = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        try:
            link.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                if value is not None:
                    link.putheader(name, value)
            link.endheaders(body.encode() if isinstance(body, str) else body)
            answer = link.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, told, answer.read().decode("utf-8")
        finally:
            link.close()

    def get(self, path: str, **headers: str | None) -> tuple[int, str]:
        status, _, page = self.ask("GET", path, **headers)
        return status, page

    def post(self, path: str, fields: Mapping[str, Any], **headers: str | None) -> tuple[int, str]:
        """A form with its key; the address that it leads to, or the page that says why it does not."""
        status, told, page = self.ask("POST", path, urlencode({"key": self.key, **fields}, doseq=True), **headers)
        return status, told.get("location", page)

    def seen(self, path: str) -> dict[str, str]:
        """The hidden fields of a page's last form that is sent to the page itself."""
        page = self.get(path)[1]
        forms = [one for one in page.split("<form")[1:] if f'action="{path.partition("?")[0]}"' in one]
        return dict(re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', forms[-1].split("</form>")[0]))


@contextmanager
def studio(folder: Path, port: int = 0) -> Iterator[Server]:
    with Server(folder, port) as server:
        yield server


def ledger(policy: Path) -> Any:
    """What the command line reads of the ledger."""
    done = subprocess.run(
        [sys.executable, "-m", "attrpriv", "ledger", str(policy), "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    return json.loads(done.stdout)
