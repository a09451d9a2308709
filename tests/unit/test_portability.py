"""What Linux, macOS and Windows do differently: nothing here needs what only one of them has, and a ledger does without it."""

from __future__ import annotations

import ast
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attrpriv.accounting.storage_sqlite import _named

SOURCES = Path(__file__).resolve().parents[2] / "src" / "attrpriv"
POSIX_MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}
POSIX_NAMES = {
    "os": {"chown", "fchmod", "fork", "geteuid", "getuid", "getpgid", "killpg", "mkfifo", "nice", "setsid", "sync", "uname"}
    | {"O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_SYNC"},
    "signal": {"SIGALRM", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGUSR1", "SIGUSR2", "alarm", "pause", "setitimer"},
}


def posix_only(text: str) -> Iterator[str]:
    """What a file takes from the system that Windows has not; `getattr(signal, "SIGHUP")` behind `hasattr` is fine."""
    for node in ast.walk(ast.parse(text)):
        named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        named += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        yield from (name for name in named if name.partition(".")[0] in POSIX_MODULES)
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        if node.attr in POSIX_NAMES.get(node.value.id, ()):
            yield f"{node.value.id}.{node.attr}"


def without_encoding(text: str) -> Iterator[int]:
    """Lines where a text is read or written in whatever the system takes for an encoding."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = node.args[0] if node.args else None
        mode = next((one.value for one in node.keywords if one.arg == "mode"), node.args[1] if len(node.args) > 1 else first)
        binary = name == "open" and isinstance(mode, ast.Constant) and isinstance(mode.value, str) and "b" in mode.value
        built_in = name == "open" and isinstance(node.func, ast.Name)
        stated = any(one.arg == "encoding" for one in node.keywords)
        if (built_in or name in ("read_text", "write_text")) and not binary and not stated:
            yield node.lineno


@pytest.mark.parametrize("path", sorted(SOURCES.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCES)))
def test_no_file_needs_one_system(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert list(posix_only(text)) == []
    assert list(without_encoding(text)) == []


@pytest.mark.parametrize("text", ["import fcntl", "from pwd import getpwnam", "import os\nos.getuid()", "signal.SIGHUP"])
def test_what_needs_one_system_is_noticed(text: str) -> None:
    assert list(posix_only(text))


@pytest.mark.parametrize("text", ["open('a')", "Path('a').read_text()", "Path('a').write_text('b')"])
def test_a_text_without_encoding_is_noticed(text: str) -> None:
    assert list(without_encoding(text)) == [1]
    assert list(without_encoding("open('a', 'rb'); Path('a').write_text('b', encoding='utf-8')")) == []


@pytest.mark.parametrize(
    ("call", "code"),
    [
        pytest.param("open", errno.EACCES, id="a directory cannot be opened, as on Windows"),
        pytest.param("link", errno.EINVAL, id="no links, as on FAT under Windows"),
        pytest.param("link", errno.EPERM, id="no links, as on FAT under Linux"),
        pytest.param("link", errno.ENOTSUP, id="no links, as on some network drives"),
    ],
)
def test_a_ledger_gets_its_name_all_the_same(call: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draft, path = tmp_path / "draft", tmp_path / "x.ledger"
    draft.write_bytes(b"whole")
    real: Any = getattr(os, call)

    def refused(place: Any, *given: Any, **named: Any) -> Any:
        if call == "link" or os.path.isdir(place):
            raise OSError(code, "refused")
        return real(place, *given, **named)

    monkeypatch.setattr(os, call, refused)
    assert _named(draft, path)
    assert path.read_bytes() == b"whole"
    draft.unlink(missing_ok=True)  # a second name of the same file, where there are links
    draft.write_bytes(b"another")
    assert not _named(draft, path)  # nobody's ledger is replaced
    assert path.read_bytes() == b"whole"
