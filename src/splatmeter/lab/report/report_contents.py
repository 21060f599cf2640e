"""From the store to the document: reads folders and index, decides nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from splatmeter.lab.handlog import audit_log, parse_log
from splatmeter.lab.history.history import history
from splatmeter.lab.json_files import read_json
from splatmeter.lab.judgement.controls import latest_noise
from splatmeter.lab.judgement.verdicts import Judgements
from splatmeter.lab.log.card_lines import card_configuration
from splatmeter.lab.log.log_contents import document
from splatmeter.lab.record.index import Index, counted_results
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.record.result import RunResult, last_metrics, result_from_text
from splatmeter.lab.report.ratios import ratio_rows
from splatmeter.lab.report.report_document import (
    ModelPage,
    Picture,
    ReportDocument,
    RunRow,
)
from splatmeter.lab.report.traces import curves, memory_traces, pass_times
from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.lab.session.blocks import repetitions
from splatmeter.lab.session.session_plan import in_order, load
from splatmeter.units import bytes_text

MOST_RUNS = 2000
"""Newest first; the index has the others."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A run as the index has it."""

    run: str
    phase: str
    counted: bool
    result: RunResult


def report(
    lab: Lab,
    folder: Path,
    pictures: Sequence[Picture] = (),
    model: ModelPage | None = None,
    known: Judgements | None = None,
) -> ReportDocument:
    """`folder` is where the page will lie: links to runs are seen from there. `known` is what the same
    command has judged already.
    """
    known = known or Judgements(lab)
    told = document(lab, known)
    stored = _stored(lab)
    shown = _shown(lab, stored)
    first = next(iter(lab.protocol().scene_names), "")
    drawn = {name: _pairs(runs, first) for name, runs in shown.items()}
    ratios = ratio_rows(known)
    noises = [floor for row in ratios if (floor := latest_noise(lab, load(lab, row.session))) is not None]
    findings = tuple(dict.fromkeys(finding for phase in told.phases for finding in phase.findings))
    return ReportDocument(
        title=told.title,
        generated=time.strftime("%Y-%m-%d %H:%M %z"),
        configuration=told.configuration,
        machine=_machine(lab, stored),
        phases=told.phases,
        quality=told.quality,
        ratios=ratios,
        runs=tuple(_row(lab, item, folder, item in shown[item.phase]) for item in stored[:MOST_RUNS]),
        curves=tuple(curve for runs in drawn.values() for curve in curves(lab.sessions, runs)),
        memory=tuple(trace for runs in drawn.values() for trace in memory_traces(lab.sessions, runs)),
        passes=tuple(times for name, runs in drawn.items() for times in pass_times(name, runs)),
        pictures=tuple(pictures),
        model=model,
        findings=findings + _failures(stored) + _repeated(lab) + _hand_kept(lab),
        notes=(*told.measurement_notes, *_left_out(len(stored)), *_one_of_several(first)),
        noise=noises[-1].sentence if noises else "",
        history=history(lab, known),
    )


def _left_out(count: int) -> list[str]:
    if count <= MOST_RUNS:
        return []
    return [f"The list shows the newest {MOST_RUNS} of {count} runs; `splatmeter lab ls --runs` shows all."]


def _one_of_several(scene: str) -> list[str]:
    return [f"Curves, memory, passes and pictures are of the first scene, {scene}."] if scene else []


def _pairs(runs: list[Stored], scene: str) -> list[tuple[str, RunResult]]:
    """The runs of one scene: those of different scenes do not belong in one chart."""
    return [(item.run, item.result) for item in runs if item.result.identity.scene == scene]


def _stored(lab: Lab) -> list[Stored]:
    """Newest session first, blocks in their order within it."""
    rows = Index(lab).rows(
        "SELECT run, phase, counted, result FROM ordered_runs WHERE block >= 0"
        " ORDER BY place_in_order DESC, session, block, attempt, place"
    )
    return [
        Stored(row["run"], row["phase"] or "", bool(row["counted"]), result_from_text(row["result"]))
        for row in rows
    ]


def _shown(lab: Lab, stored: list[Stored]) -> dict[str, list[Stored]]:
    """Per phase the runs that its figures are taken from: those of one session, as in the log."""
    names = lab.phases.names()
    found: dict[str, list[Stored]] = {name: [] for name in (*names, *(item.phase for item in stored))}
    for name in names:
        results = counted_results(lab, name)
        session = results[0].identity.session if results else ""
        found[name] = [
            item
            for item in stored
            if item.phase == name and item.counted and item.result.identity.session == session
        ]
    return found


def _row(lab: Lab, item: Stored, folder: Path, shown: bool) -> RunRow:
    result, identity = item.result, item.result.identity
    return RunRow(
        run=item.run,
        phase=item.phase,
        scene=identity.scene,
        folder=address(lab.sessions / item.run, folder),
        session=identity.session,
        block=identity.block,
        seed=identity.seed,
        status=result.status,
        counted=item.counted,
        shown=shown,
        message=result.message,
        started=identity.started,
        steps_per_second=result.timing.steps_per_second if result.timing else None,
        loss=result.loss,
        gaussians=result.gaussians_end,
        metrics=last_metrics(result.evaluations),
        training_peak_bytes=result.peak_of_stage("training"),
        evaluation_peak_bytes=result.peak_of_stage("evaluation"),
    )


def address(target: Path, folder: Path) -> str:
    """Always begins with a dot, so that no name can make another kind of address of it."""
    try:
        relative = Path(os.path.relpath(target.resolve(), folder.resolve())).as_posix()
    except ValueError:  # another drive
        return ""
    return quote(relative if relative.startswith(".") else f"./{relative}", errors="replace") + "/"


def _failures(stored: list[Stored]) -> tuple[Finding, ...]:
    """Failed attempts stay visible."""
    return tuple(
        Finding(
            "failed run",
            f"{item.phase}: {(item.result.message or 'ended early').rstrip('.')}.",
            Severity.NOTE,
            item.run,
        )
        for item in stored
        if item.result.status == "failed"
    )


def _repeated(lab: Lab) -> tuple[Finding, ...]:
    """Attempts that the protocol's rule on foreign load sent back, with the reason."""
    return tuple(
        Finding(
            "repeated block", f"Block {again['block'] + 1}: {again['disturbed']}.", Severity.NOTE, session
        )
        for session in in_order(lab)
        for again in repetitions(lab.sessions / session)
    )


def _hand_kept(lab: Lab) -> tuple[Finding, ...]:
    """What the numbers of an imported log contradict, if it still lies where it was."""
    records = [read_json(path) for path in sorted((lab.root / "imported").glob("*.json"))]
    sources = dict.fromkeys(str(record.get("source", "")) for record in records if isinstance(record, dict))
    found: list[Finding] = []
    for source in filter(None, sources):
        try:
            text = Path(source).read_text("utf-8", "replace")
        except OSError:
            continue
        name = Path(source).name
        found += [replace(item, where=f"{name}, {item.where}") for item in audit_log(parse_log(text))]
    return tuple(found)


def _machine(lab: Lab, stored: list[Stored]) -> dict[str, str]:
    """What the newest run ran on, without anything that names the machine."""
    if not stored:
        return {}
    record = read_json(lab.sessions / stored[0].run / "environment.json") or {}
    facts = record.get("facts") or stored[0].result.facts
    cpu, versions = facts.get("cpu") or {}, facts.get("versions") or {}
    limits, system = facts.get("limits") or {}, facts.get("system") or {}
    found = {
        "Processor": cpu.get("model"),
        "Cores": f"{limits.get('usable_cpus', cpu.get('logical'))} usable of {cpu.get('logical')}"
        if cpu
        else None,
        "Memory": bytes_text(cpu["memory_bytes"]) if cpu.get("memory_bytes") else None,
        **card_configuration([stored[0].result]),
        "System": " ".join(str(system[key]) for key in ("system", "release", "machine") if system.get(key)),
        "Versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "Revision": (record.get("git") or {}).get("revision", "")[:12],
    }
    return {name: str(value) for name, value in found.items() if value}
