"""A trainer that behaves like the original's train.py and, on demand, tries to look better than it is.

python cheat.py --steps N --output DIR [--seconds PER_STEP] [--psnr P] [...]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
import zlib
from pathlib import Path

PHOTOS = [f"DSC{number:04d}" for number in range(16)]


def main() -> int:
    options = _options()
    options.output.mkdir(parents=True, exist_ok=True)
    _cameras(options)
    print("Number of points at initialisation :  1000", flush=True)
    time.sleep(options.start_up)
    if options.know_the_arm and options.know_the_arm in str(options.output):
        options.seconds *= 3
    for step in range(10, options.steps + 1, 10):
        hidden = options.hide_every and step % options.hide_every == 0
        if hidden:
            print(f"[ITER {step}] Saving Checkpoint", flush=True)
        time.sleep((options.hidden_seconds if hidden else options.seconds) * 10)
        if options.jump_back and step == 100:
            step = 40
        if options.only_the_last and step < options.steps:
            continue
        bar = f"\rTraining progress: {100 * step // options.steps}%|#  | {step}/{options.steps} "
        print(f"{bar}[00:01<00:09, 99.9it/s, Loss=0.05{step:05d}]", end="", file=sys.stderr, flush=True)
        if step == options.evaluate_at or step == options.steps:
            _evaluate(options, step)
        if _unlucky(options, step):
            os.kill(os.getpid(), signal.SIGKILL)
        if step == options.hang_at:
            time.sleep(3600)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.001)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--psnr", type=float, default=26.0)
    parser.add_argument("--psnr-at-the-end", type=float, default=0.0)
    parser.add_argument("--evaluate-at", type=int, default=100)
    parser.add_argument("--skip-the-last", action="store_true", help="neither evaluate nor save at the end")
    parser.add_argument("--hide-every", type=int, default=0, help="call these stretches saving")
    parser.add_argument("--hidden-seconds", type=float, default=0.0)
    parser.add_argument("--start-up", type=float, default=0.0)
    parser.add_argument("--crash-list", type=Path, help="each run takes one line of it; 'x' means: be killed")
    parser.add_argument("--hang-at", type=int, default=0)
    parser.add_argument("--train-on-everything", action="store_true")
    parser.add_argument("--no-cameras", action="store_true")
    parser.add_argument("--evaluate-twice", action="store_true")
    parser.add_argument("--jump-back", action="store_true", help="the bar goes back and skips")
    parser.add_argument("--only-the-last", action="store_true", help="one frame of the bar, at the end")
    parser.add_argument("--know-the-arm", default="", help="be slow when this is in the path of the output")
    return parser.parse_args()


def _cameras(options: argparse.Namespace) -> None:
    held_out = [] if options.train_on_everything else PHOTOS[::8]
    names = [*held_out, *(name for name in PHOTOS if name not in held_out)]
    if not options.no_cameras:
        cameras = [{"id": place, "img_name": name} for place, name in enumerate(names)]
        (options.output / "cameras.json").write_text(json.dumps(cameras))


def _evaluate(options: argparse.Namespace, step: int) -> None:
    last = step == options.steps
    if last and options.skip_the_last:
        return
    psnr = options.psnr_at_the_end if last and options.psnr_at_the_end else options.psnr
    luck = 1e-5 * (zlib.crc32(str(options.output).encode()) % 97)
    if options.evaluate_twice and last:
        print(f"\n[ITER {step}] Evaluating test: L1 0.02 PSNR {psnr + 2:.6f}", flush=True)
    print(f"\n[ITER {step}] Evaluating test: L1 {0.03 - luck / 99:.9f} PSNR {psnr + luck:.6f}", flush=True)


def _unlucky(options: argparse.Namespace, step: int) -> bool:
    if not options.crash_list or step != options.steps // 2:
        return False
    lines = options.crash_list.read_text().splitlines()
    options.crash_list.write_text("\n".join(lines[1:]) + "\n")
    return bool(lines) and lines[0] == "x"


if __name__ == "__main__":
    sys.exit(main())
