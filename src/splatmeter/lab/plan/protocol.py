"""A benchmark in a small TOML file: what stays equal in every run, and by which rules it is judged."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splatmeter.errors import InputError, UsageError
from splatmeter.lab.patience import SILENCE_SECONDS
from splatmeter.lab.plan import toml
from splatmeter.lab.plan.scene_entries import (
    KEYS,
    SceneEntry,
    checked_scenes,
    scene_entries,
)
from splatmeter.lab.trainers.seeds import SHIMMED

TRAINERS = ("splatmeter", "mip-splatting", "3dgs", "fork", "gsplat", "opensplat", "generic", "events")

SECTIONS: dict[str, tuple[str, ...]] = {
    "benchmark": ("title", "trainer", "command", "directory", "scene", "images", "resolution"),
    "split": ("eval", "test_every", "test_count"),
    "start": ("start_iteration", "checkpoint", "sha256", "prepare_seed"),
    "run": (
        *("iterations", "evaluate_at", "warm_up", "seed", "seeds", "options", "patterns"),
        *("shift_seeds", "most_foreign_cpu", "repeats", "time_limit", "silence"),
    ),
    "judgement": (
        *("tolerance", "ssim_margin", "lpips_margin", "l1_margin"),
        *("tolerated_difference", "covariate", "most_failures", "blocks", "lpips"),
    ),
    "aims": ("evaluate_every", "target_psnr", "after_seconds"),
    "scene": ("scenes",),
}
"""Where each field stands in the file; every field of Protocol stands somewhere. Several scenes are tables of
their own, [[scene]]."""
NEWER = ("shift_seeds", "evaluate_every", "target_psnr", "after_seconds", "scenes")
"""What older protocols did without: while it is not used, it makes no other protocol."""

COMMENTS = {
    "trainer": "one of " + ", ".join(TRAINERS),
    "command": "an argument list with {scene} {output} {checkpoint} ...; empty: the trainer's own;"
    " {train}: all that our own trainer would be given",
    "directory": "where a foreign trainer is started",
    "test_count": "0: as many as test_every gives",
    "start_iteration": "0: every run starts from the points",
    "checkpoint": "made once by `splatmeter lab prepare`, or one you have",
    "sha256": "empty: taken when the checkpoint is first used, and checked ever after",
    "prepare_seed": "seed of the run that makes the checkpoint",
    "iterations": "counted from the start checkpoint",
    "evaluate_at": "absolute iteration; 0: only at the end",
    "warm_up": "untimed iterations at the start of a run; 0: max(50, 5 %)",
    "seeds": "block k uses seed + (k mod seeds); quality needs at least 4 to be judged",
    "shift_seeds": "mip-splatting and 3dgs seed themselves with 0; true: started so that they get ours",
    "options": "further arguments for every run",
    "patterns": "generic trainer: named patterns for step, total, loss, gaussians, evaluation",
    "most_foreign_cpu": "a block in which others used a larger share of the machine, or a core was"
    " throttled, is run again; 0: never",
    "repeats": "how often a block is run again at most; then it counts as it is",
    "time_limit": "seconds after which a run is ended as hanging; 0: 5 times the reference's slowest run,"
    " at least 60",
    "silence": "seconds without a word after which a run is ended as hanging",
    "most_failures": "share of an arm's runs that may crash, hang or be killed before its figures are"
    " questionable",
    "tolerance": "how much worse PSNR may be, relative",
    "ssim_margin": "how much worse SSIM may be; 0: what corresponds to the tolerance of PSNR (x 0.94)",
    "lpips_margin": "0: what corresponds (x 4.5)",
    "l1_margin": "0: what corresponds (x 3.14)",
    "tolerated_difference": "a speed difference below this does not matter to anyone",
    "covariate": '"stolen": speeds are compared at equal stolen time, where the system counts it',
    "lpips": "also judge LPIPS, where its weights exist",
    "evaluate_every": "a grid of evaluations, off the clock, for the aims below; 0: none",
    "target_psnr": "dB that phases with the aim time-to-quality run for",
    "after_seconds": "of the training clock; phases with the aim quality-after-time are judged then",
}


@dataclass(frozen=True, slots=True)
class Protocol:
    """Everything two arms of a comparison share."""

    scene: str = ""
    title: str = "benchmark"
    trainer: str = "splatmeter"
    command: tuple[str, ...] = ()
    directory: str = ""
    images: str = ""
    resolution: int = 4
    eval: bool = True
    test_every: int = 8
    test_count: int = 0
    start_iteration: int = 3000
    checkpoint: str = ""
    sha256: str = ""
    prepare_seed: int = 0
    iterations: int = 1000
    evaluate_at: int = 3100
    warm_up: int = 0
    seed: int = 0
    seeds: int = 6
    options: tuple[str, ...] = ()
    patterns: tuple[tuple[str, str], ...] = ()
    shift_seeds: bool = False
    most_foreign_cpu: float = 0.0
    repeats: int = 2
    time_limit: float = 0.0
    silence: float = SILENCE_SECONDS
    tolerance: float = 0.005
    ssim_margin: float = 0.0
    lpips_margin: float = 0.0
    l1_margin: float = 0.0
    tolerated_difference: float = 0.02
    covariate: str = ""
    most_failures: float = 0.1
    blocks: int = 6
    lpips: bool = False
    evaluate_every: int = 0
    target_psnr: float = 0.0
    after_seconds: float = 0.0
    scenes: tuple[SceneEntry, ...] = ()
    """Several scenes, each with a start of its own; empty: the one that `scene` names."""

    @property
    def end_iteration(self) -> int:
        return self.start_iteration + self.iterations

    @property
    def warm_up_steps(self) -> int:
        """W of the spec: fixed in advance, never chosen after looking."""
        return self.warm_up or default_warm_up(self.iterations)

    @property
    def evaluation_steps(self) -> tuple[int, ...]:
        inside = self.start_iteration < self.evaluate_at < self.end_iteration
        return (self.evaluate_at, self.end_iteration) if inside else (self.end_iteration,)

    @property
    def grid_steps(self) -> tuple[int, ...]:
        """Where a curve over time is looked at; () without one."""
        if not self.evaluate_every:
            return ()
        first = self.start_iteration + self.evaluate_every
        return tuple(sorted({*range(first, self.end_iteration + 1, self.evaluate_every), self.end_iteration}))

    @property
    def all_evaluation_steps(self) -> tuple[int, ...]:
        return tuple(sorted({*self.evaluation_steps, *self.grid_steps}))

    @property
    def scene_names(self) -> tuple[str, ...]:
        """The names of the scenes where there are several, else ()."""
        return tuple(entry.name for entry in self.scenes)

    def of_scene(self, name: str) -> Protocol:
        """As if this scene were the only one; '' is the only one."""
        entry = next((entry for entry in self.scenes if entry.name == name), None)
        if entry is None:
            return self
        suffix = self.checkpoint.rpartition(".")[2] or "safetensors"
        usual = f"start/{name}/chkpnt{self.start_iteration}.{suffix}" if self.start_iteration else ""
        return dataclasses.replace(
            self,
            scenes=(),
            scene=entry.path,
            images=entry.images or self.images,
            resolution=entry.resolution or self.resolution,
            checkpoint=entry.checkpoint or usual,
            sha256=entry.sha256,
            target_psnr=entry.target_psnr or self.target_psnr,
        )

    @property
    def margins(self) -> dict[str, float]:
        """The margins that are stated for single metrics; the others follow from the tolerance."""
        stated = {"ssim": self.ssim_margin, "lpips": self.lpips_margin, "l1": self.l1_margin}
        return {metric: margin for metric, margin in stated.items() if margin}

    def fingerprint(self) -> str:
        """Equal for protocols whose runs may be compared."""
        return hashlib.sha256(json.dumps(self.compared(), sort_keys=True).encode()).hexdigest()[:16]

    def compared(self) -> dict[str, Any]:
        """What must be equal: the rules of judgement are left out, and what is newer than runs that did
        without it.
        """
        left_out = {*SECTIONS["judgement"], "title", "time_limit", "silence"}
        left_out |= {name for name in NEWER if not getattr(self, name)}
        return {k: v for k, v in dataclasses.asdict(self).items() if k not in left_out}


def default_warm_up(iterations: int) -> int:
    return max(50, -(-iterations // 20))


def check_protocol(protocol: Protocol) -> Protocol:
    """Refuses, in one sentence, what could not be measured."""
    if protocol.trainer not in TRAINERS:
        raise UsageError(
            f"{protocol.trainer!r} is not a trainer the lab knows; choose {', '.join(TRAINERS)}."
        )
    if protocol.trainer in ("generic", "events", "gsplat", "opensplat", "fork") and not protocol.command:
        raise UsageError(f"The trainer {protocol.trainer!r} needs a list `command` in [benchmark].")
    if protocol.iterations < 1 or protocol.start_iteration < 0:
        raise UsageError("A protocol needs iterations of at least 1 and a start_iteration of at least 0.")
    if protocol.warm_up_steps >= protocol.iterations:
        raise UsageError(
            f"{protocol.iterations} iterations leave nothing to time after a warm-up of"
            f" {protocol.warm_up_steps}; lengthen the run or set warm_up in [run]."
        )
    if protocol.shift_seeds and (protocol.command or protocol.trainer not in SHIMMED):
        raise UsageError(
            "The key shift_seeds is for mip-splatting and 3dgs started by the lab's own command;"
            " in a command of your own write: {python} {seed_shim} {seed} train.py ..."
        )
    _check_numbers(protocol)
    checked_scenes(protocol.scenes, protocol.scene)
    return protocol


def _check_numbers(protocol: Protocol) -> None:
    if not 0 < protocol.tolerance < 1 or not 0 < protocol.tolerated_difference < 1:
        raise UsageError("The keys tolerance and tolerated_difference are shares between 0 and 1.")
    if not all(0 < margin < 1 for margin in protocol.margins.values()):
        raise UsageError(
            "A margin of a metric is a share between 0 and 1; 0 takes the one that goes with the"
            " tolerance of PSNR."
        )
    if not 0 <= protocol.most_foreign_cpu < 1 or protocol.repeats < 0:
        raise UsageError("The key most_foreign_cpu is a share from 0 to 1; repeats is at least 0.")
    if protocol.time_limit < 0 or protocol.silence <= 0 or not 0 <= protocol.most_failures < 1:
        raise UsageError(
            "The key time_limit is 0 or seconds, silence is seconds above 0, and"
            " most_failures is a share from 0 to 1."
        )
    if protocol.covariate not in ("", "stolen"):
        raise UsageError('The key covariate is "stolen" or empty.')
    if protocol.blocks < 1 or protocol.seeds < 1:
        raise UsageError("The keys blocks and seeds are at least 1.")
    if protocol.evaluate_every < 0 or protocol.target_psnr < 0 or protocol.after_seconds < 0:
        raise UsageError("The keys evaluate_every, target_psnr and after_seconds are 0 or more.")


def read_protocol(path: Path) -> Protocol:
    """Reads and checks; an unknown key is an error, because a misspelt one would silently measure
    something else.
    """
    found: dict[str, Any] = {}
    for section, entries in toml.read_toml(path).items():
        if section == "scene":
            found["scenes"] = entries
            continue
        if section not in SECTIONS or not isinstance(entries, dict):
            raise InputError(f"{path}: [{section}] is not a section; there are {', '.join(SECTIONS)}.")
        for key, item in entries.items():
            if key not in SECTIONS[section]:
                raise InputError(
                    f"{path}: {key!r} does not belong in [{section}]; it holds {SECTIONS[section]}."
                )
            found[key] = item
    return check_protocol(Protocol(**protocol_entries(path, found)))


def protocol_entries(path: Path, entries: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a protocol as TOML holds them, checked one by one."""
    fields = {field.name: field for field in dataclasses.fields(Protocol)}
    for key in entries:
        if key not in fields:
            raise InputError(f"{path}: a protocol has no {key!r}; it has {', '.join(fields)}.")
    return {key: _typed(path, key, item, type(fields[key].default)) for key, item in entries.items()}


def _typed(path: Path, key: str, item: Any, wanted: type) -> Any:
    if key == "scenes":
        return scene_entries(path, item)
    if key == "patterns" and isinstance(item, dict):
        return tuple((str(name), str(pattern)) for name, pattern in item.items())
    if wanted is tuple and isinstance(item, list):
        return tuple(str(part) for part in item)
    if wanted is float and isinstance(item, int) and not isinstance(item, bool):
        return float(item)
    if type(item) is not wanted:
        raise InputError(f"{path}: {key} must be of type {wanted.__name__}, not {item!r}.")
    return item


def protocol_text(protocol: Protocol) -> str:
    lines = ["# A benchmark of the splatmeter lab: everything here is equal in all runs.", ""]
    for section, keys in SECTIONS.items():
        if section == "scene":
            for entry in protocol.scenes:
                lines += [
                    "[[scene]]",
                    *(f"{key} = {toml.toml_value(getattr(entry, key))}" for key in KEYS),
                    "",
                ]
            continue
        lines.append(f"[{section}]")
        for key in keys:
            item = getattr(protocol, key)
            text = toml.toml_value(dict(item) if key == "patterns" else item)
            note = f"  # {COMMENTS[key]}" if key in COMMENTS else ""
            lines.append(f"{key} = {text}{note}")
        lines.append("")
    return "\n".join(lines)


def users_own(scene: str, trainer: str = "splatmeter", directory: str = "") -> Protocol:
    """The protocol of the log that started this project: -r 4, 3000 -> 4000, evaluated at 3100, ±0.5 %."""
    if trainer in ("mip-splatting", "3dgs"):
        checkpoint = "start/chkpnt3000.pth"
    elif trainer == "splatmeter":
        checkpoint = "start/chkpnt3000.safetensors"
    else:
        return Protocol(scene=scene, trainer=trainer, directory=directory, start_iteration=0, evaluate_at=0)
    return Protocol(
        scene=scene,
        trainer=trainer,
        directory=directory,
        checkpoint=checkpoint,
        title=f"{Path(scene).name} -r4 3000-4000",
    )
