"""LPIPS in a child process: published values, and clear words when something is not there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from splatmeter.errors import InputError, MissingFile, UsageError
from splatmeter.evaluate.lpips import Lpips
from splatmeter.evaluate.lpips_weights import VARIABLE, find

WEIGHTS = Path(__file__).parents[3] / "shared" / "data" / "weights"
needs_weights = pytest.mark.skipif(not WEIGHTS.exists(), reason="LPIPS weights are not on this machine")


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@needs_weights
@pytest.mark.parametrize(("network", "published"), [("alex", (0.7219, 0.1376)), ("vgg", (0.5686, 0.4217))])
def test_the_published_values_come_out(network: str, published: tuple[float, float]) -> None:
    pytest.importorskip("torch", reason="LPIPS itself was not checked: torch is not installed")
    pictures = WEIGHTS / "check_imgs"
    with Lpips(network, "signed", WEIGHTS) as lpips:
        found = [
            lpips.of_files(pictures / "ex_ref.png", pictures / f"ex_{name}.png") for name in ("p0", "p1")
        ]
        assert lpips.peak_memory_bytes > 10**7
    assert found == pytest.approx(published, abs=1e-4)  # published with four digits


@needs_weights
def test_conventions_differ_and_equal_pictures_are_at_distance_zero() -> None:
    pytest.importorskip("torch", reason="LPIPS itself was not checked: torch is not installed")
    generator = np.random.default_rng(0)
    one, other = (generator.integers(0, 256, (3, 40, 50), dtype=np.uint8) for _ in range(2))
    with Lpips("alex", "unit") as unit, Lpips("alex", "signed") as signed:
        assert unit(one, one) == 0
        assert unit(one, other) != signed(one, other)
        assert unit(one, other) == pytest.approx(unit(other, one))
        with pytest.raises(InputError, match="at least 31 pixels"):
            unit(one[:, :8], other[:, :8])
        assert unit(one, one) == 0, "a refused pair must not end the process"


@needs_weights
def test_a_dead_child_is_reported_and_closing_still_works() -> None:
    pytest.importorskip("torch", reason="LPIPS itself was not checked: torch is not installed")
    lpips = Lpips("alex", "unit", WEIGHTS)
    lpips._child.kill()
    lpips._child.wait()
    picture = np.zeros((3, 40, 40), np.uint8)
    with pytest.raises(InputError, match="ended unexpectedly"):
        lpips(picture, picture)
    lpips.close()


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
    pytest.importorskip("torch", reason="LPIPS itself was not checked: torch is not installed")
    (tmp_path / "vgg16_features.safetensors").write_bytes(b"junk")
    (tmp_path / "lpips_v0.1_vgg_heads.safetensors").write_bytes(b"junk")
    with pytest.raises(InputError, match=r"vgg16_features\.safetensors"):
        Lpips("vgg", "unit", tmp_path)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError):
        find("squeeze")
    with pytest.raises(UsageError):
        Lpips("vgg", "upside-down")
