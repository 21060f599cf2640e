"""What a run was computed with: what it told of itself, or what is known of its trainer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ON_A_CARD = ("mip-splatting", "3dgs", "fork", "gsplat")


@dataclass(frozen=True, slots=True)
class Engine:
    """What a run was computed with, as far as the audit must know it."""

    deterministic: bool
    fused: bool
    """Gradients of all Gaussians are never held together."""
    on_a_card: bool


def engine_of(trainer: str, told: Mapping[str, Any]) -> Engine:
    """What the run itself told; of trainers and older results that do not tell, what is known of them."""
    ours = trainer == "splatmeter"
    device = told.get("backend_device")
    return Engine(
        deterministic=told.get("backend_deterministic", ours) is True,
        fused=told.get("backend_fused", ours and told.get("backend") == "native") is True,
        on_a_card=device != "cpu" if isinstance(device, str) else trainer in ON_A_CARD,
    )
