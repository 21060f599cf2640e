"""What the benchmarks work on: the yardstick's arrays, garden_512, and both engines over them."""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from splatmeter.backend import TrainStep
from splatmeter.backends.native import backend_of, native_engine
from splatmeter.backends.native.limits import measured_flops
from splatmeter.backends.registry import backend
from splatmeter.gaussians import initialize
from splatmeter.gaussians.gaussians import filtered_opacities, filtered_scales
from splatmeter.ops import FILTER_3D, Pinhole, RasterSettings, Rates, Table, empty_table
from splatmeter.photos.photo import read
from splatmeter.scene.scene import SceneOptions, load_scene
from splatmeter.train.schedule import Schedule

os.environ.setdefault("GOMP_SPINCOUNT", "0")  # before the yardstick's OpenMP is loaded

SHARED = Path(__file__).resolve().parents[2] / "shared"
GARDEN = SHARED / "data" / "scenes" / "garden_512"
SIZES = {"648x420": (648, 420), "1297x840": (1297, 840)}
TINY = Rates(1e-7, 1e-7, 1e-7, 1e-7, 1e-7, 1e-7)
"""Of workloads that must stay what they are while they are measured."""
ARRAYS = ("means", "scales", "quats", "ops", "sh")
YARDSTICK_PASSES = {
    0: "project",
    1: "sort",
    2: "bin",
    3: "blend forward",
    6: "loss",
    4: "blend backward",
    7: "update",
}


@dataclass
class Workload:
    arrays: dict[str, np.ndarray]
    cameras: list[Pinhole]
    photos: list[np.ndarray]  # uint8 [3, H, W]
    filters: np.ndarray  # [N] of the 3D filter
    schedule: Schedule | None = None
    """None: rates so small that nothing moves."""

    def rates(self, number: int) -> Rates:
        return TINY if self.schedule is None else self.schedule.rates(number)


# ---- workloads --------------------------------------------------------------------------------------------
def stored(folder: Path, name: str, size: str) -> Workload:
    """The yardstick's own: g140 or g1m from its folder, three cameras, noisy renders as photos."""
    return photographed(*read_stored(folder, name), *SIZES[size])


def read_stored(folder: Path, name: str) -> tuple[dict[str, np.ndarray], list[Pinhole]]:
    """Arrays and the three cameras at 648x420."""
    file = np.load(folder / f"{name}.npz")
    cameras = []
    for view, matrix in zip(file["viewmats"].astype(float), file["Ks"].astype(float), strict=True):
        lens = (matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2])
        cameras.append(Pinhole(view[:3, :3].copy(), view[:3, 3].copy(), *lens, 648, 420))
    return {key: file[key] for key in ARRAYS}, cameras


def photographed(arrays: dict[str, np.ndarray], cameras: list[Pinhole], width: int, height: int) -> Workload:
    """The cameras at another size, and what they see with some noise as photos."""
    filters = 1e-3 * np.linalg.norm(arrays["means"], axis=1)  # [N]
    scale = width / cameras[0].width
    sized = [
        replace(
            c, fx=c.fx * scale, fy=c.fy * scale, cx=c.cx * scale, cy=c.cy * scale, width=width, height=height
        )
        for c in cameras
    ]
    work = Workload(arrays, sized, [], filters)
    model, random = backend("native").upload(table_of(work)), np.random.default_rng(0)
    for camera in sized:
        color = model.render(camera, RasterSettings()).color
        noisy = color + random.normal(size=color.shape).astype(np.float32) * 0.1
        work.photos.append((noisy.clip(0, 1) * 255).astype(np.uint8))
    return work


def numbering(arrays: dict[str, np.ndarray], count: int) -> dict[str, np.ndarray]:
    """The same garden told with `count` Gaussians: evenly chosen rows, or copies moved by one of their own
    sizes; scales change so that the volume covered stays. Deterministic, still nearly in Morton order."""
    base = len(arrays["means"])
    rows = np.arange(count, dtype=np.int64) * base // count
    chosen = {key: array[rows].copy() for key, array in arrays.items()}
    if count > base:
        random = np.random.default_rng(7)
        again = np.flatnonzero(np.diff(rows, prepend=-1) == 0)
        spread = np.exp(chosen["scales"][again])
        chosen["means"][again] += random.normal(size=(len(again), 3)).astype(np.float32) * spread
    chosen["scales"] += np.float32(np.log(base / count) / 3)
    return chosen


def garden(scene_folder: Path = GARDEN, most: int | None = None) -> Workload:
    """garden_512 from its points with the training's own learning rates; a multiple of eight Gaussians."""
    scene = load_scene(SceneOptions(scene_folder, resolution=1, eval=True))
    engine = backend("native")
    model = engine.upload(initialize.from_points(scene.points, engine))
    model.refresh_filter([view.camera for view in scene.train])
    table = model.download(slice(None))
    rows = min(table.count, most or table.count) // 8 * 8
    g = table.geometry[:rows]
    arrays = {
        "means": g[:, 0:3].copy(),
        "scales": g[:, 3:6].copy(),
        "quats": g[:, 6:10].copy(),
        "ops": g[:, 10].copy(),
        "sh": table.harmonics[:rows].reshape(rows, 16, 3).copy(),
    }
    return Workload(
        arrays,
        [view.camera for view in scene.train],
        [read(view.photo) for view in scene.train],
        g[:, FILTER_3D].copy(),
        Schedule(scene.extent, position_steps=7000),
    )


def table_of(work: Workload) -> Table:
    arrays = work.arrays
    table = empty_table(len(arrays["means"]))
    table.geometry[:, 0:3], table.geometry[:, 3:6] = arrays["means"], arrays["scales"]
    table.geometry[:, 6:10], table.geometry[:, 10] = arrays["quats"], arrays["ops"]
    table.geometry[:, FILTER_3D] = work.filters
    table.harmonics[:] = arrays["sh"].reshape(len(arrays["means"]), 48)
    return table


# ---- engines ----------------------------------------------------------------------------------------------
class Ours:
    def __init__(self, work: Workload, threads: int) -> None:
        self.work = work
        self.engine = native_engine(threads)
        self.model = backend_of(self.engine).upload(table_of(work))
        self.settings, self.steps = RasterSettings(), 0

    def iterate(self, view: int) -> None:
        """One whole step on a view: what the trainer does, without its bookkeeping."""
        self.steps += 1
        rates = self.work.rates(self.steps)
        order = TrainStep(self.work.cameras[view], self.work.photos[view], self.settings, 0.2, rates)
        self.model.train_step(order).read()

    def cycle(self, number: int) -> None:
        self.iterate(number % len(self.work.cameras))

    def multiply_and_add(self, number: int) -> None:
        """Bare arithmetic on the engine's threads, the same on each: what the machine gives at best."""
        measured_flops(self.engine)

    def passes(self) -> dict[str, float]:
        return dict(self.engine.timings())


class Yardstick:
    """Its fused mode. It has no 3D filter: it is given what the filter makes of the arrays."""

    def __init__(self, work: Workload, threads: int, library: Path) -> None:
        sys.path.insert(0, str(SHARED / "yardstick"))
        import driver

        self.driver, self.work = driver, work
        self.kernel = driver.Kern(str(library), threads)
        self.kernel.load(filtered(work))
        count = self.kernel.N
        self.first, self.second = np.zeros((count, 64), np.float32), np.zeros((count, 64), np.float32)
        self.rates, self.steps, self.seconds = np.zeros(64, np.float32), 0, {}
        size = work.photos[0].shape
        self.targets = [photo.astype(np.float32) / 255 for photo in work.photos]
        self.scratch = np.zeros(size, np.float32), np.zeros((9, *size[1:]), np.float32)
        self.cameras = [self._camera(camera) for camera in work.cameras]

    def iterate(self, view: int) -> None:
        k, p, real = self.kernel, self.driver.p, ctypes.c_float
        gradient, scratch = self.scratch
        _, height, width = gradient.shape
        self.steps += 1
        correction = self._set_rates()
        k.fwd(self.cameras[view])
        target = p(self.targets[view])
        k.L.k_loss(k.c, width, height, p(k.img), target, real(0.2), p(gradient), p(scratch))
        k.L.k_bwd(k.c, p(k.img), p(k.T), p(gradient), None)
        arrays = [p(k.d[name]) for name in ARRAYS]
        constants = [real(0.9), real(0.999), real(1e-15), real(correction)]
        k.L.k_projbwd_adam(k.c, *arrays, p(self.first), p(self.second), p(self.rates), *constants)
        times = k.times()
        for index, name in YARDSTICK_PASSES.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + times[index] / 1e3

    def cycle(self, number: int) -> None:
        self.iterate(number % len(self.cameras))

    def passes(self) -> dict[str, float]:
        result, self.seconds = self.seconds, {}
        return result

    def _set_rates(self) -> float:
        rates = self.work.rates(self.steps)
        self.rates[:3], self.rates[3:48], self.rates[48:51] = (
            rates.harmonics_dc,
            rates.harmonics_rest,
            rates.mean,
        )
        self.rates[51:54], self.rates[54:58], self.rates[58] = rates.scale, rates.rotation, rates.opacity
        self.rates *= 1 / (1 - 0.9**self.steps)
        return 1 / np.sqrt(1 - 0.999**self.steps)

    def _camera(self, camera: Pinhole) -> Any:
        view = np.eye(4)
        view[:3, :3], view[:3, 3] = camera.rotation, camera.translation
        matrix = np.array([[camera.fx, 0, camera.cx], [0, camera.fy, camera.cy], [0, 0, 1]])
        return self.driver.cam(view, matrix, camera.width, camera.height)


def filtered(work: Workload) -> dict[str, np.ndarray]:
    """What the 3D filter makes of the arrays, for an engine that has none."""
    table = table_of(work)
    opacity = filtered_opacities(table)
    fused = {name: array.copy() for name, array in work.arrays.items()}
    fused["scales"] = np.log(filtered_scales(table))
    fused["ops"] = np.log(opacity / (1 - opacity))
    return fused
