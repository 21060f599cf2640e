"""Writes golden.npz: renderings and gradients of our float64 reference, for machines without torch.

Run `python tests/parity/make_golden.py` after a change of the reference that was meant; the inputs are stored
beside the results, so that a new random generator cannot change what is compared.
"""

from __future__ import annotations

from dataclasses import astuple, fields
from pathlib import Path

import numpy as np
from parity_scenes import camera, random_table, smooth_image

from splatmeter.ops import Pinhole, RasterSettings

GOLDEN = Path(__file__).parent / "golden.npz"
SETTINGS = RasterSettings(background=(0.1, 0.2, 0.3), absolute_gradients=True)
CAMERAS = (camera(40, 28, seed=1), camera(33, 17, seed=2, shift=(0.15, -0.1)), camera(28, 40, seed=3))


def camera_arrays(view: Pinhole) -> dict[str, np.ndarray]:
    intrinsics = np.array([view.fx, view.fy, view.cx, view.cy, view.width, view.height])
    return {"rotation": view.rotation, "translation": view.translation, "intrinsics": intrinsics}


def camera_from(arrays: dict[str, np.ndarray]) -> Pinhole:
    fx, fy, cx, cy, width, height = (float(value) for value in arrays["intrinsics"])
    return Pinhole(arrays["rotation"], arrays["translation"], fx, fy, cx, cy, int(width), int(height))


def view_arrays(view: Pinhole, seed: int) -> dict[str, np.ndarray]:
    """One camera, the weights of the loss, and what comes out, rounded to float32."""
    import torch
    from doubt import doubtful

    from splatmeter.backends.reference import reference_kernels

    backend = reference_kernels(torch.float64)
    table = random_table(60, seed=20)
    doubt = doubtful(table, view, SETTINGS)
    weights = smooth_image(view.width, view.height, seed) * ~doubt.pixels  # nothing hangs on a rounding
    rendering, tape = backend.forward(table, view, SETTINGS)
    gradients = backend.backward(tape, weights, weights[1])
    results = dict(zip((field.name for field in fields(gradients)), astuple(gradients), strict=True))
    results["geometry"] = results["geometry"][:, :11]
    results |= {"color": rendering.color, "transmittance": rendering.transmittance}
    single = {name: value.astype(np.float32) for name, value in results.items() if value.dtype != np.bool_}
    single |= {"visible": gradients.visible, "doubtful_pixels": doubt.pixels, "doubtful_rows": doubt.rows}
    return single | {"weights": weights.astype(np.float32)} | camera_arrays(view)


def main() -> None:
    table = random_table(60, seed=20)
    arrays = {"table/geometry": table.geometry, "table/harmonics": table.harmonics}
    for number, view in enumerate(CAMERAS):
        arrays |= {f"view{number}/{name}": value for name, value in view_arrays(view, number).items()}
    np.savez_compressed(GOLDEN, **arrays)
    print(f"{GOLDEN}: {GOLDEN.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
