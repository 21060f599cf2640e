"""From photos or a video to an ordinary COLMAP scene: checks, the child's work, then one rename."""

from __future__ import annotations

import importlib.util
import json
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from splatmeter.capture.child import ChildDied, Hear, run_child
from splatmeter.capture.job import Job, Settings, SourcePhoto
from splatmeter.capture.listing import Listing, find, printable, refuse_unreadable
from splatmeter.capture.place import put_in_place, refuse_place, refuse_to_overwrite, writing
from splatmeter.capture.report import NAME, report
from splatmeter.capture.work import Work, alone, work_folder
from splatmeter.errors import InputError, MissingExtra, MissingFile
from splatmeter.scene.masks import files_by_name, mask_named


@dataclass(frozen=True, slots=True)
class Made:
    facts: dict[str, Any]
    before: bool
    """True where the scene was there already, made of the same photos."""


RunChild = Callable[[str, Work, Hear], None]


def from_photos(
    source: Path,
    out: Path,
    settings: Settings,
    *,
    masks: Path | None = None,
    keep_work: bool = False,
    hear: Hear = lambda message: None,
    child: RunChild = run_child,
) -> Made:
    """`out` appears complete or not at all. Stopped in between, the same call goes on where it was."""
    out = out.expanduser().absolute()
    job = planned(source, settings, masks)
    refuse_place(out, source.expanduser().absolute())
    there = present(out, job)
    if there is not None:
        return Made(there, True)
    refuse_to_overwrite(out)
    if child is run_child:
        require_extras(video=job.video is not None)
    work = Work(work_folder(out))
    with writing(out), alone(out):
        hear({"going_on": work.open(job)})
        try:
            child("from-photos", work, hear)
        except ChildDied:
            raise
        except (InputError, MissingFile):
            if not keep_work:
                work.remove()  # nothing in it would help another attempt
            raise
        facts = report(job, work)
        (work.scene / NAME).write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
        put_in_place(work.scene, out)
        if not keep_work:
            work.remove()
    return Made(facts, False)


def planned(source: Path, settings: Settings, masks: Path | None = None) -> Job:
    """What would be done; everything that a look at names and places can object to is said here."""
    source = source.expanduser().absolute()
    refuse_unreadable(source)
    masks = _masks_folder(source, masks)
    return _job(find(source, masks), source, masks, settings)


def require_extras(*, video: bool = False) -> None:
    if importlib.util.find_spec("pycolmap") is None:
        raise MissingExtra("Finding out where photos were taken (pycolmap)", "photos", _no_package())
    if video and importlib.util.find_spec("av") is None:
        raise MissingExtra("Reading videos (PyAV)", "photos")


def _no_package() -> str:
    if sys.platform == "linux" and platform.machine() not in ("x86_64", "AMD64"):
        return "; pycolmap has no package for Linux on this processor, so build it from COLMAP's source first"
    return ""


def _masks_folder(source: Path, asked: Path | None) -> Path | None:
    if asked is not None:
        if not asked.is_dir():
            raise MissingFile(f"{asked} is not a folder of masks. Pass --masks with the folder's name.")
        return asked.absolute()
    inside = source / "masks"
    return inside if inside.is_dir() else None


def _job(listing: Listing, source: Path, masks: Path | None, settings: Settings) -> Job:
    if listing.video is not None:
        return Job(settings, video=listing.video)
    found = files_by_name(masks) if masks is not None else {}
    photos = []
    for path in listing.photos:
        relative = path.relative_to(source).as_posix()
        photos.append(SourcePhoto(path, relative, mask_named(relative, found)))
    if masks is not None and not any(photo.mask for photo in photos):
        raise MissingFile(
            f"{masks} holds no mask for any of the photos (the mask of IMG_1.jpg is IMG_1.png). "
            "Rename them, or remove the folder."
        )
    return Job(settings, tuple(photos), None, masks is not None, _notes(listing))


def _notes(listing: Listing) -> tuple[str, ...]:
    if not listing.foreign:
        return ()
    kinds = ", ".join(sorted({path.suffix[1:].upper() for path in listing.foreign}))
    if len(listing.foreign) == 1:
        return (f"{printable(listing.foreign[0].name)} is not read here: export it as JPEG.",)
    return (f"{len(listing.foreign)} files ({kinds}) are not read here: export them as JPEG.",)


def present(out: Path, job: Job) -> dict[str, Any] | None:
    """The report of the scene in `out`, where that was made by the same job."""
    try:
        facts = json.loads((out / NAME).read_text("utf-8"))
        same = facts["job"] == job.fingerprint() and (out / "sparse" / "0" / "images.bin").is_file()
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return facts if same else None
