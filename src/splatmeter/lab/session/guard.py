"""One comparison, one code an arm: what a session began with is what every later run of it must find."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from splatmeter.errors import CodeChanged
from splatmeter.lab.code_identity import CodeIdentity, identify
from splatmeter.lab.executor import Command
from splatmeter.lab.json_files import read_json, write_json
from splatmeter.lab.order_of_time import utc_now
from splatmeter.lab.plan import commands
from splatmeter.lab.plan.commands import RunRequest
from splatmeter.lab.record.lab import Lab

CODE = "code.json"
PIN = "pinned.json"


class CodeGuard:
    """Kept in the session's folder, so that a session that is resumed next week is held to it too."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / CODE

    def checked(self, phase: str, command: Command) -> CodeIdentity:
        """The first look is written down; every later one must see the same."""
        now = identify(command.arguments, command.directory, command.environment)
        known = read_json(self.path) or {}
        if phase not in known:
            write_json(self.path, known | {phase: dataclasses.asdict(now)})
            return now
        began = restored(known[phase])
        if began.sha256 != now.sha256:
            raise CodeChanged(
                f"The code of {phase} has changed since this session began: {began.difference(now)}."
                " One comparison has one code for each arm. Restore it and `splatmeter lab resume`, or"
                " `splatmeter lab resume --anew` to begin again with the code as it is now."
            )
        return now


def restored(record: dict[str, Any]) -> CodeIdentity:
    return CodeIdentity(**{key: record.get(key, "") for key in ("source", "program", "environment")},
                        files=record.get("files", {}))  # fmt: skip


def pin(lab: Lab, phase: str) -> None:
    """What this phase (the baseline) means from now on: later sessions must find this code behind it."""
    stated, lineage = lab.protocol(), lab.phases.lineage(phase)
    protocol = stated.of_scene(next(iter(stated.scene_names), ""))  # which one does not change the code
    request = RunRequest(lab.root / "unused", protocol.seed, lab=lab.root.resolve())
    found = identify(
        commands.arguments(protocol, lineage, request),
        commands.directory(protocol, lineage, request),
        commands.environment(lineage, request),
    )
    write_json(lab.root / PIN, {"phase": phase, "time": utc_now(), "code": dataclasses.asdict(found)})


def check_pin(lab: Lab, phase: str, command: Command) -> None:
    """Installed packages may be updated between sessions: both arms of a session see the same ones."""
    record = read_json(lab.root / PIN)
    if not isinstance(record, dict) or record.get("phase") != phase:
        return
    pinned = restored(record["code"])
    now = identify(command.arguments, command.directory, command.environment)
    if not pinned.source or pinned.source == now.source:
        return
    alike = dataclasses.replace(now, program=pinned.program, environment=pinned.environment)
    raise CodeChanged(
        f"{phase} no longer is the code that was pinned at {record.get('time', '')[:16]}:"
        f" {pinned.difference(alike)}. Commit your change and tell the phases apart by revision"
        f" (`splatmeter lab phase set {phase} --revision COMMIT`, `lab phase add NAME --revision HEAD`),"
        f" or make the code as it is now the {phase}: `splatmeter lab phase set {phase} --pin`."
    )
