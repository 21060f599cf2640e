"""What foreign trainers hold out and keep, learnt from what they leave behind."""

from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from splatmeter.lab.plan.commands import RunRequest
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.record.result import RunResult, result_from
from splatmeter.lab.session.evaluating import Evaluator
from splatmeter.lab.trainers.habits import photo_bytes, stated_test_every


@pytest.mark.parametrize(
    ("name", "text", "every"),
    [
        ("cfg.yml", "data_factor: 4\ntest_every: 10\n", 10),
        ("cfg_args", "Namespace(eval=True, llffhold=6)", 6),
        ("config.json", '{"eval": true, "test_every": 5}', 5),
        ("cfg_args", "Namespace(eval=True)", 0),
        ("cfg.yml", "test_every: -1", 0),
    ],
)
def test_the_rule_of_the_split_is_read_from_the_trainers_own_file(
    tmp_path: Path, name: str, text: str, every: int
) -> None:
    (tmp_path / name).write_text(text)
    assert stated_test_every(tmp_path) == every


def test_a_trainer_that_says_nothing_has_no_rule(tmp_path: Path) -> None:
    assert stated_test_every(tmp_path) == 0


def scene_of(folder: Path, sizes: list[tuple[int, int]], registered: int) -> Path:
    (folder / "images").mkdir(parents=True)
    (folder / "sparse" / "0").mkdir(parents=True)
    for number, size in enumerate(sizes):
        Image.new("RGB", size).save(folder / "images" / f"{number}.png")
    (folder / "sparse" / "0" / "images.bin").write_bytes(struct.pack("<Q", registered))
    return folder


def test_photos_on_a_card_are_counted_as_floats_and_never_overstated(tmp_path: Path) -> None:
    scene = scene_of(tmp_path, [(40, 20), (44, 20), (40, 20)], registered=2)
    assert photo_bytes(scene, "images", 2) == 2 * 20 * 10 * 3 * 4
    assert photo_bytes(scene, "images_4", 2) == 0
    assert photo_bytes(scene, "images", -1) == 0


def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> tuple[list[str], RunResult]:
    """The options `eval` is given for a foreign model, and the run's result."""
    model = tmp_path / "model.ply"
    model.write_bytes(b"ply")
    options: list[str] = []
    monkeypatch.setattr(Evaluator, "arguments", lambda _, path, words: options.extend(words) or ("false",))
    result = result_from({"models": [{"path": str(model), "sha256": "", "step": 4000}]})
    spec: Any = SimpleNamespace(lineage=[], request=RunRequest(tmp_path, 0, lab=tmp_path))
    made = Protocol(**{"scene": ".", "trainer": "gsplat", "command": ("gsplat",), **settings})
    return options, Evaluator(Lab(tmp_path), made).complete(result, spec)


def test_a_foreign_model_is_judged_on_the_protocols_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(tmp_path, monkeypatch, test_every=10)[0][-2:] == ["--test-every", "10"]
    assert asked(tmp_path, monkeypatch, test_count=20)[0][-2:] == ["--test-count", "20"]
    assert "--test-every" not in asked(tmp_path, monkeypatch, eval=False)[0]


def test_a_trainer_that_held_out_other_photos_is_judged_on_its_own_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cfg.yml").write_text("test_every: 10")
    options, result = asked(tmp_path, monkeypatch)
    assert options[-2:] == ["--test-every", "10"] and "every 10th" in result.warnings[0]


def test_photos_told_to_stay_off_the_card_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene_of(tmp_path, [(8, 8)], registered=1)
    original: dict[str, Any] = {"trainer": "mip-splatting", "command": (), "resolution": 1}
    assert asked(tmp_path, monkeypatch, **original)[1].image_bytes_held == 8 * 8 * 12
    away = asked(tmp_path, monkeypatch, **original, options=("--data_device", "cpu"))
    assert away[1].image_bytes_held == 0


def test_eval_holds_out_what_it_is_told_to(tmp_path: Path) -> None:
    """What the judge asks for: a model of a run that held nothing out, judged on every fifth photo."""
    from splatmeter.cli.eval import EvalArguments
    from splatmeter.cli.models import scene_config
    from splatmeter.train.config import TrainConfig

    opened: Any = SimpleNamespace(config=TrainConfig(source_path=tmp_path, test_count=7), path=tmp_path)
    assert not scene_config(opened, EvalArguments(tmp_path)).eval
    told = scene_config(opened, EvalArguments(tmp_path, test_every=5))
    assert told.eval and told.test_every == 5 and told.test_count is None
    assert scene_config(opened, EvalArguments(tmp_path, test_count=3)).test_count == 3
