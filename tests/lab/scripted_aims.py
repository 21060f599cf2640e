"""A scripted trainer with peaks and a curve of PSNR over time, for phases that aim at more than speed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from scripted_lab import IMAGES, option

from splatmeter.events import Evaluated, Finished, Progress, Started
from splatmeter.lab.executor import Arrival, Command, Scripted

MB = 10**6


def steps_after(command: Command, name: str) -> list[int]:
    """The numbers that follow an option, as `--at 50 100 150`."""
    words = command.arguments
    place = words.index(name) + 1
    found: list[int] = []
    while place < len(words) and words[place].isdigit():
        found.append(int(words[place]))
        place += 1
    return found


def text_option(command: Command, name: str, default: str) -> str:
    words = command.arguments
    return words[words.index(name) + 1] if name in words else default


def trainer(noise: float = 0.002, seed: int = 0) -> Scripted:
    """200 steps at 100 it/s; PSNR rises from 20 dB by `--rise` dB a step and has the luck of its seed."""
    source = random.Random(seed)

    def script(command: Command) -> Iterator[Arrival]:
        on_hard = text_option(command, "--scene", "").endswith("hard")
        hard = option(command, "--on-hard", 1.0) if on_hard else 1.0
        each = (1.0 + source.gauss(0, noise)) * hard / option(command, "--speed", 100.0)
        luck = 0.02 * random.Random(int(option(command, "--seed", 0))).gauss(0, 1)
        views = int(option(command, "--views", 2))
        yield Arrival(0.1, Started({"resolution": 4}, 0, 1000, IMAGES[2:], IMAGES[:2]))
        evaluated = steps_after(command, "--at")
        for step in range(10, 201, 10):
            count = int(option(command, "--gaussians", 1000))
            yield Arrival(step * each, Progress(step, step * each, 0.05, count))
            if step in evaluated and step != option(command, "--skip", -1):
                psnr = 20 + option(command, "--rise", 0.03) * step + luck
                psnr += option(command, "--spike", 0.0) if step == option(command, "--spike-at", -1) else 0.0
                psnr -= option(command, "--lost", 0.0) if step == 200 else 0.0
                psnr -= option(command, "--lost-on-hard", 0.0) if on_hard else 0.0
                per_view = {name: {"psnr": psnr} for name in IMAGES[:views]}
                metrics = {"psnr": psnr, "ssim": psnr / 30}
                yield Arrival(step * each, Evaluated(step, "test", metrics, per_view))
        peaks = {
            "loading": 50 * MB,
            "training": int(option(command, "--training", 400.0) * MB),
            "evaluation": int(option(command, "--evaluation", 800.0) * MB),
        }
        yield Arrival(200 * each, Finished(200, 200 * each, count, loss=0.05, peak_memory_bytes=peaks))

    return Scripted(script)


COMMAND = ("trainer", "--scene", "{scene}", "--at", "{evaluations}", "--seed", "{seed}")
