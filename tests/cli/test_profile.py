"""`splatmeter profile`: a table that adds up, counts that are true, limits that are named."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from tiny_run import make, splatmeter

from splatmeter.cli.profile import bound_text
from splatmeter.cli.profile_work import Work, share_of
from splatmeter.ops import LOG_SCALES, MEANS, OPACITY_LOGITS, Pinhole, RasterSettings, empty_table

pytest.importorskip("splatmeter._native", reason="the profile was not checked: the engine is not built")

from splatmeter.backends.native import backend_of, native_engine
from splatmeter.backends.native.limits import Limits, last_counts

PASSES = ["project", "sort", "bin", "blend forward", "loss", "blend backward", "update"]


def test_the_demo_scene_is_profiled_and_the_table_adds_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPLATMETER_CACHE", str(tmp_path / "cache"))
    assert splatmeter("profile", "--quick", "--iterations", 4, "--json", tmp_path / "a/profile.json") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in (*PASSES, "1,500 Gaussians, 128x96", "whole step", "stopwatch"))
    record = json.loads((tmp_path / "a/profile.json").read_text())
    assert list(record["passes"]) == PASSES
    parts = [entry["milliseconds"] for entry in record["passes"].values()]
    assert sum(parts) + record["outside_milliseconds"] == pytest.approx(record["step_milliseconds"])
    assert all(entry["share"] > 0 and entry["limit"] in shown for entry in record["passes"].values())
    assert 0 < record["stopwatch_share"] < 1
    assert all(value > 0 for value in record["limits"].values())
    assert all(f"{bound_text(entry)}\n" in shown for entry in record["passes"].values())


def test_a_model_brings_its_own_scene_and_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make(tmp_path)
    before = run.ply.read_bytes()
    assert splatmeter("profile", "-m", run.folder, "--iterations", 2, "--threads", 1) == 0
    shown = capsys.readouterr().out
    assert "60 Gaussians, 48x40, SH degree 3, 1 threads" in shown
    assert run.ply.read_bytes() == before
    assert splatmeter("profile", "-s", run.scene, "--start-checkpoint", run.ply, "--iterations", 1) == 0


def test_mistakes_get_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert splatmeter("profile", "--iterations", 0) == 64
    assert splatmeter("profile", "-m", tmp_path / "nothing") == 66
    assert "no model at" in capsys.readouterr().err


def wall_and_hidden(distance: float):
    """Two round Gaussians on the axis: the near one opaque, the other `distance` behind it."""
    table = empty_table(2, trainable=False)
    table.geometry[:, MEANS] = [[0, 0, 2], [0, 0, 2 + distance]]
    table.geometry[:, LOG_SCALES] = np.log([[3.0], [0.02]])
    table.geometry[:, 6] = 1
    table.geometry[:, OPACITY_LOGITS] = 12
    return table


def test_counted_pixels_are_those_the_picture_shows() -> None:
    engine = native_engine(2)
    table = wall_and_hidden(1.0)
    table.geometry[0, OPACITY_LOGITS] = -40  # no wall
    camera = Pinhole(np.eye(3), np.zeros(3), 300, 300, 50, 37, 101, 75)
    rendering = backend_of(engine).upload(table).render(camera, RasterSettings())
    counts = last_counts(engine)
    touched = 1 - rendering.transmittance >= 1 / 255 - 1e-6
    assert counts.pixels == touched.sum() and counts.visible == counts.seen == 1
    assert touched.sum() / 8 <= counts.vectors <= touched.sum()


def test_gaussians_behind_finished_pixels_are_visible_but_not_seen() -> None:
    engine = native_engine(2)
    walls = empty_table(6, trainable=False)
    front, hidden = wall_and_hidden(1.0).geometry
    walls.geometry[:] = [front] * 5 + [hidden]
    camera = Pinhole(np.eye(3), np.zeros(3), 300, 300, 32, 32, 64, 64)
    backend_of(engine).upload(walls).render(camera, RasterSettings())
    counts = last_counts(engine)
    assert counts.visible == 6 and counts.seen < 6 and counts.walked < counts.pairs


LIMITS = Limits(flops=100.0, bandwidth=10.0, operations=20.0, divisions=5.0)


def test_the_limit_that_takes_longer_binds() -> None:
    bound = share_of(Work(50, 1, 1, 1), 1.0, LIMITS)
    assert (bound.limit, bound.nearest, bound.share) == ("arithmetic", "multiply-adds", pytest.approx(0.5))
    bound = share_of(Work(50, 8, 1, 1), 1.0, LIMITS)
    assert (bound.limit, bound.nearest, bound.share) == ("memory", "bandwidth", pytest.approx(0.8))
    assert (bound.arithmetic, bound.memory) == pytest.approx((0.5, 0.8))


def test_few_multiply_adds_may_still_be_all_that_the_processor_can_do() -> None:
    bound = share_of(Work(30, 1, 18, 1), 1.0, LIMITS)
    assert (bound.limit, bound.nearest, bound.share) == ("arithmetic", "operations", pytest.approx(0.9))
    bound = share_of(Work(30, 1, 12, 3.5), 1.0, LIMITS)
    assert (bound.limit, bound.nearest, bound.share) == ("arithmetic", "divisions", pytest.approx(0.7))


def test_what_is_far_from_all_limits_waits() -> None:
    bound = share_of(Work(30, 4.9, 8, 1), 1.0, LIMITS)
    assert (bound.limit, bound.nearest, bound.share) == ("latency", "bandwidth", pytest.approx(0.49))
    assert bound_text(dataclasses.asdict(bound)) == "latency (nearest: bandwidth)"
    assert share_of(Work(0, 0), 1.0, LIMITS).limit == "latency"
    assert share_of(Work(1, 1, 1, 1), 0.0, LIMITS).share == 0
