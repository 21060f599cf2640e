"""What a run will need before it starts: floor x planned Gaussians + photos + context, against what there
is.
"""

from __future__ import annotations

from dataclasses import dataclass

from splatmeter.units import bytes_text, count_text

STEP_BYTES_PER_GAUSSIAN = 944
"""59 floats at SH degree 3: parameters 236 B, two Adam moments 472 B, gradients 236 B."""
TRAINER_CONTEXT = {"splatmeter": 120 * 2**20, "mip-splatting": 600 * 2**20, "3dgs": 600 * 2**20}
"""Interpreter or CUDA context before any Gaussian."""


@dataclass(frozen=True, slots=True)
class Planned:
    gaussians: int
    photos: int = 0
    width: int = 0
    height: int = 0
    trainer: str = "mip-splatting"


@dataclass(frozen=True, slots=True)
class Prediction:
    """At least this much; a rasterizer's buffers come on top."""

    gaussians: int
    photos: int
    context: int

    @property
    def total(self) -> int:
        return self.gaussians + self.photos + self.context

    def sentence(self, planned: Planned, available: int | None) -> str:
        parts = f"{count_text(planned.gaussians)} Gaussians {bytes_text(self.gaussians)}"
        if self.photos:
            parts += f" + {planned.photos} photos {bytes_text(self.photos)}"
        text = f"at least {bytes_text(self.total)}: {parts} + context {bytes_text(self.context)}"
        if available is None:
            return f"{text}; how much there is, is not observable here"
        verdict = "fits" if self.total <= available else "does not fit"
        return f"{text}; {bytes_text(available)} available: {verdict}"


def predict(planned: Planned) -> Prediction:
    """The original keeps all photos as floats (12 B a pixel); ours keeps them as bytes within a budget."""
    pixel = 3 if planned.trainer == "splatmeter" else 12
    return Prediction(
        planned.gaussians * STEP_BYTES_PER_GAUSSIAN,
        planned.photos * planned.width * planned.height * pixel,
        TRAINER_CONTEXT.get(planned.trainer, 600 * 2**20),
    )
