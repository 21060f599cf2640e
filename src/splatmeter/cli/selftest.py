"""`splatmeter selftest`: each operation of a card against the CPU engine, as one block of text to send."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from splatmeter import __version__
from splatmeter.cli import arguments
from splatmeter.errors import SplatmeterError, UsageError
from splatmeter.units import bytes_text

if TYPE_CHECKING:
    from splatmeter.backend import Backend
    from splatmeter.backends.cuda.selftest import Size

DESCRIPTION = """Compare each operation of a graphics card with the CPU engine, and print one block of text.

The scenes are made on the spot. Without --quick a large one follows: 200,000 Gaussians at 1297x840 pixels,
which is mostly the CPU's time, and the same training must give the same bits in 20 runs, half of them beside
other work on the card. Milliseconds are the card's own; the limits beside them are computed from its clocks,
and what a kernel must move and issue is a model (backends/cuda/work_model.py). The text names no folders and
no machine: send it as docs/cards/README.md says. Exit code 0: all is right; 1: something is not; 69: there
is no card that can be used.

Examples:
  splatmeter selftest
  splatmeter selftest --device cuda --quick
  splatmeter selftest --device cuda:1"""


@dataclass(frozen=True)
class SelftestArguments:
    device: str = "cuda"
    """Which card: cuda, cuda:1, ..."""
    quick: bool = False
    """Only the small scenes, and two runs whose bits must be equal."""
    threads: int | None = None
    """Threads of the CPU engine it is compared with; by default one per processor this process may use."""


def run(words: Sequence[str]) -> int:
    chosen = arguments.parse(SelftestArguments, "splatmeter selftest", words, DESCRIPTION)
    from splatmeter.backends.cuda import cuda_backend
    from splatmeter.backends.cuda.selftest import LARGE, MANY_RUNS, QUICK, RUNS
    from splatmeter.backends.native import native_backend
    from splatmeter.backends.registry import card_number, checked_threads

    number = card_number(chosen.device)
    if number is None:
        raise UsageError(f"--device {chosen.device} is no card; use cuda, or cuda:1 for the second one.")
    threads = checked_threads(chosen.threads)
    card, cpu = cuda_backend(number, threads), native_backend(threads)
    print(f"splatmeter {__version__} selftest")
    facts = {**card.facts.details, "cpu": cpu.facts.arithmetic}
    facts["card_memory_limit"] = bytes_text(facts["card_memory_limit"])
    print("\n".join(f"{name}: {value}" for name, value in facts.items()))
    begin = time.perf_counter()
    wrong: list[str] = []
    for size in (QUICK,) if chosen.quick else (QUICK, LARGE):
        print(f"\n{size.gaussians} Gaussians, {size.width}x{size.height}", flush=True)
        wrong += tested(card, cpu, size, RUNS if chosen.quick else MANY_RUNS)
    result = f"{len(wrong)} wrong: {'; '.join(wrong)}" if wrong else "all right"
    print(f"\n{result}, in {time.perf_counter() - begin:.1f} s")
    return 1 if wrong else 0


def tested(card: Backend, cpu: Backend, size: Size, runs: int) -> list[str]:
    """Prints each operation, and the kernels' times; what was wrong comes back by name."""
    from splatmeter.backends.cuda.selftest import QUICK, checks, orders, table_of
    from splatmeter.backends.cuda.speed import TIMED, measured

    wrong: list[str] = []
    doing = "the first operation"
    try:
        for check in checks(card, cpu, size, runs):
            verdict = "ok" if check.passed else "WRONG"
            print(f"  {check.operation:<46}{check.error:>10.2e} of {check.bar:.0e}  {verdict}", flush=True)
            wrong += [] if check.passed else [check.operation]
            doing = f"what follows {check.operation}"
        doing = "timing kernels"
        speed = measured(card.upload(table_of(size)), orders(card, size), TIMED if size != QUICK else 3)
        print("\n".join(f"  {line}" for line in speed.lines()), flush=True)
    except SplatmeterError as problem:
        print(f"  {doing}: {problem}  BROKEN", flush=True)
        wrong.append(doing)
    return wrong
