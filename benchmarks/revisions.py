"""Whole iterations of two revisions of splatmeter, interleaved: did a change cost or gain anything?

    python benchmarks/revisions.py --yardstick FOLDER --before CHECKOUT PYTHON

CHECKOUT is a worktree of the other revision and PYTHON an environment in which it is installed; this script
runs in the environment of the revision at hand. FOLDER holds g140.npz and g1m.npz (see README.md).
Each revision works in a process of its own, with its own benchmarks/workloads.py; the two take turns in
random order, one block each a round, and wait while the other works. Where memory lies is drawn anew in every
process, so the rounds are spread over fresh pairs of processes: a ratio is exp(mean of ln(before /
after)) with its 95 % interval over pairs. "outside" is what a step spends outside the engine's passes: mostly
Python. The workload "trainer" is garden_512 through the trainer's own step, from its points, without
densification: what a user gets. "trained" is garden_512 with the Gaussians of --model, a point_cloud.ply,
which hardly move; --light-cut is for this revision alone, where the other one has none.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

WORKLOADS = ("g140 648x420", "g140 1297x840", "g1m 648x420", "g1m 1297x840", "trainer")
BLOCK_SECONDS = 1.0


# ---- one revision's process -------------------------------------------------------------------------------
class Steps:
    """A workload of the engine, or garden_512 through the trainer; both revisions have the same names."""

    def __init__(self, workload: str, folder: Path, threads: int, light_cut: float) -> None:
        import workloads

        if workload == "trainer":
            self._train(workloads, threads)
            return
        if workload == "trained":
            work = trained(workloads, folder)
        else:
            work = workloads.stored(folder, *workload.split())
        ours = workloads.Ours(work, threads)
        if light_cut:
            ours.settings = replace(ours.settings, light_cut=light_cut)
        self.run, self.passes = ours.cycle, ours.passes

    def _train(self, workloads: Any, threads: int) -> None:
        from splatmeter.backends.registry import backend
        from splatmeter.train.assemble import assemble
        from splatmeter.train.config import TrainConfig

        engine = backend("native", threads)
        settings = {"eval": True, "resolution": 1, "densification": "none", "iterations": 10**6}
        folder = Path(tempfile.mkdtemp()) / "run"
        parts = assemble(TrainConfig(source_path=workloads.GARDEN, model_path=folder, **settings), engine)
        self.run = lambda _: parts.step(parts.state)
        self.passes = lambda: dict(engine.timings())


def trained(workloads: Any, folder: Path) -> Any:
    """garden_512's photos, and the Gaussians of a model's arrays in `folder`."""
    file, scene = np.load(folder / "trained.npz"), workloads.garden()
    arrays = {key: file[key] for key in workloads.ARRAYS}
    return workloads.Workload(arrays, scene.cameras, scene.photos, file["filters"])


def keep_arrays(model: Path, folder: Path) -> None:
    """Of a model file, in the form that every revision's workloads have."""
    from splatmeter.gaussians import ply
    from splatmeter.ops import FILTER_3D

    table = ply.read_model(model).table
    g = table.geometry
    np.savez(
        folder / "trained.npz",
        means=g[:, 0:3],
        scales=g[:, 3:6],
        quats=g[:, 6:10],
        ops=g[:, 10],
        sh=table.harmonics.reshape(len(g), 16, 3),
        filters=g[:, FILTER_3D],
    )


def serve(workload: str, folder: Path, threads: int, light_cut: float) -> None:
    """A line in, a number of steps; a line out, seconds a step and seconds in passes. Begins by saying how
    many steps fill a block."""
    steps = Steps(workload, folder, threads, light_cut)
    done = 0

    def block(count: int) -> tuple[float, float]:
        nonlocal done
        steps.passes()
        start = time.perf_counter()
        for _ in range(count):
            steps.run(done)
            done += 1
        seconds = time.perf_counter() - start
        return seconds / count, sum(steps.passes().values()) / count

    block(30 if workload == "trainer" else 6)
    seconds, _ = block(6)
    print(json.dumps(max(3, 3 * math.ceil(BLOCK_SECONDS / seconds / 3))), flush=True)
    for line in sys.stdin:
        print(json.dumps(block(int(line))), flush=True)


# ---- both -------------------------------------------------------------------------------------------------
class Revision:
    def __init__(self, checkout: Path, python: str, words: list[str]) -> None:
        command = [python, str(Path(__file__).resolve()), "--serve", str(checkout / "benchmarks"), *words]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.block_steps = int(self._answer())

    def block(self, steps: int) -> tuple[float, float]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return tuple(self._answer())

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit("a revision's process ended early; its own message is above")
        return json.loads(line)


def pair(before: list[str], words: list[str], rounds: int, seed: int, cut: list[str]) -> dict[str, float]:
    """Means over quiet rounds of the logarithms of two fresh processes."""
    from measuring import ANYWAY, MOST_FOREIGN, ForeignCpu

    here = Path(__file__).resolve().parent.parent
    sides = {
        "before": Revision(Path(before[0]), before[1], words),
        "after": Revision(here, sys.executable, [*words, *cut]),
    }
    steps = max(side.block_steps for side in sides.values())
    random, found, refused = np.random.default_rng(seed), [], 0
    while len(found) < rounds and refused < 4 * rounds:
        foreign = ForeignCpu([side.process.pid for side in sides.values()])
        got = {name: sides[name].block(steps) for name in random.permutation(list(sides))}
        if foreign.share() >= MOST_FOREIGN and not ANYWAY:
            refused += 1
            continue
        found.append(got)
    for side in sides.values():
        side.close()
    if not found:
        sys.exit("the machine was never quiet: nothing was measured")
    record: dict[str, float] = {
        "log_ratio": float(np.mean([math.log(got["before"][0] / got["after"][0]) for got in found])),
        "rounds": len(found),
        "refused": refused,
    }
    for name in sides:
        step = np.median([got[name][0] for got in found])
        passes = np.median([got[name][1] for got in found])
        record |= {f"{name}_ms": 1e3 * step, f"{name}_outside_ms": 1e3 * (step - passes)}
    return record


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--yardstick", type=Path)
    parser.add_argument("--model", type=Path, help="Gaussians for the workload 'trained'")
    parser.add_argument("--light-cut", default="0", help="of this revision, in 'trained'")
    parser.add_argument("--before", nargs=2, metavar=("CHECKOUT", "PYTHON"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS))
    parser.add_argument("--results", type=Path)
    parser.add_argument("--serve", help="be one of the processes, with the workloads of this folder")
    chosen = parser.parse_args()
    if chosen.serve:
        sys.path[0] = chosen.serve  # instead of this script's own folder
        serve(chosen.workloads[0], chosen.yardstick, chosen.threads, float(chosen.light_cut))
        return
    from measuring import interval, table, text, write_results

    kept = tempfile.TemporaryDirectory(prefix="revisions-")
    if chosen.model:
        keep_arrays(chosen.model, Path(kept.name))
    record, rows = {}, []
    for workload in chosen.workloads:
        folder = kept.name if workload == "trained" else str(chosen.yardstick)
        words = ["--yardstick", folder, "--threads", str(chosen.threads), "--workloads", workload]
        cut = ["--light-cut", chosen.light_cut] if workload == "trained" else []
        pairs = [pair(chosen.before, words, chosen.rounds, seed, cut) for seed in range(chosen.pairs)]
        ratio = interval([one["log_ratio"] for one in pairs])
        record[workload] = {"ratio": ratio, "pairs": pairs}
        median = {name: float(np.median([one[name] for one in pairs])) for name in pairs[0]}
        shares = [median[f"{side}_outside_ms"] / median[f"{side}_ms"] for side in ("before", "after")]
        outside = " -> ".join(f"{median[f'{side}_outside_ms']:.3f} ms" for side in ("before", "after"))
        rows.append([workload, text(ratio, 3), outside, " -> ".join(f"{share:.2%}" for share in shares)])
        print(rows[-1], flush=True)
    commit = subprocess.run(
        ["git", "-C", chosen.before[0], "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    lines = [
        f"# Whole iterations against revision {commit}",
        "",
        f"{chosen.threads} threads, {chosen.pairs} pairs of fresh processes, {chosen.rounds} rounds each. "
        "Above 1: this revision is faster.",
        "",
        *table(["workload", "before / after", "outside the passes", "share of the step"], rows),
    ]
    write_results("revisions", record, lines, chosen.results)


if __name__ == "__main__":
    main()
