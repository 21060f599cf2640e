"""What a session was built from, kept as evidence in its folder: the build's log and the kernels in it."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
from pathlib import Path
from typing import Any

from splatmeter.lab.json_files import read_json, write_json
from splatmeter.lab.monitor import kernels
from splatmeter.lab.monitor.kernels import Kernel
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.session.session_plan import in_order
from splatmeter.lab.session.worktree import LOG, Built

BUILDS = "builds"


def keep(session: Path, phase: str, made: Built) -> None:
    """Once: worktrees may be removed to save space, evidence stays as it was first seen."""
    target = session / BUILDS / f"{phase}.json"
    if made.folder is None or target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    record: dict[str, Any] = dict(read_json(made.folder / "built.json") or {})
    log = made.folder / LOG
    if log.is_file():
        shutil.copyfile(log, target.with_suffix(".log"))
        data = log.read_bytes()
        text = data.decode("utf-8", "replace")
        found = kernels.parse(text)
        record |= {"log_sha256": hashlib.sha256(data).hexdigest(), "warnings": kernels.build_warnings(text)}
        record |= {"kernels": [dataclasses.asdict(kernel) for kernel in found]}
    write_json(target, record)


def _record(lab: Lab, phase: str, session: str) -> dict[str, Any]:
    """What was kept of the phase's build in that session, or of its newest one; {} if none names kernels."""
    sessions = [session] if session else []
    sessions += [name for name in reversed(in_order(lab)) if name != session]
    for name in sessions:
        record = read_json(lab.sessions / name / BUILDS / f"{phase}.json")
        if isinstance(record, dict) and isinstance(record.get("kernels"), list):
            return record
    return {}


def kernels_of(lab: Lab, phase: str, session: str = "") -> list[Kernel]:
    return [kernel for item in _record(lab, phase, session).get("kernels", ()) if (kernel := _kernel(item))]


def _kernel(item: Any) -> Kernel | None:
    try:
        return Kernel(**item)
    except TypeError:
        return None
