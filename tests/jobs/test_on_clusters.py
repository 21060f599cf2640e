"""Jobs for real: on a SLURM of one node, and on this machine by submitit's local executor."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from splatmeter.errors import SplatmeterError, UsageError
from splatmeter.jobs.cluster import Standing, Wanted, cluster_of
from splatmeter.jobs.crew import Crew, News, Report
from splatmeter.jobs.folder import JobFolder, Task, new_try

pytest.importorskip("submitit", reason="submitit is not installed: pip install 'splatmeter[cluster]'")


@pytest.fixture(params=["slurm", "local"])
def cluster(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "slurm":
        for name, value in request.getfixturevalue("slurm").items():
            monkeypatch.setenv(name, value)
    return request.param


def once(marker: Path) -> Task:
    """Sleeps for ever the first time, ends at once afterwards."""
    code = f"import pathlib, time; p = pathlib.Path({str(marker)!r}); first = not p.exists(); p.touch()\n"
    code += "time.sleep(600 if first else 0)"
    return Task("once", (sys.executable, "-S", "-c", code))


def reports(folder: Path, cluster: str, *tasks: Task) -> Iterator[Report]:
    left = list(tasks)
    return Crew(
        cluster_of(cluster), folder, lambda: left.pop(0) if left else None, at_once=2, look_every=0.1
    ).reports()


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} never appeared"
        time.sleep(0.05)


def test_a_job_that_is_killed_is_repeated_and_others_are_not(tmp_path: Path, cluster: str) -> None:
    marker = tmp_path / "marker"
    told = Task("told", (sys.executable, "-S", "-c", "import sys; sys.exit('told why')"))
    seen: list[str] = []
    for report in reports(tmp_path / "jobs", cluster, told, once(marker)):
        seen.append(f"{report.job.path.name} {report.news.value}")
        if report.task.name == "once" and report.news is News.STARTED and report.job.path.name == "once.1":
            wait_for(marker)
            kill(cluster, report.job)
    assert "told.1 ended" in seen and "told.2 submitted" not in seen
    assert JobFolder(tmp_path / "jobs" / "once.1").died
    assert "once.1 died" in seen and seen[-1] == "once.2 ended"
    assert JobFolder(tmp_path / "jobs" / "told.1").last_words() == "told why"
    assert (tmp_path / "jobs" / "once.2").stat().st_mode & 0o077 == 0  # pickles lie where nobody else writes


def kill(cluster: str, job: JobFolder) -> None:
    """Without a chance to say goodbye."""
    if cluster == "slurm":
        subprocess.run(["scancel", "--signal=KILL", "--full", job.number], check=True)
    else:
        os.kill(int(job.read("started")["pid"]), 9)


def test_leaving_cancels_what_runs(tmp_path: Path, cluster: str) -> None:
    marker = tmp_path / "marker"
    stream = reports(tmp_path / "jobs", cluster, once(marker))
    job = next(report.job for report in stream if report.news is News.STARTED)
    wait_for(marker)
    stream.close()  # type: ignore[attr-defined]
    assert job.read("ended").get("signalled") is True and not job.died


def test_a_number_that_belongs_to_somebody_else_now_is_left_alone(
    tmp_path: Path, slurm: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller that lost its state counts from 1 again; our old number is then another job's."""
    monkeypatch.setenv("SLURM_CONF", slurm["SLURM_CONF"])
    marker = tmp_path / "marker"
    cluster = cluster_of("slurm")
    stream = reports(tmp_path / "jobs", "slurm", once(marker))
    theirs = next(report.job for report in stream if report.news is News.STARTED)
    ours = new_try(tmp_path / "old", Task("once", ("true",)), {})
    ours.write("submitted", {"cluster": "slurm", "id": theirs.number, "name": "splatmeter-of-before"})
    assert cluster.standing([ours, theirs]) == [Standing.GONE, Standing.RUNNING]
    cluster.cancel(ours)
    assert cluster.standing([theirs]) == [Standing.RUNNING]
    stream.close()  # type: ignore[attr-defined]


def test_what_slurm_refuses_is_one_sentence(
    tmp_path: Path, slurm: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", slurm["SLURM_CONF"])
    crew = Crew(
        cluster_of("slurm", Wanted(5, {"partition": "nowhere"})), tmp_path, lambda: Task("a", ("true",))
    )
    with pytest.raises(SplatmeterError, match=r"The job was refused: .*partition"):
        next(crew.reports())


def test_without_slurm_the_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="--on local"):
        cluster_of("slurm")
    with pytest.raises(UsageError, match="no cluster 'pbs'"):
        cluster_of("pbs")
