"""`lab watch`, `lab kernels`, `lab predict`: memory and registers."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from splatmeter import process_memory
from splatmeter.cli.lab_text import clean, table
from splatmeter.errors import InputError, MissingFile, UsageError
from splatmeter.lab.executor import (
    ChildProcess,
    Command,
    Hooks,
    ProcessEnd,
)
from splatmeter.lab.monitor import kernels as ptxas
from splatmeter.lab.monitor.clocks import card_summary, card_text, state_text
from splatmeter.lab.monitor.clocks import card_warnings as card_warnings
from splatmeter.lab.monitor.nvml import first_card
from splatmeter.lab.monitor.predict import Planned
from splatmeter.lab.monitor.predict import predict as predicted
from splatmeter.lab.monitor.tree import MemorySample, TreeSampler, tree
from splatmeter.lab.session.card_watch import CardWatch
from splatmeter.units import bytes_text, duration_text, parse_bytes


class _Passing:
    """Hands on what the command prints; says nothing about it."""

    def line(self, stream: str, text: str, seconds: float):
        print(text, file=sys.stdout if stream == "stdout" else sys.stderr, flush=True)
        return iter(())

    def end(self, code: int, seconds: float):
        return iter(())


def watch(chosen: Namespace) -> int:
    """The command's own exit code is returned."""
    if not chosen.foreign:
        raise UsageError("What shall be watched? Write: splatmeter lab watch -- COMMAND ARGUMENTS.")
    command = Command(chosen.foreign)
    card = CardWatch(command)
    samplers: list[_LiveSampler] = []
    outcomes: list[ProcessEnd] = []

    def started(pid: int) -> None:
        card.begin(lambda: tree(pid))
        samplers.append(_LiveSampler(pid, chosen.interval, card.look))
        samplers[0].start()

    for _ in ChildProcess().run(command, _Passing(), None, Hooks(started, outcomes.append)):
        pass
    samplers[0].stop()
    _report(samplers[0], outcomes[0], card)
    card.close()
    code = outcomes[0].code
    return code if code >= 0 else 128 - code


class _LiveSampler(TreeSampler):
    """Draws each sample on a terminal."""

    def take(self, seconds: float) -> MemorySample | None:
        sample = super().take(seconds)
        if sample and sys.stderr.isatty():
            card = "not observable" if sample.device_bytes is None else bytes_text(sample.device_bytes)
            size = bytes_text(sample.resident_bytes)
            text = f"{seconds:7.1f} s  memory {size}  processes {sample.processes}  card {card}"
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        return sample


def _report(sampler: TreeSampler, outcome: ProcessEnd, card: CardWatch) -> None:
    highest = max((sample.resident_bytes for sample in sampler.samples), default=0)
    device = [sample.device_bytes for sample in sampler.samples if sample.device_bytes is not None]
    lines = [
        f"ended with {outcome.code} after {duration_text(outcome.seconds)},"
        f" {duration_text(outcome.cpu_seconds)} of CPU time",
        f"highest resident memory of the tree {bytes_text(highest) if highest else 'not seen'},"
        f" of its largest process {bytes_text(outcome.largest_resident_bytes)}",
        *_of_the_card(card, max(device, default=None)),
        f"the monitor took {100 * sampler.share:.3f} % of one core in {len(sampler.samples)} samples",
    ]
    print("\n" + "\n".join(lines), file=sys.stderr)


def _of_the_card(watch: CardWatch, highest: int | None) -> list[str]:
    """Clocks and heat only if the command was seen there: an idle card's are nobody's."""
    if watch.card is None:
        return [f"card: not observable ({watch.because})"]
    used = "not observable" if highest is None else bytes_text(highest)
    lines = [f"card: {used} used by everybody on {card_text(watch.facts)} ({watch.because})"]
    record = card_summary(watch.states)
    told = [state_text(record), *card_warnings(record)] if watch.seen else []
    return lines + [f"card: {line}" for line in told if line]


def kernels(chosen: Namespace) -> int:
    first = _kernels(chosen.file)
    if chosen.other is None:
        names = ptxas.readable(kernel.name for kernel in first)
        rows = [[names[k.name], k.architecture, *_figures(k)] for k in first]
        print(table(["kernel", "for", "registers", "stack", "spill stores", "spill loads", "shared"], rows))
        return 0
    changes = ptxas.compare_kernels(first, _kernels(chosen.other))
    names = ptxas.readable(change.name for change in changes)
    rows = [
        [names[c.name], c.architecture, *map(_arrow, _figures(c.before), _figures(c.after))]
        for c in changes
        if c.differs
    ]
    print(table(["kernel", "for", "registers", "stack", "spill stores", "spill loads", "shared"], rows))
    print(f"{len(rows)} of {len(changes)} kernels differ")
    return 0


def _kernels(path: Path) -> list[ptxas.Kernel]:
    try:
        found = ptxas.parse(path.read_text("utf-8", "replace"))
    except OSError:
        raise MissingFile(f"{path} cannot be read; check its name and its rights.") from None
    if not found:
        raise InputError(
            f"{path} holds no kernels; build with `nvcc -Xptxas -v ... 2> FILE`, without a cached object."
        )
    return found


def _figures(kernel: ptxas.Kernel | None) -> list[str]:
    if kernel is None:
        return ["-"] * 5
    values = (
        kernel.registers,
        kernel.stack_bytes,
        kernel.spill_store_bytes,
        kernel.spill_load_bytes,
        kernel.shared_bytes,
    )
    return ["unknown" if value is None else str(value) for value in values]


def _arrow(before: str, after: str) -> str:
    return before if before == after else f"{before} -> {after}"


def predict(chosen: Namespace) -> int:
    try:
        width, height = (int(part) for part in chosen.size.lower().split("x"))
    except ValueError:
        raise UsageError(f"{chosen.size!r} is not a size; write for example 1297x840.") from None
    planned = Planned(chosen.gaussians, chosen.photos, width, height, chosen.trainer)
    try:
        available = parse_bytes(chosen.card) if chosen.card else _available(chosen.trainer)
    except ValueError as problem:
        raise UsageError(str(problem)) from None
    print(clean(predicted(planned).sentence(planned, available)))
    return 0


def _available(trainer: str) -> int | None:
    """The memory of this machine for our trainer, of the card for one that runs there."""
    if trainer == "splatmeter":
        return process_memory.available_bytes()
    card = first_card()
    memory = card.memory() if card else None
    if memory is None or memory.total_bytes is None or memory.used_bytes is None:
        return None
    return memory.total_bytes - memory.used_bytes
