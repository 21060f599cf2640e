"""Runs of the whole loop on a scene of six 32-pixel photos."""

from __future__ import annotations

import json
import math
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from running import Make, of, run

from splatmeter.backend import Backend
from splatmeter.backends.lazy_adam import LazyAdam
from splatmeter.events import (
    Densified,
    Evaluated,
    Finished,
    Progress,
    Saved,
    Started,
    from_line,
    to_line,
)
from splatmeter.gaussians import ply
from splatmeter.ops import Rates, empty_table
from splatmeter.train.config import from_json


def test_a_run_tells_its_story_in_order_and_learns(make: Make, backend: Backend) -> None:
    events = run(make(iterations=60, densification="none", test_iterations=(1, 60)), backend)
    assert isinstance(events[0], Started) and isinstance(events[-1], Finished)
    assert [event.step for event in of(Progress, events)] == [10, 20, 30, 40, 50, 60]
    first, last = (event for event in of(Evaluated, events) if event.split == "test")
    assert last.metrics["psnr"] > first.metrics["psnr"] + 1
    clocks = [event.clock_seconds for event in of(Progress, events)]
    assert clocks == sorted(clocks)
    assert events[-1].step == 60 and events[-1].reason == "completed"
    assert {"loading", "training", "evaluation", "saving"} <= events[-1].peak_memory_bytes.keys()
    assert all(from_line(to_line(event)) is not None for event in events)


def test_the_folder_is_laid_out_as_the_originals(make: Make, backend: Backend) -> None:
    config = make(iterations=4, save_iterations=(2,))
    events = run(config, backend)
    folder = config.model_path
    assert folder is not None
    for step in (2, 4):
        model = ply.read_model(folder / "point_cloud" / f"iteration_{step}" / "point_cloud.ply")
        fused = ply.read_model(folder / "point_cloud" / f"iteration_{step}" / "fused.ply")
        assert model.table.count == fused.table.count == 120
        assert model.filtered and not fused.filtered
    assert "kernel_size=0.1" in (folder / "cfg_args").read_text()
    cameras = json.loads((folder / "cameras.json").read_text())
    assert [camera["img_name"] for camera in cameras][:3] == ["test/r_0", "test/r_1", "train/r_0"]
    assert cameras[0]["width"] == 32 and cameras[0]["fx"] == pytest.approx(16 / math.tan(0.4))
    assert (folder / "input.ply").read_bytes().startswith(b"ply\n")
    assert from_json(json.loads((folder / "config.json").read_text())) == config
    assert {Path(event.path).name for event in of(Saved, events)} == {
        *("point_cloud.ply", "fused.ply"),
        "chkpnt4.safety.safetensors",
    }


def test_saving_a_model_copies_only_a_block_of_rows(make: Make, backend: Backend) -> None:
    """A copy of the whole table would take 256 bytes a Gaussian: 51 MB here."""
    from splatmeter.train.output_folder import OutputFolder

    table = empty_table(200_000)
    table.geometry[:, 6], table.geometry_moments[:, 0], table.geometry_moments[:, 12] = 1, 0.5, 0.25
    adam = LazyAdam()
    adam.advance(Rates(0.1, 0.2, 0.3, 0.4, 0.5, 0.6))
    model = backend.upload(table, adam.state())
    state: Any = SimpleNamespace(model=model, step=1)
    with OutputFolder(make()) as output:
        tracemalloc.start()
        files = [saved.path for saved in output.save_model(state)]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 30e6
    expected = model.download(slice(None)).geometry[:, :3]
    assert expected.any() and not table.geometry[:, :3].any()
    for path in files:
        np.testing.assert_array_equal(ply.read_model(Path(path)).table.geometry[:, :3], expected)


def test_densification_is_reported_with_the_step_it_belongs_to(make: Make, backend: Backend) -> None:
    events = run(make(), backend)
    changes = of(Densified, events)
    assert [change.step for change in changes] == [10, 20, 30]
    count = 120
    for change in changes:
        count += change.cloned + change.split - change.pruned
        assert change.gaussians == count <= 200
    assert count > 120


def test_the_training_clock_leaves_out_evaluation_saving_and_listeners() -> None:
    from splatmeter.train.stopwatch import Stopwatch

    time = iter([0.0, 5.0, 105.0, 106.0]).__next__
    clock = Stopwatch(10.0, now=time)
    clock.start()  # at 0
    with clock.paused():  # at 5; goes on at 105
        assert clock.seconds == 15.0
    assert clock.seconds == 16.0  # at 106
