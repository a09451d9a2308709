"""A test that something is refused for a cause, whatever the sentence says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from attrpriv.errors import AttrprivError, Cause
from attrpriv.problem.refusal import Refusal


@contextmanager
def refuses(
    kind: type[Exception] | tuple[type[Exception], ...], cause: Cause, needs: str
) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """What is done inside is refused, by an error of this kind, for one cause, and with this as the first way out."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert isinstance(error, AttrprivError | Refusal)
    told = (error,) if isinstance(error, Refusal) else error.causes
    assert [(one.cause, one.needs[0]) for one in told] == [(cause, needs)]
