"""Run a command against a private PostgreSQL server, if one is installed.

    python scripts/with_postgres.py python -m pytest tests/unit/accounting

The server is made in a temporary directory, listens on a Unix socket in it and nowhere else, and is stopped and removed when
the command ends. The command finds its URL in ATTRPRIV_TEST_POSTGRES. PostgreSQL refuses to run as root, so root starts it as
`postgres` or `nobody`. Without PostgreSQL nothing is run, and that is said.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def binaries() -> Path | None:
    """The directory of initdb and postgres, of the newest version there is."""
    listed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: int(place.parent.name.partition(".")[0]))
    found = shutil.which("initdb")
    places = [*reversed(listed), *([Path(found).resolve().parent] if found else [])]
    return next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)


def unprivileged() -> str | None:
    """Whom to run the server as; None: as who we are."""
    if os.getuid() != 0:
        return None
    known = {one.pw_name for one in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def start(place: Path, where: Path, user: str | None) -> subprocess.Popen[bytes]:
    """A server for the database in `where`, which is ready when this returns."""
    log = open(where / "log", "wb")  # noqa: SIM115 - the server's until it ends
    options = {"listen_addresses": "", "unix_socket_directories": str(where), "max_connections": "50"}
    command = [str(place / "postgres"), "-D", str(where / "data")]
    for name, value in options.items():
        command += ["-c", f"{name}={value}"]
    server = subprocess.Popen(command, cwd=where, user=user, stdout=log, stderr=log)
    for _ in range(300):
        ready = subprocess.run([place / "pg_isready", "-q", "-h", where], check=False)
        if ready.returncode == 0:
            return server
        if server.poll() is not None:
            break
        time.sleep(0.1)
    server.kill()
    raise SystemExit((where / "log").read_text(errors="replace"))


def main() -> int:
    place = binaries()
    if place is None:
        print("PostgreSQL is not installed: nothing was run against it.")
        return 0
    user = unprivileged()
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        where = Path(folder)
        if user is not None:
            os.chown(where, pwd.getpwnam(user).pw_uid, -1)
        init = [str(place / "initdb"), "-D", str(where / "data"), "-U", "attrpriv", "--auth=trust", "--encoding=UTF8"]
        subprocess.run(init, cwd=where, user=user, stdout=subprocess.DEVNULL, check=True)
        server = start(place, where, user)
        try:
            url = f"postgresql://attrpriv@/postgres?host={where}"
            return subprocess.run(sys.argv[1:], env={**os.environ, "ATTRPRIV_TEST_POSTGRES": url}, check=False).returncode
        finally:
            server.send_signal(signal.SIGINT)  # a fast shutdown
            server.wait(timeout=60)


if __name__ == "__main__":
    sys.exit(main())
