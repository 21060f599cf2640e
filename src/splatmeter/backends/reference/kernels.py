"""The operations of one precision put together."""

from __future__ import annotations

from functools import partial

import torch

from ...ops import F32
from ..kernels import Kernels, Tape
from ..lazy_adam import AdamStep, pending_of
from . import adam, explore, image_loss, raster, space, statistics, surgery


def assemble(dtype: torch.dtype) -> Kernels:
    return Kernels(
        forward=partial(raster.forward, dtype=dtype),
        backward=raster.backward,
        backward_and_update=partial(backward_and_update, dtype=dtype),
        adam=partial(adam.step, dtype=dtype),
        settle=partial(adam.settle, dtype=dtype),
        image_loss=partial(image_loss.image_loss, dtype=dtype),
        exposed_loss=partial(image_loss.exposed_loss, dtype=dtype),
        similarity=partial(image_loss.similarity, dtype=dtype),
        sampling_distance=partial(space.sampling_distance, dtype=dtype),
        neighbour_distance=partial(space.neighbour_distance, dtype=dtype),
        morton_order=space.morton_order,
        rearrange=surgery.rearrange,
        explore=explore.explore,
    )


def backward_and_update(
    tape: Tape, color_gradient: F32, step: AdamStep | None, *, dtype: torch.dtype
) -> None:
    """The three parts one after the other; the native engine's single pass must give the same table."""
    gradients = raster.backward(tape, color_gradient, None)
    statistics.gather(tape.table, gradients)
    if step is not None:
        owed = pending_of(tape.table)
        adam.settle(tape.table, dtype=dtype)  # forward saw the settled parameters, so Adam moves those
        adam.step(tape.table, gradients, step, waits=owed is not None and owed.momentum.waits, dtype=dtype)
