"""From the evidence to the history: reads run folders through the index, and decides nothing itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from splatmeter.errors import SplatmeterError
from splatmeter.lab.history import changes
from splatmeter.lab.history.conditions import conditions, described, photos_of
from splatmeter.lab.history.left_out import left_out
from splatmeter.lab.history.readings import readings
from splatmeter.lab.history.revisions import subjects
from splatmeter.lab.history.tracks import Against, Conditions, History, Point, Track, Variant
from splatmeter.lab.history.variants import Variants
from splatmeter.lab.json_files import read_json
from splatmeter.lab.judgement.gathering import counted, samples_of
from splatmeter.lab.judgement.verdicts import Judgements
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.index import synced_once
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.record.result import RunResult
from splatmeter.lab.samples.run_sample import Arm, RunSample
from splatmeter.lab.session.session_plan import (
    ArmPlan,
    SessionPlan,
    in_order,
    lineage_of,
    load,
    protocol_of,
)


@dataclass(frozen=True, slots=True)
class CountedRun:
    """A run that counts."""

    run: str
    result: RunResult
    sample: RunSample


@dataclass(frozen=True, slots=True)
class _Place:
    """A session on its way into the history."""

    plan: SessionPlan
    number: int
    arms: Mapping[str, tuple[CountedRun, ...]]
    variants: Mapping[str, Variant]
    """By label of the arm."""


def history(lab: Lab, known: Judgements | None = None) -> History:
    """Shows one state of the lab, whatever else is written meanwhile; `known` is what the same command has
    judged already.
    """
    with synced_once():
        return _history(lab, known or Judgements(lab))


def _history(lab: Lab, judgements: Judgements) -> History:
    refused = left_out(lab)
    tracks: dict[Conditions, list[Point]] = {}
    protocols: dict[Conditions, Protocol] = {}
    variants, judge = Variants(), changes.SessionComparisons(judgements)
    number = 0
    for session in in_order(lab):
        plan = None if session in refused.sessions else load(lab, session)
        arms = _arms(lab, plan) if plan else {}
        if plan is None or not arms:
            continue
        number += 1
        known = {arm.label: _variant(variants, plan, arm, arms) for arm in plan.arms if arm.label in arms}
        place = _Place(plan, number, arms, known)
        for found, point in _points(lab, place, judge):
            tracks.setdefault(found, []).append(point)
            protocols.setdefault(found, protocol_of(plan).of_scene(found.scene))
    points = [point for track in tracks.values() for point in track]
    asked, told = subjects(lab, [point.revision for point in points])
    title, now = _now(lab)
    machines = len({(found.machine, found.hardware) for found in tracks})
    return History(
        title,
        tuple(
            Track(found, tuple(track), described(found, protocols[found], machines), found.protocol == now)
            for found, track in tracks.items()
        ),
        tuple(variants.remarks),
        refused.sentences,
        told,
        asked,
    )


def _now(lab: Lab) -> tuple[str, str]:
    """Title and fingerprint of the protocol as it is; a file that cannot be read says so elsewhere."""
    try:
        protocol = lab.protocol()
    except SplatmeterError:
        return "benchmark", ""
    return protocol.title, protocol.fingerprint()


def _arms(lab: Lab, plan: SessionPlan) -> dict[str, tuple[CountedRun, ...]]:
    """The counted runs of every arm that has any, in the order of the plan."""
    results = counted(lab, plan.session)
    labels = {arm.label: Arm(arm.label) for arm in plan.arms}
    found: dict[str, list[CountedRun]] = {}
    for sample in samples_of(results, labels, plan):
        item = CountedRun(sample.run, results[sample.run], sample)
        found.setdefault(sample.arm.name, []).append(item)
    return {arm.label: tuple(found[arm.label]) for arm in plan.arms if arm.label in found}


def _variant(
    variants: Variants, plan: SessionPlan, arm: ArmPlan, arms: Mapping[str, tuple[CountedRun, ...]]
) -> Variant:
    return variants.of(plan, arm.phase, [item.sample.code for item in arms[arm.label]])


def _points(lab: Lab, place: _Place, judge: changes.SessionComparisons) -> Iterable[tuple[Conditions, Point]]:
    """Arm by arm; an arm whose runs were made under several conditions (a session that moved to another
    machine, several scenes) is one point for each of them.
    """
    protocol = protocol_of(place.plan)
    photos = _photos(place)
    grouped: dict[tuple[Conditions, str], list[CountedRun]] = {}
    for label, runs in place.arms.items():
        for item in runs:
            scene = item.result.identity.scene
            found = conditions(item.result, protocol.of_scene(scene), photos.get(item.sample.scene, ""))
            grouped.setdefault((found, label), []).append(item)
    scenes = {name: place for place, name in enumerate(protocol.scene_names)}
    for found, label in sorted(grouped, key=lambda key: scenes.get(key[0].scene, 0)):
        runs = grouped[found, label]
        alike = {other for other, _ in grouped if other.scene == found.scene} == {found}
        yield found, _point(lab, place, label, runs, judge if alike else None)


def _photos(place: _Place) -> dict[str, str]:
    """Content of each scene, as the session's first arm saw it: a phase may declare other images."""
    found: dict[str, str] = {}
    for runs in place.arms.values():
        for item in runs:
            found.setdefault(item.sample.scene, photos_of(item.result))
    return found


def _point(
    lab: Lab, place: _Place, label: str, runs: list[CountedRun], judge: changes.SessionComparisons | None
) -> Point:
    plan = place.plan
    timed = "" if plan.kind == "quality" else "slices" if plan.slices else "whole runs"
    revisions = {item.result.identity.revision for item in runs}
    first = next(iter(place.arms))
    point = Point(
        session=plan.session,
        number=place.number,
        kind=plan.kind,
        created=plan.created,
        arm=label,
        variant=place.variants[label],
        revision=revisions.pop() if len(revisions) == 1 else "",
        changed_tree=_changed_tree(lab, runs[0].run),
        runs=tuple(item.run for item in runs),
        readings=readings([item.sample for item in runs], timed),
        first=place.variants[first],
    )
    if judge is None or label == first or plan.kind in ("record", "quality"):
        return point
    parent = _parent(plan, label, place.arms)
    scene = runs[0].sample.scene
    told = {name: _told(place, judge, (name, label), scene, point) for name in dict.fromkeys((parent, first))}
    return replace(
        point, parent=place.variants[parent].label, against=told[parent], against_first=told[first]
    )


def _told(
    place: _Place, judge: changes.SessionComparisons, labels: tuple[str, str], scene: str, point: Point
) -> Against | None:
    phases = tuple(place.variants[label].phase for label in labels)
    try:
        found = judge.compared(place.plan, phases[0], phases[1])
    except (SplatmeterError, ValueError, KeyError):  # arms that the lab itself cannot compare
        return None
    told = changes.against_in_scene(found, scene, point.readings, control=phases[0] == phases[1])
    return replace(told, reference=place.variants[labels[0]].label)


def _parent(plan: SessionPlan, label: str, arms: Mapping[str, object]) -> str:
    """The nearest ancestor that was an arm too, else the first arm."""
    phase = next(arm.phase for arm in plan.arms if arm.label == label)
    others = [arm for arm in reversed(plan.arms) if arm.label in arms and arm.label != label]
    by_phase = {arm.phase: arm.label for arm in others}
    ancestors = [ancestor.name for ancestor in reversed(lineage_of(plan, phase)[:-1])]
    return next((by_phase[name] for name in ancestors if name in by_phase), next(iter(arms)))


def _changed_tree(lab: Lab, run: str) -> bool:
    record = read_json(lab.sessions / run / "environment.json")
    git = record.get("git") if isinstance(record, dict) else None
    return bool(git.get("dirty")) if isinstance(git, dict) else False
