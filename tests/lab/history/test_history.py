"""`lab history`: what may be joined, what is marked, and everything that wants to look like progress."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
from pathlib import Path

import pytest
import scripted_aims
from machines import machine
from scripted_lab import add, carried_out, make_lab, trainer

from splatmeter.cli.main import main
from splatmeter.lab import environment
from splatmeter.lab.history.history import history
from splatmeter.lab.history.tracks import FIGURES, Change, History, Point, follows
from splatmeter.lab.json_files import write_text
from splatmeter.lab.judgement.verdicts import judged
from splatmeter.lab.plan import protocol as protocols
from splatmeter.lab.plan.scene_entries import SceneEntry
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.report.history_chart import draw, panels

QUIET = 0.002


def measured(lab: Lab, *names: str, noise: float = QUIET, seed: int = 1, drift: float = 0.0) -> str:
    plan, _ = carried_out(
        lab, "ab", ["baseline", *names], trainer(noise, seed, drift), blocks=4, prime=False, monitor=False
    )
    return plan.session


def said(lab: Lab, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["lab", "--lab", str(lab.root), "history", *words]) == 0
    return capsys.readouterr().out


def arm(found: History, session: str, label: str) -> Point:
    return next(point for point in found.points if (point.session, point.arm) == (session, label))


def joined(found: History) -> list[tuple[str, str, str]]:
    """(figure, earlier session, later session) wherever a line may lead from one session to another."""
    pairs: list[tuple[str, str, str]] = []
    for track in found.tracks:
        for kind in FIGURES:
            for place, point in enumerate(track.points):
                pairs += [
                    (kind.name, point.session, later.session)
                    for later in track.points[place + 1 :]
                    if follows(point, later, kind.name)
                ]
    return pairs


def test_marks_are_those_of_the_labs_own_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = make_lab(tmp_path)
    add(lab, "fast", "--speed", "120")
    add(lab, "blurred", "--speed", "120", "--psnr", "25")
    add(lab, "noisy", "--speed", "101")
    first, second = measured(lab, "fast"), measured(lab, "blurred")
    third = measured(lab, "noisy", noise=0.05)
    found = history(lab)
    fast, blurred, noisy = (
        arm(found, s, n) for s, n in ((first, "fast"), (second, "blurred"), (third, "noisy"))
    )
    assert fast.against and blurred.against and noisy.against
    assert fast.against.changes["speed"] is Change.BETTER and fast.against.changes["psnr"] is Change.SAME
    assert blurred.against.changes["speed"] is Change.BETTER
    assert blurred.against.changes["psnr"] is Change.WORSE
    assert noisy.against.changes["speed"] is Change.OPEN
    for point, name, session in (
        (fast, "fast", first),
        (blurred, "blurred", second),
        (noisy, "noisy", third),
    ):
        own = judged(lab, "baseline", name, session)
        assert point.against and point.against.verdict == own.verdict
        assert point.against.ratio == own.comparison.speed.main.ratio
    assert not any(name in fast.against.changes for name in ("loss", "gaussians"))
    text = said(lab, capsys)
    assert "▲ 1.2" in text and "25.030 ▼" in text
    assert "Between two sessions nothing is judged" in " ".join(text.split())


def test_a_slower_day_is_no_change(tmp_path: Path) -> None:
    """The same code, the machine half as fast: absolute times differ by far, and nothing is marked."""
    lab = make_lab(tmp_path)
    add(lab, "same")
    first = measured(lab, "same")
    second = measured(lab, "same", drift=0.0, noise=QUIET, seed=2)
    slow, _ = carried_out(
        lab, "ab", ["baseline", "same"], trainer(QUIET, 3, drift=0.1), blocks=4, prime=False
    )
    found = history(lab)
    before, after = arm(found, first, "baseline"), arm(found, slow.session, "baseline")
    assert after.readings["speed"].value < 0.8 * before.readings["speed"].value
    assert before.against is None and after.against is None
    assert all(
        mark not in (Change.BETTER, Change.WORSE)
        for session in (first, second)
        for mark in (arm(found, session, "same").against or pytest.fail("not compared")).changes.values()
    )
    assert ("psnr", first, second) in joined(found) and ("speed", first, second) in joined(found)
    speeds = [panel for panel in panels(found.tracks[0]) if panel.kind.name == "speed"]
    assert [dot.value for dot in speeds[0].dots if dot.point.arm == "baseline"] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("later", ["other machine", "more cores", "other processor"])
def test_a_faster_machine_later_is_no_progress(tmp_path: Path, later: str) -> None:
    lab = make_lab(tmp_path)
    add(lab, "phase", "--speed", "100")
    with machine("aaaaaaaaaaaa", usable=2):
        measured(lab, "phase")
    name = "bbbbbbbbbbbb" if later == "other machine" else "aaaaaaaaaaaa"
    model = "Faster processor" if later == "other processor" else "Test processor"
    with machine(name, model, usable=8 if later == "more cores" else 2):
        measured(lab, "phase", drift=-0.02)
    found = history(lab)
    assert len(found.tracks) == 2 and joined(found) == []
    assert len({track.describes for track in found.tracks}) == 2, "a reader must see in what they differ"


def test_other_options_under_the_same_name_are_another_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = make_lab(tmp_path)
    add(lab, "trick", "--speed", "101")
    first = measured(lab, "trick")
    lab.phases.save(dataclasses.replace(lab.phases.get("trick"), options=("--speed", "150")))
    second = measured(lab, "trick")
    found = history(lab)
    assert arm(found, second, "trick").variant.label == "trick (2)"
    assert [name for name, *_ in joined(found) if name == "speed"] == []
    assert [pair for pair in joined(found) if pair[0] == "psnr"] == [("psnr", first, second)], (
        "the baseline's"
    )
    text = " ".join(said(lab, capsys).split())
    assert "options `--speed 101` became `--speed 150`" in text and "trick (2)" in text


def test_other_code_under_the_same_name_is_another_program(tmp_path: Path) -> None:
    """The baseline itself changes: ratios against it do not follow each other any more."""
    lab = make_lab(tmp_path)
    add(lab, "phase", "--speed", "110")
    measured(lab, "phase")
    (tmp_path / "program" / "train.py").write_text("# slower on purpose\n")
    second = measured(lab, "phase")
    found = history(lab)
    assert joined(found) == [] and len(found.tracks) == 1
    assert arm(found, second, "baseline").variant.label == "baseline (2)"
    assert any("baseline (2)" in remark and "other code" in remark for remark in found.remarks)


@pytest.mark.parametrize("edit", [{"resolution": 8}, {"seeds": 3}, {"tolerance": 0.2}])
def test_a_protocol_that_changed_in_between_divides_the_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], edit: dict[str, object]
) -> None:
    lab = make_lab(tmp_path)
    add(lab, "phase", "--speed", "110")
    measured(lab, "phase")
    write_text(lab.protocol_file, protocols.protocol_text(dataclasses.replace(lab.protocol(), **edit)))  # type: ignore[arg-type]
    measured(lab, "phase")
    found = history(lab)
    assert len(found.tracks) == 2 and joined(found) == []
    assert "no figure of one may be compared" in " ".join(said(lab, capsys).split())
    if "tolerance" not in edit:  # margins judge runs, they do not make other runs
        assert [track.current for track in found.tracks] == [False, True]
        assert "Track 2" not in said(lab, capsys, "--now") and "protocol" in said(lab, capsys, "--now")


def test_another_start_or_other_photos_divide_the_history(tmp_path: Path) -> None:
    """Both stand in results alone; a scene that is swapped for an easier one keeps its path."""
    from splatmeter.lab.history.conditions import conditions
    from splatmeter.lab.record.result import result_from

    identity = {"protocol": "p", "machine": "m"}
    record = {"identity": identity, "timing": {"steps": 150}, "window": {"first": 0}, "start_sha256": "a"}
    result = result_from(record)
    stated = protocols.Protocol(scene="garden")
    usual = conditions(result, stated, "photos")
    assert conditions(result_from(record | {"start_sha256": "b"}), stated, "photos") != usual
    assert conditions(result, stated, "other photos") != usual
    assert conditions(result_from(record | {"timing": {"steps": 50}}), stated, "photos") != usual
    assert conditions(result_from(dict(record)), stated, "photos") == usual


def test_an_edited_result_is_named_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab = make_lab(tmp_path)
    add(lab, "phase", "--speed", "110")
    session = measured(lab, "phase")
    assert arm(history(lab), session, "phase").against.changes["speed"] is Change.BETTER  # type: ignore[union-attr]
    path = next((lab.sessions / session).glob("blocks/001.1/*-phase/result.json"))
    record = json.loads(path.read_text())
    record["timing"]["seconds"] /= 2
    path.write_text(json.dumps(record))
    point = arm(history(lab), session, "phase")
    assert len(point.runs) == 3 and point.against
    assert set(point.against.changes.values()) == {Change.DOUBTED}, "an objection is no change"
    text = " ".join(said(lab, capsys).split())
    assert "Session 1, phase: Questionable" in text
    assert "was changed after the run" in text and "001.1" in text and "▲" not in text.partition("Marks:")[0]


def test_sessions_that_are_gone_damaged_foreign_or_under_way_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = make_lab(tmp_path)
    add(lab, "phase", "--speed", "110")
    gone, damaged, foreign, unfinished, whole = (measured(lab, "phase") for _ in range(5))
    shutil.rmtree(lab.sessions / gone)
    (lab.sessions / damaged / "session.json").write_text('{"arms": 3')
    plan = lab.sessions / foreign / "session.json"
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {"fingerprint": "0123456789abcdef"}))
    (lab.sessions / unfinished / "ended.json").unlink()
    found = history(lab)
    assert {point.session for point in found.points} == {whole}
    told = {
        name: next(s for s in found.left_out if name in s) for name in (gone, damaged, foreign, unfinished)
    }
    assert "its folder is gone" in told[gone] and "session.json" in told[damaged]
    assert "another protocol" in told[foreign] and "has not ended" in told[unfinished]
    assert all(name in said(lab, capsys) for name in told)


def test_an_empty_lab_and_one_session_read_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab = make_lab(tmp_path)
    assert "Nothing has been measured" in said(lab, capsys)
    carried_out(lab, "record", ["baseline"], trainer(), monitor=False)
    text = said(lab, capsys)
    assert "single" in text and "without marks" in text and "▲" not in text
    assert main(["lab", "--lab", str(tmp_path), "history", "--phase", "nobody"]) == 66
    assert main(["lab", "--lab", str(tmp_path / "nowhere"), "history"]) == 66


def test_a_lab_of_two_machines_keeps_them_apart(tmp_path: Path) -> None:
    """Folders of sessions put together, as a merge would, with equal sequence numbers."""
    labs = [make_lab(tmp_path / "lab"), make_lab(tmp_path / "other")]
    write_text(labs[1].protocol_file, labs[0].protocol_file.read_text("utf-8"))
    for lab, name in zip(labs, ("aaaaaaaaaaaa", "bbbbbbbbbbbb"), strict=True):
        add(lab, "phase", "--speed", "110")
        with machine(name):
            measured(lab, "phase")
    shutil.copytree(labs[1].sessions, labs[0].sessions, dirs_exist_ok=True)
    found = history(labs[0])
    assert [track.conditions.machine for track in found.tracks] == ["aaaaaaaaaaaa", "bbbbbbbbbbbb"]
    assert all("machine " in track.describes for track in found.tracks) and joined(found) == []
    assert sorted(point.number for point in found.points) == [1, 1, 2, 2]


def test_a_session_that_moved_to_another_machine_has_no_marks(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    add(lab, "phase", "--speed", "110")
    session = measured(lab, "phase")
    for path in (lab.sessions / session).glob("blocks/00[23].1/*/result.json"):
        record = json.loads(path.read_text())
        record["identity"]["machine"] = "cccccccccccc"
        path.write_text(json.dumps(record))
        began = path.parent / "environment.json"
        began.write_text(json.dumps(json.loads(began.read_text()) | {"machine": "cccccccccccc"}))
    found = history(lab)
    assert len(found.tracks) == 2 and all(point.against is None for point in found.points)


def test_several_scenes_have_a_track_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenes = (SceneEntry("soft", "soft"), SceneEntry("hard", "hard"))
    lab = make_lab(tmp_path, command=scripted_aims.COMMAND, seeds=4, evaluate_at=0, scene="", scenes=scenes)
    add(lab, "phase", "--speed", "120", "--on-hard", "1.3", "--evaluation", "400")
    carried_out(
        lab, "ab", ["baseline", "phase"], scripted_aims.trainer(), blocks=4, prime=False, monitor=False
    )
    found = history(lab)
    assert [track.conditions.scene for track in found.tracks] == ["soft", "hard"]
    soft, hard = (next(p for p in track.points if p.arm == "phase") for track in found.tracks)
    assert soft.against and hard.against
    assert (soft.against.changes["speed"], hard.against.changes["speed"]) == (Change.BETTER, Change.WORSE)
    assert soft.against.changes["evaluation_peak"] is Change.BETTER, "peaks are judged whatever the aim"
    assert soft.against.changes["training_peak"] is Change.SAME
    assert soft.against.verdict == hard.against.verdict, "which is of all scenes"
    assert "soft" in said(lab, capsys)


def commit(folder: Path, subject: str) -> str:
    words = ["git", "-c", "user.name=A", "-c", "user.email=a@b", "-C", str(folder)]
    subprocess.run([*words, "add", "-A"], check=True)
    subprocess.run([*words, "commit", "-qm", subject, "--allow-empty"], check=True)
    said = subprocess.run([*words, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return said.stdout.strip()


def test_revisions_are_named_and_missed_when_git_has_lost_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = make_lab(tmp_path)
    add(lab, "phase", "--speed", "110")
    program = tmp_path / "program"
    subprocess.run(["git", "init", "-q", str(program)], check=True)
    first = commit(program, "Fuse \x1b[31mbackward <script>alert(1)</script>")
    monkeypatch.setattr(environment, "git_state", lambda directory: {"revision": first, "dirty": True})
    measured(lab, "phase")
    text = said(lab, capsys)
    assert f"{first[:8]}+" in text and "Fuse" in text and "\x1b[31m" not in text
    shutil.rmtree(program / ".git")
    subprocess.run(["git", "init", "-q", str(program)], check=True)
    commit(program, "begun anew")
    text = " ".join(said(lab, capsys).split())
    assert f"{first[:8]}+?" in text and "git does not have it here" in text
    shutil.rmtree(program / ".git")
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")  # whatever lies around the lab is not asked
    assert "No git repository" in " ".join(said(lab, capsys).split())


def test_an_a_a_and_untimed_runs_are_shown_and_mark_nothing(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    add(lab, "phase", "--speed", "110")
    carried_out(lab, "aa", ["baseline", "baseline"], trainer(QUIET), blocks=4, prime=False, monitor=False)
    carried_out(lab, "quality", ["baseline", "phase"], trainer(QUIET), blocks=2, prime=False, monitor=False)
    plan, _ = carried_out(lab, "overhead", ["baseline"], trainer(QUIET), blocks=4, prime=False)
    found = history(lab)
    control = next(point for point in found.points if point.arm == "baseline#2")
    assert control.against and dict(control.against.changes) == {}
    untimed = [point for point in found.points if point.kind == "quality"]
    assert untimed and all("speed" not in p.readings and "psnr" in p.readings for p in untimed)
    assert all(point.against is None for point in untimed)
    assert any(plan.session in sentence and "monitor" in sentence for sentence in found.left_out)


def test_the_chart_draws_a_dotted_line_only_where_the_same_was_measured_again(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    add(lab, "phase", "--speed", "110")
    add(lab, "other", "--speed", "120")
    measured(lab, "phase")
    measured(lab, "other")
    found = history(lab)
    speed = [panel for panel in panels(found.tracks[0]) if panel.kind.name == "speed"]
    order = {"baseline": 0, "phase": 1, "other": 2}
    assert "measured again" not in draw(found.tracks[0], speed, order)(900)
    measured(lab, "phase")
    found = history(lab)
    track = found.tracks[0]
    speed = [panel for panel in panels(track) if panel.kind.name == "speed"]
    assert draw(track, speed, order)(900).count("measured again") == 1, "the baseline is 1 in every session"
    assert draw(track, panels(track), order)(900).count("<title>") > 12
