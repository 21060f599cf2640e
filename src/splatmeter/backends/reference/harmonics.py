"""Colour as a function of the viewing direction: real spherical harmonics up to degree 3."""

from __future__ import annotations

import torch
from torch import Tensor

# Normalisation of the real harmonics, with the signs of the published basis.
C0 = 0.28209479177387814
C1 = 0.4886025119029199
C2 = (1.0925484305920792, -1.0925484305920792, 0.31539156525252005, -1.0925484305920792, 0.5462742152960396)
C3 = (
    -0.5900435899266435,
    2.890611442640554,
    -0.4570457994644658,
    0.3731763325901154,
    -0.4570457994644658,
    1.445305721320277,
    -0.5900435899266435,
)


def basis(direction: Tensor, degree: int) -> Tensor:
    """direction [M, 3] of length 1 -> the basis functions' values [M, (degree + 1)^2]."""
    x, y, z = direction.unbind(-1)  # [M] each
    values = [torch.full_like(x, C0)]
    if degree >= 1:
        values += [-C1 * y, C1 * z, -C1 * x]
    xx, yy, zz = x * x, y * y, z * z
    if degree >= 2:
        values += [
            C2[0] * x * y,
            C2[1] * y * z,
            C2[2] * (2 * zz - xx - yy),
            C2[3] * x * z,
            C2[4] * (xx - yy),
        ]
    if degree >= 3:
        values += [
            C3[0] * y * (3 * xx - yy),
            C3[1] * x * y * z,
            C3[2] * y * (4 * zz - xx - yy),
            C3[3] * z * (2 * zz - 3 * xx - 3 * yy),
            C3[4] * x * (4 * zz - xx - yy),
            C3[5] * z * (xx - yy),
            C3[6] * x * (xx - 3 * yy),
        ]
    return torch.stack(values, dim=-1)


def colors(means: Tensor, harmonics: Tensor, camera_position: Tensor, degree: int) -> Tensor:
    """Never negative; a channel held at zero has no gradient. -> [M, 3]

    Exactly zero is not held: a cloud's black points start there and must be able to brighten.
    """
    direction = torch.nn.functional.normalize(means - camera_position, dim=-1)  # [M, 3]
    values = basis(direction, degree)  # [M, K]
    coefficients = harmonics.reshape(-1, 16, 3)[:, : values.shape[1]]  # [M, K, 3]
    return ((values[:, :, None] * coefficients).sum(dim=1) + 0.5).clamp(min=0)  # [M, 3]
