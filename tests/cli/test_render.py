"""`splatmeter render`: views in the original's folders, and camera paths."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tiny_run import TEST, TRAIN, TinyRun, make, splatmeter


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyRun:
    return make(tmp_path_factory.mktemp("tiny"))


def test_views_land_in_the_originals_folders(
    tiny: TinyRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert splatmeter("render", "-m", tiny.folder, "-o", tmp_path) == 0
    assert f"{TRAIN} views" in capsys.readouterr().out
    for split, count in (("train", TRAIN), ("test", TEST)):
        for kind in ("test_preds_-1", "gt_-1"):
            names = sorted(path.name for path in (tmp_path / split / "ours_30" / kind).iterdir())
            assert names == [f"{number:05d}.png" for number in range(count)]
    render = np.asarray(Image.open(tmp_path / "train/ours_30/test_preds_-1/00003.png")).astype(int)
    photo = np.asarray(Image.open(tmp_path / "train/ours_30/gt_-1/00003.png")).astype(int)
    assert render.std() > 5 and abs(render - photo).max() <= 1


def test_the_originals_skip_flags_work(tiny: TinyRun, tmp_path: Path) -> None:
    assert splatmeter("render", "--model_path", tiny.folder, "--skip_train", "--quiet", "-o", tmp_path) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["test"]


def test_where_there_is_nothing_to_render_that_is_said(
    tiny: TinyRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert splatmeter("render", "-m", tiny.folder, "--skip_train", "--skip_test") == 0
    said = capsys.readouterr()
    assert "--skip-train and --skip-test together leave out every view" in said.err and not said.out
    everything = make(tmp_path / "everything", eval=False)
    assert splatmeter("render", "-m", everything.folder, "--skip_train") == 0
    said = capsys.readouterr()
    assert "Nothing to render" in said.err and "no test views, as the run held none out" in said.err
    assert not said.out and not (everything.folder / "test").exists()


def test_an_orbit_becomes_a_folder_or_a_gif(tiny: TinyRun, tmp_path: Path) -> None:
    words = ("render", "-m", tiny.folder, "--path", "orbit", "--frames", 5)
    assert splatmeter(*words, "-o", tmp_path / "turn") == 0
    frames = sorted((tmp_path / "turn").iterdir())
    assert [path.name for path in frames] == [f"{number:05d}.png" for number in range(5)]
    assert all(np.asarray(Image.open(path)).std() > 5 for path in frames), "every frame shows the scene"
    assert splatmeter(*words, "-o", tmp_path / "turn.gif") == 0
    with Image.open(tmp_path / "turn.gif") as film:
        assert (film.size, getattr(film, "n_frames", 1)) == ((48, 40), 5)


def test_an_orbit_becomes_a_film_where_ffmpeg_is(tiny: TinyRun, tmp_path: Path) -> None:
    if shutil.which("ffmpeg") is None:
        pytest.skip("films were not checked: ffmpeg is not installed")
    assert (
        splatmeter("render", "-m", tiny.folder, "--path", "orbit", "--frames", 3, "-o", tmp_path / "a.mp4")
        == 0
    )
    assert (tmp_path / "a.mp4").stat().st_size > 500


def test_without_ffmpeg_a_film_is_refused_before_rendering(
    tiny: TinyRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert splatmeter("render", "-m", tiny.folder, "--path", "orbit", "-o", tmp_path / "a.mp4") == 64
    assert "ffmpeg" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--path", "orbit", "-o", "a.avi"), "a.avi"),
        (("--path", "orbit", "--frames", "0"), "--frames"),
        (("--path", "spiral"), "spiral"),
    ],
)
def test_mistakes_get_one_sentence(
    tiny: TinyRun, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], expected: str
) -> None:
    assert splatmeter("render", "-m", tiny.folder, *words) == 64
    complaint = capsys.readouterr().err
    assert expected in complaint and complaint.count("\n") == 1


def test_a_bare_ply_needs_an_output(
    tiny: TinyRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "bare.ply"
    bare.write_bytes(tiny.ply.read_bytes())
    assert splatmeter("render", "-m", bare, "-s", tiny.scene) == 64
    assert "--output" in capsys.readouterr().err


def test_the_calls_of_the_originals_own_scripts_work(tiny: TinyRun, tmp_path: Path) -> None:
    words = ("render", "-m", tiny.folder, "--data_device", "cpu", "--skip_train", "--eval", "-o", tmp_path)
    assert splatmeter(*words) == 0
    assert not (tmp_path / "train").exists() and (tmp_path / "test").exists()
