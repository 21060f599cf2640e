"""Whoever builds from sources without a compiler that will do is told so in a sentence."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


def configured(folder: Path, compiler: str) -> str:
    """What CMake says to somebody whose CXX is this."""
    if shutil.which("cmake") is None:
        pytest.skip("CMake is not installed, and this looks at what it says")
    ended = subprocess.run(
        ["cmake", "-S", str(REPOSITORY), "-B", str(folder / "build")],
        env={**os.environ, "CXX": compiler},
        capture_output=True,
        text=True,
    )
    assert ended.returncode != 0
    return " ".join(ended.stderr.split())


def test_a_compiler_that_is_not_there(tmp_path: Path) -> None:
    told = "There is no C++ compiler that works; /nowhere/g++ was tried."
    assert told in configured(tmp_path, "/nowhere/g++")


def test_a_compiler_that_is_too_old(tmp_path: Path) -> None:
    real = shutil.which("g++")
    if real is None:
        pytest.skip("g++ is not installed, and an old one is played with it")
    old = tmp_path / "old-g++"
    old.write_text(f'#!/bin/sh\nexec {real} -U__GNUC__ -D__GNUC__=11 "$@"\n')
    old.chmod(0o755)
    said = configured(tmp_path, str(old))
    assert f"{old} is too old: it is version 11." in said and "and 12 or newer is needed." in said


def test_what_to_do_is_the_last_that_they_see() -> None:
    """scikit-build-core prints it after any failure."""
    text = (REPOSITORY / "pyproject.toml").read_text("utf-8")
    remedy = text.partition('messages.after-failure = """')[2].partition('"""')[0]
    assert "GCC 12" in remedy and "CXX=g++-12" in remedy and remedy.endswith("A wheel needs no compiler.")
    limits = (REPOSITORY / "native" / "compiler.cmake").read_text("utf-8")
    assert "SPLAT_OLDEST_GNU 12" in limits and "SPLAT_OLDEST_Clang 13" in limits and "Clang 13" in remedy
