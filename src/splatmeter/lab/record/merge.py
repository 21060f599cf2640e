"""Evidence of several hosts in one lab: looked at as a whole, refused by name, or taken in without a loss.

Nothing that was measured is edited: a session is copied as it is, and its place in the order of this lab lies
beside it (merged.json). Only plain files of JSON, text and models travel; links, locks and pickles do not.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from splatmeter.errors import InputError, OutputError, UsageError
from splatmeter.lab.json_files import read_json, write_json
from splatmeter.lab.order_of_time import place_in_order, utc_now
from splatmeter.lab.record.lab import MERGED, Lab, begun_sessions, enter_sessions, locked, read_plan
from splatmeter.lab.record.merge_rules import protocol_conflicts
from splatmeter.lab.record.run_folder import EVENTS

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FEWEST_LINES = 3
"""So many lines of events two runs cannot share by chance: each has its time to the microsecond."""


@dataclass(slots=True)
class Merging:
    """What taking in one lab would do."""

    source: Lab
    new: list[str] = field(default_factory=list)
    grown: list[str] = field(default_factory=list)
    """Known here as far as they had come when they were copied; the other lab has gone on with them."""
    known: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)


def merge(lab: Lab, sources: list[Lab]) -> list[Merging]:
    """All or nothing: every conflict of every lab is known before the first file is copied."""
    with locked(lab.root / ".merge.lock", "the lab"):
        prints = _prints(lab)
        mergings: list[Merging] = []
        for source in sources:
            if source.root.resolve() == lab.root.resolve():
                raise UsageError(f"{source.root} is this lab itself; name the folder of another.")
            mergings.append(_examined(lab, source, prints, mergings))
        if any(merging.conflicts for merging in mergings):
            return mergings
        for merging in mergings:
            _take_in(lab, merging)
    return mergings


def _examined(lab: Lab, source: Lab, prints: dict[str, tuple[str, str]], earlier: list[Merging]) -> Merging:
    """Against this lab, and against those that are taken in before it."""
    found = Merging(source)
    others = [lab, *(merging.source for merging in earlier)]
    for other in others:
        found.conflicts += protocol_conflicts(other, source)
    for path in sorted(source.sessions.glob("*/session.json")):
        places = [lab.sessions / path.parent.name]
        places += [m.source.sessions / path.parent.name for m in earlier if path.parent.name in m.new]
        _examine_session(next((place for place in places if place.exists()), None), found, path.parent)
    found.conflicts += _copies(found, prints)
    for path in sorted(source.judged.glob("*.json")):
        for mine in (other.judged / path.name for other in others):
            if mine.exists() and read_json(mine) != read_json(path):
                found.conflicts.append(f"{path} has other figures for the same model than {mine}.")
    return found


def _examine_session(known: Path | None, found: Merging, folder: Path) -> None:
    """`known` is where the session of this name lies already, here or in a lab that is taken in before."""
    name = folder.name
    plan = read_json(folder / "session.json")
    told = plan.get("session") if isinstance(plan, dict) else None
    if not _NAME.fullmatch(name) or told != name:
        found.conflicts.append(f"Session {name} calls itself {told!r}: renamed, or its plan is damaged.")
    elif not (folder / "ended.json").exists():
        found.unfinished.append(name)
    elif known is None:
        found.new.append(name)
    else:
        here, there = evidence_files(known), evidence_files(folder)
        differing = [file for file in here if file in there and not _equal(here[file], there[file])]
        if differing:
            found.conflicts.append(f"Session {name} is here too, with another {differing[0]}.")
        elif here.keys() >= there.keys():
            found.known.append(name)
        elif there.keys() >= here.keys():
            found.grown.append(name)
        else:
            found.conflicts.append(f"Session {name} went on in both labs, in different ways.")


def _copies(found: Merging, prints: dict[str, tuple[str, str]]) -> list[str]:
    """The same run under two names is one run; `prints` grows with what this lab adds."""
    told: dict[tuple[str, str], str] = {}
    for mark, (session, run) in _prints(found.source).items():
        known, other = prints.setdefault(mark, (session, run))
        if known != session and session not in found.unfinished:
            told.setdefault(
                (known, session),
                f"Session {session} is a copy of {known}: {run} and {other} have the same events.",
            )
    return list(told.values())


def _prints(lab: Lab) -> dict[str, tuple[str, str]]:
    """Hash of a run's events -> its session and its name."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted(lab.sessions.glob(f"*/blocks/*/*/{EVENTS}")):
        content = path.read_bytes()
        if content.count(b"\n") >= _FEWEST_LINES:
            name = path.parent.relative_to(lab.sessions)
            found.setdefault(hashlib.sha256(content).hexdigest(), (name.parts[0], name.as_posix()))
    return found


def evidence_files(folder: Path) -> dict[str, Path]:
    """Name -> path of every plain file of a session that travels."""
    return {path.relative_to(folder).as_posix(): path for path in _plain_files(folder)}


def _plain_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or path.name.startswith(".") or path.name in (MERGED, "submitit"):
            continue
        if path.is_dir():
            yield from _plain_files(path)
        elif path.is_file() and path.suffix != ".pkl":
            yield path


def _equal(a: Path, b: Path) -> bool:
    return a.stat().st_size == b.stat().st_size and _digest(a) == _digest(b)


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _take_in(lab: Lab, merging: Merging) -> None:
    """Phases and judgements first, then sessions, each whole or not at all; killed in between, it goes on."""
    source = merging.source
    try:
        for part in ("phases", "judged", "imported"):
            for path in sorted((source.root / part).glob("*.*")):
                if path.is_file() and not path.is_symlink() and not (lab.root / part / path.name).exists():
                    (lab.root / part).mkdir(exist_ok=True)
                    _copy(path, lab.root / part / path.name)
        numbers = enter_sessions(lab, _entries(lab, merging))
        for name in merging.new:
            _take_session(lab, source.sessions / name, numbers[name])
        for name in merging.grown:
            here, there = lab.sessions / name, evidence_files(source.sessions / name)
            missing = [file for file in there if not (here / file).exists()]
            for file in sorted(missing, key=lambda file: (file == "ended.json", file.endswith("block.json"))):
                (here / file).parent.mkdir(parents=True, exist_ok=True)
                _copy(there[file], here / file)
    except OSError as problem:
        raise OutputError(
            f"Cannot copy {problem.filename} into {lab.root}: {problem.strerror}; what is copied counts, and "
            "`splatmeter lab merge` goes on."
        ) from None


def _entries(lab: Lab, merging: Merging) -> list[tuple[str, tuple[str, ...]]]:
    """Sessions that this lab's book of sessions lacks, in the order of the other; removed ones are missed
    here too.
    """
    source = merging.source
    book = begun_sessions(source)
    gone = [name for name in book if not (source.sessions / name).exists()]
    mine = begun_sessions(lab)
    found: list[tuple[float, str, tuple[str, ...]]] = []
    for name in (*merging.new, *(n for n in gone if n not in mine and not (lab.sessions / n).exists())):
        plan: dict[str, Any] = read_plan(source.sessions / name / "session.json") or {}
        number, phases = book.get(name, (0, ()))
        arms = tuple(str(arm.get("phase")) for arm in plan.get("arms", ()) if isinstance(arm, dict))
        found.append((place_in_order(plan) if plan else float(number), name, arms or phases))
    return [(name, phases) for _, name, phases in sorted(found)]


def _take_session(lab: Lab, folder: Path, number: int) -> None:
    """Copied beside the sessions and moved into place by one rename."""
    beside = lab.root / ".merging" / folder.name
    shutil.rmtree(beside, ignore_errors=True)
    for name, path in evidence_files(folder).items():
        (beside / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, beside / name)
    plan = read_json(folder / "session.json")
    was = plan.get("sequence") if isinstance(plan, dict) else None
    write_json(beside / MERGED, {"sequence": number, "was": was, "time": utc_now()})
    lab.sessions.mkdir(exist_ok=True)
    beside.rename(lab.sessions / folder.name)
    shutil.rmtree(lab.root / ".merging", ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    part = target.with_name(f".{target.name}.part")
    shutil.copy2(source, part)
    part.replace(target)


def refused(mergings: list[Merging]) -> InputError | None:
    """The sentence that ends a merge that cannot be; each conflict is told by whoever asks for it."""
    count = sum(len(merging.conflicts) for merging in mergings)
    if not count:
        return None
    things = f"{count} things contradict" if count > 1 else "one thing contradicts"
    return InputError(
        f"Nothing was merged: {things} what is here. Labs that are merged have the same protocol, phases and "
        "start; keep the others apart."
    )
