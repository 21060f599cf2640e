"""Test views that the model had already seen."""

from __future__ import annotations

from splatmeter.lab.compare.samples import Finding, RunSample, Severity


def leaked_test_views(run: RunSample) -> list[Finding]:
    """Views judged as held out that trained this run or any ancestor of its start."""
    judged = {name for e in run.evaluations if e.split == "test" for name in (e.images or run.test_images)}
    if not judged:
        return []
    findings: list[Finding] = []
    ways = ((run.ancestor_images, "the checkpoint it started from"), (run.train_images, "the run itself"))
    for seen, by in ways:
        leaked = sorted(judged & set(seen))
        if leaked:
            sentence = (
                f"{len(leaked)} of the {len(judged)} test views of {run.name} had trained {by} (first: "
                f"{leaked[0]}), so its test metrics measure memory, not generalisation."
            )
            findings.append(Finding("leaked test views", sentence, Severity.WRONG, run.arm.name))
    return findings
