"""Renders and photos as they lie on disk, made small enough to travel inside the page."""

from __future__ import annotations

import base64
import io
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from splatmeter.lab.report.report_document import Picture

BUDGET = 7_000_000
"""Characters of all pictures together; the page stays below 10 MB."""
WIDEST = 1024
_QUALITY = 85
_MOST_PIXELS = 100_000_000
_PHOTOS = re.compile(r"gt(?:_(?P<size>-?\d+))?")
_SUFFIXES = {".png", ".jpg", ".jpeg"}


@dataclass(frozen=True, slots=True)
class Source:
    """A folder of renders beside the photos they should look like, and whose they are."""

    phase: str
    renders: Path
    photos: Path
    run: str = ""


def find_renders(phase: str, folder: Path, run: str = "") -> Source | None:
    """`test_preds_<r>` beside `gt_<r>` (ours), or `renders` beside `gt` (the original's), anywhere below.

    Held-out views before training views, the last step before earlier ones, finer before coarser.
    """
    found: list[tuple[bool, int, int, Source]] = []
    for photos in sorted(folder.glob("**/gt*")):
        match = _PHOTOS.fullmatch(photos.name)
        if not match or not photos.is_dir():
            continue
        size = match["size"]
        renders = photos.parent / (f"test_preds_{size}" if size else "renders")
        if renders.is_dir():
            step = re.search(r"_(\d+)$", photos.parent.name)
            held_out = "train" not in photos.parent.parent.name
            place = (held_out, int(step[1]) if step else 0, -abs(int(size or 1)))
            found.append((*place, Source(phase, renders, photos, run)))
    return max(found, key=lambda item: item[:3])[3] if found else None


def read_pictures(sources: Sequence[Source], views: int, budget: int = BUDGET) -> tuple[Picture, ...]:
    """Views that every phase rendered, evenly chosen; photos from the first phase."""
    if not sources or views < 1:
        return ()
    shared = set.intersection(*({p.stem for p in _files(s.renders)} for s in sources))
    names = sorted(shared & {p.stem for p in _files(sources[0].photos)})
    chosen = (
        [names[(2 * k + 1) * len(names) // (2 * views)] for k in range(views)]
        if len(names) > views
        else names
    )
    found: list[Picture] = []
    left = budget
    for place, name in enumerate(chosen):
        picture = _picture(name, sources, left // (len(chosen) - place))
        if picture is not None:
            left -= _weight(picture)
            found.append(picture)
    return tuple(found)


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.suffix.lower() in _SUFFIXES]


def _picture(name: str, sources: Sequence[Source], budget: int) -> Picture | None:
    """Smaller until it fits; None if a file cannot be read as a picture."""
    paths = [_named(sources[0].photos, name), *(_named(source.renders, name) for source in sources)]
    for width in (WIDEST, 768, 512, 384, 256):
        encoded = [_encoded(path, width) if path else None for path in paths]
        if any(item is None for item in encoded):
            return None
        (photo, size), *renders = [item for item in encoded if item is not None]
        by_phase = {source.phase: uri for source, (uri, _) in zip(sources, renders, strict=True)}
        runs = {source.phase: source.run for source in sources if source.run}
        picture = Picture(name, photo, by_phase, size, runs)
        if _weight(picture) <= budget:
            return picture
    return None


def _named(folder: Path, stem: str) -> Path | None:
    return next((path for path in _files(folder) if path.stem == stem), None)


def _weight(picture: Picture) -> int:
    return len(picture.photo) + sum(map(len, _values(picture.renders)))


def _values(renders: Mapping[str, str]) -> list[str]:
    return list(renders.values())


def _encoded(path: Path, widest: int) -> tuple[str, tuple[int, int]] | None:
    """Decoded and encoded anew: nothing of the file itself gets into the page."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with Image.open(path, formats=("PNG", "JPEG")) as opened:
                if opened.width * opened.height > _MOST_PIXELS:
                    return None
                image = opened.convert("RGB")
    except (OSError, ValueError, SyntaxError, Warning, Image.DecompressionBombError):
        return None
    if image.width > widest:
        height = max(1, round(image.height * widest / image.width))
        image = image.resize((widest, height), Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=_QUALITY, optimize=True, subsampling=0)
    return f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode('ascii')}", image.size
