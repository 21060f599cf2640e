"""Exposures in a run: learned, kept by name, resumed to the last bit, and no part of the model."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from imitation import Device, imitation
from PIL import Image
from running import Make, bits, of, run

from splatmeter.backend import Backend
from splatmeter.errors import CardUnavailable, CheckpointError, UsageError
from splatmeter.events import Evaluated, Warned
from splatmeter.train import container, first_look, photo_exposures
from splatmeter.train.config import TrainConfig
from splatmeter.train.first_look import looked_at

GAINS = np.array([0.7, 1.3, 0.85, 1.15, 0.75, 1.25])


@pytest.fixture
def disturbed(scene_folder: Path, tmp_path: Path) -> Path:
    """Every training photo has a gain of its own; held-out ones are as they were."""
    folder = tmp_path / "disturbed"
    shutil.copytree(scene_folder, folder)
    for number, gain in enumerate(GAINS):
        path = folder / f"train/r_{number}.png"
        pixels = np.asarray(Image.open(path)).astype(np.float64)
        pixels[..., :3] *= gain
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path)
    return folder


@pytest.fixture
def on(disturbed: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Runs of some dozen steps look sooner."""
    monkeypatch.setattr(first_look, "STEP", 4)
    return {"source_path": disturbed, "exposure": "affine", "position_lr_max_steps": 40}


def test_stopping_and_resuming_changes_no_bit(make: Make, backend: Backend, on: dict[str, Any]) -> None:
    straight = make("straight", checkpoint_iterations=(40,), **on)
    run(straight, backend)
    run(make("halves", iterations=20, checkpoint_iterations=(20,), **on), backend)
    resumed = make("halves", resume=True, checkpoint_iterations=(40,), **on)
    events = run(resumed, backend)
    assert not [event for event in of(Warned, events) if "No exposures are learned" in event.message]
    assert any("--exposure-protocol left-half" in event.message for event in of(Warned, events))
    expected = bits(straight.model_path / "chkpnt40.safetensors")
    assert bits(resumed.model_path / "chkpnt40.safetensors") == expected
    arrays, _ = container.read(straight.model_path / "chkpnt40.safetensors")
    # they are looked at after 4 steps, and the first step after each of three densifications learns nothing
    assert arrays["exposure_transforms"].shape == (6, 3, 4) and 29 < arrays["exposure_visits"].sum() <= 36
    assert np.abs(arrays["exposure_transforms"] - np.eye(3, 4)).max() > 0.01


def test_a_device_that_is_behind_gives_the_same_bits(
    make: Make, backend: Backend, on: dict[str, Any]
) -> None:
    plain = make("plain", checkpoint_iterations=(40,), **on)
    run(plain, backend)
    there = make("there", checkpoint_iterations=(40,), **on)
    run(there, imitation(backend, Device(3)))
    ends = [bits(config.model_path / "chkpnt40.safetensors", "engine") for config in (plain, there)]
    assert ends[0] == ends[1]


def test_evaluating_by_another_protocol_changes_no_bit_and_is_told(
    make: Make, backend: Backend, on: dict[str, Any]
) -> None:
    plain = make("plain", checkpoint_iterations=(12,), iterations=12, **on)
    judged = dataclasses.replace(
        plain,
        model_path=plain.model_path.parent / "judged",
        test_iterations=(6,),
        exposure_protocol="left-half",
    )
    run(plain, backend)
    told = of(Evaluated, run(judged, backend))
    assert told and all(event.exposure == "left-half" for event in told)
    ends = [bits(config.model_path / "chkpnt12.safetensors") for config in (plain, judged)]
    assert ends[0] == ends[1]


def test_exposures_belong_to_photos_by_name(
    make: Make, backend: Backend, tmp_path: Path, on: dict[str, Any]
) -> None:
    first = make("first", iterations=12, checkpoint_iterations=(12,), **on)
    run(first, backend)
    arrays, record = container.read(tmp_path / "first/chkpnt12.safetensors")
    names = record["train_views"]
    turned = [*reversed(names), "new.png"]
    found = photo_exposures.restored(arrays, names, turned)
    assert found is not None
    np.testing.assert_array_equal(found.transforms[:-1], arrays["exposure_transforms"][::-1])
    np.testing.assert_array_equal(found.transforms[-1], np.eye(3, 4))
    everything = make(
        "all", eval=False, start_checkpoint=tmp_path / "first/chkpnt12.safetensors", iterations=14, **on
    )
    run(everything, backend)


def test_a_run_that_begins_without_exposures_says_that_it_will_have_none(
    make: Make, backend: Backend, on: dict[str, Any], disturbed: Path
) -> None:
    run(make(source_path=disturbed, iterations=5, checkpoint_iterations=(5,)), backend)
    events = run(make(iterations=8, resume=True, checkpoint_iterations=(8,), **on), backend)
    said = [event.message for event in of(Warned, events)]
    assert any("No exposures are learned" in message for message in said)
    assert any("exposure none -> affine" in message for message in said)
    events = run(
        make(source_path=disturbed, iterations=10, resume=True, checkpoint_iterations=(10,)), backend
    )
    assert any("exposure affine -> none" in event.message for event in of(Warned, events))


def test_where_photos_agree_nothing_is_learned_and_no_bit_changes(make: Make, backend: Backend) -> None:
    plain = make("plain", iterations=200, checkpoint_iterations=(200,), max_gaussians=400)
    asked = make("asked", iterations=200, checkpoint_iterations=(200,), max_gaussians=400, exposure="affine")
    run(plain, backend)
    events = run(asked, backend)
    assert any("exposed alike" in event.message for event in of(Warned, events))
    ends = [bits(config.model_path / "chkpnt200.safetensors") for config in (plain, asked)]
    assert ends[0] == ends[1]
    again = make("asked", iterations=210, resume=True, exposure="affine", max_gaussians=400)
    assert any("No exposures are learned" in event.message for event in of(Warned, run(again, backend)))


def test_what_is_clipped_or_dark_tells_nothing_about_exposure() -> None:
    draws = np.random.default_rng(0)
    picture = draws.uniform(0.2, 0.5, (3, 40, 30)).astype(np.float32)
    photo = np.round(255 * 1.5 * picture).astype(np.uint8)
    photo[:, :10] = 255
    brightness, transform = looked_at(picture, photo)
    assert brightness == pytest.approx(1.5, abs=0.01)
    np.testing.assert_allclose(transform, 1.5 * np.eye(3, 4), atol=0.01)
    for nothing in (np.full_like(photo, 255), np.zeros_like(photo)):
        assert looked_at(picture, nothing)[0] == 1.0
        np.testing.assert_array_equal(looked_at(picture, nothing)[1], np.eye(3, 4))
    assert looked_at(np.zeros_like(picture), photo)[0] == 1.0


@pytest.mark.parametrize("array", ["transforms", "visits"])
def test_garbled_exposures_are_refused(
    make: Make, backend: Backend, array: str, on: dict[str, Any]
) -> None:
    config = make(iterations=5, checkpoint_iterations=(5,), **on)
    run(config, backend)
    path = config.model_path / "chkpnt5.safetensors"
    arrays, state = container.read(path)
    arrays[f"exposure_{array}"] = arrays[f"exposure_{array}"][:-1]
    container.write(path, arrays, state)
    with pytest.raises(CheckpointError, match=f"exposure_{array}"):
        run(make(resume=True, **on), backend)


def test_a_disturbed_scene_is_learned_as_if_it_were_not(
    make: Make, backend: Backend, disturbed: Path, tmp_path: Path
) -> None:
    """Held-out photos are as they were: what they show must not carry the training photos' gains."""
    found = {}
    for name in ("none", "affine"):
        config = make(
            name, source_path=disturbed, iterations=300, position_lr_max_steps=300, test_iterations=(300,),
            exposure=name, checkpoint_iterations=(300,), opacity_reset_interval=1000,
        )  # fmt: skip
        found[name] = of(Evaluated, run(config, backend))[0].metrics["psnr"]
    assert found["affine"] > found["none"] + 0.5, found
    arrays, _ = container.read(tmp_path / "affine/chkpnt300.safetensors")
    shown = arrays["exposure_transforms"] @ np.array([0.4, 0.4, 0.4, 1.0])  # [6, 3] of a grey
    assert np.corrcoef(shown.mean(axis=1), GAINS)[0, 1] > 0.95


def test_rates_fall_with_the_positions_rate() -> None:
    rates = photo_exposures.rates(TrainConfig(exposure="affine", position_lr_max_steps=3000))
    assert rates is not None
    assert rates.step(3000, 0).rate == pytest.approx(photo_exposures.FIRST_RATE * photo_exposures.LAST_SHARE)
    assert photo_exposures.rates(TrainConfig()) is None


def test_an_engine_that_cannot_do_it_refuses_before_anything_is_written(
    make: Make, backend: Backend, on: dict[str, Any]
) -> None:
    config = make(**on)
    with pytest.raises(CardUnavailable, match=r"--exposure affine is not there yet .* --device cpu\.$"):
        run(config, dataclasses.replace(backend, exposes=False))
    assert not config.model_path.exists()


@pytest.mark.parametrize("wrong", [{"exposure_lr": -0.1}, {"exposure_reg": -1.0}])
def test_settings_that_make_no_sense_are_refused(make: Make, wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="--exposure-"):
        make(**wrong)
