"""sqlglot logs what it thinks of a text, raw; none of that comes out, and nobody else's logging is changed."""

from __future__ import annotations

import logging

import pytest

from attrpriv.errors import QueryError
from attrpriv.queries.sql import _unlogged, parse_queries

TEXT = "select avg(x) from data; call \x1b[2Jfoo()"


def test_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(QueryError) as caught:
        parse_queries(TEXT)
    assert str(caught.value).isprintable()
    assert caplog.records == []


def test_the_logger_is_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    import sqlglot

    logger = logging.getLogger("sqlglot")
    before = logger.level, logger.propagate, logger.disabled, list(logger.handlers), list(logger.filters)
    with pytest.raises(QueryError):
        parse_queries(TEXT + " ")
    assert (logger.level, logger.propagate, logger.disabled, list(logger.handlers), list(logger.filters)) == before
    sqlglot.parse(TEXT, dialect="duckdb")
    assert len(caplog.records) == 1


def test_another_thread_is_heard(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("sqlglot")
    with _unlogged():
        record = logger.makeRecord(logger.name, logging.WARNING, "elsewhere.py", 1, "of another thread", (), None)
        record.thread = -1
        logger.handle(record)
        logger.warning("of this thread")
    assert [record.getMessage() for record in caplog.records] == ["of another thread"]
