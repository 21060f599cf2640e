"""`lab replay`: a whole plan from one command, and the same command again after a kill."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from splatmeter.cli.lab import run
from splatmeter.errors import InputError, MissingFile, UsageError
from splatmeter.lab.plan import commands, replay
from splatmeter.lab.plan.commands import RunRequest
from splatmeter.lab.record.lab import Lab

STAND_IN = Path(__file__).with_name("stand_in.py")
STORY = Path(__file__).parents[2] / "benchmarks" / "story"

PLAN = f"""
title = "A small story"
scripts = ["note.py"]

[protocol]
trainer = "events"
command = ["{{python}}", "-S", {json.dumps(str(STAND_IN))}, "events", "--steps", "60", "--seed", "{{seed}}"]
start_iteration = 0
iterations = 60
warm_up = 10
evaluate_at = 0

[quick.session]
blocks = 4
expect = {{}}

[[phase]]
name = "candidate"
note = "the same again"

[[session]]
name = "both"
phases = ["baseline", "candidate"]
blocks = 6
expect = {{ candidate = ["planned"] }}

[[session]]
name = "alone"
kind = "record"
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    (tmp_path / "note.py").write_text("")
    (tmp_path / "scene").mkdir()
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def words(plan: Path, *more: str) -> list[str]:
    folder = plan.parent
    return ["--lab", str(folder / "lab"), "replay", str(plan), "--scene", str(folder / "scene"), *more]


def test_one_command_measures_and_writes_results_log_and_report(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = plan.parent / "results.md"
    assert run(words(plan, "--quick", "--results", str(results))) == 0
    lab = Lab(plan.parent / "lab")
    assert "| both | candidate | baseline |" in results.read_text("utf-8")
    log = (lab.root / "LOG.md").read_text("utf-8")
    assert "the same again" in log and (lab.root / "report.html").exists()
    assert (lab.root / "scripts" / "note.py").exists()
    assert len(list(lab.sessions.glob("*"))) == 2
    assert run(words(plan, "--quick")) == 0  # nothing is done twice
    assert len(list(lab.sessions.glob("*"))) == 2 and "done before" in capsys.readouterr().out


def test_the_monitor_s_own_time_stands_beside_its_verdict(plan: Path) -> None:
    plan.write_text(PLAN.replace('kind = "record"', 'kind = "overhead"\nblocks = 4'))
    run(words(plan, "--quick"))
    results = (plan.parent / "lab" / "results.md").read_text("utf-8")
    assert "baseline#watched | baseline#unwatched" in results
    assert re.search(r"measured directly: \d+\.\d\d % of the clock", results)


def test_the_log_tells_nobody_where_things_lie_on_this_machine(plan: Path) -> None:
    run(words(plan, "--quick", "--log", str(plan.parent / "LOG.md")))
    for name in ("LOG.md", "lab/results.md"):
        text = (plan.parent / name).read_text("utf-8").replace(str(STAND_IN), "")
        assert str(plan.parent) not in text
        assert not re.search(r"(?<![\w.])/(?:tmp|home|root|work|Users)/", text)


def test_what_does_not_come_out_as_expected_is_told_by_the_exit_code(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan.write_text(PLAN.replace("blocks = 6", "blocks = 4"))
    assert run(words(plan)) == 1
    assert "expected planned: NOT as expected" in capsys.readouterr().out


def test_a_killed_replay_goes_on_where_it_was(plan: Path) -> None:
    command = [sys.executable, "-m", "splatmeter", "lab", *words(plan, "--quick")]
    sessions = plan.parent / "lab" / "sessions"
    worker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list(sessions.glob("*/blocks/*/block.json")) and worker.poll() is None:
        time.sleep(0.01)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    before = {path.name for path in sessions.glob("*")}
    assert run(words(plan, "--quick")) == 0
    assert before < {path.name for path in sessions.glob("*")} and len(before) == 1


def test_a_folder_with_another_plan_is_left_alone(plan: Path) -> None:
    run(words(plan, "--quick"))
    plan.write_text(PLAN.replace("warm_up = 10", "warm_up = 20"))
    with pytest.raises(UsageError, match="another plan"):
        run(words(plan, "--quick"))


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ('kind = "record"', 'kind = "x"', "no kind of session"),
        ('["baseline", "candidate"]', '["baseline", "other"]', "no phase"),
        ('["planned"]', '["brilliant"]', "not a verdict"),
        ('name = "alone"', 'name = "both"', "same name"),
        ('name = "alone"', 'nome = "alone"', "nome"),
        ('name = "candidate"\n', "", "no name"),
        ("warm_up", "warmup", "warmup"),
        ("note.py", "gone.py", "does not exist"),
        ('title = "A', 'tittle = "A', "tittle"),
    ],
)
def test_a_plan_with_a_mistake_is_refused_before_anything_runs(
    plan: Path, old: str, new: str, word: str
) -> None:
    plan.write_text(PLAN.replace(old, new))
    with pytest.raises(InputError, match=word):
        replay.read_replay(plan)


def test_a_plan_needs_its_scene(plan: Path) -> None:
    with pytest.raises(MissingFile, match="--scene"):
        run(["--lab", str(plan.parent / "lab"), "replay", str(plan), "--scene", str(plan.parent / "gone")])


# ---- the plans that are published -------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["story.toml", "controls.toml", "memory.toml", "scenes.toml"])
@pytest.mark.parametrize("quick", [True, False])
def test_the_published_plans_can_be_carried_out(name: str, quick: bool, tmp_path: Path) -> None:
    plan = replay.read_replay(STORY / name, quick)
    request = RunRequest(tmp_path / "out", 3, first=5, last=9, evaluations=(7, 9), lab=tmp_path)
    for phase in plan.phases:
        arguments = commands.arguments(plan.protocol, [phase], request)
        assert "{" not in " ".join(arguments) and arguments.count("--events-stdout") == 1
        assert all(option in arguments for option in (*plan.protocol.options, "--seed", "--test_iterations"))
    assert {path.name for path in plan.scripts} <= {path.name for path in STORY.glob("*.py")}


SCRIPTS = {
    "keeps_everything.py": [],
    "monitors.py": ["--every", "5"],
    "burns.py": ["--share", "0.03"],
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_scripts_around_our_trainer_end_in_the_very_same_model(script: str, tmp_path: Path) -> None:
    if script == "keeps_everything.py":
        pytest.importorskip("torch", reason="the evaluation with a graph was not tried: torch is not there")
    pytest.importorskip("splatmeter._native", reason="no native engine to train with")
    from splatmeter import api

    scene = api.demo_scene(quick=True)
    plain = ["-s", str(scene), "--eval", "--iterations", "10", "--test-iterations", "10", "--events-stdout"]

    def finished(name: str, *command: str) -> tuple[str, dict[str, float], int]:
        answer = subprocess.run(
            [sys.executable, *command, *plain, "-m", str(tmp_path / name)], capture_output=True, check=True
        )
        events = [json.loads(line) for line in answer.stdout.splitlines()]
        saved = next(e["sha256"] for e in events if e["event"] == "saved" and e["content"] == "model")
        evaluated = next(e for e in events if e["event"] == "evaluated")
        return saved, evaluated["metrics"], evaluated["peak_memory_bytes"]

    *own, little = finished("own", "-m", "splatmeter", "train")
    *other, much = finished("other", str(STORY / script), *SCRIPTS[script])
    assert other == own
    if script == "monitors.py":
        assert len((tmp_path / "monitor.csv").read_text().splitlines()) == 2
    if script == "keeps_everything.py" and little:
        assert much > little + 50_000_000  # torch itself is there now: the graph was built


@pytest.mark.slow
@pytest.mark.parametrize("name", ["story.toml", "controls.toml"])
def test_the_published_plans_run_on_the_built_in_scene(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the story needs torch for its evaluation with a graph")
    from splatmeter import api

    scene = str(api.demo_scene(quick=True))
    assert run(["--lab", str(tmp_path), "replay", str(STORY / name), "--scene", scene, "--quick"]) == 0
