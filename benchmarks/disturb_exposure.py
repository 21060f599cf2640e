"""A copy of a scene whose photos were disturbed on purpose: a gain and a white balance of their own each.

    python benchmarks/disturb_exposure.py SCENE COPY [--every 8] [--clean-test]

Colours are multiplied in 8 bits and clipped, as a camera would: gains lie between 0.7 and 1.4, red and blue
get up to 15 % more or less on top. What a photo gets depends on its name and the seed alone. With
--clean-test the photos that --eval holds out (every 8th by name) stay as they are.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import shutil
from pathlib import Path

import numpy as np
from PIL import Image

LOWEST_GAIN, HIGHEST_GAIN = 0.7, 1.4
BALANCE = 0.15
SUFFIXES = {".png", ".jpg", ".jpeg"}


def gains_of(name: str, seed: int) -> np.ndarray:
    """Of red, green and blue."""
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    random = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    gain = math.exp(random.uniform(math.log(LOWEST_GAIN), math.log(HIGHEST_GAIN)))
    red, blue = np.exp(random.uniform(-BALANCE, BALANCE, 2))
    return gain * np.array([red, 1.0, blue])


def disturb(source: Path, target: Path, gains: np.ndarray) -> None:
    """Without loss where the photo was without: PNG stays PNG, JPEG is written at quality 98."""
    with Image.open(source) as photo:
        kept = photo.getchannel("A") if "A" in photo.getbands() else None
        pixels = np.asarray(photo.convert("RGB"), np.float64)
        picture = Image.fromarray(np.clip(np.rint(pixels * gains), 0, 255).astype(np.uint8))
        if kept is not None:
            picture.putalpha(kept)
        picture.save(target, quality=98, subsampling=0, exif=photo.getexif())


def main() -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("scene", type=Path)
    parser.add_argument("copy", type=Path)
    parser.add_argument("--images", default="images")
    parser.add_argument("--every", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clean-test", action="store_true")
    chosen = parser.parse_args()
    shutil.copytree(chosen.scene, chosen.copy)
    folder = chosen.copy / chosen.images
    photos = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    if not photos:
        raise SystemExit(f"{folder} holds no photos; pass their folder with --images.")
    for number, path in enumerate(photos):
        if chosen.clean_test and number % chosen.every == 0:
            continue
        name = path.relative_to(folder).as_posix()
        disturb(chosen.scene / chosen.images / name, path, gains_of(name, chosen.seed))
    print(f"{chosen.copy}: {len(photos)} photos")


if __name__ == "__main__":
    main()
