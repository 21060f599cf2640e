"""Scripted labs that believe to be on other machines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from scripted_lab import add, make_lab, trainer

from splatmeter.lab.record.lab import Lab
from splatmeter.lab.session import session_plan as plans
from splatmeter.lab.session.session import Session
from splatmeter.lab.session.session_plan import SessionPlan, Wishes


def pretend(monkeypatch: pytest.MonkeyPatch, machine: str, host: str = "", boot: str = "b") -> None:
    """From now on, this is another machine."""
    for module in ("environment", "session.session_plan", "session.session", "session.time_limit"):
        monkeypatch.setattr(f"splatmeter.lab.{module}.machine_identity", lambda: machine)
    monkeypatch.setattr("splatmeter.lab.session.run.host_identity", lambda: host)
    monkeypatch.setattr("splatmeter.lab.session.run.boot_identity", lambda: boot)


def lab_on(folder: Path, speed: str = "110", **fields: object) -> Lab:
    """The program lies in one place, as it does on shared storage."""
    lab = make_lab(folder, directory=_program(folder), **fields)
    add(lab, "candidate", "--speed", speed)
    return lab


def _program(folder: Path) -> str:
    shared = folder.parent / "shared"
    shared.mkdir(parents=True, exist_ok=True)
    (shared / "train.py").write_text("# what the scripted trainer would execute\n")
    return str(shared)


def measured(
    lab: Lab, before_block: Callable[[int], None], seed: int = 0, noise: float = 0.004, **wishes: object
) -> SessionPlan:
    """`before_block` is called with the number of every block, to move house."""
    wanted = Wishes(**{"seed": 1, "prime": False, "blocks": 6, **wishes})  # type: ignore[arg-type]
    plan = plans.make(lab, "ab", ["baseline", "candidate"], wanted)
    before_block(0)
    for beat in Session(lab, plan, trainer(noise, seed)).beats():
        if beat.stage == "block done":
            before_block(beat.block + 1)
    return plan
