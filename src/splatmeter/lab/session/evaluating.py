"""Models of foreign trainers are judged by our own `eval`, in a child process; each model only once."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from splatmeter.lab.json_files import read_json, write_json
from splatmeter.lab.plan import commands
from splatmeter.lab.plan.commands import scene_path, trainer_of
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.record.result import RunEvaluation, RunResult, RunStart, SavedModel, evaluations_from
from splatmeter.lab.samples.run_sample import OURS
from splatmeter.lab.session.run import RunSpec
from splatmeter.lab.session.start import hash_of
from splatmeter.lab.trainers.habits import photo_bytes, stated_test_every, written_split


class Evaluator:
    """Fills in what the trainer did not measure itself; figures it printed stay, marked as its own."""

    def __init__(self, lab: Lab, protocol: Protocol) -> None:
        self.lab = lab
        self.protocol = protocol

    def arguments(self, path: str, options: list[str]) -> tuple[str, ...]:
        return (sys.executable, "-m", "splatmeter", "eval", "-m", path, *options, "--json")

    def complete(self, result: RunResult, spec: RunSpec) -> RunResult:
        """Where all arms are this very splatmeter it has evaluated by the same code: nothing to do then."""
        result = _hashed(result)
        foreign = trainer_of(self.protocol, spec.lineage) not in ("splatmeter", "events")
        if not foreign and not spec.request.save_all:
            return result
        if foreign:
            started = self._views(result.started, spec)
            result = replace(result, image_bytes_held=self._photo_bytes(spec), started=started)
        for model in result.models:
            if model.sha256 and self.protocol.scene:
                result, found = self._judged(model, spec, result)
                own = [replace(item, step=model.step) for item in found if self._held_out(item, result)]
                result = replace(result, evaluations=(*result.evaluations, *own))
        return result

    def _views(self, started: RunStart, spec: RunSpec) -> RunStart:
        """Which photos trained it and which did not, from what the trainer itself wrote."""
        every = stated_test_every(spec.request.output) or self.protocol.test_every
        split = written_split(spec.request.output, every if self.protocol.eval else 0)
        if split is None or started.train_images:
            return started
        return replace(started, train_images=tuple(split[0]), test_images=tuple(split[1]))

    def _held_out(self, item: RunEvaluation, result: RunResult) -> bool:
        """Without --eval every photo was trained on, so there are no test views whatever an evaluation
        calls them; a phase may have left the flag out, and a run of ours tells.
        """
        told = result.started
        ours = bool(told.environment)  # of others the split is a guess, and the audit decides
        kept_none = ours and told.train_images and not told.test_images
        return item.split != "test" or (self.protocol.eval and not kept_none)

    def _judged(
        self, model: SavedModel, spec: RunSpec, result: RunResult
    ) -> tuple[RunResult, list[RunEvaluation]]:
        """From the cache, or by a child; a model that cannot be judged is a warning, not a failed run."""
        split, warning = self._split(spec)
        result = _warned(result, warning)
        options = [*self._options(spec), *split]
        key = hashlib.sha256(json.dumps([model.sha256, options]).encode()).hexdigest()[:32]
        cached = read_json(self.lab.judged / f"{key}.json")
        if isinstance(cached, dict) and cached.get("model") == model.sha256:
            return result, [replace(item, judged_in=key) for item in evaluations_from(cached)]
        found, complaint = evaluated(model, self.arguments(model.path, options))
        if complaint:
            message = f"the model could not be judged: {complaint}"
            result = replace(result, warnings=(*result.warnings, message))
        if found:
            self.lab.judged.mkdir(parents=True, exist_ok=True)
            record = {"model": model.sha256, "evaluations": [asdict(item) for item in found]}
            write_json(self.lab.judged / f"{key}.json", record)
        return result, [replace(item, judged_in=key) for item in found]

    def _options(self, spec: RunSpec) -> list[str]:
        protocol = self.protocol
        words = ["-s", scene_path(protocol, spec.request), "-r", str(protocol.resolution)]
        words += ["-i", protocol.images] if protocol.images else []
        return [*words, "--lpips", "vgg" if protocol.lpips else "none"]

    def _split(self, spec: RunSpec) -> tuple[list[str], str]:
        """The trainer's own rule where it wrote one down, else the protocol's, so that our test views are
        its own; and a warning where the two differ."""
        if not self.protocol.eval:
            return [], ""
        every, count, warning = self.protocol.test_every, self.protocol.test_count, ""
        own = stated_test_every(spec.request.output)
        if own and own != every and not count:
            warning = f"every {own}th photo was held out, the protocol says {every}; judged as it was done"
            every = own
        return (["--test-count", str(count)] if count else ["--test-every", str(every)]), warning

    def _photo_bytes(self, spec: RunSpec) -> int:
        """The original keeps every photo as floats on its card, unless told to keep them elsewhere."""
        words = commands.arguments(self.protocol, spec.lineage, spec.request)
        if trainer_of(self.protocol, spec.lineage) not in ("mip-splatting", "3dgs", "fork"):
            return 0
        if "--data_device" in words:
            return 0
        scene = Path(scene_path(self.protocol, spec.request))
        return photo_bytes(scene, self.protocol.images or "images", self.protocol.resolution)


def _hashed(result: RunResult) -> RunResult:
    """What proves equal quality is hashed by us, whatever the trainer says."""
    models: list[SavedModel] = []
    warnings = list(result.warnings)
    for model in result.models:
        path = Path(model.path)
        if path.is_file():
            found = hash_of(path)
            if model.sha256 and model.sha256 != found:
                warnings.append(f"{path.name} has not the hash that the trainer told")
            model = replace(model, sha256=found)
        models.append(model)
    hashes = {model.step: model.sha256 for model in reversed(models)}  # of equal steps, the first
    evaluations = [replace(item, model_sha256=hashes.get(item.step, "")) for item in result.evaluations]
    return replace(result, models=tuple(models), warnings=tuple(warnings), evaluations=tuple(evaluations))


def _warned(result: RunResult, warning: str) -> RunResult:
    if not warning or warning in result.warnings:
        return result
    return replace(result, warnings=(*result.warnings, warning))


def evaluated(model: SavedModel, arguments: tuple[str, ...]) -> tuple[list[RunEvaluation], str]:
    """What `eval --json` says at full size, or why it says nothing."""
    try:
        answer = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as problem:
        return [], str(problem)
    try:
        record = json.loads(answer.stdout)
        splits = {split: scales["1"] for split, scales in record["splits"].items()}
        found = [_entry(split, item, model, record) for split, item in splits.items()]
    except (ValueError, KeyError, TypeError, AttributeError):
        lines = answer.stderr.decode("utf-8", "replace").strip().splitlines()
        return [], lines[-1] if lines else f"exit code {answer.returncode}"
    return found, ""


def _entry(split: str, item: dict[str, Any], model: SavedModel, record: dict[str, Any]) -> RunEvaluation:
    return RunEvaluation(
        step=model.step,
        split=split,
        metrics=dict(item["means"]),
        images=tuple(sorted(item["per_view"])),
        model_sha256=model.sha256,
        peak_memory_bytes=record.get("peak_memory_bytes"),
        judged_by=OURS,
        exposure=record.get("exposure_protocol", "none"),
    )
