"""Every step that the protocol names is judged, by one judge for both arms; what is missing has a name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from splatmeter.lab.compare.samples import Evaluation, RunSample

OURS = "splatmeter eval"
"""Computed by the lab itself from a saved model, with the same code for every trainer."""


@dataclasses.dataclass(frozen=True, slots=True)
class Covered:
    runs: list[RunSample]
    """With at most one evaluation for each split and step, from the judge that both arms share."""
    lacking: tuple[str, ...]
    """What the protocol asks for and cannot be compared, one sentence each."""


def covered(runs: Sequence[RunSample], required: Iterable[tuple[str, int]]) -> Covered:
    """`required` are (split, step) that every run must have been judged at."""
    wanted = list(required)
    present = {(e.split, e.step) for run in runs for e in run.evaluations}
    judges = {place: _shared_judge(runs, *place) for place in present}
    kept = [
        dataclasses.replace(
            run,
            evaluations=tuple(e for e in run.evaluations if judges[e.split, e.step] == e.judged_by),
        )
        for run in runs
    ]
    lacking = [_missing(runs, *place) for place in wanted if not judges.get(place)]
    return Covered(kept, tuple(lacking))


def _shared_judge(runs: Sequence[RunSample], split: str, step: int) -> str:
    """Who judged this step in every run, the lab before a trainer; empty if there is nobody."""
    shared = [{e.judged_by for e in _at(run, split, step)} for run in runs]
    common = set.intersection(*shared) if shared else set()
    return OURS if OURS in common else min(common, default="")


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
    return (
        f"At step {step} no judge has judged the {split} views of both arms ({told}): metrics that a trainer"
        " printed and metrics that were computed elsewhere are never compared."
    )


def _at(run: RunSample, split: str, step: int) -> list[Evaluation]:
    return [e for e in run.evaluations if (e.split, e.step) == (split, step)]
