"""The options of `api.train`, made from TrainConfig by `python docs/make_train_options.py`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict

from splatmeter.densify.strategies import StrategyName
from splatmeter.evaluate.exposure_fit import ExposureProtocol


class TrainOptions(TypedDict, total=False):
    """Everything that a training can be told, by keyword; what is left out has its default.

    Several runs can share options: ``shared: TrainOptions = {"eval": True, "iterations": 7000}``, and then
    ``api.train(scene, output, **shared)``.
    """

    images: str
    """Folder of photos inside a COLMAP scene, for example images_4 (default: 'images')."""
    masks: str | None
    """Folder of masks (255 = object); by default masks/ where a COLMAP scene has it, 'none' for no masks."""
    resolution: int
    """1, 2, 4, 8, 16, 32, 64 shrink by that factor; -1 limits the width to 1600; others are the width
    (default: -1)."""
    white_background: bool
    """Composite and render over white instead of black (default: False)."""
    eval: bool
    """Hold out test views: every test_every-th photo by name, or the scene's own test split (default:
    False)."""
    test_every: int
    """With eval, every n-th photo in order of name is a test view (default: 8)."""
    test_count: int | None
    """Hold out this many evenly spaced test views instead."""
    load_allres: bool
    """Train on all levels of a multi-scale Blender scene, not only the finest (default: False)."""
    sample_more_highres: bool
    """Replace three in ten views by a random one at least 800 pixels wide (default: False)."""
    photo_cache: str
    """Memory for decoded photos, such as 2G; auto keeps all of them within a quarter of free memory (default:
    'auto')."""
    memory: str | None
    """Limit for all memory, such as 4G: Gaussians stop increasing there, and photos get what is left."""
    progressive: str
    """Coarse to fine: none, standard, or divisor:last step, such as 4:200,2:800; then the full size (default:
    'none')."""
    sh_degree: int
    """Highest degree of the colour's spherical harmonics, 0 to 3 (default: 3)."""
    sh_interval: int
    """Steps after which the colour gets one more degree (default: 1000)."""
    kernel_size: float
    """Variance of the 2D Mip filter in squared pixels (default: 0.1)."""
    filter_3d: bool
    """The 3D smoothing filter that limits detail to what the training photos sampled (default: True)."""
    plain_3dgs: bool
    """Original 3DGS rendering: kernel size 0.3 without opacity compensation, no 3D filter (default:
    False)."""
    iterations: int
    """Step at which training ends, counted from the very beginning, also when resuming (default: 30000)."""
    seconds: float | None
    """The best model in this time, from the command's start to the saved model, not counting evaluations."""
    plan: str | Path | None
    """Repeat the plan (plan.json) that a run with minutes or seconds has made, to the last bit."""
    position_lr_init: float
    """First learning rate of positions, times the scene's extent (default: 0.00016)."""
    position_lr_final: float
    """Last learning rate of positions, times the scene's extent (default: 1.6e-06)."""
    position_lr_pixels: float
    """Scales both rates so that a first step moves a Gaussian by so many pixels, such as 0.28; 0: never
    (default: 0.0)."""
    position_lr_delay_mult: float
    """Without effect here and in the original, which never delays (default: 0.01)."""
    position_lr_max_steps: int
    """Steps over which the positions' rate falls (default: 30000)."""
    feature_lr: float
    """Learning rate of the colour; higher harmonics learn at a twentieth of it (default: 0.0025)."""
    sh_lr_photos: int
    """With so many photos higher harmonics learn at a fifth, with fewer slower, to a twentieth; 0: that
    (default: 0)."""
    opacity_lr: float
    """Learning rate of opacities (default: 0.05)."""
    scaling_lr: float
    """Learning rate of log scales (default: 0.005)."""
    rotation_lr: float
    """Learning rate of rotations (default: 0.001)."""
    lr_final_share: float
    """Share of the rates of colour, opacity, scale and rotation left after position_lr_max_steps (default:
    1.0)."""
    momentum: float
    """Share of its movement that a Gaussian keeps from step to step: Adam's first beta (default: 0.9)."""
    unseen: Literal["move", "wait"]
    """Gaussians that a step does not see move on by their momentum, as published, or wait with it: faster
    (default: 'move')."""
    light_cut: float
    """Faster: a pixel ends when this share of its light is left, such as 0.004; 0 and cards: the original
    (default: 0.0)."""
    lambda_dssim: float
    """Weight of 1 - SSIM in the loss; L1 has the rest (default: 0.2)."""
    exposure: Literal["none", "affine"]
    """Learn a 3x4 colour transform for each training photo where exposures differ; affine needs a CPU
    (default: 'none')."""
    exposure_lr: float | None
    """First learning rate of transforms, which falls to a tenth; 0.003 by default."""
    exposure_reg: float
    """Weight in the loss of a transform's squared distance from the identity (default: 0.01)."""
    densification: StrategyName
    """Adding Gaussians: the original's criterion, the paper's, cutting, relocation (3DGS-MCMC) or none
    (default: 'gof')."""
    percent_dense: float
    """Share of the extent above which a Gaussian is split rather than cloned (default: 0.01)."""
    densification_interval: int
    """Steps between densifications (default: 100)."""
    opacity_reset_interval: int
    """Steps between opacity resets (default: 3000)."""
    densify_from_iter: int
    """Densification happens after this step (default: 500)."""
    densify_until_iter: int
    """Densification and opacity resets happen before this step (default: 15000)."""
    densify_grad_threshold: float
    """Mean screen-space gradient from which a Gaussian is densified (default: 0.0002)."""
    densify_reference_loss: float
    """The threshold holds at this loss and scales with the sixth root of the recent one; 0: it is fixed
    (default: 0.0)."""
    size_prune: Literal["none", "original"]
    """Remove Gaussians larger than a tenth of the extent, as the original does; it can blacken skies
    (default: 'none')."""
    max_gaussians: int | None
    """Never more than this many Gaussians; the most urgent candidates come first."""
    max_per_pixel: float
    """Most Gaussians in sight per pixel while progressive shows photos smaller; 0, minutes: no limit
    (default: 0.0)."""
    densify_region: str | None
    """Add Gaussians only where nx x + ny y + nz z >= d: nx,ny,nz,d, several with ; between; needs a CPU."""
    noise_lr: float
    """With mcmc: noise on the positions of faint Gaussians, times the positions' rate (default: 500000.0)."""
    opacity_reg: float
    """With mcmc: weight of the mean opacity in the loss (default: 0.01)."""
    scale_reg: float
    """With mcmc: weight of the mean size in the loss (default: 0.01)."""
    regularize: float | None
    """Weight of all opacities, a pixel, in the loss. minutes takes 0.002 for few photos; 0 for none."""
    aggressive_prune_opacity: float | None
    """Also remove Gaussians below this opacity every aggressive_prune_interval steps."""
    aggressive_prune_interval: int
    """Steps between aggressive prunings, also after densification; 500 steps after a reset are left out
    (default: 1000)."""
    test_iterations: Sequence[int]
    """Steps at which test views and five training views are evaluated (default: (7000, 30000))."""
    save_iterations: Sequence[int]
    """Steps at which the model is written; the last step is always among them (default: (7000, 30000))."""
    checkpoint_iterations: Sequence[int]
    """Steps at which a checkpoint to resume from is written (default: ())."""
    checkpoint_interval: int | None
    """Also write a checkpoint every so many steps."""
    checkpoint_minutes: float
    """Minutes between safety checkpoints and one at the end; only the newest is kept; 0: none (default:
    5.0)."""
    start_checkpoint: str | Path | None
    """Start from this checkpoint: ours (.safetensors) or the original's (.pth)."""
    resume: bool
    """Go on from the output folder's newest checkpoint, with its run's settings where none are given
    (default: False)."""
    overwrite: bool
    """Replace the run that is in the output folder (default: False)."""
    exposure_protocol: ExposureProtocol
    """Evaluate as it is, or with the exposure fitted on a photo's left half and judged on the right one
    (default: 'none')."""
    lpips: bool
    """Also compute LPIPS in evaluations (needs the torch extra and weights) (default: False)."""
    seed: int
    """Random seed for the order of views and the positions of split Gaussians (default: 0)."""
    progress_interval: int
    """Steps between progress events (default: 10)."""
    evaluation_images: int
    """In each evaluation, keep the renders of the first so many views as PNG files (default: 0)."""
