"""A session whose blocks are SLURM jobs, one of which is killed on purpose and repeated; then its log.

    python tests/jobs/one_node_slurm.py python benchmarks/slurm_story/play.py FOLDER [--blocks N] [--log FILE]
    ... --seconds N: interrupts the lab (as Ctrl-C does) after so long; the same command goes on with it

`one_node_slurm.py` starts a SLURM of one node for it (as root) and ends it; where there is a cluster, leave
it out and choose a FOLDER on storage that all nodes share.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

OURS = (sys.executable, "-m", "splatmeter")
NOTE = (
    "The quick built-in scene, so short runs. The job of one block was killed in the middle of a run"
    " (`scancel --signal=KILL --full`); the lab submitted that block again, and what the killed job had begun"
    " is kept and counts for nothing."
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--seconds", type=float, help="interrupt the lab after so long")
    parser.add_argument("--log", type=Path, help="also write the log here")
    chosen = parser.parse_args()
    begun = time.monotonic()
    lab = chosen.folder / "lab"
    words = ["resume"] if lab.exists() else make_lab(lab, chosen.blocks)
    session = subprocess.Popen([*OURS, "lab", "--lab", str(lab), *words])
    while session.poll() is None:
        kill_once(lab)
        if chosen.seconds and time.monotonic() - begun > chosen.seconds:
            print("interrupted", flush=True)
            session.send_signal(signal.SIGINT)
            return session.wait()
        time.sleep(0.1)
    if session.returncode:
        return session.returncode
    run("lab", "--lab", str(lab), "log")
    if chosen.log:
        shutil.copyfile(lab / "LOG.md", chosen.log)
    return 0


def make_lab(lab: Path, blocks: int) -> list[str]:
    """How the session is begun."""
    scene = lab.parent / "garden"
    run("scene", "demo", str(scene), "--quick")
    size = ["--start", "0", "--iterations", "300", "--evaluate-at", "150", "--resolution", "1"]
    run("lab", "--lab", str(lab), "init", "--scene", str(scene), *size, "--title", "Blocks as SLURM jobs")
    protocol = lab / "protocol.toml"  # one thread: whatever else runs on the machine disturbs that least
    protocol.write_text(protocol.read_text().replace("options = [", 'options = ["--threads", "1", ', 1))
    told = ["--title", "Harmonics sooner", "--change", "quality", "--note", NOTE]
    run("lab", "--lab", str(lab), "phase", "add", "harmonics", *told, "--", "--sh-interval", "50")
    return ["ab", "baseline", "harmonics", "--blocks", str(blocks), "--on", "slurm"]


def run(*words: str) -> None:
    subprocess.run([*OURS, *words], check=True)


def kill_once(lab: Path) -> None:
    """Kills one job that is not the first, while one of its runs is under way."""
    done = lab / "killed"
    for running in () if done.exists() else lab.glob("sessions/*/blocks/*/*-*/process.json"):
        if running.parent.parent.name.startswith("000"):
            continue
        job = json.loads((running.parent / "command.json").read_text())["identity"]["job"]
        number = json.loads((running.parents[3] / "jobs" / job / "submitted.json").read_text())["id"]
        subprocess.run(["scancel", "--signal=KILL", "--full", number], check=True)
        done.write_text(f"{number}\n")
        print(f"killed job {number}", flush=True)
        return


if __name__ == "__main__":
    sys.exit(main())
