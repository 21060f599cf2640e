"""Nothing here asks git or looks through installed packages, unless a test is about that."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from splatmeter.lab import code_identity, environment


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_identity, "_installed", lambda paths: "")
    monkeypatch.setattr(environment, "git_state", lambda directory: {})
    monkeypatch.delenv("PYTHONPATH", raising=False)  # all that lies there would be hashed before every run
