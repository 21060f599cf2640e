"""The work folder beside the new scene: what finished stages left, so that a stopped run can go on."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from splatmeter.capture.job import Job
from splatmeter.errors import OutputError


class Work:
    """Paths within, and markers: one JSON file a finished stage."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.photos, self.masks = root / "photos", root / "masks"
        self.database, self.sparse = root / "database.db", root / "sparse"
        self.flat, self.scene, self.maps = root / "undistorted", root / "scene", root / "maps"
        self.log, self.job = root / "log.txt", root / "job.json"

    def finished(self, stage: str) -> bool:
        return self._marker(stage).is_file()

    def result(self, stage: str) -> dict[str, Any]:
        return json.loads(self._marker(stage).read_text("utf-8"))

    def finish(self, stage: str, result: dict[str, Any]) -> None:
        """Appears whole or not at all."""
        write_whole(self._marker(stage), json.dumps(result))

    def open(self, job: Job) -> bool:
        """Makes the folder, or finds one of the same job: then True. What another job left is removed."""
        fingerprint = job.fingerprint()
        try:
            going_on = json.loads(self.job.read_text("utf-8"))["fingerprint"] == fingerprint
        except (OSError, ValueError, KeyError, TypeError):
            going_on = False
        if not going_on:
            self.remove()
        for folder in (self.root, self.photos, self.masks, self.root / "done"):
            folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.job, json.dumps({"fingerprint": fingerprint, "job": job.to_json()}))
        return going_on

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def _marker(self, stage: str) -> Path:
        return self.root / "done" / f"{stage}.json"


def work_folder(out: Path) -> Path:
    """Hidden, and on the same file system, so that the scene can be moved into place at once."""
    return out.parent / f".{out.name}.work"


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Two commands at one scene would destroy each other's work."""
    lock = out.parent / f".{out.name}.lock"
    try:
        descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        if _alive(lock):
            raise OutputError(
                f"Another splatmeter is making {out} just now. Wait for it, or end it."
            ) from None
        lock.unlink(missing_ok=True)
        descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    with os.fdopen(descriptor, "w") as file:
        file.write(str(os.getpid()))
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _alive(lock: Path) -> bool:
    """Whether the process that made the lock still runs; one that began later only has got its number."""
    try:
        return psutil.Process(int(lock.read_text())).create_time() <= lock.stat().st_mtime + 1
    except (OSError, ValueError, psutil.Error):
        return False


def write_whole(path: Path, text: str) -> None:
    beside = path.with_name(path.name + ".new")
    try:
        beside.write_text(text, "utf-8")
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
