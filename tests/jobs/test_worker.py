"""What runs on a node, in a process of its own: its end is written down, and it takes its child along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from splatmeter.jobs.folder import JobFolder, Task, new_try
from splatmeter.jobs.worker import NOT_MINE, WRONG_NODE

START = "import sys; from splatmeter.jobs.worker import work; sys.exit(work(sys.argv[1]))"


def start(job: JobFolder, **variables: str) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    words = [sys.executable, "-c", START, str(job.path)]
    return subprocess.Popen(words, env=environment | variables, stderr=subprocess.PIPE)


def ended(process: subprocess.Popen[bytes]) -> int:
    process.communicate(timeout=60)
    return process.returncode


def python(code: str) -> Task:
    return Task("task", (sys.executable, "-S", "-c", code))


def test_the_exit_code_and_the_words_are_kept(tmp_path: Path) -> None:
    code = "import os, sys; print(os.environ['SPLATMETER_JOB']); sys.exit('no cookies left')"
    job = new_try(tmp_path, python(code), {"variables": {"PATH": None}})
    assert ended(start(job)) == 1
    assert job.code == 1 and job.last_words() == "no cookies left"
    assert (job.path / "stdout.txt").read_text() == "task.1\n"


def test_a_second_start_of_one_job_does_nothing(tmp_path: Path) -> None:
    """A scheduler that puts a job back into its queue would run it into its own evidence."""
    job = new_try(tmp_path, python("print('once')"), {})
    assert ended(start(job)) == 0
    (job.path / "stdout.txt").unlink()
    assert ended(start(job)) == NOT_MINE
    assert not (job.path / "stdout.txt").exists()


def test_a_node_that_nobody_asked_for_runs_nothing(tmp_path: Path) -> None:
    job = new_try(tmp_path, python("print('here')"), {"nodes": ["n1", "n2"]})
    assert ended(start(job, SLURMD_NODENAME="n3")) == WRONG_NODE
    assert "It ran on n3 and was sent to n1, n2" in job.read("ended")["message"]
    assert not (job.path / "stdout.txt").exists()
    other = new_try(tmp_path, python("print('here')"), {"nodes": ["n1", "n2"]})
    assert ended(start(other, SLURMD_NODENAME="n2", SLURM_JOB_NUM_NODES="2")) == WRONG_NODE


def test_a_signal_ends_the_child_and_is_no_end_of_its_own(tmp_path: Path) -> None:
    job = new_try(tmp_path, python("import time; print('on', flush=True); time.sleep(600)"), {})
    process = start(job)
    child = _child_of(process, job)
    process.send_signal(signal.SIGTERM)
    ended(process)
    assert job.read("ended")["signalled"] is True
    assert not Path(f"/proc/{child}").exists()


def test_a_child_that_is_killed_did_not_end_by_itself(tmp_path: Path) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    job = new_try(tmp_path, python(code), {})
    ended(start(job))
    assert job.read("ended")["signalled"] is True and job.code < 0


def test_a_program_that_does_not_exist_is_told(tmp_path: Path) -> None:
    job = new_try(tmp_path, Task("task", ("/nowhere/program",)), {})
    assert ended(start(job)) != 0
    assert "/nowhere/program" in job.last_words()


def _child_of(process: subprocess.Popen[bytes], job: JobFolder) -> int:
    import psutil

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        out = job.path / "stdout.txt"
        if out.exists() and out.read_text():
            return psutil.Process(process.pid).children()[0].pid
        time.sleep(0.02)
    raise AssertionError("the child never said a word")
