"""Which sessions speak about one comparison together: those that measured the same on other machines."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from splatmeter.lab.compare.machines import split_blocks
from splatmeter.lab.json_files import read_json
from splatmeter.lab.judgement import gathering
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.lab.samples.run_sample import (
    Arm,
    RunSample,
    SliceSample,
    Subject,
)
from splatmeter.lab.session.session_plan import SessionPlan, lineage_of, load

APART = 1_000_000
"""Blocks of a further session get numbers of their own."""
_EXECUTED = (
    *("parent", "options", "environment", "revision", "patch", "build", "command", "trainer"),
    *("changes", "aim"),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """The runs of one comparison: of one session, or of several on different machines."""

    runs: list[RunSample]
    slices: list[SliceSample]
    findings: tuple[Finding, ...]


def measured(lab: Lab, sessions: Sequence[str], arms: Mapping[str, Arm]) -> Measured:
    """Blocks that ran on two machines are left out and named: half a block elsewhere pairs nothing."""
    runs: list[RunSample] = []
    slices: list[SliceSample] = []
    findings: list[Finding] = []
    for place, session in enumerate(sessions):
        results = gathering.counted(lab, session)
        found = gathering.samples_of(results, arms, load(lab, session))
        torn = split_blocks(found) | gathering.torn_blocks(results.values())
        findings += [_torn(session, block) for block in sorted(torn)]
        for run in found:
            if run.block not in torn:
                runs.append(dataclasses.replace(run, block=run.block + APART * place))
        if load(lab, session).slices:
            pieces = [piece for piece in gathering.slice_samples(lab, session) if piece.block not in torn]
            slices += [dataclasses.replace(piece, block=piece.block + APART * place) for piece in pieces]
    return Measured(runs, slices, tuple(findings))


def _torn(session: str, block: int) -> Finding:
    sentence = (
        f"Block {block + 1} of {session} is left out: its arms did not run on one machine, in one job, "
        "without a restart between them."
    )
    return Finding("torn block", sentence, Severity.WRONG, session)


def rounds(lab: Lab, sessions: Sequence[str], phases: tuple[str, str]) -> list[list[str]]:
    """The newest session with those that measured the same elsewhere, then the same of what is left.

    `sessions` are in order, oldest first. A session until decided stands alone: its number of blocks was
    chosen by its own figures.
    """
    left = list(sessions)
    found: list[list[str]] = []
    while left and len(found) < 2:
        newest = left.pop()
        together, covered = [newest], machines_of(lab, newest)
        for name in reversed(left) if phases[0] != phases[1] else ():
            own = machines_of(lab, name)
            here = any(gathering.same_machine(a, b) for a in own for b in covered)
            if own and covered and not here and _same(lab, newest, name, phases):
                together.append(name)
                covered |= own
        left = [name for name in left if name not in together]
        found.append(together)
    return found


def machines_of(lab: Lab, session: str) -> set[str]:
    return {result.identity.which_machine for result in gathering.counted(lab, session).values()}


def _same(lab: Lab, newest: str, other: str, phases: tuple[str, str]) -> bool:
    """Protocol, what phases execute, kind of blocks, and the contents of the code; not the machine."""
    plans = load(lab, newest), load(lab, other)
    kinds = [(plan.fingerprint, bool(plan.slices), plan.kind == "overhead") for plan in plans]
    if kinds[0] != kinds[1] or any(plan.until_decided for plan in plans):
        return False
    executed = [[_executed(plan, phase) for phase in phases] for plan in plans]
    sources = [[_source(lab, plan, phase) for phase in phases] for plan in plans]
    return executed[0] == executed[1] and sources[0] == sources[1] and all(sources[0])


def _executed(plan: SessionPlan, phase: str) -> list[list[object]]:
    return [[getattr(item, name) for name in _EXECUTED] for item in lineage_of(plan, phase)]


def _source(lab: Lab, plan: SessionPlan, phase: str) -> str:
    """By content, so that it is the same wherever it lies; program and packages belong to the machine."""
    known = read_json(plan.folder(lab) / "code.json")
    record = known.get(phase) if isinstance(known, dict) else None
    return str(record.get("source", "")) if isinstance(record, dict) else ""


def code_of(
    runs: Sequence[RunSample], named: tuple[str, str]
) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """What `Subject` keeps: hashes by machine and arm, and the machines where there are several."""
    machines = sorted({run.machine for run in runs}) or [""]
    code = [
        tuple(sorted({run.code for run in runs if (run.machine, run.arm.name) == (machine, label)}))
        for machine in machines
        for label in named
    ]
    return tuple(code), tuple(machines) if len(machines) > 1 else ()


def repeats(subject: Subject, other: Subject) -> bool:
    """Whether runs for quality alone are of this comparison, on one of its machines."""
    if other.machines or (subject.protocol, subject.definitions) != (other.protocol, other.definitions):
        return False
    per_machine = [subject.code[place : place + 2] for place in range(0, len(subject.code), 2)]
    return other.code in per_machine and all(len(hashes) == 1 and hashes[0] for hashes in other.code)
