"""A resumed run is the run that never stopped; what cannot be resumed is told and left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import Make, bits, of, run

from splatmeter.backend import Backend
from splatmeter.errors import CheckpointError, MissingFile, UsageError
from splatmeter.events import (
    Saved,
    Started,
    Warned,
)
from splatmeter.models.opening import read_checkpoint
from splatmeter.train import container

WAITING = {"unseen": "wait", "momentum": 0.7, "regularize": 0.01, "densification": "cut"}


@pytest.mark.parametrize(
    "how", [{"densification": "gof"}, {"densification": "none"}, WAITING], ids=["gof", "none", "waiting"]
)
def test_stopping_and_resuming_changes_no_bit(make: Make, backend: Backend, how: dict[str, Any]) -> None:
    straight = make("straight", checkpoint_iterations=(40,), **how)
    run(straight, backend)
    run(make("halves", iterations=20, checkpoint_iterations=(20,), **how), backend)
    resumed = make("halves", resume=True, checkpoint_iterations=(40,), **how)
    events = run(resumed, backend)
    assert of(Started, events)[0].step == 20
    expected = bits(straight.model_path / "chkpnt40.safetensors")
    assert bits(resumed.model_path / "chkpnt40.safetensors") == expected


def test_resuming_while_degrees_come_soon_changes_no_bit(make: Make, backend: Backend) -> None:
    pace = {"position_lr_max_steps": 35, "sh_interval": 6, "densification": "3dgs"}
    straight = make("straight", checkpoint_iterations=(40,), **pace)
    run(straight, backend)
    run(make("halves", iterations=22, checkpoint_iterations=(22,), **pace), backend)
    resumed = make("halves", resume=True, checkpoint_iterations=(40,), **pace)
    run(resumed, backend)
    expected = bits(straight.model_path / "chkpnt40.safetensors")
    assert bits(resumed.model_path / "chkpnt40.safetensors") == expected
    assert expected["state"]["sh_degree"] == 3


def test_evaluating_and_saving_in_between_changes_no_bit(make: Make, backend: Backend) -> None:
    plain = make("plain", checkpoint_iterations=(40,))
    run(plain, backend)
    busy = make(
        "busy",
        checkpoint_iterations=(3, 10, 17, 40),
        test_iterations=(7, 10, 33),
        save_iterations=(10, 25),
        evaluation_images=2,
    )
    run(busy, backend)
    assert bits(busy.model_path / "chkpnt40.safetensors") == bits(plain.model_path / "chkpnt40.safetensors")


def test_an_interruption_saves_a_checkpoint_that_goes_on_without_a_trace(
    make: Make, backend: Backend
) -> None:
    plain = make("plain", checkpoint_iterations=(40,))
    run(plain, backend)
    steps = iter(range(1, 100))
    events = run(make("cut"), backend, interrupted=lambda: next(steps) == 13)
    assert events[-1].reason == "interrupted" and events[-1].step == 13
    assert of(Saved, events)[-1].path.endswith("chkpnt13.safetensors")
    resumed = make("cut", resume=True, checkpoint_iterations=(40,))
    run(resumed, backend)
    assert bits(resumed.model_path / "chkpnt40.safetensors") == bits(
        plain.model_path / "chkpnt40.safetensors"
    )


def test_two_equal_runs_are_equal_and_another_seed_is_not(make: Make, backend: Backend) -> None:
    configs = [
        make(name, seed=seed, checkpoint_iterations=(40,)) for name, seed in (("a", 0), ("b", 0), ("c", 1))
    ]
    for config in configs:
        run(config, backend)
    first, second, other = (bits(config.model_path / "chkpnt40.safetensors") for config in configs)
    assert first == second
    assert first["geometry"] != other["geometry"]


def test_a_checkpoint_names_all_images_that_trained_it_along_its_ancestry(
    make: Make, backend: Backend, tmp_path: Path
) -> None:
    everything = make("all", eval=False, iterations=2, checkpoint_iterations=(2,))
    run(everything, backend)
    events = run(
        make(
            "split",
            iterations=4,
            checkpoint_iterations=(4,),
            start_checkpoint=tmp_path / "all/chkpnt2.safetensors",
        ),
        backend,
    )
    assert "test/r_0.png" in of(Started, events)[0].ancestor_images
    assert any("trained an ancestor" in event.message for event in of(Warned, events))
    assert any("start anew" in event.message for event in of(Warned, events))
    _, state = container.read(tmp_path / "split/chkpnt4.safetensors")
    assert "test/r_1.png" in state["trained_on"] and state["ancestry"] == "known"


def test_changed_settings_are_told_when_resuming(make: Make, backend: Backend) -> None:
    run(make(iterations=2, checkpoint_iterations=(2,)), backend)
    events = run(make(iterations=3, resume=True, kernel_size=0.3), backend)
    assert any("kernel_size 0.1 -> 0.3" in event.message for event in of(Warned, events))


@pytest.mark.parametrize("step", [20, 23])
def test_with_another_momentum_rows_first_move_by_what_they_owed_by_the_one_before(
    make: Make, backend: Backend, step: int
) -> None:
    moving = make("moving", iterations=step, checkpoint_iterations=(step,), densification="none")
    run(moving, backend)
    start = moving.model_path / f"chkpnt{step}.safetensors"
    still = {"densification": "none", "position_lr_init": 0.0, "position_lr_final": 0.0, "iterations": 39}
    still |= {f"{name}_lr": 0.0 for name in ("feature", "opacity", "scaling", "rotation")}
    ends = {}
    for unseen in ("move", "wait"):
        config = make(unseen, start_checkpoint=start, unseen=unseen, checkpoint_iterations=(39,), **still)
        run(config, backend)
        opened = read_checkpoint(config.model_path / "chkpnt39.safetensors", lambda: backend)[0]
        ends[unseen] = opened.table.geometry[:, :11]
    owed = read_checkpoint(start, lambda: backend)[0].table.geometry[:, :11]
    np.testing.assert_array_equal(ends["wait"], owed)
    np.testing.assert_allclose(ends["move"], owed, atol=1e-5)


def test_a_checkpoint_of_another_scene_is_refused_and_nothing_is_touched(
    make: Make, backend: Backend, tmp_path: Path
) -> None:
    from tiny_scene import write_tiny_scene

    run(make(iterations=2, checkpoint_iterations=(2,)), backend)
    other = write_tiny_scene(tmp_path / "other", train=5)
    with pytest.raises(CheckpointError, match="another scene"):
        start = tmp_path / "run/chkpnt2.safetensors"
        run(make("new", source_path=other, start_checkpoint=start), backend)
    assert not (tmp_path / "new").exists()


def test_a_checkpoint_whose_poses_another_processor_rounded_goes_on_with_a_warning(
    make: Make, backend: Backend, tmp_path: Path
) -> None:
    run(make(iterations=2, checkpoint_iterations=(2,)), backend)
    arrays, state = container.read(tmp_path / "run/chkpnt2.safetensors")
    rounded = tmp_path / "rounded.safetensors"
    container.write(rounded, arrays, state | {"scene": "0" * 64})
    with pytest.raises(CheckpointError, match="another scene"):  # of today: poses have the same bits anywhere
        run(make("new", start_checkpoint=rounded), backend)
    container.write(rounded, arrays, {k: v for k, v in state.items() if k != "poses"} | {"scene": "0" * 64})
    events = run(make("new", iterations=3, start_checkpoint=rounded), backend)
    assert any("whether they have its poses was not checked" in event.message for event in of(Warned, events))
    assert of(Started, events)[0].step == 2
    container.write(rounded, arrays, {"scene": "0", "train_views": ["elsewhere.png"]} | {
        k: v for k, v in state.items() if k not in ("poses", "scene", "train_views")
    })  # fmt: skip
    with pytest.raises(CheckpointError, match="another scene"):
        run(make("other", start_checkpoint=rounded), backend)


def test_a_checkpoint_cut_off_is_refused_and_nothing_is_overwritten(make: Make, backend: Backend) -> None:
    config = make(iterations=2, checkpoint_iterations=(2,))
    run(config, backend)
    path = config.model_path / "chkpnt2.safetensors"
    whole = path.read_bytes()
    for share in (0.1, 0.5, 0.9, 0.999):
        path.write_bytes(whole[: int(share * len(whole))])
        before = {file: file.stat().st_mtime_ns for file in config.model_path.rglob("*")}
        with pytest.raises(CheckpointError, match="cut off"):
            run(make(resume=True), backend)
        assert {file: file.stat().st_mtime_ns for file in config.model_path.rglob("*")} == before


def test_resuming_needs_something_to_resume_and_steps_to_do(make: Make, backend: Backend) -> None:
    with pytest.raises(MissingFile, match="no checkpoint to resume"):
        run(make(resume=True), backend)
    run(make(iterations=2, checkpoint_iterations=(2,)), backend)
    with pytest.raises(UsageError, match="Raise --iterations"):
        run(make(iterations=2, resume=True), backend)


# ---- another engine ---------------------------------------------------------------------------------------
def test_a_checkpoint_of_one_engine_goes_on_with_another_and_says_so(make: Make) -> None:
    """Equal within rounding: both engines keep the same account of what rows are owed."""
    pytest.importorskip("splatmeter._native", reason="there is only one engine here: not checked")
    pytest.importorskip("torch", reason="there is only one engine here: not checked")
    from splatmeter.backends.registry import backend

    engines = {name: backend(name) for name in ("native", "reference")}
    still = {"densification": "none", "checkpoint_iterations": (8,)}
    for first, second in (("native", "reference"), ("reference", "native")):
        begun = make(f"{first} first", iterations=8, **still)
        run(begun, engines[first])
        ends = []
        for engine in (first, second):
            config = make(
                f"{first} then {engine}",
                start_checkpoint=begun.model_path / "chkpnt8.safetensors",
                iterations=16,
                **(still | {"checkpoint_iterations": (16,)}),
            )
            said = [event.message for event in of(Warned, run(config, engines[engine]))]
            assert any("not to the last bit" in message for message in said) == (engine != first)
            ends.append(container.read(config.model_path / "chkpnt16.safetensors")[0])
        for name in ("geometry", "harmonics"):
            np.testing.assert_allclose(ends[0][name], ends[1][name], atol=2e-4)


def test_a_checkpoint_from_before_engines_were_named_goes_on_to_the_bit(make: Make, backend: Backend) -> None:
    straight = make("straight", checkpoint_iterations=(20, 40))
    run(straight, backend)
    arrays, state = container.read(straight.model_path / "chkpnt20.safetensors")
    del state["engine"]
    older = straight.model_path.parent / "older.safetensors"
    container.write(older, arrays, state)
    resumed = make("resumed", start_checkpoint=older, checkpoint_iterations=(40,))
    events = run(resumed, backend)
    assert not [event for event in of(Warned, events) if "bit" in event.message]
    expected = bits(straight.model_path / "chkpnt40.safetensors")
    assert bits(resumed.model_path / "chkpnt40.safetensors") == expected


@pytest.mark.parametrize("what", ["drift", "mean_drift", "optimizer_steps", "rates"])
def test_a_checkpoint_without_its_account_is_refused(make: Make, backend: Backend, what: str) -> None:
    config = make(iterations=2, checkpoint_iterations=(2,))
    run(config, backend)
    path = config.model_path / "chkpnt2.safetensors"
    arrays, state = container.read(path)
    arrays.pop(what, None), state.pop(what, None)
    container.write(path, arrays, state)
    with pytest.raises(CheckpointError, match=what):
        run(make(resume=True), backend)


@pytest.mark.parametrize(
    ("step", "strategy", "told"), [(20, "gof", True), (36, "gof", False), (20, "none", False)]
)
def test_a_checkpoint_with_a_generator_goes_on_and_says_that_later_draws_differ(
    make: Make, backend: Backend, step: int, strategy: str, told: bool
) -> None:
    first = make(iterations=step, checkpoint_iterations=(step,), densification=strategy)
    run(first, backend)
    path = first.model_path / f"chkpnt{step}.safetensors"
    arrays, state = container.read(path)
    del state["draws"]
    state["generator"] = np.random.default_rng(0).bit_generator.state
    container.write(path, arrays, state)
    events = run(make(resume=True, densification=strategy), backend)
    assert any("older splatmeter" in event.message for event in of(Warned, events)) is told
    assert events[-1].step == 40
