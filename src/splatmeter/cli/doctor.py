"""`splatmeter doctor`: does this installation work here, and what could it use in addition?"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from splatmeter import __version__, control_groups, process_memory
from splatmeter.cli import arguments, caches
from splatmeter.errors import CardUnavailable, SplatmeterError, UsageError
from splatmeter.places import cache_folder
from splatmeter.units import bytes_text

DESCRIPTION = """Check this installation and machine.

The exit code is 0 if training can work here, else 1. Lines marked 'optional' are never a failure.

--clean removes what splatmeter keeps outside of the folders that you name: the built-in scene in its cache,
marks of cards that passed their self-test, and pictures that a killed evaluation left behind. All of it is
made again when it is needed. What a running process uses stays, and so does every file of others.

Examples:
  splatmeter doctor
  splatmeter doctor --json
  splatmeter doctor --clean --dry-run"""

REQUIRED = ("filelock", "numpy", "pillow", "psutil", "rich", "tomlkit", "tyro")
EXTRAS = {
    "torch": "reference backend, LPIPS, import of .pth checkpoints: pip install 'splatmeter[torch]'",
    "tensorboardX": "writing for TensorBoard: pip install 'splatmeter[tensorboard]'",
    "pynvml": "clocks, heat and memory of NVIDIA cards in the lab: pip install 'splatmeter[gpu]'",
}
WINDOWS_ITSELF = (
    "splatmeter has never run on Windows itself; its counters for cards were tested with stand-ins only;"
    " WSL2 is the safer way"
)
LITTLE_MEMORY = 2 * 2**30


@dataclass(frozen=True)
class DoctorArguments:
    json: bool = False
    """Print as JSON."""
    clean: bool = False
    """Remove what is cached instead of checking, and say how much it was."""
    dry_run: bool = False
    """With --clean: only say what would be removed."""


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    state: Literal["ok", "optional", "problem"]
    detail: str


def run(words: Sequence[str]) -> int:
    chosen = arguments.parse(DoctorArguments, "splatmeter doctor", words, DESCRIPTION)
    if chosen.clean:
        return _clean(chosen)
    if chosen.dry_run:
        raise UsageError("--dry-run belongs to --clean: splatmeter doctor --clean --dry-run")
    findings = list(examine())
    problems = [finding for finding in findings if finding.state == "problem"]
    if chosen.json:
        print(json.dumps([dataclasses.asdict(finding) for finding in findings], indent=1))
    else:
        for finding in findings:
            print(f"{finding.state:<9} {finding.name:<16} {finding.detail}")
        print(f"{len(problems)} problems." if problems else "Everything needed is here.")
    return 1 if problems else 0


def _clean(chosen: DoctorArguments) -> int:
    outcomes = caches.clean(chosen.dry_run)
    if chosen.json:
        print(json.dumps([dataclasses.asdict(outcome) for outcome in outcomes], indent=1))
    else:
        for one in outcomes:
            reason = f" ({one.why})" if one.why else ""
            print(f"{one.state:<16} {bytes_text(one.bytes):>9}  {one.folder}: {one.what}{reason}")
        gone = bytes_text(sum(one.bytes for one in outcomes if one.state != "kept"))
        told = f"{gone} would be freed." if chosen.dry_run else f"Freed {gone}."
        print(told if outcomes else "Nothing is cached.")
    return 1 if any(one.why.startswith(caches.FAILED) for one in outcomes) else 0


def _caches() -> Finding:
    found = caches.kept()
    there = f"{bytes_text(sum(one.size for one in found))} in {len(found)} folders" if found else "empty"
    hint = "; splatmeter doctor --clean removes it" if found else ""
    return Finding("cache", "ok", f"{cache_folder()}: {there}{hint}")


def examine() -> Iterator[Finding]:
    yield Finding("splatmeter", "ok", f"{__version__} in {Path(__file__).parents[1]}")
    yield Finding("python", "ok", f"{platform.python_version()} ({sys.executable}), {platform.platform()}")
    if sys.platform == "win32":
        yield Finding("windows", "optional", WINDOWS_ITSELF)
    yield from map(_package, REQUIRED)
    yield _checked("native engine", _engine)
    yield _checked("threads", _threads)
    yield _card()
    yield _memory()
    yield _checked("largest scene", _largest_scene)
    yield from _limits()
    yield _caches()
    yield from (_extra(name, purpose) for name, purpose in EXTRAS.items())
    yield from map(_lpips, ("vgg", "alex"))
    found = shutil.which("ffmpeg")
    yield (
        Finding("ffmpeg", "ok", found) if found else Finding("ffmpeg", "optional", "not found: no .mp4 films")
    )


def _checked(name: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(name, "ok", look())
    except (SplatmeterError, ImportError, OSError) as problem:
        return Finding(name, "problem", str(problem))


def _package(name: str) -> Finding:
    try:
        return Finding(name, "ok", importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, "problem", f"not installed: pip install {name}")


def _engine() -> str:
    """Not only there: it must also draw, which an instruction set the machine lacks would prevent."""
    import numpy as np

    from splatmeter.backends import registry
    from splatmeter.ops import Pinhole, RasterSettings, empty_table

    backend = registry.backend("native")
    table = empty_table(1, trainable=False)
    table.geometry[0, 2], table.geometry[0, 6], table.geometry[0, 10] = 2.0, 1.0, 4.0
    camera = Pinhole(np.eye(3), np.zeros(3), 32, 32, 16, 16, 32, 32)
    color = backend.upload(table).render(camera, RasterSettings()).color
    if not (np.isfinite(color).all() and 0.3 < color[0, 16, 16] < 0.6):
        raise SplatmeterError(
            "the engine draws a wrong picture; rebuild it with: pip install --force-reinstall ."
        )
    facts = {"device": backend.facts.device, **backend.facts.details}
    return ", ".join(f"{name} {value}" for name, value in facts.items()) + ", draws correctly"


WSL_DRIVER = Path("/usr/lib/wsl/lib/libcuda.so.1")
"""Windows puts its own driver there; one from a Linux package would be found before it, and sees no card."""


def _card() -> Finding:
    """Optional: without one, or with a driver that does not work, the CPU trains."""
    from splatmeter.backends.cuda import cuda_backend

    try:
        facts = cuda_backend(0).facts
    except SplatmeterError as problem:
        hint = f" A Linux driver package may hide {WSL_DRIVER}, Windows's own: remove that package."
        hidden = WSL_DRIVER.exists() and "SPLATMETER_LIBCUDA" not in os.environ
        broken = "" if isinstance(problem, CardUnavailable) else " The CPU trains."
        return Finding("graphics card", "optional", f"{problem}{hint if hidden else broken}")
    room = bytes_text(facts.details["card_memory_limit"])
    details = ", ".join(f"{name} {facts.details[name]}" for name in ("card", "driver_cuda", "image"))
    return Finding("graphics card", "ok", f"{details}, {room} may be used; splatmeter selftest tries it")


def _threads() -> str:
    from splatmeter.backends.native import usable_threads

    asked = {name: os.environ[name] for name in ("OMP_NUM_THREADS", "SPLATMETER_ISA") if name in os.environ}
    said = "".join(f", {name}={value}" for name, value in asked.items())
    return f"{usable_threads()} usable of {os.cpu_count()} processors{said}"


def _memory() -> Finding:
    import psutil

    from splatmeter.backends.native import BYTES_PER_GAUSSIAN

    free, total = process_memory.available_bytes(), psutil.virtual_memory().total
    said = f"{bytes_text(free)} available of {bytes_text(total)}"
    room = int(free / BYTES_PER_GAUSSIAN)
    if free < LITTLE_MEMORY:
        return Finding("memory", "optional", f"{said}: little; limit scenes with --max-gaussians {room // 2}")
    return Finding("memory", "ok", f"{said}, room for about {room / 1e6:.1f} million Gaussians")


USUAL_PHOTO = (1600, 1200)
"""Pixels; by default larger photos are shrunk to that width."""


def _largest_scene() -> str:
    """By the memory model that runs are predicted with; photos are decoded as they are needed, then."""
    from splatmeter.backends import registry
    from splatmeter.train.step import LOOK_AHEAD

    engine = registry.backend("native").memory
    width, height = USUAL_PHOTO
    besides = engine.predicted(0, width * height, 3 * width * height * LOOK_AHEAD)
    most = max(0, engine.available() - besides) // engine.per_gaussian
    return (
        f"about {most / 1e6:.1f} million Gaussians in one run, with photos of {width}x{height} pixels; "
        "a larger one in parts: splatmeter train --blocks 2x2"
    )


def _limits() -> Iterator[Finding]:
    """What a container allows, which may be less than the machine has."""
    limit = control_groups.memory_limit()
    if limit is not None:
        yield Finding("memory limit", "ok", bytes_text(limit))
    try:
        words = Path("/sys/fs/cgroup/cpu.max").read_text("ascii").split()
    except (OSError, ValueError):
        return
    if words and words[0] != "max":
        yield Finding("cpu limit", "ok", f"{int(words[0]) / int(words[1]):.2g} processors")


def _extra(name: str, purpose: str) -> Finding:
    if importlib.util.find_spec(name) is None:
        return Finding(name, "optional", f"not installed; {purpose}")
    try:
        return Finding(name, "ok", importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, "ok", "present")


def _lpips(network: str) -> Finding:
    from splatmeter.evaluate.lpips_weights import find

    try:
        return Finding(f"lpips {network}", "ok", f"weights {find(network).backbone}")
    except SplatmeterError as problem:
        return Finding(f"lpips {network}", "optional", str(problem))
