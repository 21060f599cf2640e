from __future__ import annotations

import builtins
import dataclasses
import io
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from splatmeter.errors import MissingExtra
from splatmeter.events import (
    Densified,
    Evaluated,
    Event,
    Failed,
    Finished,
    Progress,
    Saved,
    Started,
    Warned,
    from_line,
)
from splatmeter.listeners.json_lines import JsonLines, StreamLines
from splatmeter.listeners.progress import BarProgress, PlainProgress, Speed, progress_for, sentence
from splatmeter.listeners.tensorboard import TensorBoard

STORY: list[Event] = [
    Started({"iterations": 100}, 0, 1200, ["a.png", "b.png"], ["c.png"]),
    Warned("Photos are dark.", "Open the window."),
    Progress(10, 1.0, 0.5, 1200, 0.4, {"blend": 0.2}, 2**20),
    Progress(20, 2.0, 0.3, 1200, 0.2, {"blend": 0.2}, 2**20, 0.15),
    Densified(20, 5, 6, 7, 1204, 0.3),
    Evaluated(
        20, "test", {"l1": 0.1, "psnr": 21.5, "ssim": 0.7}, {"c.png": {"psnr": 21.5}, "d.png": {"psnr": 14.6}}
    ),
    Saved(20, "out/fused.ply", "fused model"),
    Finished(100, 75.0, 1204, peak_memory_bytes={"training": 2**30}, loss=0.1),
    Failed(101, "the loss is nan"),
]


def test_lines_come_back_as_the_same_events(tmp_path: Path) -> None:
    listener = JsonLines(tmp_path / "events.jsonl")
    assert not (tmp_path / "events.jsonl").exists()
    for event in STORY:
        listener(event)
        assert from_line((tmp_path / "events.jsonl").read_text().splitlines()[-1]).kind == event.kind
    listener.close()
    read = [from_line(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert read[3] == STORY[3] and read[4] == STORY[4]


def test_a_resumed_run_appends(tmp_path: Path) -> None:
    for _ in range(2):
        listener = JsonLines(tmp_path / "events.jsonl")
        listener(STORY[1])
        listener.close()
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) == 2


def test_a_stream_gets_each_line_at_once() -> None:
    stream = io.StringIO()
    StreamLines(stream)(STORY[1])
    assert from_line(stream.getvalue().strip()) == STORY[1]


def test_plain_lines_are_rare_and_say_what_matters() -> None:
    stream, time = io.StringIO(), iter([0.0, 0.0, 1.0, 7.0, 7.0]).__next__
    listener = PlainProgress(stream, now=time)
    for event in (STORY[0], STORY[2], STORY[3], Progress(30, 3.0, 0.2, 1300, 0.2, {}, 2**20)):
        listener(event)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3  # started, the first report, and the one seven seconds later
    assert lines[2] == "step 30/100  loss 0.20000  10.0 it/s  1300 Gaussians  1.0 MiB  7.0 s left"


def test_a_failure_is_left_to_whoever_started_the_run() -> None:
    """It is raised as well: the command line would say it a second time."""
    assert sentence(Failed(101, "the loss is nan")) == ""


def test_an_unknown_speed_is_not_shown_as_zero() -> None:
    stream = io.StringIO()
    PlainProgress(stream)(STORY[2])
    assert "it/s" not in stream.getvalue() and "1200 Gaussians" in stream.getvalue()


def test_the_worst_view_is_shown_beside_the_mean() -> None:
    assert sentence(STORY[5]).endswith("psnr 21.50 dB  ssim 0.7000  (worst view d.png: 14.60 dB)")


@pytest.mark.parametrize("event", STORY, ids=lambda event: event.kind)
def test_every_listener_takes_every_event_also_alone(event: Event) -> None:
    PlainProgress(io.StringIO())(event)
    bar = BarProgress(io.StringIO())
    bar(event)
    bar.close()


def test_the_bar_shows_the_story() -> None:
    stream = io.StringIO()
    bar = BarProgress(stream)
    for event in STORY:
        bar(event)
    bar.close()
    assert "Open the window" in stream.getvalue() and "worst view d.png" in stream.getvalue()


LONG = [f"{number:05d}.jpg" for number in range(1161)]


@pytest.mark.parametrize("sizes", [[(1600, 1067)], [(1600, 1067), (800, 533)], []])
def test_the_first_line_names_the_photos_size_and_fits_80_columns_with_the_step(sizes: list) -> None:
    event = Started({"iterations": 30_000}, 29_999, 999_949, LONG, LONG[:166], photo_sizes=sizes)
    said = sentence(event)
    assert len(said) <= 80 and said.startswith("From step 29999: 999.9 k Gaussians, 1161 photos")
    assert ("1600x1067" in said) == bool(sizes) and ("up to" in said) == (len(sizes) > 1)


@pytest.mark.parametrize("width", [80, 60, 200])
def test_the_bar_keeps_the_step_number_in_any_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("FORCE_COLOR", "1")
    stream = io.StringIO()
    bar = BarProgress(stream)
    bar(Started({"iterations": 30_000}, 0, 1200, ["a.png"], []))
    for step, seconds in ((12_330, 1000.0), (12_340, 1001.5)):
        bar(Progress(step, seconds, 0.12345, 999_949, 0.4, {}, 1023 * 2**20))
    bar.close()
    line = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text) for text in re.split(r"[\r\n]", stream.getvalue())]
    shown = [text for text in line if "12340/30000" in text]
    assert shown and all(len(text) <= width and "…" not in text and "left" in text for text in shown)


def test_pipes_get_lines_and_no_bar() -> None:
    assert isinstance(progress_for(io.StringIO()), PlainProgress)


def test_speed_is_of_the_training_clock_and_zero_when_unknown() -> None:
    speed = Speed()
    assert speed.value == 0.0
    speed.note(10, 1.0)
    assert speed.value == 0.0
    speed.note(30, 3.0)
    assert speed.value == 10.0


class Writer:
    """Stands in for tensorboardX: remembers what it was told."""

    def __init__(self, folder: str) -> None:
        self.scalars: dict[str, float] = {}
        self.images: list[str] = []
        self.histograms: list[str] = []
        self.flushed = 0

    def add_scalar(self, name: str, value: float, step: int) -> None:
        assert math.isfinite(value)
        self.scalars[name] = value

    def add_image(self, name: str, pixels: np.ndarray, step: int, dataformats: str) -> None:
        assert dataformats == "HWC" and pixels.shape == (2, 3, 3)
        self.images.append(name)

    def add_histogram(self, name: str, values: np.ndarray, step: int) -> None:
        self.histograms.append(name)

    def flush(self) -> None:
        self.flushed += 1

    def close(self) -> None:
        self.flush()


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> type[Writer]:
    import sys
    from types import SimpleNamespace

    monkeypatch.setitem(sys.modules, "tensorboardX", SimpleNamespace(SummaryWriter=Writer))  # type: ignore[arg-type]
    return Writer


def test_tensorboard_uses_the_originals_names(tmp_path: Path, writer: type[Writer]) -> None:
    board = TensorBoard(tmp_path)
    for event in STORY:
        board(event)
    told = board._writer.scalars
    assert told["test/loss_viewpoint - l1_loss"] == 0.1 and told["test/loss_viewpoint - psnr"] == 21.5
    assert told["train_loss_patches/l1_loss"] == 0.15
    assert told["train_loss_patches/total_loss"] == 0.2 and told["total_points"] == 1200
    assert told["iter_time"] == pytest.approx(100.0) and told["pass_ms/blend"] == pytest.approx(20.0)
    assert told["test/worst_view - psnr"] == 14.6 and told["densification/pruned"] == 7
    assert board._writer.flushed


def test_the_names_arrive_in_the_file_as_the_original_writes_them(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="tensorboardX is missing: its files were not checked")
    board = TensorBoard(tmp_path)
    for event in STORY:
        board(event)
    board.close()
    (file,) = tmp_path.glob("events.out.tfevents.*")
    for name in ("test/loss_viewpoint - psnr", "train_loss_patches/total_loss", "total_points", "iter_time"):
        assert name.encode() in file.read_bytes()


def test_tensorboard_shows_each_photo_once_and_each_render_every_time(
    tmp_path: Path, writer: type[Writer]
) -> None:
    files: dict[str, str] = {"opacities": str(tmp_path / "o.npy")}
    np.save(tmp_path / "o.npy", np.array([0.5], np.float32))
    for kind in ("render", "ground_truth"):
        Image.fromarray(np.zeros((2, 3, 3), np.uint8)).save(tmp_path / f"{kind}.png")
        files[f"{kind}/c.png"] = str(tmp_path / f"{kind}.png")
    board = TensorBoard(tmp_path)
    for step in (1, 2):
        board(Evaluated(step, "test", {"psnr": 20.0}, {}, files))
    assert board._writer.images.count("test_view_c.png/render") == 2
    assert board._writer.images.count("test_view_c.png/ground_truth") == 1
    assert board._writer.histograms == ["scene/opacity_histogram"] * 2


def test_a_missing_extra_names_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "tensorboardX":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"pip install 'splatmeter\[tensorboard\]'"):
        TensorBoard(tmp_path)


GIB = 2**30


@pytest.mark.parametrize("limit", [{}, {"limit": 1023 * 2**20}])
def test_the_line_about_memory_at_the_start_fits_80_columns(limit: dict[str, int]) -> None:
    counts = {"low_gaussians": 120_000, "high_gaussians": 480_000}
    memory = {"low": 999 * 2**20, "high": 1023 * 2**20, **counts, **limit}
    said = sentence(Started({}, 0, 1200, ["a.png"], [], memory=memory)).splitlines()
    assert len(said) == 2 and len(said[1]) <= 80 and "999.0 to 1023.0 MiB" in said[1]
    assert said[1].endswith("120.0 to 480.0 k Gaussians")


def test_a_forecast_is_told_once_and_again_when_it_changes_or_becomes_one_number() -> None:
    stream = io.StringIO()
    listener = PlainProgress(stream, now=lambda: 0.0)
    listener(Started({"iterations": 30_000}, 0, 1200, ["a.png"], []))
    ranges = [
        (0, 0),
        (GIB, 4 * GIB),
        (GIB, 4 * GIB),
        (GIB, 3 * GIB),
        (2 * GIB, 2.7 * GIB),
        (2.4 * GIB, 2.5 * GIB),
    ]
    for number, (low, high) in enumerate(ranges):
        held = Progress(12_340 + number, 1.0, 0.1, 999_949, 0.1, {}, 1023 * 2**20)
        listener(dataclasses.replace(held, forecast_low_bytes=int(low), forecast_bytes=int(high)))
    told = [line for line in stream.getvalue().splitlines() if "memory:" in line]
    assert told == [
        "[step 12341] memory: 1023.0 MiB now, 1.0 to 4.0 GiB at its peak",
        "[step 12343] memory: 1023.0 MiB now, 1.0 to 3.0 GiB at its peak",
        "[step 12345] memory: 1023.0 MiB now, at most 2.5 GiB at its peak",
    ]


def test_lines_of_a_log_keep_to_80_columns() -> None:
    stream = io.StringIO()
    listener = PlainProgress(stream, now=iter([0.0, 0.0, 9.0, 9.0]).__next__)
    listener(Started({"iterations": 30_000}, 0, 1200, ["a.png"], []))
    for step, seconds in ((12_330, 1000.0), (12_340, 1001.5)):
        listener(Progress(step, seconds, 0.12345, 999_949, 0.4, {}, 1023 * 2**20))
    last = stream.getvalue().splitlines()[-1]
    assert len(last) <= 80 and last.startswith("step 12340/30000") and last.endswith("left")
