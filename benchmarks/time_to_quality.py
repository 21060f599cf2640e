"""Time to a given quality on garden_512, for named sets of training options.

    python benchmarks/time_to_quality.py [--sets FILE.toml] [--only plain mcmc] [--psnr 26.0 26.9]

All sets train in turns of 20 s (turns.py), each on its own training clock, which stands still during
evaluations and while others work. Test views are evaluated every --every steps; a set has reached a PSNR
at the first evaluation whose mean is that high, and ends when it has reached the highest asked for. With
several seeds the ratio to the first set gets an interval; --append adds seeds to results that are there,
perhaps of fewer sets. A set that never reaches a PSNR is shown with the best it reached. With `python` a set
names the interpreter of another environment, in which another revision is installed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path

from measuring import RESULTS, interval, table, text, write_results
from turns import evaluations, run_in_turns
from workloads import GARDEN

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


TOLD_EVERY = 10
"""Steps after which a training tells its clock."""


def words_of(entry: dict, chosen: argparse.Namespace, out: Path, seed: int) -> list[str]:
    options, steps = entry["options"], entry.get("iterations", chosen.iterations)
    at = [str(step) for step in range(chosen.every, steps + 1, chosen.every) if step >= chosen.first]
    rates = [] if "--position-lr-max-steps" in options else ["--position-lr-max-steps", str(steps)]
    return [
        *(
            "-s",
            str(chosen.scene),
            "-m",
            str(out),
            "--eval",
            "-r",
            "1",
            "--iterations",
            str(steps),
            "--quiet",
        ),
        *("--threads", str(chosen.threads), "--seed", str(seed), *rates, *options, "--test-iterations", *at),
    ]


def trained(sets: dict[str, dict], chosen: argparse.Namespace, seed: int, folder: Path) -> dict:
    highest = max(chosen.psnr)
    children = {}
    for name, entry in sets.items():
        turn = ["--lock", str(folder / "lock"), "--seconds", str(chosen.seconds)]
        turn += ["--events", str(folder / f"{name}.jsonl"), "--until-psnr", str(highest)]
        children[name] = [*turn, "--", *words_of(entry, chosen, folder / name, seed)]
    others = {name: entry["python"] for name, entry in sets.items() if "python" in entry}
    watched = run_in_turns(children, folder, {}, others)
    curves = {name: evaluations(folder / f"{name}.jsonl") for name in sets}
    return {"seed": seed, "quiet": watched.quiet, "watched": watched.said, "curves": curves}


def earlier(folder: Path) -> list[dict]:
    runs = json.loads((folder / "quality.json").read_text("utf-8"))["results"]
    for run in runs:  # JSON has no numbers as keys
        run["curves"] = {
            name: {int(step): point for step, point in curve.items()} for name, curve in run["curves"].items()
        }
    return runs


def reached(curve: dict[int, dict], psnr: float) -> float:
    """Seconds of the training clock; infinite if never."""
    return next((point["seconds"] for _, point in sorted(curve.items()) if point["psnr"] >= psnr), math.inf)


def against(runs: list[dict], first: str, name: str, psnr: float) -> str:
    both = [run["curves"] for run in runs if {first, name} <= set(run["curves"])]
    times = [(reached(curves[first], psnr), reached(curves[name], psnr)) for curves in both]
    if any(math.isinf(a) or math.isinf(b) for a, b in times):
        return ""
    return text(interval([math.log(b / a) for a, b in times]))


def page(runs: list[dict], sets: dict[str, dict], targets: list[float]) -> list[str]:
    first = next(iter(sets))
    rows = []
    for name, entry in sets.items():
        row = [name]
        curves = [run["curves"][name] for run in runs if name in run["curves"]]
        if not curves:
            continue
        for psnr in targets:
            seconds = [reached(curve, psnr) for curve in curves]
            said = ", ".join(f"{value:.0f} s" if math.isfinite(value) else "never" for value in seconds)
            row += [said, against(runs, first, name, psnr)]
        best = max(point["psnr"] for curve in curves for point in curve.values())
        rows.append([*row, f"{best:.2f}", f"`{' '.join(entry['options'])}`"])
    header = ["set"]
    for psnr in targets:
        header += [f"to {psnr} dB", f"over {first}"]
    quiet = "" if all(run["quiet"] for run in runs) else "**The machine was not quiet: this does not count.**"
    return [
        "# Time to a given quality, garden_512",
        "",
        f"Training clock until the mean PSNR of the held-out views first reaches a level. {quiet}",
        *[f"Seed {run['seed']}: {run['watched']}." for run in runs],
        "",
        *table([*header, "best PSNR", "options"], rows),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", type=Path, default=Path(__file__).parent / "options.toml")
    parser.add_argument("--only", nargs="+", help="names of sets; default: all in the file")
    parser.add_argument("--psnr", type=float, nargs="+", default=[26.0, 26.9])
    parser.add_argument("--scene", type=Path, default=GARDEN)
    parser.add_argument("--iterations", type=int, default=7000, help="at most")
    parser.add_argument("--every", type=int, default=200, help="steps between evaluations")
    parser.add_argument("--first", type=int, default=0, help="no evaluations before this step")
    parser.add_argument("--seconds", type=float, default=20.0, help="of a turn")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--append", action="store_true", help="to the results that are there")
    parser.add_argument("--results", type=Path, help="folder for the results; default: benchmarks/results")
    chosen = parser.parse_args()
    if chosen.every % TOLD_EVERY:
        parser.error(f"--every: a multiple of {TOLD_EVERY}, because steps between those have no clock.")
    sets = tomllib.loads(chosen.sets.read_text("utf-8"))
    unknown = set(chosen.only or ()) - set(sets)
    if unknown:
        sys.exit(f"{chosen.sets} has no set named {', '.join(sorted(unknown))}; it has {', '.join(sets)}.")
    trained_sets = {name: entry for name, entry in sets.items() if not chosen.only or name in chosen.only}
    runs = earlier(chosen.results or RESULTS) if chosen.append else []
    for seed in chosen.seeds:
        with tempfile.TemporaryDirectory(prefix="splatmeter-quality-") as folder:
            runs.append(trained(trained_sets, chosen, seed, Path(folder)))
        print("\n".join(page(runs, sets, chosen.psnr)), flush=True)
        write_results("quality", runs, page(runs, sets, chosen.psnr), chosen.results)


if __name__ == "__main__":
    main()
