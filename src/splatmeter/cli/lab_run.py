"""`lab run`, `lab ab`, `lab aa`, `lab resume`: sessions of blocks."""

from __future__ import annotations

import contextlib
import signal
import sys
from argparse import Namespace
from collections.abc import Iterator

from splatmeter.cli.lab import lab_folder
from splatmeter.cli.lab_cluster import job_wishes, session_of
from splatmeter.cli.lab_text import SessionProgress
from splatmeter.errors import MissingFile, UsageError
from splatmeter.lab.judgement.gathering import sessions_of
from splatmeter.lab.order_of_time import utc_now
from splatmeter.lab.plan.phases import Phase
from splatmeter.lab.record.index import Index, synced_once
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.session import session_plan as plans
from splatmeter.lab.session.blocks import done_blocks
from splatmeter.lab.session.session_plan import SessionPlan, Wishes
from splatmeter.lab.trainers.choose import guessed
from splatmeter.units import bytes_text


def run(chosen: Namespace) -> int:
    """Against the parent and the baseline from the same blocks; a baseline, or --record, runs alone."""
    lab = Lab(lab_folder(chosen)).checked()
    if chosen.foreign:
        _foreign_phase(lab, chosen)
    lineage = lab.phases.lineage(chosen.phase)
    alone = chosen.record or len(lineage) == 1
    if alone:
        if not chosen.record and (chosen.blocks or chosen.until_decided):
            raise UsageError(
                f"{chosen.phase} has no parent to be measured against; use `lab aa {chosen.phase}`."
            )
        return _begin(lab, "record", [chosen.phase], chosen)
    arms = dict.fromkeys([lineage[0].name, lineage[-2].name, lineage[-1].name])
    return _begin(lab, "run", list(arms), chosen)


def ab(chosen: Namespace) -> int:
    lab = Lab(lab_folder(chosen)).checked()
    if chosen.reference == chosen.candidate:
        raise UsageError(
            f"Both arms are {chosen.reference}; `splatmeter lab aa {chosen.reference}` does that on purpose."
        )
    return _begin(lab, "ab", [chosen.reference, chosen.candidate], chosen)


def aa(chosen: Namespace) -> int:
    return _begin(Lab(lab_folder(chosen)).checked(), "aa", [chosen.phase, chosen.phase], chosen)


def overhead(chosen: Namespace) -> int:
    """Without a verdict on the phase: what is measured is the lab."""
    return _begin(Lab(lab_folder(chosen)).checked(), "overhead", [chosen.phase, chosen.phase], chosen)


def quality(chosen: Namespace) -> int:
    """They count for the newest measurement of the two, with all that were made before."""
    from splatmeter.lab.session.quality_seeds import FOR_QUALITY, first_seed

    lab = Lab(lab_folder(chosen)).checked()
    reference = chosen.against or lab.phases.get(chosen.phase).parent
    if not reference or reference == chosen.phase:
        raise UsageError(f"Name the phase that {chosen.phase} is compared with: --against.")
    if chosen.pairs < 1:
        raise UsageError("--pairs is at least 1.")
    phases = [reference, chosen.phase]
    wishes = Wishes(blocks=chosen.pairs, prime=False, first_seed=first_seed(lab, phases))
    return carry_out(lab, plans.make(lab, FOR_QUALITY, phases, wishes))


def resume(chosen: Namespace) -> int:
    lab = Lab(lab_folder(chosen)).checked()
    waiting = plans.unfinished(lab)
    if not chosen.session and not waiting:
        raise MissingFile("No session is waiting to be resumed; `splatmeter lab ls` shows what there is.")
    plan = plans.load(lab, chosen.session or waiting[-1])
    return carry_out(lab, plans.anew(lab, plan) if chosen.anew else plan)


def _foreign_phase(lab: Lab, chosen: Namespace) -> None:
    """`lab run NAME -- COMMAND` declares the command; a phase that exists must have the same one."""
    trainer = chosen.trainer or guessed(chosen.foreign)
    names = lab.phases.names()
    if chosen.phase in names:
        if lab.phases.get(chosen.phase).command != chosen.foreign:
            raise UsageError(
                f"Phase {chosen.phase} exists with another command; choose a new name for this one."
            )
        return
    parent = "" if chosen.record else lab.phases.newest_adopted()
    made = Phase(chosen.phase, parent=parent, command=chosen.foreign, trainer=trainer, created=utc_now())
    lab.phases.add(made)


def _begin(lab: Lab, kind: str, phases: list[str], chosen: Namespace) -> int:
    wishes = Wishes(
        blocks=chosen.blocks,
        until_decided=chosen.until_decided,
        slices=chosen.slices,
        seed=chosen.order_seed,
        iterations=getattr(chosen, "iterations", None) or 0,
        prime=not chosen.no_priming,
        keep_models=chosen.keep_models,
        monitor=not chosen.no_monitor,
        jobs=job_wishes(chosen),
    )
    return carry_out(lab, plans.make(lab, kind, phases, wishes))


def carry_out(lab: Lab, plan: SessionPlan, told: bool = True) -> int:
    """`told`: the verdicts of the last arm are printed at the end."""
    session = session_of(lab, plan)
    steps = (session.protocol.start_iteration, session.protocol.end_iteration)
    progress = SessionProgress(plan.blocks, len(done_blocks(session.folder)), steps)
    print(f"session {plan.session}", file=sys.stderr)
    with _ended_politely(), contextlib.closing(session.beats(lambda: _decided(lab, plan))) as beats:
        for number, beat in enumerate(beats):
            if number == 0 and session.predicted:
                needed = max(session.predicted.values())
                print(f"predicted memory {bytes_text(needed)}", file=sys.stderr)
            progress.show(beat)
    Index(lab).sync()
    if told:
        _tell(lab, plan)
    return 0


def _decided(lab: Lab, plan: SessionPlan) -> bool:
    """The last arm against each of the others."""
    from splatmeter.lab.compare.verdict import may_stop
    from splatmeter.lab.judgement.comparisons import comparison

    candidate = plan.arms[-1].phase
    with synced_once():
        return all(may_stop(comparison(lab, arm.phase, candidate, plan.session)) for arm in plan.arms[:-1])


def _tell(lab: Lab, plan: SessionPlan) -> None:
    if plan.kind == "record":
        print(
            f"{plan.arms[0].phase} is recorded, without a speed verdict: `splatmeter lab show {plan.session}`"
        )
        return
    with synced_once():
        if plan.kind == "quality" and not sessions_of(lab, plan.arms[0].phase, plan.arms[1].phase):
            command = f"splatmeter lab run {plan.arms[1].phase}"
            print(f"{plan.blocks} pairs are recorded; `{command}` adds the speed")
            return
        _tell_verdicts(lab, plan)


def _tell_verdicts(lab: Lab, plan: SessionPlan) -> None:
    from splatmeter.lab.judgement.verdicts import judged

    session = plan.session if plan.kind != "quality" else ""
    for arm in plan.arms[:-1]:
        found = judged(lab, arm.phase, plan.arms[-1].phase, session)
        print(found.verdict.sentence)
        for reason in found.verdict.reasons:
            print(f"  - {reason}")


@contextlib.contextmanager
def _ended_politely() -> Iterator[None]:
    """SIGTERM becomes an orderly exit, so that the child is ended too."""

    def leave(*_: object) -> None:
        raise SystemExit(143)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
