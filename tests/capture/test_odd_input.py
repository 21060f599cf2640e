"""Input that is unusual but fine, and machines that are not: odd pixels, odd names, no room."""

from __future__ import annotations

import functools
import os
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from capture_stand_in import InProcess, folder_of_photos, textured
from PIL import Image

from splatmeter.capture.exif import ORIENTATION
from splatmeter.capture.from_photos import from_photos
from splatmeter.capture.prepare import wraps_around
from splatmeter.cli.main import main
from splatmeter.photos.photo import size_of

Write = Callable[[Path, int], None]
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    pretended = functools.partial(from_photos, child=InProcess())
    monkeypatch.setattr("splatmeter.cli.scene_photos.from_photos", pretended)
    return lambda *words: main(["scene", "from-photos", *map(str, words)])


def sixteen_bits(path: Path, number: int) -> None:
    """Pillow writes no 16-bit colour, so the file is put together here."""
    pixels = (np.asarray(textured(number)).astype(np.uint16) * 257).astype(">u2")  # [h, w, 3]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    parts = [(b"IHDR", struct.pack(">IIBBBBB", 320, 240, 16, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows, 1))]
    chunks = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in [*parts, (b"IEND", b"")]
    ]
    path.with_suffix(".png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))


def palette(path: Path, number: int) -> None:
    colors = textured(number).quantize(64)
    colors.save(path.with_suffix(".png"), transparency=0)


def rotated(path: Path, number: int) -> None:
    block = Image.Exif()
    block[ORIENTATION] = 6
    textured(number).transpose(Image.Transpose.ROTATE_90).save(path, exif=block)


KINDS: dict[str, Write] = {
    "16-bit colour": sixteen_bits,
    "16-bit grey": lambda path, n: Image.fromarray(
        np.asarray(textured(n).convert("L")).astype(np.uint16) * 257
    ).save(path.with_suffix(".png")),
    "CMYK": lambda path, n: textured(n).convert("CMYK").save(path),
    "grey": lambda path, n: textured(n).convert("L").save(path),
    "one bit": lambda path, n: textured(n).convert("1").save(path.with_suffix(".png")),
    "palette with alpha": palette,
    "turned by EXIF": rotated,
}


@pytest.mark.parametrize("kind", KINDS)
def test_unusual_pixels_are_photos(kind: str, tmp_path: Path, command: Callable[..., int]) -> None:
    """All of them, upright, as bright as they were."""
    photos, out = tmp_path / "photos", tmp_path / "scene"
    photos.mkdir()
    for number in range(3):
        KINDS[kind](photos / f"{number}.jpg", number)
    assert command(photos, out) == 0
    written = sorted((out / "images").iterdir())
    assert [path.stem for path in written] == ["0", "1", "2"]
    for number, path in enumerate(written):
        assert size_of(path) == (320, 240)
        with Image.open(path) as image:
            brightness = np.asarray(image.convert("L")).mean()
        assert brightness == pytest.approx(np.asarray(textured(number).convert("L")).mean(), abs=12)


def test_odd_names_stay_apart(tmp_path: Path, command: Callable[..., int]) -> None:
    """Spaces, line feeds, letters of the world, bytes that are no letters, and one name in two folders."""
    photos = tmp_path / os.fsdecode(b"my\nph\xe9tos")
    names = ["a b.jpg", "line\nfeed.jpg", "写真 ü.jpg", "it's.jpg", "one/IMG.jpg", "two/IMG.jpg", "-o.jpg"]
    for number, name in enumerate([*names, os.fsdecode(b"caf\xe9.jpg")]):
        (photos / name).parent.mkdir(parents=True, exist_ok=True)
        textured(number).save(photos / name)
    assert command(photos, tmp_path / os.fsdecode(b"sc\xe8ne")) == 0
    images = tmp_path / os.fsdecode(b"sc\xe8ne") / "images"
    written = {path.relative_to(images).as_posix() for path in images.rglob("*.jpg")}
    assert written == {*(n.replace("\n", "_") for n in names), "caf\N{REPLACEMENT CHARACTER}.jpg"}


def test_links_in_circles_are_not_followed(tmp_path: Path, command: Callable[..., int]) -> None:
    photos = folder_of_photos(tmp_path / "photos", 4)
    (photos / "loop").symlink_to(photos)
    (photos / "self.jpg").symlink_to("self.jpg")
    (photos / "gone.jpg").symlink_to("nowhere.jpg")
    assert command(photos, tmp_path / "scene") == 0
    assert len(list((tmp_path / "scene" / "images").rglob("*.jpg"))) == 4


@pytest.mark.parametrize(
    "pixels",
    [
        np.zeros((100, 200, 3), np.uint8),
        np.full((100, 200, 3), 255, np.uint8),
        np.asarray(textured(1, 400, 200)),
        np.pad(np.asarray(textured(2, 200, 100)), ((50, 50), (100, 100), (0, 0)), constant_values=255),
        np.repeat(np.linspace(0, 255, 100).astype(np.uint8), 600).reshape(100, 200, 3),
    ],
    ids=["black", "white", "a photo", "a thing on white", "a sky"],
)
def test_photos_of_two_to_one_are_no_panoramas(pixels: np.ndarray) -> None:
    """Phones make them."""
    assert not wraps_around(pixels)


# ---- machines ---------------------------------------------------------------------------------------------
def started(words: Sequence[object], largest: int = 0) -> tuple[int, str]:
    """The real command in a process of its own; `largest` is the size that no file may pass."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({largest}, {largest}));"
    code = f"{limit if largest else ''}import sys; from splatmeter.cli.main import main; sys.exit(main())"
    ended = subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True)
    lines = [line for line in ended.stderr.splitlines() if ": done" not in line]
    return ended.returncode, lines[-1] if lines else ""


@pytest.mark.skipif(os.name != "posix", reason="only POSIX limits the size of files")
def test_no_room_is_told_in_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("pycolmap", reason="pycolmap is not installed: pip install 'splatmeter[photos]'")
    photos = folder_of_photos(tmp_path / "photos")
    code, said = started(["make", photos, "-o", tmp_path / "out"], largest=300)
    assert (code, "make.json cannot be made (File too large)" in said) == (73, True), said
    assert list(tmp_path.iterdir()) == [photos]
    code, said = started(["scene", "from-photos", photos, tmp_path / "scene"], largest=8000)
    assert (code, "File too large. Check free space and permissions." in said) == (73, True), said
    assert not (tmp_path / "scene").exists()


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """Of half a megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    tried = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)], check=False)
    if tried.returncode:
        pytest.skip("a small disk cannot be mounted here: a full one was not tried")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.slow
@pytest.mark.skipif(not ROOT or shutil.which("mount") is None, reason="needs the right to mount a small disk")
def test_a_full_disk_is_told_and_later_forgiven(full_disk: Path, tmp_path: Path) -> None:
    """The library aborts when its database cannot grow; we say why, and go on when there is room."""
    pytest.importorskip("pycolmap", reason="pycolmap is not installed: pip install 'splatmeter[photos]'")
    photos = folder_of_photos(tmp_path / "photos", 4)
    code, said = started(["scene", "from-photos", photos, full_disk / "scene"])
    assert code in (65, 73) and ("make room" in said or "Check free space" in said), said
    assert not (full_disk / "scene").exists()
