"""`.splat`: 32 bytes a Gaussian, no header, no harmonics, and no place for a mark."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np

from splatmeter.errors import InputError
from splatmeter.files.atomic import replacing
from splatmeter.formats import packing, reading
from splatmeter.formats.fused import Fused
from splatmeter.gaussians.harmonics import dc_from_rgb, rgb_from_dc
from splatmeter.gaussians.ply import Model
from splatmeter.ops import LOG_SCALES, MEANS, OPACITY_LOGITS, ROTATIONS, empty_table

ROW = np.dtype([("mean", "<f4", 3), ("scale", "<f4", 3), ("rgba", "u1", 4), ("rotation", "u1", 4)])
SMALLEST_SCALE = 1e-30  # a scale of 0 has no logarithm


def read(stream: BinaryIO, path: Path, size: int) -> Model:
    if not size or size % ROW.itemsize:
        raise InputError(
            f"{path} is no whole .splat file: its {size} bytes are not Gaussians of {ROW.itemsize} bytes."
        )
    rows = np.frombuffer(stream.read(size), ROW)
    table = empty_table(len(rows), trainable=False)
    table.geometry[:, MEANS] = rows["mean"]
    with np.errstate(invalid="ignore"):
        table.geometry[:, LOG_SCALES] = np.log(np.maximum(rows["scale"], np.float32(SMALLEST_SCALE)))
    table.geometry[:, ROTATIONS] = (rows["rotation"].astype(np.float32) - 128) / 128
    table.geometry[:, OPACITY_LOGITS] = reading.logits(rows["rgba"][:, 3] / 255)
    table.harmonics[:, :3] = dc_from_rgb(rows["rgba"][:, :3] / 255)
    return reading.finished(table, 0, ".splat")


def write(path: Path, model: Fused) -> list[str]:
    """What covers most comes first, so that viewers can show a part of a file while the rest arrives."""
    with np.errstate(over="ignore"):
        covered = model.opacities * np.exp(model.log_scales.sum(axis=1, dtype=np.float64))  # [N]
        order = np.argsort(-covered, kind="stable")
        rows = np.empty(model.count, ROW)
        rows["mean"] = model.means[order]
        rows["scale"] = np.exp(model.log_scales[order])
    rows["rgba"][:, :3] = packing.to_bytes(rgb_from_dc(model.harmonics[order, 0]) * 255)
    rows["rgba"][:, 3] = packing.to_bytes(model.opacities[order] * 255)
    rows["rotation"] = packing.to_bytes(model.rotations[order] * 128 + 128)
    with replacing(path) as stream:
        stream.write(rows.data)
    return []
