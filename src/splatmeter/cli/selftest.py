"""`splatmeter selftest`: each operation of a card against the CPU engine, as one block of text to send."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from splatmeter import __version__
from splatmeter.cli import arguments
from splatmeter.errors import UsageError

DESCRIPTION = """Compare each operation of a graphics card with the CPU engine, and print one block of text.

The scenes are made on the spot. Without --quick a large one follows: 200,000 Gaussians at 1297x840 pixels,
which is mostly the CPU's time. The text names no folders and no machine: send it as docs/cards/README.md
says. Exit code 0: all is right; 1: something is not; 69: there is no card that can be used.

Examples:
  splatmeter selftest
  splatmeter selftest --quick
  splatmeter selftest --device cuda:1"""


@dataclass(frozen=True)
class SelftestArguments:
    device: str = "cuda"
    """Which card: cuda, cuda:1, ..."""
    quick: bool = False
    """Only the small scenes."""
    threads: int | None = None
    """Threads of the CPU engine it is compared with; by default one per processor this process may use."""


def run(words: Sequence[str]) -> int:
    chosen = arguments.parse(SelftestArguments, "splatmeter selftest", words, DESCRIPTION)
    from splatmeter.backends.cuda import cuda_backend
    from splatmeter.backends.cuda.selftest import LARGE, QUICK, checks, orders, table_of
    from splatmeter.backends.cuda.speed import measured
    from splatmeter.backends.native import native_backend
    from splatmeter.backends.registry import card_number

    number = card_number(chosen.device)
    if number is None:
        raise UsageError(f"--device {chosen.device} is no card; use cuda, or cuda:1 for the second one.")
    threads = arguments.checked_threads(chosen.threads)
    card, cpu = cuda_backend(number, threads), native_backend(threads)
    print(f"splatmeter {__version__} selftest")
    for name, value in {**card.facts.details, "cpu": cpu.facts.arithmetic}.items():
        print(f"{name}: {value}")
    missed = 0
    begin = time.perf_counter()
    for size in (QUICK,) if chosen.quick else (QUICK, LARGE):
        print(f"\n{size.gaussians} Gaussians, {size.width}x{size.height}")
        for check in checks(card, cpu, size):
            missed += not check.passed
            verdict = "ok" if check.passed else "WRONG"
            print(f"  {check.operation:<44}{check.error:>10.2e} of {check.bar:.0e}  {verdict}", flush=True)
        print(
            *(f"  {line}" for line in measured(card.upload(table_of(size)), orders(card, size)).lines()),
            sep="\n",
        )
    result = f"{missed} wrong" if missed else "all right"
    print(f"\n{result}, in {time.perf_counter() - begin:.1f} s")
    return 1 if missed else 0
