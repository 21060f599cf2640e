"""--densification mcmc: a fixed budget, the same bits after resuming and for any number of threads."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from running import Make, bits, of, run

from splatmeter.backend import Backend, Explore
from splatmeter.backends.kernels import exploration
from splatmeter.densify.densifier import Densifier
from splatmeter.densify.strategy import EXPLORING_INTERVAL
from splatmeter.errors import SplatmeterError, UsageError
from splatmeter.events import Densified, Evaluated, Finished
from splatmeter.gaussians import initialize
from splatmeter.ops import OPACITY_LOGITS, Rates
from splatmeter.scene.scene import load_scene
from splatmeter.train.assemble import assemble

RATES = Rates(*[0.01] * 6)
BUDGET = {"densification": "mcmc", "max_gaussians": 140}


def test_a_budget_is_needed(make: Make) -> None:
    with pytest.raises(UsageError, match="--max-gaussians"):
        make(densification="mcmc", max_gaussians=None)


def test_the_budget_is_reached_and_never_exceeded_while_the_scene_is_learned(
    make: Make, backend: Backend
) -> None:
    events = run(make(iterations=60, densify_until_iter=55, test_iterations=(1, 60), **BUDGET), backend)
    counts = [event.gaussians for event in of(Densified, events)]
    assert counts == [126, 132, 138, 140, 140]
    first, last = (event for event in of(Evaluated, events) if event.split == "test")
    assert last.metrics["psnr"] > first.metrics["psnr"] + 1


@pytest.mark.parametrize("stop", [10, 17, 20])
def test_stopping_and_resuming_changes_no_bit(make: Make, backend: Backend, stop: int) -> None:
    straight = make("straight", checkpoint_iterations=(40,), progressive="2:15", **BUDGET)
    run(straight, backend)
    run(make("cut", iterations=stop, checkpoint_iterations=(stop,), progressive="2:15", **BUDGET), backend)
    resumed = make("cut", resume=True, checkpoint_iterations=(40,), progressive="2:15", **BUDGET)
    run(resumed, backend)
    expected = bits(straight.model_path / "chkpnt40.safetensors")
    assert bits(resumed.model_path / "chkpnt40.safetensors") == expected


def test_the_number_of_threads_changes_no_bit(make: Make) -> None:
    from splatmeter.backends import registry

    found = []
    for threads in (1, 3):
        try:
            backend = registry.backend("native", threads)
        except SplatmeterError:
            pytest.skip("the native engine is not built: its threads were not compared")
        config = make(f"on{threads}", checkpoint_iterations=(40,), progressive="4:5,2:20", **BUDGET)
        run(config, backend)
        found.append(bits(config.model_path / "chkpnt40.safetensors"))
    assert found[0] == found[1]


def test_exploring_happens_by_the_step_and_moves_what_plain_training_does_not(
    make: Make, backend: Backend
) -> None:
    steps = EXPLORING_INTERVAL
    for name, changes in (("still", {"noise_lr": 0.0, "opacity_reg": 0.0, "scale_reg": 0.0}), ("moved", {})):
        settings = {"iterations": steps, "densify_from_iter": 100, "checkpoint_interval": 1}
        run(make(name, **settings, **changes, **BUDGET), backend)
    folder = make().model_path.parent
    for step, equal in ((steps - 1, True), (steps, False)):
        still, moved = (bits(folder / name / f"chkpnt{step}.safetensors") for name in ("still", "moved"))
        assert (still["geometry"] == moved["geometry"]) is equal
        assert still["geometry_moments"] == moved["geometry_moments"]


def test_a_pull_on_opacities_works_with_any_densification_and_leaves_fainter_gaussians(
    make: Make, backend: Backend
) -> None:
    faint = {}
    for weight in (0.0, 0.01, 1.0):
        events = run(make(f"pulled{weight}", iterations=60, densification="cut", regularize=weight), backend)
        faint[weight] = of(Finished, events)[-1].mean_opacity
    assert faint[0.0] > faint[0.01] > faint[1.0]


def test_what_a_gaussian_feels_depends_neither_on_their_number_nor_on_the_size_of_photos() -> None:
    asked = Explore(seed=1, steps=10, noise=0.0, opacity=0.002, scale=0.0, per_pixel=True)
    few, many = (exploration(asked.as_means(n, 1000), RATES, 5, n) for n in (100, 50_000))
    assert few.opacity_weight == pytest.approx(many.opacity_weight) == pytest.approx(0.002 / 1000)
    usual = dataclasses.replace(asked, per_pixel=False)
    assert usual.as_means(100, 1000) == usual


def test_mcmc_has_weights_of_its_own(make: Make) -> None:
    with pytest.raises(UsageError, match="--opacity-reg and --scale-reg"):
        make(regularize=0.1, **BUDGET)


def test_relocation_hardly_changes_the_picture(make: Make, backend: Backend) -> None:
    """Half of all Gaussians are faint; moving them to the others must not show."""
    scene = load_scene(make().scene_options())
    table = initialize.from_points(scene.points, backend)
    table.geometry[::2, OPACITY_LOGITS] = math.log(0.001 / 0.999)
    table.geometry[1::2, OPACITY_LOGITS] = math.log(0.7 / 0.3)
    settings, camera = make().raster_settings(0), scene.train[0].camera
    model = backend.upload(table)
    before = model.render(camera, settings).color.copy()
    densifier = Densifier(make(densification="mcmc", max_gaussians=table.count).densify_settings(1.0))
    model.grow(densifier.rule(10))
    after = model.render(camera, settings).color
    assert model.count == 120
    assert np.abs(after - before).mean() < 0.04 * before.mean()
    assert np.abs(after - before).max() < 0.15 * before.max()


def test_only_budgeted_runs_explore(make: Make, backend: Backend) -> None:
    for changes, explores in (({}, False), (BUDGET, True)):
        parts = assemble(make(**changes), backend)
        parts.photos.close()
        assert (parts.step.explore is not None) is explores
