"""Small scenes that between them visit every branch of the rasterizer. NumPy only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from splatmeter.backends.lazy_adam import LazyTable, lazy, pending_of
from splatmeter.ops import (
    FILTER_3D,
    LOG_SCALES,
    MEANS,
    OPACITY_LOGITS,
    ROTATIONS,
    WIDTHS,
    Pinhole,
    RasterSettings,
    Table,
    empty_table,
)

DISTANCE = 4.0  # from the camera to the middle of the scene


def camera(width: int, height: int, seed: int = 0, shift: tuple[float, float] = (0.0, 0.0)) -> Pinhole:
    """Looks at the origin from a random side; `shift` moves the principal point, in parts of the image."""
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    rotation *= np.sign(np.linalg.det(rotation))
    focal = 1.1 * max(width, height)
    return Pinhole(
        rotation=rotation,
        translation=np.array([0.1, -0.05, DISTANCE]),
        fx=focal,
        fy=1.05 * focal,
        cx=(0.5 + shift[0]) * width,
        cy=(0.5 + shift[1]) * height,
        width=width,
        height=height,
    )


def random_table(count: int = 80, seed: int = 1) -> LazyTable:
    """Gaussians of all orientations, most of them inside the image, with a 3D filter and full harmonics."""
    generator = np.random.default_rng(seed)
    table = lazy(empty_table(count))
    table.geometry[:, MEANS] = generator.normal(size=(count, 3)) * 0.9
    table.geometry[:, LOG_SCALES] = generator.uniform(np.log(0.03), np.log(0.4), (count, 3))
    table.geometry[:, ROTATIONS] = generator.normal(size=(count, 4))
    table.geometry[:, OPACITY_LOGITS] = generator.normal(size=count) * 2
    table.geometry[:, FILTER_3D] = generator.uniform(0, 0.05, count)
    table.harmonics[:, :3] = generator.normal(size=(count, 3)) * 1.2
    table.harmonics[:, 3:] = generator.normal(size=(count, 45)) * 0.25
    return table


def in_camera(table: Table, view: Pinhole, positions: np.ndarray) -> None:
    """Puts the means at these camera coordinates [N, 3]."""
    table.geometry[:, MEANS] = (positions - view.translation) @ view.rotation


def tiny(table: Table, view: Pinhole) -> None:
    generator = np.random.default_rng(2)
    table.geometry[:, LOG_SCALES] = generator.uniform(-9, -4, (table.count, 1))
    table.geometry[:, FILTER_3D] = 0.001
    table.geometry[:, OPACITY_LOGITS] = 4


def huge(table: Table, view: Pinhole) -> None:
    """Larger than the image, some around the camera itself."""
    table.geometry[:, LOG_SCALES] = np.random.default_rng(3).uniform(0, 3, (table.count, 3))
    table.geometry[:, OPACITY_LOGITS] -= 4


def steep(table: Table, view: Pinhole) -> None:
    """A fifth of a pixel wide: without the 2D filter alpha falls by orders of magnitude a row."""
    generator = np.random.default_rng(7)
    pixels = generator.uniform(0.15, 0.3, (table.count, 3)) * generator.uniform(1, 4, (table.count, 1)) ** [
        1,
        0,
        0,
    ]
    table.geometry[:, LOG_SCALES] = np.log(pixels * DISTANCE / view.fx)
    table.geometry[:, FILTER_3D] = 0
    table.geometry[:, OPACITY_LOGITS] = 8


def needles(table: Table, view: Pinhole) -> None:
    generator = np.random.default_rng(4)
    table.geometry[:, LOG_SCALES] = np.log([1.0, 2e-3, 2e-3]) + generator.normal(size=(table.count, 3)) * 0.5
    table.geometry[:, FILTER_3D] = 0.002
    table.geometry[:, OPACITY_LOGITS] = 4


def discs(table: Table, view: Pinhole) -> None:
    """One axis collapsed, as training likes to make them; products of squared scales would underflow."""
    table.geometry[:, LOG_SCALES.start] = -25
    table.geometry[::2, FILTER_3D] = 0  # the filter takes all opacity from the others


def off_screen(table: Table, view: Pinhole) -> None:
    """Beside the image, some beyond the Jacobian's clamp, large enough to reach into it."""
    generator = np.random.default_rng(5)
    angle = generator.uniform(0, 2 * np.pi, table.count)
    radius = generator.uniform(2, 8, table.count)
    depth = generator.uniform(2, 6, table.count)
    in_camera(table, view, np.stack([radius * np.cos(angle), radius * np.sin(angle), depth], axis=1))
    table.geometry[:, LOG_SCALES] += 1.5


def behind(table: Table, view: Pinhole) -> None:
    """A third behind the camera, a third around the near plane, the rest in front."""
    generator = np.random.default_rng(6)
    depth = np.resize([-2.0, 0.15, 0.25, 3.0, 0.199, 0.201], table.count)
    depth *= 1 + generator.uniform(0, 0.004, table.count)  # equal depths belong to another scene
    spread = generator.normal(size=(table.count, 2)) * np.abs(depth)[:, None] * 0.3
    in_camera(table, view, np.concatenate([spread, depth[:, None]], axis=1))
    table.geometry[:, LOG_SCALES] -= 2


def overlapping(table: Table, view: Pinhole) -> None:
    """Threes at exactly the same place, of different colours: equal depths must keep the order of rows."""
    table.geometry[:, MEANS] = np.repeat(table.geometry[::3, MEANS], 3, axis=0)[: table.count]


def transparent(table: Table, view: Pinhole) -> None:
    table.geometry[:, OPACITY_LOGITS] = -30
    table.geometry[::10, OPACITY_LOGITS] = 0


def invisible(table: Table, view: Pinhole) -> None:
    table.geometry[:, OPACITY_LOGITS] = -30


def opaque(table: Table, view: Pinhole) -> None:
    """Capped alphas, and pixels that end early."""
    table.geometry[:, OPACITY_LOGITS] = 8
    table.geometry[:, LOG_SCALES] += 0.7


def far_apart(table: Table, view: Pinhole) -> None:
    """Unnormalised quaternions of very different lengths."""
    table.geometry[:, ROTATIONS] *= np.geomspace(1e-3, 1e3, table.count)[:, None]


SPECIAL: dict[str, Callable[[Table, Pinhole], None]] = {
    shape.__name__: shape
    for shape in (
        tiny,
        huge,
        steep,
        needles,
        discs,
        off_screen,
        behind,
        overlapping,
        transparent,
        invisible,
        opaque,
        far_apart,
    )
}

SETTINGS: dict[str, RasterSettings] = {
    "mip": RasterSettings(absolute_gradients=True),
    "white": RasterSettings(background=(1.0, 1.0, 1.0)),
    "plain 3dgs": RasterSettings(kernel_size=0.3, compensate=False),
    "no 2d filter": RasterSettings(kernel_size=0.0),
    "degree 0": RasterSettings(sh_degree=0),
    "degree 1": RasterSettings(sh_degree=1),
    "degree 2": RasterSettings(sh_degree=2),
    "cap 0.999": RasterSettings(max_alpha=0.999),
    "light cut": RasterSettings(light_cut=0.02, absolute_gradients=True),
}


def special(name: str, view: Pinhole, count: int = 80) -> LazyTable:
    table = random_table(count, seed=sum(name.encode()))
    SPECIAL[name](table, view)
    return table


def copied(table: Table) -> LazyTable:
    arrays = {name: getattr(table, name).copy() for name in WIDTHS}
    return LazyTable(**arrays, pending=pending_of(table))


def smooth_image(width: int, height: int, seed: int = 0) -> np.ndarray:
    """A few random waves [3, H, W]: weights of a loss that neither cancels nor favours single pixels."""
    generator = np.random.default_rng(seed)
    x, y = (np.arange(width) + 0.5) / width, (np.arange(height) + 0.5) / height
    waves = np.zeros((3, height, width))
    for _ in range(3):
        kx, ky = generator.uniform(-6, 6, (2, 3, 1, 1))
        phase = generator.uniform(0, 2 * np.pi, (3, 1, 1))
        waves += np.cos(kx * x[None, None, :] + ky * y[None, :, None] + phase)
    return waves.astype(np.float32)
