"""From stored Gaussians to ellipses on the image: activations, 3D filter, camera, 2D Mip filter."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...ops import FILTER_3D, LOG_SCALES, MEANS, NEAR, OPACITY_LOGITS, ROTATIONS, Pinhole, RasterSettings
from . import harmonics as spherical

FAINTEST = 1 / 255
"""Contributions below this are skipped; where a Gaussian cannot reach it, it is not there."""

CLAMP_MARGIN = 0.3
"""The Jacobian is evaluated no further outside than this part of half the image (the published 1.3 tan)."""


@dataclass(frozen=True, slots=True, eq=False)
class Ellipses:
    """Gaussians as the image sees them; `keep` says which can reach 1/255 in it."""

    depth: Tensor  # [M]
    center: Tensor  # [M, 2] pixels
    conic: Tensor  # [M, 3] inverse of the 2D covariance: xx, xy, yy
    alpha: Tensor  # [M] at the centre
    color: Tensor  # [M, 3]
    keep: Tensor  # [M] bool


def filtered(log_scales: Tensor, logits: Tensor, filter_3d: Tensor) -> tuple[Tensor, Tensor]:
    """Scales sqrt(s^2 + f^2) [M, 3] and opacities o * prod(s_i / s'_i) [M] of the smoothed Gaussians.

    In the log domain, because products of squared scales underflow in float32. f = 0 changes nothing.
    """
    log_filtered = 0.5 * torch.logaddexp(2 * log_scales, 2 * filter_3d.log()[:, None])  # [M, 3]
    log_opacity = torch.nn.functional.logsigmoid(logits) + (log_scales - log_filtered).sum(dim=1)  # [M]
    return log_filtered.exp(), log_opacity.exp()


def rotation_matrices(quaternions: Tensor) -> Tensor:
    """Unnormalised quaternions (w, x, y, z) [M, 4] -> [M, 3, 3]."""
    w, x, y, z = torch.nn.functional.normalize(quaternions, dim=-1).unbind(-1)
    rows = [
        torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], dim=-1),
        torch.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], dim=-1),
        torch.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], dim=-1),
    ]
    return torch.stack(rows, dim=-2)


def jacobian(position: Tensor, camera: Pinhole) -> Tensor:
    """d pixel / d camera coordinates [M, 2, 3], its x/z and y/z held within the widened image.

    Autograd gives the true derivative where they are held; the original keeps a factor 2 there.
    """
    x, y, z = position.unbind(-1)
    margin_x = CLAMP_MARGIN * 0.5 * camera.width / camera.fx
    margin_y = CLAMP_MARGIN * 0.5 * camera.height / camera.fy
    u = (x / z).clamp(-camera.cx / camera.fx - margin_x, (camera.width - camera.cx) / camera.fx + margin_x)
    v = (y / z).clamp(-camera.cy / camera.fy - margin_y, (camera.height - camera.cy) / camera.fy + margin_y)
    zero = torch.zeros_like(z)
    first = torch.stack([camera.fx / z, zero, -camera.fx * u / z], dim=-1)  # [M, 3]
    second = torch.stack([zero, camera.fy / z, -camera.fy * v / z], dim=-1)  # [M, 3]
    return torch.stack([first, second], dim=1)


def touches(center: Tensor, half: Tensor, size: int) -> Tensor:
    """Does [center - half, center + half] meet the pixel centres 0.5 ... size - 0.5?"""
    return (center + half >= 0.5) & (center - half <= size - 0.5)


def project(geometry: Tensor, harmonics: Tensor, camera: Pinhole, settings: RasterSettings) -> Ellipses:
    """geometry [M, 16], harmonics [M, 48]. Rows behind the camera come out as nonsense with keep = False."""
    means = geometry[:, MEANS]
    rotation = torch.as_tensor(camera.rotation, dtype=means.dtype)  # [3, 3]
    position = means @ rotation.T + torch.as_tensor(camera.translation, dtype=means.dtype)  # [M, 3] camera
    x, y, z = position.unbind(-1)
    center = torch.stack([camera.fx * x / z + camera.cx, camera.fy * y / z + camera.cy], dim=-1)  # [M, 2]

    filter_3d = geometry[:, FILTER_3D].detach()  # [M] a constant of the method, not a parameter
    scales, opacities = filtered(geometry[:, LOG_SCALES], geometry[:, OPACITY_LOGITS], filter_3d)
    axes = rotation_matrices(geometry[:, ROTATIONS]) * scales[:, None, :]  # [M, 3, 3] columns: the axes
    footprint = jacobian(position, camera) @ rotation @ axes  # [M, 2, 3]; covariance = footprint footprint^T
    first, second = footprint.unbind(1)  # [M, 3] each
    a0, b, c0 = (first * first).sum(-1), (first * second).sum(-1), (second * second).sum(-1)  # [M] each
    # |first x second|^2 = a0 c0 - b^2, without the cancellation that needles would suffer
    det_before = torch.linalg.cross(first, second).square().sum(-1)  # [M]

    k = settings.kernel_size
    a, c = a0 + k, c0 + k
    det = det_before + k * (a0 + c0) + k * k  # [M]
    # the original adds epsilons of 1e-6 here; they are left out on purpose
    compensation = (det_before / det).sqrt() if settings.compensate and k > 0 else torch.ones_like(det)
    alpha = opacities * compensation  # [M]

    reach = (2 * (alpha / FAINTEST).log()).clamp(min=0)  # [M] squared Mahalanobis radius of the 1/255 ellipse
    finite = geometry[:, : FILTER_3D + 1].isfinite().all(dim=1)  # [M] what diverged is not drawn
    keep = finite & (z > NEAR) & (det > 0) & (alpha > FAINTEST)
    keep &= touches(center[:, 0], (reach * a).sqrt(), camera.width)
    keep &= touches(center[:, 1], (reach * c).sqrt(), camera.height)
    eye = torch.as_tensor(camera.position, dtype=means.dtype)  # [3] world
    return Ellipses(
        depth=z,
        center=center,
        conic=torch.stack([c, -b, a], dim=-1) / det[:, None],
        alpha=alpha,
        color=spherical.colors(means, harmonics, eye, settings.sh_degree),
        keep=keep,
    )
