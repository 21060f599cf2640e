"""`splatmeter train` as people and the lab use it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "story"))

from tiny_scene import some_backend, write_tiny_scene

from splatmeter.cli import main, train
from splatmeter.errors import UsageError
from splatmeter.events import Finished, Progress, Saved, Started, from_line
from splatmeter.process_memory import HELD_BYTES_PER_GAUSSIAN


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_scene(tmp_path_factory.mktemp("scene"))


@pytest.fixture(scope="module")
def backend_name() -> str:
    return some_backend().facts.name


def test_the_originals_command_lines_are_understood() -> None:
    words = (
        "-s garden -m out -r 4 -i images_4 -w -k 0.2 --eval --test_iterations 7000 30000 "
        "--save-iterations 100 "
        "--densify_grad_threshold 0.0004 --data_device cuda --ip 127.0.0.1 --port 6009 --convert_SHs_python "
        "--compute_cov3D_python --debug --debug_from -1 --detect_anomaly --quiet --checkpoint_iterations 5 6 "
        "--position_lr_delay_mult 0.01 --start_checkpoint chkpnt7000.pth --load_allres --sample_more_highres"
    )
    chosen = train.parse(words.split())
    assert (chosen.source_path, chosen.model_path, chosen.resolution) == (Path("garden"), Path("out"), 4)
    assert chosen.white_background and chosen.eval and chosen.kernel_size == 0.2 and chosen.quiet
    assert chosen.test_iterations == (7000, 30_000) and chosen.save_iterations == (100,)
    assert chosen.checkpoint_iterations == (5, 6) and chosen.densify_grad_threshold == 0.0004
    assert chosen.start_checkpoint == Path("chkpnt7000.pth") and chosen.images == "images_4"


@pytest.mark.parametrize("words", [["-s", "."], ["-s."], ["--source_path=."], ["--source-path", "./"]])
def test_a_scene_can_be_the_folder_one_is_in(
    words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert train.parse(words).source_path == tmp_path


def test_the_help_teaches_by_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        main.main(["train", "--help"])
    said = capsys.readouterr().out
    assert ending.value.code == 0 and "--max-gaussians" in said
    for line in said.splitlines():
        if line.strip().startswith("splatmeter train -s"):
            train.parse(line.split()[2:])
    assert said.count("splatmeter train -") >= 5


def test_the_defaults_are_the_originals() -> None:
    chosen = train.parse(["-s", "x"])
    assert (chosen.iterations, chosen.kernel_size, chosen.sh_degree) == (30_000, 0.1, 3)
    assert (chosen.densification, chosen.size_prune, chosen.resolution) == ("gof", "none", -1)


def test_evaluations_can_be_switched_off() -> None:
    assert train.parse(["-s", "x", "--test_iterations", "-1"]).test_iterations == (-1,)


def test_unknown_and_unsupported_flags_are_told_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["train", "-s", "x", "--itterations", "5"]) == 64
    assert "itterations" in capsys.readouterr().err
    assert main.main(["train", "-s", "x", "--ray_jitter"]) == 64
    assert capsys.readouterr().err.startswith("splatmeter train: --ray-jitter is not supported")
    assert main.main(["train"]) == 64
    assert "Which scene?" in capsys.readouterr().err
    assert main.main(["train", "-s", "/nowhere/at/all", "--backend", "reference"]) == 66


def test_a_dry_run_prints_configuration_and_memory_and_writes_nothing(
    scene: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        train.run(
            [
                "-s",
                str(scene),
                "-m",
                str(tmp_path / "o"),
                "--eval",
                "--dry-run",
                "--json",
                "--max-gaussians",
                "5000",
            ]
        )
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert told["config"]["max_gaussians"] == 5000 and told["config"]["eval"] is True
    assert told["predicted_memory"]["planned_bytes"] > told["predicted_memory"]["start_bytes"] > 0
    assert len(told["train_images"]) == 6 and len(told["test_images"]) == 2
    assert not (tmp_path / "o").exists()


def test_a_dry_run_is_five_lines_for_a_person(
    scene: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train.run(["-s", str(scene), "-m", str(tmp_path / "o"), "--eval", "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["scene", "photos", "Gaussians", "memory", "run"]
    assert "6 photos to train on, 2 for tests" in lines[0] and "120 at the start" in lines[2]
    assert "are free: it fits" in lines[3] and str(tmp_path / "o") in lines[4]
    assert not (tmp_path / "o").exists()
    with pytest.raises(UsageError, match="--json goes with --dry-run"):
        train.run(["-s", str(scene), "-m", str(tmp_path / "o"), "--json"])


def test_a_dry_run_counts_the_gaussians_of_the_checkpoint(
    scene: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = tmp_path / "chkpnt3000.safetensors"
    with start.open("wb") as file:
        file.truncate(HELD_BYTES_PER_GAUSSIAN * 1_000_000)  # its size is all that counts here
    words = ["-s", str(scene), "-m", str(tmp_path / "o"), "--dry-run", "--start-checkpoint", str(start)]
    assert train.run([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["predicted_memory"]
    assert told["gaussians"] == 1_000_000 and told["start_bytes"] > 900_000_000


def command(scene: Path, folder: Path, backend_name: str, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "splatmeter", "train", "-s", str(scene), "-m", str(folder)),
        *("--backend", backend_name, "--densification", "none", "--events-stdout", "--quiet", *more),
    ]


def test_event_lines_on_standard_output_are_those_in_the_folder(
    scene: Path, tmp_path: Path, backend_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command(scene, tmp_path / "o", backend_name, "--iterations", "12")[4:]
    assert train.run(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == (tmp_path / "o" / "events.jsonl").read_text().splitlines()
    events = [from_line(line) for line in lines]
    assert isinstance(events[0], Started) and isinstance(events[-1], Finished)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to send to a child like this")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_a_checkpoint_and_says_how_to_go_on(
    scene: Path, tmp_path: Path, backend_name: str, number: signal.Signals
) -> None:
    words = command(scene, tmp_path / "o", backend_name, "--iterations", "1000000")
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for line in child.stdout:
        if isinstance(from_line(line), Progress):
            break
    child.send_signal(number)
    rest, complaint = child.communicate(timeout=60)
    assert child.returncode == 128 + number
    assert f"splatmeter train -m {tmp_path / 'o'} --resume" in complaint
    events = [from_line(line) for line in rest.splitlines()]
    saved = next(event for event in events if isinstance(event, Saved))
    last = events[-1]
    assert isinstance(last, Finished) and last.reason == "interrupted" and last.step == saved.step
    resumed = train.parse(["-m", str(tmp_path / "o"), "--resume", "--iterations", str(last.step + 3)])
    assert resumed.source_path == scene and resumed.densification == "none"
    assert resumed.iterations == last.step + 3
    more = ["-m", str(tmp_path / "o"), "--resume", "--iterations", str(last.step + 3)]
    assert train.run([*more, "--backend", backend_name, "--quiet"]) == 0
    assert (tmp_path / "o" / "point_cloud" / f"iteration_{last.step + 3}" / "fused.ply").exists()


@pytest.mark.parametrize("threads", ["0", "-2", "100000"])
def test_impossible_numbers_of_threads_are_refused(
    threads: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["train", "-s", str(tmp_path), "-m", str(tmp_path / "out"), "--threads", threads]) == 64
    assert f"--threads is {threads}" in capsys.readouterr().err


@pytest.mark.parametrize("problem", [MemoryError(), KeyboardInterrupt()])
def test_memory_and_patience_may_end_while_a_command_is_still_loading(
    problem: BaseException, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: str) -> None:
        raise problem

    monkeypatch.setattr("splatmeter.cli.main.importlib.import_module", broken)
    assert main.main(["train"]) in (71, 130)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_resuming_a_folder_without_a_run_asks_for_the_scene(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run to resume"):
        train.parse(["-m", str(tmp_path), "--resume"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--minutes 5 --iterations 7000", "leave out --iterations, or --minutes"),
        ("--seconds 30 --preset fast", "leave out --preset, or --seconds"),
        ("--seconds 30 --minutes 1", "--minutes and --seconds contradict each other"),
        ("--minutes 0", "--minutes is 0, but must be above 0"),
        ("--minutes -2", "--minutes is -2, but must be above 0"),
        ("--seconds -2", "--seconds is -2.0, but must be above 0"),
        ("--plan nowhere.json", "There is no plan nowhere.json"),
        ("--plan x.json --minutes 2", "--minutes and --plan contradict each other"),
    ],
)
def test_a_time_that_makes_no_sense_is_told(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["train", "-s", "x", "-m", "y", *words.split()]) in (64, 66)
    assert said in capsys.readouterr().err


def test_a_time_stands_for_the_fast_settings_which_stretch_with_it() -> None:
    timed, fast = train.parse(["-s", "x", "--minutes", "2"]), train.parse(["-s", "x", "--preset", "fast"])
    assert timed.config().seconds == 120 and timed.densification == fast.densification
    assert timed.progressive == fast.progressive and timed.iterations == fast.iterations


def test_a_timed_run_is_repeated_by_its_plan_alone(scene: Path, tmp_path: Path, backend_name: str) -> None:
    words = ["train", "-s", str(scene), "--quiet", "--backend", backend_name, "--device", "cpu"]
    first, again = tmp_path / "first", tmp_path / "again"
    assert main.main([*words, "-m", str(first), "--eval", "--seed", "3", "--seconds", "2"]) == 0
    assert main.main([*words, "-m", str(again), "--plan", str(first / "plan.json")]) == 0
    models = [next(folder.glob("point_cloud/*/point_cloud.ply")).read_bytes() for folder in (first, again)]
    assert models[0] == models[1]
