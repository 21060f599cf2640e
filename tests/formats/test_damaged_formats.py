"""Files that are cut off, garbled, or made to do damage: one sentence, and no memory beyond their size."""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
import struct
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from format_models import sog, sog_parts, some_table
from fuzz_formats import NAMES, damaged, outcome, sound
from PIL import Image

from splatmeter.errors import InputError
from splatmeter.formats import zstd
from splatmeter.formats.registry import read_model, write_model
from splatmeter.gaussians.marks import MIP


@pytest.mark.parametrize("form", NAMES)
def test_damaged_files_are_read_or_refused(tmp_path: Path, form: str) -> None:
    generator = random.Random(form)
    for _ in range(80):
        outcome(tmp_path / NAMES[form], damaged(form, generator))


@pytest.mark.parametrize("form", NAMES)
def test_a_file_that_is_cut_off_anywhere_is_refused(tmp_path: Path, form: str) -> None:
    content = sound(form, 260, 1)
    generator = random.Random(1)
    for length in (0, 1, 3, 17, len(content) - 1, *(generator.randrange(len(content)) for _ in range(20))):
        if form != "splat" or length % 32 or not length:
            assert outcome(tmp_path / NAMES[form], content[:length]) == "refused", length


def refused(path: Path, content: bytes) -> str:
    """The sentence; less than 40 MB were in use to find it."""
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            read_model(path)
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()
    return str(caught.value)


def test_a_small_gzip_that_promises_millions_is_refused(tmp_path: Path) -> None:
    header = struct.pack("<4sIIBBBB", b"NGSP", 3, 50_000_000, 0, 12, 0, 0)
    assert "50000000 Gaussians" in refused(tmp_path / "m.spz", gzip.compress(header + bytes(20_000_000)))


def test_a_small_zstd_stream_that_promises_millions_is_refused(tmp_path: Path) -> None:
    count = 100_000
    parts = [zstd.compress(bytes(count * 50)) for _ in range(5)]  # 50 instead of 9, 1, 3, 3, 4
    sizes = [count * width for width in (9, 1, 3, 3, 4)]
    head = struct.pack("<4sIIBBBBI12x", b"NGSP", 4, count, 0, 12, 0, 5, 32)
    listed = b"".join(struct.pack("<QQ", len(part), size) for part, size in zip(parts, sizes, strict=True))
    assert "a stream holds" in refused(tmp_path / "m.spz", head + listed + b"".join(parts))
    many = struct.pack("<4sIIBBBBI12x", b"NGSP", 4, 2**32 - 1, 3, 12, 0, 6, 32)
    assert "4294967295 Gaussians" in refused(tmp_path / "m.spz", many + bytes(200))


def test_a_zip_that_would_unpack_to_gigabytes_is_refused(tmp_path: Path) -> None:
    parts = sog_parts(some_table(20), 0)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, bytes(60_000_000) if name == "means_l.webp" else data)
    assert "would unpack to" in refused(tmp_path / "m.sog", content.getvalue())


def test_a_picture_larger_than_its_gaussians_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    content = io.BytesIO()
    Image.new("RGBA", (3000, 3000)).save(content, "WEBP", lossless=True)
    parts = sog_parts(some_table(20), 0) | {"quats.webp": content.getvalue()}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        for name, data in parts.items():
            made.writestr(name, data)
    assert "3000 x 3000 pixels" in refused(tmp_path / "m.sog", archive.getvalue())
    assert "900000000 Gaussians" in refused(tmp_path / "n.sog", sog(some_table(20), 0, count=900_000_000))


def gltf_with(tmp_path: Path, count: int = 50, **changes: object) -> bytes:
    write_model(tmp_path / "sound.gltf", "gltf", some_table(count), 0, MIP)
    return json.dumps(json.loads((tmp_path / "sound.gltf").read_text()) | changes).encode()


def test_one_mesh_placed_a_million_times_is_refused(tmp_path: Path) -> None:
    count = 750
    content = gltf_with(tmp_path, 2000, nodes=[{"mesh": 0}] * count, scenes=[{"nodes": list(range(count))}])
    path = tmp_path / "m.gltf"
    path.write_bytes(content)
    with pytest.raises(InputError, match="1500000 Gaussians"):
        read_model(path)


def test_nodes_in_a_circle_are_refused(tmp_path: Path) -> None:
    nodes = [{"children": [1]}, {"children": [0], "mesh": 0}]
    assert "two parents" in refused(tmp_path / "m.gltf", gltf_with(tmp_path, nodes=nodes))


@pytest.mark.parametrize(
    "uri", ["../secret.bin", "/etc/passwd", "https://example.org/a.bin", "file:///etc/passwd"]
)
def test_arrays_are_never_fetched_from_elsewhere(tmp_path: Path, uri: str) -> None:
    (tmp_path / "secret.bin").write_bytes(bytes(10_000))
    folder = tmp_path / "folder"
    folder.mkdir()
    content = gltf_with(folder, buffers=[{"uri": uri, "byteLength": 10_000}])
    assert "no file beside it" in refused(folder / "m.gltf", content)


def test_arrays_inside_the_json_are_read(tmp_path: Path) -> None:
    content = gltf_with(tmp_path)
    arrays = base64.b64encode((tmp_path / "sound.bin").read_bytes()).decode()
    record = json.loads(content)
    record["buffers"][0]["uri"] = f"data:application/octet-stream;base64,{arrays}"
    (tmp_path / "m.gltf").write_text(json.dumps(record))
    assert read_model(tmp_path / "m.gltf").table.count == 50


@pytest.mark.parametrize(
    ("look", "expected"),
    [
        ({"kernel": "pyramid", "colorSpace": "srgb_rec709_display"}, "pyramid"),
        ({"kernel": "ellipse", "colorSpace": "lin_rec709_display"}, "lin_rec709"),
        ({"kernel": "ellipse", "extensions": {"KHR_gaussian_splatting_compression_spz_2": {}}}, "spz_2"),
    ],
)
def test_gaussians_that_we_would_draw_wrongly_are_refused(
    tmp_path: Path, look: dict[str, object], expected: str
) -> None:
    record = json.loads(gltf_with(tmp_path))
    record["meshes"][0]["primitives"][0]["extensions"]["KHR_gaussian_splatting"] = look
    assert expected in refused(tmp_path / "m.gltf", json.dumps(record).encode())
    record["nodes"][0]["scale"] = [1, 2, 1]
    record["meshes"][0]["primitives"][0]["extensions"]["KHR_gaussian_splatting"] = {"kernel": "ellipse"}
    assert "stretches" in refused(tmp_path / "m.gltf", json.dumps(record).encode())


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("m.xyz", b"1 2 3\n", "is no model that splatmeter knows"),
        ("m.spz", gzip.compress(b"not a model at all", mtime=0), "no SPZ"),
        ("m.spz", gzip.compress(struct.pack("<4sIIBBBB", b"NGSP", 1, 0, 0, 12, 0, 0), mtime=0), "version 1"),
        ("m.glb", b"glTF" + bytes(30), "cannot be read as GLB"),
        ("m.gltf", b"[" * 100_000, "cannot be read as glTF"),
        ("m.gltf", b'{"asset": {"version": "2.0"}}', "holds no Gaussians"),
        ("m.splat", bytes(33), "33 bytes"),
        ("m.sog", b"PK\x03\x04" + bytes(100), "cannot be read as SOG"),
        ("meta.json", b'{"version": 1, "means": {}}', "version 1"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    tmp_path: Path, name: str, content: bytes, expected: str
) -> None:
    sentence = refused(tmp_path / name, content)
    assert expected in sentence and "\n" not in sentence and name in sentence
