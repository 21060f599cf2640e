"""Phases that aim at memory, at a time to a quality, at a quality after a time; protocols of several scenes.

Every way to a wrong *leaner*, *sooner* or *better* that is played here must fail, and say why.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from scripted_aims import COMMAND, trainer
from scripted_lab import add, carried_out, make_lab

from splatmeter.cli.main import main
from splatmeter.errors import UsageError
from splatmeter.lab.judgement.verdicts import judged, phase_verdict
from splatmeter.lab.log import write_log
from splatmeter.lab.log.log_contents import document
from splatmeter.lab.plan import protocol as protocols
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.plan.scene_entries import SceneEntry
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.samples.verdict_kinds import Verdict, VerdictKind

GRID = {"evaluate_every": 50, "target_psnr": 23.0, "after_seconds": 1.2}
SCENES = (SceneEntry("soft", "soft"), SceneEntry("medium", "medium"), SceneEntry("hard", "hard"))


def lab_of(folder: Path, **settings: object) -> Lab:
    return make_lab(folder, command=COMMAND, seeds=6, blocks=6, evaluate_at=0, **settings)


def measured(lab: Lab, name: str, *options: str, noise: float = 0.002, **fields: object) -> Verdict:
    add(lab, name, *options, **fields)
    carried_out(lab, "ab", ["baseline", name], trainer(noise))
    return judged(lab, "baseline", name).verdict


def told(verdict: Verdict) -> str:
    return " ".join((verdict.sentence, *verdict.reasons))


def test_less_memory_at_equal_speed_and_quality_is_leaner(tmp_path: Path) -> None:
    lab = lab_of(tmp_path)
    verdict = measured(lab, "lean", "--evaluation", "400", aim="memory")
    assert (verdict.kind, verdict.exit_code) == (VerdictKind.LEANER, 0), told(verdict)
    assert "evaluation peak 800 MB → 400 MB" in verdict.sentence and "speed" in verdict.sentence
    gate = ["lab", "--lab", str(tmp_path), "gate", "lean", "--require"]
    assert main([*gate, "leaner"]) == 0 and main([*gate, "faster"]) == 2 and main([*gate, "verified"]) == 2
    carried_out(lab, "ab", ["baseline", "lean"], trainer(seed=5))
    assert judged(lab, "baseline", "lean").verdict.kind is VerdictKind.VERIFIED
    assert main([*gate, "leaner"]) == 0 and main([*gate, "verified"]) == 0 and main([*gate, "faster"]) == 2


def test_the_same_figures_without_the_aim_are_a_question_of_speed(tmp_path: Path) -> None:
    verdict = measured(lab_of(tmp_path), "lean", "--evaluation", "400")
    assert verdict.kind is VerdictKind.NO_SPEED_UP


def test_equal_speed_is_shown_or_the_verdict_waits(tmp_path: Path) -> None:
    lab = lab_of(tmp_path)
    noisy = measured(lab, "lean", "--evaluation", "400", noise=0.08, aim="memory")
    assert noisy.kind is VerdictKind.UNDECIDED and "as fast is not shown" in noisy.sentence
    slow = measured(lab, "slow", "--evaluation", "400", "--speed", "90", aim="memory")
    assert slow.kind is VerdictKind.SLOWER and "less memory may cost" in slow.sentence
    little = measured(lab, "little", "--evaluation", "400", "--speed", "99", aim="memory")
    assert little.kind is VerdictKind.LEANER and "slower, but by less than 2 %" in little.sentence


def test_peaks_that_repeat_to_the_byte_are_not_known_to_the_byte(tmp_path: Path) -> None:
    """No spread at all, and half a megabyte: less than a high-water mark can tell."""
    verdict = measured(lab_of(tmp_path), "hair", "--evaluation", "799.5", aim="memory")
    assert verdict.kind is VerdictKind.NO_GAIN, told(verdict)


def test_one_peak_may_not_be_bought_with_the_other(tmp_path: Path) -> None:
    lab = lab_of(tmp_path)
    moved = measured(lab, "moved", "--evaluation", "400", "--training", "700", aim="memory")
    assert (moved.kind, moved.exit_code) == (VerdictKind.MORE_MEMORY, 1) and "training peak" in moved.sentence


def test_both_aims_have_verdicts_of_their_own(tmp_path: Path) -> None:
    lab = lab_of(tmp_path)
    lean = ("--evaluation", "400")
    kinds = {
        name: measured(lab, name, *options, aim="both").kind
        for name, options in (("a", lean), ("b", ("--speed", "120")), ("c", (*lean, "--speed", "120")))
    }
    assert kinds == {"a": VerdictKind.LEANER, "b": VerdictKind.FASTER, "c": VerdictKind.FASTER_AND_LEANER}
    gate = ["lab", "--lab", str(tmp_path), "gate", "c", "--require"]
    assert main([*gate, "leaner"]) == 0 and main([*gate, "faster"]) == 0


@pytest.mark.parametrize(
    ("options", "kinds", "words"),
    [
        (("--views", "1"), (VerdictKind.QUESTIONABLE,), "not the same ones"),
        (("--gaussians", "500"), (VerdictKind.QUESTIONABLE,), "Gaussians"),
        (("--skip", "200"), (VerdictKind.UNDECIDED, VerdictKind.QUESTIONABLE), "evaluat"),
        (("--lost", "3"), (VerdictKind.QUALITY_LOST,), "PSNR"),
    ],
)
def test_less_work_or_worse_pictures_are_not_less_memory(
    tmp_path: Path, options: tuple[str, ...], kinds: tuple[VerdictKind, ...], words: str
) -> None:
    verdict = measured(lab_of(tmp_path), "cheat", "--evaluation", "400", *options, aim="memory")
    assert verdict.kind in kinds and words in told(verdict), told(verdict)


def test_an_aim_that_is_chosen_after_the_run_counts_for_later_runs(tmp_path: Path) -> None:
    lab = lab_of(tmp_path)
    before = measured(lab, "lean", "--evaluation", "400")
    lab.phases.save(dataclasses.replace(lab.phases.get("lean"), aim="memory"))
    after = judged(lab, "baseline", "lean").verdict
    assert after.kind is before.kind is VerdictKind.NO_SPEED_UP
    assert "aim of lean was speed when this session began and is memory now" in told(after)
    assert main(["lab", "--lab", str(tmp_path), "gate", "lean", "--require", "leaner"]) == 2


def test_memory_that_is_freed_before_the_trainer_looks_is_found(tmp_path: Path) -> None:
    """Its stages tell of 400 MB; from outside 800 MB were seen."""
    lab = lab_of(tmp_path)
    add(lab, "late", "--evaluation", "400", aim="memory")
    plan, _ = carried_out(lab, "ab", ["baseline", "late"], trainer())
    for path in plan.folder(lab).glob("blocks/*/*-late/result.json"):
        record = json.loads(path.read_text())
        record["memory"]["total_peak_bytes"] = 800_000_000
        path.write_text(json.dumps(record))
    verdict = judged(lab, "baseline", "late").verdict
    assert verdict.kind is VerdictKind.QUESTIONABLE and "held 800 MB at one time" in told(verdict)


def test_a_quality_is_reached_sooner(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, **GRID)
    verdict = measured(lab, "quick", "--rise", "0.04", aim="time-to-quality", changes=("quality",))
    assert verdict.kind is VerdictKind.SOONER, told(verdict)
    assert "time to 23 dB" in verdict.sentence and "6 seeds" in verdict.sentence
    later = measured(lab, "slow", "--speed", "70", aim="time-to-quality")
    assert (later.kind, later.exit_code) == (VerdictKind.LATER, 1)


def test_a_run_that_never_gets_there_is_no_gain_and_no_zero(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, **GRID | {"target_psnr": 26.01})
    verdict = measured(lab, "short", "--speed", "150", aim="time-to-quality")
    assert verdict.kind is VerdictKind.UNDECIDED and "runs of short never reached 26.01 dB" in told(verdict)


def test_a_spike_at_one_evaluation_reaches_nothing(tmp_path: Path) -> None:
    """Not long before the quality is really there (step 117), nor at the evaluations on both sides of it."""
    lab = lab_of(tmp_path, **GRID | {"target_psnr": 23.5, "evaluate_every": 20})
    for at in ("40", "100", "120"):
        spike = ("--spike-at", at, "--spike", "5")
        verdict = measured(lab, f"spike-{at}", *spike, aim="time-to-quality")
        assert verdict.kind is not VerdictKind.SOONER, told(verdict)
    honest = measured(lab, "honest", "--rise", "0.035", aim="time-to-quality", changes=("quality",))
    assert honest.kind is VerdictKind.SOONER, told(honest)


def test_an_evaluation_that_is_left_out_of_the_grid_is_missed(tmp_path: Path) -> None:
    gap = ("--rise", "0.04", "--skip", "100")
    verdict = measured(lab_of(tmp_path, **GRID), "gap", *gap, aim="time-to-quality")
    assert verdict.kind is VerdictKind.UNDECIDED and "not evaluated on the whole grid" in verdict.sentence


def test_quality_after_a_time_is_better_by_speed_or_by_steps_that_learn_more(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, **GRID)
    kinds = {
        name: measured(lab, name, *options, aim="quality-after-time").kind
        for name, options in (("speed", ("--speed", "140")), ("slow", ("--speed", "70")), ("same", ()))
    }
    assert kinds == {"speed": VerdictKind.BETTER, "slow": VerdictKind.WORSE, "same": VerdictKind.NO_GAIN}


def test_what_an_aim_needs_is_asked_for_before_anything_runs(tmp_path: Path) -> None:
    lab = lab_of(tmp_path)
    add(lab, "soon", aim="time-to-quality")
    with pytest.raises(UsageError, match="evaluate_every and target_psnr"):
        carried_out(lab, "ab", ["baseline", "soon"], trainer())
    with pytest.raises(UsageError, match="is not an aim"):
        add(lab, "wish", aim="happiness")
    add(lab, "lean", aim="memory")
    with pytest.raises(UsageError, match="--slices"):
        carried_out(lab, "ab", ["baseline", "lean"], trainer(), slices=1.0)


def test_an_edited_clock_is_left_out(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, **GRID)
    add(lab, "soon", aim="time-to-quality")
    plan, _ = carried_out(lab, "ab", ["baseline", "soon"], trainer())
    path = next(plan.folder(lab).glob("blocks/000.1/*-soon/result.json"))
    record = json.loads(path.read_text())
    record["clock_at"]["100"] /= 3
    path.write_text(json.dumps(record))
    verdict = judged(lab, "baseline", "soon").verdict
    assert verdict.kind is VerdictKind.QUESTIONABLE and "was changed after the run" in told(verdict)


def test_a_lab_of_several_scenes_has_their_geometric_mean(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, scene="", scenes=SCENES)
    verdict = measured(lab, "quick", "--speed", "110")
    assert verdict.kind is VerdictKind.FASTER and "geometric mean of 3 scenes" in verdict.sentence
    found = judged(lab, "baseline", "quick").comparison
    assert [part.scene for part in found.scenes] == ["soft", "medium", "hard"]
    assert all(part.speed.main.blocks == 6 for part in found.scenes) and len(found.runs) == 36
    text = write_log(document(lab))
    assert "On hard against baseline:" in text and "soft, medium, hard" in text
    assert main(["lab", "--lab", str(tmp_path), "report"]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "scene by scene" in page and "medium" in page
    assert main(["lab", "--lab", str(tmp_path), "compare", "baseline", "quick", "--json"]) == 0


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        (("--speed", "130", "--on-hard", "1.5"), VerdictKind.SLOWER, "Slower on hard"),
        (("--speed", "130", "--lost-on-hard", "2"), VerdictKind.QUALITY_LOST, "hard, test PSNR"),
    ],
)
def test_a_scene_that_fails_does_not_hide_in_the_mean(
    tmp_path: Path, options: tuple[str, ...], kind: VerdictKind, words: str
) -> None:
    lab = lab_of(tmp_path, scene="", scenes=SCENES)
    verdict = measured(lab, "quick", *options)
    assert verdict.kind is kind and words in verdict.sentence, told(verdict)


def test_memory_is_judged_scene_by_scene_too(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, scene="", scenes=SCENES)
    verdict = measured(lab, "lean", "--evaluation", "500", aim="memory")
    assert verdict.kind is VerdictKind.LEANER, told(verdict)
    assert "hard: Evaluation peak: 800 MB → 500 MB" in told(verdict)


def test_an_a_a_of_several_scenes_is_the_control_of_each(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, scene="", scenes=SCENES)
    carried_out(lab, "aa", ["baseline", "baseline"], trainer(seed=3))
    measured(lab, "lean", "--evaluation", "500", aim="memory")
    found = judged(lab, "baseline", "lean").comparison
    assert found.noise is not None and all(part.noise is not None for part in found.scenes)
    assert all(figure.noise is not None for part in found.scenes for figure in part.figures)


def test_scenes_survive_being_written_and_read(tmp_path: Path) -> None:
    made = Protocol(scenes=(SceneEntry("a", "/x/a", resolution=2, target_psnr=27.5), SceneEntry("b", "/y/b")))
    path = tmp_path / "protocol.toml"
    path.write_text(protocols.protocol_text(made))
    assert protocols.read_protocol(path) == made
    assert made.of_scene("a").resolution == 2 and made.of_scene("b").checkpoint.startswith("start/b/")
    assert made.fingerprint() != Protocol().fingerprint()
    with pytest.raises(UsageError, match="Two scenes are called a"):
        protocols.check_protocol(
            dataclasses.replace(made, scenes=(SceneEntry("a", "x"), SceneEntry("a", "y")))
        )
    with pytest.raises(UsageError, match="not both"):
        protocols.check_protocol(dataclasses.replace(made, scene="/z"))


def test_a_lab_begins_with_several_scenes(tmp_path: Path) -> None:
    words = [word for name in ("one", "two") for word in ("--scene", str(tmp_path / name))]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    command = ["--trainer", "events", "--start", "0", "--", *COMMAND]
    assert main(["lab", "--lab", str(tmp_path / "lab"), "init", *words, *command]) == 0
    assert Lab(tmp_path / "lab").protocol().scene_names == ("one", "two")


def test_a_phase_that_was_never_measured_stays_planned_with_its_aim(tmp_path: Path) -> None:
    lab = lab_of(tmp_path)
    add(lab, "lean", aim="memory")
    verdict = phase_verdict(lab, lab.phases.get("lean"))
    assert verdict is not None and verdict.kind is VerdictKind.PLANNED
    assert "**Aim:** less memory at equal speed and quality" in write_log(document(lab))
