"""What a time gives: `train --seconds N` over scenes and times. Quality on held-out photos, steps, Gaussians,
and when the model was there against when it should have been.

    python benchmarks/minutes.py garden=SCENES/garden_512 fox=SCENES/fox_540 --results minutes.jsonl

A line is added when a run has ended, so that the same command goes on where it was stopped; `--table`
prints what is there. Run it on a machine that does nothing else: the time that is given is the wall's.
Where others work too, `--processor-time` gives the run a clock of its own, its processor time over its
threads: about what it would have taken alone, and such lines are marked.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import table

MODEL = "fused model"
"""The last file of a model to be written."""


def words_of(source: str, out: Path, seconds: float, seed: int) -> list[str]:
    told = ["--quiet", "--events-stdout", "--device", "cpu", "--checkpoint-minutes", "0"]
    return ["-s", source, "-m", str(out), "--eval", "--seconds", f"{seconds:g}", "--seed", str(seed), *told]


def by_the_wall(words: list[str]) -> tuple[list[dict], float]:
    """Events, and the seconds from the start of the command to the saved model."""
    began, saved, events = time.perf_counter(), 0.0, []
    command = [sys.executable, "-m", "splatmeter", "train", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            events.append(json.loads(line))
            if events[-1].get("content") == MODEL:
                saved = time.perf_counter() - began
    if child.returncode:
        raise SystemExit(f"splatmeter train {' '.join(words)} failed")
    return events, saved


def by_processor_time(words: list[str]) -> tuple[list[dict], float]:
    lines = subprocess.run(
        [sys.executable, __file__, "--alone", *words], stdout=subprocess.PIPE, text=True, check=True
    )
    events = [json.loads(line) for line in lines.stdout.splitlines()]
    return events, next(event["clock"] for event in reversed(events) if "clock" in event)


def alone(words: list[str]) -> None:
    """In a process of its own: the same command, on a clock that others on the machine do not disturb."""
    from splatmeter.cli import train
    from splatmeter.train.output_folder import with_output_folder
    from splatmeter.train.stopwatch import Stopwatch

    threads = os.cpu_count() or 1
    clock = Stopwatch(time.process_time() / threads, now=lambda: time.process_time() / threads)
    chosen = train.parse(words)
    config = with_output_folder(chosen.config())

    class Told:
        def __call__(self, event: object) -> None:
            if getattr(event, "content", "") == MODEL:
                print(json.dumps({"event": "clock", "clock": clock.seconds}), flush=True)

        def close(self) -> None:
            pass

    train.follow(config, train.engine_for(config, chosen), [*train.listeners(config, chosen), Told()], clock)


def measured(source: str, seconds: float, chosen: argparse.Namespace) -> dict:
    folder = Path(tempfile.mkdtemp(prefix="minutes-"))
    try:
        words = words_of(source, folder / "out", seconds, chosen.seed) + chosen.options
        events, saved = by_processor_time(words) if chosen.processor_time else by_the_wall(words)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    ended = next(event for event in events if event["event"] == "finished")
    judged = next(event for event in events if event["event"] == "evaluated" and event["split"] == "test")
    plans = [event for event in events if event["event"] == "planned"]
    return {
        **judged["metrics"],
        "steps": ended["step"],
        "gaussians": ended["gaussians"],
        "ended": saved,
        "divisor": plans[-1]["divisor"],
        "plans": [[event["step"], event["iterations"], event["gaussians"]] for event in plans],
        "clock": "processor" if chosen.processor_time else "wall",
    }


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.is_file() else []


def key(line: dict) -> tuple:
    return line["scene"], line["seconds"], line["seed"], line["clock"], line.get("label", "")


def carry_out(chosen: argparse.Namespace) -> None:
    clock = "processor" if chosen.processor_time else "wall"
    for seconds in chosen.seconds:
        for scene in chosen.scenes:
            name, _, source = scene.partition("=")
            line = {
                "scene": name,
                "seconds": seconds,
                "seed": chosen.seed,
                "clock": clock,
                "label": chosen.label,
            }
            if key(line) in {key(known) for known in lines(chosen.results)}:
                continue
            line |= measured(source, seconds, chosen)
            with chosen.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print({name: value for name, value in line.items() if name != "plans"}, flush=True)


def shown(results: list[dict]) -> list[str]:
    rows = [
        [
            line["scene"] + (f" ({line['label']})" if line.get("label") else ""),
            f"{line['seconds']:g} s",
            f"{line['psnr']:.2f}",
            f"{line['ssim']:.4f}",
            f"{line['gaussians'] / 1000:.0f} k",
            str(line["steps"]),
            f"{line['ended']:.1f} s ({100 * (line['ended'] / line['seconds'] - 1):+.1f} %)",
            line["clock"],
        ]
        for line in sorted(results, key=lambda line: (line["scene"], line["seconds"], line.get("label", "")))
    ]
    return table(["scene", "given", "PSNR", "SSIM", "Gaussians", "steps", "model saved after", "clock"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenes", nargs="*", help="NAME=FOLDER")
    parser.add_argument("--seconds", type=float, nargs="+", default=[30, 60, 120, 300, 900])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, required=True, help="a line for each training")
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[], help="further ones of train; last")
    parser.add_argument("--label", default="", help="what is different with them")
    parser.add_argument("--processor-time", action="store_true", help="where others work on the machine")
    parser.add_argument("--table", action="store_true", help="only print what is there")
    chosen = parser.parse_args()
    if not chosen.table:
        carry_out(chosen)
    print("\n".join(shown(lines(chosen.results))))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--alone"]:
        alone(sys.argv[2:])
    else:
        main()
