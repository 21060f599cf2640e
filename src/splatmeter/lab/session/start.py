"""The start checkpoint: made once, known by its hash, refused when it has changed."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from splatmeter.errors import CheckpointError, MissingFile, SplatmeterError, UsageError
from splatmeter.events import Failed, Finished
from splatmeter.lab.executor import Arrival, Command, Executor, Hooks
from splatmeter.lab.json_files import read_json, write_json
from splatmeter.lab.plan import commands
from splatmeter.lab.plan.commands import RunRequest
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.lab import Lab, locked
from splatmeter.lab.trainers.choose import Listening, adapter

LOCK = "checkpoint.json"


def path_of(lab: Lab, protocol: Protocol) -> Path | None:
    """None: runs start from the points."""
    if not protocol.start_iteration:
        return None
    if not protocol.checkpoint:
        raise UsageError(
            "The protocol sets start_iteration but no checkpoint; name one in [start] of protocol.toml."
        )
    stated = Path(protocol.checkpoint).expanduser()
    return stated if stated.is_absolute() else lab.root / stated


def hash_of(path: Path) -> str:
    """SHA-256 of a file, or of a folder: names and contents of its files in order."""
    digest = hashlib.sha256()
    files = sorted(item for item in path.rglob("*") if item.is_file()) if path.is_dir() else [path]
    for file in files:
        if path.is_dir():
            digest.update(file.relative_to(path).as_posix().encode() + b"\0")
        with file.open("rb") as content:
            while block := content.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def folder_of(lab: Lab, scene: str) -> Path:
    """Where the start of a scene is made and its hash kept; the only scene of a protocol has no name."""
    return lab.start / scene if scene else lab.start


def checked(lab: Lab, protocol: Protocol, scene: str = "") -> tuple[Path | None, str]:
    """The checkpoint and its hash; the first use writes the hash down, every later use must find it again."""
    path = path_of(lab, protocol)
    if path is None:
        return None, ""
    if not path.exists():
        raise MissingFile(
            f"The start checkpoint {path} does not exist; `splatmeter lab prepare` makes it once."
        )
    found = hash_of(path)
    folder = folder_of(lab, scene)
    noted = read_json(folder / LOCK) or {}
    expected = protocol.sha256 or (noted.get("sha256", "") if noted.get("checkpoint") == str(path) else "")
    if expected and expected != found:
        raise CheckpointError(
            f"The start checkpoint {path} has changed: its hash is {found[:12]}...,"
            f" {expected[:12]}... was used before. Restore it, or start a new lab:"
            " runs from different starts cannot be compared."
        )
    if not expected:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / LOCK, {"checkpoint": str(path), "sha256": found})
    return path, found


def prepare(lab: Lab, protocol: Protocol, executor: Executor, scene: str = "") -> Iterator[Arrival]:
    """Trains from the points to the start iteration with the protocol's own split, and keeps the
    checkpoint.
    """
    target = path_of(lab, protocol)
    if target is None:
        raise UsageError(
            "This protocol starts every run from the points: there is no checkpoint to make;"
            " `splatmeter lab run` needs none."
        )
    if target.exists():
        raise UsageError(f"{target} exists already; it is made once and never overwritten.")
    folder = folder_of(lab, scene)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock", "the start checkpoint"):
        output = folder.resolve() / "run"
        shutil.rmtree(output, ignore_errors=True)  # what an attempt that failed has left
        last = protocol.start_iteration
        request = RunRequest(output, protocol.prepare_seed, last=last, lab=lab.root.resolve())
        whole = dataclasses.replace(
            protocol, start_iteration=0, evaluate_at=0, iterations=protocol.start_iteration
        )
        saving = ("--checkpoint_iterations", str(protocol.start_iteration))
        command = Command(
            (*commands.arguments(whole, [], request), *saving), commands.directory(protocol, [], request)
        )
        listener = adapter(
            protocol.trainer, Listening(0, protocol.start_iteration, request.output, command.directory)
        )
        ended: object = None
        for arrival in executor.run(command, listener, folder, Hooks()):
            ended = arrival.event
            yield arrival
        _adopt(output, target, protocol, ended, folder)


def _adopt(output: Path, target: Path, protocol: Protocol, ended: object, folder: Path) -> None:
    if isinstance(ended, Failed) or not isinstance(ended, Finished):
        reason = ended.message if isinstance(ended, Failed) else "it never finished"
        said = folder / "stderr.txt"
        raise SplatmeterError(f"The start checkpoint could not be made: {reason}; what it said is in {said}.")
    made = sorted(output.rglob(f"chkpnt{protocol.start_iteration}*"))
    if not made:
        raise SplatmeterError(
            f"The trainer finished without writing chkpnt{protocol.start_iteration} into {output};"
            " check what it saves, or name a checkpoint in [start] of protocol.toml."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    made[0].replace(target)
    shutil.rmtree(output, ignore_errors=True)  # its model is large, and the checkpoint is all that is wanted
