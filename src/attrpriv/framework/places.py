"""Places of ledgers: a path, or the URL of a PostgreSQL database.

    postgresql://[user@]host[:port]/database[?option=value...][#name]

What must never change: a policy is read by people who must not connect, so a URL in one holds no password, and no message ever
quotes a URL.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

_SECRETS = ("password", "passfile", "sslpassword", "sslkey")


def is_url(place: str | Path) -> bool:
    """Whether this is a database's URL and not a path.

    >>> is_url("postgresql://db.example/releases"), is_url("students.ledger")
    (True, False)
    """
    return isinstance(place, str) and place.startswith(("postgresql:", "postgres:"))


def has_password(url: str) -> bool:
    """Whether a URL says how to log in; also where it cannot be read.

    >>> has_password("postgresql://ann@db.example/releases"), has_password("postgresql://ann:pw@db.example/releases")
    (False, True)
    """
    try:
        parts = urlsplit(url)
        return parts.password is not None or any(key in _SECRETS for key, _ in parse_qsl(parts.query, keep_blank_values=True))
    except ValueError:
        return True
