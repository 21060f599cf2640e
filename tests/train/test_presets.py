"""Presets are defaults under one name: recorded in full, and weaker than what is given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from splatmeter.cli.train import parse
from splatmeter.train.config import TrainConfig, to_json
from splatmeter.train.presets import PRESETS, described


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_stands_for_the_options_it_lists(name: str) -> None:
    short = parse(["-s", "scene", "--preset", name]).config()
    assert short == parse(["-s", "scene", *described(name).split()]).config()
    assert short != TrainConfig(source_path=Path("scene"))


def test_what_is_given_comes_before_the_preset() -> None:
    config = parse(
        ["-s", "scene", "--preset", "fast", "--iterations", "60", "--progressive", "none"]
    ).config()
    assert (config.iterations, config.progressive) == (60, "none")
    assert config.sh_interval == PRESETS["fast"]["sh_interval"]


@pytest.mark.parametrize("option", ["--position-lr-init", "--position_lr_init", "--position-lr-final"])
def test_a_rate_of_positions_that_is_given_is_not_scaled_to_pixels(option: str) -> None:
    config = parse(["-s", "scene", "--preset", "fast", option, "0.0001"]).config()
    assert config.position_lr_pixels == 0 and config.sh_interval == PRESETS["fast"]["sh_interval"]
    both = [option, "0.0001", "--position-lr-pixels", "0.5"]
    assert parse(["-s", "scene", "--preset", "fast", *both]).config().position_lr_pixels == 0.5
    assert parse(["-s", "scene", "--preset", "fast", f"{option}=0.0001"]).config().position_lr_pixels == 0


def test_resuming_takes_the_settings_of_the_run_not_the_preset(tmp_path: Path) -> None:
    config = parse(["-s", "scene", "--preset", "fast", "--sh-interval", "70"]).config()
    (tmp_path / "config.json").write_text(json.dumps(to_json(config)))
    again = parse(["-m", str(tmp_path), "--resume", "--preset", "fast"]).config()
    assert again.sh_interval == 70 and again.source_path == Path("scene")
