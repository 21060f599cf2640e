"""The trainer on an imitation of a device: the same bits, no peeking, and waits only where they are due."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from imitation import Device, imitation
from running import Around, Make, bits, of, run, with_models

from splatmeter.backend import Backend, TrainStep
from splatmeter.cli import main
from splatmeter.errors import Diverged, MissingFile, SplatmeterError
from splatmeter.events import Densified, Event, Failed, Progress
from splatmeter.scene.sampler import ViewSampler
from splatmeter.train import container
from splatmeter.train.config import TrainConfig
from splatmeter.train.loop import train

VARIETIES: dict[str, dict[str, Any]] = {
    "gof": {"test_iterations": (7, 23), "save_iterations": (12,), "evaluation_images": 1},
    "3dgs": {"densification": "3dgs", "white_background": True, "progressive": "2:15", "sh_interval": 6},
    "mcmc": {"densification": "mcmc", "max_gaussians": 140},
    "none": {"densification": "none", "aggressive_prune_opacity": 0.105, "aggressive_prune_interval": 15},
}


@pytest.mark.parametrize("variety", VARIETIES)
@pytest.mark.parametrize("stop", [None, 17])
def test_a_run_on_a_device_gives_the_same_bits(
    make: Make, backend: Backend, variety: str, stop: int | None
) -> None:
    settings = VARIETIES[variety]
    near, far = (make(name, checkpoint_iterations=(40,), **settings) for name in ("near", "far"))
    run(near, backend)
    device = imitation(backend, Device(seed=len(variety)))
    if stop is None:
        run(far, device)
    else:
        answers = iter([False] * (stop - 1) + [True])
        run(far, device, interrupted=lambda: next(answers))
        run(dataclasses.replace(far, resume=True), device)
    assert checkpoint(far, 40) == checkpoint(near, 40)


def checkpoint(config: TrainConfig, step: int) -> dict[str, Any]:
    assert config.model_path is not None
    return bits(config.model_path / f"chkpnt{step}.safetensors", "engine")


def test_a_step_is_one_crossing_and_waits_for_nothing(make: Make, backend: Backend) -> None:
    device = Device(seed=3)
    config = make(densification="none", iterations=60, progress_interval=20, photo_cache="1G")
    seen: dict[int, tuple[Counter[str], Counter[str]]] = {}
    for event in train(config, imitation(backend, device)):
        if isinstance(event, Progress):
            seen[event.step] = Counter(device.crossings), Counter(device.waits)
    (crossed, waited), (before, waited_before) = seen[40], seen[20]
    # twenty steps and a progress event: the numbers of steps still under way are read once, in one wait
    assert crossed["train_step"] - before["train_step"] == 20
    others = (crossed - before).keys() - {"train_step", "ready", "read", "synchronize"}
    assert not others, f"a step also does {others}"
    assert crossed["ready"] - before["ready"] <= 2 * 20
    assert (waited - waited_before).total() == 1


def test_the_native_engine_is_entered_once_a_step(make: Make) -> None:
    native = pytest.importorskip("splatmeter.backends.native", reason="the engine is not built: not counted")
    entered: Counter[str] = Counter()

    class Counting:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            entered[name] += 1
            return getattr(self._inner, name)

    engine = native.native_engine(1)
    backend = native.backend_of(engine)
    engine.native = Counting(engine.native)
    counts: list[Counter[str]] = []
    for event in train(make(densification="none", iterations=40, progress_interval=20), backend):
        if isinstance(event, Progress):
            counts.append(Counter(entered))
    assert counts[1] - counts[0] == {"train_step": 20, "timings": 1, "workspace_bytes": 1}


def broken_at(backend: Backend, step: int) -> Backend:
    class Broken(Around):
        calls = 0

        def train_step(self, order: TrainStep) -> Any:
            self.calls += 1
            if self.calls == step:
                hole = dataclasses.replace(order.settings, background=(math.nan, math.nan, math.nan))
                order = dataclasses.replace(order, settings=hole)
            return self.model.train_step(order)

    return with_models(backend, Broken)


@pytest.mark.parametrize("step", [2, 8, 11, 19, 38])
def test_a_loss_that_is_no_number_is_told_as_if_nobody_had_gone_on(
    make: Make, backend: Backend, step: int
) -> None:
    """On a device the trainer is some steps further by then: everything goes back to the step before."""
    told: list[Event] = []
    for name, engine in (("near", backend), ("far", imitation(backend, Device(seed=step)))):
        # the schedule has growth and resets right behind some of these steps, and degrees that rise
        config = make(name, progress_interval=1000, sh_interval=6)
        with pytest.raises(Diverged):
            for event in train(config, broken_at(engine, step)):
                last = event
        told.append(last)
    near, far = told
    assert isinstance(near, Failed) and isinstance(far, Failed) and near.step == far.step == step - 1
    assert near.message == far.message.replace("/far/", "/near/")
    one, other = Path(near.checkpoint), Path(far.checkpoint)
    assert bits(one, "engine", "sampler") == bits(other, "engine", "sampler")
    assert views_to_come(one) == views_to_come(other)


def views_to_come(path: Path) -> list[int]:
    """Samplers that have looked ahead differently far go on alike."""
    told = container.read(path)[1]["sampler"]
    sampler = ViewSampler(told["count"], told["seed"])
    sampler.restore(told)
    return [sampler.next() for _ in range(100)]


def test_a_run_that_broke_goes_on_from_its_last_good_state(make: Make, backend: Backend) -> None:
    config = make(progress_interval=1000)
    with pytest.raises(Diverged):
        run(config, broken_at(imitation(backend, Device(seed=1)), 15))
    events = run(dataclasses.replace(config, resume=True), imitation(backend, Device(seed=2)))
    assert events[-1].step == 40 and len(of(Densified, events)) == 2  # type: ignore[union-attr]


def without_photo(backend: Backend, step: int) -> Backend:
    """The photo of this step cannot be had; earlier steps are still under way then."""

    class Missing(Around):
        calls = 0

        def train_step(self, order: TrainStep) -> Any:
            self.calls += 1
            if self.calls == step:
                raise MissingFile("the photo vanished.")
            return self.model.train_step(order)

    return with_models(backend, Missing)


def test_a_rescue_waits_for_the_steps_under_way(make: Make, backend: Backend) -> None:
    ends = []
    for name, engine in (("near", backend), ("far", imitation(backend, Device(seed=4)))):
        with pytest.raises(MissingFile, match=r"The state so far is .*chkpnt6"):
            run(make(name, progress_interval=1000), without_photo(engine, 7))
        ends.append(bits(make(name).model_path / "chkpnt6.safetensors", "engine"))
    assert ends[0] == ends[1] and len(ends[0]["state"]["recent_losses"]) == 6


@pytest.mark.parametrize("seed", range(4))
def test_a_bad_step_is_told_even_if_something_else_fails_before_it_is_noticed(
    make: Make, backend: Backend, seed: int
) -> None:
    engine = without_photo(broken_at(imitation(backend, Device(seed)), 6), 7)
    with pytest.raises(Diverged, match=r"stopped in step 6: the loss of view .* is nan"):
        run(make(progress_interval=1000), engine)
    assert container.read(make().model_path / "chkpnt5.safetensors")[1]["optimizer_steps"] == 5


def test_a_device_that_is_gone_is_told_once_and_the_listeners_get_their_ending(
    make: Make, backend: Backend
) -> None:
    class Gone(Around):
        calls = 0

        def train_step(self, order: TrainStep) -> Any:
            self.calls += 1
            if self.calls > 4:
                raise SplatmeterError("The card is gone.")
            return self.model.train_step(order)

        def intact(self) -> bool:
            raise SplatmeterError("The card is still gone.")

    events: list[Event] = []
    with pytest.raises(SplatmeterError, match=r"^The card is gone\.$"):
        for event in train(make(), with_models(backend, Gone)):
            events.append(event)
    assert isinstance(events[-1], Failed) and events[-1].message == "The card is gone."


def test_the_commands_do_not_peek_either(
    scene_folder: Path,
    tmp_path: Path,
    backend: Backend,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    device = Device()
    monkeypatch.setattr("splatmeter.backends.registry.backend", lambda *_: imitation(backend, device))
    folder = str(tmp_path / "run")
    words = ["-s", str(scene_folder), "-m", folder, "--eval", "--iterations", "12", "--quiet"]
    assert main.main(["train", *words, "--checkpoint-iterations", "12", "--test-iterations", "5"]) == 0
    last = f"{folder}/chkpnt12.safetensors"
    assert main.main(["eval", "-m", last, "-s", str(scene_folder), "--output", str(tmp_path / "e")]) == 0
    assert main.main(["render", "-m", folder, "--quiet"]) == 0
    assert main.main(["export", "-m", last, "-o", str(tmp_path / "m.ply")]) == 0
    assert device.crossings["pixels"] > 0
    assert "nan" not in capsys.readouterr().out.lower()


def test_what_was_uploaded_is_gone_from_the_host(backend: Backend) -> None:
    from splatmeter.ops import empty_table

    table = empty_table(3)
    model = imitation(backend, Device()).upload(table)
    assert np.isnan(table.geometry).all() and not model.download(slice(None)).geometry.any()
    with pytest.raises(AttributeError):
        model._table  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ValueError, match="read-only"):
        model.stored("geometry", slice(None))[:] = 0
