"""The original's checkpoints, imitated exactly: same tuple, same optimizer layout, same NumPy scalar."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splatmeter.backend import Backend, Model
from splatmeter.errors import CheckpointError, MissingFile
from splatmeter.events import Started, Warned
from splatmeter.ops import (
    ABSOLUTE_SUM,
    FILTER_3D,
    GRADIENT_SUM,
    LAST_UPDATE,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    ROTATIONS,
    SECOND_GEOMETRY,
    VISITS,
    WIDTHS,
    Table,
)
from splatmeter.scene.scene import load_scene
from splatmeter.train import import_pth
from splatmeter.train.config import TrainConfig
from splatmeter.train.loop import train

torch = pytest.importorskip("torch", reason="reading the original's .pth files needs torch")

COUNT, STEP, UPDATES = 50, 7000, 6936


def written(path: Path, extent: Any, *, rest: int = 15) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(5)

    def random(*shape: int) -> Any:
        return torch.nn.Parameter(torch.randn(*shape, generator=generator) * 0.3)

    values = {
        "xyz": random(COUNT, 3),
        "f_dc": random(COUNT, 1, 3),
        "f_rest": random(COUNT, rest, 3),
        "opacity": random(COUNT, 1),
        "scaling": torch.nn.Parameter(random(COUNT, 3).detach() - 3),
        "rotation": random(COUNT, 4),
    }
    groups = [{"params": [value], "lr": 0.01, "name": name} for name, value in values.items()]
    groups[0]["lr"] = extent * 1.6e-4  # a NumPy scalar there too
    optimizer = torch.optim.Adam(groups, lr=0.0, eps=1e-15)
    for value in values.values():
        value.grad = torch.randn(value.shape, generator=generator)
    optimizer.step()
    for state in optimizer.state.values():
        state["step"] = torch.tensor(float(UPDATES))
    model = (
        2,
        *(values[name] for name in ("xyz", "f_dc", "f_rest", "scaling", "rotation", "opacity")),
        torch.zeros(COUNT),
        torch.full((COUNT, 1), 0.5),
        torch.full((COUNT, 1), 4.0),
        optimizer.state_dict(),
        extent,
    )
    torch.save((model, STEP), path)
    return {"values": values, "state": optimizer.state_dict()["state"]}


@pytest.fixture
def config(scene_folder: Path, tmp_path: Path) -> TrainConfig:
    return TrainConfig(
        source_path=scene_folder,
        eval=True,
        model_path=tmp_path / "o",
        start_checkpoint=tmp_path / "chkpnt7000.pth",
    )


def stored(model: Model) -> Table:
    return Table(**{name: model.stored(name, slice(None)) for name in WIDTHS})


def load(path: Path, config: TrainConfig, backend: Backend) -> import_pth.Resumed:
    return import_pth.load(path, load_scene(config.scene_options()), config, backend)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_parameters_moments_and_counters_arrive_in_their_columns(
    config: TrainConfig, backend: Backend, tmp_path: Path, kind: Any
) -> None:
    path = tmp_path / "chkpnt7000.pth"
    original = written(path, kind(3.3))
    state = load(path, config, backend).state
    table = stored(state.model)
    values = {name: value.detach().numpy() for name, value in original["values"].items()}
    columns = {
        "xyz": MEANS,
        "scaling": LOG_SCALES,
        "rotation": ROTATIONS,
        "opacity": slice(OPACITY_LOGITS, 11),
    }
    for name, index in (("xyz", 0), ("opacity", 3), ("scaling", 4), ("rotation", 5)):
        place = columns[name]
        second = slice(place.start + SECOND_GEOMETRY, place.stop + SECOND_GEOMETRY)
        assert np.array_equal(table.geometry[:, place], values[name])
        root = np.sqrt(original["state"][index]["exp_avg_sq"].numpy())
        assert np.array_equal(table.geometry_moments[:, second], root)
        first = original["state"][index]["exp_avg"].numpy()
        np.testing.assert_allclose(table.geometry_moments[:, place] * root, first, rtol=1e-6)
    assert np.array_equal(table.harmonics[:, :3], values["f_dc"][:, 0])
    assert np.array_equal(table.harmonics[:, 3:6], values["f_rest"][:, 0])
    root = np.sqrt(original["state"][2]["exp_avg_sq"].numpy()[:, 14])
    assert np.array_equal(table.harmonics_second[:, 45:], root)
    assert (table.geometry[:, GRADIENT_SUM] == 0.5).all() and (table.geometry[:, VISITS] == 4).all()
    assert not table.geometry[:, ABSOLUTE_SUM].any()
    assert (table.geometry[:, LAST_UPDATE] == UPDATES).all()
    assert (state.step, state.grown, state.sh_degree) == (STEP, STEP, 2)
    assert state.model.optimizer().steps == UPDATES


def test_fewer_harmonics_leave_the_rest_zero(config: TrainConfig, backend: Backend, tmp_path: Path) -> None:
    written(tmp_path / "chkpnt7000.pth", np.float64(3.3), rest=3)
    table = load(tmp_path / "chkpnt7000.pth", config, backend).state.model.download(slice(None))
    assert table.harmonics[:, :12].all() and not table.harmonics[:, 12:].any()


def test_training_goes_on_and_says_what_the_file_does_not_tell(
    config: TrainConfig, backend: Backend, tmp_path: Path
) -> None:
    written(tmp_path / "chkpnt7000.pth", np.float64(99.0))
    from dataclasses import replace

    events = list(
        train(replace(config, iterations=STEP + 3, test_iterations=(), save_iterations=()), backend)
    )
    assert isinstance(events[0], Started) and events[0].step == STEP
    assert events[0].ancestor_images == ("unknown",)
    said = [event.message for event in events if isinstance(event, Warned)]
    assert any("does not tell which images trained it" in message for message in said)
    assert any("is it the same scene?" in message for message in said)
    assert events[-1].step == STEP + 3  # type: ignore[union-attr]


def test_the_3d_filter_is_computed_anew(config: TrainConfig, backend: Backend, tmp_path: Path) -> None:
    from splatmeter.train.assemble import assemble

    written(tmp_path / "chkpnt7000.pth", np.float64(3.3))
    parts = assemble(config, backend)
    parts.photos.close()
    assert parts.state.model.download(slice(None)).geometry[:, FILTER_3D].any()


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("evil-was-here",)


def test_a_file_that_wants_to_run_code_is_refused(
    config: TrainConfig, backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save((tuple([Evil()] * 12), 7), tmp_path / "evil.pth")
    with pytest.raises(CheckpointError, match="something else than tensors"):
        load(tmp_path / "evil.pth", config, backend)
    (tmp_path / "older.pth").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(CheckpointError):
        load(tmp_path / "older.pth", config, backend)
    assert not (tmp_path / "evil-was-here").exists()


def test_other_layouts_cut_off_and_missing_files_are_refused(
    config: TrainConfig, backend: Backend, tmp_path: Path
) -> None:
    torch.save(({"a": 1}, 3), tmp_path / "other.pth")
    with pytest.raises(CheckpointError):
        load(tmp_path / "other.pth", config, backend)
    torch.save((tuple(range(12)), 3), tmp_path / "numbers.pth")
    with pytest.raises(CheckpointError, match="not laid out"):
        load(tmp_path / "numbers.pth", config, backend)
    written(tmp_path / "whole.pth", np.float64(1.0))
    whole = (tmp_path / "whole.pth").read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 5):
        (tmp_path / "cut.pth").write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="cut off or no checkpoint"):
            load(tmp_path / "cut.pth", config, backend)
    with pytest.raises(MissingFile):
        load(tmp_path / "nowhere.pth", config, backend)
