"""Feeds damaged files to every parser of scenes and photos: python tests/scene/fuzz_parsers.py 1000000 [seed]

Each input must give a result or one of our own errors; anything else is printed with the input and fails.
Address space is limited, so that an allocation from an unchecked count shows up as a MemoryError.
"""

from __future__ import annotations

import faulthandler
import random
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "src")]

from damaged_scenes import Target, targets  # noqa: E402

from splatmeter.errors import SplatmeterError  # noqa: E402

ADDRESS_SPACE = 3 * 2**30
LONGEST_SECONDS = 60


def one(target: Target, data: bytes) -> str:
    try:
        target.parse(data)
    except SplatmeterError:
        return "refused"
    return "accepted"


def fuzz(target: Target, count: int, generator: random.Random) -> tuple[Counter[str], float]:
    """Outcomes, and the seconds of the slowest input."""
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    for number in range(count):
        if number % 1000 == 0:
            faulthandler.dump_traceback_later(LONGEST_SECONDS, exit=True)
        data = target.damaged(generator)
        begun = time.perf_counter()
        try:
            outcomes[one(target, data)] += 1
        except Exception as problem:  # this is what we are looking for
            outcomes["FAILED"] += 1
            if outcomes["FAILED"] <= 3:
                print(
                    f"{target.name}: {type(problem).__name__}: {problem}\n  input: {data[:400]!r}", flush=True
                )
        slowest = max(slowest, time.perf_counter() - begun)
    faulthandler.cancel_dump_traceback_later()
    return outcomes, slowest


def main(count: int, seed: int) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory(prefix="splatmeter-fuzz-") as folder:
        return fuzz_all(targets(Path(folder)), count, seed)


def fuzz_all(chosen: list[Target], count: int, seed: int) -> int:
    generator = random.Random(seed)
    failures, begun = 0, time.perf_counter()
    for target in chosen:
        outcomes, slowest = fuzz(target, -(-count // len(chosen)), generator)
        failures += outcomes["FAILED"]
        shown = ", ".join(f"{outcomes[kind]} {kind}" for kind in ("accepted", "refused", "FAILED"))
        print(f"{target.name:22s} {shown}; slowest {1000 * slowest:.1f} ms", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = time.perf_counter() - begun
    print(f"{count} inputs, seed {seed}: {failures} failures, {seconds:.0f} s, peak memory {peak:.0f} MiB")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    )
