"""Under which conditions a run was made, from what it recorded itself, and in the words of a person."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from splatmeter.lab.compare.margins import margins_text
from splatmeter.lab.history.tracks import Conditions
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.result import RunResult


def conditions(result: RunResult, protocol: Protocol, photos: str) -> Conditions:
    """`protocol` is the session's, of the run's scene; `photos` is the content that its first arm saw."""
    identity = result.identity
    first = result.window.first if result.window else protocol.start_iteration
    return Conditions(
        protocol=identity.protocol,
        scene=identity.scene or protocol.scene,
        photos=photos,
        start=result.start_sha256,
        steps=(first, int(result.timing.steps) if result.timing else 0),
        machine=identity.machine,
        hardware=hardware(result.facts),
        rules=rules(protocol),
    )


def photos_of(result: RunResult) -> str:
    return str(result.started.hashes.get("scene", ""))


def rules(protocol: Protocol) -> str:
    """What decides whether something counts as a change."""
    margins = margins_text(protocol.tolerance, protocol.margins)
    words = [f"margins {margins}", f"tolerated difference {100 * protocol.tolerated_difference:.3g} %"]
    words += [f"failures up to {100 * protocol.most_failures:.3g} %"] if protocol.most_failures != 0.1 else []
    words += [f"at equal {protocol.covariate} time"] if protocol.covariate else []
    return ", ".join(words)


def hardware(facts: Mapping[str, Any]) -> str:
    """Processor, what a container leaves of it, memory and card: one machine with half its cores is another.

    Memory is rounded as in the machine's identity: a kernel keeps some for itself, now more and now less.
    """
    cpu, limits, card = (_mapping(facts.get(name)) for name in ("cpu", "limits", "card"))
    if not cpu:
        return ""
    usable = limits.get("usable_cpus", cpu.get("logical"))
    words = [str(cpu.get("model") or "unknown processor")]
    words.append(f"{usable} of {cpu.get('logical')} processors")
    if isinstance(memory := cpu.get("memory_bytes"), int):
        words.append(f"{(memory >> 28) / 4:g} GiB")
    words += [f"{name.replace('_', ' ')} {limits[name]}" for name in _STATED if _limits(limits.get(name))]
    words += [f"{card['name']} (settings {_settings(card)})"] if card.get("name") else []
    return ", ".join(words)


def _settings(card: Mapping[str, Any]) -> str:
    """Another card of the same name, another driver, another limit of power: all of them are told apart."""
    facts = sorted((str(name), str(value)) for name, value in card.items() if name not in ("index", "of"))
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:6]


_STATED = ("cpu_quota", "memory_limit")


def _limits(value: object) -> bool:
    """A limit that is none says nothing."""
    return bool(value) and not str(value).startswith(("max", "-1")) and str(value) != "9223372036854771712"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def described(found: Conditions, protocol: Protocol, machines: int) -> str:
    """In a sentence, without saying where a scene lies on this disk."""
    begin, timed = found.steps
    steps = f"iteration {protocol.start_iteration} to {protocol.end_iteration}, {timed} of them timed"
    start = f"from checkpoint {found.start[:8]}" if found.start else "from the points"
    if protocol.start_iteration != begin:
        steps += f", begun at {begin}"
    words = [PurePath(found.scene).name or "scene unknown", f"-r {protocol.resolution}", steps, start]
    machine = found.hardware or "hardware not recorded"
    name = f"machine {found.machine[:6]}: " if machines > 1 else ""
    return f"{', '.join(words)}; {name}{machine}; {found.rules}"
