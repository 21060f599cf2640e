"""Who runs jobs: SLURM or this machine, both through submitit, which writes batch script and pickle."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from splatmeter.errors import MissingExtra, SplatmeterError, UsageError
from splatmeter.jobs.folder import JobFolder
from splatmeter.jobs.worker import work

CLUSTERS = ("slurm", "local")
DEFAULT_MINUTES = 24 * 60
_OURS = ("nodes", "ntasks", "ntasks-per-node", "array", "exclusive", "oversubscribe", "requeue", "no-requeue",
         "output", "error", "open-mode", "job-name", "signal", "wrap", "chdir")  # fmt: skip
"""What a job is: nobody may ask for another kind of job."""
_OPTION = re.compile(r"[a-z][a-z0-9-]*")


class Standing(str, Enum):
    """How a job stands with its scheduler."""

    WAITING = "waiting"
    RUNNING = "running"
    GONE = "gone"
    """Ended, in whatever way, or no longer known."""
    UNKNOWN = "unknown"
    """The scheduler does not answer: nothing may be concluded."""


class Cluster(Protocol):
    name: str

    def submit(self, job: JobFolder) -> None:
        """Writes submitted.json."""
        ...

    def standing(self, jobs: Sequence[JobFolder]) -> list[Standing]: ...

    def cancel(self, job: JobFolder) -> None:
        """Asks it to end; returns at once."""
        ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """What every job of a cluster is asked with."""

    minutes: int = DEFAULT_MINUTES
    options: Mapping[str, str] = field(default_factory=dict)
    """For sbatch: partition, account, nodelist …; a job always has one node for itself."""


def cluster_of(name: str, wanted: Wanted = Wanted()) -> Cluster:
    """Refuses in one sentence what is not there."""
    with contextlib.suppress(ImportError):
        import submitit as submitit

        if name == "local":
            if wanted.options:
                raise UsageError("Job options are for sbatch; jobs on this machine have none.")
            return Local(wanted)
        if name != "slurm":
            raise UsageError(f"There is no cluster {name!r}; choose {' or '.join(CLUSTERS)}.")
        missing = [tool for tool in ("sbatch", "squeue", "scancel", "srun") if shutil.which(tool) is None]
        if missing:
            raise UsageError(
                f"SLURM is not installed here ({missing[0]} is not found): run this where jobs are "
                "submitted, or run blocks as jobs on this machine with `--on local`."
            )
        return Slurm(wanted)
    raise MissingExtra("Running jobs", "cluster")


def wanted_of(on: str | None, at_once: int, minutes: int, options: Sequence[str]) -> Wanted | None:
    """What a command line asks of jobs, 0 for what it leaves open; None where it asks for none."""
    if not on:
        if at_once or minutes or options:
            raise UsageError("--jobs, --job-option and --job-minutes belong to --on slurm or --on local.")
        return None
    if at_once < 0 or minutes < 0:
        raise UsageError("--jobs and --job-minutes are at least 1.")
    return Wanted(minutes or DEFAULT_MINUTES, checked_options(options))


def checked_options(words: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE as sbatch has them, without what would make another kind of job."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        name = name.lstrip("-").replace("_", "-")
        if not equals or not _OPTION.fullmatch(name) or not value or not value.isprintable():
            raise UsageError(f"{word!r} is not an option of a job; write it as partition=NAME.")
        if name in _OURS:
            raise UsageError(f"{name} cannot be chosen: one job is one block on one node of its own.")
        found[name] = value
    return found


class Slurm:
    """States come from squeue: many clusters keep no accounts, and sacct says nothing there. A number alone
    is not believed, because a controller that lost its state counts from 1 again: the name must fit too.
    """

    name = "slurm"

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted

    def submit(self, job: JobFolder) -> None:
        more = {"no-requeue": True, **self.wanted.options}
        name = f"splatmeter-{secrets.token_hex(4)}"
        settings = {"slurm_exclusive": True, "slurm_use_srun": False, "slurm_additional_parameters": more}
        if "nodelist" in self.wanted.options:
            job.write("job", job.read("job") | {"nodes": _expanded(self.wanted.options["nodelist"])})
        number = _submitted("slurm", job, self.wanted.minutes, {"name": name, **settings}).job_id
        job.write("submitted", {"cluster": self.name, "id": number, "name": name})

    def standing(self, jobs: Sequence[JobFolder]) -> list[Standing]:
        numbers = ",".join(job.number for job in jobs if job.number.isdigit())
        answer = _asked("squeue", "--noheader", "--states=all", "--format=%i,%j %T", f"--jobs={numbers}")
        if answer is None or (answer.returncode and "Invalid job id" not in answer.stderr):
            return [Standing.UNKNOWN for _ in jobs]
        told = dict(line.split()[:2] for line in answer.stdout.splitlines() if len(line.split()) >= 2)
        return [_of_slurm(told.get(f"{job.number},{_name(job)}", "")) for job in jobs]

    def cancel(self, job: JobFolder) -> None:
        if job.number.isdigit():
            _asked("scancel", f"--name={_name(job)}", job.number)


_OVER = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
         "PREEMPTED", "REVOKED", "TIMEOUT", ""}  # fmt: skip


def _name(job: JobFolder) -> str:
    return str(job.read("submitted").get("name", ""))


def _of_slurm(state: str) -> Standing:
    if state in _OVER:
        return Standing.GONE
    return Standing.WAITING if state == "PENDING" else Standing.RUNNING


class Local:
    """Jobs on this machine, by submitit's local executor: they live on if the one who submitted them dies."""

    name = "local"

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self._own: dict[str, Any] = {}

    def submit(self, job: JobFolder) -> None:
        import psutil

        # the executor hides all cards from its jobs, as a scheduler would that gave them none
        variables = {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES")}
        job.write("job", job.read("job") | {"variables": variables})
        with _out_of_reach_of_the_terminal():
            made = _submitted("local", job, self.wanted.minutes, {"name": "splatmeter"})
        self._own[made.job_id] = made
        since = psutil.Process(int(made.job_id)).create_time()
        job.write("submitted", {"cluster": self.name, "id": made.job_id, "since": since})

    def standing(self, jobs: Sequence[JobFolder]) -> list[Standing]:
        for own in self._own.values():
            own.done()  # so that what has ended is not kept as a zombie
        return [Standing.RUNNING if _process(job) else Standing.GONE for job in jobs]

    def cancel(self, job: JobFolder) -> None:
        process = _process(job)
        if process is not None:
            process.terminate()


def _process(job: JobFolder) -> Any:
    """The one we started, never another that got its number; None if it has ended."""
    import psutil

    try:
        process = psutil.Process(int(job.number))
        alive = process.create_time() == job.read("submitted").get("since")
        return process if alive and process.status() != psutil.STATUS_ZOMBIE else None
    except (psutil.Error, ValueError):
        return None


def _submitted(cluster: str, job: JobFolder, minutes: int, settings: Mapping[str, Any]) -> Any:
    """A pickle of a reference to `work` and a path; its folder is ours alone."""
    import submitit

    logging.getLogger("submitit").setLevel(logging.ERROR)
    folder = job.path / "submitit"
    folder.mkdir(mode=0o700)
    executor = submitit.AutoExecutor(folder=folder, cluster=cluster)
    executor.update_parameters(timeout_min=minutes, nodes=1, tasks_per_node=1, **settings)
    try:
        return executor.submit(work, str(job.path.resolve()))
    except (RuntimeError, subprocess.CalledProcessError) as problem:
        lines = [line for line in str(problem).splitlines() if line.strip()] or ["it did not say why"]
        raise SplatmeterError(f"The job was refused: {lines[-1].strip().rstrip('.')}.") from None


@contextlib.contextmanager
def _out_of_reach_of_the_terminal() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal; jobs are ended by us, who know what they do."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _expanded(nodes: str) -> list[str]:
    """node[1-3] as three names."""
    answer = _asked("scontrol", "show", "hostnames", nodes)
    found = answer.stdout.split() if answer is not None and answer.returncode == 0 else []
    if not found:
        raise UsageError(f"SLURM does not understand the list of nodes {nodes!r}.")
    return found


def _asked(*words: str) -> subprocess.CompletedProcess[str] | None:
    """None if there is no answer."""
    try:
        return subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
