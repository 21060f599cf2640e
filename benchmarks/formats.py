"""What each format costs: held-out PSNR, distance from our own picture, size, seconds to write and to read.

    python benchmarks/formats.py RUN_FOLDER [SCRATCH_FOLDER]

The run must have been trained with --eval. Seconds and sizes are per million Gaussians, the best of three.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from splatmeter import api
from splatmeter.backends.registry import backend
from splatmeter.evaluate.metrics import psnr
from splatmeter.formats import registry, spz
from splatmeter.gaussians import gaussians, ply
from splatmeter.models.opening import Opened, open_model
from splatmeter.ops import RasterSettings

FORMS = {
    "PLY, fused": "fused.ply",
    "glTF (.glb)": "m.glb",
    "compressed PLY": "m.compressed.ply",
    "SPZ 4": "m.spz",
    "SPZ 3": "m3.spz",
    "SPZ 4, harmonics in 5 and 4 bits": "5-4.spz",
    "SPZ 4, in 6 and 5 bits": "6-5.spz",
    "SPZ 4, in 7 bits": "7-7.spz",
    "SPZ 4, in 8 bits": "8-8.spz",
    ".splat, -k 0.1": "m.splat",
}


def best_of_three(work: Callable[[], object]) -> float:
    found = []
    for _ in range(3):
        begin = time.perf_counter()
        work()
        found.append(time.perf_counter() - begin)
    return min(found)


def writer(name: str, path: Path, opened: Opened, settings: RasterSettings) -> Callable[[], object]:
    table, degree = gaussians.only_finite(opened.model.table), opened.model.sh_degree
    if name == "fused.ply":
        return lambda: ply.write_fused(path, table, degree, (), settings)
    form = {"m3.spz": "spz3"}.get(name) or registry.default_form(path) or ""

    def write() -> None:
        bits = (spz.FIRST_DEGREE_BITS, spz.HIGHER_DEGREE_BITS)
        if "-" in name:
            spz.FIRST_DEGREE_BITS, spz.HIGHER_DEGREE_BITS = int(name[0]), int(name[2])
        registry.write_model(path, form, table, degree, settings)
        spz.FIRST_DEGREE_BITS, spz.HIGHER_DEGREE_BITS = bits

    return write


def main(run: Path, folder: Path) -> None:
    own = api.load_model(run, device="cpu")
    opened = open_model(run, -1, lambda: backend(device="cpu"))
    assert opened.config is not None
    scene = api.load_scene(
        opened.config.source_path, eval=True, resolution=opened.config.resolution, images=opened.config.images
    )
    million = own.count / 1e6
    renders = [own.render(view.camera).pixels for view in scene.test]
    base = api.evaluate(own, scene.test).means["psnr"]
    print(f"{own.count} Gaussians, {len(scene.test)} held-out views, our own file: {base:.3f} dB")
    print("| format | held out, dB | from our picture, dB | MB | s to write | s to read |")
    print("| --- | --- | --- | --- | --- | --- |")
    for label, name in FORMS.items():
        path = folder / name
        written = best_of_three(writer(name, path, opened, own.settings)) / million
        read = best_of_three(lambda path=path: registry.read_model(path)) / million
        found = api.load_model(path, device="cpu", kernel_size=0.1 if name == "m.splat" else None)
        loss = api.evaluate(found, scene.test).means["psnr"] - base
        apart = [
            min(psnr(found.render(view.camera).pixels, picture), 99.0)
            for view, picture in zip(scene.test, renders, strict=True)
        ]
        size = path.stat().st_size / 1e6 / million
        print(f"| {label} | {loss:+.3f} | {np.mean(apart):.1f} | {size:.1f} | {written:.2f} | {read:.2f} |")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else Path(scratch))
