"""Every error attrpriv raises on purpose, and the exit code each one has on the command line.

    AttrprivError                 1   the root; never raised itself
    ├── UsageError                2   a parameter, a policy, a query or a file that cannot be used as given
    │   ├── PolicyError           2   the policy file or one of its values
    │   ├── QueryError            2   the text of a query or of a secret
    │   └── DataError             2   the table: unreadable, wrong type, missing values, wrong number of rows
    ├── RefusedError              3   no mechanism can prove the guarantee, or the ledger allows no further release
    └── CertificateError          1   a certificate that does not hold: a bug in attrpriv, nothing was released

Messages say the parameter, the requirement, what was received and what to do. A message may quote the policy, the query,
column names and the number of rows, all of which are public. It never quotes a value of the table: a `DataError` that
depends on the rows has a fixed text. It is one line, whatever a name in it holds.
"""

from __future__ import annotations

from typing import ClassVar

from attrpriv.formatting import printable


class AttrprivError(Exception):
    """The root of everything raised on purpose."""

    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "error"

    def __str__(self) -> str:
        return printable(super().__str__())


class UsageError(AttrprivError):
    """Something given by the caller cannot be used as given."""

    exit_code: ClassVar[int] = 2
    kind: ClassVar[str] = "usage"


class PolicyError(UsageError):
    """The policy file, or one of its values."""

    kind: ClassVar[str] = "policy"


class QueryError(UsageError):
    """The text of a query or of a secret."""

    kind: ClassVar[str] = "query"


class DataError(UsageError):
    """The table cannot be read, or cannot be used as the policy says."""

    kind: ClassVar[str] = "data"


class RefusedError(AttrprivError):
    """Nothing can be released: not provable, or already spent."""

    exit_code: ClassVar[int] = 3
    kind: ClassVar[str] = "refused"


class CertificateError(AttrprivError):
    """A certificate failed its own check. Nothing was released; please report it (SECURITY.md)."""

    kind: ClassVar[str] = "certificate"
