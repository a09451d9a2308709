"""Ledgers in every kind of storage, for the tests that each of them must pass.

PostgreSQL is tried where ATTRPRIV_TEST_POSTGRES gives the URL of a server on which schemas may be made and dropped
(`make test-postgres` starts one).
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from attrpriv.accounting.ledger import Ledger

URL = os.environ.get("ATTRPRIV_TEST_POSTGRES")
KINDS = ("file", "postgres")


@dataclass(frozen=True)
class Place:
    """Where one ledger is."""

    place: str

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.place)

    @property
    def schema(self) -> str:
        return "attrpriv_" + self.place.rpartition("#")[2]

    @property
    def is_file(self) -> bool:
        return "#" not in self.place

    def edit(self, *statements: str) -> None:
        """What somebody does who has the right to write."""
        if self.is_file:
            with closing(sqlite3.connect(self.place)) as connection, connection:
                for statement in statements:
                    connection.execute(statement)
            return
        with connect() as connected:
            connected.execute(f'SET search_path TO "{self.schema}"')
            for statement in statements:
                connected.execute(statement)

    def remove(self) -> None:
        if self.is_file:
            for ending in ("", "-wal", "-shm", "-journal"):
                Path(self.place + ending).unlink(missing_ok=True)
        else:
            with connect() as connected:
                connected.execute(f'DROP SCHEMA IF EXISTS "{self.schema}" CASCADE')


def connect() -> Any:
    import psycopg

    assert URL is not None
    return psycopg.connect(URL, autocommit=True)


def place_of(kind: str, folder: Path) -> Place:
    """A place where no ledger is yet."""
    if kind == "file":
        return Place(str(folder / f"{uuid.uuid4().hex}.ledger"))
    if URL is None:
        pytest.skip("needs ATTRPRIV_TEST_POSTGRES")
    return Place(f"{URL}#{uuid.uuid4().hex}")


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    found = place_of(request.param, tmp_path)
    yield found
    found.remove()
