"""The plain data that compare, audit and log work on: no files, no clocks, no processes.

Whoever executes runs fills in `RunSample`; everything after that is a pure function of these values.
Unknown is `None` (or empty), never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from splatmeter.lab.samples.verdict_kinds import Verdict as Verdict
from splatmeter.lab.samples.verdict_kinds import VerdictKind as VerdictKind

OURS = "splatmeter eval"
"""Computed by the lab itself from a saved model, with the same code for every trainer."""


class Aspect(str, Enum):
    """What may differ between two arms; a phase declares the aspects it changes."""

    SCENE = "scene"
    IMAGES = "images"
    RESOLUTION = "resolution"
    SPLIT = "split"
    SEED = "seed"
    ITERATIONS = "iterations"
    START = "start"
    """The checkpoint that the run resumes from."""
    GAUSSIANS = "gaussians"
    BACKEND = "backend"
    MACHINE = "machine"
    ENVIRONMENT = "environment"
    START_UP = "start-up"
    """Work before the timed steps, such as compiling; it is reported apart and must be declared."""
    EVALUATION = "evaluation"
    """Time for evaluating and saving, which the training clock leaves out."""
    CODE = "code"
    """Contents of the program, whatever it calls itself; another revision, patch or command declares it."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of a comparison: a phase as it was measured."""

    name: str
    declares: frozenset[Aspect] = frozenset()
    """Aspects that this phase says it changes against its parent."""
    speed_only: bool = True
    """False where the phase says that it means to change quality; then a gain is no surprise."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Means over the views of one split at one step."""

    step: int
    split: str
    """'test' or 'train'."""
    metrics: Mapping[str, float]
    """l1, psnr, ssim, lpips, as in events.Evaluated."""
    images: tuple[str, ...] = ()
    """Names of the views that were judged."""
    model_sha256: str = ""
    """Hash of the model that was judged; empty if none was written."""
    judged_by: str = ""
    """'splatmeter eval', or the trainer that printed it: only figures of one judge compare."""
    exposure: str = "none"
    """By which protocol the exposure of photos was treated: only figures of one protocol compare."""
    clock_seconds: float | None = None
    """What the training clock said, counted from the start of the run; None where it is not known."""

    @property
    def rule(self) -> tuple[str, str]:
        """Who judged, and how: what two evaluations must share to be compared."""
        return self.judged_by, self.exposure


@dataclass(frozen=True, slots=True)
class StagePeak:
    """Highest memory of one stage and how it was learnt."""

    stage: str
    """'loading', 'training', 'evaluation' or 'saving'."""
    process_bytes: int | None = None
    """Ordinary memory of the process tree."""
    allocated_bytes: int | None = None
    """On the card, in use by the run's tensors."""
    reserved_bytes: int | None = None
    """On the card, taken by the run's allocator."""
    device_bytes: int | None = None
    """On the card, all processes together."""
    samples: int | None = None
    """Samples inside the stage; None for a high-water mark, which misses nothing."""
    stage_seconds: float | None = None
    sampler_seconds: float | None = None
    """Time between two samples; None for a high-water mark."""
    taken_after_stage: bool = False
    """The figure was read when the stage was over and its memory perhaps already freed."""
    seen_bytes: int | None = None
    """The most that was seen from outside meanwhile, to doubt what a trainer tells of itself."""
    source: str = ""
    """How it was learnt, in words."""


@dataclass(frozen=True, slots=True)
class RatePoint:
    """Speed over a stretch of one run, to see it collapse."""

    step: int
    gaussians: int
    steps_per_second: float


@dataclass(frozen=True, slots=True)
class Clocks:
    """The training clock beside the lab's own watch: seconds that one has and the other has not."""

    start_up_seconds: float
    """From the start of the process to the first timed step, less what the warm-up takes at its own speed."""
    wall_seconds: float
    """From there to the end of the process."""
    on_clock_seconds: float
    """What the training clock counted of them."""
    covered: float
    """Share of the steps to be timed that it did time."""

    @property
    def off_clock_seconds(self) -> float:
        return max(0.0, self.wall_seconds - self.on_clock_seconds)


@dataclass(frozen=True, slots=True)
class RunSample:
    """One fresh process of one arm: its one number and everything needed to doubt it."""

    arm: Arm
    block: int
    order: int
    """Place within the block, from 0."""
    seconds: float
    """Training clock from synchronised step W to step N."""
    timed_steps: int
    """N - W."""
    gaussians_start: int
    gaussians_end: int
    run: str = ""
    """Name of the run's folder, for sentences."""
    seed: int = 0
    seed_set: bool = True
    """The trainer was given this seed; False where it takes none, so that all runs repeat one."""
    first_step: int = 0
    last_step: int = 0
    evaluations: tuple[Evaluation, ...] = ()
    loss: float | None = None
    loss_last_100: float | None = None
    scene: str = ""
    resolution: str = ""
    train_images: tuple[str, ...] = ()
    test_images: tuple[str, ...] = ()
    ancestor_images: tuple[str, ...] = ()
    start_sha256: str = ""
    model_sha256: str = ""
    backend: str = ""
    machine: str = ""
    warnings: tuple[str, ...] = ()
    """What trainer and adapter warned of."""
    clocks: Clocks | None = None
    """None where only the lab kept time (slices), and in results of older versions."""
    code: str = ""
    """Hash of the contents of its program; empty if nothing could be identified."""
    environment: Mapping[str, Any] = field(default_factory=dict)
    """Facts that must agree between arms (versions, flags, limits); not load or time of day."""
    deterministic: bool = False
    """The trainer promises the same model for the same seed, start and options."""
    sh_degree: int = 3
    image_bytes_held: int = 0
    """Photos kept during training, in the memory that `peaks` is about."""
    holds_gradients: bool = True
    """False for a fused step, which never has all gradients at once."""
    peaks: tuple[StagePeak, ...] = ()
    total_peak_bytes: int | None = None
    """The highest in the whole run, seen from outside: by samples of the tree and by the system."""
    card_bytes: int | None = None
    on_a_card: bool = False
    """The trainer works on a graphics card; what slows it down may be memory that spilled from it."""
    rates: tuple[RatePoint, ...] = ()
    allocator_retries: int = 0
    """Inside the timed window."""
    foreign_cpu_share: float | None = None
    """Share of the machine that others used meanwhile."""
    stolen_share: float | None = None
    """Share of the machine's time that its owner gave to others meanwhile."""
    throttled: int = 0
    """How often a core was slowed down because of heat meanwhile."""
    spill: str = ""
    """What the counters say of memory that ran over from the card."""
    card_warnings: tuple[str, ...] = ()
    """Doubts that the card's clocks and heat raise; () where the card was not used or not watched."""

    @property
    def steps_per_second(self) -> float:
        return self.timed_steps / self.seconds

    @property
    def seconds_per_step(self) -> float:
        return self.seconds / self.timed_steps

    @property
    def gaussian_steps_per_second(self) -> float:
        """Throughput that stays comparable when the arms hold different numbers of Gaussians."""
        return self.steps_per_second * 0.5 * (self.gaussians_start + self.gaussians_end)

    @property
    def name(self) -> str:
        return self.run or f"{self.arm.name}, block {self.block}"


@dataclass(frozen=True, slots=True)
class SliceSample:
    """One arm's turn within a sliced block: the same steps for both arms, seconds apart."""

    arm: str
    block: int
    index: int
    """Number of the pair of slices within the block."""
    first_step: int
    last_step: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Subject:
    """What exactly was measured: a repetition repeats this, or it is no repetition."""

    protocol: str = ""
    definitions: tuple[str, ...] = ()
    """Hashes of what reference and candidate had declared when the session began."""
    code: tuple[tuple[str, ...], ...] = ()
    """Hashes of all code that the runs executed: reference and candidate, machine by machine."""
    machines: tuple[str, ...] = ()
    """Where there were several."""

    def obstacle(self, later: Subject) -> str:
        """Why `later` does not repeat this; empty if it does."""
        if self.protocol != later.protocol:
            return "the protocol has changed between the two"
        if self.machines != later.machines:
            return "the two were not measured on the same machines"
        if self.definitions != later.definitions:
            return "a phase was declared otherwise in the first comparison"
        if not all(len(hashes) == 1 and hashes[0] for hashes in (*self.code, *later.code)):
            return "the code of an arm is not known for certain"
        return "" if self.code == later.code else "the code is not the code of the first comparison"


NOTHING = Subject()
