"""Whatever emit finds, it writes as many pairs as project counted: memory stays sound if they disagree."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from defects import Defect
from parity_scenes import SETTINGS, camera, random_table, smooth_image
from standin import GIVEN, Standin
from test_defects import EMULATOR, copy_with, objects, run
from twins import CardTwin

BIN = "native/cuda/kernels/bin.cu"
FEW, MANY = "for (int c = from; c <= to; c++)", "for (int c = from + lane_number();"
DISAGREEMENTS = [
    Defect(f"{which}: one too {word} a run", BIN, loop, f"to {change} 1; {loop}", ())
    for which, loop in (("few tiles each", FEW), ("many tiles each", MANY))
    for word, change in (("few", "-="), ("many", "+="))
]


@pytest.mark.parametrize("log_scale", [-3.0, 0.5], ids=["few tiles each", "many tiles each"])
def test_no_slot_is_unwritten_or_somebody_elses(card: CardTwin, log_scale: float) -> None:
    """The stand-in stops at what was never written, and at two threads that write the same."""
    table, view, weights = random_table(200), camera(330, 60, seed=3), smooth_image(330, 60, seed=5)
    table.geometry[:, 3:6] = log_scale
    table.geometry[:, 10] = -2
    card.put(table)
    color, _ = card.forward(view, SETTINGS["mip"])
    assert np.isfinite(color).all()
    assert np.isfinite(card.gradients(weights).geometry).all()


@pytest.mark.slow
@pytest.mark.skipif(GIVEN is not None, reason="another stand-in was given: none was built here")
@pytest.mark.parametrize("planted", DISAGREEMENTS, ids=lambda planted: planted.name)
def test_a_disagreement_stays_harmless(standin: Standin, planted: Defect, tmp_path: Path) -> None:
    folder = copy_with(planted, tmp_path)
    script = str(folder / EMULATOR / "build.sh")
    done = run(["bash", script, str(folder / "out")], OPTIMIZATION="-O0", OBJECTS=objects())
    assert done.returncode == 0, done.stderr[-3000:]
    done = run(
        [sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider", __file__],
        SPLATMETER_TEST_STANDIN=str(folder / "out" / "libcuda.so.1"),
    )
    assert done.returncode == 0, done.stdout[-3000:]
