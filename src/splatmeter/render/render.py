"""Gaussians through a camera: the backend's rasterizer together with the settings it is used with."""

from __future__ import annotations

import dataclasses

from splatmeter.ops import F32, Backend, Gradients, Pinhole, RasterSettings, Rendering, Table, Tape


@dataclasses.dataclass(frozen=True, slots=True)
class Renderer:
    backend: Backend
    settings: RasterSettings

    def forward(self, table: Table, camera: Pinhole) -> tuple[Rendering, Tape]:
        """The tape is valid until the backend's next forward."""
        return self.backend.forward(table, camera, self.settings)

    def backward(
        self, tape: Tape, color_gradient: F32, transmittance_gradient: F32 | None = None
    ) -> Gradients:  # [3, H, W], [H, W]
        return self.backend.backward(tape, color_gradient, transmittance_gradient)

    def image(self, table: Table, camera: Pinhole) -> F32:
        """Only the picture [3, H, W]: background included, not clamped."""
        rendering, _ = self.backend.forward(table, camera, self.settings)
        return rendering.color

    def with_degree(self, sh_degree: int) -> Renderer:
        return dataclasses.replace(self, settings=dataclasses.replace(self.settings, sh_degree=sh_degree))
