"""A race through global memory that moves no value beyond any bar: only bits that differ between runs tell.

The stand-in's own checks are off: on a card there is nobody to make them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from defects import kernel
from standin import Standin
from test_defects import EMULATOR, copy_with, objects, run

RACE = kernel(
    "reads what another block writes",
    "update.cu",
    "if (seen) update_row(a, row, load_row(a.geometry, row), s, share);",
    """if (seen) {
      Row g = load_row(a.geometry, row);
      const u32 visible = fetch(&a.counters->visible, 0), other = fetch(a.rows, (i + visible / 2) % visible);
      g.v[kMean] += 1e-6f * load(a.geometry, size_t(other) * kGeometryWidth + kMean);
      update_row(a, row, g, s, share);
    }""",
    (),
)


@pytest.mark.slow
def test_the_self_test_notices_a_race_by_its_bits(standin: Standin, tmp_path: Path) -> None:
    copy_with(RACE, tmp_path)
    built = run(["bash", str(tmp_path / EMULATOR / "build.sh"), str(tmp_path / "out")], OBJECTS=objects())
    assert built.returncode == 0, built.stderr[-3000:]
    words = [sys.executable, "-m", "splatmeter", "selftest", "--device", "cuda", "--quick"]
    library = str(tmp_path / "out" / "libcuda.so.1")
    done = run(words, SPLATMETER_LIBCUDA=library, STANDIN_CHECKS="0")
    wrong = [line.strip() for line in done.stdout.splitlines() if line.endswith("WRONG")]
    assert (
        done.returncode == 1 and len(wrong) == 1 and wrong[0].startswith("numbers that differ in their bits")
    )
