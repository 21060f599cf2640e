"""LPIPS in a child process: published values, and clear words when something is not there."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from splatmeter.errors import InputError, MissingExtra, MissingFile, UsageError
from splatmeter.evaluate import lpips as module
from splatmeter.evaluate.lpips import Lpips
from splatmeter.evaluate.lpips_weights import VARIABLE, Weights, find

WEIGHTS = Path(__file__).parents[3] / "shared" / "data" / "weights"
PICTURES = WEIGHTS / "check_imgs"
needs_weights = pytest.mark.skipif(not WEIGHTS.exists(), reason="LPIPS weights are not on this machine")
UNCHECKED = "LPIPS itself was not checked: torch is not installed"
PUBLISHED = {"alex": (0.7219, 0.1376), "vgg": (0.5686, 0.4217)}


@pytest.fixture(scope="module")
def alex() -> Iterator[Lpips]:
    if not WEIGHTS.exists():
        pytest.skip("LPIPS weights are not on this machine")
    pytest.importorskip("torch", reason=UNCHECKED)
    with Lpips("alex", "signed", WEIGHTS) as lpips:
        yield lpips


def noise(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (3, 40, 50), dtype=np.uint8)


def against_reference(lpips: Lpips) -> list[float]:
    return [lpips.of_files(PICTURES / "ex_ref.png", PICTURES / f"ex_{name}.png") for name in ("p0", "p1")]


def test_the_published_values_of_alexnet_come_out(alex: Lpips) -> None:
    assert against_reference(alex) == pytest.approx(PUBLISHED["alex"], abs=6e-5)  # four digits are published
    assert alex.peak_memory_bytes > 10**7


@needs_weights
def test_the_published_values_of_vgg_come_out() -> None:
    pytest.importorskip("torch", reason=UNCHECKED)
    with Lpips("vgg", "signed", WEIGHTS) as lpips:
        # Half a unit of the last digit, and the float16 weights' own error.
        assert against_reference(lpips) == pytest.approx(PUBLISHED["vgg"], abs=1e-4)


def test_equal_pictures_are_at_distance_zero_and_order_does_not_matter(alex: Lpips) -> None:
    assert alex(noise(1), noise(1)) == 0
    assert alex(noise(1), noise(2)) == pytest.approx(alex(noise(2), noise(1)))


def test_a_refused_pair_does_not_end_the_process(alex: Lpips) -> None:
    with pytest.raises(InputError, match="at least 31 pixels"):
        alex(noise(1)[:, :8], noise(2)[:, :8])
    with pytest.raises(InputError, match=r"nothing\.png"):
        alex.of_files(PICTURES / "nothing.png", PICTURES / "ex_p0.png")
    assert alex(noise(1), noise(1)) == 0


@needs_weights
def test_conventions_differ_and_pth_files_give_the_same(alex: Lpips, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason=UNCHECKED)
    from safetensors.torch import load_file

    from splatmeter.evaluate.lpips_network import distance_function

    ours = find("alex", WEIGHTS)
    theirs = Weights("alex", tmp_path / "alexnet-owt-7be5be79.pth", tmp_path / "alex.pth")
    torch.save(load_file(ours.backbone), theirs.backbone)
    torch.save(load_file(ours.heads), theirs.heads)
    signed, unit = (distance_function(theirs, convention) for convention in ("signed", "unit"))
    expected = alex(noise(1), noise(2))
    assert signed(noise(1), noise(2)) == pytest.approx(expected, rel=1e-5)
    assert abs(unit(noise(1), noise(2)) - expected) > 1e-3


def test_a_pth_file_with_code_in_it_is_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason=UNCHECKED)
    from splatmeter.evaluate.lpips_network import distance_function

    torch.save({"features.0.weight": subprocess.Popen}, tmp_path / "bad.pth")
    with pytest.raises(InputError, match=r"bad\.pth"):
        distance_function(Weights("alex", tmp_path / "bad.pth", tmp_path / "bad.pth"), "unit")


def fake_child(program: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def empty_weights(tmp_path: Path) -> Path:
    for name in ("alexnet_features.safetensors", "lpips_v0.1_alex_heads.safetensors"):
        (tmp_path / name).touch()
    return tmp_path


def test_a_child_that_dies_is_reported(empty_weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "torch_is_there", lambda: True)
    monkeypatch.setattr(module, "_start", lambda: fake_child("input(); print('{\"ready\": true}')"))
    with Lpips("alex", "unit", empty_weights) as lpips, pytest.raises(InputError, match="ended unexpectedly"):
        lpips(noise(1), noise(2))


def test_the_child_does_not_hear_the_parents_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    from splatmeter.evaluate import lpips

    given: dict[str, object] = {}
    monkeypatch.setattr(lpips.subprocess, "Popen", lambda *_, **options: given.update(options))
    lpips._start()
    assert given["start_new_session"] is True


def test_a_forgotten_one_leaves_no_process_behind(
    empty_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    children: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        program = "import sys\nfor line in sys.stdin: print('{}', flush=True)"
        children.append(fake_child(program))
        return children[0]

    monkeypatch.setattr(module, "torch_is_there", lambda: True)
    monkeypatch.setattr(module, "_start", start)
    lpips = Lpips("alex", "unit", empty_weights)
    folder = lpips._folder
    del lpips
    gc.collect()
    assert children[0].returncode == 0 and not folder.exists()


def test_without_torch_the_extra_is_named(empty_weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "torch_is_there", lambda: False)
    with pytest.raises(MissingExtra, match=r"splatmeter\[torch\]"):
        Lpips("alex", "unit", empty_weights)


def test_missing_weights_say_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    with pytest.raises(MissingFile, match=r"vgg16-397923af\.pth .*--lpips-weights"):
        find("vgg", tmp_path)
    with pytest.raises(MissingFile, match="does not exist"):
        find("vgg", tmp_path / "nowhere")


def test_the_torch_hub_cache_and_the_variable_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "home" / "hub" / "checkpoints"
    cache.mkdir(parents=True)
    (cache / "vgg16-397923af.pth").touch()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "vgg.pth").touch()
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "mine"))
    assert find("vgg", tmp_path / "mine").backbone == cache / "vgg16-397923af.pth"
    assert find("vgg").heads.parent == tmp_path / "mine"


def test_damaged_weights_are_named(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason=UNCHECKED)
    (tmp_path / "vgg16_features.safetensors").write_bytes(b"junk")
    (tmp_path / "lpips_v0.1_vgg_heads.safetensors").write_bytes(b"junk")
    with pytest.raises(InputError, match=r"vgg16_features\.safetensors"):
        Lpips("vgg", "unit", tmp_path)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError):
        find("squeeze")
    with pytest.raises(UsageError):
        Lpips("vgg", "upside-down")
