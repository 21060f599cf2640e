"""`splatmeter train --resume` goes on with the run's own settings, whatever else the command line says."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "story"))

from tiny_scene import some_backend, write_tiny_scene

from splatmeter.cli import main
from splatmeter.cli.train import parse
from splatmeter.errors import InputError, UsageError
from splatmeter.events import Started, Warned, from_line
from splatmeter.train.config import TrainConfig, to_json


def kept(folder: Path, **settings: Any) -> Path:
    """A folder with the settings of a run, which is all that is read of it."""
    folder.mkdir(parents=True)
    config = TrainConfig(source_path=Path("before"), resolution=4, eval=True, **settings)
    (folder / "config.json").write_text(json.dumps(to_json(config)))
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return kept(tmp_path / "run", iterations=300, kernel_size=0.3)


def test_the_scene_alone_is_another_where_only_the_scene_is_given(run: Path) -> None:
    chosen = parse(["-s", "now", "-m", str(run), "--resume", "--iterations", "400"])
    assert (chosen.source_path, chosen.iterations) == (Path("now"), 400)
    assert (chosen.resolution, chosen.eval, chosen.kernel_size) == (4, True, 0.3)
    alone = parse(["-m", str(run), "--resume", "--iterations", "400"])
    assert alone.source_path == Path("before") and alone.resolution == 4


def test_what_is_given_again_comes_first(run: Path) -> None:
    chosen = parse(["-s", "now", "-m", str(run), "--resume", "--no-eval", "-r", "2"])
    assert (chosen.eval, chosen.resolution, chosen.kernel_size) == (False, 2, 0.3)


def test_a_checkpoint_may_be_named_beside_it(run: Path) -> None:
    words = ["-s", "now", "-m", str(run), "--start-checkpoint", "chkpnt30.safetensors"]
    assert parse([*words, "--resume"]).resolution == 4
    assert parse(words).resolution == -1, "without --resume it is another run"


def test_a_run_is_known_by_its_name_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    kept(tmp_path / "output" / "garden")
    for words in (["-s", "now"], []):
        assert parse([*words, "--experiment-name", "garden", "--resume"]).resolution == 4


def test_only_the_command_line_tells_where_the_settings_are_gone(run: Path) -> None:
    (run / "config.json").write_text("{half")
    with pytest.raises(InputError, match=r"config\.json cannot be read .* Remove it, and pass the scene"):
        parse(["-s", "now", "-m", str(run), "--resume"])
    (run / "config.json").unlink()
    assert parse(["-s", "now", "-m", str(run), "--resume"]).resolution == -1


def test_a_file_is_no_run_to_resume(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="holds no run to resume"):
        parse(["-m", str(tmp_path / "file"), "--resume"])


def test_a_run_with_a_time_keeps_it(tmp_path: Path) -> None:
    words = ["-s", "now", "-m", str(kept(tmp_path / "run", seconds=60.0)), "--resume"]
    assert parse(words).config().seconds == 60
    assert parse([*words, "--minutes", "2"]).config().seconds == 120
    with pytest.raises(UsageError, match="given a time"):
        parse([*words, "--iterations", "400"])


def test_a_preset_that_comes_too_late_is_told(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-s", "now", "-m", str(run), "--resume", "--preset", "fast"]
    assert parse(words).densification == "gof"
    assert "--preset fast is for the beginning of a run" in capsys.readouterr().err
    fast = parse(["-s", "now", "--preset", "fast"]).config()
    (run / "config.json").write_text(json.dumps(to_json(fast)))
    assert parse(words).densification == "cut" and not capsys.readouterr().err


def test_a_moved_scene_goes_on_with_the_photos_that_it_held_out(tmp_path: Path) -> None:
    scene, folder = write_tiny_scene(tmp_path / "scene"), tmp_path / "run"
    usual = ["-m", str(folder), "--backend", some_backend().facts.name, "--device", "cpu", "--quiet"]
    first = ["--eval", "-r", "2", "--densification", "none", "--iterations", "4"]
    assert main.main(["train", "-s", str(scene), *first, *usual]) == 0
    moved = shutil.move(scene, tmp_path / "moved")
    assert main.main(["train", "-s", str(moved), "--resume", "--iterations", "6", *usual]) == 0
    events = [from_line(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    begun, resumed = (event for event in events if isinstance(event, Started))
    assert resumed.step == 4 and resumed.train_images == begun.train_images
    assert not [event for event in events if isinstance(event, Warned)]
