"""Why a photo found no place in the scene, as far as numbers tell, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from splatmeter.capture.job import CleanPhoto, LeftOut
from splatmeter.capture.pairs import Pair

BLURRED_BELOW = 0.3
"""Share of the placed photos' median sharpness."""
FEW_FEATURES = 200
FEW_SHARED = 60
"""Verified matches with its best partner; registering takes 30 that are points of the scene already."""


def reasons(
    photos: Sequence[CleanPhoto],
    models: Sequence[Sequence[int]],
    features: Mapping[int, int],
    inliers: Mapping[Pair, int],
) -> list[LeftOut]:
    """One for each photo that is not in the first of the models (numbers of photos, largest first)."""
    placed = set(models[0])
    sharp = median([photo.sharpness for photo in photos if photo.number in placed] or [0.0])
    best: dict[int, int] = {}
    for pair, count in inliers.items():
        for number in pair:
            best[number] = max(best.get(number, 0), count)
    return [
        LeftOut(
            photo.name,
            *_reason(photo, models, features.get(photo.number, 0), best.get(photo.number, 0), sharp),
        )
        for photo in photos
        if photo.number not in placed
    ]


def _reason(
    photo: CleanPhoto, models: Sequence[Sequence[int]], features: int, shared: int, sharp: float
) -> tuple[str, str]:
    for model in models[1:]:
        if photo.number in model:
            return (
                f"It belongs to a separate group of {len(model)} photos",
                "Add photos that show both groups, or reconstruct them on their own",
            )
    if photo.sharpness < BLURRED_BELOW * sharp:
        share = round(100 * photo.sharpness / sharp)
        return (
            f"It is blurred ({share} % of the others' sharpness)",
            "Leave it out, or take it again with a steady hand",
        )
    if features < FEW_FEATURES:
        return (
            f"It shows too little detail ({features} features)",
            "Include something with texture in the view",
        )
    if shared < FEW_SHARED:
        return (
            f"It overlaps too little with the others ({shared} matches with the nearest)",
            "Add photos between it and the others",
        )
    return (
        "It matches others but fits nowhere: things that moved, mirrors or repeated patterns",
        "Add photos nearby, or mask what moves",
    )
