"""A kernel phase from beginning to end: a trainer with a rasterizer in a submodule, two commits of a kernel,
two ways to build it, all by the lab with nvcc; the log tells what ptxas said before and after. No card is
needed, and none is used.

    python benchmarks/kernel_story/play.py FOLDER [--blocks N] [--log FILE]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ARCHITECTURES = ("80", "89")
BOUNDS = "__launch_bounds__(256, 6)"
STAND_IN = (
    "The trainer is a stand-in that keeps its own pace and uses no card: what ptxas says is real, the speeds"
    " say nothing about the kernels."
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--log", type=Path, help="also write the log here")
    chosen = parser.parse_args()
    play(chosen.folder, chosen.blocks)
    if chosen.log:
        shutil.copyfile(chosen.folder / "lab" / "LOG.md", chosen.log)
    return 0


def play(folder: Path, blocks: int) -> Path:
    """Returns the lab's folder."""
    trainer = make_repository(folder)
    lab = folder / "lab"
    (folder / "scene").mkdir()
    words = ["--scene", str(folder / "scene"), "--trainer", "mip-splatting", "--directory", str(trainer)]
    words += ["--start", "0", "--iterations", "200", "--evaluate-at", "100", "--resolution", "1"]
    run_lab(lab, "init", *words, "--title", "A kernel and its registers")
    run_lab(
        lab, "phase", "set", "baseline", "--revision", "baseline", "--note", STAND_IN, "--build", command()
    )
    bounded = [
        "--title",
        "Six blocks on a multiprocessor",
        "--code-change",
        f"`{BOUNDS}` before blend_backward",
    ]
    bounded += ["--note", "Registers that are lacking spill to memory."]
    run_lab(lab, "phase", "add", "launch-bounds", "--revision", "launch-bounds", *bounded)
    capped = ["--title", "At most 64 registers a thread", "--note", "The same sources with another build."]
    run_lab(lab, "phase", "add", "capped", *capped, "--build", "--", *command("-maxrregcount", "64").split())
    for name in ("launch-bounds", "capped"):
        run_lab(lab, "run", name, "--blocks", str(blocks))
    run_lab(lab, "log")
    run_lab(lab, "report")
    return lab


def command(*more: str) -> str:
    """As a person would type it."""
    targets = " ".join(f"-gencode arch=compute_{number},code=sm_{number}" for number in ARCHITECTURES)
    sources = "submodules/rasterizer/blend.cu -include submodules/rasterizer/bounds.h"
    words = " ".join(["nvcc -O3 -Xptxas -v", *more])
    return f"{words} {targets} -shared -Xcompiler -fPIC {sources} -o librasterizer.so"


def run_lab(lab: Path, *words: str) -> None:
    told = " ".join(f"'{word}'" if " " in word else word for word in words)
    print(f"$ splatmeter lab {told}", flush=True)
    subprocess.run([sys.executable, "-m", "splatmeter", "lab", "--lab", str(lab), *words], check=True)


def make_repository(folder: Path) -> Path:
    """A trainer whose kernels live in a submodule, in two revisions."""
    rasterizer, trainer = folder / "rasterizer", folder / "trainer"
    shutil.copytree(HERE / "rasterizer", rasterizer)
    shutil.copytree(HERE / "trainer", trainer, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (rasterizer, trainer):
        git(path, "init", "--quiet", "--initial-branch", "main")
    bounds(rasterizer, "")
    commit(rasterizer, "A rasterizer")
    git(trainer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add",
        str(rasterizer.resolve()), "submodules/rasterizer")  # fmt: skip
    commit(trainer, "A trainer", "baseline")
    inside = trainer / "submodules" / "rasterizer"
    bounds(inside, BOUNDS)
    commit(inside, f"Bounds: {BOUNDS}")
    commit(trainer, "launch-bounds", "launch-bounds")
    return trainer


def bounds(folder: Path, words: str) -> None:
    (folder / "bounds.h").write_text(f"#define BOUNDS {words}\n")


def commit(folder: Path, message: str, tag: str = "") -> None:
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", message)
    if tag:
        git(folder, "tag", tag)


def git(folder: Path, *words: str) -> None:
    """With the same author and time for everybody, so that the commits are the same everywhere."""
    person = {"NAME": "story", "EMAIL": "story@example.org", "DATE": "2026-01-27T10:00:00Z"}
    known = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in person.items()}
    subprocess.run(["git", *words], cwd=folder, check=True, env=os.environ | known)


if __name__ == "__main__":
    sys.exit(main())
