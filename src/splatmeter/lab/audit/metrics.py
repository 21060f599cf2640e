"""Metrics that agree too well, or not where they must."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.lab.samples.run_sample import OURS, Aspect, Evaluation, RunSample

SAME_PSNR = 0.02
"""dB: both round to the same 8-bit pictures; only the order of sums may differ."""
Pair = tuple[tuple[RunSample, Evaluation], tuple[RunSample, Evaluation]]


def equal_that_should_differ(runs: Sequence[RunSample]) -> list[Finding]:
    """All metrics equal to the last digit although the models, the seeds or the losses differ."""
    for (a, first), (b, second) in _pairs(runs):
        shared = first.metrics.keys() & second.metrics.keys()
        if len(shared) < 2 or any(first.metrics[name] != second.metrics[name] for name in shared):
            continue
        reason = _should_differ(a, first, b, second)
        if reason:
            sample = sorted(shared)[0]
            sentence = (
                f"{a.name} and {b.name} have the same {', '.join(sorted(shared))} on the {first.split} views "
                f"at step {first.step} to the last digit ({sample} {first.metrics[sample]!r}), although "
                f"{reason}: was one model evaluated twice?"
            )
            return [Finding("identical metrics", sentence, Severity.DOUBT, b.arm.name)]
    return []


def different_that_should_be_equal(runs: Sequence[RunSample]) -> list[Finding]:
    """One model with two sets of metrics, or a deterministic run that ended in two models."""
    findings: list[Finding] = []
    for (a, first), (b, second) in _pairs(runs):
        same_model = first.model_sha256 and first.model_sha256 == second.model_sha256
        if not same_model or first.images != second.images or first.exposure != second.exposure:
            continue
        for name in sorted(first.metrics.keys() & second.metrics.keys()):
            if first.metrics[name] != second.metrics[name]:
                sentence = (
                    f"{a.name} and {b.name} judged the same model ({first.model_sha256[:12]}) on the same "
                    f"{first.split} views, yet {name} is {first.metrics[name]!r} and "
                    f"{second.metrics[name]!r}."
                )
                findings.append(Finding("different metrics", sentence, Severity.WRONG, b.arm.name))
                break
        if findings:
            break
    return findings + _broken_promises(runs)


def different_views(runs: Sequence[RunSample]) -> list[Finding]:
    """Means over other views are other means, and fewer views are less work; a declared split may differ."""
    for (a, first), (b, second) in _pairs(runs):
        if a.arm.name == b.arm.name or first.rule != second.rule or not (first.images and second.images):
            continue
        views = [len(set(item.images)) for item in (first, second)]
        if set(first.images) == set(second.images) or Aspect.SPLIT in a.arm.declares | b.arm.declares:
            continue
        sentence = (
            f"{a.name} was evaluated on {views[0]} {first.split} views at step {first.step} and {b.name} on "
            f"{views[1]}, not the same ones: neither their metrics nor the memory of evaluating compare."
        )
        return [Finding("different views", sentence, Severity.DOUBT, b.arm.name)]
    return []


def judged_twice(run: RunSample) -> list[Finding]:
    """Two answers to one question: nobody may choose between them."""
    seen: dict[tuple[str, int, str, str], Evaluation] = {}
    for item in run.evaluations:
        first = seen.setdefault((item.split, item.step, *item.rule), item)
        if first.metrics != item.metrics:
            sentence = (
                f"{run.name} was evaluated twice on the {item.split} views at step {item.step}, with "
                f"different results: {_told(first)} and {_told(item)}."
            )
            return [Finding("two evaluations", sentence, Severity.WRONG, run.arm.name)]
    return []


def _told(item: Evaluation) -> str:
    return ", ".join(f"{name} {value:.6g}" for name, value in sorted(item.metrics.items())) or "nothing"


def printed_and_computed(runs: Sequence[RunSample]) -> list[Finding]:
    """A trainer that calls itself splatmeter prints what our own evaluation of its model must find again."""
    for run in runs:
        computed = {(e.split, e.step, e.exposure): e for e in run.evaluations if e.judged_by == OURS}
        for printed in run.evaluations:
            found = computed.get((printed.split, printed.step, printed.exposure))
            if found is None or printed.judged_by != "splatmeter" or set(printed.images) != set(found.images):
                continue
            told, real = printed.metrics.get("psnr"), found.metrics.get("psnr")
            if told is not None and real is not None and abs(told - real) > SAME_PSNR:
                sentence = (
                    f"{run.name} printed a PSNR of {told:.4f} dB on the {printed.split} views at step "
                    f"{printed.step}; the model that it saved there has {real:.4f} dB."
                )
                return [Finding("printed metrics", sentence, Severity.WRONG, run.arm.name)]
    return []


def _broken_promises(runs: Sequence[RunSample]) -> list[Finding]:
    models: dict[tuple[str, int, str, int], RunSample] = {}
    for run in runs:
        if not (run.deterministic and run.model_sha256):
            continue
        first = models.setdefault((run.arm.name, run.seed, run.start_sha256, run.last_step), run)
        if first.model_sha256 != run.model_sha256:
            sentence = (
                f"{first.name} and {run.name} are the same deterministic run (seed {run.seed}), yet end in "
                f"different models ({first.model_sha256[:12]} and {run.model_sha256[:12]})."
            )
            return [Finding("different models", sentence, Severity.DOUBT, run.arm.name)]
    return []


def _should_differ(a: RunSample, first: Evaluation, b: RunSample, second: Evaluation) -> str:
    if first.model_sha256 and second.model_sha256:
        if first.model_sha256 == second.model_sha256:
            return ""
        return f"their models differ ({first.model_sha256[:12]}, {second.model_sha256[:12]})"
    if a.model_sha256 and a.model_sha256 == b.model_sha256:
        return ""
    if a.seed != b.seed and a.seed_set and b.seed_set:
        return f"their seeds differ ({a.seed}, {b.seed})"
    if a.deterministic and b.deterministic and first.step < min(a.last_step, b.last_step):
        return ""  # what the arms do differently may begin after this step; their losses are of the last
    if a.loss is not None and b.loss is not None and a.loss != b.loss:
        return f"their losses differ ({a.loss!r}, {b.loss!r})"
    return ""


def _pairs(runs: Sequence[RunSample]) -> Iterator[Pair]:
    """Evaluations of the same split at the same step in two runs."""
    for a, b in combinations(runs, 2):
        for first in a.evaluations:
            for second in b.evaluations:
                if (first.split, first.step) == (second.split, second.step):
                    yield (a, first), (b, second)
