"""The kept PTX is what the source gives, and the compilers' report says what the repository says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "native" / "cuda"))

import kernel_report
import make_images
import pair_instructions

CUDA = make_images.HERE
IMAGES = make_images.IMAGES


def nvrtc() -> object:
    try:
        return make_images.compiler()
    except make_images.CompilerMissing as problem:
        pytest.skip(f"the kept PTX was not compared with the source: {problem}")


def entries(text: str) -> set[str]:
    return set(re.findall(r"\.entry (\w+)\(", text))


def test_the_kept_ptx_is_what_the_source_gives() -> None:
    library = nvrtc()
    for capability in make_images.PTX:
        assert (IMAGES / f"compute_{capability}.ptx").read_text("ascii") == make_images.ptx(
            library, capability
        )


def test_other_ptx_than_the_sources_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvrtc()
    shutil.copytree(IMAGES, tmp_path / "images")
    damaged = tmp_path / "images" / "compute_75.ptx"
    damaged.write_text(damaged.read_text("ascii").replace("fma.rn.ftz.f32", "mad.rn.ftz.f32", 1), "ascii")
    monkeypatch.setattr(make_images, "IMAGES", tmp_path / "images")
    monkeypatch.setattr(make_images, "PTX", (75,))
    monkeypatch.setattr(sys, "argv", ["make_images.py", "--check"])
    assert make_images.main() == 1


def test_ptx_is_for_drivers_that_know_an_rtx_50() -> None:
    """ISA 8.7 is CUDA 12.8's: R570 and newer take it."""
    for capability in make_images.PTX:
        text = (IMAGES / f"compute_{capability}.ptx").read_text("ascii")
        assert text.startswith(f".version 8.7\n.target sm_{capability}\n")
        assert not re.search(r"\b(atom|red)\.\S*f(16|32|64)", text), "floating-point atomics have no order"


def test_every_kernel_is_in_the_list_in_the_images_and_in_the_report() -> None:
    listed = set(re.findall(r"^  X\((\w+),", (CUDA / "kernels" / "list.hpp").read_text("utf-8"), re.M))
    assert listed == set(kernel_report.threads_of())
    for path in IMAGES.glob("*.ptx"):
        assert entries(path.read_text("ascii")) == listed
    report = kernel_report.REPORT.read_text("utf-8")
    for title in ("NVRTC 12.8", "nvcc 13.0"):
        assert set(kernel_report.kept_registers(report, title)) == listed


def test_the_report_has_no_spills_and_no_more_instructions_than_the_design() -> None:
    report = kernel_report.REPORT.read_text("utf-8")
    rows = [line.split(" | ") for line in report.splitlines() if re.match(r"\| \w+ \| \d+ \| \d+ / ", line)]
    assert len(rows) == 2 * len(kernel_report.threads_of())
    assert all(set(row[3].split(" / ")) == {"0"} and set(row[4].split(" / ")) == {"0"} for row in rows)
    for kernel, most in pair_instructions.MOST.items():
        found = re.search(rf"\| {kernel} \| ([\d.]+) \| {most} \|", report)
        assert found and float(found.group(1)) <= most


def test_more_registers_and_spills_are_noticed() -> None:
    report, title = kernel_report.REPORT.read_text("utf-8"), "NVRTC 12.8"
    usages = {
        kernel: {
            at: kernel_report.Usage(count, 0, 0, 0)
            for at, count in zip(kernel_report.ARCHITECTURES, counts, strict=True)
        }
        for kernel, counts in kernel_report.kept_registers(report, title).items()
    }
    assert kernel_report.complaints(report, title, usages) == []
    kept = usages["update"][90]
    for usage, word in (
        (kernel_report.Usage(int(kept.registers * 1.11) + 1, 0, 0, 0), "registers"),
        (kernel_report.Usage(kept.registers, 0, 8, 0), "spills"),
        (kernel_report.Usage(kept.registers, 16, 0, 0), "stack"),
    ):
        usages["update"][90] = usage
        assert [
            word in line and "sm_90" in line for line in kernel_report.complaints(report, title, usages)
        ] == [True]
    del usages["update"]
    assert "other kernels" in kernel_report.complaints(report, title, usages)[0]


def test_occupancy_follows_the_scarcest_resource() -> None:
    usage = kernel_report.Usage
    assert kernel_report.warps_of(usage(128, 0, 0, 12288), 128, 120) == 16  # registers
    assert kernel_report.warps_of(usage(16, 0, 0, 22080), 256, 120) == 32  # shared memory
    assert kernel_report.warps_of(usage(16, 0, 0, 0), 32, 86) == 16  # blocks
    assert kernel_report.warps_of(usage(16, 0, 0, 0), 256, 75) == 32  # warps


def test_a_missing_compiler_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(make_images.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["make_images.py", "--check"])
    assert make_images.main() == make_images.TOOL_MISSING
    assert "NVRTC 12.8 is missing" in capsys.readouterr().err


@pytest.mark.slow
def test_the_compilers_still_say_what_the_report_says() -> None:
    nvrtc()
    done = subprocess.run(
        [sys.executable, str(CUDA / "kernel_report.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if "missing" in done.stderr:
        pytest.skip(f"not everything was asked: {done.stderr.strip()}")


@pytest.mark.slow
def test_cubins_for_wheels_are_small(tmp_path: Path) -> None:
    """All that a wheel holds, compressed as there; with 0.1 MB of code it stays below a megabyte. The PTX for
    7.5 is left out: all cards of that capability have a cubin."""
    import zlib

    nvrtc()
    subprocess.run([sys.executable, str(CUDA / "make_images.py"), "--cubins", str(tmp_path)], check=True)
    images = [*tmp_path.glob("*.cubin"), IMAGES / "compute_80.ptx"]
    assert len(images) == len(make_images.CUBINS) + 1
    assert sum(len(zlib.compress(path.read_bytes(), 6)) for path in images) < 880_000
