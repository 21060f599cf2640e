"""The commands, as a person types them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from scripted_lab import add, carried_out, make_lab, trainer

from splatmeter.cli.lab_text import SessionProgress
from splatmeter.cli.main import main
from splatmeter.lab.record.result import RunResult, RunTiming
from splatmeter.lab.session.session import Beat

STAND_IN = str(Path(__file__).parent / "stand_in.py")
HAND_LOG = Path(__file__).parents[3] / "shared" / "log" / "training-speed-tracking.md"


def lab(folder: Path, *words: str) -> int:
    return main(["lab", "--lab", str(folder), *words])


def test_a_foreign_trainer_goes_through_the_lab_from_init_to_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = (
        sys.executable,
        "-S",
        STAND_IN,
        "original",
        "--steps",
        "200",
        "--seconds",
        "0.0001",
        "--output",
        "{output}",
    )
    init = ("init", "--scene", "", "--trainer", "mip-splatting", "--directory", str(tmp_path), "--start", "0",
            "--iterations", "200", "--evaluate-at", "100", "--blocks", "4")  # fmt: skip
    assert lab(tmp_path, *init, "--", *command) == 0
    assert lab(tmp_path, "phase", "add", "slow", "--note", "my words", "--", "--seconds", "0.002") == 0
    assert lab(tmp_path, "run", "slow", "--no-priming") == 0
    assert lab(tmp_path, "ls", "--runs") == 0
    assert lab(tmp_path, "compare") == 0
    capsys.readouterr()
    assert lab(tmp_path, "compare", "baseline", "slow", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record[0]["ratio"] < 0.9 and record[0]["blocks"] == 4
    assert lab(tmp_path, "log") == 0
    text = (tmp_path / "LOG.md").read_text()
    assert "my words" in text and "4,321 Gaussians" in text
    assert lab(tmp_path, "show", "slow") == 0 and 'note = "my words"' in capsys.readouterr().out


def test_init_recreates_the_users_protocol(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lab(tmp_path, "init", "--scene", "SAMPLES/garden", "--trainer", "mip-splatting") == 0
    text = (tmp_path / "protocol.toml").read_text()
    for line in (
        "resolution = 4",
        "start_iteration = 3000",
        "iterations = 1000",
        "evaluate_at = 3100",
        "tolerance = 0.005",
    ):
        assert line in text
    assert lab(tmp_path, "init", "--scene", "x") == 64
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("speed", "psnr", "code"), [("120", "26", 0), ("100.01", "26", 0), ("80", "26", 1), ("120", "25", 1)]
)
def test_the_gate_speaks_in_exit_codes(tmp_path: Path, speed: str, psnr: str, code: int) -> None:
    made = make_lab(tmp_path)
    add(made, "candidate", "--speed", speed, "--psnr", psnr)
    assert lab(tmp_path, "gate", "candidate") == 2  # planned
    carried_out(made, "ab", ["baseline", "candidate"], trainer(0.001), blocks=6, prime=False)
    assert lab(tmp_path, "gate", "candidate") == code


def test_the_gate_tells_undecided_questionable_and_missing_apart(tmp_path: Path) -> None:
    made = make_lab(tmp_path)
    add(made, "noisy")
    add(made, "other-machine", "--speed", "150", changes=("gaussians",))
    carried_out(made, "ab", ["baseline", "noisy"], trainer(0.1), blocks=4, prime=False)
    assert lab(tmp_path, "gate", "noisy") == 2
    carried_out(made, "ab", ["baseline", "other-machine"], trainer(0.001), blocks=4, prime=False)
    for path in made.sessions.glob("*/blocks/*/*-other-machine/result.json"):
        record = json.loads(path.read_text())
        record["identity"]["machine"] = "elsewhere"
        path.write_text(json.dumps(record))
    assert lab(tmp_path, "gate", "other-machine") == 3
    assert lab(tmp_path, "gate", "baseline") == 66
    assert lab(tmp_path, "gate", "nobody") == 66
    assert lab(tmp_path / "nowhere", "gate", "x") == 66
    assert lab(tmp_path, "gate") == 64
    assert lab(tmp_path, "no-such-command") == 64


def test_a_hand_kept_log_is_imported_and_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "hand.md"
    log.write_text(
        "# Speed\n\n## Results\n\n### Baseline\n- **Speed:** 10.0 it/s\n- Notes: first\n\n"
        "### Phase 1 - Trick\n"
        "- **Speed:** 10.1 it/s (+0.1 it/s, +9%)\n- Code Changes:\n  - a line\n- Notes: second\n"
    )
    assert lab(tmp_path, "init", "--scene", "garden") == 0
    assert lab(tmp_path, "import", str(log)) == 0
    assert lab(tmp_path, "phase", "list") == 0
    assert "phase-1" in capsys.readouterr().out
    assert lab(tmp_path, "audit", str(log)) == 3
    assert "%" in capsys.readouterr().out
    assert lab(tmp_path, "log") == 0
    assert "second" in (tmp_path / "LOG.md").read_text() and "10.1" in (tmp_path / "LOG.md").read_text()
    assert lab(tmp_path, "audit", str(tmp_path / "none.md")) == 66


def test_a_log_that_was_not_understood_is_not_called_clean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strange = tmp_path / "strange.md"
    for text in ("", "Shopping: 3 apples, 12 eggs, 2 loaves, 7 plums, 4 pears, 9 nuts\n"):
        strange.write_text(text)
        assert lab(tmp_path, "audit", str(strange)) == 4
        said = capsys.readouterr().out
        assert "0 understood" in said and "nothing to object to" not in said
    strange.write_text("# Log\n\n- start: 10.0 it/s, 4.0 GB\n- trick: 12.0 it/s (+20 %), 4.0 GB\n")
    assert lab(tmp_path, "audit", str(strange)) == 0
    assert "5 figures read, 5 understood, in 2 phases" in capsys.readouterr().out


@pytest.mark.skipif(
    not HAND_LOG.exists(), reason="../shared is not here: the user's own log was not imported"
)
def test_the_users_own_log_becomes_seven_phases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lab(tmp_path, "init", "--scene", "garden", "--trainer", "mip-splatting") == 0
    assert lab(tmp_path, "import", str(HAND_LOG)) == 0
    assert lab(tmp_path, "log") == 0
    text = (tmp_path / "LOG.md").read_text()
    for figure in ("11.06", "11.12", "11.36", "11.42", "11.40", "26.24", "1,811,372"):
        assert figure in text
    assert "ON HOLD" in text


def test_notes_survive_regeneration(tmp_path: Path) -> None:
    make_lab(tmp_path)
    assert lab(tmp_path, "log") == 0
    path = tmp_path / "LOG.md"
    path.write_text(
        path.read_text().replace("<!-- notes: phase/baseline -->\n", "<!-- notes: phase/baseline -->\nmine\n")
    )
    assert lab(tmp_path, "log") == 0
    assert "mine" in path.read_text()


def test_watch_returns_the_exit_code_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lab(tmp_path, "watch", "--", sys.executable, "-c", "print('hello'); raise SystemExit(7)") == 7
    said = capsys.readouterr()
    assert said.out == "hello\n" and "not observable" in said.err
    assert lab(tmp_path, "watch") == 64


def test_help_is_quick_and_imports_no_numpy() -> None:
    code = (
        "import sys; from splatmeter.cli.main import main\n"
        "try: main(['lab', '--help'])\nexcept SystemExit: pass\n"
        "assert not {'numpy', 'torch', 'scipy', 'psutil'} & set(sys.modules), 'heavy'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_options_the_trainer_does_not_know_are_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(
        "splatmeter._native", reason="the native engine is not built: dry runs were not tried"
    )
    assert lab(tmp_path, "init", "--scene", str(tmp_path), "--start", "0") == 0
    assert lab(tmp_path, "phase", "add", "bad", "--", "--no-such-option", "3") == 0
    assert lab(tmp_path, "run", "bad") == 64
    assert "refuses the options of" in capsys.readouterr().err
    assert lab(tmp_path, "resume") == 66  # it was never begun


def test_the_time_left_comes_from_whole_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("splatmeter.cli.lab_text.time.monotonic", lambda: clock[0])
    stream = io.StringIO()
    progress = SessionProgress(blocks=5, already=1, steps=(0, 100), stream=stream)
    result = RunResult(timing=RunTiming(steps_per_second=11.0))
    for seconds, beat in (
        (90.0, Beat(1, 5, "a\x1b[2J", "running", None, result)),
        (100.0, Beat(1, 5, "", "block done")),
        (150.0, Beat(2, 5, "b", "running", None, result)),
    ):
        clock[0] = seconds
        progress.show(beat)
    assert stream.getvalue() == (
        "block 2/5  a [2J  11.000 it/s\nblock 3/5  b  11.000 it/s  about 4 min 10 s left\n"
    )
