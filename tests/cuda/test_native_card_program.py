"""The programs that need no Python: the emulator's own test, and the host code over the stand-in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "native" / "tests" / "emulator" / "check.sh"
TOOL_MISSING = 77


def run(kind: str, folder: Path) -> None:
    done = subprocess.run(
        ["bash", str(CHECK), kind, str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode == TOOL_MISSING:
        pytest.skip(f"{kind} was not tried: {done.stderr.strip()}")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert ", 0 failures" in done.stdout


def test_the_emulator_notices_mistakes(tmp_path: Path) -> None:
    run("emulator", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "address", "thread", "arm"])
def test_the_host_code_holds(kind: str, tmp_path: Path) -> None:
    run(kind, tmp_path)
