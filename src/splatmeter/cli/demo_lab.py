"""The lab's part of the demo: phases, one session of blocks, a table, and the verdicts in words."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from splatmeter.cli import lab as lab_commands
from splatmeter.cli.lab_text import table
from splatmeter.lab.json_files import write_text
from splatmeter.lab.judgement.verdicts import Judged, judged
from splatmeter.lab.plan import protocol as protocols
from splatmeter.lab.plan.phases import BASELINE
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.lab import Lab

if TYPE_CHECKING:
    from splatmeter.cli.demo import Scale

BLOCKS = 4
TWO_THREADS = "two-threads"
"""The same model to the last bit, in less time: what a lab can prove."""
ONE_THREAD = "one-thread"
"""The opposite, where threads would have to share one processor."""
CROWD = 8
SMALL_PHOTOS = "small-photos"
"""Faster still, and worse: a speed-up that a lab must not let pass."""
OFF_THE_CLOCK = ("--change", "start-up", "--change", "evaluation")
"""Threads are started and photos shrunk before the first timed step, and threads evaluate as well: declared,
so that it is noted beside the verdict. Runs of a second have little else."""
ENOUGH_FREE = 1.5
"""Processors that must be idle for a second thread to have one of its own."""


@dataclass(frozen=True, slots=True)
class Demo:
    out: Path
    scene: Path
    scale: Scale
    told: str = ""
    """What the report says about the finished model."""

    @property
    def lab(self) -> Lab:
        return Lab(self.out / "lab")


def measure(demo: Demo) -> None:
    """As a person would do it with the lab's own commands."""
    names = plan(demo)
    explain(demo)
    command(demo, "run", names[-1])
    found = [judged(demo.lab, *pair) for pair in pairwise(names)]
    print(f"\n{comparison(found)}")
    for item in found:
        print(f"\n{in_words(item)}")
    command(demo, "log", str(demo.out / "LOG.md"))
    page = demo.out / "scene.html"
    finished = ["--page", str(page), "--page-note", demo.told] if page.is_file() else []
    command(demo, "report", str(demo.out / "report.html"), "--render", *finished)


def plan(demo: Demo) -> list[str]:
    """The protocol is everything the arms share; a phase says what it changes. Returns the phases' names."""
    scale = demo.scale
    protocol = Protocol(
        scene=str(demo.scene.absolute()),
        title="the built-in garden",
        resolution=1,
        start_iteration=scale.start,
        checkpoint=str((demo.out / "model" / f"chkpnt{scale.start}.safetensors").absolute()),
        iterations=scale.measured,
        evaluate_at=0,
        warm_up=scale.warm_up,
        blocks=BLOCKS,
        options=("--device", "cpu", "--densify-from-iter", str(scale.grows_from)),
    )
    demo.lab.root.mkdir(parents=True)
    write_text(demo.lab.protocol_file, protocols.protocol_text(protocols.check_protocol(protocol)))
    names = [BASELINE, proved_phase(demo, free_processors()), SMALL_PHOTOS]
    note = "learns from photos shrunk to a quarter of their width: less work, but blurred pictures"
    shrunk = ["--progressive", f"4:{scale.start + scale.measured}"]
    changes = [*OFF_THE_CLOCK, "--change", "gaussians"]
    add(demo, SMALL_PHOTOS, names[1], *changes, "--note", note, "--", *shrunk)
    return names


def proved_phase(demo: Demo, free: float) -> str:
    """The baseline, and a change that gives the same model to the last bit on every machine."""
    if free >= ENOUGH_FREE:
        add(demo, BASELINE, "", "--note", "one thread does all the work", "--", "--threads", "1")
        note = "two threads share the work; the model must come out the same, bit by bit"
        add(demo, TWO_THREADS, BASELINE, *OFF_THE_CLOCK, "--note", note, "--", "--threads", "2")
        return TWO_THREADS
    print(
        f"Only about {free:.1f} processors are free here, so a second thread has nothing to win. What is "
        f"measured is the opposite: one thread instead of {CROWD} that get in each other's way."
    )
    note = f"{CROWD} threads, more than processors are free"
    add(demo, BASELINE, "", "--note", note, "--", "--threads", str(CROWD))
    note = "one thread, which waits for nobody; the model must come out the same, bit by bit"
    add(demo, ONE_THREAD, BASELINE, *OFF_THE_CLOCK, "--note", note, "--", "--threads", "1")
    return ONE_THREAD


def free_processors() -> float:
    """How many of the processors that this process may use are idle just now."""
    import psutil

    from splatmeter.backends.native import usable_threads

    idle = 1 - psutil.cpu_percent(interval=0.5) / 100
    return min(usable_threads(), (psutil.cpu_count() or 1) * idle)


def add(demo: Demo, name: str, parent: str, *words: str) -> None:
    command(demo, "phase", "add", name, "--parent", parent, *words)


def command(demo: Demo, *words: str) -> None:
    """A lab command whose progress is shown and whose result is told further below."""
    with contextlib.redirect_stdout(io.StringIO()):
        lab_commands.run(["--lab", str(demo.lab.root), *words])


def explain(demo: Demo) -> None:
    scale = demo.scale
    for phase in demo.lab.phases.all():
        how = " ".join([*phase.options, *(f"{name}={value}" for name, value in phase.environment.items())])
        print(f"  {phase.name:<13} {phase.note} ({how})")
    print(
        f"{BLOCKS} blocks; in each, every phase trains steps {scale.start} to {scale.start + scale.measured} "
        f"from one checkpoint, and the first {scale.warm_up} are not timed.",
        flush=True,
    )


# ---- telling ----------------------------------------------------------------------------------------------
def comparison(found: Sequence[Judged]) -> str:
    rows = []
    for item in found:
        speed = item.comparison.speed.main
        interval = f"[{speed.interval_95.low:.4f}, {speed.interval_95.high:.4f}]"
        arms = [item.comparison.candidate, item.comparison.reference]
        rows.append([*arms, f"{speed.ratio:.4f}", interval, speed.blocks, item.verdict.kind.value])
    return table(["phase", "against", "speed", "95 % interval", "blocks", "verdict"], rows)


def in_words(item: Judged) -> str:
    reasons = [reason for reason in item.verdict.reasons if reason not in item.verdict.sentence]
    return "\n".join([item.verdict.sentence, *(f"  - {reason}" for reason in reasons)])
