"""The first stage: photos of a folder, or frames of a video, into the work folder under plain numbers."""

from __future__ import annotations

from pathlib import Path

from splatmeter.capture.engine import Tell
from splatmeter.capture.job import CleanPhoto, Job, LeftOut, Prepared
from splatmeter.capture.listing import FEWEST_PHOTOS, final_names, printable
from splatmeter.capture.prepare import Clean, Unusable, blank_mask, check_plausible, prepare
from splatmeter.capture.work import Work
from splatmeter.errors import InputError

LOOKED_AT_FIRST = 50
"""Photos whose headers are read before anything is decoded: a folder of thumbnails is refused at once."""


def clean_photos(job: Job, work: Work, tell: Tell) -> Prepared:
    if job.video is not None:
        from splatmeter.capture.video import clean_frames

        return clean_frames(job.video, job.settings, work, tell)
    refuse_hopeless(job)
    done: list[tuple[int, str, Clean]] = []
    left_out: list[LeftOut] = []
    for number, photo in enumerate(job.photos, start=1):
        try:
            clean = prepare(photo.path, photo.mask, work.root, number, job.settings.max_size)
            done.append((number, photo.relative, clean))
        except Unusable as problem:
            left_out.append(LeftOut(printable(photo.relative), problem.reason, problem.advice))
        tell(number, len(job.photos))
    if len(done) < FEWEST_PHOTOS:
        raise InputError(_too_few(len(done), left_out))
    return Prepared(_named(work.root, done, job.masks_wanted), tuple(left_out), _mask_notes(job, done))


def refuse_hopeless(job: Job) -> None:
    """Where none of the first photos can be used for a reason that a header tells, none will be."""
    problems: list[Unusable] = []
    for photo in job.photos[:LOOKED_AT_FIRST]:
        try:
            check_plausible(photo.path)
            return
        except Unusable as problem:
            problems.append(problem)
    first = problems[0]
    raise InputError(
        f"None of the photos can be used, for example {printable(job.photos[0].relative)}: {first.reason}. "
        f"{first.advice}."
    )


def _named(root: Path, done: list[tuple[int, str, Clean]], masks_wanted: bool) -> tuple[CleanPhoto, ...]:
    """Where any photo has a mask, all get one: the trainer wants all or none."""
    masked = masks_wanted or any(clean.mask for _, _, clean in done)
    names = final_names([name for _, name, _ in done], [Path(clean.file).suffix for _, _, clean in done])
    photos: list[CleanPhoto] = []
    for name, (number, _, clean) in zip(names, done, strict=True):
        if masked and not clean.mask:
            blank_mask(root, number, (clean.width, clean.height))
        mask = f"{number:06d}.png" if masked else None
        photos.append(
            CleanPhoto(
                number,
                clean.file,
                name,
                clean.width,
                clean.height,
                clean.sharpness,
                clean.lens.focal,
                clean.lens.body,
                mask,
                clean.hidden,
            )
        )
    return tuple(photos)


def _mask_notes(job: Job, done: list[tuple[int, str, Clean]]) -> tuple[str, ...]:
    missing = [name for _, name, clean in done if not clean.mask]
    if not missing or len(missing) == len(done):
        return ()
    return (
        f"{len(missing)} of {len(done)} photos have no mask (first: {printable(missing[0])}); "
        "they count as all object.",
    )


def _too_few(usable: int, left_out: list[LeftOut]) -> str:
    first = left_out[0]
    return (
        f"Only {usable} of {usable + len(left_out)} photos can be used, and {FEWEST_PHOTOS} are needed. "
        f"For example {first.name}: {first.reason}. {first.advice}."
    )
