"""The torch twin of every operation: plain formulas and autograd, written to be read and believed.

It defines what the native engine has to compute. Arrays go in and out as NumPy; with float64 the results are
float64 too and the tables may be, which is what finite differences need.
"""

from __future__ import annotations

from typing import Any

from ...backend import Backend, Facts, OptimizerState
from ...errors import MissingExtra
from ..host_model import ComposedModel, host_memory
from ..kernels import Kernels

BYTES_PER_GAUSSIAN = 3500
BYTES_PER_PIXEL = 1200
PROCESS_BYTES = 420 * 2**20
"""Measured once, between 64 and 128 thousand Gaussians and 3 and 49 thousand pixels; torch itself is most of
the last."""

_NEW = OptimizerState()


def reference_kernels(dtype: Any = None) -> Kernels:
    """The operations in torch.float32 (the default) or torch.float64."""
    torch = _torch()
    from .kernels import assemble

    return assemble(torch.float32 if dtype is None else dtype)


def reference_backend() -> Backend:
    torch = _torch()
    kernels = reference_kernels()
    held = host_memory(BYTES_PER_GAUSSIAN, BYTES_PER_PIXEL, PROCESS_BYTES)
    return Backend(
        facts=Facts(
            name="reference",
            device="cpu",
            arithmetic=f"reference torch {torch.__version__}",
            deterministic=True,
            fused=False,
            details={"torch": torch.__version__, "dtype": "float32"},
        ),
        memory=held,
        upload=lambda table, optimizer=_NEW: ComposedModel(kernels, held, table, optimizer),
        photo=lambda pixels: pixels,
        similarity=kernels.similarity,
        neighbour_distance=kernels.neighbour_distance,
        morton_order=kernels.morton_order,
        exposes=True,
        knows_regions=True,
    )


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("The reference backend", "torch") from error
    return torch
