"""What happens around a step: skipped updates, resets, the 3D filter's schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splatmeter.backend import Backend
from splatmeter.densify.densifier import Densifier
from splatmeter.ops import FILTER_3D, OPACITY_LOGITS
from splatmeter.train import container
from splatmeter.train.config import TrainConfig
from splatmeter.train.growth import Growth
from splatmeter.train.loop import train
from splatmeter.train.progressive import Stages


def trained(scene: Path, folder: Path, backend: Backend, **changes: Any) -> TrainConfig:
    settings: dict[str, Any] = {
        "source_path": scene,
        "model_path": folder,
        "test_iterations": (),
        "save_iterations": (),
        "densify_from_iter": 5,
        "densification_interval": 10,
        "checkpoint_interval": 1,
    }
    config = TrainConfig(**(settings | changes))
    for _ in train(config, backend):
        pass
    return config


def state_at(folder: Path, step: int) -> tuple[dict[str, Any], dict[str, Any]]:
    return container.read(folder / f"chkpnt{step}.safetensors")


def test_a_densification_step_does_not_update_and_does_not_count(
    scene_folder: Path, tmp_path: Path, backend: Backend
) -> None:
    trained(scene_folder, tmp_path / "o", backend, iterations=12)
    counts = [state_at(tmp_path / "o", step)[1]["optimizer_steps"] for step in (9, 10, 11, 12)]
    assert counts == [9, 9, 10, 11]
    before, after = (state_at(tmp_path / "o", step)[0] for step in (9, 10))
    assert np.array_equal(before["harmonics"], after["harmonics"])
    assert len(state_at(tmp_path / "o", 11)[0]["geometry"]) > len(after["geometry"])


def test_over_white_the_first_reset_comes_after_an_update_of_all_groups(
    scene_folder: Path, tmp_path: Path, backend: Backend
) -> None:
    trained(scene_folder, tmp_path / "o", backend, iterations=6, white_background=True)
    arrays, state = state_at(tmp_path / "o", 6)
    assert state["optimizer_steps"] == 6
    before = state_at(tmp_path / "o", 5)[0]["geometry"][:, OPACITY_LOGITS]
    # Filtered opacities are 0.01 (logit -4.6) then; stored ones are a bit higher, a step moves by 0.05.
    assert before.min() > -3.0
    assert np.median(arrays["geometry"][:, OPACITY_LOGITS]) < -4.0


def test_the_3d_filter_is_refreshed_148_times_after_densification() -> None:
    config = TrainConfig()
    room: Any = None  # which nobody asks here
    growth = Growth(config, Densifier(config.densify_settings(1.0)), (), room, Stages(()))
    steps = [step for step in range(1, 30_001) if growth._refreshes_at(step)]
    assert (steps[0], steps[-1], len(steps)) == (15_100, 29_800, 148)


@pytest.mark.parametrize("changes", [{"filter_3d": False}, {"plain_3dgs": True}])
def test_without_the_3d_filter_its_column_stays_zero(
    scene_folder: Path, tmp_path: Path, backend: Backend, changes: dict[str, bool]
) -> None:
    trained(scene_folder, tmp_path / "o", backend, iterations=12, **changes)
    assert not state_at(tmp_path / "o", 12)[0]["geometry"][:, FILTER_3D].any()


def test_a_small_photo_cache_changes_no_bit(scene_folder: Path, tmp_path: Path, backend: Backend) -> None:
    for name, cache in (("all", "auto"), ("none", "0"), ("some", "7K")):
        trained(scene_folder, tmp_path / name, backend, iterations=12, photo_cache=cache)
    tables = [state_at(tmp_path / name, 12)[0]["geometry"].tobytes() for name in ("all", "none", "some")]
    assert tables[0] == tables[1] == tables[2]


def test_aggressive_pruning_goes_on_after_densification(
    scene_folder: Path, tmp_path: Path, backend: Backend
) -> None:
    from splatmeter.events import Densified

    config = TrainConfig(
        source_path=scene_folder,
        model_path=tmp_path / "o",
        test_iterations=(),
        iterations=12,
        densification="none",
        aggressive_prune_opacity=0.105,
        aggressive_prune_interval=5,
    )
    changes = [event for event in train(config, backend) if isinstance(event, Densified)]
    assert [change.step for change in changes] == [5, 10]
    assert sum(change.pruned for change in changes) > 0
    assert changes[-1].gaussians == 120 - sum(change.pruned for change in changes)
    assert changes[-1].mean_opacity >= 0.1
