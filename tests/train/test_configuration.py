"""Settings survive being written down, and nonsense is refused by name."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from splatmeter.errors import UsageError
from splatmeter.train.config import TrainConfig, from_json, to_json


def test_a_configuration_survives_json() -> None:
    config = TrainConfig(
        source_path=Path("a"), start_checkpoint=Path("b.pth"), test_iterations=(1, 2), max_gaussians=5
    )
    assert from_json(json.loads(json.dumps(to_json(config)))) == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ray_jitter": True}, "--ray-jitter is not supported"),
        ({"resample_gt_image": True}, "--resample-gt-image is not supported"),
        ({"iterations": 0}, "--iterations is 0, but must be above 0"),
        ({"sh_degree": 4}, "--sh-degree"),
        ({"kernel_size": math.nan}, "--kernel-size"),
        ({"lambda_dssim": 1.5}, "--lambda-dssim"),
        ({"aggressive_prune_opacity": 1.0}, "--aggressive-prune-opacity"),
    ],
)
def test_settings_without_sense_are_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TrainConfig(**changes)


def test_plain_3dgs_means_a_larger_kernel_no_compensation_and_no_3d_filter() -> None:
    config = TrainConfig(plain_3dgs=True)
    settings = config.raster_settings(3)
    assert (settings.kernel_size, settings.compensate, config.uses_filter_3d) == (0.3, False, False)
