"""Several scenes in one comparison: each is a stratum, compared on its own; together they have one ratio.

A block runs every scene. Its log ratios are averaged over the scenes, with equal weights, and the interval is
Student's t over blocks: the geometric mean over *these* scenes, with whatever their noises share. It says
nothing about scenes that were not measured. What one scene loses does not hide in the mean: quality must hold
in each, and a scene that is shown to lose at a level shared by all scenes (Bonferroni) decides.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

from splatmeter.lab.compare.aim_figures import (
    Figure,
    How,
    estimated,
    mean_over,
)
from splatmeter.lab.compare.assemble import Control, Rules, compare, speed_evidence
from splatmeter.lab.compare.comparison import Comparison
from splatmeter.lab.compare.covariate import stolen_differences
from splatmeter.lab.compare.metric import shared_level
from splatmeter.lab.compare.noise import NoiseFloor, noise_floor
from splatmeter.lab.compare.ratio import SpeedEvidence, evidence, log_ratios
from splatmeter.lab.compare.sequential import evidence_so_far
from splatmeter.lab.compare.trajectory import Goal
from splatmeter.lab.samples.finding import Finding
from splatmeter.lab.samples.run_sample import RunSample


def compare_scenes(
    runs: Sequence[RunSample],
    arms: tuple[str, str],
    goals: Mapping[str, Goal],
    rules: Rules,
    quality_runs: Sequence[RunSample] = (),
) -> Comparison:
    """`goals` has an entry for every scene, in the protocol's order."""
    parts: list[Comparison] = []
    for scene, goal in goals.items():
        control = _control_of(rules.control, scene)
        own = dataclasses.replace(
            rules,
            findings=(),
            goal=goal,
            control=control,
            noise=_floor(control, [scene]) if control else None,
        )
        found = compare(of_scene(runs, scene), *arms, own, (), of_scene(quality_runs, scene))
        parts.append(_named(found, scene))
    pooled = dataclasses.replace(rules, noise=_floor(rules.control, list(goals)) if rules.control else None)
    return dataclasses.replace(
        parts[0],
        scene="",
        speed=pooled_speed(runs, arms, list(goals), pooled),
        quality=shared_level([result for part in parts for result in part.quality]),
        findings=(*rules.findings, *(finding for part in parts for finding in part.findings)),
        noise=pooled.noise,
        runs=tuple(name for part in parts for name in part.runs),
        lacking=tuple(words for part in parts for words in part.lacking),
        figures=_pooled_figures(parts, rules),
        scenes=tuple(parts),
    )


def of_scene(runs: Sequence[RunSample], scene: str) -> list[RunSample]:
    return [run for run in runs if run.scene == scene]


def pooled_log_ratios(
    runs: Sequence[RunSample], arms: tuple[str, str], scenes: Sequence[str]
) -> dict[int, float]:
    """One log ratio for each block that has both arms in every scene."""
    return mean_over([_by_block(of_scene(runs, scene), arms, log_ratios) for scene in scenes])


def pooled_speed(
    runs: Sequence[RunSample], arms: tuple[str, str], scenes: Sequence[str], rules: Rules
) -> SpeedEvidence:
    differences = pooled_log_ratios(runs, arms, scenes)
    shares = [_by_block(of_scene(runs, scene), arms, stolen_differences) for scene in scenes]
    known = all(share is not None for part in shares for share in part.values())
    stolen = mean_over([{k: v for k, v in part.items() if v is not None} for part in shares]) if known else {}
    return speed_evidence(
        list(differences.values()), [stolen[block] for block in differences] if stolen else None, rules
    )


def _by_block(
    runs: Sequence[RunSample], arms: tuple[str, str], values: Callable[..., Sequence[float | None]]
) -> dict[int, float]:
    blocks = [{run.block for run in runs if run.arm.name == arm} for arm in arms]
    return dict(zip(sorted(blocks[0] & blocks[1]), values(runs, *arms), strict=True))  # type: ignore[arg-type]


def _control_of(control: Control | None, scene: str) -> Control | None:
    return dataclasses.replace(control, runs=of_scene(control.runs, scene)) if control else None


def _floor(control: Control | None, scenes: Sequence[str]) -> NoiseFloor | None:
    if control is None:
        return None
    differences = list(pooled_log_ratios(control.runs, (control.first, control.second), scenes).values())
    if len(differences) < 2:
        return None
    return noise_floor(evidence_so_far(differences) if control.until_decided else evidence(differences))


def _named(part: Comparison, scene: str) -> Comparison:
    """Sentences that leave their scene must say which it was."""
    return dataclasses.replace(
        part,
        scene=scene,
        quality=tuple(dataclasses.replace(result, scene=scene) for result in part.quality),
        findings=tuple(_in_scene(finding, scene) for finding in part.findings),
        lacking=tuple(f"{scene}: {words}" for words in part.lacking),
        figures=tuple(
            dataclasses.replace(
                figure,
                **{
                    name: tuple(f"{scene}: {words}" for words in getattr(figure, name))
                    for name in ("lacking", "no_gain", "no_loss")
                },
            )
            for figure in part.figures
        ),
    )


def _in_scene(finding: Finding, scene: str) -> Finding:
    return dataclasses.replace(finding, sentence=f"{scene}: {finding.sentence}")


def _pooled_figures(parts: Sequence[Comparison], rules: Rules) -> tuple[Figure, ...]:
    """Peaks by their stage; a time to a quality has another name where its goal is another."""
    groups: dict[str, list[Figure]] = {}
    for part in parts:
        for figure in part.figures:
            groups.setdefault(figure.name if rules.aim.of_memory else "", []).append(figure)
    return tuple(_pooled_figure(figures, parts, rules) for figures in groups.values())


def _pooled_figure(figures: Sequence[Figure], parts: Sequence[Comparison], rules: Rules) -> Figure:
    samples = mean_over([figure.samples for figure in figures])
    names = list(dict.fromkeys(figure.name for figure in figures))
    floors = [figure.noise.estimate for figure in figures if figure.noise]
    level = 0.05 / (2 if rules.aim.of_memory else 1)
    how = How(
        level=level,
        resolution=max((figure.estimate.resolution for figure in figures), default=0.0),
        anytime=rules.until_decided,
    )
    several = f"{names[0]} and its like" if len(names) > 1 else names[0]
    lacking = [words for figure in figures for words in figure.lacking]
    if len(figures) < len(parts):
        lacking.append(f"the {names[0]} was not observed in every scene.")
    return Figure(
        several,
        samples,
        estimated(samples, how),
        *(_geometric([getattr(figure, side) for figure in figures]) for side in ("reference", "candidate")),
        unit=figures[0].unit,
        over=figures[0].over,
        lacking=tuple(lacking),
        no_gain=tuple(words for figure in figures for words in figure.no_gain),
        no_loss=tuple(words for figure in figures for words in figure.no_loss),
        noise=_worst(figures) if floors else None,
    )


def _worst(figures: Sequence[Figure]) -> NoiseFloor | None:
    """An A/A that failed or leans in one scene is enough to doubt all of them."""
    floors = [figure.noise for figure in figures if figure.noise]
    return max(floors, key=lambda floor: (floor.failed, floor.leans), default=None)


def _geometric(values: Sequence[float]) -> float:
    if not all(value > 0 for value in values):
        return math.nan
    return math.exp(math.fsum(map(math.log, values)) / len(values))
