"""A stand-in for mip-splatting's train.py: takes its options and prints its lines, at a pace of its own.

It loads the rasterizer that was built beside it, asks it how many kernels it has, and trains nothing.
"""

import argparse
import ctypes
import random
import sys
import time
from pathlib import Path

STEP_SECONDS = 0.002


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("-s", "-m", "-r", "-i", "--start_checkpoint"):
        parser.add_argument(name)
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--eval", action="store_true")
    for name in ("--test_iterations", "--save_iterations"):
        parser.add_argument(name, nargs="+", type=int, default=[])
    options = parser.parse_args()
    rasterizer = ctypes.CDLL(str(Path(__file__).parent / "librasterizer.so"))
    kernels = rasterizer.kernels_of_this_rasterizer(None, 0)
    print(f"Optimizing {options.m} with {kernels} kernels", flush=True)
    print("Number of points at initialisation :  1234", flush=True)
    due = time.monotonic()
    for step in range(10, options.iterations + 1, 10):
        due += 10 * STEP_SECONDS
        time.sleep(max(0.0, due - time.monotonic()))
        done = f"{100 * step // options.iterations:3d}%|###   | {step}/{options.iterations}"
        loss = 0.2 - 0.1 * step / options.iterations
        frame = f"\rTraining progress: {done} [00:01<00:09, 99.9it/s, Loss={loss:.7f}]"
        print(frame, end="", file=sys.stderr, flush=True)
        if step in options.test_iterations:
            for split, psnr in (("test", 26.0), ("train", 28.0)):
                luck = random.gauss(0.0, 0.01)  # as on a card, no two runs are equal
                print(
                    f"\n[ITER {step}] Evaluating {split}: L1 {0.035 - luck / 100:.6f} PSNR {psnr + luck:.4f}",
                    flush=True,
                )
    print("\nTraining complete.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
