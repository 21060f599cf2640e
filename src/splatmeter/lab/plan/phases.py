"""Phases: steps of an optimisation, each with a parent and with everything it changes declared."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from splatmeter.errors import InputError, MissingFile, UsageError
from splatmeter.lab.json_files import write_text
from splatmeter.lab.order_of_time import seconds_of, utc_text
from splatmeter.lab.plan import toml
from splatmeter.lab.samples.aim import AIMS

BASELINE = "baseline"
STATES = ("planned", "on hold", "recorded", "measured")
CHANGES = (
    "split",
    "resolution",
    "gaussians",
    "quality",
    "seed",
    "iterations",
    "backend",
    "environment",
    "images",
    "start-up",
    "evaluation",
)
"""What a phase may declare to differ from its parent on purpose, beyond its options."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}")


@dataclass(frozen=True, slots=True)
class Phase:
    """`state` is what a person declared; what has been run is known from the runs themselves."""

    name: str
    title: str = ""
    parent: str = ""
    note: str = ""
    state: str = "planned"
    reason: str = ""
    changes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    revision: str = ""
    patch: str = ""
    build: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    trainer: str = ""
    code_changes: tuple[str, ...] = ()
    created: str = ""
    adopted: str = ""
    """When a person made it the ground that later phases stand on; empty: not adopted."""
    adopted_because: str = ""
    """Why, where the evidence alone would not have allowed it."""
    aim: str = ""
    """What it is meant to gain (samples/aim.py); empty: speed."""

    def differs(self) -> bool:
        """Whether anything at all distinguishes this phase from its parent."""
        said = (self.options, self.environment, self.revision, self.patch, self.build, self.command)
        return any(said)


def check_phase(phase: Phase) -> Phase:
    if not _NAME.fullmatch(phase.name):
        raise UsageError(
            f"{phase.name!r} cannot name a phase; use letters, digits, '.', '_', '+', '-'"
            " (a --title may say more)."
        )
    if phase.state not in STATES:
        raise UsageError(f"{phase.state!r} is not a state; there are {', '.join(STATES)}.")
    if phase.state == "on hold" and not phase.reason:
        raise UsageError(f"{phase.name} cannot be put on hold without a reason; add --reason.")
    for change in phase.changes:
        if change not in CHANGES:
            raise UsageError(
                f"{change!r} is not something a phase can declare; there are {', '.join(CHANGES)}."
            )
    if phase.aim and phase.aim not in AIMS:
        raise UsageError(f"{phase.aim!r} is not an aim; there are {', '.join(AIMS)}.")
    if phase.parent == phase.name:
        raise UsageError(f"{phase.name} cannot be its own parent; choose another.")
    return phase


def _in_order(phase: Phase) -> tuple[float, str, bool, str]:
    return seconds_of(phase.created), phase.created, phase.name != BASELINE, phase.name


class Phases:
    """The folder of phase files; a chain (a tree, really) that starts at the baseline."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self) -> list[str]:
        """In the order in which they were made, which is the order of the story."""
        return [phase.name for phase in self.all()]

    def all(self) -> list[Phase]:
        found = [self._read(path) for path in sorted(self.folder.glob("*.toml"))]
        return sorted(found, key=_in_order)

    def newest_adopted(self) -> str:
        """What a new phase builds on unless told otherwise: the last one adopted, else the baseline."""
        phases = self.all()
        adopted = [phase for phase in phases if phase.adopted]
        if adopted:
            return max(adopted, key=lambda phase: seconds_of(phase.adopted)).name
        return next((phase.name for phase in phases if not phase.parent), "")

    def get(self, name: str) -> Phase:
        path = self._path(name)
        if not path.exists():
            known = ", ".join(self.names()) or "none yet"
            raise MissingFile(
                f"There is no phase {name!r} here ({known}); `splatmeter lab phase add {name}` makes it."
            )
        return self._read(path)

    def add(self, phase: Phase) -> Path:
        check_phase(phase)
        path = self._path(phase.name)
        if path.exists():
            raise UsageError(
                f"Phase {phase.name} exists already in {path}; choose another name or edit that file."
            )
        if phase.parent:
            self.get(phase.parent)
        return self.save(dataclasses.replace(phase, created=self._after_all_others(phase.created)))

    def save(self, phase: Phase) -> Path:
        path = self._path(check_phase(phase).name)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(path, phase_text(phase, path.read_text("utf-8") if path.exists() else ""))
        return path

    def _after_all_others(self, created: str) -> str:
        """A clock that stepped back must not put a new phase before older ones."""
        newest = max((seconds_of(phase.created) for phase in self.all()), default=0.0)
        if seconds_of(created) >= newest:
            return created
        return " ".join([utc_text(newest + 1e-6), *created.split(" ")[1:]])

    def lineage(self, name: str) -> list[Phase]:
        """From the baseline to the phase itself."""
        chain = [self.get(name)]
        while chain[-1].parent:
            above = self.get(chain[-1].parent)
            if any(above.name == phase.name for phase in chain):
                raise InputError(
                    f"The parents of {name} run in a circle at {above.name}; correct {self._path(name)}."
                )
            chain.append(above)
        return chain[::-1]

    def baseline(self, name: str) -> Phase:
        return self.lineage(name)[0]

    def compared_with(self, phase: Phase) -> list[str]:
        """The phases it is judged against: its parent and the baseline; none for a baseline itself."""
        return list(dict.fromkeys([phase.parent, self.baseline(phase.name).name])) if phase.parent else []

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} cannot name a phase; use letters, digits, '.', '_', '+', '-'.")
        return self.folder / f"{name}.toml"

    def _read(self, path: Path) -> Phase:
        entries = {"name": path.stem, **phase_entries(path, toml.read_toml(path))}
        if entries["name"] != path.stem:
            raise InputError(f"{path}: the phase calls itself {entries['name']!r}; file and name must agree.")
        return check_phase(Phase(**entries))


def phase_entries(path: Path, entries: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a phase as TOML holds them, checked one by one."""
    known = [item.name for item in dataclasses.fields(Phase)]
    for key in entries:
        if key not in known:
            raise InputError(f"{path}: a phase has no {key!r}; it has {', '.join(known)}.")
    return {key: _typed(path, key, item) for key, item in entries.items()}


_LISTS = {"changes", "options", "build", "command", "code_changes"}


def _typed(path: Path, key: str, item: Any) -> Any:
    if key in _LISTS and isinstance(item, list) and all(isinstance(part, str) for part in item):
        return tuple(item)
    if key == "environment" and isinstance(item, dict):
        return {str(name): str(setting) for name, setting in item.items()}
    if key not in _LISTS and key != "environment" and isinstance(item, str):
        return item
    raise InputError(
        f"{path}: {key} cannot be {item!r}; {'a list of texts' if key in _LISTS else 'a text'} is expected."
    )


def phase_text(phase: Phase, before: str = "") -> str:
    """Empty fields are left out, so that a file shows only what the phase is about. `before` is the file as
    it was: comments in it stay.
    """
    record = {item.name: getattr(phase, item.name) for item in dataclasses.fields(phase)}
    stated = {key: item for key, item in record.items() if item or key in ("name", "state")}
    return toml.edited(before, stated)


def lineage_options(lineage: list[Phase]) -> tuple[str, ...]:
    """A phase builds on its parents: their options come first, so that its own win."""
    return tuple(option for phase in lineage for option in phase.options)


def lineage_environment(lineage: list[Phase]) -> dict[str, str]:
    merged: dict[str, str] = {}
    for phase in lineage:
        merged.update(phase.environment)
    return merged


def stated_variables(text: list[str]) -> dict[str, str]:
    """['A=1'] -> {'A': '1'}; a name without '=' takes the value it has now."""
    found: dict[str, str] = {}
    for entry in text:
        name, equals, setting = entry.partition("=")
        if not name or (not equals and name not in os.environ):
            raise UsageError(f"{entry!r} is not NAME=VALUE; write for example OMP_NUM_THREADS=4.")
        found[name] = setting if equals else os.environ[name]
    return found
