"""The seam between the trainer and its engines.

The trainer holds a `Model`, Gaussians in memory that only their backend touches, and tells it what to do; it
waits for nothing inside a step. `ops.Table` is the same Gaussians in the host's memory: what files hold, what
goes up and what comes down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from splatmeter.ops import F32, F64, Pinhole, RasterSettings, Rates, Similarity, Table


# ---- pictures ---------------------------------------------------------------------------------------------
class Rendering(Protocol):
    """A picture that may still lie on a device: its pixels come to the host when they are asked for."""

    @property
    def color(self) -> F32: ...  # [3, H, W] background included, not clamped

    @property
    def transmittance(self) -> F32: ...  # [H, W] what the background shows through


Photo = Any
"""Pixels where the engine wants them, as `Backend.photo` gives them: opaque to everybody else."""


# ---- one step of training ---------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Explore:
    """What 3DGS-MCMC adds to the last `steps` steps, done at once: noise on the means, and the pull of two
    regularisers, which are means over all Gaussians (and all axes)."""

    seed: int
    steps: int
    noise: float
    """Times the positions' rate."""
    opacity: float
    scale: float
    per_pixel: bool = False
    """The weights are those of sums over all Gaussians, for each pixel of the photo: how much one Gaussian
    feels then depends neither on how many there are nor on the size of photos."""

    def as_means(self, gaussians: int, pixels: int) -> Explore:
        crowd = gaussians / pixels if self.per_pixel else 1.0
        return replace(self, opacity=crowd * self.opacity, scale=crowd * self.scale, per_pixel=False)


@dataclass(frozen=True, slots=True, eq=False)
class Exposures:
    """How each training photo was exposed: its colours are A colour + b, (A | b) being its transform. With
    the state of an Adam of their own; backends/exposure_step.py says how they learn."""

    transforms: F64  # [P, 3, 4]
    first: F64  # [P, 3, 4] mean of gradients
    second: F64  # [P, 3, 4] mean of their squares
    visits: F64  # [P] steps that saw the photo

    @property
    def count(self) -> int:
        return len(self.visits)

    def copy(self) -> Exposures:
        return Exposures(*(getattr(self, name).copy() for name in self.__dataclass_fields__))


@dataclass(frozen=True, slots=True)
class ExposureStep:
    photo: int
    """Row of `Exposures`."""
    rate: float
    pull: float
    """Weight in the loss of the squared distance from the identity."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainStep:
    """Look through this camera, compare with this photo, and learn."""

    camera: Pinhole
    photo: Photo
    settings: RasterSettings
    ssim_weight: float
    rates: Rates
    learns: bool = True
    """Else only the statistics of densification move."""
    explore: Explore | None = None
    exposure: ExposureStep | None = None
    """The picture is compared through the photo's transform, which learns too; else as it is."""


class Ticket(Protocol):
    """For the numbers of a step, which a device may still be working on."""

    @property
    def ready(self) -> bool:
        """Whether reading would not wait."""
        ...

    def read(self) -> Similarity:
        """Not numbers for the first step whose loss was not one, and for all after it: those did nothing."""
        ...


# ---- the set of Gaussians changes -------------------------------------------------------------------------
HalfSpaces = tuple[tuple[float, float, float, float], ...]
"""(nx, ny, nz, d) each, all points with nx x + ny y + nz z >= d: what lies in all of them; none is all of
space. densify/region.py reads and asks them."""


@dataclass(frozen=True, slots=True)
class GrowthRule:
    """One densification as plain numbers, so that a device can follow it."""

    strategy: str
    """A name in `densify.strategies`."""
    seed: int
    step: int
    """With the seed, the row and the child it names the random numbers (densify/draws.py)."""
    threshold: float
    """Mean screen-space gradient from which a Gaussian is densified."""
    dense_scale: float
    """Gaussians no larger than this are cloned, larger ones split."""
    lowest_opacity: float
    largest_scale: float
    budget: int | None
    region: HalfSpaces = ()
    """Only Gaussians whose centres lie in it become more; they learn and are pruned everywhere."""


@dataclass(frozen=True, slots=True)
class Change:
    cloned: int
    split: int
    pruned: int
    wanted: int = 0
    """Rows that the criterion named, before a budget; 0 where there is none."""
    demand: int = field(default=0, compare=False)
    """About how many Gaussians there would have to be for none to ask; 0 where an engine does not tell."""

    @property
    def added(self) -> int:
        """Rows more than before, or fewer where it is negative."""
        return self.cloned + self.split - self.pruned


# ---- the model and its backend ----------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Momentum:
    """How Gaussians remember their last movements."""

    kept: float = 0.9
    """The share that stays from one step to the next: Adam's first beta."""
    waits: bool = False
    """Steps that do not see a Gaussian leave it where it is, and its momentum as it was; else it moves on."""


@dataclass(frozen=True, slots=True, eq=False)
class OptimizerState:
    """How far the optimizer is. `owed` is an engine's own account of rows that are behind, needed to go on to
    the last bit; without it every row counts as current."""

    steps: int = 0
    rates: Rates | None = None
    """The rates of the last step."""
    owed: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    momentum: Momentum = field(default_factory=Momentum)


class Model(Protocol):
    """Gaussians that their backend owns. What is read of them is as dense Adam would have it now, and reading
    changes no later bit; only `stored` shows rows that may be some steps behind."""

    @property
    def count(self) -> int: ...

    def train_step(self, order: TrainStep) -> Ticket:
        """Where the loss is not a number nothing changes, in this step or in any after it."""
        ...

    def render(self, camera: Pinhole, settings: RasterSettings) -> Rendering: ...

    def settle(self) -> None:
        """Bring rows that nobody saw lately up to date; whatever changes the set does it by itself."""
        ...

    def grow(self, rule: GrowthRule) -> Change:
        """NotEnoughMemory, nothing changed, if it cannot fit."""
        ...

    def prune(self, lowest_opacity: float) -> Change: ...

    def reset_opacities(self) -> None: ...

    def refresh_filter(self, cameras: Sequence[Pinhole]) -> None:
        """The 3D filter over these cameras; gaussians/filter3d.py says how."""
        ...

    def mean_opacity(self) -> float:
        """Mean of the raw opacities, before the filter; NaN if there are no Gaussians."""
        ...

    def intact(self) -> bool:
        """Whole (a rearrangement may have been cut short) and all numbers."""
        ...

    def download(self, rows: slice) -> Table:
        """A copy of the parameters, without moments."""
        ...

    def stored(self, array: str, rows: slice | NDArray[np.int64]) -> F32:
        """Rows of one of the table's arrays as they are kept: read them, do not write to them."""
        ...

    def optimizer(self) -> OptimizerState: ...

    def expose(self, exposures: Exposures) -> None:
        """From now on steps may name one of these photos; the arrays are the model's."""
        ...

    def exposures(self) -> Exposures | None:
        """A copy; None where nobody exposed it."""
        ...


class Upload(Protocol):
    def __call__(self, table: Table, optimizer: OptimizerState = ..., /) -> Model:
        """The table is the model's from then on: where memory is shared nothing is copied."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What an engine is: recorded with every run."""

    name: str
    device: str
    arithmetic: str
    """Runs of equal arithmetic have equal bits; checkpoints carry it."""
    deterministic: bool
    fused: bool
    """From a Gaussian's gradient to its update at once: gradients of all of them are never held together."""
    details: Mapping[str, Any] = field(default_factory=dict)

    def recorded(self) -> dict[str, Any]:
        own = {"device": self.device, "arithmetic": self.arithmetic}
        return own | {"deterministic": self.deterministic, "fused": self.fused} | dict(self.details)


@dataclass(frozen=True, slots=True, eq=False)
class EngineMemory:
    """What training takes of the memory that models live in, densification included."""

    per_gaussian: int
    per_pixel: int
    fixed: int
    available: Callable[[], int]
    held: Callable[[], int]
    peak: Callable[[], int]
    """The most since `reset_peak`."""
    reset_peak: Callable[[], object]
    buffers: Callable[[], int] = field(default=lambda: 0)
    """What it holds now besides models and photos: images and lists that steps use again."""
    per_pair: int = 0
    """Bytes for one Gaussian in one tile: where points are few for the image, each covers many tiles."""
    of_the_host: bool = True
    """Else it is a device's own, and decoded photos need the host's besides."""
    photos_give_way: bool = False
    """They take what nothing else needs: of all of them only one has to fit."""

    def predicted(self, gaussians: int, pixels: int, photo_bytes: int) -> int:
        photos = min(photo_bytes, 3 * pixels) if self.photos_give_way else photo_bytes
        return self.fixed + gaussians * self.per_gaussian + pixels * self.per_pixel + photos


@dataclass(frozen=True, slots=True, eq=False)
class Backend:
    """A frozen value of functions, so that watching one or swapping it is one `dataclasses.replace`."""

    facts: Facts
    memory: EngineMemory

    upload: Upload

    photo: Callable[[NDArray[np.uint8]], Photo]
    """u8 [3, H, W] to where steps want it; called from the threads that decode."""

    similarity: Callable[[F32, NDArray[np.uint8]], Similarity]
    """(picture [3, H, W], photo u8 [3, H, W]) -> L1 and SSIM, for evaluation."""

    neighbour_distance: Callable[[F32], F32]
    """points [N, 3] -> mean of the squared distances to the three nearest other points [N], exact."""

    morton_order: Callable[[F32], NDArray[np.int64]]
    """means [N, 3] -> the order of rows that keeps neighbours in space near in memory [N]."""

    timings: Callable[[], Mapping[str, float]] = field(default=dict)
    """Seconds per pass since the last call."""

    synchronize: Callable[[], None] = field(default=lambda: None)
    """Wait until everything that was asked for is done."""

    exposes: bool = False
    """Whether its steps can learn how photos were exposed."""

    knows_regions: bool = False
    """Whether its models can grow in a part of space alone."""
