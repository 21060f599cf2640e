"""`splatmeter make`: every step an ordinary command, going on where it was, and never a silent reuse."""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "capture"))
sys.path.insert(0, str(Path(__file__).parents[1] / "story"))

from capture_stand_in import InProcess, folder_of_photos
from tiny_scene import write_tiny_scene

from splatmeter import shell
from splatmeter.capture.from_photos import from_photos
from splatmeter.cli import eval as evaluation
from splatmeter.cli import export, train
from splatmeter.cli.main import main
from splatmeter.cli.make import is_scene
from splatmeter.train import presets

pytest.importorskip("splatmeter._native", reason="the native module is not built")

STEPS = 12
TINY = {
    "iterations": STEPS,
    "test_iterations": (STEPS,),
    "save_iterations": (STEPS,),
    "checkpoint_iterations": (5,),
    "densification": "none",
    "sh_interval": 4,
}
Make = Callable[..., int]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """The command in an empty folder, with an engine that pretends and a preset of a few steps."""
    monkeypatch.setitem(presets.PRESETS, "fast", TINY)
    pretended = functools.partial(from_photos, child=InProcess())
    monkeypatch.setattr("splatmeter.cli.scene_photos.from_photos", pretended)
    monkeypatch.chdir(tmp_path)
    return lambda *words: main(["make", *map(str, words), "--device", "cpu", "--threads", "1"])


def commands(shown: str) -> list[list[str]]:
    """What was printed as a command, as a shell would take it apart."""
    lines = [line.strip() for line in shown.splitlines()]
    return [shlex.split(line) for line in lines if line.startswith("splatmeter ")]


def test_photos_become_a_page_and_a_second_start_does_nothing(
    make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    folder_of_photos(Path("my photos"), 9)
    assert make("my photos", "-o", "my garden") == 0
    shown = capsys.readouterr().out
    assert [words[1] for words in commands(shown)] == ["scene", "train", "eval", "export"]
    assert "--eval" in commands(shown)[1]
    assert "9 of 9 photos have found their place" in shown
    assert "dB on 2 photos that training never saw" in shown
    assert f"{STEPS} steps, 20 Gaussians" in shown
    page = Path("my garden/scene.html")
    assert page.absolute().as_uri() in shown and "my garden" in page.read_text("utf-8")
    assert Path("my garden/contact_sheet.png").stat().st_size > 1000
    before = {path: path.stat().st_mtime_ns for path in Path("my garden").rglob("*")}
    assert make("my photos", "-o", "my garden") == 0
    again = capsys.readouterr().out
    assert again.count("done already") == 4 and not commands(again)
    assert "dB on 2 photos that training never saw" in again
    assert {path: path.stat().st_mtime_ns for path in Path("my garden").rglob("*")} == before


def test_the_printed_commands_do_the_same_by_hand(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    """Dry, they change nothing; then one by one, and `make` finds everything done but the judging."""
    folder_of_photos(Path("it's a $HOME"), 9)
    assert make("it's a $HOME", "-o", "out", "--dry-run") == 0
    planned = commands(capsys.readouterr().out)
    assert not Path("out").exists() and len(planned) == 4
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "run", lambda words: 130)
        assert make("it's a $HOME", "-o", "out") == 130
    assert "Go on with: splatmeter make 'it'\"'\"'s a $HOME' -o out" in capsys.readouterr().err
    for words in planned[1:]:
        assert main(words[1:]) == 0
    capsys.readouterr()
    assert make("it's a $HOME", "-o", "out") == 0
    assert [words[1] for words in commands(capsys.readouterr().out)] == ["eval"]


def test_too_few_photos_are_all_trained_on(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    folder_of_photos(Path("photos"), 4)
    assert make("photos", "-o", "out") == 0
    shown = capsys.readouterr().out
    assert "--eval" not in commands(shown)[1]
    assert "dB on 4 photos of the training itself: there were too few to hold any out" in shown


def test_a_scene_needs_no_places(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_scene(Path("scene"))
    assert make("scene", "-o", "out") == 0
    shown = capsys.readouterr().out
    assert [words[1] for words in commands(shown)] == ["train", "eval", "export"]
    assert "on 2 photos that training never saw" in shown
    assert make("scene", "-o", "other", "--max-size", "800") == 64
    assert "is a scene already, so --max-size has no meaning" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda: folder_of_photos(Path("photos"), 10), "of other photos, or the photos have changed"),
        (lambda: ["--max-size", "400"], "--max-size was 1600 and is now 400"),
        (lambda: ["--single-camera"], "--single-camera was off and is now on"),
    ],
)
def test_other_photos_or_options_are_no_silent_reuse(
    make: Make, change: Callable[[], object], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder_of_photos(Path("photos"), 9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "run", lambda words: 130)
        assert make("photos", "-o", "out") == 130
    changed = change()
    more = changed if isinstance(changed, list) else []
    assert make("photos", "-o", "out", *more) == 73
    shown = capsys.readouterr().err.splitlines()[-1]
    assert words in shown and "Choose another folder with -o" in shown


def test_before_anything_is_finished_options_may_change(
    make: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder_of_photos(Path("photos"), 4)
    with pytest.MonkeyPatch.context() as patch:
        stopped = functools.partial(from_photos, child=InProcess(stop_in="matching"))
        patch.setattr("splatmeter.cli.scene_photos.from_photos", stopped)
        assert make("photos", "-o", "out") == 130
    assert "Go on with: splatmeter make photos -o out" in capsys.readouterr().err
    assert make("photos", "-o", "out", "--single-camera") == 0
    assert "Beginning anew: --single-camera was off and is now on." in capsys.readouterr().out


def test_what_is_not_whole_is_made_again(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    """A training without a checkpoint, with one, with a broken one; a page older than its model."""
    folder_of_photos(Path("photos"), 9)
    assert make("photos", "-o", "out") == 0
    fused = Path(f"out/model/point_cloud/iteration_{STEPS}/fused.ply")
    kept, last = Path("out/model/chkpnt5.safetensors"), Path(f"out/model/chkpnt{STEPS}.safety.safetensors")
    for change, words, said in (
        (last.unlink, "--resume", "Finished"),
        (lambda: (last.unlink(), kept.write_bytes(kept.read_bytes()[:1000])), "--resume", "begins anew."),
        (lambda: (last.unlink(), kept.unlink()), "--overwrite", "Finished"),
        (lambda: None, "--overwrite", "Finished"),
    ):
        fused.unlink()
        change()
        capsys.readouterr()
        assert make("photos", "-o", "out") == 0
        shown = capsys.readouterr()
        again = commands(shown.out)
        assert [words[1] for words in again] == ["train", "eval", "export"]
        assert words in again[0] and said in shown.err
    os.utime("out/scene.html", (1, 1))
    assert make("photos", "-o", "out") == 0
    assert [words[1] for words in commands(capsys.readouterr().out)] == ["export"]


def test_a_scene_made_anew_is_trained_anew(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    folder_of_photos(Path("photos"), 9)
    assert make("photos", "-o", "out") == 0
    shutil.rmtree("out/scene")
    capsys.readouterr()
    assert make("photos", "-o", "out") == 0
    again = commands(capsys.readouterr().out)
    assert [words[1] for words in again] == ["scene", "train", "eval", "export"]
    assert "--overwrite" in again[1]


@pytest.mark.parametrize(
    ("prepare", "code", "words"),
    [
        (lambda: Path("out").write_text("mine"), 73, "out exists and was not made by this command"),
        (lambda: (Path("out").mkdir(), Path("out/a").touch()), 73, "was not made by this command"),
        (lambda: (Path("out").mkdir(), Path("out/make.json").write_text("{")), 73, "cannot be read"),
        (lambda: (Path("out").mkdir(), Path("out/make.json").write_text("[]")), 73, "cannot be read"),
        (lambda: None, 65, "No scene could be made"),
    ],
)
def test_what_is_not_ours_stays_and_a_failure_leaves_nothing(
    make: Make,
    prepare: Callable[[], object],
    code: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lost = functools.partial(from_photos, child=InProcess(lost=[1, 2, 3, 4]))
    monkeypatch.setattr("splatmeter.cli.scene_photos.from_photos", lost)
    folder_of_photos(Path("photos"), 4)
    prepare()
    before = sorted(Path().rglob("*"))
    assert make("photos", "-o", "out") == code
    assert words in capsys.readouterr().err
    assert sorted(Path().rglob("*")) == before


def test_half_a_record_is_no_obstacle(make: Make) -> None:
    """Killed while it wrote its first file."""
    folder_of_photos(Path("photos"), 4)
    Path("out").mkdir()
    Path("out/make.json.new").write_text('{"made')
    assert make("photos", "-o", "out") == 0


def test_ctrl_c_in_any_step_tells_how_to_go_on(
    make: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder_of_photos(Path("photos"), 4)

    def interrupted(words: object) -> int:
        raise KeyboardInterrupt

    for module, name in ((train, "run"), (evaluation, "judged"), (export, "run")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, name, interrupted)
            assert make("photos", "-o", "out") == 130
        shown = capsys.readouterr().err.splitlines()[-1]
        assert shown.startswith("splatmeter make: stopped. Go on with: splatmeter make photos -o out")
        assert not list(Path().glob(".*"))
    assert make("photos", "-o", "out") == 0


def test_a_training_that_stopped_goes_on_from_its_checkpoint(
    make: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder_of_photos(Path("photos"), 9)
    whole = TINY | {"iterations": 6000, "test_iterations": (6000,), "save_iterations": (6000,)}
    monkeypatch.setitem(presets.PRESETS, "fast", whole)
    first = train.follow

    def stopped(*given: object) -> int:
        signal.setitimer(signal.ITIMER_REAL, 0.4)
        return first(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(train, "follow", stopped)
    before = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    try:
        assert make("photos", "-o", "out") == 130
    finally:
        signal.signal(signal.SIGALRM, before)
    assert list(Path("out/model").glob("chkpnt*"))
    monkeypatch.setattr(train, "follow", first)
    capsys.readouterr()
    assert make("photos", "-o", "out") == 0
    assert "--resume" in commands(capsys.readouterr().out)[0]


@pytest.mark.parametrize("name", ["plain", "a b", "it's", '$HOME `x` "y"', "line\nfeed", "\x1b[31m", "写真"])
def test_a_printed_command_is_what_a_shell_reads(name: str) -> None:
    line = shell.command_text(["make", name])
    assert "\n" not in line and "\x1b" not in line
    said = subprocess.run(["bash", "-c", f"printf '%s|' {line}"], capture_output=True, check=True).stdout
    assert os.fsdecode(said) == f"splatmeter|make|{name}|"


def test_bytes_that_are_no_text_can_be_printed_and_pasted() -> None:
    line = shell.command_text([os.fsdecode(b"caf\xe9")])
    line.encode("utf-8")
    said = subprocess.run(["bash", "-c", f"printf %s {line}"], capture_output=True, check=True).stdout
    assert said == b"splatmetercaf\xe9"


DRIVER = """
import functools, sys
sys.path[:0] = {paths!r}
from capture_stand_in import InProcess
from splatmeter.capture.from_photos import from_photos
from splatmeter.cli import scene_photos
from splatmeter.cli.main import main
from splatmeter.cli.make import is_scene
from splatmeter.train import presets
presets.PRESETS["fast"] = {preset!r}
scene_photos.from_photos = functools.partial(from_photos, child=InProcess())
sys.exit(main(["make", "photos", "-o", "out", "--device", "cpu"]))
"""


@pytest.mark.slow
def test_killed_anywhere_the_next_start_copes(tmp_path: Path) -> None:
    """Later and later, until one start comes through; the result is that of a start nobody disturbed."""
    folder_of_photos(tmp_path / "photos", 9)
    preset = TINY | {"iterations": 300, "test_iterations": (300,), "save_iterations": (300,)}
    code = DRIVER.format(paths=[str(Path(__file__).parents[1] / "capture")], preset=preset)

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.DEVNULL)

    patience, killed = 0.3, 0
    while True:
        child = start()
        try:
            assert child.wait(patience) == 0
            break
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
            killed, patience = killed + 1, patience + 0.15
        time.sleep(0.05)
    assert killed > 3
    record = json.loads((tmp_path / "out" / "make.json").read_text("utf-8"))
    assert record["judged"]["views"] == 2 and (tmp_path / "out" / "scene.html").stat().st_size > 10_000
    (tmp_path / "out").rename(tmp_path / "disturbed")
    assert start().wait() == 0
    models = [next((tmp_path / name).rglob("fused.ply")).read_bytes() for name in ("out", "disturbed")]
    assert models[0] == models[1]


@pytest.mark.parametrize("name", ["transforms_train.json", "transforms.json"])
def test_a_folder_with_poses_is_a_scene_and_not_photos(tmp_path: Path, name: str) -> None:
    assert not is_scene(tmp_path)
    (tmp_path / name).write_text("{}")
    assert is_scene(tmp_path)
