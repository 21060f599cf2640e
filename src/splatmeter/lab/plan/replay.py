"""A whole campaign in one TOML file: protocol, phases, sessions and what is expected of them.

[protocol] holds the keys of a protocol.toml without its sections, [[scene]] several scenes, [[phase]] the
fields of a phase,
[[session]] the fields of Measurement; [quick.protocol] and [quick.session] replace sizes for a trial.
Files under `scripts` are copied beside the evidence, where commands find them as {lab}/scripts/NAME.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from splatmeter.errors import InputError
from splatmeter.lab.plan import phases, protocol, toml
from splatmeter.lab.plan.phases import BASELINE, Phase
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.samples.verdict_kinds import VerdictKind

KINDS = ("ab", "aa", "overhead", "record")
_VERDICTS = {kind.value for kind in VerdictKind}


@dataclass(frozen=True, slots=True)
class Measurement:
    """One session of the plan."""

    name: str
    kind: str = "ab"
    phases: tuple[str, ...] = (BASELINE,)
    """Each is judged against its parent if that is among them, else against the first; 'aa' and 'overhead'
    take one phase twice.
    """
    blocks: int = 0
    until_decided: bool = False
    slices: float = 0.0
    iterations: int = 0
    """How long a recorded run is; 0: as the protocol says."""
    keep_models: bool = False
    expect: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Verdicts that are right, by phase."""
    most_deviation: float = 0.0
    """s_d above which the machine was too noisy to expect anything; 0: any."""

    @property
    def order_seed(self) -> int:
        """From the name, so that a session can be found again after a kill."""
        return zlib.crc32(self.name.encode("utf-8"))

    @property
    def arms(self) -> list[str]:
        return [*self.phases, *self.phases] if self.kind in ("aa", "overhead") else list(self.phases)


@dataclass(frozen=True, slots=True)
class Replay:
    title: str
    protocol: Protocol
    phases: tuple[Phase, ...]
    sessions: tuple[Measurement, ...]
    scripts: tuple[Path, ...] = ()


def read_replay(path: Path, quick: bool = False) -> Replay:
    """Reads and checks all of it before anything runs."""
    record = toml.read_toml(path)
    known = ("title", "scripts", "protocol", "scene", "phase", "session", "quick")
    for key in record:
        if key not in known:
            raise InputError(f"{path}: a plan has no {key!r}; it has {', '.join(known)}.")
    sizes: dict[str, Any] = record.get("quick", {}) if quick else {}
    plan = Replay(
        str(record.get("title", path.stem)),
        _protocol(path, {**_shared(record), **sizes.get("protocol", {})}),
        tuple(_phase(path, entry) for entry in record.get("phase", [])),
        tuple(_measurement(path, entry, sizes.get("session", {})) for entry in record.get("session", [])),
        tuple(path.parent / name for name in record.get("scripts", [])),
    )
    _check(path, plan)
    return plan


def _shared(record: dict[str, Any]) -> dict[str, Any]:
    """[protocol] with the [[scene]] tables beside it."""
    scenes = {"scenes": record["scene"]} if "scene" in record else {}
    return {**record.get("protocol", {}), **scenes}


def _protocol(path: Path, entries: dict[str, Any]) -> Protocol:
    return protocol.check_protocol(Protocol(**protocol.protocol_entries(path, entries)))


def _phase(path: Path, entries: dict[str, Any]) -> Phase:
    if "name" not in entries:
        raise InputError(f"{path}: a [[phase]] has no name; give it one.")
    return phases.check_phase(Phase(**phases.phase_entries(path, entries)))


def _measurement(path: Path, entries: dict[str, Any], sizes: dict[str, Any]) -> Measurement:
    """A quick size replaces only what the session states."""
    entries = {key: sizes.get(key, value) for key, value in entries.items()}
    fields = {item.name for item in dataclasses.fields(Measurement)}
    wrong = sorted(entries.keys() - fields)
    if wrong or not isinstance(entries.get("name"), str):
        raise InputError(
            f"{path}: {', '.join(wrong) or 'a session without a name'}; it has {sorted(fields)}."
        )
    entries["phases"] = tuple(entries.get("phases", (BASELINE,)))
    expected = entries.get("expect", {})
    entries["expect"] = {name: tuple(verdicts) for name, verdicts in expected.items()}
    return Measurement(**entries)


def _check(path: Path, plan: Replay) -> None:
    names = {BASELINE, *(phase.name for phase in plan.phases)}
    for session in plan.sessions:
        unknown = [name for name in (*session.phases, *session.expect) if name not in names]
        if unknown:
            raise InputError(f"{path}: session {session.name!r} names {unknown[0]!r}, which is no phase.")
        if session.kind not in KINDS:
            raise InputError(f"{path}: {session.kind!r} is no kind of session; there are {', '.join(KINDS)}.")
        wrong = [word for verdicts in session.expect.values() for word in verdicts if word not in _VERDICTS]
        if wrong:
            raise InputError(f"{path}: {wrong[0]!r} is not a verdict; there are {', '.join(_VERDICTS)}.")
    if len({session.name for session in plan.sessions}) != len(plan.sessions):
        raise InputError(f"{path}: two sessions have the same name; give one of them another.")
    missing = [script for script in plan.scripts if not script.is_file()]
    if missing:
        raise InputError(f"{path}: the script {missing[0]} does not exist; correct `scripts`.")
