"""The torch twin of every operation: plain formulas and autograd, written to be read and believed.

It defines what the native engine has to compute. Arrays go in and out as NumPy; with float64 the results are
float64 too and the tables may be, which is what finite differences need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import MissingExtra

if TYPE_CHECKING:
    from ...ops import Backend


def reference_backend(dtype: Any = None) -> Backend:
    """The operations in torch.float32 (the default) or torch.float64."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("The reference backend", "torch") from error
    from .backend import assemble

    return assemble(torch.float32 if dtype is None else dtype)
