"""An NVIDIA card as a backend: kernels of our own through the driver; no toolkit, compiler or torch."""

from __future__ import annotations

from typing import Any

from splatmeter.backend import Backend, EngineMemory, Facts, OptimizerState
from splatmeter.backends.cuda.card import images, open_card, told_in_our_words
from splatmeter.backends.cuda.card_photos import CardPhotos
from splatmeter.backends.cuda.model import CudaModel
from splatmeter.backends.native import native_engine
from splatmeter.ops import Table

__all__ = ["cuda_backend", "images", "open_card"]

BYTES_PER_GAUSSIAN = 1000
"""In training, growth included: 948 with up to 1.25 pairs a Gaussian, 989 with 1.7. The model is
native/cuda/memory_model.hpp, which a test compares with the arena's own count."""

BYTES_PER_PIXEL = 70
"""Render, gradient, maps of the loss."""

FIXED_BYTES = 64 * 2**20

_NEW = OptimizerState()


def cuda_backend(number: int = 0, threads: int | None = None) -> Backend:
    """The card with this number; the CPU engine reads files and helps where a model is only looked at."""
    host = native_engine(threads)
    card = open_card(number)  # one for all models; what a model holds of it goes with the model

    def upload(table: Table, optimizer: OptimizerState = _NEW) -> CudaModel:
        return CudaModel(card, host.kernels(), table, optimizer)

    def synchronize() -> None:
        with told_in_our_words():
            card.synchronize()

    return Backend(
        facts=_facts(number, card, host.native.threads),
        memory=_memory(card),
        upload=upload,
        photo=CardPhotos(card).deliver,
        similarity=host.similarity,
        neighbour_distance=host.neighbour_distance,
        morton_order=host.morton_order,
        synchronize=synchronize,
    )


def _memory(card: Any) -> EngineMemory:
    return EngineMemory(
        per_gaussian=BYTES_PER_GAUSSIAN,
        per_pixel=BYTES_PER_PIXEL,
        fixed=FIXED_BYTES,
        available=lambda: card.available,
        held=lambda: card.bytes,
        peak=lambda: card.most_bytes,
        reset_peak=lambda: card.reset_peak(),
        of_the_host=False,
        photos_give_way=True,
    )


def _facts(number: int, card: Any, threads: int) -> Facts:
    version = card.driver_version
    return Facts(
        name="cuda",
        device=f"cuda:{number}",
        arithmetic=f"cuda {card.name}, driver {version}, {card.image}",
        deterministic=True,
        fused=True,
        details={
            "card": card.name,
            "compute_capability": card.capability,
            "driver_cuda": f"{version // 1000}.{version // 10 % 100}",
            "image": card.image,
            "card_memory_limit": card.limit,
            "threads": threads,
        },
    )
