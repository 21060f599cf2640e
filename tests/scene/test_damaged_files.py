"""Damaged files are refused in our own words or read as something valid; nothing else may happen.

tests/scene/fuzz_parsers.py does the same a million times.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from damaged_scenes import Target, targets
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from small_scenes import write_colmap_scene, write_multiscale_scene, write_synthetic_scene

from splatmeter.errors import SplatmeterError
from splatmeter.photos.photo import read
from splatmeter.scene.scene import SceneOptions, load_scene


@pytest.fixture(scope="module")
def parsers(tmp_path_factory: pytest.TempPathFactory) -> list[Target]:
    return targets(tmp_path_factory.mktemp("damaged"))


def attempt(target: Target, data: bytes) -> bool:
    try:
        target.parse(data)
    except SplatmeterError as problem:
        assert len(str(problem)) > 30
        return False
    return True


def test_undamaged_files_are_accepted(parsers: list[Target]) -> None:
    for target in parsers:
        for seed in target.seeds:
            assert attempt(target, seed), target.name


@given(seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_damaged_files_are_refused_or_valid(parsers: list[Target], seed: int) -> None:
    generator = random.Random(seed)
    for target in parsers:
        attempt(target, target.damaged(generator))


@given(data=st.binary(max_size=300))
@example(b"")
@example(b"\xff" * 100)
@settings(max_examples=100, deadline=None)
def test_noise_is_refused_or_valid(parsers: list[Target], data: bytes) -> None:
    for target in parsers:
        attempt(target, data)


def test_every_truncation_is_refused_or_valid(parsers: list[Target]) -> None:
    for target in parsers:
        for seed in target.seeds:
            for length in range(0, len(seed), max(1, len(seed) // 100)):
                attempt(target, seed[:length])


def test_no_memory_is_taken_on_the_word_of_a_header(parsers: list[Target]) -> None:
    resource = pytest.importorskip("resource", reason="peak memory is not known on this system")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for target in parsers:
        for seed in target.seeds:
            for count in (2**24, 2**31, 2**40, 2**63):
                attempt(target, count.to_bytes(8, "little") + seed[8:])
    attempt(parsers[4], b"ply\nformat ascii 1.0\nelement vertex 99999999999\nproperty int x\nend_header\n")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024  # KiB


@given(seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("kind", ["colmap", "blender", "multiscale"])
def test_a_scene_with_one_damaged_file_loads_or_is_refused(tmp_path: Path, kind: str, seed: int) -> None:
    folder = tmp_path / "scene"
    if not folder.exists():
        folder.mkdir()
        {
            "colmap": lambda path: write_colmap_scene(path, ["a.png", "b.png", "c.png"]),
            "blender": write_synthetic_scene,
            "multiscale": lambda path: write_multiscale_scene(path, photos=2),
        }[kind](folder)
    generator = random.Random(seed)
    victim = generator.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
    whole = victim.read_bytes()
    victim.write_bytes(Target("", len, (whole,), victim.suffix == ".json").damaged(generator))
    try:
        scene = load_scene(SceneOptions(folder, eval=True, test_count=1))
        for view in scene.train:
            assert read(view.photo).shape == (3, view.camera.height, view.camera.width)
    except SplatmeterError:
        pass
    finally:
        victim.write_bytes(whole)
