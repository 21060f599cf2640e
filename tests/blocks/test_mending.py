"""A folder of blocks that was damaged, moved or asked strange things of comes back, or says what to do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from street import points, write_street
from test_train_blocks import SHORT, STEPS, finished, in_this_process, out, street

from splatmeter.cli.main import main

pytest.importorskip("splatmeter._native", reason="the native module is not built")

__all__ = ["finished", "out", "street"]  # fixtures

MODEL = f"point_cloud/iteration_{STEPS}/point_cloud.ply"
FUSED = f"point_cloud/iteration_{STEPS}/fused.ply"
RESUME = ("train", "-m", "out", "--resume", "--quiet")


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splatmeter.cli.train_blocks.one_after_the_other", in_this_process)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("name", [MODEL, FUSED])
@pytest.mark.parametrize("harm", [Path.unlink, cut])
def test_a_joined_model_that_is_gone_or_cut_off_is_joined_again(
    out: Path, name: str, harm: Callable[[Path], None]
) -> None:
    before = (out / name).read_bytes()
    harm(out / name)
    assert main([*RESUME]) == 0
    assert (out / name).read_bytes() == before


@pytest.mark.parametrize("name", [MODEL, FUSED, "config.json"])
def test_a_finished_block_gets_its_model_back_from_its_checkpoint(out: Path, name: str) -> None:
    block = out / "blocks/1-1"
    models = {file: (block / file).read_bytes() for file in (MODEL, FUSED)}
    cut(block / name) if name != "config.json" else (block / name).unlink()
    assert main([*RESUME]) == 0
    assert {file: (block / file).read_bytes() for file in models} == models
    assert (block / "config.json").is_file()


def test_a_block_that_was_deleted_is_trained_again(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (out / MODEL).read_bytes()
    shutil.rmtree(out / "blocks/1-1")
    assert main([*RESUME]) == 0
    assert (out / MODEL).read_bytes() == before
    assert "what block 1-1 is trained on is written anew" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["block.json", "points3D.ply"])
def test_what_a_block_is_trained_on_is_written_anew_where_it_is_damaged(out: Path, name: str) -> None:
    file = out / "blocks/2-1/scene" / name
    before = file.read_bytes()
    file.write_text("xx")
    assert main([*RESUME]) == 0
    assert file.read_bytes() == before


def test_scene_and_folder_may_move_together_or_apart(
    out: Path, street: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(street, tmp_path / "here")
    moved = tmp_path / "here"
    (out / "joined.json").unlink()
    words = ["train", "-s", str(moved), "-m", "out", *SHORT, "--blocks", "2x1", "--quiet"]
    assert main(words) == 0, "the same scene in another place"
    told = json.loads((out / "blocks/1-1/scene/block.json").read_text())
    assert Path(told["source"]) == moved
    (tmp_path / "there").mkdir()
    for name in ("out", "here"):
        shutil.move(tmp_path / name, tmp_path / "there" / name)
    monkeypatch.chdir(tmp_path / "there")
    Path("out/joined.json").unlink()
    shutil.rmtree("out/blocks/2-1/point_cloud")
    assert main([*RESUME]) == 0, "both, and the way from one to the other is the same"


def test_a_scene_that_has_moved_is_all_that_resuming_needs_to_be_told(out: Path, street: Path) -> None:
    moved = shutil.copytree(street, out.parent / "here")
    before = json.loads((out / "blocks.json").read_text())
    assert main([*RESUME, "-s", str(moved)]) == 0
    after = json.loads((out / "blocks.json").read_text())
    assert after["config"].pop("source_path") == str(moved) != before["config"].pop("source_path")
    own = {"resume", "overwrite"}
    assert {name: value for name, value in after["config"].items() if name not in own} == {
        name: value for name, value in before["config"].items() if name not in own
    }
    assert after["polish"] == before["polish"]


def test_another_scene_is_refused(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write_street(tmp_path / "other", cloud=points(seed=2))
    before = (out / MODEL).read_bytes()
    assert main(["train", "-s", str(other), "-m", "out", *SHORT, "--blocks", "2x1", "--quiet"]) != 0
    assert "the scene has changed since" in capsys.readouterr().err
    assert (out / MODEL).read_bytes() == before


def test_merging_never_writes_over_what_it_joins(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = [str(out / "blocks" / name) for name in ("1-1", "2-1")]
    before = (out / "blocks/1-1" / MODEL).read_bytes()
    for place in ("blocks/1-1", "blocks/2-1/inside"):
        assert main(["merge", *blocks, "-o", str(out / place), "--overwrite"]) != 0
        assert "is to be joined" in capsys.readouterr().err
    assert (out / "blocks/1-1" / MODEL).read_bytes() == before
    Path("file").write_text("")
    assert main(["merge", *blocks, "-o", "file"]) != 0
    assert "is a file" in capsys.readouterr().err


def test_a_block_alone_takes_no_other_options(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = [*RESUME, "--only-block", "1-1"]
    assert main([*alone, "--iterations", "99"]) != 0
    assert f"--iterations was {STEPS} and is now 99" in capsys.readouterr().err
    assert main([*alone, "--polish", "5"]) != 0
    assert "--polish is about the joined model" in capsys.readouterr().err
    assert main([*alone]) == 0


def test_the_first_block_alone_makes_the_plan(
    street: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["train", "-s", str(street), "-m", "out", *SHORT, "--blocks", "2x1", "--quiet"]
    assert main([*words, "--only-block", "2-1"]) == 0
    assert Path("out/blocks/2-1", MODEL).is_file() and not Path("out/blocks/1-1", MODEL).exists()
    assert main([*words, "--only-block", "1-1"]) == 0
    assert not Path("out", MODEL).exists()
    assert main(words) == 0
    assert Path("out", MODEL).read_bytes() == (finished / MODEL).read_bytes()


def test_jobs_that_nobody_asked_for_are_refused(street: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--jobs", "2"], ["--job-minutes", "3"], ["--job-option", "partition=a"]):
        assert main(["train", "-s", str(street), "-m", "x", "--dry-run", *words]) == 64
        assert "belong to --on" in capsys.readouterr().err
