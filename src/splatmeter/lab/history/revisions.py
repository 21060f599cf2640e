"""What git still knows of the commits that runs recorded: their first lines, for people to recognise."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from splatmeter.errors import SplatmeterError
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.session.git import asked

_COMMIT = re.compile(r"[0-9a-f]{40,64}")


def subjects(lab: Lab, revisions: Iterable[str]) -> tuple[bool, dict[str, str]]:
    """Whether there is a repository to ask, and the first line of each commit that it has."""
    wanted = sorted({revision for revision in revisions if _COMMIT.fullmatch(revision)})
    place = _place(lab)
    if place is None or asked(place, "rev-parse", "--show-toplevel") is None:
        return False, {}
    if not wanted:
        return True, {}
    words = ("log", "--no-walk=unsorted", "--ignore-missing", "--format=%H%x09%s", *wanted)
    lines = (asked(place, *words) or "").splitlines()
    pairs = [line.partition("\t") for line in lines]
    return True, {commit: subject for commit, _, subject in pairs if commit in wanted}


def _place(lab: Lab) -> Path | None:
    """Where the trainer's code lies, as the protocol has it now."""
    try:
        stated = lab.protocol().directory
    except SplatmeterError:
        return None
    place = Path(stated).expanduser() if stated else Path(__file__).parent
    place = place if place.is_absolute() else lab.root / place
    return place if place.is_dir() else None
