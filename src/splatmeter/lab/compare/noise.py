"""What this machine cannot see: the same arm measured against itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

from splatmeter.lab.compare.ratio import Estimate, SpeedEvidence, exp


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """The outcome of an A/A control, kept per machine and scene."""

    estimate: Estimate
    machine: str = ""
    scene: str = ""

    @property
    def log_floor(self) -> float:
        """The larger |bound| of the 95 % interval: no claim smaller than this is printed."""
        return abs(self.estimate.log_mean) + self.estimate.half_width

    @property
    def floor(self) -> float:
        return exp(self.log_floor) - 1.0

    @property
    def failed(self) -> bool:
        """Two identical arms came out different, so the set-up measures something other than the arms."""
        return abs(self.estimate.log_mean) > self.estimate.half_width

    @property
    def sentence(self) -> str:
        bounds = self.estimate.interval_95
        blocks = f"over {self.estimate.blocks} blocks"
        figures = f"{self.estimate.ratio:.4f} [{bounds.low:.4f}, {bounds.high:.4f}] {blocks}"
        if self.failed:
            return f"The A/A control failed: the same arm against itself gave {figures}, which excludes 1."
        if not math.isfinite(self.log_floor):
            return "The A/A control has too few blocks to tell the noise floor."
        return f"A/A control: {figures}; noise floor {100 * self.floor:.2f} %."


def noise_floor(evidence: SpeedEvidence, machine: str = "", scene: str = "") -> NoiseFloor:
    return NoiseFloor(evidence.main, machine, scene)
