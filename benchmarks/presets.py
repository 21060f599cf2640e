"""Settings against settings over scenes and seeds: quality on held-out photos, Gaussians, and CPU seconds.

    python benchmarks/presets.py STUDY.toml --results runs.jsonl [--only fast] [--scenes fox] [--seeds 0 1]

The file names scenes (`[scenes.NAME]`: source, options) and settings (`[settings.NAME]`: options). Every
training runs on one thread, because results do not depend on their number, and --jobs of them at once; its
line is added when it has ended, so that the same command goes on where it was stopped. Time is the process's
CPU time, evaluation included, which others on the machine disturb less than the wall's; claims of speed
still need turns.py or the lab. `--table` only prints what is there: means over seeds, and each setting
against the first one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean

from measuring import table

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

WRITING = threading.Lock()
Run = tuple[str, str, int]
"""Scene, setting, seed."""


def command_of(study: dict, run: Run, out: Path, lpips: bool) -> list[str]:
    scene, setting, seed = run
    entry = study["scenes"][scene]
    command = [sys.executable, "-m", "splatmeter", "train", "-s", entry["source"], "-m", str(out), "--eval"]
    command += ["--quiet", "--events-stdout", "--device", "cpu", "--threads", "1", "--seed", str(seed)]
    command += ["--checkpoint-minutes", "0", *(["--lpips"] if lpips else [])]
    return [*command, *entry.get("options", []), *study["settings"][setting]["options"]]


def trained(study: dict, run: Run, lpips: bool, kept: Path | None) -> dict:
    folder = Path(tempfile.mkdtemp(prefix="presets-"))
    try:
        with (folder / "events").open("w") as events, (folder / "errors").open("w") as errors:
            command = command_of(study, run, folder / "out", lpips)
            process = subprocess.Popen(command, stdout=events, stderr=errors)
            _, status, usage = os.wait4(process.pid, 0)
        if status:
            return {"failed": (folder / "errors").read_text("utf-8")[-300:]}
        lines = (folder / "events").read_text("utf-8").splitlines()
        cpu = usage.ru_utime + usage.ru_stime
        if kept:
            kept.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / "events", kept / ("_".join(map(str, run)) + ".jsonl"))
        return {**summary([json.loads(line) for line in lines]), "cpu_seconds": cpu}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def summary(events: list[dict]) -> dict:
    judged = [event for event in events if event["event"] == "evaluated" and event["split"] == "test"]
    ended = next(event for event in events if event["event"] == "finished")
    passes = [event["passes"] for event in events if event["event"] == "progress"]
    return {
        "curve": [[event["step"], event["metrics"]["psnr"]] for event in judged],
        **judged[-1]["metrics"],
        "gaussians": ended["gaussians"],
        "seconds": ended["clock_seconds"],
        "pass_seconds": sum(sum(each.values()) for each in passes),
        "loss": ended["loss_last_100"],
    }


def wanted(study: dict, chosen: argparse.Namespace) -> list[Run]:
    known = {(line["scene"], line["setting"], line["seed"]) for line in lines(chosen.results)}
    runs = [
        (scene, setting, seed)
        for seed in chosen.seeds
        for scene in chosen.scenes or study["scenes"]
        for setting in chosen.only or study["settings"]
    ]
    return [run for run in runs if run not in known]


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.is_file() else []


def carry_out(study: dict, chosen: argparse.Namespace) -> None:
    def one(run: Run) -> None:
        scene, setting, seed = run
        found = trained(study, run, chosen.lpips, chosen.events)
        line = json.dumps({"scene": scene, "setting": setting, "seed": seed, **found})
        with WRITING, chosen.results.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        print(scene, setting, seed, {k: v for k, v in found.items() if k != "curve"}, flush=True)

    with ThreadPoolExecutor(chosen.jobs) as pool:
        list(pool.map(one, wanted(study, chosen)))


def shown(study: dict, results: list[dict]) -> list[str]:
    first = next(iter(study["settings"]))
    rows = []
    for scene in study["scenes"]:
        base = ended(results, scene, first)
        for setting in study["settings"]:
            runs = ended(results, scene, setting)
            if runs:
                rows.append([scene, setting, *figures(runs, base)])
    header = ["scene", "setting", "seeds", "PSNR", "spread", "SSIM", "LPIPS", "Gaussians"]
    return table([*header, f"time over {first}"], rows)


def ended(results: list[dict], scene: str, setting: str) -> list[dict]:
    return [run for run in results if (run["scene"], run["setting"]) == (scene, setting) and "psnr" in run]


def figures(runs: list[dict], base: list[dict]) -> list[str]:
    psnr = [run["psnr"] for run in runs]
    lpips = [run["lpips"] for run in runs if run.get("lpips") is not None]
    seconds = mean(run["cpu_seconds"] for run in runs)
    return [
        str(len(runs)),
        f"{mean(psnr):.2f}",
        f"{max(psnr) - min(psnr):.2f}",
        f"{mean(run['ssim'] for run in runs):.4f}",
        f"{mean(lpips):.4f}" if lpips else "",
        f"{mean(run['gaussians'] for run in runs) / 1000:.0f} k",
        f"{seconds / mean(run['cpu_seconds'] for run in base):.3f}" if base else "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", type=Path)
    parser.add_argument("--results", type=Path, required=True, help="a line for each training")
    parser.add_argument("--only", nargs="+", help="names of settings")
    parser.add_argument("--scenes", nargs="+", help="names of scenes")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--jobs", type=int, default=2, help="trainings at once, on one thread each")
    parser.add_argument("--events", type=Path, help="a folder in which the runs' event lines are kept")
    parser.add_argument("--lpips", action="store_true", help="LPIPS too, which needs weights")
    parser.add_argument("--table", action="store_true", help="only print what is there")
    chosen = parser.parse_args()
    study = tomllib.loads(chosen.study.read_text("utf-8"))
    if not chosen.table:
        carry_out(study, chosen)
    print("\n".join(shown(study, lines(chosen.results))))


if __name__ == "__main__":
    main()
