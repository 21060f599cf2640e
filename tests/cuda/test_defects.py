"""Does the suite notice? Each planted defect is built, and its tests must fail."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from defects import DEFECTS, HOST, Defect
from standin import ROOT, Standin, built, sources_hash
from twins import IMAGES

EMULATOR = "native/tests/emulator"
CARD_SOURCES = sorted((ROOT / "native" / "cuda").glob("*.cpp"))
COPIED = (
    "native/cuda",
    "native/layout.hpp",
    "native/engine.hpp",
    "native/lazy_adam.hpp",
    "native/buffer.hpp",
    "native/threads.hpp",
    "native/tests",
)
SHOWN_ALWAYS = {
    "blend: no barrier between storing and reading a batch",
    "sort: equal keys in the wrong order",
    "growth: one tie too many",
    "host: never waits for the number of pairs",
}
FAST = [pytest.param(defect, id=defect.name) for defect in DEFECTS if defect.name in SHOWN_ALWAYS]
SLOW = [pytest.param(defect, id=defect.name) for defect in DEFECTS if defect.name not in SHOWN_ALWAYS]


def copy_with(defect: Defect, folder: Path) -> Path:
    for name in COPIED:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target)
        else:
            shutil.copy(ROOT / name, target)
    path = folder / defect.file
    path.write_text(defect.planted(path.read_text("utf-8")), "utf-8")
    return folder


def run(command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)


def objects() -> str:
    """What no defect of a kernel changes is compiled once."""
    folder = Path(tempfile.gettempdir()) / f"splatmeter-objects-{os.getuid()}-{sources_hash(ROOT)}"
    folder.mkdir(exist_ok=True)
    return str(folder)


def noticed_by_tests(defect: Defect, folder: Path) -> str:
    script = str(folder / EMULATOR / "build.sh")
    done = run(["bash", script, str(folder / "out")], OPTIMIZATION="-O0", OBJECTS=objects())
    assert done.returncode == 0, done.stderr[-3000:]
    tests = [str(Path(__file__).parent / name) for name in defect.tests]
    options = ["-n", "0", "-q", "-x", "--tb=line", "-p", "no:cacheprovider", "-m", ""]
    done = run(
        [sys.executable, "-m", "pytest", *options, *tests],
        SPLATMETER_TEST_STANDIN=str(folder / "out" / "libcuda.so.1"),
    )
    assert done.returncode in (0, 1), done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout if done.returncode == 1 else ""


def host_hash() -> str:
    files = [ROOT / name for name in COPIED if name.endswith(".hpp")]
    files += [*(ROOT / "native/cuda").rglob("*.?pp"), *(ROOT / "native/tests").rglob("*.?pp")]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(files))).hexdigest()[:16]


def compiled(defect: Defect, folder: Path) -> list[str]:
    """Only what the defect changes is compiled anew; a header changes everything."""
    kept = Path(tempfile.gettempdir()) / f"splatmeter-host-objects-{os.getuid()}-{host_hash()}"
    kept.mkdir(exist_ok=True)
    found = []
    sources = [f"{EMULATOR}/card_test.cpp", *(f"native/cuda/{path.name}" for path in CARD_SOURCES)]
    for name in sources:
        changed = defect.file == name or defect.file.endswith(".hpp")
        root, target = (folder, folder) if changed else (ROOT, kept)
        compiled_to = target / (Path(name).stem + ".o")
        if not compiled_to.exists():
            making = folder / "making.o"
            done = run(["g++", "-std=c++20", "-O0", "-w", "-c", "-o", str(making), str(root / name)])
            assert done.returncode == 0, done.stderr[-3000:]
            shutil.move(making, compiled_to)
        found.append(str(compiled_to))
    return found


def noticed_by_program(defect: Defect, folder: Path, library: Path) -> str:
    program = folder / "card_test"
    done = run(["g++", "-o", str(program), *compiled(defect, folder), "-ldl", "-pthread"])
    assert done.returncode == 0, done.stderr[-3000:]
    image = IMAGES / "compute_80.ptx"
    done = run([str(program), str(image), "quick"], SPLATMETER_LIBCUDA=str(library))
    return "" if done.returncode == 0 else done.stdout + done.stderr


def assert_noticed(defect: Defect, folder: Path) -> None:
    library = built()
    copy_with(defect, folder)
    noticed = (
        noticed_by_program(defect, folder, library)
        if defect.tests == HOST
        else noticed_by_tests(defect, folder)
    )
    assert noticed, f"{defect.name}: nobody noticed"


@pytest.mark.parametrize("defect", FAST)
def test_a_planted_defect_is_noticed(standin: Standin, defect: Defect, tmp_path: Path) -> None:
    assert_noticed(defect, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("defect", SLOW)
def test_another_planted_defect_is_noticed(standin: Standin, defect: Defect, tmp_path: Path) -> None:
    assert_noticed(defect, tmp_path)


def test_every_defect_still_finds_its_place() -> None:
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS)
    assert {param.values[0].name for param in FAST} == SHOWN_ALWAYS
    for defect in DEFECTS:
        text = (ROOT / defect.file).read_text("utf-8")
        assert defect.planted(text) != text
