"""Coarse to fine: smaller pictures for the first steps, and nothing else."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from running import Around, Make, bits, of, run, with_models

from splatmeter.backend import Backend, Ticket, TrainStep
from splatmeter.errors import UsageError
from splatmeter.events import Evaluated
from splatmeter.ops import FILTER_3D, GRADIENT_SUM, VISITS, Pinhole
from splatmeter.photos.photo import read
from splatmeter.scene.scene import load_scene
from splatmeter.train import container
from splatmeter.train.memory_prediction import predict
from splatmeter.train.progressive import Stage, Stages, parse

SCHEDULE = "4:7,2:22"


def test_a_schedule_is_divisors_with_their_last_steps() -> None:
    assert parse("none") == ()
    assert parse("4:300, 2:1500") == (Stage(4, 300), Stage(2, 1500))
    assert [stage.divisor for stage in parse("standard")] == [4, 2]


@pytest.mark.parametrize(
    "text", ["", "4", "4:", "4:0x", "2:100,4:200", "4:200,2:100", "1:100", "0:5", "4:5,"]
)
def test_a_schedule_without_sense_is_refused_before_anything_starts(make: Make, text: str) -> None:
    with pytest.raises(UsageError, match="--progressive"):
        make(progressive=text)


def test_the_size_depends_on_the_step_alone_and_cameras_see_the_same_field(make: Make) -> None:
    scene = load_scene(make().scene_options())
    stages = Stages(scene.train, parse(SCHEDULE))
    widths = [stages.at(step)[0].camera.width for step in (1, 7, 8, 22, 23, 10**6)]
    assert widths == [8, 8, 16, 16, 32, 32]
    for full, half in zip(scene.train, stages.at(8), strict=True):
        assert (half.camera.fx, half.camera.cy) == (full.camera.fx / 2, full.camera.cy / 2)
        assert half.camera.rotation is full.camera.rotation and half.name == full.name


def test_coarse_photos_are_averages_of_the_full_ones(make: Make) -> None:
    scene = load_scene(make().scene_options())
    quarter = Stages(scene.train, parse(SCHEDULE)).at(1)[0]
    full = read(scene.train[0].photo).reshape(3, 8, 4, 8, 4).mean(axis=(2, 4))
    np.testing.assert_array_equal(read(quarter.photo), np.floor(full + 0.5).astype(np.uint8))
    assert quarter.photo.nbytes == read(quarter.photo).nbytes


def test_pictures_too_small_to_learn_from_are_refused(make: Make, backend: Backend) -> None:
    with pytest.raises(UsageError, match=r"--progressive .* 4x4 pixels"):
        run(make(progressive="8:10"), backend)


def sizes_seen(backend: Backend) -> tuple[Backend, list[int]]:
    widths: list[int] = []

    class Seen(Around):
        def train_step(self, order: TrainStep) -> Ticket:
            widths.append(order.camera.width)
            return self.model.train_step(order)

        def render(self, camera: Pinhole, settings: Any) -> Any:
            widths.append(camera.width)
            return self.model.render(camera, settings)

    return with_models(backend, Seen), widths


def test_steps_are_coarse_first_and_evaluations_never(make: Make, backend: Backend) -> None:
    watched, widths = sizes_seen(backend)
    events = run(make(progressive=SCHEDULE, iterations=25, test_iterations=(3,)), watched)
    judged = sum(len(event.per_view) for event in of(Evaluated, events))
    assert widths == [8] * 3 + [32] * judged + [8] * 4 + [16] * 15 + [32] * 3


def test_the_3d_filter_knows_only_the_full_size(make: Make, backend: Backend) -> None:
    """Before anything has moved, and after a densification without any rate."""
    still: dict[str, Any] = dict.fromkeys(("position_lr_init", "feature_lr", "opacity_lr", "scaling_lr"), 0.0)
    still |= {"rotation_lr": 0.0, "densify_grad_threshold": 1e9, "checkpoint_iterations": (1, 12)}
    for name, schedule in (("full", "none"), ("coarse", "4:20")):
        run(make(name, progressive=schedule, iterations=12, densification="3dgs", **still), backend)
    folder = make().model_path
    assert folder is not None
    for step in (1, 12):
        filters = [
            container.read(folder.parent / name / f"chkpnt{step}.safetensors")[0]["geometry"][:, FILTER_3D]
            for name in ("full", "coarse")
        ]
        assert filters[0].any()
        np.testing.assert_array_equal(*filters)


def test_statistics_mean_the_same_at_every_size(make: Make, backend: Backend) -> None:
    """Thresholds need no correction: units are half images, and the loss is a mean over pixels."""
    means = []
    for name, schedule in (("full", "none"), ("half", "2:20")):
        config = make(name, progressive=schedule, iterations=6, densification="none")
        run(dataclasses.replace(config, checkpoint_iterations=(6,)), backend)
        geometry = container.read(config.model_path / "chkpnt6.safetensors")[0]["geometry"]
        means.append(geometry[:, GRADIENT_SUM].sum() / geometry[:, VISITS].sum())
    assert 0.6 < means[1] / means[0] < 1.4  # in pixels it would be a factor of two


@pytest.mark.parametrize("stop", [5, 7, 15])
def test_stopping_in_any_stage_and_resuming_changes_no_bit(make: Make, backend: Backend, stop: int) -> None:
    straight = make("straight", progressive=SCHEDULE, checkpoint_iterations=(40,), photo_cache="9K")
    run(straight, backend)
    run(make("halves", progressive=SCHEDULE, iterations=stop, checkpoint_iterations=(stop,)), backend)
    resumed = make("halves", progressive=SCHEDULE, resume=True, checkpoint_iterations=(40,))
    run(resumed, backend)
    expected = bits(straight.model_path / "chkpnt40.safetensors")
    assert bits(resumed.model_path / "chkpnt40.safetensors") == expected


def test_the_memory_predicted_is_that_of_the_full_size(make: Make, backend: Backend) -> None:
    scene = load_scene(make().scene_options())
    told = [predict(make(progressive=text), scene, backend.memory, 120) for text in ("none", SCHEDULE)]
    assert told[0].start_bytes == told[1].start_bytes
    assert told[0].photo_cache_bytes == told[1].photo_cache_bytes


def test_photos_decoded_ahead_count_where_the_cache_has_no_room_for_them(
    make: Make, backend: Backend
) -> None:
    scene = load_scene(make().scene_options())
    everything, nothing = (
        predict(make(photo_cache=cache), scene, backend.memory, 120) for cache in ("1G", "0")
    )
    assert (everything.photo_cache_bytes, nothing.photo_cache_bytes) == (6 * 3 * 32 * 32, 0)
    assert everything.start_bytes - nothing.start_bytes == 3 * 32 * 32  # of six photos, five are on their way
