"""How much worse each metric may be: the tolerance of PSNR, and for the others the margin that goes with it.

A margin is fixed before the runs and printed with every judgement; it never comes from how runs spread. The
relations are facts about pictures, taken where 3D Gaussian splatting lives (27 dB, SSIM 0.8):

- L1 follows the amplitude of the errors: Δ dB of PSNR are a factor of 10^(Δ/20). 0.5 % of 27 dB are 0.135 dB
  and 1.57 % of L1.
- SSIM and LPIPS by what training itself does: over the nine Mip-NeRF 360 scenes 3D Gaussian splatting goes
  from 25.60 dB / .770 / .279 after 7,000 iterations to 27.21 dB / .815 / .214 after 30,000, so 0.135 dB are
  0.0038 of SSIM (0.47 % of 0.8) and 2.25 % of LPIPS.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

TOLERANCE = 0.005
DIRECTION = {"psnr": 1.0, "ssim": 1.0, "lpips": -1.0, "l1": -1.0}
"""Gated metrics, and which way is better."""
PER_TOLERANCE: Mapping[str, float] = MappingProxyType({"psnr": 1.0, "ssim": 0.94, "lpips": 4.5, "l1": 3.14})
"""Margin of a metric for each unit of the tolerance of PSNR, both as fractions."""


def margin_of(metric: str, tolerance: float, stated: Mapping[str, float] = MappingProxyType({})) -> float:
    """What the user states for this metric, or else the margin that goes with the tolerance of PSNR."""
    return stated.get(metric) or tolerance * PER_TOLERANCE[metric]


def margin_text(margin: float) -> str:
    """As every place writes it: `0.5 %`, `1.57 %`."""
    return f"{100 * margin:.3g} %"


def change_text(gain: float) -> str:
    """How a metric changed, whichever way it counts: `0.49 % better`, `0.81 % worse`, `unchanged`."""
    if gain == 0:
        return "unchanged"
    return f"{100 * abs(gain):.2f} % {'better' if gain > 0 else 'worse'}"


def margins_text(tolerance: float, stated: Mapping[str, float] = MappingProxyType({})) -> str:
    """For logs and reports: `PSNR 0.5 %, SSIM 0.47 %, LPIPS 2.25 %, L1 1.57 %`."""
    return ", ".join(
        f"{metric.upper()} {margin_text(margin_of(metric, tolerance, stated))}" for metric in DIRECTION
    )
