"""Aims and scenes in the words of the log: what was aimed at, what each figure and each scene says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from splatmeter.lab.compare.aim_figures import Figure
from splatmeter.lab.compare.comparison import Comparison, ratio_text
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.record.result import RunResult
from splatmeter.lab.samples.aim import Aim, aim_of
from splatmeter.lab.samples.averages import mean

_WORDS = {
    Aim.SPEED: "speed",
    Aim.MEMORY: "less memory at equal speed and quality",
    Aim.BOTH: "speed and memory",
    Aim.TIME: "less training time to {target} on held-out views",
    Aim.QUALITY: "higher PSNR after {seconds:g} s of training",
}


def aim_text(word: str, protocol: Protocol) -> str:
    return _WORDS[aim_of(word)].format(target=_target(protocol), seconds=protocol.after_seconds)


def _target(protocol: Protocol) -> str:
    own = {name: protocol.of_scene(name).target_psnr for name in protocol.scene_names}
    if len(set(own.values())) > 1:
        return ", ".join(f"{value:g} dB ({name})" for name, value in own.items())
    return f"{next(iter(own.values()), protocol.target_psnr):g} dB"


def dataset_text(protocol: Protocol) -> str:
    """The scenes by name where there are several, else empty."""
    names = ", ".join(protocol.scene_names)
    return f"{names} (speeds and ratios: geometric means over them; metrics: means)" if names else ""


def goals(protocol: Protocol) -> dict[str, str]:
    """For the configuration of a log: only what is stated."""
    found: dict[str, str] = {}
    if protocol.evaluate_every:
        found["Grid of evaluations"] = f"every {protocol.evaluate_every} iterations, off the training clock"
    if protocol.target_psnr:
        found["Quality to reach"] = _target(protocol)
    if protocol.after_seconds:
        found["Time to be judged at"] = f"{protocol.after_seconds:g} s of the training clock"
    return found


def aim_notes(lab: Lab, protocol: Protocol) -> tuple[str, ...]:
    """The rules behind figures that this log has, in a sentence each."""
    aims = {aim_of(phase.aim) for phase in lab.phases.all()}
    notes: list[str] = []
    if any(aim.of_memory for aim in aims):
        notes.append(
            "Leaner: a peak of training or evaluation shown smaller (95 % for both together, never finer "
            "than the measurement's resolution), none larger and speed not lower by more than "
            f"{100 * protocol.tolerated_difference:g} %, quality held."
        )
    if any(aim.of_a_trajectory for aim in aims):
        notes.append(
            "Curves: straight lines between evaluations, none of which may stand out of the line between its "
            "neighbours; a quality is reached where the next evaluation confirms it; runs that never reach "
            "it are counted as such; paired over seeds."
        )
    if protocol.scenes:
        notes.append(
            f"Scenes: every block runs all {len(protocol.scenes)}; its log ratios are averaged with equal "
            "weights, Student's t over blocks gives the interval of their geometric mean, for these scenes. "
            "Quality must hold in each, and a scene that is shown to lose decides."
        )
    return tuple(notes)


def details(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Figures of the aim against this phase, then scenes and machines one by one."""
    reference = comparison.reference
    for figure in comparison.figures:
        yield f"{_capital(figure.name)} against {reference}", _figure(figure)
    if comparison.agreement is not None:
        yield f"Machines, against {reference}", comparison.agreement.sentence
    for part in (*comparison.scenes, *comparison.machines):
        speed = part.speed.main
        if not speed.blocks:
            continue
        words = [f"speed ratio {ratio_text(speed)}"]
        words += [f"{figure.name} {_figure(figure)}" for figure in part.figures]
        quality = [r for r in part.quality if r.metric == "psnr"]
        words += [
            f"PSNR {r.reference:.2f} → {r.candidate:.2f} dB at step {r.step}, {r.quality.value}"
            for r in quality[-1:]
        ]
        yield f"On {part.scene or part.machine} against {reference}", "; ".join(words)


def _figure(figure: Figure) -> str:
    return f"{figure.values}, ratio {figure.ratio}"


def _capital(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"


def block_rates(results: Sequence[RunResult]) -> list[float]:
    """Logs of steps per second, one for each run; with several scenes their mean, one for each block."""
    blocks: dict[tuple[int, str], list[float]] = {}
    for place, result in enumerate(results):
        identity, timing = result.identity, result.timing
        if timing is not None and timing.steps_per_second:
            key = (identity.block, identity.arm) if identity.scene else (place, "")
            blocks.setdefault(key, []).append(math.log(timing.steps_per_second))
    return [mean(values) for values in blocks.values()]
