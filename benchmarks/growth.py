"""How a step's time grows with Gaussians, with pixels and with threads, as ratios to a reference point.

    python benchmarks/growth.py --yardstick FOLDER [--axes gaussians pixels threads]

FOLDER holds g140.npz and g1m.npz (../shared/yardstick/make_workload.py 1.5 1.5). Each point is interleaved
with its reference, both whole iterations of our engine on the same three cameras, in random order, noisy
rounds repeated; a ratio is exp(mean of ln(time / reference's time)) with its 95 % interval over fresh
processes.

Gaussians: the garden told with 50 k to 3 M Gaussians (rows chosen evenly, or copies moved by one of their
own sizes; the volume covered stays), 648x420. Pixels: 138 k Gaussians at 0.1 to 4 megapixels. Threads: two
and more against one, on the yardstick's workloads and on garden_512 from its points; there a ratio is a
speed-up, and beside it stands what bare arithmetic in registers gained in the same rounds: two cores that a
host shares with others give less than twice of one, and not both the same: one thread takes turns on either.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
from collections.abc import Callable
from pathlib import Path

from measuring import (
    Arm,
    Rounds,
    counted,
    in_processes,
    interleave,
    interval,
    table,
    text,
    write_results,
)
from workloads import (
    GARDEN,
    SIZES,
    YARDSTICK_PASSES,
    Ours,
    Workload,
    garden,
    numbering,
    photographed,
    read_stored,
    stored,
)

GAUSSIANS, GAUSSIANS_REFERENCE = (50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 3_000_000), 500_000
MEGAPIXELS = (0.1, 0.27, 0.5, 1.0, 2.0, 4.0)
PASSES = list(YARDSTICK_PASSES.values())
CONTROL = "arithmetic alone"


def point(label: str, found: Rounds, over: str, under: str) -> dict:
    """Ratio of `over` to `under`, whole and per pass."""
    return {
        "point": label,
        "rounds": counted(found),
        "ratio": found.ratio(over, under),
        "milliseconds": {arm: found.median_ms(arm) for arm in found.arms},
        "passes": {key: found.pass_ratio(over, under, key) for key in PASSES},
    }


def against(label: str, work: Workload, reference: Workload, threads: int, rounds: int) -> dict:
    engines = {"point": Ours(work, threads), "reference": Ours(reference, threads)}
    arms = [Arm(name, engine.cycle, engine.passes) for name, engine in engines.items()]
    result = point(label, interleave(arms, rounds, len(work.cameras)), "point", "reference")
    print(f"{label}: {text(result['ratio'], 3)} ({result['rounds']})", flush=True)
    return result


def with_gaussians(folder: Path, threads: int, rounds: int, most: int) -> list[dict]:
    arrays, cameras = read_stored(folder, "g1m")
    reference = photographed(numbering(arrays, GAUSSIANS_REFERENCE), cameras, 648, 420)
    return [
        against(f"{n:,}", photographed(numbering(arrays, n), cameras, 648, 420), reference, threads, rounds)
        for n in GAUSSIANS
        if n <= most
    ]


def with_pixels(folder: Path, threads: int, rounds: int) -> list[dict]:
    arrays, cameras = read_stored(folder, "g140")
    reference = photographed(arrays, cameras, 648, 420)
    results = []
    for megapixels in MEGAPIXELS:
        width = round(math.sqrt(megapixels * 1e6 * 648 / 420))
        height = round(width * 420 / 648)
        work = photographed(arrays, cameras, width, height)
        results.append(against(f"{width}x{height}", work, reference, threads, rounds))
    return results


def with_threads(folder: Path, scene: Path, rounds: int) -> list[dict]:
    """Speed-ups over one thread: time of one divided by time of many."""
    cases = {f"{name} {size}": (name, size) for name in ("g140", "g1m") for size in SIZES}
    counts = sorted({2, os.cpu_count() or 2})
    results = []
    for label in [*cases, "garden 512x512"]:
        work = stored(folder, *cases[label]) if label in cases else some_views(garden(scene))
        for threads in counts:
            results.append(speed_up(f"{label}, {threads} threads", work, threads, rounds))
            print(f"{results[-1]['point']}: {text(results[-1]['ratio'], 3)}", flush=True)
    return results


def speed_up(label: str, work: Workload, threads: int, rounds: int) -> dict:
    """One thread takes a turn on each of the cores that the many work on: a host gives them unequally."""
    cores = cores_of(threads)
    alone, together = Ours(work, 1), Ours(work, threads)
    places: dict[str, tuple[Ours, list[int]]] = {f"1 on {core}": (alone, [core]) for core in cores}
    places["many"] = (together, cores)
    arms = []
    for name, (engine, where) in places.items():
        arms.append(Arm(name, pinned(engine.cycle, where), engine.passes))
        arms.append(Arm(f"arithmetic {name}", pinned(engine.multiply_and_add, where)))
    found = interleave(arms, rounds, len(work.cameras))
    ones = [name for name in places if name != "many"]
    found.average("1", ones), found.average("arithmetic 1", [f"arithmetic {name}" for name in ones])
    arithmetic = found.ratio("arithmetic 1", "arithmetic many")  # each thread does as much as one alone
    return point(label, found, "1", "many") | {CONTROL: [threads * value for value in arithmetic]}


def cores_of(threads: int) -> list[int]:
    return sorted(os.sched_getaffinity(0))[:threads] if hasattr(os, "sched_getaffinity") else [0]


def pinned(run: Callable[[int], None], cores: list[int]) -> Callable[[int], None]:
    """On these cores, as far as this thread goes; the pool's own threads are left alone."""

    def run_there(number: int) -> None:
        everywhere = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores)
        run(number)
        os.sched_setaffinity(0, everywhere)  # threads made later would inherit it

    return run_there if hasattr(os, "sched_setaffinity") else run


def over_processes(parts: list[dict]) -> dict:
    """One point, from several processes."""
    first = parts[0]
    return first | {
        "rounds": f"{len(parts)} processes of {first['rounds']}",
        **{
            key: interval([math.log(part[key][0]) for part in parts])
            for key in ("ratio", CONTROL)
            if key in first
        },
        "milliseconds": {
            arm: statistics.median(part["milliseconds"][arm] for part in parts)
            for arm in first["milliseconds"]
        },
        "passes": {
            key: interval([math.log(part["passes"][key][0]) for part in parts]) for key in first["passes"]
        },
    }


def some_views(work: Workload, count: int = 6) -> Workload:
    """Evenly chosen, and nothing moves: every arm does the same work for ever."""
    chosen = range(0, len(work.cameras), len(work.cameras) // count)
    work.cameras, work.photos = [work.cameras[k] for k in chosen], [work.photos[k] for k in chosen]
    work.schedule = None
    return work


TITLES = {
    "gaussians": f"With Gaussians: time over that of {GAUSSIANS_REFERENCE:,}, 648x420",
    "pixels": "With pixels: time over that of 648x420, 138,766 Gaussians",
    "threads": "With threads: speed-up over one thread (target with two: 1.8)",
}


def page(results: dict[str, list[dict]], threads: int) -> list[str]:
    lines = [
        "# Growth with Gaussians, pixels and threads",
        "",
        f"{threads} threads where nothing else is said.",
    ]
    for axis, points in results.items():
        control = [CONTROL] if points and CONTROL in points[0] else []
        rows = [
            [
                p["point"],
                f"**{text(p['ratio'])}**",
                *[text(p[key]) for key in control],
                *[text(p["passes"][key]) for key in PASSES],
                p["rounds"],
            ]
            for p in points
        ]
        header = ["", "whole iteration", *control, *PASSES, "rounds"]
        lines += ["", f"## {TITLES[axis]}", "", *table(header, rows)]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--yardstick", type=Path, required=True)
    parser.add_argument("--axes", nargs="+", default=list(TITLES), choices=list(TITLES))
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=6, help="of each process")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--most", type=int, default=max(GAUSSIANS), help="Gaussians; 3 M need about 5 GB")
    parser.add_argument("--scene", type=Path, default=GARDEN)
    parser.add_argument("--results", type=Path, help="folder for the results; default: benchmarks/results")
    chosen = parser.parse_args()
    measure = {
        "gaussians": lambda: with_gaussians(chosen.yardstick, chosen.threads, chosen.rounds, chosen.most),
        "pixels": lambda: with_pixels(chosen.yardstick, chosen.threads, chosen.rounds),
        "threads": lambda: with_threads(chosen.yardstick, chosen.scene, chosen.rounds),
    }
    if chosen.processes > 1:
        parts = in_processes(__file__, chosen.processes)
        results = {
            axis: [over_processes(list(same)) for same in zip(*(part[axis] for part in parts), strict=True)]
            for axis in chosen.axes
        }
    else:
        results = {axis: measure[axis]() for axis in chosen.axes}
    name = "growth" if len(results) == len(TITLES) else "growth-" + "-".join(results)
    write_results(name, results, page(results, chosen.threads), chosen.results)


if __name__ == "__main__":
    main()
