"""--light-cut: steps are cut, pictures are not; it is kept, resumed, and without effect on a card."""

from __future__ import annotations

from typing import Any

import pytest
from running import Around, Make, bits, of, run, with_models

from splatmeter.backend import Backend, TrainStep
from splatmeter.errors import UsageError
from splatmeter.events import Evaluated
from splatmeter.ops import Pinhole, RasterSettings
from splatmeter.train.config import TrainConfig, from_json, to_json


class Noting(Around):
    """Remembers by which cuts it learned and was looked at."""

    learned: set[float]
    looked: set[float]

    def train_step(self, order: TrainStep) -> Any:
        Noting.learned.add(order.settings.light_cut)
        return self.model.train_step(order)

    def render(self, camera: Pinhole, settings: RasterSettings) -> Any:
        Noting.looked.add(settings.light_cut)
        return self.model.render(camera, settings)


def test_steps_are_cut_and_evaluations_are_not(make: Make, backend: Backend) -> None:
    Noting.learned, Noting.looked = set(), set()
    events = run(make(light_cut=0.004, test_iterations=(40,)), with_models(backend, Noting))
    assert of(Evaluated, events)
    assert (Noting.learned, Noting.looked) == ({0.004}, {0.0})


def test_a_cut_changes_the_run_and_none_is_the_default(make: Make, backend: Backend) -> None:
    results = {}
    for name, options in (("plain", {}), ("off", {"light_cut": 0.0}), ("cut", {"light_cut": 0.1})):
        config = make(name, checkpoint_iterations=(40,), **options)
        run(config, backend)
        results[name] = bits(config.model_path / "chkpnt40.safetensors")
    assert results["off"] == results["plain"] != results["cut"]


def test_a_run_with_a_cut_is_resumed_to_the_bit(make: Make, backend: Backend) -> None:
    straight = make("straight", checkpoint_iterations=(40,), light_cut=0.1)
    run(straight, backend)
    run(make("halves", iterations=20, checkpoint_iterations=(20,), light_cut=0.1), backend)
    resumed = make("halves", resume=True, checkpoint_iterations=(40,), light_cut=0.1)
    run(resumed, backend)
    last = "chkpnt40.safetensors"
    assert bits(resumed.model_path / last) == bits(straight.model_path / last)


def test_the_configuration_keeps_it() -> None:
    assert from_json(to_json(TrainConfig(light_cut=0.004))).light_cut == 0.004
    assert from_json({}).light_cut == 0  # of runs before there was one


@pytest.mark.parametrize("cut", [-0.1, 0.2, float("nan")])
def test_what_is_no_cut_gets_a_sentence(cut: float) -> None:
    with pytest.raises(UsageError, match=r"--light-cut is .*between 0 and 0\.1"):
        TrainConfig(light_cut=cut)


def test_a_card_does_without_it_and_is_not_left_for_it() -> None:
    from splatmeter.backends.cuda.model import card_look

    assert not TrainConfig(light_cut=0.004).only_on_cpu
    assert card_look(RasterSettings(light_cut=0.004)) == card_look(RasterSettings())
