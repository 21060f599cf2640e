"""Everything a training run can be told. Names and defaults are the original's where it has them."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from splatmeter.backend import Explore, Momentum
from splatmeter.densify import region
from splatmeter.densify.densifier import DensifySettings
from splatmeter.densify.strategies import STRATEGIES, StrategyName
from splatmeter.densify.strategy import EXPLORING_INTERVAL
from splatmeter.errors import UsageError
from splatmeter.evaluate.exposure_fit import ExposureProtocol
from splatmeter.gaussians.marks import PLAIN_KERNEL_SIZE
from splatmeter.ops import RasterSettings
from splatmeter.scene.scene import Scene, SceneOptions
from splatmeter.train.config_sense import require_sense
from splatmeter.train.schedule import HARMONICS_INTERVAL, Schedule, position_scale, rest_divisor
from splatmeter.units import parse_bytes


@dataclass(frozen=True)
class TrainConfig:
    """Resolved by the command line, written to config.json, carried by checkpoints."""

    # ---- the scene ----------------------------------------------------------------------------------------
    source_path: Path = Path()
    """Scene folder: COLMAP (sparse/ and images), NeRF-synthetic, or multi-scale Blender."""
    model_path: Path | None = None
    """Output folder; by default output/ and the experiment's name, or a random name."""
    experiment_name: str = ""
    """Names the output folder and the run, where --model-path does not."""
    images: str = "images"
    """Folder of photos inside a COLMAP scene, for example images_4."""
    masks: str | None = None
    """Folder of masks (255 = object); by default masks/ where a COLMAP scene has it, 'none' for no masks."""
    resolution: int = -1
    """1, 2, 4, 8, 16, 32, 64 shrink by that factor; -1 limits the width to 1600; others are the width."""
    white_background: bool = False
    """Composite and render over white instead of black."""
    eval: bool = False
    """Hold out test views: every --test-every-th photo by name, or the scene's own test split."""
    test_every: int = 8
    """With --eval, every n-th photo in order of name is a test view."""
    test_count: int | None = None
    """Hold out this many evenly spaced test views instead."""
    load_allres: bool = False
    """Train on all levels of a multi-scale Blender scene, not only the finest."""
    sample_more_highres: bool = False
    """Replace three in ten views by a random one at least 800 pixels wide."""
    photo_cache: str = "auto"
    """Memory for decoded photos, such as 2G; auto keeps all of them within a quarter of free memory."""
    memory: str | None = None
    """Limit for all memory, such as 4G: Gaussians stop increasing there, and photos get what is left."""
    progressive: str = "none"
    """Coarse to fine: none, standard, or divisor:last step, such as 4:200,2:800; then the full size."""

    # ---- the method ---------------------------------------------------------------------------------------
    sh_degree: int = 3
    """Highest degree of the colour's spherical harmonics, 0 to 3."""
    sh_interval: int = HARMONICS_INTERVAL
    """Steps after which the colour gets one more degree."""
    kernel_size: float = 0.1
    """Variance of the 2D Mip filter in squared pixels."""
    filter_3d: bool = True
    """The 3D smoothing filter that limits detail to what the training photos sampled."""
    plain_3dgs: bool = False
    """Original 3DGS rendering: kernel size 0.3 without opacity compensation, no 3D filter."""
    ray_jitter: bool = False
    """Not supported here: it is off in all published runs."""
    resample_gt_image: bool = False
    """Not supported here: it only serves --ray-jitter."""

    # ---- optimisation -------------------------------------------------------------------------------------
    iterations: int = 30_000
    """Step at which training ends, counted from the very beginning, also when resuming."""
    seconds: float | None = None
    """The best model in this time, from the command's start to the saved model, not counting evaluations."""
    plan: Path | None = None
    """Repeat the plan (plan.json) that a run with --minutes or --seconds has made, to the last bit."""
    position_lr_init: float = 0.00016
    """First learning rate of positions, times the scene's extent."""
    position_lr_final: float = 0.0000016
    """Last learning rate of positions, times the scene's extent."""
    position_lr_pixels: float = 0.0
    """Scales both rates so that a first step moves a Gaussian by so many pixels, such as 0.28; 0: never."""
    position_lr_delay_mult: float = 0.01
    """Without effect here and in the original, which never delays."""
    position_lr_max_steps: int = 30_000
    """Steps over which the positions' rate falls."""
    feature_lr: float = 0.0025
    """Learning rate of the colour; higher harmonics learn at a twentieth of it."""
    sh_lr_photos: int = 0
    """With so many photos higher harmonics learn at a fifth, with fewer slower, to a twentieth; 0: that."""
    opacity_lr: float = 0.05
    """Learning rate of opacities."""
    scaling_lr: float = 0.005
    """Learning rate of log scales."""
    rotation_lr: float = 0.001
    """Learning rate of rotations."""
    lr_final_share: float = 1.0
    """Share of the rates of colour, opacity, scale and rotation left after --position-lr-max-steps."""
    momentum: float = 0.9
    """Share of its movement that a Gaussian keeps from step to step: Adam's first beta."""
    unseen: Literal["move", "wait"] = "move"
    """Gaussians that a step does not see move on by their momentum, as published, or wait with it: faster."""
    light_cut: float = 0.0
    """Faster: a pixel ends when this share of its light is left, such as 0.004; 0 and cards: the original."""
    lambda_dssim: float = 0.2
    """Weight of 1 - SSIM in the loss; L1 has the rest."""
    exposure: Literal["none", "affine"] = "none"
    """Learn a 3x4 colour transform for each training photo where exposures differ; affine needs a CPU."""
    exposure_lr: float | None = None
    """First learning rate of transforms, which falls to a tenth; 0.003 by default."""
    exposure_reg: float = 0.01
    """Weight in the loss of a transform's squared distance from the identity."""

    # ---- densification ------------------------------------------------------------------------------------
    densification: StrategyName = "gof"
    """Adding Gaussians: the original's criterion, the paper's, cutting, relocation (3DGS-MCMC) or none."""
    percent_dense: float = 0.01
    """Share of the extent above which a Gaussian is split rather than cloned."""
    densification_interval: int = 100
    """Steps between densifications."""
    opacity_reset_interval: int = 3000
    """Steps between opacity resets."""
    densify_from_iter: int = 500
    """Densification happens after this step."""
    densify_until_iter: int = 15_000
    """Densification and opacity resets happen before this step."""
    densify_grad_threshold: float = 0.0002
    """Mean screen-space gradient from which a Gaussian is densified."""
    densify_reference_loss: float = 0.0
    """The threshold holds at this loss and scales with the sixth root of the recent one; 0: it is fixed."""
    size_prune: Literal["none", "original"] = "none"
    """Remove Gaussians larger than a tenth of the extent, as the original does; it can blacken skies."""
    max_gaussians: int | None = None
    """Never more than this many Gaussians; the most urgent candidates come first."""
    max_per_pixel: float = 0.0
    """Most Gaussians in sight per pixel while --progressive shows photos smaller; 0, --minutes: no limit."""
    densify_region: str | None = None
    """Add Gaussians only where nx x + ny y + nz z >= d: nx,ny,nz,d, several with ; between; needs a CPU."""
    noise_lr: float = 5e5
    """With mcmc: noise on the positions of faint Gaussians, times the positions' rate."""
    opacity_reg: float = 0.01
    """With mcmc: weight of the mean opacity in the loss."""
    scale_reg: float = 0.01
    """With mcmc: weight of the mean size in the loss."""
    regularize: float | None = None
    """Weight of all opacities, a pixel, in the loss. --minutes takes 0.002 for few photos; 0 for none."""
    aggressive_prune_opacity: float | None = None
    """Also remove Gaussians below this opacity every --aggressive-prune-interval steps."""
    aggressive_prune_interval: int = 1000
    """Steps between aggressive prunings, also after densification; 500 steps after a reset are left out."""

    # ---- the run ------------------------------------------------------------------------------------------
    test_iterations: tuple[int, ...] = (7000, 30_000)
    """Steps at which test views and five training views are evaluated."""
    save_iterations: tuple[int, ...] = (7000, 30_000)
    """Steps at which the model is written; the last step is always among them."""
    checkpoint_iterations: tuple[int, ...] = ()
    """Steps at which a checkpoint to resume from is written."""
    checkpoint_interval: int | None = None
    """Also write a checkpoint every so many steps."""
    checkpoint_minutes: float = 5.0
    """Minutes between safety checkpoints and one at the end; only the newest is kept; 0: none."""
    start_checkpoint: Path | None = None
    """Start from this checkpoint: ours (.safetensors) or the original's (.pth)."""
    resume: bool = False
    """Go on from the output folder's newest checkpoint, with its run's settings where none are given."""
    overwrite: bool = False
    """Replace the run that is in the output folder."""
    exposure_protocol: ExposureProtocol = "none"
    """Evaluate as it is, or with the exposure fitted on a photo's left half and judged on the right one."""
    lpips: bool = False
    """Also compute LPIPS in evaluations (needs the torch extra and weights)."""
    seed: int = 0
    """Random seed for the order of views and the positions of split Gaussians."""
    progress_interval: int = 10
    """Steps between progress events."""
    evaluation_images: int = 0
    """In each evaluation, keep the renders of the first so many views as PNG files."""

    def __post_init__(self) -> None:
        require_sense(self)

    # ---- what the words need ------------------------------------------------------------------------------
    def scene_options(self) -> SceneOptions:
        return SceneOptions(
            source=self.source_path,
            images=self.images,
            resolution=self.resolution,
            eval=self.eval,
            test_every=self.test_every,
            test_count=self.test_count,
            white_background=self.white_background,
            load_allres=self.load_allres,
            masks=self.masks,
        )

    def raster_settings(self, sh_degree: int) -> RasterSettings:
        """For pictures, by which the model is judged and which others see: without the light cut."""
        level = 1.0 if self.white_background else 0.0
        return RasterSettings(
            sh_degree=sh_degree,
            kernel_size=PLAIN_KERNEL_SIZE if self.plain_3dgs else self.kernel_size,
            compensate=not self.plain_3dgs,
            background=(level, level, level),
        )

    def step_settings(self, sh_degree: int, absolute_gradients: bool) -> RasterSettings:
        """For steps of training."""
        return dataclasses.replace(
            self.raster_settings(sh_degree),
            absolute_gradients=absolute_gradients,
            light_cut=self.light_cut,
        )

    def schedule(self, scene: Scene, planned: Callable[[int], float] | None = None) -> Schedule:
        scale, pixels = 1.0, self.position_lr_pixels
        if pixels:
            scale = position_scale(pixels, self.position_lr_init, scene.extent * scene.pixels_per_unit)
        return Schedule(
            extent=scene.extent,
            position_first=scale * self.position_lr_init,
            position_last=scale * self.position_lr_final,
            position_steps=self.position_lr_max_steps,
            harmonics=self.feature_lr,
            rest_divisor=rest_divisor(self.sh_lr_photos, len(scene.train)),
            opacity=self.opacity_lr,
            scale=self.scaling_lr,
            rotation=self.rotation_lr,
            last_share=self.lr_final_share,
            planned=planned,
        )

    @property
    def memory_bytes(self) -> int | None:
        """UsageError where --memory is no size."""
        if self.memory is None:
            return None
        try:
            return parse_bytes(self.memory)
        except ValueError as problem:
            raise UsageError(f"--memory: {problem}.") from None

    @property
    def only_on_cpu(self) -> str:
        """Options given that no card can follow; empty if there are none."""
        exposure = [f"--exposure {self.exposure}"] if self.exposure != "none" else []
        memory = [f"--memory {self.memory}"] if self.memory is not None else []
        within = ["--densify-region"] if self.densify_region is not None else []
        return " and ".join(exposure + within + memory)

    def densify_settings(self, extent: float, budget: int | None = None) -> DensifySettings:
        """`budget`: of Gaussians, where there is another than --max-gaussians."""
        return DensifySettings(
            extent=extent,
            seed=self.seed,
            strategy=self.densification,
            first=self.densify_from_iter,
            until=self.densify_until_iter,
            interval=self.densification_interval,
            reset_interval=self.opacity_reset_interval,
            threshold=self.densify_grad_threshold,
            reference_loss=self.densify_reference_loss,
            percent_dense=self.percent_dense,
            white_background=self.white_background,
            size_prune=self.size_prune == "original",
            max_gaussians=self.max_gaussians if budget is None else budget,
            aggressive_opacity=self.aggressive_prune_opacity,
            aggressive_interval=self.aggressive_prune_interval,
            region=region.parse(self.densify_region),
        )

    @property
    def last_growth(self) -> int:
        """The last step after which Gaussians are added."""
        last = min(self.iterations, self.densify_until_iter) - 1
        return max(0, last // self.densification_interval * self.densification_interval)

    def explore(self) -> Explore | None:
        """For each so many steps, where the strategy explores."""
        if STRATEGIES[self.densification].explores:
            return Explore(self.seed, EXPLORING_INTERVAL, self.noise_lr, self.opacity_reg, self.scale_reg)
        if self.regularize:
            return Explore(self.seed, EXPLORING_INTERVAL, 0.0, self.regularize, 0.0, per_pixel=True)
        return None

    @property
    def optimizer_momentum(self) -> Momentum:
        return Momentum(self.momentum, waits=self.unseen == "wait")

    @property
    def uses_filter_3d(self) -> bool:
        return self.filter_3d and not self.plain_3dgs


def to_json(config: TrainConfig) -> dict[str, Any]:
    """Plain values under the fields' names; paths as text."""
    record = dataclasses.asdict(config)
    return {name: str(value) if isinstance(value, Path) else _plain(value) for name, value in record.items()}


def from_json(record: Mapping[str, Any]) -> TrainConfig:
    """Unknown names are ignored: a newer version may have written the file."""
    hints = typing.get_type_hints(TrainConfig)
    known = {name: _typed(record[name], hints[name]) for name in hints if name in record}
    return TrainConfig(**known)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _typed(value: Any, hint: Any) -> Any:
    if value is not None and (hint is Path or Path in typing.get_args(hint)):
        return Path(value)
    return tuple(value) if isinstance(value, list) else value
