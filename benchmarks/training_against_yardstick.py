"""garden_512 trained with the 3dgs criterion: wall time of training, ours against the yardstick's
train_garden.py.

    python benchmarks/training_against_yardstick.py --yardstick FOLDER

FOLDER holds yardstick.so. Both train in turns of 20 s (turns.py), each on its own clock, which counts
steps and densification and stands still during evaluations and while the other works. The rules are the
same: threshold 2e-4, densified every 100 steps after 500 up to 4000, opacities reset at 3000, SH degree up
every 1000 steps, positions' rate falling over the run, the world-size prune after 3000 (--no-size-prune
leaves it out of both). Ours has the 3D filter and dense Adam on top. With several seeds the ratio gets an
interval.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from pathlib import Path

from measuring import interval, table, text, write_results
from turns import evaluations, run_in_turns
from workloads import GARDEN, SHARED

EVALUATED = (1000, 2000, 4000, 7000)
UNTIL = 4000
TARGET = 1.2


def evaluated(steps: int) -> list[int]:
    return sorted({steps, *(step for step in EVALUATED if step < steps)})


def our_words(scene: Path, out: Path, steps: int, seed: int, size_prune: bool, extra: list[str]) -> list[str]:
    at = map(str, evaluated(steps))
    return [
        *("-s", str(scene), "-m", str(out), "--eval", "-r", "1", "--iterations", str(steps), "--quiet"),
        *("--densification", "3dgs", "--densify-until-iter", str(UNTIL + 1), "--seed", str(seed)),
        *("--position-lr-max-steps", str(steps), "--size-prune", "original" if size_prune else "none"),
        *("--threads", "2", "--test-iterations", *at, *extra),
    ]


def pair(chosen: argparse.Namespace, seed: int, folder: Path) -> dict:
    lock = folder / "lock"
    turn = ["--lock", str(lock), "--seconds", str(chosen.seconds)]
    at = ",".join(map(str, evaluated(chosen.iterations)))
    theirs = ["dens", "--its", str(chosen.iterations), "--densify", "--evals", at, "--seed", str(seed)]
    theirs += ["--scene", str(chosen.scene), "--until", str(UNTIL)]
    ours = our_words(
        chosen.scene, folder / "ours", chosen.iterations, seed, not chosen.no_size_prune, chosen.ours.split()
    )
    script = SHARED / "yardstick" / "train_garden.py"
    watched = run_in_turns(
        {
            "yardstick": [
                *turn,
                "--yardstick",
                str(script),
                "--",
                *theirs,
                *["--nobig"] * chosen.no_size_prune,
            ],
            "ours": [*turn, "--events", str(folder / "events.jsonl"), "--", *ours],
        },
        folder,
        {
            "YARDSTICK_OUT": str(folder),
            "YARDSTICK_SO": str(chosen.yardstick.resolve() / "yardstick.so"),
            "GOMP_SPINCOUNT": "0",
        },
    )
    found = {"ours": evaluations(folder / "events.jsonl"), "yardstick": {}}
    for step, seconds, gaussians, psnr, worst, *_ in json.loads((folder / "dens.json").read_text()):
        entry = {"seconds": seconds, "gaussians": gaussians, "worst": worst, "psnr": psnr}
        found["yardstick"][step] = entry
    return {"seed": seed, "quiet": watched.quiet, "watched": watched.said, **found}


def said(one: dict) -> str:
    return f"{one['psnr']:.2f} (worst {one['worst']:.2f}), {one['gaussians']:,.0f}, {one['seconds']:.0f} s"


def page(runs: list[dict], steps: int) -> list[str]:
    last = max(step for step in runs[0]["ours"])
    logs = [math.log(run["yardstick"][last]["seconds"] / run["ours"][last]["seconds"]) for run in runs]
    rows = []
    for run in runs:
        for step in run["ours"]:
            a, b = run["ours"][step], run["yardstick"][step]
            rows.append([run["seed"], step, said(a), said(b), f"{b['seconds'] / a['seconds']:.2f}"])
    quiet = (
        "" if all(run["quiet"] for run in runs) else "**The machine was not quiet: this does not count.** "
    )
    return [
        f"# garden_512 trained for {steps} iterations, against the yardstick",
        "",
        f"Time of the yardstick over ours: **{text(interval(logs))}** (target {TARGET}). {quiet}",
        *[f"Seed {run['seed']}: {run['watched']}." for run in runs],
        "",
        *table(["seed", "iteration", "ours: PSNR, Gaussians, time", "yardstick", "time ratio"], rows),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--yardstick", type=Path, required=True)
    parser.add_argument("--scene", type=Path, default=GARDEN)
    parser.add_argument("--iterations", type=int, default=7000)
    parser.add_argument("--seconds", type=float, default=20.0, help="of a turn")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--no-size-prune", action="store_true")
    parser.add_argument("--ours", default="", help="more options for our trainer, in one string")
    parser.add_argument("--results", type=Path, help="folder for the results; default: benchmarks/results")
    chosen = parser.parse_args()
    runs = []
    for seed in chosen.seeds:
        with tempfile.TemporaryDirectory(prefix="splatmeter-training-") as folder:
            runs.append(pair(chosen, seed, Path(folder)))
        print("\n".join(page(runs, chosen.iterations)), flush=True)
        write_results("training", runs, page(runs, chosen.iterations), chosen.results)


if __name__ == "__main__":
    main()
