"""A real SLURM of one node on this machine, in a folder of its own: started here, ended by process id.

python one_node_slurm.py COMMAND ...     runs a command with it (as root; apt-get install slurm-wlm munge)
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

DAEMONS = ("munged", "mungekey", "slurmctld", "slurmd", "sinfo", "sbatch")
MOST_SECONDS = 60.0


def why_not() -> str:
    """Why there can be no SLURM here; empty if there can."""
    missing = [name for name in DAEMONS if _program(name) is None]
    if missing:
        return f"SLURM is not installed here: {missing[0]} is missing (apt-get install slurm-wlm munge)"
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "SLURM is installed here, but only root can start it for a test"
    return ""


@contextlib.contextmanager
def one_node_slurm() -> Iterator[dict[str, str]]:
    """What the environment needs; every daemon is ended when it is left."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    folder.chmod(0o755)
    pids: list[Path] = []
    try:
        pids.append(_munge(folder))
        configuration = _configuration(folder)
        environment = {**os.environ, "SLURM_CONF": str(configuration)}
        for name in ("slurmctld", "slurmd"):
            pids.append(folder / f"{name}.pid")
            subprocess.run([_program(name) or name, "-f", str(configuration)], check=True, timeout=30)
        _wait_until_idle(environment, folder)
        yield {"SLURM_CONF": str(configuration)}
    finally:
        for path in reversed(pids):
            _end(path)
        shutil.rmtree(folder, ignore_errors=True)


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _munge(folder: Path) -> Path:
    """A key and a socket of its own: what the machine has installed is not touched."""
    own = folder / "munge"
    own.mkdir(mode=0o711)
    subprocess.run([_program("mungekey") or "", "--create", "--keyfile", str(own / "key")], check=True)
    places = [f"--{name}={own / name}" for name in ("key-file", "pid-file", "log-file", "seed-file")]
    places = [f"--key-file={own / 'key'}", *places[1:], f"--socket={own / 'socket'}"]
    subprocess.run([_program("munged") or "", "--force", *places], check=True, timeout=30)
    return own / "pid-file"


def _configuration(folder: Path) -> Path:
    host = socket.gethostname().split(".")[0]
    ports = _free_ports(2)
    processors = os.cpu_count() or 1
    for name in ("state", "spool"):
        (folder / name).mkdir()
    lines = f"""
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
MpiDefault=none
KillWait=15
NodeName={host} NodeAddr=127.0.0.1 CPUs={processors} RealMemory=1000
PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
    path = folder / "slurm.conf"
    path.write_text(lines)
    return path


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for item in sockets:
            item.bind(("127.0.0.1", 0))
        return [item.getsockname()[1] for item in sockets]


def _wait_until_idle(environment: dict[str, str], folder: Path) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    while time.monotonic() < deadline:
        words = ["sinfo", "--noheader", "--format=%T"]
        told = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        if told.stdout.strip() == "idle":
            return
        time.sleep(0.2)
    logs = "\n".join(path.read_text("utf-8", "replace")[-2000:] for path in folder.glob("*.log"))
    raise RuntimeError(f"SLURM did not become ready: {told.stdout} {told.stderr}\n{logs}")


def _end(pid_file: Path) -> None:
    """The process that wrote this file, and no other."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(pid_file.read_text())
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and Path(f"/proc/{pid}").exists():
            time.sleep(0.05)


if __name__ == "__main__":
    if why_not():
        sys.exit(why_not())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the daemons are ended in any case
    with one_node_slurm() as variables:
        sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, **variables}, check=False).returncode)
