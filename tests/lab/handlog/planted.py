"""Logs with contradictions that somebody put there: a clean log, and beside it the edits that spoil it."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from pathlib import Path

import tomllib

from splatmeter.lab.handlog import audit_log, parse_log
from splatmeter.lab.samples.finding import Finding

HERE = Path(__file__).parent
TODAY = datetime.date(2026, 11, 16)


@dataclass(frozen=True)
class Plant:
    what: str
    lines: frozenset[int]
    figures: frozenset[str]
    """Numbers that only the spoiled log has: a finding has to name one of them."""


@dataclass(frozen=True)
class Spoiled:
    name: str
    clean: str
    text: str
    plants: tuple[Plant, ...]


def doubted(text: str) -> list[Finding]:
    """What questions the log; notes do not."""
    return [finding for finding in audit_log(parse_log(text), TODAY) if finding.questions_the_verdict]


def spoiled(folder: str) -> list[Spoiled]:
    return [_spoiled(path) for path in sorted((HERE / folder).glob("*.md"))]


def _spoiled(path: Path) -> Spoiled:
    clean = text = path.read_text("utf-8")
    edits = tomllib.loads(path.with_suffix(".toml").read_text("utf-8"))["plant"]
    for edit in edits:
        assert text.count(edit["clean"]) == 1, f"{path.name}: {edit['clean']!r} does not occur once"
        text = text.replace(edit["clean"], edit["planted"])
    return Spoiled(path.stem, clean, text, tuple(_plant(text, edit) for edit in edits))


def _plant(text: str, edit: dict[str, str]) -> Plant:
    start = text.index(edit["planted"])
    first = 1 + text[:start].count("\n")
    lines = set(range(first, first + 1 + edit["planted"].count("\n")))
    lines |= {1 + text[: text.index(other)].count("\n") for other in edit.get("also", ())}
    figures = (
        frozenset() if "also" in edit else frozenset(_numbers(edit["planted"]) - _numbers(edit["clean"]))
    )
    return Plant(edit["what"], frozenset(lines), figures)


def _numbers(text: str) -> set[str]:
    """As they stand there, and as findings write those with a decimal comma."""
    written = re.findall(r"\d[\d.,:]*\d|\d", text)
    return {*written, *(re.sub(r"(?<=\d),(?=\d{1,3}$)", ".", found) for found in written)}


def fits(plant: Plant, finding: Finding) -> bool:
    lines = {int(number) for number in re.findall(r"\d+", finding.where)}
    named = not plant.figures or any(figure in finding.sentence for figure in plant.figures)
    return bool(lines & plant.lines) and named


def matched(log: Spoiled) -> tuple[list[Plant], list[Finding]]:
    """Plants that were found, each by a finding of its own, and findings that fit no plant."""
    findings = doubted(log.text)
    owner: dict[int, int] = {}

    def give(plant: int, tried: set[int]) -> bool:
        for at, finding in enumerate(findings):
            if at in tried or not fits(log.plants[plant], finding):
                continue
            tried.add(at)
            if at not in owner or give(owner[at], tried):
                owner[at] = plant
                return True
        return False

    found = [plant for at, plant in enumerate(log.plants) if give(at, set())]
    invented = [finding for finding in findings if not any(fits(plant, finding) for plant in log.plants)]
    return found, invented
