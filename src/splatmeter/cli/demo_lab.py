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
from splatmeter.lab.atomic import write_text
from splatmeter.lab.plan import protocol as protocols
from splatmeter.lab.plan.phases import BASELINE
from splatmeter.lab.plan.protocol import Protocol
from splatmeter.lab.record.lab import Lab
from splatmeter.lab.session.verdicts import Judged, judged

if TYPE_CHECKING:
    from splatmeter.cli.demo import Scale

BLOCKS = 4
WARM_UP = 50
SWITCH = "SPLATMETER_ISA"
VECTORS = "wide-vectors"
"""The same arithmetic with the widest vectors of this processor: several times faster, same quality."""
CORES = "all-cores"
"""Instead of it, where the processor has only one kind of vectors."""
NO_GROWTH = "no-growth"
"""Faster still, and worse: a speed-up that a lab must not let pass."""


@dataclass(frozen=True, slots=True)
class Demo:
    out: Path
    scene: Path
    scale: Scale

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
    command(demo, "report", str(demo.out / "report.html"), "--render")


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
        warm_up=WARM_UP,
        blocks=BLOCKS,
        options=("--device", "cpu"),
    )
    demo.lab.root.mkdir(parents=True)
    write_text(demo.lab.protocol_file, protocols.to_text(protocols.check(protocol)))
    names = [BASELINE, engine_phase(demo)]
    if scale.second_phase:
        names.append(NO_GROWTH)
        declared = ["--change", "gaussians", "--note", "no new Gaussians", "--", "--densification", "none"]
        add(demo, NO_GROWTH, names[-2], *declared)
    return names


def engine_phase(demo: Demo) -> str:
    """The baseline and what makes our own engine fast; both give the same quality."""
    from splatmeter.backends.native import usable_threads
    from splatmeter.backends.registry import backend

    widest = str(backend().facts.details["instruction_set"])
    if widest in ("baseline", "neon"):  # nothing narrower to compare with
        add(demo, BASELINE, "", "--note", "one thread", "--", "--threads", "1")
        threads = str(usable_threads())
        add(demo, CORES, BASELINE, "--note", "all cores this process may use", "--", "--threads", threads)
        return CORES
    add(demo, BASELINE, "", "--note", "vectors every processor has", "--variable", f"{SWITCH}=baseline")
    add(demo, VECTORS, BASELINE, "--note", f"vectors of {widest}", "--variable", f"{SWITCH}={widest}")
    return VECTORS


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
        f"from one checkpoint, and the first {WARM_UP} are not timed.",
        flush=True,
    )


# ---- telling ----------------------------------------------------------------------------------------------
def comparison(found: Sequence[Judged]) -> str:
    rows = []
    for item in found:
        speed = item.comparison.speed.main
        interval = f"[{speed.interval_95.low:.2f}, {speed.interval_95.high:.2f}]"
        arms = [item.comparison.candidate, item.comparison.reference]
        rows.append([*arms, f"{speed.ratio:.2f}", interval, speed.blocks, item.verdict.kind.value])
    return table(["phase", "against", "speed", "95 % interval", "blocks", "verdict"], rows)


def in_words(item: Judged) -> str:
    reasons = [reason for reason in item.verdict.reasons if reason not in item.verdict.sentence]
    return "\n".join([item.verdict.sentence, *(f"  - {reason}" for reason in reasons)])
