"""The native test program under compilers, sanitizers and an emulated processor. Builds take minutes each."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "native" / "tests" / "check.sh"
TOOL_MISSING = 77
MATRIX = [
    (compiler, kind) for kind in ("plain", "address", "thread", "neon") for compiler in ("gcc", "clang")
]


@pytest.mark.skipif(
    os.environ.get("SPLATMETER_SLOW") != "1",
    reason="SPLATMETER_SLOW=1 is not set: no compilers, sanitizers and emulated processors were tried",
)
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash: the native program is not built")
@pytest.mark.parametrize(("compiler", "kind"), MATRIX)
def test_the_native_program_passes(compiler: str, kind: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", str(CHECK), compiler, kind, str(tmp_path)], capture_output=True, text=True, check=False
    )
    if done.returncode == TOOL_MISSING:
        pytest.skip(f"{compiler} {kind} was not tried: {done.stderr.strip()}")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def test_a_missing_tool_is_named_and_is_no_failure(tmp_path: Path) -> None:
    bash, dirname = shutil.which("bash"), shutil.which("dirname")
    if bash is None or dirname is None:
        pytest.skip("no bash: the script was not tried")
    (tmp_path / "dirname").symlink_to(dirname)
    done = subprocess.run(
        [bash, str(CHECK), "clang", "plain", str(tmp_path / "build")],
        capture_output=True, text=True, check=False, env={"PATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == TOOL_MISSING
    assert "is missing" in done.stderr
