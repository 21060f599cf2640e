"""Training from Python: its options are TrainConfig's, it is followed, stopped and gone on with."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import io
import json
import os
import subprocess
import sys
import typing
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tiny_scene import write_tiny_scene

import splatmeter
from splatmeter import api
from splatmeter.api.options import TrainOptions
from splatmeter.scene.scene import SceneOptions
from splatmeter.train.config import TrainConfig

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_scene(tmp_path_factory.mktemp("scene"))


def begun(scene: Path, output: Path, **options: Any) -> api.Training:
    given = {"iterations": 12, "device": "cpu", "threads": 2, "progress_interval": 3} | options
    return api.train(scene, output, **given)  # type: ignore[arg-type]


# ---- one list of options ----------------------------------------------------------------------------------
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_options", ROOT / "docs" / "make_train_options.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_options_are_those_of_a_training_and_made_from_them() -> None:
    made = maker()
    assert made.TARGET.read_text("utf-8") == made.text(), "run python docs/make_train_options.py"
    options = set(typing.get_type_hints(TrainOptions))
    assert options.isdisjoint(made.LEFT_OUT)
    assert options | set(made.LEFT_OUT) == {field.name for field in dataclasses.fields(TrainConfig)}


def test_the_types_of_the_options_are_those_of_a_training_or_become_them() -> None:
    """Independently of how the list is made: a wider type must be one that is turned into the narrow one."""
    wider = {Path: str | Path, Path | None: str | Path | None, tuple[int, ...]: Sequence[int]}
    hints = typing.get_type_hints(TrainConfig)
    for name, kind in typing.get_type_hints(TrainOptions).items():
        assert kind == wider.get(hints[name], hints[name]), name


def test_a_notebook_sees_every_option_with_its_default() -> None:
    seen = inspect.signature(api.train).parameters
    defaults = {field.name: field.default for field in dataclasses.fields(TrainConfig)}
    assert list(seen)[:5] == ["folder", "output", "preset", "threads", "device"]
    for name in typing.get_type_hints(TrainOptions):
        assert seen[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert seen[name].default == defaults[name]
    assert not any(value.kind is inspect.Parameter.VAR_KEYWORD for value in seen.values())


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no name for unpacked options")
def test_whoever_looks_at_types_while_running_finds_them() -> None:
    hints = typing.get_type_hints(api.train)
    assert (hints["folder"], hints["return"]) == (str | Path, api.Training)
    assert "TrainOptions" in str(hints["options"])


def test_a_scene_is_loaded_with_the_options_that_scenes_have() -> None:
    taken = inspect.signature(api.load_scene).parameters
    known = {field.name: field.default for field in dataclasses.fields(SceneOptions)}
    del known["source"]
    assert {name: value.default for name, value in taken.items() if name != "folder"} == known


# ---- a run ------------------------------------------------------------------------------------------------
def test_events_are_classes_of_the_api(scene: Path, tmp_path: Path) -> None:
    events = list(begun(scene, tmp_path / "run"))
    assert isinstance(events[0], api.Started) and isinstance(events[-1], api.Finished)
    kinds = set(typing.get_args(api.Event))
    assert {type(event) for event in events} <= kinds
    assert {getattr(api, kind.__name__) for kind in kinds} == kinds


def test_nothing_happens_before_somebody_follows(scene: Path, tmp_path: Path) -> None:
    run = begun(scene, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    run.close()
    assert list(run) == []


def test_what_python_has_for_options_is_taken(scene: Path, tmp_path: Path) -> None:
    numbers: dict[str, Any] = {"iterations": np.int64(4), "feature_lr": 1, "seed": np.uint8(3)}
    for _ in begun(scene, tmp_path / "run", save_iterations=[2], **numbers):
        pass
    record = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (record["iterations"], record["feature_lr"], record["save_iterations"]) == (4, 1.0, [2])
    assert api.load_model(tmp_path / "run", iteration=2, device="cpu").step == 2


def test_stopping_saves_a_checkpoint_that_opens_and_goes_on(scene: Path, tmp_path: Path) -> None:
    run = begun(scene, tmp_path / "run", iterations=1000, lambda_dssim=0.3)
    last = None
    for last in run:
        if isinstance(last, api.Progress):
            run.stop()
    assert isinstance(last, api.Finished) and last.reason == "interrupted" and 0 < last.step < 1000
    assert api.load_model(tmp_path / "run", device="cpu").step == last.step
    going_on = list(begun(scene, tmp_path / "run", iterations=last.step + 2, resume=True))
    assert isinstance(going_on[0], api.Started)
    assert going_on[0].step == last.step
    assert going_on[0].config["lambda_dssim"] == 0.3, "settings of before, where nothing else is said"
    assert isinstance(going_on[-1], api.Finished) and going_on[-1].step == last.step + 2


def test_a_preset_is_a_set_of_defaults(scene: Path, tmp_path: Path) -> None:
    run = begun(scene, tmp_path / "run", preset="fast", feature_lr=0.02)
    started = next(run)
    run.close()
    assert isinstance(started, api.Started)
    settings = started.config
    assert (settings["densification"], settings["feature_lr"], settings["iterations"]) == ("cut", 0.02, 12)


# ---- watched ----------------------------------------------------------------------------------------------
def test_watching_shows_one_line_that_is_written_over(scene: Path, tmp_path: Path) -> None:
    stream = io.StringIO()
    done = begun(scene, tmp_path / "run").watch(stream)
    assert (done.reason, done.step) == ("completed", 12)
    said = stream.getvalue()
    lines = [line.rpartition("\r")[2] for line in said.split("\n")]
    assert lines[0].startswith("Training: 120 Gaussians")
    assert sum("step 12 of 12" in line for line in said.split("\r")) == 1
    assert any(line.startswith("Finished at step 12") for line in lines)
    assert not any(line.startswith("step 3 of") for line in lines), "written over by what came later"
    written = [part for part in said.split("\n")[-2].split("\r")]
    assert len(written[-1]) >= max(map(len, written)), "and nothing of it is left standing"


def test_a_run_that_has_ended_cannot_be_watched(scene: Path, tmp_path: Path) -> None:
    run = begun(scene, tmp_path / "run")
    run.watch(io.StringIO())
    with pytest.raises(api.SplatmeterError, match="ended already"):
        run.watch(io.StringIO())


INTERRUPTED = """
import io, os, signal, sys
from splatmeter import api

class Button(io.StringIO):
    def write(self, text):
        if "step 6 of" in text:
            os.kill(os.getpid(), signal.SIGINT)
        return super().write(text)

before = signal.getsignal(signal.SIGINT)
run = api.train(sys.argv[1], sys.argv[2], iterations=100000, device="cpu", threads=1, progress_interval=3)
done = run.watch(Button())
print(done.reason, done.step < 1000, signal.getsignal(signal.SIGINT) is before)
print(api.load_model(sys.argv[2], device="cpu").step == done.step)
"""


def test_the_stop_button_ends_a_watched_run_in_order(scene: Path, tmp_path: Path) -> None:
    package = str(Path(splatmeter.__file__).parents[1])
    words = [sys.executable, "-c", INTERRUPTED, str(scene), str(tmp_path / "run")]
    paths = os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        words, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert ended.stdout.split() == ["interrupted", "True", "True", "True"], ended.stderr


# ---- misuse -----------------------------------------------------------------------------------------------
MISUSE: dict[str, tuple[dict[str, Any], str]] = {
    "misspelt": ({"iteration": 100}, "There is no option iteration. Did you mean iterations?"),
    "unsupported": ({"ray_jitter": True}, "no option ray_jitter"),
    "a folder twice": ({"source_path": "x"}, "no option source_path"),
    "text for a number": ({"iterations": "many"}, "iterations is 'many', but must be a whole number."),
    "half a step": ({"iterations": 0.5}, "iterations is 0.5"),
    "no steps": ({"iterations": 0}, "iterations is 0, but must be above 0."),
    "an unknown rule": ({"densification": "best"}, "densification is 'best', but must be one of 'gof'"),
    "a number for a list": ({"save_iterations": 7}, "a list of whole numbers"),
    "a yes for a number": ({"max_gaussians": True}, "max_gaussians is True"),
    "no budget": ({"densification": "mcmc"}, "pass max_gaussians"),
    "an unknown preset": ({"preset": "slow"}, "no preset 'slow'"),
    "time and steps": ({"seconds": 5, "iterations": 10}, "leave out iterations"),
    "time and a preset": ({"seconds": 5, "preset": "fast"}, "leave out preset"),
    "no such device": ({"device": "gpu"}, "device gpu makes no sense"),
    "no threads": ({"threads": 0}, "threads is 0"),
    "a plan that is not there": ({"plan": "nowhere.json"}, "nowhere.json"),
}


@pytest.mark.parametrize("name", MISUSE)
def test_options_that_make_no_sense_get_a_sentence_at_once(name: str, scene: Path, tmp_path: Path) -> None:
    options, word = MISUSE[name]
    with pytest.raises(api.SplatmeterError) as caught:
        api.train(scene, tmp_path / "run", **options)  # not even iterated over
    assert word in str(caught.value)
    assert "--" not in str(caught.value), "as Python spells it"
    assert not (tmp_path / "run").exists()


def test_what_is_no_scene_gets_a_sentence_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "photo.png").write_bytes(b"")
    cases: list[tuple[Any, str]] = [
        (tmp_path / "nowhere", "nowhere is not a folder. Check the folder."),
        (tmp_path / "photo.png", "photo.png is not a folder"),
        (tmp_path / "empty", "is not a scene"),
        (None, "folder must be a path"),
        (np.eye(4), "folder must be a path"),
        ("", "folder must be a path"),
    ]
    for folder, word in cases:
        for attempt in (api.load_scene, lambda folder: api.train(folder, tmp_path / "run")):
            with pytest.raises(api.SplatmeterError) as caught:
                attempt(folder)
            assert word in str(caught.value)
            assert "--" not in str(caught.value)


def test_a_folder_that_holds_a_run_is_refused_before_anything_is_trained(scene: Path, tmp_path: Path) -> None:
    begun(scene, tmp_path / "run").watch(io.StringIO())
    with pytest.raises(api.SplatmeterError, match=r"holds a run.*\(resume\).*\(overwrite\)") as caught:
        begun(scene, tmp_path / "run")
    assert "--" not in str(caught.value)
    assert begun(scene, tmp_path / "run", overwrite=True).watch(io.StringIO()).step == 12


def test_a_scenes_options_are_checked_too(scene: Path) -> None:
    for options, word in (({"resolution": "half"}, "resolution is 'half'"), ({"eval": 1}, "eval is 1")):
        with pytest.raises(api.SplatmeterError) as caught:
            api.load_scene(scene, **options)  # type: ignore[arg-type]
        assert word in str(caught.value)


def test_judging_what_cannot_be_judged_gets_a_sentence(scene: Path, tmp_path: Path) -> None:
    begun(scene, tmp_path / "run").watch(io.StringIO())
    model, views = api.load_model(tmp_path / "run", device="cpu"), api.load_scene(scene, eval=True).test
    assert api.evaluate(model, views).means["psnr"] > 5
    cases: list[tuple[tuple[Any, ...], str]] = [
        ((model, ()), "eval=True"),
        ((model, [view.camera for view in views]), "type Camera"),
        ((tmp_path / "run", views), "load_model(path)"),
        ((model, views, 0), "scale is 0"),
        ((model, views, 1, "middle"), "'none' or 'left-half'"),
    ]
    for arguments, word in cases:
        with pytest.raises(api.SplatmeterError) as caught:
            api.evaluate(*arguments)
        assert word in str(caught.value)
