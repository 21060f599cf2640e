"""Frames of a video as photos: looked through once at small size, then the chosen ones in full."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from splatmeter.capture.choose import Candidate, choose_by_count, choose_by_time
from splatmeter.capture.engine import Tell
from splatmeter.capture.exif import Lens
from splatmeter.capture.job import CleanPhoto, Prepared, Settings
from splatmeter.capture.listing import FEWEST_PHOTOS
from splatmeter.capture.prepare import JPEG_QUALITY, SMALLEST_SIDE, WIDEST
from splatmeter.capture.sharpness import JUDGED_AT, THUMBNAIL, motion, sharpness
from splatmeter.capture.work import Work
from splatmeter.errors import InputError

LOOKS_A_SECOND = 12.0
"""Taken from each second of the video; more candidates a second would hardly be sharper."""
_QUARTERS = {90: Image.Transpose.ROTATE_90, 180: Image.Transpose.ROTATE_180, 270: Image.Transpose.ROTATE_270}


def clean_frames(video: Path, settings: Settings, work: Work, tell: Tell) -> Prepared:
    notes: list[str] = []
    candidates = list(_looked_through(video, tell, notes))
    if settings.every is not None:
        chosen = choose_by_time(candidates, settings.every)
    else:
        chosen = choose_by_count(candidates, settings.frames)
    if len(chosen) < FEWEST_PHOTOS:
        raise InputError(
            f"{video.name} has {_distinct(len(chosen))}, and {FEWEST_PHOTOS} are needed. Move the "
            "camera around the scene while filming, or ask for more frames (--every with fewer seconds)."
        )
    judged = {c.index: c.sharpness for c in candidates}
    photos: list[CleanPhoto] = []
    for index, image in _full_frames(video, set(chosen)):
        number = len(photos) + 1
        photos.append(_written(image, number, judged[index], settings.max_size, work))
        tell(len(candidates) + number, len(candidates) + len(chosen))
    return Prepared(tuple(photos), (), tuple(notes))


def _distinct(count: int) -> str:
    return "one distinct frame only" if count == 1 else f"{count or 'no'} distinct frames"


def _written(image: Image.Image, number: int, sharp: float, max_size: int, work: Work) -> CleanPhoto:
    if max(image.size) > max_size:
        image.thumbnail((max_size, max_size), Image.Resampling.LANCZOS)
    file = f"{number:06d}.jpg"
    image.save(work.photos / file, quality=JPEG_QUALITY, subsampling=0)
    lens = Lens(None, "video")
    return CleanPhoto(number, file, f"frame_{number:05d}.jpg", *image.size, sharp, lens.focal, lens.body)


def _looked_through(video: Path, tell: Tell, notes: list[str]) -> Iterator[Candidate]:
    before, last = None, -1.0
    for index, time, frame, duration in _decoded(video, notes):
        if index and time - last < 1 / LOOKS_A_SECOND - 1e-6:
            continue
        last = time
        if not index:
            _check_size(video, frame.width, frame.height)
        scale = min(1.0, JUDGED_AT / max(frame.width, frame.height))
        small = (max(8, round(frame.width * scale / 8) * 8), max(8, round(frame.height * scale)))
        grey = frame.reformat(width=small[0], height=small[1], format="gray").to_ndarray()  # [h, w]
        thumbnail = np.asarray(Image.fromarray(grey).resize((THUMBNAIL, THUMBNAIL), Image.Resampling.BOX))
        moved = motion(before, thumbnail) if before is not None else 0.0
        before = thumbnail
        tell(round(10 * time), max(round(10 * duration), round(10 * time) + 1))
        yield Candidate(index, time, sharpness(grey), moved)


def _check_size(video: Path, width: int, height: int) -> None:
    if max(width, height) < SMALLEST_SIDE:
        raise InputError(
            f"{video.name} is only {width}x{height} pixels. Use the video as the camera stored it."
        )
    if max(width, height) / min(width, height) > WIDEST:
        raise InputError(f"{video.name} is a panorama ({width}x{height}). Use a video of an ordinary lens.")


def _full_frames(video: Path, wanted: set[int]) -> Iterator[tuple[int, Image.Image]]:
    last = max(wanted)
    for index, _, frame, _ in _decoded(video, []):
        if index in wanted:
            image = Image.fromarray(frame.to_ndarray(format="rgb24"))
            turn = _QUARTERS.get(round(getattr(frame, "rotation", 0)) % 360)
            yield index, image.transpose(turn) if turn is not None else image
        if index >= last:
            return


def _decoded(video: Path, notes: list[str]) -> Iterator[tuple[int, float, Any, float]]:
    """Number, time, frame, length of the video; what is broken at its end costs the end only."""
    import av
    from av.error import FFmpegError

    index = 0
    try:
        with av.open(str(video)) as container:
            if not container.streams.video:
                raise InputError(f"{video.name} holds no pictures. Name a video, or a folder of photos.")
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            rate = float(stream.average_rate or 30)
            duration = float(container.duration or 0) / 1e6
            for frame in container.decode(stream):
                yield index, frame.time if frame.time is not None else index / rate, frame, duration
                index += 1
    except (FFmpegError, OSError, ValueError) as problem:
        if not index:
            raise InputError(
                f"{video.name} cannot be decoded ({_plain(problem)}); it may be cut off. Copy it again."
            ) from None
        notes.append(f"The video ends in the middle after {index} frames; they were used.")
    if not index:
        raise InputError(f"{video.name} holds no frame that can be decoded. Copy or record it again.")


def _plain(problem: BaseException) -> str:
    return str(getattr(problem, "strerror", None) or problem).splitlines()[0]
