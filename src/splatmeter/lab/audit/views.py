"""Test views that the model had already seen, and views that cannot be checked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.lab.samples.run_sample import RunSample


def leaked_test_views(run: RunSample) -> list[Finding]:
    """Views judged as held out that trained this run or any ancestor of its start."""
    judged = _judged(run)
    findings: list[Finding] = []
    ways = ((run.ancestor_images, "the checkpoint it started from"), (run.train_images, "the run itself"))
    for seen, by in ways:
        leaked = _shared(judged, seen)
        if leaked:
            sentence = (
                f"{len(leaked)} of the {len(judged)} test views of {run.name} had trained {by} (first: "
                f"{leaked[0]}), so its test metrics measure memory, not generalisation."
            )
            findings.append(Finding("leaked test views", sentence, Severity.WRONG, run.arm.name))
    return findings


def unchecked_views(run: RunSample) -> list[Finding]:
    """Where a trainer does not say which photos it used, the guard above has nothing to look at."""
    if not any(e.split == "test" for e in run.evaluations):
        return []
    unknown: list[str] = []
    if not run.train_images:
        unknown.append("it left no list of them")
    if run.start_sha256 and not run.ancestor_images:
        unknown.append("the checkpoint it started from does not say")
    if not unknown:
        return []
    sentence = f"Whether test views had trained {run.arm.name} could not be checked: {' and '.join(unknown)}."
    return [Finding("unchecked views", sentence, Severity.NOTE, run.arm.name)]


def _judged(run: RunSample) -> set[str]:
    return {name for e in run.evaluations if e.split == "test" for name in (e.images or run.test_images)}


def _shared(judged: Iterable[str], seen: Iterable[str]) -> list[str]:
    """By name; the original writes names without folder and ending, and then those decide."""
    seen = set(seen)
    bare = any("." not in name for name in seen)
    known = {_bare(name) for name in seen} if bare else seen
    return sorted(name for name in judged if (_bare(name) if bare else name) in known)


def _bare(name: str) -> str:
    return PurePath(name).name.split(".")[0]
