"""A scene in blocks, each a SLURM job, one of which is killed and goes on in another; then what was told.

    python tests/jobs/one_node_slurm.py python benchmarks/slurm_story/blocks.py FOLDER [--log FILE]

`one_node_slurm.py` starts a SLURM of one node for it (as root) and ends it; where there is a cluster, leave
it out and choose a FOLDER on storage that all nodes share.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

from splatmeter.blocks.runs import reached
from splatmeter.jobs.folder import JobFolder, tries

OURS = (sys.executable, "-m", "splatmeter")
KILLED = "2-1"
TRAIN = (
    *("--eval", "--preset", "fast", "--checkpoint-minutes", "0.05", "--threads", "1"),
    *("--blocks", "2x1", "--on", "slurm", "--jobs", "2"),
)
TEXT = """# A scene in blocks, as jobs of SLURM

The built-in city, one street block large, in two parts, each a job on a SLURM of one node. The job of block
{block} was killed with SIGKILL (`scancel --signal=KILL --full`) when it had a checkpoint of step {step}. Made
by `python tests/jobs/one_node_slurm.py python benchmarks/slurm_story/blocks.py FOLDER`.

```text
$ splatmeter scene city city --size 1
$ splatmeter train -s city -m out {options}
{told}
```

What SLURM was asked to do, by the folders in `out/blocks/jobs`:

| job | block | how it ended |
| --- | --- | --- |
{jobs}

```text
$ splatmeter eval -m out --lpips none
{judged}
```
"""


def kill_once(out: Path, killed: list[int]) -> None:
    """As soon as the block has something to go on from."""
    job = JobFolder(out / "blocks/jobs" / f"{KILLED}.1")
    while not (reached(out / "blocks" / KILLED) and job.read("started")):
        time.sleep(0.05)
    killed.append(reached(out / "blocks" / KILLED))
    subprocess.run(["scancel", "--signal=KILL", "--full", job.number], check=True)


def shown(text: str, folder: Path) -> str:
    """Without bars, colours and the folder's own path."""
    lines = [line.split("\r")[-1].rstrip() for line in text.replace(str(folder) + "/", "").splitlines()]
    return "\n".join(line for line in lines if line)


def rows(out: Path) -> str:
    found = []
    for block in ("1-1", "2-1"):
        for job in tries(out / "blocks/jobs", block):
            how = "died" if job.died else f"exit code {job.code}"
            found.append(f"| {job.number} | {block} | {how} |")
    return "\n".join(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--log", type=Path, help="also write the log here")
    chosen = parser.parse_args()
    folder = chosen.folder.resolve()
    scene, out = folder / "city", folder / "out"
    subprocess.run([*OURS, "scene", "city", str(scene), "--size", "1"], check=True)
    killed: list[int] = []
    threading.Thread(target=kill_once, args=(out, killed), daemon=True).start()
    words = [*OURS, "train", "-s", str(scene), "-m", str(out), *TRAIN]
    done = subprocess.run(words, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout)
    if done.returncode or not killed:
        return done.returncode or 1
    judged = subprocess.run(
        [*OURS, "eval", "-m", str(out), "--lpips", "none"], capture_output=True, text=True, check=True
    )
    text = TEXT.format(
        block=KILLED, step=killed[0], options=" ".join(TRAIN), told=shown(done.stdout, folder),
        jobs=rows(out), judged=shown(judged.stdout, folder),
    )  # fmt: skip
    (folder / "log.md").write_text(text)
    (folder / "killed.json").write_text(json.dumps({"block": KILLED, "step": killed[0]}))
    if chosen.log:
        chosen.log.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
