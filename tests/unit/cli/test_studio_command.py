"""What `attrpriv studio` says before it starts."""

from __future__ import annotations

import importlib.util
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.material import Said


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def without(name: str, *more: Any) -> Any:
        return None if name == "starlette" else find(name, *more)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    said = Said("studio", str(tmp_path), "--no-browser")
    assert said.code == 2
    assert said.complaint == (
        "studio: needs the packages starlette and uvicorn. Install them with pip install 'attrpriv[studio]'."
    )


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("starlette", reason="starlette, which the studio needs, is not installed")
    said = Said("studio", str(tmp_path / "none"), "--no-browser")
    assert said.code == 2
    assert "folder: must be a folder that is there" in said.complaint


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="uvicorn, which the studio needs, is not installed")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = Said("studio", str(tmp_path), "--no-browser", "--port", str(taken.getsockname()[1]))
    assert said.code == 2
    assert "port: must be free on 127.0.0.1" in said.complaint


@pytest.mark.parametrize("idle", ["0", "-1", "nan", "inf"])
def test_hours_that_are_none(tmp_path: Path, idle: str) -> None:
    pytest.importorskip("starlette", reason="starlette, which the studio needs, is not installed")
    said = Said("studio", str(tmp_path), "--no-browser", "--idle", idle)
    assert said.code == 2
    assert "idle: must be a number of hours above 0" in said.complaint
