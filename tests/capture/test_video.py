"""Frames of videos that are made here: sharp ones, spread by motion, upright; and videos that are broken."""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from capture_stand_in import InProcess, arc, garden_photos, textured
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from splatmeter.capture.from_photos import from_photos
from splatmeter.cli.main import main

av = pytest.importorskip("av", reason="PyAV is not installed: pip install 'splatmeter[photos]'")

WIDTH, HEIGHT, RATE = 320, 240, 10


def write_video(path: Path, frames: Sequence[Image.Image], rate: int = RATE) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=rate)
        stream.width, stream.height, stream.pix_fmt = *frames[0].size, "yuv420p"
        stream.bit_rate = 8_000_000
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_image(frame)))
        container.mux(stream.encode())
    return path


def panned(count: int, step: int = 4) -> list[Image.Image]:
    """A window that moves over a wide picture."""
    wide = textured(3, WIDTH + step * count, HEIGHT)
    return [wide.crop((step * n, 0, step * n + WIDTH, HEIGHT)) for n in range(count)]


def turned(path: Path) -> Path:
    """Marks the video as filmed with a phone upright: to be shown a quarter clockwise."""
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 4 + 40
    data[at : at + 36] = struct.pack(">9i", 0, 65536, 0, -65536, 0, 0, HEIGHT << 16, 0, 0x40000000)
    path.write_bytes(data)
    return path


def pixels_of(path: Path) -> NDArray[np.uint8]:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def run(video: Path, out: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(
        "splatmeter.cli.scene_photos.from_photos", functools.partial(from_photos, child=InProcess())
    )
    return main(["scene", "from-photos", str(video), str(out), *words])


def test_sharp_frames_are_chosen_and_compared_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three of four frames are blurred: 15 frames of 60 must be the sharp ones."""
    frames = [f if n % 4 == 2 else f.filter(ImageFilter.GaussianBlur(3)) for n, f in enumerate(panned(60))]
    video = write_video(tmp_path / "my video.mp4", frames)
    assert run(video, tmp_path / "scene", monkeypatch, "--frames", "15") == 0
    written = sorted((tmp_path / "scene" / "images").iterdir())
    assert [path.name for path in written] == [f"frame_{n:05d}.jpg" for n in range(1, len(written) + 1)]
    assert 12 <= len(written) <= 15
    assert "(sequential)" in capsys.readouterr().out
    sharp = np.stack([np.asarray(frame).astype(float) for frame in frames[2::4]])  # [15, H, W, 3]
    for path in written:
        assert np.abs(sharp - pixels_of(path)).mean(axis=(1, 2, 3)).min() < 12


def test_one_frame_every_so_many_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    video = write_video(tmp_path / "v.mov", panned(60))
    assert run(video, tmp_path / "scene", monkeypatch, "--every", "0.5") == 0
    assert len(list((tmp_path / "scene" / "images").iterdir())) == 12


def test_a_phone_held_upright_gives_upright_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = panned(40)
    for frame in frames:
        frame.paste(
            (255, 255, 255), (0, HEIGHT - 80, 80, HEIGHT)
        )  # lower left as stored, upper left as shown
        frame.paste((0, 0, 0), (80, HEIGHT - 80, WIDTH, HEIGHT))
    video = turned(write_video(tmp_path / "v.mp4", frames))
    assert run(video, tmp_path / "scene", monkeypatch, "--frames", "8") == 0
    for path in (tmp_path / "scene" / "images").iterdir():
        pixels = pixels_of(path).astype(int)
        assert pixels.shape == (WIDTH, HEIGHT, 3)
        assert pixels[10:70, 10:70].min() > 200 and pixels[100:, 10:70].max() < 60


def test_a_video_that_is_cut_off_gives_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Matroska can be read from its beginning; MP4 keeps its table at the end."""
    whole = write_video(tmp_path / "v.mkv", panned(60)).read_bytes()
    cut = tmp_path / "cut.mkv"
    cut.write_bytes(whole[: len(whole) // 2])
    assert run(cut, tmp_path / "scene", monkeypatch, "--frames", "20") == 0
    assert 5 <= len(list((tmp_path / "scene" / "images").iterdir())) <= 20


def still(folder: Path) -> Path:
    return write_video(folder / "v.mp4", [textured(1, WIDTH, HEIGHT)] * 30)


def cut_mp4(folder: Path) -> Path:
    path = write_video(folder / "v.mp4", panned(30))
    path.write_bytes(path.read_bytes()[:20000])
    return path


def text(folder: Path) -> Path:
    (folder / "v.mp4").write_text("this is no video")
    return folder / "v.mp4"


def empty(folder: Path) -> Path:
    (folder / "v.mov").write_bytes(b"")
    return folder / "v.mov"


def no_frames(folder: Path) -> Path:
    """A whole container that announces pictures and has none."""
    path = folder / "v.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=RATE)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        container.start_encoding()
    return path


def tiny(folder: Path) -> Path:
    return write_video(folder / "v.mp4", [frame.resize((96, 64)) for frame in panned(30)])


def panorama(folder: Path) -> Path:
    return write_video(folder / "v.mp4", [textured(n, 800, 160) for n in range(20)])


def sound(folder: Path) -> Path:
    path = folder / "v.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=44100)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        frame.sample_rate = 44100
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (still, "has one distinct frame only, and 3 are needed"),
        (no_frames, "cannot be decoded (End of file)"),
        (cut_mp4, "cannot be decoded"),
        (text, "cannot be decoded"),
        (empty, "cannot be decoded"),
        (tiny, "only 96x64 pixels"),
        (panorama, "is a panorama"),
        (sound, "holds no pictures"),
    ],
)
def test_videos_that_cannot_be_used_say_why(
    tmp_path: Path,
    make: object,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert callable(make)
    video = make(tmp_path)
    assert run(video, tmp_path / "scene", monkeypatch) == 65
    shown = capsys.readouterr().err
    assert words in shown and shown.count("\n") == 1
    assert list(tmp_path.iterdir()) == [video]


@pytest.mark.slow
def test_a_video_of_the_garden_becomes_a_scene(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pycolmap", reason="pycolmap is not installed: pip install 'splatmeter[photos]'")
    video = write_video(tmp_path / "v.mp4", garden_photos(arc(120, 1.0, 400, 304)), rate=12)
    assert main(["scene", "from-photos", str(video), str(tmp_path / "scene"), "--frames", "24"]) == 0
    shown = capsys.readouterr().out
    assert "(sequential)" in shown and "24 of 24 have found their place" in shown
