"""`splatmeter eval` on a run whose photos are its own renders."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tiny_run import TEST, TRAIN, TinyRun, make, splatmeter

from splatmeter.evaluate.lpips_weights import VARIABLE


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> TinyRun:
    return make(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def tiny(original: TinyRun, tmp_path: Path) -> TinyRun:
    """A copy of the run folder, so that tests do not see each other's results."""
    folder = tmp_path / "run"
    shutil.copytree(original.folder, folder)
    return TinyRun(original.scene, folder, folder / "point_cloud/iteration_30/point_cloud.ply")


def test_a_perfect_model_is_found_perfect(tiny: TinyRun, capsys: pytest.CaptureFixture[str]) -> None:
    assert splatmeter("eval", "-m", tiny.folder, "--lpips", "none", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["step"], record["gaussians"], record["kernel_size"]) == (30, 60, 0.1)
    test, train = record["splits"]["test"]["1"], record["splits"]["train"]["1"]
    assert (test["views"], train["views"]) == (TEST, 5)
    for found in (test, train):
        assert found["means"]["psnr"] is None or found["means"]["psnr"] > 50  # equal up to single roundings
        assert found["means"]["ssim"] > 0.999
    results = json.loads((tiny.folder / "results.json").read_text())
    assert list(results) == ["ours_30"] and list(results["ours_30"]) == ["SSIM", "PSNR"]
    per_view = json.loads((tiny.folder / "per_view.json").read_text())
    assert list(per_view["ours_30"]["SSIM"]) == [f"{number:05d}.png" for number in range(TEST)]


def test_scales_get_entries_of_their_own(tiny: TinyRun, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("eval", "-m", tiny.folder, "--scales", "1,2,4", "--lpips", "none", "--train-views", 0)
    assert splatmeter(*words) == 0
    shown = capsys.readouterr().out
    assert shown.count("\ntest ") == 3 and "train" not in shown
    results = json.loads((tiny.folder / "results.json").read_text())
    assert list(results) == ["ours_30", "ours_30_scale_2", "ours_30_scale_4"]
    # The 2D filter blurs a little more than a box, so lower scales are close but not exact.
    assert all(entry["PSNR"] is None or entry["PSNR"] > 20 for entry in results.values())


def test_renders_and_a_contact_sheet_are_written_on_demand(tiny: TinyRun) -> None:
    assert (
        splatmeter("eval", "-m", tiny.folder, "--lpips", "none", "--write-renders", "--train-views", 1) == 0
    )
    folder = tiny.folder / "test" / "ours_30"
    render = np.asarray(Image.open(folder / "test_preds_-1" / "00001.png")).astype(int)
    photo = np.asarray(Image.open(folder / "gt_-1" / "00001.png")).astype(int)
    assert abs(render - photo).max() <= 1
    with Image.open(folder / "contact_sheet_-1.png") as sheet:
        assert sheet.size == (3 * 48, 2 * 40)
    assert (tiny.folder / "train/ours_30/gt_-1/00000.png").exists()


def test_an_earlier_iteration_and_an_earlier_result_are_kept_apart(tiny: TinyRun) -> None:
    (tiny.folder / "results.json").write_text('{"ours_99": {"PSNR": 1.0}}')
    assert splatmeter("eval", "-m", tiny.folder, "--iteration", 7, "--lpips", "none", "--train-views", 0) == 0
    assert list(json.loads((tiny.folder / "results.json").read_text())) == ["ours_99", "ours_7"]


def test_a_bare_ply_needs_its_scene_and_writes_nothing(
    tiny: TinyRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "bare.ply"
    bare.write_bytes(tiny.ply.read_bytes())
    assert splatmeter("eval", "-m", bare, "--lpips", "none") == 64
    assert "pass the scene's folder with -s" in capsys.readouterr().err
    before = sorted(tmp_path.rglob("*"))
    assert splatmeter("eval", "-m", bare, "-s", tiny.scene, "--lpips", "none", "--json") == 0
    assert json.loads(capsys.readouterr().out)["splits"]["test"]["1"]["means"]["ssim"] > 0.999
    assert sorted(tmp_path.rglob("*")) == before


def test_the_originals_cfg_args_are_understood_and_never_executed(
    tiny: TinyRun, capsys: pytest.CaptureFixture[str]
) -> None:
    (tiny.folder / "config.json").unlink()
    settings = f"source_path={str(tiny.scene)!r}, eval=True, sh_degree=3, resolution=-1, kernel_size=0.1"
    (tiny.folder / "cfg_args").write_text(f"Namespace({settings}, data_device='cuda', x=exit(3))")
    assert splatmeter("eval", "-m", tiny.folder, "--lpips", "none", "--json") == 0
    assert json.loads(capsys.readouterr().out)["splits"]["test"]["1"]["means"]["ssim"] > 0.999


def test_a_run_without_test_views_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny = make(tmp_path, eval=False)
    assert splatmeter("eval", "-m", tiny.folder, "--lpips", "none", "--train-views", 99, "--json") == 0
    shown = capsys.readouterr()
    assert "kept no test views" in shown.err
    assert json.loads(shown.out)["splits"]["train"]["1"]["views"] == TRAIN + TEST
    assert not (tiny.folder / "results.json").exists()


def test_without_weights_the_other_metrics_still_come(
    tiny: TinyRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "empty"))
    monkeypatch.delenv(VARIABLE, raising=False)
    words = ("eval", "-m", tiny.folder, "--lpips-weights", tmp_path / "empty", "--json")
    assert splatmeter(*words) == 0
    shown = capsys.readouterr()
    assert "--lpips-weights" in shown.err and "vgg16-397923af.pth" in shown.err
    assert "ssim" in json.loads(shown.out)["splits"]["test"]["1"]["means"]


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("--scales", "1,x"), 64, "--scales"),
        (("--scales", "0"), 64, "--scales"),
        (("--scales", "64"), 64, "leaves nothing"),
        (("--iteration", "8"), 66, "there are: 7, 30"),
        (("-s", "/nowhere/at/all"), 66, "/nowhere/at/all"),
        (("--lpips", "resnet"), 64, "resnet"),
        (("-k", "-1"), 64, "--kernel-size"),
    ],
)
def test_mistakes_get_one_sentence(
    tiny: TinyRun, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, expected: str
) -> None:
    assert (
        splatmeter("eval", "-m", tiny.folder, *(() if "--lpips" in words else ("--lpips", "none")), *words)
        == code
    )
    complaint = capsys.readouterr().err
    assert expected in complaint and complaint.count("\n") == 1


def test_damaged_settings_and_results_are_named(tiny: TinyRun, capsys: pytest.CaptureFixture[str]) -> None:
    (tiny.folder / "per_view.json").write_text("[")
    assert splatmeter("eval", "-m", tiny.folder, "--lpips", "none") == 65
    assert "per_view.json" in capsys.readouterr().err
    (tiny.folder / "config.json").write_text("{")
    assert splatmeter("eval", "-m", tiny.folder, "--lpips", "none") == 65
    assert "settings of the run" in capsys.readouterr().err


def test_broken_gaussians_are_left_out_and_counted(tiny: TinyRun, capsys: pytest.CaptureFixture[str]) -> None:
    content = bytearray(tiny.ply.read_bytes())
    begin = content.index(b"end_header\n") + len(b"end_header\n")
    content[begin : begin + 4] = np.float32(np.nan).tobytes()
    tiny.ply.write_bytes(bytes(content))
    assert splatmeter("eval", "-m", tiny.folder, "--lpips", "none", "--json") == 0
    shown = capsys.readouterr()
    assert "1 Gaussians" in shown.err and json.loads(shown.out)["nonfinite"] == 1


def test_levels_of_a_multi_scale_scene_are_averaged_apart(original: TinyRun) -> None:
    from splatmeter.cli.eval import _of_scale, text
    from splatmeter.evaluate.protocol import Report
    from splatmeter.scene.scene import SceneOptions, View, load_scene

    base = load_scene(SceneOptions(original.scene, eval=True)).test[0]
    views = [View(f"{level}.png", base.camera, base.photo, level % 2) for level in range(4)]
    rows = {view.name: {"psnr": 10.0 * k, "ssim": 0.5, "l1": 0.1} for k, view in enumerate(views)}
    found = _of_scale(Report({"psnr": 15.0, "ssim": 0.5, "l1": 0.1}, rows), views)
    assert found["levels"]["0"]["psnr"] == 10 and found["levels"]["1"]["psnr"] == 20
    about = {"model": "m", "step": 1, "gaussians": 1, "kernel_size": 0.1, "compensate": True, "lpips": None}
    about |= {"exposure_protocol": "none", "trained_on_test_views": 0}
    assert "level" in text(about | {"splits": {"test": {"1": found}}})


def test_several_models_at_once_as_the_originals_metrics_script_takes_them(
    tiny: TinyRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(tiny.folder, other)
    words = ("eval", "-m", tiny.folder, other, "--data_device", "cpu", "--eval", "--lpips", "none")
    assert splatmeter(*words, "--json") == 0
    assert [Path(record["model"]).parents[2] for record in json.loads(capsys.readouterr().out)] == [
        tiny.folder,
        other,
    ]
    assert splatmeter(*words) == 0 and capsys.readouterr().out.count("\ntest ") == 2


def test_an_evaluation_says_by_which_protocol_of_exposure_it_judges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make(tmp_path)
    words = ("eval", "-m", run.folder, "--lpips", "none", "--train-views", 0)
    assert splatmeter(*words) == 0
    assert "Exposure protocol: none (" in capsys.readouterr().out
    assert splatmeter(*words, "--exposure-protocol", "left-half", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["exposure_protocol"] == "left-half"
    assert list(json.loads((run.folder / "results.json").read_text())) == ["ours_30", "ours_30_left_half"]
    config = json.loads((run.folder / "config.json").read_text()) | {"exposure_protocol": "left-half"}
    (run.folder / "config.json").write_text(json.dumps(config))
    assert splatmeter(*words) == 0
    assert "Exposure protocol: left-half (" in capsys.readouterr().out


def test_photos_the_run_trained_on_are_not_passed_off_as_held_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    greedy = make(tmp_path, eval=False)
    words = ("eval", "-m", greedy.folder, "--eval", "--lpips", "none", "--train-views", 0)
    assert splatmeter(*words) == 0
    shown = capsys.readouterr()
    assert f"trained on {TEST} of these {TEST} test views" in shown.err
    assert f"NOT HELD OUT: the run trained on {TEST} of the test views." in shown.out
    assert splatmeter(*words, "--json") == 0
    assert json.loads(capsys.readouterr().out)["trained_on_test_views"] == TEST


def test_a_moved_scene_does_not_hide_that_test_views_were_learned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    greedy = make(tmp_path, eval=False)
    moved = greedy.scene.rename(tmp_path / "elsewhere")
    words = ("eval", "-m", greedy.folder, "-s", moved, "--eval", "--lpips", "none", "--train-views", 0)
    assert splatmeter(*words) == 0
    assert "NOT HELD OUT" in capsys.readouterr().out


def test_views_that_were_held_out_raise_no_doubt(tiny: TinyRun, capsys: pytest.CaptureFixture[str]) -> None:
    assert splatmeter("eval", "-m", tiny.folder, "--eval", "--lpips", "none", "--train-views", 0) == 0
    shown = capsys.readouterr()
    assert "NOT HELD OUT" not in shown.out and "Warning" not in shown.err
