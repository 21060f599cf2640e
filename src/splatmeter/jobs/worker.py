"""What runs on the node: one child process, ended with the job, and a JSON file that says how it went.

submitit pickles a reference to `work` and the path of the job's folder: nothing else travels in a pickle.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from splatmeter.jobs.folder import JobFolder

GRACE_SECONDS = 10.0
"""How long what runs may take to end after SIGTERM; schedulers wait 30 seconds before they kill."""
NOT_MINE, WRONG_NODE = 75, 76
"""Exit codes of jobs that ran nothing: started before, or on a node that nobody asked for."""
JOB = "SPLATMETER_JOB"
"""Tells what runs in a job the name of its folder."""
_TOLD = ("SLURM_JOB_ID", "SLURM_JOB_PARTITION", "SLURM_CPUS_ON_NODE", "SLURM_JOB_NUM_NODES")


def work(folder: str) -> int:
    """The whole job; its exit code is also in ended.json."""
    job = JobFolder(Path(folder))
    asked = job.read("job")
    told = {name: os.environ[name] for name in _TOLD if name in os.environ}
    started = {"node": node_name(), "pid": os.getpid(), "scheduler": told}
    if not asked or not job.write_once("started", started):
        print("this job was started before; nothing is done twice under one number", file=sys.stderr)
        return NOT_MINE
    wrong = elsewhere(asked.get("nodes") or [], told)
    code, signalled = (WRONG_NODE, False) if wrong else _child(job, asked)
    job.write("ended", {"code": code, "message": wrong, "signalled": signalled})
    return code


def node_name() -> str:
    """As the scheduler calls it, else as it calls itself."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def elsewhere(nodes: list[str], told: Mapping[str, str]) -> str:
    """Why this is not where the job was sent; empty if it is."""
    if told.get("SLURM_JOB_NUM_NODES", "1") != "1":
        return f"It was spread over {told['SLURM_JOB_NUM_NODES']} nodes; a job has one."
    if nodes and node_name() not in nodes:
        return f"It ran on {node_name()} and was sent to {', '.join(nodes)}."
    return ""


def _child(job: JobFolder, asked: Mapping[str, Any]) -> tuple[int, bool]:
    """Its exit code, and whether somebody ended it before it was done."""
    with (job.path / "stdout.txt").open("wb") as out, (job.path / "stderr.txt").open("wb") as err:
        try:
            child = subprocess.Popen(
                [*_dies_with_us(), *asked["arguments"]],
                cwd=asked.get("directory") or None,
                env=_environment(job, asked.get("variables") or {}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except (OSError, KeyError, TypeError) as problem:
            err.write(f"it could not be started: {problem}\n".encode())
            return 127, False
        ended: list[int] = []
        _hear_signals(child, ended)
        code = child.wait()
        return (128 + ended[0], True) if ended else (code, code < 0)


def _hear_signals(child: subprocess.Popen[bytes], ended: list[int]) -> None:
    """Until now submitit had them; it ignores SIGTERM and queues the job again, which is not its business."""

    def end(number: int, _: object) -> None:
        ended.append(number)
        signal_group(child.pid, signal.SIGTERM)
        later = threading.Timer(GRACE_SECONDS, signal_group, (child.pid, signal.SIGKILL))
        later.daemon = True  # it is not waited for if the child ends before
        later.start()

    for name in ("SIGTERM", "SIGINT", "SIGUSR2"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), end)


def signal_group(leader: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def _dies_with_us() -> tuple[str, ...]:
    """Linux ends the child even if this process is killed outright."""
    tool = shutil.which("setpriv") if sys.platform.startswith("linux") else None
    return (tool, "--pdeathsig", "KILL", "--") if tool else ()


def _environment(job: JobFolder, variables: Mapping[str, str | None]) -> dict[str, str]:
    """What the submitter wants set, or unset where it says None."""
    kept = {name: value for name, value in os.environ.items() if name not in variables}
    wanted = {name: value for name, value in variables.items() if value is not None}
    return kept | wanted | {JOB: job.path.name}
