"""How many lenses took the photos, and what their focal lengths probably are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from splatmeter.capture.engine import CameraGuess
from splatmeter.capture.job import CleanPhoto
from splatmeter.errors import InputError

USUAL_FOCAL = 1.2
"""In units of the longer side, where photos do not tell: between a phone's wide lens and a normal one."""


def guesses(photos: Sequence[CleanPhoto], single: bool) -> list[CameraGuess]:
    """One a body, zoom and size; or one for all, if somebody who knows says so."""
    if single:
        sizes = Counter((photo.width, photo.height) for photo in photos)
        if len(sizes) > 1:
            listed = ", ".join(f"{w}x{h} ({count})" for (w, h), count in sizes.most_common(4))
            raise InputError(
                f"--single-camera needs photos of one size, but there are {listed}. "
                "Leave it away, or leave out the photos of other sizes."
            )
        return [_guess(photos)]
    groups: dict[tuple[str, int, int], list[CleanPhoto]] = {}
    for photo in photos:
        groups.setdefault((photo.body, photo.width, photo.height), []).append(photo)
    return [_guess(group) for group in groups.values()]


def _guess(photos: Sequence[CleanPhoto]) -> CameraGuess:
    width, height = photos[0].width, photos[0].height
    told = [photo.focal for photo in photos if photo.focal is not None]
    focal = median(told) if told else USUAL_FOCAL * max(width, height)
    return CameraGuess(tuple(photos), width, height, focal, bool(told))
