"""Models of foreign trainers are judged by our own `eval`, in a child process; each model only once."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from splatmeter.lab.atomic import read_json, write_json
from splatmeter.lab.plan import commands
from splatmeter.lab.plan.commands import scene_path, trainer_of
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.session.run import RunSpec
from splatmeter.lab.session.start import hash_of
from splatmeter.lab.trainers.habits import photo_bytes, stated_test_every, written_split


class Judge:
    """Fills in what the trainer did not measure itself; figures it printed stay, marked as its own."""

    def __init__(self, lab: Lab, protocol: Protocol) -> None:
        self.lab = lab
        self.protocol = protocol

    def arguments(self, path: str, options: list[str]) -> tuple[str, ...]:
        return (sys.executable, "-m", "splatmeter", "eval", "-m", path, *options, "--json")

    def complete(self, result: dict[str, Any], spec: RunSpec) -> None:
        """Where all arms are this very splatmeter it has evaluated by the same code: nothing to do then."""
        for model in result["models"]:
            path = Path(model["path"])
            if path.is_file():  # what proves equal quality is hashed by us, whatever the trainer says
                found = hash_of(path)
                if model["sha256"] and model["sha256"] != found:
                    result["warnings"].append(f"{path.name} has not the hash that the trainer told")
                model["sha256"] = found
        if result["models"]:
            result["model"] = result["models"][-1]
        for evaluation in result["evaluations"]:
            evaluation["model_sha256"] = self._hash_at(result, evaluation["step"])
        foreign = trainer_of(self.protocol, spec.lineage) not in ("splatmeter", "events")
        if not foreign and not spec.request.save_all:
            return
        if foreign:
            result["image_bytes_held"] = self._photo_bytes(spec)
            self._views(result, spec)
        for model in result["models"]:
            if model["sha256"] and self.protocol.scene:
                found = self._judged(model, spec, result)
                result["evaluations"] += [
                    item | {"step": model["step"]} for item in found if self._held_out(item, result)
                ]

    def _views(self, result: dict[str, Any], spec: RunSpec) -> None:
        """Which photos trained it and which did not, from what the trainer itself wrote."""
        every = stated_test_every(spec.request.output) or self.protocol.test_every
        split = written_split(spec.request.output, every if self.protocol.eval else 0)
        if split is not None and not (result.get("started") or {}).get("train_images"):
            result["started"] = (result.get("started") or {}) | {
                "train_images": split[0],
                "test_images": split[1],
            }

    def _held_out(self, item: dict[str, Any], result: dict[str, Any]) -> bool:
        """Without --eval every photo was trained on, so there are no test views whatever an evaluation
        calls them; a phase may have left the flag out, and a run of ours tells.
        """
        told = result.get("started") or {}
        ours = bool(told.get("environment"))  # of others the split is a guess, and the audit decides
        kept_none = ours and told.get("train_images") and not told.get("test_images")
        return item["split"] != "test" or (self.protocol.eval and not kept_none)

    def _hash_at(self, result: dict[str, Any], step: int) -> str:
        return next((model["sha256"] for model in result["models"] if model["step"] == step), "")

    def _judged(self, model: dict[str, Any], spec: RunSpec, result: dict[str, Any]) -> list[dict[str, Any]]:
        """From the cache, or by a child; a model that cannot be judged is a warning, not a failed run."""
        options = [*self._options(spec), *self._split(spec, result)]
        key = hashlib.sha256(json.dumps([model["sha256"], options]).encode()).hexdigest()[:32]
        cached = read_json(self.lab.judged / f"{key}.json")
        if isinstance(cached, dict) and cached.get("model") == model["sha256"]:
            return [item | {"judged_in": key} for item in cached["evaluations"]]
        found, complaint = evaluated(model, self.arguments(model["path"], options))
        if complaint:
            result["warnings"].append(f"the model could not be judged: {complaint}")
        if found:
            self.lab.judged.mkdir(parents=True, exist_ok=True)
            write_json(self.lab.judged / f"{key}.json", {"model": model["sha256"], "evaluations": found})
        return [item | {"judged_in": key} for item in found]

    def _options(self, spec: RunSpec) -> list[str]:
        protocol = self.protocol
        words = ["-s", scene_path(protocol, spec.request), "-r", str(protocol.resolution)]
        words += ["-i", protocol.images] if protocol.images else []
        return [*words, "--lpips", "vgg" if protocol.lpips else "none"]

    def _split(self, spec: RunSpec, result: dict[str, Any]) -> list[str]:
        """The trainer's own rule where it wrote one down, else the protocol's: our test views are its own."""
        if not self.protocol.eval:
            return []
        every, count = self.protocol.test_every, self.protocol.test_count
        own = stated_test_every(spec.request.output)
        if own and own != every and not count:
            warning = f"every {own}th photo was held out, the protocol says {every}; judged as it was done"
            if warning not in result["warnings"]:
                result["warnings"].append(warning)
            every = own
        return ["--test-count", str(count)] if count else ["--test-every", str(every)]

    def _photo_bytes(self, spec: RunSpec) -> int:
        """The original keeps every photo as floats on its card, unless told to keep them elsewhere."""
        words = commands.arguments(self.protocol, spec.lineage, spec.request)
        if trainer_of(self.protocol, spec.lineage) not in ("mip-splatting", "3dgs", "fork"):
            return 0
        if "--data_device" in words:
            return 0
        scene = Path(scene_path(self.protocol, spec.request))
        return photo_bytes(scene, self.protocol.images or "images", self.protocol.resolution)


def evaluated(model: dict[str, Any], arguments: tuple[str, ...]) -> tuple[list[dict[str, Any]], str]:
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


def _entry(split: str, item: dict[str, Any], model: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    return {
        "step": model["step"],
        "split": split,
        "metrics": dict(item["means"]),
        "images": sorted(item["per_view"]),
        "model_sha256": model["sha256"],
        "peak_memory_bytes": record.get("peak_memory_bytes"),
        "judged_by": "splatmeter eval",
        "exposure": record.get("exposure_protocol", "none"),
    }
