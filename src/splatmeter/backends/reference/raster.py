"""Rendering forward and backward: autograd through the projection, and chunk by chunk the blending."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...ops import F32, OPTIMIZED, Pinhole, RasterSettings, Table
from ..kernels import Gradients, Picture
from . import adam
from .blending import Sorted, blend, offsets, pixel_chunks
from .projection import project


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceTape:
    table: Table
    camera: Pinhole
    settings: RasterSettings
    geometry: Tensor  # [N, 16] leaf: what was rendered, pending drift included
    harmonics: Tensor  # [N, 48] leaf
    rows: Tensor  # [M] visible rows, nearest first
    ellipses: Sorted  # [M] connected to the leaves


def forward(
    table: Table, camera: Pinhole, settings: RasterSettings, *, dtype: torch.dtype
) -> tuple[Picture, ReferenceTape]:
    current = adam.settled(table, dtype=dtype)
    geometry = current.geometry.requires_grad_()
    harmonics = current.harmonics.requires_grad_()
    with torch.no_grad():
        everything = project(geometry, harmonics, camera, settings)
        seen = everything.keep.nonzero()[:, 0]  # [M]
        # float32 depths: what the native engine sorts by; equal depths keep the order of rows
        rows = seen[torch.argsort(everything.depth[seen].float(), stable=True)]  # [M]
    # Once more for the visible only: dropped rows may hold infinite derivatives, and 0 * inf is not 0.
    visible = project(geometry[rows], harmonics[rows], camera, settings)
    ellipses = Sorted(visible.center, visible.conic, visible.alpha, visible.color)
    color = torch.empty(camera.height * camera.width, 3, dtype=dtype)
    transmittance = torch.empty(camera.height * camera.width, dtype=dtype)
    with torch.no_grad():
        for part, pixels in pixel_chunks(camera.width, camera.height, ellipses):
            color[part], transmittance[part] = blend(offsets(pixels, ellipses), ellipses, settings)
    size = (camera.height, camera.width)
    picture = Picture(color.T.reshape(3, *size).contiguous().numpy(), transmittance.reshape(size).numpy())
    return picture, ReferenceTape(table, camera, settings, geometry, harmonics, rows, ellipses)


def backward(tape: ReferenceTape, color_gradient: F32, transmittance_gradient: F32 | None) -> Gradients:
    ellipses = tape.ellipses
    upstream, absolute = blend_backward(tape, color_gradient, transmittance_gradient)
    through = [ellipses.center, ellipses.conic, ellipses.alpha, ellipses.color]
    flowing = [upstream.center, upstream.conic, upstream.alpha, upstream.color]
    geometry, harmonics = torch.autograd.grad(
        through, [tape.geometry, tape.harmonics], flowing, retain_graph=True, materialize_grads=True
    )
    optimized = torch.zeros_like(geometry)
    optimized[:, OPTIMIZED] = geometry[:, OPTIMIZED]  # nothing else is a parameter

    count = len(geometry)
    half_image = torch.tensor([tape.camera.width / 2, tape.camera.height / 2], dtype=geometry.dtype)
    mean2d = torch.zeros(count, 2, dtype=geometry.dtype)
    mean2d[tape.rows] = upstream.center * half_image
    mean2d_absolute = torch.zeros(count, dtype=geometry.dtype)
    if tape.settings.absolute_gradients:
        mean2d_absolute[tape.rows] = absolute @ half_image
    visible = np.zeros(count, np.bool_)
    visible[tape.rows.numpy()] = True
    return Gradients(optimized.numpy(), harmonics.numpy(), mean2d.numpy(), mean2d_absolute.numpy(), visible)


def blend_backward(
    tape: ReferenceTape, color_gradient: F32, transmittance_gradient: F32 | None
) -> tuple[Sorted, Tensor]:
    """Gradients of the four arrays, and the sums over pixels of the centre's absolute gradients [M, 2]."""
    given = tape.ellipses
    inputs = [given.conic, given.alpha, given.color]
    leaves = Sorted(given.center.detach(), *[array.detach().requires_grad_() for array in inputs])
    dtype = leaves.center.dtype
    color_gradient_ = torch.as_tensor(color_gradient, dtype=dtype).reshape(3, -1).T  # [H W, 3]
    light = np.zeros(len(color_gradient_)) if transmittance_gradient is None else transmittance_gradient
    light_gradient = torch.as_tensor(light, dtype=dtype).reshape(-1)  # [H W]

    sums = Sorted(*[torch.zeros_like(array) for array in (given.center, *inputs)])
    absolute = torch.zeros_like(given.center)  # [M, 2]
    for part, pixels in pixel_chunks(tape.camera.width, tape.camera.height, leaves):
        offset = offsets(pixels, leaves).requires_grad_()  # [P, M, 2]
        outputs = blend(offset, leaves, tape.settings)
        offset_gradient, conic, alpha, color = torch.autograd.grad(
            outputs,
            [offset, leaves.conic, leaves.alpha, leaves.color],
            [color_gradient_[part], light_gradient[part]],
            materialize_grads=True,
        )
        sums.center.sub_(offset_gradient.sum(dim=0))
        sums.conic.add_(conic)
        sums.alpha.add_(alpha)
        sums.color.add_(color)
        absolute.add_(offset_gradient.abs().sum(dim=0))
    return sums, absolute
