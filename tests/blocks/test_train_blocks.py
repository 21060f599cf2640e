"""`train --blocks` and `merge`: planned, trained, joined; stopped, repeated, and what goes wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from street import write_street

sys.path.insert(0, str(Path(__file__).parents[1] / "story"))

from tiny_scene import write_tiny_scene

from splatmeter.blocks import join as joining
from splatmeter.blocks import plan_folder as divided
from splatmeter.blocks.carrying import BlockCommand, Ended
from splatmeter.blocks.grid import from_record
from splatmeter.blocks.runs import trained
from splatmeter.cli import eval as evaluation
from splatmeter.cli.main import main
from splatmeter.gaussians.ply import read_model
from splatmeter.ops import FILTER_3D, MEANS
from splatmeter.scene.scene import SceneOptions, load_scene

pytest.importorskip("splatmeter._native", reason="the native module is not built")

STEPS = 30
SHORT = (
    *("--eval", "--iterations", str(STEPS), "--densify-from-iter", "5", "--densification-interval", "10"),
    *("--device", "cpu", "--threads", "1", "--quiet"),
)
Train = Callable[..., int]


@pytest.fixture(scope="session")
def street(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_street(tmp_path_factory.mktemp("scene") / "street")


def in_this_process(commands: Sequence[BlockCommand], say: object = None) -> list[Ended]:
    return [Ended(command.name, main(list(command.words))) for command in commands]


@pytest.fixture
def train(street: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Train:
    """The command in an empty folder; blocks are trained by ordinary commands, but not in other processes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("splatmeter.cli.train_blocks.one_after_the_other", in_this_process)
    return lambda *words, source=street: main(["train", "-s", str(source), "-m", "out", *SHORT, *words])


@pytest.fixture(scope="session")
def finished(street: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two blocks, trained and joined, to be copied."""
    place = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setattr("splatmeter.cli.train_blocks.one_after_the_other", in_this_process)
        assert main(["train", "-s", str(street), "-m", "out", *SHORT, "--blocks", "2x1"]) == 0
    return place / "out"


@pytest.fixture
def out(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(finished, tmp_path / "out"))


def model(folder: Path, step: int = STEPS) -> np.ndarray:
    table = read_model(folder / f"point_cloud/iteration_{step}/point_cloud.ply").table
    return np.concatenate([table.geometry, table.harmonics], axis=1)


# ---- the joined model -------------------------------------------------------------------------------------
def test_the_joined_model_is_each_blocks_own_cell(out: Path) -> None:
    grid = from_record(json.loads((out / "blocks.json").read_text())["division"]["grid"])
    joined = model(out)
    for number, name in enumerate(("1-1", "2-1")):
        block = model(out / "blocks" / name)
        own = block[grid.numbers_of(block[:, MEANS]) == number]
        there = joined[grid.numbers_of(joined[:, MEANS]) == number]
        assert 0 < len(own) < len(block)
        np.testing.assert_array_equal(np.delete(own, FILTER_3D, 1), np.delete(there, FILTER_3D, 1))
    record = json.loads((out / "joined.json").read_text())
    assert record["gaussians"] == len(joined) == sum(row["kept"] for row in record["blocks"])


def test_the_filter_is_that_of_all_training_cameras(out: Path, street: Path) -> None:
    """Never coarser than a block's own, which knows fewer cameras, and as the definition says."""
    joined = model(out)
    scene = load_scene(SceneOptions(street, eval=True))
    depths = np.full(len(joined), np.inf)
    for view in scene.train:
        x, y, z = (joined[:, MEANS] @ view.camera.rotation.T + view.camera.translation).T
        across, down = view.camera.fx * x / z + view.camera.cx, view.camera.fy * y / z + view.camera.cy
        wide, high = 0.15 * view.camera.width, 0.15 * view.camera.height
        seen = (z > 0.2) & (across >= -wide) & (across <= view.camera.width + wide)
        seen &= (down >= -high) & (down <= view.camera.height + high)
        depths = np.where(seen, np.minimum(depths, z), depths)
    known = np.isfinite(depths)
    expected = depths[known] * np.sqrt(0.2) / max(view.camera.fx for view in scene.train)
    np.testing.assert_allclose(joined[known, FILTER_3D], expected, rtol=1e-4)


def test_one_block_is_the_run_without_blocks(train: Train) -> None:
    assert train("--blocks", "1x1") == 0
    assert train("-m", "whole") == 0
    joined, whole = model(Path("out")), model(Path("whole"))
    np.testing.assert_array_equal(np.delete(joined, FILTER_3D, 1), np.delete(whole, FILTER_3D, 1))


def test_other_commands_take_it_like_any_model(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "-m", str(out), "--lpips", "none", "--device", "cpu"]) == 0
    said = capsys.readouterr().out
    assert "test" in said and "3 " in said
    assert main(["export", str(out), "-o", str(out / "small.spz")]) == 0
    assert main(["info", str(out)]) == 0


def test_blocks_train_on_their_photos_alone_and_on_no_test_view(out: Path) -> None:
    held = {"s_00.png", "s_08.png", "s_16.png"}
    for name in ("1-1", "2-1"):
        lines = (out / "blocks" / name / "events.jsonl").read_text().splitlines()
        started = json.loads(lines[0])
        assert not held & set(started["train_images"]) and len(started["train_images"]) < 21
        assert "densify_region" in started["config"] and started["config"]["densify_region"]


def test_the_street_is_seen_as_well_as_by_one_run(train: Train) -> None:
    """No holes: with as many steps each, held-out photos must not be much worse."""
    more = ("--iterations", "60", "--densification", "none")
    assert train("--blocks", "2x1", *more) == 0 and train("-m", "whole", *more) == 0
    joined, whole = (
        evaluation.judged(["-m", name, "--lpips", "none", "--device", "cpu"])[0] for name in ("out", "whole")
    )
    quality = [record["splits"]["test"]["1"]["means"]["psnr"] for record in (joined, whole)]
    assert quality[0] > quality[1] - 0.5


# ---- going on ---------------------------------------------------------------------------------------------
def test_finished_the_same_command_does_nothing(train: Train, capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--blocks", "2x1") == 0
    stamps = {path: path.stat().st_mtime_ns for path in Path("out").rglob("*.ply")}
    capsys.readouterr()
    assert train("--blocks", "2x1") == 0 and main(["train", "-m", "out", "--resume"]) == 0
    assert "joined already" in capsys.readouterr().err
    assert stamps == {path: path.stat().st_mtime_ns for path in Path("out").rglob("*.ply")}


def test_a_block_that_was_lost_is_repeated_and_joined_again(
    out: Path, train: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    before = model(out)
    shutil.rmtree(out / "blocks/2-1/point_cloud")
    (out / "blocks/2-1/events.jsonl").unlink()
    for path in (out / "blocks/2-1").glob("chkpnt*"):
        path.unlink()
    capsys.readouterr()
    assert train("--blocks", "2x1") == 0
    assert "block 2-1: not begun" in capsys.readouterr().err
    np.testing.assert_array_equal(before, model(out))


def test_a_broken_checkpoint_costs_its_block_and_nothing_else(
    out: Path, train: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(out / "blocks/1-1/point_cloud")
    (found,) = (out / "blocks/1-1").glob("chkpnt*")
    found.write_bytes(found.read_bytes()[:1000])
    capsys.readouterr()
    assert train("--blocks", "2x1") == 0
    said = capsys.readouterr().err
    assert "begins anew" in said and "No other one" not in said, "advice for people is not for us"


def test_a_block_killed_after_its_model_was_whole_counts_as_finished(out: Path) -> None:
    events = out / "blocks/1-1/events.jsonl"
    events.write_text("".join(line + "\n" for line in events.read_text().splitlines()[:-1]))
    assert trained(out / "blocks/1-1") is not None
    (out / f"blocks/1-1/point_cloud/iteration_{STEPS}/fused.ply").unlink()
    assert trained(out / "blocks/1-1") is None


def test_a_join_that_was_killed_is_done_again(out: Path, train: Train) -> None:
    before = model(out)
    (out / "joined.json").unlink()
    (out / f"point_cloud/iteration_{STEPS}/fused.ply").unlink()
    (out / joining.WORK).mkdir()
    (out / joining.WORK / "geometry").write_bytes(b"half")
    assert train("--blocks", "2x1") == 0
    np.testing.assert_array_equal(before, model(out))
    assert (out / f"point_cloud/iteration_{STEPS}/fused.ply").is_file() and not (out / joining.WORK).exists()


def test_a_failed_block_is_told_and_nothing_is_joined(
    train: Train, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(commands: Sequence[BlockCommand], say: object) -> list[Ended]:
        done = in_this_process(commands[:1])
        return [*done, Ended(commands[1].name, -9)]

    monkeypatch.setattr("splatmeter.cli.train_blocks.one_after_the_other", failing)
    assert train("--blocks", "2x1") == 1
    said = capsys.readouterr().err
    assert "Block missing: 2-1 (its process ended with code -9)" in said
    assert "splatmeter train -m out --resume" in said
    assert not Path("out/joined.json").exists()
    monkeypatch.setattr("splatmeter.cli.train_blocks.one_after_the_other", in_this_process)
    assert main(["train", "-m", "out", "--resume", "--device", "cpu", "--quiet"]) == 0
    assert Path("out/joined.json").is_file()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--blocks", "1x2"), "--blocks was 2x1 and is now 1x2"),
        (("--blocks", "2x1", "--sh-degree", "1"), "--sh-degree was 3 and is now 1"),
        (("--blocks", "2x1", "--memory", "2G"), "--memory was not given and is now 2G"),
        (("--blocks", "2x1", "-w"), "--white-background was off and is now on"),
    ],
)
def test_other_options_than_before_are_refused_with_the_difference(
    out: Path, train: Train, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], told: str
) -> None:
    assert train(*words) == 73
    assert told in capsys.readouterr().err


def test_options_that_change_no_gaussian_may_change(out: Path, train: Train) -> None:
    assert train("--blocks", "2x1", "--checkpoint-minutes", "1", "--threads", "2") == 0
    assert json.loads((out / "blocks.json").read_text())["config"]["checkpoint_minutes"] == 1


def test_a_scene_that_has_changed_is_refused(
    street: Path, train: Train, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(street, tmp_path / "mine")
    assert train("--blocks", "2x1", source=tmp_path / "mine") == 0
    path = tmp_path / "mine/sparse/0/points3D.bin"
    data = bytearray(path.read_bytes())
    data[8 + 8 + 6] ^= 1
    path.write_bytes(bytes(data))
    assert train("--blocks", "2x1", source=tmp_path / "mine") == 73
    assert "the scene has changed since" in capsys.readouterr().err


def test_overwrite_begins_anew(out: Path, train: Train) -> None:
    assert train("--blocks", "1x2", "--overwrite") == 0
    assert sorted(path.name for path in (out / "blocks").iterdir() if path.is_dir()) == ["1-1", "1-2"]


def test_what_was_joined_goes_with_its_blocks(
    out: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an old model would be taken for that of blocks which are only being trained."""
    monkeypatch.setattr("splatmeter.cli.train_blocks.one_after_the_other", lambda commands, say: [])
    assert train("--blocks", "1x2", "--overwrite") == 1
    assert not (out / "point_cloud").exists() and not (out / "joined.json").exists()


# ---- what goes wrong --------------------------------------------------------------------------------------
def test_an_ordinary_run_and_blocks_do_not_mix(
    out: Path, train: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train() == 73 and "holds a scene in blocks" in capsys.readouterr().err
    assert train("-m", "plain") == 0
    assert train("-m", "plain", "--blocks", "2x1", "--overwrite") == 73
    assert "a run that is not in blocks" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--blocks", "7x9"), 65, "Use fewer blocks, such as 6x9 or 7x8"),
        (("--blocks", "two"), 64, "--blocks two is no grid"),
        (
            ("--blocks", "2x1", "--start-checkpoint", "x.safetensors"),
            64,
            "--start-checkpoint is for runs without",
        ),
        (("--blocks", "2x1", "--densify-region", "1,0,0,0"), 64, "--densify-region is for runs without"),
        (("--only-block", "1-1"), 64, "--only-block trains a block of a plan"),
        (("--blocks", "2x1", "--memory", "1M"), 71, "Block 1-1: --memory allows 1.0 MiB"),
        (("--blocks", "2x1", "--json"), 64, "--json goes with --dry-run"),
    ],
)
def test_what_makes_no_sense_is_told_before_anything_is_written(
    train: Train, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, told: str
) -> None:
    assert train(*words) == code
    assert told in capsys.readouterr().err
    assert not Path("out").exists()


def test_a_dry_run_tells_the_plan_and_leaves_nothing(
    train: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("--blocks", "2x1", "--dry-run") == 0
    said = capsys.readouterr().out
    assert "21 photos to train on, 3 for tests" in said and "memory" in said and "2-1" in said
    assert train("--blocks", "2x1", "--dry-run", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert [row["block"] for row in record["blocks"]] == ["1-1", "2-1"]
    assert not Path("out").exists()


def test_no_such_block(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "-m", str(out), "--resume", "--only-block", "9-9"]) == 66
    assert "There is no block 9-9; the plan has 1-1, 2-1." in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["{", "[]", '{"blocks_option": "2x1"}'])
def test_a_damaged_plan_is_told(
    out: Path, train: Train, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    (out / "blocks.json").write_text(damage)
    assert train("--blocks", "2x1") == 65
    assert "blocks.json cannot be read" in capsys.readouterr().err


def test_a_time_is_shared_out(train: Train, street: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "-s", str(street), "-m", "out", "--eval", "--seconds", "4", "--blocks", "2x1"]
    assert main([*words, "--dry-run"]) == 0
    assert "2.0 s each" in capsys.readouterr().out
    assert main([*words, "--device", "cpu", "--quiet"]) == 0
    for name in ("1-1", "2-1"):
        assert json.loads((Path("out/blocks") / name / "config.json").read_text())["seconds"] == 2
    assert Path("out/joined.json").is_file()


def test_relocation_gets_its_share_of_the_budget(train: Train) -> None:
    assert train("--blocks", "2x1", "--densification", "mcmc", "--max-gaussians", "300") == 0
    plan = divided.read(Path("out"))
    for block in plan.blocks:
        assert block.max_gaussians is not None and 150 < block.max_gaussians < 150 * 1.5 + block.stand_ins


def test_masks_and_exposures_go_along(train: Train, street: Path, tmp_path: Path) -> None:
    from PIL import Image

    mine = Path(shutil.copytree(street, tmp_path / "mine"))
    (mine / "masks").mkdir()
    for photo in (mine / "images").iterdir():
        Image.fromarray(np.full((24, 32), 255, np.uint8)).save(mine / "masks" / photo.name)
    assert train("--blocks", "2x1", "--exposure", "affine", source=mine) == 0
    scene = load_scene(SceneOptions(Path("out/blocks/1-1/scene"), eval=True))
    assert all(view.photo.mask is not None for view in scene.train)


def test_a_rendered_scene_that_all_photos_look_into(
    train: Train, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = write_tiny_scene(tmp_path / "tiny", train=8, points=200)
    assert train("--blocks", "2x2", "--iterations", "3", source=tiny) == 0
    assert len(list(Path("out/blocks").glob("*/config.json"))) == 4
    (tiny / "points3d.ply").unlink()  # then points are random ones
    assert train("-m", "other", "--blocks", "2x2", "--dry-run", source=tiny) == 0
    assert "100.0 k points" in capsys.readouterr().out


# ---- polish -----------------------------------------------------------------------------------------------
def test_a_joined_model_is_polished_once_and_stays_an_ordinary_run(
    out: Path, train: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("--blocks", "2x1", "--polish", "7") == 0
    joined, polished = model(out), model(out, STEPS + 7)
    assert joined.shape == polished.shape and not np.array_equal(joined, polished)
    assert main(["train", "-m", "out", "--resume", "--device", "cpu", "--quiet"]) == 0
    assert "polished already, to step 37" in capsys.readouterr().err
    assert main(["eval", "-m", "out", "--lpips", "none", "--device", "cpu"]) == 0
    assert "iteration_37" in capsys.readouterr().out


def test_a_polish_that_was_stopped_goes_on(out: Path, train: Train) -> None:
    assert train("--blocks", "2x1", "--polish", "6") == 0
    whole = model(out, STEPS + 6)
    shutil.rmtree(out / f"point_cloud/iteration_{STEPS + 6}")
    for path in out.glob("chkpnt*"):
        path.unlink()
    assert train("--blocks", "2x1", "--polish", "6") == 0
    np.testing.assert_array_equal(whole, model(out, STEPS + 6))


def test_what_does_not_fit_is_not_polished(
    out: Path, train: Train, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("splatmeter.process_memory.available_bytes", lambda: 2**20)
    assert train("--blocks", "2x1", "--polish", "6") == 0
    assert "Not polished" in capsys.readouterr().err
    assert not (out / f"point_cloud/iteration_{STEPS + 6}").exists()


def test_a_polish_without_blocks_makes_no_sense(train: Train, capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--polish", "5") == 64
    assert "--polish goes with --blocks" in capsys.readouterr().err


# ---- merge ------------------------------------------------------------------------------------------------
def test_blocks_trained_elsewhere_are_merged_to_the_same_model(out: Path, tmp_path: Path) -> None:
    for name in ("1-1", "2-1"):
        shutil.move(out / "blocks" / name, tmp_path / f"node {name}")
    assert main(["merge", "node 2-1", "node 1-1", "-o", "joined"]) == 0
    np.testing.assert_array_equal(model(out), model(Path("joined")))
    assert main(["eval", "-m", "joined", "--lpips", "none", "--device", "cpu"]) == 0


def test_the_whole_scene_may_have_moved(
    out: Path, street: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(street, tmp_path / "elsewhere")
    for name in ("1-1", "2-1"):
        path = out / "blocks" / name / "scene/block.json"
        gone = json.loads(path.read_text()) | {"source": "/not/there", "source_from_here": "../gone"}
        path.write_text(json.dumps(gone))
    runs = ["out/blocks/1-1", "out/blocks/2-1"]
    assert main(["merge", *runs, "-o", "joined"]) == 66
    assert "is a part of the scene /not/there, which is not there" in capsys.readouterr().err
    assert main(["merge", *runs, "-o", "joined", "-s", "elsewhere"]) == 0


def another_division(street: Path) -> None:
    words = ["train", "-s", str(street), "-m", "other", *SHORT, "--blocks", "1x2"]
    assert main(words) == 0


def test_blocks_of_two_divisions_are_not_merged(
    out: Path, street: Path, train: Train, capsys: pytest.CaptureFixture[str]
) -> None:
    another_division(street)
    assert main(["merge", "out/blocks/1-1", "other/blocks/1-2", "-o", "joined"]) == 65
    assert "other/blocks/1-2 does not belong to out/blocks/1-1" in capsys.readouterr().err


def test_what_merge_refuses(out: Path, train: Train, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree("out/blocks/1-1", "copy")
    Path("empty").mkdir()
    assert train("-m", "plain") == 0
    one, two = "out/blocks/1-1", "out/blocks/2-1"
    for runs, code, told in (
        ([], 64, ""),
        ([one], 66, "Block 2-1 is missing of 2"),
        ([one, "copy", two], 65, "Block 1-1 is there twice: out/blocks/1-1 and copy"),
        ([one, one, two], 65, "out/blocks/1-1 is named twice"),
        (["plain", two], 65, "plain is not the run of a block"),
        (["empty", two], 65, "empty is not the run of a block"),
        (["nothing", two], 66, "There is no folder nothing"),
    ):
        assert main(["merge", *runs, "-o", "joined"]) == code, runs
        assert told in capsys.readouterr().err
    assert not Path("joined").exists()
    assert main(["merge", one, two, "-o", "plain"]) == 73
    assert "plain already holds a model" in capsys.readouterr().err


def test_merge_tells_an_unfinished_block_and_other_settings(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = ["out/blocks/1-1", "out/blocks/2-1"]
    config = Path(runs[1]) / "config.json"
    kept = config.read_text()
    config.write_text(json.dumps(json.loads(kept) | {"kernel_size": 0.3}))
    assert main(["merge", *runs, "-o", "joined"]) == 65
    assert "--kernel-size is 0.1 in block 1-1 and 0.3 in block 2-1" in capsys.readouterr().err
    config.write_text(kept)
    shutil.rmtree(Path(runs[1]) / "point_cloud")
    assert main(["merge", *runs, "-o", "joined"]) == 66
    assert f"Block 2-1 in out/blocks/2-1 is not finished (step {STEPS})" in capsys.readouterr().err


# ---- in processes of their own ----------------------------------------------------------------------------
def test_killed_at_any_moment_it_goes_on_and_leaves_no_process_behind(street: Path, tmp_path: Path) -> None:
    """kill -9 of the command; its block saves by itself, and the same command goes on from that step."""
    words = [sys.executable, "-m", "splatmeter", "train", "-s", str(street), "-m", str(tmp_path / "out")]
    words += [*SHORT, "--blocks", "2x1", "--iterations", "3000", "--densification", "none"]
    words += ["--progress-interval", "1"]
    events = tmp_path / "out/blocks/1-1/events.jsonl"
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as first:
        while not (events.is_file() and events.read_bytes().count(b"progress") > 20):
            assert first.poll() is None
            time.sleep(0.02)
        first.send_signal(signal.SIGKILL)
    lock = tmp_path / "out/blocks/1-1/.splatmeter.lock"
    while lock.read_text():  # the block ends after its step, with a checkpoint
        time.sleep(0.02)
    reached = json.loads(events.read_text().splitlines()[-1])
    assert reached["event"] == "finished" and reached["reason"] == "interrupted"
    second = subprocess.run(words, capture_output=True, text=True, env=os.environ, check=False)
    assert second.returncode == 0, second.stderr
    assert f"block 1-1: at step {reached['step']}" in second.stderr
    assert (tmp_path / "out/joined.json").is_file()
    starts = [json.loads(line) for line in events.read_text().splitlines() if '"started"' in line[:30]]
    assert [start["step"] for start in starts] == [0, reached["step"]]


def test_a_signal_is_passed_on_once_and_the_way_on_is_told(street: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "splatmeter", "train", "-s", str(street), "-m", str(tmp_path / "out")]
    words += [*SHORT, "--blocks", "2x1", "--iterations", "100000", "--progress-interval", "1"]
    events = tmp_path / "out/blocks/1-1/events.jsonl"
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as command:
        while not (events.is_file() and events.read_bytes().count(b"progress") > 5):
            assert command.poll() is None
            time.sleep(0.02)
        command.send_signal(signal.SIGTERM)
        _, said = command.communicate()
    assert command.returncode == 128 + signal.SIGTERM
    assert "--resume" in said.splitlines()[-1] and "blocks/1-1" not in said.splitlines()[-1]
    assert (
        list((tmp_path / "out/blocks/1-1").glob("chkpnt*"))
        and not (tmp_path / "out/blocks/2-1/config.json").exists()
    )
