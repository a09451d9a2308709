"""What every test shares: reproducible Hypothesis runs, and the path to material that only some clones have."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).resolve().parent.parent

# `fixed` tries the same examples on every run; HYPOTHESIS_PROFILE=explore tries new ones; `planted` stops at one that fails.
settings.register_profile("fixed", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.register_profile("planted", deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The directory `shared` beside the repository."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip("needs ../shared, which a user's clone does not have")
    return path


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C as in a terminal: a process that was started in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
