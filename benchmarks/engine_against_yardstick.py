"""Whole iterations and single passes of our engine against the yardstick, interleaved in one process.

    python benchmarks/engine_against_yardstick.py --yardstick FOLDER

FOLDER holds yardstick.so (../shared/yardstick/build.sh), g140.npz and g1m.npz (make_workload.py 1.5 1.5).
Each round runs both engines on the same cameras in random order. Where memory comes to lie is drawn anew
in every process and moves both engines by several per cent, so the rounds are spread over fresh processes:
a ratio is exp(mean of ln(yardstick / ours)) with its 95 % interval over *processes*. Ours includes the 3D
filter, densification statistics, dense Adam semantics and the same bits for any number of threads; the
yardstick (fused mode, GOMP_SPINCOUNT=0) has none of these, and is given the filtered scales and opacities,
so that both blend the same Gaussians. Rounds during which other processes used 5 % of the machine or more
are repeated.

The workload "garden" is real training: garden_512 from its points at 512x512 with the training's learning
rates, SH degree 3, no densification, the first 200 iterations, both engines on the same arrays and views,
each going on with its own state, in turns of 20 iterations. Its noisy blocks are left out; it is repeated
from the beginning.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from measuring import (
    Arm,
    ForeignCpu,
    Rounds,
    counted,
    in_processes,
    interleave,
    interval,
    keep,
    table,
    text,
    write_results,
)
from workloads import GARDEN, SIZES, YARDSTICK_PASSES, Ours, Workload, Yardstick, garden, stored

from splatmeter.scene.sampler import ViewSampler

TARGETS = {"g140": 1.0, "g1m": 1.1, "garden": 1.0}
ITERATIONS, TURN = 200, 20
PASSES = list(YARDSTICK_PASSES.values())


def compare(work: Workload, library: Path, threads: int, rounds: int) -> Rounds:
    ours, theirs = Ours(work, threads), Yardstick(work, threads, library)
    arms = [Arm("ours", ours.cycle, ours.passes), Arm("yardstick", theirs.cycle, theirs.passes)]
    return interleave(arms, rounds, len(work.cameras))


def train_both(work: Workload, library: Path, threads: int, repeats: int) -> Rounds:
    """The first iterations of a real training, in turns."""
    found, random = Rounds(["ours", "yardstick"]), np.random.default_rng(1)
    for repeat in range(repeats):
        engines = {"ours": Ours(work, threads), "yardstick": Yardstick(work, threads, library)}
        for engine in engines.values():  # first touch of all memory; a real step, so both are one ahead
            engine.iterate(0)
        sampler = ViewSampler(len(work.cameras), seed=repeat)
        for _ in range(ITERATIONS // TURN):
            views = [sampler.next() for _ in range(TURN)]
            seconds, passes, foreign = {}, {}, ForeignCpu()
            for name in random.permutation(list(engines)):
                engines[name].passes()
                start = time.perf_counter()
                for view in views:
                    engines[name].iterate(view)
                seconds[name] = (time.perf_counter() - start) / TURN
                passes[name] = {key: value / TURN for key, value in engines[name].passes().items()}
            if keep(found, foreign.share()):
                found.seconds.append(seconds), found.passes.append(passes)
    return found


def summary(name: str, size: str, gaussians: int, threads: int, found: Rounds) -> dict:
    return {
        "workload": name,
        "size": size,
        "gaussians": gaussians,
        "threads": threads,
        "rounds": counted(found),
        "target": TARGETS[name],
        "ratio": found.ratio("yardstick", "ours"),
        "milliseconds": {arm: found.median_ms(arm) for arm in found.arms},
        "passes": {
            key: {
                "ratio": found.pass_ratio("yardstick", "ours", key),
                "milliseconds": {arm: found.median_ms(arm, key) for arm in found.arms},
            }
            for key in PASSES
        },
        "raw_seconds": found.seconds,
    }


def combined(parts: list[dict]) -> dict:
    """One workload, from several processes."""
    first = parts[0]

    def over_processes(pick: Callable[[dict], list[float]]) -> list[float]:
        return interval([math.log(pick(part)[0]) for part in parts])

    def median(pick: Callable[[dict], dict[str, float]]) -> dict[str, float]:
        return {arm: statistics.median(pick(part)[arm] for part in parts) for arm in pick(first)}

    return first | {
        "rounds": f"{len(parts)} processes of {first['rounds']}",
        "ratio": over_processes(lambda part: part["ratio"]),
        "milliseconds": median(lambda part: part["milliseconds"]),
        "passes": {
            key: {
                "ratio": over_processes(lambda part, key=key: part["passes"][key]["ratio"]),
                "milliseconds": median(lambda part, key=key: part["passes"][key]["milliseconds"]),
            }
            for key in PASSES
        },
        "raw_seconds": [part["raw_seconds"] for part in parts],
    }


def page(results: list[dict]) -> list[str]:
    rows = [
        [
            f"{r['gaussians']:,} ({r['workload']})",
            r["size"],
            f"**{text(r['ratio'])}**",
            r["target"],
            *[f"{r['passes'][key]['ratio'][0]:.2f}" for key in PASSES],
            r["rounds"],
        ]
        for r in results
    ]
    return [
        "# Engine against the yardstick",
        "",
        f"{results[0]['threads']} threads, interleaved; above 1 ours is faster. 95 % intervals.",
        "",
        *table(["Gaussians", "size", "whole iteration", "target", *PASSES, "rounds"], rows),
    ]


def measured(cases: list[tuple[str, str]], chosen: argparse.Namespace) -> list[dict]:
    library, results = chosen.yardstick / "yardstick.so", []
    for name, size in cases:
        if name == "garden":
            work = garden(chosen.scene)
            found = train_both(work, library, chosen.threads, chosen.repeats)
        else:
            work = stored(chosen.yardstick, name, size)
            found = compare(work, library, chosen.threads, chosen.rounds)
        results.append(summary(name, size, len(work.arrays["means"]), chosen.threads, found))
        print(f"{name} {size}: {text(results[-1]['ratio'], 3)}, {counted(found)}", flush=True)
        for key, entry in results[-1]["passes"].items():
            ms = entry["milliseconds"]
            both = f"ours {ms['ours']:7.2f} ms  yardstick {ms['yardstick']:7.2f} ms"
            print(f"    {key:<15} {both}  {text(entry['ratio'])}")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--yardstick", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=6, help="of each process")
    parser.add_argument("--repeats", type=int, default=1, help="of the garden workload, ten blocks each")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="such as 'g1m 648' or 'garden'")
    parser.add_argument("--scene", type=Path, default=GARDEN)
    parser.add_argument("--results", type=Path, help="folder for the results; default: benchmarks/results")
    chosen = parser.parse_args()
    cases = [(name, size) for name in ("g140", "g1m") for size in SIZES] + [("garden", "512x512")]
    if chosen.processes > 1:
        parts = in_processes(__file__, chosen.processes)
        results = [combined(list(same)) for same in zip(*parts, strict=True)]
        for entry in results:
            print(f"{entry['workload']} {entry['size']}: {text(entry['ratio'], 3)}, {entry['rounds']}")
    else:
        results = measured([case for case in cases if chosen.only in " ".join(case)], chosen)
    if results:
        name = "engine" if len(results) == len(cases) else "engine-" + chosen.only.strip().replace(" ", "-")
        write_results(name, results, page(results), chosen.results)


if __name__ == "__main__":
    main()
