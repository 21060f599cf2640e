"""'none': the set of Gaussians stays as it is, and so do opacities."""

from __future__ import annotations

from splatmeter.densify.strategy import Strategy

FIXED = Strategy("none", plan=None, resets_opacities=False)
