"""What two labs must share before their evidence may lie in one: protocol, phases, start, pinned code."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from splatmeter.errors import SplatmeterError
from splatmeter.lab.json_files import read_json
from splatmeter.lab.plan.phases import Phase
from splatmeter.lab.record.lab import Lab

WORDS_ONLY = ("title", "note", "state", "reason", "created", "adopted", "adopted_because", "code_changes")
"""Fields of a phase that change nothing that runs; the lab that takes in others keeps its own."""


def protocol_conflicts(lab: Lab, source: Lab) -> list[str]:
    """One sentence for each; [] if the labs go together."""
    where = source.root
    found = [f"{where}: {words}" for words in _protocols(lab, source)]
    found += [f"{where}: {words}" for words in _phases(lab, source)]
    found += [f"{where}: {words}" for words in _starts(lab, source)]
    return found + [f"{where}: {words}" for words in _pins(lab, source)]


def _protocols(lab: Lab, source: Lab) -> list[str]:
    here, there = lab.protocol(), source.protocol()
    if here.fingerprint() == there.fingerprint():
        return []
    mine, other = here.compared(), there.compared()
    keys = [key for key in mine.keys() | other.keys() if mine.get(key) != other.get(key)]
    return [
        f"its protocol has {key} = {other.get(key)!r}, here it is {mine.get(key)!r}." for key in sorted(keys)
    ]


def _phases(lab: Lab, source: Lab) -> list[str]:
    told: list[str] = []
    for name in sorted({*lab.phases.names()} & {*source.phases.names()}):
        try:
            mine, other = _meant(lab.phases.get(name)), _meant(source.phases.get(name))
        except SplatmeterError as problem:
            told.append(f"phase {name} cannot be read: {str(problem).rstrip('.')}.")
            continue
        keys = [key for key in mine if mine[key] != other[key]]
        told += [f"phase {name} has {key} = {other[key]!r}, here it is {mine[key]!r}." for key in keys]
    return told


def _meant(phase: Phase) -> dict[str, Any]:
    return {key: value for key, value in dataclasses.asdict(phase).items() if key not in WORDS_ONLY}


def _starts(lab: Lab, source: Lab) -> list[str]:
    told: list[str] = []
    for path in sorted(source.start.glob("**/checkpoint.json")):
        name = path.relative_to(source.start)
        hashes = [_field(file, "sha256") for file in (lab.start / name, path)]
        if all(hashes) and hashes[0] != hashes[1]:
            scene = f" of {name.parent}" if len(name.parts) > 1 else ""
            told.append(
                f"its start checkpoint{scene} is {hashes[1][:12]}..., here it is {hashes[0][:12]}...: runs "
                "from different starts cannot be compared."
            )
    return told


def _pins(lab: Lab, source: Lab) -> list[str]:
    """By the contents of the sources: programs and packages belong to a machine."""
    mine, other = read_json(lab.root / "pinned.json"), read_json(source.root / "pinned.json")
    codes = [record.get("code") if isinstance(record, dict) else None for record in (mine, other)]
    sources = [code.get("source", "") if isinstance(code, dict) else "" for code in codes]
    if not all(sources) or sources[0] == sources[1]:
        return []
    files = [code.get("files") or {} for code in codes if isinstance(code, dict)]
    names = sorted(name for name in {**files[0], **files[1]} if files[0].get(name) != files[1].get(name))
    return [f"its baseline is pinned to other code than here ({', '.join(names[:3]) or 'its sources'})."]


def _field(path: Path, name: str) -> str:
    record = read_json(path)
    return str(record.get(name, "")) if isinstance(record, dict) else ""
