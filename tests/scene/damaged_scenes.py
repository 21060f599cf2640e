"""Broken inputs for every parser: valid files, and ways to damage them."""

from __future__ import annotations

import copy
import json
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from PIL import Image
from small_scenes import cube_points, multiscale_metadata, ring, transforms

from splatmeter.photos.photo import Photo, read, size_of
from splatmeter.scene import blender, colmap, colmap_binary, colmap_text, nerfstudio, points_ply
from splatmeter.scene.camera_files import Pose
from splatmeter.scene.colmap_writer import write_colmap
from splatmeter.scene.sampler import ViewSampler

WHERE = Path("scene/file")


@dataclass(frozen=True)
class Target:
    """A parser of bytes, and valid inputs for it."""

    name: str
    parse: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    json: bool = False

    def damaged(self, generator: random.Random) -> bytes:
        """A seed, wounded; JSON mostly by its values, because a wounded byte makes it unreadable."""
        seed = generator.choice(self.seeds)
        if self.json and generator.random() < 0.8:
            return mutate_json(seed, generator)
        return mutate(seed, generator)


def mutate(data: bytes, generator: random.Random) -> bytes:
    """One to four wounds: flipped bits, odd numbers, odd words, cut, doubled and swapped pieces."""
    damaged = bytearray(data)
    for _ in range(generator.choice((1, 1, 1, 2, 4))):
        if not damaged:
            break
        place = generator.randrange(len(damaged))
        match generator.randrange(9):
            case 0:
                damaged[place] ^= 1 << generator.randrange(8)
            case 1:
                damaged[place] = generator.randrange(256)
            case 2:
                del damaged[place:]
            case 3:
                del damaged[place : place + generator.randrange(1, 40)]
            case 4:
                piece = damaged[place : place + generator.randrange(1, 60)]
                at = generator.randrange(len(damaged))
                damaged[at:at] = piece
            case 5:
                damaged[place : place + 8] = generator.choice(ODD_NUMBERS)
            case 6:
                damaged[place : place + generator.randrange(0, 6)] = generator.choice(ODD_WORDS)
            case 7:  # headers are where the counts are
                damaged[:8] = generator.choice(ODD_NUMBERS)
            case _:
                digit = generator.choice(b'0123456789-.eE \n"[]{},')
                damaged[place] = digit
    return bytes(damaged)


def mutate_json(data: bytes, generator: random.Random) -> bytes:
    """Walks down to a random value and replaces, removes or doubles it."""
    content = json.loads(data)
    for _ in range(generator.choice((1, 1, 2))):
        node = content
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                break
            key = generator.choice(keys)
            if isinstance(node[key], (dict, list)) and generator.random() < 0.9:
                node = node[key]
                continue
            _wound(node, key, generator)
            break
    return json.dumps(content).encode("utf-8", "surrogatepass")


def _wound(node: Any, key: Any, generator: random.Random) -> None:
    choice = generator.randrange(6)
    if choice == 0:
        del node[key]
    elif choice == 1 and isinstance(node, list):
        node.insert(key, copy.deepcopy(node[generator.randrange(len(node))]))
    elif choice == 2 and isinstance(node[key], float):
        node[key] *= generator.choice((-1, 0, 1.001, 1e6))
    else:
        node[key] = copy.deepcopy(generator.choice(ODD_VALUES))


ODD_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1e308, -1e308, 10**400, 2**63, float("nan"), float("inf"), "", "x", "../x", "/x",
    "a\0b", "\ud800", "x" * 5000, "train/r_0", [], [[]], {}, [1, [2]], [[1, 0, 0, 0]] * 4, [["1"] * 4] * 4,
)  # fmt: skip
ODD_NUMBERS = tuple(
    [struct.pack("<Q", n) for n in (0, 1, 2, 3, 2**16, 2**31 - 1, 2**32, 2**62, 2**63, 2**64 - 1)]
    + [struct.pack("<d", v) for v in (0.0, -1.0, 1e300, -1e300, 1e-300, float("nan"), float("inf"), 1e19)]
)
ODD_WORDS = (
    b"nan", b"inf", b"-1", b"0", b"1e999", b"99999999999999999999", b"9" * 5000, b"\0", b"../", b"/", b"..",
    b"null", b"[]", b"{}", b"[[[[[[[[", b"true", b'""', b"\xff\xfe", b"\xc2\x85", b" ", b"\n", b"\r\n", b"#",
    b"OPENCV", b"list", b"double", b"element vertex 999999999999\n", b"1_0", b"C:\\", "é".encode(),
)  # fmt: skip


def targets(folder: Path) -> list[Target]:
    """One for each kind of file; `folder` is for scratch files and must outlive them."""
    return [*_colmap_targets(folder), *_json_targets(), *_photo_targets(folder)]


def _colmap_targets(folder: Path) -> list[Target]:
    cameras = ring(3)
    sparse = write_colmap(folder, cameras, ["a b.jpg", "sub/c.jpg", "d.e.jpg"], cube_points(5))
    files = {name: (sparse / f"{name}.bin").read_bytes() for name in ("cameras", "images", "points3D")}
    tracked = b"".join(
        struct.pack("<Q3d3BdQ", i, 0.1 * i, 0.2, 0.3, 9, 8, 7, 0.5, i) + b"\1\0\0\0\2\0\0\0" * i
        for i in range(4)
    )
    text_cameras = b"# c\n1 PINHOLE 40 30 50 51 20 15\n2 SIMPLE_PINHOLE 40 30 50 20 15\n"
    text_images = (
        b"# i\n1 1 0 0 0 0.1 0.2 0.3 1 a b.jpg\n\n2 0.5 0.5 0.5 0.5 1 2 3 2 sub/c.jpg\n1 2 3 4 5 -1\n"
    )
    text_points = b"# p\n1 0.1 0.2 0.3 1 2 3 0.5 1 2 3 4\n2 1 2 3 255 0 9 1\n3 1 2 4 5 6 7 1\n"
    binary_seeds = _model_seeds(files["cameras"], files["images"])
    text_seeds = _model_seeds(text_cameras, text_images)
    return [
        Target("colmap model, binary", _model(colmap_binary), binary_seeds),
        Target("colmap model, text", _model(colmap_text), text_seeds),
        Target("points3D.bin", _points(colmap_binary), (files["points3D"], struct.pack("<Q", 4) + tracked)),
        Target("points3D.txt", _points(colmap_text), (text_points,)),
        Target("points3D.ply", _points(points_ply), _ply_seeds()),
    ]


def _model_seeds(cameras: bytes, images: bytes) -> tuple[bytes, ...]:
    """Both files in one input, each preceded by its length, so that either can be damaged."""
    return (struct.pack("<H", len(cameras)) + cameras + images,)


def _model(parser: ModuleType) -> Callable[[bytes], object]:
    def parse(data: bytes) -> None:
        cut = 2 + (struct.unpack_from("<H", data)[0] if len(data) > 1 else 0)
        for name, lens, pose in colmap.parse_model(parser, WHERE, data[2:cut], WHERE, data[cut:]):
            assert name and ".." not in name.split("/") and min(lens.fx, lens.fy, lens.width, lens.height) > 0
            _check_pose(pose)

    return parse


def _points(parser: ModuleType) -> Callable[[bytes], object]:
    def parse(data: bytes) -> None:
        cloud = parser.parse_points(data, WHERE)
        assert np.isfinite(cloud.positions).all() and cloud.positions.shape == cloud.colors.shape
        assert 0 < cloud.count <= len(data)

    return parse


def _check_pose(pose: Pose) -> None:
    assert np.abs(pose.rotation @ pose.rotation.T - np.eye(3)).max() < 0.05
    assert np.isfinite(pose.translation).all()


def _ply_seeds() -> tuple[bytes, ...]:
    rows = np.zeros(3, [("xyz", "<f4", 3), ("n", "<f4", 3), ("rgb", "u1", 3)])
    names = "".join(f"property float {n}\n" for n in ("x", "y", "z", "nx", "ny", "nz"))
    colors = "".join(f"property uchar {n}\n" for n in ("red", "green", "blue"))
    binary = f"ply\nformat binary_little_endian 1.0\nelement vertex 3\n{names}{colors}end_header\n".encode()
    plain = (
        b"ply\nformat ascii 1.0\nelement vertex 2\nproperty double x\nproperty double y\nproperty double z\n"
    )
    faces = b"element face 1\nproperty list uchar int vertex_index\nend_header\n0 1 2\n3 4 5\n3 0 1 1\n"
    wide = colors.replace("uchar", "ushort").encode() + b"end_header\n0 1 2 9 9 9\n3 4 5 9 9 9\n"
    return binary + rows.tobytes(), plain + faces, plain + wide


def _json_targets() -> list[Target]:
    sampler = ViewSampler(9, 0)
    sampler.next()
    sampler.peek()

    def restore(data: bytes) -> object:
        try:
            state = json.loads(data)
        except (ValueError, RecursionError):
            return None
        return sampler.restore(state) if isinstance(state, dict) else None

    def parse_transforms(data: bytes) -> None:
        for _, pose in blender.parse_transforms(data, WHERE)[1]:
            _check_pose(pose)

    def parse_metadata(data: bytes) -> None:
        for _, focal, pose in blender.parse_metadata(data, "train", WHERE):
            assert focal > 0
            _check_pose(pose)

    def parse_nerfstudio(data: bytes) -> None:
        for posed in nerfstudio.parse(data, WHERE):
            lens = posed.lens.at((40, 30))
            assert min(lens.fx, lens.fy, lens.width, lens.height) > 0 and ".." not in posed.name.split("/")
            _check_pose(posed.pose)

    frames = json.dumps(transforms(["./train/r_0", "train/r_1.png"])).encode()
    lens = {
        "fl_x": 50.0,
        "fl_y": 51,
        "cx": 20,
        "cy": 15,
        "w": 40,
        "h": 30.0,
        "camera_model": "OPENCV",
        "k1": 0,
    }
    lists = {"train_filenames": ["./train/r_0"], "test_filenames": ["train/r_1.png"]}
    wide = json.dumps({**lens, **lists, **transforms(["./train/r_0", "train/r_1.png"])}).encode()
    levels = json.dumps(multiscale_metadata(1, 2)).encode()
    return [
        Target("transforms_train.json", parse_transforms, (frames,), True),
        Target("transforms.json", parse_nerfstudio, (frames, wide), True),
        Target("metadata.json", parse_metadata, (levels,), True),
        Target("sampler state", restore, (json.dumps(sampler.state()).encode(),), True),
    ]


def _photo_targets(folder: Path) -> list[Target]:
    """Photos are read from files, so the damaged bytes go through one scratch file."""
    scratch, seeds = folder / "scratch", []
    ramp = np.arange(12 * 9 * 4, dtype=np.uint8).reshape(9, 12, 4)
    for ending, mode in (
        ("png", "RGBA"),
        ("png", "P"),
        ("png", "1"),
        ("jpg", "RGB"),
        ("png", "LA"),
        ("jpg", "L"),
    ):
        Image.fromarray(ramp).convert(mode).save(folder / f"seed.{ending}")
        seeds.append((folder / f"seed.{ending}").read_bytes())
    mask = folder / "mask.png"
    Image.fromarray(ramp[..., 0]).save(mask)

    def parse(data: bytes) -> object:
        scratch.write_bytes(data)
        size = size_of(scratch)
        with_mask = read(Photo(scratch, 6, 5, mask, (255, 255, 255)))
        assert with_mask.shape == (3, 5, 6)
        return size

    return [Target("photo", parse, tuple(seeds))]
