"""A lab with a story: faster, quality lost, no speed-up, planned, on hold; with invented times."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image
from scripted_lab import IMAGES, add, carried_out, make_lab, option

from splatmeter.events import Evaluated, Failed, Finished, Progress, Saved, Started
from splatmeter.lab.executor import Arrival, Command, Scripted
from splatmeter.lab.record.lab import Lab

MEBIBYTE = 2**20
PASSES = {"project": 0.12, "sort": 0.08, "blend": 0.3, "loss": 0.1, "backward": 0.28, "adam": 0.08}


def trainer(noise: float = 0.008, seed: int = 1) -> Scripted:
    """Loss falls, memory grows, passes add up to most of a step."""
    source = random.Random(seed)

    def script(command: Command) -> Iterator[Arrival]:
        step_seconds = (1 + source.gauss(0, noise)) / option(command, "--speed", 20.0)
        psnr = option(command, "--psnr", 25.6) + 0.03 * option(command, "--seed", 0)
        yield Arrival(0.4, Started({"resolution": 4}, 0, 138_766, IMAGES[1:], IMAGES[:1]))
        wall, clock, last = 0.9, 0.0, 0
        for step in range(5, 201, 5):
            if step == option(command, "--fail-at", 0):
                yield Arrival(wall, Failed(step, "CUDA out of memory <b>here</b>"))
                return
            passed = (step - last) * step_seconds
            wall, clock, last = wall + passed, clock + passed, step
            loss = 0.04 + 0.16 * math.exp(-step / 45) + source.gauss(0, 0.0015)
            parts = {name: share * passed for name, share in PASSES.items()}
            gaussians = 138_766 + 400 * step
            memory = (380 + step) * MEBIBYTE
            yield Arrival(wall, Progress(step, clock, loss, gaussians, loss, parts, memory))
            if step in (50, 100, 150, 200):
                wall += 0.8
                quality = psnr - 6 * math.exp(-step / 60)
                metrics = {"l1": 0.9 / quality, "psnr": quality, "ssim": quality / 33}
                yield Arrival(wall, Evaluated(step, "test", metrics))
        wall += 0.5
        yield Arrival(wall, Saved(200, "point_cloud.ply", "model"))
        peaks = {"loading": 300 * MEBIBYTE, "training": 612 * MEBIBYTE, "evaluation": 480 * MEBIBYTE}
        yield Arrival(wall, Finished(200, clock, 218_766, loss=0.0421, peak_memory_bytes=peaks))

    return Scripted(script)


def rich_lab(folder: Path) -> Lab:
    lab = make_lab(folder, title="garden at a quarter, 3000 to 4000", resolution=4)
    add(
        lab,
        "tiles",
        "--speed",
        "23.5",
        title="Smaller tiles",
        note="Fewer Gaussians a tile.\nMeasured twice.",
    )
    add(lab, "fused", "--speed", "27", parent="tiles", title="Backward and Adam in one pass")
    add(lab, "half", "--speed", "30", "--psnr", "25.1", parent="fused", title="Colours in half precision")
    add(lab, "logging", "--speed", "20.02", title="Log every 1000 steps")
    add(lab, "sort-less", parent="fused", title="Sort every other step", reason="after the deadline")
    add(lab, "cuda", state="on hold", reason="no card in this machine")
    carried_out(lab, "aa", ["baseline", "baseline"], trainer(seed=2), blocks=4, prime=False)
    carried_out(lab, "ab", ["baseline", "tiles"], trainer(seed=3), blocks=4, prime=False)
    carried_out(lab, "run", ["baseline", "tiles", "fused"], trainer(seed=4), blocks=4, prime=False)
    carried_out(lab, "run", ["baseline", "fused", "half"], trainer(seed=5), blocks=4, prime=False)
    carried_out(lab, "ab", ["baseline", "logging"], trainer(0.004, seed=6), blocks=6, prime=False)
    return lab


def write_renders(folder: Path, blur: float, count: int = 3, size: tuple[int, int] = (320, 200)) -> Path:
    """`test_preds_1` and `gt_1`, as `splatmeter eval --write-renders` leaves them."""
    width, height = size
    rows, columns = np.mgrid[0:height, 0:width]
    for number in range(count):
        waves = np.sin(columns / (9 + 3 * number)) * np.cos(rows / 13) + np.sin((columns + 2 * rows) / 41)
        photo = np.stack([128 + 55 * waves, 110 + 60 * np.roll(waves, 9, 1), 90 + 20 * waves], axis=2)
        for name, share in (("gt_1", 1.0), ("test_preds_1", 1.0 - blur)):
            target = folder / "test" / "ours_200" / name
            target.mkdir(parents=True, exist_ok=True)
            pixels = np.clip(photo * share + photo.mean() * (1 - share), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(target / f"{number:05d}.png")
    return folder
