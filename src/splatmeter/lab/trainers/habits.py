"""What foreign trainers do without saying it on their command line: which photos they hold out and keep."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

LONGEST_CONFIG = 1 << 20
LONGEST_CAMERAS = 1 << 28
_TEST_EVERY = re.compile(r"""\b(?:test_every|llffhold)\b["']?\s*[:=]\s*(\d{1,6})\b""")


def stated_test_every(output: Path) -> int:
    """From gsplat's cfg.yml, a cfg_args or a config.json beside the model; 0 if none of them says."""
    for name in ("cfg.yml", "cfg_args", "config.json"):
        try:
            text = (output / name).read_text("utf-8", "replace")[:LONGEST_CONFIG]
        except OSError:
            continue
        found = _TEST_EVERY.search(text)
        if found and int(found[1]) > 1:
            return int(found[1])
    return 0


def written_split(output: Path, every: int) -> tuple[list[str], list[str]] | None:
    """Photos that trained and photos held out, from the `cameras.json` of the original's family; None if
    there is none or it follows no rule that we know.

    It lists the views held out first, then those that trained, without saying where the border lies. So the
    head of the list must be what the rule (every n-th photo by name) holds out; a list in the order of names
    has no head: everything trained.
    """
    names = _camera_names(output / "cameras.json")
    if not names:
        return None
    in_order = sorted(names)
    held_out = in_order[::every] if every else []
    if held_out and sorted(names[: len(held_out)]) == held_out:
        return names[len(held_out) :], held_out
    return (names, []) if names == in_order else None


def _camera_names(path: Path) -> list[str]:
    try:
        if path.stat().st_size > LONGEST_CAMERAS:
            return []
        cameras = json.loads(path.read_text("utf-8"))
        names = [camera["img_name"] for camera in cameras]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    return names if all(isinstance(name, str) for name in names) else []


def photo_bytes(scene: Path, images: str, resolution: int) -> int:
    """At least this much for all registered photos as 32-bit floats of three channels; 0 if unknown.

    A bound that accuses somebody must not overstate: every photo counts as the smallest one.
    """
    from PIL import Image, UnidentifiedImageError

    folder = scene / images
    files = [path for path in sorted(folder.glob("*")) if path.suffix.lower() in (".jpg", ".jpeg", ".png")]
    if not files or resolution not in (1, 2, 4, 8):
        return 0
    pixels: list[int] = []
    for path in files:
        try:
            with Image.open(path) as photo:
                pixels.append((photo.width // resolution) * (photo.height // resolution))
        except (OSError, UnidentifiedImageError):
            return 0
    return min(len(files), _registered(scene)) * min(pixels) * 3 * 4


def _registered(scene: Path) -> int:
    """Photos with a pose, from the head of COLMAP's images.bin; 0 if there is none."""
    try:
        with (scene / "sparse" / "0" / "images.bin").open("rb") as file:
            return struct.unpack("<Q", file.read(8))[0]
    except (OSError, struct.error):
        return 0
