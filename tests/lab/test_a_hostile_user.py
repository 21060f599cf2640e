"""Ways to get a wrong *faster*, each played to its end with a trainer that cheats. None of them may work, and
each verdict must say why.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from splatmeter.cli.main import main
from splatmeter.lab import code_identity
from splatmeter.lab.json_files import read_json
from splatmeter.lab.judgement.verdicts import judged, phase_verdict
from splatmeter.lab.plan.phases import Phases
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.samples.verdict_kinds import Verdict, VerdictKind
from splatmeter.lab.session import session_plan as plans

CHEAT = Path(__file__).parent / "cheat.py"
FASTER = ("--seconds", "0.0005")


@pytest.fixture(autouse=True)
def nothing_is_installed_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking through all installed packages before every run would take most of these tests' time."""
    monkeypatch.setattr(code_identity, "_installed", lambda paths: "")


def lab(folder: Path, *words: str) -> int:
    return main(["lab", "--lab", str(folder), *words])


def made(folder: Path, *protocol: str) -> Lab:
    """A lab whose baseline is a small repository of its own."""
    program = folder / "trainer"
    program.mkdir(parents=True)
    shutil.copy(CHEAT, program / "train.py")
    command = (sys.executable, "-S", "train.py", "--output", "{output}", "--steps", "200")
    init = ("init", "--scene", "", "--trainer", "mip-splatting", "--directory", str(program), "--start", "0")
    sizes = ("--iterations", "200", "--evaluate-at", "100", "--blocks", "4")
    assert lab(folder, *init, *sizes, "--", *command) == 0
    path = folder / "protocol.toml"
    text = path.read_text().replace("warm_up = 0", "warm_up = 20").replace("silence = 600.0", "silence = 2.0")
    path.write_text(text)
    return Lab(folder)


def measured(folder: Path, name: str, *options: str, changes: tuple[str, ...] = ()) -> Verdict:
    declared = [word for change in changes for word in ("--change", change)]
    assert lab(folder, "phase", "add", name, *declared, "--", *options) == 0
    assert lab(folder, "run", name, "--no-priming") == 0
    verdict = phase_verdict(Lab(folder), Lab(folder).phases.get(name))
    assert verdict is not None
    return verdict


def reasons(verdict: Verdict) -> str:
    return " ".join((verdict.sentence, *verdict.reasons))


def test_an_honest_phase_is_faster_and_this_file_could_not_tell_otherwise(tmp_path: Path) -> None:
    made(tmp_path)
    verdict = measured(tmp_path, "honest", *FASTER)
    for objection in ("not evaluated", "failed", "clock", "trained", "code", "changed after", "first timed"):
        assert objection not in reasons(verdict)


def test_a_skipped_evaluation_is_undecided_by_name(tmp_path: Path) -> None:
    made(tmp_path)
    verdict = measured(tmp_path, "ruined", *FASTER, "--skip-the-last")
    assert verdict.kind in (VerdictKind.UNDECIDED, VerdictKind.QUESTIONABLE)
    assert "4 of 4 runs of ruined were not evaluated on the test views at step 200" in reasons(verdict)
    assert lab(tmp_path, "gate", "ruined") in (2, 3)


def test_what_is_declared_after_the_run_counts_for_later_runs_only(tmp_path: Path) -> None:
    """Compiling for longer must be declared; declaring it when the figures are there is too late."""
    made(tmp_path)
    verdict = measured(tmp_path, "late", *FASTER, "--start-up", "0.5")
    assert verdict.kind is VerdictKind.QUESTIONABLE and "before its first timed step" in reasons(verdict)
    assert lab(tmp_path, "phase", "set", "late", "--change", "start-up", "--change", "evaluation") == 0
    after = phase_verdict(Lab(tmp_path), Lab(tmp_path).phases.get("late"))
    assert after == verdict
    assert lab(tmp_path, "run", "late", "--no-priming") == 0
    later = phase_verdict(Lab(tmp_path), Lab(tmp_path).phases.get("late"))
    assert later is not None and "(start-up: declared)" in reasons(later)
    assert "training by another name" not in reasons(later)


def test_code_that_changes_between_blocks_ends_the_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = made(tmp_path)
    assert lab(tmp_path, "phase", "add", "other", "--", *FASTER) == 0
    plan = plans.make(here, "ab", ["baseline", "other"], plans.Wishes(blocks=4, seed=1, prime=False))
    from splatmeter.lab.executor import ChildProcess
    from splatmeter.lab.session.session import Session

    beats = Session(here, plan, ChildProcess()).beats()
    next(beat for beat in beats if beat.stage == "block done")
    beats.close()
    program = tmp_path / "trainer" / "train.py"
    program.write_text(program.read_text().replace("default=0.001", "default=0.005"))
    assert lab(tmp_path, "resume") == 65
    said = capsys.readouterr().err
    assert "pinned" in said and "train.py" in said
    assert lab(tmp_path, "phase", "set", "baseline", "--pin") == 0
    assert lab(tmp_path, "resume") == 65
    assert "has changed since this session began: train.py" in capsys.readouterr().err
    assert lab(tmp_path, "gate", "other") == 66  # one block of an unfinished session is no verdict
    assert lab(tmp_path, "resume", "--anew") == 0
    assert judged(here, "baseline", "other").session != plan.session


def test_only_the_same_code_verifies(tmp_path: Path) -> None:
    made(tmp_path)
    first = measured(tmp_path, "quick", "--seconds", "0.0002")
    program = tmp_path / "trainer" / "train.py"
    program.write_text(f"{program.read_text()}\n# another commit\n")
    assert lab(tmp_path, "phase", "set", "baseline", "--pin") == 0
    assert lab(tmp_path, "run", "quick", "--no-priming") == 0
    second = phase_verdict(Lab(tmp_path), Lab(tmp_path).phases.get("quick"))
    assert second is not None and second.kind is not VerdictKind.VERIFIED
    if first.kind is VerdictKind.FASTER is second.kind:
        assert "Not verified: the code is not the code of the first comparison" in reasons(second)


def test_git_cannot_hide_a_change(tmp_path: Path) -> None:
    """Neither a clean status nor an ignored file makes two programs one."""
    made(tmp_path)
    program = tmp_path / "trainer"
    git = ("git", "-c", "user.name=n", "-c", "user.email=e")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
        subprocess.run([*git, *words], cwd=program, check=True)
    before = code_identity.identify((sys.executable, "train.py"), program, {})
    subprocess.run([*git, "update-index", "--assume-unchanged", "train.py"], cwd=program, check=True)
    with (program / "train.py").open("a") as file:
        file.write("# faster\n")
    after = code_identity.identify((sys.executable, "train.py"), program, {})
    assert before.sha256 != after.sha256 and before.difference(after) == "train.py"
    (program / ".gitignore").write_text("*.so\n")
    (program / "kernel.so").write_bytes(b"compiled")
    assert after.difference(code_identity.identify((sys.executable, "train.py"), program, {})) == "kernel.so"


def test_an_old_verified_does_not_win_when_the_clock_steps_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = made(tmp_path)
    assert lab(tmp_path, "phase", "add", "moved", "--", *FASTER) == 0
    assert lab(tmp_path, "ab", "baseline", "moved", "--no-priming") == 0
    newest = plans.in_order(here)[-1]
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() - 7 * 3600 * 10**9)
    time.tzset()
    assert lab(tmp_path, "ab", "baseline", "moved", "--no-priming") == 0
    monkeypatch.undo()
    time.tzset()
    order = plans.in_order(here)
    assert order[0] == newest and order[1] < newest  # its name says that it is older
    assert judged(here, "baseline", "moved").session == order[1]


def test_phases_stay_in_the_order_they_were_made(tmp_path: Path) -> None:
    made(tmp_path)
    phases = Phases(tmp_path / "phases")
    from splatmeter.lab.plan.phases import Phase

    phases.add(Phase("first", created="2031-05-01T10:00:00.000000Z"))
    phases.add(Phase("second", created="2026-05-01T10:00:00.000000Z"))
    phases.add(Phase("third", created="2026-05-01T09:00:00+0200"))
    assert phases.names() == ["baseline", "first", "second", "third"]


def test_failures_do_not_vanish(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path)
    (tmp_path / "luck.txt").write_text("x\n.\nx\n.\n.\nx\n")
    options = (*FASTER, "--crash-list", str(tmp_path / "luck.txt"))
    assert lab(tmp_path, "phase", "add", "brittle", "--", *options) == 0
    code = lab(tmp_path, "run", "brittle", "--no-priming")
    while code == 70:
        code = lab(tmp_path, "resume")
    assert code == 0
    verdict = phase_verdict(Lab(tmp_path), Lab(tmp_path).phases.get("brittle"))
    assert verdict is not None and verdict.kind is VerdictKind.QUESTIONABLE
    assert "3 of 7 runs of brittle failed (the trainer ended with signal 9)" in reasons(verdict)
    assert lab(tmp_path, "gate", "brittle") == 3
    assert lab(tmp_path, "log") == 0 and "3 of 7 runs" in (tmp_path / "LOG.md").read_text()
    assert lab(tmp_path, "report") == 0 and "3 of 7 runs" in (tmp_path / "report.html").read_text()


def test_a_phase_whose_runs_all_fail_is_not_planned_and_a_hang_ends(tmp_path: Path) -> None:
    made(tmp_path)
    assert lab(tmp_path, "phase", "add", "hangs", "--", "--hang-at", "50") == 0
    assert lab(tmp_path, "run", "hangs", "--no-priming", "--order-seed", "1") == 70
    verdict = phase_verdict(Lab(tmp_path), Lab(tmp_path).phases.get("hangs"))
    assert verdict is not None and verdict.kind is VerdictKind.QUESTIONABLE
    assert "it printed nothing for" in reasons(verdict)
    assert lab(tmp_path, "gate", "hangs") == 3


def test_time_behind_another_word_is_found(tmp_path: Path) -> None:
    """Every second stretch calls itself saving: the clock sees the other one."""
    made(tmp_path)
    hiding = ("--seconds", "0.0005", "--hide-every", "20", "--hidden-seconds", "0.002")
    verdict = measured(tmp_path, "hides", *hiding)
    assert verdict.kind is VerdictKind.QUESTIONABLE
    assert "off its training clock" in reasons(verdict) or "were timed" in reasons(verdict)


def test_a_trainer_that_trains_on_everything_is_found_by_what_it_wrote(tmp_path: Path) -> None:
    made(tmp_path)
    runs = ("--train-on-everything", *FASTER)
    verdict = measured(tmp_path, "greedy", *runs)
    assert verdict.kind is VerdictKind.QUESTIONABLE, reasons(verdict)
    assert "split" in reasons(verdict) or "had trained" in reasons(verdict)


def test_views_that_nobody_can_check_are_named(tmp_path: Path) -> None:
    made(tmp_path)
    verdict = measured(tmp_path, "secretive", "--no-cameras", *FASTER)
    assert "Whether test views had trained secretive could not be checked" in reasons(verdict)


@pytest.mark.parametrize("field", ["seconds", "steps_per_second", "metrics", "status"])
def test_an_edited_result_is_left_out_and_said(tmp_path: Path, field: str) -> None:
    here = made(tmp_path)
    measured(tmp_path, "edited", *FASTER)
    path = next(here.sessions.glob("*/blocks/000.1/*-edited/result.json"))
    record = read_json(path)
    if field == "metrics":
        record["evaluations"][0]["metrics"]["psnr"] = 30.0
    elif field == "status":
        record["last_step"] = 199
    else:
        record["timing"][field] /= 3
    path.write_text(json.dumps(record))
    verdict = phase_verdict(here, here.phases.get("edited"))
    assert verdict is not None and verdict.kind is VerdictKind.QUESTIONABLE
    assert "was changed after the run" in reasons(verdict)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"identity": 3}', '{"timing": "x"}'])
def test_a_damaged_file_costs_its_run_and_a_sentence(tmp_path: Path, content: str) -> None:
    here = made(tmp_path)
    assert lab(tmp_path, "phase", "add", "damaged", "--", *FASTER) == 0
    assert lab(tmp_path, "ab", "baseline", "damaged", "--no-priming") == 0
    next(here.sessions.glob("*/blocks/001.1/*-damaged/result.json")).write_text(content)
    for words in (("verdict", "damaged"), ("log",), ("report",), ("ls", "--runs"), ("compare",), ("audit",)):
        assert lab(tmp_path, *words) in (0, 3)
    verdict = phase_verdict(here, here.phases.get("damaged"))
    assert verdict is not None and verdict.kind is VerdictKind.QUESTIONABLE
    assert "is left out: its result.json is damaged" in reasons(verdict)


def test_adopting_needs_a_result_that_came_twice_and_new_phases_build_on_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path)
    for name in ("one", "two"):
        assert lab(tmp_path, "phase", "add", name, "--", *FASTER) == 0
    assert {phase.parent for phase in Lab(tmp_path).phases.all()} == {"", "baseline"}
    assert lab(tmp_path, "adopt", "one") == 64
    assert "not verified" in capsys.readouterr().err
    assert lab(tmp_path, "adopt", "one", "--anyway", "the old one is gone") == 0
    assert lab(tmp_path, "phase", "add", "three", "--", "--psnr", "27") == 0
    assert Lab(tmp_path).phases.get("three").parent == "one"
    assert lab(tmp_path, "log") == 0
    assert "without being verified: the old one is gone" in (tmp_path / "LOG.md").read_text()
    assert lab(tmp_path, "gate", "one", "--require", "verified") == 2


def test_a_trainer_cannot_see_which_arm_it_is(tmp_path: Path) -> None:
    """The same command in both arms, which is slow wherever it reads its own name."""
    made(tmp_path)
    path = tmp_path / "protocol.toml"
    path.write_text(
        path.read_text().replace('"--steps", "200"]', '"--steps", "200", "--know-the-arm", "base"]')
    )
    measured(tmp_path, "twin", "--psnr", "26.0")
    outputs = [read_json(file)["arguments"] for file in (tmp_path / "sessions").glob("*/*/*/*/command.json")]
    places = {words[words.index("--output") + 1] for words in outputs}
    assert len(places) == 8 and len({len(place) for place in places}) == 1
    assert not any("base" in place or "twin" in place for place in places)
    assert list((tmp_path / "work").glob("*")) == []
    assert next((tmp_path / "sessions").glob("*/blocks/000.1/*-twin/output/cameras.json")).exists()


def test_two_answers_to_one_question_are_none(tmp_path: Path) -> None:
    made(tmp_path)
    verdict = measured(tmp_path, "twice", *FASTER, "--evaluate-twice")
    assert verdict.kind is VerdictKind.QUESTIONABLE
    assert "was evaluated twice on the test views at step 200" in reasons(verdict)


def test_a_bar_that_goes_back_is_doubted(tmp_path: Path) -> None:
    made(tmp_path)
    verdict = measured(tmp_path, "back", *FASTER, "--jump-back")
    assert verdict.kind is VerdictKind.QUESTIONABLE
    assert "The progress bar went back from step 90 to step 40" in reasons(verdict)


def test_a_run_that_cannot_be_timed_has_failed(tmp_path: Path) -> None:
    made(tmp_path)
    assert lab(tmp_path, "phase", "add", "mute", "--", "--only-the-last") == 0
    assert lab(tmp_path, "ab", "baseline", "mute", "--no-priming", "--order-seed", "1") == 70
    verdict = phase_verdict(Lab(tmp_path), Lab(tmp_path).phases.get("mute"))
    assert verdict is not None and "no progress that could be timed" in verdict.sentence
    assert lab(tmp_path, "gate", "mute") == 3


def test_without_one_whole_block_nothing_is_known_and_nothing_breaks(tmp_path: Path) -> None:
    here = made(tmp_path)
    measured(tmp_path, "gone", *FASTER)
    for path in here.sessions.glob("*/blocks/*/*-gone/events.jsonl"):
        path.write_text(path.read_text().replace("26.0", "29.0"))
    for words in (("log",), ("report",), ("compare",), ("audit",), ("phase", "list")):
        assert lab(tmp_path, *words) in (0, 3)
    assert lab(tmp_path, "gate", "gone") == 3


def test_a_removed_measurement_is_missed(tmp_path: Path) -> None:
    here = made(tmp_path)
    measured(tmp_path, "kept", *FASTER)
    assert lab(tmp_path, "ab", "baseline", "kept", "--no-priming") == 0
    shutil.rmtree(here.sessions / plans.in_order(here)[-1])
    verdict = phase_verdict(here, here.phases.get("kept"))
    assert verdict is not None and verdict.kind is VerdictKind.QUESTIONABLE
    assert "is gone, and it was newer than this one" in reasons(verdict)
    assert lab(tmp_path, "ab", "baseline", "kept", "--no-priming") == 0
    later = phase_verdict(here, here.phases.get("kept"))
    assert later is not None and "newer than this one" not in reasons(later) and "is gone." in reasons(later)


def test_a_phase_that_was_changed_since_is_not_what_was_measured(tmp_path: Path) -> None:
    here = made(tmp_path)
    measured(tmp_path, "edited", *FASTER)
    path = here.phases.folder / "edited.toml"
    path.write_text(path.read_text().replace("0.0005", "0.002"))
    verdict = phase_verdict(here, here.phases.get("edited"))
    assert verdict is not None and verdict.kind is VerdictKind.UNDECIDED
    assert "edited has been changed since it was measured" in verdict.sentence
    assert lab(tmp_path, "gate", "edited") == 2
