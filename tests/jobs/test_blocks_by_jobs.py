"""`train --blocks 2x1 --on slurm|local`: the same model as without jobs, also where a job is killed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "blocks"))

from street import write_street

from splatmeter.blocks import plan_folder as divided
from splatmeter.blocks.runs import trained
from splatmeter.cli.main import main
from splatmeter.jobs.folder import JobFolder, tries

pytest.importorskip("splatmeter._native", reason="the native module is not built")
pytest.importorskip("submitit", reason="submitit is not installed: pip install 'splatmeter[cluster]'")

PROGRAM = (sys.executable, "-m", "splatmeter")
SHORT = (
    *("--eval", "--iterations", "30", "--densify-from-iter", "5", "--densification-interval", "10"),
    *("--device", "cpu", "--threads", "1", "--quiet", "--blocks", "2x1"),
)


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_street(tmp_path_factory.mktemp("scene") / "street")


@pytest.fixture(params=["slurm", "local"])
def cluster(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "slurm":
        for name, value in request.getfixturevalue("slurm").items():
            monkeypatch.setenv(name, value)
    return request.param


def words(street: Path, out: Path, *more: str) -> list[str]:
    return ["train", "-s", str(street), "-m", str(out), *SHORT, *more]


def model(out: Path) -> bytes:
    return (out / "point_cloud/iteration_30/point_cloud.ply").read_bytes()


def test_jobs_give_the_same_model(
    street: Path, tmp_path: Path, cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(street, tmp_path / "plain")) == 0
    assert main(words(street, tmp_path / "jobs", "--on", cluster, "--jobs", "2")) == 0
    assert model(tmp_path / "jobs") == model(tmp_path / "plain")
    told = capsys.readouterr().err
    assert re.search(r"Block 1-1 is submitted: job \d+, which does\n.*--only-block 1-1", told)
    assert "Block 2-1 has ended" in told and "Joined 2 blocks" in told


def test_a_job_that_is_killed_is_repeated(street: Path, tmp_path: Path, cluster: str) -> None:
    """As long as it takes to train nothing is certain, so the killing waits for the job's own first file."""
    out = tmp_path / "out"
    killing = threading.Thread(target=kill_first_try, args=(cluster, out / divided.BLOCKS / "jobs"))
    killing.start()
    asked = words(street, out, "--on", cluster, "--iterations", "150")
    done = subprocess.run([*PROGRAM, *asked], capture_output=True, text=True, timeout=300, check=False)
    killing.join()
    assert done.returncode == 0, done.stderr
    assert "has died. It is submitted again" in done.stderr
    jobs = tries(out / divided.BLOCKS / "jobs", "1-1")
    assert len(jobs) == 2 and jobs[0].died and jobs[1].code == 0
    assert trained(out / divided.BLOCKS / "1-1") is not None


def kill_first_try(cluster: str, folder: Path) -> None:
    job, deadline = JobFolder(folder / "1-1.1"), time.monotonic() + 120
    while not job.read("started") and time.monotonic() < deadline:
        time.sleep(0.02)
    if cluster == "slurm":
        subprocess.run(["scancel", "--signal=KILL", "--full", job.number], check=True)
    else:
        os.kill(int(job.read("started")["pid"]), signal.SIGKILL)


def test_stopped_it_ends_its_jobs_and_the_same_command_goes_on(street: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = words(street, out, "--on", "local", "--iterations", "2000")
    with subprocess.Popen([*PROGRAM, *asked], stderr=subprocess.PIPE, text=True) as running:
        job, deadline = JobFolder(out / divided.BLOCKS / "jobs/1-1.1"), time.monotonic() + 120
        while not (out / divided.BLOCKS / "1-1/events.jsonl").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        told = running.communicate(timeout=120)[1]
    assert running.returncode == 128 + signal.SIGINT and "Traceback" not in told
    assert "--resume" in told and job.read("ended").get("signalled") is True and not job.died
    assert list((out / divided.BLOCKS / "1-1").glob("*.safetensors")), "the job has saved what it had"


def test_jobs_without_blocks_make_no_sense(
    street: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = ["train", "-s", str(street), "-m", str(tmp_path / "out")]
    assert main([*alone, "--on", "local"]) == 64
    assert "--on local goes with --blocks" in capsys.readouterr().err
    assert main([*alone, "--blocks", "2x1", "--jobs", "2"]) == 64
    assert "belong to --on" in capsys.readouterr().err
    assert main([*alone, "--blocks", "2x1", "--on", "local", "--job-option", "partition=a"]) == 64
    assert "for sbatch" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_block_that_cannot_be_trained_is_told_and_not_repeated(
    street: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(words(street, out)) == 0
    shutil.rmtree(out / divided.BLOCKS / "1-1/point_cloud")
    (out / divided.BLOCKS / "1-1/point_cloud").write_text("in the way")
    capsys.readouterr()
    assert main(words(street, out, "--on", "local")) != 0
    told = capsys.readouterr().err
    assert "Block 1-1 has ended with code" in told and "nothing is joined yet" in told
    assert len(tries(out / divided.BLOCKS / "jobs", "1-1")) == 1
