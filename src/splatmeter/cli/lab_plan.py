"""`lab init`, `lab prepare`, `lab phase`: what shall be measured."""

from __future__ import annotations

import dataclasses
import sys
from argparse import Namespace
from pathlib import Path

from splatmeter.cli.lab import lab_folder
from splatmeter.cli.lab_text import table
from splatmeter.errors import UsageError
from splatmeter.events import Progress
from splatmeter.lab.executor import ChildProcess
from splatmeter.lab.json_files import write_text
from splatmeter.lab.order_of_time import utc_now
from splatmeter.lab.plan import phases, protocol
from splatmeter.lab.plan.build_steps import build_words
from splatmeter.lab.plan.phases import BASELINE, Phase
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.plan.scene_entries import named
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.session import start
from splatmeter.lab.session.guard import pin


def init(chosen: Namespace) -> int:
    """Also makes the baseline, so that the first phase has a parent."""
    lab = Lab(lab_folder(chosen))
    if lab.protocol_file.exists():
        raise UsageError(f"{lab.protocol_file} exists already; edit it, or choose another folder with --lab.")
    given = {
        "resolution": chosen.resolution,
        "start_iteration": chosen.start,
        "iterations": chosen.iterations,
    }
    given |= {
        "evaluate_at": chosen.evaluate_at,
        "blocks": chosen.blocks,
        "seeds": chosen.seeds,
        "shift_seeds": chosen.shift_seeds,
        "title": chosen.title,
    }
    given = {name: value for name, value in given.items() if value is not None}
    scenes = [_place(scene) for scene in chosen.scene]
    made = protocol.users_own(scenes[0], chosen.trainer, _place(chosen.directory))
    made = dataclasses.replace(made, **given)
    if made.start_iteration != 3000 and made.checkpoint:
        suffix = made.checkpoint.rpartition(".")[2]
        checkpoint = f"start/chkpnt{made.start_iteration}.{suffix}" if made.start_iteration else ""
        made = dataclasses.replace(made, checkpoint=checkpoint)
    if chosen.title is None:
        steps = f"{made.start_iteration}-{made.end_iteration}"
        names = " ".join(Path(scene).name for scene in scenes)
        made = dataclasses.replace(made, title=f"{names or made.trainer} -r{made.resolution} {steps}")
    if len(scenes) > 1:
        made = dataclasses.replace(made, scene="", scenes=named(scenes))
    if chosen.foreign:
        made = dataclasses.replace(made, command=chosen.foreign)
    protocol.check_protocol(made)  # before a card is tried
    if not chosen.foreign and made.trainer == "splatmeter":
        made = dataclasses.replace(made, options=(*made.options, "--device", _device()))
    lab.root.mkdir(parents=True, exist_ok=True)
    write_text(lab.protocol_file, protocol.protocol_text(made))
    if BASELINE not in lab.phases.names():
        lab.phases.add(Phase(BASELINE, note="Reference, no optimisations", created=utc_now()))
    pin(lab, BASELINE)
    print(f"{lab.protocol_file} written; edit it, then `splatmeter lab prepare` and `lab phase add`.")
    return 0


def _device() -> str:
    """What auto means on this machine today: all runs of a comparison must mean the same."""
    from splatmeter.backends.registry import backend

    return backend(device="auto").facts.device


def _place(stated: str) -> str:
    """What a person types is seen from here; what does not exist yet stays as it is, seen from the lab."""
    path = Path(stated).expanduser()
    return str(path.resolve()) if stated and path.exists() else stated


def prepare(chosen: Namespace) -> int:
    lab = Lab(lab_folder(chosen)).checked()
    plan = lab.protocol()
    starts = [(name, plan.of_scene(name)) for name in plan.scene_names or ("",)]
    waiting = [(name, own) for name, own in starts if _missing(lab, own)]
    for name, own in waiting or starts[:1]:  # one that exists is refused in a sentence
        for arrival in start.prepare(lab, own, ChildProcess(), name):
            if isinstance(arrival.event, Progress) and arrival.event.step % 100 == 0:
                done = f"{name} {arrival.event.step} of {plan.start_iteration}".strip()
                print(f"\r{done}, loss {arrival.event.loss:.4f}", end="", file=sys.stderr)
        path, sha256 = start.checked(lab, own, name)
        print(f"\nstart checkpoint {path} with hash {sha256[:12]}...")
    return 0


def _missing(lab: Lab, own: Protocol) -> bool:
    path = start.path_of(lab, own)
    return path is not None and not path.exists()


def phase(chosen: Namespace) -> int:
    lab = Lab(lab_folder(chosen)).checked()
    if chosen.action == "list":
        return _list(lab)
    if chosen.action == "add":
        made = _changed(Phase(chosen.name, parent=_parent(lab, chosen), created=utc_now()), chosen)
        path = lab.phases.add(made)
    else:
        path = lab.phases.save(_changed(lab.phases.get(chosen.name), chosen))
        if chosen.pin:
            pin(lab, chosen.name)
    print(path)
    return 0


def _parent(lab: Lab, chosen: Namespace) -> str:
    if chosen.parent is not None:
        return chosen.parent
    return lab.phases.newest_adopted()


def _changed(old: Phase, chosen: Namespace) -> Phase:
    """Only what was said on the command line."""
    given: dict[str, object] = {
        name: getattr(chosen, name)
        for name in ("title", "note", "state", "reason", "revision", "patch", "trainer", "aim")
        if getattr(chosen, name) is not None
    }
    for field, name in (
        ("changes", "change"),
        ("code_changes", "code_change"),
    ):
        if getattr(chosen, name):
            given[field] = tuple(getattr(chosen, name))
    if chosen.build:
        given["build"] = build_words(chosen.build)
    if chosen.variable:
        given["environment"] = phases.stated_variables(chosen.variable)
    if chosen.foreign:  # what begins with a dash adds to the trainer's own command
        given["options" if chosen.foreign[0].startswith("-") else "command"] = chosen.foreign
    return dataclasses.replace(old, **given)  # type: ignore[arg-type]


def _list(lab: Lab) -> int:
    from splatmeter.lab.judgement.verdicts import Judgements, counted_runs, state_of

    rows = []
    known = Judgements(lab)
    for item in lab.phases.all():
        verdict = known.of_phase(item)
        words = verdict.kind.value if verdict else "-"
        rows.append(
            [
                item.name,
                item.parent or "-",
                f"{state_of(lab, item)}{', adopted' if item.adopted else ''}",
                words,
                str(counted_runs(lab, item.name)),
                item.note,
            ]
        )
    print(table(["phase", "parent", "state", "verdict", "runs", "note"], rows))
    return 0
