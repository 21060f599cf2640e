"""Tests here share a scripted lab (scripted_lab.py) and a stand-in trainer (stand_in.py)."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """fsync guards against power cuts, which no test simulates; kills are tested in processes of their
    own.
    """
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
