"""`lab replay`: a whole plan from one command; killed at any moment, the same command goes on."""

from __future__ import annotations

import dataclasses
import shutil
from argparse import Namespace
from pathlib import Path

from splatmeter.cli.lab import lab_folder
from splatmeter.cli.lab_plan import prepare
from splatmeter.cli.lab_run import carry_out
from splatmeter.cli.lab_text import clean
from splatmeter.cli.lab_text import table as text_table
from splatmeter.errors import MissingFile, UsageError
from splatmeter.lab.json_files import write_text
from splatmeter.lab.log.replay_results import (
    MeasuredPair,
    measured_pairs,
    results_table,
    session_of,
)
from splatmeter.lab.order_of_time import utc_now
from splatmeter.lab.plan import protocol as protocols
from splatmeter.lab.plan import replay as replays
from splatmeter.lab.plan.phases import BASELINE, Phase
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.plan.replay import Measurement, Replay
from splatmeter.lab.plan.scene_entries import named
from splatmeter.lab.record.index import synced_once
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.session import session_plan as plans
from splatmeter.lab.session import start
from splatmeter.lab.session.session_plan import Wishes


def replay(chosen: Namespace) -> int:
    """0 if everything came out as the plan expects, 1 if not."""
    plan = replays.read_replay(chosen.plan, chosen.quick)
    lab = Lab(lab_folder(chosen))
    protocol = _set_up(lab, plan, chosen)
    for number, measurement in enumerate(plan.sessions, start=1):
        print(f"\n[{number}/{len(plan.sessions)}] {clean(measurement.name)}", flush=True)
        _carry_out(lab, measurement)
    with synced_once():
        return _tell(lab, plan, protocol, chosen)


def _set_up(lab: Lab, plan: Replay, chosen: Namespace) -> Protocol:
    """Protocol, scripts, phases and the start checkpoint; what is there already must be the same."""
    wanted = _protocol(plan, chosen)
    if lab.protocol_file.exists():
        if lab.protocol() != wanted:
            raise UsageError(f"{lab.root} holds another plan, scene or size; choose another --lab.")
    else:
        lab.root.mkdir(parents=True, exist_ok=True)
        for script in plan.scripts:
            (lab.root / "scripts").mkdir(exist_ok=True)
            shutil.copyfile(script, lab.root / "scripts" / script.name)
        write_text(lab.protocol_file, protocols.protocol_text(wanted))
    there = lab.phases.names()
    if BASELINE not in [*there, *(phase.name for phase in plan.phases)]:
        lab.phases.add(Phase(BASELINE, note="Reference, no optimisations", created=utc_now()))
    for phase in plan.phases:
        if phase.name not in there:
            parent = phase.parent or ("" if phase.name == BASELINE else BASELINE)
            lab.phases.add(dataclasses.replace(phase, parent=parent, created=utc_now()))
    starts = [start.path_of(lab, wanted.of_scene(name)) for name in wanted.scene_names or ("",)]
    if any(path is not None and not path.exists() for path in starts):
        prepare(Namespace(lab=lab.root))
    return wanted


def _protocol(plan: Replay, chosen: Namespace) -> Protocol:
    entries = named(chosen.scene) or plan.protocol.scenes or named([plan.protocol.scene])
    for entry in entries:
        if not Path(entry.path).expanduser().is_dir():
            raise MissingFile(f"{entry.path} is not a folder; name the plan's scene with --scene.")
    entries = tuple(
        dataclasses.replace(entry, path=str(Path(entry.path).expanduser().resolve())) for entry in entries
    )
    if len(entries) > 1:
        if chosen.start:
            raise UsageError("--start is for one scene; a [[scene]] of the plan may name its checkpoint.")
        return protocols.check_protocol(dataclasses.replace(plan.protocol, scene="", scenes=entries))
    only = next(iter(entries))
    made = dataclasses.replace(plan.protocol, scene=only.path, scenes=())
    if not made.start_iteration:
        return made
    given = chosen.start.expanduser().resolve() if chosen.start else None
    if given and not given.exists():
        raise MissingFile(f"{given} does not exist; without --start the checkpoint is made.")
    return dataclasses.replace(
        made, checkpoint=str(given or f"start/chkpnt{made.start_iteration}.safetensors")
    )


def _carry_out(lab: Lab, measurement: Measurement) -> None:
    """Goes on with a session that was interrupted; one that has ended is not repeated."""
    session = session_of(lab, measurement)
    if session and (lab.sessions / session / "ended.json").exists():
        print(f"done before: session {session}")
        return
    wishes = Wishes(
        blocks=measurement.blocks,
        until_decided=measurement.until_decided,
        slices=measurement.slices,
        seed=measurement.order_seed,
        iterations=measurement.iterations,
        keep_models=measurement.keep_models,
    )
    planned = plans.load(lab, session) if session else None
    carry_out(lab, planned or plans.make(lab, measurement.kind, measurement.arms, wishes), told=False)


def _tell(lab: Lab, plan: Replay, protocol: Protocol, chosen: Namespace) -> int:
    """Table of results, log, report page; then whether it is what was expected."""
    from splatmeter.lab.judgement.verdicts import Judgements
    from splatmeter.lab.log import write_log
    from splatmeter.lab.log.log_contents import document
    from splatmeter.lab.report.write import write_report

    known = Judgements(lab)
    found = measured_pairs(known, plan)
    results = results_table(plan, found, protocol)
    for path in filter(None, (lab.root / "results.md", chosen.results)):
        write_text(path, results)
    log: Path = chosen.log or lab.root / "LOG.md"
    previous = log.read_text("utf-8") if log.exists() else ""
    write_text(log, write_log(document(lab, known), previous))
    write_report(lab, lab.root / "report.html", known=known)
    print(f"\n{_text(found)}")
    print(f"\nlog {log}\nreport {lab.root / 'report.html'}\nresults {lab.root / 'results.md'}")
    return 0 if all(outcome.as_expected for outcome in found) else 1


def _text(found: list[MeasuredPair]) -> str:
    rows = [[*outcome.row(), outcome.told() or "-"] for outcome in found]
    head = ["measurement", "candidate", "against", "ratio", "95 % interval", "s_d", "blocks", "verdict"]
    return text_table([*head, "gate", "expected"], rows)
