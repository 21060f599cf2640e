"""Models to write and compare, and a writer of SOG, which splatmeter itself only reads."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np
from PIL import Image

from splatmeter.gaussians import gaussians
from splatmeter.ops import F32, FILTER_3D, LOG_SCALES, MEANS, OPACITY_LOGITS, ROTATIONS, Table, empty_table


def some_table(count: int = 300, degree: int = 3, seed: int = 3) -> Table:
    generator = np.random.default_rng(seed)
    table = empty_table(count, trainable=False)
    table.geometry[:, MEANS] = generator.normal(0, 3, (count, 3))
    table.geometry[:, LOG_SCALES] = generator.normal(-3.5, 0.8, (count, 3))
    table.geometry[:, ROTATIONS] = generator.normal(size=(count, 4))
    table.geometry[:, OPACITY_LOGITS] = generator.normal(0, 2, count)
    table.geometry[:, FILTER_3D] = generator.uniform(0.001, 0.03, count)
    table.harmonics[:, :3] = generator.normal(0, 1, (count, 3))
    rest = 3 * (degree + 1) ** 2 - 3
    table.harmonics[:, 3 : 3 + rest] = generator.normal(0, 0.15, (count, rest))
    return table


def matched(found: Table, original: Table) -> Table:
    """The rows of `found` in the order of `original`: formats may sort as they like."""
    apart = np.linalg.norm(found.geometry[None, :, MEANS] - original.geometry[:, None, MEANS], axis=2)
    rows = apart.argmin(axis=1)
    assert len(set(rows.tolist())) == original.count == found.count
    return Table(found.geometry[rows], found.harmonics[rows], *(np.zeros((0, 1), np.float32),) * 3)


def turned_by(found: Table, original: Table) -> float:
    """The largest angle between the axes of two models, radians."""
    same = np.abs((gaussians.rotations(found).astype(np.float64) * gaussians.rotations(original)).sum(axis=1))
    return float(2 * np.arccos(np.clip(same, 0, 1)).max())


# ---- SOG --------------------------------------------------------------------------------------------------
def sog(table: Table, degree: int, model: str | None = None, **changes: Any) -> bytes:
    """Fused values must be in `table` already; palette and codebooks as careful writers choose them."""
    parts = sog_parts(table, degree, model)
    parts["meta.json"] = json.dumps(json.loads(parts["meta.json"]) | changes).encode()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return content.getvalue()


def sog_parts(table: Table, degree: int, model: str | None = None) -> dict[str, bytes]:
    count, geometry = table.count, table.geometry
    logarithmic = np.sign(geometry[:, MEANS]) * np.log1p(np.abs(geometry[:, MEANS]))
    low, high = logarithmic.min(axis=0), logarithmic.max(axis=0)
    fixed = np.rint((logarithmic - low) / np.maximum(high - low, 1e-9) * 65535).astype(np.uint16)
    scale_book = np.linspace(geometry[:, LOG_SCALES].min(), geometry[:, LOG_SCALES].max(), 256)
    color_book = np.linspace(table.harmonics[:, :3].min(), table.harmonics[:, :3].max(), 256)
    opacity = np.rint(gaussians.opacities(table) * 255).astype(np.uint8)
    colors = np.column_stack([_nearest(color_book, table.harmonics[:, :3]), opacity])
    meta: dict[str, Any] = {
        "version": 2,
        "count": count,
        "means": {"mins": low.tolist(), "maxs": high.tolist(), "files": ["means_l.webp", "means_u.webp"]},
        "scales": {"codebook": scale_book.tolist(), "files": ["scales.webp"]},
        "quats": {"files": ["quats.webp"]},
        "sh0": {"codebook": color_book.tolist(), "files": ["sh0.webp"]},
    } | ({"model": model} if model else {})
    parts = {
        "means_l.webp": _picture(_opaque(fixed & 255)),
        "means_u.webp": _picture(_opaque(fixed >> 8)),
        "quats.webp": _picture(_quaternions(gaussians.rotations(table))),
        "scales.webp": _picture(_opaque(_nearest(scale_book, geometry[:, LOG_SCALES]))),
        "sh0.webp": _picture(colors),
    }
    if degree:
        rest = (degree + 1) ** 2 - 1
        values = table.harmonics[:, 3 : 3 + 3 * rest]
        book = np.linspace(values.min(), values.max(), 256)
        entries = _opaque(_nearest(book, values).reshape(-1, 3))  # one entry of the palette a Gaussian
        labels = np.column_stack([np.arange(count) & 255, np.arange(count) >> 8, np.zeros(count)])
        parts["shN_centroids.webp"] = _picture(entries, 64 * rest)
        parts["shN_labels.webp"] = _picture(_opaque(labels))
        files = ["shN_centroids.webp", "shN_labels.webp"]
        meta["shN"] = {"count": count, "bands": degree, "codebook": book.tolist(), "files": files}
    return parts | {"meta.json": json.dumps(meta).encode()}


def _nearest(book: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.abs(values[..., None] - book).argmin(axis=-1).astype(np.uint8)


def _opaque(values: np.ndarray) -> np.ndarray:
    return np.column_stack([values, np.full(len(values), 255)]).astype(np.uint8)


def _quaternions(unit: F32) -> np.ndarray:
    rows = []
    for quaternion in unit:
        largest = int(np.abs(quaternion).argmax())
        others = np.delete(quaternion * np.sign(quaternion[largest]), largest)
        rows.append([*np.rint((others * np.sqrt(2) + 1) / 2 * 255), 252 + largest])
    return np.array(rows, np.uint8)


def _picture(rows: np.ndarray, width: int = 16) -> bytes:
    height = -(-len(rows) // width)
    pixels = np.zeros((height * width, 4), np.uint8)
    pixels[: len(rows)] = rows
    content = io.BytesIO()
    Image.fromarray(pixels.reshape(height, width, 4), "RGBA").save(content, "WEBP", lossless=True, exact=True)
    return content.getvalue()
