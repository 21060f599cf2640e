"""Frames one after the other into a folder, a GIF or an MP4; none is kept longer than needed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from PIL import Image

from splatmeter.errors import OutputError, UsageError
from splatmeter.evaluate.metrics import Pixels
from splatmeter.evaluate.renders import write_png
from splatmeter.files.atomic import replacing

Saver = Callable[[Path, Iterator[Pixels], int], None]


def saver(target: Path) -> Saver:
    """By the ending: .gif, .mp4, or a folder of numbered PNGs."""
    suffix = target.suffix.lower()
    if suffix == ".gif":
        return save_gif
    if suffix == ".mp4":
        if shutil.which("ffmpeg") is None:
            raise UsageError("An .mp4 needs ffmpeg on the PATH; install it, or choose a .gif or a folder.")
        return save_mp4
    if suffix:
        raise UsageError(f"Cannot write {target.name}: choose .gif, .mp4 or a folder.")
    return save_folder


def save_folder(target: Path, frames: Iterator[Pixels], fps: int) -> None:
    for number, pixels in enumerate(frames):
        write_png(target / f"{number:05d}.png", pixels)


def save_gif(target: Path, frames: Iterator[Pixels], fps: int) -> None:
    """One palette for all, from the first frame: less flicker, and frames can be handed over one by one."""
    images = (Image.fromarray(_interleaved(pixels)) for pixels in frames)
    first = next(images)
    palette = first.quantize(256)
    rest = (image.quantize(palette=palette) for image in chain([first], images))
    begin = next(rest)
    with replacing(target) as stream:
        begin.save(
            stream, "GIF", save_all=True, append_images=rest, duration=max(20, round(1000 / fps)), loop=0
        )


def save_mp4(target: Path, frames: Iterator[Pixels], fps: int) -> None:
    first = next(frames)
    height, width = first.shape[1:]
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.stem}.part.mp4")
    encoder = subprocess.Popen(
        [
            "ffmpeg", "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24",
            "-s", f"{width}x{height}", "-r", str(fps), "-i", "-",
            "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p", str(temporary),
        ],
        stdin=subprocess.PIPE,
    )  # fmt: skip
    assert encoder.stdin is not None
    try:
        for pixels in chain([first], frames):
            encoder.stdin.write(_interleaved(pixels).data)
        encoder.stdin.close()
        if encoder.wait():
            raise OutputError(f"ffmpeg could not write {target} (code {encoder.returncode}).")
        temporary.replace(target)
    except OSError as problem:
        raise OutputError(f"ffmpeg could not write {target}: {problem.strerror or problem}.") from problem
    finally:
        if encoder.poll() is None:
            encoder.kill()
            encoder.wait()
        temporary.unlink(missing_ok=True)


def _interleaved(pixels: Pixels) -> Pixels:
    return np.ascontiguousarray(pixels.transpose(1, 2, 0))  # [H, W, 3]
