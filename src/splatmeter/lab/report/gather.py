"""From the store to the document: reads folders and index, decides nothing."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from splatmeter.lab.atomic import read_json
from splatmeter.lab.compare.samples import Finding, Severity
from splatmeter.lab.handlog import audit_log, parse_log
from splatmeter.lab.history.gather import history
from splatmeter.lab.record.index import Index
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.report.document import ModelPage, Picture, ReportDocument, RunRow
from splatmeter.lab.report.ratios import ratio_rows
from splatmeter.lab.report.traces import curves, memory_traces, pass_times
from splatmeter.lab.session.cards import card_configuration
from splatmeter.lab.session.controls import latest_noise
from splatmeter.lab.session.document import counted_results, document
from splatmeter.lab.session.plan import in_order, load
from splatmeter.lab.session.session import repetitions
from splatmeter.units import bytes_text

MOST_RUNS = 2000
"""Newest first; the index has the others."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A run as the index has it."""

    run: str
    phase: str
    counted: bool
    result: dict[str, Any]


def report(
    lab: Lab, folder: Path, pictures: Sequence[Picture] = (), model: ModelPage | None = None
) -> ReportDocument:
    """`folder` is where the page will lie: links to runs are seen from there."""
    told = document(lab)
    stored = _stored(lab)
    shown = _shown(lab, stored)
    first = next(iter(lab.protocol().scene_names), "")
    drawn = {name: _pairs(runs, first) for name, runs in shown.items()}
    ratios = ratio_rows(lab)
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
        history=history(lab),
    )


def _left_out(count: int) -> list[str]:
    if count <= MOST_RUNS:
        return []
    return [f"The list shows the newest {MOST_RUNS} of {count} runs; `splatmeter lab ls --runs` shows all."]


def _one_of_several(scene: str) -> list[str]:
    return [f"Curves, memory, passes and pictures are of the first scene, {scene}."] if scene else []


def _pairs(runs: list[Stored], scene: str) -> list[tuple[str, dict[str, Any]]]:
    """Of one scene: what happened inside runs of different ones does not go into one picture."""
    return [(item.run, item.result) for item in runs if item.result["identity"].get("scene", "") == scene]


def _stored(lab: Lab) -> list[Stored]:
    """Newest session first, blocks in their order within it."""
    rows = Index(lab).rows(
        "SELECT run, phase, counted, result FROM ordered_runs WHERE block >= 0"
        " ORDER BY place_in_order DESC, session, block, attempt, place"
    )
    return [
        Stored(row["run"], row["phase"] or "", bool(row["counted"]), json.loads(row["result"]))
        for row in rows
    ]


def _shown(lab: Lab, stored: list[Stored]) -> dict[str, list[Stored]]:
    """Per phase the runs that its figures are taken from: those of one session, as in the log."""
    names = lab.phases.names()
    found: dict[str, list[Stored]] = {name: [] for name in (*names, *(item.phase for item in stored))}
    for name in names:
        results = counted_results(lab, name)
        session = results[0]["identity"]["session"] if results else ""
        found[name] = [
            item
            for item in stored
            if item.phase == name and item.counted and item.result["identity"]["session"] == session
        ]
    return found


def _row(lab: Lab, item: Stored, folder: Path, shown: bool) -> RunRow:
    result, identity = item.result, item.result.get("identity", {})
    peaks = {
        peak.get("stage"): peak.get("process_bytes") or peak.get("allocated_bytes")
        for peak in result.get("peaks", ())
    }
    return RunRow(
        run=item.run,
        phase=item.phase,
        scene=str(identity.get("scene", "")),
        folder=address(lab.sessions / item.run, folder),
        session=str(identity.get("session", "")),
        block=identity.get("block"),
        seed=identity.get("seed"),
        status=str(result.get("status", "")),
        counted=item.counted,
        shown=shown,
        message=str(result.get("message", "")),
        started=str(identity.get("started", "")),
        steps_per_second=(result.get("timing") or {}).get("steps_per_second"),
        loss=result.get("loss"),
        gaussians=result.get("gaussians_end"),
        metrics=last_metrics(result.get("evaluations", ())),
        training_peak_bytes=peaks.get("training"),
        evaluation_peak_bytes=peaks.get("evaluation"),
    )


def address(target: Path, folder: Path) -> str:
    """Always begins with a dot, so that no name can make another kind of address of it."""
    try:
        relative = Path(os.path.relpath(target.resolve(), folder.resolve())).as_posix()
    except ValueError:  # another drive
        return ""
    return quote(relative if relative.startswith(".") else f"./{relative}", errors="replace") + "/"


def last_metrics(evaluations: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Of the last step; held-out views before training views, our judgement before the trainer's."""
    if not evaluations:
        return {}
    best = max(
        enumerate(evaluations),
        key=lambda e: (e[1]["split"] == "test", e[1]["step"], e[1].get("judged_by") != "trainer", e[0]),
    )[1]
    return {name: value for name, value in best["metrics"].items() if isinstance(value, (int, float))}


def _failures(stored: list[Stored]) -> tuple[Finding, ...]:
    """Failed attempts stay visible."""
    return tuple(
        Finding(
            "failed run",
            f"{item.phase}: {item.result.get('message') or 'ended early'}.",
            Severity.NOTE,
            item.run,
        )
        for item in stored
        if item.result.get("status") == "failed"
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
    """Of the newest run; nothing that names the machine."""
    if not stored:
        return {}
    record = read_json(lab.sessions / stored[0].run / "environment.json") or {}
    facts = record.get("facts") or stored[0].result.get("facts") or {}
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
