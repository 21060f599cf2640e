"""Sessions of the lab whose blocks are jobs: on a real SLURM, and on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from splatmeter.errors import SplatmeterError
from splatmeter.jobs.cluster import cluster_of
from splatmeter.lab.json_files import write_text
from splatmeter.lab.log.job_lines import job_notes
from splatmeter.lab.plan import protocol
from splatmeter.lab.plan.phases import Phase
from splatmeter.lab.record.index import Index
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.session import session_plan as plans
from splatmeter.lab.session.blocks import attempts, done_blocks
from splatmeter.lab.session.by_jobs import JobSession
from splatmeter.lab.session.session import Beat
from splatmeter.lab.session.session_plan import SessionPlan, Wishes

pytest.importorskip("submitit", reason="submitit is not installed: pip install 'splatmeter[cluster]'")

TRAINER = """
say() { echo "{\\"event\\":$1}"; }
say '"started","config":{},"step":0,"gaussians":1000,"train_images":["a.jpg"],"test_images":["t.jpg"]'
if [ -f hold ]; then mv hold held; sleep 600; fi
if [ -f fail ]; then echo "out of cookies" >&2; exit 3; fi
for step in 10 20 30 40 50 60; do
    say "\\"progress\\",\\"step\\":$step,\\"clock_seconds\\":0.$step,\\"loss\\":0.1,\\"gaussians\\":1000"
done
say '"evaluated","step":60,"split":"test","metrics":{"psnr":26.0}'
say '"finished","step":60,"clock_seconds":0.6,"gaussians":1000,"loss":0.1'
"""


def make_lab(folder: Path) -> Lab:
    """A trainer of a few lines of shell: starting Python for it would take most of the time."""
    program = folder / "program"
    program.mkdir(parents=True)
    (program / "train.sh").write_text(TRAINER)
    made = protocol.Protocol(
        scene="garden", trainer="events", command=("sh", "train.sh", "{seed}"), directory=str(program),
        start_iteration=0, iterations=60, evaluate_at=0,
    )  # fmt: skip
    lab = Lab(folder)
    write_text(lab.protocol_file, protocol.protocol_text(made))
    lab.phases.add(Phase("baseline", created="1"))
    lab.phases.add(Phase("candidate", parent="baseline", created="2"))
    return lab


def session(lab: Lab, cluster: str, blocks: int = 2, at_once: int = 0) -> SessionPlan:
    """Pairs for quality are blocks like any others, and may be few."""
    jobs = {"on": cluster, "at_once": at_once, "minutes": 10, "options": {}}
    wishes = Wishes(blocks=blocks, seed=1, prime=False, first_seed=0, jobs=jobs)
    return plans.make(lab, "quality", ["baseline", "candidate"], wishes)


def beats(lab: Lab, plan: SessionPlan) -> list[Beat]:
    return list(JobSession(lab, plan, cluster_of(plan.jobs["on"])).beats())


@pytest.fixture(params=["slurm", pytest.param("local", marks=pytest.mark.slow)])
def cluster(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "slurm":
        for name, value in request.getfixturevalue("slurm").items():
            monkeypatch.setenv(name, value)
    return request.param


def kill_when_held(lab: Lab, plan: SessionPlan, told: Beat) -> None:
    """Ends the job of a block with its trainer in the middle of a run."""
    held = lab.root / "program" / "held"
    deadline = time.monotonic() + 120
    while not held.exists():
        assert time.monotonic() < deadline, "the run never began"
        time.sleep(0.05)
    job = plan.folder(lab) / "jobs" / f"block-{told.block:03d}.1"
    if plan.jobs["on"] == "slurm":
        number = json.loads((job / "submitted.json").read_text())["id"]
        subprocess.run(["scancel", "--signal=KILL", "--full", number], check=True)
    else:
        os.kill(json.loads((job / "started.json").read_text())["pid"], 9)


def test_a_block_whose_job_is_killed_is_repeated_and_nothing_else(tmp_path: Path, cluster: str) -> None:
    lab = make_lab(tmp_path)
    plan = session(lab, cluster)
    (tmp_path / "program" / "hold").touch()
    seen: list[Beat] = []
    for beat in JobSession(lab, plan, cluster_of(cluster)).beats():
        seen.append(beat)
        if beat.stage == "started" and not any(beat.stage == "died" for beat in seen) and beat.block == 0:
            kill_when_held(lab, plan, beat)
    assert [beat.block for beat in seen if beat.stage == "died"] == [0]
    assert sorted(attempts(plan.folder(lab))) == [(0, 1), (0, 2), (1, 1)]
    assert done_blocks(plan.folder(lab)) == {0, 1} and (plan.folder(lab) / "ended.json").exists()
    rows = Index(lab).rows("SELECT result FROM runs WHERE counted = 1")
    identities = [json.loads(row["result"])["identity"] for row in rows]
    assert sorted(item["job"] for item in identities) == ["block-000.2"] * 2 + ["block-001.1"] * 2
    assert all(item["machine"] and item["boot"] for item in identities)
    assert "3 " in job_notes(lab)[0] and "1 died and was repeated" in job_notes(lab)[0]


def test_leaving_in_the_middle_leaves_something_to_go_on_with(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    plan = session(lab, "local")
    with contextlib.closing(JobSession(lab, plan, cluster_of("local")).beats()) as stream:
        for beat in stream:
            if beat.stage == "block done":
                (tmp_path / "program" / "hold").touch()
            if beat.stage == "started" and beat.block == 1:
                break  # as Ctrl-C does
    assert plans.unfinished(lab) == [plan.session] and done_blocks(plan.folder(lab)) == {0}
    (tmp_path / "program" / "hold").unlink(missing_ok=True)
    again = beats(lab, plans.load(lab, plan.session))
    assert {beat.block for beat in again} == {1}
    assert done_blocks(plan.folder(lab)) == {0, 1} and plans.unfinished(lab) == []


def test_a_trainer_that_fails_ends_the_session_with_its_words(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    plan = session(lab, "local")
    (tmp_path / "program" / "fail").touch()
    with pytest.raises(SplatmeterError, match=r"The job of block 1 did not finish: .*out of cookies"):
        beats(lab, plan)
    assert attempts(plan.folder(lab)) == [(0, 1)]  # a failure is told, not repeated until it goes well
    assert plans.unfinished(lab) == [plan.session]


def test_a_job_finds_other_code_than_the_session_began_with(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)
    plan = session(lab, "local")
    with contextlib.closing(JobSession(lab, plan, cluster_of("local")).beats()) as stream:
        next(stream)  # submitted: the code has been looked at
        (tmp_path / "program" / "train.sh").write_text(TRAINER + "# faster\n")
        with pytest.raises(SplatmeterError, match=r"The code of .* has changed"):
            list(stream)
    assert not done_blocks(plan.folder(lab))
