"""A trainer that trains nothing: prints what a real one prints, as fast as asked.

python stand_in.py STYLE --steps N [--start S] [--seconds PER_STEP] [--evaluate-at K]
    [--fail-at K] [--output DIR]
STYLE: events (our event lines), original (tqdm frames and [ITER n] lines), fork (the richer console), silent.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("style")
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--evaluate-at", type=int, default=0)
    parser.add_argument("--fail-at", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--psnr", type=float, default=26.01)
    parser.add_argument("--output", type=Path, default=None)
    options = parser.parse_args()
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
    return {"events": events, "original": original, "fork": fork}[options.style](options)


def say(record: dict[str, object]) -> None:
    print(json.dumps(record), flush=True)


def events(options: argparse.Namespace) -> int:
    images = {"train_images": ["a.jpg", "b.jpg"], "test_images": ["t.jpg"]}
    config = {"seed": options.seed, "resolution": 4}
    say({"event": "started", "config": config, "step": options.start, "gaussians": 1000, **images})
    clock = 0.0
    for step in range(options.start + 1, options.start + options.steps + 1):
        time.sleep(options.seconds)
        clock += max(options.seconds, 1e-4)
        if step == options.fail_at:
            print("Traceback: out of cookies", file=sys.stderr)
            return 3
        if step % 10 == 0:
            state = {"loss": 1.0 / step, "gaussians": 1000, "passes": {"forward": clock / step}}
            say({"event": "progress", "step": step, "clock_seconds": clock, **state})
        if step == options.evaluate_at or step == options.start + options.steps:
            for split in ("test", "train"):
                metrics = {"l1": 0.0354, "psnr": options.psnr + 0.01 * options.seed, "ssim": 0.789}
                say({"event": "evaluated", "step": step, "split": split, "metrics": metrics})
    last = options.start + options.steps
    end = {"loss": 0.05, "loss_last_100": 0.051, "mean_opacity": 0.4}
    peaks = {"training": 50_000_000}
    say({"event": "finished", "step": last, "clock_seconds": clock, "gaussians": 1000, **end}
        | {"peak_memory_bytes": peaks})  # fmt: skip
    return 0


def original(options: argparse.Namespace) -> int:
    """A bar that counts from zero after a resume, with a rate that is a lie, and an evaluation that takes
    its time.
    """
    print("Optimizing scene", flush=True)
    print("Number of points at initialisation :  1234", flush=True)
    for count in range(10, options.steps + 1, 10):
        time.sleep(options.seconds * 10)
        bar = f"Training progress:  {100 * count // options.steps}%|###  | {count}/{options.steps} "
        print(f"\r{bar}[00:01<00:09, 999.99it/s, Loss=0.05{count:05d}]", end="", file=sys.stderr, flush=True)
        if options.start + count == options.evaluate_at:
            time.sleep(options.seconds * 100)
            step = options.start + count
            print(f"\n[ITER {step}] Evaluating test: L1 0.035384 PSNR 26.01 [27/01 12:00:00]", flush=True)
            print(f"\n[ITER {step}] Evaluating train: L1 0.025 PSNR 28.12 [27/01 12:00:00]", flush=True)
    last = options.start + options.steps
    print(f"\n[ITER {last}] Saving Gaussians [27/01 12:00:01]", flush=True)
    if options.output:
        model = options.output / "point_cloud" / f"iteration_{last}" / "point_cloud.ply"
        model.parent.mkdir(parents=True, exist_ok=True)
        model.write_bytes(
            b"ply\nformat binary_little_endian 1.0\nelement vertex 4321\nproperty float x\nend_header\n"
        )
    print("\nTraining complete. [27/01 12:00:02]", flush=True)
    return 0


def fork(options: argparse.Namespace) -> int:
    for count in range(10, options.steps + 1, 10):
        time.sleep(options.seconds * 10)
        step = options.start + count
        total = options.start + options.steps + 1
        bar = f"\r\x1b[32m{100 * step // total}% {step}/{total}\x1b[0m"
        print(f"{bar} L:0.0762 3.6it/s V:62%/9.9GB R:57%/18GB", end="", flush=True)
        if step == options.evaluate_at:
            print("\n┌───────┬──────────┬───────┬────────┬────────┐", flush=True)
            print("│ SPLIT │ L1       │ PSNR  │ SSIM   │ LPIPS  │", flush=True)
            print("│ TEST │ 0.035384 │ 26.01 │ 0.7890 │ 0.2412 │", flush=True)
            print("│ TRAIN │ 0.025119 │ 28.12 │ 0.8489 │ 0.1913 │", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
