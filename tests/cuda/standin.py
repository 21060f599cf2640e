"""The stand-in driver: built once a state of its sources, kept in the system's temporary folder."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "native" / "tests" / "emulator" / "build.sh"
SOURCES = ("native/cuda/kernels", "native/tests/emulator")
TOOL_MISSING = 77
GIVEN = os.environ.get("SPLATMETER_TEST_STANDIN")
"""One with a planted defect: see defects.py."""


def sources_hash(root: Path) -> str:
    digest = hashlib.sha256((root / "native" / "layout.hpp").read_bytes())
    for folder in SOURCES:
        for path in sorted((root / folder).iterdir()):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def built(kind: str = "plain", root: Path = ROOT) -> Path:
    """Skips the test, and says so, where there is no compiler."""
    if GIVEN:
        return Path(GIVEN)
    if shutil.which("bash") is None:
        pytest.skip("no bash: the stand-in driver was not built, and nothing of the card was tested")
    folder = Path(tempfile.gettempdir()) / f"splatmeter-standin-{os.getuid()}-{kind}-{sources_hash(root)}"
    library = folder / "libcuda.so.1"
    if library.exists():
        return library
    making = Path(tempfile.mkdtemp())
    script = root / BUILD.relative_to(ROOT)
    done = subprocess.run(
        ["bash", str(script), str(making), kind], capture_output=True, text=True, check=False
    )
    if done.returncode == TOOL_MISSING:
        pytest.skip(
            f"the stand-in driver was not built, and nothing of the card was tested: {done.stderr.strip()}"
        )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip() == str(making / "libcuda.so.1")
    folder.mkdir(exist_ok=True)
    (making / "libcuda.so.1").replace(library)
    shutil.rmtree(making)
    return library


class Standin:
    """Its knobs, in the process that has loaded it."""

    def __init__(self, library: Path) -> None:
        self.path = library
        self._library = ctypes.CDLL(str(library))
        self._library.standin_count.restype = ctypes.c_ulonglong

    def option(self, name: str, value: int) -> None:
        assert self._library.standin_option(name.encode(), str(value).encode()) == 0, name

    def count(self, what: str) -> int:
        return self._library.standin_count(what.encode())

    def forget_error(self) -> None:
        self._library.standin_forget_error()
