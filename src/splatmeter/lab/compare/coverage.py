"""Every step that the protocol names is judged, by one judge and one rule of exposure for both arms; what is
missing has a name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from splatmeter.lab.samples.run_sample import OURS, Evaluation, RunSample


@dataclasses.dataclass(frozen=True, slots=True)
class Covered:
    runs: list[RunSample]
    """With at most one evaluation for each split and step, by the judge and rule that both arms share."""
    lacking: tuple[str, ...]
    """What the protocol asks for and cannot be compared, one sentence each."""


def covered(runs: Sequence[RunSample], required: Iterable[tuple[str, int]]) -> Covered:
    """`required` are (split, step) that every run must have been judged at."""
    wanted = list(required)
    present = {(e.split, e.step) for run in runs for e in run.evaluations}
    rules = {place: _shared_rule(runs, *place) for place in present}
    kept = [
        dataclasses.replace(
            run,
            evaluations=tuple(e for e in run.evaluations if rules[e.split, e.step] == e.rule),
        )
        for run in runs
    ]
    lacking = [_missing(runs, *place) for place in wanted if not rules.get(place)]
    return Covered(kept, tuple(lacking))


def _shared_rule(runs: Sequence[RunSample], split: str, step: int) -> tuple[str, str] | None:
    """Who judged this step in every run, and how; the lab before a trainer. None if no one judged all."""
    shared = [{e.rule for e in _at(run, split, step)} for run in runs]
    common = set.intersection(*shared) if shared else set()
    return min(common, key=lambda rule: (rule[0] != OURS, rule[1] != "none", rule), default=None)


def _missing(runs: Sequence[RunSample], split: str, step: int) -> str:
    arms: dict[str, list[RunSample]] = {}
    for run in runs:
        arms.setdefault(run.arm.name, []).append(run)
    for name, members in arms.items():
        without = [run for run in members if not _at(run, split, step)]
        if without:
            count = f"{len(without)} of {len(members)} runs"
            return (
                f"{count} of {name} were not evaluated on the {split} views at step {step}, which the"
                " protocol asks for, and left no model that could be judged."
            )
    judges = {name: sorted({e.judged_by for run in members for e in _at(run, split, step)})
              for name, members in arms.items()}  # fmt: skip
    told = ", ".join(f"{name} by {' and '.join(found)}" for name, found in judges.items())
    if len(set(map(tuple, judges.values()))) == 1:
        return _exposures_differ(arms, split, step)
    return (
        f"At step {step} no judge has judged the {split} views of both arms ({told}): metrics that a trainer"
        " printed and metrics that were computed elsewhere are never compared."
    )


def _exposures_differ(arms: Mapping[str, Sequence[RunSample]], split: str, step: int) -> str:
    rules = {
        name: sorted({e.exposure for run in members for e in _at(run, split, step)})
        for name, members in arms.items()
    }
    told = ", ".join(f"{name} by {' and '.join(found)}" for name, found in rules.items())
    return (
        f"At step {step} the {split} views were judged by different protocols of exposure ({told}): their"
        " figures tell different things. Evaluate all arms with one --exposure-protocol."
    )


def _at(run: RunSample, split: str, step: int) -> list[Evaluation]:
    return [e for e in run.evaluations if (e.split, e.step) == (split, step)]
