"""Arms that differ in more than what the phase says it changes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from splatmeter.lab.samples.averages import mean
from splatmeter.lab.samples.finding import Finding, Severity
from splatmeter.lab.samples.run_sample import Arm, Aspect, RunSample

MOST_DIFFERENT_COUNT = 0.01


def undeclared_differences(runs: Sequence[RunSample]) -> list[Finding]:
    """Every aspect in which an arm differs from the first one and that neither declares."""
    arms = _by_arm(runs)
    findings = [_inconsistent(arm, aspect) for arm in arms for aspect in _CONSTANT_WITHIN_AN_ARM]
    for other in arms[1:]:
        for aspect in _FACTS:
            findings.append(_difference(arms[0], other, aspect))
    return [finding for finding in findings if finding is not None]


def different_counts(runs: Sequence[RunSample]) -> list[Finding]:
    """More than 1 % more Gaussians is another amount of work per step."""
    arms = _by_arm(runs)
    findings: list[Finding] = []
    for other in arms[1:]:
        a, b = arms[0], other
        ends = [(_mean_count(a, end), _mean_count(b, end)) for end in ("gaussians_start", "gaussians_end")]
        apart = max(abs(y - x) / max(x, 1.0) for x, y in ends)
        if apart <= MOST_DIFFERENT_COUNT:
            continue
        declared = Aspect.GAUSSIANS in _declared(a, b)
        work = [mean([run.gaussian_steps_per_second for run in arm]) for arm in (a, b)]
        sentence = (
            f"{_name(a)} goes from {ends[0][0]:,.0f} to {ends[1][0]:,.0f} Gaussians and {_name(b)} from "
            f"{ends[0][1]:,.0f} to {ends[1][1]:,.0f}, up to {100 * apart:.1f} % apart, so steps per second "
            f"do not compare; in Gaussian-iterations per second: {work[0]:.4g} and {work[1]:.4g} "
            f"({100 * (work[1] / work[0] - 1):+.1f} %)."
        )
        severity = Severity.NOTE if declared else Severity.DOUBT
        kind = "declared count" if declared else "undeclared difference"
        findings.append(Finding(kind, sentence, severity, _name(b)))
    return findings


def incomparable_quality(runs: Sequence[RunSample]) -> str:
    """Why the arms' quality may not be compared at all; empty if it may."""
    arms = _by_arm(runs)
    for other in arms[1:]:
        a, b = _facts(arms[0], Aspect.SPLIT), _facts(other, Aspect.SPLIT)
        if a and b and a != b:
            names = f"{_name(arms[0])} and {_name(other)}"
            return f"{names} hold out different views; their quality does not compare."
    return ""


def _difference(a: list[RunSample], b: list[RunSample], aspect: Aspect) -> Finding | None:
    left, right = _facts(a, aspect), _facts(b, aspect)
    if not left or not right or left == right:
        return None
    declared = aspect in _declared(a, b)
    if declared and aspect is not Aspect.SPLIT:
        return None
    what = f"{_name(a)} and {_name(b)} differ in {aspect.value}: {_contrast(left, right, aspect)}"
    if declared:
        sentence = f"{what}; it is declared, and it forbids a comparison of quality."
        return Finding("declared split", sentence, Severity.NOTE, _name(b))
    return Finding("undeclared difference", f"{what}; no phase declares it.", Severity.DOUBT, _name(b))


def _inconsistent(arm: list[RunSample], aspect: Aspect) -> Finding | None:
    values = _facts(arm, aspect)
    if len(values) < 2:
        return None
    shown = _listed(values) if aspect is not Aspect.SPLIT else f"{len(values)} different splits"
    sentence = f"The runs of {_name(arm)} differ among themselves in {aspect.value}: {shown}."
    return Finding("undeclared difference", sentence, Severity.DOUBT, _name(arm))


def _images(run: RunSample) -> Hashable:
    return frozenset(run.train_images) | frozenset(run.test_images)


def _split(run: RunSample) -> Hashable:
    known = run.train_images or run.test_images
    return (frozenset(run.train_images), frozenset(run.test_images)) if known else ""


def _iterations(run: RunSample) -> Hashable:
    return (run.first_step, run.last_step)  # timed steps of a watched progress bar vary by a few


def _environment(run: RunSample) -> Hashable:
    return tuple(sorted((str(key), str(value)) for key, value in run.environment.items()))


_FACTS = {
    Aspect.SCENE: lambda run: run.scene,
    Aspect.IMAGES: _images,
    Aspect.RESOLUTION: lambda run: run.resolution,
    Aspect.SPLIT: _split,
    Aspect.SEED: lambda run: run.seed,
    Aspect.ITERATIONS: _iterations,
    Aspect.START: lambda run: run.start_sha256,
    Aspect.BACKEND: lambda run: run.backend,
    Aspect.MACHINE: lambda run: run.machine,
    Aspect.ENVIRONMENT: _environment,
    Aspect.CODE: lambda run: run.code,
}
_CONSTANT_WITHIN_AN_ARM = [aspect for aspect in _FACTS if aspect not in (Aspect.SEED, Aspect.START)]
"""Seeds differ between blocks by design, and a start checkpoint may be made per seed."""


def _facts(arm: Sequence[RunSample], aspect: Aspect) -> set[Hashable]:
    """The known values of one aspect in one arm; unknown ones (empty) accuse nobody."""
    values = {_FACTS[aspect](run) for run in arm}
    return {value for value in values if value not in ("", (), frozenset())}


def _contrast(left: set[Hashable], right: set[Hashable], aspect: Aspect) -> str:
    if aspect is Aspect.ENVIRONMENT and len(left) == len(right) == 1:
        a, b = dict(next(iter(left))), dict(next(iter(right)))  # type: ignore[call-overload]
        keys = sorted(key for key in a.keys() | b.keys() if a.get(key) != b.get(key))
        shown = "; ".join(f"{key} {a.get(key, 'absent')} against {b.get(key, 'absent')}" for key in keys[:3])
        return shown + (f"; and {len(keys) - 3} more" if len(keys) > 3 else "")
    if aspect is Aspect.SPLIT:
        sides = (" / ".join(sorted(_split_text(value) for value in side)) for side in (left, right))
        return " against ".join(sides)
    if aspect is Aspect.IMAGES:
        a, b = frozenset().union(*left), frozenset().union(*right)  # type: ignore[arg-type]
        return f"{len(a)} images against {len(b)}, {len(a ^ b)} of them in only one arm"
    return f"{_listed(left)} against {_listed(right)}"


def _split_text(value: Hashable) -> str:
    train, test = value  # type: ignore[misc]
    return f"{len(train)} train + {len(test)} test views"


def _listed(values: set[Hashable]) -> str:
    texts = sorted("→".join(map(str, v[:2])) if isinstance(v, tuple) else str(v)[:40] for v in values)
    return ", ".join(texts[:4]) + (f" and {len(texts) - 4} more" if len(texts) > 4 else "")


def _by_arm(runs: Sequence[RunSample]) -> list[list[RunSample]]:
    arms: dict[str, list[RunSample]] = {}
    for run in runs:
        arms.setdefault(run.arm.name, []).append(run)
    return list(arms.values())


def _declared(a: Sequence[RunSample], b: Sequence[RunSample]) -> frozenset[Aspect]:
    arms: list[Arm] = [a[0].arm, b[0].arm]
    return arms[0].declares | arms[1].declares


def _mean_count(arm: Sequence[RunSample], end: str) -> float:
    return mean([float(getattr(run, end)) for run in arm])


def _name(arm: Sequence[RunSample]) -> str:
    return arm[0].arm.name
